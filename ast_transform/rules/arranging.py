# SPDX-License-Identifier: Apache-2.0
"""Inserting, deleting, choosing and arranging entries; bits and indices.

Most are written in terms of functions that have a record: the primal is inlined in place of the call.
"""
import builtins

import numpy as np

from gradscribe.ast_transform.core.memory import ALIAS, ALIASES, FRESH
from gradscribe.ast_transform.core.rule import constant, general, linear, static
from gradscribe.ast_transform.rules import arranging_samples as samples
from gradscribe.ast_transform.rules import lengths
from gradscribe.ast_transform.rules.batching import by_example, only, rows, shifted
from gradscribe.ast_transform.rules.reductions import positive
from gradscribe.ast_transform.rules.shapes import along, in_range, is_sequence
from gradscribe.runtime.indexing import scatter_add

# --- axes -------------------------------------------------------------------------------------------------------------

@static
def rolled_to(ndim, axis, start):
    """The new position of the axis after np.rollaxis: before the axis that was at `start`."""
    start = start + ndim if start < 0 else start
    return start - 1 if positive(axis, ndim) < start else start


@general(np.rollaxis, samples=samples.rolled_axes, rewrite=True, memory=ALIAS)
class rollaxis:
    def primal(a, axis, start=0):
        return np.moveaxis(a, axis, rolled_to(a.ndim, axis, start))


@general(np.dsplit, samples=samples.depth_splits, rewrite=True, memory=ALIAS)
class dsplit:
    def primal(ary, indices_or_sections):
        return np.split(ary, indices_or_sections, axis=2)


@general(np.unstack, samples=samples.unstacked, rewrite=True, memory=ALIAS)
class unstack:
    def primal(x, *, axis=0):
        return tuple(x if axis == 0 else np.moveaxis(x, axis, 0))


@static
def in_rows(requirements):
    """Whether np.require asks for C order; other requirements than the alignment of every array are refused."""
    wanted = [] if requirements is None else list(requirements) if is_sequence(requirements) else [requirements]
    names = {str(r).upper() for r in wanted} - {"A", "ALIGNED"}
    if names - {"C", "C_CONTIGUOUS", "CONTIGUOUS"}:
        raise ValueError(f"np.require: {' and '.join(sorted(names))} may copy or not", "Copy it: np.array(x).")
    return bool(names)


@general(np.require, samples=samples.requirements, rewrite=True, arrays=("a",), memory=ALIAS, cell=True)
class require:
    def primal(a, dtype=None, requirements=None):
        if in_rows(requirements):
            return np.ascontiguousarray(np.asarray(a, dtype=dtype))
        return np.asarray(a, dtype=dtype)


@general(np.diagflat, samples=samples.diagonals_of_all, rewrite=True, memory=FRESH)
class diagflat:
    def primal(v, k=0):
        return np.diag(np.ravel(v), k)


@linear(np.broadcast_arrays, "args", samples=samples.that_meet, unbroadcast=True, expand=True, memory=ALIASES,
        fact=lengths.fact_of_broadcast_arrays)
class broadcast_arrays:
    def primal(*args):
        return np.broadcast_arrays(*args)

    def shown(k, y, *args):
        return np.broadcast_to(args[k], np.shape(y))

    def vjp_args(dy, k):
        return dy[k]


# --- blocks -----------------------------------------------------------------------------------------------------------

@static
def depth(arrays):
    """The nesting depth of the lists, which must be the same everywhere."""
    if isinstance(arrays, tuple):
        raise ValueError("np.block takes lists, not tuples", "Write [[a, b], [c, d]].")
    if not isinstance(arrays, list):
        return 0
    found = {depth(a) for a in arrays}
    if len(found) != 1:
        raise ValueError("np.block takes lists that are nested equally deep, and none that is empty")
    return 1 + found.pop()


