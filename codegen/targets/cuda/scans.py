# SPDX-License-Identifier: Apache-2.0
"""Parallelises loops that find running sums, or the position of an extreme, one pass after the other.

A loop that carries a sum, and uses it only with the entries of the same pass, becomes three steps: the terms, their
running sums by a library, and the uses.  The position of the maximum is the first index at which the maximum is found:
two loops whose passes may run in any order.

Source: G. Blelloch, Prefix sums and their applications, 1990.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> text = '''def f(x, n):
...     y = np.zeros((n,), np.float64)
...     s = 0.0
...     for i in range(n):
...         s = s + x[i]
...         y[i] = s * s
...     best = x[0]
...     at = 0
...     for i in range(n):
...         v = x[i]
...         if v > best or (v != v and best == best):
...             best = v
...             at = i
...     return (y, at)'''
>>> function = from_tree(ast.parse(text).body[0], {"x": ("float64", 1), "n": ("int64", 0)})
>>> in_parallel(function)
>>> print(ast.unparse(ast.fix_missing_locations(to_tree(function))))
def f(x, n):
    y = np.zeros((n,), np.float64)
    s = 0.0
    s_terms = np.empty((n,), np.float64)
    for i in range(n):
        s_terms[i] = x[i]
    s_sums = running_sum(s_terms)
    for i in range(n):
        y[i] = s_sums[i] * s_sums[i]
    best = x[0]
    at = 0
    best_rank = ranked(x[0])
    for i in range(n):
        best_rank = max(best_rank, ranked(x[i]))
    best = unranked(best_rank)
    at = n
    for i in range(n):
        v = x[i]
        if v == best or (v != v and best != best):
            at = min(at, i)
    return (y, at)
"""
import functools
from collections.abc import Iterable

import numpy as np

from gradscribe.ast_transform.source.origin import Origin
from gradscribe.codegen.loops.analysis.dependence import indices_in
from gradscribe.codegen.loops.analysis.effects import SHOWN, Effects
from gradscribe.codegen.loops.analysis.parallelism import Order, is_pair, put_together
from gradscribe.codegen.loops.build import ZERO, node, quoted, statement
from gradscribe.codegen.loops.direction import counts_down
from gradscribe.codegen.loops.form import (
    ONE,
    UNKNOWN,
    Expr,
    For,
    Function,
    If,
    Let,
    Load,
    Name,
    Op,
    Select,
    Statement,
    Store,
    Type,
    Update,
    all_names,
    blocks,
    change,
    copied,
    names_in,
    names_of,
    names_read,
    renamed,
    set_in,
    statements,
    unused,
)
from gradscribe.codegen.loops.lists import is_range
from gradscribe.codegen.targets.cuda.form import call
from gradscribe.codegen.targets.cuda.placement import Placement, is_short
from gradscribe.codegen.targets.cuda.threads import identity, is_zero

RUNNING = {"+": "running_sum", "*": "running_product"}
RANKS = {"float64": ("{}", "unranked"), "float32": ("{}32", "unranked32")}
WHOLE = {"int64", "int32"}


def in_parallel(function: Function, private: Iterable[str] = ()) -> None:
    """Rewrites a function in place; private: arrays that each thread has for itself."""
    Scans(function, private).block(function.block)


