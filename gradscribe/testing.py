# SPDX-License-Identifier: Apache-2.0
"""gs.testing: derivatives compared with finite differences."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe.api import jvp, vjp
from gradscribe.frames import public
from gradscribe.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten


class DerivativeError(AssertionError):
    """A derivative does not agree with finite differences."""


def numerical_jvp(f: Callable, primals: Sequence[Any], tangents: Sequence[Any], eps: float = 1e-6) -> Any:
    """The directional derivative of f by central differences: (f(x + h v) - f(x - h v)) / 2h.

    >>> round(float(numerical_jvp(lambda x: x ** 3, (2.0,), (1.0,))), 6)
    12.0
    """
    def moved(h):
        return f(*tree_map(lambda x, v: x + np.asarray(h * v, np.result_type(x)), tuple(primals), tuple(tangents)))
    return tree_map(lambda a, b: (a - b) / (2 * eps), moved(eps), moved(-eps))


@public
def check_jvp(f: Callable, args: Sequence[Any], atol: float | None = None, rtol: float | None = None,
              eps: float | None = None, seed: int = 0) -> None:
    """Compare gs.jvp of f with central differences in a random direction.  DerivativeError if they differ."""
    atol, rtol, eps = _tolerances(args, atol, rtol, eps)
    tangents = _random_like(tuple(args), np.random.default_rng(seed))
    y, y_dot = jvp(f, tuple(args), tangents)
    _close(y, f(*args), 1e-5 if eps > 1e-4 else 1e-12, 1e-5 if eps > 1e-4 else 1e-12, "the value beside the tangent")
    _close(y_dot, numerical_jvp(f, args, tangents, eps), atol, rtol, "the tangent")


@public
def check_vjp(f: Callable, args: Sequence[Any], atol: float | None = None, rtol: float | None = None,
              eps: float | None = None, seed: int = 0) -> None:
    """Compare gs.vjp of f with central differences: <dy, J v> = <J' dy, v>.  DerivativeError if they differ."""
    atol, rtol, eps = _tolerances(args, atol, rtol, eps)
    rng = np.random.default_rng(seed)
    tangents = _random_like(tuple(args), rng)
    y, pullback = vjp(f, *args)
    dy = _random_like(y, rng)
    adjoints = pullback(dy)
    ahead = numerical_jvp(f, args, tangents, eps)
    _close(_inner(adjoints, tangents), _inner(dy, ahead), atol, rtol, "the adjoint, along a direction,")


@public
def check_grads(f: Callable, args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"),
                atol: float | None = None, rtol: float | None = None, eps: float | None = None, seed: int = 0) -> None:
    """Compare the derivatives of f up to an order with central differences in random directions.

    args: the arguments, trees of floating-point numbers and arrays.  modes: "fwd" for gs.jvp, "rev" for gs.vjp; an
    order above one differentiates these again, in each combination.  Tolerances default to 1e-6 in double precision
    and 2e-2 in single.  Results and arguments must be real.

    Raises DerivativeError, an AssertionError, with the two values that differ.

    >>> check_grads(lambda x: np.sum(np.sin(x) * x), (np.array([0.3, 1.2]),), order=2)
    """
    if not set(modes) <= {"fwd", "rev"} or order < 1:
        raise ValueError("modes are 'fwd' and 'rev', and the order is one at least")
    args = tuple(args)
    atol_, rtol_, eps_ = _tolerances(args, atol, rtol, eps)
    rng = np.random.default_rng(seed)
    if "fwd" in modes:
        check_jvp(f, args, atol_, rtol_, eps_, seed)
        if order > 1:
            tangents = _random_like(args, rng)
            check_grads(lambda *xs: jvp(f, xs, tangents)[1], args, order - 1, modes, atol, rtol, eps, seed + 1)
    if "rev" in modes:
        check_vjp(f, args, atol_, rtol_, eps_, seed)
        if order > 1:
            dy = _random_like(f(*args), rng)
            check_grads(lambda *xs: vjp(f, *xs)[1](dy), args, order - 1, modes, atol, rtol, eps, seed + 2)


def _tolerances(args, atol, rtol, eps):
    leaves = tree_leaves(tuple(args))
    if any(np.result_type(leaf).kind != "f" for leaf in leaves):
        raise ValueError("derivatives are checked in real floating-point arguments")
    single = any(np.result_type(leaf).itemsize < 8 for leaf in leaves)
    tolerance = 2e-2 if single else 1e-6
    return (tolerance if atol is None else atol, tolerance if rtol is None else rtol,
            (1e-2 if single else 1e-6) if eps is None else eps)


def _random_like(tree, rng):
    leaves, structure = tree_flatten(tree)
    made = [np.asarray(rng.standard_normal(np.shape(leaf)), np.result_type(leaf))[()] for leaf in leaves]
    return tree_unflatten(structure, [float(m) if isinstance(leaf, float) else m for m, leaf in zip(made, leaves)])


def _inner(a, b):
    return sum(float(np.vdot(x, y)) for x, y in zip(tree_leaves(a), tree_leaves(b)))


def _close(found, expected, atol, rtol, what):
    for x, y in zip(tree_leaves(found), tree_leaves(expected)):
        if np.shape(x) != np.shape(y) or not np.allclose(x, y, rtol, atol):
            raise DerivativeError(f"{what} is {np.asarray(x)}, by differences {np.asarray(y)}")
