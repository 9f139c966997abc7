# SPDX-License-Identifier: Apache-2.0
"""Conversion of arguments for emitted code, and of its results for the user.

Arrays of other packages that support DLPack or the array interface become NumPy arrays without a copy.  Results are
NumPy arrays, which other packages accept by the same protocols: `torch.from_dlpack(result)`.  An object with only
`__array__` is not accepted, since its operators and methods may not mean what an array's do: write np.asarray(x).

Objects of registered classes become named tuples of their children, and results are rebuilt as objects.  Arrays with
labels or units (gradscribe/containers.py) become their values; gradscribe/in_kind.py puts labels and units back.

Source: the DLPack protocol, https://dmlc.github.io/dlpack/latest/python_spec.html; NumPy's array interface,
https://numpy.org/doc/stable/reference/arrays.interface.html.
"""
import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.children import MADE, children_of, object_of, registered
from gradscribe.ast_transform.core.kinds import Sequence
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.containers import container_of

INTERFACES = ("__array_interface__", "__array_struct__")
FIELDS = "__dataclass_fields__"


class Foreign(Exception):
    """Raised if an argument is an array of another package, has labels or units, or is of a registered class."""


def is_foreign(value: Any) -> bool:
    """Whether an argument is or contains another package's array or an object of a registered class."""
    kind = type(value)
    if registered(kind) is not None or container_of(kind) is not None:
        return True
    if isinstance(value, (list, tuple)):
        return any(map(is_foreign, value))
    if isinstance(value, dict):
        return any(map(is_foreign, value.values()))
    if hasattr(kind, FIELDS):
        return any(is_foreign(getattr(value, name, None)) for name in getattr(kind, FIELDS))
    if kind.__module__ == "builtins" or isinstance(value, (np.ndarray, np.generic, type)):
        return False
    held = getattr(value, "__dict__", {})
    return hasattr(kind, "__dlpack__") or any(hasattr(kind, name) or name in held for name in INTERFACES)


def mapped(function: Callable, value: Any) -> Any:
    """A container with function(part) for each of its parts; any other value unchanged."""
    kind = type(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*map(function, value))
    if isinstance(value, (list, tuple)):
        return kind(map(function, value))
    if isinstance(value, dict):
        return {k: function(v) for k, v in value.items()}
    if not hasattr(kind, FIELDS):
        return value
    made = copy.copy(value)
    for name in getattr(kind, FIELDS):
        if hasattr(value, name):
            object.__setattr__(made, name, function(getattr(value, name)))
    return made


def as_numpy(value: Any) -> Any:
    """An argument with other packages' arrays as NumPy arrays over the same memory, and objects as their children."""
    if not is_foreign(value):
        return value
    if registered(type(value)) is not None:
        return mapped(as_numpy, children_of(value))
    container = container_of(type(value))
    if container is not None:
        return as_numpy(container.values(value))
    if isinstance(value, (list, tuple, dict)) or hasattr(type(value), FIELDS):
        return mapped(as_numpy, value)
    try:
        return np.from_dlpack(value) if hasattr(type(value), "__dlpack__") else by_interface(value)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise KindError(f"NumPy does not take this {type(value).__name__}: {error}", None,
                        "Move it to the host's memory, and detach it from its own gradient.") from error


def by_interface(value: Any) -> np.ndarray:
    """The array that an object describes by the array interface."""
    taken = np.asarray(value)
    if taken.dtype == object:
        raise TypeError("it describes no array of numbers")
    return taken


def with_objects(value: Any) -> Any:
    """A value with objects rebuilt from their children."""
    made = mapped(with_objects, value)
    return object_of(made) if type(value) in MADE else made


def holds_children(fact: Any) -> bool:
    """Whether a fact is or contains that of an object's children."""
    return isinstance(fact, Sequence) and (fact.cls in MADE or any(map(holds_children, fact.elements)))


def giving_objects(function: Callable, fact: Any) -> Callable:
    """The function with objects rebuilt in its results, as their fact says."""
    if not holds_children(fact):
        return function

    @functools.wraps(function)
    def whole(*args):
        return with_objects(function(*args))
    return whole
