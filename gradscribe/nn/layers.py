# SPDX-License-Identifier: Apache-2.0
"""Layers as pairs of functions, and combinators for them, compatible with jax.example_libraries.stax.

A layer is (init_fun, apply_fun).  init_fun(rng, input_shape) returns (output_shape, params), with -1 for a length that
is unknown; apply_fun(params, inputs, **kwargs) returns the outputs.  Params are arrays in tuples and lists, () for a
layer without any.  Keyword arguments go to every layer of a network, which ignores those that it does not use: rng is
the key for layers that draw random numbers, mode is "train" or "test".
"""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe import random
from gradscribe.nn.functions import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, silu, softmax, softplus
from gradscribe.nn.initializers import Initializer, glorot_normal, normal

__all__ = ["Dense", "Dropout", "Elu", "Embedding", "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu",
           "Identity", "Layer", "LeakyRelu", "LogSoftmax", "Relu", "Selu", "Sigmoid", "Silu", "Softmax", "Softplus",
           "Tanh", "elementwise", "parallel", "residual", "serial", "shape_dependent"]

Layer = tuple[Callable[..., tuple[Any, Any]], Callable[..., Any]]


def Dense(out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()) -> Layer:  # noqa: B008
    """inputs W + b, over the last axis of the inputs; params (W, b).

    >>> init_fun, apply_fun = Dense(2)
    >>> init_fun(random.key(0), (-1, 3))[0]
    (-1, 2)
    >>> apply_fun((np.ones((3, 2)), np.zeros(2)), np.array([[1.0, 2.0, 3.0]])).tolist()
    [[6.0, 6.0]]
    """
    def init_fun(rng, input_shape):
        of_weights, of_bias = random.split(rng)
        W, b = W_init(of_weights, (input_shape[-1], out_dim)), b_init(of_bias, (out_dim,))
        return (*input_shape[:-1], out_dim), (W, b)

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return inputs @ W + b
    return init_fun, apply_fun


def Embedding(num_embeddings: int, features: int, table_init: Initializer = normal(1.0)) -> Layer:  # noqa: B008
    """The row of a table for each integer of the inputs: adds a last axis of `features`; params (table,).

    >>> init_fun, apply_fun = Embedding(10, 2)
    >>> init_fun(random.key(0), (-1, 5))[0]
    (-1, 5, 2)
    >>> apply_fun((np.arange(20.0).reshape(10, 2),), np.array([3, 0])).tolist()
    [[6.0, 7.0], [0.0, 1.0]]
    """
    def init_fun(rng, input_shape):
        return (*input_shape, features), (table_init(rng, (num_embeddings, features)),)

    def apply_fun(params, inputs, **kwargs):
        return params[0][inputs]
    return init_fun, apply_fun


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """A layer that applies fun(inputs, **fun_kwargs), which must keep the shape.

    >>> elementwise(np.multiply, x2=3.0)[0](None, (2, 3))
    ((2, 3), ())
    """
    def init_fun(rng, input_shape):
        return input_shape, ()

    def apply_fun(params, inputs, **kwargs):
        return fun(inputs, **fun_kwargs)
    return init_fun, apply_fun


