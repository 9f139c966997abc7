# SPDX-License-Identifier: Apache-2.0
"""Functions without a derivative: comparisons, rounding, indices and shapes; and functions that make arrays.

Functions whose entries depend on an argument are differentiable in it: full, arange, linspace, bincount.
"""
import builtins
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, general, linear, static
from gradscribe.ast_transform.rules import samples
from gradscribe.ast_transform.rules.batching import (
    aligned,
    batched_partition,
    batched_reduction,
    by_example,
    only,
    rows,
    shifted,
)
from gradscribe.ast_transform.rules.elementwise import is_complex, is_float, is_integer
from gradscribe.ast_transform.rules.reductions import along_index
from gradscribe.runtime import compiled
from gradscribe.runtime.offload import on_disk


def _entrywise(*names):
    """A decorator maker: it declares elementwise functions of these arguments; the first one names the record."""
    def declare(function, *alias, **options):
        record = type(function.__name__, (), {})
        constant(function, *names, alias=alias, elementwise=True, memory=FRESH, **options)(record)
    return declare


_of_one, _of_two = _entrywise("x"), _entrywise("a", "b")


# --- booleans --------------------------------------------------------------------------------------------------------

_of_two(operator.lt, np.less, cheap=True, jumps="order", word="test")
_of_two(operator.le, np.less_equal, cheap=True, jumps="order", word="test")
_of_two(operator.gt, np.greater, cheap=True, jumps="order", word="test")
_of_two(operator.ge, np.greater_equal, cheap=True, jumps="order", word="test")
_of_two(operator.eq, np.equal, cheap=True, jumps=True, word="test")
_of_two(operator.ne, np.not_equal, cheap=True, jumps=True, word="test")
_of_two(np.logical_and, cheap=True)
_of_two(np.logical_or, cheap=True)
_of_two(np.logical_xor)
_of_one(np.logical_not)
_of_one(np.isnan, math.isnan)
_of_one(np.isinf, math.isinf)
_of_one(np.isfinite, math.isfinite)
_of_one(np.signbit)


@constant(np.isposinf, "x", elementwise=True, memory=FRESH)
class isposinf:
    def scalar(x):
        if not is_float(x):
            return False
        return x == np.inf


@constant(np.isneginf, "x", elementwise=True, memory=FRESH)
class isneginf:
    def scalar(x):
        if not is_float(x):
            return False
        return x == -np.inf


@constant(np.iscomplex, "x", elementwise=True, memory=FRESH)
class iscomplex:
    def scalar(x):
        if is_complex(x):
            return x.imag != 0
        return False


@constant(np.isreal, "x", elementwise=True, memory=FRESH)
class isreal:
    def scalar(x):
        if is_complex(x):
            return x.imag == 0
        return True


@constant(operator.not_, cheap=True, memory=FRESH, word="test")
class not_:
    def primal(a):
        return not a


@constant(operator.truth, alias=(builtins.bool,), memory=FRESH)
class truth:
    def primal(a):
        return bool(a)


@constant(operator.is_, memory=FRESH)
class is_:
    def primal(a, b):
        return a is b


@constant(operator.is_not, memory=FRESH)
class is_not:
    def primal(a, b):
        return a is not b


@constant(operator.contains, memory=FRESH)
class contains:
    def primal(a, b):
        return b in a


