"""Taylor series of solutions, and steps by them: closed forms, invariants, SciPy's DOP853, derivatives, refusals."""
import math

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.experimental import ode


def kepler(u, t):
    r3 = (u[0] * u[0] + u[1] * u[1]) ** 1.5
    return np.array([u[2], u[3], -u[0] / r3, -u[1] / r3])


def by_rows(u, t):
    out = np.zeros(4)
    r2 = 0.0
    for i in range(2):
        r2 += u[i] * u[i]
    for i in range(2):
        out[i] = u[i + 2]
        out[i + 2] = -u[i] / (r2 * np.sqrt(r2))
    return out


def by_writes(u, t):
    out = np.zeros(4)
    out[:2] = u[2:]
    out[2:] = -u[:2]
    out[2:] /= (u[0] * u[0] + u[1] * u[1]) ** 1.5
    return out


def van_der_pol(u, t, mu):
    return np.array([u[1], mu * (1 - u[0] ** 2) * u[1] - u[0]])


def orbit(e):
    return np.array([1 - e, 0.0, 0.0, math.sqrt((1 + e) / (1 - e))])


def energy(u):
    return 0.5 * (u[..., 2] ** 2 + u[..., 3] ** 2) - 1 / np.hypot(u[..., 0], u[..., 1])


def test_coefficients_of_closed_forms():
    found = ode.coefficients(lambda y, t: y, 1.0, 0.0, order=8)
    np.testing.assert_allclose(found, [1 / math.factorial(k) for k in range(1, 9)], rtol=1e-14)
    found = ode.coefficients(lambda y, t: 1 + y * y, 0.0, 0.0, order=7)
    np.testing.assert_allclose(found, [1, 0, 1 / 3, 0, 2 / 15, 0, 17 / 315], rtol=1e-14)
    found = ode.coefficients(lambda y, t: 3 * t * t, 0.0, 2.0, order=5)
    np.testing.assert_allclose(found, [12, 6, 1, 0, 0], rtol=1e-14)


