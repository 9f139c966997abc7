# SPDX-License-Identifier: Apache-2.0
"""Attention: jax.nn's dot_product_attention, and a layer with several heads.

A. Vaswani et al., Attention is all you need (2017), sections 3.2.1 and 3.2.2.
"""
import math
from typing import Any

import numpy as np

from gradscribe import random
from gradscribe.nn.functions import logsumexp, softmax
from gradscribe.nn.initializers import Initializer, glorot_normal, zeros
from gradscribe.nn.layers import Layer

__all__ = ["MultiHeadAttention", "dot_product_attention"]

LEFT_OUT = -0.7 * float(np.finfo(np.float32).max)     # a logit of weight 0; finite, so that a row of them is not NaN


def _check_shapes(query, key, value, implementation):
    if implementation not in (None, "xla"):
        raise ValueError(f"implementation is None or 'xla', not {implementation!r}: there is one, in NumPy")
    if query.ndim not in (3, 4) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(f"query, key and value have 3 or 4 axes each, not {query.ndim}, {key.ndim} and {value.ndim}")
    if key.shape[-3] != value.shape[-3] or key.shape[-2] != value.shape[-2]:
        raise ValueError("key and value have as many sources and as many heads")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError("query and key have heads of one size")


def _attended(mask, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size, targets, sources):
    """True where a target attends to a source, or None if all do; it broadcasts to (batch, head, t, s)."""
    t, s = np.arange(targets)[:, None], np.arange(sources)[None, :]
    seen = mask
    if is_causal:
        seen = t >= s if seen is None else seen & (t >= s)
    if local_window_size is not None:
        one = isinstance(local_window_size, int)
        left, right = (local_window_size, local_window_size) if one else local_window_size
        near = (t <= s + left) & (t >= s - right)
        seen = near if seen is None else seen & near
    if query_seq_lengths is not None:
        there = t < query_seq_lengths[:, None, None, None]
        seen = there if seen is None else seen & there
    if key_value_seq_lengths is not None:
        there = s < key_value_seq_lengths[:, None, None, None]
        seen = there if seen is None else seen & there
    return seen


def dot_product_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, bias: np.ndarray | None = None,
                          mask: np.ndarray | None = None, *, scale: float | None = None, is_causal: bool = False,
                          query_seq_lengths: np.ndarray | None = None, key_value_seq_lengths: np.ndarray | None = None,
                          local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
                          return_residual: bool = False) -> Any:
    """softmax(scale query keyᵀ + bias) value for each head.

    query is (batch, targets, heads, size), key and value are (batch, sources, heads, size), all with or without the
    batch axis; the query may have a multiple of the others' heads.  bias and mask (true: attended) broadcast to (batch,
    heads, targets, sources).  scale is 1 / √size by default; local_window_size is (left, right).  return_residual: also
    return the log-sum-exp of the logits, (batch, targets, heads).  Everything is computed in the dtype of the arrays,
    whereas jax.nn computes the softmax in float32.  Raises ValueError for shapes that do not fit.

    >>> x = np.arange(8.0).reshape(4, 1, 2)
    >>> dot_product_attention(x, x, x, is_causal=True)[0].tolist()
    [[0.0, 1.0]]
    """
    _check_shapes(query, key, value, implementation)
    encoded, residual = _read(query, key, value, bias, mask, scale, is_causal, query_seq_lengths,
                              key_value_seq_lengths, local_window_size)
    return (encoded, residual) if return_residual else encoded


def _read(query, key, value, bias=None, mask=None, scale=None, is_causal=False, query_seq_lengths=None,
          key_value_seq_lengths=None, local_window_size=None):
    """The result of dot_product_attention and the residual, for arrays that fit."""
    if query.ndim == 3:
        encoded, residual = _read(query[None], key[None], value[None], bias, mask, scale, is_causal, query_seq_lengths,
                                  key_value_seq_lengths, local_window_size)
        return encoded[0], residual[0]
    batch, targets, heads, size = query.shape
    sources, groups = key.shape[1:3]
    grouped = query.reshape(batch, targets, groups, heads // groups, size)
    logits = np.einsum("btkgh,bskh->bkgts", grouped, key).reshape(batch, heads, targets, sources)
    logits = logits / math.sqrt(size) if scale is None else logits * scale
    if bias is not None:
        logits = logits + bias
    seen = _attended(mask, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size, targets, sources)
    if seen is not None:
        logits = np.where(seen, logits, LEFT_OUT)
    weights = softmax(logits).reshape(batch, groups, heads // groups, targets, sources)
    encoded = np.einsum("bkgts,bskh->btkgh", weights, value).reshape(batch, targets, heads, value.shape[3])
    if query_seq_lengths is not None:
        encoded = np.where(np.arange(targets)[:, None, None] < query_seq_lengths[:, None, None, None], encoded, 0)
    return encoded, np.swapaxes(logsumexp(logits, axis=-1), 1, 2)


def MultiHeadAttention(num_heads: int, out_dim: int | None = None, qkv_dim: int | None = None, is_causal: bool = False,
                       W_init: Initializer = glorot_normal(), b_init: Initializer = zeros) -> Layer:  # noqa: B008
    """Attention with num_heads heads, with linear projections of its inputs and its output.

    Inputs are (batch, time, features), or a pair of such arrays, for the queries and for the keys and values.
    qkv_dim, of all heads together, and out_dim are by default the features of the (first) inputs.  Params are (W, b)
    for the query, the key, the value and the output.  apply_fun's keyword mask, true where attended, broadcasts to
    (batch, heads, targets, sources).  Raises ValueError if qkv_dim is not a multiple of num_heads.

    >>> init_fun, apply_fun = MultiHeadAttention(2)
    >>> shape, params = init_fun(random.key(0), (-1, 5, 4))
    >>> shape, len(params), apply_fun(params, np.ones((3, 5, 4))).shape
    ((-1, 5, 4), 4, (3, 5, 4))
    """
    def init_fun(rng, input_shape):
        targets, sources = input_shape if isinstance(input_shape[0], (tuple, list)) else (input_shape, input_shape)
        inner = targets[-1] if qkv_dim is None else qkv_dim
        outer = targets[-1] if out_dim is None else out_dim
        if inner % num_heads != 0:
            raise ValueError(f"{inner} features are not a multiple of {num_heads} heads")
        shapes = [(targets[-1], inner), (sources[-1], inner), (sources[-1], inner), (inner, outer)]
        keys = random.split(rng, 8)
        params = tuple((W_init(of_W, shape), b_init(of_b, shape[1:]))
                       for shape, of_W, of_b in zip(shapes, keys[::2], keys[1::2]))
        return (*targets[:-1], outer), params

    def apply_fun(params, inputs, *, mask=None, **kwargs):
        (W_q, b_q), (W_k, b_k), (W_v, b_v), (W_o, b_o) = params
        targets, sources = inputs if isinstance(inputs, (tuple, list)) else (inputs, inputs)
        query = _heads(targets @ W_q + b_q, num_heads)
        key = _heads(sources @ W_k + b_k, num_heads)
        value = _heads(sources @ W_v + b_v, num_heads)
        read, _ = _read(query, key, value, mask=mask, is_causal=is_causal)
        return read.reshape(*read.shape[:-2], read.shape[-2] * read.shape[-1]) @ W_o + b_o
    return init_fun, apply_fun


def _heads(x, num_heads):
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)
