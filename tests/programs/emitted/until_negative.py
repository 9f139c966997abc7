import numpy as np


def grad_until_negative(x):
    passes = 0
    for v in x:
        passes += 1
        if v < 0:
            break

    # for v in x:
    dx = np.zeros_like(x)
    for i in reversed(range(passes)):
        v = x[i]
        if not v < 0:
            # s += v * v
            dv = 2 * v
            # for v in x:
            dx[i] = dv
    return dx
