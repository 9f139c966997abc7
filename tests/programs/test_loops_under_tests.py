"""Loops that write into an array under a test, in a loop: going backward they put back what they replaced."""
import inspect
import re

import counted
import numpy as np
import pytest

import gradscribe as gs

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


@program
def in_one_arm(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        if i % 2 == 0:
            for j in range(1, n):
                A[i, j] = np.sin(A[i, j - 1]) * x[j]
    return np.sum(A ** 2)


@program
def in_both_arms(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        if x[i] > 0.0:
            for j in range(i, n):
                A[j, i] *= 1.0 + 0.1 * A[i, j]
        else:
            A[i] = A[i - 1] * x
            for j in range(i):
                A[i, j] += A[j, i] ** 2
    return np.sum(np.sin(A))


@program
def between_writes(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        A[i, 0] = A[i, 0] * x[i]
        if x[i] > -0.2:
            A[:, i] *= A[i, 0]
            for j in range(n):
                A[j, i] = np.sin(A[j, i]) + A[i, j]
            A[i] *= 0.5
        A[0] += A[i, i] ** 2
    return np.sum(A ** 2)


@program
def a_part_from_before_the_loop(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        if i % 2:
            first = A[i, 0]
            for j in range(n):
                A[j, 0] = A[j, 0] * first + x[j] * A[i, i]
    return np.sum(A ** 2)


@program
def a_test_of_the_array(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        if A[i, 0] > 0.0:
            for j in range(n):
                A[j, i] = np.cos(A[j, i]) * A[j, 0] * x[i]
    return np.sum(A ** 2)


@program
def branches_in_an_arm(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        if x[i] < 0.5:
            if A[i, i] > 0.0:
                for j in range(i):
                    A[j, i] *= A[i, j] + 1.0
            else:
                for j in range(n - 1, -1, -1):
                    if j % 2:
                        A[j] = A[j] * A[i, j]
            A[i, i] = A[i, i] ** 2
    return np.sum(np.sin(A))


@program
def a_later_loop_that_no_adjoint_asks(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        for j in range(i, n):
            A[j, 0] *= 1.0 + 0.1 * A[0, j]
        for j in range(n):
            if x[j] < 0.2:
                A[0, j] = A[0, j] * 0.5
            else:
                A[j, j] = x[i]
    return np.sum(np.sin(A))


@program
def several_loops_in_an_arm(A, x):
    A = A.copy()
    n = len(x)
    t = 0.0
    for i in range(n):
        if i > 0:
            for j in range(i):
                A[i, j] -= A[j] @ A[:, j] * 0.1
            t += A[i, 0] * x[i]
            for j in range(i, n):
                A[j] = A[j] * (1.0 + 0.1 * t)
    return np.sum(A ** 2) + t


@program
def a_value_written_and_read_in_a_later_loop(A, x):
    A = A.copy()
    n = len(x)
    for i in range(n):
        value = np.sum(np.sin(x * A[i, 0]))
        A[i, 0] = value
        for j in range(n):
            A[j, 1 % n] = A[j, 1 % n] * A[j, 2 % n] * value
            A[j, 2 % n] += A[j, 1 % n] * A[j, 0]
    return np.sum(np.sin(A))


def arguments(n):
    rng = np.random.default_rng(n)
    return 0.5 * rng.standard_normal((n, n)), 0.5 * rng.standard_normal(n)


def differences(f, args, h=1e-6):
    found = []
    for k, a in enumerate(args):
        found.append(np.zeros_like(a))
        for i in np.ndindex(a.shape):
            ends = []
            for d in (h, -h):
                moved = [b.copy() for b in args]
                moved[k][i] += d
                ends.append(f(*moved))
            found[-1][i] = (ends[0] - ends[1]) / (2 * h)
    return found


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(f):
    for n in (4, 1, 0):
        args = arguments(n)
        kept = [a.copy() for a in args]
        df = gs.grad(f, (0, 1))
        compiled = gs.jit(df)(*args)
        for found, fast, want in zip(df(*args), compiled, differences(f, args)):
            np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-8)
            np.testing.assert_allclose(fast, found, rtol=1e-12, atol=1e-13)
        assert all(np.array_equal(a, b) for a, b in zip(args, kept))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    args = arguments(3)
    tangents = [np.cos(np.arange(a.size)).reshape(a.shape) for a in args]
    df = gs.grad(f, (0, 1))
    dots = gs.jvp(lambda A, x: df(A, x), args, tangents)[1]
    ends = [df(*(a + h * t for a, t in zip(args, tangents))) for h in (1e-6, -1e-6)]
    for found, a, b in zip(dots, *ends):
        np.testing.assert_allclose(found, (a - b) / 2e-6, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_cost_of_a_gradient_does_not_grow(f):
    text = gs.grad(f, (0, 1)).source_for(*arguments(5))
    source = inspect.getsource(f).split("\n", 1)[1]
    label = re.findall(r"^def (grad_\w+)", text, re.M)[-1]
    small, large = counted.growth(source, f.__name__, text, label, [arguments(n) for n in (12, 24)])
    assert large < 1.3 * small, (small, large)
