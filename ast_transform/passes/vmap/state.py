# SPDX-License-Identifier: Apache-2.0
"""The state of one application of vmap: what is known of the values of a body and of their batched forms."""
import math
import operator
from contextlib import contextmanager

import numpy as np

from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    UNDEFINED,
    Apply,
    Carry,
    Const,
    For,
    Let,
    Pack,
    Var,
    all_made,
    all_reads,
    is_application,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Opaque, Sequence, Stack
from gradscribe.ast_transform.core.operations import no_elements, push
from gradscribe.ast_transform.core.rule import ByExample
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.varies import differs, is_over, keys_of, part_of


class Batch:
    """The first argument of the functions in this folder.

    new: {value: the operand that holds its batched form}; scope: values that are set where the next statement goes;
    varies: which values differ (varies.py); reads: how often each value is read; unset: values that a path may leave
    without one; length, count: the number of examples, as a length and as an operand; forms: {(callee, which arguments
    differ): its batched form, or None}; reason: why `strategy` is "loop".
    """

    def __init__(self, reader, label, function, length, axis=None, strategy="auto", reason="strategy='loop'"):
        self.reader, self.build, self.label, self.function, self.length = reader, reader.build, label, function, length
        self.axis, self.strategy, self.reason = axis, strategy, reason
        self.count = self.varies = None
        self.new, self.scope, self.reads, self.unset, self.forms = {}, [], {}, set(), {}

    def mask(self, node):
        return self.varies.of(node)

    def differs(self, node):
        return differs(self.varies.of(node))

    def is_batched(self, step):
        """Whether a statement reads or makes values that differ, or draws."""
        return any(map(self.differs, (*all_reads(step), *all_made([step])))) or draws([step])

    def is_over(self, step):
        """Whether a statement, or one in its blocks, is an operation over the batch axis."""
        return any(isinstance(s, Let) and is_over(s.value, self.axis) for s in walk([step]))

    @contextmanager
    def new_block(self):
        """A block that takes the next statements; what they set is not in scope after it."""
        outer, mark = self.build.block, len(self.scope)
        self.build.block = block = []
        yield block
        self.build.block = outer
        del self.scope[mark:]

    def fact(self, fact, mask=True):
        """The fact of a value with the batch axis in front."""
        if not differs(mask):
            return fact
        if isinstance(fact, Sequence):
            return Sequence(fact.kind, tuple(map(self.fact, fact.elements, mask)), fact.keys, fact.cls)
        if isinstance(fact, Stack):
            return Stack(self.fact(fact.element, mask))
        if isinstance(fact, Listed):
            return Listed(np.dtype(fact.dtype), (fact.dims[0], self.length, *fact.dims[1:]))
        return Array(np.dtype(fact.dtype), (self.length, *fact.dims))

    def op(self, node):
        return substituted(node, self.new)

    def like(self, var):
        """A new variable for the batched value of another."""
        self.new[var] = Var(var.hint, self.fact(var.fact, self.mask(var)), var.kind, var.saving)
        return self.new[var]

    def let(self, var, value):
        """Adds the operation that makes the batched form of a variable."""
        self.new[var] = self.build.let(var.hint, value, self.fact(var.fact, self.mask(var)), var.kind)

    def define(self, var, value):
        """Makes a value the batched form of a variable: gives it the name, and the dtype of one example."""
        want = self.fact(var.fact, self.mask(var))
        if isinstance(want, Array) and isinstance(value, (Var, Const)):
            if fact_of(value).rank != want.rank:
                raise ByExample("its axes are not those of one example with one more")
            if np.dtype(fact_of(value).dtype) != want.dtype:
                value = self.build.cast(value, want.dtype, var.hint)
        if isinstance(value, Var) and value in self.build.made and value.kind == TEMPORARY and \
                value not in self.scope:
            value.hint, value.kind = var.hint, var.kind
        self.new[var] = value
        if isinstance(value, Var):
            self.scope.append(value)

    def whole(self, node, mask, fact=None):
        """An operand whose parts have the batch axis wherever the mask says so."""
        if isinstance(node, Pack):
            masks = mask if isinstance(mask, tuple) else [mask] * len(node.items)
            return Pack(node.kind, tuple(map(self.whole, node.items, masks)), node.keys, node.cls)
        have = self.mask(node)
        if not differs(mask) or have == mask or node is UNDEFINED:
            return self.op(node)
        if isinstance(node, Var) and isinstance(node.fact, Sequence):
            parts = []
            for key, element, m in zip(keys_of(node.fact), node.fact.elements, mask):
                get = getattr if node.fact.kind == "record" else operator.getitem
                part = self.build.let("item", Apply(get, (node, Const(key))), element)
                self.varies.masks[part] = part_of(node.fact, have, key)
                if self.differs(part):
                    held_ = self.op(node)
                    self.build.block.pop()
                    self.new[part] = self.build.let("item", Apply(get, (held_, Const(key))),
                                                    self.fact(element, self.mask(part)))
                parts.append(self.whole(part, m))
            return Pack(node.fact.kind, tuple(parts), node.fact.keys, node.fact.cls)
        given = self.op(node)
        held_fact = fact or fact_of(node)
        if isinstance(held_fact, Opaque):
            return given
        if not isinstance(held_fact, Array) or isinstance(held_fact, Listed):
            if is_application(self.build.made.get(given), no_elements):
                return given            # an empty list needs no batch axis
            if not isinstance(held_fact, Listed):
                raise ByExample("a list is the same for all examples in one place and differs in another")
            return self.spread(given, held_fact)
        return self.repeated(given, held_fact)

    def spread(self, items, fact):
        """A list that is the same for all examples, each of its arrays repeated along a batch axis."""
        made, element = self.build.made.get(items), Array(np.dtype(fact.dtype), fact.dims[1:])
        whole, hint = self.fact(fact), items.hint
        if is_application(made, no_elements):
            return items
        if is_application(made, push):
            stack, v = made.args
            value = Apply(push, (self.spread(stack, fact), self.repeated(v, element)))
            return self.build.let(hint, value, whole, items.kind)
        many, empty = self.build.length(items, 0), self.build.let(hint, Apply(no_elements, ()), whole)
        inner = Var(hint, whole)
        index = Var("k", Array(int))
        with self.new_block() as body:
            item = self.build.let("item", Apply(operator.getitem, (items, index)), element)
            after = self.build.let(hint, Apply(push, (inner, self.repeated(item, element))), whole)
        outer = Var(hint, whole)
        carries = [Carry(inner, empty, after, outer)]
        self.build.block.append(For(index, many, (), carries, body, self.build.origin))
        return outer

    def repeated(self, value, fact):
        """A value that is the same for all examples, repeated along a batch axis."""
        dims = [self.build.length(value, k) for k in range(fact_of(value).rank)] if isinstance(value, Var) else []
        shape = Pack("tuple", (self.count, *dims)) if dims else self.count
        dtype = np.dtype(fact.dtype)
        hint = value.hint if isinstance(value, Var) else "t"
        want = Array(dtype, (self.length, *fact.dims))
        made = self.build.definition(value) if isinstance(value, Var) else None
        words = {} if dtype == np.float64 else {"dtype": Const(dtype)}
        if isinstance(value, Const) and type(value.value) in (int, float) and value.value == 0 and \
                math.copysign(1, value.value) > 0 or \
                isinstance(made, Apply) and made.function in (np.zeros, np.zeros_like):
            return self.build.apply(np.zeros, shape, hint=hint, fact=want, **words)
        if is_application(made, np.empty) and made.args:     # no contents to copy
            lengths = made.args[0].items if isinstance(made.args[0], Pack) else (made.args[0],)
            shape = Pack("tuple", (self.count, *map(self.op, lengths)))
            return self.build.apply(np.empty, shape, hint=hint, fact=want, kind=value.kind, **words)
        words = {} if fact_of(value).dtype == dtype or dtype == np.dtype(fact_of(value).dtype) else \
            {"dtype": Const(dtype)}
        return self.build.apply(np.full, shape, value, hint=hint, fact=want, **words)

    def length_of(self, length):
        """A length as an operand, from the arrays in scope; None if none has it."""
        n = length.normal()
        if n.symbol is None:
            return Const(n.offset)
        for v in self.scope:
            if isinstance(v, Var) and isinstance(v.fact, Array) and not isinstance(v.fact, Listed):
                for k, d in enumerate(v.fact.dims):
                    if d.same(length):
                        return self.build.length(v, k)
        return None
