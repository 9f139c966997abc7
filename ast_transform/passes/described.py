# SPDX-License-Identifier: Apache-2.0
"""The facts of operands, and of the values that a call gives."""

import dataclasses
import functools
import inspect
import sys
import types
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.draw import STREAMS
from gradscribe.ast_transform.core.form import Const, Pack, Var
from gradscribe.ast_transform.core.kinds import (
    UNIT,
    Array,
    Length,
    Opaque,
    Sequence,
    Stream,
    Symbol,
    spell,
)
from gradscribe.ast_transform.core.rule import PACKAGES


class Unfit(Exception):
    """Operands that the function refuses; the words are NumPy's or ours, and so is the way out."""

    def __init__(self, reason, advice=""):
        super().__init__(reason)
        self.advice = advice


def is_array(value: Any) -> bool:
    """Whether a value means what arrays mean: other classes of NumPy's and of others have operators of their own."""
    return type(value) in (np.ndarray, np.memmap)


def dtype_within(array):
    """The dtype that NumPy computes with: results have the machine's order of bytes, whatever that of the operands."""
    return array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")


AS_ARRAY = "Make it an array before the call, without what its class adds: np.asarray(x)."


def no_array(fact: Any) -> Unfit:
    """What is raised where an array is needed, and this is none."""
    held = type(fact.value) if isinstance(fact, Opaque) else None
    becomes = hasattr(held, "__array__") or held in (memoryview, bytes, bytearray)
    return Unfit(f"an array is needed, {spell(fact)} is given",
                 AS_ARRAY if isinstance(fact.value, np.ndarray) else
                 "Make it one before the call: np.asarray(x)." if becomes else "")


def fact_of(node: Any) -> Any:
    """The fact of an operand."""
    if isinstance(node, Var):
        return node.fact
    if isinstance(node, Const):
        return constant_fact(node.value)
    if isinstance(node, Pack):
        return Sequence(node.kind, tuple(map(fact_of, node.items)), node.keys, node.cls)
    return Opaque(node)


def constant_fact(value: Any) -> Array | Stream | Opaque:
    if type(value) is bool or isinstance(value, (float, complex)) and type(value) in (float, complex):
        return Array(type(value))
    if type(value) is int:
        return Array(int, (), Length(None, value))
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return Array(value.dtype, (), Length(None, int(value)) if value.dtype.kind in "iu" else None)
    if is_array(value):
        return Array(dtype_within(value), tuple(UNIT if n == 1 else Length(Symbol("?", True, n)) for n in value.shape))
    if type(value) in STREAMS:
        return Stream(type(value))
    return Opaque(value)


def describe(value: Any, label: str = "x") -> Array | Sequence | Stream | Opaque:
    """The fact of an example argument: what a signature holds."""
    if type(value) in (bool, float, complex):
        return Array(type(value))
    if type(value) is int:
        return Array(int, (), Length(Symbol(label, False, value)))
    if isinstance(value, np.generic):
        length = Length(Symbol(label, False, int(value))) if value.dtype.kind in "iu" else None
        return Array(value.dtype, (), length)
    if is_array(value):
        return Array(dtype_within(value), tuple(
            UNIT if n == 1 else Length(Symbol(f"{label}.shape[{k}]", True, n)) for k, n in enumerate(value.shape)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Sequence("record", tuple(describe(v, f"{label}.{k}") for k, v in zip(value._fields, value)),
                        value._fields, type(value))
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return Sequence(type(value).__name__, tuple(describe(v, f"{label}[{k}]") for k, v in enumerate(value)))
    if type(value) is dict:
        return Sequence("dict", tuple(describe(v, f"{label}[{k!r}]") for k, v in value.items()), tuple(value))
    if type(value) in STREAMS:
        return Stream(type(value))
    if hasattr(type(value), "__dataclass_fields__"):
        names = tuple(f.name for f in dataclasses.fields(value))
        return Sequence("record", tuple(describe(getattr(value, k), f"{label}.{k}") for k in names), names, type(value))
    return Opaque(value)


@functools.cache
def unsaid(function: Any) -> set[str] | frozenset[str]:
    """The parameters of NumPy's for which None is not the same as nothing."""
    try:
        return {n for n, p in inspect.signature(function).parameters.items() if p.default is np._NoValue}
    except (TypeError, ValueError):
        return frozenset()


def is_of_a_library(value: Any) -> bool:
    """Whether a module, or a class, is Python's or of a library, whose attributes stay what they are."""
    if not isinstance(value, (types.ModuleType, type)):
        return False
    top = (value.__name__ if isinstance(value, types.ModuleType) else value.__module__).partition(".")[0]
    return top in PACKAGES or top in sys.stdlib_module_names and top != "__main__"
