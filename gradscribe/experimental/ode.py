# SPDX-License-Identifier: Apache-2.0
"""Ordinary differential equations by Taylor series of the solution, of any order.

A. Jorba, M. Zou, A software package for the numerical integration of ODEs by means of high-order Taylor methods,
Experimental Mathematics 14 (2005) 99-117.
"""
import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gradscribe.api import _base, stop_gradient
from gradscribe.ast_transform.core.rule import static
from gradscribe.ast_transform.jets import solution
from gradscribe.ast_transform.reader.operands import known_value, settle
from gradscribe.frames import public
from gradscribe.transformed import Transformed

__all__ = ["coefficients", "taylor"]


@public
def coefficients(func: Callable, y: Any, t: Any, *args: Any, order: int) -> np.ndarray:
    """The Taylor coefficients 1, ..., order in time of the solution of dy/dt = func(y, t, *args) through y at time t.

    y is an array or a number of floating-point type; the coefficients are along a new first axis.  Where func has
    neither branches nor loops, the cost grows with order**2, otherwise with order**3.

    >>> coefficients(lambda y, t: y, 6.0, 0.0, order=3)
    array([6., 3., 1.])
    """
    return solution_of(func, order)(y, t, *args)


def solution_of(func: Callable, order: int) -> Transformed:
    """The function (y, t, *args) -> coefficients of the solution, with its `source`."""
    if not isinstance(order, int) or isinstance(order, bool) or order < 1:
        raise ValueError(f"order must be a positive integer, not {order!r}")
    return Transformed(func, solution(order))


def _read_coefficients(reader, args, words, node):
    order = known_value(reader, words["order"], "order of coefficients", node)
    return solution(order).read(reader, _base(settle(reader, args[0])), list(args[1:]), {})


cast(Any, coefficients).normal_form_ = _read_coefficients


def taylor(func: Callable, y0: Any, t: Any, *args: Any, order: int | None = None, tol: float = 1e-14,
           mxstep: float = math.inf) -> Any:
    """The solution of dy/dt = func(y, t, *args), y(t[0]) = y0, at the increasing times t, along a new first axis.

    Each step sums the Taylor series of the solution, whose coefficients Taylor mode computes from func, up to `order`;
    its length is such that the error of a step is about tol, or tol times the largest entry of y if that is more than 1
    (Jorba and Zou, section 3.2).  Values between steps are those of the series.  order: by default the one that costs
    least for tol, ceil(1 - log(tol) / 2).  y0 is an array; func must be smooth on the way.  gs.jit compiles
    the steps, and derivatives pass through them, with their lengths as constants.

    Raises RuntimeError if mxstep steps are not enough, or steps become too short; ValueError for times that decrease;
    TypeError for a container as y0; TransformError, which shows the line, for what has no Taylor series.

    >>> taylor(lambda y, t: -y, np.array([1.0]), np.array([0.0, 1.0, 2.0]))[:, 0]
    array([1.        , 0.36787944, 0.13533528])
    """
    if isinstance(y0, (list, tuple, dict)):
        raise TypeError("y0 must be an array; gs.tree_util.ravel_pytree makes a vector of a tree")
    if np.ndim(t) != 1:
        raise ValueError(f"t must have one axis, not {np.ndim(t)}")
    times = 1.0 * np.asarray(t)
    if np.any(times[1:] < times[:-1]):
        raise ValueError("t must not decrease")
    if not 0.0 < tol < 1.0:
        raise ValueError(f"tol must be between 0 and 1, not {tol}")
    if order is not None and order < 2:
        raise ValueError(f"order must be at least 2, not {order}")
    y = np.asarray(y0).astype(np.result_type(y0, times))
    degree = order_for(tol) if order is None else order
    ys = np.zeros((times.shape[0], *y.shape), dtype=y.dtype)
    ys[0] = y
    begin, h, steps = times[0], 0.0, 0
    terms = np.zeros((degree, *y.shape), dtype=y.dtype)
    for i in range(1, times.shape[0]):
        while begin + h < times[i]:
            y = y + _summed(terms, h)
            begin = begin + h
            terms = coefficients(func, y, begin, *args, order=degree)
            h = stop_gradient(_step(func, y, begin, args, terms, tol, times[-1] - begin))
            steps += 1
            if steps > mxstep:
                raise RuntimeError("taylor: more than mxstep steps")
            if not begin + h > begin:
                raise RuntimeError("taylor: the steps have become too short; is func finite and smooth?")
        ys[i] = y + _summed(terms, times[i] - begin)
    return ys


@static
def order_for(tol: float) -> int:
    """The order that costs least for a tolerance.  Jorba and Zou, proposition 3.1."""
    return max(2, math.ceil(1.0 - 0.5 * math.log(tol)))


def _summed(terms, h):
    """The sum of terms[k] * h ** (k + 1), the highest order first."""
    total = 0.0 * terms[0]
    for k in range(terms.shape[0]):
        total = h * (terms[terms.shape[0] - 1 - k] + total)
    return total


def _largest(x):
    return np.max(np.abs(x), initial=0.0)


def _slope(terms, h):
    """The derivative of `_summed` in h."""
    total = 0.0 * terms[0]
    for k in range(terms.shape[0]):
        total = (terms.shape[0] - k) * terms[terms.shape[0] - 1 - k] + h * total
    return total


def _step(func, y, t, args, terms, tol, left):
    """The length of a step, at most `left`.

    Jorba and Zou, equations 3.7 to 3.9: a part of the radius of convergence that the last two terms stand for.  Where
    both are zero they say nothing; then the equation must hold at the end of the step.
    """
    p = terms.shape[0]
    size = max(1.0, _largest(y))
    last, before = _largest(terms[p - 1]), _largest(terms[p - 2])
    if last == 0.0 and before == 0.0:
        h = left
        while h * _largest(func(y + _summed(terms, h), t + h, *args) - _slope(terms, h)) > tol * size:
            h = 0.5 * h
        return h
    radius = min(_root(last / size, p), _root(before / size, p - 1))
    return min(radius * math.exp(-0.7 / (p - 1)) * tol ** (1.0 / p), left)


def _root(x, p):
    """The radius of convergence that a coefficient of order p and this relative size stands for."""
    if x == 0.0:
        return math.inf
    return x ** (-1.0 / p)
