# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages as arguments, by DLPack or the array interface: taken as NumPy's without a copy.

Results are NumPy's arrays, which the other packages take by the same protocols: `torch.from_dlpack(result)`.  A class
that has `__array__` alone makes an array of itself and may mean something else by its operators and methods: it is not
taken, np.asarray(x) is the user's to write.

Source: the DLPack protocol, https://dmlc.github.io/dlpack/latest/python_spec.html; NumPy's array interface,
https://numpy.org/doc/stable/reference/arrays.interface.html.
"""
from typing import Any

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError

INTERFACES = ("__array_interface__", "__array_struct__")
FIELDS = "__dataclass_fields__"


class Foreign(Exception):
    """Raised where an argument is an array of another package."""


def is_foreign(value: Any) -> bool:
    """Whether an argument is, or a list, tuple or dict of it holds, another package's array."""
    if isinstance(value, (list, tuple)):
        return any(map(is_foreign, value))
    if isinstance(value, dict):
        return any(map(is_foreign, value.values()))
    kind = type(value)
    if kind.__module__ == "builtins" or isinstance(value, (np.ndarray, np.generic, type)):
        return False
    if hasattr(kind, "__dlpack__"):
        return True
    held = getattr(value, "__dict__", {})
    return not hasattr(kind, FIELDS) and any(hasattr(kind, name) or name in held for name in INTERFACES)


def as_numpy(value: Any) -> Any:
    """An argument with NumPy's arrays in the place of others', over the same memory."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(as_numpy, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(as_numpy, value))
    if isinstance(value, dict):
        return {k: as_numpy(v) for k, v in value.items()}
    if not is_foreign(value):
        return value
    try:
        return np.from_dlpack(value) if hasattr(type(value), "__dlpack__") else by_interface(value)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise KindError(f"NumPy does not take this {type(value).__name__}: {error}", None,
                        "Move it to the host's memory, and detach it from its own gradient.") from error


def by_interface(value: Any) -> np.ndarray:
    """The array that an object describes."""
    taken = np.asarray(value)
    if taken.dtype == object:
        raise TypeError("it describes no array of numbers")
    return taken
