"""Quotients and roots in single precision at zeros and infinities: nothing is estimated, whatever LLVM may do."""
import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.compiled

X = np.array([0, -0.0, np.inf, 1, 4, 1e-40, 1e38, 3e38, 2, 9, 0.25, 1e-30, 16, 25, np.nan, -1] * 5, np.float32)


def of_arrays(x):
    return 1 / np.sqrt(x)


def of_numbers(x):
    return np.float32(1.0) / np.sqrt(x[0]), x[0] / np.sqrt(x[2]), x[2] / np.sqrt(x[6])


def by_loops(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = np.float32(2.0) / np.sqrt(x[i])
    return y


def overflowing(x):
    return x / np.sqrt(x * x + x)


def quotients(x):
    return x / np.sum(x[3:5]), 3 / x, x[3] / x


def of_a_function(x):
    def scaled(a, b):
        return a / np.sqrt(b)
    return scaled(x, x + 1), scaled(x, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", [of_arrays, of_numbers, by_loops, overflowing, quotients, of_a_function])
def test_as_numpy_has_them(f, dtype):
    x = X.astype(dtype)
    with np.errstate(all="ignore"):
        expected, compiled = f(x), gs.jit(f)(x)
        for found, value in zip(compiled if isinstance(compiled, tuple) else [compiled],
                                expected if isinstance(expected, tuple) else [expected], strict=True):
            np.testing.assert_allclose(found, value, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.slow
def test_on_several_cores():
    x = np.resize(X, 200_000)
    with np.errstate(all="ignore"):
        for f in (by_loops, lambda x: np.exp(-x) / np.sqrt(x)):
            np.testing.assert_allclose(gs.jit(f, parallel=True)(x), f(x), rtol=1e-6)
