# SPDX-License-Identifier: Apache-2.0
"""What operations do to errors: parts and options that running error analysis (passes/errors.py) adds to records.

    error(y, x_err, x, ...)     a bound of the error of the result, from bounds of the errors of the arguments; an
                                argument without an error has the number 0.  The default of elementwise records with
                                constant partial derivatives is the sum of |partial_x| * x_err, of linear and bilinear
                                ones the call itself; others need the part
    rounding(y, x, u, ...)      the rounding error of the call, in units of u: half the distance from 1 to its successor
    underflow(y, x, tiny, ...)  what results of its steps below the smallest normal number may add to that, if it is
                                more than that number
    total(y, x, x_err, u, ...)  all in one, for results that show their error, such as |A^-1| |b - A x|

    rounding=k                  the same as k * |y|: a number, or a function of the arguments; None: not known, and the
                                call is refused.  Without it: ELEMENTARY for elementwise functions of NumPy and Python,
                                0 for functions that only move entries
    errors="as tangents"        the error is what the parts jvp_x make of errors: their coefficients are not negative
    errors="as values"          it is what the linear call makes of them, for the same reason
    errors=None                 neither
    nonnegative=True            no entry of the result is negative
    underflow=False             a result below the smallest normal number is exact; a function of the arguments, too

Without `errors`, a linear or bilinear record is tried on its samples (`coefficients`): are its coefficients not
negative, and does it only move entries?  The bounds are from N. Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, SIAM 2002: sections 2.8 (underflow), 3.1 (sums, products), 5.1 (Horner), 7.7 (systems), 10.1 (Cholesky);
they hold for any order of summation, without terms of higher order: C.-P. Jeannerod and S. Rump, Improved error bounds
for inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013.
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


def narrows(x, dtype, number=False):
    return getattr(x, "kind", "") == "f" and of_conversion(x, dtype) > 0


def of_range(*args, **words):
    """Ranges of whole numbers are exact."""
    def whole(v):
        return v is None or getattr(v, "kind", "") in ("i", "u") or isinstance(v, (int, float)) and v == int(v)
    return 0 if all(whole(v) or isinstance(v, (type, np.dtype)) for v in (*args, *words.values())) else None


def of_decimals(*args, **words):
    return 3 if len(args) > 1 or words else 0


def makes_smaller(a, b):
    """Whether a product may be so small that it is rounded to a subnormal number."""
    return not any(is_power_of_two(v) and abs(v) >= 1 for v in (a, b))


def divides_by_more(a, b):
    return not (is_power_of_two(b) and abs(b) <= 1)


rounded(1, operator.add, operator.sub, np.sqrt, math.fsum, operator.mod, underflow=False)
rounded(1, np.square, np.reciprocal)
rounded(of_product, operator.mul, underflow=makes_smaller)
rounded(of_quotient, operator.truediv, underflow=divides_by_more)
rounded(of_power, operator.pow)
rounded(of_conversion, astype, errors="as values", underflow=narrows)
rounded(of_range, np.arange, errors="as tangents")
rounded(0, operator.neg, operator.pos, np.fmod, math.remainder, np.copysign, np.heaviside)
rounded(None, np.nextafter, np.i0)
rounded(0, np.ldexp, errors="as values", underflow=True)
rounded(4, np.deg2rad, np.rad2deg, errors="as values")
rounded(0, np.array, np.asarray, put, float, broadcast_like, errors="as values")
rounded(0, np.where, errors="as tangents")
rounded(ELEMENTARY, np.cbrt, np.log, np.log2, np.log10, np.cos, np.cosh, np.arccos, underflow=False)
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


@about(np.nan_to_num, rounding=0)
class nan_to_num:
    def error(x_err):
        return x_err


@about(np.linspace, errors="as tangents")
class linspace:                     # start + i * step, with a rounded step
    def rounding(start, stop):
        return 4 * np.maximum(abs(start), abs(stop))


# --- sums -------------------------------------------------------------------------------------------------------------

@about(np.sum, underflow=False)
class sum_:                         # gamma_(n - 1) for any order
    def rounding(x, axis=None, keepdims=False):
        return (count(x, axis) - 1) * np.sum(abs(x), axis=axis, keepdims=keepdims)


@about(np.mean)
class mean:
    def rounding(x, axis=None, keepdims=False):
        return count(x, axis) * np.mean(abs(x), axis=axis, keepdims=keepdims)


@about(np.cumsum, underflow=False)
class cumsum:
    def rounding(x, axis=None):
        if axis is None:
            return (x.size - 1) * np.cumsum(abs(x), axis=axis)
        return (x.shape[axis] - 1) * np.cumsum(abs(x), axis=axis)


@about(np.trace, underflow=False)
class trace:
    def rounding(x, offset=0, axis1=0, axis2=1):
        return (x.shape[axis1] - 1) * np.trace(abs(x), offset=offset, axis1=axis1, axis2=axis2)


@about(np.bincount, underflow=False)
class bincount:
    def rounding(x, weights=None, minlength=0):
        return np.bincount(x, minlength=minlength) * np.bincount(x, weights=abs(weights), minlength=minlength)


@about(np.add.reduceat, underflow=False)
class add_reduceat:
    def rounding(array, indices, axis=0):
        return array.shape[axis] * np.add.reduceat(abs(array), indices, axis=axis)


@about(unbroadcast, errors="as values", underflow=False)
class unbroadcast_:
    def rounding(value, like):
        return np.size(value) * unbroadcast(abs(value), like)


@about(np.diff, underflow=False)
class diff:                         # with plus in place of minus: differences of numbers with alternating signs
    def error(x_err, n=1, axis=-1):
        return sums_of_neighbours(x_err, n, axis)

    def rounding(x, n=1, axis=-1):
        return n * sums_of_neighbours(abs(x), n, axis)


def sums_of_neighbours(x, n, axis):
    last = np.moveaxis(x, axis, -1)
    signs = 1 - 2 * (np.arange(last.shape[-1]) % 2)
    return np.moveaxis(abs(np.diff(last * signs, n)), -1, axis)


@about(np.var)
class var:                          # two passes; the square is the error of the mean, which matters for equal entries
    def error(x_err, x, axis=None, ddof=0, keepdims=False):
        m = np.mean(x, axis=axis, keepdims=True)
        return np.sum((2 * abs(x - m) + x_err) * x_err, axis=axis, keepdims=keepdims) / (count(x, axis) - ddof)

    def rounding(y, x, u, axis=None, ddof=0, keepdims=False):
        n = count(x, axis)
        m = np.mean(abs(x), axis=axis, keepdims=keepdims)
        return (n + 5) * y + u * (n * m) ** 2 * n / (n - ddof)


@about(np.std, errors=None)
class std:                          # the standard deviation of a sum is at most the sum of both
    def error(x_err, x, axis=None, ddof=0, keepdims=False):
        return np.sqrt(np.sum(x_err * x_err, axis=axis, keepdims=keepdims) / (count(x, axis) - ddof))

    def rounding(y, x, axis=None, ddof=0, keepdims=False):
        n = count(x, axis)
        m = np.mean(abs(x), axis=axis, keepdims=keepdims)
        return (n + 7) * y + n * m * np.sqrt(n / (n - ddof))

    def underflow(tiny):
        return of_root(tiny)


@static
def of_root(tiny):
    """The root of a sum of squares each of which may be 0 for a number below the root of the smallest."""
    return 2 * math.sqrt(tiny)


@about(np.max, np.min, rounding=0)
class largest:
    def error(x_err, axis=None, keepdims=False):
        return np.max(x_err, axis=axis, keepdims=keepdims)


def largest_like(y, x_err, axis):
    return np.zeros_like(y) + np.max(x_err, axis=axis, keepdims=axis is not None)


@about(np.sort, rounding=0)
class sort:                         # the k-th entry moves by no more than the largest error, whatever the order becomes
    def error(y, x_err, axis=-1):
        return largest_like(y, x_err, axis)


@about(np.partition, rounding=0)
class partition:
    def error(y, a_err, axis=-1):
        return largest_like(y, a_err, axis)


@about(np.median, rounding=1)
class median:
    def error(x_err, axis=None, keepdims=False):
        return np.max(x_err, axis=axis, keepdims=keepdims)


@about(np.maximum.accumulate, np.minimum.accumulate, rounding=0)
class largest_so_far:
    def error(array_err, axis=0):
        return np.maximum.accumulate(array_err, axis=axis)


# --- products ---------------------------------------------------------------------------------------------------------

@about(np.prod)
class prod:                         # the product of |x| + x_err is at most |y| exp(sum(x_err / |x|))
    def error(y, x_err, x, axis=None, keepdims=False):
        return abs(y) * np.expm1(np.sum(x_err / abs(x), axis=axis, keepdims=keepdims))

    def rounding(y, x, axis=None):
        return (count(x, axis) - 1) * abs(y)

    def underflow(x, tiny, axis=None, keepdims=False):          # of any partial product, times what is left
        return tiny * np.prod(np.maximum(abs(x), 1.0), axis=axis, keepdims=keepdims)


@about(np.cumprod)
class cumprod:
    def error(y, x_err, x, axis=None):
        return abs(y) * np.expm1(np.cumsum(x_err / abs(x), axis=axis))

    def rounding(y, x):
        return x.size * abs(y)

    def underflow(x, tiny, axis=None):
        return tiny * np.cumprod(np.maximum(abs(x), 1.0), axis=axis)


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
        return value_error(p_err, x_err, x) + argument_error(x_err, p, x)

    def rounding(p, x):
        return 2 * p.shape[0] * np.polyval(abs(p), abs(x))

    def underflow(p, x, tiny):
        return tiny * np.maximum(abs(x), 1.0) ** p.shape[0]


def value_error(p_err, x_err, x):
    if none(p_err):
        return 0.0
    return np.polyval(p_err, abs(x) + x_err)


def argument_error(x_err, p, x):
    if none(x_err):
        return 0.0
    return np.polyval(abs(p[:-1]) * np.arange(p.shape[0] - 1, 0, -1), abs(x) + x_err) * x_err


@static
def euclidean(x, ord, axis):
    if ord not in (None, 2, "fro") or ord == 2 and (axis is None and x.ndim == 2 or isinstance(axis, tuple)):
        raise ValueError(f"np.linalg.norm with ord={ord!r} has no bound for errors",
                         "Write it with np.abs, np.sum and np.max.")


@about(np.linalg.norm)
class norm:                         # the triangle inequality
    def error(x_err, x, ord=None, axis=None, keepdims=False):
        return np.linalg.norm(x_err, ord=ord, axis=axis, keepdims=keepdims)

    def rounding(y, x, ord=None, axis=None):
        euclidean(x, ord, axis)
        return (count(x, axis) / 2 + 2) * y

    def underflow(x, tiny, axis=None):
        return of_root(tiny) * np.sqrt(count(x, axis))


# --- linear algebra ---------------------------------------------------------------------------------------------------

def row_sums(a):
    return np.max(np.sum(a, axis=-1, keepdims=True), axis=-2, keepdims=True)


def inverse_size(x, a, a_err, u):
    """A bound of |A^-1|, from a computed inverse X.

    With r = ||I - X A|| < 1, in the norm of row sums, A^-1 = (I - (I - X A))^-1 X, so each entry of |A^-1| is at most
    that of |X|, and r / (1 - r) times the largest in its column.  S. Rump, Verification methods, Acta Numerica 19,
    2010, section 10.
    """
    size, one, n = abs(x), np.eye(a.shape[-1]), a.shape[-1] + 1
    r = row_sums(abs(one - x @ a) + n * u * (size @ abs(a) + one) + size @ error_matrix(a_err, a))
    return size + r / np.maximum(1 - r, 0.0) * np.max(size, axis=-2, keepdims=True)


def error_matrix(a_err, a):
    if none(a_err):
        return np.zeros_like(a)
    return a_err


@about(np.linalg.solve)
class solve:                        # |A^-1| |r|, with the residual r, its rounding errors, and those of A and b
    def total(y, a_err, b_err, a, b, u, tiny):
        n = a.shape[-1] + 1
        r = abs(b - a @ y) + n * u * (abs(a) @ abs(y) + abs(b)) + product_error(a_err, y) + b_err + tiny
        return inverse_size(np.linalg.inv(a), a, a_err, u) @ r


def product_error(a_err, x):
    """|A_err| |x|, or 0."""
    if none(a_err):
        return 0.0
    return a_err @ abs(x)


@about(np.linalg.inv)
class inv:                          # the same for the columns of the identity
    def total(y, a_err, a, u, tiny):
        n, one = a.shape[-1] + 1, np.eye(a.shape[-1])
        r = abs(one - a @ y) + n * u * (abs(a) @ abs(y) + one) + product_error(a_err, y) + tiny
        return inverse_size(y, a, a_err, u) @ r


@static
def lower(upper, a):
    if upper or a.ndim != 2:
        raise ValueError("np.linalg.cholesky of stacks, or with upper=True, has no bound for errors",
                         "Use the lower factor of one matrix.")


@about(np.linalg.cholesky)
class cholesky:
    """L L^T = A is changed to L (I + E) L^T = A + change, with the factor L (I + G): G + G^T + G G^T = E.

    Let g = ||G|| in the Frobenius norm.  The lower triangle of E, with half the diagonal, has G to first order, and
    G G^T adds at most g**2 to an entry; g < 2 ||E|| where ||E|| < 1/2.  J.-G. Sun, Perturbation bounds for the
    Cholesky and QR factorizations, BIT 31, 1991; Higham, theorem 10.8.
    """
    def total(y, a_err, a, u, tiny, upper=False):
        lower(upper, a)
        n, one = a.shape[-1] + 1, np.eye(a.shape[-1])
        back = inverse_size(np.linalg.inv(y), y, 0.0, u)
        change = abs(a - y @ y.T) + n * u * (abs(y) @ abs(y).T + abs(a)) + error_matrix(a_err, a) + tiny
        inner = back @ change @ back.T
        size = np.sqrt(np.sum(inner * inner))
        first = np.tril(inner) - 0.5 * np.diag(np.diag(inner))
        whole = first + np.where(size < 0.5, 4 * size * size, np.inf) * np.tril(one + 1)
        return abs(y) @ whole


rounded(of_decimals, np.round, builtins.round)
