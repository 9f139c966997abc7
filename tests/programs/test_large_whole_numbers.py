# SPDX-License-Identifier: Apache-2.0
"""Python's whole numbers have no largest: those that a loop multiplies are saved as they are, not in 64 bits."""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9])


def linear_congruential(x):
    seed, s = 12345, 0.0
    for _ in range(4):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        s = s + x[seed % 3] * (seed / 2.0**64)
        x = x * x
    return s


def factorials(x):
    s, f, y = 0.0, 1, x[0]
    for k in range(1, 25):
        f = f * k
        y = y * y * 0.9 + 0.1
        s = s + np.sin(y) * (f % 7 + 1) + y / f
    return s


def fibonacci(x):
    a, b, s, y = 0, 1, 0.0, x[0]
    for _ in range(100):
        a, b = b, a + b
        y = np.sin(y)
        s = s + y * y * (b % 5) / b
    return s


def shifts(x):
    s, y, n = 0.0, x[1], 1
    for k in range(70):
        n <<= 1
        y = y * y * 0.5 + 0.3
        s = s + y * ((n + k) % 7) * (2**k % 5)
    return s


@pytest.mark.parametrize("f", [linear_congruential, factorials, fibonacci, shifts])
def test_numbers_beyond_64_bits(f):
    want = differences(f, X)
    np.testing.assert_allclose(gs.grad(f)(X), want, atol=1e-6)
    np.testing.assert_allclose(gs.grad(gs.checkpoint(f))(X), want, atol=1e-6)
    np.testing.assert_allclose([gs.jvp(f, (X,), (e,))[1] for e in np.eye(3)], want, atol=1e-6)
    np.testing.assert_allclose(gs.hessian(f)(X) @ X, differences(lambda z: gs.grad(f)(z) @ X, X), atol=2e-5)


def test_numbers_that_stay_small_are_saved_in_an_array():
    def f(x, n):
        s, seed, j = 0.0, n, 0
        for k in range(3):
            seed = (seed * 1103515245 + 12345) % 2**31
            j = j + k * n
            s = s + x[seed % 3] * x[j % 3]
            x = x * x
        return s

    df = gs.grad(f)
    np.testing.assert_allclose(df(X, 7), differences(lambda z: f(z, 7), X), atol=1e-8)
    assert "append" not in df.source
