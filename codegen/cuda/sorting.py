# SPDX-License-Identifier: Apache-2.0
"""What each statement of a lowered text becomes on a device: a kernel, a line of the host, or one thread's work.

- A loop whose passes may come in any order is a kernel (Nest).
- Lines that make arrays, look at lengths, or call libraries are the host's; so are loops and branches around kernels.
- Numbers that hang on entries stay on the device, as arrays of one entry (`held`), and what computes them is done by
  one thread: the host waits for none of it.
"""
import ast
import copy
import math
from typing import NamedTuple

from gradscribe.codegen.cuda.order import Free, Order, read_before_set, short
from gradscribe.codegen.cuda.trees import children, is_counted, is_entry, is_made, names_in, walk
from gradscribe.codegen.loops.analysis.effects import CHECKS

FEW = 32                                # passes that one thread takes rather than a kernel


class Nest(NamedTuple):
    """loops: those whose passes threads take, outermost first; body: of one pass; free: how passes are put together."""
    loops: list
    body: list
    free: Free


class Sorting:
    """kinds: {name: its Kind}.

    Attributes: order; held: numbers that stay on the device; brief: those of which one thread's work is the beginning
    and the end.
    """

    def __init__(self, function, kinds, private=()):
        self.function, self.kinds = function, kinds
        self.order = Order(function, {n: k.dtype for n, k in kinds.items() if k.rank}, private)
        self.nests, self.held, self.held_lists, self.brief = {}, set(), set(), set()
        self.lists = {n.targets[0].id for n in walk(function) if isinstance(n, ast.Assign)
                      and isinstance(n.value, ast.List) and isinstance(n.targets[0], ast.Name)}
        self.counters, self.alike = counters(function), alike(function)
        while self.more_held():
            pass

    # kinds of statements

    def of(self, node):
        """'kernel', 'host' or 'serial'."""
        if isinstance(node, ast.For):
            if self.nest(node) is not None and not self.is_short(node):
                return "kernel"
            return "host" if self.is_wide(node) else "serial"
        if isinstance(node, (ast.While, ast.If)):
            return "host" if self.is_wide(node) or isinstance(node, ast.If) and not self.on_device(node.test) \
                and not self.sets_entries(node) else "serial"
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                kind = self.kinds.get(target.id)
                if kind is None or kind.rank or self.calls_library(node.value) or list_call(node.value):
                    return "host"
                return "serial" if target.id in self.held | self.brief or self.on_device(node.value) else "host"
            if isinstance(target, ast.Tuple) and self.are_numbers(target) and isinstance(node.value, ast.Tuple):
                held = {e.id for e in target.elts} & (self.held | self.brief)
                return "serial" if held or self.on_device(node.value) else "host"
            if isinstance(target, ast.Subscript):
                return "serial" if self.is_entry(target) and not self.calls_library(node.value) else "host"
            return "host"
        if isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                if self.rank(node.target.id):
                    return "host"
                return "serial" if node.target.id in self.held | self.brief or self.on_device(node.value) else "host"
            return "serial" if self.is_entry(node.target) else "host"
        return "host"

    def are_numbers(self, target):
        return all(isinstance(e, ast.Name) and self.rank(e.id) == 0 for e in target.elts)

    def rank(self, name):
        return self.kinds[name].rank if name in self.kinds else None

    def is_entry(self, node):
        return isinstance(node.value, ast.Name) and bool(self.rank(node.value.id)) and \
            is_entry(node, self.rank(node.value.id))

    def on_device(self, node):
        """Whether a value hangs on entries, or on numbers that do."""
        there = self.held | self.brief
        return any(isinstance(n, ast.Name) and n.id in there or isinstance(n, ast.Subscript) and self.is_entry(n)
                   for n in walk(node))

    def calls_library(self, node):
        """Whether a value is made of arrays as wholes."""
        return any(map(self.takes_whole, walk(node)))

    def takes_whole(self, node):
        """Whether a call is given arrays, by which threads do not do their work."""
        return isinstance(node, ast.Call) and any(self.is_whole(a) for a in node.args) and not (
            isinstance(node.func, ast.Name) and node.func.id in short())

    def is_whole(self, node):
        while isinstance(node, ast.Attribute) and node.attr in ("T", "real", "imag"):
            node = node.value
        return isinstance(node, ast.Name) and (bool(self.rank(node.id)) or node.id in self.lists) or \
            isinstance(node, ast.Subscript) and not self.is_entry(node) and self.is_whole(node.value) or \
            isinstance(node, ast.Tuple) and any(map(self.is_whole, node.elts))

    def sets_entries(self, node):
        there = self.held | self.brief
        return any(isinstance(n, ast.AugAssign) or isinstance(getattr(n, "ctx", None), ast.Store) and (
            isinstance(n, ast.Subscript) or isinstance(n, ast.Name) and n.id in there) for n in walk(node))

    def is_wide(self, node):
        """Whether there is something in a statement that one thread cannot do, or should not."""
        if leaves(node):
            return True
        for n in walk(node):
            if isinstance(n, (ast.Raise, ast.List, ast.Return, ast.Try, ast.With)) or is_made(n):
                return True
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in CHECKS or self.takes_whole(n):
                return True
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("append", "pop"):
                return True
            if isinstance(n, (ast.Assign, ast.AugAssign)):
                target = n.targets[0] if isinstance(n, ast.Assign) else n.target
                if isinstance(target, ast.Name) and self.rank(target.id) != 0 or isinstance(target, ast.Tuple) and \
                        not (self.are_numbers(target) and isinstance(n.value, ast.Tuple)) or \
                        isinstance(target, ast.Subscript) and not self.is_entry(target):
                    return True
            if n is not node and isinstance(n, ast.For) and self.nest(n) is not None and not self.is_short(n):
                return True
        return False

    def is_short(self, loop):
        """Whether the passes of a loop and those in it are few for certain."""
        found = [n.iter.args for n in walk(loop) if isinstance(n, ast.For)]
        return not any(isinstance(n, ast.While) for n in walk(loop)) and \
            all(len(a) == 1 and isinstance(a[0], ast.Constant) for a in found) and \
            math.prod(a[0].value for a in found) <= FEW

    # kernels

    def nest(self, loop):
        """The Nest of a loop, or None where its passes have an order."""
        if loop not in self.nests:
            self.nests[loop] = self.found_nest(loop) if is_range(loop) and not self.renames(loop) else None
        return self.nests[loop]

    def renames(self, loop):
        """Whether arrays get other names in a loop, or lists grow."""
        return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and self.rank(n.id) != 0
                   for n in walk(loop))

    def found_nest(self, loop):
        loops = [loop]
        while len(loops[-1].body) == 1 and is_range(loops[-1].body[0]) and not names_in(
                loops[-1].body[0].iter).keys() & {n.target.id for n in loops}:
            loops.append(loops[-1].body[0])
        for count in range(len(loops), 0, -1):
            nest = self.set_of_passes(loops[:count], loop)
            if nest is not None:
                return nest
        return None

    def set_of_passes(self, loops, whole):
        """Of a perfect nest's loops, those whose passes threads may take; the others go on in each thread.

        Sums into entries that several passes reach are left to one thread each, in their order (by_columns.py has
        others help), but what is added to places that are looked up is added at once.
        """
        body = loops[-1].body
        found = [self.order.free(nested([n, *(m for m in loops if m is not n)], body), whole) for n in loops]
        free = {n: f for n, f in zip(loops, found) if f is not None}
        alone = {n: f for n, f in free.items() if not f.atomic}
        rest = [n for n in loops if n not in alone]
        taken = free if not alone or self.scatters(rest, body, set().union(*(f.atomic for f in free.values()))) or \
            not rest and all(map(self.is_short, alone)) else alone
        if not taken:
            return None
        rest = [n for n in loops if n not in taken]
        first = next(iter(taken.values()))
        return Nest(list(taken), [nested(rest, body)] if rest else body,
                    Free(first.numbers, set().union(*(f.atomic for f in taken.values()))))

    def scatters(self, rest, body, added):
        """Whether entries of arrays are added to whose places hang on passes that are not the thread's."""
        if not rest:
            return False
        inner = {n.target.id for n in rest} | {n.id for s in body for n in walk(s) if isinstance(n, ast.Name)
                                               and isinstance(n.ctx, ast.Store)}
        return any(isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Subscript) and isinstance(
            s.target.value, ast.Name) and s.target.value.id in added and names_in(s.target.slice).keys() & inner
            for n in body for s in walk(n))

    # numbers that stay

    def more_held(self):
        """Whether a number was found that some statement of the device sets and another reads."""
        before = len(self.held), len(self.held_lists)
        self.collect(self.function.body)
        return (len(self.held), len(self.held_lists)) > before

    def collect(self, body):
        found = []
        self.units(body, found)
        made = set().union(*(sets for kind, sets, _ in found if kind != "host"))
        for n in walk(self.function):
            if list_call(n) == "append" and self.on_device(n.args[0]):
                self.held_lists |= next((g for g in self.alike if n.func.value.id in g), {n.func.value.id})
        for n in walk(self.function):
            if list_call(n) == "append" and n.func.value.id in self.held_lists:
                made.add(n.args[0].id)
                self.held |= {n.args[0].id} & self.numbers()
        for _, _, reads in found:
            self.held |= reads & made

    def units(self, body, found):
        """Adds (kind, numbers set, numbers read before they are set there) of each statement, of the host's inner ones
        as well."""
        for node in body:
            kind = self.of(node)
            if kind == "host" and isinstance(node, (ast.For, ast.While, ast.If)):
                reads = {n.id for n in walk(node.test if not isinstance(node, ast.For) else node.iter)
                         if isinstance(n, ast.Name)}
                found.append(("host", set(), reads & self.numbers()))
                self.units(node.body, found)
                self.units(node.orelse, found)
                continue
            sets, reads = self.sets_and_reads(node, kind)
            if kind == "host" and isinstance(node, ast.Assign) and self.from_device(node.value):
                kind = "library"
            found.append((kind, sets & self.numbers(), reads & self.numbers()))

    def from_device(self, value):
        """Whether a value of the host's is a number that is on the device."""
        return self.calls_library(value) or list_call(value) == "pop" and value.func.value.id in self.held_lists

    def numbers(self):
        return {n for n, k in self.kinds.items() if not k.rank}

    def sets_and_reads(self, node, kind):
        if kind == "kernel":
            nest = self.nest(node)
            names = {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            local = {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            return set(nest.free.numbers), (names - local) | set(nest.free.numbers)
        sets = {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return sets - self.counters, read_before_set([node])


def is_range(node):
    """for name in range(count), the count being a number or a length."""
    return is_counted(node) or isinstance(node, ast.For) and isinstance(node.target, ast.Name) and not node.orelse and \
        isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range" and len(node.iter.args) == 1 and \
        isinstance(node.iter.args[0], ast.Subscript) and ast.unparse(node.iter.args[0].value).endswith(".shape")


def counters(function):
    """Names that are the indices of loops, and are read in these alone."""
    found, others = set(), set()

    def look(node, inside):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
            look(node.iter, inside)
            for s in node.body:
                look(s, inside | {node.target.id})
        elif isinstance(node, ast.Name):
            if node.id not in inside or isinstance(node.ctx, ast.Store):
                others.add(node.id)
        else:
            for n in children(node):
                look(n, inside)
    for s in function.body:
        look(s, frozenset())
    return found - others


def alike(function):
    """Sets of lists that may be one: those that lists hold, and what is taken from these."""
    put = [(n.func.value.id, n.args[0].id) for n in walk(function) if list_call(n) == "append"
           and isinstance(n.args[0], ast.Name)]
    put += [(n.value.func.value.id, n.targets[0].id) for n in walk(function) if isinstance(n, ast.Assign)
            and list_call(n.value) == "pop" and isinstance(n.targets[0], ast.Name)]
    groups = [{n} for n in {n for pair in put for n in pair}]
    while True:
        of = {n: k for k, group in enumerate(groups) for n in group}
        inner = {}
        for holder, name in put:
            inner.setdefault(of[holder], set()).add(of[name])
        joined = next((found for found in inner.values() if len(found) > 1), None)
        if joined is None:
            return groups
        groups = [g for k, g in enumerate(groups) if k not in joined] + [set().union(*(groups[k] for k in joined))]


def list_call(node):
    """'append' or 'pop' of such a call of a list's, at its end; else None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(
            node.func.value, ast.Name) and (node.func.attr, len(node.args)) in (("append", 1), ("pop", 0)):
        return node.func.attr
    return None


def leaves(node):
    """Whether a statement ends the passes of a loop around it."""
    if isinstance(node, (ast.For, ast.While)):
        return False
    return isinstance(node, (ast.Break, ast.Continue)) or any(map(leaves, children(node)))


def nested(loops, body):
    """Loops put into each other around a body; they are copies."""
    for n in reversed(loops):
        made = ast.For(copy.copy(n.target), n.iter, list(body), [])
        made.origin = getattr(n, "origin", None)
        body = [made]
    return body[0]
