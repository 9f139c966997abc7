import numpy as np


def grad_newton_sqrt(a):
    x_saved = []
    x = a
    while abs(x * x - a) > 1e-12:
        x_saved.append(x)
        x = 0.5 * (x + a / x)

    dx = 1.0
    da = 0.0
    while x_saved:
        # x = 0.5 * (x + a / x)
        dt = 0.5 * dx
        x = x_saved.pop()
        ratio_x = dt / x
        da += ratio_x
        dx = dt - ratio_x * (a / x)
    return dx + da
