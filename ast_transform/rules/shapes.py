# SPDX-License-Identifier: Apache-2.0
"""Reshaping, permuting, joining, splitting, repeating: linear maps that only move entries."""
import numpy as np

from gradscribe.ast_transform.core.kinds import Array, unknown
from gradscribe.ast_transform.core.memory import ALIAS, CONTIGUOUS, FRESH, LOCKED, VIEW
from gradscribe.ast_transform.core.rule import general, linear, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules import lengths
from gradscribe.ast_transform.rules.batching import (
    aligned,
    batched_diagonal,
    batched_turn,
    by_example,
    only,
    reduced,
    rows,
    shifted,
)
from gradscribe.ast_transform.rules.reductions import positive
from gradscribe.runtime.indexing import scatter_add

# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def new_axes(ndim, axis):
    """The index that adds unit axes as np.expand_dims does; ndim is the rank of the result."""
    axes = [a % ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    index = [None if i in axes else slice(None) for i in range(ndim)]
    while len(index) > 1 and index[-1] == slice(None):
        index.pop()
    return index[0] if len(index) == 1 else tuple(index)


@static
def leaves_none(ndim, axis):
    """Whether these are all axes of an array."""
    return len(axis) == ndim if isinstance(axis, (tuple, list)) else ndim == 1


@static
def inverse(axes):
    """The inverse of a permutation."""
    axes = tuple(a % len(axes) for a in axes)
    return tuple(axes.index(i) for i in range(len(axes)))


@static
def is_reversal(axes):
    return axes is None or tuple(a % len(axes) for a in axes) == tuple(reversed(range(len(axes))))


@static
def at(axis, position):
    """The index of one position on an axis: `[:, k]`."""
    return position if axis == 0 else (slice(None),) * axis + (position,)


@static
def is_sequence(value):
    return isinstance(value, (tuple, list)) or isinstance(value, np.ndarray) and value.ndim > 0


@static
def places_of(sections):
    """The positions at which an axis is split, as numbers."""
    return sections.tolist() if isinstance(sections, np.ndarray) else tuple(sections)


@static
def negated(shift):
    return tuple(-s for s in shift)


@static
def plain_order(order):
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r} depends on the memory layout and has no derivative rule",
                         'Use order="C" or order="F".')
    return order == "C"


# --- the same entries in another shape --------------------------------------------------------------------------------

@linear(np.reshape, "a", samples=samples.reshapes, expand=True, memory=CONTIGUOUS, order="first", cell=True,
        cheap=True, fact=lengths.fact_of_reshape)
class reshape:
    def primal(a, shape, order="C"):
        return np.reshape(a, shape, order=order)

    def vjp_a(dy, a, order="C"):
        if plain_order(order):
            return np.reshape(dy, a.shape)
        return np.reshape(dy, a.shape, order=order)

    def batch(a, shape, batched, order="C"):
        if order != "C":
            by_example("another order")
        return np.reshape(a, (a.shape[0], *shape))


@linear(np.ravel, "a", samples=samples.ravels, expand=True, memory=CONTIGUOUS, order="rows")
class ravel:
    def primal(a, order="C"):
        return np.ravel(a, order=order)

    def vjp_a(dy, a, order="C"):
        if plain_order(order):
            return np.reshape(dy, a.shape)
        return np.reshape(dy, a.shape, order=order)

    def batch(a, batched, order="C"):
        if order != "C":
            by_example("another order")
        if a.ndim == 1:
            return a[:, None]
        return rows(a)


@linear(np.expand_dims, "a", samples=samples.expansions, full_rank="moves", memory=VIEW, order="first", cell=True)
class expand_dims:
    def primal(a, axis):
        return np.expand_dims(a, axis)

    def vjp_a(dy, axis):
        return np.squeeze(dy, axis=axis)

    def batch(a, axis, batched):
        return np.expand_dims(a, shifted(axis))


@linear(np.squeeze, "a", samples=samples.squeezes, expand=True, memory=VIEW, order="first", cell=True)
class squeeze:
    def primal(a, axis=None):
        return np.squeeze(a, axis=axis)

    def vjp_a(dy, a, axis=None):
        if axis is None or leaves_none(a.ndim, axis):
            return np.reshape(dy, a.shape)
        return dy[new_axes(a.ndim, axis)]

    def batch(a, batched, units, axis=None):
        if axis is None:
            if len(units) == 0:
                return a
            return np.squeeze(a, axis=shifted(units))
        return np.squeeze(a, axis=shifted(axis))


