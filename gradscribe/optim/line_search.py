# SPDX-License-Identifier: Apache-2.0
"""Step lengths: backtracking, and the strong Wolfe conditions.

J. Nocedal and S. Wright, Numerical optimization (2006), chapter 3.
"""
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Step", "backtracking", "strong_wolfe"]


ROUNDING = 1e-15                        # relative slack of the decrease, so that the last steps succeed


class Step(NamedTuple):
    """A step of length t to x, with the value and the gradient there; found is False if no t was acceptable."""
    t: Any
    x: Any
    fun: Any
    jac: Any
    nfev: int
    found: bool


def backtracking(f: Callable, x: Any, fx: Any, slope: Any, p: Any, *, c1: float = 1e-4, shrink: float = 0.5,
                 maxiter: int = 30) -> tuple[Any, int, bool]:
    """(t, evaluations, found): the first t of 1, shrink, shrink^2, ... with f(x + t p) <= f(x) + c1 t slope.

    slope is the derivative of f along p.  Nocedal and Wright, algorithm 3.1.

    >>> backtracking(lambda x: np.sum(x ** 2), np.array([1.0]), 1.0, -8.0, np.array([-4.0]))
    (0.25, 3, True)
    """
    t, rounding = 1.0, ROUNDING * abs(fx)
    for k in range(maxiter):
        if f(x + t * p) <= fx + c1 * t * slope + rounding:
            return t, k + 1, True
        t = t * shrink
    return t, maxiter, False


def _between(low, f_low, s_low, high, f_high, s_high):
    """The minimum of the cubic through two points, or their middle.  Nocedal and Wright, equation 3.59."""
    width = high - low
    d1 = s_low + s_high - 3.0 * (f_low - f_high) / (low - high)
    inside = d1 * d1 - s_low * s_high
    middle = low + 0.5 * width
    if not inside >= 0.0:
        return middle
    d2 = math.copysign(math.sqrt(inside), width)
    below = s_high - s_low + 2.0 * d2
    if below == 0.0:
        return middle
    t = high - width * (s_high + d2 - d1) / below
    return t if abs(t - middle) <= 0.4 * abs(width) else middle


def strong_wolfe(value_and_grad: Callable, x: Any, fx: Any, g: Any, p: Any, *, first: float = 1.0, c1: float = 1e-4,
                 c2: float = 0.9, maxiter: int = 25) -> Step:
    """A step along p with f(x + t p) <= f(x) + c1 t slope and |slope there| <= c2 |slope|.

    Nocedal and Wright, algorithms 3.5 and 3.6: the trial grows until it brackets such a step, then the bracket shrinks.
    If none is found, returns the lowest trial that satisfies the first condition.

    >>> def f(x):
    ...     return float(x[0] ** 2), 2 * x
    >>> step = strong_wolfe(f, np.array([1.0]), 1.0, np.array([2.0]), np.array([-1.0]))
    >>> step.t, step.fun, step.found
    (1.0, 0.0, True)
    """
    slope = np.dot(g, p)
    low, f_low, s_low = 0.0, fx, slope
    high, f_high, s_high = math.inf, fx, slope
    t, rounding = first, ROUNDING * abs(fx)
    for k in range(maxiter):
        x_new = x + t * p
        f_new, g_new = value_and_grad(x_new)
        s_new = np.dot(g_new, p)
        if not (f_new <= fx + c1 * t * slope + rounding and (f_new < f_low + rounding or k == 0)):
            high, f_high, s_high = t, f_new, s_new
        elif abs(s_new) <= -c2 * slope:
            return Step(t, x_new, f_new, g_new, k + 1, True)
        else:
            if s_new * (high - low) >= 0.0:
                high, f_high, s_high = low, f_low, s_low
            low, f_low, s_low = t, f_new, s_new
        if math.isfinite(high):
            t = _between(low, f_low, s_low, high, f_high, s_high)
        else:
            t = 2.0 * t
    x_new = x + low * p
    f_new, g_new = value_and_grad(x_new)
    return Step(low, x_new, f_new, g_new, maxiter + 1, low > 0.0)
