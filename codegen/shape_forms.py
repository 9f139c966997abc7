# SPDX-License-Identifier: Apache-2.0
"""Lowering of functions that only move entries: each entry of the result is an entry of an argument, or a constant."""
from collections.abc import Collection, Container, Iterable, Sequence

import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack
from gradscribe.codegen.array_forms import axes_of, flat, none_empty, reduce, shaped
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, joined, quoted
from gradscribe.codegen.lowered import ONE, TURNED, Dim, Lazy, Lowering, lazily, shape, shifted
from gradscribe.codegen.scalar_forms import literal
from gradscribe.runtime.broadcasting import broadcast_like, unbroadcast

# --- permuting, inserting and dropping axes ---------------------------------------------------------------------------


def permuted(x: Lazy, order: Sequence[int]) -> Lazy:
    """x with its axes permuted: axis k of the result is axis order[k] of x."""
    order = list(order)
    if order == list(range(x.rank)):
        return x
    def read(index):
        own = [None] * x.rank
        for k, source in enumerate(order):
            own[source] = index[k]
        return x.read(own)
    name = loops.Attribute(x.name, "T") if x.name and order == list(range(x.rank))[::-1] else None
    view = "transposed" if x.rank == 2 and not x.view else False if x.view == "transposed" else True
    turned = x if x.rank > 2 and order == [*range(x.rank - 2), x.rank - 1, x.rank - 2] else None
    if turned is not None and not x.view:
        view = TURNED
    return Lazy([x.dims[k] for k in order], x.dtype, read, x.cost, name, view, turned=turned)


def reordered(lowering, x, order):
    """As permuted; on a device, where kernels and libraries take views, the result is a named transpose."""
    made = permuted(x, order)
    if lowering.for_threads and made.name is None and x.name and x.rank > 2:
        made.name = quoted("{}.transpose({})", x.name, order)
    return made


@lazily(np.transpose)
def _transpose(lowering, node):
    b = lowering.bound(node)
    x, axes = lowering.lazy(b["a"]), lowering.static(b["axes"])
    return reordered(lowering, x, range(x.rank)[::-1] if axes is None else [a % x.rank for a in axes])


@lazily(np.moveaxis)
def _moveaxis(lowering, node):
    b = lowering.bound(node)
    x, *ends = lowering.lazy(b["a"]), lowering.static(b["source"]), lowering.static(b["destination"])
    source, to = ([a % x.rank for a in (v if isinstance(v, (tuple, list)) else (v,))] for v in ends)
    order = [k for k in range(x.rank) if k not in source]
    for place, k in sorted(zip(to, source)):
        order.insert(place, k)
    return reordered(lowering, x, order)


def swapped(lowering, x, i, j):
    order = list(range(x.rank))
    order[i], order[j] = order[j], order[i]
    return reordered(lowering, x, order)


@lazily(np.swapaxes)
def _swapaxes(lowering, node):
    b = lowering.bound(node)
    return swapped(lowering, lowering.lazy(b["a"]), lowering.static(b["axis1"]), lowering.static(b["axis2"]))


@lazily(np.matrix_transpose)
def _matrix_transpose(lowering, node):
    return swapped(lowering, lowering.lazy(lowering.bound(node)["a"]), -2, -1)


def inserted(x: Lazy, axes: Collection[int]) -> Lazy:
    """x with unit axes at these positions of the result."""
    rest = iter(x.dims)
    dims = [ONE if k in axes else next(rest) for k in range(x.rank + len(axes))]
    return Lazy(dims, x.dtype, lambda index: x.read([i for k, i in enumerate(index) if k not in axes]), x.cost)


@lazily(np.expand_dims)
def _expand_dims(lowering, node):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b["a"]), lowering.static(b["axis"])
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    n = x.rank + len(axis)
    return inserted(x, {a % n for a in axis})


