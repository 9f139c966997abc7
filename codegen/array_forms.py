# SPDX-License-Identifier: Apache-2.0
"""Lowering to loops of reductions, scans, and functions that make or reshape arrays."""
import builtins
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gradscribe.ast_transform.core.form import Apply, Const
from gradscribe.ast_transform.core.operations import astype, run_length, shape_of, size_of
from gradscribe.ast_transform.source.diagnose import RuleError
from gradscribe.codegen.entry_forms import form_of
from gradscribe.codegen.loops.build import ZERO, entry, quoted
from gradscribe.codegen.lowered import ONE, Dim, Lazy, Lowering, compiles, lazily, product_of, shape
from gradscribe.codegen.scalar_forms import Operand, cast, literal, narrowed
from gradscribe.runtime.offload import on_disk

# --- reductions -------------------------------------------------------------------------------------------------------


def axes_of(lowering: Lowering, axis: int | tuple | list | None, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(int(a) % rank for a in axis))


def _less(sign):
    def step(lowering, total, value, v):
        lowering.set(v, value)
        with lowering.inside("if {v} {} {} or {v} != {v}:", sign, total, v=v):
            lowering.set(total, v)
    return step


def each(template: str) -> Callable[..., Any]:
    """The step of a reduction that sets the total to a template of the total and the next value."""
    return lambda lowering, total, value, v: lowering.set(total, quoted(template, total, value))


def _found(test, result):
    def step(lowering, total, value, v):
        with lowering.inside(test, value):
            lowering.set(total, result)
    return step


# floating-point numbers mapped to integers of the same order, whose largest LLVM finds in a vectorised loop
RANKS = {("max", "float64"): "ranked", ("min", "float64"): "ranked_low", ("max", "float32"): "ranked32",
         ("min", "float32"): "ranked_low32"}
UNRANKED = {"float64": "unranked", "float32": "unranked32"}
STEPS: dict[str, tuple[Any, Any]] = {
    "sum": (0, lambda lowering, total, value, v: lowering.say("{} += {}", total, value)),
    "prod": (1, lambda lowering, total, value, v: lowering.say("{} *= {}", total, value)),
    "max": (None, _less(">")),
    "min": (None, _less("<")),
    "any": (False, _found("if {}:", True)),
    "all": (True, _found("if not {}:", False)),
}


def none_empty(lowering: Lowering, dims: Iterable[Dim], message: str) -> None:
    """Makes the function raise if an axis has no entries; an axis of known positive length needs no check."""
    filled(lowering, [d for d in dims if d.key[0] is not None or d.length == ZERO], message)


def filled(lowering, dims, message):
    for d in dims:
        if d.kind != "one":
            lowering.raises(message, "{} == 0", d.length)


