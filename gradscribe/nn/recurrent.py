# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: a cell that is called in a plain loop over time.

Inputs are (batch, time, features) or (time, features); in outputs the last axis is that of the states.
"""
from collections.abc import Callable

import numpy as np

from gradscribe import random
from gradscribe.nn.functions import sigmoid
from gradscribe.nn.initializers import Initializer, glorot_normal, orthogonal, zeros
from gradscribe.nn.layers import Layer

__all__ = ["GRU", "LSTM", "RNN", "gru_cell", "lstm_cell", "rnn_cell"]


def rnn_cell(params: tuple, h: np.ndarray, x: np.ndarray, activation: Callable = np.tanh) -> np.ndarray:
    """The next state, activation(x W + h U + b), for params (W, U, b).

    J. L. Elman, Finding structure in time (1990).

    >>> rnn_cell((np.ones((1, 1)), np.ones((1, 1)), np.zeros(1)), np.zeros(1), np.zeros(1)).tolist()
    [0.0]
    """
    W, U, b = params
    return activation(x @ W + h @ U + b)


def lstm_cell(params: tuple, state: tuple, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The next (h, c), for params (W, U, b) with columns for the gates i and f, the candidate and the gate o.

    S. Hochreiter, J. Schmidhuber, Long short-term memory (1997), with the forget gate of F. A. Gers, J. Schmidhuber,
    F. Cummins (2000).

    >>> h, c = lstm_cell((np.ones((1, 4)), np.ones((1, 4)), np.zeros(4)), (np.zeros(1), np.ones(1)), np.zeros(1))
    >>> c.tolist()
    [0.5]
    """
    W, U, b = params
    h, c = state
    n = h.shape[-1]
    z = x @ W + h @ U + b
    c = sigmoid(z[..., n:2 * n]) * c + sigmoid(z[..., :n]) * np.tanh(z[..., 2 * n:3 * n])
    return sigmoid(z[..., 3 * n:]) * np.tanh(c), c


def gru_cell(params: tuple, h: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The next state, for params (W, U, b, b_n) with columns for the gates r and z and the candidate n.

    n = tanh(x W_n + b + r (h U_n + b_n)): the reset gate is applied after the product, so that x and h each need only
    one product.

    K. Cho et al., Learning phrase representations using RNN encoder-decoder (2014), equations 5 to 8.

    >>> gru_cell((np.ones((1, 3)), np.ones((1, 3)), np.zeros(3), np.zeros(1)), np.zeros(1), np.zeros(1)).tolist()
    [0.0]
    """
    W, U, b, b_n = params
    n = h.shape[-1]
    from_x, from_h = x @ W + b, h @ U
    reset = sigmoid(from_x[..., :n] + from_h[..., :n])
    update = sigmoid(from_x[..., n:2 * n] + from_h[..., n:2 * n])
    candidate = np.tanh(from_x[..., 2 * n:] + reset * (from_h[..., 2 * n:] + b_n))
    return (1 - update) * candidate + update * h


def _initialised(rng, input_shape, dim, gates, W_init, U_init, b_init):
    """(W, U, b) with the gates side by side, each initialised separately."""
    of_W, of_U, of_b = random.split(rng, 3)
    W = [W_init(key, (input_shape[-1], dim)) for key in random.split(of_W, gates)]
    U = [U_init(key, (dim, dim)) for key in random.split(of_U, gates)]
    return np.concatenate(W, axis=1), np.concatenate(U, axis=1), b_init(of_b, (gates * dim,))


def _output_shape(input_shape, dim, return_sequences):
    return (*input_shape[:-1], dim) if return_sequences else (*input_shape[:-2], dim)


def RNN(dim: int, activation: Callable = np.tanh, return_sequences: bool = True,
        W_init: Initializer = glorot_normal(), U_init: Initializer = orthogonal(),  # noqa: B008
        b_init: Initializer = zeros) -> Layer:
    """The states of rnn_cell over time, or the last one without return_sequences; params (W, U, b).

    The initial state is zero, or apply_fun's keyword state.

    >>> RNN(4)[0](random.key(0), (-1, 10, 3))[0]
    (-1, 10, 4)
    """
    def init_fun(rng, input_shape):
        params = _initialised(rng, input_shape, dim, 1, W_init, U_init, b_init)
        return _output_shape(input_shape, dim, return_sequences), params

    def apply_fun(params, inputs, *, state=None, **kwargs):
        h = np.zeros((*inputs.shape[:-2], dim), inputs.dtype) if state is None else state
        outputs = np.empty((*inputs.shape[:-1], dim), inputs.dtype)
        for t in range(inputs.shape[-2]):
            h = rnn_cell(params, h, inputs[..., t, :], activation)
            outputs[..., t, :] = h
        return outputs if return_sequences else h
    return init_fun, apply_fun


def LSTM(dim: int, return_sequences: bool = True, W_init: Initializer = glorot_normal(),  # noqa: B008
         U_init: Initializer = orthogonal(), b_init: Initializer = zeros) -> Layer:  # noqa: B008
    """The states h of lstm_cell over time, or the last one without return_sequences; params (W, U, b).

    The initial states are zero, or apply_fun's keyword state, (h, c).

    >>> LSTM(4, return_sequences=False)[0](random.key(0), (-1, 10, 3))[0]
    (-1, 4)
    """
    def init_fun(rng, input_shape):
        params = _initialised(rng, input_shape, dim, 4, W_init, U_init, b_init)
        return _output_shape(input_shape, dim, return_sequences), params

    def apply_fun(params, inputs, *, state=None, **kwargs):
        start = np.zeros((*inputs.shape[:-2], dim), inputs.dtype)
        h, c = (start, start) if state is None else state
        outputs = np.empty((*inputs.shape[:-1], dim), inputs.dtype)
        for t in range(inputs.shape[-2]):
            h, c = lstm_cell(params, (h, c), inputs[..., t, :])
            outputs[..., t, :] = h
        return outputs if return_sequences else h
    return init_fun, apply_fun


def GRU(dim: int, return_sequences: bool = True, W_init: Initializer = glorot_normal(),  # noqa: B008
        U_init: Initializer = orthogonal(), b_init: Initializer = zeros) -> Layer:  # noqa: B008
    """The states of gru_cell over time, or the last one without return_sequences; params (W, U, b, b_n).

    The initial state is zero, or apply_fun's keyword state.

    >>> GRU(4)[0](random.key(0), (-1, 10, 3))[0]
    (-1, 10, 4)
    """
    def init_fun(rng, input_shape):
        rng, of_b_n = random.split(rng)
        params = _initialised(rng, input_shape, dim, 3, W_init, U_init, b_init)
        return _output_shape(input_shape, dim, return_sequences), (*params, b_init(of_b_n, (dim,)))

    def apply_fun(params, inputs, *, state=None, **kwargs):
        h = np.zeros((*inputs.shape[:-2], dim), inputs.dtype) if state is None else state
        outputs = np.empty((*inputs.shape[:-1], dim), inputs.dtype)
        for t in range(inputs.shape[-2]):
            h = gru_cell(params, h, inputs[..., t, :])
            outputs[..., t, :] = h
        return outputs if return_sequences else h
    return init_fun, apply_fun
