import numpy as np


def escape_time(c, limit):
    z = 0j
    for i in range(limit):
        if abs(z) > 2:
            return i
        z = z * z + c
    return limit


def vmap_escape_time(c, limit):
    out = np.empty(c.shape[0], dtype=np.int64)
    # one example at a time: each makes its own number of passes
    for b in range(c.shape[0]):
        out[b] = escape_time(c[b], limit)
    return out
