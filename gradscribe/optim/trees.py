# SPDX-License-Identifier: Apache-2.0
"""Helpers for update rules on trees of arrays."""
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["abs_sq", "global_norm", "map_several", "tree_zeros_like"]


def map_several(f: Callable, count: int, tree: Any, *rest: Any) -> tuple[Any, ...]:
    """tree_map for an f with count results: a tuple of trees.

    All results for a leaf are computed before the next leaf, so that compiled code reads each array once.

    >>> map_several(lambda g, m: (g + m, g - m), 2, [1.0, (2.0,)], [10.0, (20.0,)])
    ([11.0, (22.0,)], [-9.0, (-18.0,)])
    """
    leaves, treedef = tree_flatten(tree)
    others = [treedef.flatten_up_to(other) for other in rest]
    results = [f(*parts) for parts in zip(leaves, *others)]
    return tuple([tree_unflatten(treedef, [result[k] for result in results]) for k in range(count)])


def tree_zeros_like(tree: Any) -> Any:
    """Zeros in the shapes and dtypes of the leaves.

    >>> tree_zeros_like({"w": np.ones(2)})
    {'w': array([0., 0.])}
    """
    return tree_map(np.zeros_like, tree)


def abs_sq(x: Any) -> Any:
    """The square of the absolute value, real also for complex x.

    >>> abs_sq(np.array([3.0 + 4.0j]))
    array([25.])
    """
    if np.issubdtype(np.result_type(x), np.complexfloating):
        return np.real(x) * np.real(x) + np.imag(x) * np.imag(x)
    return x * x


def global_norm(updates: Any) -> Any:
    """The Euclidean norm of all entries of a tree together.

    >>> float(global_norm({"w": np.array([3.0, 0.0]), "b": np.array(4.0)}))
    5.0
    """
    return np.sqrt(sum([np.sum(abs_sq(leaf)) for leaf in tree_leaves(updates)]))
