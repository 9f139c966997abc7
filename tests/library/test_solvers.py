# SPDX-License-Identifier: Apache-2.0
"""gs.optim's solvers against SciPy, known solutions, and differences for the derivatives of solutions."""
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import gradscribe as gs
from gradscribe import optim

RNG = np.random.default_rng(0)


def rosenbrock(x, a):
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def logistic(w, x, y):
    return np.mean(np.logaddexp(0.0, -y * np.dot(x, w))) + 5e-3 * np.dot(w, w)


X = RNG.normal(size=(60, 5))
Y = np.where(X @ RNG.normal(size=5) + RNG.normal(size=60) > 0, 1.0, -1.0)


def difference(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS", "Newton-CG"])
def test_minimize(method):
    found = optim.minimize(rosenbrock, np.full(5, -1.0), (100.0,), method=method, tol=1e-9, options={"maxiter": 500})
    assert found.success and found.status == 0 and 0 < found.nit <= found.nfev
    np.testing.assert_allclose(found.x, 1.0, atol=1e-8)
    np.testing.assert_allclose(found.fun, 0.0, atol=1e-15)
    assert found.grad_norm == np.sqrt(found.jac @ found.jac) <= 1e-9
    expected = scipy.optimize.minimize(logistic, np.zeros(5), (X, Y), tol=1e-12)
    found = optim.minimize(logistic, np.zeros(5), (X, Y), method=method, tol=1e-10)
    assert found.success
    np.testing.assert_allclose(found.fun, expected.fun, rtol=1e-12)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)


def test_memory_of_lbfgs():
    """With all pairs and an exact start, as good as BFGS; with one, still right."""
    for memory in (1, 3, 20):
        found = optim.lbfgs(rosenbrock, np.full(4, -1.0), (100.0,), memory=memory, gtol=1e-8)
        np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
        assert found.success


def test_gradient_descent():
    for stepsize in (None, 0.4):
        found = optim.gradient_descent(lambda x: np.sum(np.array([1.0, 2.0]) * (x - 3.0) ** 2), np.zeros(2), gtol=1e-10,
                                       stepsize=stepsize)
        assert found.success
        np.testing.assert_allclose(found.x, 3.0, atol=1e-9)


def test_what_minimisers_say():
    found = optim.newton_cg(rosenbrock, np.full(4, -1.0), (100.0,), maxiter=2)
    assert (found.nit, found.status, found.success) == (2, 1, False)
    assert optim.bfgs(lambda x: np.sum(x), np.zeros(2), maxiter=3).status == 1              # without a minimum
    kink = optim.newton_cg(lambda x: np.sum(np.abs(x)) + 1e-3 * np.sum(x * x), np.array([1e-9, 1.0]))
    assert not kink.success
    saddle = optim.newton_cg(lambda x: x[0] ** 2 - x[1] ** 2 + 0.1 * x[1] ** 4, np.array([1.0, 0.1]))    # bends down
    assert saddle.success
    np.testing.assert_allclose(np.abs(saddle.x), [0.0, np.sqrt(5.0)], atol=1e-5)


