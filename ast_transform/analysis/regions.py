# SPDX-License-Identifier: Apache-2.0
"""Array dependence analysis: whether two accesses to an array may reach the same entry, in one pass or in several.

Regions have bounds that are affine in loop indices and lengths.

Sources: W. Pugh, The Omega test, CACM 35 (1992); P. Feautrier, Dataflow analysis of array and scalar references,
International Journal of Parallel Programming 20 (1991).
"""
import builtins
import operator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.analysis.inequalities import Linear, impossible
from gradscribe.ast_transform.core.alias import parts_of, reads, updates
from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    Effect,
    For,
    If,
    Join,
    Let,
    Pack,
    Slice,
    Var,
    While,
    as_slice,
    blocks,
    entry_reads,
    is_application,
    operands,
    same_operand,
)
from gradscribe.ast_transform.core.kinds import Array, Length
from gradscribe.ast_transform.core.operations import put, run_length

LEAST = {builtins.min, np.minimum}              # the result is at most each of the operands


class Use(NamedTuple):
    """Where a value is read: by a statement, as a carry's init or next, or by a join."""
    step: Any
    loops: tuple
    part: Carry | Join | None = None
    role: str = ""


class Regions:
    """The arrays of a function: where each is made and used, and the loops around those places."""

    def __init__(self, body, result, params=()):
        self.loops, self.maker, self.uses = {}, {}, {}      # of each value: loops around it, its statement, its uses
        self.lasting = {d.normal().symbol for v in params if isinstance(v, Var) and isinstance(v.fact, Array)
                        for d in v.fact.dims}
        self.visit(body, ())
        for v in operands(result):
            self.use(v, Use(None, ()))

    def use(self, v, use):
        self.uses.setdefault(v, []).append(use)

    def define(self, v, step, loops):
        self.maker[v], self.loops[v] = step, loops

    def visit(self, block, loops):
        for step in block:
            if isinstance(step, (For, While)):
                self.visit_loop(step, loops)
                continue
            if isinstance(step, Let):
                for t in step.targets:
                    self.define(t, step, loops)
            if isinstance(step, (Let, Effect, If)):
                for v in dict.fromkeys(entry_reads(step)):
                    self.use(v, Use(step, loops))
            for inner in blocks(step):
                self.visit(inner, loops)
            if isinstance(step, If):
                for j in step.joins:
                    self.define(j.var, step, loops)
                    for v in (*operands(j.then), *operands(j.orelse)):
                        self.use(v, Use(step, loops, j, "join"))

    def visit_loop(self, step, loops):
        inside = (*loops, step)
        if isinstance(step, For):
            for v in (*operands(step.count), *(v for _, source in step.items for v in operands(source))):
                self.use(v, Use(step, loops))
            self.define(step.index, step, inside)
            for item, _ in step.items:
                self.define(item, step, inside)
        else:
            for v in operands(step.test):
                self.use(v, Use(step, inside))
        for c in step.carries:
            self.define(c.inner, step, inside)
            self.define(c.outer, step, loops)
            for v in operands(c.init):
                self.use(v, Use(step, loops, c, "init"))
            for v in operands(c.next):
                self.use(v, Use(step, loops, c, "next"))
        for inner in blocks(step):
            self.visit(inner, inside)

    def read_later(self, array, index, loops):
        """Whether entries of an array that a statement in these loops has just written are read afterwards.

        array: the version after the write; index: where it has written
        """
        names = Names(array)
        for v, crossed in names:
            for use in self.uses.get(v, ()):
                if use.part is not None and v in named(use):
                    names.add(self.later_names(crossed, use, loops))
                    continue
                what, place = access(v, use.step)
                if what == "all" or what == "part" and not self.apart(index, loops, place, use.loops, crossed, v.fact):
                    return True
                if what == "write" and not (crossed is None and sets(use.step, index)):
                    names.add([(use.step.targets[0], crossed)])
        return False

    def read_before(self, array, index, loops, counts):
        """Whether entries of an array that a statement in these loops is about to write have been read before.

        array: the version before the write; index: where it writes; counts(use): whether a use matters
        """
        names = Names(array)
        for v, crossed in names:
            for use in self.uses.get(v, ()):
                if use.part is not None and v in named(use) or not counts(use):
                    continue
                what, place = access(v, use.step)
                if what == "all" or what == "part" and not self.apart(place, use.loops, index, loops, crossed, v.fact):
                    return True
            before = self.earlier_names(v, crossed, index, loops)
            if before is None:
                return True
            names.add(before)
        return False

    def first_names(self, array, index, loops):
        """The first versions of an array, if nothing has written to these entries since; else None.

        array: the version before a write in these loops; index: where it is about to write
        """
        names, found = Names(array), []
        for v, crossed in names:
            step = self.maker.get(v)
            if type(v.fact) is not Array or isinstance(step, Let) and len(step.targets) > 1:
                return None             # a list, or taken from one
            if isinstance(step, Let) and updates(step.value) and isinstance(step.value.args[0], Var):
                if not self.apart(step.value.args[1], self.loops[v], index, loops, crossed, v.fact):
                    return None
                names.add([(step.value.args[0], crossed)])
                continue
            before = self.earlier_names(v, crossed, index, loops)
            if before is None:
                return None
            names.add(before)
            if not before:
                found.append(v)
        return found

    def earlier_names(self, v, crossed, index, loops):
        """The earlier versions of an array: [(version, the outermost loop that has begun another pass since)].

        None if it may alias another array.
        """
        step = self.maker.get(v)
        if step is None:
            return []
        if isinstance(step, Let):
            value = step.value
            if updates(value) and isinstance(value.args[0], Var):
                return [] if crossed is None and sets(step, index) else [(value.args[0], crossed)]
            return [] if isinstance(value, Apply) else None
        if isinstance(step, If):
            join = next(j for j in step.joins if j.var is v)
            found = [(join.then, crossed), (join.orelse, crossed)]
        else:
            carry = next((c for c in step.carries if v is c.inner or v is c.outer), None)
            if carry is None:
                return None
            depth = next((k for k, loop in enumerate(loops) if loop is step), None)
            outer = None if depth is not None and crossed is not None and crossed >= depth else crossed
            again = crossed if v is carry.outer or depth is None or crossed is not None and crossed < depth else depth
            found = [(carry.init, outer), (carry.next, again)]
        return None if any(not isinstance(o, Var) for o, _ in found) else found

    def later_names(self, crossed, use, loops):
        """The names that a join or carry gives to a value: [(name, the outermost loop that has begun another pass)]."""
        if use.role == "join":
            return [(use.part.var, crossed)]
        depth = next((k for k, loop in enumerate(loops) if loop is use.step), None)
        around = None if depth is not None and crossed is not None and crossed >= depth else crossed
        again = crossed if use.role == "init" or depth is None or crossed is not None and crossed < depth else depth
        return [(use.part.inner, again), (use.part.outer, around)]

    def passes_at_most(self, loop, most):
        """A bound on a loop's passes in each pass of the loops around it; None if there may be more than `most`."""
        side = Side(self, self.loops[loop.index], (), 0)
        facts = side.bounds()
        facts += side.lengths()
        index = side.unknown(loop.index)
        return next((k for k in range(1, most + 1) if impossible([*facts, index - k])), None)

    def longest(self, loop):
        """A length of an argument that bounds a loop's passes, in all passes of the loops around it; None if none does.

        The bound is at most about twice the mean: the number of passes must be a length plus a number, plus or minus
        the index of one loop around it (a triangle), whose own number of passes is a length.
        """
        around = self.loops[loop.index]
        side = Side(self, around, (), 0)
        passes = side.passes(loop)
        if passes is None:
            return None
        facts, index = [*side.bounds(), *side.lengths()], side.unknown(loop.index)
        indices = [v for v, _ in passes.terms if v not in self.lasting]
        outer = next((a for a in around if isinstance(a, For) and [a.index] == indices), None)
        whole = side.passes(outer) if outer is not None else passes
        if len(indices) > 1 or abs(passes.terms.get((indices[0], 0), 0) if indices else 1) != 1 or whole is None or any(
                v not in self.lasting for v, _ in whole.terms):
            return None
        lengths = [v for v, _ in (*passes.terms, *whole.terms) if v in self.lasting]
        return next((Length(v) for v in dict.fromkeys(lengths)
                     if impossible([*facts, index - Linear.of((v, 0))])), None)

    # two accesses

    def same(self, a, b):
        """Whether two indices are certainly equal: the same operands, or integers with equal computations."""
        if same_operand(a, b):
            return True
        if isinstance(a, Pack) and isinstance(b, Pack):
            return len(a.items) == len(b.items) and all(map(self.same, a.items, b.items))
        if isinstance(a, Slice) and isinstance(b, Slice):
            return all(map(self.same, (a.start, a.stop, a.step), (b.start, b.stop, b.step)))
        makers = [self.maker.get(v) if isinstance(v, Var) and whole(v) else None for v in (a, b)]
        if not all(isinstance(m, Let) and len(m.targets) == 1 and isinstance(m.value, Apply) for m in makers):
            return False
        x, y = (m.value for m in makers)
        return x.function in (operator.add, operator.sub, operator.mul, operator.neg) and x.function is y.function and \
            len(x.args) == len(y.args) and all(map(self.same, x.args, y.args))

    def apart(self, first, its_loops, second, loops, crossed, fact):
        """Whether two indices into an array certainly reach no common entry.

        crossed: None, or the number of the loop around the first, counted from outside, that has begun another pass
        before the second
        """
        shared = 0
        for a, b in zip(its_loops, loops):
            if a is not b:
                break
            shared += 1
        same = shared if crossed is None else min(shared, crossed)
        left, right = Side(self, its_loops, its_loops, 0), Side(self, loops, its_loops[:same], 1)
        facts = left.bounds() + right.bounds()
        if crossed is not None and crossed < shared and isinstance(loop := its_loops[crossed], For):
            earlier, later = left.value(loop.index), right.value(loop.index)
            facts.append(earlier - later - 1 if loop.reverse else later - earlier - 1)
        ours, theirs = left.entries(first, fact, facts), right.entries(second, fact, facts)
        facts += left.lengths() + right.lengths()
        return impossible(facts + ours + theirs)

    def cover(self, indices, loops, fact):
        """Whether indices, all in one pass of these loops, together certainly reach every entry of an array.

        An entry that none reaches lies, for each index, before or behind it on some axis.
        """
        side = Side(self, loops, loops, 0)
        facts = side.bounds()
        for axis, dim in enumerate(fact.dims):
            place = Linear.of(("axis", axis))
            facts += [place, side.length(dim.normal()) - place - 1]
        reached = [side.entries(index, fact, facts) for index in indices if side.is_exact(index, fact, facts)]

        def none_is_left(facts, reached):
            return impossible(facts) or bool(reached) and all(
                none_is_left([*facts, -within - 1], reached[1:]) for within in reached[0])
        return none_is_left(facts + side.lengths(), reached)


