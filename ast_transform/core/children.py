# SPDX-License-Identifier: Apache-2.0
"""Classes that are registered with functions of their own to be taken apart: what stands for their objects.

An argument of such a class is given to emitted code as a named tuple of its children; what its flatten function gives
beside them, its data, belongs to the tuple's class, and so to the kind of the argument.  The function that is read gets
the object that the unflatten function makes of them, and an object that it returns is taken apart again.
"""
import collections
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.source.diagnose import KindError


class Registered:
    """How a class is taken apart and put together: flatten(tree) -> (children, data), unflatten(data, children).

    keys: a function that gives the keys of an object's children; fields: the names of the children, where all objects
    have the same; whole: whether these are all the fields of a dataclass, which is then known as it is.
    """

    def __init__(self, flatten: Callable, unflatten: Callable, keys: Callable | None = None,
                 fields: tuple[str, ...] | None = None, whole: bool = False):
        self.flatten, self.unflatten, self.keys, self.fields, self.whole = flatten, unflatten, keys, fields, whole


REGISTRY: dict[type, Registered] = {}
MADE: dict[type, tuple[type, Any]] = {}         # by class of children: the class that they are of, and its data
_CLASSES: dict[tuple, type] = {}


def registered(cls: type) -> Registered | None:
    """The record of a class whose objects are taken apart by its own function."""
    found = REGISTRY.get(cls)
    return None if found is None or found.whole else found


def children_class(cls: type, data: Any, count: int) -> type:
    """The class of named tuples that stands for the objects of a class with these data."""
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
    """The object that a named tuple of children stands for."""
    cls, data = MADE[type(value)]
    return REGISTRY[cls].unflatten(_kept(data), tuple(value))


def _key(data, cls):
    """What equal data share: lists and dicts count by what they hold."""
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
    """Data that nobody changes afterwards."""
    kind = type(data)
    if kind in (tuple, list):
        return kind(map(_kept, data))
    return {k: _kept(v) for k, v in data.items()} if kind is dict else data
