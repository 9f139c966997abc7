# SPDX-License-Identifier: Apache-2.0
"""Roots and inverse hyperbolic functions, in the manner of vmath.py.

Sources: fdlibm, Sun Microsystems, 1993 (the forms of the inverse hyperbolic functions); W. Kahan, Computing a real cube
root, 1991 (an approximation, then one step whose error is small beside the last place); the cubic approximation of the
cube root is a least-squares fit.
"""
import math

import numpy as np

from gradscribe.runtime.vmath import SHIFT, log, log1p, power_of_two, taken_apart


def cbrt(x):
    """x ** (1/3): Halley steps, each of which triples the number of digits, and a Newton step with a correction."""
    a = abs(x)
    k, f = taken_apart(a)
    q = (k * (1.0 / 3.0) + SHIFT) - SHIFT
    m = (1.0 + f) * power_of_two((k - 3.0 * q) + SHIFT)
    y = ((0.03064435 * m - 0.21226468) * m + 0.6806759) * m + 0.50098746
    cube = y * y * y
    y = y * (cube + 2.0 * m) / (2.0 * cube + m)
    cube = y * y * y
    y = y * (cube + 2.0 * m) / (2.0 * cube + m)
    y = y - (y - m / (y * y)) * (1.0 / 3.0)
    y = y * power_of_two(q + SHIFT)
    return x if a == 0.0 or a == np.inf or x != x else math.copysign(y, x)


def hypot(x, y):
    """sqrt(x * x + y * y), scaled so that no square overflows."""
    a, b = abs(x), abs(y)
    high = max(a, b)
    scale = 2.0 ** -600 if high > 2.0 ** 500 else 2.0 ** 600 if high < 2.0 ** -450 else 1.0
    u, v = a * scale, b * scale
    h = np.sqrt(u * u + v * v) / scale
    return np.inf if a == np.inf or b == np.inf else h


def arcsinh(x):
    a = abs(x)
    c = min(a, 2.0 ** 28)
    square = c * c
    near = log1p(c + square / (1.0 + np.sqrt(square + 1.0)))
    far = log(a) + 6.931471805599453e-01
    y = far if a > 2.0 ** 28 else near
    return x if a < 2.0 ** -28 or x != x else math.copysign(y, x)


def arccosh(x):
    t = min(x, 2.0 ** 28) - 1.0
    near = log1p(t + np.sqrt(2.0 * t + t * t))
    y = log(x) + 6.931471805599453e-01 if x > 2.0 ** 28 else near
    return y if x >= 1.0 else np.nan


def arctanh(x):
    a = abs(x)
    c = min(a, 0.9999999999999999)
    t = c + c
    y = 0.5 * log1p(t / (1.0 - c) if c >= 0.5 else t + t * c / (1.0 - c))
    y = np.inf if a == 1.0 else y
    return (x if a < 2.0 ** -28 else math.copysign(y, x)) if a <= 1.0 else np.nan
