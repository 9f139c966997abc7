# SPDX-License-Identifier: Apache-2.0
"""The initialisers of jax.nn.initializers: functions init(key, shape, dtype) -> array, and functions that make these.

For the same key they return JAX's numbers up to rounding.  dtype is float64 by default.
"""
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gradscribe import random

__all__ = ["Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
           "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
           "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros"]

Initializer = Callable[..., np.ndarray]
Axes = int | Sequence[int]

# The standard deviation of the standard normal distribution truncated to [-2, 2].
CUT_REAL, CUT_COMPLEX = 0.87962566103423978, 0.95311164380491208

MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
DISTRIBUTIONS = ("truncated_normal", "normal", "uniform")


def zeros(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = np.float64) -> np.ndarray:
    """An array of zeros; the key is not used.

    >>> zeros(None, (2,)).tolist()
    [0.0, 0.0]
    """
    return np.zeros(shape, dtype)


def ones(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = np.float64) -> np.ndarray:
    """An array of ones; the key is not used.

    >>> ones(None, (2,)).tolist()
    [1.0, 1.0]
    """
    return np.ones(shape, dtype)


def constant(value: ArrayLike, dtype: DTypeLike = np.float64) -> Initializer:
    """An initialiser with one value.

    >>> constant(7.0)(None, (2,)).tolist()
    [7.0, 7.0]
    """
    def init(key, shape, dtype=dtype):
        return np.full(shape, value, dtype)
    return init


def uniform(scale: float = 1e-2, dtype: DTypeLike = np.float64) -> Initializer:
    """An initialiser with uniform numbers between 0 and scale.

    >>> uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def init(key, shape, dtype=dtype):
        return random.uniform(key, shape, dtype) * np.asarray(scale, dtype)
    return init


def normal(stddev: float = 1e-2, dtype: DTypeLike = np.float64) -> Initializer:
    """An initialiser with normal numbers of mean 0 and the given standard deviation.

    >>> normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def init(key, shape, dtype=dtype):
        return random.normal(key, shape, dtype) * np.asarray(stddev, dtype)
    return init


def truncated_normal(stddev: float = 1e-2, dtype: DTypeLike = np.float64, lower: float = -2.0,
                     upper: float = 2.0) -> Initializer:
    """An initialiser with stddev times standard normal numbers truncated to [lower, upper].

    >>> bool(np.all(np.abs(truncated_normal(1.0)(random.key(0), (100,))) <= 2.0))
    True
    """
    def init(key, shape, dtype=dtype):
        return random.truncated_normal(key, lower, upper, shape, dtype) * np.asarray(stddev, dtype)
    return init


def _product(shape, axes):
    return shape[axes] if isinstance(axes, int) else math.prod(shape[i] for i in axes)


def _fans(shape, in_axis, out_axis, batch_axis):
    """The numbers of inputs and outputs of a weight array; other axes are those of a convolution's window."""
    if isinstance(in_axis, int) and in_axis == -2 and len(shape) <= 1:
        raise ValueError(f"an array of {len(shape)} axes has no axis -2 for its inputs: give in_axis")
    inputs, outputs = _product(shape, in_axis), _product(shape, out_axis)
    window = math.prod(shape) / inputs / outputs / _product(shape, batch_axis)
    return inputs * window, outputs * window


def _complex_uniform(key, shape, dtype):
    """Uniform complex numbers in a disk, with mean 0 and variance 1."""
    real = np.empty(0, dtype).real.dtype
    of_radius, of_angle = random.split(key)
    radius = np.sqrt(2 * random.uniform(of_radius, shape, real)).astype(dtype)
    return radius * np.exp(2j * np.pi * random.uniform(of_angle, shape, real).astype(dtype)).astype(dtype)


def _complex_truncated_normal(key, upper, shape, dtype):
    """Complex normal numbers of variance 1, truncated to absolute values up to upper."""
    real = np.empty(0, dtype).real.dtype
    of_radius, of_angle = random.split(key)
    share = (1 - np.exp(np.asarray(-upper**2, dtype))) * random.uniform(of_radius, shape, real).astype(dtype)
    radius = np.sqrt(-np.log(1 - share))
    return radius * np.exp(2j * np.pi * random.uniform(of_angle, shape, real).astype(dtype)).astype(dtype)


