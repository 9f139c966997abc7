import numpy as np


def grad_two_ways_out(x, n):
    t_saved = []
    t_saved_1 = []
    t_saved_2 = []
    s = 0.0
    passes = 0
    for k in range(n):
        passes += 1
        if x[k] > 0:
            s = s + x[k] ** 2
            t = s > 3
            t_saved_2.append(t)
            if t:
                s = s * 3
                break
            s = s + x[k]
            t_1 = s < -2
            t_saved_1.append(t_1)
            if t_1:
                break
            s = s * 1.5
        else:
            s = s - x[k] * x[0]
            t_2 = s < -2
            t_saved.append(t_2)
            if t_2:
                break
            s = s * 1.5

    # for k in range(n):
    dx = np.zeros_like(x)
    ds = 1.0
    for k in reversed(range(passes)):
        if x[k] > 0:
            t_3 = t_saved_2.pop()
            if t_3:
                # s = s * 3
                ds = 3 * ds
            else:
                t_4 = t_saved_1.pop()
                if not t_4:
                    # s *= 1.5
                    ds = 1.5 * ds
                # s += x[k]
                dx[k] += ds
            # s += x[k] ** 2
            dx[k] += ds * (2 * x[k])
        else:
            t_5 = t_saved.pop()
            if not t_5:
                # s *= 1.5
                ds = 1.5 * ds
            # s -= x[k] * x[0]
            dx[0] -= ds * x[k]
            dx[k] -= ds * x[0]
    return dx
