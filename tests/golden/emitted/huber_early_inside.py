import numpy as np


def grad_huber_early(r, delta):
    if abs(r) <= delta:
        return r
    return delta * np.sign(r)