@linear(np.atleast_1d, "a", samples=samples.any_ranks, expand=True, memory=VIEW, order="first")
class atleast_1d:
    def primal(a):
        return np.atleast_1d(a)

    def vjp_a(dy, a):
        if a.ndim >= 1:
            return dy
        return np.reshape(dy, a.shape)

    def batch(a, batched):
        return aligned(a, 1)


@linear(np.atleast_2d, "a", samples=samples.any_ranks, expand=True, memory=VIEW, order="first")
class atleast_2d:
    def primal(a):
        return np.atleast_2d(a)

    def vjp_a(dy, a):
        if a.ndim >= 2:
            return dy
        if a.ndim == 1:
            return dy[0]
        return np.reshape(dy, a.shape)

    def batch(a, batched):
        return aligned(a, 2)


@linear(np.atleast_3d, "a", samples=samples.any_ranks, expand=True, memory=VIEW, order="first")
class atleast_3d:
    def primal(a):
        return np.atleast_3d(a)

    def vjp_a(dy, a):
        if a.ndim >= 3:
            return dy
        return np.reshape(dy, a.shape)

    def batch(a, batched):
        if a.ndim == 1:
            return a[:, None, None, None]
        if a.ndim == 2:
            return a[:, None, :, None]
        if a.ndim == 3:
            return a[:, :, :, None]
        return a


# --- axes in another order, entries in another order ------------------------------------------------------------------

@static
def axes_reversed(rank):
    return (0, *range(rank - 1, 0, -1))


@static
def turned(axes, rank):
    return (0, *(a % (rank - 1) + 1 for a in axes))


@linear(np.transpose, "a", samples=samples.permutations, full_rank="moves", memory=VIEW, cell=True,
        algebra="transpose")
class transpose:
    def primal(a, axes=None):
        return np.transpose(a, axes)

    def vjp_a(dy, axes=None):
        if is_reversal(axes):
            return dy.T
        return np.transpose(dy, inverse(axes))

    def batch(a, batched, axes=None):
        if a.ndim <= 2:
            return a
        if axes is not None:
            return np.transpose(a, turned(axes, a.ndim))
        if a.ndim == 3:
            return np.swapaxes(a, 1, 2)
        return np.transpose(a, axes_reversed(a.ndim))


@linear(np.swapaxes, "a", samples=samples.swaps, full_rank="moves", memory=VIEW)
class swapaxes:
    def primal(a, axis1, axis2):
        return np.swapaxes(a, axis1, axis2)

    def vjp_a(dy, axis1, axis2):
        return np.swapaxes(dy, axis1, axis2)

    def batch(a, axis1, axis2, batched):
        return np.swapaxes(a, shifted(axis1), shifted(axis2))


@linear(np.matrix_transpose, "a", samples=samples.matrices, full_rank="moves", memory=VIEW)
class matrix_transpose:
    def primal(a):
        return np.matrix_transpose(a)

    def vjp_a(dy):
        return np.matrix_transpose(dy)

    def batch(a, batched):
        return np.matrix_transpose(a)


@linear(np.moveaxis, "a", samples=samples.moves, full_rank="moves", memory=VIEW, cell=True)
class moveaxis:
    def primal(a, source, destination):
        return np.moveaxis(a, source, destination)

    def vjp_a(dy, source, destination):
        return np.moveaxis(dy, destination, source)

    def batch(a, source, destination, batched):
        return np.moveaxis(a, shifted(source), shifted(destination))


@linear(np.flip, "m", samples=samples.flips, full_rank="moves", memory=VIEW)
class flip:
    def primal(m, axis=None):
        return np.flip(m, axis=axis)

    def vjp_m(dy, axis=None):
        return np.flip(dy, axis=axis)

    batch = batched_turn(np.flip)


@linear(np.flipud, "m", samples=samples.matrices, full_rank="moves", memory=VIEW)
class flipud:
    def primal(m):
        return np.flipud(m)

    def vjp_m(dy):
        return np.flipud(dy)

    def batch(m, batched):
        return np.flip(m, 1)


@linear(np.fliplr, "m", samples=samples.matrices, full_rank="moves", memory=VIEW)
class fliplr:
    def primal(m):
        return np.fliplr(m)

    def vjp_m(dy):
        return np.fliplr(dy)

    def batch(m, batched):
        return np.flip(m, 2)


@linear(np.rot90, "m", samples=samples.rotations, full_rank="moves", memory=VIEW)
class rot90:
    def primal(m, k=1, axes=(0, 1)):
        return np.rot90(m, k=k, axes=axes)

    def vjp_m(dy, k=1, axes=(0, 1)):
        return np.rot90(dy, k=-k, axes=axes)

    def batch(m, batched, k=1, axes=(0, 1)):
        return np.rot90(m, k, axes=shifted(axes))


