import numpy as np


def grad_square_root(a, tolerance):
    x_saved = []
    t_saved = []
    x = a
    returned = False
    for _ in range(50):
        x_saved.append(x)
        step = (x * x - a) / (2 * x)
        x = x - step
        t = abs(step) < tolerance
        t_saved.append(t)
        if t:
            returned = True
            break

    # for _ in range(50):
    if returned:
        dvalue = 1.0
        dx = 0.0
    else:
        dvalue = 0.0
        dx = 1.0
    da = 0.0
    while x_saved:
        t_1 = t_saved.pop()
        # if abs(step) < tolerance:
        if t_1:
            dx += dvalue
        x = x_saved.pop()
        t_2 = 2 * x
        # step = (x * x - a) / (2 * x)
        t_3 = dx / t_2
        step = (x * x - a) / t_2
        da += t_3
        dx += 2 * (t_3 * step) - 2 * (t_3 * x)
        dvalue = 0.0
    return dx + da
