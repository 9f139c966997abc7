# SPDX-License-Identifier: Apache-2.0
"""Decides where each statement of a function runs: as a kernel, on the host, or in a kernel of one thread.

- A loop whose passes may run in any order is a kernel (Nest).
- The host makes arrays, reads lengths and calls libraries, and runs the loops and branches around kernels.
- Scalars that depend on entries stay on the device, as arrays of one entry (`held`), and one thread computes them
  ("serial"), so that the host does not wait for them.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     s = 0.0
...     for i in range(n):
...         s += x[i]
...     mean = s / float(n)
...     return (mean,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
>>> placement = Placement(function)
>>> [placement.of(s) for s in function.block], sorted(placement.held)
(['host', 'serial', 'kernel', 'serial', 'host'], ['mean', 's'])
"""
import math
from typing import Any, NamedTuple, cast

from gradscribe.codegen.collectives import asks_others
from gradscribe.codegen.loops.analysis import arrays
from gradscribe.codegen.loops.analysis.effects import CHECKS
from gradscribe.codegen.loops.analysis.liveness import Flow, read_outside_loops
from gradscribe.codegen.loops.analysis.parallelism import Free, Order, is_of_numbers, leaves
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Assert,
    Attribute,
    Call,
    Const,
    Do,
    EmptyList,
    Expr,
    For,
    Function,
    If,
    Items,
    Let,
    ListOf,
    Load,
    Method,
    Name,
    Raise,
    Return,
    Statement,
    Store,
    Unpack,
    Update,
    While,
    blocks,
    expressions,
    names_in,
    names_of,
    set_by,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.lists import is_range, list_call

FEW = 32                                # passes up to which one thread runs a loop


class Nest(NamedTuple):
    """loops: those whose passes are run by threads, outermost first; body: of one pass; free: how passes combine."""
    loops: list
    body: list
    free: Free