@linear(np.roll, "a", samples=samples.rolls, expand=True, memory=FRESH, cell=True)
class roll:
    def primal(a, shift, axis=None):
        return np.roll(a, shift, axis=axis)

    def vjp_a(dy, shift, axis=None):
        back = negated(shift) if is_sequence(shift) else -shift
        return np.roll(dy, back) if axis is None else np.roll(dy, back, axis=axis)

    def batch(a, shift, batched, axis=None):
        only(batched, "a")
        if axis is None:
            if a.ndim > 2:
                by_example("np.roll without an axis")
            return np.roll(a, shift, axis=1)
        return np.roll(a, shift, axis=shifted(axis))


# --- joining and splitting --------------------------------------------------------------------------------------------

def head(dy, axis, stop):
    """dy up to `stop` along the axis."""
    if axis == 0:
        return dy[:stop]
    if axis == 1:
        return dy[:, :stop]
    if axis == dy.ndim - 1:
        return dy[..., :stop]
    return np.moveaxis(np.moveaxis(dy, axis, 0)[:stop], 0, axis)


def tail(dy, axis, start):
    if axis == 0:
        return dy[start:]
    if axis == 1:
        return dy[:, start:]
    if axis == dy.ndim - 1:
        return dy[..., start:]
    return np.moveaxis(np.moveaxis(dy, axis, 0)[start:], 0, axis)


def section(dy, axis, start, stop):
    if axis == 0:
        return dy[start:stop]
    if axis == 1:
        return dy[:, start:stop]
    if axis == dy.ndim - 1:
        return dy[..., start:stop]
    return np.moveaxis(np.moveaxis(dy, axis, 0)[start:stop], 0, axis)


def total_length(arrays, axis):
    if len(arrays) == 1:
        return arrays[0].shape[axis]
    return total_length(arrays[:-1], axis) + arrays[-1].shape[axis]


def total_size(arrays):
    if len(arrays) == 1:
        return arrays[0].size
    return total_size(arrays[:-1]) + arrays[-1].size


def one_array(arguments):
    """Whether an array is passed instead of a list; it counts as the list of its rows."""
    return isinstance(getattr(next(iter(arguments.values()), None), "fact", None), Array)


@static
def at_least_rank(a, rank, name):
    if a.ndim < rank:
        raise ValueError(f"np.{name} of one array joins its rows: it needs {rank} axes at least, not {a.ndim}",
                         "Give it a list of arrays.")


def rows_along(a, axis):
    """The rows of an array, joined along one of their axes."""
    axis = positive(axis, a.ndim - 1)
    if axis == 0:
        return np.reshape(a, (a.shape[0] * a.shape[1],) + a.shape[2:])
    beside = np.moveaxis(a, 0, axis)
    return np.reshape(beside, a.shape[1:axis + 1] + (a.shape[0] * a.shape[axis + 1],) + a.shape[axis + 2:])


def _joined(arrays, axis=0, **others):
    """Require equal lengths of all axes except the joined one."""
    held = [a for a in arrays if isinstance(a, Array)]
    for a in held[1:]:
        if a.rank == held[0].rank and a.rank and axis is not None:
            yield from ((d, e) for k, (d, e) in enumerate(zip(held[0].dims, a.dims)) if k != axis % a.rank)


@linear(np.concatenate, "arrays", samples=samples.joins, expand=True, sequence=("arrays",), joins=True,
        memory=FRESH, order="vector", lengths=_joined)
class concatenate:
    def wider(arrays, axis=0):
        at_least_rank(arrays, 2, "concatenate")
        if axis is None:
            return np.copy(np.ravel(arrays))
        return np.copy(rows_along(arrays, axis))

    def primal(arrays, axis=0):
        return np.concatenate(arrays, axis=axis)

    def vjp_arrays(dy, k, arrays, axis=0):
        if len(arrays) == 1 and axis is not None:
            return dy
        if axis is None:
            stop = total_size(arrays[:k + 1])
            piece = dy[:stop] if k == 0 else dy[total_size(arrays[:k]):stop]
            return np.reshape(piece, arrays[k].shape)
        axis = positive(axis, dy.ndim)
        if k == 0:
            return head(dy, axis, arrays[0].shape[axis])
        if k == len(arrays) - 1:
            return tail(dy, axis, total_length(arrays[:k], axis))
        return section(dy, axis, total_length(arrays[:k], axis), total_length(arrays[:k + 1], axis))

    def batch(arrays, batched, axis=0):
        if axis is None:
            by_example("np.concatenate without an axis")
        return np.concatenate(arrays, axis=shifted(axis))


