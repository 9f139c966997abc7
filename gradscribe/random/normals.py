# SPDX-License-Identifier: Apache-2.0
"""Normal distributions, and distributions derived from them."""
import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import special

from gradscribe.random.inverse import erfinv
from gradscribe.random.keys import split
from gradscribe.random.threefry import lengths
from gradscribe.random.uniforms import between, floating, rademacher, uniform, unit
from gradscribe.runtime.derivatives import stop_gradient

__all__ = ["double_sided_maxwell", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal",
           "truncated_normal", "wald"]

ROOT_2 = math.sqrt(2.0)
METHODS = ("cholesky", "eigh", "svd")


def normal(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64) -> NDArray:
    """Standard normal numbers, by the inverse error function of uniform ones.

    For a complex dtype, complex numbers of variance 1. Raises ValueError for a dtype that is neither complex nor
    float32 nor float64.

    >>> normal(np.zeros(2, np.uint32), (2,)).round(6)
    array([-0.205842, -0.784766])
    """
    shape, n = lengths(shape)
    if np.issubdtype(np.float64 if dtype is None else dtype, np.complexfloating):
        keys = split(key)
        part = np.float32 if np.zeros((), dtype).itemsize == 8 else np.float64
        real, imaginary = flat_normal(keys[0], n, part), flat_normal(keys[1], n, part)
        return ((real + 1j * imaginary) / part(ROOT_2)).reshape(shape)
    return flat_normal(key, n, floating(dtype)).reshape(shape)


def flat_normal(key, n, dtype):
    """An array of n standard normal numbers."""
    return normal_of(unit(key, n, dtype))


def normal_of(number: NDArray) -> NDArray:
    """Standard normal numbers from numbers in [0, 1), with 0 replaced by the smallest positive one."""
    if number.dtype == np.float32:
        return np.float32(ROOT_2) * erfinv(number * np.float32(2.0) + np.float32(2.0**-24 - 1.0))
    return ROOT_2 * erfinv(number * 2.0 + (2.0**-53 - 1.0))


def truncated_normal(key: NDArray, lower: ArrayLike, upper: ArrayLike, shape: int | tuple[int, ...] | None = None,
                     dtype: DTypeLike = np.float64) -> NDArray:
    """Normal numbers in the open interval (lower, upper), of the given shape or the broadcast shape of the bounds.

    Raises ValueError for a dtype other than float32 and float64, and for shapes that do not fit.

    >>> truncated_normal(np.zeros(2, np.uint32), 0.0, 1.0, (2,)).round(6)
    array([0.366055, 0.186137])
    """
    dtype = floating(dtype)
    shape, n = lengths(np.broadcast_shapes(np.shape(lower), np.shape(upper)) if shape is None else shape)
    low, high = np.asarray(lower, dtype), np.asarray(upper, dtype)
    root = np.asarray(ROOT_2, dtype)
    number = between(unit(key, n, dtype).reshape(shape), special.erf(low / root), special.erf(high / root), dtype)
    least = np.nextafter(stop_gradient(low), np.asarray(np.inf, dtype))
    most = np.nextafter(stop_gradient(high), np.asarray(-np.inf, dtype))
    return np.clip(root * special.erfinv(number), least, most)


