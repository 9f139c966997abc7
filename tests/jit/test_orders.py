# SPDX-License-Identifier: Apache-2.0
"""Loops whose order, stores or sums compiled code changes: their values are those of Python's loops."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(11)


def both_halves(x):
    """Entries [i, j] and [j, i] of one array: each pass has its own."""
    n, m = x.shape
    cov = np.zeros((m, m))
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = x[:, i] @ x[:, j] / (n + 1.0)
            cov[j, i] = cov[i, j]
    return np.sum(cov * np.arange(1.0, m * m + 1).reshape(m, m))


def one_from_the_other(x):
    """Entry [j, i] is read after another pass has set it: the passes keep their order."""
    a = x.copy()
    for i in range(a.shape[1]):
        for j in range(1, a.shape[1]):
            a[i % a.shape[0], j] += 0.5 * a[i % a.shape[0], j - 1]
    return np.sum(a * a)


def rows_and_a_place(x):
    """What a row adds to goes into an entry of that row as well."""
    y = np.zeros_like(x)
    for k in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[k, j] += x[k, j]
            y[k, x.shape[1] // 2] += x[k, j] * x[k, j]
    return np.sum(y * y * y)


def product_twice(x):
    """y += row * number: one array for all passes."""
    y = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        t = x[i] @ x[0]
        y += x[i] * t
    return np.sum(y * y)


def kept_from_before(x):
    """The array of the pass before is kept under another name: each pass makes its own."""
    y = np.zeros(x.shape[1])
    before = y
    for i in range(x.shape[0]):
        before = y
        y = y + x[i] * np.sum(before)
        y = y + 1.0
    return np.sum(y * before)


def set_whole(x):
    """Zeros that are set before they are read, and zeros that are not."""
    a, b = np.zeros(x.shape), np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            a[i, j] = x[i, j] * 2.0
        for j in range(x.shape[1] - 1):
            b[i, j + 1] = x[i, j]
    return np.sum(a * b) + np.sum(b) + np.sum(a)


def left_early(x):
    """A loop that ends before it has set all."""
    a = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            a[i, j] = x[i, j] * 2.0
        if np.sum(a) > 1.0:
            break
    return np.sum(a * a)


def tridiagonal(x):
    """A recurrence with divisors that do not wait for it."""
    n = x.shape[1]
    q = np.zeros(n)
    for i in range(x.shape[0]):
        for j in range(1, n):
            q[j] = (x[i, j] - 0.3 * q[j - 1]) / (2.0 + x[i, j - 1] * x[i, j - 1])
    return np.sum(q * q)


def orthogonal(x):
    a = x.copy()
    m, n = a.shape
    q = np.zeros((m, n))
    for k in range(n):
        q[:, k] = a[:, k] / np.sqrt(a[:, k] @ a[:, k] + 0.1)
        for j in range(k + 1, n):
            a[:, j] -= q[:, k] * (q[:, k] @ a[:, j])
    return np.sum(q * np.arange(1.0, m * n + 1).reshape(m, n))


def sweeps(x):
    """Loops in loops over one range: what they save is one array."""
    a = x.copy()
    n = a.shape[1]
    for _ in range(3):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, n - 1):
                a[i, j] = np.sin(a[i, j]) * a[i, j - 1] + 0.2 * np.cos(a[i - 1, j]) * a[i + 1, j]
    return np.sum(a * a)


PROGRAMS = [both_halves, one_from_the_other, rows_and_a_place, product_twice, kept_from_before, set_whole, left_early,
            tridiagonal, orthogonal, sweeps]


@pytest.mark.parametrize("fastmath", [True, False])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_orders(f, fastmath):
    fast, gradient = gs.jit(f, fastmath=fastmath), gs.jit(gs.grad(f), fastmath=fastmath)
    plain = gs.grad(f)
    for shape in [(7, 5), (20, 33), (33, 20), (24, 24), (1, 1), (2, 1), (1, 3), (3, 2), (5, 1), (17, 40)]:
        x = RNG.normal(size=shape)
        np.testing.assert_allclose(fast(x), f(x), rtol=1e-12, atol=1e-13)
        want = plain(x)             # sums in other orders: entries are as exact as the largest one
        np.testing.assert_allclose(gradient(x), want, rtol=1e-12, atol=1e-13 * np.max(np.abs(want)))
    direction = RNG.normal(size=(6, 5))
    x, h = RNG.normal(size=(6, 5)), 1e-6
    want = (f(x + h * direction) - f(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient(x) * direction), want, rtol=2e-7, atol=1e-8)


def test_a_place_that_is_none_in_a_loop_without_passes():
    def f(y, k, n):
        y = y.copy()
        for j in range(n):
            y[j] += 1.0
            y[k] += y[0] * 0.0 + 2.0
        return y
    fast = gs.jit(f)
    y = np.arange(30.0)
    np.testing.assert_array_equal(fast(y, 40, 0), y)
    np.testing.assert_array_equal(fast(y, 3, 20), f(y, 3, 20))
    with pytest.raises(IndexError):
        fast(y, 40, 3)


def test_stores_of_loops_in_loops_are_arrays():
    source = gs.grad(sweeps)
    source(RNG.normal(size=(6, 6)))
    assert ".append(" not in source.source
    triangle = gs.grad(orthogonal)
    triangle(RNG.normal(size=(6, 6)))
    assert ".append(" not in triangle.source


def test_a_view_of_what_was_there_before_keeps_it():
    def f(x):
        y = x.copy()
        first = y[:, 0]
        for _ in range(3):
            y = y * 1.5 + np.sum(first)
        return np.sum(y * y) + np.sum(first * first)
    x = RNG.normal(size=(20, 4))
    np.testing.assert_allclose(gs.jit(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), gs.grad(f)(x), rtol=1e-12)


def test_a_row_that_is_read_while_the_next_array_is_made():
    def f(x):
        z = x * 1.0
        for _ in range(3):
            row = z[0]
            z = z * (row * 0.5) + row[1]
        return np.sum(z)
    x = RNG.normal(size=(3, 2))
    np.testing.assert_allclose(gs.jit(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), gs.grad(f)(x), rtol=1e-12)
