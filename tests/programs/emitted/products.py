import numpy as np


def grad_products(x, n):
    passes = 0
    for k in range(1, n):
        passes += 1
        if x[k] < 0:
            break

    # for k in range(1, n):
    dx = np.zeros_like(x)
    for i in reversed(range(passes)):
        k = 1 + i
        if not x[k] < 0:
            # s += x[k] * x[k - 1]
            dx[k - 1] = x[k]
            dx[k] += x[k - 1]
    return dx
