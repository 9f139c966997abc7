# SPDX-License-Identifier: Apache-2.0
"""Values that may be computed at another place: what they depend on, and whether that is available there.

>>> from gradscribe.codegen.loops.form import Const, Name, Op
>>> e = Op("*", (Name("t"), Name("x")))
>>> with_values(e, {"t": Op("+", (Name("i"), Const(1)))}) == Op("*", (Op("+", (Name("i"), Const(1))), Name("x")))
True

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.5.5 (lazy code motion: anticipated expressions).
"""
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gradscribe.codegen.loops.analysis.arrays import families
from gradscribe.codegen.loops.analysis.lengths import Lengths
from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import (
    ONE,
    Call,
    Const,
    Expr,
    Function,
    Length,
    Load,
    Name,
    Op,
    Statement,
    rebuilt,
    sign_of,
)

DEEPEST = 8                             # levels of names that are substituted


class Analyses:
    """Analyses of the current state of a function, each made at its first use.

    known: the lengths of arrays; ranges: those of whole numbers.
    """

    def __init__(self, function: Function):
        self.function = function

    @functools.cached_property
    def known(self) -> Lengths:
        return Lengths(self.function)

    @functools.cached_property
    def ranges(self) -> Ranges:
        return Ranges(self.function)

    @functools.cached_property
    def _families(self) -> dict:
        return families(self.function)

    def families(self, names: Iterable) -> set:
        """The families of names: names of disjoint families share no memory."""
        return {self._families.get(n, n) for n in names}


def with_values(e: Expr, values: Mapping) -> Expr:
    """An expression with the values of names substituted, {name: expression}, recursively."""
    def new(e, depth):
        if isinstance(e, Name) and e.id in values and depth < DEEPEST:
            return new(values[e.id], depth + 1)
        return rebuilt(e, lambda part: new(part, depth))
    return new(e, 0)


def is_computed(e: Expr, calls: Callable[[Call], bool] = lambda e: False) -> bool:
    """Whether an expression is arithmetic on numbers and entries that cannot raise, with calls that `calls` accepts."""
    if isinstance(e, Op):
        return sign_of(e.op) not in ("@", "//", "%") and all(is_computed(a, calls) for a in e.args)
    if isinstance(e, Call):
        return not e.keywords and calls(e) and all(is_computed(a, calls) for a in e.args)
    if isinstance(e, Load):
        return isinstance(e.array, Name) and all(is_computed(p, calls) for p in e.index)
    return isinstance(e, (Name, Length)) or isinstance(e, Const) and type(e.value) in (int, float)


def in_bounds(e: Load, s: Statement, counts: Mapping, asked: Analyses) -> bool:
    """Whether an entry that a statement reads exists for all values of the indices in it, {index: number of values},
    even if other loops around the statement have no pass.
    """
    ranges = asked.ranges
    kind: Any = asked.known.kinds.get(e.array.id) if isinstance(e.array, Name) else None
    return bool(kind) and len(kind[1]) == len(e.index) and all(
        counts.get(getattr(p, "id", None)) == n or ranges.at_least(p, 0, s) and ranges.at_least(
            Op("-", (n, Op("+", (p, ONE)))), 0, s) for p, n in zip(e.index, kind[1]))