def test_refusals():
    for call, error, text in [
        (lambda: optim.minimize(rosenbrock, np.zeros(2), (1.0,), method="simplex"), ValueError, "not 'simplex'"),
        (lambda: optim.minimize(rosenbrock, np.zeros(2), 1.0), TypeError, "must be a tuple"),
        (lambda: optim.minimize(rosenbrock, np.zeros(2), (1.0,), options={"xtol": 1}), TypeError, "xtol"),
        (lambda: optim.newton_cg(rosenbrock, np.zeros((2, 2)), (1.0,)), ValueError, "one axis"),
        (lambda: optim.lbfgs(rosenbrock, np.zeros(2), (1.0,), memory=0), ValueError, "memory"),
        (lambda: optim.gauss_newton(lambda x: x, np.zeros(2), jac="full"), ValueError, "'fwd' or 'rev'"),
        (lambda: optim.gmres(np.eye(2), np.ones(2), restart=0), ValueError, "restart"),
        (lambda: optim.cg(np.eye(2), np.ones((2, 2))), ValueError, "one axis"),
        (lambda: optim.bisect(lambda x: x * x + 1.0, 0.0, 1.0), ValueError, "different signs"),
        (lambda: optim.brentq(lambda x: x * x + 1.0, 0.0, 1.0), ValueError, "different signs"),
        (lambda: optim.odeint(decay, (1.0, 2.0), np.ones(2), 1.0), TypeError, "must be an array"),
        (lambda: optim.odeint(decay, 1.0, 2.0, 1.0), ValueError, "one axis"),
        (lambda: optim.odeint(decay, 1.0, np.array([1.0, 0.0]), 1.0), ValueError, "must not decrease"),
        (lambda: optim.odeint(decay, 1.0, np.arange(2.0), 1.0, adjoint="none"), ValueError, "adjoint"),
        (lambda: optim.odeint(decay, 1.0, np.arange(2.0), 1.0, mxstep=1), RuntimeError, "mxstep"),
        (lambda: optim.odeint(decay, 1.0, np.arange(2.0), np.nan), RuntimeError, "too short"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_line_search():
    """Both Wolfe conditions, for first steps that are far too short and far too long."""
    def f(x):
        return rosenbrock(x, 100.0), gs.grad(rosenbrock)(x, 100.0)
    x = np.array([-1.2, 1.0])
    fx, g = f(x)
    for first in (1e-6, 1e-3, 1.0, 100.0):
        step = optim.strong_wolfe(f, x, fx, g, -g, first=first, c2=0.1)
        slope, there = g @ -g, step.jac @ -g
        assert step.found and step.fun <= fx + 1e-4 * step.t * slope and abs(there) <= -0.1 * slope
        np.testing.assert_allclose(step.x, x - step.t * g)


T = np.linspace(0.0, 3.0, 40)
DATA = 2.0 * np.exp(-1.3 * T) * np.cos(4.0 * T) + 0.01 * RNG.normal(size=40)


def residual(x, t, y):
    return x[0] * np.exp(-x[1] * t) * np.cos(x[2] * t) - y


def test_least_squares():
    start = np.array([1.5, 1.0, 3.7])
    expected = scipy.optimize.least_squares(residual, start, args=(T, DATA), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    marquardt = optim.levenberg_marquardt
    for solver, jac in [(optim.gauss_newton, "fwd"), (marquardt, "fwd"), (marquardt, "rev")]:
        found = solver(residual, start, (T, DATA), gtol=1e-10, jac=jac)
        assert found.success
        np.testing.assert_allclose(found.x, expected.x, atol=1e-8)
        np.testing.assert_allclose(found.fun, expected.cost, rtol=1e-12)
    valley = marquardt(lambda x: np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]), np.array([-1.2, 1.0]))
    np.testing.assert_allclose(valley.x, 1.0, atol=1e-7)


def test_linear_solvers():
    n = 30
    A, b = RNG.normal(size=(n, n)), RNG.normal(size=n)
    S, N = A @ A.T + n * np.eye(n), A + 8 * np.eye(n)
    scaled = np.diag(1.0 / np.diag(S))
    for solve, matrix, words in [(optim.cg, S, {}), (optim.cg, S, {"M": scaled, "x0": b}), (optim.bicgstab, N, {}),
                                 (optim.bicgstab, N, {"M": lambda x: x / 8.0}), (optim.gmres, N, {}),
                                 (optim.gmres, N, {"restart": 5, "x0": b}), (optim.gmres, N, {"M": lambda x: x / 8.0})]:
        for A in (matrix, lambda x, m=matrix: m @ x):
            x, info = solve(A, b, tol=1e-12, **words)
            assert info.success and info.residual_norm <= 1e-12 * np.linalg.norm(b) and info.products > 5
            np.testing.assert_allclose(x, np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-11)
        fewer = {"restart": 3} if solve is optim.gmres else {}
        assert not solve(matrix, b, tol=1e-12, maxiter=1, **(words | fewer))[1].success
    x, info = optim.cg(S, np.zeros(n))
    assert info.success and info.products == 0 and not x.any()


def cubic(x, c):
    return x ** 3 + c * x - np.exp(c)


@pytest.mark.parametrize("finder", ["bisect", "brentq", "newton"])
def test_scalar_roots(finder):
    """The root and its first two derivatives with respect to a parameter."""
    solver = getattr(optim, finder)

    def at(c):
        return solver(cubic, 1.0, (c,)).x if finder == "newton" else solver(cubic, 0.0, 3.0, (c,)).x
    exact = scipy.optimize.brentq(cubic, 0.0, 3.0, (0.7,), xtol=1e-15)
    np.testing.assert_allclose(at(0.7), exact, rtol=1e-11)
    slope = -(exact - np.exp(0.7)) / (3 * exact ** 2 + 0.7)
    np.testing.assert_allclose(gs.grad(at)(0.7), slope, rtol=1e-10)
    np.testing.assert_allclose(gs.grad(gs.grad(at))(0.7), difference(gs.grad(at), 0.7), rtol=1e-7)
    np.testing.assert_allclose(gs.vmap(at)(np.array([0.5, 0.7])), [at(0.5), at(0.7)], rtol=1e-11)


def test_brentq_as_scipy():
    for f, a, b in [(lambda x: np.cos(x) - x, 0.0, 1.0), (lambda x: np.exp(x) - 1e-6, -30.0, 5.0),
                    (lambda x: x - 1.0, 1.0, 2.0), (lambda x: x - 2.0, 1.0, 2.0)]:
        expected, told = scipy.optimize.brentq(f, a, b, full_output=True)
        found = optim.brentq(f, a, b)
        # SciPy leaves its count unset where an end is the root: 1.18 gives what lies in memory
        assert found.success and found.nit <= (told.iterations + 3 if f(a) and f(b) else 0)
        np.testing.assert_allclose(found.x, expected, rtol=1e-10, atol=1e-10)


def system(x, a, b):
    return x ** 3 + np.roll(x, 1) * a - b


def test_root():
    def loss(a, b):
        return np.sum(optim.root(system, np.ones(3), (a, b)).x ** 2)
    a, b = np.array([0.5, 0.7, 0.9]), 0.3
    found = optim.root(system, np.ones(3), (a, b))
    assert found.success
    np.testing.assert_allclose(found.x, scipy.optimize.fsolve(system, np.ones(3), (a, b), xtol=1e-13), rtol=1e-9)
    da, db = gs.grad(loss, argnums=(0, 1))(a, b)
    np.testing.assert_allclose(da, [difference(lambda t: loss(a + t * e, b), 0.0) for e in np.eye(3)], rtol=1e-7)  # noqa: B023
    np.testing.assert_allclose(db, difference(lambda t: loss(a, t), b), rtol=1e-7)
    second = gs.grad(gs.grad(loss, argnums=1), argnums=1)(a, b)
    np.testing.assert_allclose(second, difference(lambda t: gs.grad(loss, argnums=1)(a, t), b), rtol=1e-7)
    assert not optim.root(lambda x: x * x + 1.0, np.full(1, 0.4), maxiter=3).success


def contraction(x, a, b):
    return 0.5 * np.cos(x) * a + b


def test_fixed_point():
    def loss(a, b):
        return np.sum(optim.fixed_point(contraction, np.zeros((2, 2)), (a, b)) ** 2)
    a, b = RNG.uniform(size=(2, 2)), 0.3
    x = optim.fixed_point(contraction, np.zeros((2, 2)), (a, b))
    np.testing.assert_allclose(x, contraction(x, a, b), atol=1e-12)
    da, db = gs.grad(loss, argnums=(0, 1))(a, b)
    factor = 1.0 / (1.0 + 0.5 * a * np.sin(x))                      # the implicit function theorem, entry by entry
    np.testing.assert_allclose(da, 2 * x * 0.5 * np.cos(x) * factor, rtol=1e-10)
    np.testing.assert_allclose(db, np.sum(2 * x * factor), rtol=1e-10)
    np.testing.assert_allclose(gs.vmap(gs.grad(loss, argnums=1), in_axes=(None, 0))(a, np.array([0.1, 0.3])),
                               [gs.grad(loss, argnums=1)(a, 0.1), db], rtol=1e-10)


def test_closures_are_refused():
    """Derivatives are with respect to args; what a function closes over is not left out in silence."""
    t = np.arange(2.0)
    for solve in (lambda c: np.sum(optim.fixed_point(lambda x: np.cos(c * x), np.zeros(2))),
                  lambda c: np.sum(optim.root(lambda x: x ** 3 - c, np.ones(2)).x),
                  lambda c: optim.bisect(lambda x: x ** 3 - c, 0.0, 2.0).x,
                  lambda c: np.sum(optim.odeint(lambda y, t: -c * y, np.ones(2), t, adjoint="continuous"))):
        with pytest.raises(gs.TransformError):
            gs.grad(solve)(0.7)
    steps = gs.grad(lambda c: np.sum(optim.odeint(lambda y, t: -c * y, np.ones(2), t)))(0.7)
    np.testing.assert_allclose(steps, -2.0 * np.exp(-0.7), rtol=1e-7)


def decay(y, t, k):
    return -k * y * y + np.cos(t) + 2.0


def pendulum(y, t, m, k):
    return np.stack([y[1], -m * y[1] - k * np.sin(y[0]) + 0.1 * t])


START, TIMES = np.array([1.0, 0.0]), np.array([0.0, 0.3, 0.31, 2.0, 2.0, 5.0])


def test_odeint():
    exact = scipy.integrate.solve_ivp(lambda t, y: pendulum(y, t, 0.3, 2.0), (0, 5), START, "DOP853", np.unique(TIMES),
                                      rtol=1e-13, atol=1e-13).y.T[[0, 1, 2, 3, 3, 4]]
    for tol, reached in [(1e-6, 1e-5), (1e-9, 1e-8), (1e-11, 1e-10)]:
        y = optim.odeint(pendulum, START, TIMES, 0.3, 2.0, rtol=tol, atol=tol)
        np.testing.assert_allclose(y, exact, atol=reached)
    np.testing.assert_allclose(optim.odeint(pendulum, START, TIMES, 0.3, 2.0, hmax=0.01), exact, atol=1e-9)
    fine = np.linspace(0.0, 5.0, 501)
    np.testing.assert_allclose(optim.rk4(pendulum, START, fine, 0.3, 2.0)[[0, 30, 31, 200, 200, 500]], exact, atol=1e-8)


def test_odeint_kinds():
    times = np.array([0.0, 1.0])
    exact = np.tanh(1.0)
    for y0 in (0.0, 0, np.zeros(3), np.zeros((2, 2))):
        y = optim.odeint(lambda y, t: 1.0 - y * y, y0, times)
        assert y.dtype == np.float64 and y.shape == (2, *np.shape(y0))
        np.testing.assert_allclose(y[1], exact, rtol=1e-7)
    single = optim.odeint(lambda y, t: 1 - y * y, np.zeros(2, np.float32), times.astype(np.float32), rtol=1e-5,
                          atol=1e-5)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single[1], exact, rtol=1e-4)


