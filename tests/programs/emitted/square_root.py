import numpy as np


def grad_square_root(a, tolerance):
    x_saved = []
    x = a
    returned = False
    for _ in range(50):
        x_saved.append(x)
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < tolerance:
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
        x = x_saved.pop()
        prod_x = 2 * x
        step = (x * x - a) / prod_x
        # if abs(step) < tolerance:
        if abs(step) < tolerance:
            dx += dvalue
        # step = (x * x - a) / (2 * x)
        ratio_dx = dx / prod_x
        da += ratio_dx
        dx += ratio_dx * (2 * step - prod_x)
        dvalue = 0.0
    return dx + da
