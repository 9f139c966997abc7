# SPDX-License-Identifier: Apache-2.0
"""Classes registered as tree nodes, with their own flatten and unflatten functions.

Emitted code gets an argument of such a class as a named tuple of its children.  The data that the flatten function
returns beside the children belongs to the class of that tuple, and so to the kind of the argument.  The user's function
gets the object that the unflatten function builds; an object that it returns is flattened again.
"""
import collections
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.source.diagnose import KindError


class Registered:
    """How objects of a class are flattened and rebuilt: flatten(tree) -> (children, data), unflatten(data, children).

    keys: a function that returns the keys of an object's children; fields: the names of the children, if all objects
    have the same; whole: whether these are all the fields of a dataclass, which then needs no conversion.
    """

    def __init__(self, flatten: Callable, unflatten: Callable, keys: Callable | None = None,
                 fields: tuple[str, ...] | None = None, whole: bool = False):
        self.flatten, self.unflatten, self.keys, self.fields, self.whole = flatten, unflatten, keys, fields, whole


REGISTRY: dict[type, Registered] = {}
MADE: dict[type, tuple[type, Any]] = {}         # class of children -> (registered class, data)
_CLASSES: dict[tuple, type] = {}


def registered(cls: type) -> Registered | None:
    """The record of a class whose objects need conversion; None for others."""
    found = REGISTRY.get(cls)
    return None if found is None or found.whole else found


def children_class(cls: type, data: Any, count: int) -> type:
    """The class of named tuples that represents objects of a class with this data."""
    key = (cls, REGISTRY[cls], _key(data, cls), count)
    made = _CLASSES.get(key)
    if made is None:
        fields = REGISTRY[cls].fields or [f"child_{k}" for k in range(count)]
        made = _CLASSES[key] = collections.namedtuple(f"{cls.__name__}Children", fields, rename=True)
        MADE[made] = cls, _kept(data)
    return made


def name_of(cls: type) -> str:
    """The name of a class in messages."""
    return MADE.get(cls, (cls,))[0].__name__


def children_of(value: Any) -> tuple:
    """An object of a registered class as a named tuple of its children."""
    children, data = REGISTRY[type(value)].flatten(value)
    children = tuple(children)
    return children_class(type(value), data, len(children))(*children)


def object_of(value: tuple) -> Any:
    """The object that a named tuple of children represents."""
    cls, data = MADE[type(value)]
    return REGISTRY[cls].unflatten(_kept(data), tuple(value))


def _key(data, cls):
    """A hashable key of data; lists and dicts compare by their contents."""
    kind = type(data)
    if kind in (tuple, list):
        return (kind, *(_key(d, cls) for d in data))
    if kind is dict:
        return (kind, *((_key(k, cls), _key(v, cls)) for k, v in data.items()))
    if kind is float:
        return kind, data.hex()
    try:
        hash(data)
    except (TypeError, ValueError):
        raise KindError(f"what the flatten function of {cls.__name__} gives beside the children belongs to the kind of "
                        f"the argument, and a {kind.__name__} cannot", None, "Make it one of the children.") from None
    return kind, data


def _kept(data):
    """A copy of data that later changes do not reach."""
    kind = type(data)
    if kind in (tuple, list):
        return kind(map(_kept, data))
    return {k: _kept(v) for k, v in data.items()} if kind is dict else data
