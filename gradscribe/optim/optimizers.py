# SPDX-License-Identifier: Apache-2.0
"""The optimizers, as chains of the parts in scaling and moments; defaults are those of Optax.

learning_rate is a number or a schedule: a function of the number of steps so far.
"""
from collections.abc import Callable
from typing import Any

from gradscribe.optim.base import GradientTransformation, chain, identity
from gradscribe.optim.moments import (
    scale_by_adadelta,
    scale_by_adam,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_lion,
    scale_by_radam,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    scale_by_yogi,
)
from gradscribe.optim.scaling import (
    add_decayed_weights,
    scale_by_learning_rate,
    scale_by_sign,
    scale_by_trust_ratio,
    trace,
)

__all__ = ["adabelief", "adadelta", "adagrad", "adam", "adamax", "adamaxw", "adamw", "amsgrad", "lamb", "lion",
           "momentum", "nadam", "nadamw", "nesterov", "radam", "rmsprop", "sgd", "sign_sgd", "yogi"]

Rate = float | Callable[[int], float]


def _decay(weight_decay, mask):
    return identity() if weight_decay == 0 else add_decayed_weights(weight_decay, mask)


def sgd(learning_rate: Rate, momentum: float | None = None, nesterov: bool = False) -> GradientTransformation:
    """Gradient descent, optionally with momentum: m = g + momentum * m.

    >>> opt = sgd(0.1)
    >>> opt.update([2.0], opt.init([1.0]))[0]
    [-0.2]
    """
    first = identity() if momentum is None else trace(momentum, nesterov)
    return chain(first, scale_by_learning_rate(learning_rate))


def momentum(learning_rate: Rate, mass: float = 0.9) -> GradientTransformation:
    """sgd with momentum mass."""
    return sgd(learning_rate, mass)


def nesterov(learning_rate: Rate, mass: float = 0.9) -> GradientTransformation:
    """sgd with Nesterov momentum mass."""
    return sgd(learning_rate, mass, nesterov=True)


def sign_sgd(learning_rate: Rate) -> GradientTransformation:
    """Descent along the sign of the gradient."""
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def adagrad(learning_rate: Rate, initial_accumulator_value: float = 0.1, eps: float = 1e-7) -> GradientTransformation:
    """Adagrad: see scale_by_rss."""
    return chain(scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate))


def rmsprop(learning_rate: Rate, decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0,
            eps_in_sqrt: bool = True, centered: bool = False, momentum: float | None = None, nesterov: bool = False,
            bias_correction: bool = False) -> GradientTransformation:
    """RMSProp: see scale_by_rms, and scale_by_stddev for centered; momentum comes after the learning rate."""
    scaled = (scale_by_stddev if centered else scale_by_rms)(decay, eps, initial_scale, eps_in_sqrt, bias_correction)
    last = identity() if momentum is None else trace(momentum, nesterov)
    return chain(scaled, scale_by_learning_rate(learning_rate), last)


def adam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0, *,
         nesterov: bool = False) -> GradientTransformation:
    """Adam: see scale_by_adam.

    >>> import numpy as np
    >>> opt = adam(0.1)
    >>> params = {"w": np.array([1.0, -2.0])}
    >>> opt.update({"w": np.array([3.0, -5.0])}, opt.init(params))[0]
    {'w': array([-0.1,  0.1])}
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov), scale_by_learning_rate(learning_rate))


def adamw(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0,
          weight_decay: float = 1e-4, mask: Any = None, *, nesterov: bool = False) -> GradientTransformation:
    """Adam with decoupled weight decay, where mask is true; update needs the parameters.  See add_decayed_weights."""
    return chain(scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov), _decay(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


def nadam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          eps_root: float = 0.0) -> GradientTransformation:
    """Adam with Nesterov momentum."""
    return adam(learning_rate, b1, b2, eps, eps_root, nesterov=True)


def nadamw(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0,
           weight_decay: float = 1e-4, mask: Any = None) -> GradientTransformation:
    """adamw with Nesterov momentum."""
    return adamw(learning_rate, b1, b2, eps, eps_root, weight_decay, mask, nesterov=True)


def amsgrad(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
            eps_root: float = 0.0) -> GradientTransformation:
    """AMSGrad: see scale_by_amsgrad."""
    return chain(scale_by_amsgrad(b1, b2, eps, eps_root), scale_by_learning_rate(learning_rate))


def adamax(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> GradientTransformation:
    """AdaMax: see scale_by_adamax."""
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-4,
            mask: Any = None) -> GradientTransformation:
    """AdaMax with decoupled weight decay, where mask is true; update needs the parameters."""
    return chain(scale_by_adamax(b1, b2, eps), _decay(weight_decay, mask), scale_by_learning_rate(learning_rate))


def yogi(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-3) -> GradientTransformation:
    """Yogi: see scale_by_yogi."""
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


def radam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0,
          threshold: float = 5.0, *, nesterov: bool = False) -> GradientTransformation:
    """Rectified Adam: see scale_by_radam."""
    return chain(scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
                 scale_by_learning_rate(learning_rate))


def adabelief(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-16, eps_root: float = 1e-16, *,
              nesterov: bool = False) -> GradientTransformation:
    """AdaBelief: see scale_by_belief."""
    return chain(scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov), scale_by_learning_rate(learning_rate))


def adadelta(learning_rate: Rate = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0,
             weight_decay_mask: Any = None) -> GradientTransformation:
    """Adadelta: see scale_by_adadelta; update needs the parameters if there is weight decay."""
    return chain(_decay(weight_decay, weight_decay_mask), scale_by_adadelta(rho, eps),
                 scale_by_learning_rate(learning_rate))


def lion(learning_rate: Rate, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 1e-3,
         mask: Any = None) -> GradientTransformation:
    """Lion: see scale_by_lion; update needs the parameters."""
    return chain(scale_by_lion(b1, b2), _decay(weight_decay, mask), scale_by_learning_rate(learning_rate))


def lamb(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6, eps_root: float = 0.0,
         weight_decay: float = 0.0, mask: Any = None) -> GradientTransformation:
    """LAMB: Adam, with each leaf scaled to the norm of its parameters; update needs the parameters.

    Y. You et al. (2020), algorithm 2.
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root), _decay(weight_decay, mask), scale_by_trust_ratio(),
                 scale_by_learning_rate(learning_rate))
