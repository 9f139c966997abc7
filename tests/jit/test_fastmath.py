"""gs.jit(f, fastmath=False): arithmetic of entries is NumPy's to the last bit."""
import numpy as np
import pytest

import gradscribe as gs


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


def test_decorator():
    @gs.jit(fastmath=False)
    def f(x):
        return x * x + 1.0 / 3.0
    x = np.linspace(0, 1, 101)
    assert np.array_equal(f(x), x * x + 1.0 / 3.0)
