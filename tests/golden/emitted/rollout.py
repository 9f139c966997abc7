import numpy as np


def grad_rollout(x, w, n):
    tanh_w = np.tanh(w)
    x_saved = np.empty(n)
    for i in range(n):
        x_saved[i] = x
        x = x * tanh_w

    dx = 1.0
    dtanh_w = 0.0
    for i in reversed(range(n)):
        # x = x * np.tanh(w)
        dtanh_w += dx * x_saved[i]
        dx = dx * tanh_w
    # x = x * np.tanh(w)
    dw = dtanh_w * (1 - tanh_w * tanh_w)
    return dx, dw
