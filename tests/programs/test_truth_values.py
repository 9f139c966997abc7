# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of truth values: Python's True + True is 2, NumPy's is True; where either may be meant it is refused."""
import math
import operator

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.73, -1.31, 1.92])


def of_numpy(x):
    return ((x[0] > -9) + (x[1] > -9)) * x[0] + (np.isfinite(x[0]) + np.isfinite(x[1])) * x[1]


def of_python(x):
    return (bool(x[0] > -9) + True) * x[0] + (math.isfinite(x[0]) + math.isfinite(x[1])) * x[1] - (-True) * x[2]


def by_functions(x):
    return (operator.truth(x[0] > -9) + operator.not_(x[1] > 9)) * x[0] + operator.add(bool(x[0] > -9), True) * x[1]


def with_numbers(x):
    count = 0
    for v in x:
        count += (v > -9) and True
    return (count + (x[0] > 0 and x[1] < 0)) * x[0] + int(x[0] > 0 or x[1] > 0) * x[1]


def counted(x):
    return (int(x[0] > -9 and True) + int(x[1] < 9 < 10)) * x[0]


def one_of_both(x):
    return ((x[0] > -9 and True) + True) * x[0]


def chained(x):
    return ((x[0] < 9 < 10) + (x[1] < 9 < 10)) * x[0]


def chosen(x):
    p = True
    if x[0] < -9:
        p = x[1] > 2
    return (p + True) * x[0]


def of_a_loop(x):
    found = x[0] > 9
    for v in x:
        if v > -9:
            found = True
    return (found + found) * x[0]


def of_a_helper(x):
    def checked(v):
        if v > 5:
            return v > 6
        return True
    return (checked(x[0]) + checked(x[1])) * x[0]


@pytest.mark.parametrize("f", [of_numpy, of_python, by_functions, with_numbers, counted])
def test_right(f):
    want = differences(f, X)
    for wrap in (lambda g: g, gs.jit):
        np.testing.assert_allclose(wrap(gs.grad(f))(X), want, rtol=1e-8)
        np.testing.assert_allclose(wrap(gs.vmap(f))(np.stack([X, X])), [f(X), f(X)], rtol=1e-14)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(np.stack([X, X])), [want, want], rtol=1e-8)


@pytest.mark.parametrize("f", [one_of_both, chained, chosen, of_a_loop, of_a_helper])
def test_of_either_kind(f):
    with pytest.raises(gs.TransformError, match="may be Python's or NumPy's"):
        gs.grad(f)(X)


def test_entries_of_a_batch_are_numpys():
    flags = np.array([True, False])
    for f in (lambda k: ~k, lambda k: k + k, lambda k: k * True):
        np.testing.assert_array_equal(gs.vmap(f)(flags), [f(k) for k in flags])
        np.testing.assert_array_equal(gs.jit(gs.vmap(f))(flags), [f(k) for k in flags])


def mapped_inside(x):
    flags = x > 0
    return np.sum(gs.vmap(lambda k: (k + k) * 1.0)(flags) * x)


def derived_inside(x):
    return gs.grad(lambda v, k: v * v * (k + k))(x[0], x[1] > -9) + gs.grad(lambda v, k: v * v * (k + k))(x[2], True)


def derived_inside_of_either_kind(x):
    return gs.grad(lambda v, k: v * v * (k + k))(x[0], x[1] > -9 and True)


@pytest.mark.parametrize("f", [mapped_inside, derived_inside])
def test_parameters_inside(f):
    for wrap in (lambda g: g, gs.jit):
        np.testing.assert_allclose(wrap(gs.grad(f))(X), differences(f, X), rtol=1e-8)


def test_parameters_inside_of_either_kind():
    with pytest.raises(gs.TransformError, match="may be Python's or NumPy's"):
        gs.grad(derived_inside_of_either_kind)(X)
