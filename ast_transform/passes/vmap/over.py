# SPDX-License-Identifier: Apache-2.0
"""Collectives over the batch axis by its name (psum, all_gather, ...): they become operations along that axis."""
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Let, Pack
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.state import Batch
from gradscribe.runtime import collectives as named

WHOLE = {named.psum: np.sum, named.pmean: np.mean, named.pmax: np.max, named.pmin: np.min}


def over_axis(batch: Batch, step: Let, value: Any) -> None:
    first, function, names = step.targets[0], value.function, value.args[-1].value
    words = {k: v.value for k, v in value.kwargs}
    if function is named.axis_index:
        batch.define(first, batch.build.apply(np.arange, batch.count, hint=first.hint))
    elif function is named.axis_size:
        batch.new[first] = batch.count
    elif function in WHOLE:
        made = joined_over(batch, function, value.args[0])
        rest = names.without(batch.axis)
        if rest:
            made = batch.build.let(first.hint, Apply(function, (made, Const(rest))), first.fact)
        batch.define(first, made)
    else:
        batch.define(first, BETWEEN[function](batch, batch.whole(value.args[0], True), **words))


def joined_over(batch, function, node):
    """The reduction of a value over all examples."""
    x = batch.op(node)
    if batch.differs(node):
        return batch.build.apply(WHOLE[function], x, axis=Const(0))
    if function is named.psum:
        return batch.build.multiply(batch.count, batch.build.cast(x, np.dtype(int)) if fact_of(x).kind == "b" else x)
    return batch.build.multiply(Const(1.0), x) if function is named.pmean and fact_of(x).kind in "biu" else x


def moved(batch, x, source, place):
    return x if source == place else batch.build.apply(np.moveaxis, x, Const(source), Const(place))


def shaped(batch, x, lengths):
    return batch.build.apply(np.reshape, x, Pack("tuple", tuple(lengths)))


def lengths_of(batch, x):
    return [batch.build.length(x, k) for k in range(fact_of(x).rank)]


def all_gather(batch, x, axis, tiled):
    if not tiled:
        return moved(batch, x, 0, axis)
    count, *own = lengths_of(batch, x)
    own[axis] = batch.build.multiply(count, own[axis])
    return shaped(batch, moved(batch, x, 0, axis), own)


def parted(batch, x, axis):
    """x with an axis split in two: one part for each example, and the length of a part."""
    lengths = lengths_of(batch, x)
    share = batch.build.apply(np.floor_divide, lengths[axis], batch.count)
    return shaped(batch, x, [*lengths[:axis], batch.count, share, *lengths[axis + 1:]])


def psum_scatter(batch, x, scatter_dimension, tiled):
    total = batch.build.apply(np.sum, x, axis=Const(0))
    return moved(batch, parted(batch, total, scatter_dimension) if tiled else total, scatter_dimension, 0)


def all_to_all(batch, x, split_axis, concat_axis, tiled):
    if not tiled:
        return moved(batch, moved(batch, x, split_axis + 1, 0), 1, concat_axis + 1)
    parts = moved(batch, parted(batch, x, split_axis + 1), split_axis + 1, 0)
    there = moved(batch, parts, 1, concat_axis + 1)
    count, *lengths = lengths_of(batch, there)
    joined = batch.build.multiply(lengths[concat_axis], lengths[concat_axis + 1])
    return shaped(batch, there, [count, *lengths[:concat_axis], joined, *lengths[concat_axis + 2:]])


def pshuffle(batch, x, perm):
    return batch.build.item(x, places(batch, perm))


def ppermute(batch, x, perm):
    start = batch.build.apply(np.zeros_like, x)
    if not perm:
        return start
    sources, goals = zip(*perm)
    sent = batch.build.item(x, places(batch, sources))
    return batch.build.let(start.hint, Apply(put, (start, places(batch, goals), sent)), start.fact)


def places(batch, numbers):
    return batch.build.apply(np.array, Pack("list", tuple(map(Const, numbers))))


BETWEEN: dict[Any, Callable[..., Any]] = {
    named.all_gather: all_gather, named.psum_scatter: psum_scatter, named.all_to_all: all_to_all,
    named.pshuffle: pshuffle, named.ppermute: ppermute}
