# SPDX-License-Identifier: Apache-2.0
"""Storage in half precision: arrays are float16, entries are widened when read and rounded when stored.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> function = from_tree(ast.parse('''def f(x, w):
...     n = x.shape[0]
...     total = np.float32(0.0)
...     z = np.empty((n,), np.float32)
...     for i in range(n):
...         z[i] = x[i] * w
...         total += z[i]
...     return (total, z)''').body[0], {"x": ("float32", 1), "w": ("float32", 0)})

`allocate_in_half` runs before the passes and rounds what is stored, so that a pass that forwards a stored value
forwards the rounded one; `store_in_half`, the last pass, does the rest.

>>> allocate_in_half(function.block, {"z"})
>>> store_in_half(function, {"x"}, [HALF, HALF])
>>> print(ast.unparse(to_tree(function)))
def f(x, w):
    n = x.shape[0]
    total = np.float32(0.0)
    z = np.empty((n,), np.float16)
    for i in range(n):
        z[i] = np.float16(np.float32(x[i]) * w)
        total += np.float32(z[i])
    return (np.float16(total), z)
>>> function.types["x"], function.types["z"]
(Type(dtype='float16', rank=1), Type(dtype='float16', rank=1))
"""
from typing import Any, TypeGuard

import numpy as np

from gradscribe.codegen.loops.analysis.summaries import SHOWING
from gradscribe.codegen.loops.build import node, quoted
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Attribute,
    Call,
    Const,
    Do,
    EmptyList,
    Expr,
    Function,
    Items,
    Let,
    ListOf,
    Load,
    Method,
    Name,
    Op,
    Return,
    Select,
    Store,
    Unpack,
    change,
    children,
    names_in,
    rebuilt,
    statements,
)
from gradscribe.codegen.loops.types import inferred, type_of

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")
OF_HALVES = {"np.dot", "product", "np.ascontiguousarray"}       # their result is in half precision if all arguments are


def allocate_in_half(block: list, names: set) -> None:
    """Allocate these arrays in half in place of single precision, and round what is stored in them."""
    for s in statements(block):
        if isinstance(s, Alloc) and s.name in names and s.how != "full" and s.dtype == SINGLE.name:
            s.rest = (node(HALF),)
        elif isinstance(s, Store) and getattr(s.entry.array, "id", None) in names and not is_cast(s.value, HALF):
            s.value = quoted("np.float16({})", s.value.args[0] if is_constant(s.value) else s.value)


def store_in_half(function: Function, given: set, results: list, widening: str = "np.float32") -> None:
    """Widen entries of arrays in half precision where they are read, and round them where they are stored.

    given: parameters in half precision; results: the dtypes of the results; widening: the function that widens an
    entry, `single` if half precision is bfloat16, which is no dtype of Numba's.
    """
    _Stored(function, given, results, widening).run()


def is_cast(e, dtype) -> TypeGuard[Call]:
    return isinstance(e, Call) and e.function == f"np.{dtype}" and len(e.args) == 1


def is_constant(e) -> TypeGuard[Call]:
    """A constant in single precision."""
    return is_cast(e, SINGLE) and isinstance(e.args[0], Const)


def is_empty(e):
    """An empty list."""
    return isinstance(e, EmptyList) or isinstance(e, ListOf) and not e.items


def astype(e, dtype):
    return quoted("{}.astype({})", e, dtype)


