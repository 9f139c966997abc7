# SPDX-License-Identifier: Apache-2.0
"""Gamma distributions, and distributions derived from them.

G. Marsaglia, W. Tsang: A simple method for generating gamma variables, ACM TOMS 26, 2000, doi:10.1145/358407.358414.
Each entry has its own key and is drawn until it is accepted. The derivative in the parameter a keeps the cumulative
probability of the number constant: M. Figurnov, S. Mohamed, A. Mnih: Implicit reparameterization gradients, NeurIPS
2018, equation 5.
"""
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import special

from gradscribe.random.continuous import exponential
from gradscribe.random.keys import split
from gradscribe.random.normals import normal, normal_of
from gradscribe.random.threefry import first_words, lengths, split_each
from gradscribe.random.uniforms import floating, fraction, rademacher
from gradscribe.runtime.derivatives import stop_gradient

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"]

SQUEEZE = 0.0331                                            # figure 1 of the paper
LEAST = {4: 2.0**-126, 8: 2.0**-1022}


def gamma(key: NDArray, a: ArrayLike, shape: int | tuple[int, ...] | None = None,
          dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density x ** (a - 1) exp(-x) / Gamma(a), of the given shape or that of a.

    The second derivative in a is not supported. Like all of this module, ValueError unless dtype is float32 or float64,
    and for shapes that do not fit.

    >>> gamma(np.zeros(2, np.uint32), 3.0, (2,)).round(6)
    array([2.262911, 1.962139])
    """
    dtype = floating(dtype)
    shape, n = lengths(np.shape(a) if shape is None else shape)
    alpha = np.broadcast_to(np.asarray(a, dtype), shape).reshape(n)
    fixed = stop_gradient(alpha)
    scaled, boost = accepted(key, fixed)
    sample = scaled * np.where(fixed >= 1, np.asarray(1, dtype), (1 - boost) ** (1 / fixed))
    return (sample - sample * later(alpha, fixed, sample)).reshape(shape)


def loggamma(key: NDArray, a: ArrayLike, shape: int | tuple[int, ...] | None = None,
             dtype: DTypeLike = np.float64) -> NDArray:
    """The logarithms of the numbers of `gamma` with the same key; accurate even if those underflow, for small a.

    >>> loggamma(np.zeros(2, np.uint32), 3.0, (2,)).round(6)
    array([0.816652, 0.674035])
    """
    dtype = floating(dtype)
    shape, n = lengths(np.shape(a) if shape is None else shape)
    alpha = np.broadcast_to(np.asarray(a, dtype), shape).reshape(n)
    fixed = stop_gradient(alpha)
    scaled, boost = accepted(key, fixed)
    sample = np.log(scaled) + np.where(fixed >= 1, np.asarray(0, dtype), np.log1p(-boost) * (1 / fixed))
    return (sample - later(alpha, fixed, np.exp(sample))).reshape(shape)


def later(a, fixed, sample):
    """Zero with a derivative: that of the cumulative probability in a, divided by the sample times its density."""
    x = np.maximum(sample, np.asarray(LEAST[sample.itemsize], sample.dtype))
    weight = np.exp(fixed * np.log(x) - x - special.gammaln(fixed))
    return (special.gammainc(a, x) - special.gammainc(fixed, x)) / weight


def first(keys, dtype):
    """A uniform number in [0, 1) for each key."""
    upper, lower = first_words(keys, np.zeros((), dtype).itemsize == 8)
    return fraction(upper, lower, dtype)


def accepted(key, a):
    """For each entry of a, a gamma number for a, or for a + 1 if a < 1; and a uniform number in [0, 1)."""
    dtype, n = a.dtype, a.size
    pairs = split_each(split_each(key[:, np.newaxis], n)[:, :, 0], 2)
    d = np.where(a >= 1, a, a + 1) - np.asarray(1.0 / 3.0, dtype)
    c = np.asarray(1.0 / 3.0, dtype) / np.sqrt(d)
    keys, cubes, left = pairs[:, 0], np.ones(n, dtype), np.ones(n, np.bool_)
    while np.any(left):
        three = split_each(keys, 3)
        x = above(three[:, 1], c, left)
        cube = (1 + x * c) ** 3
        cubes = np.where(left, cube, cubes)
        left = left & outside(x * x, cube, first(three[:, 2], dtype), d)
        keys = three[:, 0]
    return d * cubes, first(pairs[:, 1], dtype)


def above(keys, c, left):
    """For each key in `left` a normal number x with 1 + c x > 0."""
    x = np.zeros(c.size, c.dtype)
    while np.any(left):
        pairs = split_each(keys, 2)
        drawn = normal_of(first(pairs[:, 1], c.dtype))
        x = np.where(left, drawn, x)
        left = left & (1 + drawn * c <= 0)
        keys = pairs[:, 0]
    return x


def outside(square, cube, even, d):
    """Where a number is rejected; the first test needs no logarithm."""
    squeezed = even >= 1 - np.asarray(SQUEEZE, d.dtype) * (square * square)
    least = np.maximum(even, np.asarray(LEAST[d.itemsize], d.dtype))
    return squeezed & (np.log(least) >= square / 2 + d * (1 - cube + np.log(cube)))


def beta(key: NDArray, a: ArrayLike, b: ArrayLike, shape: int | tuple[int, ...] | None = None,
         dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density proportional to x ** (a - 1) (1 - x) ** (b - 1), of the given shape or that of a and b.

    >>> beta(np.zeros(2, np.uint32), 2.0, 3.0, (2,)).round(6)
    array([0.327956, 0.613809])
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(b)) if shape is None else shape
    keys = split(key)
    log_a, log_b = loggamma(keys[0], a, shape, dtype), loggamma(keys[1], b, shape, dtype)
    most = np.maximum(log_a, log_b)
    part, rest = np.exp(log_a - most), np.exp(log_b - most)
    return part / (part + rest)


def dirichlet(key: NDArray, alpha: ArrayLike, shape: int | tuple[int, ...] | None = None,
              dtype: DTypeLike = np.float64) -> NDArray:
    """Vectors (*shape, n) that sum to 1, of density proportional to the product of x ** (alpha - 1), alpha (..., n).

    >>> dirichlet(np.zeros(2, np.uint32), np.array([1.0, 2.0, 3.0])).round(6)
    array([0.070653, 0.167056, 0.762291])
    """
    if np.ndim(alpha) < 1:
        raise ValueError("the parameter of dirichlet is a vector")
    shape, _ = lengths(np.shape(alpha)[:-1] if shape is None else shape)
    logs = loggamma(key, alpha, (*shape, np.shape(alpha)[-1]), dtype)
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return parts / np.sum(parts, axis=-1, keepdims=True)


def chisquare(key: NDArray, df: ArrayLike, shape: int | tuple[int, ...] | None = None,
              dtype: DTypeLike = np.float64) -> NDArray:
    """Sums of the squares of df normal numbers, of the given shape or that of df.

    >>> chisquare(np.zeros(2, np.uint32), 3.0, (2,)).round(6)
    array([1.813893, 1.448354])
    """
    dtype = floating(dtype)
    return np.exp(loggamma(key, np.asarray(df, dtype) / 2, shape, dtype)) * 2


def t(key: NDArray, df: ArrayLike, shape: int | tuple[int, ...] | None = None,
      dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of Student's t distribution with df degrees of freedom, of the given shape or that of df.

    >>> t(np.zeros(2, np.uint32), 3.0, (2,)).round(6)
    array([ 1.401159, -0.607246])
    """
    dtype = floating(dtype)
    shape = np.shape(df) if shape is None else shape
    half = np.asarray(df, dtype) / 2
    keys = split(key)
    return normal(keys[0], shape, dtype) * np.sqrt(half / gamma(keys[1], half, shape, dtype))


def f(key: NDArray, dfnum: ArrayLike, dfden: ArrayLike, shape: int | tuple[int, ...] | None = None,
      dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of the F distribution: the ratio of two `chisquare` numbers, each divided by its degrees of freedom.

    >>> f(np.zeros(2, np.uint32), 3.0, 4.0, (2,)).round(6)
    array([1.548295, 0.340787])
    """
    dtype = floating(dtype)
    shape = np.broadcast_shapes(np.shape(dfnum), np.shape(dfden)) if shape is None else shape
    above_, below = np.asarray(dfnum, dtype), np.asarray(dfden, dtype)
    keys = split(key)
    return chisquare(keys[1], above_, shape, dtype) / above_ / (chisquare(keys[0], below, shape, dtype) / below)


def generalized_normal(key: NDArray, p: float, shape: int | tuple[int, ...] = (),
                       dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density proportional to exp(-|x| ** p).

    >>> generalized_normal(np.zeros(2, np.uint32), 3.0, (2,)).round(6)
    array([ 0.746637, -1.079204])
    """
    dtype = floating(dtype)
    keys = split(key)
    return rademacher(keys[1], shape, dtype) * gamma(keys[0], 1 / p, shape, dtype) ** (1 / p)


def ball(key: NDArray, d: int, p: float = 2, shape: int | tuple[int, ...] = (),
         dtype: DTypeLike = np.float64) -> NDArray:
    """Vectors (*shape, d), uniformly distributed in the unit ball of the p-norm.

    F. Barthe, O. Guedon, S. Mendelson, A. Naor: A probabilistic approach to the geometry of the l_p^n ball, 2005.

    >>> ball(np.zeros(2, np.uint32), 2).round(6)
    array([-0.870151, -0.45473 ])
    """
    dtype = floating(dtype)
    shape, _ = lengths(shape)
    keys = split(key)
    g = generalized_normal(keys[0], p, (*shape, d), dtype)
    norm = (np.sum(np.abs(g) ** p, axis=-1) + exponential(keys[1], shape, dtype)) ** (1 / p)
    return g / norm[..., np.newaxis]
