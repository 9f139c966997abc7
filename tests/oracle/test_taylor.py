"""gs.jet against jax.experimental.jet: the same call, the same result."""
import numpy as np
import pytest

import gradscribe as gs

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
jet = pytest.importorskip("jax.experimental.jet").jet

FUNCTIONS = {
    "polynomial": lambda np, x, y: x ** 3 - 2 * x * y + y ** 2 / (1 + x * x),
    "exponentials": lambda np, x, y: np.exp(-x * y) * np.log1p(y * y) + np.expm1(x),
    "angles": lambda np, x, y: np.sin(x) * np.cos(y) + np.sinh(x) / np.cosh(y),
    "roots": lambda np, x, y: np.sqrt(1 + x * x) + (1 + y * y) ** -1.5 + 1 / np.sqrt(2 + y),
    "tanh": lambda np, x, y: np.tanh(x + y) * np.square(x),
    "choices": lambda np, x, y: np.where(x > y, x * y, np.sin(x)) + np.abs(x) + np.maximum(x, y * y),
    "sums": lambda np, x, y: np.sum(x * y) * np.cumsum(x) + np.max(x * y),
    "products": lambda np, x, y: np.dot(x, y) * np.outer(x, y) @ x,
    "shapes": lambda np, x, y: np.concatenate([x * y, np.sin(x)[::-1]]).reshape(2, -1).T,
    "several": lambda np, x, y: (x * y, np.sum(x)),
}


@pytest.mark.parametrize("order", (1, 2, 5))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_as_jax(name, order):
    f, rng = FUNCTIONS[name], np.random.default_rng(1)
    primals = [rng.uniform(0.3, 1.2, 4) for _ in range(2)]
    series = [[rng.standard_normal(4) for _ in range(order)] for _ in range(2)]
    with jax.enable_x64(True):
        theirs = jet(lambda x, y: f(jnp, x, y), primals, series)
    ours = gs.jet(lambda x, y: f(np, x, y), primals, series)
    compare(ours, theirs)


@pytest.mark.parametrize("order", (2, 4))
def test_unscaled_as_in_jax(order):
    f, rng = FUNCTIONS["exponentials"], np.random.default_rng(2)
    primals = [rng.uniform(0.3, 1.2, 3) for _ in range(2)]
    series = [[rng.standard_normal(3) for _ in range(order)] for _ in range(2)]
    with jax.enable_x64(True):
        theirs = jet(lambda x, y: f(jnp, x, y), primals, series, factorial_scaled=False)
    compare(gs.jet(lambda x, y: f(np, x, y), primals, series, factorial_scaled=False), theirs)


def compare(ours, theirs):
    assert jax.tree_util.tree_structure(ours) == jax.tree_util.tree_structure(theirs)
    for a, b in zip(jax.tree_util.tree_leaves(ours), jax.tree_util.tree_leaves(theirs)):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(b))))