class Placement:
    """private: arrays that each thread has for itself; brief: scalars that live only in one kernel of one thread.

    Attributes: order; held: scalars that stay on the device.
    """

    def __init__(self, function: Function, private=(), brief: frozenset = frozenset()):
        self.function, self.types, self.brief = function, function.types, brief
        self.order = Order(function, private)
        self.nests: dict = {}
        self.held: set = set()
        self.held_lists: set = set()
        every = list(statements(function.block))
        self.lists = {s.name for s in every if isinstance(s, Let) and isinstance(s.value, (ListOf, EmptyList))}
        self.numbers = {n for n, t in self.types.items() if t.rank == 0}
        self.counters = {s.index for s in every if isinstance(s, For)} - read_outside_loops(function.block) - {
            n for s in every if not isinstance(s, For) for n in set_by(s)}
        self.alike = lists_alike(function)
        while self.more_held():
            pass
        self.held -= brief

    # kinds of statements

    def of(self, s: Statement) -> str:
        """Where a statement runs: 'kernel', 'host' or 'serial'."""
        if isinstance(s, For) and self.nest(s) is not None and not is_short(s):
            return "kernel"
        if isinstance(s, (For, While)):
            return "host" if self.is_wide(s) else "serial"
        if isinstance(s, If):
            return "host" if self.is_wide(s) or not self.on_device(s.test) and not self.sets_entries(s) else "serial"
        if isinstance(s, Store):
            library = s.op is None and self.calls_library(s.value)
            return "serial" if self.is_entry(s.entry) and not library else "host"
        numbers = set_by(s)
        if not isinstance(s, (Let, Update, Unpack)) or any(self.rank(n) != 0 for n in numbers) or isinstance(
                s, Unpack) and not is_row_of_names(s) or isinstance(s, Let) and (
                self.calls_library(s.value) or list_call(s.value)):
            return "host"
        return "serial" if not self.device_scalars.isdisjoint(numbers) or self.on_device(s.value) else "host"

    @property
    def device_scalars(self):
        """Scalars whose value is on the device."""
        return self.held | self.brief

    def rank(self, name: str) -> int | None:
        return self.types.get(name, UNKNOWN).rank

    def is_entry(self, e: Expr) -> bool:
        """Whether an expression is one entry of a named array."""
        return isinstance(e, Load) and isinstance(e.array, Name) and bool(self.rank(e.array.id)) and arrays.is_entry(
            e, cast(int, self.rank(e.array.id)))

    def on_device(self, e: Expr) -> bool:
        """Whether a value depends on entries, or on scalars that do."""
        return not self.device_scalars.isdisjoint(names_in(e)) or any(map(self.is_entry, walk(e)))

    def calls_library(self, e: Expr) -> bool:
        """Whether a value contains a call that takes whole arrays."""
        return any(map(self.takes_whole, walk(e)))

    def takes_whole(self, e):
        """Whether a call takes whole arrays, which threads cannot call, or communicates with other devices."""
        return asks_others(e) or isinstance(e, (Call, Method)) and any(map(self.is_whole, e.args)) and not (
            isinstance(e, Call) and "." not in e.function and is_of_numbers(e.function))

    def is_whole(self, e: Expr) -> bool:
        """Whether an expression is an array or several, not an entry."""
        while isinstance(e, Attribute) and e.name in ("T", "real", "imag"):
            e = e.owner
        return isinstance(e, Name) and (bool(self.rank(e.id)) or e.id in self.lists) or isinstance(
            e, Load) and not self.is_entry(e) and self.is_whole(e.array) or isinstance(
            e, Items) and any(map(self.is_whole, e.items))

    def sets_entries(self, s):
        return any(isinstance(i, (Store, Update)) or not self.device_scalars.isdisjoint(set_by(i))
                   for i in statements([s]))

    def is_wide(self, s):
        """Whether a statement contains something that one thread cannot or should not run."""
        return leaves([s]) or any(self.is_for_host(i, i is s) for i in statements([s]))

    def is_for_host(self, s, outermost):
        if isinstance(s, (Raise, Return, Alloc, Assert)) or isinstance(s, Store) and not self.is_entry(s.entry) or \
                isinstance(s, Unpack) and not is_row_of_names(s):
            return True
        if isinstance(s, (Let, Update, Unpack)) and any(self.rank(n) != 0 for n in set_by(s)):
            return True
        if isinstance(s, For) and not outermost and self.nest(s) is not None and not is_short(s):
            return True
        return any(isinstance(e, (ListOf, EmptyList)) or isinstance(e, Call) and e.function in CHECKS or isinstance(
            e, Method) and e.name in ("append", "pop") or self.takes_whole(e) for whole in expressions(s)
            for e in walk(whole))

    # kernels

    def nest(self, loop: For) -> Nest | None:
        """The Nest of a loop, or None if its passes must run in order."""
        if loop not in self.nests:
            renames = any(self.rank(n) != 0 for n in set_in([loop]))        # arrays are renamed, or lists grow
            self.nests[loop] = self.found_nest(loop) if is_range(loop) and not renames else None
        return self.nests[loop]

    def found_nest(self, loop):
        loops = [loop]
        while len(loops[-1].block) == 1 and is_range(loops[-1].block[0]) and names_of(
                loops[-1].block[0]).isdisjoint(n.index for n in loops):
            loops.append(loops[-1].block[0])
        for count in range(len(loops), 0, -1):
            nest = self.set_of_passes(loops[:count], loop)
            if nest is not None:
                return nest
        return None

    def set_of_passes(self, loops, whole):
        """The Nest of those of a perfect nest's loops whose passes threads may run; each thread runs the other loops.

        A sum into an entry that several passes reach is left to one thread, in order (but see columns.py); additions at
        indices that are data are atomic.
        """
        body = loops[-1].block
        found = [self.order.free(nested([n, *(m for m in loops if m is not n)], body), whole) for n in loops]
        free = {n: f for n, f in zip(loops, found) if f is not None}
        alone = {n: f for n, f in free.items() if not f.atomic}
        rest = [n for n in loops if n not in alone]
        taken = free if not alone or scatters(rest, body, set().union(*(f.atomic for f in free.values()))) or \
            not rest and all(map(is_short, alone)) else alone
        if not taken:
            return None
        rest = [n for n in loops if n not in taken]
        first = next(iter(taken.values()))
        return Nest(list(taken), [nested(rest, body)] if rest else body,
                    Free(first.numbers, set().union(*(f.atomic for f in taken.values()))))

    # scalars that stay on the device

    def more_held(self):
        """Adds scalars that one statement on the device sets and another reads to `held`; returns whether there were
        any.
        """
        before = len(self.held), len(self.held_lists)
        found: list = []
        self.units(self.function.block, found)
        made = set().union(*(sets for kind, sets, _ in found if kind != "host"))
        puts = [s.value for s in statements(self.function.block) if isinstance(s, Do) and list_call(
            s.value) == "append"]
        for e in puts:
            if self.on_device(e.args[0]):
                self.held_lists |= next((g for g in self.alike if e.owner.id in g), {e.owner.id})
        for e in puts:
            if e.owner.id in self.held_lists:
                made.add(e.args[0].id)
                self.held |= {e.args[0].id} & self.numbers
        for _, _, reads in found:
            self.held |= reads & made
        return (len(self.held), len(self.held_lists)) > before

    def units(self, block, found):
        """Appends (kind, scalars set, scalars read before they are set there) of each statement, and of the statements
        inside those of the host.
        """
        for s in block:
            kind = self.of(s)
            if kind == "host" and blocks(s):
                found.append(("host", set(), names_of(s) & self.numbers))
                for inner in blocks(s):
                    self.units(inner, found)
                continue
            if kind == "kernel":
                sets, local = set(self.nest(s).free.numbers), set_in([s])
                reads = ({n for i in statements([s]) for n in names_of(i)} - local) | sets
            else:
                sets, reads = set_in([s]) - self.counters, Flow([s]).read
            if kind == "host" and isinstance(s, (Let, Unpack)) and (self.calls_library(s.value) or list_call(
                    s.value) == "pop" and s.value.owner.id in self.held_lists):
                kind = "library"            # whose result stays on the device
            found.append((kind, sets & self.numbers, reads & self.numbers))


