# SPDX-License-Identifier: Apache-2.0
"""Functions with their own rule for batches, under the names of jax.custom_batching."""
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.custom import _Custom
from gradscribe.jax_names import missing

__all__ = ["custom_vmap", "sequential_vmap"]


class custom_vmap(_Custom):
    """A function with its own rule for batches, which gs.vmap uses.

    def_vmap(rule) sets the rule: rule(axis_size, in_batched, *args) -> (values, out_batched).  in_batched is a list
    with True or False for each argument, or a container of these with the structure of the argument; what is batched
    has the examples along axis 0.  out_batched says the same of the values.  The rule's result is not checked against
    the function.

    Forward mode differentiates the rule; reverse mode raises an error unless the function is wrapped in gs.custom_vjp.

    Raises KindError, a TypeError, under gs.vmap if the rule does not fit; TransformError if the rule cannot be read.

    >>> import numpy as np, gradscribe as gs
    >>> @gs.custom_batching.custom_vmap
    ... def dot(a, b):
    ...     return np.sum(a * b)
    >>> @dot.def_vmap
    ... def rule(axis_size, in_batched, a, b):
    ...     return a @ b if in_batched[0] else b @ a, True
    >>> gs.vmap(dot, in_axes=(0, None))(np.ones((2, 3)), np.arange(3.0))
    array([3., 3.])
    """
    mode, parts = "vmap", ("vmap_rule",)
    vmap_rule = None

    def __init__(self, fun: Callable):
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Set the rule; usable as a decorator."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def check(self, place):
        """Raise KindError if no rule is set."""
        if self.vmap_rule is None:
            raise KindError(f"{self.__name__} has no rule yet", place, "Call its def_vmap(rule).")


class sequential_vmap(_Custom):
    """A function that gs.vmap calls in a loop, one example at a time.

    >>> import numpy as np, gradscribe as gs
    >>> @gs.custom_batching.sequential_vmap
    ... def f(x):
    ...     return x + 1.0
    >>> gs.vmap(f)(np.arange(3.0))
    array([1., 2., 3.])
    """
    mode, parts = "each", ()

    def __init__(self, fun: Callable):
        super().__init__(fun)

    def check(self, place):
        """It needs no rule."""


def __getattr__(name):
    raise missing(__name__, name)
