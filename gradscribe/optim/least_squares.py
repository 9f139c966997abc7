# SPDX-License-Identifier: Apache-2.0
"""Nonlinear least squares: min |residual(x)|^2 / 2 by Gauss-Newton and by Levenberg-Marquardt."""
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.api import jacfwd, jacrev
from gradscribe.optim.results import CONVERGED, NO_STEP, TOO_MANY, OptimizeResult, need_vector

__all__ = ["gauss_newton", "levenberg_marquardt"]


def _jacobian(f, jac):
    if jac not in ("fwd", "rev"):
        raise ValueError(f"jac is 'fwd' or 'rev', not {jac!r}")
    return jacfwd(f) if jac == "fwd" else jacrev(f)


def gauss_newton(residual: Callable, x0: Any, args: tuple = (), *, maxiter: int = 100, gtol: float = 1e-8,
                 jac: str = "fwd") -> OptimizeResult:
    """Minimise |residual(x, *args)|^2 / 2 by full steps of the linearised problem.

    x0 and the residual are vectors.  jac: the mode for the Jacobian, 'fwd', or 'rev' for fewer residuals than unknowns.
    Terminates when |J'r| <= gtol.  Nocedal and Wright, Numerical optimization (2006), section 10.3.

    >>> t = np.array([0.0, 1.0, 2.0])
    >>> found = gauss_newton(lambda x: x[0] * np.exp(x[1] * t) - np.array([2.0, 1.0, 0.5]), np.array([1.5, -0.5]))
    >>> found.x.round(6), found.success
    (array([ 2.      , -0.693147]), True)
    """
    need_vector(x0, "x0")

    def f(x):
        return residual(x, *args)

    J_of = _jacobian(f, jac)
    x = np.array(x0)
    r, J = f(x), J_of(x)
    g = np.dot(J.T, r)
    norm = math.sqrt(np.dot(g, g))
    nit, nfev, status = 0, 1, CONVERGED
    while norm > gtol:
        if nit == maxiter:
            status = TOO_MANY
            break
        x = x - np.linalg.solve(np.dot(J.T, J), g)
        r, J = f(x), J_of(x)
        g = np.dot(J.T, r)
        norm = math.sqrt(np.dot(g, g))
        nit += 1
        nfev += 1
    return OptimizeResult(x, 0.5 * np.dot(r, r), g, norm, nit, nfev, 0, status, norm <= gtol)


def levenberg_marquardt(residual: Callable, x0: Any, args: tuple = (), *, maxiter: int = 200, gtol: float = 1e-8,
                        damping: float = 1e-3, jac: str = "fwd") -> OptimizeResult:
    """Minimise |residual(x, *args)|^2 / 2 by steps p with (J'J + mu I) p = -J'r, where mu adapts to their success.

    x0 and the residual are vectors; mu starts at damping times the largest diagonal entry of J'J.  jac: the mode for
    the Jacobian, 'fwd' or 'rev'.  Terminates when |J'r| <= gtol.  K. Madsen, H. Nielsen and O. Tingleff, Methods for
    non-linear least squares problems (2004), algorithm 3.16.

    >>> found = levenberg_marquardt(lambda x: np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]), np.array([-1.2, 1.0]))
    >>> found.x.round(6), found.success
    (array([1., 1.]), True)
    """
    need_vector(x0, "x0")

    def f(x):
        return residual(x, *args)

    J_of = _jacobian(f, jac)
    x = np.array(x0)
    r, J = f(x), J_of(x)
    A, g = np.dot(J.T, J), np.dot(J.T, r)
    norm = math.sqrt(np.dot(g, g))
    cost = 0.5 * np.dot(r, r)
    mu, nu = damping * np.max(np.diag(A)), 2.0
    identity = np.eye(x.shape[0])
    nit, nfev, status = 0, 1, CONVERGED
    while norm > gtol:
        if nit == maxiter:
            status = TOO_MANY
            break
        p = -np.linalg.solve(A + mu * identity, g)
        if math.sqrt(np.dot(p, p)) <= 1e-15 * (math.sqrt(np.dot(x, x)) + 1e-15):
            status = NO_STEP
            break
        x_new = x + p
        r_new = f(x_new)
        cost_new = 0.5 * np.dot(r_new, r_new)
        gain = (cost - cost_new) / (0.5 * np.dot(p, mu * p - g))
        nit += 1
        nfev += 1
        if gain > 0.0:
            x, r, cost = x_new, r_new, cost_new
            J = J_of(x)
            A, g = np.dot(J.T, J), np.dot(J.T, r)
            norm = math.sqrt(np.dot(g, g))
            mu = mu * max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3)
            nu = 2.0
        else:
            mu = mu * nu
            nu = 2.0 * nu
    return OptimizeResult(x, cost, g, norm, nit, nfev, 0, status, norm <= gtol)