def _stacked(arrays, **others):
    held = [a for a in arrays if isinstance(a, Array)]
    for a in held[1:]:
        if a.rank == held[0].rank:
            yield from zip(held[0].dims, a.dims)


@linear(np.stack, "arrays", samples=samples.stacks, expand=True, sequence=("arrays",), joins=True,
        memory=FRESH, lengths=_stacked)
class stack:
    def wider(arrays, axis=0):
        at_least_rank(arrays, 1, "stack")
        return np.copy(np.moveaxis(arrays, 0, axis))

    def primal(arrays, axis=0):
        return np.stack(arrays, axis=axis)

    def vjp_arrays(dy, k, axis=0):
        return dy[at(positive(axis, dy.ndim), k)]

    def batch(arrays, batched, axis=0):
        return np.stack(arrays, axis=shifted(axis))


@static
def ranks(arrays):
    """The rank of all arrays, or None if they differ."""
    found = {np.ndim(a) for a in arrays}
    return found.pop() if len(found) == 1 else None


def at_least(a, rank, column):
    """A vector as a row or a column, a scalar as one entry."""
    if a.ndim >= rank:
        return a
    if rank == 1:
        return np.reshape(a, (1,))
    if rank == 3:
        return np.atleast_3d(a)
    if a.ndim == 0:
        return np.reshape(a, (1, 1))
    if column:
        return a[:, None]
    return a[None]


def each_at_least(arrays, rank, column):
    if len(arrays) == 0:
        return ()
    return (at_least(arrays[0], rank, column),) + each_at_least(arrays[1:], rank, column)


@general(np.vstack, samples=samples.vectors_and_matrices, rewrite=True, sequence=("tup",), joins=True,
         memory=FRESH)
class vstack:
    def wider(tup):
        at_least_rank(tup, 1, "vstack")
        if tup.ndim == 1:
            return np.copy(tup[:, None])
        if tup.ndim == 2:
            return np.copy(tup)
        return np.copy(rows_along(tup, 0))

    def primal(tup):
        if ranks(tup) == 1:
            return np.stack(tup)
        return np.concatenate(each_at_least(tup, 2, False))


@general(np.hstack, samples=samples.equal_ranks, rewrite=True, sequence=("tup",), joins=True, memory=FRESH)
class hstack:
    def wider(tup):
        at_least_rank(tup, 1, "hstack")
        if tup.ndim == 1:
            return np.copy(tup)
        if tup.ndim == 2:
            return np.copy(rows_along(tup, 0))
        return np.copy(rows_along(tup, 1))

    def primal(tup):
        if ranks(tup) == 0:
            return np.stack(tup)
        if tup[0].ndim <= 1:
            return np.concatenate(each_at_least(tup, 1, False))
        return np.concatenate(tup, axis=1)


@general(np.column_stack, samples=samples.columns, rewrite=True, sequence=("tup",), joins=True, memory=FRESH)
class column_stack:
    def wider(tup):
        at_least_rank(tup, 1, "column_stack")
        if tup.ndim == 1:
            return np.copy(tup[None])
        if tup.ndim == 2:
            return np.copy(tup.T)
        return np.copy(rows_along(tup, 1))

    def primal(tup):
        if ranks(tup) == 1:
            return np.stack(tup, axis=1)
        return np.concatenate(each_at_least(tup, 2, True), axis=1)


@general(np.dstack, samples=samples.equal_ranks, rewrite=True, sequence=("tup",), joins=True, memory=FRESH)
class dstack:
    def wider(tup):
        at_least_rank(tup, 1, "dstack")
        if tup.ndim == 1:
            return np.copy(tup[None, None])
        if tup.ndim == 2:
            return np.copy(tup.T[None])
        if tup.ndim == 3:
            return np.copy(np.moveaxis(tup, 0, 2))
        return np.copy(rows_along(tup, 2))

    def primal(tup):
        if ranks(tup) == 2:
            return np.stack(tup, axis=2)
        return np.concatenate(each_at_least(tup, 3, False), axis=2)


@general(np.append, samples=samples.appended, rewrite=True, arrays=("arr", "values"), memory=FRESH)
class append:
    def primal(arr, values, axis=None):
        if axis is None:
            return np.concatenate((np.ravel(arr), np.ravel(values)))
        return np.concatenate((arr, values), axis=axis)


