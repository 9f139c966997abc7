# SPDX-License-Identifier: Apache-2.0
"""The indices of a kernel as polynomials in the thread's position, by whose terms two indices are compared.

An index that differs between any two threads distinguishes them: no two threads reach the same entry by it.

>>> indices = Indices({"i": gast.parse("2 * grid_x + n").body[0].value}, {}, ["x", "n"], {"n"})
>>> at = indices.polynomial(gast.parse("i - x.shape[0]").body[0].value)
>>> at
{('block_x', 'width_x'): 2, ('thread_x',): 2, ('n',): 1, ('x.shape[0]',): -1}
>>> indices.belongs(at), indices.belongs(indices.polynomial(gast.parse("i * i").body[0].value))
(('grid', 'x'), None)

Source: M. Haghighat, C. Polychronopoulos, Symbolic analysis for parallelizing compilers, 1996 (canonical forms).
"""
from collections.abc import Container
from typing import Any

import gast

from gradscribe.codegen.kernels.places import AXES, PLACES, unparsed

TOKENS = {f"{t}_{a}": {(f"{t}_{a}",): 1} for t in PLACES.values() for a in AXES} | {
    f"grid_{a}": {(f"block_{a}", f"width_{a}"): 1, (f"thread_{a}",): 1} for a in AXES} | {
    f"step_{a}": {(f"count_{a}", f"width_{a}"): 1} for a in AXES}
POSITIONS = {frozenset(TOKENS[f"{t}_{a}"]): (t, a) for t in ("grid", "thread", "block") for a in AXES}   # by terms
COUNTS = {"grid": "step", "thread": "width", "block": "count"}                  # the number of each
SAME = ()                               # `belongs` of an index that is equal in all threads


class Indices:
    """values: {name that is set once: its value}; running: {loop variable: (start, step)}; names: the parameters; same:
    those that are never changed; set_here: all names that the kernel sets, which are not positions.
    """

    def __init__(self, values: dict, running: dict[str, tuple[Any, Any]], names: list, same: set, set_here=frozenset()):
        self.values, self.running, self.names, self.same, self.set_here = values, running, names, same, set_here

    def polynomial(self, node, seen=()) -> dict | None:
        """{names of a term: coefficient} of an integer expression; None if it is no polynomial."""
        if isinstance(node, gast.Constant):
            return without_zeros({(): node.value}) if type(node.value) is int else None
        if isinstance(node, gast.Name):
            if node.id in self.values and node.id not in seen:
                return self.polynomial(self.values[node.id], (*seen, node.id))
            if node.id in TOKENS and (node.id in seen or node.id not in self.set_here):
                return TOKENS[node.id]
            return {(node.id,): 1} if node.id in self.running or node.id in self.same else None
        if is_length(node, self.names):
            return {(unparsed(node),): 1}
        kept = isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id in ("min", "max")
        if not kept and not isinstance(node, gast.BinOp):
            return None
        parts: list = [self.polynomial(n, seen) for n in (node.args if kept else (node.left, node.right))]
        if None in parts:
            return None
        if kept or not isinstance(node.op, (gast.Add, gast.Sub, gast.Mult)):
            return {(unparsed(node),): 1} if all(self.belongs(p) == SAME for p in parts) else None
        first, second = parts
        if isinstance(node.op, gast.Mult):
            second = [(tuple(sorted(t + u)), c * d) for t, c in first.items() for u, d in second.items()]
            first = {}
        else:
            sign = 1 if isinstance(node.op, gast.Add) else -1
            second = [(t, sign * c) for t, c in second.items()]
        total = dict(first)
        for term, factor in second:
            total[term] = total.get(term, 0) + factor
        return without_zeros(total)

    def belongs(self, polynomial: dict | None, seen=()):
        """(kind, axis) of the positions that an index distinguishes; SAME if it is equal in all threads; None if that
        is unknown.
        """
        if polynomial is None:
            return None
        moving = {t: c for t, c in polynomial.items() if any(n in self.running or is_place(n) for n in t)}
        if not moving:
            return SAME
        terms, factors = frozenset(moving), set(moving.values())
        (first, *more), = [t for t in terms if len(terms) == 1] or [((),)]
        if first in self.running and not more:
            return None if first in seen else self.of_loop(*self.running[first], (*seen, first))
        return POSITIONS.get(terms) if len(factors) == 1 else None

    def of_loop(self, start, step, seen):
        """`belongs` of the variable of a grid-stride loop, from the thread's position in steps of their number."""
        begin = self.polynomial(start)
        place = self.belongs(begin, seen)
        if not place:
            return None
        kind, axis = place
        alone = all(c == 1 for t, c in begin.items() if any(map(is_place, t)))
        return place if alone and self.polynomial(step) == TOKENS[f"{COUNTS[kind]}_{axis}"] else None


def without_zeros(polynomial):
    return {term: factor for term, factor in polynomial.items() if factor}


def is_place(name):
    """Whether a name is a position that differs between threads."""
    return name in TOKENS and name.partition("_")[0] in ("thread", "block")


def is_length(node: gast.AST, names: Container[str | None]) -> bool:
    """x.shape[0], x.size, len(x)"""
    if isinstance(node, gast.Subscript):
        node = node.value
        return isinstance(node, gast.Attribute) and node.attr == "shape" and root(node) in names
    if isinstance(node, gast.Call):
        return isinstance(node.func, gast.Name) and node.func.id == "len" and root(node.args[0]) in names
    return isinstance(node, gast.Attribute) and node.attr in ("size", "ndim") and root(node) in names


def root(node: gast.AST) -> str | None:
    """The name whose entry or attribute a node is."""
    while isinstance(node, (gast.Subscript, gast.Attribute)):
        node = node.value
    return node.id if isinstance(node, gast.Name) else None
