# SPDX-License-Identifier: Apache-2.0
"""Inserting, leaving out, choosing, repeating by counts; sets; bits: how Numba's loops do them."""
import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice
from gradscribe.codegen.array_forms import flat, shaped
from gradscribe.codegen.index_forms import slice_text
from gradscribe.codegen.join_forms import items_of
from gradscribe.codegen.line_forms import complex_lines, lines
from gradscribe.codegen.lowered import ONE, Dim, Lazy, lazily
from gradscribe.codegen.scalar_forms import cast, literal
from gradscribe.codegen.shape_forms import at_axis, counted, gathered_along, inserted, permuted, with_length

WHOLE = np.dtype(np.int64)


def along(lowering, b, label):
    """The array and the axis, which is the only one of a flat array where none is given."""
    x, axis = lowering.lazy(b[label]), lowering.static(b["axis"])
    x = flat(lowering, x) if axis is None else x
    return (lowering.array(x) if x.cost > 1 else x), (axis or 0) % x.rank


# --- meeting and choosing ---------------------------------------------------------------------------------------------

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
            with lowering.inside(f"if {a.read(index)} < 0 or {a.read(index)} >= {n}:"):
                lowering.say("raise ValueError('invalid entry in choice array')")
    place = {"clip": f"min(max({{}}, 0), {n - 1})", "wrap": f"{{}} % {n}"}.get(mode, "{}")

    def entry(args, out):
        text = cast(args[-1], out)
        for k in reversed(range(n - 1)):
            text = f"({cast(args[k + 1], out)} if {place.format(args[0].text)} == {k} else {text})"
        return text
    return lowering.entries(entry, [a, *choices], dtype)


# --- leaving out, putting in ------------------------------------------------------------------------------------------

@lazily(np.delete)
def _delete(lowering, node):
    b = lowering.bound(node)
    x, axis = along(lowering, b, "arr")
    obj, d = b["obj"], x.dims[axis]
    if isinstance(obj, Const) and isinstance(obj.value, slice):
        obj = Slice(*(None if v is None else Const(v) for v in (obj.value.start, obj.value.stop, obj.value.step)))
    kept, sliced = lowering.fresh("kept"), isinstance(obj, Slice)
    which = None if sliced else lowering.lazy(obj)
    if which is not None and not which.rank:
        lowering.helper("place")
        gone = lowering.atom(f"place({lowering.scalar(obj)}, {d.text})", "place")
        dim = lowering.length(d.key[1] - 1) if d.key[0] is None else lowering.computed(f"{d.text} - 1", None)

        def read(index):
            return x.read(at_axis(index, axis, f"({index[axis]} + 1 if {index[axis]} >= {gone} else {index[axis]})"))
        return Lazy(with_length(x, axis, dim), x.dtype, read, x.cost + 1)
    lowering.say(f"{kept} = np.ones({d.text}, np.bool_)")
    if sliced:
        lowering.say(f"{kept}[{slice_text(lowering, obj)}] = False")
    else:
        with lowering.nest(which.dims) as index:
            if which.exact.kind == "b":
                lowering.agree([d, which.dims[0]])
                lowering.say(f"{kept}[{index[0]}] = not {which.read(index)}")
            else:
                lowering.helper("place")
                lowering.say(f"{kept}[place({which.cast(index, WHOLE)}, {d.text})] = False")
    name = lowering.fresh("places")
    lowering.helper("nonzero_flat")
    lowering.say(f"{name} = nonzero_flat({kept})")
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
    given = values.dims[axis - x.rank].text if values.rank else "1"
    count = lowering.atom(f"{given} if {where.dims[0].text} == 1 else {where.dims[0].text}", "n")
    name = lowering.fresh("source")
    for helper in ("argsort_lines", "inserted_places"):
        lowering.helper(helper)
    lowering.say(f"{name} = inserted_places({d.text}, {where.name}, {count})")
    _, picks = lowering.broadcast([with_length(x, axis, lowering.computed(count, None)), values.dims])

    def read(index):
        source = f"{name}[{index[axis]}]"
        new = values.cast(picks[1](at_axis(index, axis, f"({source} - {d.text})")), x.dtype)
        return f"({x.read(at_axis(index, axis, source))} if {source} < {d.text} else {new})"
    return Lazy(with_length(x, axis, counted(lowering, name)), x.dtype, read, x.cost + 2)


@lazily(np.resize)
def _resize(lowering, node):
    b = lowering.bound(node)
    row, dims = lowering.array(flat(lowering, b["a"])), lowering.lengths(b["new_shape"])

    def read(index):
        text = index[0] if index else "0"
        for i, d in zip(index[1:], dims[1:]):
            text = f"({text} * {d.text} + {i})"
        entry, n = row.read([f"{text} % {row.dims[0].text}"]), row.dims[0]
        return entry if n.kind == "one" else f"({entry} if {n.text} > 0 else {literal(0, row.dtype)})"
    return Lazy(dims, row.dtype, read, 1)


# --- order and sets ---------------------------------------------------------------------------------------------------

@lazily(np.partition)
def _partition(lowering, node):
    """Sorted lines are partitioned at every place."""
    b = lowering.bound(node)
    x, axis = along(lowering, b, "a")
    matrix, back = lines(lowering, x, axis)
    if x.exact.kind == "c":
        return complex_lines(lowering, False, matrix, back, x.dims[axis])
    name = lowering.fresh("sorted")
    lowering.helper("sort_lines")
    lowering.say(f"{name} = sort_lines({matrix.name})")
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
        for helper in ("argsort_lines", "ordered_after"):
            lowering.helper(helper)
        lowering.say(f"{name} = argsort_lines({matrix.name})" if not k else
                     f"{name} = ordered_after({name}, {matrix.name})")
    return back(name, WHOLE, keys[0].dims[axis])


