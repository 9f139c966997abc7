"""What is asked of each program: its derivatives against differences, compiled and plain, in either precision."""
import numpy as np
import pytest

import gradscribe as gs

POINTS = [np.array([0.3, -0.4, 0.8, 1.2]), np.array([1.1, 0.7, -0.9, 0.2])]


def some_fast(values, every=2):
    """All the values; `make check` takes one in `every`, `make test` the rest too."""
    return [v if k % every == 0 else pytest.param(v, marks=pytest.mark.slow) for k, v in enumerate(values)]


def differences(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


def differences_by_entry(f, x, h=1e-6):
    """The derivative by each entry of an array of any shape, in its shape."""
    out = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[k] = h
        out[k] = (f(x + e) - f(x - e)) / (2 * h)
    return out


def derivatives(f, x):
    """Value, gradient and tangent; the argument stays as it was."""
    before, want = x.copy(), differences(f, x)
    value, dx = gs.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
    np.testing.assert_allclose(dx, want, rtol=1e-6, atol=1e-6)
    direction = np.linspace(-1.0, 2.0, len(x))
    tangent = gs.jvp(f, (x,), (direction,))[1]
    np.testing.assert_allclose(tangent, want @ direction, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(x, before)


def second_derivative(f, x):
    g, weights = gs.grad(f), np.arange(1.0, 1.0 + len(x))
    made = gs.grad(lambda x: np.sum(g(x) * weights))(x)
    np.testing.assert_allclose(made, differences(lambda x: np.sum(g(x) * weights), x), rtol=1e-5, atol=1e-5)


def compiled(f):
    for x in POINTS:
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x), gs.grad(f)(x), rtol=1e-12, atol=1e-14)


def float32(f):
    for x in POINTS:
        dx = gs.grad(f)(x.astype(np.float32))
        assert dx.dtype == np.float32
        np.testing.assert_allclose(dx, gs.grad(f)(x), rtol=3e-4, atol=3e-4)


def examples(f):
    """A batch of the points, and of the gradients there, against one after the other."""
    X = np.array(POINTS)
    np.testing.assert_allclose(gs.vmap(f)(X), [f(x) for x in X], rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(X), [gs.grad(f)(x) for x in X], rtol=1e-12)
