# SPDX-License-Identifier: Apache-2.0
"""Truncated Newton-CG, which uses Hessian-vector products, and gradient descent."""
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.api import hvp, value_and_grad
from gradscribe.optim.line_search import backtracking
from gradscribe.optim.results import CONVERGED, NO_STEP, TOO_MANY, OptimizeResult, need_vector

__all__ = ["gradient_descent", "newton_cg"]


def _direction(f, x, g, norm, products):
    """(p, products used): an approximate solution of H p = -g by conjugate gradients, H the Hessian of f at x."""
    enough, used = min(0.5, math.sqrt(norm)) * norm, 0
    p = np.zeros_like(x)
    r = -g
    d = -g
    rr = norm * norm
    for k in range(products):
        curved = hvp(f, (x,), (d,))
        used += 1
        curvature = np.dot(d, curved)
        if curvature <= 0.0:
            if k == 0:
                p += r
            break
        alpha = rr / curvature
        p += alpha * d
        r -= alpha * curved
        rr_next = np.dot(r, r)
        if math.sqrt(rr_next) <= enough:
            break
        d = r + (rr_next / rr) * d
        rr = rr_next
    return p, used


def newton_cg(fun: Callable, x0: Any, args: tuple = (), *, maxiter: int = 200, gtol: float = 1e-6,
              maxcg: int | None = None) -> OptimizeResult:
    """Minimise fun(x, *args) by Newton's method with linear systems solved approximately by conjugate gradients.

    x0 is a vector.  A linear solve ends when the residual is at most min(0.5, sqrt(|g|)) |g|, after maxcg products (20
    times the number of unknowns if None), or at a direction of nonpositive curvature; the step length is found by
    backtracking.  Terminates when the norm of the gradient is at most gtol.  Nocedal and Wright, Numerical optimization
    (2006), algorithm 7.1.

    >>> def rosenbrock(x):
    ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> found = newton_cg(rosenbrock, np.zeros(4), gtol=1e-8)
    >>> found.x.round(6), found.success
    (array([1., 1., 1., 1.]), True)
    """
    need_vector(x0, "x0")

    def f(x):
        return fun(x, *args)

    vg = value_and_grad(f)
    x = np.array(x0)
    products = 20 * x.shape[0] if maxcg is None else maxcg
    fx, g = vg(x)
    norm = math.sqrt(np.dot(g, g))
    nit, nfev, nhev, status = 0, 1, 0, CONVERGED
    while norm > gtol:
        if nit == maxiter:
            status = TOO_MANY
            break
        p, used = _direction(f, x, g, norm, products)
        nhev += used
        t, trials, found = backtracking(f, x, fx, np.dot(g, p), p)
        nfev += trials
        if not found:
            status = NO_STEP
            break
        x = x + t * p
        fx, g = vg(x)
        norm = math.sqrt(np.dot(g, g))
        nit += 1
        nfev += 1
    return OptimizeResult(x, fx, g, norm, nit, nfev, nhev, status, norm <= gtol)


def gradient_descent(fun: Callable, x0: Any, args: tuple = (), *, maxiter: int = 1000, gtol: float = 1e-6,
                     stepsize: float | None = None) -> OptimizeResult:
    """Minimise fun(x, *args) by steps of -stepsize times the gradient, or with backtracking if stepsize is None.

    x0 is a vector.  After a step that backtracking has shortened, the next one starts at twice that length.

    >>> found = gradient_descent(lambda x: np.sum((x - 3.0) ** 2), np.zeros(2))
    >>> found.x.round(5), found.success
    (array([3., 3.]), True)
    """
    need_vector(x0, "x0")

    def f(x):
        return fun(x, *args)

    vg = value_and_grad(f)
    x = np.array(x0)
    fx, g = vg(x)
    norm = math.sqrt(np.dot(g, g))
    nit, nfev, status = 0, 1, CONVERGED
    length = 1.0 if stepsize is None else stepsize
    while norm > gtol:
        if nit == maxiter:
            status = TOO_MANY
            break
        if stepsize is None:
            t, trials, found = backtracking(f, x, fx, -length * norm * norm, -length * g)
            nfev += trials
            if not found:
                status = NO_STEP
                break
            x = x - t * length * g
            length = 2.0 * t * length
        else:
            x = x - stepsize * g
        fx, g = vg(x)
        norm = math.sqrt(np.dot(g, g))
        nit += 1
        nfev += 1
    return OptimizeResult(x, fx, g, norm, nit, nfev, 0, status, norm <= gtol)
