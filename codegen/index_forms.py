# SPDX-License-Identifier: Apache-2.0
"""Lowering of reads and writes at indices: slices become Numba's views, all else loops with bounds-checked indices."""
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var, as_slice
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.codegen.array_forms import flat
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, joined, quoted
from gradscribe.codegen.lowered import LINES, ONE, ROW, Dim, Lazy, Lowering, lazily, shifted

ALL, NEW = loops.Slice(None, None, None), loops.Const(None)         # parts of an index: all entries, a new axis


class Part:
    """One part of an index, of kind none (a new axis), slice, int or array; `value` is its operand or lazy array."""
    __slots__ = ("kind", "value")

    def __init__(self, kind, value=None):
        self.kind, self.value = kind, value

    @property
    def full(self):
        v = self.value
        return self.kind == "slice" and all(
            p is None or isinstance(p, Const) and p.value is None for p in (v.start, v.stop, v.step)
        )

    @property
    def in_one_piece(self):
        """Whether the part is a slice without a step, which selects contiguous entries of the axis."""
        step = self.value.step if self.kind == "slice" else self
        return step is None or isinstance(step, Const) and step.value is None


def parts_of(lowering, index, rank):
    """The parts of an index, one for each axis of the array and each new axis."""
    given = list(index.items) if isinstance(index, Pack) and index.kind == "tuple" else \
        [Const(p) for p in index.value] if isinstance(index, Const) and isinstance(index.value, tuple) else [index]
    parts, dots = [], None
    for p in given:
        if isinstance(p, Const) and p.value is Ellipsis:
            dots = len(parts)
        elif isinstance(p, Const) and p.value is None:
            parts.append(Part("none"))
        elif isinstance(as_slice(p), Slice):
            parts.append(Part("slice", as_slice(p)))
        else:
            parts += index_part(lowering, p)
    missing = rank - sum(p.kind != "none" for p in parts)
    dots = len(parts) if dots is None else dots
    parts[dots:dots] = [Part("slice", Slice(None, None, None)) for _ in range(missing)]
    return parts


def index_part(lowering, p):
    """The parts for an integer, an array of integers, or a mask (one array of indices for each of its axes)."""
    x = lowering.lazy(p)
    if x.exact.kind == "b":
        if not x.rank:
            lowering.refuse("an index that is a single boolean has no Numba form")
        return [Part("array", line) for line in places(lowering, x)]
    return [Part("array", x if x.cost <= 1 else lowering.array(x)) if x.rank else Part("int", p)]


def places(lowering: Lowering, mask: Any) -> list[Lazy]:
    """The indices of an array's nonzero entries: one vector for each axis."""
    mask = lowering.array(mask)
    row = flat(lowering, mask)
    row = lowering.array(row)
    name = lowering.result("places", "nonzero_flat({})", row.name)
    dim = lowering.counted(name)
    out = []
    for k in range(mask.rank):
        after = [d.length for d in mask.dims[k + 1:] if d.kind != "one"]
        def read(index, k=k, after=after):
            at = entry(name, index[0])
            at = quoted("{} // {}", at, joined("*", after)) if after else at
            return at if k == 0 else quoted("{} % {}", at, mask.dims[k].length)
        out.append(Lazy([dim], np.dtype(np.int64), read, 0))
    return out


def checked(lowering, place, dim, node=None):
    """An integer as an index on an axis, with a bounds check unless it is certain to lie inside."""
    if node is not None:
        if isinstance(node, Const) and dim.key[0] is None:
            k, n = int(node.value), dim.key[1]
            if -n <= k < n:
                return loops.Const(k % n)
        bound = lowering.bounds.get(node) if not isinstance(node, (Const, Slice)) else None
        if bound is not None and bound == dim.key:
            return place
    return quoted("place({}, {})", place, dim.length)


def sliced(lowering: Lowering, s: Slice) -> loops.Slice:
    """The part of an index for a slice."""
    def part(p):
        return None if p is None or isinstance(p, Const) and p.value is None else lowering.scalar(p)
    return loops.Slice(part(s.start), part(s.stop), part(s.step))


