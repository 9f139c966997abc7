# SPDX-License-Identifier: Apache-2.0
"""Random bits, and uniform distributions of floats, integers and bools."""
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gradscribe.random import threefry
from gradscribe.random.keys import split
from gradscribe.random.threefry import lengths, words

__all__ = ["bernoulli", "bits", "rademacher", "randint", "uniform"]

INT64_MAX = 2**63 - 1


def bits(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.uint64) -> NDArray:
    """Random bits, as an array of unsigned integers. Raises ValueError for another dtype.

    >>> bits(np.zeros(2, np.uint32), (2,), np.uint32)
    array([4070199207, 4202968722], dtype=uint32)
    """
    shape, n = lengths(shape)
    return flat_bits(key, n, np.uint64 if dtype is None else dtype).reshape(shape)


def flat_bits(key: NDArray, n: int, dtype: DTypeLike) -> NDArray:
    """An array of n random unsigned integers."""
    if not np.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(f"bits are unsigned integers, not {dtype}")
    size = np.zeros((), dtype).itemsize
    if not threefry.PARTITIONABLE and size < 4:
        return parts(key, n, dtype)
    upper, lower = words(key, n, size == 8)
    if size == 8:
        return upper.astype(np.uint64) << np.uint64(32) | lower.astype(np.uint64)
    return (upper ^ lower).astype(dtype)


