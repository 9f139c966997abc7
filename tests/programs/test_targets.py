# SPDX-License-Identifier: Apache-2.0
"""The target of a loop is changed in place: after the loop it shows what the last pass gave it."""
import numpy as np
import pytest

import gradscribe as gs

X, Y = np.random.default_rng(0).normal(size=(3, 2)), np.array([0.3, 0.5])


def first_pass_of_another_kind(x, y):
    total = 0.0
    for row in x:
        row -= 0.2 * y
        total = total + y
    return np.sum(row * row) + np.sum(total)


def in_an_inner_loop(x, y):
    total = 0.0
    for row in x:
        for k in range(2):
            if k == 1:
                continue
            row -= 0.2 * y[0]
        total = total + y
    return np.sum(row * row) + np.sum(total)


def set_before(x, y):
    row = x[0]
    for row in x:
        row -= 0.2 * y
    return np.sum(row * row)


def another_array_before(x, y):
    row = y
    for row in x:
        row *= y
    return np.sum(row * row)


def two_targets(x, y):
    a = x[1]
    a += 1
    for a, b in zip(x, x[::-1]):
        b *= y
        a += y
    return np.sum(a * b)


def target_of_an_inner_loop(x, y):
    row = x[1]
    for _ in range(3):
        for row in x:
            row *= y
        y = y + row
    return np.sum(row * y)


def lists(x, y):
    items, total = [1.0], 0.0
    for items in [[x[0, 0]], [y[0] * x[1, 1]]]:
        items = items + [2.0 * x[0, 1]]
        total = total + sum(items)
    return total * items[0]


def left_early(x, y):
    row = x[1]
    for row in x:
        if row[0] > 0.6:
            break
        row *= y
    return np.sum(row * y)


def a_row_in_one_pass(x, y):
    for i in range(len(x)):
        if i == 1:
            y = x[i]
        for _ in x:
            y -= 0.7 * x[0]
        y = x[:, 0][:2] * 2
    return np.sum(y) + np.sum(x)


def a_row_or_a_column(x, y):
    for _ in range(3):
        row = x[1] if y[0] > 0 else x[:2, 0]
        for k in range(2):
            row *= y
            y = y + row * k
        row = y
    return np.sum(row * x[1]) + np.sum(x)


@pytest.mark.parametrize("f", [a_row_in_one_pass, a_row_or_a_column,
                               first_pass_of_another_kind, in_an_inner_loop, set_before, another_array_before,
                               two_targets, target_of_an_inner_loop, lists, left_early])
def test_derivatives(f):
    def at(x, y):
        return f(x.copy(), y.copy())
    value, (dx, dy) = gs.value_and_grad(f, (0, 1))(X.copy(), Y.copy())
    np.testing.assert_allclose(value, at(X, Y), rtol=1e-15)
    for k in np.ndindex(X.shape):
        e = np.zeros_like(X)
        e[k] = 1e-6
        np.testing.assert_allclose(dx[k], (at(X + e, Y) - at(X - e, Y)) / 2e-6, rtol=1e-7, atol=1e-9)
    for e, found in zip(np.eye(2) * 1e-6, dy):
        np.testing.assert_allclose(found, (at(X, Y + e) - at(X, Y - e)) / 2e-6, rtol=1e-7, atol=1e-9)
    for found, wanted in zip(gs.jit(gs.grad(f, (0, 1)))(X.copy(), Y.copy()), (dx, dy)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(gs.jvp(f, (X.copy(), Y.copy()), (X, Y))[1], np.sum(dx * X) + np.sum(dy * Y), rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(f)(np.stack([X, -X]), np.stack([Y, Y])), [at(X, Y), at(-X, Y)], rtol=1e-13)
