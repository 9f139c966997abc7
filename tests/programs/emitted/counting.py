import numpy as np


def grad_counting(x):
    s = 0.0
    i = 0
    passes = 0
    while True:
        passes += 1
        s += x[i] * x[i]
        i += 1
        if i >= x.shape[0] or s > 3:
            break

    # return s * x[i - 1]
    dx = np.zeros_like(x)
    dx[i - 1] = s
    # s += x[i] * x[i]
    prod_x = 2 * x[i - 1]
    for i in reversed(range(passes)):
        # s += x[i] * x[i]
        dx[i] += prod_x * x[i]
    return dx
