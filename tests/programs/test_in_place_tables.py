"""Tables that are written in place, and what shows them: eager, compiled, in batches, in single precision, forward."""
import math

import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(0)
X, M = 0.6 * RNG.standard_normal(4), 0.6 * RNG.standard_normal((4, 4))


@gs.custom_vjp
def same(x):
    return x


same.defvjp(lambda x: (x, None), lambda kept, dy: (2.0 * dy,))


def a_row_and_its_table(x, M):
    A = M.copy()
    r = A[1]
    for i in range(1, len(x)):
        r[i] = A[1, i - 1] * x[i]
        A[i] += r
    return np.sum(A * A)


def lists_in_a_list(x, M):
    held = [[x.copy(), M[0].copy()], [M[1].copy()]]
    for i in range(1, len(x)):
        held[0][0][i] = held[0][1][i - 1] * held[1][0][i]
        held[0][1][i] *= held[0][0][i - 1]
        held[1][0][:i] += held[0][0][i]
    return np.sum(held[0][0] ** 2) + np.sum(held[0][1] * held[1][0])


def whole_numbers(x, M):
    y = np.zeros(len(x))
    c = np.arange(4)
    for i in range(len(x)):
        y[i] = c[i] * x[i] ** 2
        y[i] *= c[3 - i] - 1
        y[i] /= 2
    return np.sum(y * y)


def one_row(x, M):
    A = M[:1].copy()
    for i in range(1, len(x)):
        A[:, i] = A[:, i - 1] * x[i]
        A[0, :i] += A[:, i]
    return np.sum(A ** 2)


def one_entry_for_all(x, M):
    y = x[:1].copy()
    s = 0.0
    for i in range(1, 4):
        s += np.sum(x[:i] * y)
        y[0] = s * 0.1
    return s


def repeated_places(x, M):
    A, y, places = M.copy(), x.copy(), np.array([0, 2, 2])
    for i in range(len(x)):
        A[[i, 0, i]] = A[[0, i, 1]] * x[i]
        A[i, [0, 0, 2]] = x[:3] * A[i, 1]
        y[places] *= x[:3] + y[i]
        np.add.at(y, places, x[1:] * y[3])
    return np.sum(A ** 2) + np.sum(y ** 2)


def of_a_gradient(x, M):
    def inner(x):
        y = x.copy()
        for i in range(1, len(x)):
            y[i] = y[i - 1] * y[i] ** 2
        return np.sum(y)

    d = gs.grad(inner)(x)
    for i in range(len(x)):
        d[i] *= x[i - 1]
    return np.sum(d * d)


def from_the_back(x, M):
    y = x.copy()
    for i in range(len(x)):
        y[-i] = y[i - 1] * y[-1] + x[i] * y[-i - 1]
    return np.sum(y)


def every_other(x, M):
    A = M.copy()
    for i in range(0, 4, 2):
        A[i % 2::2, i] = A[1::2, 1] * x[:2]
        A[::-1][i] = A[i + 1] * x[i]
    return np.sum(A * A)


def left_early(x, M):
    y = np.zeros(len(x))
    s = 0.0
    for i in range(len(x)):
        if s > 2.0:
            break
        y[i] = np.sin(x[i]) * (y[i - 1] if i else 1.0)
        s += y[i] ** 2
        y[i] *= s
    return s * np.sum(y)


def steps_of_two_lengths(x, M):
    y = x.copy()
    i = 0
    while i < len(x) - 1:
        y[i + 1] = y[i] * y[i + 1]
        if y[i + 1] > 0.3:
            y[i] = 0.5 * y[i + 1]
            i += 2
        else:
            i += 1
    return np.sum(y * y)


def exchanged_with_a_copy(x, M):
    a = x.copy()
    b = a
    for k in range(3):
        a[k] = b[k + 1] * a[k]
        a, b = b, a.copy()
    return np.sum(a * b)


def rows_exchanged(x, M):
    A = M.copy()
    for i in range(3):
        j = i + 1 if x[i] > 0 else i
        t = A[i].copy()
        A[i] = A[j]
        A[j] = t
        A[i + 1:, i] /= 2 + A[i, i]
        A[i + 1:, i + 1:] -= np.outer(A[i + 1:, i], A[i, i + 1:])
    return np.sum(np.sin(A))


def pieces_and_sums(x, M):
    y = x.copy()
    s = 0.0
    for i in range(1, len(x)):
        s += np.sum(y[:i]) * y[i - 1]
        y[i:] += s
        y[:i] *= np.sum(x[i:])
    return s + np.sum(y)


PROGRAMS = [a_row_and_its_table, lists_in_a_list, whole_numbers, one_row, one_entry_for_all, repeated_places,
            of_a_gradient, from_the_back, every_other, left_early, steps_of_two_lengths, exchanged_with_a_copy,
            rows_exchanged, pieces_and_sums]


def differences(f, *args):
    found = []
    for k, a in enumerate(args):
        d = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            ends = []
            for h in (1e-6, -1e-6):
                moved = [v.copy() for v in args]
                moved[k][i] += h
                ends.append(f(*moved))
            d[i] = (ends[0] - ends[1]) / 2e-6
        found.append(d)
    return found


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_way(f):
    df, want = gs.grad(f, (0, 1)), differences(f, X, M)
    for way in (df, gs.jit(df)):
        for found, d in zip(way(X.copy(), M.copy()), want):
            np.testing.assert_allclose(found, d, rtol=1e-7, atol=1e-8)
    for found, d in zip(gs.vmap(df)(np.stack([X + 1, X]), np.stack([M, M])), want):
        np.testing.assert_allclose(found[1], d, rtol=1e-7, atol=1e-8)
    for found, d in zip(df(X.astype(np.float32), M.astype(np.float32)), want):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, d, rtol=1e-4, atol=1e-5)
    _, dot = gs.jvp(f, (X, M), (np.cos(X), np.sin(M)))
    np.testing.assert_allclose(dot, np.sum(want[0] * np.cos(X)) + np.sum(want[1] * np.sin(M)), rtol=1e-7)


def test_a_custom_derivative_that_returns_its_argument():
    def through(x):
        y = x.copy()
        for i in range(1, len(x)):
            z = same(y)
            y[i] = z[i - 1] * z[i]
        return np.sum(y * same(y))

    def plain(x):
        y = x.copy()
        for i in range(1, len(x)):
            z = 2.0 * y - gs.stop_gradient(y)
            y[i] = z[i - 1] * z[i]
        return np.sum(y * (2.0 * y - gs.stop_gradient(y)))

    for way in (gs.grad(through), gs.jit(gs.grad(through))):
        np.testing.assert_allclose(way(X), gs.grad(plain)(X), rtol=1e-12)


def test_a_number_of_python_is_not_read_back_from_a_wider_array():
    """Of NumPy, it would widen the adjoint of single precision that it is multiplied with."""
    def f(x, s):
        y = np.zeros(4)
        z = x
        for i in range(4):
            u = math.sin(s + i)
            y[i] = u
            z = z * u
        return np.sum(z * z) + np.sum(y ** 2)

    dx, ds = gs.grad(f, (0, 1))(X.astype(np.float32), 1.1)
    assert dx.dtype == np.float32 and type(ds) is float
    want = differences(lambda x, s: f(x, float(s)), X, np.array(1.1))
    np.testing.assert_allclose(dx, want[0], rtol=1e-5)
    np.testing.assert_allclose(ds, want[1], rtol=1e-6)