# np.split and similar functions return a list: dy is the sequence of adjoints.  `shown` is the k-th part as a slice.

def stretch(x, k, sections, axis):
    """The k-th part of an axis that is split at given positions, or into parts whose lengths differ by at most one."""
    if is_sequence(sections):
        ends = [None, *places_of(sections), None]
        return x[along(axis % x.ndim, slice(ends[k], ends[k + 1]))]
    if np.ndim(sections) > 0:
        begin = None if k == 0 else sections[k - 1]
        end = None if k == sections.shape[0] else sections[k]
        return x[along(axis % x.ndim, slice(begin, end))]
    size, longer = x.shape[axis] // sections, x.shape[axis] % sections
    first = None if k == 0 else size * k + min(k, longer)
    last = None if k + 1 == sections else size * (k + 1) + min(k + 1, longer)
    return x[along(axis % x.ndim, slice(first, last))]


def joined_again(dy, x, sections, axis):
    ascending(sections)
    if is_sequence(sections) or np.ndim(sections) == 0:
        return np.concatenate(dy, axis=axis)
    taken = np.concatenate(np.split(np.arange(x.shape[axis]), sections))        # entries left out, or taken twice
    return scatter_add(x, along(axis % x.ndim, taken), np.concatenate(dy, axis=axis))


def batched_split(function):
    def part(ary, indices_or_sections, batched, axis=0):
        only(batched, "ary")
        return function(ary, indices_or_sections, axis=shifted(axis))
    return part


@linear(np.split, "ary", samples=samples.splits, expand=True, memory=ALIAS, fact=lengths.fact_of_split)
class split:
    def primal(ary, indices_or_sections, axis=0):
        return np.split(ary, indices_or_sections, axis=axis)

    def shown(k, y, ary, indices_or_sections, axis=0):
        return stretch(ary, k, indices_or_sections, axis)

    def vjp_ary(dy, ary, indices_or_sections, axis=0):
        return joined_again(dy, ary, indices_or_sections, axis)

    batch = batched_split(np.split)


@linear(np.array_split, "ary", samples=samples.uneven_splits, expand=True, memory=ALIAS)
class array_split:
    def primal(ary, indices_or_sections, axis=0):
        return np.array_split(ary, indices_or_sections, axis=axis)

    def shown(k, y, ary, indices_or_sections, axis=0):
        return stretch(ary, k, indices_or_sections, axis)

    def vjp_ary(dy, ary, indices_or_sections, axis=0):
        return joined_again(dy, ary, indices_or_sections, axis)

    batch = batched_split(np.array_split)


@static
def ascending(sections):
    if is_sequence(sections):
        if any(i < 0 for i in sections) or list(sections) != sorted(sections):
            raise ValueError("np.split at positions that are negative or not in order has no derivative rule",
                             "Slice: x[:k] and x[k:].")


@general(np.vsplit, samples=samples.matrix_splits, rewrite=True, memory=ALIAS)
class vsplit:
    def primal(ary, indices_or_sections):
        return np.split(ary, indices_or_sections)


@general(np.hsplit, samples=samples.matrix_splits, rewrite=True, memory=ALIAS)
class hsplit:
    def primal(ary, indices_or_sections):
        return np.split(ary, indices_or_sections, axis=0 if ary.ndim == 1 else 1)


# --- repeating --------------------------------------------------------------------------------------------------------

@linear(np.broadcast_to, "array", samples=samples.broadcasts, unbroadcast=True, memory=LOCKED, cell=True,
        fact=lengths.fact_of_broadcast_to)
class broadcast_to:
    def primal(array, shape):
        return np.broadcast_to(array, shape)

    def vjp_array(dy):
        return dy

    def batch(array, shape, batched, rank, count):
        return np.broadcast_to(aligned(array, rank), (count, *shape))


def in_range(indices, mode, n):
    """Indices as np.take and np.choose interpret them in a mode."""
    if mode == "clip":
        return np.clip(indices, 0, n - 1)
    if mode == "wrap":
        return indices % n
    return indices


def along(axis, index):
    return index if axis == 0 else (slice(None),) * axis + (index,)


@static
def one_count(repeats):
    return not is_sequence(repeats) and getattr(repeats, "ndim", 0) == 0


@static
def counted_by_repeats(repeats, axis=None, **_):
    """The axis whose length is the sum of the counts."""
    one = isinstance(repeats, (int, np.integer)) or getattr(getattr(repeats, "fact", None), "dims", None) == ()
    return None if one else 0 if axis is None else axis


