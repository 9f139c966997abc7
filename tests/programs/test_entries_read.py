# SPDX-License-Identifier: Apache-2.0
"""An entry that is read is a number: an array made of it has memory of its own, whatever is written afterwards.

A view without axes, `x[..., k]`, shows the array: so it does in a container that a loop makes or fills.
"""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9])


def spread(x):
    v = np.broadcast_to(x[0], 2)
    x[:] = 2.0
    return np.sum(v)


def spread_in_a_loop_over_them(x):
    found = []
    for item in x:
        found.append(np.broadcast_to(item, 2))
    np.negative(2.0, out=x)
    return np.sum(np.stack(found))


def spread_in_a_comprehension(x):
    found = [np.broadcast_to(item, 2) for item in x]
    x[0] = 5.0
    return np.sum(np.stack(found) ** 2)


def with_an_axis(x):
    found = [np.atleast_1d(x[0]), np.reshape(x[1], (1,))]
    x[0] = 5.0
    return np.sum(np.stack(found)) * x[1]


def written(x):
    v = np.atleast_1d(x[0])
    v[0] = 5 * x[1]
    return np.sum(x) * v[0]


def added_to(x):
    item = x[0]
    v = np.reshape(item, (1, 1))
    v[0] += 5 * x[1]
    return np.sum(x) * v[0, 0] + item ** 2


def added_to_in_a_loop(x):
    t = 0.0
    for item in x:
        v = np.reshape(item, (1,))
        v += 1.0
        t += v[0] * item
        x[1] *= 2.0
    return t


def of_a_sum(x):
    s = np.sum(x)
    v = np.reshape(s, (1,))
    v += 1.0
    return v[0] * s


def spread_before_each_write(x):
    found = []
    for k in range(3):
        found.append(np.broadcast_to(x[k], 2))
        x[k] = x[k] ** 2
    return np.sum(np.stack(found) ** 2) + np.sum(x)


def cells_in_a_list_of_each_pass(x):
    for _ in range(2):
        pile = [x[..., k] for k in range(2)]
    x[0] = 0.7
    return pile[0] * 2 + pile[1]


def a_cell_in_a_tuple_of_each_pass(x):
    for _ in range(2):
        pair = (x[..., 0], 3.0)
    x[0] = 0.7 * x[1]
    return pair[0] * pair[1]


def a_cell_put_into_a_list(x):
    pile = [x[..., 0]]
    for k in range(2):
        pile[0] = x[..., k]
    x[1] = 0.7 * x[2]
    return pile[0] * 2


def a_cell_in_a_dict_of_a_while_loop(x):
    k = 0
    while k < 2:
        pile = {"z": x[..., k]}
        k += 1
    x[1] = 0.7 * x[2]
    return pile["z"] * 2


def a_cell_that_the_next_pass_reads(x):
    pile, t = {"z": x[..., 1]}, 0.0
    for _ in range(2):
        t += pile["z"] * 2
        pile = {"z": x[..., 0]}
        x[0] = x[2] ** 2
        t += pile["z"] ** 2
    return pile["z"] * 2 + t


def a_cell_in_a_list_in_a_list(x):
    pile = [0.0, [x[..., 0]]]
    for _ in range(2):
        x[0] = 0.7 * x[1]
        t = pile[1][0] * 2
        pile[1][0] = x[..., 0]
        x[0] = x[2] ** 2
    return pile[1][0] * 2 + t


PROGRAMS = [spread, spread_in_a_loop_over_them, spread_in_a_comprehension, with_an_axis, written, added_to,
            added_to_in_a_loop, of_a_sum, spread_before_each_write, cells_in_a_list_of_each_pass,
            a_cell_in_a_tuple_of_each_pass, a_cell_put_into_a_list, a_cell_in_a_dict_of_a_while_loop,
            a_cell_that_the_next_pass_reads, a_cell_in_a_list_in_a_list]
MAY_BE_REFUSED = {a_cell_in_a_dict_of_a_while_loop}


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["eager", "compiled"])
def test_gradients(f, wrap):
    want, given = differences(f, X), X.copy()
    try:
        found = wrap(gs.grad(f))(given)
    except gs.TransformError:
        assert f in MAY_BE_REFUSED
        return
    np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("f", [p for p in PROGRAMS if p not in MAY_BE_REFUSED], ids=lambda f: f.__name__)
def test_tangents_and_batches(f):
    v = np.array([0.3, -0.8, 0.5])
    value, dot = gs.jvp(f, (X.copy(),), (v,))
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(dot, differences(f, X) @ v, rtol=1e-7, atol=1e-8)
    rows = np.stack([X, X[::-1], 2 * X])
    np.testing.assert_allclose(gs.vmap(f)(rows.copy()), [f(row.copy()) for row in rows], rtol=1e-12)
