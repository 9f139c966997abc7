"""Powers by half a whole number: the special values of powers, and at most three units in the last place."""
import numpy as np
import pytest

import gradscribe as gs

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -1e-300, 1e300, 1e-300, 5e-324, 1e308, 2.2e-308, 1.0, 4.0, 2.0]


def inverse_cube(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] ** -1.5
    return y


def of_a_sum(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = (x[i] + x[i]) ** 1.5 + (x[i] * x[i]) ** -2.5
    return y


def in_a_branch(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = (x[i] + 1.0) ** 2.5 if x[i] > 0.5 else x[i] ** -0.5
    return y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [inverse_cube, of_a_sum, in_a_branch])
def test_powers(f, dtype):
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        x = np.concatenate([np.array(SPECIAL).astype(dtype), np.exp(rng.normal(size=500) * 5).astype(dtype)])
        expected, found = f(x), gs.jit(f)(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    usual = np.isfinite(expected) & (np.abs(expected) > 1e3 * np.finfo(dtype).tiny)
    apart = np.abs(found[usual] - expected[usual]) / np.spacing(np.abs(expected[usual]))
    assert np.max(apart) <= 4
    np.testing.assert_array_equal((found == 0)[np.isfinite(expected)], (expected == 0)[np.isfinite(expected)])
    y = x[(x > 0.05) & (x < 20)]
    np.testing.assert_allclose(gs.jit(gs.grad(lambda x: np.sum(f(x))))(y), gs.grad(lambda x: np.sum(f(x)))(y),
                               rtol=30 * np.finfo(dtype).eps)


def test_without_fast_mathematics():
    x = np.exp(np.random.default_rng(1).normal(size=100))
    for fast in (True, False):
        compiled = gs.jit(inverse_cube, fastmath=fast)
        np.testing.assert_allclose(compiled(x), inverse_cube(x), rtol=1e-15)
        assert ("root" in compiled.lowered) == fast
