# SPDX-License-Identifier: Apache-2.0
"""Patterns of single statements (counted loops, fills, checks), conversions to a dtype, and edits of blocks."""
from collections.abc import Callable, Iterator
from typing import TypeGuard

from gradscribe.codegen.loops.analysis.effects import CHECKS
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Const,
    Do,
    Expr,
    For,
    Length,
    Let,
    Load,
    Name,
    Nothing,
    Op,
    Statement,
    Store,
    Update,
    change,
    names_of,
    rebuilt,
    statements,
    walk,
)
from gradscribe.codegen.loops.types import DTYPES, is_double, type_of

CASTS = frozenset(DTYPES)
LITERALS = {"complex", "float", "int"} | {f"np.{n}" for n in CASTS}
KEPT = ("float64", "int64", "complex128")       # in Numba a sum keeps these dtypes whatever is added
SINGLE = ("float32", "complex64")               # and these if the term has the same


def is_counted(s: Statement) -> TypeGuard[For]:
    """Whether it is for name in range(count), where the count is a name or a literal."""
    return isinstance(s, For) and s.kind == "range" and len(s.range) == 1 and isinstance(s.range[0], (Name, Const))


def is_literal(e: Expr) -> bool:
    """Whether it is a literal of any dtype: 0.0, np.float32(0.0), complex(0.0, 0.0)."""
    if isinstance(e, Call):
        return e.function in LITERALS and all(map(is_literal, e.args))
    return isinstance(e, Const) or isinstance(e, Op) and len(e.args) == 1 and isinstance(e.args[0], Const)


def is_fill(s: Statement) -> bool:
    """Whether it is a loop, or nest, that only sets entries of an array to a constant."""
    while is_counted(s) and len(s.block) == 1:
        s = s.block[0]
    return isinstance(s, Store) and s.op is None and is_literal(s.value)


def is_check(s: Statement) -> bool:
    return isinstance(s, Do) and isinstance(s.value, Call) and s.value.function in CHECKS


def castable(made: Alloc) -> bool:
    return made.dtype in CASTS


def as_held(value: Expr, dtype: str, types: dict) -> Expr:
    """A value converted to the dtype of an array that holds it."""
    if dtype == "bool_" or type_of(value, types).dtype == dtype != "float64":
        return value
    if dtype == "float64":
        if is_double(value, types):
            return value
        if isinstance(value, Const) and type(value.value) in (int, float):
            return Const(float(value.value))
    return Call({"float64": "float", "int64": "int"}.get(dtype, f"np.{dtype}"), (value,))


def added_in_full(name: str, added, dtype: str, types: dict) -> Expr:
    """The value of name op= value for a dtype whose sums Numba computes in a wider one."""
    both = Op(added.op, (Name(name), added.value))
    return Call("bool", (both,)) if dtype == "bool_" else as_held(both, dtype, types)


def as_number(s: Store, name: str, dtype: str, types: dict) -> Statement:
    """The assignment that replaces a store into an array that has become a number."""
    if s.op is None:
        return Let(name, as_held(s.value, dtype, types), s.origin)
    if dtype in KEPT or dtype in SINGLE and type_of(s.value, types).dtype == dtype:
        return Update(name, s.op, s.value, s.origin)
    return Let(name, added_in_full(name, s, dtype, types), s.origin)


def entries_changed(block: list, name: str, f: Callable[..., Expr]) -> None:
    """Replace each entry of an array, stored ones included, by f(entry)."""
    def new(e):
        e = rebuilt(e, new)
        return f(e) if isinstance(e, Load) and e.array == Name(name) else e
    for s in statements(block):
        if name in names_of(s):
            change(s, new)


def take_out(block: list, s: Statement) -> None:
    """Remove a statement from its block; an empty block gets a `pass`."""
    block.remove(s)
    if not block:
        block.append(Nothing())


def replace_in(block: list, old: Statement, new: list) -> None:
    """Replace a statement by others."""
    at = block.index(old)
    block[at:at + 1] = new or ([Nothing()] if len(block) == 1 else [])


def depth(s: Statement, above: dict) -> int:
    """The number of statements around one; above: the result of holders()."""
    found = 0
    while s in above:
        s, found = above[s], found + 1
    return found


def around(s: Statement, above: dict) -> Iterator[Statement]:
    """The statements around one, innermost first; above: the result of holders()."""
    while s in above:
        s = above[s]
        yield s


def is_whole(s: Statement, types: dict, *more: str) -> bool:
    """Whether a statement computes a whole number from lengths, names and literals without raising; more: further
    functions that it may call.
    """
    if not isinstance(s, Let) or types[s.name] != ("int64", 0) or isinstance(s.value, (Name, Const, Length)):
        return False
    functions = {"min", "max", "len", "range", *more}
    return all(isinstance(n, Length) or isinstance(n, Name) and types.get(n.id) == ("int64", 0) or isinstance(
        n, Const) and type(n.value) is int or isinstance(n, Op) and n.op in ("+", "-", "*") or isinstance(
        n, Call) and n.function in functions and not n.keywords for n in walk(s.value))
