# SPDX-License-Identifier: Apache-2.0
"""Scalings by moments of the gradients, as in Adam, Adagrad, RMSProp and related optimizers.

g is the gradient, m its first moment, v its second moment, u the update.  b1 and b2 are the decay rates of the moments;
a moment that starts at zero is corrected by 1 - b^t (Adam, section 3).
"""
import math
from typing import Any, NamedTuple

import numpy as np

from gradscribe.optim.base import GradientTransformation
from gradscribe.optim.trees import abs_sq, map_several, tree_zeros_like
from gradscribe.tree_util import tree_map

__all__ = ["ScaleByAdaDeltaState", "ScaleByAdamState", "ScaleByAmsgradState", "ScaleByBeliefState", "ScaleByLionState",
           "ScaleByRmsState", "ScaleByRssState", "ScaleByStdDevState", "scale_by_adadelta", "scale_by_adam",
           "scale_by_adamax", "scale_by_amsgrad", "scale_by_belief", "scale_by_lion", "scale_by_radam", "scale_by_rms",
           "scale_by_rss", "scale_by_stddev", "scale_by_yogi"]


class ScaleByAdamState(NamedTuple):
    """The state of Adam and of its variants with two moments."""
    count: Any
    mu: Any
    nu: Any


class ScaleByAmsgradState(NamedTuple):
    """The state of AMSGrad: two moments, and the largest second moment so far."""
    count: Any
    mu: Any
    nu: Any
    nu_max: Any


class ScaleByBeliefState(NamedTuple):
    """The state of AdaBelief: the first moment, and the second moment of the deviation from it."""
    count: Any
    mu: Any
    nu: Any


class ScaleByLionState(NamedTuple):
    """The state of Lion: the first moment."""
    count: Any
    mu: Any


class ScaleByRssState(NamedTuple):
    """The state of Adagrad: the sum of squares of the gradients."""
    sum_of_squares: Any


class ScaleByRmsState(NamedTuple):
    """The state of RMSProp: the second moment."""
    count: Any
    nu: Any


class ScaleByStdDevState(NamedTuple):
    """The state of centred RMSProp: two moments."""
    count: Any
    mu: Any
    nu: Any


class ScaleByAdaDeltaState(NamedTuple):
    """The state of Adadelta: averages of the squares of the gradients and of the updates."""
    e_g: Any
    e_x: Any


def _two_moments(params):
    return ScaleByAdamState(0, tree_zeros_like(params), tree_zeros_like(params))


def _root(v, eps, eps_root):
    """sqrt(v + eps_root) + eps, without additions of zero."""
    root = np.sqrt(v + eps_root) if eps_root else np.sqrt(v)
    return root + eps if eps else root


def scale_by_adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0, *,
                  nesterov: bool = False) -> GradientTransformation:
    """u = m / (sqrt(v + eps_root) + eps) with corrected moments m and v.

    D. Kingma and J. Ba, Adam (2015), algorithm 1.  With nesterov, m is replaced by b1 * m + (1 - b1) * g, with the
    correction of m one step ahead: T. Dozat, Incorporating Nesterov momentum into Adam (2016).

    >>> opt = scale_by_adam()
    >>> updates, state = opt.update([np.array([4.0])], opt.init([np.zeros(1)]))
    >>> updates, state.count
    ([array([1.])], 1)
    """
    def update(updates, state, params=None):
        count = state.count + 1
        m_correction, v_correction = 1 - b1 ** count, 1 - b2 ** count
        m_ahead = 1 - b1 ** (count + 1)

        def moments(g, m, v):
            mu = b1 * m + (1 - b1) * g
            nu = b2 * v + (1 - b2) * abs_sq(g)
            if nesterov:
                m = b1 * (mu / m_ahead) + (1 - b1) * (g / m_correction)
            else:
                m = mu / m_correction
            u = m / _root(nu / v_correction, eps, eps_root)
            return u, mu, nu
        updates, mu, nu = map_several(moments, 3, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)
    return GradientTransformation(_two_moments, update)


def scale_by_amsgrad(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0,
                     ) -> GradientTransformation:
    """As Adam, with the maximum of all corrected second moments so far.

    S. Reddi et al., On the convergence of Adam and beyond (2018), algorithm 2.
    """
    def init(params):
        return ScaleByAmsgradState(0, tree_zeros_like(params), tree_zeros_like(params), tree_zeros_like(params))

    def update(updates, state, params=None):
        count = state.count + 1
        m_correction, v_correction = 1 - b1 ** count, 1 - b2 ** count

        def moments(g, m, v, v_max):
            mu = b1 * m + (1 - b1) * g
            nu = b2 * v + (1 - b2) * abs_sq(g)
            nu_max = np.maximum(v_max, nu / v_correction)
            u = mu / m_correction / _root(nu_max, eps, eps_root)
            return u, mu, nu, nu_max
        updates, mu, nu, nu_max = map_several(moments, 4, updates, state.mu, state.nu, state.nu_max)
        return updates, ScaleByAmsgradState(count, mu, nu, nu_max)
    return GradientTransformation(init, update)


