# SPDX-License-Identifier: Apache-2.0
"""Loops that write into arrays: the backward pass undoes the writes, and costs what they cost."""
import tracemalloc

import numpy as np
import pytest
from programs.checks import differences_by_entry

import gradscribe as gs

X = np.array([0.9, 1.1, 0.7, 0.62])


def masks(x, n):
    y = x.copy()
    for k in range(n):
        y[y > 0.5] = y[y > 0.5] ** 2 * 0.9
        y[k] = np.sum(y ** 2)
    return np.sum(y ** 2)


def gather(x, n):
    y = x.copy()
    idx = np.array([0, 2, 2])
    for k in range(n):
        y[idx] = np.sin(y[[1, 3, 0]]) * y[k]
        y[k] *= y[idx[1]]
    return np.sum(y ** 3)


def addat(x, n):
    y = x.copy()
    idx = np.array([0, 2, 2])
    for k in range(n):
        np.add.at(y, idx, np.sin(y[[1, 3, 0]]) * y[k])
        y[k] = y[k] ** 2
    return np.sum(y ** 2)


def whiles(x, n):
    y = x.copy()
    k = 0
    while k < n:
        y[k] = y[k] * np.sum(y[:k + 1] ** 2)
        k += 1
    return np.sum(y ** 2)


def whileval(x, n):
    y = x.copy()
    while np.sum(y) < 8.:
        y[1] = y[1] * y[0] + y[2]
        y[0] += np.sin(y[1]) ** 2 + .1
    return np.sum(y ** 2)


def breaks(x, n):
    y = x.copy()
    for k in range(n):
        y[k] = y[k] * np.sum(y ** 2)
        if y[k] > 3.:
            break
        y[k - 1] = y[k] * y[k - 2]
    return np.sum(y ** 2)


def branches(x, n):
    y = x.copy()
    for k in range(n):
        if y[k] > 0.8:
            y[k] = y[k] * np.sum(y ** 2)
        else:
            y[k - 1] += y[k] ** 2
        y[0] = y[k] * y[1]
    return np.sum(y ** 2)


def left_out(x, n):
    """The test asks for the length of what is written."""
    y = x.copy()
    for k in range(n):
        if len(y) * k > 4:
            continue
        y[k] /= 2.0 + y[k - 1]
    return np.sum(y ** 2)


def pingpong(x, n):
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(n):
        for j in range(1, len(x) - 1):
            b[j] = a[j - 1] * a[j] + a[j + 1]
        a, b = b, a
        a[0] = a[1] * b[2]
    return np.sum(a ** 2) + np.sum(b)


def triangle(x, n):
    A = np.outer(x, x) + np.eye(len(x))
    for i in range(len(x)):
        for j in range(i):
            A[i, j] = A[i, j] * (A[j, i] + A[i, :j] @ A[j, :j])
            A[j, i] -= A[i, j] ** 2
    return np.sum(A ** 2)


def swap(x, n):
    A = np.outer(x, x) + np.eye(len(x))
    for i in range(len(x) - 1):
        t = A[i].copy()
        A[i] = A[i + 1] * A[i, 0]
        A[i + 1] = t * 2
    return np.sum(A ** 3)


def swap2(x, n):
    A = np.outer(x, x) + np.eye(len(x))
    for i in range(len(x) - 1):
        A[[i, i + 1]] = A[[i + 1, i]] * A[i, i + 1]
    return np.sum(A ** 3)


def views(x, n):
    A = np.outer(x, x) + np.eye(len(x))
    for i in range(len(x)):
        row = A[i]
        part = row[1:]
        part *= A[0, i]
        row[0] = np.sum(part ** 2)
    return np.sum(A ** 2)


def table(x, n):
    D = np.zeros((len(x) + 1, len(x) + 1))
    for i in range(len(x)):
        D[i + 1, 0] = D[i, 0] + x[i]
        for j in range(len(x)):
            D[i + 1, j + 1] = np.sin(D[i, j] * D[i + 1, j]) + D[i, j + 1] * x[j] + 0.3
    return D[-1, -1]


def inactive(x, n):
    p = np.zeros(len(x))
    v = x.copy()
    for i in range(n):
        p[0] = 1. + i
        for j in range(1, len(x)):
            p[j] = 1. / (p[j - 1] + 2. + i)
        for j in range(1, len(x)):
            v[j] = p[j] * v[j - 1] * v[j]
    return np.sum(v ** 2)