@constant(np.isclose, elementwise=True, memory=FRESH)
class isclose:
    def primal(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
        return np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


@constant(np.allclose, memory=FRESH)
class allclose:
    def primal(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
        return np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


@constant(math.isclose, memory=FRESH)
class math_isclose:
    def primal(a, b, *, rel_tol=1e-9, abs_tol=0.0):
        return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)


@constant(np.array_equal, memory=FRESH)
class array_equal:
    def primal(a1, a2, equal_nan=False):
        return np.array_equal(a1, a2, equal_nan=equal_nan)


@constant(np.isin, memory=FRESH)
class isin:
    def primal(element, test_elements, assume_unique=False, invert=False):
        return np.isin(element, test_elements, assume_unique=assume_unique, invert=invert)

    def batch(element, test_elements, batched, assume_unique=False, invert=False):
        only(batched, "element")
        return np.isin(element, test_elements, invert=invert)


@constant(np.any, samples=samples.reductions, memory=FRESH)
class any_:
    def primal(a, axis=None, *, keepdims=False):
        return np.any(a, axis=axis, keepdims=keepdims)

    def wider(a, axis=None, *, keepdims=False, where=True):
        return np.any(np.where(where, a != 0, False), axis=axis, keepdims=keepdims)

    batch = batched_reduction(np.any)


@constant(np.all, samples=samples.reductions, memory=FRESH)
class all_:
    def primal(a, axis=None, *, keepdims=False):
        return np.all(a, axis=axis, keepdims=keepdims)

    def wider(a, axis=None, *, keepdims=False, where=True):
        return np.all(np.where(where, a != 0, True), axis=axis, keepdims=keepdims)

    batch = batched_reduction(np.all)


@constant(np.iscomplexobj, memory=FRESH)
class iscomplexobj:
    pass


@constant(np.isrealobj, memory=FRESH)
class isrealobj:
    pass


# --- integers and bits -----------------------------------------------------------------------------------------------

_of_two(operator.and_, np.bitwise_and, cheap=True, word="test")
_of_two(operator.or_, np.bitwise_or, cheap=True, word="test")
_of_two(operator.xor, np.bitwise_xor)
_of_one(operator.invert, np.invert, word="test")
_of_two(operator.lshift, np.left_shift, raises="numbers")          # Python's, by a negative one
_of_two(operator.rshift, np.right_shift, raises="numbers")
_of_two(operator.floordiv, np.floor_divide, raises=True, cheap=True, jumps=True, word="quotient")
_of_one(np.floor, math.floor, jumps=True, numba=True)
_of_one(np.ceil, math.ceil, jumps=True, numba=True)
_of_one(np.trunc, math.trunc, jumps=True, numba=True)
_of_one(np.rint, jumps=True, numba=True)
_of_two(np.gcd, math.gcd)
_of_two(np.lcm, math.lcm)


@constant(np.sign, "x", elementwise=True, memory=FRESH, real_only=True, cheap=True)
class sign:                         # of a complex number it is not constant
    def scalar(x):
        if is_complex(x):
            return None
        if is_integer(x):
            return compiled.whole_sign(x)
        return compiled.sign(x)


@constant(np.fix, "x", elementwise=True, memory=FRESH, jumps=True)
class fix:
    def scalar(x):
        return np.trunc(x)


@constant(np.round, alias=(np.around,), memory=FRESH, jumps=True)
class round_:
    def primal(a, decimals=0):
        return np.round(a, decimals)

    def batch(a, batched, decimals=0):
        return np.round(a, decimals)


@constant(builtins.round, memory=FRESH, jumps=True)
class builtin_round:
    def primal(number, ndigits=None):
        return round(number, ndigits)

    def batch(number, batched, ndigits=None):
        if ndigits is not None:
            by_example("Python's round finds the nearest decimal number, NumPy's rounds a multiple of each number")
        return np.round(number)


@constant(builtins.int, memory=FRESH, raises=True, jumps=True)
class int_:
    def primal(x):
        return int(x)


# --- positions and counts --------------------------------------------------------------------------------------------

def batched_position(function):
    def part(first, batched, axis=None, keepdims=False):
        if axis is None:
            if keepdims:
                by_example("keepdims without an axis")
            return function(rows(first), axis=1)
        if keepdims:
            return function(first, axis=shifted(axis), keepdims=keepdims)
        return function(first, axis=shifted(axis))
    return part


@constant(np.argmax, samples=samples.positions, memory=FRESH, raises=True)
class argmax:
    def primal(a, axis=None, *, keepdims=False):
        return np.argmax(a, axis=axis, keepdims=keepdims)

    batch = batched_position(np.argmax)


@constant(np.argmin, samples=samples.positions, memory=FRESH, raises=True)
class argmin:
    def primal(a, axis=None, *, keepdims=False):
        return np.argmin(a, axis=axis, keepdims=keepdims)

    batch = batched_position(np.argmin)


@constant(np.nanargmax, samples=samples.positions, memory=FRESH, raises=True)
class nanargmax:
    def primal(a, axis=None, *, keepdims=False):
        return np.nanargmax(a, axis=axis, keepdims=keepdims)

    batch = batched_position(np.nanargmax)


@constant(np.nanargmin, samples=samples.positions, memory=FRESH, raises=True)
class nanargmin:
    def primal(a, axis=None, *, keepdims=False):
        return np.nanargmin(a, axis=axis, keepdims=keepdims)

    batch = batched_position(np.nanargmin)


@constant(np.argsort, samples=samples.real_arrays, memory=FRESH)
class argsort:
    def primal(a, axis=-1, kind=None, *, stable=None):
        return np.argsort(a, axis=axis, kind=kind, stable=stable)

    def batch(first, batched, axis=-1, kind=None, stable=None):
        if axis is None:
            return np.argsort(rows(first), axis=1, kind=kind, stable=stable)
        return np.argsort(first, axis=shifted(axis), kind=kind, stable=stable)


@constant(np.argpartition, memory=FRESH, raises=True)
class argpartition:
    def primal(a, kth, axis=-1):
        return np.argpartition(a, kth, axis=axis)

    batch = batched_partition(np.argpartition)


@constant(np.searchsorted, memory=FRESH)
class searchsorted:
    def primal(a, v, side="left", sorter=None):
        return np.searchsorted(a, v, side=side, sorter=sorter)

    def batch(a, v, batched, side="left", sorter=None):
        only(batched, "v")
        return np.searchsorted(a, v, side=side, sorter=sorter)


@constant(np.digitize, memory=FRESH, raises=True)
class digitize:
    def primal(x, bins, right=False):
        return np.digitize(x, bins, right=right)

    def batch(x, bins, batched, right=False):
        only(batched, "x")
        return np.digitize(x, bins, right=right)


@constant(np.nonzero, by_value=0, memory=FRESH)
class nonzero:
    def primal(a):
        return np.nonzero(a)


@constant(np.flatnonzero, by_value=0, memory=FRESH)
class flatnonzero:
    def primal(a):
        return np.flatnonzero(a)


@constant(np.argwhere, by_value=0, memory=FRESH)
class argwhere:
    def primal(a):
        return np.argwhere(a)


@constant(np.count_nonzero, samples=samples.reductions, memory=FRESH)
class count_nonzero:
    def primal(a, axis=None, *, keepdims=False):
        return np.count_nonzero(a, axis=axis, keepdims=keepdims)

    batch = batched_reduction(np.count_nonzero)


@constant(np.tril_indices, memory=FRESH)
class tril_indices:
    def primal(n, k=0, m=None):
        return np.tril_indices(n, k, m)


@constant(np.triu_indices, memory=FRESH)
class triu_indices:
    def primal(n, k=0, m=None):
        return np.triu_indices(n, k, m)


@constant(np.diag_indices, memory=FRESH)
class diag_indices:
    def primal(n, ndim=2):
        return np.diag_indices(n, ndim)


@constant(np.unravel_index, arrays=("indices",), memory=FRESH, raises=True)
class unravel_index:
    def primal(indices, shape, order="C"):
        return np.unravel_index(indices, shape, order=order)


@constant(np.ravel_multi_index, sequence=("multi_index",), memory=FRESH, raises=True)
class ravel_multi_index:
    def primal(multi_index, dims, mode="raise", order="C"):
        return np.ravel_multi_index(multi_index, dims, mode=mode, order=order)


@linear(np.bincount, "weights", samples=samples.counts, expand=True, by_value=0, memory=FRESH, raises=True)
class bincount:
    def primal(x, weights=None, minlength=0):
        return np.bincount(x, weights=weights, minlength=minlength)

    def vjp_weights(dy, x):
        return dy[x]


# --- shapes ----------------------------------------------------------------------------------------------------------

@constant(np.shape, samples=samples.real_arrays, memory=FRESH)
class shape:
    def primal(a):
        return np.shape(a)


@constant(np.ndim, samples=samples.real_arrays, memory=FRESH)
class ndim:
    def primal(a):
        return np.ndim(a)


@constant(np.size, samples=samples.real_arrays, memory=FRESH)
class size:
    def primal(a, axis=None):
        return np.size(a, axis)


@constant(builtins.len, memory=FRESH)
class len_:
    def primal(a):
        return len(a)


# --- makers of arrays ------------------------------------------------------------------------------------------------

@constant(np.zeros, samples=samples.shapes, memory=FRESH, order="rows", cell=True, allocates="filled", entries=0)
class zeros:
    def primal(shape, dtype=float):
        return np.zeros(shape, dtype=dtype)


@constant(np.ones, samples=samples.shapes, memory=FRESH, order="rows", cell=True, allocates="filled", entries=1)
class ones:
    def primal(shape, dtype=float):
        return np.ones(shape, dtype=dtype)


@constant(on_disk, memory=FRESH, raises=True, allocates="filled")
class on_disk_:
    def primal(shape, dtype=np.float64):
        return on_disk(shape, dtype)


@constant(np.empty, memory=FRESH, order="rows", cell=True, allocates="filled")
class empty:
    def primal(shape, dtype=float):
        return np.empty(shape, dtype=dtype)


def batched_like(function):
    def part(a, batched, dtype=None, shape=None):
        if shape is not None:
            by_example("another shape")
        if dtype is None:
            return function(a)
        return function(a, dtype=dtype)
    return part


@constant(np.zeros_like, samples=samples.real_arrays, memory=FRESH, order="first", cell=True, allocates="filled",
          reads="shape", by_shape=np.zeros, entries=0)
class zeros_like:
    def primal(a, dtype=None, *, shape=None):
        return np.zeros_like(a, dtype=dtype, shape=shape)

    batch = batched_like(np.zeros_like)


@constant(np.ones_like, samples=samples.real_arrays, memory=FRESH, order="first", cell=True, allocates="filled",
          reads="shape", by_shape=np.ones, entries=1)
class ones_like:
    def primal(a, dtype=None, *, shape=None):
        return np.ones_like(a, dtype=dtype, shape=shape)

    batch = batched_like(np.ones_like)


@constant(np.empty_like, memory=FRESH, order="first", cell=True, allocates="filled",
          reads="shape", by_shape=np.empty)
class empty_like:
    def primal(a, dtype=None, *, shape=None):
        return np.empty_like(a, dtype=dtype, shape=shape)

    batch = batched_like(np.empty_like)


@constant(np.eye, samples=samples.lengths, memory=FRESH, order="rows")
class eye:
    def primal(N, M=None, k=0, dtype=float):
        return np.eye(N, M, k, dtype=dtype)


@constant(np.identity, samples=samples.lengths, memory=FRESH, order="rows")
class identity:
    def primal(n, dtype=float):
        return np.identity(n, dtype=dtype)


@constant(np.tri, samples=samples.lengths, memory=FRESH)
class tri:
    def primal(N, M=None, k=0, dtype=float):
        return np.tri(N, M, k, dtype=dtype)


@constant(np.indices, memory=FRESH)
class indices:
    def primal(dimensions, dtype=int, sparse=False):
        return np.indices(dimensions, dtype=dtype, sparse=sparse)


@linear(np.full, "fill_value", samples=samples.fills, expand=True, unbroadcast=True, memory=FRESH,
        order="rows", cell=True, allocates="filled", entries="fill_value")
class full:
    def primal(shape, fill_value, dtype=None):
        return np.full(shape, fill_value, dtype=dtype)

    def vjp_fill_value(dy):
        return dy

    def batch(shape, fill_value, batched, rank, count, dtype=None):
        if dtype is None:
            return np.full((count, *shape), aligned(fill_value, rank))
        return np.full((count, *shape), aligned(fill_value, rank), dtype=dtype)


@linear(np.full_like, "fill_value", samples=samples.fills_like, expand=True, unbroadcast=True, memory=FRESH,
        order="first", cell=True, allocates="filled", reads="shape", by_shape=np.full,
        entries="fill_value")
class full_like:
    def primal(a, fill_value, dtype=None):
        return np.full_like(a, fill_value, dtype=dtype)

    def vjp_fill_value(dy):
        return dy

    def batch(a, fill_value, batched, rank, count, dtype=None):
        if "fill_value" not in batched:
            return np.full_like(a, fill_value, dtype=dtype)
        if "a" in batched:
            return np.full_like(a, aligned(fill_value, rank), dtype=dtype)
        return np.full((count, *a.shape), aligned(fill_value, rank), dtype=a.dtype if dtype is None else dtype)


@general(np.arange, "start", "step", samples=samples.ranges, expand=True, counts=True, memory=FRESH, order="rows",
         cheap=True)
class arange:
    def primal(start, stop=None, step=1, dtype=None):
        if stop is None:
            return np.arange(start, dtype=dtype)
        return np.arange(start, stop, step, dtype=dtype)

    def vjp_start(dy, stop=None):
        if stop is None:            # np.arange(stop): only the length depends on it
            return 0
        return np.sum(dy)

    def vjp_step(dy):
        return np.sum(dy * np.arange(dy.size))

    def jvp_start(start_dot, y, stop=None):
        if stop is None:
            return np.zeros_like(y)
        return np.full_like(y, start_dot)

    def jvp_step(step_dot, y):
        return step_dot * np.arange(y.size)


def laid(x, ndim, axis):
    """A vector reshaped to lie along one axis of an array."""
    index = along_index(ndim, axis)
    if index is None:
        return x
    return x[index]


def ramp(y, num, endpoint, axis):
    """Numbers from 0 to 1 along an axis of the result y."""
    steps = np.linspace(0, 1, num) if endpoint else np.linspace(0, 1, num, endpoint=False)
    return laid(steps.astype(y.dtype), y.ndim, axis)


def summed(x, axis):
    if x.ndim == 1:
        return np.sum(x)
    return np.sum(x, axis=axis)


@static
def widened_index(x, ndim, axis):
    """The index that adds a unit axis to an end point of np.linspace; None if broadcasting does not need it."""
    behind = ndim - 1 - axis % ndim
    if behind == 0 or np.ndim(x) < behind:
        return None if behind or np.ndim(x) == 0 else (..., None)
    return None if np.ndim(x) == behind else (slice(None),) * (np.ndim(x) - behind) + (None,)


def widened(x, ndim, axis):
    index = widened_index(x, ndim, axis)
    if index is None:
        return x
    return x[index]


@general(np.linspace, "start", "stop", samples=samples.evenly_spaced, expand=True, unbroadcast="own",
         rewrite=("retstep", "dtype"), arrays=("start", "stop"), memory=FRESH, order="vector")
class linspace:
    def primal(start, stop, num=50, endpoint=True, retstep=None, dtype=None, axis=0):
        return np.linspace(start, stop, num, endpoint=endpoint, axis=axis)

    def rewritten(start, stop, num=50, endpoint=True, retstep=None, dtype=None, axis=0):
        y = np.linspace(start, stop, num, endpoint=endpoint, axis=axis)
        y = y if dtype is None else y.astype(floats_only(dtype))
        if retstep:
            steps = num - 1 if endpoint else num
            return y, (stop - start) / steps if steps > 0 else (stop - start) * np.nan
        return y

    def vjp_start(dy, y, num=50, endpoint=True, axis=0):
        return summed(dy * (1 - ramp(y, num, endpoint, axis)), axis)

    def vjp_stop(dy, y, num=50, endpoint=True, axis=0):
        return summed(dy * ramp(y, num, endpoint, axis), axis)

    def jvp_start(start_dot, y, num=50, endpoint=True, axis=0):
        return widened(start_dot, y.ndim, axis) * (1 - ramp(y, num, endpoint, axis))

    def jvp_stop(stop_dot, y, num=50, endpoint=True, axis=0):
        return widened(stop_dot, y.ndim, axis) * ramp(y, num, endpoint, axis)

    def batch(start, stop, batched, rank, num=50, endpoint=True, dtype=None, axis=0):
        if rank < 1:
            by_example("no points")
        first = aligned(start, rank - 1) if "start" in batched else start
        last = aligned(stop, rank - 1) if "stop" in batched else stop
        return np.linspace(first, last, num, endpoint=endpoint, dtype=dtype, axis=shifted(axis))


@static
def floats_only(dtype):
    if np.dtype(dtype).kind not in "fc":
        raise ValueError(f"np.linspace in {np.dtype(dtype)} rounds its numbers: it has no derivative rule",
                         "Round afterwards: np.floor(np.linspace(...)).astype(int).")
    return np.dtype(dtype)
