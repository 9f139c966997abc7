# SPDX-License-Identifier: Apache-2.0
"""Quasi-Newton minimisers: BFGS, and L-BFGS with limited memory.

J. Nocedal and S. Wright, Numerical optimization (2006), chapters 6 and 7.
"""
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.api import value_and_grad
from gradscribe.optim.line_search import strong_wolfe
from gradscribe.optim.results import CONVERGED, NO_STEP, TOO_MANY, OptimizeResult, need_vector

__all__ = ["bfgs", "lbfgs"]


def bfgs(fun: Callable, x0: Any, args: tuple = (), *, maxiter: int | None = None, gtol: float = 1e-6) -> OptimizeResult:
    """Minimise fun(x, *args) with a dense approximate inverse Hessian and a strong Wolfe line search.

    x0 is a vector; maxiter is 200 times its length if None.  Algorithm 6.1, started with equation 6.20.

    >>> found = bfgs(lambda x: np.sum((x - np.arange(3.0)) ** 2 + x ** 4), np.zeros(3))
    >>> found.x.round(4), found.success
    (array([0.    , 0.5898, 0.8351]), True)
    """
    need_vector(x0, "x0")

    def f(x):
        return fun(x, *args)

    vg = value_and_grad(f)
    x = np.array(x0)
    n = x.shape[0]
    most = 200 * n if maxiter is None else maxiter
    fx, g = vg(x)
    norm = math.sqrt(np.dot(g, g))
    nit, nfev, status = 0, 1, CONVERGED
    H = np.eye(n)
    while norm > gtol:
        if nit == most:
            status = TOO_MANY
            break
        p = -np.dot(H, g)
        first = min(1.0, 1.0 / norm) if nit == 0 else 1.0
        step = strong_wolfe(vg, x, fx, g, p, first=first)
        nfev += step.nfev
        if not step.found:
            status = NO_STEP
            break
        s, y = step.x - x, step.jac - g
        x, fx, g = step.x, step.fun, step.jac
        norm = math.sqrt(np.dot(g, g))
        nit += 1
        sy = np.dot(s, y)
        if sy > 0.0:
            if nit == 1:
                H = H * (sy / np.dot(y, y))
            Hy = np.dot(H, y)
            H = H + ((1.0 + np.dot(y, Hy) / sy) / sy) * np.outer(s, s) - (np.outer(Hy, s) + np.outer(s, Hy)) / sy
    return OptimizeResult(x, fx, g, norm, nit, nfev, 0, status, norm <= gtol)


def lbfgs(fun: Callable, x0: Any, args: tuple = (), *, maxiter: int = 1000, gtol: float = 1e-6,
          memory: int = 10) -> OptimizeResult:
    """Minimise fun(x, *args) with the last `memory` steps and gradient differences instead of a matrix.

    x0 is a vector.  Algorithms 7.4 (two loops) and 7.5, with a strong Wolfe line search; the initial matrix is that of
    equation 7.20.  Raises ValueError if memory is below 1.

    >>> found = lbfgs(lambda x: np.sum(np.arange(1.0, 5.0) * (x - 1.0) ** 2), np.zeros(4))
    >>> found.x.round(6), found.success
    (array([1., 1., 1., 1.]), True)
    """
    need_vector(x0, "x0")
    if memory < 1:
        raise ValueError(f"memory must be at least 1, not {memory}")

    def f(x):
        return fun(x, *args)

    vg = value_and_grad(f)
    x = np.array(x0)
    n = x.shape[0]
    fx, g = vg(x)
    norm = math.sqrt(np.dot(g, g))
    nit, nfev, status = 0, 1, CONVERGED
    S, Y = np.zeros((memory, n), dtype=x.dtype), np.zeros((memory, n), dtype=x.dtype)
    rho, alpha = np.zeros(memory), np.zeros(memory)
    kept, scale = 0, 1.0                        # the number of pairs so far; pair k is in row k % memory
    while norm > gtol:
        if nit == maxiter:
            status = TOO_MANY
            break
        p = -g
        for j in range(min(kept, memory)):
            row = (kept - 1 - j) % memory
            alpha[row] = rho[row] * np.dot(S[row], p)
            p -= alpha[row] * Y[row]
        p *= scale
        for j in range(min(kept, memory)):
            row = (kept - min(kept, memory) + j) % memory
            beta = rho[row] * np.dot(Y[row], p)
            p += (alpha[row] - beta) * S[row]
        first = min(1.0, 1.0 / norm) if nit == 0 else 1.0
        step = strong_wolfe(vg, x, fx, g, p, first=first)
        nfev += step.nfev
        if not step.found:
            status = NO_STEP
            break
        s, y = step.x - x, step.jac - g
        x, fx, g = step.x, step.fun, step.jac
        norm = math.sqrt(np.dot(g, g))
        nit += 1
        sy = np.dot(s, y)
        if sy > 0.0:
            row = kept % memory
            S[row], Y[row], rho[row] = s, y, 1.0 / sy
            kept += 1
            scale = sy / np.dot(y, y)
    return OptimizeResult(x, fx, g, norm, nit, nfev, 0, status, norm <= gtol)
