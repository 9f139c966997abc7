"""Names and lists that show one array from pass to pass: what is written by one is seen by all."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, -0.5, 0.7, 1.1])


def one_array_many_times(x, n):
    total, held = np.zeros(4), []
    for _ in range(n):
        total += x
        held.append(total)
    return np.sum(held)


def copies(x, n):
    total, held = np.zeros(4), []
    for _ in range(n):
        total += x
        held.append(total.copy())
    return np.sum(held)


def written_before_the_next(x, n):
    a, held = x * 1.0, []
    for _ in range(n):
        a = a * 2
        held.append(a)
        a[0] = 3.0
    return np.sum(np.stack(held) ** 2)


def written_after(x, n):
    a, held = x * 1.0, []
    for _ in range(n):
        held.append(a)
    a[0] = 3.0
    return np.sum(np.stack(held) ** 2)


def another_name(x, n):
    a, b, s = x * 1.0, x * 0.0, 0.0
    for _ in range(n):
        a += x
        s = s + np.sum(b * a)
        b = a
    return s


def exchanged(x, n):
    a, b = x * 1.0, x * 2.0
    for _ in range(n):
        a, b = b, a
        a[0] = b[1] * b[0]
    return np.sum(a * b)


def best_so_far(x, n):
    best, v = x * 1.0, x * 1.0
    for _ in range(n):
        v = v * x
        if np.sum(v) > 0:
            best = v
    return np.sum(best * v)


def best_so_far_is_written(x, n):
    best, v = x * 1.0, x * 2.0
    for _ in range(n):
        if np.sum(v) > 0:
            best = v
        v *= x
    return np.sum(best * v)


def one_of_two_buffers_is_named(x, n):
    a = x * 1.0
    a[1:] += 1.0
    old, new, s = a, np.zeros_like(a), 0.0
    for _ in range(n):
        new += x
        s = s + np.sum(a ** 2)
        old, new = new, old
    return s


def buffers_in_two_loops(x, n):
    a = x * 1.0
    for _ in range(n):
        old, new = a, x.copy()
        for _ in range(2):
            new += a * a
            old, new = new, old
    return np.sum(a ** 2)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("f", [one_array_many_times, copies, written_before_the_next, written_after, another_name,
                               exchanged, best_so_far, one_of_two_buffers_is_named, buffers_in_two_loops])
def test_values_and_gradients(f, n):
    value, found = gs.value_and_grad(f)(X, n)
    steps = 1e-6 * np.eye(4)
    want = [(f(X + e, n) - f(X - e, n)) / 2e-6 for e in steps]
    np.testing.assert_allclose(value, f(X, n), rtol=1e-14)
    np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-8)


def test_many_passes_are_refused():
    with pytest.raises(gs.TransformError, match="a list holds an array that line .* may have changed"):
        gs.grad(one_array_many_times)(X, 1000)


def test_what_a_branch_may_share_is_known_or_refused():
    value, found = gs.value_and_grad(best_so_far_is_written)(X, 1)
    assert value == best_so_far_is_written(X, 1)
    np.testing.assert_allclose(found, 16 * X ** 3, rtol=1e-14)
    value, found = gs.value_and_grad(best_so_far_is_written)(X, 3)
    assert value == best_so_far_is_written(X, 3)
    steps = 1e-6 * np.eye(4)
    np.testing.assert_allclose(found, [(best_so_far_is_written(X + e, 3) - best_so_far_is_written(X - e, 3)) / 2e-6
                                       for e in steps], rtol=1e-7, atol=1e-8)
    with pytest.raises(gs.TransformError, match="best is an array that line .* may have changed"):
        gs.grad(best_so_far_is_written)(X, 1000)


def cubed(v):
    return v ** 3


@gs.rule.elementwise(cubed)
class cubed_rule:
    def partial_v(v):
        return 3.0 * v ** 2


def test_the_source_of_a_function_with_a_rule_says_whether_it_returns_a_new_array():
    def f(x):
        a = x * 1.0
        b = cubed(a)
        a[0] = 0.0
        return np.sum(a) + np.sum(b)
    value, found = gs.value_and_grad(f)(X)
    assert value == f(X)
    np.testing.assert_allclose(found, 3 * X ** 2 + [0, 1, 1, 1], rtol=1e-14)