@pytest.mark.parametrize("adjoint", ["steps", "continuous"])
def test_odeint_derivatives(adjoint):
    weights = RNG.normal(size=(6, 2))

    def loss(y0, times, m):
        return np.sum(weights * optim.odeint(pendulum, y0, times, m, 2.0, rtol=1e-11, atol=1e-11, adjoint=adjoint))
    times = TIMES + 0.01 * np.arange(6)
    dy0, dtimes, dm = gs.grad(loss, argnums=(0, 1, 2))(START, times, 0.3)
    np.testing.assert_allclose(dy0, [difference(lambda s: loss(START + s * e, times, 0.3), 0.0) for e in np.eye(2)],  # noqa: B023
                               rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(dtimes, [difference(lambda s: loss(START, times + s * e, 0.3), 0.0, 1e-4)  # noqa: B023
                                        for e in np.eye(6)], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(dm, difference(lambda s: loss(START, times, s), 0.3), rtol=1e-6)


def test_compiled():
    """Whole solvers under gs.jit."""
    A = np.diag(np.arange(1.0, 21.0)) + 0.1
    b = RNG.normal(size=20)
    fast = gs.jit(lambda x, A, b: optim.newton_cg(lambda x: 0.5 * np.dot(x, np.dot(A, x)) - np.dot(b, x), x, gtol=1e-9))
    found = fast(np.zeros(20), A, b)
    assert type(found).__name__ == "OptimizeResult" and found.success and found.status == 0
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), atol=1e-8)
    x, info = gs.jit(lambda A, b: optim.cg(A, b, tol=1e-10))(A, b)
    assert info.success
    np.testing.assert_allclose(x, np.linalg.solve(A, b), atol=1e-8)
    value, slope = gs.jit(gs.value_and_grad(lambda c: optim.brentq(cubic, 0.0, 3.0, (c,)).x))(0.7)
    exact = scipy.optimize.brentq(cubic, 0.0, 3.0, (0.7,), xtol=1e-15)
    np.testing.assert_allclose([value, slope], [exact, -(exact - np.exp(0.7)) / (3 * exact ** 2 + 0.7)], rtol=1e-10)
    ys = gs.jit(lambda y0, t, k: optim.odeint(decay, y0, t, k))(np.array([1.0, 0.5]), TIMES, 0.7)
    np.testing.assert_allclose(ys, optim.odeint(decay, np.array([1.0, 0.5]), TIMES, 0.7), rtol=1e-10)