@linear(np.repeat, "a", samples=samples.repeats, expand=True, by_value=counted_by_repeats, memory=FRESH, raises=True)
class repeat:
    def primal(a, repeats, axis=None):
        return np.repeat(a, repeats, axis=axis)

    def vjp_a(dy, a, repeats, axis=None):
        if not one_count(repeats):
            if axis is None:
                total = scatter_add(np.ravel(a), np.repeat(np.arange(a.size), repeats), dy)
                return total if a.ndim == 1 else np.reshape(total, a.shape)
            axis = positive(axis, a.ndim)
            return scatter_add(a, along(axis, np.repeat(np.arange(a.shape[axis]), repeats)), dy)
        if axis is None:
            copies = np.reshape(dy, (a.size, repeats))
            if a.ndim == 1:
                return np.sum(copies, axis=1)
            return np.reshape(np.sum(copies, axis=1), a.shape)
        axis = positive(axis, a.ndim)
        return np.sum(np.reshape(dy, a.shape[:axis + 1] + (repeats,) + a.shape[axis + 1:]), axis=axis + 1)

    def batch(a, repeats, batched, axis=None):
        only(batched, "a")
        if axis is None:
            if a.ndim == 1:
                return np.repeat(a[:, None], repeats, axis=1)
            return np.repeat(rows(a), repeats, axis=1)
        return np.repeat(a, repeats, axis=shifted(axis))


def written_out(numbers, what):
    if not all(isinstance(n, (int, np.integer)) for n in numbers):
        raise ValueError(f"{what} must be numbers that are known when transforming",
                         "Pass literals, or arguments that are plain numbers.")


@static
def counts(reps, ndim):
    """The number of repetitions of each axis of the result."""
    reps = tuple(reps) if is_sequence(reps) else (reps,)
    written_out(reps, "the counts of np.tile")
    return (1,) * (ndim - len(reps)) + reps


@static
def repeated_axes(reps):
    """The positions of the counts in the shape that `interleaved` returns."""
    found, position = [], 0
    for r in reps:
        if r != 1:
            found.append(position)
            position += 1
        position += 1
    return tuple(found)


def interleaved(reps, shape):
    """(r0, n0, r1, n1, ...), without the counts that are 1."""
    if len(reps) == 0:
        return ()
    if reps[0] == 1:
        return (shape[0],) + interleaved(reps[1:], shape[1:])
    return (reps[0], shape[0]) + interleaved(reps[1:], shape[1:])


@static
def tiles(reps, rank):
    reps = reps if isinstance(reps, tuple) else (reps,)
    if len(reps) > rank - 1:
        by_example("more repetitions than axes")
    return (1,) * (rank - len(reps)) + reps


@linear(np.tile, "A", samples=samples.tiles, expand=True, memory=FRESH, cell=True)
class tile:
    def primal(A, reps):
        return np.tile(A, reps)

    def vjp_A(dy, A, reps):
        each = counts(reps, dy.ndim)
        axes = repeated_axes(each)
        shape = (1,) * (dy.ndim - A.ndim) + A.shape
        if axes == ():
            return np.reshape(dy, A.shape)
        total = np.sum(np.reshape(dy, interleaved(each, shape)), axis=axes[0] if len(axes) == 1 else axes)
        if dy.ndim == A.ndim:
            return total
        return np.reshape(total, A.shape)

    def batch(A, reps, batched):
        return np.tile(A, tiles(reps, A.ndim))


# --- diagonals and triangles ------------------------------------------------------------------------------------------

def batched_triangle(function):
    def part(m, batched, k=0):
        if m.ndim < 3:
            by_example("a triangle of a vector")
        return function(m, k=k)
    return part


@linear(np.tril, "m", samples=samples.triangles, expand=True, memory=FRESH,
        triangle=lambda k=0: "lower" if k <= 0 else None)
class tril:
    def primal(m, k=0):
        return np.tril(m, k)

    def vjp_m(dy, m, k=0):
        if m.ndim == 1:                 # NumPy reads a vector as rows of a square
            return np.sum(np.tril(dy, k), axis=0)
        if k == 0:
            return np.tril(dy)
        return np.tril(dy, k)

    batch = batched_triangle(np.tril)


@linear(np.triu, "m", samples=samples.triangles, expand=True, memory=FRESH,
        triangle=lambda k=0: "upper" if k >= 0 else None)
class triu:
    def primal(m, k=0):
        return np.triu(m, k)

    def vjp_m(dy, m, k=0):
        if m.ndim == 1:
            return np.sum(np.triu(dy, k), axis=0)
        if k == 0:
            return np.triu(dy)
        return np.triu(dy, k)

    batch = batched_triangle(np.triu)


