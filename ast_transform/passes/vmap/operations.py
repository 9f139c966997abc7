# SPDX-License-Identifier: Apache-2.0
"""Whole-batch forms of the operations of the normal form: lengths, indexing, writes, lists."""
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Let, Pack, Slice, Var
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
from gradscribe.ast_transform.passes.vmap.state import Batch

WHOLE = slice(None)


def op_shape_of(batch, step, value):
    x, k = value.args
    if isinstance(x.fact, Listed) and k.value == 0:
        batch.new[step.targets[0]] = batch.build.length(batch.op(x), 0)
        return
    batch.new[step.targets[0]] = batch.build.length(batch.op(x), k.value + 1)


def op_size_of(batch, step, value):
    x, total = value.args[0], Const(1)
    for k in range(x.fact.rank):
        total = batch.build.multiply(total, batch.build.length(batch.op(x), k + 1))
    batch.new[step.targets[0]] = total


def op_item(batch, step, value):
    x, index = value.args
    first = step.targets[0]
    if isinstance(x, Apply):
        raise ByExample(f"{spelled(x.function)} gives several results")
    fact = x.fact if isinstance(x, Var) else None
    if isinstance(fact, Sequence) or value.function is getattr:
        batch.let(first, batch.op(value))
        return
    if isinstance(fact, Listed):
        if batch.differs(index):
            raise ByExample("the index into a list differs")
        batch.define(first, batch.build.let(first.hint, batch.op(value), batch.fact(first.fact)))
        return
    batch.define(first, batch.build.item(*place_of(batch, x, index)))


def place_of(batch, x, index):
    """(batched x, index that takes from each example the entries that `index` takes from x)."""
    parts = list(index.items) if isinstance(index, Pack) and index.kind == "tuple" else \
        list(index.value) if isinstance(index, Const) and isinstance(index.value, tuple) else [index]
    parts = [p if isinstance(p, (Var, Const, Pack, Slice)) else Const(p) for p in parts]
    own = batch.differs(x)
    if not any(map(batch.differs, parts)):
        if any(advanced(p) for p in parts) and apart(parts):
            raise ByExample("the index has arrays on both sides of a slice")
        return batch.op(x), Pack("tuple", (Const(WHOLE), *map(batch.op, parts)))
    if any(isinstance(p, Slice) and batch.differs(p) for p in parts):
        raise ByExample("the ends of a slice differ")
    if any(isinstance(p, (Var, Const)) and fact_of(p).__class__ is Array and fact_of(p).kind == "b" for p in parts):
        raise ByExample("a mask takes a number of entries of its own from each example")
    last = max(k for k, p in enumerate(parts) if advanced(p))
    if not all(advanced(p) for p in parts[:last + 1]):
        raise ByExample("an index that differs follows a slice")
    rank = max(fact_of(p).rank for p in parts[:last + 1])
    taken = [aligned(batch, p, rank) if isinstance(p, Var) and batch.differs(p) else batch.op(p)
             for p in parts[:last + 1]]
    rest = [batch.op(p) for p in parts[last + 1:]]
    if not own:
        return batch.op(x), Pack("tuple", (*taken, *rest)) if len(taken) + len(rest) > 1 else taken[0]
    rows = batch.build.apply(np.arange, batch.count)
    if rank:
        rows = batch.build.item(rows, Pack("tuple", (Const(WHOLE), *[Const(None)] * rank)))
    return batch.op(x), Pack("tuple", (rows, *taken, *rest))


