# SPDX-License-Identifier: Apache-2.0
"""Loops that are left early are printed as such: `for` and `while` with `break`, as their authors wrote them."""
import numpy as np
import pytest

import gradscribe as gs


def until_negative(x):
    s = 0.0
    for v in x:
        if v < 0:
            break
        s += v * v
    return s


def products(x, n):
    s = 0.0
    for k in range(1, n):
        if x[k] < 0:
            break
        s += x[k] * x[k - 1]
    return s


def downward(x, n):
    s = 0.0
    for k in range(n - 1, -1, -2):
        if x[k] < 0:
            break
        s += x[k] ** 3
    return s * (k + 1)


def pairs(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
        if s > 3:
            break
    else:
        s = 2 * s
    return s


def two_ways_out(x, n):
    s = 0.0
    for k in range(n):
        if x[k] > 0:
            s += x[k] ** 2
            if s > 3:
                s = s * 3
                break
            s += x[k]
        else:
            s -= x[k] * x[0]
        if s < -2:
            break
        s *= 1.5
    return s


def nested(x, n):
    t = 0.0
    for i in range(n):
        s = 0.0
        for j in range(i, n):
            s += x[j] * x[i]
            if s > 2:
                break
        t += s * s
    return t


def found(x, n):
    for k in range(n):
        for j in range(n):
            if x[j] > 1 + k:
                return x[j] ** 2 * x[k]
    return x[0] * x[1]


def square_root(a, tolerance):
    x = a
    for _ in range(50):
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < tolerance:
            return x
    return x


def counting(x):
    s = 0.0
    i = 0
    while True:
        s += x[i] * x[i]
        i += 1
        if i >= len(x) or s > 3:
            break
    return s * x[i - 1]


def skipping(x):
    i = 0
    s = 0.0
    while i < len(x):
        if x[i] > 1:
            i += 1
            continue
        s += x[i] ** 2
        if s > 1:
            break
        i += 1
    return s * x[i - 1]


def shrinking(x, n):
    for k in range(n):
        y = x * x
        if np.sum(y) < 0.3 + k:
            break
        x = 0.7 * x + 0.1 * y
    return np.sum(x) * y[1]


def counted_down(x):
    n = 5
    while n > 0:
        n -= 1
        if x[n] < 0:
            break
        x = x * x[n]
    return np.sum(x)


ROWS = [np.array(row) for row in (
    [0.3, 0.8, 1.4, 0.6, 0.2], [0.3, 0.8, -1.4, 0.6, 0.2], [-0.3, 0.8, 1.4, 0.6, 0.2], [1.2, 2.8, 1.4, 1.6, -0.2],
    [-1.2, -2.8, -1.4, -1.6, -0.2])]
CASES = {f: rest for f, rest in [
    (until_negative, ()), (products, (5,)), (downward, (5,)), (pairs, (np.array([0.5, -0.3, 2.0, 0.9]),)),
    (two_ways_out, (5,)), (nested, (5,)), (found, (5,)), (counting, ()), (skipping, ()), (shrinking, (3,)),
    (counted_down, ())]}
EACH = pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)


def slope(f, x, rest):
    """By differences of fourth order: what is checked is polynomials of low degree."""
    out = np.empty_like(x)
    for k in range(x.size):
        e = 1e-3 * np.eye(x.size)[k]
        near, far = ((f(x + j * e, *rest) - f(x - j * e, *rest)) / (2e-3 * j) for j in (1, 2))
        out[k] = (4 * near - far) / 3
    return out


@pytest.mark.golden
@pytest.mark.parametrize("f", [*CASES, square_root], ids=lambda f: f.__name__)
def test_text(f, golden):
    args = (2.0, 1e-9) if f is square_root else (ROWS[0], *CASES[f])
    golden(f"{f.__name__}.py", gs.grad(f).source_for(*args))


@EACH
def test_what_is_printed_is_right(f):
    space = {}
    exec(gs.grad(f).source_for(ROWS[0], *CASES[f]), space)
    compiled = gs.jit(gs.grad(f))
    for x in ROWS:
        expected = slope(f, x, CASES[f])
        np.testing.assert_allclose(space[f"grad_{f.__name__}"](x, *CASES[f]), expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(compiled(x, *CASES[f]), expected, rtol=1e-9, atol=1e-10)


@EACH
def test_tangents_and_second_derivatives(f):
    rest, v = CASES[f], np.array([1.0, -0.5, 2.0, 0.3, 0.7])
    for x in ROWS:
        value, tangent = gs.jvp(lambda x: f(x, *rest), (x,), (v,))
        np.testing.assert_allclose(value, f(x, *rest), rtol=1e-15)
        np.testing.assert_allclose(tangent, slope(f, x, rest) @ v, rtol=1e-9, atol=1e-10)
        twice = gs.grad(lambda x: gs.grad(f)(x, *rest) @ v)(x)
        np.testing.assert_allclose(twice, slope(lambda x: gs.grad(f)(x, *rest) @ v, x, ()), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("form", [lambda f: f, gs.jit], ids=["plain", "jit"])
@EACH
def test_batches(f, form):
    rest = CASES[f]
    batched = form(gs.vmap(gs.grad(f), (0, *[None] * len(rest))))
    np.testing.assert_allclose(batched(np.stack(ROWS), *rest), [gs.grad(f)(x, *rest) for x in ROWS],
                               rtol=1e-13, atol=1e-14)


def test_a_flag_is_printed_where_it_is_read_later():
    text = gs.grad(pairs).source_for(ROWS[0], CASES[pairs][0])
    assert "stop = True\n            break" in text
    assert all("stop" not in gs.grad(f).source_for(ROWS[0], *CASES[f]) for f in CASES if f is not pairs)


@pytest.mark.parametrize("n", [0, 1])
def test_no_pass_or_one(n):
    x = np.array([0.4, -0.3])
    for f in products, two_ways_out, nested:
        for g in gs.grad(f), gs.jit(gs.grad(f)):
            np.testing.assert_allclose(g(x, n), slope(f, x, (n,)), rtol=1e-9, atol=1e-10)
    for g in gs.grad(until_negative), gs.jit(gs.grad(until_negative)):
        np.testing.assert_array_equal(g(x[:n]), 2 * x[:n])


def test_newton():
    for a in 0.3, 2.0, 11.0:
        np.testing.assert_allclose(gs.grad(square_root)(a, 1e-9), 0.5 / np.sqrt(a), rtol=1e-12)


@pytest.mark.parametrize("kept", [1, 2])
def test_second_derivatives_of_shapes_that_change(kept):
    """Adjoints of another shape in each pass are kept in lists, whatever counts the passes."""
    def shorter(x):
        s = 0.0
        for v in x:
            x = x[:kept] * v
            if v > 1:
                break
            s += v
        return s + np.sum(x)
    x, v = np.array([0.3, 0.4, 0.5]), np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(gs.grad(shorter)(x), slope(shorter, x, ()), rtol=1e-9)
    twice = gs.grad(lambda x: gs.grad(shorter)(x) @ v)(x)
    np.testing.assert_allclose(twice, slope(lambda x: gs.grad(shorter)(x) @ v, x, ()), rtol=1e-8, atol=1e-10)