@static
def is_square(x):
    """Whether a matrix certainly has as many rows as columns."""
    if x.ndim != 2:
        return False
    return x.dims[0].same(x.dims[1]) if hasattr(x, "dims") else x.shape[0] == x.shape[1]


def on_diagonal(x, k, values):
    """Zeros in the shape of x, except for the values on the k-th diagonal of its first two axes."""
    if k == 0 and is_square(x):
        return np.diag(values)
    i = np.arange(values.shape[0])
    if k == 0:
        return scatter_add(x, (i, i), values)
    if k > 0:
        return scatter_add(x, (i, i + k), values)
    return scatter_add(x, (i - k, i), values)


@linear(np.diag, "v", samples=samples.diagonals, expand=True)
class diag:
    def primal(v, k=0):
        return np.diag(v, k)

    def memory(v):
        return LOCKED if v.ndim == 2 else FRESH

    def vjp_v(dy, v, k=0):
        if v.ndim == 2:
            return on_diagonal(v, k, dy)
        if k == 0:
            return np.diag(dy)
        return np.diag(dy, k)

    def batch(v, batched, k=0):
        if v.ndim == 3:
            return np.diagonal(v, offset=k, axis1=1, axis2=2)
        if k != 0:
            by_example("a diagonal beside the main one")
        return v[:, :, None] * np.eye(v.shape[1], dtype=v.dtype)


@linear(np.diagonal, "a", samples=samples.planes, expand=True, memory=LOCKED)
class diagonal:
    def primal(a, offset=0, axis1=0, axis2=1):
        return np.diagonal(a, offset=offset, axis1=axis1, axis2=axis2)

    def vjp_a(dy, a, offset=0, axis1=0, axis2=1):
        if a.ndim == 2:
            return on_diagonal(a, offset if axis1 % 2 == 0 else -offset, dy)
        front = np.moveaxis(a, (axis1, axis2), (0, 1))
        return np.moveaxis(on_diagonal(front, offset, np.moveaxis(dy, -1, 0)), (0, 1), (axis1, axis2))

    batch = batched_diagonal(np.diagonal)


# --- windows ----------------------------------------------------------------------------------------------------------

@static
def window_axes(ndim, axis):
    """The axes along which windows slide, in order."""
    axes = range(ndim) if axis is None else axis if is_sequence(axis) else (axis,)
    return tuple(positive(a, ndim) for a in axes)


@static
def as_tuple(value):
    return tuple(value) if is_sequence(value) else (value,)


def added_from_windows(dy, x, sizes, axes):
    """Add each entry of the windows to the entry that it shows; the last axis that was windowed is summed first."""
    if len(axes) == 0:
        return dy
    axis, size = axes[-1], sizes[-1]
    seen = np.lib.stride_tricks.sliding_window_view(x, sizes[:-1], axes[:-1]) if len(axes) > 1 else x
    place = np.arange(seen.shape[axis] - (size - 1))[:, None] + np.arange(size)
    parts = dy if axis == dy.ndim - 2 else np.moveaxis(dy, -1, axis + 1)
    return added_from_windows(scatter_add(seen, along(axis, place), parts), x, sizes[:-1], axes[:-1])


@linear(np.lib.stride_tricks.sliding_window_view, "x", samples=samples.windows, expand=True, memory=LOCKED, cell=True,
        raises=True)
class sliding_window_view:
    def primal(x, window_shape, axis=None):
        return np.lib.stride_tricks.sliding_window_view(x, window_shape, axis=axis)

    def vjp_x(dy, x, window_shape, axis=None):
        return added_from_windows(dy, x, as_tuple(window_shape), window_axes(x.ndim, axis))

    def batch(x, batched, window_shape, axis=None):
        return np.lib.stride_tricks.sliding_window_view(x, window_shape, axis=reduced(axis, x.ndim))


# --- picking ----------------------------------------------------------------------------------------------------------

@static
def fact_of_take(a, indices, axis=None, **others):
    """The fact for indices that are known only at run time."""
    if not isinstance(a, Array) or not isinstance(indices, Array) or indices.kind not in "iu" or \
            indices.length is not None and indices.length.normal().symbol is None:
        return None
    place = getattr(axis, "length", None)
    if place is None:
        dims = indices.dims
    elif -a.rank <= place.offset < a.rank:
        dims = (*a.dims[:place.offset % a.rank], *indices.dims, *a.dims[place.offset % a.rank + 1:])
    else:
        return None
    return Array(np.dtype(a.dtype), dims, unknown("?int") if not dims and a.kind in "iu" else None)


