# SPDX-License-Identifier: Apache-2.0
"""Setters that are given what += changes in place; arrays of ints on one path only; what is asked of types; tries."""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9, 1.2, 1.1])
W = np.array([2.0, 3.0, 5.0])


class Doubled:
    def __init__(self, a):
        self.a, self.n, self.rows = a, 0, [a]

    @property
    def q(self):
        return self.a

    @q.setter
    def q(self, v):
        self.a = 2 * v
        self.n += 1

    def __getitem__(self, k):
        return self.rows[k]

    def __setitem__(self, k, v):
        self.rows[k] = v * 2


class ReadOnly:
    def __init__(self, a):
        self.a = a

    @property
    def q(self):
        return self.a


def by_a_setter(x):
    p = Doubled(x * 1.0)
    p.q += 1
    return np.sum(p.q * x) * p.n


def by_an_item(x):
    p = Doubled(x * 1.0)
    p[0] *= x
    return np.sum(p[0])


def of_a_number(x):
    p = Doubled(x[0])
    p.q += x[1]
    return p.q * p.n


def read_only(x):
    p = ReadOnly(x * 1.0)
    p.q += 1
    return np.sum(p.q * x)


def ints_then_floats(x):
    total = np.zeros(5, int)
    for v in x:
        total = total + x * v
    return np.sum(total * x)


def ints_in_one_arm(x):
    t = np.arange(5)
    if x[0] > 0:
        t = t * x
    return np.sum(t * x)


def written_where_it_may_be_ints(x):
    d = np.zeros(2, int) if x[0] < 99 else np.zeros(2)
    d[0] = x[0] * 10.3
    return d[0] * x[1]


def made_of_what_may_be_ints(x):
    r = np.arange(5) if x[0] < 99 else x
    r = r * 1
    r[0] = x[1] * 5.3
    return np.sum(r * x)


def written_as_floats(x):
    r = (np.arange(5) if x[0] < 99 else x) * 1.0
    r[0] = x[1] * 5.3
    return np.sum(r * x)


def appended_and_added_to(x):
    total, sums = np.zeros(()), []
    for v in x:
        total += v
        sums.append(total)
    return sums[0] * sums[1]


def a_list_in_a_pattern(x):
    items = [v * v for v in x]
    match items:
        case [first, *_]:
            return first
        case _:
            return x[2]


def of_lists(x):
    items = [v for v in x]
    return x[0] * (2.0 if type(items) is list and not hasattr(items, "shape") and hasattr(items, "append") else 3.0)


def of_numbers(x):
    a, b, c = hasattr(x[1], "__len__"), hasattr(x[1], "__iter__"), hasattr(x[1], "is_integer")
    return x[0] * (2.0 if not a and not b and c else 3.0)


def of_an_array_without_axes(x):
    return x[0] * (2.0 if isinstance(np.zeros(()), np.ndarray) else 3.0)


def a_write_that_raises(x):
    a = x.copy()
    try:
        a[9] = 1.0
    except IndexError:
        a[0] = x[1] * 2
    return np.sum(a)


def written_before_it_raises(x):
    a = x.copy()
    try:
        a[0] = a[9] = x[1] * 3
    except IndexError:
        pass
    return np.sum(a)


MAY_BE_REFUSED = {read_only, written_where_it_may_be_ints, made_of_what_may_be_ints, appended_and_added_to,
                  a_list_in_a_pattern, of_an_array_without_axes, written_before_it_raises}
ALL = [by_a_setter, by_an_item, of_a_number, read_only, ints_then_floats, ints_in_one_arm,
       written_where_it_may_be_ints, made_of_what_may_be_ints, written_as_floats, appended_and_added_to,
       a_list_in_a_pattern, of_lists, of_numbers, of_an_array_without_axes, a_write_that_raises,
       written_before_it_raises]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_right_or_refused(f, wrap):
    if f is read_only:
        with pytest.raises(AttributeError):
            f(X)
        with pytest.raises(gs.TransformError):
            gs.grad(f)(X)
        return
    try:
        found = wrap(gs.grad(f))(X)
    except gs.TransformError:
        assert f in MAY_BE_REFUSED or wrap is gs.jit and f is a_write_that_raises
        return
    np.testing.assert_allclose(found, differences(f, X), rtol=1e-6, atol=1e-8)


FROM_OUTSIDE = np.ones(3)


def writes_an_argument(x):
    x[0] = 5.0
    return np.sum(x * FROM_OUTSIDE)


@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_an_argument_that_is_read_from_outside(wrap):
    g = wrap(gs.value_and_grad(writes_an_argument))
    with pytest.raises(gs.TransformError, match="reads from outside"):
        g(FROM_OUTSIDE)
    value, dx = g(np.ones(3))
    assert value == 7.0 and dx.tolist() == [0.0, 1.0, 1.0]


def test_second_derivatives_of_a_product_that_is_a_number():
    def f(x):
        return np.tensordot(x, np.sin(x), 1)

    x, weights = X[:3], np.array([1.0, 2.0, 3.0])
    g = gs.grad(f)
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(g(x) * weights))(x),
                               differences(lambda x: np.sum(g(x) * weights), x), rtol=1e-7)


def test_tangents_may_be_any_array():
    def f(a, b):
        a[0] = b[1] * a[2]
        return np.sum(a * W)

    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    for ta, tb in ((a, b), (b, a), (a, a), (W, W), (W, a)):
        value, tangent = gs.jvp(f, (a, b), (ta, tb))
        assert value == 15 * W[0] + 2 * W[1] + 3 * W[2]
        assert tangent == W[0] * (3 * tb[1] + 5 * ta[2]) + W[1] * ta[1] + W[2] * ta[2]
    assert a.tolist() == [1, 2, 3] and b.tolist() == [4, 5, 6]


@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_the_place_of_an_entry_that_is_found(wrap):
    """A found place is a number like any other, and says nothing of the lengths of the places it is taken apart to."""
    def f(x):
        M = np.outer(x, x)
        i, j = np.unravel_index(np.argmin(M), M.shape)
        p, q = np.unravel_index(np.argmax(M[:2, :2]), (2, 2))
        return M[i, j] * x[i] + M[p, q] * M[0, 1]

    np.testing.assert_allclose(wrap(gs.grad(f))(X), differences(f, X), rtol=1e-6)
