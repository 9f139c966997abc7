# SPDX-License-Identifier: Apache-2.0
"""Facts, the types of the compiler: dtype, rank and lengths of arrays, structure of containers.

Symbolic lengths are a symbol and an offset (`n - 2`), or a number.  Symbols that must be equal are unified; a symbol
that is certainly not one is `many`.  Python scalars are weak, as in NumPy 2, and have their Python type as dtype.
"""
import functools
import itertools
import math
import types
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.children import name_of

WEAK = (bool, int, float, complex)


class Symbol:
    """An unknown length; `size` is its value in the example arguments, if there are any.

    least: the shortest length that the code is valid for; asked: the symbol is the value of an integer argument, for
    which a call checks `least`, too (-inf: no bound); taken: how many entries slices leave out, if there is no example;
    slices: the lengths of slices that end there, by the rest of the slice; empty: the length of a list of arrays that
    may have no element, so that the axes of one cannot be read from it; apart: pairs of lengths, one of them of this
    symbol, that the code takes to be unequal
    """
    __slots__ = ("apart", "asked", "born", "empty", "label", "least", "many", "parent", "size", "slices", "taken")
    births = itertools.count()

    def __init__(self, label="?", many=False, size=None):
        self.born = next(Symbol.births)
        self.label, self.many, self.size, self.parent, self.least, self.asked = label, many, size, None, 0, False
        self.taken, self.slices, self.empty, self.apart = 0, {}, False, []

    def ask(self):
        self.asked, self.least = True, -math.inf

    def __repr__(self):
        return f"{self.label}{'+' if self.many else ''}"


@dataclass(frozen=True)
class Length:
    symbol: Symbol | None
    offset: int = 0

    def normal(self) -> "Length":
        symbol, offset = self.symbol, self.offset
        while symbol is not None and symbol.parent is not None:
            parent = symbol.parent
            symbol, offset = parent.symbol, offset + parent.offset
        return self if symbol is self.symbol else Length(symbol, offset)

    @property
    def is_unit(self):
        n = self.normal()
        return n.symbol is None and n.offset == 1

    @property
    def may_be_empty(self):
        """Whether a list of unknown length may have no element."""
        n = self.normal()
        return n.offset == 0 if n.symbol is None else n.symbol.empty and n.offset == 0

    @property
    def many(self):
        """Whether it is certainly not one: another number, an axis of an argument, or at least two."""
        n = self.normal()
        if n.symbol is None:
            return n.offset != 1
        return n.symbol.many and n.offset == 0 or n.symbol.least + n.offset > 1

    @property
    def size(self):
        """The length in the example, or None."""
        n = self.normal()
        if n.symbol is None:
            return n.offset
        return None if n.symbol.size is None else n.symbol.size + n.offset

    def demand_many(self):
        """Restricts the code that is made to lengths above one, if the example has such a length."""
        n = self.normal()
        if not self.many and n.symbol is not None and not n.symbol.asked and self.size is not None and self.size > 1:
            n.symbol.least = max(n.symbol.least, 2 - n.offset)

    def demand(self, least) -> bool:
        """Restricts the code that is made to lengths of at least this; False if the example's is shorter or unknown."""
        n = self.normal()
        if n.symbol is None or n.symbol.size is None or self.size < least:
            return n.symbol is None and n.offset >= least
        n.symbol.least = max(n.symbol.least, least - n.offset)
        return True

    def same(self, other):
        a, b = self.normal(), other.normal()
        return a.symbol is b.symbol and a.offset == b.offset

    def plus(self, k):
        return Length(self.symbol, self.offset + k)

    def __repr__(self):
        n = self.normal()
        return str(n.offset) if n.symbol is None else f"{n.symbol}{n.offset:+d}" if n.offset else f"{n.symbol}"


UNIT = Length(None, 1)


def unknown(label: str = "?", many: bool = False) -> Length:
    return Length(Symbol(label, many))


