"""Roots of matrices, banded systems and sums over samples in programs."""
import numpy as np
import scipy.integrate
import scipy.linalg

import gradscribe as gs

A = np.array([[4.0, 1.0, 0.5], [0.2, 3.0, -0.4], [0.1, 0.6, 5.0]])
W = np.array([[1.0, -2.0, 0.5], [0.3, 0.8, 1.5], [-1.0, 0.4, 0.2]])


def test_trapezoids():
    x, y = np.array([0.0, 0.5, 2.0]), np.array([1.0, -1.0, 3.0])
    dy, dx = gs.grad(lambda y, x: scipy.integrate.trapezoid(y, x), argnums=(0, 1))(y, x)
    assert dy.tolist() == [0.25, 1.0, 0.75] and dx.tolist() == [0.0, -1.0, 1.0]


def test_banded_systems():
    """The slope in the right side solves the transposed system; that in an entry of the matrix is -x times it."""
    rng = np.random.default_rng(4)
    ab, b = rng.normal(size=(4, 6)), rng.normal(size=(6, 2))
    ab[2] += 4
    dense = sum(np.diag(ab[2 - k, max(k, 0):6 + min(k, 0)], k) for k in (2, 1, 0, -1))
    w = rng.normal(size=(6, 2))

    def loss(ab, b):
        return np.sum(w * scipy.linalg.solve_banded((1, 2), ab, b))
    dab, db = gs.grad(loss, argnums=(0, 1))(ab, b)
    x, back = np.linalg.solve(dense, b), np.linalg.solve(dense.T, w)
    np.testing.assert_allclose(db, back, rtol=1e-11)
    whole = -back @ x.T
    wanted = np.zeros((4, 6))
    for k in (2, 1, 0, -1):
        wanted[2 - k, max(k, 0):6 + min(k, 0)] = np.diag(whole, k)
    np.testing.assert_allclose(dab, wanted, rtol=1e-11, atol=1e-14)
    e = rng.normal(size=ab.shape)
    np.testing.assert_allclose(gs.jvp(loss, (ab, b), (e, w))[1], np.sum(dab * e) + np.sum(db * w), rtol=1e-11)
    compiled = gs.jit(gs.grad(loss, argnums=(0, 1)))(ab, b)
    for got, expected in zip(compiled, (dab, db)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
    swapped = np.array([[0.0, 2.0, 1.0], [0.0, 1e-3, 3.0], [5.0, 1.0, 0.0]])       # rows change places
    solved = gs.jit(lambda ab, b: scipy.linalg.solve_banded((1, 1), ab, b))(swapped, np.ones(3))
    np.testing.assert_allclose(solved, scipy.linalg.solve_banded((1, 1), swapped, np.ones(3)), rtol=1e-13)
