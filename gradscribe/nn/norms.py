# SPDX-License-Identifier: Apache-2.0
"""Normalisation layers: over the batch, with or without running statistics, over features, over groups of channels.

Their params are (beta, gamma), the shift and the scale after normalising, with () in the place of one that is off.

Running statistics are explicit state: a layer with state is three functions, (init_fun, init_state, apply_fun), with
init_state(input_shape) -> state and apply_fun(params, state, inputs, **kwargs) -> (outputs, state);
serial_with_state combines such layers and plain ones.  In a loss, the new state is an auxiliary result:

    def loss(params, state, x, y):
        p, state = apply_fun(params, state, x, mode="train")
        return np.mean((p - y) ** 2), state

    (value, state), dparams = gs.value_and_grad(loss, has_aux=True)(params, state, x, y)
"""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe import random
from gradscribe.nn.functions import standardize
from gradscribe.nn.initializers import Initializer, ones, zeros
from gradscribe.nn.layers import Layer

__all__ = ["BatchNorm", "BatchNormWithState", "GroupNorm", "LayerNorm", "LayerWithState", "RMSNorm",
           "serial_with_state"]

LayerWithState = tuple[Callable[..., tuple[Any, Any]], Callable[..., Any], Callable[..., tuple[Any, Any]]]


def _axes(axis, ndim):
    """The axes as nonnegative numbers."""
    return tuple(i % ndim for i in ((axis,) if isinstance(axis, int) else axis))


def _initialised(rng, shape, center, scale, beta_init, gamma_init):
    of_beta, of_gamma = random.split(rng)
    return beta_init(of_beta, shape) if center else (), gamma_init(of_gamma, shape) if scale else ()


def _shifted(z, params, center, scale, axes):
    """gamma z + beta, with beta and gamma along the given axes."""
    beta, gamma = params
    if scale:
        z = _spread(gamma, axes, z.ndim) * z
    if center:
        z = z + _spread(beta, axes, z.ndim)
    return z


def _spread(x, axes, ndim):
    """x, which has some of ndim axes in order, with axes of length one inserted for broadcasting."""
    if axes == tuple(range(axes[0], ndim)):
        return x
    return x[tuple(slice(None) if i in axes else None for i in range(axes[0], ndim))]


def _others(axes, ndim):
    """All other axes."""
    return tuple(i for i in range(ndim) if i not in axes)


def BatchNorm(axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
              beta_init: Initializer = zeros, gamma_init: Initializer = ones) -> Layer:
    """Normalisation to mean 0 and variance 1 over the given axes, then gamma and beta along the other axes.

    It uses the batch's statistics in training and in test mode; BatchNormWithState keeps running statistics.

    S. Ioffe, C. Szegedy, Batch normalization (2015), algorithm 1.

    >>> init_fun, apply_fun = BatchNorm(axis=0, epsilon=0.0)
    >>> apply_fun(init_fun(random.key(0), (2, 1))[1], np.array([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """
    def init_fun(rng, input_shape):
        axes = _axes(axis, len(input_shape))
        shape = tuple(input_shape[i] for i in _others(axes, len(input_shape)))
        return input_shape, _initialised(rng, shape, center, scale, beta_init, gamma_init)

    def apply_fun(params, inputs, **kwargs):
        axes = _axes(axis, inputs.ndim)
        z = standardize(inputs, axes, epsilon=epsilon)
        return _shifted(z, params, center, scale, _others(axes, inputs.ndim))
    return init_fun, apply_fun


def BatchNormWithState(axis: int | Sequence[int] = (0, 1, 2), momentum: float = 0.99, epsilon: float = 1e-5,
                       center: bool = True, scale: bool = True, beta_init: Initializer = zeros,
                       gamma_init: Initializer = ones) -> LayerWithState:
    """BatchNorm with running (mean, variance) as its state, which it normalises by in test mode.

    In train mode (the default of apply_fun's keyword mode) it uses the batch's statistics, and the new state is
    momentum times the old one plus 1 - momentum times these; no derivative passes through the state.

    S. Ioffe, C. Szegedy, Batch normalization (2015), algorithm 2.

    >>> init_fun, init_state, apply_fun = BatchNormWithState(axis=0, momentum=0.5, epsilon=0.0)
    >>> _, params = init_fun(random.key(0), (2, 1))
    >>> outputs, (mean, variance) = apply_fun(params, init_state((2, 1)), np.array([[1.0], [5.0]]))
    >>> outputs.tolist(), mean.tolist(), variance.tolist()
    ([[-1.0], [1.0]], [1.5], [2.5])
    """
    init_fun, _ = BatchNorm(axis, epsilon, center, scale, beta_init, gamma_init)

    def init_state(input_shape):
        axes = _axes(axis, len(input_shape))
        shape = tuple(input_shape[i] for i in _others(axes, len(input_shape)))
        return np.zeros(shape), np.ones(shape)

    def apply_fun(params, state, inputs, *, mode="train", **kwargs):
        if mode not in ("train", "test"):
            raise ValueError(f"mode is 'train' or 'test', not {mode!r}")
        axes = _axes(axis, inputs.ndim)
        others = _others(axes, inputs.ndim)
        mean, variance = state
        if mode == "train":
            batch_mean = np.mean(inputs, axis=axes, keepdims=True)
            batch_variance = np.mean((inputs - batch_mean)**2, axis=axes, keepdims=True)
            z = standardize(inputs, axes, batch_mean, batch_variance, epsilon)
            mean = momentum * mean + (1 - momentum) * np.squeeze(batch_mean, axis=axes)
            variance = momentum * variance + (1 - momentum) * np.squeeze(batch_variance, axis=axes)
        else:
            z = standardize(inputs, axes, _spread(mean, others, inputs.ndim), _spread(variance, others, inputs.ndim),
                            epsilon)
        return _shifted(z, params, center, scale, others), (mean, variance)
    return init_fun, init_state, apply_fun


