# SPDX-License-Identifier: Apache-2.0
"""Calls that raise for certain once the shapes are known: they do, and what follows them is not read."""
import numpy as np
import pytest

import gradscribe as gs

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def long(x):
    if x.shape[0] > 4:
        return np.sin(x)
    raise ValueError("few")


def long_by_assertion(x):
    if x.shape[0] > 4:
        return np.sin(x)
    else:
        assert False, "few"  # noqa: B011  another spelling of raise


def in_an_operand(x):
    return np.sum(x + long(x) * 3)


def by_assertion(x):
    return np.sum(x + long_by_assertion(x) * 3)


def at_the_end(x):
    if x[0] > 2:
        return np.sum(x * x)
    y = long(x)
    return y[0] + x[1]


def in_a_pass(x):
    total = 0.0
    for k in range(3):
        if k > 1:
            total += np.sum(long(x))
        total += x[k]
    return total


def in_an_arm(x):
    if x[0] < 2:
        y = np.sum(long(x))
    else:
        y = x[1] * x[0]
    return y * y


def through_another(x):
    def inner(x):
        return long(x) * 2
    y = inner(x)
    return np.sum(y)


def in_a_gradient(x):
    return np.sum(gs.grad(in_an_operand)(x) ** 2)


PROGRAMS = [in_an_operand, by_assertion, at_the_end, in_a_pass, in_an_arm, through_another, in_a_gradient]


@WRAPS
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_raise(f, wrap):
    few = np.array([0.1, 0.2, 0.3])
    for g in (f, gs.grad(f), gs.value_and_grad(f), lambda x: gs.jvp(f, (x,), (x,))):
        with pytest.raises((ValueError, AssertionError), match="few"):
            wrap(g)(few)


@WRAPS
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_do_not_raise(f, wrap):
    for x in (np.linspace(0.1, 0.9, 5), np.linspace(2.1, 0.9, 5)):
        expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(5)]
        np.testing.assert_allclose(wrap(gs.grad(f))(x), expected, rtol=1e-6, atol=1e-8)


@WRAPS
@pytest.mark.parametrize("f", [at_the_end, in_an_arm], ids=lambda f: f.__name__)
def test_another_way(f, wrap):
    x = np.array([2.5, 1.5, 0.5])
    expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(wrap(gs.grad(f))(x), expected, rtol=1e-6, atol=1e-8)


def test_one_that_is_caught():
    def f(x):
        try:
            return np.sum(long(x))
        except ValueError:
            return x[0] * x[1]
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(gs.jit(gs.grad(f))(x), [3.0, 2.0])
