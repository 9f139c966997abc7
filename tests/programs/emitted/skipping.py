import numpy as np


def grad_skipping(x):
    i_saved = []
    t_saved = []
    i = 0
    s = 0.0
    while i < x.shape[0]:
        i_saved.append(i)
        t = x[i] > 1
        t_saved.append(t)
        if t:
            i = i + 1
        else:
            s = s + x[i] ** 2
            if s > 1:
                break
            i = i + 1
    t_1 = i - 1
    ds = x[t_1]

    # return s * x[i - 1]
    dx = np.zeros_like(x)
    dx[t_1] = s
    while i_saved:
        t_2 = t_saved.pop()
        i = i_saved.pop()
        if not t_2:
            # s += x[i] ** 2
            dx[i] += ds * (2 * x[i])
    return dx