class Names:
    """A worklist of the versions of an array, each with the outermost loop that has begun another pass."""

    def __init__(self, array):
        self.queue, self.seen = [], set()
        self.add([(array, None)])

    def add(self, states):
        more = [state for state in dict.fromkeys(states) if state not in self.seen]
        self.seen.update(more)
        self.queue += more

    def __iter__(self):
        while self.queue:
            yield self.queue.pop()


class Side:
    """The inequalities of one of two accesses; values that may differ between them are separate unknowns.

    by_axis: the length of an axis is one unknown, whichever array it is read from
    """

    def __init__(self, regions, loops, shared, number, by_axis=False):
        self.regions, self.loops, self.shared, self.number, self.symbols = regions, loops, shared, number, {}
        self.by_axis = by_axis

    def unknown(self, v):
        """A value as an unknown, which both accesses share if they read it in the same pass."""
        around = self.regions.loops.get(v, ())
        alike = len(around) <= len(self.shared) and all(a is b for a, b in zip(around, self.shared))
        return Linear.of((v, 0 if alike else self.number))

    def value(self, node):
        """An integer as a sum of unknowns."""
        if isinstance(node, Const):
            return Linear({}, int(node.value))
        step = self.regions.maker.get(node)
        if self.by_axis and isinstance(step, Let) and reads(step.value) == "shape" and len(step.value.args) == 2:
            of, axis = step.value.args
            return self.length(of.fact.dims[axis.value].normal())
        length = node.fact.length and node.fact.length.normal()
        if length and (length.symbol is None or length.symbol in self.regions.lasting):
            return self.length(length)
        if isinstance(step, For):
            for item, source in step.items:
                if item is node and (bounds := self.range_of(source)) is not None:
                    return bounds[0] + bounds[2] * self.unknown(step.index)
        value = step.value if isinstance(step, Let) and len(step.targets) == 1 else None
        if isinstance(value, (Var, Const)):
            return self.value(value) if whole(value) else self.unknown(node)
        if isinstance(value, Apply) and not value.kwargs and all(map(whole, value.args)):
            if value.function in (operator.add, operator.sub):
                a, b = map(self.value, value.args)
                return a + b if is_application(value, operator.add) else a - b
            if is_application(value, operator.neg):
                return -self.value(value.args[0])
            if is_application(value, operator.mul):
                a, b = map(self.value, value.args)
                if not a.terms or not b.terms:
                    return a * b.constant if not b.terms else b * a.constant
        return self.unknown(node)

    def length(self, length):
        """The length of an axis; lengths of arguments are the same everywhere, others only within one pass."""
        if length.symbol is None:
            return Linear({}, length.offset)
        alike = length.symbol in self.regions.lasting or len(self.shared) == len(self.loops)
        self.symbols[length.symbol] = Linear.of((length.symbol, 0 if alike else self.number))
        return self.symbols[length.symbol] + length.offset

    def lengths(self):
        return list(self.symbols.values())

    def range_of(self, source):
        """(start, stop, step) of a range that a loop iterates over, with a constant step; else None."""
        if isinstance(source, Var):
            step = self.regions.maker.get(source)
            source = step.value if isinstance(step, Let) else None
        if not isinstance(source, Apply) or source.function is not range:
            return None
        parts = (Const(0), *source.args, Const(1)) if len(source.args) == 1 else (*source.args, Const(1))[:3]
        if not all(map(whole, parts)) or not isinstance(parts[2], Const) or not parts[2].value:
            return None
        return self.value(parts[0]), self.value(parts[1]), parts[2].value

    def passes(self, loop):
        """The number of passes of a loop that has any, as a sum of unknowns; None if it is not linear."""
        made = self.regions.maker.get(loop.count)
        if isinstance(made, Let) and isinstance(made.value, Apply) and made.value.function is run_length:
            bounds = self.range_of(Apply(range, made.value.args))
            return (bounds[1] - bounds[0]) * bounds[2] if bounds is not None and abs(bounds[2]) == 1 else None
        return self.value(loop.count) if whole(loop.count) else None

    def bounds(self):
        """Inequalities that hold for the indices of the loops around."""
        found = []
        for loop in self.loops:
            if not isinstance(loop, For):
                continue
            index = self.unknown(loop.index)
            found.append(index)
            made = self.regions.maker.get(loop.count)
            least = made.value.args if isinstance(made, Let) and isinstance(made.value, Apply) and \
                made.value.function in LEAST and not made.value.kwargs else ()
            found += [self.value(count) - index - 1 for count in (loop.count, *least) if whole(count)]
            sources = [source for _, source in loop.items]
            if isinstance(made, Let) and isinstance(made.value, Apply) and made.value.function is run_length:
                sources.append(Apply(range, made.value.args))
            for source in sources:
                if (bounds := self.range_of(source)) is not None:
                    start, stop, step = bounds
                    found.append(stop - (start + step * index) - 1 if step > 0 else start + step * index - stop - 1)
        return found

    def is_exact(self, index, fact, facts):
        """Whether the inequalities of an index describe exactly the entries that it reaches."""
        parts = axes_of(index)
        return len(parts) == len(parts_of(index)) <= len(fact.dims) and all(
            part is not None and (not isinstance(part, Slice) or is_none_or(part.step, 1)) and all(
                is_none_or(end) or whole(end) and self.from_front(self.value(end), dim, facts) is not None
                for end in ((part.start, part.stop) if isinstance(part, Slice) else (part,)))
            for part, dim in zip(parts, fact.dims))

    def entries(self, index, fact, facts):
        """Inequalities that an index gives for the place of an entry on each axis, an unknown."""
        found = []
        for axis, part in enumerate(axes_of(index)):
            if axis >= len(fact.dims):
                break
            place = Linear.of(("axis", axis))
            if not isinstance(part, Slice):
                if part is None:
                    continue
                at = self.from_front(self.value(part), fact.dims[axis], facts)
                found += [] if at is None else [place - at, at - place]
                continue
            back = part.step is not None and not (isinstance(part.step, Const) and (
                part.step.value is None or part.step.value > 0))
            if back:
                continue
            for end, sign in ((part.start, 1), (part.stop, -1)):
                if is_none_or(end) or not whole(end):
                    continue
                at = self.from_front(self.value(end), fact.dims[axis], facts)
                if at is not None:
                    found.append(place - at if sign > 0 else at - place - 1)
        return found

    def from_front(self, at, dim, facts):
        """An index counted from the front of its axis; None if it may be negative or not."""
        if not at.terms and at.constant < 0:
            return self.length(dim.normal()) + at.constant
        return at if impossible([*facts, *self.lengths(), -at - 1]) else None


