# SPDX-License-Identifier: Apache-2.0
"""Ordinary differential equations dy/dt = func(y, t, *args): Dormand and Prince's pair with error control, and RK4.

E. Hairer, S. Norsett and G. Wanner, Solving ordinary differential equations I (1993), called Hairer below.
"""
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.api import stop_gradient, vjp
from gradscribe.custom import custom_vjp
from gradscribe.tree_util import ravel_pytree

__all__ = ["odeint", "rk4"]


def _begin(y0, t):
    """The state and the times converted to one floating dtype."""
    if isinstance(y0, (list, tuple, dict)):
        raise TypeError("y0 must be an array; gs.tree_util.ravel_pytree makes a vector of a tree")
    if np.ndim(t) != 1:
        raise ValueError(f"t must have one axis, not {np.ndim(t)}")
    times = 1.0 * np.asarray(t)
    if np.any(times[1:] < times[:-1]):
        raise ValueError("t must not decrease")
    return np.asarray(y0).astype(np.result_type(y0, times)), times


def _size(x, y, y_new, rtol, atol):
    """The root mean square of x relative to the tolerance.  Hairer, section II.4, equation 4.11."""
    scaled = x / (atol + rtol * np.maximum(np.abs(y), np.abs(y_new)))
    return math.sqrt(np.mean(scaled * scaled))


def _first_step(func, y, t, f0, args, rtol, atol):
    """Hairer, section II.4, starting step size."""
    d0, d1 = _size(y, y, y, rtol, atol), _size(f0, y, y, rtol, atol)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    d2 = _size(func(y + h0 * f0, t + h0, *args) - f0, y, y, rtol, atol) / h0
    worst = max(d1, d2)
    h1 = max(1e-6, 1e-3 * h0) if worst <= 1e-15 else (0.01 / worst) ** 0.2
    return min(100.0 * h0, h1)


def _solved(func, y, times, args, rtol, atol, mxstep, hmax):
    ys = np.zeros((times.shape[0], *y.shape), dtype=y.dtype)
    ys[0] = y
    t = times[0]
    k1 = func(y, t, *args)
    h = stop_gradient(min(_first_step(func, y, t, k1, args, rtol, atol), hmax))
    begin, h_last = t, 1.0
    c1, c2, c3, c4, c5 = y, 0.0 * y, 0.0 * y, 0.0 * y, 0.0 * y
    for i in range(1, times.shape[0]):
        target = times[i]
        steps = 0
        while t < target:
            if steps >= mxstep:
                raise RuntimeError("odeint: more than mxstep steps between two times")
            if not t + h > t:
                raise RuntimeError("odeint: the steps have become too short; is func finite?")
            steps += 1
            k2 = func(y + h * (k1 / 5), t + h / 5, *args)
            k3 = func(y + h * (3 / 40 * k1 + 9 / 40 * k2), t + 3 / 10 * h, *args)
            k4 = func(y + h * (44 / 45 * k1 - 56 / 15 * k2 + 32 / 9 * k3), t + 4 / 5 * h, *args)
            k5 = func(y + h * (19372 / 6561 * k1 - 25360 / 2187 * k2 + 64448 / 6561 * k3 - 212 / 729 * k4),
                      t + 8 / 9 * h, *args)
            k6 = func(y + h * (9017 / 3168 * k1 - 355 / 33 * k2 + 46732 / 5247 * k3 + 49 / 176 * k4
                               - 5103 / 18656 * k5), t + h, *args)
            y_new = y + h * (35 / 384 * k1 + 500 / 1113 * k3 + 125 / 192 * k4 - 2187 / 6784 * k5 + 11 / 84 * k6)
            k7 = func(y_new, t + h, *args)
            error = h * (71 / 57600 * k1 - 71 / 16695 * k3 + 71 / 1920 * k4 - 17253 / 339200 * k5 + 22 / 525 * k6
                         - k7 / 40)
            ratio = stop_gradient(_size(error, y, y_new, rtol, atol))
            if ratio <= 1.0:
                change = y_new - y
                c1, c2 = y, change
                c3 = h * k1 - change
                c4 = change - h * k7 - c3
                c5 = h * (-12715105075 / 11282082432 * k1 + 87487479700 / 32700410799 * k3
                          - 10690763975 / 1880347072 * k4 + 701980252875 / 199316789632 * k5
                          - 1453857185 / 822651844 * k6 + 69997945 / 29380423 * k7)
                begin, h_last = t, h
                t = t + h
                y, k1 = y_new, k7
            factor = 10.0 if ratio == 0.0 else 0.9 * ratio ** -0.2
            h = min(h * (min(10.0, factor) if factor > 0.2 else 0.2), hmax)
        s = (target - begin) / h_last
        ys[i] = c1 + s * (c2 + (1.0 - s) * (c3 + s * (c4 + (1.0 - s) * c5)))
    return ys


