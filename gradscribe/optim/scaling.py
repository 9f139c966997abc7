# SPDX-License-Identifier: Apache-2.0
"""The parts of optimizers: momentum, scalings, clipping and weight decay.

g is the gradient, m its first moment, u the update.  A moment that starts at zero is corrected by 1 - decay^t (Adam,
section 3).
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradscribe.optim.base import GradientTransformation, masked, need_params, stateless
from gradscribe.optim.trees import abs_sq, global_norm, tree_zeros_like
from gradscribe.tree_util import tree_map

__all__ = ["EmaState", "ScaleByScheduleState", "TraceState", "add_decayed_weights", "clip", "clip_by_block_rms",
           "clip_by_global_norm", "ema", "scale", "scale_by_learning_rate", "scale_by_schedule", "scale_by_sign",
           "scale_by_trust_ratio", "trace", "zero_nans"]


class TraceState(NamedTuple):
    """The state of momentum: the trace of past gradients."""
    trace: Any


class EmaState(NamedTuple):
    """The state of `ema`: the number of updates and the average."""
    count: Any
    ema: Any


class ScaleByScheduleState(NamedTuple):
    """The state of `scale_by_schedule`: the number of updates."""
    count: Any


def scale(step_size: float) -> GradientTransformation:
    """u = step_size * g.

    >>> scale(-0.5).update([2.0], ())
    ([-1.0], ())
    """
    return stateless(lambda updates, params: tree_map(lambda g: step_size * g, updates))


def scale_by_schedule(step_size_fn: Callable[[int], float]) -> GradientTransformation:
    """u = step_size_fn(count) * g; the first count is 0."""
    def init(params):
        return ScaleByScheduleState(0)

    def update(updates, state, params=None):
        step_size = step_size_fn(state.count)
        return tree_map(lambda g: step_size * g, updates), ScaleByScheduleState(state.count + 1)
    return GradientTransformation(init, update)


def scale_by_learning_rate(learning_rate: float | Callable[[int], float], *, flip_sign: bool = True,
                           ) -> GradientTransformation:
    """Scaling by a number or a schedule; with flip_sign by its negative, so that adding updates is a descent.

    >>> scale_by_learning_rate(0.5).update([2.0], ())[0]
    [-1.0]
    """
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    return scale(sign * learning_rate)


def scale_by_sign() -> GradientTransformation:
    """u = sign(g)."""
    return stateless(lambda updates, params: tree_map(np.sign, updates))


def trace(decay: float, nesterov: bool = False) -> GradientTransformation:
    """Momentum: m = g + decay * m, u = m; with nesterov u = g + decay * m.

    I. Sutskever et al., On the importance of initialization and momentum in deep learning (2013), equations 1 to 4.

    >>> opt = trace(0.5)
    >>> opt.update([1.0], TraceState([2.0]))
    ([2.0], TraceState(trace=[2.0]))
    """
    def init(params):
        return TraceState(tree_zeros_like(params))

    def update(updates, state, params=None):
        m = tree_map(lambda g, m: g + decay * m, updates, state.trace)
        if nesterov:
            updates = tree_map(lambda g, m: g + decay * m, updates, m)
        else:
            updates = m
        return updates, TraceState(m)
    return GradientTransformation(init, update)


def ema(decay: float, debias: bool = True) -> GradientTransformation:
    """The average m = decay * m + (1 - decay) * g, corrected by 1 - decay^t if debias."""
    def init(params):
        return EmaState(0, tree_zeros_like(params))

    def update(updates, state, params=None):
        count = state.count + 1
        m = tree_map(lambda g, m: decay * m + (1 - decay) * g, updates, state.ema)
        if debias:
            correction = 1 - decay ** count
            updates = tree_map(lambda m: m / correction, m)
        else:
            updates = m
        return updates, EmaState(count, m)
    return GradientTransformation(init, update)


def add_decayed_weights(weight_decay: float, mask: Any = None) -> GradientTransformation:
    """u = g + weight_decay * parameter, where mask is true (see masked).

    I. Loshchilov and F. Hutter, Decoupled weight decay regularization (2019).  ValueError without parameters.

    >>> add_decayed_weights(0.1).update([1.0], (), [20.0])[0]
    [3.0]
    """
    def decayed(updates, params):
        need_params(params)
        return tree_map(lambda g, p: g + weight_decay * p, updates, params)
    return stateless(decayed) if mask is None else masked(stateless(decayed), mask)


def clip(max_delta: float) -> GradientTransformation:
    """Each entry clipped to [-max_delta, max_delta].

    >>> clip(1.0).update([np.array([-3.0, 0.5])], ())[0]
    [array([-1. ,  0.5])]
    """
    return stateless(lambda updates, params: tree_map(lambda g: np.clip(g, -max_delta, max_delta), updates))


def clip_by_block_rms(threshold: float) -> GradientTransformation:
    """Each leaf scaled down so that its root mean square is at most threshold."""
    def clipped(g):
        return g / np.maximum(1.0, np.sqrt(np.mean(abs_sq(g))) / threshold)
    return stateless(lambda updates, params: tree_map(clipped, updates))


def clip_by_global_norm(max_norm: float) -> GradientTransformation:
    """All entries scaled down by one factor so that global_norm is at most max_norm.

    R. Pascanu et al., On the difficulty of training recurrent neural networks (2013), algorithm 1.

    >>> clip_by_global_norm(1.0).update([np.array([3.0, 4.0])], ())[0]
    [array([0.6, 0.8])]
    """
    def clipped(updates, params):
        norm = global_norm(updates)
        factor = 1.0 if norm < max_norm else max_norm / norm
        return tree_map(lambda g: factor * g, updates)
    return stateless(clipped)


def zero_nans() -> GradientTransformation:
    """g with NaN replaced by zero.

    >>> zero_nans().update([np.array([np.nan, 1.0])], ())[0]
    [array([0., 1.])]
    """
    return stateless(lambda updates, params: tree_map(lambda g: np.where(np.isnan(g), np.zeros_like(g), g), updates))


def scale_by_trust_ratio(min_norm: float = 0.0, trust_coefficient: float = 1.0, eps: float = 0.0,
                         ) -> GradientTransformation:
    """u = g * trust_coefficient * |parameter| / (|g| + eps), leaf by leaf; norms are at least min_norm.

    A leaf that is zero or has a zero gradient is unchanged.  Y. You et al., Large batch optimization for deep learning:
    training BERT in 76 minutes (2020), algorithm 1.  Raises ValueError without parameters.

    >>> scale_by_trust_ratio().update([np.array([3.0, 4.0])], (), [np.array([10.0, 0.0])])[0]
    [array([6., 8.])]
    """
    def scaled(g, p):
        p_norm, g_norm = np.sqrt(np.sum(abs_sq(p))), np.sqrt(np.sum(abs_sq(g)))
        if min_norm:
            p_norm, g_norm = np.maximum(p_norm, min_norm), np.maximum(g_norm, min_norm)
        ratio = 1.0 if p_norm == 0 or g_norm == 0 else trust_coefficient * p_norm / (g_norm + eps)
        return ratio * g

    def ratios(updates, params):
        need_params(params)
        return tree_map(scaled, updates, params)
    return stateless(ratios)
