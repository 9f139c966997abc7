# SPDX-License-Identifier: Apache-2.0
"""Backward loops that go forward: what a loop carries is made again where no pass waits for a later one."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(5)


def polynomial(x, t):
    r, mul = 0.0, 1.0
    for j in range(x.shape[0]):
        r -= x[j] * mul
        mul *= t[0]
    return r * r


def polynomials(x, t):
    acc, mul = np.zeros(t.shape[0]), np.ones(t.shape[0])
    for j in range(x.shape[0]):
        acc += x[j] * mul
        mul = mul * t
    return np.sum(acc * acc)


def two_carried(x, t):
    total, a, b = 0.0, 1.0, 0.5
    for j in range(x.shape[0]):
        total += x[j] * a * b
        a, b = a + 0.1 * b, b - 0.2
    return total * total


def backwards(x, t):
    total, mul = 0.0, 2.0
    for j in range(x.shape[0] - 1, -1, -1):
        total += x[j] * x[j] * mul
        mul = mul * 0.7 + 0.1
    return total


def active_factor(x, t):
    """The factor has a derivative: its adjoint goes from pass to pass."""
    total, mul = 0.0, x[0] * 1.0
    for j in range(x.shape[0]):
        total += x[j] * mul
        mul = mul * t[0]
    return total


def in_a_branch(x, t):
    total, mul = 0.0, 1.0
    for j in range(x.shape[0]):
        if x[j] > 0.0:
            mul = mul * 0.5
        total += x[j] * mul
    return total


def in_place(x, t):
    """The array that is carried is written in place, and its first values are read afterwards."""
    mul = np.ones(t.shape[0])
    first = mul.copy()
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * np.sum(mul)
        mul *= t
    return total * np.sum(first) + np.sum(mul)


def twice(x, t):
    total = 0.0
    for i in range(3):
        mul = 1.0 + i
        for j in range(x.shape[0]):
            total += x[j] * mul * (j + i)
            mul *= t[0]
    return total * total


def read_again(x, t):
    """What it begins with is a value of a loop around."""
    total, start = 0.0, 1.0
    for i in range(3):
        mul = start
        for j in range(x.shape[0]):
            total += x[j] * mul
            mul = mul * t[0]
        start = mul + 0.3 * i
    return total


PROGRAMS = [polynomial, polynomials, two_carried, backwards, active_factor, in_a_branch, in_place, twice, read_again]


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values(f, wrap):
    gradient = wrap(gs.grad(f, (0, 1)))
    for n, m in ((5, 3), (20, 40), (1, 1), (0, 2)):
        if f is active_factor and n == 0:
            continue
        x, t = RNG.normal(size=n), RNG.uniform(0.2, 0.9, size=m)
        dx, dt = RNG.normal(size=n), RNG.normal(size=m)
        h = 1e-6
        want = (f(x + h * dx, t + h * dt) - f(x - h * dx, t - h * dt)) / (2 * h)
        got = gradient(x, t)
        np.testing.assert_allclose(np.sum(got[0] * dx) + np.sum(got[1] * dt), want, rtol=2e-7, atol=1e-8)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    x, t = RNG.normal(size=4), RNG.uniform(0.2, 0.9, size=3)
    v, h = RNG.normal(size=4), 1e-6
    g = gs.grad(f)
    want = (g(x + h * v, t) - g(x - h * v, t)) / (2 * h)
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(g(x, t) * v))(x), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(gs.jvp(lambda x: g(x, t), (x,), (v,))[1], want, rtol=1e-6, atol=1e-7)


def test_nothing_is_saved():
    source = gs.grad(polynomial).source_for(np.ones(3), np.ones(2))
    assert "_saved" not in source and "reversed(" not in source, source
    source = gs.grad(polynomials).source_for(np.ones(3), np.ones(2))
    assert "_saved" not in source and "reversed(" not in source, source


def test_what_has_an_adjoint_goes_backward():
    assert "reversed(" in gs.grad(active_factor, (0, 1)).source_for(np.ones(3), np.ones(2))