def inactive2(x, n):
    p = np.zeros(len(x))
    v = x.copy()
    for i in range(n):
        for j in range(1, len(x)):
            p[j] = 1. / (p[j - 1] + 2. + i)
        for _ in range(2):
            v *= p
    return np.sum(v ** 2)


def ints(x, n):
    p = np.arange(len(x))
    v = x.copy()
    for i in range(n):
        p[i] = (p[i] + p[i - 1]) % len(x)
        v[p[i]] = v[p[i]] * v[i] + 0.5
    return np.sum(v ** 2)


def aug(x, n):
    y = x.copy()
    for i in range(n):
        y[i:] += y[0] * y[i]
        y[:i] *= y[i]
        y /= 1. + y[0] ** 2
    return np.sum(y ** 2)


def aux_like(x, n):
    y = x.copy()
    for i in range(n):
        y[i] = y[i] * np.sum(y)
    z = y.copy()
    for i in range(n):
        z[i] = z[i] * y[i - 1] * np.sum(z)
    return np.sum(z ** 2) + np.sum(y)


def inner_used(x, n):
    y = x.copy()
    s = 0.
    for i in range(n):
        y[i] = y[i] ** 2
        w = y.copy()
        for j in range(len(x)):
            w[j] = w[j] * y[j] * w[j - 1]
            y[j] += 0.1 * w[j]
        s += np.sum(w * y)
    return s


PROGRAMS = [masks, gather, addat, whiles, whileval, breaks, branches, left_out, pingpong, triangle, swap, swap2, views,
            table, inactive, inactive2, ints, aug, aux_like, inner_used]