@lazily(np.unique)
def _unique(lowering, node):
    b = lowering.bound(node)
    x, axis = along(lowering, b, "ar")
    names = first, inverse, counts = [lowering.fresh(n) for n in ("first", "inverse", "counts")]
    if lowering.static(b["axis"]) is None or x.rank == 1:
        row = x = lowering.array(x)
        line = lowering.array(inserted(row, {0})).name
        order = f"{lowering.helper('complex_order' if x.exact.kind == 'c' else 'argsort_lines')}({line})"
        text = f"{lowering.helper('distinct')}({row.name}, {order}, {lowering.static(b['equal_nan'])})"
    elif x.exact.kind == "c":
        lowering.no_form(np.unique, " of complex lines")
    else:
        front = [axis, *(k for k in range(x.rank) if k != axis)]
        rest = " * ".join(x.dims[k].text for k in front[1:])
        moved = lowering.array(permuted(x, front))
        rows = lowering.array(shaped(lowering, moved, [x.dims[axis], lowering.computed(rest, None)]))
        text = f"{lowering.helper('distinct_rows')}({rows.name}, {lowering.helper('row_order')}({rows.name}))"
    lowering.say(f"{', '.join(names)} = {text}")
    made = [gathered_along(lowering, x, axis, first)]
    whole, dim = lowering.lazy(b["ar"]), made[0].dims[axis]
    for flag, name in (("return_index", first), ("return_inverse", inverse), ("return_counts", counts)):
        if lowering.static(b[flag]):
            made.append(lowering.made(name, [x.dims[axis] if name == inverse else dim], WHOLE))
            if name == inverse and lowering.static(b["axis"]) is None and whole.rank != 1:
                made[-1] = shaped(lowering, made[-1], whole.dims) if whole.rank else \
                    Lazy([], WHOLE, lambda index: f"{inverse}[0]", 0)
    return made[0] if len(made) == 1 else made


# --- whole numbers ----------------------------------------------------------------------------------------------------

@lazily(np.bitwise_count)
def _bitwise_count(lowering, node):
    lowering.helper("bit_count")
    return lowering.entries(lambda args, out: f"np.uint8(bit_count({args[0].text}))", [lowering.lazy(node.args[0])],
                            np.dtype(np.uint8))


def _of_bits(lowering, b, dtype):
    """Lines of a dtype, what puts a result's lines back, and whether the first bit is the highest."""
    x, axis = along(lowering, b, "a")
    matrix, back = lines(lowering, x, axis)
    return lowering.array(matrix, np.dtype(dtype)), back, lowering.static(b["bitorder"]) == "big"


@lazily(np.packbits)
def _packbits(lowering, node):
    matrix, back, big = _of_bits(lowering, lowering.bound(node), bool)
    name = lowering.fresh("bits")
    lowering.say(f"{name} = {lowering.helper('pack_lines')}({matrix.name}, {big})")
    return back(name, np.dtype(np.uint8), lowering.computed(f"({matrix.dims[1].text} + 7) // 8", None))


@lazily(np.unpackbits)
def _unpackbits(lowering, node):
    b = lowering.bound(node)
    matrix, back, big = _of_bits(lowering, b, np.uint8)
    name = lowering.fresh("bits")
    count, every = lowering.static(b["count"], "count of np.unpackbits"), f"8 * {matrix.dims[1].text}"
    length = lowering.atom(every if count is None else f"{every} - {-count}" if count < 0 else str(count), "n")
    lowering.say(f"{name} = {lowering.helper('unpack_lines')}({matrix.name}, {length}, {big})")
    return back(name, np.dtype(np.uint8), lowering.computed(length, None))


# --- places -----------------------------------------------------------------------------------------------------------

@lazily(np.array_equiv)
def _array_equiv(lowering, node):
    a, c = (lowering.array(v) for v in node.args)
    name, rank = lowering.fresh("equal"), max(a.rank, c.rank)
    own = [[ONE] * (rank - v.rank) + v.dims for v in (a, c)]
    tests = [f"({d.text} == {e.text} or {d.text} == 1 or {e.text} == 1)" for d, e in zip(*own)]
    lowering.say(f"{name} = {' and '.join(tests) or 'True'}")
    with lowering.inside(f"if {name}:"):
        met = [Dim(f"({e.text} if {d.text} == 1 else {d.text})", (None, 0), "maybe") for d, e in zip(*own)]
        with lowering.nest(met) as index:
            x, y = (v.read([f"{i} % {d.text}" for i, d in zip(index[rank - v.rank:], v.dims)]) for v in (a, c))
            with lowering.inside(f"if {x} != {y}:"):
                lowering.say(f"{name} = False")
    return Lazy([], bool, lambda index: name, 0)


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
                     lambda index, k=k: Lazy([], WHOLE, lambda _: index[k]).cast([], dtype), 1)
                for k in range(len(dims))]

    def read(index):
        text = index[-1]
        for k in reversed(range(len(dims) - 1)):
            text = f"({index[k + 1]} if {index[0]} == {k} else {text})"
        return Lazy([], WHOLE, lambda _: text).cast([], dtype)
    return Lazy([lowering.length(len(dims)), *dims], dtype, read, 1)
