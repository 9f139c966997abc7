# SPDX-License-Identifier: Apache-2.0
"""A tangent has the dtype that its value has on the path that was taken, and is set where its value is."""
import numpy as np
import pytest

import gradscribe as gs

F = np.float32


def number_in_a_loop(x, t):
    s = np.sum(x)
    for _ in range(int(t)):
        s = 5
    return s + 0.7


def number_in_an_arm(x, t):
    s = x[0] * F(2)
    if t > 1:
        s = 3
    return s / 7


def number_before_a_loop(x, t):
    s = 1
    for v in x[:int(t)]:
        s = s * v
    return s * 0.1


@pytest.mark.parametrize("f", [number_in_a_loop, number_in_an_arm, number_before_a_loop])
@pytest.mark.parametrize("t", [0, 2])
def test_a_python_number_on_one_path_has_a_tangent_like_it(f, t):
    x = np.array([0.5, 1.5, -0.25], F)
    direction = np.array([1.0, -2.0, 0.5], F)
    value, dot = gs.jvp(lambda x: f(x, t), (x,), (direction,))
    assert np.asarray(value).dtype == np.asarray(dot).dtype == np.asarray(f(x, t)).dtype
    wide = x.astype(float)
    slope = (f(wide + 1e-6 * direction, t) - f(wide - 1e-6 * direction, t)) / 2e-6
    assert dot == pytest.approx(slope, rel=1e-6, abs=1e-8)


def begun_in_a_loop(x, t, n):
    for _ in range(n):
        v = np.where(x > 0, 0.5, 0.0)[x > 0]
    for _ in range(2):
        v = v - t
    return v


def begun_in_nested_loops(x, t, n):
    for _ in range(n):
        for _ in range(2):
            v = np.where(x > 0, 0.5, 0.0)[x > 0]
    for _ in range(1 if n else 0):
        v = v * t
    return v if n else x


def begun_in_an_arm(x, t, n):
    if n > 1:
        v = np.where(x > 0, 0.5, 0.0)[x > 0]
    if n > 1:
        v = v * t
    else:
        v = x
    return v


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("f", [begun_in_a_loop, begun_in_nested_loops, begun_in_an_arm])
def test_the_tangent_of_what_a_loop_or_an_arm_may_leave_unset(f, n):
    """What is cut out by a mask has a length that no argument tells, and no tangent of its own before it meets t."""
    x, count = np.array([0.5, 1.5, -0.25]), np.zeros(n)

    def program(x, t, count):
        return f(x, t, len(count))
    if f is begun_in_a_loop and not n:
        with pytest.raises(UnboundLocalError):
            gs.jvp(program, (x, 0.7, count), (x, 2.0, count))
        return
    value, dot = gs.jvp(program, (x, 0.7, count), (2 * x, 2.0, count))
    np.testing.assert_allclose(value, f(x, 0.7, n))
    slope = (f(x + 2e-6 * x, 0.7 + 2e-6, n) - f(x - 2e-6 * x, 0.7 - 2e-6, n)) / 2e-6
    np.testing.assert_allclose(dot, slope, atol=1e-8)


WIDE = np.array([0.5, -1.5])


def converted_in_an_arm(x, t):
    b = WIDE if t > 1 else x
    return b.astype(float) * 3, np.asarray(b, dtype=float), np.float64(b[0]), np.add(b, b, dtype=float), np.sum(
        b, dtype=float)


def converted_after_a_loop(x, t):
    b = x * 2
    for _ in range(int(t)):
        b = b * WIDE
    return b.astype(float) / 3,


@pytest.mark.parametrize("t", [0.0, 2.0])
@pytest.mark.parametrize("f", [converted_in_an_arm, converted_after_a_loop])
def test_a_conversion_stays_where_the_dtype_depends_on_the_path(f, t):
    x, direction = np.array([0.1, 1.5], F), np.array([1.0, -2.0], F)
    values, dots = gs.jvp(lambda x: f(x, t), (x,), (direction,))
    wide = x.astype(float)
    for k, (value, dot, want) in enumerate(zip(values, dots, f(x, t))):
        assert np.asarray(value).dtype == np.asarray(dot).dtype == np.float64
        np.testing.assert_array_equal(value, want)
        slope = (f(wide + 1e-6 * direction, t)[k] - f(wide - 1e-6 * direction, t)[k]) / 2e-6
        np.testing.assert_allclose(dot, slope, rtol=1e-6, atol=1e-8)


def in_one_arm(x, p, t):
    s = np.sum(x * WIDE) if t > 0 else np.sum(x)
    return s + np.sum(x * p) + p * len(WIDE) + 10 * p * len(x)


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_lengths_made_one_with_those_of_an_array_from_outside(wrap):
    """What one version takes for equal is asked of the next call; what differs is refused, as by a new function."""
    g = wrap(gs.grad(in_one_arm, 1))
    assert g(np.ones(2), 1.0, -1.0) == 2 + 2 + 20
    for f in g, wrap(gs.grad(in_one_arm, 1)):
        with pytest.raises(gs.ShapeError, match="do not broadcast"):
            f(np.ones(3), 1.0, -1.0)
    assert g(np.ones(2), 1.0, -1.0) == 2 + 2 + 20