def slice_dim(lowering, d, s, name, k, fact=None):
    """The axis that results from a slice, with a key that equal lengths share."""

    def number(p):
        value = None if p is None else getattr(p, "value", "?")
        return value if value is None or isinstance(value, (int, np.integer)) else "?"

    start, stop, step = number(s.start), number(s.stop), number(s.step)
    ends = [p.value if isinstance(p, Const) else p for p in (s.start, s.stop, s.step)]
    known = all(p is None or isinstance(p, (Var, int)) for p in ends)       # equal ends of equal axes: equal keys
    key, kind, length = ("slice", d.key, *ends) if known else (name, lowering.fresh("key")), "maybe", None
    if fact is not None:
        n = fact.normal()
        kind = "one" if n.symbol is None and n.offset == 1 else "many" if fact.many else "maybe"
    if "?" not in (start, stop, step):
        if d.key[0] is None:
            key = (None, len(range(d.key[1])[slice(start, stop, step)]))
            kind = "one" if key[1] == 1 else "many"
        elif step in (None, 1, -1) and start is None and stop is None:
            key, kind, length = d.key, d.kind, lowering.stable(d.length)
        elif step in (None, 1) and (start or 0) >= 0 and (stop is None or stop < 0):
            gone = (start or 0) - (stop or 0)
            key = ("clipped", shifted(d.key, -gone))    # clipped at 0: equal keys still mean equal lengths
            length = lowering.less(d.length, gone)
    length = loops.Const(key[1]) if key[0] is None else length or loops.Length(name, k)
    return ONE if kind == "one" else Dim(length, key, kind)


def view(lowering, x, parts, fact=None):
    """x[parts] for slices, integers and None, as a Numba view of a named array, or an entry."""
    axis, places, source = 0, [], []
    for p in parts:
        if p.kind == "none":
            places.append(NEW)
            continue
        if p.kind == "int":
            places.append(checked(lowering, lowering.scalar(p.value), x.dims[axis], p.value))
        else:
            places.append(sliced(lowering, p.value))
            source.append((p, x.dims[axis]))
        axis += 1
    if not source and NEW not in places:
        asks = any(isinstance(e, loops.Call) and e.function == "place" for p in places for e in loops.walk(p))
        return Lazy([], x.dtype, lambda index: x.read(places), int(asks))
    while places and places[-1] == ALL:
        places.pop()
    name, dims, rest = lowering.fresh("view"), [], iter(source)
    lowering.set(name, entry(x.name, *places) if places else x.name)
    for p in parts:
        if p.kind == "none":
            dims.append(ONE)
        elif p.kind == "slice":
            _, d = next(rest)
            known = fact.dims[len(dims)] if fact is not None else None
            dims.append(slice_dim(lowering, d, p.value, name, len(dims), known))
    numbers, others = [p.kind == "int" for p in parts], [p for p in parts if p.kind != "int"]
    row = x.view in (False, ROW) and numbers == sorted(numbers, reverse=True) and all(
        p.full for p in others[1:]) and all(p.in_one_piece for p in others[:1])
    lines = x.view in (False, ROW, LINES) and len(dims) == 2 and parts[-1].kind == "slice" and all(
        p.kind != "none" and p.in_one_piece for p in others)
    return Lazy(dims, x.dtype, lambda index: entry(name, *index), 0, name,
                ROW if row else LINES if lines else True)


def gathered(lowering, x, parts):
    """The lazy array x[parts] with arrays of integers among the parts."""
    if any(p.kind == "slice" and not p.full for p in parts):
        x = x if x.name else lowering.array(x)
        kept = [p if p.kind == "slice" else Part("slice", Slice(None, None, None)) for p in parts if p.kind != "none"]
        x = view(lowering, x, kept)
    arrays = [p.value for p in parts if p.kind == "array"]
    met, picks = lowering.broadcast([a.dims for a in arrays])
    picks = iter(picks)
    chosen = {id(p): next(picks) for p in parts if p.kind == "array"}
    wide = [k for k, p in enumerate(parts) if p.kind in ("array", "int")]
    together = wide == list(range(wide[0], wide[-1] + 1))
    numbers = {id(p): lowering.atom(lowering.scalar(p.value), "place") for p in parts if p.kind == "int"}
    dims, reads, axis, front = [], [], 0, 0
    for k, p in enumerate(parts):
        if k == wide[0] and together:
            front = len(dims)
            dims += met
        if p.kind == "none":
            dims.append(ONE)
        elif p.kind == "slice":
            reads.append(("own", len(dims), axis))
            dims.append(x.dims[axis])
            axis += 1
        else:
            reads.append((p, None, axis))
            axis += 1
    if not together:
        dims = met + dims
        reads = [(kind, place if kind != "own" else place + len(met), axis) for kind, place, axis in reads]
    count = len(met)
    def read(index):
        own = []
        for p, position, axis in reads:
            if p == "own":
                own.append(index[position])
            elif p.kind == "int":
                own.append(checked(lowering, numbers[id(p)], x.dims[axis], p.value))
            else:
                inner = chosen[id(p)](index[front:front + count])
                own.append(checked(lowering, p.value.read(inner), x.dims[axis]))
        return x.read(own)
    return Lazy(dims, x.dtype, read, x.cost + 1)


