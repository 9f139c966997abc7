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
