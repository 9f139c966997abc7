import numpy as np


def grad_rollout(x, w, n):
    x_saved = np.empty(n)
    for i in range(n):
        x_saved[i] = x
        x = x * np.tanh(w)

    dx = 1.0
    dw = 0.0
    for i in reversed(range(n)):
        # x = x * np.tanh(w)
        dtanh_w = dx * x_saved[i]
        tanh_w = np.tanh(w)
        dx = dx * tanh_w
        dw += dtanh_w * (1 - tanh_w * tanh_w)
    return dx, dw
