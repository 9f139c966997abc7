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
