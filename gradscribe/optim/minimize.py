# SPDX-License-Identifier: Apache-2.0
"""The front door of the minimisers."""
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
    """Minimises fun(x, *args) from the vector x0 by the method of that name: BFGS, L-BFGS, Newton-CG, gradient-descent.

    tol is the norm of the gradient at which it ends; options are the other keywords of the method's function.
    ValueError for an unknown method, TypeError for an unknown option and for args that is no tuple.

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
