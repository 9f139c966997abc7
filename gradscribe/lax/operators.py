# SPDX-License-Identifier: Apache-2.0
"""The elementwise functions, reductions and products of jax.lax: NumPy's under these names, and others in NumPy."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

abs = np.abs
acos = np.arccos
acosh = np.arccosh
add = np.add
asin = np.arcsin
asinh = np.arcsinh
atan = np.arctan
atan2 = np.arctan2
atanh = np.arctanh
bessel_i0e = special.i0e
bessel_i1e = special.i1e
betainc = special.betainc
bitwise_and = np.bitwise_and
bitwise_not = np.bitwise_not
bitwise_or = np.bitwise_or
bitwise_xor = np.bitwise_xor
cbrt = np.cbrt
ceil = np.ceil
conj = np.conj
cos = np.cos
cosh = np.cosh
digamma = special.digamma
eq = np.equal
erf = special.erf
erf_inv = special.erfinv
erfc = special.erfc
exp = np.exp
exp2 = np.exp2
expm1 = np.expm1
floor = np.floor
ge = np.greater_equal
gt = np.greater
igamma = special.gammainc
igammac = special.gammaincc
imag = np.imag
is_finite = np.isfinite
le = np.less_equal
lgamma = special.gammaln
log = np.log
log1p = np.log1p
logistic = special.expit
lt = np.less
max = np.maximum
min = np.minimum
mul = np.multiply
ne = np.not_equal
neg = np.negative
nextafter = np.nextafter
polygamma = special.polygamma
pow = np.power
real = np.real
rem = np.fmod
shift_left = np.left_shift
shift_right_arithmetic = np.right_shift
sign = np.sign
sin = np.sin
sinh = np.sinh
sqrt = np.sqrt
square = np.square
sub = np.subtract
tan = np.tan
tanh = np.tanh
tile = np.tile
stack = np.stack
unstack = np.unstack
zeta = special.zeta

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x / y; quotients of integers are truncated towards zero.

    >>> int(div(np.int64(-7), np.int64(2))), float(div(-7.0, 2.0))
    (-3, -3.5)
    """
    if np.result_type(x, y).kind in "iu":
        quotient = np.floor_divide(x, y)
        return quotient + ((quotient < 0) & (quotient * y != x))
    return np.true_divide(x, y)


def reciprocal(x: np.ndarray) -> np.ndarray:
    """1 / x.

    >>> reciprocal(4.0)
    0.25
    """
    return 1.0 / x


def rsqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x).

    >>> float(rsqrt(4.0))
    0.5
    """
    return 1.0 / np.sqrt(x)


def integer_pow(x: np.ndarray, y: int) -> np.ndarray:
    """x to an integer power; negative powers for floats only.

    >>> integer_pow(3.0, 2), integer_pow(2.0, -1)
    (9.0, 0.5)
    """
    if y < 0:
        return 1.0 / x ** -y
    return x**y


def complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x + i y.

    >>> complex(1.0, 2.0)
    (1+2j)
    """
    return x + 1j * y


def round(x: np.ndarray, rounding_method: int = 0) -> np.ndarray:
    """x rounded to the nearest integer; halves away from zero, or to even with `rounding_method` 1.

    >>> float(round(2.5)), float(round(2.5, 1))
    (3.0, 2.0)
    """
    if rounding_method == 1:
        return np.round(x)
    if rounding_method != 0:
        raise ValueError(f"rounding_method must be 0 or 1, not {rounding_method!r}")
    part, whole = np.modf(x)
    return np.where(np.abs(part) >= 0.5, whole + np.sign(x), whole)


def clamp(min: np.ndarray, x: np.ndarray, max: np.ndarray) -> np.ndarray:
    """x limited to two bounds; at a bound the derivative goes to the bound.

    >>> clamp(0.0, np.array([-1.0, 0.5, 3.0]), 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.where(x >= max, max, np.where(x <= min, np.minimum(min, max), x))


def select(pred: np.ndarray, on_true: np.ndarray, on_false: np.ndarray) -> np.ndarray:
    """Entries of on_true where `pred` is true, of on_false elsewhere.

    >>> select(np.array([True, False]), np.array([1, 2]), np.array([3, 4])).tolist()
    [1, 4]
    """
    return np.where(pred, on_true, on_false)


def select_n(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    """For each entry of `which`, the entry of the case with that number; False is the first of two.

    >>> select_n(np.array([2, 0]), np.array([1, 2]), np.array([3, 4]), np.array([5, 6])).tolist()
    [5, 2]
    """
    if not cases:
        raise ValueError("select_n needs a case")
    out = cases[0]
    for number in range(1, len(cases)):
        out = np.where(which >= number, cases[number], out)
    return out


def convert_element_type(operand: np.ndarray, new_dtype: Any) -> np.ndarray:
    """The array in another dtype; floats are truncated towards zero for an integer dtype.

    >>> convert_element_type(np.array([1.7]), np.int32)
    array([1], dtype=int32)
    """
    return np.asarray(operand).astype(new_dtype)


def bitcast_convert_type(operand: np.ndarray, new_dtype: Any) -> np.ndarray:
    """The same bits as another dtype of the same size. grad, vmap and jit do not support it.

    >>> int(bitcast_convert_type(np.float32(1.0), np.uint32))
    1065353216
    """
    if np.empty(0, new_dtype).itemsize != operand.itemsize:
        raise ValueError("bitcast_convert_type is between dtypes of the same size")
    return operand.view(new_dtype)


def population_count(x: np.ndarray) -> np.ndarray:
    """The number of bits that are set, in the dtype of x.

    >>> population_count(np.array([7, 8])).tolist()
    [3, 1]
    """
    return np.bitwise_count(x.astype(_UNSIGNED[x.itemsize])).astype(x.dtype)


def shift_right_logical(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bits shifted right, with zeros from the left even where x is negative.

    >>> int(shift_right_logical(np.array([-1], np.int8), np.array([4], np.int8))[0])
    15
    """
    unsigned = _UNSIGNED[x.itemsize]
    return np.right_shift(x.astype(unsigned), y.astype(unsigned)).astype(x.dtype)


