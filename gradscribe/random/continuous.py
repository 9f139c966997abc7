# SPDX-License-Identifier: Apache-2.0
"""Continuous distributions by inversion: each number is a function of one uniform number."""
import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gradscribe.random.threefry import lengths
from gradscribe.random.uniforms import floating, unit

__all__ = ["cauchy", "exponential", "gumbel", "laplace", "logistic", "pareto", "rayleigh", "triangular", "weibull_min"]

TINY = {4: 2.0**-126, 8: 2.0**-1022}                        # the smallest normal number, by size in bytes
STEP = {4: 2.0**-23, 8: 2.0**-52}                           # the machine epsilon, by size in bytes


def positive(key, n, dtype):
    """An array of n numbers in (0, 1), with the smallest normal number instead of 0."""
    number = unit(key, n, dtype)
    return np.maximum(number, np.asarray(TINY[np.zeros((), dtype).itemsize], dtype))


def exponential(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density exp(-x), x >= 0. Like all of this module, ValueError unless dtype is float32 or float64.

    >>> exponential(np.zeros(2, np.uint32), (2,)).round(6)
    array([0.542071, 0.243723])
    """
    shape, n = lengths(shape)
    return (-np.log1p(-unit(key, n, floating(dtype)))).reshape(shape)


def gumbel(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64,
           mode: str = "low") -> NDArray:
    """Numbers of density exp(-x - exp(-x)), the distribution of maxima.

    mode "high" uses twice as many bits, for rare large numbers in float32. Raises ValueError for another mode.

    >>> gumbel(np.zeros(2, np.uint32), (2,)).round(6)
    array([ 0.137906, -0.425993])
    """
    mode = "low" if mode is None else mode
    if mode not in ("low", "high"):
        raise ValueError("the mode of gumbel is 'low' or 'high'")
    shape, n = lengths(shape)
    dtype = floating(dtype)
    if mode == "low":
        return (-np.log(-np.log(positive(key, n, dtype)))).reshape(shape)
    coarse, fine = unit(key, 2 * n, dtype).reshape((2, n))
    size = np.zeros((), dtype).itemsize
    small = coarse + np.asarray(STEP[size], dtype) * fine + np.asarray(TINY[size], dtype)
    return (-np.log(-np.log1p(-np.where(coarse >= 0.5, coarse, small)))).reshape(shape)


def laplace(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density exp(-|x|) / 2.

    >>> laplace(np.zeros(2, np.uint32), (2,)).round(6)
    array([0.178034, 0.837963])
    """
    shape, n = lengths(shape)
    dtype = floating(dtype)
    least = np.asarray(0.5 * STEP[np.zeros((), dtype).itemsize] - 1.0, dtype)
    number = unit(key, n, dtype) * np.asarray(2.0, dtype) + least
    return (np.sign(number) * np.log1p(-np.abs(number))).reshape(shape)


def logistic(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density exp(-x) / (1 + exp(-x)) ** 2.

    >>> logistic(np.zeros(2, np.uint32), (2,)).round(6)
    array([-0.32911 , -1.287387])
    """
    shape, n = lengths(shape)
    number = positive(key, n, floating(dtype))
    return (np.log(number) - np.log1p(-number)).reshape(shape)


def cauchy(key: NDArray, shape: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density 1 / (pi (1 + x ** 2)).

    >>> cauchy(np.zeros(2, np.uint32), (2,)).round(6)
    array([-0.26193 , -1.237846])
    """
    shape, n = lengths(shape)
    dtype = floating(dtype)
    least = STEP[np.zeros((), dtype).itemsize]
    number = unit(key, n, dtype) * np.asarray(1.0 - least, dtype) + np.asarray(least, dtype)
    return np.tan(np.asarray(math.pi, dtype) * (number - np.asarray(0.5, dtype))).reshape(shape)


def pareto(key: NDArray, b: ArrayLike, shape: int | tuple[int, ...] | None = None,
           dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density b / x ** (b + 1), x >= 1; of the given shape or that of b.

    >>> pareto(np.zeros(2, np.uint32), 2.0, (2,)).round(6)
    array([1.311321, 1.129598])
    """
    dtype = floating(dtype)
    shape = np.shape(b) if shape is None else shape
    return np.exp(exponential(key, shape, dtype) / np.asarray(b, dtype))


def weibull_min(key: NDArray, scale: float | NDArray, concentration: float | NDArray, shape: int | tuple[int, ...] = (),
                dtype: DTypeLike = np.float64) -> NDArray:
    """scale times an exponential number to the power 1 / concentration; parameters are broadcast to the given shape.

    >>> weibull_min(np.zeros(2, np.uint32), 1.0, 2.0, (2,)).round(6)
    array([0.736254, 0.493683])
    """
    dtype = floating(dtype)
    power = np.asarray(1.0, dtype) / concentration
    return exponential(key, shape, dtype) ** power * scale


def rayleigh(key: NDArray, scale: ArrayLike, shape: int | tuple[int, ...] | None = None,
             dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers of density x / s ** 2 exp(-x ** 2 / (2 s ** 2)), s the scale; of the given shape or that of scale.

    >>> rayleigh(np.zeros(2, np.uint32), 1.0, (2,)).round(6)
    array([1.319986, 1.74992 ])
    """
    dtype = floating(dtype)
    shape, n = lengths(np.shape(scale) if shape is None else shape)
    root = np.sqrt(np.log(unit(key, n, dtype)) * np.asarray(-2.0, dtype))
    return np.asarray(scale, dtype) * root.reshape(shape)


def triangular(key: NDArray, left: ArrayLike, mode: ArrayLike, right: ArrayLike,
               shape: int | tuple[int, ...] | None = None, dtype: DTypeLike = np.float64) -> NDArray:
    """Numbers in [left, right] of a density that rises linearly to mode and then falls linearly.

    >>> triangular(np.zeros(2, np.uint32), 0.0, 0.5, 1.0, (2,)).round(6)
    array([0.457415, 0.328858])
    """
    dtype = floating(dtype)
    parameters = np.broadcast_shapes(np.shape(left), np.shape(mode), np.shape(right))
    shape, n = lengths(parameters if shape is None else shape)
    left, mode, right = np.asarray(left, dtype), np.asarray(mode, dtype), np.asarray(right, dtype)
    number = unit(key, n, dtype).reshape(shape)
    rising = left + np.sqrt(number * (right - left) * (mode - left))
    falling = right - np.sqrt((1 - number) * (right - left) * (right - mode))
    return np.where(number < (mode - left) / (right - left), rising, falling)
