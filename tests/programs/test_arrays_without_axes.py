# SPDX-License-Identifier: Apache-2.0
"""Arrays without axes, which `x += v` changes in place: where another name may show one, the assignment is refused."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, 0.6])


def one_of_two(x, t):
    a, b = np.array(x[0] * 1.0), np.array(t * 1.0)
    m = a if t > 0 else b
    m += 1
    return a * a + b * 3 + m


def one_of_two_arms(x, t):
    a, b = np.array(x[0] * 1.0), np.array(t * 1.0)
    if t > 0:
        m = a
    else:
        m = b
    m *= 2
    return a * a + b * b + m


def largest(x, t):
    a, b = np.array(x[0] * 1.0), np.array(t * 1.0)
    m = max(a, b)
    m += 1
    return a * 2 + b * 3 + m


def smallest_of_three(x, t):
    a, b = np.array(x[0] * 1.0), np.array(t * 1.0)
    m = min(a, b, np.array(9.0))
    m *= 2
    return a * a + b * b + m


def after_an_assignment(x, t):
    a = np.array(x[0] * 1.0)
    a += 1
    b = a
    b += t
    return a + b


def in_a_loop(x, t):
    a = np.array(x[0] * 1.0)
    b = a
    for _ in range(2):
        a = a
        a += t
    return a + b


def from_the_second_pass(x, t):
    a, b = np.array(x[0] * 1.0), np.array(x[1] * 1.0)
    c = b
    for k in range(2):
        if x[k] > 0.5:
            b = a
        b += t
    return a + b * 2 + c


def in_a_list(x, t):
    a = np.array(x[0] * 1.0)
    held = [max(a, t), 1.0]
    a += t
    return a + held[0]


@pytest.mark.parametrize("f", [one_of_two, one_of_two_arms, largest, smallest_of_three, after_an_assignment, in_a_loop,
                               from_the_second_pass, in_a_list])
@pytest.mark.parametrize("transform", [gs.grad, gs.jit, lambda f: gs.jit(gs.grad(f)), lambda f: lambda x, t: gs.jvp(
    f, (x, t), (x, t))])
def test_what_another_name_may_show_is_not_changed_unseen(f, transform):
    for t in (0.7, -0.7):
        with pytest.raises(gs.TransformError, match="may be an array without axes, which something else shows"):
            transform(f)(X, t)


def exchanged(x, t):
    a, b = np.array(x[0] * 1.0), np.array(x[1] * 1.0)
    for _ in range(3):
        a, b = b, a
        a += t
    return a + b * 2


def a_sum(x, t):
    total = np.array(0.0)
    for v in x:
        total += v * t
    total *= 2
    return total


def numbers(x, t):
    m = max(x[0], t)
    m += 1
    n = x[0] if t > 0 else x[1]
    n *= t
    return m * n


@pytest.mark.parametrize("f", [exchanged, a_sum, numbers])
def test_what_nothing_else_shows(f):
    for t in (0.7, -0.7):
        steps = 1e-6 * np.eye(2)
        want = [(f(X + e, t) - f(X - e, t)) / 2e-6 for e in steps]
        for transform in (lambda g: g, gs.jit):
            value, found = transform(gs.value_and_grad(f))(X, t)
            np.testing.assert_allclose(value, f(X, t), rtol=1e-14)
            np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-9)
