# SPDX-License-Identifier: Apache-2.0
"""Which decisions are certain: parts that running error analysis (passes/errors.py) adds to records of functions that
jump, such as comparisons and roundings to whole numbers.

    certain(x, x_err, y, least, u, ...)     whether each entry of the result is that of exact arithmetic: its argument
                                            is farther from the border than its error; least: underflow is not counted

A part that reads u is for a function that rounds before it decides, so exact arguments do not make it certain.
CADNA reports such tests as unstable branchings: F. Jezequel and J.-M. Chesneaux, CADNA: a library for estimating
round-off error propagation, Computer Physics Communications 178, 2008.
"""
import builtins
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.rule import static
from gradscribe.ast_transform.rules.rounding import about, none


def both(a_err, b_err):
    if none(a_err):
        return b_err
    if none(b_err):
        return a_err
    return a_err + b_err


@about(operator.lt, operator.le, operator.gt, operator.ge)
class compared:
    def certain(a_err, b_err, a, b, least):
        return abs(a - b) + least >= both(a_err, b_err)


@about(operator.eq, operator.ne)
class equal:                        # numbers that are equal are taken to be equal: x == np.max(x)
    def certain(a_err, b_err, a, b, least):
        return (a == b) | (abs(a - b) + least >= both(a_err, b_err))


@about(np.sign, np.signbit, np.logical_not)
class at_zero:
    def certain(x_err, x, least):
        return abs(x) + least >= x_err


@about(operator.truth, operator.not_, np.count_nonzero, np.nonzero, np.flatnonzero)
class is_zero:
    def certain(a_err, a, least):
        return abs(a) + least >= a_err


@about(np.logical_and, np.logical_or, np.logical_xor)
class at_zeros:
    def certain(a_err, b_err, a, b, least):
        if none(a_err):
            return abs(b) + least >= b_err
        if none(b_err):
            return abs(a) + least >= a_err
        return (abs(a) + least >= a_err) & (abs(b) + least >= b_err)


@about(np.heaviside, errors=None)
class heaviside:
    def error(b_err, a):
        if none(b_err):
            return 0.0
        return np.where(a == 0, b_err, 0.0)

    def certain(a_err, a, least):
        if none(a_err):
            return True
        return abs(a) + least >= a_err


@about(np.copysign)
class copysign:
    def error(a_err):
        return a_err

    def certain(b_err, b, least):
        if none(b_err):
            return True
        return abs(b) + least >= b_err


# --- whole numbers ----------------------------------------------------------------------------------------------------

@about(np.floor, np.ceil, np.trunc, np.fix, builtins.int)
class whole:
    def certain(x_err, x, least):
        return abs(x - np.rint(x)) + least >= x_err


@about(np.rint)
class nearest:
    def certain(x_err, x):
        return abs(x - np.floor(x) - 0.5) >= x_err


@static
def power_of_ten(decimals):
    return 10.0 ** (decimals or 0)


@static
def is_whole(decimals):
    return not decimals


@about(np.round)
class rounded_to:                   # a multiple of the number is rounded, and has an error itself
    def certain(a_err, a, u, decimals=0):
        if is_whole(decimals):
            if none(a_err):
                return True
            return abs(a - np.floor(a) - 0.5) >= a_err
        scaled = power_of_ten(decimals) * a
        return abs(scaled - np.floor(scaled) - 0.5) >= power_of_ten(decimals) * a_err + 2 * u * abs(scaled)


@about(builtins.round)
class python_round:
    def certain(number_err, number, ndigits=None):
        scaled = power_of_ten(ndigits) * number
        return abs(scaled - np.floor(scaled) - 0.5) >= power_of_ten(ndigits) * number_err


@about(operator.mod, np.fmod, math.remainder)
class remainders:                   # a - b * n: n is a / b, rounded down, towards zero, or to the nearest whole number
    def error(a_err, b_err, a, b):
        if none(b_err):
            return a_err
        return a_err + (abs(a / b) + 1) * b_err


@about(operator.mod, np.fmod)
class mod:                          # n changes where the remainder is zero, or b
    def certain(y, a_err, b_err, a, b, least):
        return np.minimum(abs(y), abs(b) - abs(y)) + least >= both(a_err, (abs(a / b) + 1) * b_err)


@about(math.remainder)
class remainder:                    # n changes where the remainder is b / 2
    def certain(y, a_err, b_err, a, b, least):
        return abs(b) / 2 - abs(y) + least >= both(a_err, (abs(a / b) + 1) * b_err)


@about(operator.floordiv)
class floordiv:                     # a large quotient has more digits than its dtype
    def certain(y, a_err, b_err, a, b, u, least):
        if none(a_err):
            if none(b_err):
                return u * abs(y) < 0.25
        far = abs(np.mod(a, b))
        step = both(a_err, (abs(a / b) + 1) * b_err)
        return (u * abs(y) < 0.25) & (np.minimum(far, abs(b) - far) + least >= step)


# --- positions --------------------------------------------------------------------------------------------------------

def alone(a, a_err, extreme, axis, keepdims):
    """Whether only one entry can be the extreme one; entries that are equal to it are taken to be equal."""
    m = extreme(a, axis=axis, keepdims=True)
    near = abs(a - m) < a_err + np.max(a_err, axis=axis, keepdims=True)
    return ~np.any(near & (a != m), axis=axis, keepdims=keepdims)


@about(np.argmax, np.nanargmax)
class argmax:
    def certain(a_err, a, axis=None, keepdims=False):
        return alone(a, a_err, np.max, axis, keepdims)


@about(np.argmin, np.nanargmin)
class argmin:
    def certain(a_err, a, axis=None, keepdims=False):
        return alone(a, a_err, np.min, axis, keepdims)
