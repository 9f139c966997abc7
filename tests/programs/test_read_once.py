# SPDX-License-Identifier: Apache-2.0
"""Generators, `map` and iterators over arrays of unknown length have nothing left when they have been gone through."""
import math

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9, 1.2, 1.1])


def summed_twice(x):
    g = (v * v for v in x)
    return sum(g) + 3 * sum(g)


def gone_on_with_after_a_break(x):
    g = (v * v for v in x)
    s = 0.0
    for v in g:
        s += v
        if s > 0.5:
            break
    for v in g:
        s += 2 * v
    return s


def mapped_and_summed_twice(x):
    g = map(math.sin, x)
    return sum(g) + 3 * sum(g)


def next_within_its_loop(x):
    it = iter(x)
    s = 0.0
    for v in it:
        s += v * next(it, 0.0)
    return s


def next_after_a_break(x):
    it = iter([x[0], x[1], x[2]])
    for first in it:                    # noqa: B007 (it is read afterwards)
        break
    return first * 2 + next(it, 7.0)


def under_another_name(x):
    g = (v * v for v in x)
    h = g
    return sum(h) + sum(g)


def in_each_pass(x):
    s = 0.0
    g = (v * v for v in x)
    for k in range(3):
        s += sum(g) * k
    return s


def made_in_each_pass(x):
    s = 0.0
    for k in range(len(x)):
        g = (v * v for v in x)
        s += sum(g) * k
    return s


def of_a_generator(x):
    g = (v * v for v in x)
    return sum(v * 2 for v in g)


def a_list_of_it(x):
    g = (v * v for v in x)
    values = list(g)
    return sum(values) + max(values)


def filtered(x):
    g = (v * v for v in x if v > 0.6)
    return sum(g) + 3 * sum(g)


def under_a_test(x):
    g = (v * v for v in x)
    if x[0] > 0.2:
        s = sum(g)
    else:
        s = 0.0
    return s + sum(g)


def read_where_they_stand(x):
    return sum(map(math.sin, x)) + max(v * v for v in x) + np.sum(np.array([v * v for v in x]))


def mapped_and_counted(x):
    g = map(lambda v: v * v, x)
    s = 0.0
    for k, v in enumerate(g):
        s += k * v
    return s


def lists_at_once(x):
    a = list(map(math.sin, x))
    b = sorted(v for v in x)
    return a[0] * b[1] + sum(a) * sum(b)


ALL = [summed_twice, gone_on_with_after_a_break, mapped_and_summed_twice, next_within_its_loop, next_after_a_break,
       under_another_name, in_each_pass, made_in_each_pass, of_a_generator, a_list_of_it, filtered, under_a_test,
       read_where_they_stand, mapped_and_counted, lists_at_once]
RIGHT = {made_in_each_pass, of_a_generator, a_list_of_it, read_where_they_stand, mapped_and_counted,
         lists_at_once}


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_right_or_refused(f, wrap):
    try:
        found = wrap(gs.grad(f))(X)
    except gs.TransformError:
        assert f not in RIGHT
        return
    np.testing.assert_allclose(found, differences(f, X), rtol=1e-6, atol=1e-8)


# --- reversed is an iterator, np.unstack a tuple ----------------------------------------------------------------------

def reversed_twice(x):
    r = reversed(x)
    return sum(v * v for v in r) + 10 * sum(v for v in r)


def reversed_in_a_list(x):
    a = list(reversed(x))
    return a[0] * 3 + a[1] * a[2]


def reversed_rows(x):
    s = 0.0
    for k, row in enumerate(reversed(np.outer(x, x + 1))):
        s = s * 0.5 + row @ x * k
    return s


def reversed_beside_itself(x):
    return sum(u * v * v for u, v in zip(x, reversed(x))) + max(reversed(x)) + sum(reversed(x))


def reversed_while_it_changes(x):
    y, s = x.copy(), 0.0
    for v in reversed(y):
        y[0] += v
        s += v * v
    return s + y[0]


def unstacked_is_a_tuple(x):
    t = np.unstack(np.outer(x, x), axis=1) + (x,)
    return t[-1] @ t[0] + len(t) * x[0] + (5.0 if isinstance(t, tuple) else 0.0) * x[2]


def unstacked_twice(x):
    t = np.unstack(x) * 2
    return len(t) * x[0] + t[4] * t[6] + t.index(x[1]) * x[2]


@pytest.mark.parametrize("f", [reversed_twice, reversed_in_a_list, reversed_rows, reversed_beside_itself,
                               reversed_while_it_changes, unstacked_is_a_tuple, unstacked_twice],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_iterators_and_tuples_of_rows(f, wrap):
    want = differences(f, X)
    try:
        np.testing.assert_allclose(wrap(gs.grad(f))(X), want, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(gs.jvp(f, (X,), (X,))[1], want @ X, rtol=1e-6)
    except gs.TransformError:
        assert f in (reversed_twice, unstacked_twice)
