import numpy as np


def grad_counting(x):
    s = 0.0
    i = 0
    passes = 0
    while True:
        passes += 1
        s = s + x[i] * x[i]
        i = i + 1
        if i >= x.shape[0] or s > 3:
            break
    t = i - 1
    ds = x[t]

    # return s * x[i - 1]
    dx = np.zeros_like(x)
    dx[t] = s
    for i in reversed(range(passes)):
        # s += x[i] * x[i]
        dx_1 = ds * x[i]
        dx[i] += dx_1
        dx[i] += dx_1
    return dx
