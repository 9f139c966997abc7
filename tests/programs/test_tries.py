# SPDX-License-Identifier: Apache-2.0
"""try with handlers that go on: what raises is known only when running."""
import math

import numpy as np
import pytest

import gradscribe as gs

A, B = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([1.0, 2.0])


def two_that_may_raise(A, b):
    try:
        L = np.linalg.cholesky(A)
        y = np.linalg.solve(L, b)
    except np.linalg.LinAlgError:
        y = b * 2.0
    return np.sum(y * y)


def several_handlers(A, b, k=2):
    n = 6
    try:
        n //= k
        np.linalg.inv(A)
        y = n * np.linalg.solve(A, b)
    except ZeroDivisionError:
        y = 3 * b
    except (np.linalg.LinAlgError, ValueError):
        y = b * b
    else:
        y = y * y
    finally:
        b = b + 1
    return np.sum(y * b)


def without_a_quotient(A, b):
    return several_handlers(A, b, 0)


def changed_before_it_raises(A, b):
    y, n = b.copy(), 1.0
    try:
        y[0] = b[1] ** 2
        n = 2.0
        A = np.linalg.inv(A)
        n = 3.0
    except np.linalg.LinAlgError:
        A = A * 0.5 + y[0] * n
    return np.sum(A @ y) * n


def tries_in_a_loop(A, b):
    total = 0.0
    for k in range(3):
        try:
            total += np.sum(np.linalg.solve(A * (k - 1), b))
            total *= np.linalg.cholesky(A)[0, 0]
        except np.linalg.LinAlgError:
            total = total * 2 + b[0]
    return total


@pytest.mark.parametrize("f", [two_that_may_raise, several_handlers, without_a_quotient, changed_before_it_raises,
                               tries_in_a_loop])
@pytest.mark.parametrize("A", [A, -A, np.ones((2, 2))], ids=["positive", "negative", "singular"])
def test_gradient_on_each_path(f, A):
    dA, db = gs.grad(f, (0, 1))(A, B)
    assert gs.value_and_grad(f)(A, B)[0] == f(A, B)
    rng = np.random.default_rng(0)
    if np.linalg.matrix_rank(A) == 2:               # a singular matrix is not singular beside itself
        S = rng.normal(size=(2, 2))
        d = (f(A + 1e-6 * S, B) - f(A - 1e-6 * S, B)) / 2e-6
        np.testing.assert_allclose(np.sum(dA * S), d, rtol=1e-7, atol=1e-7)
    v = rng.normal(size=2)
    d = (f(A, B + 1e-6 * v) - f(A, B - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(db @ v, d, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(gs.jvp(lambda b: f(A, b), (B,), (v,))[1], d, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(gs.vmap(lambda b: f(A, b))(np.stack([B, v])), [f(A, B), f(A, v)], rtol=1e-12)


@pytest.mark.parametrize("x", [[1.2, 3.0, 2.0], [5.2, 3.0, 2.0], [-4.0, 1.0, 2.0]])
def test_store_at_an_index_that_may_be_out_of_range(x):
    def f(x):
        y = x.copy()
        try:
            y[math.floor(x[0])] = x[1] ** 2
        except IndexError:
            y = -y
        return np.sum(y * y)
    x = np.array(x)
    eye = np.eye(3) * 1e-6
    d = [(f(x + e) - f(x - e)) / 2e-6 for e in eye]
    np.testing.assert_allclose(gs.grad(f)(x), d, rtol=1e-7)


@pytest.mark.golden
def test_source(golden):
    fn = gs.grad(two_that_may_raise, (0, 1))
    fn(A, B)
    golden("two_that_may_raise.py", fn.source)
