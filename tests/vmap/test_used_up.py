"""A list that is the same for all examples, and that each example uses up, is made for each of them."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, -0.5, 0.7, 1.1])


def newton(x):
    total = 0.0
    for i in range(x.shape[0]):
        a = x[i] * x[i] + 1.0
        r = a
        while abs(r * r - a) > 1e-13:
            r = 0.5 * (r + a / r)
        total += r * x[i]
    return total


g = gs.grad(newton)             # of x * sqrt(x * x + 1), entry by entry
ROOT = np.sqrt(X * X + 1)
SECOND = np.diag(X * (2 * X * X + 3) / ROOT**3)


def products(v):
    return gs.vjp(g, X)[1](v)[0]


def products_and_more(v):
    return gs.vjp(g, X)[1](v)[0], v[0]


def tangents(v):
    return gs.jvp(g, (X,), (v,))[1]


@pytest.mark.parametrize("transformed", [gs.jit, lambda f: f], ids=["compiled", "plain"])
def test_batches_of_pullbacks(transformed):
    for f in (gs.jacrev(g), gs.jacfwd(g), gs.hessian(newton)):
        np.testing.assert_allclose(transformed(f)(X), SECOND, atol=1e-12)
        both = transformed(gs.vmap(f))(np.stack([X, X[::-1]]))
        np.testing.assert_allclose(both, np.stack([SECOND, SECOND[::-1, ::-1]]), atol=1e-12)
    for f in (products, tangents):
        np.testing.assert_allclose(transformed(gs.vmap(f))(np.eye(4)), SECOND, atol=1e-12)
    np.testing.assert_allclose(transformed(gs.vmap(products_and_more))(np.eye(4))[0], SECOND, atol=1e-12)


def test_closed_form():
    step = 1e-5
    slopes = (g(X + step) - g(X - step)) / (2 * step)
    np.testing.assert_allclose(np.diag(SECOND), slopes, rtol=1e-8)