@lazily(operator.getitem)
def _getitem(lowering, node):
    base, index = node.args
    if isinstance(base, (Apply, Pack)) and not isinstance(lowering.fact(base), Array):
        items = lowering.forms(base) if isinstance(base, Apply) else list(base.items)
        return lowering.lazy(items[lowering.static(index, "the index of a container")])
    x = lowering.lazy(base)
    parts = parts_of(lowering, index, x.rank)
    if any(p.kind == "array" for p in parts):
        return gathered(lowering, x if x.name or x.cost <= 1 else lowering.array(x), parts)
    if all(p.kind == "none" or p.full for p in parts):
        rest = iter(x.dims)
        dims = [ONE if p.kind == "none" else next(rest) for p in parts]
        return Lazy(dims, x.dtype, lambda index: x.read([i for i, p in zip(index, parts) if p.kind != "none"]), x.cost,
                    x.name and entry(x.name, *[NEW if p.kind == "none" else ALL for p in parts]), True)
    if all(p.kind in ("int", "none") or p.full for p in parts) and any(p.kind == "int" for p in parts) and not x.name:
        return reading(lowering, x, parts)
    x = x if x.name else lowering.array(x)
    return view(lowering, x, parts, lowering.fact(node))


def reading(lowering, x, parts):
    """An entry or a line of a lazy array, which is not materialised."""
    own = [p for p in parts if p.kind != "none"]
    fixed = [
        checked(lowering, lowering.atom(lowering.scalar(p.value), "place"), d, p.value) if p.kind == "int" else None
        for p, d in zip(own, x.dims)
    ]
    rest = iter([d for d, f in zip(x.dims, fixed) if f is None])
    dims = [ONE if p.kind == "none" else next(rest) for p in parts if p.kind != "int"]

    def read(index):
        free = iter([i for i, p in zip(index, [p for p in parts if p.kind != "int"]) if p.kind != "none"])
        return x.read([f if f is not None else next(free) for f in fixed])

    return Lazy(dims, x.dtype, read, x.cost)


# --- selecting --------------------------------------------------------------------------------------------------------

@lazily(np.take)
def _take(lowering, node):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b["a"]), lowering.static(b["axis"])
    if axis is None:
        x, axis = flat(lowering, x), 0
    parts = [Part("slice", Slice(None, None, None)) for _ in range(x.rank)]
    parts[axis % x.rank: axis % x.rank + 1] = index_part(lowering, b["indices"])
    if any(p.kind == "array" for p in parts):
        return gathered(lowering, x, parts)
    return view(lowering, x if x.name else lowering.array(x), parts)


@lazily(np.take_along_axis)
def _take_along_axis(lowering, node):
    b = lowering.bound(node)
    x, where, axis = lowering.lazy(b["arr"]), lowering.lazy(b["indices"]), lowering.static(b["axis"])
    if axis is None:
        x, axis = flat(lowering, x), 0
    axis %= x.rank
    dims, picks = lowering.broadcast([[ONE if k == axis else d for k, d in enumerate(x.dims)], where.dims])
    where = where if where.cost <= 1 else lowering.array(where)
    def read(index):
        own = picks[0](index)
        own[axis] = checked(lowering, where.read(picks[1](index)), x.dims[axis])
        return x.read(own)
    return Lazy(dims, x.dtype, read, x.cost + 1)


@lazily(np.nonzero)
def _nonzero(lowering, node):
    return places(lowering, lowering.lazy(node.args[0]))


@lazily(np.flatnonzero)
def _flatnonzero(lowering, node):
    return places(lowering, flat(lowering, node.args[0]))[0]


@lazily(np.argwhere)
def _argwhere(lowering, node):
    lines = places(lowering, lowering.lazy(node.args[0]))
    return Lazy([lines[0].dims[0], lowering.length(len(lines))], lines[0].dtype, lambda index: _chosen(lines, index), 1)


def _chosen(lines, index):
    chosen = lines[-1].read([index[0]])
    for k, line in reversed(list(enumerate(lines[:-1]))):
        chosen = quoted("{} if {} == {} else {}", line.read([index[0]]), index[1], k, chosen)
    return chosen