def unify(a: Any, b: Any) -> bool:
    """Makes two lengths equal; False if they cannot be."""
    a, b = a.normal(), b.normal()
    if a.symbol is b.symbol:
        return a.offset == b.offset
    if a.size is not None and b.size is not None and a.size != b.size:
        return False
    if a.symbol is None or b.symbol is not None and a.symbol.born < b.symbol.born:
        a, b = b, a                     # the older one becomes the representative
    if b.symbol is None and b.offset - a.offset < a.symbol.taken:
        return False
    if b.symbol is not None:
        b.symbol.taken = max(b.symbol.taken, a.symbol.taken + a.offset - b.offset)
        if a.offset == b.offset:
            b.symbol.many |= a.symbol.many
        if b.symbol.size is None and a.size is not None:
            b.symbol.size = a.size - b.offset
    if b.symbol is not None:
        b.symbol.least = max(b.symbol.least, a.symbol.least + a.offset - b.offset)
        b.symbol.apart += a.symbol.apart
    a.symbol.parent = Length(b.symbol, b.offset - a.offset)
    return True


def set_apart(a: Length, b: Length) -> bool:
    """Restricts the code that is made to unequal lengths; False if the example's are equal or unknown."""
    a, b = a.normal(), b.normal()
    if a.size is None or b.size is None or a.size == b.size:
        return False
    for n in (a, b):
        if n.symbol is not None:
            n.symbol.apart.append((a, b))
    return True


def certainly_differ(a: Length, b: Length) -> bool:
    """Whether two lengths are known not to be equal."""
    a, b = a.normal(), b.normal()
    return a.symbol is b.symbol and a.offset != b.offset


def broadcast(shapes: list[tuple[Length, ...]]) -> tuple[Length, ...]:
    """The dims that shapes broadcast to; unifies lengths that must be equal, ValueError if they cannot be."""
    rank = max(map(len, shapes), default=0)
    out = []
    for k in range(-rank, 0):
        lengths = [s[k] for s in shapes if len(s) >= -k]
        rest = [n for n in lengths if not n.is_unit]
        if not rest:
            out.append(UNIT)
            continue
        if not all(n.same(rest[0]) for n in rest):
            for n in rest:
                n.demand_many()
        certain = [n for n in rest if n.many]
        for n in certain[1:]:
            if not unify(certain[0], n):
                raise ValueError("shapes " + " and ".join(map(spelled_shape, shapes)) + " do not broadcast")
        if certain:
            out.append(certain[0])
        elif all(n.same(rest[0]) for n in rest):
            out.append(rest[0])
        else:
            out.append(unknown("?broadcast"))
    return tuple(out)


@dataclass(frozen=True, eq=False)
class Array:
    """An array, or a scalar if there are no dims.  `length`: the value of an integer as a symbolic length."""
    dtype: Any
    dims: tuple = ()
    length: Length | None = None

    @property
    def rank(self):
        return len(self.dims)

    @property
    def ndim(self):
        return len(self.dims)

    @property
    def weak(self):
        return isinstance(self.dtype, type)

    def __eq__(self, other):
        return isinstance(other, Array) and isinstance(self, Listed) == isinstance(other, Listed) and \
            same_dtype(self.dtype, other.dtype) and self.dims == other.dims and self.length == other.length

    def __hash__(self):
        return hash((self.dtype, self.dims))

    @property
    def kind(self):
        """The kind of NumPy's dtype: b, i, u, f or c."""
        return {bool: "b", int: "i", float: "f", complex: "c"}[self.dtype] if self.weak else self.dtype.kind

    @property
    def differentiable(self):
        return self.kind in "fc"

    @property
    def of_objects(self):
        """Whether its entries are strings, dates or Python objects, which have no derivative."""
        return self.kind in "OSUMm"

    def shaped(self, dims):
        return Array(self.dtype, tuple(dims))


@dataclass(frozen=True, eq=False)
class Listed(Array):
    """A list of unknown length whose elements have one dtype and shape; `dims` starts with the list's length."""


@dataclass(frozen=True)
class Sequence:
    """A container of known structure: tuple, list, dict (with keys) or record (a named tuple or dataclass)."""
    kind: str
    elements: tuple
    keys: tuple = ()
    cls: Any = None

    rank = None

    @property
    def differentiable(self):
        return any(e.differentiable for e in self.elements)


@dataclass(frozen=True)
class Stack:
    """A list of unknown length whose elements have one fact."""
    element: Any

    rank = None

    @property
    def differentiable(self):
        return self.element.differentiable


@dataclass(frozen=True)
class Opaque:
    """A static value with no other fact: a string, None, a function."""
    value: Any = None

    rank = None
    differentiable = False