def reduce(lowering: Lowering, x: Lazy, axes: Collection[int], keepdims: bool, kind: str, dtype: DTypeLike) -> Lazy:
    """A reduction of a lazy array over axes."""
    start, step = STEPS[kind]
    dtype = np.dtype(dtype)
    if not axes:
        return Lazy(x.dims, dtype, lambda index: x.cast(index, dtype), x.cost)
    if start is None:
        if dtype.kind == "c":
            lowering.refuse("the maximum of complex numbers has no Numba form")
        filled(lowering, [x.dims[k] for k in axes], "zero-size array to reduction operation which has no identity")
    kept = [k for k in range(x.rank) if k not in axes]
    result = [ONE if k in axes else x.dims[k] for k in range(x.rank)] if keepdims else [x.dims[k] for k in kept]
    many = [k for k in kept if x.dims[k].kind != "one"]
    inner = not many or builtins.max(many) < min((k for k in axes if x.dims[k].kind != "one"), default=x.rank)
    rank = RANKS.get((kind, dtype.name)) if inner else None
    if rank is not None:
        step = each("max({}, {})" if kind == "max" else "min({}, {})")

    def value(index):
        return x.cast(index, dtype) if rank is None else quoted("{}({})", rank, x.cast(index, dtype))

    def begin(index):
        return literal(start, dtype) if start is not None else value(at_first(index, axes))

    total = lowering.fresh(kind)
    v = lowering.fresh("v") if start is None else ""
    if not many:
        lowering.set(total, begin([ZERO] * x.rank))
        with lowering.nest(x.dims) as index:
            step(lowering, total, value(index), v)
        if rank is not None:
            found, total = total, lowering.fresh(kind)
            lowering.say("{} = {}({})", total, UNRANKED[dtype.name], found)
        scalar = Lazy([], dtype, total, 0)
        return scalar if not result else Lazy(result, dtype, total, 0)
    out = lowering.fresh(kind)
    if not result or inner:
        lowering.say("{} = np.empty({}, {})", out, shape(result), dtype)
        with lowering.nest([x.dims[k] if k in kept else ONE for k in range(x.rank)]) as outer:
            lowering.set(total, begin(outer))
            with lowering.nest([x.dims[k] if k in axes else ONE for k in range(x.rank)]) as within:
                index = [within[k] if k in axes else outer[k] for k in range(x.rank)]
                step(lowering, total, value(index), v)
            found = total if rank is None else quoted("{}({})", UNRANKED[dtype.name], total)
            lowering.say("{}[{*}] = {}", out, place(outer, kept, axes, keepdims), found)
    else:
        if start in (0, False):
            lowering.say("{} = np.zeros({}, {})", out, shape(result), dtype)
        else:
            lowering.say("{} = np.empty({}, {})", out, shape(result), dtype)
            with lowering.nest([x.dims[k] if k in kept else ONE for k in range(x.rank)]) as index:
                lowering.say("{}[{*}] = {}", out, place(index, kept, axes, keepdims), begin(index))
        with lowering.nest(x.dims) as index:
            step(lowering, entry(out, *place(index, kept, axes, keepdims)), value(index), v)
    return lowering.made(out, result, dtype)


def place(index, kept, axes, keepdims):
    return at_first(index, axes) if keepdims else [index[k] for k in kept]


def at_first(index, axes):
    """An index with 0 on some axes."""
    return [ZERO if k in axes else i for k, i in enumerate(index)]


def counted(lowering, x, axes):
    """The number of entries that are reduced to one."""
    return lowering.atom(product_of([x.dims[k] for k in axes]), "n")


def entrywise(lowering: Lowering, function: Callable[..., Any], dtype: DTypeLike, *args: Any) -> Lazy:
    return lowering.entries(form_of(function), [lowering.lazy(a) for a in args], dtype, function)


def reduction(kind: str, *functions: Callable[..., Any]) -> None:
    """Registers functions as a reduction with the steps of `kind`."""
    @lazily(*functions)
    def make(lowering, node):
        b = lowering.bound(node)
        x = lowering.lazy(next(b[name] for name in ("x", "a", "array") if name in b))
        axes = axes_of(lowering, lowering.static(b["axis"], "axis"), x.rank)
        if kind in ("any", "all"):
            x = entrywise(lowering, bool, np.dtype(bool), x)
        return reduce(lowering, x, axes, lowering.static(b["keepdims"]), kind, lowering.fact(node).dtype)


reduction("sum", np.sum)
reduction("prod", np.prod)
reduction("max", np.max, np.amax)
reduction("min", np.min, np.amin)
reduction("any", np.any)
reduction("all", np.all)


