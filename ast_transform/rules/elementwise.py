# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions: arithmetic, exponentials, trigonometry, selection, complex parts.

At kinks the derivative is the mean of both sides (0 for abs, 1/2 each for maximum and minimum) unless noted.  Complex
numbers follow JAX: partials are not conjugated, and the adjoint of z = x + iy is d/dx - i d/dy.
"""
import builtins
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.memory import CONTIGUOUS, FRESH, PART, VIEW
from gradscribe.ast_transform.core.rule import elementwise, general, linear, static
from gradscribe.ast_transform.rules import samples
from gradscribe.ast_transform.rules.batching import only, unchanged
from gradscribe.runtime import compiled, numeric

LOG_2, LOG_10 = math.log(2), math.log(10)
OF_SINC = tuple((-1) ** n * 2 * n * math.pi ** (2 * n) / math.factorial(2 * n + 1) for n in range(24, 0, -1))
DEGREE, RADIAN = math.pi / 180, 180 / math.pi


# --- helpers that run while transforming -----------------------------------------------------------------------------

@static
def is_complex(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind == "c"


@static
def is_integer(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind in "iu"


@static
def is_float(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind == "f"


@static
def is_number(x):
    """Whether x is a literal real number."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


@static
def is_negative(number):
    return math.copysign(1, number) < 0


@static
def is_whole(number):
    return number == int(number)


@static
def log_of(number):
    """The logarithm of a literal number as a Python float, which does not widen float32."""
    return math.log(number)


# --- arithmetic ------------------------------------------------------------------------------------------------------

@elementwise(operator.add, alias=(np.add,), samples=samples.analytic_pairs, cheap=True, algebra="sum", word="total")
class add:
    def partial_a():
        return 1

    def partial_b():
        return 1


@elementwise(operator.sub, alias=(np.subtract,), samples=samples.analytic_pairs, cheap=True, algebra="difference",
             word="diff")
class subtract:
    def partial_a():
        return 1

    def partial_b():
        return -1


@elementwise(operator.mul, alias=(np.multiply,), samples=samples.analytic_pairs, cheap=True, algebra="product",
             word="prod")
class multiply:
    def partial_a(b):
        return b

    def partial_b(a):
        return a


@elementwise(operator.truediv, alias=(np.divide,), samples=samples.analytic_pairs, raises="numbers", cheap=True,
             algebra="quotient", word="ratio", solves=("a", "b"))
class divide:
    def partial_a(b):
        return 1 / b

    def partial_b(y, b):            # not a / b**2, which overflows earlier
        return -y / b

    def times(y, b):
        return y * b


def to_a_number(a, b):
    return is_number(b)


