import numpy as np


def grad_two_ways_out(x, n):
    s_saved = []
    s = 0.0
    passes = 0
    for k in range(n):
        passes += 1
        s_saved.append(s)
        if x[k] > 0:
            s += x[k] ** 2
            if s > 3:
                s = s * 3
                break
            s += x[k]
            if s < -2:
                break
            s *= 1.5
        else:
            s -= x[k] * x[0]
            if s < -2:
                break
            s *= 1.5

    # for k in range(n):
    dx = np.zeros_like(x)
    ds = 1.0
    for k in reversed(range(passes)):
        s = s_saved.pop()
        if x[k] > 0:
            s = s + x[k] ** 2
            if s > 3:
                # s = s * 3
                ds = 3 * ds
            else:
                s = s + x[k]
                if not s < -2:
                    # s *= 1.5
                    ds *= 1.5
                # s += x[k]
                dx[k] += ds
            # s += x[k] ** 2
            dx[k] += 2 * ds * x[k]
        else:
            s = s - x[k] * x[0]
            if not s < -2:
                # s *= 1.5
                ds *= 1.5
            # s -= x[k] * x[0]
            dx[0] -= ds * x[k]
            dx[k] -= ds * x[0]
    return dx
