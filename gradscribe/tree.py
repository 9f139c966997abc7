# SPDX-License-Identifier: Apache-2.0
"""gs.tree: the functions of gs.tree_util under short names, as in jax.tree."""
import dataclasses as _dataclasses

from gradscribe.jax_names import missing as _missing
from gradscribe.tree_util import tree_all as all
from gradscribe.tree_util import tree_broadcast as broadcast
from gradscribe.tree_util import tree_flatten as flatten
from gradscribe.tree_util import tree_flatten_with_path as flatten_with_path
from gradscribe.tree_util import tree_leaves as leaves
from gradscribe.tree_util import tree_leaves_with_path as leaves_with_path
from gradscribe.tree_util import tree_map as map
from gradscribe.tree_util import tree_map_with_path as map_with_path
from gradscribe.tree_util import tree_reduce as reduce
from gradscribe.tree_util import tree_reduce_associative as reduce_associative
from gradscribe.tree_util import tree_structure as structure
from gradscribe.tree_util import tree_transpose as transpose
from gradscribe.tree_util import tree_unflatten as unflatten

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path",
           "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten"]


def static(**options):
    """A field of a dataclass that is part of its objects' structure, not a child; options: those of dataclasses.field.

    >>> import dataclasses, gradscribe as gs
    >>> @gs.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = gs.tree.static(default="first")
    >>> gs.tree.leaves(Layer(1.5))
    [1.5]
    """
    metadata = {"static": True, **(options.pop("metadata", None) or {})}
    return _dataclasses.field(metadata=metadata, **options)


def __getattr__(name):
    raise _missing(__name__, name)