@dataclass(frozen=True)
class Stream:
    """A random generator, or a bit generator: every use changes it."""
    cls: Any

    rank = None
    differentiable = False


class Mismatch(Exception):
    """Two facts have no join."""


def dtype_of(value: Any) -> type | np.dtype:
    """The dtype of a value in facts: a Python type for Python scalars."""
    if type(value) in WEAK:
        return type(value)
    return value.dtype


def same_dtype(a: type | np.dtype, b: type | np.dtype) -> bool:
    """Whether two dtypes of facts are equal; float and np.float64, which NumPy compares equal, are not."""
    return isinstance(a, type) == isinstance(b, type) and a == b


def promote(a: Any, b: Any) -> type | np.dtype:
    if same_dtype(a, b):
        return a
    if isinstance(a, type) and isinstance(b, type):
        return max((a, b), key=WEAK.index)
    if isinstance(a, type) or isinstance(b, type):
        weak, strong = (a, b) if isinstance(a, type) else (b, a)
        return np.result_type(strong, weak(1))
    return np.result_type(a, b)


def join(a: Array | Sequence | Stack | Opaque | Stream, b: Array | Sequence | Stack | Opaque | Stream,
         label: str = "?") -> Array | Sequence | Stack | Opaque | Stream:
    """The join of two facts: the fact of a value that may have either; Mismatch if there is none."""
    if a == b:
        return a
    if isinstance(a, Array) and isinstance(b, Array) and a.rank == b.rank and \
            isinstance(a, Listed) == isinstance(b, Listed):
        dims = tuple(m if m.same(n) else unknown(label, m.many and n.many) for m, n in zip(a.dims, b.dims))
        length = a.length
        if a.length is None or b.length is None or not a.length.same(b.length):
            length = None
        if {a.kind, b.kind} & {"b"} and a.kind != b.kind:
            raise Mismatch("a truth value in one place and a number in another")
        dtype = promote(a.dtype, b.dtype)
        if not dims and length is None and Array(dtype).kind in "iu":
            length = unknown(label)
        return Listed(dtype, dims) if isinstance(a, Listed) else Array(dtype, dims, length)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and (a.kind, a.keys, a.cls, len(a.elements)) == \
            (b.kind, b.keys, b.cls, len(b.elements)):
        return replace(a, elements=tuple(join(x, y, label) for x, y in zip(a.elements, b.elements)))
    if isinstance(a, Stack) and isinstance(b, Stack):
        return Stack(join(a.element, b.element, label))
    raise Mismatch(f"{spell(a)} in one place and {spell(b)} in another")


def one_dtype(a: Array | Sequence | Stack | Opaque | Stream, b: Array | Sequence | Stack | Opaque | Stream) -> bool:
    """Whether two facts have the same dtypes."""
    if isinstance(a, Array) and isinstance(b, Array):
        return same_dtype(a.dtype, b.dtype)
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return all(map(one_dtype, a.elements, b.elements))
    return not (isinstance(a, Stack) and isinstance(b, Stack)) or one_dtype(a.element, b.element)


def settled(a: Array | Sequence | Stack | Opaque | Stream, b: Array | Sequence | Stack | Opaque | Stream,
            since: int = 0) -> bool:
    """Whether fact a covers b, so that the facts of a loop have reached a fixpoint.

    since: symbols that are older come from before the loop
    """
    if isinstance(a, Array) and isinstance(b, Array):
        return same_dtype(a.dtype, b.dtype) and a.rank == b.rank and all(
            m.same(n) or (_free(m, since) and (n.many or not m.many)) for m, n in zip(a.dims, b.dims)) and \
            (a.length is None or b.length is not None and a.length.same(b.length) or _free(a.length, since))
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return len(a.elements) == len(b.elements) and all(settled(x, y, since) for x, y in zip(a.elements, b.elements))
    return a == b


class Afresh:
    """Renames the symbols of one pass of a loop (`ours` says which) to fresh ones, for the facts of another pass."""

    known: dict

    def __init__(self, ours, label: str):
        self.ours, self.label, self.known = ours, label, {}

    def length(self, length):
        n = None if length is None else length.normal()
        if n is None or n.symbol is None or not self.ours(n.symbol):
            return length
        if n.symbol not in self.known:
            self.known[n.symbol] = Symbol(self.label, n.symbol.many)
        return Length(self.known[n.symbol], n.offset)

    def fact(self, fact):
        if isinstance(fact, Array):
            return replace(fact, dims=tuple(map(self.length, fact.dims)), length=self.length(fact.length))
        if isinstance(fact, Sequence):
            return replace(fact, elements=tuple(map(self.fact, fact.elements)))
        return Stack(self.fact(fact.element)) if isinstance(fact, Stack) else fact


