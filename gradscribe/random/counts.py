# SPDX-License-Identifier: Apache-2.0
"""Discrete distributions of counts, as integers or integral floats; their derivative in any parameter is zero.

As in JAX, the entries of an array share the rounds of rejection: the value of an entry depends on how many rounds the
others need, and an entry that is drawn alone may differ.
"""
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import special

from gradscribe.random.keys import split
from gradscribe.random.threefry import lengths
from gradscribe.random.uniforms import floating, unit
from gradscribe.runtime.derivatives import stop_gradient

__all__ = ["binomial", "geometric", "multinomial", "poisson"]

# the remainder of Stirling's formula for ln k!, k = 0, ..., 9
STIRLING = np.array([0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                     0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.010411265261972,
                     0.00925546218271273, 0.00833056343336287])


def geometric(key: NDArray, p: ArrayLike, shape: int | tuple[int, ...] | None = None,
              dtype: DTypeLike = np.int64) -> NDArray:
    """The number of trials up to the first success, each with probability p; of the given shape or that of p.

    Raises ValueError for a dtype that is not an integer dtype, and for shapes that do not fit.

    >>> geometric(np.zeros(2, np.uint32), 0.1, (4,))
    array([ 9, 15,  1,  6])
    """
    dtype = integral(dtype)
    p = real(stop_gradient(p))
    shape, n = lengths(np.shape(p) if shape is None else shape)
    number = unit(key, n, p.dtype).reshape(shape)
    trials = np.floor(np.log(np.where(number == 0, np.asarray(1, p.dtype), number)) / np.log1p(-p)) + 1
    return trials.astype(dtype)


def integral(dtype):
    """The dtype of integers to draw; int64 for None."""
    if dtype is None:
        return np.int64
    if not np.issubdtype(dtype, np.integer):
        raise ValueError(f"random counts are integers, not {dtype}")
    return dtype


def real(value: ArrayLike) -> NDArray:
    """An array in floating point."""
    value = np.asarray(value)
    return value if np.issubdtype(value.dtype, np.floating) else value.astype(np.float64)


def poisson(key: NDArray, lam: ArrayLike, shape: int | tuple[int, ...] | None = None,
            dtype: DTypeLike = np.int64) -> NDArray:
    """Poisson counts with mean lam; of the given shape or that of lam. -1 where lam is NaN.

    Computed in float32: by products of uniform numbers for lam < 10 (D. Knuth: The Art of Computer Programming,
    volume 2, 3.4.1), else by transformed rejection (W. Hormann: The transformed rejection method for generating Poisson
    random variables, 1993). Raises ValueError for a dtype that is not an integer dtype, and for shapes that do not fit.

    >>> poisson(np.zeros(2, np.uint32), 3.0, (4,))
    array([0, 0, 4, 4])
    """
    dtype = integral(dtype)
    shape, n = lengths(np.shape(lam) if shape is None else shape)
    rate = np.broadcast_to(np.asarray(stop_gradient(lam), np.float32), shape).reshape(n)
    few = np.isnan(rate) | (rate < 10)
    small = knuth(key, np.where(few, rate, np.float32(0)))
    large = hormann(key, np.where(few, np.float32(1e5), rate), np.all(few))
    return np.where(rate == 0, np.float32(0), np.where(few, small, large)).reshape(shape).astype(dtype)


def knuth(key, rate):
    """The number of uniform numbers with a product above exp(-rate); -1 unless rate is positive."""
    count, log_product = np.full_like(rate, -1), np.zeros_like(rate)
    left = log_product > -rate
    while np.any(left):
        keys = split(key)
        key = keys[0]
        count = np.where(left, count + np.float32(1), count)
        log_product = log_product + np.log(np.maximum(unit(keys[1], rate.size, np.float32), np.float32(2.0**-126)))
        left = log_product > -rate
    return count


def hormann(key, rate, done):
    """Counts for rates of 10 or more, drawn until each entry is accepted once, or not at all if done."""
    log_rate = np.log(rate)
    b = np.float32(0.931) + np.float32(2.53) * np.sqrt(rate)
    a = np.float32(-0.059) + np.float32(0.02483) * b
    inverse = np.float32(1.1239) + np.float32(1.1328) / (b - np.float32(3.4))
    squeeze = np.float32(0.9277) - np.float32(3.6224) / (b - np.float32(2))
    count = np.full_like(rate, -1)
    finished = np.full_like(rate, done, np.bool_)
    while not np.all(finished):
        keys = split(key, 3)
        key = keys[0]
        u = unit(keys[1], rate.size, np.float32) - np.float32(0.5)
        v = unit(keys[2], rate.size, np.float32)
        inner = np.float32(0.5) - np.abs(u)
        safe = np.maximum(inner, np.float32(2.0**-30))      # a number that is rejected
        k = np.floor((np.float32(2) * a / safe + b) * u + rate + np.float32(0.43))
        s = np.log(np.maximum(v * inverse / (a / (safe * safe) + b), np.float32(2.0**-126)))
        t = -rate + k * log_rate - special.gammaln(np.maximum(k, np.float32(0)) + np.float32(1))
        at_once = (inner >= np.float32(0.07)) & (v <= squeeze)
        rejected = (k < 0) | ((inner < np.float32(0.013)) & (v > inner))
        taken = at_once | (~rejected & (s <= t))
        count = np.where(taken, k, count)
        finished = finished | taken
    return count


