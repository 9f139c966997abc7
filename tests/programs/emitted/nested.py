import numpy as np


def grad_nested(x, n):
    passes_saved = np.empty(n, dtype=np.int64)
    s_saved = np.empty(n)
    for i in range(n):
        s = 0.0
        passes = 0
        for j in range(i, n):
            passes += 1
            s += x[j] * x[i]
            if s > 2:
                break
        s_saved[i] = s
        passes_saved[i] = passes

    # for i in range(n):
    dx = np.zeros_like(x)
    for i in reversed(range(n)):
        # t += s * s
        ds = 2 * s_saved[i]
        for i_1 in reversed(range(passes_saved[i])):
            j = i + i_1
            # s += x[j] * x[i]
            dx[i] += ds * x[j]
            dx[j] += ds * x[i]
    return dx
