# SPDX-License-Identifier: Apache-2.0
"""Roots and fixed points, with derivatives by the implicit function theorem.

Parameters of a root are passed as args: derivatives are those of f(x, *args) in args.  Derivatives in variables that f
closes over raise an error.  Only reverse mode is supported; the solver's steps are not differentiated.
M. Blondel et al., Efficient and modular implicit differentiation (2022).
"""
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.api import grad, jacfwd, stop_gradient, value_and_grad, vjp
from gradscribe.custom import custom_vjp
from gradscribe.optim.results import RootResult, need_vector

__all__ = ["bisect", "brentq", "fixed_point", "newton", "root"]


def _same_root(f, x, args):
    return x


def _scalar_forward(f, x, args):
    x = _scalar_root(f, x, args)        # for derivatives of the derivative
    return x, (x, args)


def _scalar_backward(f, kept, dx):
    x, args = kept
    return 0.0, vjp(lambda args: f(x, *args), args)[1](-dx / grad(f)(x, *args))[0]


def _vector_forward(f, x, args):
    x = _vector_root(f, x, args)
    return x, (x, args)


def _vector_backward(f, kept, dx):
    x, args = kept
    adjoint = -np.linalg.solve(jacfwd(f)(x, *args).T, dx)
    return np.zeros_like(x), vjp(lambda args: f(x, *args), args)[1](adjoint)[0]


_scalar_root = custom_vjp(_same_root, nondiff_argnums=(0,))
_scalar_root.defvjp(_scalar_forward, _scalar_backward)
_vector_root = custom_vjp(_same_root, nondiff_argnums=(0,))
_vector_root.defvjp(_vector_forward, _vector_backward)


def bisect(f: Callable, a: float, b: float, args: tuple = (), *, xtol: float = 1e-12, maxiter: int = 200) -> RootResult:
    """A root of f(x, *args) between a and b, where f has different signs, by bisection.

    Terminates when half of the interval is at most xtol.  Raises ValueError if the signs are equal.

    >>> round(bisect(lambda x, c: x * x - c, 0.0, 2.0, (2.0,)).x, 10)
    1.4142135624
    """
    fixed = stop_gradient(args)
    low, high = stop_gradient(a), stop_gradient(b)
    f_low, f_high = f(low, *fixed), f(high, *fixed)
    if f_low * f_high > 0.0:
        raise ValueError("f(a) and f(b) must have different signs")
    x = low if f_low == 0.0 else high
    nit, done = 0, f_low == 0.0 or f_high == 0.0
    while not done and nit < maxiter:
        x = 0.5 * (low + high)
        fx = f(x, *fixed)
        done = fx == 0.0 or 0.5 * abs(high - low) <= xtol
        if f_low * fx > 0.0:
            low, f_low = x, fx
        else:
            high = x
        nit += 1
    x = _scalar_root(f, x, args)
    return RootResult(x, f(x, *args), nit, bool(done))


def brentq(f: Callable, a: float, b: float, args: tuple = (), *, xtol: float = 2e-12, rtol: float = 1e-15,
           maxiter: int = 100) -> RootResult:
    """A root of f(x, *args) between a and b, where f has different signs, by interpolation with bisection as fallback.

    Terminates when the root is known to within xtol + rtol |x|.  R. Brent, Algorithms for minimization without
    derivatives (1973), chapter 4.  Raises ValueError if the signs are equal.

    >>> found = brentq(lambda x, c: x ** 3 - c, 0.0, 3.0, (8.0,))
    >>> round(found.x, 10), found.success
    (2.0, True)
    """
    fixed = stop_gradient(args)
    previous, x = stop_gradient(a), stop_gradient(b)
    f_previous, fx = f(previous, *fixed), f(x, *fixed)
    if f_previous * fx > 0.0:
        raise ValueError("f(a) and f(b) must have different signs")
    other, f_other = previous, f_previous
    step = last = x - previous
    nit, done = 0, fx == 0.0
    if f_previous == 0.0:
        x, done = previous, True
    while not done and nit < maxiter:
        if fx * f_other > 0.0:                          # the root is between x and other
            other, f_other = previous, f_previous
            step = last = x - previous
        if abs(f_other) < abs(fx):
            previous, x, other = x, other, x
            f_previous, fx, f_other = fx, f_other, fx
        near = 0.5 * (xtol + rtol * abs(x))
        half = 0.5 * (other - x)
        if abs(half) <= near or fx == 0.0:
            done = True
        else:
            if abs(last) >= near and abs(f_previous) > abs(fx):
                s = fx / f_previous
                if previous == other:
                    p, q = 2.0 * half * s, 1.0 - s
                else:
                    t, r = f_previous / f_other, fx / f_other
                    p = s * (2.0 * half * t * (t - r) - (x - previous) * (r - 1.0))
                    q = (t - 1.0) * (r - 1.0) * (s - 1.0)
                if p > 0.0:
                    q = -q
                p = abs(p)
                if 2.0 * p < min(3.0 * half * q - abs(near * q), abs(last * q)):
                    last, step = step, p / q
                else:
                    step = last = half
            else:
                step = last = half
            previous, f_previous = x, fx
            x = x + (step if abs(step) > near else math.copysign(near, half))
            fx = f(x, *fixed)
            nit += 1
    x = _scalar_root(f, x, args)
    return RootResult(x, f(x, *args), nit, bool(done))


