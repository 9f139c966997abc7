# SPDX-License-Identifier: Apache-2.0
"""Lists that are made anew in each pass and written at a running index, for all examples at once."""
import numpy as np
import pytest

import gradscribe as gs


def squares(x):
    s = 1.0
    for i in range(2):
        m = [x[0], x[1]]
        m[i] = s * s
        s = s + m[0] * m[1]
    return s


def products(x):
    s = 1.0
    for i in range(2):
        m = [x[0], x[1]]
        m[i] = x[0] * s
        s = s * m[0] * m[1]
    return s


def vectors(x):
    s = 1.0
    for i in range(len(x)):
        m = [x, x * 2, x * 3]
        m[i] = x * x[i]
        s = s + m[0] @ m[2] + np.sum(m[1]) * s
    return s


def made_of_itself(x):
    items = [x[0], x[1]]
    for i in range(3):
        items[i % 2] = items[0] * items[1] + x[0]
        items = [items[1], items[0] * items[1]]
    return items[0] + items[1]


def in_two_loops(x):
    s = 1.0
    for i in range(2):
        m = [x[0], x[1]]
        for j in range(2):
            m[j] = m[j] * s + m[i]
        s = s * m[0] + m[1] * m[0]
    return s


@pytest.mark.parametrize("f, n", [(squares, 2), (products, 2), (vectors, 3), (made_of_itself, 2), (in_two_loops, 2)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_of_lists(f, n, count):
    batch = np.random.default_rng(count).uniform(0.3, 1.2, (count, n))
    want = [gs.grad(f)(x) for x in batch]
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(batch), want, rtol=1e-12)
    np.testing.assert_allclose(gs.jit(gs.vmap(gs.grad(f)))(batch), want, rtol=1e-12)
    for x in batch:
        steps = 1e-6 * np.eye(n)
        second = [(gs.grad(f)(x + e) - gs.grad(f)(x - e)) / 2e-6 for e in steps]
        np.testing.assert_allclose(gs.hessian(f)(x), second, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(gs.vmap(gs.hessian(f))(batch), [gs.hessian(f)(x) for x in batch], rtol=1e-12)


M = np.array([[1.0, 2.0], [-3.0, 0.5]])


def powers(x):
    """The first matrix is the same for all examples: its row must not become a column of the batch."""
    held = [M]
    held.append(x * M)
    for n in range(1, 3):
        held.append(x * held[n] - n * held[n - 1])
    return held[0][0] @ held[1][1] + np.sum(np.array(held)[:, 0])


def after_a_loop(x):
    held = []
    for k in range(len(x)):
        held.append(M * k)
    held.append(x * M)
    return held[1][0] @ held[-1][1] + held[0][1, 0] * x[0]


def before_a_loop(x, many):
    held = list(np.zeros((many, 2)))
    for k in range(many):
        held.append(x * (held[k] + k))
    return np.sum(held[many] + held[-1] * x[::-1])


def orthogonal(c):
    """Legendre polynomials of tanh(c): the tangent of the first is zero."""
    x = np.tanh(c)
    P = [np.ones_like(x), x]
    for n in range(1, len(c) + 1):
        P.append(((2 * n + 1) * x * P[n] - n * P[n - 1]) / (n + 1))
    return sum((k + 1) * np.sum(p ** 2) for k, p in enumerate(P))


@pytest.mark.parametrize("f", [powers, after_a_loop, lambda x: before_a_loop(x, len(x)), orthogonal])
@pytest.mark.parametrize("count", [2, 3])
def test_lists_that_begin_with_arrays_alike(f, count):
    batch = np.random.default_rng(count).uniform(0.3, 1.2, (count, 2))
    for g in (f, gs.grad(f)):
        np.testing.assert_allclose(gs.vmap(g)(batch), [g(x) for x in batch], rtol=1e-12)
        np.testing.assert_allclose(gs.jit(gs.vmap(g))(batch), [g(x) for x in batch], rtol=1e-12)
    x, h = batch[0], 1e-5
    slopes = [(gs.grad(f)(x + e) - gs.grad(f)(x - e)) / (2 * h) for e in h * np.eye(2)]
    np.testing.assert_allclose(gs.hessian(f)(x), slopes, rtol=1e-7, atol=1e-8)
