# SPDX-License-Identifier: Apache-2.0
"""Whole-batch forms of the operations of the normal form: lengths, indexing, writes, lists."""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Let,
    Pack,
    Slice,
    Var,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence
from gradscribe.ast_transform.core.operations import (
    add_at,
    as_array,
    as_list,
    astype,
    held,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
    shape_of,
    size_of,
    unpacked,
)
from gradscribe.ast_transform.core.rule import ByExample
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.varies import differs

WHOLE = slice(None)


class Operations:
    def op_shape_of(self, step, value):
        x, k = value.args
        if isinstance(x.fact, Listed) and k.value == 0:
            self.new[step.targets[0]] = self.build.length(self.op(x), 0)
            return
        self.new[step.targets[0]] = self.build.length(self.op(x), k.value + 1)

    def op_size_of(self, step, value):
        x, total = value.args[0], Const(1)
        for k in range(x.fact.rank):
            total = self.build.multiply(total, self.build.length(self.op(x), k + 1))
        self.new[step.targets[0]] = total

    def op_item(self, step, value):
        x, index = value.args
        first = step.targets[0]
        if isinstance(x, Apply):
            raise ByExample(f"{spelled(x.function)} gives several results")
        fact = x.fact if isinstance(x, Var) else None
        if isinstance(fact, Sequence) or value.function is getattr:
            self.new[first] = self.build.let(first.hint, self.op(value), self.fact(first.fact, self.varies.of(first)),
                                             first.kind)
            return
        if isinstance(fact, Listed):
            if differs(self.varies.of(index)):
                raise ByExample("the index into a list differs")
            self.define(first, self.build.let(first.hint, self.op(value), self.fact(first.fact, True)))
            return
        self.define(first, self.build.item(*self.place(x, index)))

    def place(self, x, index):
        """(batched x, index that takes from each example the entries that `index` takes from x)."""
        parts = list(index.items) if isinstance(index, Pack) and index.kind == "tuple" else \
            list(index.value) if isinstance(index, Const) and isinstance(index.value, tuple) else [index]
        parts = [p if isinstance(p, (Var, Const, Pack, Slice)) else Const(p) for p in parts]
        own = differs(self.varies.of(x))
        if not any(differs(self.varies.of(p)) for p in parts):
            if any(advanced(p) for p in parts) and apart(parts):
                raise ByExample("the index has arrays on both sides of a slice")
            return self.op(x), Pack("tuple", (Const(WHOLE), *map(self.op, parts)))
        if any(isinstance(p, Slice) and differs(self.varies.of(p)) for p in parts):
            raise ByExample("the ends of a slice differ")
        if any(isinstance(p, (Var, Const)) and fact_of(p).__class__ is Array and fact_of(p).kind == "b" for p in parts):
            raise ByExample("a mask takes a number of entries of its own from each example")
        last = max(k for k, p in enumerate(parts) if advanced(p))
        if not all(advanced(p) for p in parts[:last + 1]):
            raise ByExample("an index that differs follows a slice")
        rank = max(fact_of(p).rank for p in parts[:last + 1])
        taken = [self.aligned(p, rank) if isinstance(p, Var) and differs(self.varies.of(p)) else self.op(p)
                 for p in parts[:last + 1]]
        rest = [self.op(p) for p in parts[last + 1:]]
        if not own:
            return self.op(x), Pack("tuple", (*taken, *rest)) if len(taken) + len(rest) > 1 else taken[0]
        rows = self.build.apply(np.arange, self.count)
        if rank:
            rows = self.build.item(rows, Pack("tuple", (Const(WHOLE), *[Const(None)] * rank)))
        return self.op(x), Pack("tuple", (rows, *taken, *rest))

    def op_put(self, step, value):
        u, index, v = value.args
        first = step.targets[0]
        if isinstance(u.fact, Listed):
            if differs(self.varies.of(index)):
                raise ByExample("the index into a list differs")
            mask = self.varies.of(first)
            self.new[first] = self.build.let(
                first.hint, Apply(value.function, (self.whole(u, mask), self.op(index), self.whole(v, mask))),
                self.fact(first.fact, mask), first.kind)
            return
        if not differs(self.varies.of(u)):
            base = self.repeated(self.op(u), u.fact)
            masks, self.varies.masks[u] = self.varies.masks.get(u, False), True
            kept, self.new[u] = self.new.get(u), base
            try:
                _, place = self.place(u, index)
            finally:
                self.varies.masks[u] = masks
                if kept is None:
                    del self.new[u]
                else:
                    self.new[u] = kept
        else:
            base, place = self.place(u, index)
        if differs(self.varies.of(v)):
            taken = self.rank_taken(u, index)
            v = self.aligned(self.as_an_array(v), taken)
        else:
            v = self.op(v)
        self.new[first] = self.build.let(first.hint, Apply(value.function, (base, place, v)),
                                         self.fact(first.fact, True), first.kind)

    def as_an_array(self, v):
        """A batched list as an array, in which the batch axis is first."""
        if not isinstance(v, Var) or not isinstance(v.fact, Listed):
            return v
        array = Var(v.hint, Array(np.dtype(v.fact.dtype), v.fact.dims), v.kind)
        self.varies.masks[array] = True
        self.op_as_array(Let((array,), None), Apply(as_array, (v,)))
        return array

    def rank_taken(self, u, index):
        """The rank of u[index] for one example."""
        before = len(self.build.block)
        fact = self.build.item(u, index).fact
        del self.build.block[before:]
        return fact.rank

    def op_astype(self, step, value):
        self.define(step.targets[0], self.build.cast(self.op(value.args[0]), np.dtype(value.args[1].value)))

    def op_held(self, step, value):
        first = step.targets[0]
        self.new[first] = self.build.let(first.hint, self.op(value), self.fact(first.fact, self.varies.of(first)),
                                         first.kind)

    def op_push(self, step, value):
        stack, v = value.args
        first = step.targets[0]
        mask = self.varies.of(first)
        self.new[first] = self.build.let(first.hint, Apply(value.function, (self.op(stack), self.whole(v, mask))),
                                         self.fact(first.fact, mask), first.kind)

    def op_pop(self, step, value):
        masks = [self.varies.of(t) for t in step.targets]
        made = self.build.several([t.hint for t in step.targets], self.op(value),
                                  [self.fact(t.fact, m) for t, m in zip(step.targets, masks)])
        for t, new in zip(step.targets, made):
            new.kind = t.kind
            self.new[t] = new

    def op_unpacked(self, step, value):
        x = value.args[0]
        if isinstance(x.fact, Sequence):
            self.op_pop(step, value)
            return
        for k, t in enumerate(step.targets):
            self.define(t, self.build.item(self.op(x), Pack("tuple", (Const(WHOLE), Const(k)))))

    def op_as_array(self, step, value):
        items = value.args[0]
        x = self.build.let("t", self.op(value), Array(np.dtype(items.fact.dtype), self.fact(items.fact, True).dims))
        if not isinstance(items.fact, Listed):          # np.array(list(x)): the batch axis is first already
            self.define(step.targets[0], x)
            return
        if items.fact.rank == 1:        # NumPy makes an array without the batch axis from an empty list
            shape = Pack("tuple", (self.build.length(self.op(items), 0), self.count))
            x = self.build.apply(np.reshape, x, shape)
        self.define(step.targets[0], self.build.apply(np.moveaxis, x, Const(0), Const(1)))

    def op_as_list(self, step, value):
        x, first = value.args[0], step.targets[0]
        given = self.op(x)
        if not isinstance(x.fact, Listed):
            given = self.build.apply(np.moveaxis, given, Const(1), Const(0))
        self.new[first] = self.build.let(first.hint, Apply(as_list, (given,)), self.fact(first.fact, True), first.kind)


def advanced(part):
    """Whether a part of an index is an integer or an array."""
    if isinstance(part, Const):
        return type(part.value) is int or isinstance(part.value, np.ndarray)
    return isinstance(part, Var)


def apart(parts):
    """Whether an index has arrays on both sides of a slice, so that NumPy puts their axes in front."""
    places = [k for k, p in enumerate(parts) if advanced(p)]
    arrays = any(isinstance(parts[k], Var) and parts[k].fact.rank or isinstance(parts[k], Const) and
                 isinstance(parts[k].value, np.ndarray) for k in places)
    return arrays and any(k not in places for k in range(places[0], places[-1]))


SPECIAL = {
    shape_of: "op_shape_of", size_of: "op_size_of", operator.getitem: "op_item", getattr: "op_item", put: "op_put",
    put_add: "op_put", add_at: "op_put", astype: "op_astype", held: "op_held", push: "op_push", push_front: "op_push",
    pop: "op_pop", pop_front: "op_pop", unpacked: "op_unpacked", as_array: "op_as_array", as_list: "op_as_list",
}
