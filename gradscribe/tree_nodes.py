# SPDX-License-Identifier: Apache-2.0
"""The containers of gs.tree_util: how each is flattened, and the registry of container classes."""
import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from gradscribe.ast_transform.core.children import REGISTRY, Registered

Class = TypeVar("Class", bound=type[Any])
BUILT_IN = (list, tuple, dict, type(None), collections.OrderedDict, collections.defaultdict)


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """An index into a list or tuple."""
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """A key of a dict."""
    key: Hashable

    def __str__(self):
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple or of a registered class."""
    name: str

    def __str__(self):
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The number of a child, for a registered class without keys."""
    key: int

    def __str__(self):
        return f"[<flat index {self.key!r}>]"


def _sorted(keys):
    """The keys of a dict in the order of its children."""
    try:
        return sorted(keys)
    except TypeError as error:
        raise ValueError(f"the keys of a dict cannot be sorted, so its children have no order: {error}") from None


def apart(tree: Any) -> tuple[type, Any, list] | None:
    """(class, auxiliary data, children) of a container; None for a leaf."""
    kind = type(tree)
    if tree is None:
        return kind, None, []
    if kind is list or kind is tuple:
        return kind, None, list(tree)
    if kind is dict:
        keys = _sorted(tree)
        return kind, keys, [tree[key] for key in keys]
    if kind is collections.OrderedDict:
        return kind, list(tree), list(tree.values())
    if kind is collections.defaultdict:
        keys = _sorted(tree)
        return kind, (tree.default_factory, keys), [tree[key] for key in keys]
    if kind in REGISTRY:
        taken = REGISTRY[kind].flatten(tree)
        if not isinstance(taken, (tuple, list)) or len(taken) != 2 or not np.iterable(taken[0]):
            raise ValueError(f"the flatten function of {kind.__name__} must return (children, data), where children "
                             f"can be gone through; it returns {type(taken).__name__}")
        return kind, taken[1], list(taken[0])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind, kind, list(tree)
    return None


def together(kind: type, data: Any, children: list) -> Any:
    """The container from its class, auxiliary data and children: the inverse of apart."""
    if kind is type(None):
        return None
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind is dict:
        return dict(zip(data, children))
    if kind is collections.OrderedDict:
        return collections.OrderedDict(zip(data, children))
    if kind is collections.defaultdict:
        return collections.defaultdict(data[0], zip(data[1], children))
    if kind in REGISTRY:
        return REGISTRY[kind].unflatten(data, tuple(children))
    return kind(*children)


def keys_of(tree: Any, taken: Any) -> Iterable:
    """The keys of the children of a container."""
    kind, data, children = taken
    if kind is dict or kind is collections.OrderedDict:
        return [DictKey(key) for key in data]
    if kind is collections.defaultdict:
        return [DictKey(key) for key in data[1]]
    if kind in REGISTRY:
        named = REGISTRY[kind].keys
        return [FlattenedIndexKey(k) for k in range(len(children))] if named is None else named(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [GetAttrKey(name) for name in tree._fields]
    return [SequenceKey(k) for k in range(len(children))]


def register_pytree_node(nodetype: type, flatten_func: Callable, unflatten_func: Callable,
                         flatten_with_keys_func: Callable | None = None) -> None:
    """Register a class as a container: flatten_func(tree) -> (children, data), unflatten_func(data, children) -> tree.

    Its objects can then be arguments and results of transformed functions; the compiler reads both functions.  The
    data are static: other data need another version.  Raises ValueError if the class is registered already.

    >>> class Pair:
    ...     def __init__(self, left, right): self.left, self.right = left, right
    >>> register_pytree_node(Pair, lambda p: ((p.left, p.right), None), lambda _, children: Pair(*children))
    >>> apart(Pair(1, 2))[2]
    [1, 2]
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"a class is needed, not {nodetype!r}")
    if nodetype in REGISTRY or nodetype in BUILT_IN:
        raise ValueError(f"{nodetype.__name__} is registered already")
    keys = None
    if flatten_with_keys_func is not None:
        def keys(tree):
            return [key for key, _ in flatten_with_keys_func(tree)[0]]
    REGISTRY[nodetype] = Registered(flatten_func, unflatten_func, keys)


def register_pytree_with_keys(nodetype: type, flatten_with_keys: Callable, unflatten_func: Callable,
                              flatten_func: Callable | None = None) -> None:
    """As register_pytree_node; flatten_with_keys(tree) -> (((key, child), ...), data)."""
    def flatten(tree):
        pairs, data = flatten_with_keys(tree)
        return [child for _, child in pairs], data
    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Register a class with tree_flatten(self) -> (children, data) and tree_unflatten(cls, data, children)."""
    register_pytree_node(cls, cls.tree_flatten, cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Register a class with tree_flatten_with_keys and tree_unflatten."""
    register_pytree_with_keys(cls, cls.tree_flatten_with_keys, cls.tree_unflatten)
    return cls


def register_static(cls: type) -> type:
    """Register a class without children, whose objects are part of the structure."""
    register_pytree_node(cls, lambda tree: ((), tree), lambda data, children: data)
    return cls


def register_dataclass(nodetype: type, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()) -> type:
    """Register a dataclass as a container: data_fields are children, meta_fields are part of the structure.

    Without these lists, fields with dataclasses.field(metadata=dict(static=True)) are part of the structure.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = dataclasses.field(metadata={"static": True})
    >>> apart(Layer(1.5, "first"))[1:]
    (('first',), [1.5])
    """
    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError("give both data_fields and meta_fields, or neither")
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"{nodetype.__name__} is not a dataclass: give data_fields and meta_fields")
        fields = [field for field in dataclasses.fields(nodetype) if field.init]
        meta_fields = tuple(field.name for field in fields if field.metadata.get("static"))
        data_fields = tuple(field.name for field in fields if not field.metadata.get("static"))
    data, meta = tuple(data_fields), tuple(meta_fields)
    both = [name for name in data if name in meta]
    if both:
        raise ValueError(f"data_fields and meta_fields both name {', '.join(both)}: a field is a child, or part of the "
                         "structure")
    if dataclasses.is_dataclass(nodetype):
        missing = {field.name for field in dataclasses.fields(nodetype) if field.init} ^ {*data, *meta, *drop_fields}
        if missing:
            raise ValueError(f"data_fields and meta_fields must name all fields, once: {', '.join(sorted(missing))}")

    def flatten(tree):
        return [getattr(tree, name) for name in data], tuple([getattr(tree, name) for name in meta])

    def unflatten(kept, children):
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, kept)))

    def with_keys(tree):
        return [(GetAttrKey(name), getattr(tree, name)) for name in data], None
    register_pytree_node(nodetype, flatten, unflatten, with_keys)
    made = dataclasses.is_dataclass(nodetype) and data == tuple(field.name for field in dataclasses.fields(nodetype))
    REGISTRY[nodetype].fields, REGISTRY[nodetype].whole = data, made
    return nodetype
