"""scipy.linalg.sqrtm and sums over samples in programs."""
import numpy as np
import scipy.integrate
import scipy.linalg

import gradscribe as gs

A = np.array([[4.0, 1.0, 0.5], [0.2, 3.0, -0.4], [0.1, 0.6, 5.0]])
W = np.array([[1.0, -2.0, 0.5], [0.3, 0.8, 1.5], [-1.0, 0.4, 0.2]])


def loss(a):
    return np.sum(W * np.real(scipy.linalg.sqrtm(a)))


def test_slopes():
    """Against differences, and of the trace by its formula: half of the inverse root."""
    e = W.T - 0.3
    wanted = (8 * (loss(A + 1e-3 * e) - loss(A - 1e-3 * e)) - loss(A + 2e-3 * e) + loss(A - 2e-3 * e)) / 12e-3
    np.testing.assert_allclose(np.sum(gs.grad(loss)(A) * e), wanted, rtol=1e-9)
    np.testing.assert_allclose(gs.jvp(loss, (A,), (e,))[1], wanted, rtol=1e-9)
    slope = gs.grad(lambda a: np.trace(np.real(scipy.linalg.sqrtm(a))))(A)
    np.testing.assert_allclose(slope, np.linalg.inv(scipy.linalg.sqrtm(A)).T / 2, rtol=1e-12)
    assert slope.dtype == np.float64
    assert np.allclose(gs.vmap(loss)(np.stack([A, 4 * A])), [loss(A), 2 * loss(A)])


def test_a_root_that_is_complex():
    """Of a real matrix with a negative eigenvalue."""
    a = np.array([[-4.0, 0.0], [1.0, 9.0]])

    def size(a):
        return np.sum(np.abs(scipy.linalg.sqrtm(a)) ** 2)
    e = np.array([[0.3, -0.2], [0.5, 0.1]])
    wanted = (8 * (size(a + 1e-3 * e) - size(a - 1e-3 * e)) - size(a + 2e-3 * e) + size(a - 2e-3 * e)) / 12e-3
    np.testing.assert_allclose(np.sum(gs.grad(size)(a) * e), wanted, rtol=1e-8)


def test_trapezoids():
    x, y = np.array([0.0, 0.5, 2.0]), np.array([1.0, -1.0, 3.0])
    dy, dx = gs.grad(lambda y, x: scipy.integrate.trapezoid(y, x), argnums=(0, 1))(y, x)
    assert dy.tolist() == [0.25, 1.0, 0.75] and dx.tolist() == [0.0, -1.0, 1.0]