@static
def block_rank(arrays):
    if isinstance(arrays, list):
        return max([depth(arrays), *map(block_rank, arrays)])
    return getattr(arrays, "ndim", 0)


def with_rank(a, ndim):
    """An array with leading axes of length one, up to this rank."""
    if np.ndim(a) >= ndim:
        return a
    if np.ndim(a) == 0:
        return np.reshape(a, (1,) * ndim)
    return a[(None,) * (ndim - a.ndim)]


def assembled(arrays, levels, ndim):
    if levels == 0:
        return with_rank(np.asarray(arrays), ndim)
    return np.concatenate([assembled(a, levels - 1, ndim) for a in arrays], axis=ndim - levels)


@general(np.block, samples=samples.blocks, rewrite=True, as_given=("arrays",), memory=FRESH)
class block:
    def primal(arrays):
        if depth(arrays) == 0:
            return np.copy(arrays)
        return assembled(arrays, depth(arrays), block_rank(arrays))


# --- entries that are inserted, deleted, repeated ---------------------------------------------------------------------

@static
def single(value):
    """Whether an index is a single one."""
    return not is_sequence(value) and not isinstance(value, slice) and getattr(value, "ndim", 0) == 0


@linear(np.delete, "arr", samples=samples.deletions, expand=True, memory=FRESH, raises=True,
        fact=lengths.fact_of_delete)
class delete:
    def primal(arr, obj, axis=None):
        return np.delete(arr, obj, axis=axis)

    def vjp_arr(dy, arr, obj, axis=None):
        if axis is None and arr.ndim > 1:
            kept = np.delete(np.arange(arr.size), obj)
            return np.reshape(scatter_add(np.ravel(arr), kept, dy), arr.shape)
        axis = 0 if axis is None else positive(axis, arr.ndim)
        kept = np.delete(np.arange(arr.shape[axis]), obj)
        return scatter_add(arr, along(axis, kept), dy)

    def batch(arr, obj, batched, axis=None):
        only(batched, "arr")
        if axis is None:
            return np.delete(rows(arr), obj, axis=1)
        return np.delete(arr, obj, axis=shifted(axis))


@static
def checked_insertion(arr, obj, values):
    if getattr(getattr(obj, "dtype", None), "kind", "i") == "b" or isinstance(obj, (slice, bool)):
        raise ValueError("np.insert with a mask or a slice has no derivative rule",
                         "Give indices: np.flatnonzero(mask).")
    kinds = [getattr(getattr(a, "dtype", None), "kind", "f") for a in (values, arr)]
    if kinds[0] == "c" and kinds[1] != "c":
        raise ValueError("np.insert of complex values into a real array drops their imaginary parts", "Use np.real.")


@static
def one_place(arr, obj, values, axis):
    """Whether one entry (or line) is inserted at one index."""
    rank = getattr(values, "ndim", 0)
    return single(obj) and (rank == 0 or axis is not None and rank < arr.ndim)


def new_place(obj):
    """The index of the inserted entry in the result: before the entry that the index refers to."""
    if is_literal(obj):
        return obj if obj >= 0 else obj - 1
    return np.where(obj < 0, obj - 1, obj)


@static
def is_literal(obj):
    return isinstance(obj, (int, np.integer))


def places(n, obj, total):
    """The positions in the result of np.insert of the n old entries, followed by the new ones."""
    return np.argsort(np.insert(np.arange(n), obj, np.arange(n, total)))


@linear(np.insert, "arr", "values", samples=samples.insertions, expand=True, unbroadcast="values", memory=FRESH,
        raises=True, fact=lengths.fact_of_insert)
