import numpy as np


def grad_poly(x):
    return 3 * x ** 2 - 4 * x + 3
