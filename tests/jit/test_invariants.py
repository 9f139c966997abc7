# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion in compiled text: the values are those of the loop as it was written."""
import numpy as np
import pytest

import gradscribe as gs


def scaled(p, x):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = np.sin(np.exp(p[0])) * x[i]
    return out


def table(p, x):
    out = np.zeros((p.shape[0], x.shape[0]))
    for i in range(p.shape[0]):
        for j in range(x.shape[0]):
            out[i, j] = np.sin(np.exp(p[i]) ** p[0]) * x[j]
    return out


def read_and_written(q, n):
    q = q.copy()
    out = np.zeros(n)
    for i in range(n):
        q[::-1] = q[::-1] * 1.0
        out[i] = np.arctan((1.5 + np.sin(q[0])) ** q[1])
    return out


def grows(q, n):
    q = q.copy()
    out = np.zeros(n)
    for i in range(n):
        out[i] = np.sin(np.exp(q[0]))
        q[0] = 0.5 * q[0] + 0.1
    return out


def last(p, n):
    t = 1.0
    for _ in range(n):
        t = np.sin(np.exp(p[0]))
    return t * p[1]


def given(t, p, n):
    for _ in range(n):
        t = np.sin(np.exp(p[0]))
    return t * p[1]


def of_the_row_before(p, lengths):
    out = np.zeros(p.shape[0])
    for i in range(p.shape[0]):
        for _ in range(lengths[i]):
            t = np.sin(np.exp(p[i]))
        out[i] = t
    return out


def under_a_condition(p, x, k):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if k < p.shape[0]:
            out[i] = np.sin(np.exp(p[k])) * x[i]
    return out


def in_a_view(x):
    row = x[1]
    y = x[0]
    for i in range(y.shape[0]):
        y[i] = np.sin(np.exp(row[0])) + y[i]
    return x * 2.0


P, X = np.array([0.3, 0.7]), np.linspace(0.1, 1.0, 50)


@pytest.mark.parametrize("f, args", [
    (scaled, (P, X)), (scaled, (P, X[:0])), (scaled, (P.astype(np.float32), X.astype(np.float32))),
    (table, (P, X)), (table, (P, X[:0])), (table, (P[:0], X)),
    (read_and_written, (P, 6)), (read_and_written, (P, 0)), (grows, (P, 6)), (grows, (P, 0)),
    (last, (P, 4)), (last, (P, 0)),
    (given, (P[0], P, 4)), (given, (P[0], P, 0)),
    (under_a_condition, (P, X, 1)), (under_a_condition, (P, X, 7)),
    (in_a_view, (np.linspace(0.2, 1.0, 40).reshape(2, 20),)),
], ids=lambda v: v.__name__ if callable(v) else "")
def test_as_numpy_has_it(f, args):
    want = f(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    got = gs.jit(f)(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])     # LLVM took hours over some
    np.testing.assert_allclose(got, want, rtol=1e-13 if args[0].dtype == np.float64 else 1e-6)
    assert got.dtype == want.dtype


def test_what_each_pass_computes_alike_is_computed_once():
    fast = gs.jit(scaled)
    fast(P, X)
    loop = fast.lowered[fast.lowered.index("for i"):]
    assert "sin" not in loop and "np.sin(np.exp(p[0]))" in fast.lowered


def test_the_gradient_of_what_is_moved():
    def total(p, x):
        return np.sum(scaled(p, x))

    got = gs.jit(gs.grad(total, (0, 1)))(P, X)
    want = gs.grad(total, (0, 1))(P, X)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-12)