@lazily(np.squeeze)
def _squeeze(lowering, node):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b["a"]), lowering.static(b["axis"])
    ones = {k for k, d in enumerate(x.dims) if d.kind == "one"}
    gone = ones if axis is None else set(axes_of(lowering, axis, x.rank))
    for k in gone:
        if x.dims[k].kind != "one":
            lowering.say("same({}, 1)", x.dims[k].length)
    return dropped(x, gone)


def dropped(x: Lazy, gone: Container[int]) -> Lazy:
    def read(index):
        rest = iter(index)
        return x.read([ZERO if k in gone else next(rest) for k in range(x.rank)])
    return Lazy([d for k, d in enumerate(x.dims) if k not in gone], x.dtype, read, x.cost)


@lazily(np.atleast_1d, rank=1)
@lazily(np.atleast_2d, rank=2)
@lazily(np.atleast_3d, rank=3)
def _atleast(lowering, node, rank):
    x = lowering.lazy(node.args[0])
    if x.rank >= rank:
        return x
    places = {(0, 1): {0}, (0, 2): {0, 1}, (1, 2): {0}, (0, 3): {0, 1, 2}, (1, 3): {0, 2}, (2, 3): {2}}[x.rank, rank]
    return inserted(x, places)


# --- reshaping and broadcasting ---------------------------------------------------------------------------------------

def columns_first(lowering, b):
    """Whether entries are taken in column-major order, the first axis fastest."""
    order = lowering.static(b["order"])
    if order not in ("C", "F"):
        lowering.refuse(f"a reshape with order={order!r} depends on the memory layout and has no Numba form")
    return order == "F"


def reversed_axes(x):
    return permuted(x, range(x.rank)[::-1])


@lazily(np.reshape)
def _reshape(lowering, node):
    b = lowering.bound(node)
    turned = columns_first(lowering, b)
    x, shape, fact = lowering.lazy(b["a"]), b["shape"], lowering.fact(node)
    x = reversed_axes(x) if turned else x
    parts = list(shape.items) if isinstance(shape, Pack) else [shape]
    if isinstance(shape, Const):
        parts = [Const(n) for n in (shape.value if isinstance(shape.value, (tuple, list)) else (shape.value,))]
    if not parts:
        return Lazy([], x.dtype, lambda index: x.read([ZERO] * x.rank), x.cost)
    if not x.rank:
        return Lazy([ONE] * len(parts), x.dtype, lambda index: x.read([]), x.cost)
    source, name = lowering.array(x), lowering.fresh("view")
    lengths, keys = [], []
    for part, length in zip(parts, fact.dims):
        lengths.append(lowering.scalar(part))
        known = not isinstance(part, Const) or part.value != -1
        keys.append(lowering.length_key(part) if known else (None, length.normal().offset) if length.normal(
            ).symbol is None else (name, lowering.fresh("key")))
    if turned:
        lengths, keys, fact = lengths[::-1], keys[::-1], fact.shaped(fact.dims[::-1])
    lowering.say("{} = {}.reshape({})", name, source.name, lengths)
    out = lowering.named(name, fact, keys)
    return reversed_axes(out) if turned else out


@lazily(np.ravel)
def _ravel(lowering, node):
    b = lowering.bound(node)
    return flat(lowering, reversed_axes(lowering.lazy(b["a"])) if columns_first(lowering, b) else b["a"])


@lazily(np.broadcast_to)
def _broadcast_to(lowering, node):
    b = lowering.bound(node)
    return spread(lowering, lowering.lazy(b["array"]), lowering.lengths(b["shape"]))


@lazily(broadcast_like)
def _broadcast_like(lowering, node):
    return spread(lowering, lowering.lazy(node.args[0]), lowering.lazy(node.args[1]).dims)


def spread(lowering: Lowering, x: Lazy, dims: Sequence[Dim]) -> Lazy:
    x = lowering.settled(x, dims)
    if x.rank > len(dims):
        lowering.refuse("an array is not broadcast to fewer axes")
    own = lowering.laid_over(x.dims, dims)
    return Lazy(dims, x.dtype, lambda index: x.read(own(index)), x.cost, literal=x.literal)


