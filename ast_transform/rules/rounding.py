# SPDX-License-Identifier: Apache-2.0
"""What operations do to errors: parts and options that running error analysis (passes/errors.py) adds to records.

    error(y, x_err, x, ...)     a bound of the error of the result, from bounds of the errors of the arguments; an
                                argument without an error has the number 0.  The default of elementwise records is the
                                sum of |partial_x| * x_err, of linear and bilinear ones the call itself
    rounding(y, x, u, ...)      the rounding error of the call, in units of u: half the distance from 1 to its successor

    residual(y, x, ...)         an error that the result itself shows, such as |A^-1| |b - A x|

    rounding=k                  the same as k * |y|: a number, or a function of the arguments; None: not known, and the
                                call is refused.  Without it: ELEMENTARY for elementwise functions of NumPy and Python,
                                0 for functions that only move entries
    errors="as tangents"        the error is what the parts jvp_x make of errors: their coefficients are not negative
    errors="as values"          it is what the linear call makes of them, for the same reason
    errors=None                 neither
    nonnegative=True            no entry of the result is negative

Without `errors`, a linear or bilinear record is tried on its samples (`coefficients`): are its coefficients not
negative, and does it only move entries?  The bounds are from N. Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, SIAM 2002: sections 3.1 (sums, products), 5.1 (Horner), 7.7 (systems), 10.1 (Cholesky); they hold for any
order of summation.
"""
import builtins
import functools
import inspect
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.operations import astype, put
from gradscribe.ast_transform.core.rule import RULES, Rule, static
from gradscribe.ast_transform.rules import records  # noqa: F401  (what is added to)
from gradscribe.ast_transform.rules.reductions import count
from gradscribe.runtime.broadcasting import broadcast_like, unbroadcast
from gradscribe.runtime.derivatives import stop_gradient

ELEMENTARY = 8          # 4 units in the last place: what NumPy's vector functions promise, libm's are better


def about(*functions: Any, **options: Any) -> Callable[[type], type]:
    """Adds the parts of a class, and options, to the records of functions."""
    def add(cls):
        parts = {n: p for n, p in vars(cls).items() if inspect.isfunction(p)}
        for f in functions:
            RULES[f].parts.update(parts)
            RULES[f].options.update(options)
        return cls
    return add


def rounded(units: Any, *functions: Any, **options: Any) -> None:
    """Sets the option `rounding` of the records of functions."""
    about(*functions, rounding=units, **options)(type("none", (), {}))


# --- what the samples of a record show --------------------------------------------------------------------------------

@functools.cache
def coefficients(rule: Rule) -> str:
    """Of a linear or bilinear record: "moves" if each entry of a result is 0 or an entry of an argument, "nonnegative"
    if no coefficient is negative, "" otherwise, or if the record has no samples.

    >>> coefficients(RULES[np.transpose]), coefficients(RULES[np.sum]), coefficients(RULES[np.diff])
    ('moves', 'nonnegative', '')
    """
    if rule.samples is None:
        return ""
    moves = rule.kind == "linear"
    cases = [bound for bound in map(functools.partial(_real, rule), rule.samples(np.random.default_rng(5)))
             if bound is not None]
    for bound in cases:
        given, found = _applied(rule, bound, _positive)
        moves = moves and bool(np.isin(found, [0.0, *given]).all())
    if cases and moves:
        return "moves"
    return "nonnegative" if cases and all(_all_positive(rule, bound) for bound in cases) else ""


def _real(rule, sample):
    """The arguments of a sample by name; None if one is complex, or this NumPy refuses the call."""
    args, words = sample
    try:
        rule.function(*args, **words)
    except (TypeError, ValueError):
        return None
    bound = rule.signature.bind(*args, **words)
    bound.apply_defaults()
    numbers = [v for a in rule.active for v in _leaves(bound.arguments[a])]
    return bound if all(np.asarray(v).dtype.kind == "f" for v in numbers) else None


def _leaves(value):
    return value if isinstance(value, (list, tuple)) else [value]


