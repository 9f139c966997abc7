# SPDX-License-Identifier: Apache-2.0
"""Python's sorted and list.sort where the order is known only when running; arrays taken apart by iterators."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, -1.2, 0.8, 0.1, -0.4])


def array(x):
    y = sorted(x)
    return y[0] ** 2 + 3 * y[1] - y[-1] * y[0]


def numbers(x):
    lo, mid, hi = sorted([x[0], x[1] * x[2], 2 * x[3]])
    return hi - mid * lo


def pairs_by_a_key(x):
    points = [(x[0], x[1]), (x[2], x[3]), (x[4], x[0])]
    points.sort(key=lambda p: p[1], reverse=True)
    return points[0][0] * points[1][1] + points[2][0] ** 2


def pairs(x):
    return sum(k * a * b * b for k, (a, b) in enumerate(sorted(zip(x, x[::-1]))))


def nested(x):
    rows = sorted([((v, k), v * x[0]) for k, v in enumerate([x[1], x[2], x[3]])], reverse=True)
    (a, k), b = rows[0]
    return a * b * (k + 1)


def rows_by_their_sums(x):
    rows = sorted(np.outer(x, x), key=np.sum, reverse=True)
    return np.sum(rows[0] * rows[1] ** 2)


def largest_two(x):
    total = 0.0
    for v in sorted(x, reverse=True)[:2]:
        total += v ** 2
    return total


def ties_stay_in_their_order(x):
    rows = sorted([(1.0 * (x[0] > 0), x[0]), (1.0, x[2]), (0.0, x[1]), (1.0 * (x[3] > 0), x[3])],
                  key=lambda row: row[0], reverse=True)
    return rows[0][1] + 2 * rows[1][1] + 4 * rows[2][1] + 8 * rows[3][1]


def in_a_loop(x):
    held = [x[0], x[1], x[2]]
    for k in range(3):
        held.sort()
        held[0] = held[0] * x[k + 1] + held[2]
    return held[0] * held[1] * held[2]


def by_next(x):
    it = iter(x)
    total = next(it)
    for v in it:
        total = total * v + 1
    return total


def pairs_backwards(x):
    total = 0.0
    for (i, a), (j, b) in zip(enumerate(x), reversed(list(enumerate(x)))):
        total += a * b * (i - 2 * j)
    return total


@pytest.mark.parametrize("f", [array, numbers, pairs_by_a_key, pairs, nested, rows_by_their_sums, largest_two,
                               ties_stay_in_their_order, in_a_loop, by_next, pairs_backwards])
def test_derivatives(f):
    eye = np.eye(5) * 1e-6
    wanted = [(f(X + e) - f(X - e)) / 2e-6 for e in eye]
    value, found = gs.value_and_grad(f)(X)
    assert value == f(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.jacfwd(f)(X), found, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), found, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(np.stack([X[::-1], X]))[1], found, rtol=1e-12, atol=1e-13)
    second = [(gs.grad(f)(X + e) - gs.grad(f)(X - e)) / 2e-6 for e in eye]
    np.testing.assert_allclose(gs.hessian(f)(X), second, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", [array, largest_two, by_next])
def test_float32_and_other_lengths(f):
    df = gs.grad(f)
    for n in (3, 4):
        x = X[:n].astype(np.float32)
        found = df(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, df(x.astype(float)), rtol=1e-5)


def test_a_row_of_what_was_sorted_is_not_written_to():
    def f(x):
        rows = sorted([x[0:2], x[2:4]], key=np.sum)
        rows[0][0] = 3.0
        return np.sum(x)
    with pytest.raises(gs.TransformError):
        gs.grad(f)(X)
