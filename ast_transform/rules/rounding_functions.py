# SPDX-License-Identifier: Apache-2.0
"""Bounds of the errors that elementary functions pass on, for errors of any size.

By the mean value theorem, |f(x + d) - f(x)| is at most |d| times the largest |f'| between x - x_err and x + x_err.
Where f' is infinite, as that of a root at 0, the function's modulus of continuity takes its place.
"""
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.rule import static
from gradscribe.ast_transform.rules.elementwise import LOG_2, LOG_10, is_number
from gradscribe.ast_transform.rules.rounding import about, larger, none


def below(x, x_err):
    """The least |x + d|."""
    return np.maximum(abs(x) - x_err, 0.0)


# --- powers and roots -------------------------------------------------------------------------------------------------

@static
def at_least_one(b):
    return b >= 1


@about(operator.pow, np.float_power)
class power:
    def error(y, a_err, b_err, a, b):
        if is_number(b):
            if b == 0:
                return 0.0
            if b == 1:
                return a_err
            if b == 2:
                return a_err * (2 * abs(a) + a_err)
            if at_least_one(b):
                return b * a_err * (abs(a) + a_err) ** (b - 1)
        if none(b_err):
            return abs(y) * np.expm1(abs(b) * of_logarithm(a_err, a))
        moved = b_err * abs(np.log(abs(a)))
        if none(a_err):
            return abs(y) * np.expm1(moved)
        return abs(y) * np.expm1(moved + (abs(b) + b_err) * of_logarithm(a_err, a))


def of_logarithm(a_err, a):
    """|log |a + d| - log |a||"""
    return a_err / below(a, a_err)


@about(np.reciprocal)
class reciprocal:
    def error(y, x_err, x):
        return x_err * abs(y) / below(x, x_err)


@about(np.sqrt)
class sqrt:
    def error(y, x_err, x):
        return np.fmin(x_err / (y + np.sqrt(below(x, x_err))), np.sqrt(x_err))


@about(np.cbrt)
class cbrt:
    def error(x_err, x):
        return np.fmin(x_err / (3 * np.cbrt(below(x, x_err)) ** 2), 1.6 * np.cbrt(x_err))


@about(np.hypot, math.hypot)
class hypot:                        # the triangle inequality
    def error(a_err, b_err):
        if none(a_err):
            return b_err
        if none(b_err):
            return a_err
        return np.hypot(a_err, b_err)


# --- exponentials and logarithms --------------------------------------------------------------------------------------

@about(np.exp)
class exp:
    def error(x_err, x):
        return x_err * np.exp(x + x_err)


@about(np.exp2)
class exp2:
    def error(x_err, x):
        return LOG_2 * x_err * np.exp2(x + x_err)


@about(np.expm1)
class expm1:
    def error(x_err, x):
        return x_err * np.exp(x + x_err)


@about(np.log)
class log:
    def error(x_err, x):
        return x_err / np.maximum(x - x_err, 0.0)


@about(math.log)
class log_to_base:
    def error(y, x_err, base_err, x, base=None):
        if base is None:
            return x_err / np.maximum(x - x_err, 0.0)
        moved = x_err / np.maximum(x - x_err, 0.0)
        if none(base_err):
            return moved / abs(np.log(base))
        changed = base_err / np.maximum(base - base_err, 0.0)
        return (moved + abs(y) * changed) / np.maximum(abs(np.log(base)) - changed, 0.0)


@about(np.log2)
class log2:
    def error(x_err, x):
        return x_err / (LOG_2 * np.maximum(x - x_err, 0.0))


@about(np.log10)
class log10:
    def error(x_err, x):
        return x_err / (LOG_10 * np.maximum(x - x_err, 0.0))


@about(np.log1p)
class log1p:
    def error(x_err, x):
        return x_err / np.maximum(1 + x - x_err, 0.0)


@about(np.logaddexp, np.logaddexp2)
class logaddexp:                    # both derivatives are positive, and their sum is 1
    def error(a_err, b_err):
        return larger(a_err, b_err)

    def rounding(y):                # the logarithm of 1 + exp(-|a - b|) is at most log 2
        return 12 + abs(y)


@about(math.erf, math.erfc)
class erf:
    def error(x_err, x):
        return 1.13 * x_err * np.exp(-below(x, x_err) ** 2)         # 2 / sqrt(pi), rounded up


# --- trigonometry -----------------------------------------------------------------------------------------------------

@about(np.sin)
class sin:
    def error(x_err, x):
        return x_err * (abs(np.cos(x)) + x_err)


@about(np.cos)
class cos:
    def error(x_err, x):
        return x_err * (abs(np.sin(x)) + x_err)


@about(np.tan)
class tan:                          # sin(d) / (cos(x) cos(x + d))
    def error(x_err, x):
        cos_x = np.cos(x)
        return x_err / (abs(cos_x) * below(cos_x, x_err))


def of_arc(x, x_err):
    """|arcsin(x + d) - arcsin(x)|; the largest step of this length is at an end, where arccos(1 - t) < 2.3 sqrt(t)."""
    far = abs(x) + x_err
    return np.fmin(x_err / np.sqrt(np.maximum(1 - far, 0.0) * (1 + far)), 2.3 * np.sqrt(x_err))


@about(np.arcsin, np.arccos)
class arcsin:
    def error(x_err, x):
        return of_arc(x, x_err)


@about(np.arctan)
class arctan:
    def error(x_err, x):
        return x_err / (1 + below(x, x_err) ** 2)


@about(np.arctan2)
class arctan2:                      # a step of length d is seen at an angle of at most arcsin(d / r) < d / (r - d)
    def error(a_err, b_err, a, b):
        step = a_err + b_err
        return step / np.maximum(np.hypot(a, b) - step, 0.0)

    def certain(a_err, b_err, a, b, least):         # the cut along the negative numbers
        return (b >= b_err) | (abs(a) + least >= a_err)


@about(np.sinh)
class sinh:
    def error(x_err, x):
        return x_err * np.cosh(abs(x) + x_err)


@about(np.cosh)
class cosh:
    def error(x_err, x):
        return x_err * np.sinh(abs(x) + x_err)


@about(np.tanh)
class tanh:
    def error(x_err, x):
        return x_err / np.cosh(below(x, x_err)) ** 2


@about(np.arcsinh)
class arcsinh:
    def error(x_err, x):
        return x_err / np.hypot(1.0, below(x, x_err))


@about(np.arccosh)
class arccosh:                      # arccosh(1 + t) < sqrt(2 t)
    def error(x_err, x):
        least = np.maximum(x - x_err, 1.0)
        return np.fmin(x_err / (np.sqrt(least - 1) * np.sqrt(least + 1)), 1.5 * np.sqrt(x_err))


@about(np.arctanh)
class arctanh:
    def error(x_err, x):
        far = abs(x) + x_err
        return x_err / (np.maximum(1 - far, 0.0) * (1 + far))


@about(np.sinc)
class sinc:                         # |sinc'(x)| is below pi ** 2 / 3 |x|, and below 1.4
    def error(x_err, x):
        return x_err * np.minimum(3.3 * (abs(x) + x_err), 1.4)

    def rounding(y):                # the error of pi * x counts where the sine is small
        return 2 + 12 * abs(y)
