"""Entries that every pass of a loop adds to: summed in a number by compiled code, and in the entry by what is read."""
import numpy as np
import pytest
from programs.checks import differences_by_entry as differences

import gradscribe as gs


def a_triangle(A, x):
    total = 0.0
    for i in range(len(x)):
        total += np.sin(x[i])
        for k in range(i):
            total += A[i, k] * x[k] * x[i]
    return total


def its_own_entry(A, x):                # k may be i: the entry is read and added to by another name
    total = 0.0
    for i in range(len(x)):
        total += np.cos(x[i])
        for k in range(len(x)):
            total += A[i, k] * x[k] * x[i]
    return total


def past_the_end(A, x):                 # the loop makes no pass where i + 1 is none
    total = 0.0
    n = len(x)
    for i in range(n):
        for k in range(n - 1 - i):
            total += A[i, k] * x[i + 1] * x[k]
    return total


def three_deep(A, x):
    total = 0.0
    for i in range(len(x)):
        w = x[i] * x[i]
        for j in range(i):
            for k in range(j):
                total += A[i, j] * w * x[k] + x[i] * A[j, k]
    return total


def set_in_the_loop(A, x):
    B = A * 2.0
    total = 0.0
    for i in range(1, len(x)):
        B[i, i] = x[i]
        for k in range(i):
            total += B[i, i] * x[k]
            B[i, k] = total * x[i]
            total += B[i, k] * B[0, 0]
        total += B[i, i]
    return total


def under_a_test(A, x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
        for k in range(i):
            if A[i, k] > 0:
                total += A[i, k] * x[i]
            total += A[k, i] * x[i]
    return total


def while_it_is_small(A, x):
    total = 0.0
    for i in range(len(x)):
        k = 0
        total += x[i]
        while k < i and total < 40.0:
            total += A[i, k] * x[i] * x[i]
            k += 1
    return total


def leaves_early(A, x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        for k in range(len(x)):
            if A[i, k] < -0.5:
                break
            total += A[i, k] * x[i]
    return total


def adds_in_place(A, x):
    C = np.zeros_like(A)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            t = 0.0
            for k in range(i):
                C[k, j] += A[i, j] * A[i, k]
                t += x[k] * A[i, k]
            C[i, j] = 0.5 * C[i, j] + A[i, j] * x[i] + t
    return np.sum(C * C)


PROGRAMS = [a_triangle, its_own_entry, past_the_end, three_deep, set_in_the_loop, under_a_test, while_it_is_small,
            leaves_early, adds_in_place]


@pytest.mark.parametrize("f, n", [(f, n) for f in PROGRAMS for n in (5, 1, 0) if n or f is not set_in_the_loop])
def test_programs(f, n):            # set_in_the_loop reads B[0, 0]
    rng = np.random.default_rng(7)
    A, x = rng.standard_normal((n, n)), rng.standard_normal(n)
    if f is leaves_early:
        A = np.abs(A)
        A[2:, 3:] -= 2.0
    want = [differences(lambda a: f(a, x), A), differences(lambda b: f(A, b), x)]
    eager = gs.grad(f, (0, 1))(A.copy(), x.copy())
    fast = gs.jit(gs.grad(f, (0, 1)))(A.copy(), x.copy())
    for each in (eager, fast):
        for got, expected in zip(each, want):
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    for a, b in zip(eager, fast):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [a_triangle, three_deep, adds_in_place])
def test_single_precision(f):
    rng = np.random.default_rng(8)
    A, x = rng.standard_normal((4, 4)), rng.standard_normal(4)
    narrow = A.astype(np.float32), x.astype(np.float32)
    eager, fast = gs.grad(f, (0, 1))(*narrow), gs.jit(gs.grad(f, (0, 1)))(*narrow)
    wide = gs.grad(f, (0, 1))(*(a.astype(float) for a in narrow))
    for a, b, c in zip(eager, fast, wide):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_allclose(b, c, rtol=2e-6, atol=2e-6)


def test_complex_entries():
    def f(A, x):
        total = 0.0
        for i in range(len(x)):
            total += np.abs(x[i]) ** 2
            for k in range(i):
                total += np.real(A[i, k] * x[i] * x[k])
        return total

    rng = np.random.default_rng(9)
    A, x = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((4, 4), 4))
    for a, b in zip(gs.grad(f, (0, 1))(A, x), gs.jit(gs.grad(f, (0, 1)))(A, x)):
        assert a.dtype == b.dtype == np.complex128
        np.testing.assert_allclose(b, a, rtol=1e-12)


def test_the_number_is_in_the_source_of_compiled_code_alone():
    A, x = np.eye(3), np.ones(3)
    assert "dx_i = 0.0" in gs.jit(gs.grad(a_triangle, 1)).source_for(A, x)
    assert "dx[i] += " in gs.grad(a_triangle, 1).source_for(A, x)
    assert "dx_i" not in gs.grad(a_triangle, 1).source_for(A, x)
    lowered = gs.jit(gs.grad(past_the_end, 1)).source_for(A, x)
    assert "dx_i" not in lowered and "if n_1 > 0:" in lowered       # x[i + 1] may be none where there is no pass