class Scans:
    """The rewriting of one function."""

    def __init__(self, function, private):
        self.function, self.types, self.placement = function, function.types, Placement(function, private)
        self.taken = all_names(function)
        self.fresh = functools.partial(unused, taken=self.taken)

    def block(self, block):
        at = 0
        while at < len(block):
            s = block[at]
            if isinstance(s, For) and self.placement.of(s) != "kernel" and not is_short(s) and (
                    is_range(s) or counts_down(s)):
                made = self.extreme(s, block[:at]) or self.running(s, block, at)
                if made:
                    block[at:at + 1] = made
                    at += len(made)
                    continue
            if blocks(s) and self.placement.of(s) == "host":
                for inner in blocks(s):
                    self.block(inner)
            at += 1

    def new(self, stem, like):
        """A new name; like: its type, or a name with that type."""
        name = self.fresh(stem)
        self.types[name] = self.types[like] if isinstance(like, str) else like
        return name

    def array(self, stem, count, dtype, origin):
        """(the name of a new array of one axis, the statement that makes it)."""
        name = self.new(stem, Type(dtype, 1))
        return name, of_line(origin, statement("{} = np.empty(({},), {})", name, count, node(np.dtype(dtype))))[0]

    # positions of extremes

    def extreme(self, loop, before):
        """The statements that replace a loop that finds the position of the largest or smallest; None for others."""
        if not is_range(loop) or len(loop.block) != 2 or len(before) < 2:
            return None
        first, then = loop.block
        if not isinstance(first, Let) or not isinstance(then, If) or then.orelse or len(then.block) != 2 or not all(
                isinstance(s, Let) for s in then.block):
            return None
        index, value, count = Name(loop.index), Name(first.name), loop.range[0]
        best, at = (Name(s.name) for s in then.block)
        start, dtype = renamed(first.value, {loop.index: ZERO}), self.types.get(first.name, UNKNOWN).dtype
        sign = next((sign for sign in "><" if then.test == quoted(
            "{v} {} {b} or ({v} != {v} and {b} == {b})", sign, v=value, b=best)), None)
        if sign is None or [s.value for s in then.block] != [value, index] or [
                (getattr(s, "name", None), getattr(s, "value", None)) for s in before[-2:]] != [
                (best.id, start), (at.id, ZERO)] or dtype not in RANKS.keys() | WHOLE:
            return None
        ranked, unranked = RANKS.get(dtype, ("", ""))
        ranked = ranked.format("ranked" if sign == ">" else "ranked_low")

        def rank(e):
            return call(ranked, e) if ranked else e
        most = Name(self.new(f"{best.id}_rank", Type({"float64": "int64", "float32": "int32"}.get(dtype, dtype), 0)))
        largest = statement("for {} in range({}):", index, count)
        largest.block.append(Let(most.id, call("max" if sign == ">" else "min", most, rank(
            first.value))))
        place = statement("for {} in range({}):", index, count)
        found = If(quoted("{v} == {b} or ({v} != {v} and {b} != {b})", v=value, b=best), [
            Let(at.id, quoted("min({}, {})", at, index))], [])
        place.block += [Let(value.id, first.value), found]
        return of_line(loop.origin, Let(most.id, rank(start)), largest, Let(
            best.id, call(unranked, most) if unranked else most), Let(at.id, count), place)

    # running sums

    def running(self, loop, block, at):
        """The statements that replace a loop that carries a sum; None if it does more."""
        given, before, down = loop.range, set(self.taken), counts_down(loop)
        if down:
            loop.range = (loop.count,)
        made = self.written_out(loop, down) or self.carried(loop, down, block[:at])
        if made:
            block[at:at + 1] = made
            order = Order(self.function, self.placement.order.private)
            free = [order.free(s) for s in made if isinstance(s, For)]
            block[at:at + len(made)] = [loop]
            if None not in free and not any(f.atomic for f in free):
                return made
        loop.range = given
        self.taken -= self.taken - before
        return None

    def written_out(self, loop, down):
        """The statements for a loop that only stores running sums, each from the entry before."""
        index, count, found = Name(loop.index), loop.range[0], []
        for s in loop.block:
            if down or not isinstance(s, Store) or s.op is not None or not isinstance(s.value, Select) or \
                    not isinstance(s.entry.array, Name) or s.value.test != quoted("{} == 0", index) or \
                    not is_pair(s.value.orelse, "+", "*"):
                return None
            name, term = s.entry.array.id, s.value.then
            if s.entry.index != (index,) or s.value.orelse.args != (quoted("{}[{} - 1]", name, index), term):
                return None
            found.append((name, s.value.orelse.op, term, s.origin))
        if any(name in names_in(term) for name, *_ in found for _, _, term, _ in found):
            return None
        out = []
        for name, sign, term, origin in found:
            terms, allocation = self.array(f"{name}_terms", count, self.types[name].dtype, origin)
            sums = self.new(f"{name}_{'sums' if sign == '+' else 'products'}", terms)
            first, last = (statement("for {} in range({}):", index, count) for _ in range(2))
            first.block.append(statement("{}[{}] = {}", terms, index, term))
            last.block.append(statement("{}[{i}] = {}[{i}]", name, sums, i=index))
            out += of_line(origin, allocation, first, Let(sums, call(RUNNING[sign], terms)), last)
        return out

    def carried(self, loop, down, before):
        """The statements for a loop in which a scalar is added to, and read before or after that.

        Products are left in order: in another, a partial product of 0 could meet an infinite one.
        """
        index, body = Name(loop.index), Effects(loop.block, asks=SHOWN)
        names = [n for n in sorted(body.sets & body.names - (indices_in(loop) - {loop.index}))
                 if put_together(n, loop) is None]
        entries = self.placement.order.entries(loop)
        if not body.known or len(names) != 1 or entries is None or entries:
            return None
        name, (count,) = names[0], loop.range
        sets = [k for k, s in enumerate(loop.block) if name in set_in([s])]
        dtype, rank = self.types.get(name, UNKNOWN)
        if len(sets) != 1 or rank != 0 or dtype not in RANKS.keys() | WHOLE:
            return None
        above, update, last = loop.block[:sets[0]], loop.block[sets[0]], loop.block[sets[0] + 1:]
        first, early, lost = [], [], {name}         # early: statements that use the sum without this pass's term
        for s in above:
            (early if lost & used(s) else first).append(s)
            lost |= set_in([s]) if lost & used(s) else set()
        sign, term = update_of(update, name)
        if sign != "+" or not any(name in used(s) for s in [*early, *last]) or (lost - {name}) & used(update):
            return None
        moved, stays = Effects(early, asks=SHOWN), Effects([*first, update], asks=SHOWN)
        if moved.writes.keys() & (stays.reads.keys() | stays.writes.keys()) or stays.writes.keys() & moved.reads.keys():
            return None
        again, kept = again_of(first, [*early, *last], body.writes.keys())
        certain = {s.name for s in first if isinstance(s, Let)}
        if not all(n in certain and self.types.get(n, UNKNOWN).rank == 0 for n in kept):
            return None
        head, copies, given = [], [], []
        for n in kept:
            array, allocation = self.array(f"{n}_kept", count, self.types[n].dtype.replace("bool", "bool_"),
                                           loop.origin)
            head += [allocation]
            copies += of_line(loop.origin, statement("{}[{}] = {}", array, index, n))
            given += of_line(loop.origin, statement("{} = {}[{}]", n, array, index))
        terms, allocation = self.array(f"{name}_terms", count, dtype, update.origin or loop.origin)
        sums, zero = self.new(f"{name}_sums", terms), any(is_zero(s, name) for s in before[-1:])
        at_first, at_last = (of_line(loop.origin, statement("for {} in range({}):", index, count))[0]
                             for _ in range(2))
        at_first.block += [*map(copied, first), *of_line(update.origin or loop.origin, statement(
            "{}[{}] = {}", terms, index, term)), *copies]
        at_first.origin = update.origin or loop.origin
        middle = of_line(loop.origin, Let(sums, call("running_sum_back" if down else "running_sum", terms)))
        here = quoted("{}[{}]", sums, index)
        without = Select(quoted("{} < {} - 1", index, count), quoted("{}[{} + 1]", sums, index), identity(
            "+", dtype)) if down else Select(quoted("{} > 0", index), quoted("{}[{} - 1]", sums, index), identity(
                "+", dtype))
        if not zero:
            here, without = (Op("+", (Name(name), e)) for e in (here, without))
        at_last.block += [*given, *map(copied, again), *(with_value(copied(s), name, without) for s in early),
                          *(with_value(copied(s), name, here) for s in last)]
        return [*head, allocation, at_first, *middle, at_last, *self.after(loop, name, sums, down)]

    def after(self, loop, name, sums, down):
        """The statement that sets the scalar after the loop, if something else in the function reads it."""
        inside = set(statements([loop]))
        if not any(name in names_of(s) for s in statements(self.function.block) if s not in inside):
            return []
        (count,) = loop.range
        end = ZERO if down else Op("-", (count, ONE))
        test = statement("if {} > 0:", count)
        test.block.append(Let(name, Op("+", (Name(name), Load(Name(sums), (end,))))))
        return of_line(loop.origin, test)