def _positive(x, rng):
    return 0.5 + rng.random(np.shape(x))


def _applied(rule, bound, instead):
    """(entries of the arguments, entries of the result) of a call with other numbers for the active arguments."""
    rng, given = np.random.default_rng(3), []
    new = inspect.BoundArguments(rule.signature, dict(bound.arguments))

    def fresh(x):
        made = instead(x, rng)
        given.append(np.ravel(made))
        return made
    for a in rule.active:
        value = bound.arguments[a]
        new.arguments[a] = type(value)(map(fresh, value)) if isinstance(value, (list, tuple)) else fresh(value)
    run = rule.parts.get("primal", rule.function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(*new.args, **new.kwargs)
    parts = found if isinstance(found, (list, tuple)) else [found]
    return np.concatenate([np.empty(0), *given]), np.concatenate([np.empty(0), *(np.ravel(p) for p in parts)])


def _all_positive(rule, bound):
    """Whether no entry of the result is negative where the arguments are unit vectors, or positive at random."""
    def unit(place):
        def made(x, rng):
            e = np.zeros(np.shape(x))
            if e.size:
                e.flat[place % e.size] = 1.0
            return e if rng.random() < 0.5 or rule.kind == "linear" else _positive(x, rng)
        return made
    most = max((np.size(v) for a in rule.active for v in _leaves(bound.arguments[a])), default=0)
    return all((_applied(rule, bound, instead)[1] >= 0).all() for instead in (_positive, *map(unit, range(most))))


# --- arithmetic -------------------------------------------------------------------------------------------------------

def is_power_of_two(v):
    return isinstance(v, (int, float)) and v != 0 and math.isfinite(v) and math.frexp(v)[0] in (0.5, -0.5)


def of_product(a, b):
    return 0 if is_power_of_two(a) or is_power_of_two(b) else 1


def of_quotient(a, b):
    return 0 if is_power_of_two(b) else 1


def of_power(a, b):
    """A power may be compiled to |b| - 1 products."""
    if not isinstance(b, (int, float)):
        return ELEMENTARY
    return {0: 0, 1: 0, 2: 1, -1: 1}.get(b, max(ELEMENTARY, math.ceil(abs(b))))


def of_conversion(x, dtype, number=False):
    """Narrower formats round; whole numbers below 2 ** 53 are exact in double precision."""
    if not hasattr(x, "dtype"):
        return 0
    old, new = np.dtype(x.dtype), np.dtype(dtype)
    return int(new.kind == "f" and new.itemsize < old.itemsize or new.kind == "f" and old.kind in "iu" and
               new.itemsize <= old.itemsize < 8)


def of_range(*args, **words):
    """Ranges of whole numbers are exact."""
    def whole(v):
        return v is None or getattr(v, "kind", "") in ("i", "u") or isinstance(v, (int, float)) and v == int(v)
    return 0 if all(whole(v) or isinstance(v, (type, np.dtype)) for v in (*args, *words.values())) else None


def of_decimals(*args, **words):
    return 3 if len(args) > 1 or words else 0


rounded(1, operator.add, operator.sub, np.square, np.reciprocal, np.sqrt, operator.mod, math.fsum)
rounded(of_product, operator.mul)
rounded(of_quotient, operator.truediv)
rounded(of_power, operator.pow)
rounded(of_conversion, astype, errors="as values")
rounded(of_range, np.arange, errors="as tangents")
rounded(0, operator.neg, operator.pos, np.fmod, math.remainder, np.copysign, np.heaviside, np.nan_to_num)
rounded(None, np.nextafter, np.i0)
rounded(0, np.ldexp, errors="as values")
rounded(4, np.deg2rad, np.rad2deg, errors="as values")
rounded(0, np.array, np.asarray, put, float, broadcast_like, errors="as values")
rounded(0, np.where, np.sort, np.partition, np.maximum.accumulate, np.minimum.accumulate, errors="as tangents")
rounded(1, np.median, errors="as tangents")
rounded(2, np.fft.fftfreq, np.fft.rfftfreq)
for _window in (np.bartlett, np.blackman, np.hamming, np.hanning, np.spacing, math.ulp):
    rounded(None, _window)


for _function in (np.abs, np.sqrt, np.square, np.exp, np.exp2, np.cosh, np.hypot):
    about(_function, nonnegative=True)(type("none", (), {}))


@static
def none(error):
    """Whether an argument has no error."""
    return isinstance(error, (int, float)) and error == 0


def larger(a, b):
    if none(a):
        return b
    if none(b):
        return a
    return np.maximum(a, b)


@about(stop_gradient, rounding=0)
class stop_gradient_:
    def error(x_err):
        return x_err


@about(np.abs, rounding=0)
class absolute:                     # also at 0
    def error(x_err):
        return x_err


@about(np.maximum, np.minimum, np.fmax, np.fmin, rounding=0)
class extreme:                      # also where the operands are close
    def error(a_err, b_err):
        return larger(a_err, b_err)


@about(np.clip, rounding=0)
class clip:
    def error(a_err, a_min_err, a_max_err, min_err, max_err):
        return larger(larger(a_err, larger(a_min_err, a_max_err)), larger(min_err, max_err))


@about(operator.mul)
class multiply:                     # with the product of the errors, so that no large error looks small later
    def error(a_err, b_err, a, b):
        if none(a_err):
            return abs(a) * b_err
        if none(b_err):
            return a_err * abs(b)
        return a_err * (abs(b) + b_err) + abs(a) * b_err


@about(operator.truediv)
class divide:                       # infinite where the divisor may be 0
    def error(y, a_err, b_err, b):
        if none(b_err):
            return a_err / abs(b)
        if none(a_err):
            return abs(y) * b_err / np.maximum(abs(b) - b_err, 0.0)
        return (a_err + abs(y) * b_err) / np.maximum(abs(b) - b_err, 0.0)


@about(np.square)
class square:
    def error(x_err, x):
        return x_err * (2 * abs(x) + x_err)


@about(np.exp)
class exp:
    def error(y, x_err):
        return y * np.expm1(x_err)


@about(np.log)
class log:
    def error(x_err, x):
        return x_err / np.maximum(x - x_err, 0.0)


@about(np.sinc)
class sinc:                         # the error of pi * x counts where the sine is small
    def rounding(y):
        return 2 + 12 * abs(y)


@about(np.logaddexp, np.logaddexp2)
class logaddexp:                    # the logarithm of 1 + exp(-|a - b|) is at most log 2
    def rounding(y):
        return 12 + abs(y)


@about(np.linspace, errors="as tangents")
class linspace:                     # start + i * step, with a rounded step
    def rounding(start, stop):
        return 4 * np.maximum(abs(start), abs(stop))


# --- sums -------------------------------------------------------------------------------------------------------------

@about(np.sum)
class sum_:                         # gamma_(n - 1) for any order
    def rounding(x, axis=None, keepdims=False):
        return (count(x, axis) - 1) * np.sum(abs(x), axis=axis, keepdims=keepdims)


@about(np.mean)
class mean:
    def rounding(x, axis=None, keepdims=False):
        return count(x, axis) * np.mean(abs(x), axis=axis, keepdims=keepdims)


@about(np.cumsum)
class cumsum:
    def rounding(x, axis=None):
        if axis is None:
            return (x.size - 1) * np.cumsum(abs(x), axis=axis)
        return (x.shape[axis] - 1) * np.cumsum(abs(x), axis=axis)


@about(np.trace)
class trace:
    def rounding(x, offset=0, axis1=0, axis2=1):
        return (x.shape[axis1] - 1) * np.trace(abs(x), offset=offset, axis1=axis1, axis2=axis2)


@about(np.bincount)
class bincount:
    def rounding(x, weights=None, minlength=0):
        return np.bincount(x, minlength=minlength) * np.bincount(x, weights=abs(weights), minlength=minlength)


@about(np.add.reduceat)
class add_reduceat:
    def rounding(array, indices, axis=0):
        return array.shape[axis] * np.add.reduceat(abs(array), indices, axis=axis)


@about(unbroadcast, errors="as values")
class unbroadcast_:
    def rounding(value, like):
        return np.size(value) * unbroadcast(abs(value), like)


@about(np.diff)
class diff:
    def error(x_err):
        return x_err[..., 1:] + x_err[..., :-1]

    def rounding(y, x, n=1, axis=-1):
        along_last_axis(n, axis, x)
        return abs(y)


@static
def along_last_axis(n, axis, x):
    if n != 1 or axis not in (-1, x.ndim - 1):
        raise ValueError("np.diff of higher order, or along another axis than the last, has no bound for errors",
                         "Write the differences as slices: x[1:] - x[:-1].")


@about(np.var)
class var:                          # two passes; the square is the error of the mean, which matters for equal entries
    def error(x_err, x, axis=None, ddof=0, keepdims=False):
        m = np.mean(x, axis=axis, keepdims=True)
        return 2 * np.sum(abs(x - m) * x_err, axis=axis, keepdims=keepdims) / (count(x, axis) - ddof)

    def rounding(y, x, u, axis=None, ddof=0, keepdims=False):
        n = count(x, axis)
        m = np.mean(abs(x), axis=axis, keepdims=keepdims)
        return (n + 5) * y + u * (n * m) ** 2 * n / (n - ddof)


@about(np.std, errors=None)
class std:
    def error(y, x_err, x, axis=None, ddof=0, keepdims=False):
        m = np.mean(x, axis=axis, keepdims=True)
        return np.sum(abs(x - m) * x_err, axis=axis, keepdims=keepdims) / ((count(x, axis) - ddof) * y)

    def rounding(y, x, u, axis=None, ddof=0, keepdims=False):
        n = count(x, axis)
        m = np.mean(abs(x), axis=axis, keepdims=keepdims)
        return (n + 7) * y + u * (n * m) ** 2 * n / ((n - ddof) * y)


@about(np.max, np.min, rounding=0)
class largest:
    def error(x_err, axis=None, keepdims=False):
        return np.max(x_err, axis=axis, keepdims=keepdims)


# --- products ---------------------------------------------------------------------------------------------------------

@about(np.prod)
class prod:
    def error(y, x_err, x, axis=None, keepdims=False):
        return abs(y) * np.sum(x_err / abs(x), axis=axis, keepdims=keepdims)

    def rounding(y, x, axis=None):
        return (count(x, axis) - 1) * abs(y)


@about(np.cumprod)
class cumprod:
    def error(y, x_err, x, axis=None):
        return abs(y) * np.cumsum(x_err / abs(x), axis=axis)

    def rounding(y, x):
        return x.size * abs(y)


@about(operator.matmul)
class matmul:                       # gamma_n |A| |B|
    def rounding(a, b):
        return a.shape[-1] * (abs(a) @ abs(b))


@about(np.dot)
class dot:
    def rounding(a, b):
        if a.ndim == 0 or b.ndim == 0:
            return np.dot(abs(a), abs(b))
        return a.shape[-1] * np.dot(abs(a), abs(b))


@about(np.inner)
class inner:
    def rounding(a, b):
        if a.ndim == 0 or b.ndim == 0:
            return np.inner(abs(a), abs(b))
        return a.shape[-1] * np.inner(abs(a), abs(b))


@about(np.tensordot)
class tensordot:                    # n terms in each entry: the sizes of the operands are m n and n k, that of y is m k
    def rounding(y, a, b, axes=2):
        n = np.sqrt(a.size * b.size / max(np.size(y), 1))
        return n * np.tensordot(abs(a), abs(b), axes=axes)


@static
def two_at_most(operands):
    if len(operands) > 2:
        raise ValueError("np.einsum of more than two operands has no bound for errors",
                         "Multiply two at a time.")


@about(np.einsum)
class einsum:                       # the number of terms is at most the product of the sizes over that of the result
    def rounding(y, subscripts, *operands):
        two_at_most(operands)
        if len(operands) == 1:
            return operands[0].size * np.einsum(subscripts, abs(operands[0]))
        n = operands[0].size * operands[1].size / max(np.size(y), 1)
        return n * np.einsum(subscripts, abs(operands[0]), abs(operands[1]))


@about(np.convolve)
class convolve:
    def rounding(a, v, mode="full"):
        return np.minimum(a.size, v.size) * np.convolve(abs(a), abs(v), mode=mode)


rounded(1, np.outer, np.kron)


@about(np.polyval)
class polyval:                      # Horner's rule
    def error(p_err, x_err, p, x):
        return value_error(p_err, x) + argument_error(x_err, p, x)

    def rounding(p, x):
        return 2 * p.shape[0] * np.polyval(abs(p), abs(x))


def value_error(p_err, x):
    if none(p_err):
        return 0.0
    return np.polyval(p_err, abs(x))


def argument_error(x_err, p, x):
    if none(x_err):
        return 0.0
    return abs(np.polyval(p[:-1] * np.arange(p.shape[0] - 1, 0, -1), x)) * x_err


@static
def euclidean(x, ord, axis):
    if ord not in (None, 2, "fro") or ord == 2 and (axis is None and x.ndim == 2 or isinstance(axis, tuple)):
        raise ValueError(f"np.linalg.norm with ord={ord!r} has no bound for errors",
                         "Write it with np.abs, np.sum and np.max.")


@about(np.linalg.norm)
class norm:
    def error(y, x_err, x, ord=None, axis=None, keepdims=False):
        return np.sum(abs(x) * x_err, axis=axis, keepdims=keepdims) / y

    def rounding(y, x, ord=None, axis=None):
        euclidean(x, ord, axis)
        return (count(x, axis) / 2 + 2) * y


# --- linear algebra ---------------------------------------------------------------------------------------------------


def product_error(a_err, x):
    """|A_err| |x|, or 0."""
    if none(a_err):
        return 0.0
    return a_err @ abs(x)


@about(np.linalg.solve)
class solve:                        # |A^-1| (|r| + gamma_(n + 1) (|A| |x| + |b|)), with the computed residual r
    def error(y, a_err, b_err, a, b):
        return abs(np.linalg.inv(a)) @ (product_error(a_err, y) + b_err)

    def residual(y, a, b):
        return abs(np.linalg.inv(a)) @ abs(b - a @ y)

    def rounding(y, a, b):
        n = a.shape[-1] + 1
        return n * (abs(np.linalg.inv(a)) @ (abs(a) @ abs(y) + abs(b)))


@about(np.linalg.inv)
class inv:                          # the same for the columns of the identity
    def error(y, a_err, a):
        return abs(y) @ product_error(a_err, y)

    def residual(y, a):
        return abs(y) @ abs(np.eye(a.shape[-1]) - a @ y)

    def rounding(y, a):
        n = a.shape[-1] + 1
        return n * (abs(y) @ (abs(a) @ abs(y) + np.eye(a.shape[-1])))


@static
def lower(upper, a):
    if upper or a.ndim != 2:
        raise ValueError("np.linalg.cholesky of stacks, or with upper=True, has no bound for errors",
                         "Use the lower factor of one matrix.")


def of_factor(y, change):
    """The first-order change of L in A = L L^T: L Phi(L^-1 change L^-T), Phi halves the diagonal of a triangle."""
    back = abs(np.linalg.inv(y))
    inner = back @ change @ back.T
    return abs(y) @ (np.tril(inner) - 0.5 * np.diag(np.diag(inner)))


@about(np.linalg.cholesky)
class cholesky:
    def error(y, a_err, a, upper=False):
        return of_factor(y, a_err)

    def rounding(y, a, upper=False):
        lower(upper, a)
        n = a.shape[-1] + 1
        return n * of_factor(y, abs(y) @ abs(y).T)


rounded(of_decimals, np.round, builtins.round)