class _Stored:
    """set_to: {name: {statement: the value that is set or appended}}; half: names of arrays that may be in half
    precision, and of lists of such; sure: those that are on every path.
    """

    def __init__(self, function, given, results, widening):
        self.function, self.types, self.given, self.results = function, function.types, given, results
        self.widening = widening

    def run(self):
        self.find()
        for s in self.added_into():
            if isinstance(s, Alloc):
                s.rest = (node(SINGLE),)
            else:
                s.value = astype(s.value.owner if getattr(s.value, "name", "") == "copy" else s.value, SINGLE)
        self.find()
        for s in statements(self.function.block):
            self.statement(s)
        known = {n: t._replace(dtype=self.dtype(n, t)) for n, t in self.types.items()}
        self.function.types = inferred(self.function, known)

    # which arrays are in half precision

    def find(self):
        self.set_to = {}
        for s in statements(self.function.block):
            if isinstance(s, Alloc) or isinstance(s, Let) and not is_empty(s.value):
                self.set_to.setdefault(s.name, {})[s] = s.value if isinstance(s, Let) else s
            elif isinstance(s, Do) and isinstance(s.value, Method) and s.value.name in ("append", "insert"):
                for name in names_in(s.value.owner):
                    self.set_to.setdefault(name, {})[s] = s.value.args[-1]
        self.half = self.fixed(self.given, any)
        self.sure = self.fixed(self.half, all)

    def fixed(self, found, test):
        """The names of which any value, or all by `test`, is in half precision: a fixpoint from `found`."""
        before = None
        while found != before:
            before = found
            found = self.given | {n for n, values in self.set_to.items() if self.rank(Name(n)) != 0 and test(
                self.is_half(v, before, test) for v in values.values())}
        return found

    def is_half(self, value, half=None, test=any):
        """Whether a value may be an array in half precision if these names are; with `all`, whether it certainly is."""
        half = self.half if half is None else half
        if isinstance(value, Name):
            return value.id in half
        if isinstance(value, Alloc):
            return value.dtype == HALF.name and value.how != "full"
        if self.is_entry(value) or getattr(value, "name", "") in ("astype", "shape", "size"):
            return False
        if isinstance(value, Select):
            return test(self.is_half(v, half, test) for v in (value.then, value.orelse))
        if isinstance(value, Call):
            return value.function in OF_HALVES and all(self.is_half(a, half, test) for a in value.args)
        return isinstance(value, (Load, Attribute, Method)) and any(
            self.is_half(v, half, test) for v in children(value))

    def is_entry(self, e):
        """Whether it is an entry of a named array."""
        return isinstance(e, Load) and isinstance(e.array, Name) and self.rank(e) == 0

    def is_half_entry(self, e):
        return self.is_entry(e) and self.is_half(e.array)

    def is_list(self, e):
        return isinstance(e, Name) and type_of(e, self.types) == UNKNOWN

    def rank(self, e):
        return type_of(e, self.types).rank

    def added_into(self):
        """The statements that make arrays in half precision that are updated, or their views: these become single."""
        names, more = set(), {s.entry.array.id for s in statements(self.function.block) if isinstance(s, Store) and
                              s.op is not None and isinstance(s.entry.array, Name)} & self.half
        while more:
            names |= more
            more = {b for n in more for v in self.set_to.get(n, {}).values() if (b := self.shown(v))} - names
        return [s for n in names & self.set_to.keys() for s, v in self.set_to[n].items() if not isinstance(s, Do) and
                self.is_half(v) and not self.shown(v)]

    def shown(self, value):
        """The array that a value is a view or an alias of; else None."""
        while isinstance(value, Load) or isinstance(value, (Attribute, Method)) and value.name in SHOWING:
            value = value.array if isinstance(value, Load) else value.owner
        return value.id if isinstance(value, Name) and self.rank(value) != 0 else None

    def dtype(self, name, before):
        """The new dtype of a name."""
        if name in self.half and not self.is_list(Name(name)):
            return HALF.name if name in self.sure else None
        return SINGLE.name if before.dtype == HALF.name else before.dtype

    # reads and stores

    def statement(self, s):
        if isinstance(s, Store):
            s.entry, s.value = rebuilt(s.entry, self.read), self.read(s.value)
            if self.is_half_entry(s.entry):
                if s.op is not None:
                    s.value, s.op = Op(s.op, (self.read(s.entry), s.value)), None
                s.value = self.stored(s.value)
        elif isinstance(s, Unpack):
            s.value = self.read(s.value)
        elif isinstance(s, Return):
            values = s.value.items if isinstance(s.value, Items) else (s.value,)
            s.value = Items(tuple(map(self.result, values, self.results)))
        else:
            change(s, self.read)

    def read(self, e: Expr) -> Expr:
        """A value with entries in half precision widened."""
        made: Any = rebuilt(e, self.read)
        if self.is_half_entry(e):
            return Call(self.widening, (made,))
        if is_cast(e, HALF):
            return self.rounded(made)
        if isinstance(e, Call) and "." not in e.function and e.function not in OF_HALVES:
            return Call(e.function, tuple([astype(new, SINGLE) if self.is_half(a) and not self.is_list(a) else new
                                           for a, new in zip(e.args, made.args)]), made.keywords)
        return made

    def rounded(self, e):
        """np.float16(v) as a number in single precision."""
        value = e.args[0]
        if isinstance(value, Const):
            return quoted("np.float32({})", float(np.float16(value.value)))
        entry = value.args[0] if isinstance(value, Call) and value.function == self.widening else None
        return value if isinstance(entry, Load) and entry.array.id in self.sure else Call(self.widening, (e,))

    def stored(self, value):
        """A value in the form in which an array in half precision stores it."""
        while isinstance(value, Call) and value.function in ("np.float16", "np.float32", self.widening) and \
                not is_constant(value):
            value = value.args[0]
        kept = self.widening == "np.float32" if is_constant(value) else self.is_half_entry(value)
        return value if kept else quoted("np.float16({})", value)

    def result(self, value, dtype):
        """A value in the form in which a result of this dtype is returned."""
        if dtype != HALF:
            return astype(value, SINGLE) if self.is_half(value) else self.read(value)
        if self.is_half(value, self.sure, all):
            return value
        if self.is_half(value) or isinstance(value, Name) and self.rank(value) != 0:
            return astype(value, HALF)
        return quoted("np.float16({})", value if self.is_entry(value) else self.read(value))
