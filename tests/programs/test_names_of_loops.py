# SPDX-License-Identifier: Apache-2.0
"""Loops that are left early may have any name for their index: those that the loop is written with are its own."""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9, 1.2, 1.1])


def left_by_break(x):
    s = x[0]
    for n in range(3):
        s = s * x[1]
        if n == 1:
            break
    return s


def with_else(x):
    y = x.copy()
    for n in range(len(x)):
        for i in range(n):
            y[n] = y[n] * y[i]
            if i == 1:
                break
        if y[n] > 10:
            break
    else:
        y[0] = y[0] * 2
    return np.sum(y)


def twice_the_same_name(x):
    s = 0.0
    for n in range(len(x)):
        for n in range(2):
            s += x[n]
            if n == 1:
                break
        if s > 100:
            return s
    return s * x[n]


def names_of_our_own(x):
    s = 0.0
    for i in range(len(x)):
        for _ in range(3):
            s += x[i]
            if s > 2:
                break
        for stop in range(2):
            s += x[stop] * i
            if s > 50:
                break
    return s


def left_by_return(x):
    def h(x, m):
        for n in range(m):
            if x[n] > 0.8:
                return n * x[n]
        return 0.0
    return h(x, len(x)) + h(x, 2)


def a_count_of_the_users(x):
    n = 3
    s = 0.0
    for k in range(n):
        s += x[k]
        if k == n - 2:
            break
    n = n * s
    return n


def in_a_while_loop(x):
    s = 0.0
    k = 0
    while k < 4:
        for n in range(k):
            if n == 2:
                break
            s += x[n] * k
        k += 1
    return s


ALL = [left_by_break, with_else, twice_the_same_name, names_of_our_own, left_by_return, a_count_of_the_users,
       in_a_while_loop]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_derivatives(f, wrap):
    value, found = wrap(gs.value_and_grad(f))(X)
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-14)
    np.testing.assert_allclose(found, differences(f, X), rtol=1e-6, atol=1e-8)


def ints_of_a_loop_without_passes(x):
    for _j in range(len(x)):
        d = np.arange(2)
    for _i in range(2):
        d = x
    return np.sum(d) + 1.0


def test_ints_that_may_not_be_there_are_not_made_floats():
    """The name has no value before the second loop where the first one has no pass."""
    for given in (np.zeros(0), np.ones(2)):
        try:
            found = gs.grad(ints_of_a_loop_without_passes)(given)
        except gs.TransformError as error:
            assert "d may have no value before the loop" in str(error)
        else:
            np.testing.assert_array_equal(found, np.ones_like(given))
