# SPDX-License-Identifier: Apache-2.0
"""Collectives over the batch axis by its name (psum, all_gather, ...): they become operations along that axis."""
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Let, Pack, walk
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.varies import differs, is_over
from gradscribe.runtime import collectives as named

WHOLE = {named.psum: np.sum, named.pmean: np.mean, named.pmax: np.max, named.pmin: np.min}


class Over:
    def is_over(self, step):
        """Whether a statement, or one in its blocks, is an operation over the batch axis."""
        return any(isinstance(s, Let) and is_over(s.value, self.axis) for s in walk([step]))

    def over(self, step, value):
        first, function, names = step.targets[0], value.function, value.args[-1].value
        words = {k: v.value for k, v in value.kwargs}
        if function is named.axis_index:
            self.define(first, self.build.apply(np.arange, self.count, hint=first.hint))
        elif function is named.axis_size:
            self.new[first] = self.count
        elif function in WHOLE:
            made = self.joined_over(function, value.args[0])
            rest = names.without(self.axis)
            if rest:
                made = self.build.let(first.hint, Apply(function, (made, Const(rest))), first.fact)
            self.define(first, made)
        else:
            self.define(first, getattr(self, "over_" + function.__name__)(self.whole(value.args[0], True), **words))

    def joined_over(self, function, node):
        """The reduction of a value over all examples."""
        x = self.op(node)
        if differs(self.varies.of(node)):
            return self.build.apply(WHOLE[function], x, axis=Const(0))
        if function is named.psum:
            return self.build.multiply(self.count, self.build.cast(x, np.dtype(int)) if fact_of(x).kind == "b" else x)
        return self.build.multiply(Const(1.0), x) if function is named.pmean and fact_of(x).kind in "biu" else x

    def moved(self, x, source, place):
        return x if source == place else self.build.apply(np.moveaxis, x, Const(source), Const(place))

    def shaped(self, x, lengths):
        return self.build.apply(np.reshape, x, Pack("tuple", tuple(lengths)))

    def lengths_of(self, x):
        return [self.build.length(x, k) for k in range(fact_of(x).rank)]

    def over_all_gather(self, x, axis, tiled):
        if not tiled:
            return self.moved(x, 0, axis)
        count, *own = self.lengths_of(x)
        own[axis] = self.build.multiply(count, own[axis])
        return self.shaped(self.moved(x, 0, axis), own)

    def parted(self, x, axis):
        """x with an axis split in two: one part for each example, and the length of a part."""
        lengths = self.lengths_of(x)
        share = self.build.apply(np.floor_divide, lengths[axis], self.count)
        return self.shaped(x, [*lengths[:axis], self.count, share, *lengths[axis + 1:]])

    def over_psum_scatter(self, x, scatter_dimension, tiled):
        total = self.build.apply(np.sum, x, axis=Const(0))
        return self.moved(self.parted(total, scatter_dimension) if tiled else total, scatter_dimension, 0)

    def over_all_to_all(self, x, split_axis, concat_axis, tiled):
        if not tiled:
            return self.moved(self.moved(x, split_axis + 1, 0), 1, concat_axis + 1)
        parts = self.moved(self.parted(x, split_axis + 1), split_axis + 1, 0)
        there = self.moved(parts, 1, concat_axis + 1)
        count, *lengths = self.lengths_of(there)
        joined = self.build.multiply(lengths[concat_axis], lengths[concat_axis + 1])
        return self.shaped(there, [count, *lengths[:concat_axis], joined, *lengths[concat_axis + 2:]])

    def over_pshuffle(self, x, perm):
        return self.build.item(x, self.places(perm))

    def over_ppermute(self, x, perm):
        start = self.build.apply(np.zeros_like, x)
        if not perm:
            return start
        sources, goals = zip(*perm)
        sent = self.build.item(x, self.places(sources))
        return self.build.let(start.hint, Apply(put, (start, self.places(goals), sent)), start.fact)

    def places(self, numbers):
        return self.build.apply(np.array, Pack("list", tuple(map(Const, numbers))))
