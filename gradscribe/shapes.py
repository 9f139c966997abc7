# SPDX-License-Identifier: Apache-2.0
"""gs.eval_shape: the shapes and dtypes of results, without computing them."""
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Function, Pack
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence
from gradscribe.ast_transform.passes.described import describe, fact_of
from gradscribe.ast_transform.source.diagnose import ShapeError
from gradscribe.ast_transform.transforms import identity
from gradscribe.frames import public
from gradscribe.given import as_numpy, with_objects
from gradscribe.transformed import Transformed
from gradscribe.tree_util import tree_map


class ShapeDtypeStruct:
    """A shape and a dtype, in the place of an array.

    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self):
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


def stand_in(leaf: Any) -> Any:
    """A broadcast array of the leaf's shape and dtype, which takes no memory."""
    if isinstance(leaf, np.ndarray | np.generic) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    zero = np.zeros((), leaf.dtype)
    return np.broadcast_to(zero, leaf.shape) if leaf.shape else zero[()]


def normal_form_for(fun: Callable, args: tuple, kwargs: Mapping[str, Any]) -> Function:
    """The finished normal form of a function for such arguments; its lengths have the sizes of the arguments."""
    made = Transformed(fun, identity())
    made.__name__ = getattr(fun, "__name__", "function")
    args, kwargs = tree_map(stand_in, as_numpy(tuple(args))), tree_map(stand_in, as_numpy(dict(kwargs)))
    names = made.parameter_names(len(args))
    return made.normal_form(names, [describe(a, n) for a, n in zip(args, names)],
                            {k: describe(v, k) for k, v in kwargs.items()}, nested=False)[0]


@public
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of fun(*args, **kwargs), in the structure of the result; nothing is computed.

    Arguments are arrays, numbers, ShapeDtypeStructs or other objects with a shape and a dtype, or trees of them.
    Raises ShapeError if a length depends on values.

    >>> eval_shape(lambda A, x: {"y": A @ x, "n": np.sum(x)}, ShapeDtypeStruct((3, 4), float), np.ones(4))
    {'y': ShapeDtypeStruct(shape=(3,), dtype=float64), 'n': ShapeDtypeStruct(shape=(), dtype=float64)}
    """
    return with_objects(_shapes(normal_form_for(fun, args, kwargs).result))


def _shapes(node):
    if isinstance(node, Pack):
        return _put_together(node.kind, [_shapes(i) for i in node.items], node.keys, node.cls)
    if isinstance(node, Const) and not isinstance(node.value, (bool, int, float, complex, np.ndarray, np.generic)):
        return node.value
    return _of_fact(fact_of(node))


def _of_fact(fact):
    if isinstance(fact, Sequence):
        return _put_together(fact.kind, [_of_fact(e) for e in fact.elements], fact.keys, fact.cls)
    if isinstance(fact, Listed) and fact.dims[0].size is not None:
        return [_of_fact(Array(fact.dtype, fact.dims[1:])) for _ in range(fact.dims[0].size)]
    if not isinstance(fact, Array):
        return None                     # a string or a generator has no shape
    sizes = [d.size for d in fact.dims]
    if None in sizes:
        raise ShapeError("a length of the result depends on values, not on shapes alone", None, "Run the function.")
    return ShapeDtypeStruct(sizes, fact.dtype)


def _put_together(kind, items, keys, cls):
    if kind == "dict":
        return dict(zip(keys, items))
    if kind == "record":
        return cls(**dict(zip(keys, items)))
    return tuple(items) if kind == "tuple" else items
