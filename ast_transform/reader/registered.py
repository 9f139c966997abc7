# SPDX-License-Identifier: Apache-2.0
"""Objects of registered classes: an object comes in and its children come out, or the reverse.

Objects are built from their children at the entry of a function, and flattened at its exit.  This reads the functions
with which the class was registered, as if the user's function called them.
"""
from typing import Any

from gradscribe.ast_transform.core.children import MADE, REGISTRY, children_class, registered
from gradscribe.ast_transform.core.kinds import Sequence
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.carries import argument_parts
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.operands import python_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Part, Struct
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError


def stands_for_objects(value) -> bool:
    """Whether a value of the reader, or a fact, is or contains the children of a registered object."""
    if isinstance(value, Part):
        value = value.fact
    if isinstance(value, Struct):
        return value.cls in MADE or any(map(stands_for_objects, value.items))
    return isinstance(value, Sequence) and (value.cls in MADE or any(map(stands_for_objects, value.elements)))


def as_objects(reader: Reader, value: Any) -> Any:
    """A value as the user's function sees it: with objects instead of their children."""
    return unflattened(reader, argument_parts(reader, value)) if stands_for_objects(value) else value


def as_seen_by_caller(reader: Reader, value: Any) -> Any:
    """The result of a transformation as the calling function sees it."""
    return as_objects(reader, value) if reader.environment.stack else value


def unflattened(reader: Reader, value):
    if not stands_for_objects(value):
        return value
    items = [unflattened(reader, i) for i in value.items]
    if value.cls in MADE:
        cls, data = MADE[value.cls]
        given = [lift(reader, data, "data"), Struct("tuple", items)]
        made = settle(reader, dispatch.call_known(reader, REGISTRY[cls].unflatten, given, {}, None))
    else:
        made = Struct(value.kind, items, value.keys, value.cls)
    if isinstance(made, Struct):
        reader.containers.callers.add(made.mark)
    return made


def as_children(reader: Reader, value: Any) -> Any:
    """A value as emitted code has it: with children instead of their objects."""
    if not isinstance(value, Struct):
        return value
    if value.kind in ("object", "record") and registered(value.cls) is not None:
        return flattened(reader, value)
    items = [as_children(reader, i) for i in value.items]
    if all(a is b for a, b in zip(items, value.items)):
        return value
    return Struct(value.kind, items, value.keys, value.cls)


def flattened(reader: Reader, value):
    name = value.cls.__name__
    pair = settle(reader, dispatch.call_known(reader, REGISTRY[value.cls].flatten, [value], {}, None))
    if not isinstance(pair, Struct) or pair.kind != "tuple" or len(pair.items) != 2:
        raise KindError(f"the flatten function of {name} gives {spelled_value(reader, pair)}", reader.build.origin,
                        "Return (children, data).")
    try:
        data = python_value(reader, pair.items[1], None)
    except LanguageError:
        raise KindError(f"what the flatten function of {name} gives beside the children is known only when running",
                        reader.build.origin, "Make it one of the children.") from None
    items = [as_children(reader, settle(reader, i)) for i in dispatch.elements_of(reader, pair.items[0], None)]
    cls: Any = children_class(value.cls, data, len(items))
    return Struct("record", items, cls._fields, cls)