def written_with_counts(x):
    a = x * x
    a[:-1] -= np.arange(len(x) - 1)
    a[1:] = np.arange(len(x) - 1) + a[:-1]
    return a,


def joined_with_counts(x):
    return np.vstack((x, np.arange(3, dtype=np.int8))), np.concatenate([np.arange(2), x * x])


@pytest.mark.parametrize("dtype", [float, F])
@pytest.mark.parametrize("f", [written_with_counts, joined_with_counts])
def test_whole_numbers_beside_what_has_a_tangent(f, dtype):
    x = np.array([0.5, 1.5, -0.25], dtype)
    values, dots = gs.jvp(f, (x,), (x,))
    wide = x.astype(float)
    for value, dot, want, up, down in zip(values, dots, f(x), f(wide + 1e-6 * wide), f(wide - 1e-6 * wide)):
        assert value.dtype == dot.dtype == want.dtype
        np.testing.assert_allclose(dot, (up - down) / 2e-6, rtol=1e-6, atol=1e-8)


def copied_before_a_loop(x, t):
    if t > 0:
        d = x[x > 0]
    for _ in range(3):
        d = x
    d[::1] = 2 * x
    return d.sum()


def test_a_tangent_that_a_path_leaves_unset_is_copied_where_it_is_set():
    x, dot = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    def tangent(x, dot, t):
        return gs.jvp(copied_before_a_loop, (x, t), (dot, 0.0))
    for t in (0.0, 1.0):
        assert tangent(x.copy(), dot.copy(), t) == (3.0, 12.0)
        assert gs.jit(tangent)(x.copy(), dot.copy(), t) == (3.0, 12.0)


def least_of_three(x, y):
    return np.sin(min(x * 2, 1, y)) * x


def greatest(x, y):
    m = np.sin(max(x * 2, 1, y))
    return m * m + x


def clamped(x, y):
    return np.sin(min(x, -1)) * y


@pytest.mark.parametrize("function", [least_of_three, greatest, clamped])
@pytest.mark.parametrize("x", [-1.5, -0.5, 0.25, 3.0])
@pytest.mark.parametrize("y", [2.0, -0.75])
def test_the_least_of_a_narrow_number_and_one_of_python(function, x, y):
    """One of the numbers as it is: what is computed with it may have another dtype, its derivatives may not."""
    for kinds in [(np.float32, np.float32), (np.float32, float), (float, np.float32)]:
        args = kinds[0](x), kinds[1](y)
        wanted = gs.grad(function, (0, 1))(float(x), float(y))
        for call in (gs.grad(function, (0, 1)), gs.jit(gs.grad(function, (0, 1)))):
            got = call(*args)
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
            assert all(isinstance(g, k) for g, k in zip(got, kinds))
        value, tangent = gs.jvp(function, args, args)
        assert type(value) is type(function(*args)) and isinstance(tangent, type(value)), (args, value, tangent)
        np.testing.assert_allclose(tangent, wanted[0] * x + wanted[1] * y, rtol=1e-5)


WIDER = np.arange(3.0)


def wider_in_an_arm(x):
    return x if np.sum(x) > -0.3 else WIDER


def wider_after_a_pass(x):
    b = x
    for _ in range(int(x[0])):
        b = b * WIDER
    return b


def wider_and_written(x):
    b = x.copy() if x[0] > 0 else WIDER.copy()
    b[0] = x[1] * 2
    for _ in range(2):
        b = b * x[0]
    return b


def widened_after_the_arms(x):
    b = x if x[0] > 0 else WIDER
    return b * x[1] + np.arange(3)


def number_of_an_arm(x):
    return (np.sum(x) if x[0] > 0 else np.sum(WIDER * x)) * 2


@pytest.mark.parametrize("f", [wider_in_an_arm, wider_after_a_pass, wider_and_written, widened_after_the_arms,
                               number_of_an_arm])
@pytest.mark.parametrize("x", [[1.5, 2.0, -3.0], [-1.0, 2.0, -3.0], [0.5, -2.0, 3.0]])
def test_what_is_wider_on_one_path_has_a_tangent_like_it(f, x):
    x, direction = np.array(x, F), np.array([1.0, -2.0, 0.5], F)
    wide = x.astype(float)
    slope = (f(wide + 1e-6 * direction) - f(wide - 1e-6 * direction)) / 2e-6
    value, dot = gs.jvp(f, (x,), (direction,))
    assert value.dtype == dot.dtype == f(x).dtype
    np.testing.assert_allclose(dot, slope, rtol=1e-5, atol=1e-6)
    value, dot = gs.jit(lambda x, d: gs.jvp(f, (x,), (d,)))(x, direction)
    assert value.dtype == dot.dtype
    np.testing.assert_allclose(dot, slope, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gs.linearize(f, x)[1](direction), slope, rtol=1e-5, atol=1e-6)
