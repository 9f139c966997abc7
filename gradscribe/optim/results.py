# SPDX-License-Identifier: Apache-2.0
"""The results of the solvers, and the check of their arguments."""
from typing import Any, NamedTuple

import numpy as np

__all__ = ["LinearInfo", "LinearResult", "OptimizeResult", "RootResult"]

CONVERGED, TOO_MANY, NO_STEP = 0, 1, 2


class OptimizeResult(NamedTuple):
    """The result of a minimiser.

    x, its value fun and gradient jac; grad_norm is the Euclidean norm of jac.  nit counts iterations, nfev evaluations
    of the function, nhev products with the Hessian.  success is status == 0; status 1: the maximum number of
    iterations; 2: no further step was found, for example because rounding hides the decrease.
    """
    x: Any
    fun: Any
    jac: Any
    grad_norm: Any
    nit: int
    nfev: int
    nhev: int
    status: int
    success: bool


class RootResult(NamedTuple):
    """The result of a root finder: x, the value fun there, the number of iterations, and whether it converged."""
    x: Any
    fun: Any
    nit: int
    success: bool


class LinearInfo(NamedTuple):
    """The outcome of a linear solver: products with the matrix, the norm of the residual, whether it converged."""
    products: int
    residual_norm: Any
    success: bool


class LinearResult(NamedTuple):
    """(x, info) of a linear solver."""
    x: Any
    info: LinearInfo


def need_vector(x: Any, name: str) -> None:
    """Raise ValueError unless x has one axis."""
    if np.ndim(x) != 1:
        raise ValueError(f"{name} must have one axis, not {np.ndim(x)}: see gs.tree_util.ravel_pytree")
