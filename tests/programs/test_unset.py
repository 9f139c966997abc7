# SPDX-License-Identifier: Apache-2.0
"""Names that some passes and branches set, others only hand on: a program may never read them before they are set."""
import numpy as np
import pytest

import gradscribe as gs

FORMS = pytest.mark.parametrize("form", [lambda f: f, gs.jit], ids=["plain", "jit"])


def where_asked(a, n, c):
    for k in range(n):
        if c > 0.6:
            for _ in range(k + 1):
                x = np.tanh(a)
            x, a = x + 1, a * x
    return np.sum(a * a)


def in_while(a, n, c):
    k = 0
    while k < n:
        if c > 0.6:
            for _ in reversed(range(n)):
                x = np.tanh(a)
            x, a = x * 0.8 + 0.2 * np.tanh(x + 0.25), a - 0.1 * np.where(a > x, a, x)
        k += 1
    return np.sum(a * a)


def from_the_second(a, n, c):
    for k in range(n):
        if k > 0 and c > 0.6:
            for _ in range(k):
                x = a * a
            x, a = x - 1, a * x
    return np.sum(a * a)


def slope(f, a, n, c):
    step = 1e-30
    moved = [f(a + 1j * step * np.eye(a.size)[k].reshape(a.shape), n, c) for k in range(a.size)]
    return np.reshape(np.imag(moved) / step, a.shape)


@FORMS
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("c", [0.0, 1.0])
@pytest.mark.parametrize("f", [where_asked, from_the_second])
def test_gradients(f, c, n, form):
    a = np.array([0.3, -0.4, 0.9])
    expected = slope(f, a, n, c)
    np.testing.assert_allclose(form(gs.grad(f))(a, n, c), expected, rtol=1e-14)
    value, tangent = form(lambda a, v: gs.jvp(lambda a: f(a, n, c), (a,), (v,)))(a, np.ones(3))
    np.testing.assert_allclose([value, tangent], [f(a, n, c), np.sum(expected)], rtol=1e-14)


@FORMS
@pytest.mark.parametrize("c", [0.0, 1.0])
def test_while(c, form):
    a, h = np.array([0.3, -0.4, 0.9]), 1e-6
    grad = form(gs.grad(in_while))(a, 3, c)
    around = [in_while(a + h * e, 3, c) - in_while(a - h * e, 3, c) for e in np.eye(3)]
    np.testing.assert_allclose(grad, np.array(around) / (2 * h), rtol=1e-8)


@FORMS
@pytest.mark.parametrize("f", [where_asked, from_the_second])
def test_second_derivatives(f, form):
    a, v, h = np.array([1.3, -0.8, 0.9]), np.array([1.0, 0.5, -2.0]), 2e-4
    for c in 0.0, 1.0:
        found = form(gs.grad(lambda a, c: np.dot(gs.grad(f)(a, 3, c), v)))(a, c)
        near, far = ((slope(f, a + k * v, 3, c) - slope(f, a - k * v, 3, c)) / (2 * k) for k in (h, 2 * h))
        np.testing.assert_allclose(found, (4 * near - far) / 3, rtol=1e-8)      # Richardson's extrapolation


@FORMS
def test_batches(form):
    a, c = np.linspace(-1, 1, 6).reshape(3, 2), np.array([0.0, 1.0, 0.7])
    found = form(gs.vmap(gs.grad(where_asked), (0, None, 0)))(a, 2, c)
    np.testing.assert_allclose(found, [slope(where_asked, *row) for row in zip(a, [2] * 3, c)], rtol=1e-14)


def test_what_is_read_too_early_is_an_error():
    def early(a, n):
        for k in range(n):
            if k > 0:
                for _ in range(k - 1):
                    x = np.tanh(a)
                x, a = x + 1, a * x
        return np.sum(a * a)
    for f in early, gs.grad(early), gs.vmap(gs.grad(early), (0, None)):
        with pytest.raises((UnboundLocalError, TypeError)):
            f(np.ones((2, 2)), 2)


@pytest.mark.parametrize("x", [(1.5, 0.4, 1.2), (0.5, 0.4, 1.2), (0.5, 0.4, 0.9), (1.5, 1.4, 1.2)])
def test_what_the_first_pass_may_not_find(x):
    def f(x):
        t = 0.0
        if x[0] > 1:
            y = x * 2
        for k in range(len(x)):
            if x[k] > 1:
                t = t + np.sum(y * y)
            y = np.sin(x * x[k])
        return t
    x = np.array(x)
    want = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gs.grad(f)(x), want, rtol=1e-8, atol=1e-8)
