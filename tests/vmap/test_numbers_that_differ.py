"""Python's numbers that differ between examples: beside float32 each is taken as a float32, not as a double."""
import math

import numpy as np
import pytest

import gradscribe as gs

X = np.array([[1, 0.1, 0.25], [-1, 0.3, 2.5], [0.5, 0.3, -1.5]], np.float32)


def compared(x):
    s = 0.1 if x[0] > 0 else 0.3
    return x[1] > s, x == s, np.where(x > s, x, s)


def halved(x):
    s = 0.1
    for i in range(2):
        if x[0] > i - 1:
            s = s * 0.7
    return x * s, x[1] - s, s


def whole(x):
    s = 3 if x[0] > 0 else 4
    t = np.clip(x, s * 0.01, s * 0.05)
    return np.ldexp(x, s), np.arctan2(x, s), x == s / 30, t, x**s, np.arange(3, dtype=np.int8) * s


def of_two_numbers(x):
    s = 0.3 if x[0] > 0 else 0.4
    return math.hypot(x[1], s), *divmod(x[2], s)


def counted(x):
    n = len([v for v in x if v > 0])
    return x * n, x[1] / n, x / (n * 0.1)


@pytest.mark.parametrize("f", [compared, halved, whole, of_two_numbers, counted], ids=lambda f: f.__name__)
def test_beside_single_precision(f):
    wanted = list(zip(*map(f, X)))
    for got, want in zip(gs.vmap(f)(X), wanted, strict=True):
        assert got.dtype == np.asarray(want[0]).dtype
        np.testing.assert_array_equal(got, want)


def test_gradients():
    def f(x):
        s = 0.1 if x[0] > 0 else 0.3
        return np.sum(np.where(x > s, x * s, s * s * x)) ** 2
    got = gs.vmap(gs.grad(f))(X)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [gs.grad(f)(x) for x in X])