def by_differences(f, x, n):
    return [(f(x + 1e-6 * v, n) - f(x - 1e-6 * v, n)) / 2e-6 for v in np.eye(len(x))]


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(f, n):
    wanted = by_differences(f, X, n)
    for made in (gs.grad(f), gs.jit(gs.grad(f))):
        x = X.copy()
        np.testing.assert_allclose(made(x, n), wanted, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(x, X)
    value, found = gs.value_and_grad(f)(X, n)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    assert value == f(X, n)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_pullback_that_is_called_twice(f):
    """What it undoes, it undoes in arrays of its own."""
    _, pullback = gs.vjp(f, X, 3)
    first, second = pullback(1.0)[0], pullback(1.0)[0]
    np.testing.assert_allclose(first, by_differences(f, X, 3), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_and_batches(f):
    slope = gs.grad(f)
    wanted = np.array([(slope(X + 1e-6 * v, 3) - slope(X - 1e-6 * v, 3)) / 2e-6 for v in np.eye(4)])
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(gs.hessian(f)(X, 3) / scale, wanted / scale, atol=1e-7)
    found = gs.grad(lambda x: np.sum(gs.grad(f)(x, 3) ** 2))(X)
    np.testing.assert_allclose(found, 2 * gs.hessian(f)(X, 3) @ slope(X, 3), rtol=1e-9)
    batch = gs.vmap(slope, (0, None))(np.array([X, X * 1.05]), 3)
    np.testing.assert_allclose(batch, [slope(X, 3), slope(X * 1.05, 3)], rtol=1e-12)


def lu(A):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return np.sum(A ** 2)


def shortest(A):
    A = A.copy()
    for k in range(A.shape[0]):
        for i in range(A.shape[0]):
            A[i] = np.minimum(A[i], A[i, k] + A[k])
    return np.sum(A ** 2)


def sweeps(A):
    """An inner loop that asks for nothing of what it writes, and is undone for the loop around it."""
    p, v = np.zeros(A.shape[0]), A.copy()
    for i in range(A.shape[0]):
        p[0] = 0.5
        for j in range(1, A.shape[0]):
            p[j] = 1.0 / (p[j - 1] + 2.0 + i)
        for j in range(1, A.shape[0]):
            v[j, i] = p[j] * v[j - 1, i] * v[j, i]
    return np.sum(v ** 2)


def clipped(A):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(1, A.shape[0]):
            if A[i, j] > 1.0:
                A[i, j] = A[i, j] * A[i, j - 1]
            else:
                A[j, i] += A[i, j] ** 2
    return np.sum(A ** 2)


@pytest.mark.parametrize("f, saved", [(lu, 2), (shortest, None), (sweeps, 3), (clipped, 4)])
def test_memory_is_that_of_what_is_overwritten(f, saved):
    """Growth with the number of rows: n ** 2 numbers are written (n ** 3 of shortest), and no more are saved."""
    def peak(n):
        A = np.random.default_rng(0).uniform(0.5, 1.5, (n, n)) + n * np.eye(n)
        made(A)
        tracemalloc.start()
        made(A)
        try:
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    made = gs.grad(f)
    small, large = peak(24), peak(48)
    assert large < (8.5 if saved is None else 4.5) * small
    if saved is not None:
        assert large < (saved + 4) * 8 * 48 ** 2


def columns_from_rows(M, x):
    A = M.copy()
    for i in range(1, len(x)):
        A[:, i] = A[2].copy()
    return np.sum(A * x)


def test_what_is_set_to_a_part_that_it_crosses():
    """NumPy reads what it has just written where a column is set to a row: the adjoint adds it to zeros."""
    def second(x, M, V):
        return np.sum(gs.grad(columns_from_rows)(M, x) * V)

    rng = np.random.default_rng(0)
    x, M, V = rng.standard_normal(4), rng.standard_normal((4, 4)), rng.standard_normal((4, 4))
    moved = [(second(x + 1e-6 * e, M, V) - second(x - 1e-6 * e, M, V)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(gs.grad(second)(x, M, V), moved, rtol=1e-7)


def eliminated(m):
    """The pivot is read before the loop that writes into the matrix, and in it."""
    m = m.copy()
    n = m.shape[0]
    for k in range(n):
        p = m[k, k]
        for i in range(k + 1, n):
            m[i, k] /= p
            m[i, k + 1:] -= m[i, k] * m[k, k + 1:]
    return np.sum(np.sin(m))


def divided_by_a_row(m):
    m = m * 1.0
    for k in range(3):
        p = m[k]
        for _ in range(2):
            m[3] /= p
    return np.sum(m)


def scaled_by_a_function(m):
    m = m * 1.0
    for k in range(3):
        p = np.exp(m[k, 0]) + m[k, 1]
        for i in range(k + 1, 4):
            m[i] = np.sin(m[i]) * p - m[i] * m[k]
    return np.sum(m)


@pytest.mark.parametrize("f", [eliminated, divided_by_a_row, scaled_by_a_function], ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_what_a_loop_inside_reads_before_its_writes_are_undone(f, wrap):
    m = 0.5 + np.random.default_rng(0).random((4, 4)) + np.eye(4)
    np.testing.assert_allclose(wrap(gs.grad(f))(m), differences_by_entry(f, m), rtol=1e-6, atol=1e-7)


def test_an_index_array_of_numbers_is_made_again():
    def swapped(A):
        A = 2 * A
        n = len(A)
        for i in range(1, n):
            A[[i, n - 1 - i]] = A[[n - 1 - i, i]] * A[[i, i - 1]]
        return np.sum(A * A)

    A = np.random.default_rng(0).uniform(0.5, 1.0, (4, 3))
    df = gs.grad(swapped)
    np.testing.assert_allclose(df(A), differences_by_entry(swapped, A), rtol=1e-6)
    np.testing.assert_allclose(gs.jit(df)(A), df(A), rtol=1e-12)
    assert "array_saved" not in df.source


def rows_of_a_part(A):
    """The inner loop goes over a part of what it writes into: as many passes as a version had rows."""
    A, t = A.copy(), 0.0
    for i in range(len(A)):
        for row in A[1:]:
            A[0] = 0.3 * row + A[i]
        t += np.sum(row ** 2)
    return t


def rows_of_the_last_pass(A):
    A = A.copy()
    for _ in range(len(A)):
        for row in A[1:]:
            A[0] = 0.3 * row
        p = row
    return np.sum(p ** 2)


def columns_of_a_part(A):
    A = A.copy()
    for row in A:
        for k, _ in enumerate(A[1:]):
            A[k] = A[k] - 0.3 * A[1:, 0][:2] ** 2
        s = np.sum(row * A[1])
    return s


@pytest.mark.parametrize("f", [rows_of_a_part, rows_of_the_last_pass, columns_of_a_part], ids=lambda f: f.__name__)
def test_a_number_of_passes_that_is_the_length_of_a_part(f):
    A = np.linspace(0.2, 1.3, 6).reshape(3, 2)
    df = gs.grad(f)
    np.testing.assert_allclose(df(A), differences_by_entry(f, A), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.jit(df)(A), df(A), rtol=1e-13)
    V = np.cos(A)
    want = (df(A + 1e-6 * V) - df(A - 1e-6 * V)) / 2e-6
    np.testing.assert_allclose(gs.jvp(lambda A: df(A), (A,), (V,))[1], want, rtol=1e-6, atol=1e-7)