def of_products(a, n):
    """a ** n by squaring."""
    if n == 0:
        return 1
    if n == 1:
        return a
    if n % 2 == 1:
        return a * of_products(a, n - 1)
    half = of_products(a, n // 2)
    return half * half


@elementwise(operator.pow, alias=(np.power, math.pow), samples=samples.powers, raises=True,
             special=[((0, 0.0), 0.0)], cheap=to_a_number, word="power",
             natural="b")               # else Python makes floats of ints
class power:
    def partial_a(a, b):
        if is_number(b):
            if b == 0:
                return 0
            if b == 1:
                return 1
            if b == 2:
                return 2 * a
            if b == -1:
                return -(a ** -2)
            return b * a ** (b - 1)
        return b * a ** (b - (b != 0))          # a**0 has derivative 0 at a = 0 too

    def taylor_a(y, a, b):
        if is_number(b):
            if b == 0:
                return 0
            if b < 0:
                return b * y / a                # itself: the series of no other power
            if is_whole(b):
                return b * of_products(a, b - 1)
            return b * a ** (b - 1)             # not y / a at a = 0
        return b * a ** (b - (b != 0))

    def partial_b(y, a):
        if is_number(a):
            if a > 0:
                return y * log_of(a)
        return y * np.log(np.where(a == 0, 1, a))


@elementwise(np.float_power, samples=samples.float_powers, special=[((0, 0.0), 0.0)])
class float_power:
    def partial_a(a, b):
        return b * np.float_power(a, b - (b != 0))

    def partial_b(y, a):
        return y * np.log(np.where(a == 0, 1, a))


@elementwise(operator.neg, alias=(np.negative,), samples=samples.analytic, cheap=True, algebra="negation", word="minus")
class negative:
    def partial_x():
        return -1


@elementwise(operator.pos, alias=(np.positive,), samples=samples.analytic)
class positive:
    def partial_x():
        return 1


@elementwise(np.square, samples=samples.analytic, cheap=True)
class square:
    def partial_x(x):
        return 2 * x


@elementwise(np.reciprocal, samples=samples.analytic)
class reciprocal:
    def partial_x(y):
        return -y * y

    def scalar(x):
        if is_integer(x):
            return numeric.whole_reciprocal(x)
        return 1 / x


@elementwise(operator.mod, alias=(np.remainder,), samples=samples.quotients, raises=True, cheap=True, jumps=True,
             word="remainder")
class remainder:
    def partial_a():
        return 1

    def partial_b(a, b):
        return -(a // b)


@elementwise(np.fmod, alias=(math.fmod,), samples=samples.quotients)
class fmod:
    def partial_a():
        return 1

    def partial_b(a, b):
        return -np.trunc(a / b)

    def scalar(a, b):
        if is_integer(a):
            return compiled.whole_fmod(a, b)
        return np.fmod(a, b)


@linear(np.ldexp, "a", alias=(math.ldexp,), samples=samples.scaled_by_powers_of_two, elementwise=True, memory=FRESH)
class ldexp:
    def primal(a, b):
        return np.ldexp(a, b)

    def vjp_a(dy, b):
        return np.ldexp(dy, b)


# --- roots and exponentials ------------------------------------------------------------------------------------------

@elementwise(np.sqrt, alias=(math.sqrt,), samples=samples.analytic_positives, special=[(0.0, np.inf)], algebra="root",
             numba=True)
class sqrt:
    def partial_x(y):
        return 1 / (2 * y)


@elementwise(np.cbrt, alias=(math.cbrt,), samples=samples.reals, special=[(0.0, np.inf), (-8.0, 1 / 12)], numba=True)
class cbrt:
    def partial_x(y):
        return 1 / (3 * y * y)


@elementwise(np.hypot, samples=samples.real_pairs, numba=True)
class hypot:
    def partial_a(y, a):
        return a / y

    def partial_b(y, b):
        return b / y


@elementwise(np.exp, alias=(math.exp,), samples=samples.analytic, special=[(-1e3, 0.0), (-np.inf, 0.0)],
             algebra="exponential", numba=True)
class exp:
    def partial_x(y):
        return y


@elementwise(np.exp2, alias=(math.exp2,), samples=samples.analytic, special=[(-1e4, 0.0)], numba=True)
class exp2:
    def partial_x(y):
        return LOG_2 * y


@elementwise(np.expm1, alias=(math.expm1,), samples=samples.analytic, special=[(-1e3, 0.0), (0.0, 1.0)], numba=True)
class expm1:
    def partial_x(y):
        return y + 1


@elementwise(np.log, samples=samples.analytic_positives, special=[(0.0, np.inf), (np.inf, 0.0)], numba=True)
class log:
    def partial_x(x):
        return 1 / x


@elementwise(math.log, "x", "base", samples=samples.logarithms, typical=2, memory=FRESH)
class math_log:
    def primal(x, base=None):
        if base is None:
            return math.log(x)
        return math.log(x, base)

    def partial_x(x, base=None):
        if base is None:
            return 1 / x
        return 1 / (x * np.log(base))

    def partial_base(y, base):
        return -y / (base * np.log(base))

    def batch(x, batched, base=None):
        if base is None:
            return np.log(x)
        return np.log(x) / np.log(base)


@elementwise(np.log2, alias=(math.log2,), samples=samples.analytic_positives, numba=True)
class log2:
    def partial_x(x):
        return 1 / (LOG_2 * x)


@elementwise(np.log10, alias=(math.log10,), samples=samples.analytic_positives, numba=True)
class log10:
    def partial_x(x):
        return 1 / (LOG_10 * x)


@elementwise(np.log1p, alias=(math.log1p,), samples=samples.above_minus_one, special=[(-1.0, np.inf)], numba=True)
class log1p:
    def partial_x(x):
        return 1 / (1 + x)


@elementwise(np.logaddexp, samples=samples.real_pairs, numba=True)
class logaddexp:                    # avoids inf - inf: an operand that equals an infinite result has derivative 1
    def partial_a(y, a):
        return np.exp(np.where(a == y, 0, a - y))

    def partial_b(y, b):
        return np.exp(np.where(b == y, 0, b - y))


@elementwise(np.logaddexp2, samples=samples.real_pairs, numba=True)
class logaddexp2:
    def partial_a(y, a):
        return np.exp2(a - y)

    def partial_b(y, b):
        return np.exp2(b - y)


@elementwise(math.erf, samples=samples.scalars, special=[(1e3, 0.0)], memory=FRESH, numba=True)
class erf:
    def partial_x(x):
        return 2 / np.pi ** 0.5 * np.exp(-x * x)


@elementwise(math.erfc, samples=samples.scalars, special=[(1e3, 0.0)], memory=FRESH, numba=True)
class erfc:
    def partial_x(x):
        return -2 / np.pi ** 0.5 * np.exp(-x * x)


# --- trigonometric and hyperbolic functions --------------------------------------------------------------------------

@elementwise(np.sin, alias=(math.sin,), samples=samples.analytic, numba=True)
class sin:
    def partial_x(x):
        return np.cos(x)


@elementwise(np.cos, alias=(math.cos,), samples=samples.analytic, numba=True)
class cos:
    def partial_x(x):
        return -np.sin(x)


@elementwise(np.tan, alias=(math.tan,), samples=samples.analytic_unit, numba=True)
class tan:
    def partial_x(y):
        return 1 + y * y


@elementwise(np.arcsin, alias=(math.asin,), samples=samples.analytic_unit, special=[(1.0, np.inf)], numba=True)
class arcsin:
    def partial_x(x):
        return 1 / np.sqrt(1 - x * x)


@elementwise(np.arccos, alias=(math.acos,), samples=samples.analytic_unit, special=[(1.0, -np.inf)], numba=True)
class arccos:
    def partial_x(x):
        return -1 / np.sqrt(1 - x * x)


@elementwise(np.arctan, alias=(math.atan,), samples=samples.analytic_unit, special=[(np.inf, 0.0)], numba=True)
class arctan:
    def partial_x(x):
        return 1 / (1 + x * x)


@elementwise(np.arctan2, alias=(math.atan2,), samples=samples.real_pairs, numba=True)
class arctan2:
    def partial_a(a, b):
        return b / (a * a + b * b)

    def partial_b(a, b):
        return -a / (a * a + b * b)


@elementwise(np.sinh, alias=(math.sinh,), samples=samples.analytic, numba=True)
class sinh:
    def partial_x(x):
        return np.cosh(x)


@elementwise(np.cosh, alias=(math.cosh,), samples=samples.analytic, numba=True)
class cosh:
    def partial_x(x):
        return np.sinh(x)


@elementwise(np.tanh, alias=(math.tanh,), samples=samples.analytic_unit,
             special=[(1e3, 0.0), (-1e3, 0.0)], numba=True)
class tanh:
    def partial_x(y):
        return 1 - y * y


@elementwise(np.arcsinh, alias=(math.asinh,), samples=samples.analytic, numba=True)
class arcsinh:
    def partial_x(x):
        return 1 / np.sqrt(1 + x * x)


@elementwise(np.arccosh, alias=(math.acosh,), samples=samples.analytic_above_one, special=[(1.0, np.inf)], typical=2,
             numba=True)
class arccosh:
    def partial_x(x):               # one root of x * x - 1 has the wrong sign for complex x left of 0
        return 1 / (np.sqrt(x - 1) * np.sqrt(x + 1))


@elementwise(np.arctanh, alias=(math.atanh,), samples=samples.analytic_unit, special=[(1.0, np.inf)], numba=True)
class arctanh:
    def partial_x(x):
        return 1 / (1 - x * x)


@linear(np.deg2rad, "x", alias=(np.radians, math.radians), samples=samples.reals, elementwise=True, memory=FRESH)
class deg2rad:
    def vjp_x(dy):
        return np.deg2rad(dy)

    def scalar(x):
        return x * DEGREE


@linear(np.rad2deg, "x", alias=(np.degrees, math.degrees), samples=samples.reals, elementwise=True, memory=FRESH)
class rad2deg:
    def vjp_x(dy):
        return np.rad2deg(dy)

    def scalar(x):
        return x * RADIAN


@elementwise(np.sinc, samples=samples.near_zero, special=[(0.0, 0.0), (1.0, -1.0), (0.007, -0.023027963244503305)],
             memory=FRESH)
class sinc:
    def partial_x(y, x):
        near = np.abs(x) < 0.01     # the difference loses its digits there; the next term of the series is 1e-14
        t = x * x
        series = x * (-np.pi**2 / 3 + t * (np.pi**4 / 30 - t * (np.pi**6 / 840)))
        return np.where(near, series, (np.cos(np.pi * x) - y) / np.where(near, 1, x))

    def taylor_x(y, x):             # the same by more terms: as many derivatives of this are right, too
        near = np.abs(x) < 1
        t = np.where(near, x, 0) ** 2
        series = 0.0
        for c in OF_SINC:
            series = series * t + c
        return np.where(near, x * series, (np.cos(np.pi * x) - y) / np.where(near, 1, x))

    def scalar(x):
        return compiled.sinc(x)


# --- signs, choices and bounds ---------------------------------------------------------------------------------------

@general(np.abs, alias=(builtins.abs, operator.abs, np.fabs, math.fabs), samples=samples.analytic, special=[(0.0, 0.0)],
         elementwise=True, memory=FRESH, cheap=True)
class absolute:
    def vjp_x(dy, y, x):
        if is_complex(x):
            return dy * np.conj(x) / np.where(y == 0, 1, y)
        return dy * np.sign(x)

    def jvp_x(x_dot, y, x):
        if is_complex(x):
            return np.real(np.conj(x) * x_dot) / np.where(y == 0, 1, y)
        return x_dot * np.sign(x)


@elementwise(np.copysign, "a", alias=(math.copysign,), samples=samples.real_pairs, numba=True)
class copysign:
    def primal(a, b):
        return np.copysign(a, b)

    def partial_a(a, b):
        if is_number(b):            # np.copysign(1, b) would be a float64 and make float32 one
            if is_negative(b):
                return -np.copysign(1, a)
            return np.copysign(1, a)
        return np.copysign(1, a) * np.copysign(1, b)


def where_above(t, a, b):
    """t where a > b, t / 2 where they are equal, 0 elsewhere."""
    return t * (a > b) + 0.5 * t * (a == b)


def where_below(t, a, b):
    """t where a < b, t / 2 where they are equal, 0 elsewhere."""
    return t * (a < b) + 0.5 * t * (a == b)


@general(np.maximum, alias=(builtins.max,), samples=samples.distinct_pairs, elementwise=True, unbroadcast=True,
         cheap=True, special=[((1.5, 1.5), (0.5, 0.5))])
class maximum:
    def primal(a, b):
        return np.maximum(a, b)

    def vjp_a(dy, a, b):
        return where_above(dy, a, b)

    def vjp_b(dy, a, b):
        return where_below(dy, a, b)

    def jvp_a(a_dot, a, b):
        return where_above(a_dot, a, b)

    def jvp_b(b_dot, a, b):
        return where_below(b_dot, a, b)


@general(np.minimum, alias=(builtins.min,), samples=samples.distinct_pairs, elementwise=True, unbroadcast=True,
         cheap=True, special=[((1.5, 1.5), (0.5, 0.5))])
class minimum:
    def primal(a, b):
        return np.minimum(a, b)

    def vjp_a(dy, a, b):
        return where_below(dy, a, b)

    def vjp_b(dy, a, b):
        return where_above(dy, a, b)

    def jvp_a(a_dot, a, b):
        return where_below(a_dot, a, b)

    def jvp_b(b_dot, a, b):
        return where_above(b_dot, a, b)


@elementwise(np.fmax, samples=samples.distinct_pairs)
class fmax:                         # at ties b gets the whole derivative, as in JAX
    def partial_a(a, b):
        return (a > b) | np.isnan(b)

    def partial_b(a, b):
        return (b >= a) | np.isnan(a)

    def scalar(a, b):
        return compiled.fmax(a, b)


@elementwise(np.fmin, samples=samples.distinct_pairs)
class fmin:
    def partial_a(a, b):
        return (a < b) | np.isnan(b)

    def partial_b(a, b):
        return (b <= a) | np.isnan(a)

    def scalar(a, b):
        return compiled.fmin(a, b)


def either(a, b):
    """The argument that is not None."""
    if a is None:
        return b
    return a


def where_inside(t, a, low, high):
    """t where a is between the bounds, t / 2 on them, 0 elsewhere."""
    if low is None and high is None:
        return t
    if low is None:
        return where_above(t, high, a)
    if high is None:
        return where_above(t, a, low)
    if is_number(low) and is_number(high):
        return t * ((a > low) & (a < high)) + 0.5 * t * ((a == low) | (a == high))
    return 0.5 * t * ((a > low) & (a < high)) + 0.5 * t * ((a >= low) & (a <= high))    # bounds may be inverted: 0


def where_low(t, a, low, high):
    if high is None:
        return where_above(t, low, a)
    return where_above(t, low, a) * (low < high)


def where_high(t, a, low, high):
    if low is None:
        return where_above(t, a, high)
    return where_above(t, np.maximum(a, low), high)


@general(np.clip, "a", "a_min", "a_max", "min", "max", samples=samples.bounded, elementwise=True,
         unbroadcast=True, memory=FRESH,
         special=[((0.2, 0.2, 1.0), (0.5, 0.5, 0.0)), ((1.0, 0.2, 1.0), (0.5, 0.0, 0.5))])
class clip:
    def primal(a, a_min=None, a_max=None, *, min=None, max=None):
        return np.clip(a, either(a_min, min), either(a_max, max))

    def vjp_a(dy, a, a_min=None, a_max=None, min=None, max=None):
        return where_inside(dy, a, either(a_min, min), either(a_max, max))

    def vjp_a_min(dy, a, a_min=None, a_max=None, max=None):
        return where_low(dy, a, a_min, either(a_max, max))

    def vjp_a_max(dy, a, a_min=None, a_max=None, min=None):
        return where_high(dy, a, either(a_min, min), a_max)

    def vjp_min(dy, a, a_max=None, min=None, max=None):
        return where_low(dy, a, min, either(a_max, max))

    def vjp_max(dy, a, a_min=None, min=None, max=None):
        return where_high(dy, a, either(a_min, min), max)

    def jvp_a(a_dot, a, a_min=None, a_max=None, min=None, max=None):
        return where_inside(a_dot, a, either(a_min, min), either(a_max, max))

    def jvp_a_min(a_min_dot, a, a_min=None, a_max=None, max=None):
        return where_low(a_min_dot, a, a_min, either(a_max, max))

    def jvp_a_max(a_max_dot, a, a_min=None, a_max=None, min=None):
        return where_high(a_max_dot, a, either(a_min, min), a_max)

    def jvp_min(min_dot, a, a_max=None, min=None, max=None):
        return where_low(min_dot, a, min, either(a_max, max))

    def jvp_max(max_dot, a, a_min=None, min=None, max=None):
        return where_high(max_dot, a, either(a_min, min), max)


@general(np.where, samples=samples.choices, elementwise=True, unbroadcast=True,
         masks={"a": ("condition", True), "b": ("condition", False)}, memory=FRESH, order="operands", cell=True,
         cheap=True)
class where:                        # selected again, not multiplied by the mask, since 0 * nan is nan
    def primal(condition, a, b):
        return np.where(condition, a, b)

    def vjp_a(dy, condition):
        return np.where(condition, dy, 0)

    def vjp_b(dy, condition):
        return np.where(condition, 0, dy)

    def jvp_a(a_dot, condition):
        return np.where(condition, a_dot, 0)

    def jvp_b(b_dot, condition):
        return np.where(condition, 0, b_dot)


@elementwise(np.heaviside, "b", samples=samples.steps)
class heaviside:
    def primal(a, b):
        return np.heaviside(a, b)

    def partial_b(a):
        return a == 0

    def scalar(a, b):
        return compiled.heaviside(a, b)


@elementwise(np.nan_to_num, samples=samples.with_infinities, special=[(np.inf, 0.0), (np.nan, 0.0)], memory=FRESH)
class nan_to_num:
    def primal(x, *, nan=0.0, posinf=None, neginf=None):
        return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)

    def partial_x(x):
        return np.isfinite(x)

    def batch(x, batched, nan=0.0, posinf=None, neginf=None):
        only(batched, "x")
        return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# --- parts of complex numbers ----------------------------------------------------------------------------------------

@linear(np.real, samples=samples.analytic, elementwise=True, cell=True)
class real:
    def memory(x):
        return PART if is_complex(x) else VIEW

    def written(x, y):
        return y + 1j * np.imag(x)

    def vjp_x(dy):
        return dy

    def scalar(x):
        if is_complex(x):
            return x.real
        return x


@linear(np.imag, samples=samples.analytic, elementwise=True, cell=True)
class imag:
    def memory(x):
        return PART if is_complex(x) else FRESH

    def written(x, y):
        return np.real(x) + 1j * y

    def vjp_x(dy, x):
        if is_complex(x):
            return -1j * dy
        return 0

    def scalar(x):
        if is_complex(x):
            return x.imag
        return 0


@linear(np.conjugate, samples=samples.analytic, elementwise=True)
class conjugate:
    def vjp_x(dy):
        if is_complex(dy):
            return np.conj(dy)
        return dy


@general(np.angle, samples=samples.angles, elementwise=True, memory=FRESH)
class angle:
    def primal(z, deg=False):
        return np.angle(z, deg=deg)

    def vjp_z(dy, z, deg=False):
        if not is_complex(z):
            return 0
        if deg:
            return -1j * np.rad2deg(dy) / z
        return -1j * dy / z

    def jvp_z(z_dot, z, deg=False):
        if not is_complex(z):
            return 0
        if deg:
            return np.rad2deg(np.imag(z_dot / z))
        return np.imag(z_dot / z)


# --- copies ----------------------------------------------------------------------------------------------------------

@linear(np.copy, samples=samples.analytic, elementwise=True, memory=FRESH, order="first", cell=True, allocates="copied")
class copy:
    def vjp_x(dy):
        return dy


@linear(np.ascontiguousarray, samples=samples.analytic, memory=CONTIGUOUS, order="first")
class ascontiguousarray:            # a scalar becomes an array of length 1
    def vjp_x(dy, x):
        if np.ndim(x) == 0:
            return dy[0]
        return dy

    batch = unchanged