def scale_by_adamax(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> GradientTransformation:
    """u = m / v with corrected m, and v = max(|g| + eps, b2 * v).  D. Kingma and J. Ba, Adam (2015), algorithm 2."""
    def update(updates, state, params=None):
        count = state.count + 1
        correction = 1 - b1 ** count

        def moments(g, m, v):
            mu = b1 * m + (1 - b1) * g
            nu = np.maximum(np.abs(g) + eps, b2 * v)
            u = mu / correction / nu
            return u, mu, nu
        updates, mu, nu = map_several(moments, 3, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)
    return GradientTransformation(_two_moments, update)


def scale_by_yogi(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-3, eps_root: float = 0.0,
                  initial_accumulator_value: float = 1e-6) -> GradientTransformation:
    """As Adam, with v = v - (1 - b2) * sign(v - g^2) * g^2.

    M. Zaheer et al., Adaptive methods for nonconvex optimization (2018), algorithm 2.
    """
    def init(params):
        start = tree_map(lambda p: np.full_like(p, initial_accumulator_value), params)
        return ScaleByAdamState(0, start, tree_map(np.copy, start))

    def update(updates, state, params=None):
        count = state.count + 1
        m_correction, v_correction = 1 - b1 ** count, 1 - b2 ** count

        def moments(g, m, v):
            mu = b1 * m + (1 - b1) * g
            nu = v - (1 - b2) * np.sign(v - abs_sq(g)) * abs_sq(g)
            u = mu / m_correction / _root(nu / v_correction, eps, eps_root)
            return u, mu, nu
        updates, mu, nu = map_several(moments, 3, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)
    return GradientTransformation(init, update)


def scale_by_radam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0,
                   threshold: float = 5.0, *, nesterov: bool = False) -> GradientTransformation:
    """Adam times a factor for the variance of v; m alone in the first steps, where that variance is not finite.

    L. Liu et al., On the variance of the adaptive learning rate and beyond (2020), algorithm 2.
    """
    last = 2.0 / (1.0 - b2) - 1.0

    def update(updates, state, params=None):
        count = state.count + 1
        m_correction, v_correction = 1 - b1 ** count, 1 - b2 ** count
        m_ahead = 1 - b1 ** (count + 1)
        length = last - 2 * count * b2 ** count / v_correction
        rectified = length >= threshold
        if rectified:
            factor = math.sqrt((length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length))
        else:
            factor = 1.0

        def moments(g, m, v):
            mu = b1 * m + (1 - b1) * g
            nu = b2 * v + (1 - b2) * abs_sq(g)
            if nesterov:
                m = b1 * (mu / m_ahead) + (1 - b1) * (g / m_correction)
            else:
                m = mu / m_correction
            u = factor * m / _root(nu / v_correction, eps, eps_root) if rectified else m
            return u, mu, nu
        updates, mu, nu = map_several(moments, 3, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)
    return GradientTransformation(_two_moments, update)


def scale_by_belief(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-16, eps_root: float = 1e-16, *,
                    nesterov: bool = False) -> GradientTransformation:
    """As Adam, with the second moment of g - m; eps_root is added to it at each step.

    J. Zhuang et al., AdaBelief optimizer (2020), algorithm 2.
    """
    def init(params):
        return ScaleByBeliefState(0, tree_zeros_like(params), tree_zeros_like(params))

    def update(updates, state, params=None):
        count = state.count + 1
        m_correction, v_correction = 1 - b1 ** count, 1 - b2 ** count
        m_ahead = 1 - b1 ** (count + 1)

        def moments(g, m, v):
            mu = b1 * m + (1 - b1) * g
            nu = b2 * v + (1 - b2) * abs_sq(g - mu) + eps_root
            if nesterov:
                m = b1 * (mu / m_ahead) + (1 - b1) * (g / m_correction)
            else:
                m = mu / m_correction
            u = m / _root(nu / v_correction, eps, 0.0)
            return u, mu, nu
        updates, mu, nu = map_several(moments, 3, updates, state.mu, state.nu)
        return updates, ScaleByBeliefState(count, mu, nu)
    return GradientTransformation(init, update)