@lazily(np.count_nonzero)
def _count_nonzero(lowering, node):
    b = lowering.bound(node)
    x = entrywise(lowering, bool, np.dtype(bool), b["a"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    return reduce(lowering, x, axes, lowering.static(b["keepdims"]), "sum", np.int64)


def mean(lowering, x, axes, keepdims, dtype):
    n = counted(lowering, x, axes)
    total = reduce(lowering, x, axes, keepdims, "sum", dtype)
    divisor = Lazy([], int, n, 0)
    return entrywise(lowering, np.divide, dtype, total, divisor)


@lazily(np.mean)
def _mean(lowering, node):
    b = lowering.bound(node)
    x = lowering.lazy(b["x"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    return mean(lowering, x, axes, lowering.static(b["keepdims"]), lowering.fact(node).dtype)


@lazily(np.std)
def _deviation(lowering, node):
    return entrywise(lowering, np.sqrt, lowering.fact(node).dtype, _variance(lowering, node))


@lazily(np.var)
def _variance(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    x = lowering.lazy(b["x"])
    x = lowering.array(x) if x.cost and x.rank else x
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    full = np.result_type(x.exact, dtype)
    centre = mean(lowering, x, axes, True, full)
    centre = lowering.array(centre) if any(d.kind != "one" for d in centre.dims) else lowering.settled(centre, x.dims)
    gap = entrywise(lowering, np.subtract, full, x, centre)
    name = "squared_size" if full.kind == "c" else "square"
    squares = Lazy(gap.dims, dtype, lambda index: quoted("{}({})", name, gap.read(index)), gap.cost)
    total = reduce(lowering, squares, axes, lowering.static(b["keepdims"]), "sum", dtype)
    n, ddof = counted(lowering, x, axes), lowering.scalar(b["ddof"])
    kind = float if lowering.fact(b["ddof"]).kind == "f" else int
    divisor = Lazy([], kind, n if ddof == ZERO else quoted("max({} - {}, 0)", n, ddof), 1)
    return entrywise(lowering, np.divide, dtype, total, divisor)


@lazily(np.argmax, sign=">", skip=False)
@lazily(np.argmin, sign="<", skip=False)
@lazily(np.nanargmax, sign=">", skip=True)
@lazily(np.nanargmin, sign="<", skip=True)
def _position(lowering, node, sign, skip):
    b = lowering.bound(node)
    x = lowering.lazy(b["a"])
    x = lowering.array(x) if x.cost > 1 else x
    axis, keepdims = lowering.static(b["axis"]), lowering.static(b["keepdims"])
    axes = axes_of(lowering, axis, x.rank)
    best, at, v = lowering.fresh("best"), lowering.fresh("at"), lowering.fresh("v")
    kept = [k for k in range(x.rank) if k not in axes]
    result = [ONE if k in axes else x.dims[k] for k in range(x.rank)] if keepdims else [x.dims[k] for k in kept]
    filled(lowering, [x.dims[k] for k in axes], "attempt to get the place of the largest of an empty sequence")
    out = lowering.fresh("places")
    if result:
        lowering.say("{} = np.empty({}, np.int64)", out, shape(result))
    with lowering.nest([x.dims[k] if k in kept else ONE for k in range(x.rank)]) as outer:
        lowering.set(best, x.read(at_first(outer, axes)))
        lowering.set(at, -1 if skip else 0)
        with lowering.nest([x.dims[k] if k in axes else ONE for k in range(x.rank)]) as inner:
            index = [inner[k] if k in axes else outer[k] for k in range(x.rank)]
            lowering.set(v, x.read(index))
            test = "if {v} == {v} and ({at} < 0 or {v} {sign} {best}):" if skip else \
                "if {v} {sign} {best} or {v} != {v} and {best} == {best}:"
            with lowering.inside(test, v=v, at=at, sign=sign, best=best):
                flat = None
                for k in axes:
                    flat = index[k] if flat is None else quoted("{} * {} + {}", flat, x.dims[k].length, index[k])
                lowering.set(best, v)
                lowering.set(at, flat or ZERO)
        if skip:
            lowering.raises("All-NaN slice encountered", "{} < 0", at)
        lowering.set(entry(out, *place(outer, kept, axes, keepdims)) if result else out, at)
    return lowering.made(out, result, np.dtype(np.int64)) if result else Lazy([], np.dtype(np.int64), out, 0)


# --- scans ------------------------------------------------------------------------------------------------------------

@lazily(np.cumsum, sign="+")
@lazily(np.cumprod, sign="*")
def _scan(lowering, node, sign):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, axis = lowering.lazy(b["x"]), lowering.static(b["axis"])
    if axis is None and x.rank != 1:
        x, axis = flat(lowering, x), 0
    axis = (axis or 0) % x.rank
    out = lowering.result("scan", "np.empty({}, {})", shape(x.dims), dtype)
    with lowering.nest(x.dims) as index:
        value = x.cast(index, dtype)
        before = [quoted("{} - 1", i) if k == axis else i for k, i in enumerate(index)]
        lowering.set(entry(out, *index), value if index[axis] == ZERO else quoted(
            "{value} if {i} == 0 else {before} {sign} {value}", value=value, i=index[axis],
            before=entry(out, *before), sign=sign))
    return lowering.made(out, x.dims, dtype)


@lazily(np.diff)
def _diff(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    x = lowering.lazy(b["x"])
    axis = lowering.static(b["axis"]) % x.rank
    for _ in range(lowering.static(b["n"], "n of np.diff")):
        x = lowering.array(x) if x.cost > 1 else x
        d = x.dims[axis]
        length = ZERO if d.kind == "one" else quoted("max({} - 1, 0)", d.length)
        dims = [Dim(lowering.atom(length, "n"), ("less", d.key, 1), "maybe") if k == axis else e
                for k, e in enumerate(x.dims)]

        def read(index, x=x):
            after = [quoted("{} + 1", i) if k == axis else i for k, i in enumerate(index)]
            sign = "!=" if np.dtype(dtype).kind == "b" else "-"
            return narrowed(quoted("{} {} {}", x.cast(after, dtype), sign, x.cast(index, dtype)), dtype)

        x = Lazy(dims, dtype, read, 2 * x.cost + 2)
    return x


# --- reshaping --------------------------------------------------------------------------------------------------------

def flat(lowering: Lowering, x: Any) -> Lazy:
    """All entries in one axis, as a view of a contiguous array."""
    x = lowering.lazy(x)
    if x.rank == 1:
        return x
    if not x.rank:
        return Lazy([ONE], x.dtype, lambda index: x.read([]), x.cost, literal=x.literal)
    x = lowering.array(x)
    name, length = lowering.fresh("flat"), counted(lowering, x, range(x.rank))
    lowering.say("{} = {}.reshape(({},))", name, x.name, length)
    many = [d for d in x.dims if d.kind != "one"] or [ONE]
    return lowering.made(name, many if len(many) == 1 else [lowering.counted(name)], x.dtype)


def shaped(lowering: Lowering, x: Lazy, dims: Sequence[Dim]) -> Lazy:
    """An array as a contiguous one, reshaped."""
    x = lowering.array(x)
    if lowering.for_threads and [d.length for d in x.dims] == [d.length for d in dims]:
        return x
    name = lowering.result("view", "{}.reshape({})", x.name, shape(dims))
    return lowering.made(name, dims, x.dtype)


# --- making arrays ----------------------------------------------------------------------------------------------------

@lazily(np.zeros, name="zeros", value=0)
@lazily(np.ones, name="ones", value=1)
@lazily(np.empty, name="empty", value=0)
def _make(lowering, node, name, value):
    b, fact = lowering.bound(node), lowering.fact(node)
    dims, dtype = lowering.lengths(b["shape"]), np.dtype(fact.dtype)
    if not dims:
        return Lazy(dims, fact.dtype, literal(value, dtype), 0)
    out = lowering.result("t", "np.{}({}, {})", name, shape(dims), dtype)
    return lowering.made(out, dims, dtype)


@lazily(on_disk)
def _make_on_disk(lowering, node):
    if lowering.for_threads:
        raise RuleError("a device has no files", lowering.origin,
                        'Leave offload="disk" out, or use gs.jit without target.')
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    dims = lowering.lengths(b["shape"])
    entries = lowering.result("entries", "entries_on_disk({}, {})", lowering.atom(product_of(dims), "n"), dtype)
    return lowering.made(lowering.result("t", "{}.reshape({})", entries, shape(dims)), dims, dtype)


@lazily(np.zeros_like, value=0)
@lazily(np.ones_like, value=1)
@lazily(np.empty_like, value=None)
def _make_like(lowering, node, value):
    b, fact = lowering.bound(node), lowering.fact(node)
    dtype, x = np.dtype(fact.dtype), lowering.lazy(b["a"])
    dims = x.dims if lowering.static(b.get("shape", Const(None))) is None else lowering.lengths(b["shape"])
    if value is None and dims:
        name = lowering.result("t", "np.empty({}, {})", shape(dims), dtype)
        return lowering.made(name, dims, dtype)
    return Lazy(dims, fact.dtype, literal(value or 0, dtype), 0)


@lazily(np.full, np.full_like)
def _full(lowering, node):
    b, fact = lowering.bound(node), lowering.fact(node)
    dims = lowering.lengths(b["shape"]) if "shape" in b else lowering.lazy(b["a"]).dims
    value = lowering.settled(lowering.lazy(b["fill_value"]), dims)
    full, picks = lowering.broadcast([dims, value.dims])
    return Lazy(dims, fact.dtype, lambda index: value.cast(picks[1](index), fact.dtype), value.cost)


@lazily(np.eye, np.identity, sign="==")
@lazily(np.tri, sign="<=")
def _eye(lowering, node, sign):
    b, fact = lowering.bound(node), lowering.fact(node)
    rows = lowering.length(b["N"] if "N" in b else b["n"])
    other = b.get("M", Const(None))
    columns = rows if isinstance(other, Const) and other.value is None else lowering.length(other)
    k, dtype = lowering.scalar(b.get("k", Const(0))), fact.dtype

    def read(index):
        place = index[0] if k == ZERO else quoted("{} + {}", index[0], k)
        return quoted("{} if {} {} {} else {}", literal(1, dtype), index[1], sign, place, literal(0, dtype))

    return Lazy([rows, columns], dtype, read, 1)


@lazily(np.arange)
def _arange(lowering, node):
    b, fact = lowering.bound(node), lowering.fact(node)
    start, stop, step = (b.get(k, Const(None)) for k in ("start", "stop", "step"))
    dtype = np.dtype(fact.dtype)
    if isinstance(stop, Const) and stop.value is None:
        if lowering.fact(start).kind in "iu":
            dim = lowering.length(start)
            if isinstance(start, Const) and start.value < 0:
                dim = lowering.length(0)
            elif not isinstance(start, Const):
                length = dim.length if _a_length(start) else lowering.atom(quoted("max({}, 0)", dim.length), "n")
                dim = Dim(length, dim.key, dim.kind)
            return Lazy([dim], dtype, lambda index: cast(Operand(index[0], np.dtype(np.int64)), dtype), 0)
        start, stop = Const(0), start
    whole = all(lowering.fact(a).kind in "iub" for a in (start, stop, step))
    loop = np.dtype(np.int64) if whole else np.dtype(np.float64)
    a, z, s = (lowering.atom(lowering.scalar(v, loop)) for v in (start, stop, step))
    ends = "max(0, -(({a} - {z}) // {s}))" if whole else "max(0, int(math.ceil(({z} - {a}) / {s})))"
    n = quoted(ends, a=a, z=z, s=s)
    dim = Dim(lowering.atom(n, "n"), (n, lowering.fresh("key")), _kind(fact.dims[0]) if whole else "maybe")
    if not whole:
        s = lowering.atom(quoted("({a} + {}) - {a}", s, a=a))  # NumPy's step: the second entry minus the first
    return Lazy([dim], dtype, lambda index: cast(Operand(quoted("{} + {} * {}", a, index[0], s), loop), dtype), 1)


def _kind(length):
    return "one" if length.is_unit else "many" if length.many else "maybe"


def _a_length(node):
    return isinstance(node, Apply) and node.function in (shape_of, size_of)


# --- lengths and dtypes -----------------------------------------------------------------------------------------------

@lazily(shape_of)
def _shape_of(lowering, node):
    d = lowering.lazy(node.args[0]).dims[node.args[1].value]
    return Lazy([], int, d.length, 0)


@lazily(size_of, np.size)
def _size_of(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy([], int, product_of(x.dims), 0)


@lazily(len)
def _len(lowering, node):
    return _shape_of(lowering, Apply(shape_of, (node.args[0], Const(0))))


@lazily(run_length)
def _run_length(lowering, node):
    return Lazy([], int, quoted("len(range({*}))", [lowering.scalar(a) for a in node.args]), 1)


@lazily(astype)
def _astype(lowering, node):
    x = lowering.lazy(node.args[0])
    dtype = np.dtype(lowering.static(node.args[1], "the dtype"))
    if not compiles(dtype):
        lowering.refuse(f"Numba has no {dtype}")
    return Lazy(x.dims, dtype, lambda index: x.cast(index, dtype), x.cost + 1)