Tanh = elementwise(np.tanh)
Relu = elementwise(relu)
Exp = elementwise(np.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Silu = elementwise(silu)
Gelu = elementwise(gelu)


def _identity():
    def init_fun(rng, input_shape):
        return input_shape, ()

    def apply_fun(params, inputs, **kwargs):
        return inputs
    return init_fun, apply_fun


Identity = _identity()


def _flatten():
    def init_fun(rng, input_shape):
        return (input_shape[0], int(np.prod(input_shape[1:]))), ()

    def apply_fun(params, inputs, **kwargs):
        return inputs.reshape(inputs.shape[0], -1)
    return init_fun, apply_fun


Flatten = _flatten()


def FanOut(num: int) -> Layer:
    """A list with the inputs num times, for parallel.

    >>> FanOut(2)[1]((), 3.0)
    [3.0, 3.0]
    """
    def init_fun(rng, input_shape):
        return [input_shape] * num, ()

    def apply_fun(params, inputs, **kwargs):
        return [inputs] * num
    return init_fun, apply_fun


def _fan_in_sum():
    def init_fun(rng, input_shape):
        return input_shape[0], ()

    def apply_fun(params, inputs, **kwargs):
        return sum(inputs)
    return init_fun, apply_fun


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """The arrays of a list, concatenated along an axis.

    >>> init_fun, apply_fun = FanInConcat()
    >>> init_fun(None, [(4, 2), (4, 3)])[0]
    (4, 5)
    """
    def init_fun(rng, input_shape):
        first, at = input_shape[0], axis % len(input_shape[0])
        return (*first[:at], sum(shape[at] for shape in input_shape), *first[at + 1:]), ()

    def apply_fun(params, inputs, **kwargs):
        return np.concatenate(inputs, axis=axis)
    return init_fun, apply_fun


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each entry with probability rate, divided by rate, and sets the others to 0; in test mode the identity.

    rate is the probability to keep, as in stax.  In train mode apply_fun needs the keyword rng, a key (ValueError
    without it); its keyword mode overrides the layer's.

    N. Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting (2014).

    >>> Dropout(0.5)[1]((), np.ones(3), mode="test").tolist()
    [1.0, 1.0, 1.0]
    """
    _check_mode(mode)

    def init_fun(rng, input_shape):
        return input_shape, ()

    def apply_fun(params, inputs, *, rng=None, mode=mode, **kwargs):
        _check_mode(mode)
        if mode == "test":
            return inputs
        if rng is None:
            raise ValueError("Dropout draws in train mode: apply_fun(params, inputs, rng=key), or mode='test'")
        return np.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)
    return init_fun, apply_fun


def _check_mode(mode):
    if mode not in ("train", "test"):
        raise ValueError(f"mode is 'train' or 'test', not {mode!r}")


def _keys(rng, number):
    """A key for each of `number` layers, or None for each."""
    return [None] * number if rng is None else random.split(rng, number)


def serial(*layers: Layer) -> Layer:
    """The layers applied in sequence; params are the list of theirs.

    >>> init_fun, apply_fun = serial(Dense(4), Relu, Dense(2))
    >>> shape, params = init_fun(random.key(0), (-1, 3))
    >>> shape, [len(p) for p in params], apply_fun(params, np.ones((5, 3))).shape
    ((-1, 2), [2, 0, 2], (5, 2))
    """
    def init_fun(rng, input_shape):
        params = []
        for init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, *, rng=None, **kwargs):
        for (_, apply), param, key in zip(layers, params, _keys(rng, len(layers)), strict=True):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs
    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers applied to a list of inputs, one to each; the outputs are a list, the params a tuple.

    >>> init_fun, apply_fun = serial(FanOut(2), parallel(Tanh, Identity), FanInSum)
    >>> apply_fun(init_fun(random.key(0), (3,))[1], np.zeros(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    def init_fun(rng, input_shape):
        keys = random.split(rng, len(layers))
        made = [init(key, shape) for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply_fun(params, inputs, *, rng=None, **kwargs):
        keys = _keys(rng, len(layers))
        return [apply(param, x, rng=key, **kwargs)
                for (_, apply), param, x, key in zip(layers, params, inputs, keys, strict=True)]
    return init_fun, apply_fun


def residual(layer: Layer) -> Layer:
    """The inputs plus the layer's outputs; ValueError if it changes the shape.

    K. He et al., Deep residual learning for image recognition (2016), equation 1.

    >>> residual(elementwise(np.square))[1]((), np.array([3.0])).tolist()
    [12.0]
    """
    init_layer, apply_layer = layer

    def init_fun(rng, input_shape):
        shape, params = init_layer(rng, input_shape)
        if tuple(shape) != tuple(input_shape):
            raise ValueError(f"the layer of a residual keeps the shape; this one makes {shape} of {input_shape}")
        return shape, params

    def apply_fun(params, inputs, **kwargs):
        return inputs + apply_layer(params, inputs, **kwargs)
    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Sequence[int]], Layer]) -> Layer:
    """The layer make_layer(input_shape), made once the shape is known.

    >>> halved = shape_dependent(lambda shape: Dense(shape[-1] // 2))
    >>> halved[0](random.key(0), (-1, 6))[0]
    (-1, 3)
    """
    def init_fun(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)
    return init_fun, apply_fun
