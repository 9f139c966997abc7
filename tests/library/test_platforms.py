"""gs.lax.platform_dependent: which function is taken, wherever it stands."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax
from gradscribe.runtime import device

X = np.array([1.0, 2.0, 3.0])


def f(x, k):
    """Ten times as much on a device, to see which one it is."""
    y = lax.platform_dependent(x, cuda=lambda x: 10 * np.sin(x) * k, default=lambda x: np.sin(x) * k)
    return np.sum(y)


def test_the_processor():
    np.testing.assert_allclose(f(X, 2.0), 2 * np.sum(np.sin(X)))
    np.testing.assert_allclose(gs.jit(f)(X, 2.0), 2 * np.sum(np.sin(X)))
    np.testing.assert_allclose(gs.grad(f)(X, 2.0), 2 * np.cos(X))
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X, 2.0), 2 * np.cos(X))
    np.testing.assert_allclose(gs.vmap(f, (0, None))(np.stack([X, X]), 2.0), np.full(2, 2 * np.sum(np.sin(X))))
    np.testing.assert_allclose(lax.platform_dependent(X, cpu=np.cos, default=np.sin), np.cos(X))


def test_a_device():
    with device.using("plain"):
        np.testing.assert_allclose(gs.jit(f, target="cuda")(X, 2.0), 20 * np.sum(np.sin(X)))
        np.testing.assert_allclose(gs.jit(gs.grad(f), target="cuda")(X, 2.0), 20 * np.cos(X))
        np.testing.assert_allclose(gs.jit(gs.jacfwd(lambda x: gs.grad(f)(x, 2.0)), target="cuda")(X),
                                   np.diag(-20 * np.sin(X)), atol=1e-14)
        np.testing.assert_allclose(gs.jit(gs.vmap(f, (0, None)), target="cuda")(np.stack([X, X]), 2.0),
                                   np.full(2, 20 * np.sum(np.sin(X))))
    np.testing.assert_allclose(gs.jit(f)(X, 2.0), 2 * np.sum(np.sin(X)))         # the same function, after that


def test_jax_has_it_so():
    jax = pytest.importorskip("jax")
    found = jax.jit(lambda x: jax.lax.platform_dependent(x, cuda=lambda x: x, default=lambda x: x * 2))(X)
    np.testing.assert_allclose(found, lax.platform_dependent(X, cuda=lambda x: x, default=lambda x: x * 2))