def reduce_sum(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The sum over axes, in the operand's dtype.

    >>> reduce_sum(np.ones((2, 3)), (1,)).tolist()
    [3.0, 3.0]
    """
    return np.sum(operand, axis=tuple(axes), dtype=operand.dtype)


def reduce_prod(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The product over axes, in the operand's dtype.

    >>> reduce_prod(np.array([2.0, 3.0]), (0,)).tolist()
    6.0
    """
    if not axes:
        return operand
    return np.prod(operand, axis=tuple(axes), dtype=operand.dtype)


def reduce_max(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The maximum over axes, which must not be empty.

    >>> reduce_max(np.array([2.0, 3.0]), (0,)).tolist()
    3.0
    """
    return np.max(operand, axis=tuple(axes))


def reduce_min(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The minimum over axes, which must not be empty.

    >>> reduce_min(np.array([2.0, 3.0]), (0,)).tolist()
    2.0
    """
    return np.min(operand, axis=tuple(axes))


def reduce_and(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The bitwise and over axes; for bool, whether all are true.

    >>> reduce_and(np.array([True, False]), (0,)).tolist(), reduce_and(np.array([6, 3]), (0,)).tolist()
    (False, 2)
    """
    if operand.dtype.kind == "b":
        return np.all(operand, axis=tuple(axes))
    return np.bitwise_and.reduce(operand, axis=tuple(axes))


def reduce_or(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The bitwise or over axes; for bool, whether any is true.

    >>> reduce_or(np.array([True, False]), (0,)).tolist(), reduce_or(np.array([6, 3]), (0,)).tolist()
    (True, 7)
    """
    if operand.dtype.kind == "b":
        return np.any(operand, axis=tuple(axes))
    return np.bitwise_or.reduce(operand, axis=tuple(axes))


def reduce_xor(operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The bitwise exclusive or over axes.

    >>> reduce_xor(np.array([6, 3]), (0,)).tolist()
    5
    """
    return np.bitwise_xor.reduce(operand, axis=tuple(axes))


def reduce(operand: np.ndarray, init_value: Any, computation: Callable, dimensions: Sequence[int]) -> np.ndarray:
    """Axes reduced by an associative function of two arrays, starting from `init_value`.

    >>> reduce(np.array([[1.0, 2.0], [3.0, 4.0]]), 1.0, np.multiply, (0,)).tolist()
    [3.0, 8.0]
    """
    axes = tuple([axis % operand.ndim for axis in dimensions])
    front = np.moveaxis(operand, axes, tuple(range(len(axes))))
    rest = front.shape[len(axes):]
    rows = front.reshape((-1, *rest))
    out = np.full(rest, init_value, operand.dtype)
    for i in range(rows.shape[0]):
        out = computation(out, rows[i])
    return out


def dot(lhs: np.ndarray, rhs: np.ndarray, precision: Any = None, preferred_element_type: Any = None) -> np.ndarray:
    """The product of vectors and matrices; `precision` has no effect.

    >>> dot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """
    if not 1 <= lhs.ndim <= 2 or not 1 <= rhs.ndim <= 2:
        raise ValueError(f"dot is of vectors and matrices, not of ranks {lhs.ndim} and {rhs.ndim}: dot_general")
    if preferred_element_type is not None:
        lhs = lhs.astype(preferred_element_type)
        rhs = rhs.astype(preferred_element_type)
    return lhs @ rhs


def batch_matmul(lhs: np.ndarray, rhs: np.ndarray, precision: Any = None) -> np.ndarray:
    """Products of stacked matrices with the same batch axes.

    >>> batch_matmul(np.ones((2, 3, 4)), np.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise ValueError(f"batch_matmul is of stacks of the same rank, not of ranks {lhs.ndim} and {rhs.ndim}")
    return lhs @ rhs


def dot_general(lhs: np.ndarray, rhs: np.ndarray, dimension_numbers: Any, precision: Any = None,
                preferred_element_type: Any = None) -> np.ndarray:
    """A tensor contraction; the result has the batch axes, then the remaining axes of lhs, then those of rhs.

    `dimension_numbers` is ((contracted of lhs, contracted of rhs), (batch axes of lhs, batch axes of rhs)).

    >>> dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    (lhs_contracted, rhs_contracted), (lhs_batch, rhs_batch) = dimension_numbers
    if preferred_element_type is not None:
        lhs = lhs.astype(preferred_element_type)
        rhs = rhs.astype(preferred_element_type)
    of_lhs = list("abcdefghijklm"[:lhs.ndim])
    of_rhs = list("nopqrstuvwxyz"[:rhs.ndim])
    for left, right in [*zip(lhs_contracted, rhs_contracted), *zip(lhs_batch, rhs_batch)]:
        of_rhs[right] = of_lhs[left]
    batch = [of_lhs[axis] for axis in lhs_batch]
    left_over = [of_lhs[axis] for axis in range(lhs.ndim) if axis not in (*lhs_contracted, *lhs_batch)]
    right_over = [of_rhs[axis] for axis in range(rhs.ndim) if axis not in (*rhs_contracted, *rhs_batch)]
    result = "".join([*batch, *left_over, *right_over])
    return np.einsum("".join(of_lhs) + "," + "".join(of_rhs) + "->" + result, lhs, rhs)