def binomial(key: NDArray, n: ArrayLike, p: ArrayLike, shape: int | tuple[int, ...] | None = None,
             dtype: DTypeLike = np.float64) -> NDArray:
    """The number of successes in n trials of probability p, as floats; of the given shape or that of n and p.

    By sums of geometric numbers for n p <= 10 (L. Devroye: Non-uniform random variate generation, 1986, X.4), else by
    transformed rejection (W. Hormann: The generation of binomial random variates, 1993). NaN where n or p is negative
    or NaN. Raises ValueError for a dtype other than float32 and float64, and for shapes that do not fit.

    >>> binomial(np.zeros(2, np.uint32), 10, 0.3, (4,))
    array([4., 1., 3., 4.])
    """
    dtype = floating(dtype)
    probability = real(stop_gradient(p))
    whole = probability.dtype
    shape, size = lengths(np.broadcast_shapes(np.shape(n), np.shape(p)) if shape is None else shape)
    trials = np.broadcast_to(np.asarray(stop_gradient(n), whole), shape).reshape(size)
    probability = np.broadcast_to(probability, shape).reshape(size)
    less = probability < 0.5
    q = np.where(less, probability, 1 - probability)
    no_trials = np.isnan(trials) | (trials < 0)
    no_chance = np.isnan(q) | (q < 0)
    q = np.where(no_chance, np.asarray(0.01, whole), q)
    endless = np.isinf(trials)
    trials = np.where(no_trials | endless, np.asarray(0, whole), np.floor(trials))
    few = trials * q <= 10
    small = geometric_sums(key, np.where(few, trials, np.asarray(0, whole)), q)
    large = rejection(key, np.where(few, np.asarray(10000, whole), trials), np.where(few, np.asarray(0.5, whole), q),
                      np.all(few))
    count = np.where(few, small, large)
    count = np.where(less | np.isnan(probability), count, trials - count)
    count = np.where(endless, np.asarray(np.inf, whole), count)
    return np.where(no_trials | no_chance, np.asarray(np.nan, whole), count).astype(dtype).reshape(shape)


def geometric_sums(key, trials, q):
    """The number of geometric numbers whose sum is at most the number of trials."""
    log_miss = np.log1p(-q)
    never = log_miss == 0
    count, total = np.full_like(q, -1), np.zeros_like(q)
    left = total <= trials
    while np.any(left):
        keys = split(key)
        key = keys[1]
        count = np.where(left, count + 1, count)
        number = np.maximum(unit(keys[0], q.size, q.dtype), np.asarray(2.0**-126, q.dtype))
        failures = np.ceil(np.log(number) / np.where(never, np.asarray(-1, q.dtype), log_miss))
        total = total + np.where(never, trials + 1, failures)
        left = total <= trials
    return count


def rejection(key, trials, q, done):
    """Counts for many trials, drawn until each entry is accepted once, or not at all if done."""
    spread = np.sqrt(trials * q * (1 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c = trials * q + 0.5
    squeeze = 0.92 - 4.2 / b
    odds = q / (1 - q)
    alpha = (2.83 + 5.1 / b) * spread
    m = np.floor((trials + 1) * q)
    fixed = (m + 0.5) * np.log((m + 1) / (odds * (trials - m + 1))) + stirling(m) + stirling(trials - m)
    count = np.full_like(q, -1)
    finished = np.full_like(q, done, np.bool_)
    while not np.all(finished):
        keys = split(key, 3)
        key = keys[0]
        u, v = unit(keys[1], q.size, q.dtype) - 0.5, unit(keys[2], q.size, q.dtype)
        inner = 0.5 - np.abs(u)
        safe = np.maximum(inner, np.asarray(2.0**-60, q.dtype))
        at_once = (inner >= 0.07) & (v <= squeeze)
        k = np.floor((2 * a / safe + b) * u + c)
        outside = (k < 0) | (k > trials)
        within = np.clip(k, 0, trials)
        height = np.log(np.maximum(v * alpha / (a / (safe * safe) + b), np.asarray(2.0**-126, q.dtype)))
        most = fixed + (trials + 1) * np.log((trials - m + 1) / (trials - within + 1)) - stirling(within) + (
            within + 0.5) * np.log(odds * (trials - within + 1) / (within + 1)) - stirling(trials - within)
        taken = at_once | (~outside & (height <= most))
        count = np.where(taken, k, count)
        finished = finished | taken
    return count


def stirling(k):
    """ln k! minus Stirling's formula, for integral k: from a table, and by three terms of the series from 10 on."""
    square = (k + 1) * (k + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, STIRLING.astype(k.dtype)[np.clip(k, 0, 9).astype(np.int64)], series)


def multinomial(key: NDArray, n: ArrayLike, p: ArrayLike, *, shape: tuple[int, ...] | None = None,
                dtype: DTypeLike = np.float64) -> NDArray:
    """The number of trials, of n, with each outcome along the last axis of p, as floats; of the shape of p.

    Drawn by one `binomial` for each outcome. n is (...), p is (..., k) and need not sum to 1.

    >>> multinomial(np.zeros(2, np.uint32), 10, np.array([0.2, 0.3, 0.5]))
    array([1., 4., 5.])
    """
    p, dtype = real(stop_gradient(p)), floating(dtype)
    shape, _ = lengths(np.shape(p) if shape is None else shape)
    p = np.broadcast_to(p, shape)
    left = np.broadcast_to(np.asarray(stop_gradient(n), p.dtype), shape[:-1])
    rest = np.flip(np.cumsum(np.flip(p, -1), -1), -1)
    share = np.clip(p / np.where(rest == 0, np.asarray(1, p.dtype), rest), 0, 1)
    keys = split(key, p.shape[-1])
    counts = np.zeros(shape, p.dtype)
    for i in range(p.shape[-1]):
        count = binomial(keys[i], left, share[..., i], None, p.dtype)
        counts[..., i] = count
        left = left - count
    return counts.astype(dtype)
