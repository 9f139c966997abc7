# SPDX-License-Identifier: Apache-2.0
"""What Python makes later than the line that names it: a write in between is refused, and never left out.

So is a read of what stands for an element of a list, sorted or chosen when running, after a write into its array.
"""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 0.2, 0.35])


def chosen_and_written(x):
    pair = [x[:2] * 1.0, x[1:] * 2.0]
    row = pair[int(x[0] > 0.1)]
    pair[1][0] = 5.0
    return np.sum(row)


def sorted_and_written(x):
    y = np.outer(x, x)
    rows = sorted(y, key=np.sum)
    y[0] = 7.0
    return np.sum(rows[0]) + 2 * np.sum(rows[2])


def an_iterator(x):
    y = x.copy()
    it = iter(y)
    a = next(it)
    y[1] = a * 2
    return a * next(it)


def an_iterator_in_a_loop(x):
    y, total = x.copy(), 0.0
    for v in iter(y):
        y[2] = total * 3
        total = total + v * v
    return total


def pairs(x):
    y = x.copy()
    e = zip(y, x)
    y[0] = 4 * x[1]
    return sum(a * b for a, b in e)


def numbered(x):
    y = x.copy()
    e = enumerate(y)
    y[::-1][2] = 4 * x[1]
    return sum(i * v + v for i, v in e)


def mapped(x):
    y = x.copy()
    e = map(lambda v: v * v, y)
    y[0] = 4 * x[1]
    return sum(e)


def a_generator(x):
    y = x.copy()
    e = (v * v for v in y)
    y[0] = 4 * x[1]
    return sum(e)


@pytest.mark.parametrize("f", [chosen_and_written, sorted_and_written, an_iterator, an_iterator_in_a_loop, pairs,
                               numbered, mapped, a_generator])
def test_a_write_in_between_is_refused(f):
    for transformed in (gs.grad(f), gs.jit(gs.grad(f)), gs.jit(f), gs.jacfwd(f)):
        with pytest.raises(gs.TransformError, match="may have changed|was made before"):
            transformed(X)


def unchanged(x):
    y = x.copy()
    it, e, m, z = iter(y), enumerate(y), map(lambda v: v * v, y), (v * 3 for v in y)
    w = y * 2
    a = next(it)
    w[0] = a
    return a * next(it) + sum(i * v for i, v in e) + sum(m) * sum(z) + np.sum(w)


def test_what_stays_is_read():
    found = gs.grad(unchanged)(X)
    wanted = [(unchanged(X + e) - unchanged(X - e)) / 2e-6 for e in np.eye(3) * 1e-6]
    np.testing.assert_allclose(found, wanted, rtol=1e-7)
    np.testing.assert_allclose(gs.jit(gs.grad(unchanged))(X), found, rtol=1e-12)
