# SPDX-License-Identifier: Apache-2.0
"""Iterative solvers for linear systems A x = b: conjugate gradients, BiCGSTAB and restarted GMRES.

A is a matrix or a function x -> A x; so is M, a preconditioner that approximates the inverse.  b is a vector.  Names
and arguments are those of jax.scipy.sparse.linalg.
"""
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.optim.results import LinearInfo, LinearResult, need_vector

__all__ = ["bicgstab", "cg", "gmres"]


def _times(A, x):
    return A(x) if callable(A) else np.dot(A, x)


def _norm(x):
    return math.sqrt(np.dot(x, x))


def cg(A: Callable | Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
       M: Callable | Any = None) -> LinearResult:
    """Solve A x = b for a symmetric positive definite A.

    Terminates when |b - A x| <= max(tol |b|, atol), or after maxiter products (10 times the length of b if None).
    Nocedal and Wright, Numerical optimization (2006), algorithm 5.3.

    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = cg(A, np.array([1.0, 2.0]))
    >>> x.round(6), info.success
    (array([0.090909, 0.636364]), True)
    """
    need_vector(b, "b")
    most = 10 * b.shape[0] if maxiter is None else maxiter
    enough = max(tol * _norm(b), atol)
    x = np.zeros_like(b) if x0 is None else np.array(x0)
    r = np.copy(b) if x0 is None else b - _times(A, x)
    z = r if M is None else _times(M, r)
    d = np.copy(z)
    rz = np.dot(r, z)
    size = _norm(r)
    products = 0
    while size > enough and products < most:
        Ad = _times(A, d)
        alpha = rz / np.dot(d, Ad)
        x = x + alpha * d
        r = r - alpha * Ad
        z = r if M is None else _times(M, r)
        rz_next = np.dot(r, z)
        d = z + (rz_next / rz) * d
        rz = rz_next
        size = _norm(r)
        products += 1
    return LinearResult(x, LinearInfo(products, size, size <= enough))


def bicgstab(A: Callable | Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M: Callable | Any = None) -> LinearResult:
    """Solve A x = b for a square A; each of the maxiter steps has two products.

    Terminates as cg does, or at a breakdown.  H. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of
    Bi-CG (1992).

    >>> x, info = bicgstab(np.array([[4.0, 1.0], [0.0, 3.0]]), np.array([1.0, 3.0]))
    >>> np.allclose(x, [0.0, 1.0]), info.success
    (True, True)
    """
    need_vector(b, "b")
    most = 10 * b.shape[0] if maxiter is None else maxiter
    enough = max(tol * _norm(b), atol)
    x = np.zeros_like(b) if x0 is None else np.array(x0)
    r = np.copy(b) if x0 is None else b - _times(A, x)
    shadow = np.copy(r)
    rho, alpha, omega = 1.0, 1.0, 1.0
    p, v = np.zeros_like(b), np.zeros_like(b)
    size = _norm(r)
    products, steps = 0, 0
    while size > enough and steps < most:
        rho_next = np.dot(shadow, r)
        if rho_next == 0.0:
            break
        beta = rho_next / rho * (alpha / omega)
        p = r + beta * (p - omega * v)
        p_hat = p if M is None else _times(M, p)
        v = _times(A, p_hat)
        alpha = rho_next / np.dot(shadow, v)
        s = r - alpha * v
        s_hat = s if M is None else _times(M, s)
        t = _times(A, s_hat)
        tt = np.dot(t, t)
        omega = np.dot(t, s) / tt if tt > 0.0 else 0.0
        x = x + alpha * p_hat + omega * s_hat
        r = s - omega * t
        rho = rho_next
        size = _norm(r)
        products += 2
        steps += 1
        if omega == 0.0:
            break
    return LinearResult(x, LinearInfo(products, size, size <= enough))


def _krylov_step(A, M, r, size, m, enough, dtype):
    """(step, dimension, products): the step of minimal residual in a Krylov space of dimension up to m.

    By Arnoldi's iteration with modified Gram-Schmidt; Givens rotations c, s make the Hessenberg matrix H triangular.
    """
    V = np.zeros((m + 1, r.shape[0]), dtype=dtype)
    H = np.zeros((m + 1, m), dtype=dtype)
    c, s = np.zeros(m, dtype=dtype), np.zeros(m, dtype=dtype)
    g = np.zeros(m + 1, dtype=dtype)
    V[0] = r / size
    g[0] = size
    used, products = 0, 0
    for k in range(m):
        w = _times(A, V[k] if M is None else _times(M, V[k]))
        products += 1
        for i in range(k + 1):
            H[i, k] = np.dot(V[i], w)
            w = w - H[i, k] * V[i]
        below = _norm(w)
        for i in range(k):
            upper = c[i] * H[i, k] + s[i] * H[i + 1, k]
            H[i + 1, k] = c[i] * H[i + 1, k] - s[i] * H[i, k]
            H[i, k] = upper
        length = math.hypot(H[k, k], below)
        if length == 0.0:
            break
        c[k], s[k] = H[k, k] / length, below / length
        H[k, k] = length
        g[k + 1] = -s[k] * g[k]
        g[k] = c[k] * g[k]
        used = k + 1
        if abs(g[k + 1]) <= enough or below == 0.0:
            break
        V[k + 1] = w / below
    y = np.zeros(m, dtype=dtype)
    for i in range(used - 1, -1, -1):
        y[i] = (g[i] - np.dot(H[i, i + 1:used], y[i + 1:used])) / H[i, i]
    return np.dot(y[:used], V[:used]), used, products


def gmres(A: Callable | Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, restart: int = 20,
          maxiter: int | None = None, M: Callable | Any = None) -> LinearResult:
    """Solve A x = b for a square A by minimal residuals in Krylov spaces of dimension restart, up to maxiter times.

    Terminates as cg does; M is applied from the right.  Y. Saad and M. Schultz, GMRES: a generalized minimal residual
    algorithm (1986), with modified Gram-Schmidt and Givens rotations.

    >>> x, info = gmres(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([1.0, 2.0]))
    >>> x.round(6), info.success
    (array([-2.,  1.]), True)
    """
    need_vector(b, "b")
    if restart < 1:
        raise ValueError(f"restart must be at least 1, not {restart}")
    m = min(restart, b.shape[0])
    most = 10 * b.shape[0] if maxiter is None else maxiter
    enough = max(tol * _norm(b), atol)
    x = np.zeros_like(b) if x0 is None else np.array(x0)
    r = np.copy(b) if x0 is None else b - _times(A, x)
    size = _norm(r)
    products, rounds = 0, 0
    while size > enough and rounds < most:
        step, used, more = _krylov_step(A, M, r, size, m, enough, b.dtype)
        products += more
        if used == 0:
            break
        x = x + (step if M is None else _times(M, step))
        r = b - _times(A, x)
        products += 1
        size = _norm(r)
        rounds += 1
    return LinearResult(x, LinearInfo(products, size, size <= enough))