class insert:
    def primal(arr, obj, values, axis=None):
        return np.insert(arr, obj, values, axis=axis)

    def vjp_arr(dy, arr, obj, values, axis=None):
        checked_insertion(arr, obj, values)
        if one_place(arr, obj, values, axis):
            old = np.delete(dy, new_place(obj), axis=axis)
            return np.reshape(old, arr.shape) if axis is None and arr.ndim != 1 else old
        if axis is None:
            return np.reshape(dy[places(arr.size, obj, dy.shape[0])[:arr.size]], arr.shape)
        axis = positive(axis, arr.ndim)
        n = arr.shape[axis]
        return np.reshape(np.take(dy, places(n, obj, dy.shape[axis])[:n], axis=axis), arr.shape)

    def vjp_values(dy, arr, obj, values, axis=None):
        checked_insertion(arr, obj, values)
        if one_place(arr, obj, values, axis):
            return np.take(dy, new_place(obj), axis=0 if axis is None else axis)
        if axis is None:
            return dy[places(arr.size, obj, dy.shape[0])[arr.size:]]
        axis = positive(axis, arr.ndim)
        n = arr.shape[axis]
        new = np.take(dy, places(n, obj, dy.shape[axis])[n:], axis=axis)
        if single(obj) and axis > 0:            # NumPy reads the values with the new axis first
            return np.moveaxis(new, axis, 0)
        return new


@linear(np.resize, "a", samples=samples.resized, expand=True, memory=FRESH, cell=True)
class resize:
    def primal(a, new_shape):
        return np.resize(a, new_shape)

    def vjp_a(dy, a):
        total = scatter_add(np.ravel(a), np.resize(np.arange(a.size), dy.shape), dy)
        return total if a.ndim == 1 else np.reshape(total, a.shape)


@general(np.ediff1d, samples=samples.flat_differences, rewrite=True, memory=FRESH)
class ediff1d:
    def primal(ary, to_end=None, to_begin=None):
        ary = np.ravel(ary)
        steps = np.diff(ary)
        if to_begin is not None and to_end is not None:
            return np.concatenate((end_piece(to_begin, ary), steps, end_piece(to_end, ary)))
        if to_begin is not None:
            return np.concatenate((end_piece(to_begin, ary), steps))
        if to_end is not None:
            return np.concatenate((steps, end_piece(to_end, ary)))
        return steps


@static
def fits(values, ary):
    dtype = getattr(values, "dtype", None)
    if dtype is not None and not np.can_cast(dtype, ary.dtype, "same_kind"):
        raise ValueError(f"np.ediff1d: ends of dtype {dtype} do not go into an array of dtype {ary.dtype}",
                         "NumPy refuses it as well; convert with astype.")


def end_piece(values, ary):
    values = np.asarray(values)
    fits(values, ary)
    return np.ravel(np.asarray(values, dtype=ary.dtype))


@static
def both_ends(trim, ndim):
    if ndim != 1:
        raise ValueError("np.trim_zeros has a derivative rule for vectors", "Slice the array.")
    ends = trim.lower()
    if ends not in ("f", "b", "fb", "bf"):
        raise ValueError(f"np.trim_zeros: trim={trim!r} is none of 'f', 'b' and 'fb'")
    return ends


@general(np.trim_zeros, samples=samples.trimmed, rewrite=True, memory=ALIAS)
class trim_zeros:
    def primal(filt, trim="fb"):
        filt = np.asarray(filt)
        ends = both_ends(trim, filt.ndim)
        seen = filt != 0
        first = 0 if ends == "b" else np.sum(np.cumsum(seen) == 0)
        last = filt.shape[0] if ends == "f" else filt.shape[0] - np.sum(np.cumsum(seen[::-1]) == 0)
        return filt[first:last]


# --- choosing ---------------------------------------------------------------------------------------------------------

@static
def listed(k):
    if k is None:
        raise ValueError("np.choose among the rows of one array has no derivative rule",
                         "Index: choices[a, np.arange(n)], or pass a list of arrays.")


@static
def alike(ranks_of):
    return len(set(ranks_of)) == 1


@linear(np.choose, "choices", samples=samples.choices, unbroadcast=True, expand=True, arrays=("a",),
        sequence=("choices",), memory=FRESH, raises=True)