def variance_scaling(scale: float, mode: str, distribution: str, in_axis: Axes = -2, out_axis: Axes = -1,
                     batch_axis: Axes = (), dtype: DTypeLike = np.float64) -> Initializer:
    """An initialiser with numbers of mean 0 and variance scale / n.

    By mode, n is the array's number of inputs ("fan_in") or outputs ("fan_out"), their mean ("fan_avg") or geometric
    mean ("fan_geo_avg"); distribution is "truncated_normal" (at two standard deviations), "normal" or "uniform".
    Raises ValueError for others.

    >>> variance_scaling(1.0, "fan_avg", "normal")(random.key(0), (3, 4)).shape
    (3, 4)
    """
    if mode not in MODES:
        raise ValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"distribution is one of {', '.join(DISTRIBUTIONS)}, not {distribution!r}")

    def init(key, shape, dtype=dtype):
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
             "fan_geo_avg": (fan_in * fan_out)**0.5}[mode]
        variance = np.asarray(scale / n, dtype)
        if distribution == "normal":
            return random.normal(key, shape, dtype) * np.sqrt(variance)
        if np.issubdtype(dtype, np.complexfloating):
            if distribution == "uniform":
                return _complex_uniform(key, shape, dtype) * np.sqrt(variance)
            stddev = np.sqrt(variance) / np.asarray(CUT_COMPLEX, dtype)
            return _complex_truncated_normal(key, 2, shape, dtype) * stddev
        if distribution == "uniform":
            return random.uniform(key, shape, dtype, -1) * np.sqrt(3 * variance)
        return random.truncated_normal(key, -2, 2, shape, dtype) * (np.sqrt(variance) / np.asarray(CUT_REAL, dtype))
    return init


def glorot_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                   dtype: DTypeLike = np.float64) -> Initializer:
    """Uniform numbers of variance 2 / (inputs + outputs); also called xavier_uniform.

    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks (2010), equation 16.

    >>> bool(np.all(np.abs(glorot_uniform()(random.key(0), (2, 4))) <= 1.0))
    True
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike = np.float64) -> Initializer:
    """Truncated normal numbers of variance 2 / (inputs + outputs); also called xavier_normal.

    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks (2010), equation 12.

    >>> glorot_normal()(random.key(0), (2, 4)).shape
    (2, 4)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike = np.float64) -> Initializer:
    """Uniform numbers of variance 1 / inputs.

    Y. LeCun et al., Efficient backprop (1998), section 4.6.

    >>> bool(np.all(np.abs(lecun_uniform()(random.key(0), (3, 4))) <= 1.0))
    True
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                 dtype: DTypeLike = np.float64) -> Initializer:
    """Truncated normal numbers of variance 1 / inputs.

    Y. LeCun et al., Efficient backprop (1998), section 4.6.

    >>> lecun_normal()(random.key(0), (2, 4)).shape
    (2, 4)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
               dtype: DTypeLike = np.float64) -> Initializer:
    """Uniform numbers of variance 2 / inputs; also called kaiming_uniform.

    K. He et al., Delving deep into rectifiers (2015), equation 10.

    >>> bool(np.all(np.abs(he_uniform()(random.key(0), (6, 4))) <= 1.0))
    True
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
              dtype: DTypeLike = np.float64) -> Initializer:
    """Truncated normal numbers of variance 2 / inputs; also called kaiming_normal.

    K. He et al., Delving deep into rectifiers (2015), equation 10.

    >>> he_normal()(random.key(0), (2, 4)).shape
    (2, 4)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike = np.float64) -> Initializer:
    """scale times a random matrix with orthonormal rows or columns, whichever are fewer.

    column_axis indexes the columns, all other axes the rows.  Raises ValueError for shapes of fewer than two axes.

    A. M. Saxe, J. L. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks (2014).

    >>> w = orthogonal()(random.key(0), (2, 3))
    >>> bool(np.allclose(w @ w.T, np.eye(2)))
    True
    """
    def init(key, shape, dtype=dtype):
        if len(shape) < 2:
            raise ValueError(f"an orthogonal array has two axes or more, not {len(shape)}")
        if 0 in shape:
            return np.zeros(shape, dtype)
        axis = column_axis % len(shape)
        columns = shape[axis]
        others = tuple(n for i, n in enumerate(shape) if i != axis)
        flat = random.orthogonal(key, math.prod(others), (), dtype, columns)
        return np.asarray(scale, dtype) * np.moveaxis(flat.reshape(*others, columns), -1, axis)
    return init


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike = np.float64) -> Initializer:
    """An initialiser for convolution kernels: orthogonal at the centre of the window and 0 elsewhere.

    Raises ValueError unless a shape has three to five axes, and for more inputs than outputs.

    L. Xiao et al., Dynamical isometry and a mean field theory of CNNs (2018), algorithm 1.

    >>> w = delta_orthogonal()(random.key(0), (3, 2, 2))
    >>> bool(np.allclose(w[1] @ w[1].T, np.eye(2))), w[0].tolist()
    (True, [[0.0, 0.0], [0.0, 0.0]])
    """
    def init(key, shape, dtype=dtype):
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"a delta-orthogonal kernel has three to five axes, not {len(shape)}")
        if shape[-1] < shape[-2]:
            raise ValueError(f"a delta-orthogonal kernel has no more inputs than outputs, not {shape[-2:]}")
        kernel = np.zeros(shape, dtype)
        kernel[tuple((n - 1) // 2 for n in shape[:-2])] = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        return kernel
    return init
