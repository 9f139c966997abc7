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
