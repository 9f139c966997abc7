# SPDX-License-Identifier: Apache-2.0
"""Custom derivatives and the arguments of their rules, under the names of jax.custom_derivatives."""
from typing import Any

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.custom import custom_gradient, custom_jvp, custom_vjp
from gradscribe.frames import public
from gradscribe.jax_names import missing
from gradscribe.runtime.derivatives import CustomVJPPrimal, SymbolicZero, closure_convert
from gradscribe.tree_util import tree_map

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
           "custom_vjp_primal_tree_values", "zero_from_primal"]


@public
def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """A tree of CustomVJPPrimal, as the forward function of a rule with symbolic_zeros gets it, as a tree of values.

    Raises KindError, a TypeError, for a leaf that is not a CustomVJPPrimal.

    >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(1.0, True)})
    {'a': 1.0}
    """
    def unpack(leaf):
        if type(leaf) is not CustomVJPPrimal:
            raise KindError(f"{type(leaf).__name__} is not a CustomVJPPrimal", None,
                            "Give it what the forward half of a rule with symbolic_zeros=True is given.")
        return leaf.value
    return tree_map(unpack, tree)


def zero_from_primal(x: Any, symbolic_zeros: bool = False) -> Any:
    """A zero tangent for a value: symbolic, or an array of zeros.

    >>> zero_from_primal(np.ones(2)), zero_from_primal(np.ones(2), symbolic_zeros=True).shape
    (array([0., 0.]), (2,))
    """
    if symbolic_zeros:
        return SymbolicZero(np.shape(x), np.result_type(x))
    return np.zeros_like(x)


def __getattr__(name):
    raise missing(__name__, name)
