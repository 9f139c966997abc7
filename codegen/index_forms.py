# SPDX-License-Identifier: Apache-2.0
"""Reading and writing at indices: slices are Numba's views, everything else is loops with checked places."""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var, as_slice
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.codegen.array_forms import flat
from gradscribe.codegen.lowered import LINES, ONE, ROW, Dim, Lazy, lazily, shifted

FULL = slice(None)


class Part:
    """One part of an index: none, slice, int or array; `value` is its operand or lazy array."""
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
        """Whether the entries that it leaves of an axis lie side by side, with all that is on the axes after it."""
        step = self.value.step if self.kind == "slice" else self
        return step is None or isinstance(step, Const) and step.value is None


def parts_of(lowering, index, rank):
    """The parts of an index, one for each axis of the array and for each new one."""
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
    """An integer, an array of integers, or a mask: the places where it is true, axis by axis."""
    x = lowering.lazy(p)
    if x.exact.kind == "b":
        if not x.rank:
            lowering.refuse("an index that is a truth value has no Numba form")
        return [Part("array", line) for line in places(lowering, x)]
    return [Part("array", x if x.cost <= 1 else lowering.array(x)) if x.rank else Part("int", p)]


def places(lowering, mask):
    """Where an array is not zero: one vector for each axis."""
    mask = lowering.array(mask)
    row = flat(lowering, mask)
    row = lowering.array(row)
    name = lowering.fresh("places")
    lowering.helper("nonzero_flat")
    lowering.say(f"{name} = nonzero_flat({row.name})")
    dim = Dim(f"{name}.shape[0]", (name, lowering.fresh("key")), "maybe")
    out = []
    for k in range(mask.rank):
        after = [d.text for d in mask.dims[k + 1:] if d.kind != "one"]
        def read(index, k=k, after=after):
            text = f"{name}[{index[0]}]"
            if after:
                text = f"{text} // ({' * '.join(after)})"
            return text if k == 0 else f"{text} % {mask.dims[k].text}"
        out.append(Lazy([dim], np.dtype(np.int64), read, 0))
    return out


def checked(lowering, operand_text, dim, node=None):
    """An integer as a place on an axis: checked, unless it is certain to lie inside."""
    if node is not None:
        if isinstance(node, Const) and dim.key[0] is None:
            k, n = int(node.value), dim.key[1]
            if -n <= k < n:
                return str(k % n)
        bound = lowering.bounds.get(node) if not isinstance(node, (Const, Slice)) else None
        if bound is not None and bound == dim.key:
            return operand_text
    lowering.helper("place")
    return f"place({operand_text}, {dim.text})"


def slice_text(lowering, s):
    def part(p):
        return "" if p is None or isinstance(p, Const) and p.value is None else lowering.scalar(p)
    start, stop, step = part(s.start), part(s.stop), part(s.step)
    return f"{start}:{stop}" + (f":{step}" if step else "")


def slice_dim(lowering, d, s, name, k, fact=None):
    """The axis that a slice leaves, as far as its length is shared with others."""

    def number(p):
        return (
            None
            if p is None or isinstance(p, Const) and p.value is None
            else p.value
            if isinstance(p, Const) and isinstance(p.value, (int, np.integer))
            else "?"
        )

    start, stop, step = number(s.start), number(s.stop), number(s.step)
    ends = [p.value if isinstance(p, Const) else p for p in (s.start, s.stop, s.step)]
    known = all(p is None or isinstance(p, (Var, int)) for p in ends)       # one for equal places on equal axes
    key, kind, text = ("slice", d.key, *ends) if known else (name, lowering.fresh("key")), "maybe", None
    if fact is not None:
        n = fact.normal()
        kind = "one" if n.symbol is None and n.offset == 1 else "many" if fact.many else "maybe"
    if "?" not in (start, stop, step):
        if d.key[0] is None:
            key = (None, len(range(d.key[1])[slice(start, stop, step)]))
            kind = "one" if key[1] == 1 else "many"
        elif step in (None, 1, -1) and start is None and stop is None:
            key, kind, text = d.key, d.kind, lowering.stable(d.text)
        elif step in (None, 1) and (start or 0) >= 0 and (stop is None or stop < 0):
            gone = (start or 0) - (stop or 0)
            key = ("clipped", shifted(d.key, -gone))    # lengths are not below 0: equal keys, equal lengths
            text = lowering.less(d.text, gone)
    text = str(key[1]) if key[0] is None else text or f"{name}.shape[{k}]"
    return ONE if kind == "one" else Dim(text, key, kind)


def view(lowering, x, parts, fact=None):
    """x[parts] for slices, integers and None, as Numba's view of a named array, or an entry."""
    axis, texts, source = 0, [], []
    for p in parts:
        if p.kind == "none":
            texts.append("None")
            continue
        if p.kind == "int":
            texts.append(checked(lowering, lowering.scalar(p.value), x.dims[axis], p.value))
        else:
            texts.append(slice_text(lowering, p.value))
            source.append((p, x.dims[axis]))
        axis += 1
    if not source and "None" not in texts:
        return Lazy([], x.dtype, lambda index: x.read(texts), 1 if any("place" in t for t in texts) else 0)
    while texts and texts[-1] == ":":
        texts.pop()
    name, dims, rest = lowering.fresh("view"), [], iter(source)
    lowering.say(f"{name} = {x.name}[{', '.join(texts)}]" if texts else f"{name} = {x.name}")
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
    return Lazy(dims, x.dtype, lambda index: f"{name}[{', '.join(index)}]", 0, name,
                ROW if row else LINES if lines else True)


