# SPDX-License-Identifier: Apache-2.0
"""Roots and linear systems, differentiated by the implicit function theorem instead of through the solver."""
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradscribe.api import jvp, vjp
from gradscribe.custom import custom_jvp, custom_vjp
from gradscribe.runtime.derivatives import closure_convert, stop_gradient
from gradscribe.tree_util import tree_map


def custom_root(f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable,
                has_aux: bool = False) -> Any:
    """An x with f(x) = 0, found by solve(f, initial_guess); differentiable in the variables that f reads.

    solve(f, guess) returns x, or (x, aux) with has_aux; it may be any program and is not differentiated.
    tangent_solve(g, y) returns the x with g(x) = y for a linear g.  The derivative in the guess is zero.

    dx = -(df/dx)^-1 df: M. Blondel et al., Efficient and modular implicit differentiation (2022).

    >>> import gradscribe as gs
    >>> def newton(f, x):
    ...     for _ in range(20):
    ...         x = x - f(x) / gs.jvp(f, (x,), (1.0,))[1]
    ...     return x
    >>> def square_root(a):
    ...     return custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> float(square_root(4.0)), float(gs.grad(square_root)(4.0))
    (2.0, 0.25)
    """
    guess = tree_map(stop_gradient, initial_guess)
    converted, values = closure_convert(f, guess)
    return _root(converted, solve, tangent_solve, guess, has_aux, values)


@partial(custom_jvp, nondiff_argnums=(0, 1, 2, 3, 4))
def _root(f, solve, tangent_solve, guess, has_aux, values):
    return solve(lambda x: f(x, *values), guess)


@_root.defjvp
def _root_rule(f, solve, tangent_solve, guess, has_aux, primals, tangents):
    (values,), (dvalues,) = primals, tangents
    found = _root(f, solve, tangent_solve, guess, has_aux, values)
    x = found[0] if has_aux else found
    moved = jvp(lambda *v: f(x, *v), tuple(values), tuple(dvalues))[1]
    dx = custom_linear_solve(lambda v: jvp(lambda y: f(y, *values), (x,), (v,))[1], tree_map(np.negative, moved),
                             tangent_solve, tangent_solve)
    return found, (dx, tree_map(np.zeros_like, found[1])) if has_aux else dx


def custom_linear_solve(matvec: Callable, b: Any, solve: Callable, transpose_solve: Callable | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> Any:
    """The x with matvec(x) = b, found by solve(matvec, b); differentiable in b and in the variables that matvec reads.

    matvec is linear.  solve(matvec, b) returns x, or (x, aux) with has_aux.  Reverse mode solves the transposed system
    by transpose_solve(vecmat, b), or by solve if symmetric is set; without either, it differentiates the statements of
    the solver.

    >>> import numpy as np, gradscribe as gs
    >>> A = np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> def first(b):
    ...     dense = lambda g, y: np.linalg.solve(gs.jacfwd(g)(y), y)
    ...     return custom_linear_solve(lambda x: A @ x, b, dense, dense)[0]
    >>> gs.grad(first)(np.ones(2))
    array([ 0.5  , -0.125])
    """
    converted, values = closure_convert(matvec, b)
    transposed = solve if symmetric else transpose_solve
    return _solution(converted, solve, transposed, has_aux, values, b)


@partial(custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def _solution(matvec, solve, transpose_solve, has_aux, values, b):
    return solve(lambda x: matvec(x, *values), b)


@_solution.defjvp
def _solution_rule(matvec, solve, transpose_solve, has_aux, primals, tangents):
    (values, b), (dvalues, db) = primals, tangents
    found = _solution(matvec, solve, transpose_solve, has_aux, values, b)
    x = found[0] if has_aux else found
    right = db
    if len(values) > 0:
        moved = jvp(lambda *v: matvec(x, *v), tuple(values), tuple(dvalues))[1]
        right = tree_map(np.subtract, db, moved)
    if transpose_solve is None:
        again = solve(lambda y: matvec(y, *values), right)
        dx = again[0] if has_aux else again
    else:
        dx = _linear(matvec, solve, transpose_solve, has_aux, values, right)
    return found, (dx, tree_map(np.zeros_like, found[1])) if has_aux else dx


@partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3))
def _linear(matvec, solve, transpose_solve, has_aux, values, b):
    found = solve(lambda x: matvec(x, *values), b)
    return found[0] if has_aux else found


def _linear_forward(matvec, solve, transpose_solve, has_aux, values, b):
    found = solve(lambda x: matvec(x, *values), b)
    x = found[0] if has_aux else found
    return x, (values, x)


def _linear_backward(matvec, solve, transpose_solve, has_aux, kept, dx):
    values, x = kept
    found = custom_linear_solve(lambda v: vjp(lambda y: matvec(y, *values), x)[1](v)[0], dx, transpose_solve, solve,
                                has_aux=has_aux)
    db = found[0] if has_aux else found
    if len(values) == 0:
        return [], db
    return list(vjp(lambda *v: matvec(x, *v), *values)[1](tree_map(np.negative, db))), db


_linear.defvjp(_linear_forward, _linear_backward)
