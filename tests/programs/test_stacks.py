"""Lists that grow and shrink while a loop runs: checkpointed, compiled, and differentiated inside other functions."""
import numpy as np
import pytest

import gradscribe as gs


def tree(x, t):
    total = 0.0
    stack = [0]
    while stack:
        i = stack.pop()
        total += t * np.sum(x[i] ** 2)
        if i < 3:
            stack.append(i + 1)
        if i < 2:
            stack.append(i + 2)
    return total


def tree_of_pairs(x, t):
    total = 0.0
    stack = [(0, 1.0)]
    while stack:
        i, w = stack.pop()
        total += w * np.sum(x[i] ** 2)
        if 2 * i + 1 < 4:
            stack.append((2 * i + 1, w * t))
        if 2 * i + 2 < 4:
            stack.append((2 * i + 2, w * t * t))
    return total


def rows_that_are_positive(x, t):
    y = x * t
    rows = []
    for i in range(4):
        if y[i, 0] > 0:
            rows.append(y[i] * 2)
    for r in rows:
        y[0] += r
    return np.sum(y ** 2)


X = np.array([[0.3, -0.4], [0.5, 1.2], [-0.7, 0.1], [0.2, 0.9]])


@pytest.mark.parametrize("f", [tree, tree_of_pairs, rows_that_are_positive])
def test_derivatives(f):
    step = 1e-30
    moved = [f(X + 1j * step * e.reshape(X.shape), 0.7) for e in np.eye(X.size)]
    expected = np.reshape(np.imag(moved) / step, X.shape)
    for form in (gs.grad(f), gs.grad(gs.checkpoint(f)), gs.jit(gs.grad(f)), gs.jit(gs.grad(gs.checkpoint(f))),
                 gs.jacfwd(f), gs.jacrev(f)):
        np.testing.assert_allclose(form(X, 0.7), expected, rtol=1e-12, atol=1e-15)


def rows_that_may_be_none(x, t):
    rows = []
    while np.sum(x) * t > 1.0:
        rows.append(np.outer(x, np.ones(2)) * t)
        t = t * 0.5
    total = np.sum(np.array(rows), axis=0)
    y = total + np.ones((1, 2))
    for row in y:
        t = t + np.sum(row) * 0.1
    return np.sum(y * y) * t


@pytest.mark.parametrize("t", [0.9, 0.1])
def test_a_list_that_stays_empty_has_no_axes(t):
    """np.sum of an array of an empty list is a number, and broadcasts as one."""
    x = np.array([0.7, 0.9])
    dx, dt = gs.grad(rows_that_may_be_none, (0, 1))(x, t)
    ends = [(rows_that_may_be_none(x + a, t + b) - rows_that_may_be_none(x - a, t - b)) / 2e-6
            for a, b in ((np.array([1e-6, 0]), 0), (np.array([0, 1e-6]), 0), (0 * x, 1e-6))]
    np.testing.assert_allclose([*dx, dt], ends, rtol=1e-6, atol=1e-8)


def counted_rows(x, n, part):
    rows = []
    for _ in range(n):
        rows.append(np.outer(x, np.ones(2)))
    total = np.sum(part(np.array(rows)), axis=0)
    s = np.sum(x)
    for row in total + np.ones((1, 2)):
        s = s + np.sum(row) * s * 0.1
    return s


@pytest.mark.parametrize("part", [lambda rows: rows, lambda rows: rows[1:], lambda rows: rows[::-1] ** 2])
def test_a_count_of_none(part):
    """A call without passes is of a version of its own."""
    x, d = np.array([0.7, 0.9]), gs.grad(counted_rows)
    for n in (2, 0, 1, 0):
        expected = [np.imag(counted_rows(x + 1e-30j * e, n, part)) * 1e30 for e in np.eye(2)]
        np.testing.assert_allclose(d(x, n, part), expected, rtol=1e-12)
