import numpy as np


def grad_pairs(x, y):
    s = 0.0
    stop = False
    passes = 0
    for a, b in zip(x, y):
        passes += 1
        s += a * b
        if s > 3:
            stop = True
            break

    # for a, b in zip(x, y):
    ds = 2.0 if not stop else 1.0
    dx = np.zeros_like(x)
    for i in reversed(range(passes)):
        b = y[i]
        # s += a * b
        da = ds * b
        # for a, b in zip(x, y):
        dx[i] = da
    return dx