def access(array: Var, step: Let | For | While | If | Effect) -> tuple[str, Any]:
    """(what a statement does with an array, the index): it reads "all", "part" or its "shape", or is a "write"."""
    value = step.value if isinstance(step, Let) else None
    if not isinstance(value, Apply) or not value.args or value.args[0] is not array or sum(
            v is array for v in operands(value)) > 1:
        return "all", None
    if updates(value):
        return ("write", value.args[1]) if type(array.fact) is Array else ("all", None)
    what = reads(value)
    return what, value.args[1] if what == "part" else None


def sets(step, index):
    """Whether a write sets exactly the entries at an index, whatever they were."""
    return step.value.function is put and same_operand(step.value.args[1], index)


def named(use: Any) -> tuple:
    """The operands that a use by a carry or join passes on."""
    part = use.part
    return (part.then, part.orelse) if use.role == "join" else (getattr(part, use.role),)


def whole(node: Any) -> bool:
    """Whether an operand is an integer that does not wrap around, and no bool."""
    if isinstance(node, Const):
        return isinstance(node.value, (int, np.integer)) and not isinstance(node.value, bool)
    return isinstance(node, Var) and type(node.fact) is Array and not node.fact.dims and node.fact.kind == "i" and (
        node.fact.weak or np.dtype(node.fact.dtype).itemsize == 8)


def is_none_or(node, *values):
    """Whether an operand is missing, None, or one of some constants."""
    return node is None or isinstance(node, Const) and (node.value is None or node.value in values)


def axes_of(index):
    """The parts of an index by axis: an integer, a slice, or None if it may be any entry.

    The list ends at a part that may index more than one axis.
    """
    found = []
    for part in parts_of(index):
        part = as_slice(part)
        if isinstance(part, Const) and part.value is None:
            continue                    # a new axis
        if isinstance(part, Slice) or whole(part):
            found.append(part)
        elif isinstance(part, Var) and type(part.fact) is Array and part.fact.rank and part.fact.kind in "iu":
            found.append(None)
        else:
            break
    return found
