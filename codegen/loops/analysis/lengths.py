# SPDX-License-Identifier: Apache-2.0
"""The dtypes and lengths of arrays, the latter as expressions, and which arrays have one allocation and no alias.

>>> from gradscribe.codegen.loops.form import Function, Type
>>> from gradscribe.codegen.loops.trees import block_of
>>> function = Function("f", ["x", "y"], {"x": Type("float64", 1), "y": Type("float64", 2)}, block_of('''
... z = np.empty((3, x.shape[0]), np.float64)
... p = np.dot(z, y)'''))
>>> Lengths(function).kinds["p"]
('float64', (Const(value=3), Length(array='y', axis=1)))
"""
import itertools
import math
from typing import TypeGuard

from gradscribe.codegen.loops.analysis.arrays import is_entry, uses_in
from gradscribe.codegen.loops.form import (
    MINUS_ONE,
    Alloc,
    Attribute,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Method,
    Name,
    Raise,
    Slice,
    While,
    holders,
    names_in,
    set_by,
    statements,
)
from gradscribe.codegen.loops.shapes import around

WHOLE = Slice(None, None, None)
STACKED = 256                           # entries of an array on the stack: 2 KB in double precision


class Lengths:
    """sets, uses: {name: the statements that set it, its uses}; above: the result of holders(); kinds: {array: (dtype,
    lengths)}, None where they differ or are unknown.
    """

    def __init__(self, function: Function):
        self.function, self.above = function, holders(function)
        self.sets: dict = {}
        self.uses: dict = {}
        for s in statements(function.block):
            for name in set_by(s):
                self.sets.setdefault(name, []).append(s)
            for use in uses_in(s):
                self.uses.setdefault(use.name, []).append(use)
        given = ((p, function.types[p]) for p in function.params if p not in self.sets)
        named: dict = {}                # lengths of arguments that are named or checked at the top
        for s in itertools.takewhile(lambda s: isinstance(s, Let) or any(checked(s)), function.block):
            if isinstance(s, Let) and isinstance(s.value, Length) and len(self.sets[s.name]) == 1:
                named.setdefault(s.value, Name(s.name))
            for length, other in checked(s):
                if length.array in function.params and self.lasting((other,)):
                    named.setdefault(length, named.get(other, other))
        self.kinds: dict = {p: (t.dtype, tuple(named.get(n, n) for n in (Length(p, k) for k in range(t.rank))))
                            for p, t in given if None not in t}
        for s in statements(function.block):
            if isinstance(s, (Let, Alloc)):
                found = self.kind(s)
                if s.name in self.kinds and self.kinds[s.name] != found:
                    found = None
                self.kinds[s.name] = found

    def kind(self, s):
        if isinstance(s, Alloc):
            return s.dtype, s.shape
        return self.of(s.value)

    def of(self, e):
        """The (dtype, lengths) of an array: a named one, its transpose, a part of it, a product; otherwise None."""
        if isinstance(e, Name):
            return self.kinds.get(e.id)
        if isinstance(e, Attribute) and e.name == "T" and (kind := self.of(e.owner)):
            return kind[0], kind[1][::-1]
        if isinstance(e, Load) and (kind := self.of(e.array)) and len(e.index) <= len(kind[1]) and not any(
                isinstance(p, Items) or getattr(p, "value", 0) is None for p in e.index):
            whole = [p == WHOLE for p in e.index] + [True] * (len(kind[1]) - len(e.index))
            if not any(isinstance(p, Slice) and p != WHOLE for p in e.index):
                return kind[0], tuple(n for n, kept in zip(kind[1], whole) if kept)
        if isinstance(e, Method) and e.name == "reshape" and len(e.args) == 1 and isinstance(e.args[0], Items) and (
                kind := self.of(e.owner)) and MINUS_ONE not in e.args[0].items:
            return kind[0], e.args[0].items
        return self.of_product(e) if is_product(e) else None

    def of_product(self, e):
        """The (dtype, lengths) of a product, if those of its operands are known."""
        given = [self.of(a) for a in e.args]
        if None in given:
            return None
        (dtype, first), (other, second) = given
        if dtype != other or dtype not in ("float64", "float32", "complex128", "complex64"):
            return None
        return (dtype, (*first[:-1], *second[1:])) if len(first) + len(second) > 2 else None

    def single(self, name: str) -> bool:
        """Whether an array is allocated at one place and neither it nor a part of it has an alias."""
        return len(self.sets[name]) == 1 and all(map(self.plain, self.uses.get(name, ())))

    def lasting(self, lengths) -> bool:
        """Whether lengths never change: each name in them is set once."""
        return not any(len(self.sets.get(n, ())) > (n not in self.function.params) for e in lengths
                       for n in names_in(e))

    def plain(self, use):
        around, entry = use.around, use.role == "entry"
        if use.role == "length":
            return True
        if isinstance(use.parent, Attribute):
            if use.parent.name != "T":
                return use.parent.name in ("shape", "size")
            around, entry = around[:-1], len(around) > 1 and isinstance(around[-2], Load) and \
                around[-2].array is use.parent
        if entry:
            kind = self.kinds.get(use.name) if use.role == "entry" else None
            return bool(kind) and is_entry(around[-1], len(kind[1])) or len(around) > 1 and is_product(around[-2])
        return bool(around) and is_product(around[-1])

    def loops_around(self, s) -> list:
        """The loops around a statement, the innermost first."""
        return [a for a in around(s, self.above) if isinstance(a, (For, While))]


def checked(s):
    """(length, other) that are equal after a statement, which raises otherwise."""
    if isinstance(s, If) and not s.orelse and len(s.block) == 1 and isinstance(s.block[0], Raise):
        for test in s.test.items if isinstance(s.test, Logic) and s.test.op == "or" else (s.test,):
            if isinstance(test, Compare) and test.ops == ("!=",) and isinstance(test.items[0], Length):
                yield test.items


def is_product(e: Expr) -> TypeGuard[Call]:
    return isinstance(e, Call) and e.function == "np.dot" and len(e.args) == 2


def is_short(made: Alloc) -> bool:
    """Whether an array has a known length that fits on the stack."""
    return all(isinstance(d, Const) for d in made.shape) and math.prod(d.value for d in made.shape) <= STACKED