def is_row_of_names(s: Unpack) -> bool:
    """Whether a statement is a, b = c, d with names as targets."""
    return isinstance(s.value, Items) and all(isinstance(t, Name) for t in s.targets.items)


def is_short(loop: For) -> bool:
    """Whether a loop, with the loops in it, certainly has only a few passes."""
    every = list(statements([loop]))
    ranges = [s.range for s in every if isinstance(s, For)]
    return not any(isinstance(s, While) for s in every) and all(
        len(r) == 1 and isinstance(r[0], Const) for r in ranges) and math.prod(r[0].value for r in ranges) <= FEW


def scatters(rest: list, body: list, added: set) -> bool:
    """Whether a body adds to entries whose indices depend on loops that each thread runs itself."""
    inner = {n.index for n in rest} | set_in(body)
    return bool(rest) and any(isinstance(s, Store) and s.op is not None and cast(
        Name, s.entry.array).id in added and not
                              inner.isdisjoint(n for p in s.entry.index for n in names_in(p)) for s in statements(body))


def lists_alike(function: Function) -> list:
    """Sets of lists that may be aliases: lists inside one list, and lists taken from it."""
    put = [(call.owner.id, call.args[0].id) for s in statements(function.block) if isinstance(s, Do) and
           list_call(call := cast(Any, s.value)) == "append" and isinstance(call.args[0], Name)]
    put += [(call.owner.id, s.name) for s in statements(function.block) if isinstance(s, Let) and list_call(
        call := cast(Any, s.value)) == "pop"]
    groups = [{n} for n in {n for pair in put for n in pair}]
    while True:
        of = {n: k for k, group in enumerate(groups) for n in group}
        inner: dict = {}
        for holder, name in put:
            inner.setdefault(of[holder], set()).add(of[name])
        joined = next((found for found in inner.values() if len(found) > 1), None)
        if joined is None:
            return groups
        groups = [g for k, g in enumerate(groups) if k not in joined] + [set().union(*(groups[k] for k in joined))]


def nested(loops: list, body: list) -> For:
    """A nest of copies of loops around a body."""
    for n in reversed(loops):
        body = [For(n.index, n.range, list(body), n.kind, n.origin, n.line)]
    return body[0]