class choose:
    def primal(a, choices, *, mode="raise"):
        return np.choose(a, choices, mode=mode)

    def vjp_choices(dy, a, choices, mode="raise", k=None):
        listed(k)
        return np.where(in_range(a, mode, len(choices)) == k, dy, 0)

    def batch(a, choices, batched, mode="raise"):
        if not alike([c.ndim for c in choices]):
            by_example("choices of several ranks")
        if "a" in batched and "choices" in batched and a.ndim != choices[0].ndim:
            by_example("choices of another rank")
        if "a" not in batched and choices[0].ndim - 1 < a.ndim:
            by_example("choices of another rank")
        if "choices" not in batched and a.ndim - 1 < choices[0].ndim:
            by_example("choices of another rank")
        return np.choose(a, choices, mode=mode)


@general(np.compress, samples=samples.compressed, rewrite=True, memory=FRESH)
class compress:
    def primal(condition, a, axis=None):
        return np.take(a, np.flatnonzero(condition), axis=axis)


@general(np.extract, samples=samples.extracted, rewrite=True, memory=FRESH)
class extract:
    def primal(condition, arr):
        return np.take(arr, np.flatnonzero(condition))


# --- integers ---------------------------------------------------------------------------------------------------------

@general(np.divmod, samples=samples.quotients, rewrite=True)
class divmod_:
    def primal(x1, x2):
        return np.floor_divide(x1, x2), np.mod(x1, x2)


@general(builtins.divmod, samples=samples.quotients, rewrite=True, memory=FRESH)
class builtin_divmod:
    def primal(x, y):
        return x // y, x % y


@constant(np.bitwise_count, elementwise=True, samples=samples.whole_numbers)
class bitwise_count:
    def primal(x):
        return np.bitwise_count(x)


@constant(np.packbits, samples=samples.bits, memory=FRESH)
class packbits:
    def primal(a, axis=None, bitorder="big"):
        return np.packbits(a, axis=axis, bitorder=bitorder)


@constant(np.unpackbits, samples=samples.octets, memory=FRESH)
class unpackbits:
    def primal(a, axis=None, count=None, bitorder="big"):
        return np.unpackbits(a, axis=axis, count=count, bitorder=bitorder)


# --- indices ----------------------------------------------------------------------------------------------------------

@constant(np.array_equiv, samples=samples.compared, memory=FRESH)
class array_equiv:
    def primal(a1, a2):
        return np.array_equiv(a1, a2)


@constant(np.diag_indices_from, samples=samples.squares, memory=FRESH)
class diag_indices_from:
    def primal(arr):
        return np.diag_indices_from(arr)


@general(np.tril_indices_from, samples=samples.offset_matrices, rewrite=True, memory=FRESH)
class tril_indices_from:
    def primal(arr, k=0):
        return np.tril_indices(arr.shape[0], k, arr.shape[1])


@general(np.triu_indices_from, samples=samples.offset_matrices, rewrite=True, memory=FRESH)
class triu_indices_from:
    def primal(arr, k=0):
        return np.triu_indices(arr.shape[0], k, arr.shape[1])


def open_vector(a, k, count):
    """Indices along the k-th axis of an open grid; for a mask, the indices where it is true."""
    a = np.asarray(a)
    index = np.flatnonzero(a) if a.dtype.kind == "b" else a
    if count == 1:
        return index
    return index[across(k, count)]


@static
def across(k, count):
    return tuple(slice(None) if i == k else None for i in range(count))


@general(np.ix_, samples=samples.crossed, rewrite=True, memory=ALIASES)
class ix_:
    def primal(*args):
        return tuple(open_vector(args[k], k, len(args)) for k in range(len(args)))


@general(np.mask_indices, samples=samples.masks, rewrite=True, memory=FRESH)
class mask_indices:
    def primal(n, mask_func, k=0):
        return np.nonzero(mask_func(np.ones((n, n), dtype=int), k))
