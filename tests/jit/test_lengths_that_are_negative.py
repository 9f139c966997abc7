"""Arrays that compiled code does not make, of lengths that no array has: the error that NumPy raises."""
import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.compiled


def filled(x, n):
    a = np.empty((n - 5, 3))
    a[:] = x[0]
    return np.sum(a)


def of_zeros(x, n):
    a = np.zeros(n - 5)
    for i in range(n - 5):
        a[i] = x[0] * i
    return np.sum(a * a)


def of_a_quotient(x, n):
    a = np.empty(n // 2)
    a[:] = x[0]
    return np.sum(a)


def computed_again(x, n):
    """An array that is computed where it is read, for which nothing is made."""
    a = np.zeros(n - 5)
    for i in range(n - 5):
        a[i] = x[0] * 2.0
    s = 0.0
    for i in range(n - 5):
        s += a[i]
    b = np.zeros(n)
    for i in range(n - 5):
        b[i] = a[i] / s
    return np.sum(b) + s


@pytest.mark.parametrize("f", [filled, of_zeros, of_a_quotient, computed_again])
def test_lengths(f):
    x = np.array([2.0, 3.0])
    compiled, gradient = gs.jit(f), gs.jit(gs.grad(f))
    for n in (7, 5, 12):
        assert compiled(x, n) == pytest.approx(f(x, n), rel=1e-14)
        np.testing.assert_allclose(gradient(x, n), gs.grad(f)(x, n), rtol=1e-14)
    with pytest.raises(ValueError, match="negative dimensions"):
        f(x, -2)
    with pytest.raises(ValueError, match="negative dimensions"):
        compiled(x, -2)
