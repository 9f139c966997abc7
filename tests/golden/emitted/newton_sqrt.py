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
        prod_dx = 0.5 * dx
        x = x_saved.pop()
        ratio_x = prod_dx / x
        da += ratio_x
        dx = prod_dx - ratio_x * (a / x)
    return dx + da