def newton(f: Callable, x0: float, args: tuple = (), *, tol: float = 1e-12, maxiter: int = 50) -> RootResult:
    """A root of f(x, *args), x a number, by Newton's method from x0, until a step is at most tol (1 + |x|).

    >>> round(newton(lambda x, c: x * x - c, 1.0, (2.0,)).x, 10)
    1.4142135624
    """
    fixed = stop_gradient(args)
    slope_of = value_and_grad(f)
    x = stop_gradient(x0)
    nit, done = 0, False
    while not done and nit < maxiter:
        fx, slope = slope_of(x, *fixed)
        step = fx / slope
        x = x - step
        done = abs(step) <= tol * (1.0 + abs(x))
        nit += 1
    x = _scalar_root(f, x, args)
    return RootResult(x, f(x, *args), nit, bool(done))


def root(f: Callable, x0: Any, args: tuple = (), *, tol: float = 1e-10, maxiter: int = 50) -> RootResult:
    """A root of f(x, *args), x and f vectors of one length, by Newton's method with steps halved until |f| decreases.

    Terminates when no entry of f is larger than tol.

    >>> found = root(lambda x, c: np.array([x[0] * x[1] - c, x[0] - x[1]]), np.ones(2), (4.0,))
    >>> found.x.round(8), found.success
    (array([2., 2.]), True)
    """
    need_vector(x0, "x0")
    fixed = stop_gradient(args)
    J_of = jacfwd(f)
    x = stop_gradient(x0)
    fx = f(x, *fixed)
    size = np.max(np.abs(fx))
    nit = 0
    while size > tol and nit < maxiter:
        p = -np.linalg.solve(J_of(x, *fixed), fx)
        t = 1.0
        f_new = f(x + p, *fixed)
        for _ in range(10):
            if np.dot(f_new, f_new) < np.dot(fx, fx):
                break
            t = 0.5 * t
            f_new = f(x + t * p, *fixed)
        x = x + t * p
        fx = f_new
        size = np.max(np.abs(fx))
        nit += 1
    x = _vector_root(f, x, args)
    return RootResult(x, f(x, *args), nit, bool(size <= tol))


def _repeated(f, x0, args, tol, maxiter):
    x, change, nit = x0, np.inf, 0
    while change > tol and nit < maxiter:
        x_new = f(x, *args)
        change = np.max(np.abs(x_new - x))
        x = x_new
        nit += 1
    return x


@functools.partial(custom_vjp, nondiff_argnums=(0, 3, 4))
def _fixed_point(f, x0, args, tol, maxiter):
    return _repeated(f, x0, args, tol, maxiter)


def _fixed_forward(f, x0, args, tol, maxiter):
    x = _repeated(f, x0, args, tol, maxiter)
    return x, (x, args)


def _fixed_backward(f, tol, maxiter, kept, dx):
    """Solves u = dx + u df/dx by iteration too; the adjoint of args is u df/dargs."""
    x, args = kept
    u, change, nit = dx, np.inf, 0
    while change > tol and nit < maxiter:
        u_new = dx + vjp(lambda x: f(x, *args), x)[1](u)[0]
        change = np.max(np.abs(u_new - u))
        u = u_new
        nit += 1
    return np.zeros_like(x), vjp(lambda args: f(x, *args), args)[1](u)[0]


_fixed_point.defvjp(_fixed_forward, _fixed_backward)


def fixed_point(f: Callable, x0: Any, args: tuple = (), *, tol: float = 1e-12, maxiter: int = 1000) -> Any:
    """The x with x = f(x, *args), by iteration from x0 until no entry changes by more than tol.

    f must be a contraction; x is an array of any shape.  The adjoint is found by iteration as well, without a matrix.

    >>> float(fixed_point(lambda x, a: np.cos(a * x), np.array(1.0), (1.0,)).round(8))
    0.73908513
    """
    return _fixed_point(f, x0, args, tol, maxiter)