def test_loops_and_branches_give_the_same_coefficients():
    straight = ode.coefficients(kepler, orbit(0.3), 0.0, order=5)
    np.testing.assert_allclose(ode.coefficients(by_rows, orbit(0.3), 0.0, order=5), straight, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(ode.coefficients(by_writes, orbit(0.3), 0.0, order=5), straight, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(ode.coefficients(lambda y, t: 3.0, 1.0, 0.0, order=3), [3.0, 0.0, 0.0])
    np.testing.assert_array_equal(ode.coefficients(lambda y, t, a: a * y, 1.0, 0.0, 2.0, order=2), [2.0, 2.0])
    branch = ode.coefficients(lambda y, t: np.sin(y) if y > 0 else y, 0.5, 0.0, order=5)
    np.testing.assert_allclose(branch, ode.coefficients(lambda y, t: np.sin(y), 0.5, 0.0, order=5), rtol=1e-14)


def test_kepler_keeps_its_invariants():
    e = 0.5
    t = 2 * np.pi * np.arange(6)
    u = ode.taylor(kepler, orbit(e), t, tol=1e-14, order=12)
    np.testing.assert_allclose(energy(u), -0.5, rtol=1e-13)
    np.testing.assert_allclose(u[:, 0] * u[:, 3] - u[:, 1] * u[:, 2], math.sqrt(1 - e * e), rtol=1e-13)
    np.testing.assert_allclose(u, np.broadcast_to(orbit(e), u.shape), atol=2e-12)


def test_van_der_pol_against_scipy():
    integrate = pytest.importorskip("scipy.integrate")
    t = np.linspace(0.0, 8.0, 17)
    u0 = np.array([2.0, 0.0])
    theirs = integrate.solve_ivp(lambda t, u: van_der_pol(u, t, 2.0), (0, 8), u0, method="DOP853", t_eval=t,
                                 rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(ode.taylor(van_der_pol, u0, t, 2.0, order=10, tol=1e-13), theirs.y.T, atol=1e-10)


@pytest.mark.parametrize("shape", ((), (1,), (0,), (2, 3)))
def test_shapes(shape):
    y0 = np.full(shape, 2.0)
    ys = ode.taylor(lambda y, t: -y + 0 * t, y0, np.array([0.0, 0.5, 1.0, 1.0]), order=10, tol=1e-12)
    assert ys.shape == (4, *shape)
    np.testing.assert_allclose(ys[2], 2 * np.exp(-1.0) * np.ones(shape), rtol=1e-11)
    np.testing.assert_array_equal(ys[3], ys[2])


def test_single_precision():
    ys = ode.taylor(lambda y, t: -y, np.ones(2, np.float32), np.array([0, 1], np.float32), order=6, tol=1e-6)
    assert ys.dtype == np.float32
    np.testing.assert_allclose(ys[1], np.exp(-1.0), rtol=1e-5)


def test_terms_that_vanish():
    """y' = 20 t**19 has no coefficient of lower order at 0, and one that is constant none at all."""
    ys = ode.taylor(lambda y, t: 20 * t ** 19 + 0 * y, np.zeros(1), np.array([0.0, 1.0]), order=6, tol=1e-10)
    np.testing.assert_allclose(ys[1], 1.0, rtol=1e-8)
    ys = ode.taylor(lambda y, t: 0 * y, np.ones(1), np.array([0.0, 1e6]), order=6)
    np.testing.assert_array_equal(ys[1], 1.0)


def test_compiled_and_differentiated():
    def last(u0):
        return ode.taylor(lambda u, t: van_der_pol(u, t, 1.0), u0, np.array([0.0, 1.0]), order=6, tol=1e-10)[1, 0]

    u0 = np.array([2.0, 0.0])
    assert np.isclose(gs.jit(last)(u0), last(u0), rtol=1e-13)
    steps = [(last(u0 + h) - last(u0 - h)) / 2e-5 for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(gs.grad(last)(u0), steps, rtol=1e-6, atol=1e-8)


def test_the_default_order():
    assert [ode.order_for(tol) for tol in (1e-6, 1e-10, 1e-14, 1e-16)] == [8, 13, 18, 20]


@pytest.mark.parametrize("call, error, message", [
    (lambda: ode.taylor(kepler, [1.0], np.array([0.0, 1.0])), TypeError, "y0 must be an array"),
    (lambda: ode.taylor(kepler, orbit(0.0), 1.0), ValueError, "t must have one axis"),
    (lambda: ode.taylor(kepler, orbit(0.0), np.array([1.0, 0.0])), ValueError, "t must not decrease"),
    (lambda: ode.taylor(kepler, orbit(0.0), np.array([0.0, 1.0]), order=1), ValueError, "at least 2"),
    (lambda: ode.taylor(kepler, orbit(0.0), np.array([0.0, 1.0]), tol=0.0), ValueError, "tol must be"),
    (lambda: ode.taylor(lambda y, t: y * y, np.ones(1), np.array([0.0, 2.0]), order=4, tol=1e-6), RuntimeError,
     "short"),
    (lambda: ode.taylor(lambda y, t: y, np.ones(1), np.array([0.0, 9.0]), order=4, mxstep=3), RuntimeError, "mxstep"),
    (lambda: ode.coefficients(lambda y, t: (y, y), 1.0, 0.0, order=2), gs.KindError, "must be arrays"),
    (lambda: ode.coefficients(lambda y, t: np.ones(2), np.ones(3), 0.0, order=2), gs.ShapeError, "the derivative of y"),
    (lambda: ode.coefficients(lambda y, t: y, 1, 0.0, order=2), gs.KindError, "floating-point"),
    (lambda: ode.coefficients(lambda y, t: y * t, 1.0, 0, order=2), gs.KindError, "floating-point"),
    (lambda: ode.coefficients(lambda y, t: y * t[0], 1.0, np.ones(1), order=2), gs.KindError, "t must be a number"),
    (lambda: ode.coefficients(lambda y, t: y, 1.0, 0.0, order=0), ValueError, "order must be"),
])
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
