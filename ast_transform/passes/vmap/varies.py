# SPDX-License-Identifier: Apache-2.0
"""Data flow analysis: which values differ between the examples of a batch.

The mask of a value is True if it differs, False if it is the same for all examples.  The mask of a container of known
structure is a tuple of masks of its parts, or False if nothing in it differs.  Masks only grow, so loops reach a
fixpoint.

>>> joined(False, (True, False)), joined((True, False), (False, False)), differs((False, (True, False)))
((True, False), (True, False), True)
"""
import operator
from collections.abc import Hashable
from types import FunctionType
from typing import Any

from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Pack,
    Slice,
    Var,
    While,
    all_made,
    all_reads,
    operands,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence, Stack
from gradscribe.ast_transform.core.operations import (
    no_elements,
    pop,
    pop_front,
    push,
    push_front,
    shape_of,
    size_of,
    unpacked,
)
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.reader.named_axes import COLLECTIVES
from gradscribe.runtime import collectives as named

HELD = {push, push_front, pop, pop_front}
LENGTHS = {shape_of, size_of}
JOINING = {named.psum, named.pmean, named.pmax, named.pmin, named.all_gather, named.axis_size}  # one result for all


def differs(mask: bool | tuple) -> bool:
    return any(map(differs, mask)) if isinstance(mask, tuple) else mask


def brings_batch(value: Any) -> bool:
    """Whether a value is a call of a function with a batching rule."""
    function = value.function if isinstance(value, Apply) else None
    return isinstance(function, Function) and function.custom is not None and function.custom.rule.mode == "vmap"


def is_over(value: Any, axis: Hashable) -> bool:
    """Whether a value is an operation over the axis of that name, or a call of a function with a batching rule."""
    return brings_batch(value) or axis is not None and isinstance(value, Apply) and isinstance(
        value.function, FunctionType) and value.function in COLLECTIVES and axis in value.args[-1].value


def joined(a: Any, b: Any) -> bool | tuple:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(map(joined, a, b))
    if isinstance(a, tuple) or isinstance(b, tuple):
        known, other = (a, b) if isinstance(a, tuple) else (b, a)
        return tuple(joined(m, other) for m in known) if other else known
    return a or b


def all_of(fact: Any) -> bool | tuple:
    """The mask of a value that differs in every part."""
    if isinstance(fact, Sequence):
        return tuple(all_of(e) for e in fact.elements)
    if isinstance(fact, Stack):
        return all_of(fact.element)
    return isinstance(fact, Array)


def part_of(fact: Sequence, mask: Any, key: Any) -> bool | tuple:
    """The mask of a part of a container."""
    if not mask:
        return False
    if mask is True:
        mask = all_of(fact)
    return mask[keys_of(fact).index(key) if fact.kind in ("dict", "record") else key]


def keys_of(fact: Sequence) -> list:
    return list(fact.keys) if fact.kind in ("dict", "record") else list(range(len(fact.elements)))


def symbols(var) -> set:
    """The symbols of the lengths of an array's axes, or of the arrays that a container holds."""
    def of(fact):
        if isinstance(fact, Sequence):
            return set().union(*map(of, fact.elements))
        return {d.normal().symbol for d in fact.dims} - {None} if isinstance(fact, Array) else set()
    return of(var.fact)


def counted(var) -> set:
    """The symbol of the length that an integer is, as a set."""
    length = getattr(var.fact, "length", None)
    return set() if length is None else {length.normal().symbol}


def equally_long(a, b) -> bool:
    """Whether two lists certainly have the same number of elements."""
    return all(isinstance(getattr(v, "fact", None), Listed) for v in (a, b)) and \
        a.fact.dims[0].normal() == b.fact.dims[0].normal()


