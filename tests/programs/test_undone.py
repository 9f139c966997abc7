"""Whole numbers that a loop counts: the backward loop takes their steps back and keeps no store of them."""
import math

import numpy as np
import pytest

import gradscribe as gs

X = np.linspace(0.2, 1.4, 12)


def every_second(x):
    s, k = 0.0, 0
    while k < len(x):
        s += np.sin(x[k]) * s + x[k]
        k += 2
    return s


def downwards(x):
    s, k = 0.0, len(x) - 1
    while k >= 0:
        s = s * 0.5 + x[k] ** 2
        k -= 1
    return s


def triangle(x):
    s, p = 0.0, 0
    for i in range(4):
        for _ in range(i, 4):
            s += np.exp(x[p % 12] * s * 0.1)
            p += 1
    return s * x[p % 12]


def by_a_variable(x, n=3):
    s, p = 1.0, 0
    for i in range(4):
        s *= x[p % 12]
        p += n
        p = p - i
    return s + x[p]


def by_what_changes(x):
    s, p = 1.0, 0
    for i in range(4):
        s *= x[p % 12] + 0.1 * i
        p = p + i * i
    return s


def in_an_arm(x):
    s, p = 1.0, 0
    for i in range(6):
        if x[i] > 0.5:
            s *= x[p]
            p += 1
    return s


def twice_in_a_pass(x):
    s, p = 1.0, 1
    for _ in range(4):
        s *= x[p]
        p += 1
        s += x[p] * s
        p += 1
    return s


def two_that_meet(x):
    s, i, j = 0.0, 0, len(x) - 1
    while i < j:
        s += x[i] * x[j] * np.cos(s)
        i += 1
        j -= 1
    return s


def by_itself(x):
    s, p = 1.0, 1
    for _ in range(3):
        s *= x[p]
        p += p
    return s


def inner_while(x):
    s, p = 0.0, 0
    for _ in range(3):
        q = 0
        while q < 3:
            s += np.tanh(x[p] * s + x[q])
            p += 1
            q += 1
    return s


def of_numpy_kind(x):
    s, p = 1.0, np.int64(0)
    for _ in range(5):
        s *= x[p] + s
        p += np.int64(2)
    return s


def unsigned(x):
    s, p = 1.0, np.uint8(250)
    for _ in range(5):
        s *= x[p % np.uint8(12)]
        p = p + np.uint8(1)
    return s


def by_another_counter(x):
    s, p, q = 1.0, 0, 1
    for _ in range(6):
        s = s * x[p % 12] + x[q % 12]
        p += q
        q += 1
    return s * x[p % 12]


def by_another_counted_before(x):
    s, p, q = 1.0, 0, 1
    for _ in range(6):
        q += 1
        s = s * np.sin(x[p % 12]) + x[q % 12]
        p += q
    return s


def turned_round(x):
    s, p = 1.0, 5
    for _ in range(5):
        p = 12 - p
        s *= x[p % 12]
    return s


PROGRAMS = [by_another_counter, by_another_counted_before, turned_round, every_second, downwards, triangle,
            by_a_variable, by_what_changes, in_an_arm, twice_in_a_pass,
            two_that_meet, by_itself, inner_while, of_numpy_kind, unsigned]


def differences(f, x):
    out = np.empty_like(x)
    for k in range(len(x)):
        d = np.zeros_like(x)
        d[k] = 1e-3
        out[k] = (8 * (f(x + d) - f(x - d)) - (f(x + 2 * d) - f(x - 2 * d))) / 12e-3
    return out


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f):
    wanted = differences(f, X)
    np.testing.assert_allclose(gs.grad(f)(X), wanted, rtol=1e-8, atol=1e-8)
    tangent = gs.jvp(gs.grad(f), (X,), (np.cos(X),))[1]
    h = 1e-4
    moved = (gs.grad(f)(X + h * np.cos(X)) - gs.grad(f)(X - h * np.cos(X))) / (2 * h)
    np.testing.assert_allclose(tangent, moved, rtol=1e-5, atol=1e-5 * (1 + np.max(np.abs(moved))))


@pytest.mark.slow
@pytest.mark.parametrize("f", [every_second, triangle, two_that_meet, twice_in_a_pass, in_an_arm])
def test_compiled(f):
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), gs.grad(f)(X), rtol=1e-12)


@pytest.mark.parametrize("f", [every_second, downwards, two_that_meet, triangle, twice_in_a_pass])
def test_nothing_is_kept_of_them(f):
    text = gs.grad(f).source_for(X)
    assert not any(f"{name}_saved" in text for name in ("k", "p", "i", "j")), text


def counted(x):
    s, k = 1.0, 0
    for _ in range(6):
        s *= x[k] + 0.1 * s
        k += 2
    return s


@pytest.mark.parametrize("f", [counted, every_second, triangle, two_that_meet])
def test_checkpointed(f):
    np.testing.assert_allclose(gs.grad(gs.checkpoint(f))(X), differences(f, X), rtol=1e-8, atol=1e-8)


def of_constants(x, k):
    s = 0.0
    for i in range(len(x)):
        s += math.erf(x[i] / math.sqrt(2.0)) * np.exp(-k)
    return s


def test_what_is_the_same_in_each_pass_is_not_stored():
    x, gradient = np.array([0.3, -1.2]), gs.grad(of_constants, argnums=(0, 1))
    dx, dk = gradient(x, 0.7)
    np.testing.assert_allclose(dx, np.exp(-x * x / 2) * math.sqrt(2 / math.pi) * np.exp(-0.7), rtol=1e-14)
    np.testing.assert_allclose(dk, -of_constants(x, 0.7), rtol=1e-14)
    assert "saved" not in gradient.source_for(x, 0.7).replace("erf_t_saved", "")
