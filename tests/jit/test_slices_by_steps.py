"""Slices by steps, of computed beginnings and ends, in loops: as indices they show what NumPy's views show."""
import re

import numpy as np
import pytest

import gradscribe as gs

X = np.random.default_rng(3).standard_normal(11)


def halves(x, lo, hi):
    """Entries that are read and set through views of every other entry."""
    y = x * 1.5
    v = y[lo:hi:2]
    s = 0.0
    for i in range(v.shape[0]):
        v[i] = v[i] * x[i] + 0.5
        s += v[i] * (i + 1)
    return s + np.sum(y * y)


def restricted(x, lo, hi):
    """A multigrid restriction, level by level."""
    n = x.shape[0]
    fine = x * 2.0
    for _level in range(hi):
        even = fine[lo::2]
        m = even.shape[0]
        coarse = np.zeros(m)
        for i in range(m):
            coarse[i] = 0.5 * even[i] + 0.1 * fine[min(2 * i + 1, fine.shape[0] - 1)]
        fine = np.concatenate((coarse, x[: max(n - m, 0)]))
    return np.sum(fine * fine)


def windows(x, lo, hi):
    """Strided windows at every place, as convolutions have them."""
    out = np.zeros((x.shape[0] - 3) // 2 + 1)
    n = out.shape[0]
    for i in range(3):
        part = x[i:i + 2 * n:2]
        for j in range(part.shape[0]):
            out[j] += part[j] * (i + lo + hi)
    return np.sum(out * out)


def in_another_arm(x, n, c):
    """The length is one where the other arm makes an array of it; here the end counts from the end."""
    y = x * 1.0
    m = n - 3
    s = 0.0
    if c > 0.5:
        a = np.zeros(m)
        for i in range(m):
            a[i] = x[i]
        s = np.sum(a @ a)
    else:
        v = y[0:m]
        for i in range(v.shape[0]):
            v[i] = v[i] * 3.0
    return s + np.sum(y)


@pytest.mark.parametrize("n", [6, 3, 2, 1])
def test_lengths_of_another_arm(n):
    compiled, gradient = gs.jit(in_another_arm), gs.jit(gs.grad(in_another_arm))
    np.testing.assert_allclose(compiled(X, n, 0.0), in_another_arm(X, n, 0.0), rtol=1e-14)
    np.testing.assert_array_equal(gradient(X, n, 0.0), gs.grad(in_another_arm)(X, n, 0.0))


@pytest.mark.parametrize(("lo", "hi"), [(0, 2), (1, 1), (2, 9), (3, 40), (0, 0), (5, 3), (1, -1), (-3, 8), (4, -20)])
@pytest.mark.parametrize("f", [halves, windows, restricted])
def test_as_numpy_has_them(f, lo, hi):
    if f is restricted and not (0 <= lo < 3 and 0 <= hi < 4):
        lo, hi = abs(lo) % 3, abs(hi) % 4
    compiled, gradient = gs.jit(f), gs.jit(gs.grad(f))
    for n in (11, 6, 4, 3):
        x = X[:n].copy()
        np.testing.assert_allclose(compiled(x, lo, hi), f(x, lo, hi), rtol=1e-13)
        np.testing.assert_allclose(gradient(x, lo, hi), gs.grad(f)(x, lo, hi), rtol=1e-12, atol=1e-14)


def test_they_become_indices():
    """Nothing is left to be sliced, nor to be compared with lengths."""
    compiled = gs.jit(gs.grad(windows))
    compiled(X, 0, 1)
    assert not re.search(r"\[[^]]*:", compiled.lowered)
    assert "fits(" not in compiled.lowered
