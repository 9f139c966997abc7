# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, makers of arrays: how Numba's loops compute them."""
import builtins

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import astype, run_length, shape_of, size_of
from gradscribe.codegen.lowered import ONE, Dim, Lazy, compiles, dtype_text, lazily, shape_text
from gradscribe.codegen.scalar_forms import FORMS, Operand, cast, literal, narrowed

# --- reductions -------------------------------------------------------------------------------------------------------


def axes_of(lowering, axis, rank):
    if axis is None:
        return tuple(range(rank))
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(int(a) % rank for a in axis))


def _less(sign):
    return lambda total, value, v: [f"{v} = {value}", f"if {v} {sign} {total} or {v} != {v}:", f"    {total} = {v}"]


def _ranked(function):
    return lambda total, value, v: [f"{total} = {function}({total}, {value})"]


# floating-point numbers as whole numbers, the largest of which LLVM finds in a vectorised loop
RANKS = {("max", "float64"): "ranked", ("min", "float64"): "ranked_low", ("max", "float32"): "ranked32",
         ("min", "float32"): "ranked_low32"}
UNRANKED = {"float64": "unranked", "float32": "unranked32"}
STEPS = {
    "sum": (0, lambda total, value, v: [f"{total} += {value}"]),
    "prod": (1, lambda total, value, v: [f"{total} *= {value}"]),
    "max": (None, _less(">")),
    "min": (None, _less("<")),
    "any": (False, lambda total, value, v: [f"if {value}:", f"    {total} = True"]),
    "all": (True, lambda total, value, v: [f"if not {value}:", f"    {total} = False"]),
}


def none_empty(lowering, dims, message):
    """Raises where an axis has no entries, which is known when running only."""
    for d in dims:
        if d.kind != "one" and d.key[0] is not None or d.text == "0":
            with lowering.inside(f"if {d.text} == 0:"):
                lowering.say(f"raise ValueError({message!r})")


def reduce(lowering, x, axes, keepdims, kind, dtype):
    """A reduction of a lazy array over axes."""
    start, step = STEPS[kind]
    dtype = np.dtype(dtype)
    if not axes:
        return Lazy(x.dims, dtype, lambda index: x.cast(index, dtype), x.cost)
    if start is None:
        if dtype.kind == "c":
            lowering.refuse("the largest of complex numbers has no Numba form")
        for k in axes:
            if x.dims[k].kind != "one":
                with lowering.inside(f"if {x.dims[k].text} == 0:"):
                    lowering.say("raise ValueError('zero-size array to reduction operation which has no identity')")
    kept = [k for k in range(x.rank) if k not in axes]
    result = [ONE if k in axes else x.dims[k] for k in range(x.rank)] if keepdims else [x.dims[k] for k in kept]
    many = [k for k in kept if x.dims[k].kind != "one"]
    inner = not many or builtins.max(many) < min((k for k in axes if x.dims[k].kind != "one"), default=x.rank)
    rank = RANKS.get((kind, dtype.name)) if inner else None
    if rank is not None:
        lowering.helper(rank)
        step = _ranked(kind)

    def value(index):
        return x.cast(index, dtype) if rank is None else f"{rank}({x.cast(index, dtype)})"

    def begin(index):
        return literal(start, dtype) if start is not None else value(["0" if k in axes else i
                                                                      for k, i in enumerate(index)])

    total = lowering.fresh(kind)

    v = lowering.fresh("v") if start is None else ""

    def update(here, index):
        for line in step(here, value(index), v):
            deeper = line.startswith("    ")
            lowering.level += deeper
            lowering.say(line.strip())
            lowering.level -= deeper
    if not many:
        index = ["0"] * x.rank
        lowering.say(f"{total} = {begin(index)}")
        with lowering.nest(x.dims) as index:
            update(total, index)
        if rank is not None:
            found, total = total, lowering.fresh(kind)
            lowering.say(f"{total} = {lowering.helper(UNRANKED[dtype.name])}({found})")
        scalar = Lazy([], dtype, lambda index: total, 0)
        return scalar if not result else Lazy(result, dtype, lambda index: total, 0)
    out = lowering.fresh(kind)
    if not result or inner:
        lowering.say(f"{out} = np.empty({shape_text(result)}, {dtype_text(dtype)})")
        with lowering.nest([x.dims[k] if k in kept else ONE for k in range(x.rank)]) as outer:
            lowering.say(f"{total} = {begin(outer)}")
            with lowering.nest([x.dims[k] if k in axes else ONE for k in range(x.rank)]) as within:
                update(total, [within[k] if k in axes else outer[k] for k in range(x.rank)])
            found = total if rank is None else f"{lowering.helper(UNRANKED[dtype.name])}({total})"
            lowering.say(f"{out}[{', '.join(place(outer, kept, axes, keepdims))}] = {found}")
    else:
        if start in (0, False):
            lowering.say(f"{out} = np.zeros({shape_text(result)}, {dtype_text(dtype)})")
        else:
            lowering.say(f"{out} = np.empty({shape_text(result)}, {dtype_text(dtype)})")
            with lowering.nest([x.dims[k] if k in kept else ONE for k in range(x.rank)]) as index:
                lowering.say(f"{out}[{', '.join(place(index, kept, axes, keepdims))}] = {begin(index)}")
        with lowering.nest(x.dims) as index:
            update(f"{out}[{', '.join(place(index, kept, axes, keepdims))}]", index)
    return lowering.made(out, result, dtype)


