# SPDX-License-Identifier: Apache-2.0
"""Array contraction: an array that one pass fills and reads becomes a number, one that outlives the pass does not."""
import numpy as np
import pytest

import gradscribe as gs


def kept_over_steps(x, T):
    n = x.shape[0]
    z = np.empty(n)
    s = 0.0
    for t in range(T):
        for i in range(n):
            if t == 0:
                z[i] = x[i]
            else:
                z[i] = 0.5 * z[i] + x[i]
            s = s + z[i]
    return s


def history(x, T):
    n = x.shape[0]
    h = np.empty((n, T))
    s = 0.0
    for t in range(T):
        for i in range(n):
            h[i, t] = x[i] * (t + 1)
            s = s + h[i, 0] * h[i, t]
    return s


def numbers(x):
    h = np.empty(4)
    s = 0.0
    for t in range(4):
        h[t] = x * (t + 1)
        s = s + h[0] * h[t]
    return s


def one_entry_first(x, T):
    n = x.shape[0]
    z = np.empty((n, 2))
    s = 0.0
    for t in range(T):
        for i in range(n):
            z[i, 0] = x[i] * t
            if t == 0:
                z[i, 1] = x[i]
            s = s + z[i, 0] * z[i, 1]
    return s


def a_part_of_a_row(x, T):
    n, m = x.shape
    z = np.empty((n, m))
    s = 0.0
    for t in range(T):
        k = m if t == 0 else 1
        for i in range(n):
            for j in range(k):
                z[i, j] = x[i, j] + t
            for j in range(m):
                s = s + z[i, j]
    return s


def kept_by_a_while_loop(x, T):
    n = x.shape[0]
    z = np.empty(n)
    s = 0.0
    t=0
    while t < T:
        for i in range(n):
            if t == 0:
                z[i] = x[i]
            else:
                z[i] = 0.5 * z[i] + x[i]
            s = s + z[i]
        t = t+1
    return s


def ring_buffer(x, T):
    n = x.shape[0]
    z = np.empty((n,3))
    s = 0.0
    for t in range(T):
        for i in range(n):
            z[i, t%3] = x[i]*(t+1)
            if t>2:
                s = s + z[i, (t+1)%3]
    return s


def checksum(x):
    n, m = x.shape
    c = np.empty(n, np.uint8)
    out = np.zeros(n, np.int64)
    for i in range(n):
        c[i] = 0
        for j in range(m):
            c[i] += x[i, j]
        out[i] = c[i]
    return out


def overflows(x):
    n = len(x)
    c = np.empty(n, np.int32)
    t = 0
    for i in range(n):
        c[i] = x[i]
        c[i] += x[i]
        if c[i] < 0:
            t += 1
    return t


def flags(x):
    n = len(x)
    z = np.empty(n, bool)
    k = 0
    for i in range(n):
        z[i] = x[i] > 3
        z[i] += x[i] > 5
        if z[i] == (x[i] > 5):
            k += 1
    return k


def single_precision(x):
    n = len(x)
    z = np.empty(n, np.float32)
    k = 0.0
    for i in range(n):
        z[i] = x[i]
        z[i] += x[i] * 1e-9
        z[i] *= 1.1
        k += z[i]
    return k


def rows_set_whole(x, T):
    n, m = x.shape
    z = np.empty((n, m))
    s = 0.0
    for t in range(T):
        for i in range(n):
            for j in range(m):
                z[i, j] = x[i, j] + t
            for j in range(m):
                s = s + z[i, j]*z[i,0]
    return s


def rows_read_before(x, T):
    n, m = x.shape
    z = np.empty((n, m))
    s = 0.0
    for t in range(T):
        for i in range(n):
            for j in range(m):
                z[i, j] = x[i, j] + t
                if t>0:
                    s = s + z[i, m-1-j]
    return s


X, Y, M = np.arange(1.0, 21.0), np.arange(1.0, 6.0), np.random.default_rng(0).random((20, 7))
CASES = [(kept_over_steps, X, 3), (history, X, 3), (one_entry_first, Y, 3), (a_part_of_a_row, M, 3),
         (a_part_of_a_row, M[:2, :3], 3), (kept_by_a_while_loop, X, 3), (ring_buffer, X, 7),
         (checksum, np.full((20, 3), 100, np.uint8)), (overflows, np.array([2**31 - 1, 3, 2**30] * 7, np.int32)),
         (flags, X), (single_precision, X), (rows_set_whole, M, 3), (rows_read_before, M, 3)]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("f, x, more", [(f, x, more) for f, x, *more in CASES],
                         ids=lambda v: getattr(v, "__name__", None))
def test_compiled(f, x, more):
    for parallel in (False, True):
        np.testing.assert_allclose(gs.jit(f, parallel=parallel)(x, *more), f(x, *more), rtol=1e-12)


def test_a_batch():
    np.testing.assert_allclose(gs.jit(gs.vmap(numbers))(Y), [numbers(y) for y in Y], rtol=1e-12)
    rows = np.stack([X, 2 * X])
    np.testing.assert_allclose(gs.jit(gs.vmap(kept_over_steps, in_axes=(0, None)))(rows, 3),
                               [kept_over_steps(row, 3) for row in rows], rtol=1e-12)


def test_nothing_is_read_of_an_empty_array():
    x = np.arange(4.0) + 7
    np.testing.assert_array_equal(gs.jit(lambda x: np.resize(x, 3))(x[:0]), np.zeros(3))
    for f, args in [(lambda x: np.pad(x, 1, mode="edge"), (x[:0],)),
                    (lambda x, n: np.pad(x[:n], 2, mode="wrap"), (x, 0)), (np.interp, (x, x[:0], x[:0]))]:
        with pytest.raises(ValueError, match="extend|empty"):
            gs.jit(lambda *args, f=f: f(*args))(*args)