@functools.partial(custom_vjp, nondiff_argnums=(0, 4, 5, 6, 7))
def _continuous(func, y, times, args, rtol, atol, mxstep, hmax):
    return _solved(func, y, times, args, rtol, atol, mxstep, hmax)


def _continuous_forward(func, y, times, args, rtol, atol, mxstep, hmax):
    ys = _solved(func, y, times, args, rtol, atol, mxstep, hmax)
    return ys, (ys, times, args)


def _continuous_backward(func, rtol, atol, mxstep, hmax, kept, dys):
    ys, times, args = kept
    shape = ys[0].shape
    n = ys[0].size
    flat, unravel = ravel_pytree(args)

    def backwards(z, minus_t, flat):
        """The derivatives of the state, its adjoint, and the adjoints of time and args, in reversed time."""
        y, dy = z[:n].reshape(shape), z[n:2 * n].reshape(shape)
        f, pulled = vjp(lambda y, t, flat: func(y, t, *unravel(flat)), y, -minus_t, flat)
        dfy, dft, dargs = pulled(dy)
        return np.concatenate([-f.ravel(), dfy.ravel(), np.reshape(dft, (1,)), dargs])

    dtimes = np.zeros(times.shape[0])
    z = np.concatenate([np.zeros(n), dys[-1].ravel(), np.zeros(1 + flat.shape[0])])
    for i in range(times.shape[0] - 1, 0, -1):
        dtimes[i] = np.sum(func(ys[i], times[i], *args) * dys[i])
        z[:n] = ys[i].ravel()
        z[2 * n] -= dtimes[i]
        z = _solved(backwards, z, np.stack([-times[i], -times[i - 1]]), (flat,), rtol, atol, mxstep, hmax)[1]
        z[n:2 * n] += dys[i - 1].ravel()
    dtimes[0] = z[2 * n]
    return z[n:2 * n].reshape(shape), dtimes, unravel(z[2 * n + 1:].astype(flat.dtype))


_continuous.defvjp(_continuous_forward, _continuous_backward)


def odeint(func: Callable, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8,
           mxstep: float = math.inf, hmax: float = math.inf, adjoint: str = "steps") -> Any:
    """The solution of dy/dt = func(y, t, *args), y(t[0]) = y0, at the increasing times t, along a new first axis.

    The steps of Dormand and Prince's pair of orders 5 and 4 are chosen so that the error of each is at most
    atol + rtol |y|; values between steps are those of the continuous extension (Hairer, section II.6).  y0 is an array.
    adjoint='steps' differentiates the steps, with their lengths as constants; 'continuous' solves the adjoint
    equation backwards in time and stores y only at the times t, for derivatives in y0, t and args but not in variables
    that func closes over (R. Chen et al., Neural ordinary differential equations, 2018, appendix C).  Raises
    RuntimeError if mxstep steps between two times are not enough or steps become too short, TypeError for a container
    as y0.

    >>> odeint(lambda y, t: -y, np.array([1.0]), np.array([0.0, 1.0, 2.0])).round(6)[:, 0]
    array([1.      , 0.367879, 0.135335])
    """
    if adjoint not in ("steps", "continuous"):
        raise ValueError(f"adjoint is 'steps' or 'continuous', not {adjoint!r}")
    y, times = _begin(y0, t)
    if adjoint == "steps":
        return _solved(func, y, times, args, rtol, atol, mxstep, hmax)
    return _continuous(func, y, times, args, rtol, atol, mxstep, hmax)


def rk4(func: Callable, y0: Any, t: Any, *args: Any) -> Any:
    """The solution of dy/dt = func(y, t, *args) at the times t, by one classical Runge-Kutta step for each interval.

    Hairer, section II.1, table 1.2.  Raises TypeError for a container as y0.

    >>> rk4(lambda y, t: -y, np.array([1.0]), np.linspace(0.0, 1.0, 101))[-1].round(8)
    array([0.36787944])
    """
    y, times = _begin(y0, t)
    ys = np.zeros((times.shape[0], *y.shape), dtype=y.dtype)
    ys[0] = y
    for i in range(1, times.shape[0]):
        s = times[i - 1]
        h = times[i] - s
        k1 = func(y, s, *args)
        k2 = func(y + 0.5 * h * k1, s + 0.5 * h, *args)
        k3 = func(y + 0.5 * h * k2, s + 0.5 * h, *args)
        k4 = func(y + h * k3, s + h, *args)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        ys[i] = y
    return ys
