# SPDX-License-Identifier: Apache-2.0
"""Lowering to loops of inserting, deleting, choosing and sorting entries, of sets, and of bits."""
import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice
from gradscribe.codegen.array_forms import flat, shaped
from gradscribe.codegen.index_forms import sliced
from gradscribe.codegen.join_forms import items_of
from gradscribe.codegen.line_forms import complex_lines, lines
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, joined, quoted
from gradscribe.codegen.lowered import ONE, Dim, Lazy, lazily
from gradscribe.codegen.scalar_forms import cast, literal
from gradscribe.codegen.shape_forms import at_axis, gathered_along, inserted, permuted, with_length

WHOLE = np.dtype(np.int64)


def along(lowering, b, label):
    """(array, axis) of a call; without an axis, the flattened array and its only axis."""
    x, axis = lowering.lazy(b[label]), lowering.static(b["axis"])
    x = flat(lowering, x) if axis is None else x
    return (lowering.array(x) if x.cost > 1 else x), (axis or 0) % x.rank


# --- broadcasting and choosing ----------------------------------------------------------------------------------------

@lazily(np.broadcast_arrays)
def _broadcast_arrays(lowering, node):
    arrays = [lowering.lazy(a) for a in node.args]
    dims, picks = lowering.broadcast([a.dims for a in arrays])
    arrays = [lowering.settled(a, dims) for a in arrays]
    return [Lazy(dims, np.dtype(a.dtype), lambda index, a=a, p=p: a.read(p(index)), a.cost + 1)
            for a, p in zip(arrays, picks)]