def parts(key, n, dtype):
    """n unsigned integers of less than 32 bits in the older layout: several per word, lowest bits first."""
    size = np.zeros((), dtype).itemsize
    whole, _ = words(key, (n * size + 3) // 4, False)
    shifts = np.arange(4 // size, dtype=np.uint32) * np.uint32(8 * size)
    return (whole[:, np.newaxis] >> shifts).astype(dtype).reshape(-1)[:n]


def floating(dtype: DTypeLike | None) -> DTypeLike:
    """The dtype of floats to draw; float64 for None. ValueError unless it is float32 or float64."""
    if dtype is None:
        return np.float64
    if not np.issubdtype(dtype, np.floating) or np.zeros((), dtype).itemsize not in (4, 8):
        raise ValueError(f"random real numbers are float32 or float64, not {dtype}")
    return dtype


def unit(key: NDArray, n: int, dtype: DTypeLike) -> NDArray:
    """An array of n numbers in [0, 1), with as many random bits as the fraction of the mantissa."""
    upper, lower = words(key, n, np.zeros((), dtype).itemsize == 8)
    return fraction(upper, lower, dtype)


def fraction(upper: NDArray[np.uint32], lower: NDArray[np.uint32], dtype: DTypeLike) -> NDArray:
    """Numbers in [0, 1) from two words each: 23 bits of both in float32, 52 in float64, where each part is exact."""
    if np.zeros((), dtype).itemsize == 4:
        return ((upper ^ lower) >> np.uint32(9)).astype(dtype) * np.float32(2.0**-23)
    return upper.astype(np.float64) * 2.0**-32 + (lower >> np.uint32(12)).astype(np.float64) * 2.0**-52


def uniform(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64,
            minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0) -> NDArray:
    """Uniform numbers in [minval, maxval); the bounds are broadcast to shape.

    Raises ValueError for a dtype other than float32 and float64, and for shapes that do not fit.

    >>> uniform(np.zeros(2, np.uint32), (2,), np.float32)
    array([0.947667 , 0.9785799], dtype=float32)
    """
    shape, n = lengths(shape)
    dtype = floating(dtype)
    number = unit(key, n, dtype)
    if np.ndim(minval) == 0 and np.ndim(maxval) == 0:
        return between(number, minval, maxval, dtype).reshape(shape)
    return between(number.reshape(shape), minval, maxval, dtype).reshape(shape)


def between(number: NDArray, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike) -> NDArray:
    """A number in [0, 1) scaled to [minval, maxval); the largest may be rounded to maxval."""
    low, high = np.asarray(minval, dtype), np.asarray(maxval, dtype)
    return np.maximum(low, number * (high - low) + low)


def bernoulli(key: NDArray, p: ArrayLike = 0.5, shape: int | tuple[int, ...] | None = None,
              mode: str = "low") -> NDArray[np.bool_]:
    """True with probability p, of dtype bool and the given shape or that of p.

    mode "high" uses twice as many bits, for small p in float32. Raises ValueError for another mode and for shapes that
    do not fit, TypeError if p is not a real float.

    >>> bernoulli(np.zeros(2, np.uint32), 0.5, (4,))
    array([ True,  True, False, False])
    """
    if mode not in ("low", "high"):
        raise ValueError("the mode of bernoulli is 'low' or 'high'")
    p = np.asarray(p)
    if not np.issubdtype(p.dtype, np.floating):
        raise TypeError("the probability of bernoulli is in floating point")
    shape, n = lengths(np.shape(p) if shape is None else shape)
    if mode == "low":
        number = unit(key, n, p.dtype)
        return (number < p).reshape(shape) if p.ndim == 0 else (number.reshape(shape) < p).reshape(shape)
    coarse, fine = unit(key, 2 * n, p.dtype).reshape((2, *shape))
    digits = 23 if p.itemsize == 4 else 52
    return (fine * 2.0**-digits < p - coarse).reshape(shape)


def rademacher(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.int64) -> NDArray:
    """-1 or 1 with equal probability.

    >>> rademacher(np.zeros(2, np.uint32), (4,))
    array([ 1,  1, -1, -1])
    """
    heads = bernoulli(key, 0.5, shape).astype(np.int64 if dtype is None else dtype)
    return 2 * heads - 1


def randint(key: NDArray, shape: int | tuple[int, ...], minval: ArrayLike, maxval: ArrayLike,
            dtype: DTypeLike = np.int64) -> NDArray:
    """Integers in [minval, maxval); the bounds are broadcast to shape. For an empty range, minval.

    A random integer of twice the width is taken modulo the length of the range. If that is not a power of two, small
    results are more likely, by less than the square of the length over 2 to the power of that width. For dtypes of less
    than 32 bits, 64 bits are drawn. Bounds beyond the range of the dtype are clipped to it. Raises TypeError for a
    dtype that is not an integer dtype, ValueError for shapes that do not fit.

    >>> randint(np.zeros(2, np.uint32), (4,), 0, 10)
    array([5, 1, 5, 7])
    """
    shape, n = lengths(shape)
    dtype = np.int64 if dtype is None else dtype
    if not np.issubdtype(dtype, np.integer):
        raise TypeError(f"randint makes integers, not {dtype}")
    size, signed = np.zeros((), dtype).itemsize, np.issubdtype(dtype, np.signedinteger)
    highest = 2**(8 * size - 1) - 1 if signed else 2**(8 * size) - 1
    lowest = -highest - 1 if signed else 0
    if size == 8:
        return integers(key, shape, n, minval, maxval, lowest, highest, dtype, np.uint64)
    if size == 4:
        return integers(key, shape, n, minval, maxval, lowest, highest, dtype, np.uint32)
    least, most = np.clip(whole(minval), lowest, highest), np.clip(whole(maxval), lowest, highest + 1)
    return integers(key, shape, n, least, most, -2**31, 2**31 - 1, np.int32, np.uint32).astype(dtype)


def integers(key, shape, n, minval, maxval, lowest, highest, dtype, unsigned):
    """Integers of 32 or 64 bits in [minval, maxval), by unsigned arithmetic, which wraps around."""
    keys = split(key)
    upper, lower = flat_bits(keys[0], n, unsigned), flat_bits(keys[1], n, unsigned)
    least, most = whole(minval), whole(maxval)
    low, high = ended(least, lowest, highest, dtype), ended(most, lowest, highest, dtype)
    span = np.where(high <= low, unsigned(1), high.astype(unsigned) - low.astype(unsigned))
    beyond = most > np.asarray(min(highest, 2**64 - 1 if most.dtype == np.uint64 else INT64_MAX), most.dtype)
    span = np.where(beyond & (high > low), span + unsigned(1), span)
    everything = span == 0                                      # the range is that of the dtype
    span = np.where(everything, unsigned(1), span)
    base = unsigned(2**16 if unsigned is np.uint32 else 2**32) % span
    weight = base * base % span
    if span.size > 1:
        upper, lower = upper.reshape(shape), lower.reshape(shape)
    offset = (upper % span * weight + lower % span) % span
    offset = np.where(everything, lower, offset)
    return (low + offset.astype(dtype)).reshape(shape)


def whole(value):
    """An array of int64 or uint64 with at least one axis, since NumPy warns of scalars that overflow."""
    value = np.atleast_1d(np.asarray(value))
    return value if value.dtype == np.uint64 else value.astype(np.int64)


def ended(value, lowest, highest, dtype):
    """Integers clipped to the range of a dtype and converted to it."""
    if value.dtype == np.uint64:
        return np.minimum(value, np.uint64(highest)).astype(dtype)
    return np.clip(value, max(lowest, -INT64_MAX - 1), min(highest, INT64_MAX)).astype(dtype)
