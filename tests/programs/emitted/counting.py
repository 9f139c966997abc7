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
    for i_1 in reversed(range(passes)):
        # s += x[i] * x[i]
        dx[i_1] += 2 * x[i - 1] * x[i_1]
    return dx