def LayerNorm(axis: int | Sequence[int] = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
              beta_init: Initializer = zeros, gamma_init: Initializer = ones) -> Layer:
    """Normalisation to mean 0 and variance 1 over the given axes of each example, then gamma and beta along them.

    J. L. Ba, J. R. Kiros, G. E. Hinton, Layer normalization (2016), equation 4.

    >>> init_fun, apply_fun = LayerNorm(epsilon=0.0)
    >>> apply_fun(init_fun(random.key(0), (-1, 2))[1], np.array([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """
    def init_fun(rng, input_shape):
        shape = tuple(input_shape[i] for i in sorted(_axes(axis, len(input_shape))))
        return input_shape, _initialised(rng, shape, center, scale, beta_init, gamma_init)

    def apply_fun(params, inputs, **kwargs):
        axes = _axes(axis, inputs.ndim)
        z = standardize(inputs, axes, epsilon=epsilon)
        return _shifted(z, params, center, scale, tuple(sorted(axes)))
    return init_fun, apply_fun


def RMSNorm(axis: int = -1, epsilon: float = 1e-6, gamma_init: Initializer = ones) -> Layer:
    """gamma inputs / √(mean of inputs² along the axis + epsilon); params (gamma,).

    B. Zhang, R. Sennrich, Root mean square layer normalization (2019), equation 4.

    >>> init_fun, apply_fun = RMSNorm(epsilon=0.0)
    >>> apply_fun(init_fun(random.key(0), (-1, 2))[1], np.array([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """
    def init_fun(rng, input_shape):
        return input_shape, (gamma_init(rng, (input_shape[axis],)),)

    def apply_fun(params, inputs, **kwargs):
        gamma = _spread(params[0], (axis % inputs.ndim,), inputs.ndim)
        return gamma * (inputs / np.sqrt(np.mean(inputs**2, axis=axis, keepdims=True) + epsilon))
    return init_fun, apply_fun


def GroupNorm(groups: int, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
              beta_init: Initializer = zeros, gamma_init: Initializer = ones) -> Layer:
    """Normalisation to mean 0 and variance 1 over each group of channels (the last axis) of each example (the first).

    Then gamma and beta for each channel.  Raises ValueError if the channels are not a multiple of the groups.

    Y. Wu, K. He, Group normalization (2018), equations 1 to 4.

    >>> init_fun, apply_fun = GroupNorm(2, epsilon=0.0)
    >>> apply_fun(init_fun(random.key(0), (-1, 4))[1], np.array([[1.0, 3.0, 10.0, 30.0]])).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    def init_fun(rng, input_shape):
        if input_shape[-1] % groups != 0:
            raise ValueError(f"{input_shape[-1]} channels are not a multiple of {groups} groups")
        return input_shape, _initialised(rng, (input_shape[-1],), center, scale, beta_init, gamma_init)

    def apply_fun(params, inputs, **kwargs):
        apart = inputs.reshape(*inputs.shape[:-1], groups, inputs.shape[-1] // groups)
        z = standardize(apart, (*range(1, inputs.ndim - 1), inputs.ndim), epsilon=epsilon).reshape(inputs.shape)
        return _shifted(z, params, center, scale, (inputs.ndim - 1,))
    return init_fun, apply_fun


def serial_with_state(*layers: Layer | LayerWithState) -> LayerWithState:
    """Layers with and without state in sequence; params and state are lists, with () for a layer without state.

    >>> init_fun, init_state, apply_fun = serial_with_state(BatchNormWithState(axis=0))
    >>> state = init_state((4, 2))
    >>> len(state), apply_fun(init_fun(random.key(0), (4, 2))[1], state, np.ones((4, 2)))[0].tolist()[0]
    (1, [0.0, 0.0])
    """
    def init_fun(rng, input_shape):
        params = []
        for layer in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = layer[0](layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def init_state(input_shape):
        key, states = random.key(0), []
        for layer in layers:
            states.append(layer[1](input_shape) if len(layer) == 3 else ())
            input_shape, _ = layer[0](key, input_shape)
        return states

    def apply_fun(params, state, inputs, *, rng=None, **kwargs):
        keys = [None] * len(layers) if rng is None else random.split(rng, len(layers))
        states = []
        for layer, param, before, key in zip(layers, params, state, keys, strict=True):
            if len(layer) == 3:
                inputs, after = layer[2](param, before, inputs, rng=key, **kwargs)
            else:
                inputs, after = layer[1](param, inputs, rng=key, **kwargs), ()
            states.append(after)
        return inputs, states
    return init_fun, init_state, apply_fun