def place(index, kept, axes, keepdims):
    return ["0" if k in axes else i for k, i in enumerate(index)] if keepdims else [index[k] for k in kept]


def counted(lowering, x, axes):
    """The number of entries that go into one."""
    return lowering.atom(" * ".join([x.dims[k].text for k in axes if x.dims[k].kind != "one"]) or "1", "n")


def entrywise(lowering, function, dtype, *args):
    return lowering.entries(FORMS[function], [lowering.lazy(a) for a in args], dtype, function)


def _reduction(kind, *functions):
    @lazily(*functions)
    def make(lowering, node):
        b = lowering.bound(node)
        x = lowering.lazy(b.get("x", b.get("a")))
        axes = axes_of(lowering, lowering.static(b["axis"], "axis"), x.rank)
        dtype = lowering.fact(node).dtype
        if kind in ("any", "all"):
            x = entrywise(lowering, bool, np.dtype(bool), x)
        return reduce(lowering, x, axes, lowering.static(b["keepdims"]), kind, dtype)


_reduction("sum", np.sum)
_reduction("prod", np.prod)
_reduction("max", np.max, np.amax)
_reduction("min", np.min, np.amin)
_reduction("any", np.any)
_reduction("all", np.all)


@lazily(np.count_nonzero)
def _count_nonzero(lowering, node):
    b = lowering.bound(node)
    x = entrywise(lowering, bool, np.dtype(bool), b["a"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    return reduce(lowering, x, axes, lowering.static(b["keepdims"]), "sum", np.int64)


def mean(lowering, x, axes, keepdims, dtype):
    n = counted(lowering, x, axes)
    total = reduce(lowering, x, axes, keepdims, "sum", dtype)
    divisor = Lazy([], int, lambda index: n, 0)
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
    lowering.helper(name)
    squares = Lazy(gap.dims, dtype, lambda index: cast(Operand(f"{name}({gap.read(index)})", dtype), dtype), gap.cost)
    total = reduce(lowering, squares, axes, lowering.static(b["keepdims"]), "sum", dtype)
    n, ddof = counted(lowering, x, axes), lowering.scalar(b["ddof"])
    text = n if ddof == "0" else f"max({n} - {ddof}, 0)"
    divisor = Lazy([], float if "." in ddof else int, lambda index: text, 1)
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
    for k in axes:
        if x.dims[k].kind != "one":
            with lowering.inside(f"if {x.dims[k].text} == 0:"):
                lowering.say("raise ValueError('attempt to get the place of the largest of an empty sequence')")
    out = lowering.fresh("places")
    if result:
        lowering.say(f"{out} = np.empty({shape_text(result)}, np.int64)")
    with lowering.nest([x.dims[k] if k in kept else ONE for k in range(x.rank)]) as outer:
        lowering.say(f"{best} = {x.read(['0' if k in axes else i for k, i in enumerate(outer)])}")
        lowering.say(f"{at} = {-1 if skip else 0}")
        with lowering.nest([x.dims[k] if k in axes else ONE for k in range(x.rank)]) as inner:
            index = [inner[k] if k in axes else outer[k] for k in range(x.rank)]
            lowering.say(f"{v} = {x.read(index)}")
            test = (
                f"{v} == {v} and ({at} < 0 or {v} {sign} {best})"
                if skip
                else f"{v} {sign} {best} or {v} != {v} and {best} == {best}"
            )
            with lowering.inside(f"if {test}:"):
                flat = ""
                for k in axes:
                    flat = index[k] if not flat else f"({flat}) * {x.dims[k].text} + {index[k]}"
                lowering.say(f"{best} = {v}")
                lowering.say(f"{at} = {flat or '0'}")
        if skip:
            with lowering.inside(f"if {at} < 0:"):
                lowering.say("raise ValueError('All-NaN slice encountered')")
        lowering.say(f"{out}[{', '.join(place(outer, kept, axes, keepdims))}] = {at}" if result else f"{out} = {at}")
    return (
        lowering.made(out, result, np.dtype(np.int64)) if result else Lazy([], np.dtype(np.int64), lambda index: out, 0)
    )


# --- scans ------------------------------------------------------------------------------------------------------------

@lazily(np.cumsum, sign="+")
@lazily(np.cumprod, sign="*")
def _scan(lowering, node, sign):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, axis = lowering.lazy(b["x"]), lowering.static(b["axis"])
    if axis is None and x.rank != 1:
        x, axis = flat(lowering, x), 0
    axis = (axis or 0) % x.rank
    out = lowering.fresh("scan")
    lowering.say(f"{out} = np.empty({shape_text(x.dims)}, {dtype_text(dtype)})")
    with lowering.nest(x.dims) as index:
        value, here = x.cast(index, dtype), f"{out}[{', '.join(index)}]"
        before = [f"{i} - 1" if k == axis else i for k, i in enumerate(index)]
        if index[axis] == "0":
            lowering.say(f"{here} = {value}")
        else:
            lowering.say(f"{here} = {value} if {index[axis]} == 0 else {out}[{', '.join(before)}] {sign} {value}")
    return lowering.made(out, x.dims, dtype)


@lazily(np.diff)
def _diff(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    x = lowering.lazy(b["x"])
    axis = lowering.static(b["axis"]) % x.rank
    for _ in range(lowering.static(b["n"], "n of np.diff")):
        x = lowering.array(x) if x.cost > 1 else x
        d = x.dims[axis]
        text = "0" if d.kind == "one" else f"max({d.text} - 1, 0)"
        dims = [
            Dim(lowering.atom(text, "n"), ("less", d.key, 1), "maybe") if k == axis else e for k, e in enumerate(x.dims)
        ]

        def read(index, x=x):
            after = [f"{i} + 1" if k == axis else i for k, i in enumerate(index)]
            sign = "!=" if np.dtype(dtype).kind == "b" else "-"
            return narrowed(f"({x.cast(after, dtype)} {sign} {x.cast(index, dtype)})", dtype)

        x = Lazy(dims, dtype, read, 2 * x.cost + 2)
    return x


# --- flat and shaped --------------------------------------------------------------------------------------------------

def flat(lowering, x):
    """All entries in a row, as a view of a contiguous array."""
    x = lowering.lazy(x)
    if x.rank == 1:
        return x
    if not x.rank:
        return Lazy([ONE], x.dtype, lambda index: x.read([]), x.cost, literal=x.literal)
    x = lowering.array(x)
    name, length = lowering.fresh("flat"), counted(lowering, x, range(x.rank))
    lowering.say(f"{name} = {x.name}.reshape(({length},))")
    many = [d for d in x.dims if d.kind != "one"]
    dim = (
        many[0]
        if len(many) == 1
        else ONE
        if not many
        else Dim(f"{name}.shape[0]", (name, lowering.fresh("key")), "maybe")
    )
    return lowering.made(name, [dim], x.dtype)


def shaped(lowering, x, dims):
    """A contiguous array with as many entries, seen in another shape."""
    x = lowering.array(x)
    if lowering.for_threads and [d.text for d in x.dims] == [d.text for d in dims]:
        return x
    name = lowering.fresh("view")
    lowering.say(f"{name} = {x.name}.reshape({shape_text(dims)})")
    return lowering.made(name, dims, x.dtype)


# --- makers -----------------------------------------------------------------------------------------------------------

def _filled(lowering, dims, dtype, value):
    return Lazy(dims, dtype, lambda index: value, 0)


@lazily(np.zeros, name="zeros", value=0)
@lazily(np.ones, name="ones", value=1)
@lazily(np.empty, name="empty", value=0)
def _make(lowering, node, name, value):
    b, fact = lowering.bound(node), lowering.fact(node)
    dims, dtype = lowering.lengths(b["shape"]), np.dtype(fact.dtype)
    if not dims:
        return _filled(lowering, dims, fact.dtype, literal(value, dtype))
    out = lowering.fresh("t")
    lowering.say(f"{out} = np.{name}({shape_text(dims)}, {dtype_text(dtype)})")
    return lowering.made(out, dims, dtype)


@lazily(np.zeros_like, value=0)
@lazily(np.ones_like, value=1)
@lazily(np.empty_like, value=None)
def _make_like(lowering, node, value):
    b, fact = lowering.bound(node), lowering.fact(node)
    dtype, x = np.dtype(fact.dtype), lowering.lazy(b["a"])
    dims = x.dims if lowering.static(b.get("shape", Const(None))) is None else lowering.lengths(b["shape"])
    if value is None and dims:
        name = lowering.fresh("t")
        lowering.say(f"{name} = np.empty({shape_text(dims)}, {dtype_text(dtype)})")
        return lowering.made(name, dims, dtype)
    return _filled(lowering, dims, fact.dtype, literal(value or 0, dtype))


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
        place = index[0] if k == "0" else f"{index[0]} + {k}"
        return f"({literal(1, dtype)} if {index[1]} {sign} {place} else {literal(0, dtype)})"

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
                dim = Dim(
                    lowering.atom(f"max({dim.text}, 0)", "n") if not _a_length(start) else dim.text, dim.key, dim.kind
                )
            return Lazy([dim], dtype, lambda index: cast(Operand(index[0], np.dtype(np.int64)), dtype), 0)
        start, stop = Const(0), start
    whole = all(lowering.fact(a).kind in "iub" for a in (start, stop, step))
    loop = np.dtype(np.int64) if whole else np.dtype(np.float64)
    a, z, s = (lowering.atom(lowering.scalar(v, loop)) for v in (start, stop, step))
    n = f"max(0, -((({a}) - ({z})) // ({s})))" if whole else f"max(0, int(math.ceil((({z}) - ({a})) / ({s}))))"
    dim = Dim(lowering.atom(n, "n"), (n, lowering.fresh("key")), _kind(fact.dims[0]) if whole else "maybe")
    if not whole:
        s = lowering.atom(f"(({a}) + ({s})) - ({a})")  # as NumPy does: the second entry less the first
    return Lazy([dim], dtype, lambda index: cast(Operand(f"({a} + {index[0]} * ({s}))", loop), dtype), 1)


def _kind(length):
    return "one" if length.is_unit else "many" if length.many else "maybe"


def _a_length(node):
    return isinstance(node, Apply) and node.function in (shape_of, size_of)


# --- shapes as numbers ------------------------------------------------------------------------------------------------

@lazily(shape_of)
def _shape_of(lowering, node):
    d = lowering.lazy(node.args[0]).dims[node.args[1].value]
    return Lazy([], int, lambda index: d.text, 0)


@lazily(size_of, np.size)
def _size_of(lowering, node):
    x = lowering.lazy(node.args[0])
    text = " * ".join(d.text for d in x.dims if d.kind != "one") or "1"
    return Lazy([], int, lambda index: f"({text})" if "*" in text else text, 0)


@lazily(len)
def _len(lowering, node):
    return _shape_of(lowering, Apply(shape_of, (node.args[0], Const(0))))


@lazily(run_length)
def _run_length(lowering, node):
    text = f"len(range({', '.join(lowering.scalar(a) for a in node.args)}))"
    return Lazy([], int, lambda index: text, 1)


@lazily(astype)
def _astype(lowering, node):
    x = lowering.lazy(node.args[0])
    dtype = np.dtype(lowering.static(node.args[1], "the dtype"))
    if not compiles(dtype):
        lowering.refuse(f"Numba has no {dtype}")
    return Lazy(x.dims, dtype, lambda index: x.cast(index, dtype), x.cost + 1)


_ = Array