@lazily(unbroadcast)
def _unbroadcast(lowering, node):
    dy, x = (lowering.lazy(a) for a in node.args)
    if x.rank > dy.rank:
        return spread(lowering, dy, x.dims)
    lead = dy.rank - x.rank
    if all(d.key == e.key for d, e in zip(dy.dims[lead:], x.dims)):
        return reduce(lowering, dy, tuple(range(lead)), False, "sum", dy.exact) if lead else dy
    certain = (*range(lead), *(k + lead for k, d in enumerate(x.dims) if d.kind == "one" != dy.dims[k + lead].kind))
    if all(d.kind != "maybe" or d.key == e.key for d, e in zip(x.dims, dy.dims[lead:])):
        total = reduce(lowering, dy, certain, True, "sum", dy.exact)
        return dropped(total, set(range(lead))) if lead else total
    steps = []
    for d in x.dims:
        if d.kind == "one":
            steps.append(None)
            continue
        steps.append(lowering.step(d))
    out = lowering.result("sum", "np.zeros({}, {})", shape(x.dims), dy.dtype)
    with lowering.nest(dy.dims) as index:
        own = [ZERO if s is None else quoted("{} * {}", i, s) for s, i in zip(steps, index[lead:])]
        lowering.say("{}[{*}] += {}", out, own, dy.read(index))
    return lowering.made(out, x.dims, dy.exact)


# --- flipping, rolling, repeating, padding ----------------------------------------------------------------------------

@lazily(np.flip)
@lazily(np.flipud, axis=0)
@lazily(np.fliplr, axis=1)
def _flip(lowering, node, axis=None):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b["m"]), lowering.static(b["axis"]) if "axis" in b else axis
    return flipped(x, axes_of(lowering, axis, x.rank))


def flipped(x, axes):
    def read(index):
        return x.read([quoted("{} - 1 - {}", x.dims[k].length, i) if k in axes and x.dims[k].kind != "one" else i
                       for k, i in enumerate(index)])
    return Lazy(x.dims, x.dtype, read, x.cost)


@lazily(np.rot90)
def _rot90(lowering, node):
    b = lowering.bound(node)
    x, k, (i, j) = lowering.lazy(b["m"]), lowering.static(b["k"]) % 4, (a for a in lowering.static(b["axes"]))
    i, j = i % x.rank, j % x.rank
    order = list(range(x.rank))
    order[i], order[j] = j, i
    if k == 2:
        return flipped(flipped(x, (i,)), (j,))
    return x if not k else permuted(flipped(x, (j,)), order) if k == 1 else flipped(permuted(x, order), (j,))


