import numpy as np


def grad_counted_down(x):
    x_saved = []
    n = 5
    while n > 0:
        x_saved.append(x)
        n -= 1
        if x[n] < 0:
            break
        x = x * x[n]

    # while n > 0:
    dx = np.ones_like(x)
    while x_saved:
        x = x_saved.pop()
        if not x[n] < 0:
            # x = x * x[n]
            dx_1 = np.sum(dx * x)
            dx = dx * x[n]
            dx[n] += dx_1
        n = n + 1
    return dx
