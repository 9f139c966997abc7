# SPDX-License-Identifier: Apache-2.0
"""gs.optim against jax.example_libraries.optimizers, jax.scipy.optimize, jax.scipy.sparse.linalg and jax's odeint."""
import jax
import jax.numpy as jnp
import jax.scipy.optimize
import jax.scipy.sparse.linalg
import numpy as np
import pytest
from jax.example_libraries import optimizers
from jax.experimental.ode import odeint

import gradscribe as gs
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


def quartic(x):
    return ((x - 1.0) ** 4).sum() + (x ** 2).sum() + x[0] * x[1]


def test_minimize():
    theirs = jax.scipy.optimize.minimize(quartic, np.zeros(4), method="BFGS", tol=1e-8)
    for method in ("BFGS", "L-BFGS", "Newton-CG"):
        ours = optim.minimize(quartic, np.zeros(4), method=method, tol=1e-8)
        assert ours.success
        np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)


def test_linear_solvers():
    a, b = RNG.normal(size=(12, 12)), RNG.normal(size=12)
    shifted = a + 6 * np.eye(12)
    for name, matrix in [("cg", a @ a.T + 12 * np.eye(12)), ("bicgstab", shifted), ("gmres", shifted)]:
        for words in ({}, {"x0": b}, {"M": np.eye(12) / 12.0}):
            theirs, _ = getattr(jax.scipy.sparse.linalg, name)(matrix, b, tol=1e-12, **words)
            ours, info = getattr(optim, name)(matrix, b, tol=1e-12, **words)
            assert info.success
            np.testing.assert_allclose(ours, theirs, atol=1e-10)


def swing(y, t, m, k):
    return np.stack([y[1], -m * y[1] - k * np.sin(y[0]) + 0.1 * t])


def swing_jax(y, t, m, k):
    return jnp.stack([y[1], -m * y[1] - k * jnp.sin(y[0]) + 0.1 * t])


def test_odeint():
    args = np.array([1.0, 0.0]), np.linspace(0.0, 5.0, 7), 0.3, 2.0
    weights = RNG.normal(size=(7, 2))
    words = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(optim.odeint(swing, *args, **words), odeint(swing_jax, *args, **words), atol=1e-9)
    theirs = jax.grad(lambda *a: jnp.sum(weights * odeint(swing_jax, *a, **words)), argnums=(0, 1, 2, 3))(*args)
    for adjoint in ("steps", "continuous"):
        ours = gs.grad(lambda *a: np.sum(weights * optim.odeint(swing, *a, **words, adjoint=adjoint)),  # noqa: B023
                       argnums=(0, 1, 2, 3))(*args)
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)


def test_implicit_derivatives():
    """The derivative of a root is jax's through Newton's steps, which are enough to be exact."""
    def system(x, a):
        return x ** 3 + np.roll(x, 1) * a - 0.3

    def unrolled(a):
        x = jnp.ones(3)
        for _ in range(12):
            f = x ** 3 + jnp.roll(x, 1) * a - 0.3
            x = x - jnp.linalg.solve(jnp.diag(3 * x ** 2) + jnp.roll(jnp.eye(3), 1, axis=1).T * a[:, None], f)
        return x
    a = np.array([0.5, 0.7, 0.9])
    np.testing.assert_allclose(gs.jacrev(lambda a: optim.root(system, np.ones(3), (a,)).x)(a), jax.jacrev(unrolled)(a),
                               rtol=1e-9, atol=1e-10)