@linear(np.take, "a", samples=samples.picks, expand=True, arrays=("indices",), memory=FRESH, raises=True,
        fact=fact_of_take)
class take:
    def primal(a, indices, axis=None):
        return np.take(a, indices, axis=axis)

    def vjp_a(dy, a, indices, axis=None):
        if axis is None and a.ndim != 1:
            return np.reshape(scatter_add(np.ravel(a), indices, dy), a.shape)
        if axis is None or positive(axis, a.ndim) == 0:
            return scatter_add(a, indices, dy)
        return scatter_add(a, (slice(None),) * positive(axis, a.ndim) + (indices,), dy)

    def wider(a, indices, axis=None, *, mode="raise"):
        return np.take(a, in_range(np.asarray(indices), mode, a.size if axis is None else a.shape[axis]), axis=axis)

    def batch(a, indices, batched, axis=None):
        if "indices" not in batched:
            if axis is None:
                return np.take(rows(a), indices, axis=1)
            return np.take(a, indices, axis=shifted(axis))
        if "a" in batched:
            if a.ndim != 2 or indices.ndim != 2:
                by_example("places that differ")
            return np.take_along_axis(a, indices, axis=1)
        if axis is None and a.ndim > 1 or axis is not None and axis != 0:
            by_example("places that differ along another axis")
        return np.take(a, indices, axis=0)


@static
def open_index(ndim, axis):
    """The index that puts a vector along one axis of an open grid."""
    return None if axis == ndim - 1 else (slice(None),) + (None,) * (ndim - 1 - axis)


def open_grid(x, indices, axis, position):
    """The index of x that is equivalent to np.take_along_axis."""
    if position == x.ndim:
        return ()
    if position == axis:
        return (indices,) + open_grid(x, indices, axis, position + 1)
    index = open_index(x.ndim, position)
    along = np.arange(x.shape[position])
    return (along if index is None else along[index],) + open_grid(x, indices, axis, position + 1)


def _beside_the_axis(arr, indices, axis=-1):
    if axis is not None and arr.rank == indices.rank:
        for k, (d, e) in enumerate(zip(arr.dims, indices.dims)):
            if k != axis % arr.rank and not d.is_unit and not e.is_unit:
                yield d, e


@linear(np.take_along_axis, "arr", samples=samples.picks_along, expand=True, said=("axis",), arrays=("indices",),
        memory=FRESH, raises=True, lengths=_beside_the_axis)
class take_along_axis:
    def primal(arr, indices, axis=-1):
        return np.take_along_axis(arr, indices, axis=axis)

    def vjp_arr(dy, arr, indices, axis=-1):
        if axis is None:
            return np.reshape(scatter_add(np.ravel(arr), indices, dy), arr.shape)
        if arr.ndim == 1:
            return scatter_add(arr, indices, dy)
        return scatter_add(arr, open_grid(arr, indices, positive(axis, arr.ndim), 0), dy)

    def batch(arr, indices, batched, axis=-1):
        if axis is None or len(batched) != 2:
            by_example("only one of the two differs")
        return np.take_along_axis(arr, indices, axis=shifted(axis))


@static
def grid_axes(k, count, indexing):
    """The axes along which the k-th grid of np.meshgrid is constant."""
    axis = {0: 1, 1: 0}.get(k, k) if indexing == "xy" and count > 1 else k
    axes = tuple(i for i in range(count) if i != axis)
    return axes[0] if len(axes) == 1 else axes


@static
def only_vectors(arrays):
    if any(a.ndim != 1 for a in arrays):
        raise ValueError("np.meshgrid has a derivative rule for vectors", "Ravel the arguments: x.ravel().")


@linear(np.meshgrid, "xi", samples=samples.grids, expand=True, memory=FRESH)
class meshgrid:
    def primal(*xi, indexing="xy"):
        return np.meshgrid(*xi, indexing=indexing)

    def vjp_xi(dy, k, *xi, indexing="xy"):
        only_vectors(xi)
        if len(xi) == 1:
            return dy[0]
        return np.sum(dy[k], axis=grid_axes(k, len(xi), indexing))


def first_of(conditions, choices, default):
    if len(conditions) == 1:
        return np.where(conditions[0], choices[0], default)
    return np.where(conditions[0], choices[0], first_of(conditions[1:], choices[1:], default))


@general(np.select, samples=samples.selections, rewrite=True, sequence=("condlist", "choicelist"), memory=FRESH,
         cell=True)
class select:
    def primal(condlist, choicelist, default=0):
        return first_of(condlist, choicelist, default)