@lazily(np.choose)
def _choose(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    choices, mode = items_of(lowering, b["choices"]), lowering.static(b["mode"])
    a, n = lowering.array(b["a"]), len(choices)
    if mode == "raise":
        with lowering.nest(a.dims) as index:
            lowering.raises("invalid entry in choice array", "{a} < 0 or {a} >= {n}", a=a.read(index), n=n)
    template, end = {"clip": ("min(max({}, 0), {})", n - 1), "wrap": ("{} % {}", n)}.get(mode, ("{}", n))

    def chosen(args, out):
        last, place = cast(args[-1], out), quoted(template, args[0].node, end)
        for k in reversed(range(n - 1)):
            last = quoted("{} if {} == {} else {}", cast(args[k + 1], out), place, k, last)
        return last
    return lowering.entries(chosen, [a, *choices], dtype)


# --- deleting and inserting -------------------------------------------------------------------------------------------

@lazily(np.delete)
def _delete(lowering, node):
    b = lowering.bound(node)
    x, axis = along(lowering, b, "arr")
    obj, d = b["obj"], x.dims[axis]
    if isinstance(obj, Const) and isinstance(obj.value, slice):
        obj = Slice(*(None if v is None else Const(v) for v in (obj.value.start, obj.value.stop, obj.value.step)))
    kept, which = lowering.fresh("kept"), None if isinstance(obj, Slice) else lowering.lazy(obj)
    if which is not None and not which.rank:
        gone = lowering.atom(quoted("place({}, {})", lowering.scalar(obj), d.length), "place")
        dim = lowering.length(d.key[1] - 1) if d.key[0] is None else lowering.computed(quoted("{} - 1", d.length))

        def read(index):
            return x.read(at_axis(index, axis, quoted("{i} + 1 if {i} >= {gone} else {i}", i=index[axis], gone=gone)))
        return Lazy(with_length(x, axis, dim), x.dtype, read, x.cost + 1)
    lowering.say("{} = np.ones({}, np.bool_)", kept, d.length)
    if which is None:
        lowering.say("{}[{}] = False", kept, sliced(lowering, obj))
    else:
        with lowering.nest(which.dims) as index:
            if which.exact.kind == "b":
                lowering.agree([d, which.dims[0]])
                lowering.say("{}[{}] = not {}", kept, index[0], which.read(index))
            else:
                lowering.say("{}[place({}, {})] = False", kept, which.cast(index, WHOLE), d.length)
    name = lowering.result("places", "nonzero_flat({})", kept)
    return gathered_along(lowering, x, axis, name)


@lazily(np.insert)
def _insert(lowering, node):
    b = lowering.bound(node)
    x, axis = along(lowering, b, "arr")
    values, obj = lowering.lazy(b["values"]), lowering.lazy(b["obj"])
    if obj.exact.kind == "b":
        lowering.no_form(np.insert, " with a mask")
    if lowering.static(b["axis"]) is not None and values.rank and values.rank < x.rank:
        values = inserted(values, set(range(x.rank - values.rank)))
    if lowering.static(b["axis"]) is not None and not obj.rank and values.rank == x.rank and axis:
        order = list(range(x.rank))
        order.insert(axis, order.pop(0))
        values = permuted(values, order)
    values = lowering.array(values) if values.rank else lowering.settled(values, x.dims)
    where, d = lowering.array(obj if obj.rank else inserted(obj, {0}), WHOLE), x.dims[axis]
    given = values.dims[axis - x.rank].length if values.rank else 1
    count = lowering.atom(quoted("{} if {n} == 1 else {n}", given, n=where.dims[0].length), "n")
    name = lowering.result("source", "inserted_places({}, {}, {})", d.length, where.name, count)
    _, picks = lowering.broadcast([with_length(x, axis, lowering.computed(count)), values.dims])

    def read(index):
        source = entry(name, index[axis])
        new = values.cast(picks[1](at_axis(index, axis, quoted("{} - {}", source, d.length))), x.dtype)
        return quoted("{} if {} < {} else {}", x.read(at_axis(index, axis, source)), source, d.length, new)
    return Lazy(with_length(x, axis, lowering.counted(name)), x.dtype, read, x.cost + 2)


@lazily(np.resize)
def _resize(lowering, node):
    b = lowering.bound(node)
    row, dims = lowering.array(flat(lowering, b["a"])), lowering.lengths(b["new_shape"])

    def read(index):
        place, n = index[0] if index else ZERO, row.dims[0]
        for i, d in zip(index[1:], dims[1:]):
            place = quoted("{} * {} + {}", place, d.length, i)
        found = row.read([quoted("{} % {}", place, n.length)])
        return found if n.kind == "one" else quoted("{} if {} > 0 else {}", found, n.length, literal(0, row.dtype))
    return Lazy(dims, row.dtype, read, 1)


# --- sorting and sets -------------------------------------------------------------------------------------------------

@lazily(np.partition)
def _partition(lowering, node):
    """Sorts: sorted lines are partitioned at every place."""
    b = lowering.bound(node)
    x, axis = along(lowering, b, "a")
    matrix, back = lines(lowering, x, axis)
    if x.exact.kind == "c":
        return complex_lines(lowering, False, matrix, back, x.dims[axis])
    name = lowering.result("sorted", "sort_lines({})", matrix.name)
    return back(name, x.exact, x.dims[axis])


@lazily(np.lexsort)
def _lexsort(lowering, node):
    b = lowering.bound(node)
    keys = items_of(lowering, b["keys"]) if isinstance(b["keys"], Pack) else \
        lowering.no_form(np.lexsort, " of one array")
    rank, name, back = keys[0].rank, lowering.fresh("order"), None
    if any(k.rank != rank for k in keys) or not rank:
        lowering.no_form(np.lexsort, " of numbers")
    axis = lowering.static(b["axis"]) % rank
    for k, key in enumerate(keys):
        matrix, back = lines(lowering, key, axis)
        lowering.say("{0} = ordered_after({0}, {1})" if k else "{0} = argsort_lines({1})", name, matrix.name)
    return back(name, WHOLE, keys[0].dims[axis])


@lazily(np.unique)
def _unique(lowering, node):
    b = lowering.bound(node)
    x, axis = along(lowering, b, "ar")
    names = first, inverse, counts = [lowering.fresh(n) for n in ("first", "inverse", "counts")]
    if lowering.static(b["axis"]) is None or x.rank == 1:
        row = x = lowering.array(x)
        line = lowering.array(inserted(row, {0})).name
        order = quoted("{}({})", "complex_order" if x.exact.kind == "c" else "argsort_lines", line)
        found = quoted("distinct({}, {}, {})", row.name, order, lowering.static(b["equal_nan"]))
    elif x.exact.kind == "c":
        lowering.no_form(np.unique, " of complex lines")
    else:
        front = [axis, *(k for k in range(x.rank) if k != axis)]
        rest = joined("*", [x.dims[k].length for k in front[1:]])
        moved = lowering.array(permuted(x, front))
        rows = lowering.array(shaped(lowering, moved, [x.dims[axis], lowering.computed(rest)]))
        found = quoted("distinct_rows({0}, row_order({0}))", rows.name)
    lowering.set(names, found)
    lowering.kinds |= dict.fromkeys(names, ("int64", 1))
    made = [gathered_along(lowering, x, axis, first)]
    whole, dim = lowering.lazy(b["ar"]), made[0].dims[axis]
    for flag, name in (("return_index", first), ("return_inverse", inverse), ("return_counts", counts)):
        if lowering.static(b[flag]):
            made.append(lowering.made(name, [x.dims[axis] if name == inverse else dim], WHOLE))
            if name == inverse and lowering.static(b["axis"]) is None and whole.rank != 1:
                made[-1] = shaped(lowering, made[-1], whole.dims) if whole.rank else \
                    Lazy([], WHOLE, entry(inverse, ZERO), 0)
    return made[0] if len(made) == 1 else made


# --- bits -------------------------------------------------------------------------------------------------------------

@lazily(np.bitwise_count)
def _bitwise_count(lowering, node):
    return lowering.entries(lambda args, out: quoted("np.uint8(bit_count({}))", args[0].node),
                            [lowering.lazy(node.args[0])], np.dtype(np.uint8))


def _of_bits(lowering, b, dtype):
    """(lines of a dtype, the function that moves a result's lines back to their axis, whether the first bit is the
    highest).
    """
    x, axis = along(lowering, b, "a")
    matrix, back = lines(lowering, x, axis)
    return lowering.array(matrix, np.dtype(dtype)), back, lowering.static(b["bitorder"]) == "big"


@lazily(np.packbits)
def _packbits(lowering, node):
    matrix, back, big = _of_bits(lowering, lowering.bound(node), bool)
    name = lowering.result("bits", "pack_lines({}, {})", matrix.name, big)
    return back(name, np.dtype(np.uint8), lowering.computed(quoted("({} + 7) // 8", matrix.dims[1].length)))


@lazily(np.unpackbits)
def _unpackbits(lowering, node):
    b = lowering.bound(node)
    matrix, back, big = _of_bits(lowering, b, np.uint8)
    name = lowering.fresh("bits")
    count, every = lowering.static(b["count"], "count of np.unpackbits"), quoted("8 * {}", matrix.dims[1].length)
    length = every if count is None else quoted("{} - {}", every, -count) if count < 0 else loops.Const(count)
    length = lowering.atom(length, "n")
    lowering.say("{} = unpack_lines({}, {}, {})", name, matrix.name, length, big)
    return back(name, np.dtype(np.uint8), lowering.computed(length))


# --- comparing shapes, indices ----------------------------------------------------------------------------------------

@lazily(np.array_equiv)
def _array_equiv(lowering, node):
    a, c = (lowering.array(v) for v in node.args)
    name, rank = lowering.fresh("equal"), max(a.rank, c.rank)
    own = [[ONE] * (rank - v.rank) + v.dims for v in (a, c)]
    tests = [quoted("{d} == {e} or {d} == 1 or {e} == 1", d=d.length, e=e.length) for d, e in zip(*own)]
    lowering.set(name, joined("and", tests or [True]))
    with lowering.inside("if {}:", name):
        met = [Dim(quoted("{e} if {d} == 1 else {d}", d=d.length, e=e.length), (None, 0), "maybe")
               for d, e in zip(*own)]
        with lowering.nest(met) as index:
            x, y = (v.read([quoted("{} % {}", i, d.length) for i, d in zip(index[rank - v.rank:], v.dims)])
                    for v in (a, c))
            with lowering.inside("if {} != {}:", x, y):
                lowering.say("{} = False", name)
    return Lazy([], bool, name, 0)


@lazily(np.diag_indices_from)
def _diag_indices_from(lowering, node):
    x = lowering.lazy(node.args[0])
    return [Lazy([lowering.agree(x.dims)], WHOLE, lambda index: index[0], 0)] * x.rank


@lazily(np.indices)
def _indices(lowering, node):
    b = lowering.bound(node)
    dims, dtype = lowering.lengths(b["dimensions"]), np.dtype(lowering.static(b["dtype"]))
    if lowering.static(b["sparse"]):
        return [Lazy([d if k == j else ONE for j, d in enumerate(dims)], dtype,
                     lambda index, k=k: Lazy([], WHOLE, index[k]).cast([], dtype), 1)
                for k in range(len(dims))]

    def read(index):
        place = index[-1]
        for k in reversed(range(len(dims) - 1)):
            place = quoted("{} if {} == {} else {}", index[k + 1], index[0], k, place)
        return Lazy([], WHOLE, place).cast([], dtype)
    return Lazy([lowering.length(len(dims)), *dims], dtype, read, 1)
