import numpy as np


def grad_shrinking(x, n):
    x_saved = []
    x_1 = x
    k = 0
    while k < n:
        x_saved.append(x_1)
        y = x_1 * x_1
        if np.sum(y) < 0.3 + k:
            k = k + 1
            break
        x_1 = 0.7 * x_1 + 0.1 * y
        k = k + 1

    # return np.sum(x) * y[1]
    dy = np.zeros_like(x)
    dy[1] = np.sum(x_1)
    # for k in range(n):
    dx = np.full_like(x_1, y[1])
    while x_saved:
        k = k - 1
        x = x_saved.pop()
        y = x * x
        if np.sum(y) < 0.3 + k:
            dy_1 = dy
        else:
            # x = 0.7 * x + 0.1 * y
            dy_1 = 0.1 * dx + dy
            dx = 0.7 * dx
        # y = x * x
        dx += 2 * (dy_1 * x)
        # for k in range(n):
        dy = np.zeros_like(dy)
    return dx