@lazily(np.roll)
def _roll(lowering, node):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b["a"]), lowering.static(b["axis"])
    if axis is None and x.rank != 1:
        row = flat(lowering, x)
        return shaped(lowering, rolled(lowering, row, [(b["shift"], 0)]), x.dims) if x.rank else x
    shifts = b["shift"].items if isinstance(b["shift"], Pack) else [Const(s) for s in b["shift"].value] if \
        isinstance(b["shift"], Const) and isinstance(b["shift"].value, (tuple, list)) else [b["shift"]]
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis or 0]
    count = max(len(shifts), len(axes))
    pairs = zip(list(shifts) * (count // len(shifts)), axes * (count // len(axes)))
    return rolled(lowering, x, [(s, a % x.rank) for s, a in pairs])


def rolled(lowering, x, pairs):
    moves = {}
    for shift, axis in pairs:
        moves.setdefault(axis, []).append(lowering.scalar(shift))
    total = {k: lowering.atom(joined("+", v if len(v) > 1 or not is_number(v[0]) else [ZERO, *v]), "shift")
             for k, v in moves.items()}

    def read(index):
        return x.read([
            quoted("({} - {}) % {}", i, total[k], x.dims[k].length) if k in total and x.dims[k].kind != "one" else i
            for k, i in enumerate(index)])

    return Lazy(x.dims, x.dtype, read, x.cost)


def is_number(e):
    """Whether an expression is an integer literal."""
    e = e.args[0] if getattr(e, "op", None) == "neg" else e
    return isinstance(e, loops.Const) and type(e.value) is int


def at_axis(index: Iterable[loops.Expr], axis: int, place: loops.Expr) -> list[loops.Expr]:
    return [place if k == axis else i for k, i in enumerate(index)]


def with_length(x: Lazy, axis: int, dim: Dim) -> list[Dim]:
    return [dim if k == axis else d for k, d in enumerate(x.dims)]


def gathered_along(lowering: Lowering, x: Lazy, axis: int, name: str) -> Lazy:
    """x at the indices in a vector, along an axis; they are known to lie inside."""
    return Lazy(with_length(x, axis, lowering.counted(name)), x.dtype,
                lambda index: x.read(at_axis(index, axis, entry(name, index[axis]))), x.cost + 1)


def repeated(lowering, x, axis, counts):
    """np.repeat with a count for each entry."""
    name, counts = lowering.fresh("places"), lowering.array(counts, np.int64)
    lowering.say("{} = repeated_places({}, {})", name, counts.name, x.dims[axis].length)
    return gathered_along(lowering, lowering.array(x) if x.cost > 1 else x, axis, name)


@lazily(np.repeat)
def _repeat(lowering, node):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b["a"]), lowering.static(b["axis"])
    if axis is None:
        x, axis = flat(lowering, x), 0
    axis, count = axis % x.rank, lowering.lazy(b["repeats"])
    if count.rank:
        return repeated(lowering, x, axis, count)
    times = lowering.atom(count.operand().node, "n")
    d = x.dims[axis]
    static = count.literal is not None and d.key[0] is None
    dim = lowering.length(d.key[1] * count.literal) if static else lowering.computed(
        quoted("{} * {}", d.length, times), None)

    def read(index):
        return x.read([ZERO if e.kind == "one" else quoted("{} // {}", i, times) if k == axis else i
                       for k, (i, e) in enumerate(zip(index, x.dims))])

    return Lazy([dim if k == axis else e for k, e in enumerate(x.dims)], x.dtype, read, x.cost)


@lazily(np.tile)
def _tile(lowering, node):
    b = lowering.bound(node)
    x, reps = lowering.lazy(b["A"]), lowering.static(b["reps"], "the counts of np.tile")
    reps = list(reps) if isinstance(reps, (tuple, list)) else [reps]
    rank = max(x.rank, len(reps))
    reps = [1] * (rank - len(reps)) + reps
    own, dims = [ONE] * (rank - x.rank) + x.dims, []
    for r, d in zip(reps, own):
        dims.append(d if r == 1 else lowering.length(r * d.key[1]) if d.key[0] is None else lowering.computed(
            quoted("{} * {}", r, d.length)))

    def read(index):
        places = [ZERO if d.kind == "one" else i if r == 1 else quoted("{} % {}", i, d.length)
                  for i, d, r in zip(index, own, reps)]
        return x.read(places[rank - x.rank :])

    return Lazy(dims, x.dtype, read, x.cost)


def _inside(lowering, place, n, mode):
    """The index of the entry that np.pad takes for an index that may lie outside."""
    if mode == "wrap":
        return quoted("{} % {}", place, n)
    if mode == "edge":
        return quoted("min(max({}, 0), {} - 1)", place, n)
    return quoted("{}({}, {})", {"reflect": "reflected", "symmetric": "mirrored"}[mode], place, n)


@lazily(np.pad)
def _pad(lowering, node):
    b = lowering.bound(node)
    x, width = lowering.lazy(b["array"]), lowering.static(b["pad_width"], "the widths of np.pad")
    value = lowering.lazy(b["constant_values"])
    mode = lowering.static(b["mode"])
    if value.rank:
        lowering.no_form(np.pad, " with several constants")
    value = lowering.settled(value, x.dims).cast([], x.dtype)
    pairs = np.broadcast_to(np.array(width, int), (x.rank, 2)).tolist()
    dims = [d if a == z == 0 else lowering.length(d.key[1] + a + z) if d.key[0] is None else
            Dim(lowering.atom(quoted("{} + {}", d.length, a + z), "n"), shifted(d.key, a + z),
                "many" if a + z > 1 else "maybe")
            for d, (a, z) in zip(x.dims, pairs)]
    if mode != "constant":
        none_empty(lowering, [d for d, p in zip(x.dims, pairs) if any(p)], "can't extend an axis without entries")

    def read(index):
        tests, places = [], []
        for i, d, (a, z) in zip(index, x.dims, pairs):
            tests += ([quoted("{} >= {}", i, a)] if a else []) + ([quoted("{} < {} + {}", i, d.length, a)] if z else [])
            places.append(ZERO if d.kind == "one" else quoted("{} - {}", i, a) if a else i)
        if mode != "constant":
            return x.read([p if d.kind == "one" or a == z == 0 else _inside(lowering, p, d.length, mode)
                           for p, d, (a, z) in zip(places, x.dims, pairs)])
        entry = x.read(places)
        return quoted("{} if {} else {}", entry, joined("and", tests), value) if tests else entry
    return Lazy(dims, x.dtype, read, x.cost + 1)


@lazily(np.tril, sign="<=")
@lazily(np.triu, sign=">=")
def _triangle(lowering, node, sign):
    b = lowering.bound(node)
    x, k = lowering.lazy(b["m"]), lowering.scalar(b["k"])
    if x.rank == 1:
        x = spread(lowering, x, [x.dims[0], x.dims[0]])

    def read(index):
        edge = index[-2] if k == ZERO else quoted("{} + {}", index[-2], k)
        return quoted("{} if {} {} {} else {}", x.read(index), index[-1], sign, edge, literal(0, x.dtype))
    return Lazy(x.dims, x.dtype, read, x.cost)


def diagonal(lowering, x, offset, axis1, axis2):
    """The diagonals of the planes of two axes, along the last axis."""
    rest = [k for k in range(x.rank) if k not in (axis1, axis2)]
    low, high = max(-offset, 0), max(offset, 0)
    m, n = x.dims[axis1], x.dims[axis2]
    if m.key == n.key and not offset:
        dim = m
    else:
        shorter = quoted("max(min({} - {}, {} - {}), 0)", m.length, low, n.length, high)
        dim = lowering.computed(shorter) if m.key[0] is not None or n.key[0] is not None else \
            lowering.length(max(min(m.key[1] - low, n.key[1] - high), 0))
    def read(index):
        own = [None] * x.rank
        for k, i in zip(rest, index):
            own[k] = i
        own[axis1], own[axis2] = (quoted("{} + {}", index[-1], v) if v else index[-1] for v in (low, high))
        return x.read(own)
    return Lazy([x.dims[k] for k in rest] + [dim], x.dtype, read, x.cost)


@lazily(np.trace)
def _trace(lowering, node):
    line = _diagonal(lowering, node)
    return reduce(lowering, line, (line.rank - 1,), False, "sum", lowering.fact(node).dtype)


@lazily(np.diagonal)
def _diagonal(lowering, node):
    b = lowering.bound(node)
    x = lowering.lazy(b.get("a", b.get("x")))
    axis1, axis2 = (lowering.static(b[k]) % x.rank for k in ("axis1", "axis2"))
    return diagonal(lowering, x, lowering.static(b["offset"], "the offset"), axis1, axis2)


@lazily(np.diag)
def _diag(lowering, node):
    b = lowering.bound(node)
    x, k = lowering.lazy(b["v"]), lowering.static(b["k"], "the offset")
    if x.rank == 2:
        return diagonal(lowering, x, k, 0, 1)
    d = x.dims[0]
    dim = d if not k else lowering.length(d.key[1] + abs(k)) if d.key[0] is None else lowering.computed(
        quoted("{} + {}", d.length, abs(k)))

    def read(index):
        place = ZERO if d.kind == "one" else index[0] if k >= 0 else index[1]
        return quoted("{} if {} == {} + {} else {}", x.read([place]), index[1], index[0], k, literal(0, x.dtype))

    return Lazy([dim, dim], x.dtype, read, x.cost)