class Varies:
    """The masks of all values of a body.

    inputs: the masks of parameters that differ; axis: the name of the batch axis; own(step, value, masks): the masks of
    the results of a call of a function with a batching rule
    """

    def __init__(self, body, inputs, axis=None, own=None):
        self.axis, self.own = axis, own
        self.apart = set()              # symbols of lengths that differ between the examples
        before = None
        while self.apart != before:
            self.masks, before = dict(inputs), set(self.apart)
            self.ragged = set()         # values joined by a test that differs: lists of these have several lengths
            self.block(body)
            self.apart |= self.lengths_that_differ(body, inputs)

    def lengths_that_differ(self, body, inputs) -> set:
        """The symbols of lengths that differ: the first value that has a length decides whether it does.

        An integer has the length that it counts.  If a result has a length that no operand has, it depends on the
        integers and bools among the operands, or on all values if the record has the option by_value.
        """
        inside = set(all_made(body))
        apart, given = set(self.apart), [*inputs, *(v for s in body for v in all_reads(s) if v not in inside)]
        shared = set().union(*map(symbols, given))          # a batch holds arrays of one shape
        known = set(shared)
        for v in given:
            if differs(self.of(v)):
                apart |= counted(v) - known
            known |= counted(v)
        for targets, differ, sources in self.origins(body):
            differ = differ or any(symbols(v) & apart for v in sources)
            for v in targets:
                ragged = v in self.ragged and isinstance(v.fact, Listed)
                if ragged or differ:
                    apart |= symbols(v) if ragged else symbols(v) - known
                if differs(self.of(v)):
                    apart |= counted(v) - known
                known |= symbols(v) | counted(v)
        return apart - shared

    def origins(self, body):
        """Yields (values, whether values that differ decide their lengths, the values that they get lengths from)."""
        for step in body:
            if isinstance(step, Let):
                yield step.targets, self.decides(step.value), list(operands(step.value))
            elif isinstance(step, If):
                yield from self.origins(step.then)
                yield from self.origins(step.orelse)
                for j in step.joins:
                    yield [j.var], differs(self.of(step.test)), [v for v in (j.then, j.orelse) if isinstance(v, Var)]
            elif isinstance(step, (For, While)):
                own = differs(self.of(step.count if isinstance(step, For) else step.test))
                for c in step.carries:
                    yield [c.inner], own, [v for v in (c.init, c.next) if isinstance(v, Var)]
                if isinstance(step, For):
                    yield [step.index], False, []
                    for v, source in step.items:
                        yield [v], False, list(operands(source))
                else:
                    yield from self.origins(step.head)
                yield from self.origins(step.body)
                for c in step.carries:
                    yield [c.outer], own, [v for v in (c.init, c.next) if isinstance(v, Var)]

    def decides(self, value) -> bool:
        """Whether values that differ decide a length of the result of an operation."""
        given = [v for v in operands(value) if differs(self.of(v))]
        if not given or not isinstance(value, Apply):
            return False
        if isinstance(value.function, Function):
            masks = {p.value: self.of(a) for p, a in zip(value.function.params, value.args) if isinstance(p.value, Var)}
            return bool(Varies(value.function.body, masks, self.axis, self.own).apart)
        record = rule_of(value.function)
        return record is not None and "by_value" in record.options or any(
            not isinstance(v.fact, Array) or not v.fact.dims or v.fact.kind in "iub" for v in given)

    def length_differs(self, function, args) -> bool:
        """Whether the result of shape_of or size_of differs between the examples."""
        x = args[0]
        if not isinstance(x, Var) or not isinstance(x.fact, Array) or not differs(self.of(x)):
            return isinstance(x, Var) and x in self.ragged
        dims = x.fact.dims if function is size_of else x.fact.dims[args[1].value:args[1].value + 1]
        return any(d.normal().symbol in self.apart for d in dims)

    def of(self, node):
        if isinstance(node, Var):
            return self.masks.get(node, False)
        if isinstance(node, Pack):
            masks = tuple(map(self.of, node.items))
            return masks if differs(masks) else False
        if isinstance(node, Slice):
            return any(differs(self.of(v)) for v in operands(node))
        return False

    def block(self, body):
        for step in body:
            getattr(self, "step_" + type(step).__name__)(step)

    def set(self, var, mask):
        self.masks[var] = joined(self.masks.get(var, False), mask)

    def step_Effect(self, step):
        pass

    def step_Let(self, step):
        for target, mask in zip(step.targets, self.made(step)):
            self.set(target, mask)

    def made(self, step):
        value, targets = step.value, step.targets
        if not isinstance(value, Apply):
            return [self.of(value)]
        function, args = value.function, value.args
        if is_draw(value):              # each example draws numbers of its own
            return [all_of(t.fact) for t in targets]
        if function in LENGTHS:
            return [self.length_differs(function, args)]
        if function is no_elements:
            return [False]
        if brings_batch(value):
            masks = list(map(self.of, args))
            return self.own(step, value, masks) if any(map(differs, masks)) else [False] * len(targets)
        if is_over(value, self.axis):
            return [function not in JOINING]
        if function in HELD:
            held = self.of(args[0])
            if args[0] in self.ragged:
                self.ragged.add(targets[0])
            return [joined(held, self.of(args[1]))] if len(args) == 2 else [held] * 2
        fact = args[0].fact if args and isinstance(args[0], Var) else None
        if function is unpacked and isinstance(fact, Sequence):
            mask = self.of(args[0])
            return list(mask) if mask else [False] * len(targets)
        if function in (operator.getitem, getattr) and isinstance(fact, Sequence) and isinstance(args[1], Const):
            mask = self.of(args[0])
            return [part_of(fact, mask, args[1].value)]
        some = any(differs(self.of(v)) for v in operands(value))
        return [all_of(t.fact) if some else False for t in targets]

    def step_If(self, step):
        self.block(step.then)
        self.block(step.orelse)
        for j in step.joins:
            self.set(j.var, all_of(j.var.fact) if differs(self.of(step.test)) else
                     joined(self.of(j.then), self.of(j.orelse)))
            if differs(self.of(step.test)) and not equally_long(j.then, j.orelse) or self.ragged.intersection((
                    j.then, j.orelse)):
                self.ragged.add(j.var)

    def step_For(self, step):
        for var, source in step.items:
            self.set(var, self.element(source))
        if differs(self.of(step.count)):
            self.set(step.index, False)
        self.loop(step, lambda: differs(self.of(step.count)))

    def step_While(self, step):
        self.loop(step, lambda: differs(self.of(step.test)))

    def loop(self, step, own):
        """own(): whether the number of passes differs between the examples"""
        for c in step.carries:
            self.set(c.inner, self.element(c.init) if isinstance(c.inner.fact, Stack) else self.of(c.init))
        while True:
            before = [(self.masks.get(c.inner, False), c.inner in self.ragged) for c in step.carries]
            self.ragged.update(c.inner for c in step.carries if c.init in self.ragged or c.next in self.ragged)
            if not isinstance(step, For):
                self.block(step.head)
            self.block(step.body)
            for c in step.carries:
                self.set(c.inner, self.of(c.next))
            self.ragged.update(c.inner for c in step.carries if c.next in self.ragged)
            if before == [(self.masks.get(c.inner, False), c.inner in self.ragged) for c in step.carries]:
                break
        for c in step.carries:
            mask = self.masks[c.inner]
            if isinstance(c.inner.fact, Stack) and isinstance(c.outer.fact, Sequence):      # its length is known then
                mask = (mask,) * len(c.outer.fact.elements)
            self.set(c.outer, all_of(c.outer.fact) if own() else mask)
            if own() or c.inner in self.ragged:
                self.ragged.add(c.outer)

    def element(self, source):
        """The mask of an item of a loop over a container or an array."""
        mask, fact = self.of(source), getattr(source, "fact", None)
        if isinstance(source, Pack) or isinstance(fact, Sequence):
            found = False
            for m in mask or ():
                found = joined(found, m)
            return found
        return mask