def _free(length, since):
    """Whether a length may differ between passes, whatever it is unified with within one."""
    return length.symbol is not None and length.offset == 0 and length.symbol.born >= since and \
        length.symbol.label.startswith("?")


def spelled_shape(dims: Iterable[Length]) -> str:
    """A shape as text, for messages: (3, ?)."""
    sizes = ["?" if d.size is None else str(d.size) for d in dims]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def spell(fact: Any) -> str:
    """A fact as text, for messages: float64[3, ?]."""
    if isinstance(fact, Array):
        dtype = fact.dtype.__name__ if fact.weak else str(fact.dtype)
        if not fact.dims:
            return with_article(dtype)
        sizes = (d.size for d in fact.dims)
        return f"{dtype}[{', '.join('?' if s is None else str(s) for s in sizes)}]"
    if isinstance(fact, Sequence):
        if fact.kind == "grown":
            return "a list"
        kind = name_of(fact.cls) if fact.kind == "record" else fact.kind
        return f"{with_article(kind)} of {len(fact.elements)}"
    if isinstance(fact, Stack):
        return "a list"
    if isinstance(fact, Stream):
        return f"a {fact.cls.__name__}"
    if isinstance(fact, Opaque):
        if fact.value is None or isinstance(fact.value, str):
            return repr(fact.value)
        if fact.value is str:
            return "a text"
        return "a class" if isinstance(fact.value, type) else "a function" if is_function(fact.value) else \
            with_article(type(fact.value).__name__)
    return "an unknown value"


def is_function(value: Any) -> bool:
    """Whether a value is a function, decorated and transformed ones included; another callable object is not.

    >>> is_function(math.sin), is_function(functools.partial(max, 1)), is_function(np.sin), is_function(np.zeros(3))
    (True, True, True, False)
    """
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial,
                              np.ufunc)) or hasattr(value, "normal_form_") or hasattr(value, "__wrapped__")


def holds_numbers(value: Any, within: tuple = ()) -> bool:
    """Whether a value is a float, a complex number or an array, or an object or a container that holds one."""
    if isinstance(value, (float, complex, np.ndarray, np.inexact)):
        return True
    if is_function(value) or isinstance(value, (type, types.ModuleType)) or any(value is outer for outer in within):
        return False
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else \
        getattr(value, "__dict__", {}).values()
    return any(holds_numbers(part, (*within, value)) for part in parts)


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIO' else 'a'} {noun}"


def _length_key(length):
    n = length.normal()
    if n.symbol is None:
        return 1 if n.offset == 1 else ("=", n.offset)
    return 2 if n.many else 0


def key_of(fact: Array | Sequence | Stack | Opaque | Stream) -> tuple:
    """The key of a fact: arguments with equal keys use one compiled version."""
    if isinstance(fact, Array):
        return (fact.weak, fact.dtype, tuple(map(_length_key, fact.dims)))
    if isinstance(fact, Sequence):
        return (fact.kind, told_apart(fact.keys), fact.cls, tuple(map(key_of, fact.elements)))
    if isinstance(fact, Stack):
        return ("stack", key_of(fact.element))
    if isinstance(fact, Stream):
        return ("stream", fact.cls)
    return ("opaque", _value_key(fact.value))


def told_apart(value: Hashable) -> tuple:
    """A key of a hashable value that differs from those of equal values of another type (1, True, 1.0), also inside
    tuples, and differs for 0.0 and -0.0.
    """
    if type(value) is tuple:
        return (tuple, *map(told_apart, value))
    return type(value), repr(value) if isinstance(value, (float, complex)) else value


def _value_key(value):
    """The key of a static value: strings and numbers by value (0.0 and -0.0 differ), other objects by identity."""
    if type(value) in (bool, int, str, float, complex):
        return told_apart(value)
    return (tuple, *map(_value_key, value)) if type(value) is tuple else id(value)
