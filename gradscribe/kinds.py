# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments (dtypes, shapes, structure) as text, and example arguments of such kinds.

>>> kinds = spelled((np.ones((4, 3)), np.ones(4), 2.0, [1, np.float32(1)]), {"power": 2}, {"power"})
>>> kinds
'float64[n, 3], float64[n], float, [int, float32], power=2'
>>> args, words = example(kinds)
>>> args[0].shape, args[2], words
((11, 3), 0.5, {'power': 2})
"""
import ast
import dataclasses
import functools
import importlib
import math
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.kinds import Array, Opaque, Sequence
from gradscribe.ast_transform.source.diagnose import KindError

SIZES = (11, 13, 17, 19, 23, 29, 31)    # example lengths: all different, and long enough to be indexed
LETTERS = "nmklpqr"
PYTHON = {"float": 0.5, "int": 3, "bool": True, "complex": 0.5 + 0.25j}
DTYPES = ("float64", "float32", "int64", "int32", "complex128", "complex64", "bool_", "int8", "uint8", "int16")
SHORT = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "c128": "complex128", "c64": "complex64",
         "i8": "int8", "u8": "uint8", "i16": "int16", "bool": "bool_"}       # as JAX prints them


def spelled(args: tuple, words: dict[str, Any], known: set) -> str:
    """The kinds of arguments as text; known: positions and names of those that the text gives by value."""
    letters: dict[int, str] = {}

    def one(value, told):
        if told or value is None or isinstance(value, (str, slice, types.EllipsisType)):
            return repr(value)
        if isinstance(value, (bool, int, float, complex)):
            return type(value).__name__
        if isinstance(value, (np.ndarray, np.generic)):
            dtype = "bool_" if value.dtype == np.bool_ else value.dtype.name
            if dtype not in DTYPES:
                raise KindError(f"arrays of {dtype} have no name in a file's heading")
            sizes = [str(n) if n < 4 else letters.setdefault(n, LETTERS[len(letters) % len(LETTERS)])
                     for n in value.shape]
            return f"{dtype}[{', '.join(sizes)}]" if sizes else dtype
        if type(value) in (list, tuple):
            items = ", ".join(one(v, False) for v in value)
            return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
        if type(value) is dict:
            return "{" + ", ".join(f"{k!r}: {one(v, False)}" for k, v in value.items()) + "}"
        if names_of(value) is not None and _is_found(type(value)):
            parts = ", ".join(f"{n}={one(getattr(value, n), False)}" for n in names_of(value))
            return f"{type(value).__module__}.{type(value).__qualname__}({parts})"
        raise KindError(f"an argument of type {type(value).__name__} has no name in a file's heading")
    return ", ".join([*(one(a, k in known) for k, a in enumerate(args)),
                      *(f"{k}={one(v, k in known)}" for k, v in words.items())])


def names_of(value: Any) -> list[str] | None:
    """The fields of a named tuple or a dataclass; None for other objects."""
    if isinstance(value, tuple):
        return list(getattr(value, "_fields", ())) or None
    if dataclasses.is_dataclass(value) and all(f.init for f in dataclasses.fields(value)):
        return [f.name for f in dataclasses.fields(value)]
    return None


def _is_found(kind):
    try:
        return kind.__module__ != "__main__" and class_named(f"{kind.__module__}.{kind.__qualname__}") is kind
    except KindError:
        return False


def class_named(name: str) -> type:
    """The class with the name package.module.Class."""
    parts = name.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found = functools.reduce(getattr, parts[k:], importlib.import_module(".".join(parts[:k])))
        except (ImportError, AttributeError, ValueError):
            continue
        if isinstance(found, type):
            return found
    raise KindError(f"{name} is not a class that can be imported", None, "Write package.module.Class(part=float64[n]).")


def example(text: str, class_of: Callable[[str], type] = class_named, most: int | None = None
            ) -> tuple[tuple, dict[str, Any]]:
    """Example arguments of the kinds in a text; equal letters are equal lengths.

    class_of: the class with a name that the text calls, by default imported; most: the most entries of all arrays.
    Raises KindError for a text that does not describe kinds.

    >>> [a.shape for a in example("f64[3, n], f32[n]")[0]]
    [(3, 11), (11,)]
    """
    unread = KindError(f"these are not kinds of arguments: {text}", None,
                       'Write them so: "float64[n, 3], float64[3], float, [float64[k], int]".')
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:     # null bytes, a thousand brackets
        raise unread from error
    if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords):     # 1) + (2, and **kinds
        raise unread
    made = _Examples(class_of, most)
    return tuple(map(made.one, call.args)), {str(k.arg): made.one(k.value) for k in call.keywords}


class _Examples:
    """Makes the values of one text; equal letters are equal lengths."""

    def __init__(self, class_of, most):
        self.class_of, self.most, self.sizes, self.entries = class_of, most, {}, 0

    def size(self, node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return self.sizes.setdefault(node.id, SIZES[len(self.sizes) % len(SIZES)])
        raise KindError(f"{ast.unparse(node)} is not a length")

    def array(self, dtype, node):
        shape = [self.size(p) for p in (node.elts if isinstance(node, ast.Tuple) else [node])]
        self.entries += math.prod(shape)
        if self.most is not None and self.entries > self.most:
            raise KindError(f"the arrays have {self.entries:,} entries together, more than {self.most:,}", None,
                            "Give shorter lengths.")
        return np.linspace(0.1, 0.9, math.prod(shape)).reshape(shape).astype(dtype)

    def one(self, node):
        named = node.value if isinstance(node, ast.Subscript) else node
        dtype = SHORT.get(named.id, named.id) if isinstance(named, ast.Name) else None
        if isinstance(node, ast.Subscript) and dtype in DTYPES:
            return self.array(dtype, node.slice)
        if isinstance(node, ast.Name) and node.id in PYTHON:
            return PYTHON[node.id]
        if isinstance(node, ast.Name) and dtype in DTYPES:
            return np.dtype(dtype).type(0.5)
        return self.several(node)

    def several(self, node):
        if isinstance(node, ast.List):
            return [self.one(n) for n in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self.one(n) for n in node.elts)
        if isinstance(node, ast.Dict):
            return {ast.literal_eval(k): self.one(v) for k, v in zip(node.keys, node.values)}
        if isinstance(node, ast.Call) and not node.args and all(k.arg for k in node.keywords):
            return self.class_of(ast.unparse(node.func))(**{k.arg: self.one(k.value) for k in node.keywords})
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise KindError(f"{ast.unparse(node)} is not a kind of argument", None,
                            f"Known are {', '.join([*PYTHON, *DTYPES])}, with lengths in brackets.") from None


def of_facts(facts: Iterable[tuple[str, Any]]) -> str:
    """The kinds of (name, fact) pairs as text; equal lengths have equal letters."""
    return ", ".join(by_name(facts).values())


def by_name(facts: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """{name: kind as text} of (name, fact) pairs; equal lengths have equal letters, known lengths are numbers."""
    letters: dict[Any, str] = {}

    def one(fact):
        if isinstance(fact, Sequence):
            inside = list(map(one, fact.elements))
            if fact.kind in ("dict", "record"):
                inside = [f"{k}: {v}" for k, v in zip(fact.keys, inside)]
            begin, end = {"list": "[]", "tuple": "()", "dict": "{}"}.get(fact.kind, "()")
            return f"{getattr(fact.cls, '__name__', '') * (fact.kind == 'record')}{begin}{', '.join(inside)}{end}"
        if isinstance(fact, Opaque):
            return getattr(fact.value, "__name__", None) or repr(fact.value)
        if not isinstance(fact, Array):
            return getattr(getattr(fact, "cls", None), "__name__", type(fact).__name__)
        dtype = fact.dtype.__name__ if fact.weak else np.dtype(fact.dtype).name
        lengths = [d.normal() for d in fact.dims]
        sizes = [str(n.offset) if n.symbol is None else
                 letters.setdefault(n.symbol, LETTERS[len(letters) % len(LETTERS)]) for n in lengths]
        return f"{dtype}[{', '.join(sizes)}]" if sizes else dtype
    return {name: one(fact) for name, fact in facts}
