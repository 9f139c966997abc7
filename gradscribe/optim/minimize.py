# SPDX-License-Identifier: Apache-2.0
"""gs.optim.minimize: the minimisers under one function."""
from collections.abc import Callable, Mapping
from typing import Any

from gradscribe.optim.newton import gradient_descent, newton_cg
from gradscribe.optim.quasi_newton import bfgs, lbfgs
from gradscribe.optim.results import OptimizeResult

__all__ = ["minimize"]

METHODS: dict[str, Callable] = {"bfgs": bfgs, "l-bfgs": lbfgs, "newton-cg": newton_cg,
                                "gradient-descent": gradient_descent}


def minimize(fun: Callable, x0: Any, args: tuple = (), *, method: str = "BFGS", tol: float | None = None,
             options: Mapping[str, Any] | None = None) -> OptimizeResult:
    """Minimise fun(x, *args) from the vector x0 by a method: "BFGS", "L-BFGS", "Newton-CG" or "gradient-descent".

    tol: the norm of the gradient at which to stop.  options: further keywords of the method's function.
    Raises ValueError for an unknown method, TypeError for an unknown option and for args that are not a tuple.

    >>> import numpy as np
    >>> found = minimize(lambda x, a: np.sum((x - a) ** 2), np.zeros(2), (3.0,), method="L-BFGS", tol=1e-8)
    >>> found.x.round(6), found.success
    (array([3., 3.]), True)
    """
    if not isinstance(args, tuple):
        raise TypeError("args must be a tuple")
    name = method.lower()
    if name not in METHODS:
        raise ValueError(f"method is BFGS, L-BFGS, Newton-CG or gradient-descent, not {method!r}")
    words = {} if options is None else dict(options)
    if tol is not None:
        words["gtol"] = tol
    return METHODS[name](fun, x0, args, **words)