def multivariate_normal(key: NDArray, mean: ArrayLike, cov: ArrayLike, shape: int | tuple[int, ...] | None = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky") -> NDArray:
    """Normal vectors with mean (..., n) and covariance (..., n, n): an array of shape (*shape, n).

    shape: by default the broadcast shape of the leading axes. method: the factorisation of cov, "cholesky", or "eigh"
    or "svd" for a singular one. dtype: by default that of mean and cov. Raises ValueError for another method, for a
    dtype other than float32 and float64, and for shapes that do not fit.

    >>> multivariate_normal(np.zeros(2, np.uint32), np.array([0.0, 5.0]), np.eye(2)).round(6)
    array([-0.205842,  4.215234])
    """
    if method not in METHODS:
        raise ValueError("the method of multivariate_normal is 'cholesky', 'eigh' or 'svd'")
    if np.ndim(mean) < 1:
        raise ValueError("the mean of multivariate_normal is a vector")
    if np.ndim(cov) < 2:
        raise ValueError("the covariance of multivariate_normal is a matrix")
    mean, cov = np.asarray(mean), np.asarray(cov)
    whole = np.result_type(mean.dtype, cov.dtype)
    dtype = (whole if np.issubdtype(whole, np.floating) else np.float64) if dtype is None else floating(dtype)
    if shape is None:
        shape = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape, _ = lengths(shape)
    sample = normal(key, (*shape, mean.shape[-1]), dtype)
    if method == "svd":
        u, s, _ = np.linalg.svd(cov)
        factor = u * np.sqrt(s[..., np.newaxis, :])
    elif method == "eigh":
        s, u = np.linalg.eigh(cov)
        factor = u * np.sqrt(s[..., np.newaxis, :])
    else:
        factor = np.linalg.cholesky(cov)
    if cov.ndim == 2:
        return mean + sample @ factor.T
    return mean + (factor @ sample[..., np.newaxis])[..., 0]


def lognormal(key: NDArray, sigma: ArrayLike = 1.0, shape: int | tuple[int, ...] | None = None,
              dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers whose logarithms are normal with standard deviation sigma; of the given shape or that of sigma.

    >>> lognormal(np.zeros(2, np.uint32), 0.5, (2,)).round(6)
    array([0.902198, 0.675445])
    """
    shape = np.shape(sigma) if shape is None else shape
    return np.exp(normal(key, shape, dtype) * np.asarray(sigma, np.float64 if dtype is None else dtype))


def maxwell(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64) -> NDArray:
    """The norms of vectors of three standard normal numbers.

    >>> maxwell(np.zeros(2, np.uint32), (2,)).round(6)
    array([1.98907 , 0.424607])
    """
    shape, _ = lengths(shape)
    return np.sqrt(np.sum(normal(key, (*shape, 3), floating(dtype)) ** 2, axis=-1))


def double_sided_maxwell(key: NDArray, loc: float | NDArray, scale: float | NDArray, shape: int | tuple[int, ...] = (),
                         dtype: DTypeLike = np.float64) -> NDArray:
    """loc + scale times `maxwell` with a random sign; the shape is that of loc and scale after the given shape.

    As in JAX, the default of shape is the shape of loc and scale too, so that this occurs twice in the result.

    >>> double_sided_maxwell(np.zeros(2, np.uint32), 0.0, 1.0, (2,)).round(6)
    array([ 1.984612, -2.478207])
    """
    dtype = floating(dtype)
    parameters = np.broadcast_shapes(np.shape(loc), np.shape(scale))
    shape, _ = lengths(shape)
    whole = (*(shape or parameters), *parameters)
    keys = split(key)
    return rademacher(keys[1], whole, dtype) * maxwell(keys[0], whole, dtype) * scale + loc


def orthogonal(key: NDArray, n: int, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64,
               m: int | None = None) -> NDArray:
    """Uniformly distributed matrices (*shape, n, m) with orthonormal columns, or rows if n is less than m.

    By a QR factorisation of a normal matrix, with the signs of F. Mezzadri: How to generate random matrices from the
    classical compact groups, Notices of the AMS 54, 2007. m is n by default; unitary for a complex dtype.

    >>> q = orthogonal(np.zeros(2, np.uint32), 3)
    >>> bool(np.allclose(q @ q.T, np.eye(3)))
    True
    """
    shape, _ = lengths(shape)
    m = n if m is None else m
    q, r = np.linalg.qr(normal(key, (*shape, max(n, m), min(n, m)), dtype))
    q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., np.newaxis, :]
    return np.swapaxes(q, -1, -2) if n < m else q


def wald(key: NDArray, mean: ArrayLike, shape: int | tuple[int, ...] | None = None,
         dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of the inverse Gaussian distribution with a mean, of the given shape or that of mean.

    J. Michael, W. Schucany, R. Haas: Generating random variates using transformations with multiple roots, 1976.

    >>> wald(np.zeros(2, np.uint32), 1.0, (2,)).round(6)
    array([0.187003, 1.610732])
    """
    dtype = floating(dtype)
    shape = np.shape(mean) if shape is None else shape
    keys = split(key)
    mean = np.asarray(mean, dtype)
    v, z = normal(keys[0], shape, dtype), uniform(keys[1], shape, dtype)
    y = v * v
    x = mean + mean * mean * y / 2 - mean / 2 * np.sqrt(4 * mean * y + mean * mean * (y * y))
    return np.where(z <= mean / (mean + x), x, mean * mean / x)
