import numpy as np


def grad_downward(x, n):
    passes = 0
    for k in range(n - 1, -1, -2):
        passes += 1
        if x[k] < 0:
            break

    # return s * (k + 1)
    ds = 1.0 * (k + 1)
    # for k in range(n - 1, -1, -2):
    dx = np.zeros_like(x)
    for i in reversed(range(passes)):
        k = n - 1 - i * 2
        if not x[k] < 0:
            # s += x[k] ** 3
            dx[k] += 3 * ds * x[k] ** 2
    return dx
