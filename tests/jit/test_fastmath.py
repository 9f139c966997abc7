"""gs.jit(f, fastmath=False): arithmetic of entries is NumPy's to the last bit."""
import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.compiled


def polynomial(x, y, s):
    return x * y + s * x - y / (x * x + 1.0)


def roots(x, y, s):
    return np.sqrt(np.abs(x)) * y - (x - y) / 3.0 + x / s


def loop(x, y, s):
    z = np.empty_like(x)
    for i in range(x.shape[0]):
        z[i] = x[i] * y[i] + s * x[i] * y[i] - x[i]
    return z * z - y * z


def choices(x, y, s):
    return np.maximum(x * y - s, 0.0) * x + np.where(x > y, x * x + y, y * y - x * s) / 7.0


def differences(x, y, s):
    return (x + y) * (x - y) / s - (x / s + y / s)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [polynomial, roots, loop, choices, differences])
def test_bits(f, dtype):
    x, y = np.random.default_rng(0).standard_normal((2, 1000)).astype(dtype)
    s = dtype(1.7)
    got = gs.jit(f, fastmath=False)(x, y, s)
    assert got.dtype == dtype and np.array_equal(got, f(x, y, s))
    assert (gs.jit(f)(x, y, s) != got).any()            # the option does something
    if dtype is np.float64:
        def total(x, y, s):
            return np.sum(f(x, y, s))
        assert np.array_equal(gs.jit(gs.grad(total), fastmath=False)(x, y, s), gs.grad(total)(x, y, s))


def quotient_of_differences(x, h):
    d = (x + h) - x
    return (np.sin(x + d) - np.sin(x)) / d


def added_and_taken_away(x, h):
    return x + h - x


def large_constants(x, h):
    return x / 1e200 / 1e200 * 1e300 * 1e-300 + h * 1e300 * 1e300 * 0


def of_a_negation(x, h):
    return 1 / -((x + h) - (x + h))


def compensated(x, h):
    s = c = 0.0
    for v in x:
        y = v - c
        t = s + y
        c = (t - s) - y
        s = t
    return s + h


def taken_apart_in_a_loop(x, h):
    found = np.zeros_like(x)
    for i in range(x.shape[0]):
        for _ in range(3):
            z = x[i] + h
            found[i] += z - x[i]
    return found


@pytest.mark.parametrize("f, x, h", [
    (quotient_of_differences, np.array([1e8]), 1e-8),
    (added_and_taken_away, np.array([np.inf, np.nan, 1e308, 1e16]), 1.0),
    (large_constants, np.array([1e300]), 1e-300),
    (of_a_negation, np.ones(3), 0.0),
    (compensated, np.array([1e16] + [1.0] * 1000 + [-1e16]), 0.0),
    (taken_apart_in_a_loop, np.array([1e8, 1e16]), 1e-8)])
def test_only_sums_over_passes_are_taken_apart(f, x, h):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gs.jit(f)(x, h), f(x, h))


def test_sums_are_vectorised():
    """In any order: several at once."""
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    def running(x):
        s, t = 0.0, 1.0
        for i in range(x.shape[0]):
            s = s + x[i] * x[i]
            t = t - x[i]
        return s * t

    def decided_by(x):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + x[i] * x[i]
        return s if s > 1.0 else 1.0
    x = np.random.default_rng(0).standard_normal(1000)
    for f in (total, running, decided_by):
        compiled = gs.jit(f)
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-11)
        assert " x double>" in compiled.llvm


def test_decorator():
    @gs.jit(fastmath=False)
    def f(x):
        return x * x + 1.0 / 3.0
    x = np.linspace(0, 1, 101)
    assert np.array_equal(f(x), x * x + 1.0 / 3.0)