def of_line(origin: Origin | None, *made: Statement) -> list:
    """Statements with an origin, which is set in all statements inside them too."""
    for s in statements(list(made)):
        s.origin = origin
    return list(made)


def used(s: Statement) -> set:
    """The names that a statement reads or sets."""
    return names_read([s]) | set_in([s])


def with_value(s: Statement, name: str, value: Expr) -> Statement:
    """Replaces a scalar by a value in a statement, in place; returns it."""
    for i in statements([s]):
        change(i, lambda e: renamed(e, {name: value}))
    return s


def update_of(s: Statement, name: str) -> tuple:
    """("+", term) of a statement that adds a term to a scalar; (None, None) for any other."""
    if isinstance(s, Update):
        op, side = s.op, s.value
    elif isinstance(s, Let) and is_pair(s.value, "+", "-", "*"):
        op, sides = s.value.op, list(s.value.args)
        if sides[1] == Name(name) and op != "-":
            sides.reverse()
        if sides[0] != Name(name):
            return None, None
        side = sides[1]
    else:
        return None, None
    if name in names_in(side) or op not in ("+", "-"):
        return None, None
    return "+", side if op == "+" else Op("neg", (side,))


def again_of(first: list, later: list, written) -> tuple:
    """(statements above an update to be repeated in the later loop, names to be passed to it in arrays): the names
    that depend on entries which the loop sets are passed.
    """
    sets: dict = {}
    again: list = []
    kept = set()
    for s in first:
        for n in set_in([s]):
            sets.setdefault(n, []).append(s)
    needed = {n for s in later for n in used(s)} & sets.keys()
    for s in reversed(first):
        mine = {n for n in needed if s in sets[n]}
        if mine and isinstance(s, Let) and all(len(sets[n]) == 1 for n in mine) and names_in(s.value).isdisjoint(
                written):
            again.insert(0, s)
            needed |= names_in(s.value) & sets.keys()
        else:
            kept |= mine
    return again, sorted(kept)
