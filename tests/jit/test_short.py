"""Short axes have their lengths in compiled code, and short arrays are numbers there."""
import importlib

import numpy as np
import pytest

import gradscribe as gs

lengths = importlib.import_module("gradscribe.lengths")


def rotated(r, x):
    theta = np.sqrt(r[0] ** 2 + r[1] ** 2 + r[2] ** 2)
    v = r / theta
    out = np.empty(3)
    out[0] = v[1] * x[2] - v[2] * x[1]
    out[1] = v[2] * x[0] - v[0] * x[2]
    out[2] = v[0] * x[1] - v[1] * x[0]
    return x * np.cos(theta) + out * np.sin(theta)


def energy(r, points):
    total = 0.0
    for i in range(points.shape[0]):
        y = rotated(r, points[i])
        if y[0] > 0.2:
            y = y * 2
        total += np.sum(y ** 2) * y[2]
    return total


def stepped(y, n):
    for _ in range(n):
        k = np.array([y[1], -y[0] * y[1]])
        y = y + 0.1 * k
    return y[0] * y[1]


def swapped(x):
    a, b = x * 2, x + 1
    for _ in range(3):
        a, b = b, a * b
    return np.sum(a - b)


def written(x):
    a = x.copy()
    for i in range(a.shape[0]):
        b = a
        a[i] = b[0] * x[i]
    return np.sum(a * x)


def matrix(A, x):
    B = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            B[i, j] = A[i, j] * x[i]
    return np.sum(B[:, 1] * B[0]) + B[-1, 0]


R, P = np.array([0.3, -0.2, 0.5]), np.random.default_rng(0).standard_normal((20, 3))
CASES = [(energy, (R, P), (0, 1)), (stepped, (np.array([0.3, 0.7]), 5), 0), (swapped, (R,), 0), (written, (R,), 0),
         (matrix, (P[:2, :2].copy(), P[2, :2].copy()), (0, 1))]


@pytest.mark.slow
@pytest.mark.parametrize("f, args, argnums", CASES, ids=[c[0].__name__ for c in CASES])
@pytest.mark.parametrize("short", [0, 16])
def test_value_and_gradient(f, args, argnums, short, monkeypatch):
    monkeypatch.setattr(lengths, "SHORT", short)
    df = gs.value_and_grad(f, argnums)
    value, gradient = gs.jit(df)(*args)
    wanted, expected = df(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-13)
    for a, b in zip(gradient if isinstance(argnums, tuple) else [gradient],
                    expected if isinstance(argnums, tuple) else [expected]):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_no_memory_for_short_arrays():
    f = gs.jit(energy)
    f(R, P)
    assert "np.empty" not in f.lowered, f.lowered


@pytest.mark.slow
def test_another_length_makes_one_version_for_all():
    f = gs.jit(lambda x: np.sum(x * x) + x[0])
    for n in (3, 4, 5, 2, 30, 3):
        x = np.arange(1.0, n + 1)
        assert f(x) == np.sum(x * x) + 1
        assert ("shape[0] != 3" in f.lowered) == (n == 3)           # the version of the last call
    assert len(f._versions) == 2            # of three entries, and of any number


def test_lengths_that_must_be_equal_are_asked():
    f = gs.jit(lambda x, y: np.sum(x * y))
    assert f(np.ones(3), np.ones(3)) == 3
    with pytest.raises((ValueError, gs.TransformError)):
        f(np.ones(3), np.ones(4))


def test_indices_are_checked_once_and_still_checked():
    def f(x, w, n):
        s = 0.0
        for i in range(n):
            s += x[i] * w[i]
        return s
    g = gs.jit(f)
    x, w = np.arange(40.0), np.arange(30.0)
    assert g(x, w, 30) == np.dot(x[:30], w)
    assert g(x, w, 0) == 0 and g(x, w, -3) == 0
    for n in (31, 41):
        with pytest.raises(IndexError):
            g(x, w, n)
    assert "place(" not in g.lowered and g.lowered.count("reaches(") == 2


def test_what_a_branch_may_not_reach_is_not_asked_before():
    def f(x, n):
        s = 0.0
        for i in range(n):
            if i < x.shape[0]:
                s += x[i]
        return s
    assert gs.jit(f)(np.ones(20), 50) == 20


@pytest.mark.slow
def test_negative_indices_wrap():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += x[-i] * x[i - 2]
        return s
    x = np.arange(1.0, 21.0)
    assert gs.jit(f)(x, 7) == f(x, 7)
    with pytest.raises(IndexError):
        gs.jit(f)(x, 25)


def named_as_builtins(x, max, len):
    s = 0.0
    for i in range(max):
        s += x[i] * len
    return s + np.max(x)


def test_parameters_named_as_builtins():
    x = np.arange(1.0, 21.0)
    np.testing.assert_allclose(gs.jit(gs.grad(named_as_builtins))(x, 3, 2.0), gs.grad(named_as_builtins)(x, 3, 2.0))