def gathered(lowering, x, parts):
    """x[parts] with arrays of integers among the parts: a lazy array."""
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
                    x.name and f"{x.name}[{', '.join('None' if p.kind == 'none' else ':' for p in parts)}]", True)
    if all(p.kind in ("int", "none") or p.full for p in parts) and any(p.kind == "int" for p in parts) and not x.name:
        return reading(lowering, x, parts)
    x = x if x.name else lowering.array(x)
    return view(lowering, x, parts, lowering.fact(node))


def reading(lowering, x, parts):
    """An entry or a line of an expression, without the expression's array."""
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


# --- picking ----------------------------------------------------------------------------------------------------------

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
    text = lines[-1].read([index[0]])
    for k, line in reversed(list(enumerate(lines[:-1]))):
        text = f"({line.read([index[0]])} if {index[1]} == {k} else {text})"
    return text


@lazily(np.bincount)
def _bincount(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, weights = (
        lowering.array(b["x"]),
        lowering.static(b["weights"]) if isinstance(b["weights"], Const) else lowering.lazy(b["weights"]),
    )
    top = lowering.fresh("n")
    lowering.say(f"{top} = {lowering.scalar(b['minlength'])}")
    with lowering.nest(x.dims) as index:
        with lowering.inside(f"if {x.read(index)} < 0:"):
            lowering.say("raise ValueError('np.bincount takes numbers that are not negative')")
        lowering.say(f"{top} = max({top}, {x.read(index)} + 1)")
    out = lowering.fresh("count")
    lowering.say(f"{out} = np.zeros({top}, np.{dtype.name})")
    if isinstance(weights, Lazy):
        lowering.agree([x.dims[0], weights.dims[0]])
    with lowering.nest(x.dims) as index:
        lowering.say(f"{out}[{x.read(index)}] += {weights.cast(index, dtype) if isinstance(weights, Lazy) else 1}")
    return lowering.made(out, [Dim(f"{out}.shape[0]", (out, lowering.fresh("key")), "maybe")], dtype)


# --- writing ----------------------------------------------------------------------------------------------------------

def kept(lowering, number):
    """A number under a name of its own."""
    name = number.cast([], number.dtype)
    if not name.isidentifier():
        text, name = name, lowering.fresh("t")
        lowering.locals.add(name)
        lowering.say(f"{name} = {text}")
    return Lazy([], number.dtype, lambda index: name, 0)


def kept_apart(lowering, part, target):
    """An index array as it was before the first entry is written: x[x] = v reads what it writes."""
    x = part.value
    if part.kind != "array" or not x.rank or x.name is not None and x.name != target.name and not x.view:
        return part
    return Part("array", lowering.array(Lazy(x.dims, x.dtype, x.read, 2)))


def write(lowering, target, index, value, how, shared=True, apart=False):
    """target[index] = value, or += where `how` is add; `at` adds at repeated places each time.

    shared: whether the value may be read from what is written; apart: each entry of it may be computed where it is
    written.
    """
    parts = [kept_apart(lowering, p, target) for p in parts_of(lowering, index, target.rank)]
    value = lowering.lazy(value)
    place = equal = None
    if apart and value.rank and all(p.kind in ("int", "slice") for p in parts):
        place = view(lowering, target, parts)
        unsure = [(a, b) for a, b in zip(value.dims, place.dims) if a.key != b.key]
        apart = value.rank == place.rank and all(d.kind != "one" for pair in unsure for d in pair)
        if apart and unsure:            # as a rule they are equal
            equal = " and ".join(f"{a.text} == {b.text}" for a, b in unsure)
    else:
        apart = False
    if not apart and value.rank and (value.cost or value.view or value.name is None):
        value = lowering.array(value)                # computed before the first entry is written
    elif not value.rank and (value.cost or shared and any(p.kind != "int" for p in parts)):
        value = kept(lowering, value)
    if any(p.kind == "array" for p in parts):
        place = gathered(lowering, target, parts)
        if how == "add":
            place, how = place, "add"
            old = lowering.array(lowering.entries(lambda args, out: f"({args[0].text} + {args[1].text})",
                                                  [place, value], target.dtype)) if place.rank else None
            value, how = (old, "set") if old is not None else (value, how)
        how = "add" if how == "at" else how
    else:
        place = view(lowering, target, parts) if place is None else place
        how = "add" if how == "at" else how
    if not place.rank:
        lowering.say(f"{place.read([])} {'+=' if how == 'add' else '='} {value.cast(['0'] * value.rank, target.dtype)}")
        return
    while value.rank > place.rank and value.dims[0].kind == "one":
        inner = value
        value = Lazy(inner.dims[1:], inner.dtype, lambda index, inner=inner: inner.read(["0", *index]), inner.cost)
    sign = "+=" if how == "add" else "="
    if equal is not None:
        with lowering.inside(f"if {equal}:"):
            with lowering.nest(place.dims) as spot:
                lowering.say(f"{place.read(spot)} {sign} {value.cast(spot, target.dtype)}")
        with lowering.inside("else:"):
            laid(lowering, place, lowering.array(value), sign, target.dtype)
        return
    laid(lowering, place, value, sign, target.dtype)


def laid(lowering, place, value, sign, dtype):
    """Writes a value over a part of an array, which it may have to be repeated for."""
    own = lowering.laid_over(value.dims, place.dims)
    with lowering.nest(place.dims) as spot:
        lowering.say(f"{place.read(spot)} {sign} {value.cast(own(spot), dtype)}")

