"""What is added to places that are looked up, in one order: `deterministic=True`."""
import numpy as np
import pytest
from device.programs import PROGRAMS, differences

import gradscribe as gs
from gradscribe.runtime import device


@pytest.fixture(autouse=True)
def plain():
    with device.using("plain"):
        yield


def by_place(x, k):
    z = np.zeros(5)
    np.add.at(z, k, x)
    return z


def chosen(x, k):
    z = np.zeros((5, 3))
    for i in range(len(k)):
        if x[i] > 0:
            z[k[i], -1] += x[i]
            z[k[i], 1] -= x[i] + 1
    return z


def embedded(w, k):
    return np.sum(np.tanh(w[k]) ** 2)


def in_cells(x, k, m):
    z = np.ones((4, 5, 3), x.dtype)
    for i in range(len(k)):
        for j in range(len(m)):
            z[k[i], m[j], 2] += x[i] * x[j]
    return z


@pytest.mark.parametrize("n", [0, 1, 50, 300])
def test_values(n):
    rng = np.random.default_rng(n)
    x, k, m = rng.standard_normal(n), rng.integers(-5, 5, n), rng.integers(0, 5, n)
    cases = [(by_place, x, k), (chosen, x, k), (gs.value_and_grad(embedded), rng.standard_normal((5, 40)), k),
             (gs.value_and_grad(embedded), rng.standard_normal((5, 4)), k), (in_cells, x, k % 4, m),
             (in_cells, x.astype(np.float32), k % 4, m)]
    for function, *args in cases:
        compiled = gs.jit(function, target="cuda", deterministic=True)
        found, expected = compiled(*args), function(*args)
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected))):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype == np.float64 else 1e-4, atol=1e-13)


def test_the_order_is_that_of_the_loop():
    """To the last bit, where another order would give another sum altogether."""
    x = np.tile([1e16, 1.0, -1e16, 3.0], 100)
    k = np.arange(400) // 4 % 5
    np.testing.assert_array_equal(gs.jit(by_place, target="cuda", deterministic=True)(x, k), by_place(x, k))
    w = np.random.default_rng(0).standard_normal(7)
    index = np.random.default_rng(1).integers(0, 7, 1000)
    loss = gs.grad(lambda w, x: np.sum(w[index] * x))
    x = np.random.default_rng(2).standard_normal(1000) * 10.0 ** np.arange(1000)[::-1] ** 0.3
    expected = np.zeros(7)
    np.add.at(expected, index, x)
    np.testing.assert_array_equal(gs.jit(loss, target="cuda", deterministic=True)(w, x), expected)


def halved(x, k):
    """How often a pass adds, only its number says."""
    z, y, t = np.zeros(7), np.zeros(len(k)), 0.0
    for i in range(len(k)):
        v = x[i]
        y[i] = v * 2
        t += v
        while v > 0.1:
            z[k[i]] += v
            if v > 0.5:
                z[k[i] - 1] -= 1.0
            v = v * 0.5
    return z, y, t


def in_rows(x, k, n):
    """Both ways: three of each row, in some of them more."""
    z = np.zeros((4, 3))
    for i in range(x.shape[0]):
        for j in range(3):
            m = 0
            while m < n[i]:
                z[k[i, j], m % 3] += x[i, j] * m
                m += j + 1
    return z


@pytest.mark.parametrize("n", [0, 1, 90, 300])
def test_unknown_numbers(n):
    rng = np.random.default_rng(n)
    x, k = 3 * rng.random(n), rng.integers(0, 7, n)
    rows = rng.random((n, 3)), rng.integers(0, 4, (n, 3)), rng.integers(0, 6, n)
    loss = gs.grad(lambda x, k: np.sum(halved(x, k)[0] ** 2))
    for function, args in ((halved, (x, k)), (halved, (x * 0, k)), (in_rows, rows), (loss, (x, k))):
        found, expected = gs.jit(function, target="cuda", deterministic=True)(*args), function(*args)
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_unknown_numbers_in_the_order_of_the_loop():
    """One statement adds in the order of its loop, to the last bit."""
    def spread(x, k):
        z = np.zeros(5)
        for i in range(len(k)):
            v = x[i]
            while abs(v) > 1.0:
                z[k[i]] += v
                v = v * 0.01
        return z
    x, k = np.random.default_rng(3).standard_normal(400) * 10.0 ** (np.arange(400) % 17), np.arange(400) // 3 % 5
    np.testing.assert_array_equal(gs.jit(spread, target="cuda", deterministic=True)(x, k), spread(x, k))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "taken" in n or "scatter" in n or "gradient" in n])
def test_programs(name):
    assert not differences(name, deterministic=True)


@pytest.mark.golden
def test_text(golden):
    compiled = gs.jit(gs.value_and_grad(embedded), target="cuda", deterministic=True)
    compiled(np.ones((5, 40)), np.arange(50) % 5)
    golden("gradient_of_embedded_in_order.py", compiled.lowered)
