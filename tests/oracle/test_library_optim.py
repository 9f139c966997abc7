# SPDX-License-Identifier: Apache-2.0
"""gs.optim against jax.example_libraries.optimizers, jax.scipy.optimize, jax.scipy.sparse.linalg and jax's odeint."""
import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers

from gradscribe import optim

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(0)
SHAPES = [(3, 4), (4,), (4, 2), ()]
PARAMS = [RNG.normal(size=shape) for shape in SHAPES]
GRADS = [[np.asarray(RNG.normal(size=shape)) for shape in SHAPES] for _ in range(100)]

PAIRS = {
    "sgd": (optim.sgd(0.1), optimizers.sgd(0.1)),
    "momentum": (optim.momentum(0.1, 0.8), optimizers.momentum(0.1, 0.8)),
    "nesterov": (optim.nesterov(0.1, 0.8), optimizers.nesterov(0.1, 0.8)),
    "adagrad": (optim.chain(optim.scale_by_rss(0.0, 0.0), optim.ema(0.9, debias=False), optim.scale(-0.1)),
                optimizers.adagrad(0.1, momentum=0.9)),
    "rmsprop": (optim.rmsprop(0.1, 0.8, 1e-6), optimizers.rmsprop(0.1, 0.8, 1e-6)),
    "rmsprop_momentum": (optim.chain(optim.scale_by_rms(0.8), optim.scale(0.1), optim.trace(0.7), optim.scale(-1.0)),
                         optimizers.rmsprop_momentum(0.1, 0.8, momentum=0.7)),
    "adam": (optim.adam(0.1, 0.8, 0.99), optimizers.adam(0.1, 0.8, 0.99)),
    "adamax": (optim.adamax(0.1, 0.8, 0.99, 0.0), optimizers.adamax(0.1, 0.8, 0.99, 0.0)),
    "scheduled": (optim.adam(optim.exponential_decay(0.1, 10, 0.5)),
                  optimizers.adam(optimizers.exponential_decay(0.1, 10, 0.5))),
    "polynomial": (optim.sgd(optim.polynomial_schedule(0.5, 0.1, 2.0, 50)),
                   optimizers.sgd(optimizers.polynomial_decay(0.5, 50, 0.1, 2.0))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_rules(name):
    ours, (init, update, get) = PAIRS[name]
    params, theirs = PARAMS, init(PARAMS)
    state = ours.init(params)
    for k, grads in enumerate(GRADS):
        updates, state = ours.update(grads, state, params)
        params = optim.apply_updates(params, updates)
        theirs = update(k, grads, theirs)
        for a, b in zip(params, get(theirs)):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_clip_grads():
    for bound in (0.5, 500.0):
        opt = optim.clip_by_global_norm(bound)
        for a, b in zip(opt.update(GRADS[0], ())[0], optimizers.clip_grads(GRADS[0], bound)):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    np.testing.assert_allclose(optim.global_norm(GRADS[0]), optimizers.l2_norm(GRADS[0]), rtol=1e-14)