def scale_by_lion(b1: float = 0.9, b2: float = 0.99) -> GradientTransformation:
    """u = sign(b1 * m + (1 - b1) * g), m = b2 * m + (1 - b2) * g.

    X. Chen et al., Symbolic discovery of optimization algorithms (2023), program 1.

    >>> opt = scale_by_lion()
    >>> opt.update([np.array([4.0, -1.0])], opt.init([np.zeros(2)]))[0]
    [array([ 1., -1.])]
    """
    def init(params):
        return ScaleByLionState(0, tree_zeros_like(params))

    def update(updates, state, params=None):
        def moments(g, m):
            u = np.sign(b1 * m + (1 - b1) * g)
            return u, b2 * m + (1 - b2) * g
        updates, mu = map_several(moments, 2, updates, state.mu)
        return updates, ScaleByLionState(state.count + 1, mu)
    return GradientTransformation(init, update)


def scale_by_rss(initial_accumulator_value: float = 0.1, eps: float = 1e-7) -> GradientTransformation:
    """u = g / sqrt(s + eps) with the sum s of all squares so far; zero where s is zero.

    J. Duchi et al., Adaptive subgradient methods for online learning and stochastic optimization (2011), section 1.

    >>> opt = scale_by_rss(0.0, 0.0)
    >>> opt.update([np.array([4.0, 0.0])], opt.init([np.zeros(2)]))[0]
    [array([1., 0.])]
    """
    def init(params):
        return ScaleByRssState(tree_map(lambda p: np.full_like(p, initial_accumulator_value), params))

    def update(updates, state, params=None):
        def moments(g, s):
            total = s + abs_sq(g)
            seen = total > 0
            u = np.where(seen, g / np.sqrt(np.where(seen, total + eps, 1.0)), 0.0)
            return u, total
        updates, sums = map_several(moments, 2, updates, state.sum_of_squares)
        return updates, ScaleByRssState(sums)
    return GradientTransformation(init, update)


def scale_by_rms(decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True,
                 bias_correction: bool = False) -> GradientTransformation:
    """u = g / sqrt(v + eps), or g / (sqrt(v) + eps) without eps_in_sqrt.

    T. Tieleman and G. Hinton, Lecture 6.5 - RMSProp (2012).

    >>> opt = scale_by_rms(decay=0.75, eps=0.0)
    >>> opt.update([np.array([4.0])], opt.init([np.zeros(1)]))[0]
    [array([2.])]
    """
    def init(params):
        return ScaleByRmsState(0, tree_map(lambda p: np.full_like(p, initial_scale), params))

    def update(updates, state, params=None):
        count = state.count + 1

        def moments(g, v):
            nu = decay * v + (1 - decay) * abs_sq(g)
            v = nu / (1 - decay ** count) if bias_correction else nu
            u = g / (_root(v, 0.0, eps) if eps_in_sqrt else _root(v, eps, 0.0))
            return u, nu
        updates, nu = map_several(moments, 2, updates, state.nu)
        return updates, ScaleByRmsState(count, nu)
    return GradientTransformation(init, update)


def scale_by_stddev(decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True,
                    bias_correction: bool = False) -> GradientTransformation:
    """As scale_by_rms with v - m^2 instead of v: the centred form of RMSProp.

    A. Graves, Generating sequences with recurrent neural networks (2013), equations 38 to 41.
    """
    def init(params):
        start = tree_map(lambda p: np.full_like(p, initial_scale), params)
        return ScaleByStdDevState(0, tree_zeros_like(params), start)

    def update(updates, state, params=None):
        count = state.count + 1

        def moments(g, m, v):
            mu = decay * m + (1 - decay) * g
            nu = decay * v + (1 - decay) * abs_sq(g)
            if bias_correction:
                m, v = mu / (1 - decay ** count), nu / (1 - decay ** count)
            else:
                m, v = mu, nu
            spread = np.maximum(v - abs_sq(m), 0.0)         # rounding may make it negative
            u = g / (_root(spread, 0.0, eps) if eps_in_sqrt else _root(spread, eps, 0.0))
            return u, mu, nu
        updates, mu, nu = map_several(moments, 3, updates, state.mu, state.nu)
        return updates, ScaleByStdDevState(count, mu, nu)
    return GradientTransformation(init, update)


def scale_by_adadelta(rho: float = 0.9, eps: float = 1e-6) -> GradientTransformation:
    """u = g * sqrt(x + eps) / sqrt(v + eps), where x is the moment of the squares of u.

    M. Zeiler, ADADELTA: an adaptive learning rate method (2012), algorithm 1.
    """
    def init(params):
        return ScaleByAdaDeltaState(tree_zeros_like(params), tree_zeros_like(params))

    def update(updates, state, params=None):
        def moments(g, v, x):
            e_g = rho * v + (1 - rho) * abs_sq(g)
            u = np.sqrt(x + eps) / np.sqrt(e_g + eps) * g
            return u, e_g, rho * x + (1 - rho) * abs_sq(u)
        updates, e_g, e_x = map_several(moments, 3, updates, state.e_g, state.e_x)
        return updates, ScaleByAdaDeltaState(e_g, e_x)
    return GradientTransformation(init, update)