@lazily(np.bincount)
def _bincount(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, weights = lowering.array(b["x"]), b["weights"]
    weights = lowering.static(weights) if isinstance(weights, Const) else lowering.lazy(weights)
    top = lowering.fresh("n")
    lowering.set(top, lowering.scalar(b["minlength"]))
    with lowering.nest(x.dims) as index:
        lowering.raises("np.bincount takes numbers that are not negative", "{} < 0", x.read(index))
        lowering.say("{top} = max({top}, {} + 1)", x.read(index), top=top)
    out = lowering.result("count", "np.zeros({}, {})", top, dtype)
    if isinstance(weights, Lazy):
        lowering.agree([x.dims[0], weights.dims[0]])
    with lowering.nest(x.dims) as index:
        lowering.say("{}[{}] += {}", out, x.read(index), weights.cast(index, dtype) if isinstance(weights, Lazy) else 1)
    return lowering.made(out, [lowering.counted(out)], dtype)


# --- writing ----------------------------------------------------------------------------------------------------------

def kept(lowering, number):
    """A scalar stored in a name."""
    value = number.cast([], number.dtype)
    if not isinstance(value, loops.Name):
        value = lowering.result("t", "{}", value)
        lowering.known.locals.add(value)
    return Lazy([], number.dtype, value, 0)


def kept_apart(lowering, part, target):
    """An index array copied before the first write, in case it aliases the target, as in x[x] = v."""
    x = part.value
    if part.kind != "array" or not x.rank or x.name is not None and x.name != target.name and not x.view:
        return part
    return Part("array", lowering.array(Lazy(x.dims, x.dtype, x.read, 2)))


def write(lowering: Lowering, target: Lazy, index: Any, value: Any, how: str, shared: bool = True,
          apart: bool = False) -> None:
    """target[index] = value, or += where `how` is add; `at` adds at a repeated index each time.

    shared: whether the value may alias the target; apart: whether each of its entries may be computed where it is
    written.
    """
    parts = [kept_apart(lowering, p, target) for p in parts_of(lowering, index, target.rank)]
    value = lowering.lazy(value)
    place = equal = None
    if apart and value.rank and all(p.kind in ("int", "slice") for p in parts):
        place = view(lowering, target, parts)
        unsure = [(a, b) for a, b in zip(value.dims, place.dims) if a.key != b.key]
        apart = value.rank == place.rank and all(d.kind != "one" for pair in unsure for d in pair)
        if apart and unsure:            # usually they are equal
            equal = joined("and", [quoted("{} == {}", a.length, b.length) for a, b in unsure])
    else:
        apart = False
    if not apart and value.rank and (value.cost or value.view or value.name is None):
        value = lowering.array(value)                # computed before the first entry is written
    elif not value.rank and (value.cost or shared and any(p.kind != "int" for p in parts)):
        value = kept(lowering, value)
    if any(p.kind == "array" for p in parts):
        place = gathered(lowering, target, parts)
        if how == "add" and place.rank:
            value, how = lowering.array(lowering.entries(lambda args, out: quoted(
                "{} + {}", args[0].node, args[1].node), [place, value], target.dtype)), "set"
    elif place is None:
        place = view(lowering, target, parts)
    sign = "=" if how == "set" else "+="
    if not place.rank:
        lowering.say("{} {} {}", place.read([]), sign, value.cast([ZERO] * value.rank, target.dtype))
        return
    while value.rank > place.rank and value.dims[0].kind == "one":
        inner = value
        value = Lazy(inner.dims[1:], inner.dtype, lambda index, inner=inner: inner.read([ZERO, *index]), inner.cost)
    if equal is not None:
        branch = lowering.say("if {}:", equal)
        with lowering.into(branch.block), lowering.nest(place.dims) as spot:
            lowering.say("{} {} {}", place.read(spot), sign, value.cast(spot, target.dtype))
        with lowering.into(branch.orelse):
            laid(lowering, place, lowering.array(value), sign, target.dtype)
        return
    laid(lowering, place, value, sign, target.dtype)


def laid(lowering, place, value, sign, dtype):
    """Writes a value over a part of an array, with broadcasting."""
    own = lowering.laid_over(value.dims, place.dims)
    with lowering.nest(place.dims) as spot:
        lowering.say("{} {} {}", place.read(spot), sign, value.cast(own(spot), dtype))

