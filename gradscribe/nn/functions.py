# SPDX-License-Identifier: Apache-2.0
"""The functions of jax.nn, under the same names: activations, softmax and related functions, one-hot codes.

At a kink the derivative is that of jax.nn: for relu and relu6 it is 0, whereas np.maximum has one half.
"""
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import special

__all__ = ["Axis", "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
           "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu",
           "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid",
           "squareplus", "standardize", "swish", "tanh"]

Axis = int | tuple[int, ...] | None

tanh = np.tanh


def identity(x: np.ndarray) -> np.ndarray:
    """x itself.

    >>> float(identity(np.float64(2.0)))
    2.0
    """
    return x


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0), with derivative 0 at 0.

    >>> relu(np.array([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    return np.where(x <= 0, 0, x)


def relu6(x: np.ndarray) -> np.ndarray:
    """x clipped to [0, 6], with derivative 0 at 0 and at 6.

    A. Krizhevsky, Convolutional deep belief networks on CIFAR-10 (2010).

    >>> relu6(np.array([-1.0, 2.0, 7.0])).tolist()
    [0.0, 2.0, 6.0]
    """
    return np.where(x <= 0, 0.0, np.where(x >= 6, 6.0, x))


def leaky_relu(x: np.ndarray, negative_slope: float | np.ndarray = 0.01) -> np.ndarray:
    """x if it is not negative, negative_slope * x otherwise, with derivative 1 at 0.

    >>> leaky_relu(np.array([-1.0, 2.0])).tolist()
    [-0.01, 2.0]
    """
    return np.where(x >= 0, x, negative_slope * x)


def elu(x: np.ndarray, alpha: float | np.ndarray = 1.0) -> np.ndarray:
    """x if it is positive, alpha (exp(x) - 1) otherwise.

    D.-A. Clevert, T. Unterthiner, S. Hochreiter, Fast and accurate deep network learning by exponential linear units
    (2016), equation 15.

    >>> elu(np.array([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    positive = x > 0
    return np.where(positive, x, alpha * np.expm1(np.where(positive, 0.0, x)))


def celu(x: ArrayLike, alpha: float | np.ndarray = 1.0) -> np.ndarray:
    """x if it is positive, alpha (exp(x / alpha) - 1) otherwise: differentiable for every alpha.

    J. T. Barron, Continuously differentiable exponential linear units (2017), equation 2.

    >>> celu(np.array([0.0, 2.0]), 0.5).tolist()
    [0.0, 2.0]
    """
    return np.maximum(x, 0.0) + alpha * np.expm1(np.minimum(x, 0.0) / alpha)


def selu(x: np.ndarray) -> np.ndarray:
    """1.0507... times elu(x, 1.6732...), which preserves mean 0 and variance 1 through layers.

    G. Klambauer et al., Self-normalizing neural networks (2017), equation 2.

    >>> selu(np.array([1.0])).tolist()
    [1.0507009873554805]
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def gelu(x: np.ndarray, approximate: bool = True) -> np.ndarray:
    """x times the normal cumulative distribution function of x; approximate: by a tanh, with an error up to 5e-4.

    D. Hendrycks, K. Gimpel, Gaussian error linear units (2016), section 2.

    >>> gelu(np.array([0.0, 1.0]), approximate=False).round(6).tolist()
    [0.0, 0.841345]
    """
    if approximate:
        return x * special.expit(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))   # (1 + tanh(u)) / 2 = expit(2 u)
    return 0.5 * x * special.erfc(-x * math.sqrt(0.5))


def sigmoid(x: ArrayLike) -> np.ndarray:
    """1 / (1 + exp(-x)), to full relative precision for every x.

    >>> sigmoid(np.array([0.0, 1000.0])).tolist()
    [0.5, 1.0]
    """
    return special.expit(x)


def log_sigmoid(x: ArrayLike) -> np.ndarray:
    """The logarithm of the sigmoid, -log(1 + exp(-x)).

    >>> log_sigmoid(np.array([-1000.0, 1000.0])).tolist()
    [-1000.0, -0.0]
    """
    return special.log_expit(x)


def silu(x: np.ndarray) -> np.ndarray:
    """x sigmoid(x); also called swish.

    S. Elfwing, E. Uchibe, K. Doya, Sigmoid-weighted linear units for neural network function approximation (2018).

    >>> silu(np.array([0.0, 1000.0])).tolist()
    [0.0, 1000.0]
    """
    return x * special.expit(x)


swish = silu


def mish(x: np.ndarray) -> np.ndarray:
    """x tanh(softplus(x)).

    D. Misra, Mish: a self regularized non-monotonic activation function (2019), equation 1.

    >>> mish(np.array([0.0, 1000.0])).tolist()
    [0.0, 1000.0]
    """
    return x * np.tanh(np.logaddexp(x, 0))


def hard_tanh(x: np.ndarray) -> np.ndarray:
    """x clipped to [-1, 1], with derivative 1 at -1 and 1.

    >>> hard_tanh(np.array([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return np.where(x > 1, 1, np.where(x < -1, -1, x))


def hard_sigmoid(x: np.ndarray) -> np.ndarray:
    """relu6(x + 3) / 6.

    >>> hard_sigmoid(np.array([-3.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return relu6(x + 3.0) / 6.0


def hard_silu(x: np.ndarray) -> np.ndarray:
    """x hard_sigmoid(x); also called hard_swish.

    A. Howard et al., Searching for MobileNetV3 (2019), section 5.2.

    >>> hard_silu(np.array([-3.0, 3.0])).tolist()
    [-0.0, 3.0]
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def softplus(x: ArrayLike) -> np.ndarray:
    """log(1 + exp(x)).

    >>> softplus(np.array([-1000.0, 1000.0])).tolist()
    [0.0, 1000.0]
    """
    return np.logaddexp(x, 0)


def soft_sign(x: np.ndarray) -> np.ndarray:
    """x / (|x| + 1).

    >>> soft_sign(np.array([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    return x / (np.abs(x) + 1)


def squareplus(x: np.ndarray, b: float | np.ndarray = 4) -> np.ndarray:
    """(x + √(x² + b)) / 2, a smooth relu.

    J. T. Barron, Squareplus: a softplus-like algebraic rectifier (2021), equation 1.

    >>> squareplus(np.array([0.0, 1.5])).tolist()
    [1.0, 2.0]
    """
    return (x + np.sqrt(x * x + b)) / 2


def sparse_plus(x: np.ndarray) -> np.ndarray:
    """0 up to -1, (x + 1)² / 4 from there to 1, x beyond.

    >>> sparse_plus(np.array([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.25, 3.0]
    """
    return np.where(x <= -1, 0.0, np.where(x >= 1, x, (x + 1.0)**2 / 4))


def sparse_sigmoid(x: np.ndarray) -> np.ndarray:
    """0 up to -1, (x + 1) / 2 from there to 1, 1 beyond: the derivative of sparse_plus.

    M. Blondel, A. F. T. Martins, V. Niculae, Learning with Fenchel-Young losses (2020), section 6.2.

    >>> sparse_sigmoid(np.array([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 * np.clip(x + 1.0, 0.0, 2.0)


def log1mexp(x: np.ndarray) -> np.ndarray:
    """log(1 - exp(-x)) for x >= 0, NaN for x < 0.

    M. Mächler, Accurately computing log(1 - exp(-|a|)) (2012), equation 7.

    >>> log1mexp(np.array([1e-20, 50.0])).round(12).tolist()
    [-46.051701859881, -0.0]
    """
    small = x < math.log(2.0)
    return np.where(small, np.log(-np.expm1(-np.where(small, x, 1.0))), np.log1p(-np.exp(-np.where(small, 1.0, x))))


def glu(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The first half of x along the axis, times the sigmoid of the second half.  ValueError for an odd length.

    Y. N. Dauphin et al., Language modeling with gated convolutional networks (2017), equation 1.

    >>> glu(np.array([4.0, 0.0])).tolist()
    [2.0]
    """
    if x.shape[axis] % 2 != 0:
        raise ValueError(f"glu takes an axis of even length, not {x.shape[axis]}")
    first, second = np.split(x, 2, axis)
    return first * special.expit(second)


def _unmasked(where, x, axis):
    """x, with -inf where `where` is false; rows without any true entry are unchanged."""
    return np.where(where | ~np.any(where, axis=axis, keepdims=True), x, -np.inf)


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> np.ndarray:
    """exp(x) divided by its sum along the axis (or axes; None for all); 0 where `where` is false.

    >>> softmax(np.array([0.0, 0.0, 1000.0]), where=np.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    if where is None:
        return special.softmax(x, axis=axis)
    return np.where(where, special.softmax(_unmasked(where, x, axis), axis=axis), 0)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> np.ndarray:
    """The logarithm of softmax(x), without underflow; -inf where `where` is false.

    >>> log_softmax(np.array([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """
    if where is None:
        return special.log_softmax(x, axis=axis)
    return np.where(where, special.log_softmax(_unmasked(where, x, axis), axis=axis), -np.inf)


def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Any:
    """log(sum(b exp(a))) along the axis; with return_sign that of the absolute value, and the sign.

    >>> float(logsumexp(np.array([1000.0, 1000.0])).round(6))
    1000.693147
    """
    if where is not None:
        a = np.where(where, a, -np.inf)
    return special.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)


def logmeanexp(x: np.ndarray, axis: Axis = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> np.ndarray:
    """log(mean(exp(x))) along the axis, over the entries where `where` is true.

    >>> float(logmeanexp(np.array([1000.0, 1000.0])))
    1000.0
    """
    counted = np.ones(x.shape) if where is None else np.where(where, np.ones(x.shape), 0.0)
    count = np.sum(counted, axis=axis, keepdims=keepdims)
    return logsumexp(x, axis=axis, keepdims=keepdims, where=where) - np.log(count).astype(x.dtype)


def standardize(x: np.ndarray, axis: Axis = -1, mean: float | np.ndarray | None = None,
                variance: float | np.ndarray | None = None, epsilon: float | np.ndarray = 1e-5,
                where: ArrayLike | None = None, *, algorithm: str = "stable") -> np.ndarray:
    """(x - mean) / √(variance + epsilon), by default with the mean and variance of x along the axis.

    algorithm "stable" computes the variance as the mean of (x - mean)², "fast" as the mean of x² minus mean², which
    loses digits if the mean is large; jax.nn's default is "fast".  Raises ValueError for another.

    >>> standardize(np.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"algorithm is 'fast' or 'stable', not {algorithm!r}")
    if mean is None:
        mean = _mean(x, axis, where)
    centred = x - mean
    if variance is None:
        if algorithm == "stable":
            variance = _mean(centred**2, axis, where)
        else:
            variance = np.maximum(_mean(x * x, axis, where) - mean * mean, 0.0)
    return centred / np.sqrt(variance + epsilon)


def _mean(x, axis, where):
    if where is None:
        return np.mean(x, axis=axis, keepdims=True)
    return np.mean(x, axis=axis, keepdims=True, where=where)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1) -> np.ndarray:
    """A new axis of num_classes entries: 1 at index x and 0 elsewhere; all 0 if x is out of bounds.

    dtype is float64 by default.

    >>> one_hot(np.array([0, 2, 3]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    hot = np.expand_dims(x, -1) == np.arange(num_classes)
    return np.moveaxis(hot, -1, axis).astype(np.float64 if dtype is None else dtype)