def op_put(batch, step, value):
    u, index, v = value.args
    first = step.targets[0]
    if isinstance(u.fact, Listed):
        if batch.differs(index):
            raise ByExample("the index into a list differs")
        mask = batch.mask(first)
        batch.let(first, Apply(value.function, (batch.whole(u, mask), batch.op(index), batch.whole(v, mask))))
        return
    if not batch.differs(u):
        base = batch.repeated(batch.op(u), u.fact)
        masks, batch.varies.masks[u] = batch.varies.masks.get(u, False), True
        kept, batch.new[u] = batch.new.get(u), base
        try:
            _, place = place_of(batch, u, index)
        finally:
            batch.varies.masks[u] = masks
            if kept is None:
                del batch.new[u]
            else:
                batch.new[u] = kept
    else:
        base, place = place_of(batch, u, index)
    if batch.differs(v):
        with batch.new_block():
            rank = batch.build.item(u, index).fact.rank         # of one example
        v = aligned(batch, as_an_array(batch, v), rank)
    else:
        v = batch.op(v)
    batch.let(first, Apply(value.function, (base, place, v)))


def aligned(batch: Batch, node: Any, rank: int) -> Any:
    if isinstance(node, Pack):
        if batch.differs(node):
            raise ByExample("a list of values that differ is an operand")
        return node
    if not batch.differs(node):
        return batch.op(node)
    missing = rank - node.fact.rank
    value = batch.op(node)
    if missing <= 0:
        return value
    return batch.build.item(value, Pack("tuple", (Const(WHOLE), *[Const(None)] * missing)))


def as_an_array(batch, v):
    """A batched list as an array, in which the batch axis is first."""
    if not isinstance(v, Var) or not isinstance(v.fact, Listed):
        return v
    array = Var(v.hint, Array(np.dtype(v.fact.dtype), v.fact.dims), v.kind)
    batch.varies.masks[array] = True
    op_as_array(batch, Let((array,), None), Apply(as_array, (v,)))
    return array


def op_astype(batch, step, value):
    batch.define(step.targets[0], batch.build.cast(batch.op(value.args[0]), np.dtype(value.args[1].value)))


def op_held(batch, step, value):
    batch.let(step.targets[0], batch.op(value))


def op_push(batch, step, value):
    (stack, v), first = value.args, step.targets[0]
    mask = batch.mask(first)
    batch.let(first, Apply(value.function, (batch.whole(stack, mask), batch.whole(v, mask))))


def op_pop(batch, step, value):
    masks = [batch.mask(t) for t in step.targets]
    made = batch.build.several([t.hint for t in step.targets], batch.op(value),
                               [batch.fact(t.fact, m) for t, m in zip(step.targets, masks)])
    for t, new in zip(step.targets, made):
        new.kind = t.kind
        batch.new[t] = new


def op_unpacked(batch, step, value):
    x = value.args[0]
    if isinstance(x.fact, Sequence):
        op_pop(batch, step, value)
        return
    for k, t in enumerate(step.targets):
        batch.define(t, batch.build.item(batch.op(x), Pack("tuple", (Const(WHOLE), Const(k)))))


def op_as_array(batch: Batch, step: Let, value: Any) -> None:
    items = value.args[0]
    x = batch.build.let("t", batch.op(value), Array(np.dtype(items.fact.dtype), batch.fact(items.fact).dims))
    if not isinstance(items.fact, Listed):          # np.array(list(x)): the batch axis is first already
        batch.define(step.targets[0], x)
        return
    if items.fact.rank == 1:        # NumPy makes an array without the batch axis from an empty list
        shape = Pack("tuple", (batch.build.length(batch.op(items), 0), batch.count))
        x = batch.build.apply(np.reshape, x, shape)
    batch.define(step.targets[0], batch.build.apply(np.moveaxis, x, Const(0), Const(1)))


def op_as_list(batch, step, value):
    x = value.args[0]
    given = batch.op(x)
    if not isinstance(x.fact, Listed):
        given = batch.build.apply(np.moveaxis, given, Const(1), Const(0))
    batch.let(step.targets[0], Apply(as_list, (given,)))


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
    shape_of: op_shape_of, size_of: op_size_of, operator.getitem: op_item, getattr: op_item, put: op_put,
    put_add: op_put, add_at: op_put, astype: op_astype, held: op_held, push: op_push, push_front: op_push,
    pop: op_pop, pop_front: op_pop, unpacked: op_unpacked, as_array: op_as_array, as_list: op_as_list,
}
