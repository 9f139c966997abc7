import numpy as np


def grad_skipping(x):
    i_saved = []
    i = 0
    s = 0.0
    while i < x.shape[0]:
        i_saved.append(i)
        if x[i] > 1:
            i += 1
        else:
            s += x[i] ** 2
            if s > 1:
                break
            i += 1

    # return s * x[i - 1]
    dx = np.zeros_like(x)
    dx[i - 1] = s
    while i_saved:
        i_1 = i_saved.pop()
        if not x[i_1] > 1:
            # s += x[i] ** 2
            dx[i_1] += 2 * x[i - 1] * x[i_1]
    return dx
