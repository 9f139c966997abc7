# SPDX-License-Identifier: Apache-2.0
"""Recursion whose end depends on the values: derivatives of first and second order, batches, compiled code."""
import numba
import numpy as np
import pytest
from programs import checks

import gradscribe as gs


def descending(x):
    if x < 0.5:
        return x * x
    return x * descending(x / 2)


def of_two_calls(x, n):
    if n <= 0.1:
        return x
    if x > 1:
        return np.sqrt(x) * of_two_calls(x / 2, n - 1)
    y = of_two_calls(x * 3, n - 1)
    z = y * x
    if z > 2:
        return z
    return z + y


def two_calls(x):
    return of_two_calls(x, 2.5 + x)


def of_two_ends(x, tol=1e-3):
    if x < tol:
        return x * x
    y = x * 2
    if y > 10:
        return np.log(y)
    return 1.0 + of_two_ends(x * 1.5 - 0.2)


def newton(x, a):
    residual = x * x - a
    if abs(residual) < 1e-12:
        return x
    return newton(x - residual / (2 * x), a)


def root(a):
    return newton(1.0, a)


def in_an_expression(x):
    return x * x if x < 0.5 else np.cos(x) * in_an_expression(x / 2) + x


def inside(x):
    def climb(y, k):
        if y > 5:
            return y * x + k
        return climb(y * y + 0.5, k=k + 1) + y
    return climb(x, 0) * 2


def results(x):
    def halves(x, total):
        if x < 0.1:
            return x, total
        a, b = halves(x / 2, total + x * x)
        return a * x, b + a
    a, b = halves(x, 0.0)
    return a + b


def with_arms_after(x):
    if x > 9:
        return x
    r = with_arms_after(x * x + 1)
    if r > 1:
        y = np.sin(x)
    else:
        y = 3.0
    return y * r


@numba.njit
def of_numba(x):
    if x > 9.0:
        return x
    return np.sin(x) + 0.5 * of_numba(x * x + 1.0)


CASES = [(descending, 3.3), (descending, 0.2), (two_calls, 1.7), (two_calls, 0.7), (of_two_ends, 0.3),
         (of_two_ends, 2.0), (root, 3.0), (in_an_expression, 1.9), (inside, 0.9), (results, 1.3),
         (with_arms_after, 1.1), (of_numba, 0.9)]


def slope(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.parametrize("f, x", CASES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_derivatives(f, x):
    df = gs.grad(f)
    assert df(x) == pytest.approx(slope(f, x), rel=1e-6)
    value, tangent = gs.jvp(f, (x,), (1.0,))
    assert value == pytest.approx(f(x), rel=1e-14) and tangent == pytest.approx(df(x), rel=1e-12)
    second = gs.grad(df)(x)
    assert second == pytest.approx(slope(df, x), rel=1e-5, abs=1e-7)
    np.testing.assert_allclose(gs.vmap(df)(np.array([x, 0.9 * x])), [df(x), df(0.9 * x)], rtol=1e-13)


@pytest.mark.parametrize("f, x", CASES[::2], ids=lambda v: getattr(v, "__name__", str(v)))
def test_compiled(f, x):
    assert gs.jit(f)(x) == pytest.approx(f(x), rel=1e-13)
    assert gs.jit(gs.grad(f))(x) == pytest.approx(gs.grad(f)(x), rel=1e-12)
    assert gs.jit(gs.grad(gs.grad(f)))(x) == pytest.approx(gs.grad(gs.grad(f))(x), rel=1e-10)


def of_arrays(x):
    if np.sum(x) > 10:
        return np.sum(x)
    return of_arrays(x * 1.5) * np.sum(np.sin(x))


def test_arrays():
    x = np.array([0.5, 0.3])
    np.testing.assert_allclose(gs.grad(of_arrays)(x), checks.differences(of_arrays, x), rtol=1e-6)


def test_the_source_is_loops_over_the_users_names():
    g = gs.grad(descending)
    g(3.3)
    code = "".join(line for line in g.source.splitlines() if not line.strip().startswith("#"))
    assert "while not x < 0.5:" in code and "descending(x /" not in code


def test_a_deep_recursion_ends_by_a_number():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)
    assert gs.grad(lambda x: power(x, 200))(1.01) == pytest.approx(200 * 1.01 ** 199, rel=1e-12)


def fibonacci(x, n):
    return x if n < 2 else fibonacci(x, n - 1) + fibonacci(x, n - 2)


def test_two_calls_on_one_path_have_no_loops():
    assert gs.grad(lambda x: fibonacci(x, 7))(0.5) == 21.0          # a number ends it
    with pytest.raises(gs.LanguageError, match="the recursion of fibonacci"):
        gs.grad(lambda x: fibonacci(x, x * 7))(0.5)


def of_a_function(x):
    def scaled(t):
        return t * x
    return x if x > 9 else scaled(of_a_function(x * x + 1))


def test_what_belongs_to_one_call_is_no_loop():
    with pytest.raises(gs.LanguageError, match="the recursion of of_a_function"):
        gs.grad(of_a_function)(1.1)
