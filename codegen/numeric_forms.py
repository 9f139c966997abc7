# SPDX-License-Identifier: Apache-2.0
"""Lowering to loops of statistics, calculus, polynomials and Python's `math`."""
import math

import numpy as np

from gradscribe.ast_transform.core.form import Const
from gradscribe.codegen.array_forms import STEPS, axes_of, each, none_empty, reduction
from gradscribe.codegen.line_forms import lines, reduce_lines
from gradscribe.codegen.loops.build import ZERO, entry, quoted
from gradscribe.codegen.lowered import Lazy, is_none, lazily, shape
from gradscribe.codegen.scalar_forms import Operand, cast, form, narrowed, of_all

# --- reductions that skip NaN -----------------------------------------------------------------------------------------

def _beyond(sign):
    def step(lowering, total, value, v):
        lowering.set(v, value)
        with lowering.inside("if {} {} {total} or {total} != {total}:", v, sign, total=total):
            lowering.set(total, v)
    return step


STEPS["nanmax"], STEPS["nanmin"] = (None, _beyond(">")), (None, _beyond("<"))


reduction("nanmax", np.nanmax)
reduction("nanmin", np.nanmin)


@lazily(np.nanvar, root=False)
@lazily(np.nanstd, root=True)
def _variance(lowering, node, root):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["a"])
    if x.exact.kind == "c":
        lowering.no_form(node.function, " for complex numbers")
    axes, ddof = axes_of(lowering, lowering.static(b["axis"]), x.rank), lowering.scalar(b["ddof"])
    template = "np.sqrt(nan_variance_lines({}, {}))" if root else "nan_variance_lines({}, {})"
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: quoted(template, lines, ddof))


# --- quantiles --------------------------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@lazily(np.quantile, skip=False)
@lazily(np.nanquantile, skip=True)
def _quantile(lowering, node, skip):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, q, method = lowering.lazy(b["a"]), lowering.lazy(b["q"]), lowering.static(b["method"])
    if method not in METHODS or q.rank > 1:
        lowering.no_form(node.function, " for these arguments")
    axes, number = axes_of(lowering, lowering.static(b["axis"]), x.rank), METHODS.index(method)
    several = lowering.array(q, np.float64) if q.rank else None
    where = several.name if several else quoted("np.array([{}])", lowering.atom(q.cast([], np.float64)))
    template = "quantile_lines({}, {}, {}, {})" if several else "quantile_lines({}, {}, {}, {})[0]"
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: quoted(template, lines, where, number, skip),
                        several.dims[0] if several else None)


# --- calculus ---------------------------------------------------------------------------------------------------------

@lazily(np.interp)
def _interp(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, xp, fp = lowering.lazy(b["x"]), lowering.as_it_lies(b["xp"], np.float64), lowering.as_it_lies(b["fp"], dtype)
    lowering.agree([xp.dims[0], fp.dims[0]])
    none_empty(lowering, xp.dims, "array of sample points is empty")
    ends = [entry(fp.name, k) if is_none(b[name]) else lowering.atom(lowering.scalar(b[name], dtype))
            for name, k in (("left", 0), ("right", -1))]
    return Lazy(x.dims, dtype, lambda index: quoted(
        "interpolate({}, {}, {}, {*})", x.cast(index, np.float64), xp.name, fp.name, ends), x.cost + 3)


@lazily(np.unwrap)
def _unwrap(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["p"])
    axis, period = lowering.static(b["axis"]) % x.rank, lowering.atom(lowering.scalar(b["period"], np.float64))
    discont = quoted("{} / 2", period) if is_none(b["discont"]) else lowering.scalar(b["discont"], np.float64)
    matrix, back = lines(lowering, x, axis)
    matrix = lowering.array(matrix, dtype).name
    name = lowering.result("unwrapped", "unwrap_lines({}, {}, {})", matrix, discont, period)
    return back(name, dtype, x.dims[axis])


@form(np.i0)
def _i0(args, out):
    return cast(Operand(quoted("bessel_zero({})", cast(args[0], np.float64)), np.dtype(np.float64)), out)


@lazily(np.bartlett, kind=0)
@lazily(np.blackman, kind=1)
@lazily(np.hamming, kind=2)
@lazily(np.hanning, kind=3)
@lazily(np.kaiser, kind=4)
def _window(lowering, node, kind):
    b = lowering.bound(node)
    dim, beta = lowering.length(b["M"]), 0.0
    if "beta" in b:
        beta = lowering.atom(lowering.scalar(b["beta"], np.float64))
    if isinstance(b["M"], Const):
        dim = lowering.length(Const(max(int(b["M"].value), 0)))
    return Lazy([dim], np.dtype(np.float64), lambda index: quoted(
        "window({}, {}, {}, {})", kind, index[0], dim.length, beta), 5)


def spaced(lowering, start, stop, dim, endpoint, axis, entry):
    """(axes, read) of entries between two ends, which broadcast, along a new axis; entry(index, start, stop)."""
    dims, picks = lowering.broadcast([start.dims, stop.dims])
    start, stop = (lowering.array(v) if v.rank and v.cost > 1 else lowering.settled(v, [dim]) for v in (start, stop))
    axis = axis % (len(dims) + 1)

    def read(index):
        rest = [i for k, i in enumerate(index) if k != axis]
        a, z = (v.cast(p(rest), np.float64) for v, p in zip((start, stop), picks))
        return entry(index[axis], a, z)

    return [*dims[:axis], dim, *dims[axis:]], read


@lazily(np.linspace, helper="evenly")
@lazily(np.geomspace, helper="in_proportion")
def _spaced(lowering, node, helper):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    start, stop = lowering.lazy(b["start"]), lowering.lazy(b["stop"])
    if np.dtype(dtype).kind == "c":
        lowering.no_form(node.function, " between complex numbers")
    dim, endpoint = lowering.length(b["num"]), lowering.static(b["endpoint"])
    parts = lowering.atom(quoted("max({} - 1, 1)" if endpoint else "max({}, 1)", dim.length), "n")
    dims, read = spaced(lowering, start, stop, dim, endpoint, lowering.static(b["axis"]),
                        lambda i, a, z: quoted("{}({}, {}, {}, {}, {})", helper, i, a, z, parts, endpoint))
    return Lazy(dims, dtype, lambda index: cast(Operand(read(index), np.dtype(np.float64)), dtype), 3)


# --- methods of ufuncs ------------------------------------------------------------------------------------------------

STEPS.update({
    "logaddexp": (-np.inf, each("np.logaddexp({}, {})")),
    "logaddexp2": (-np.inf, each("np.logaddexp2({}, {})")),
    "hypot": (0, each("math.hypot({}, {})")),
    "bitwise_and": (-1, each("{} & {}")),
    "bitwise_or": (0, each("{} | {}")),
    "bitwise_xor": (0, each("{} ^ {}")),
    "logical_xor": (False, each("{} != {}")),
})
for _name in ("logaddexp", "logaddexp2", "hypot", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor"):
    reduction(_name, getattr(np, _name).reduce)


@lazily(np.maximum.accumulate, step="maximum")
@lazily(np.minimum.accumulate, step="minimum")
def _accumulate(lowering, node, step):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["array"])
    axis = lowering.static(b["axis"]) % x.rank
    out = lowering.result("scan", "np.empty({}, {})", shape(x.dims), dtype)
    with lowering.nest(x.dims) as index:
        here = entry(out, *index)
        before = entry(out, *[quoted("{} - 1", i) if k == axis else i for k, i in enumerate(index)])
        lowering.set(here, x.cast(index, dtype))
        if index[axis] != ZERO:
            with lowering.inside("if {} > 0:", index[axis]):
                lowering.say("{here} = {}({}, {here})", step, before, here=here)
    return lowering.made(out, x.dims, dtype)


@lazily(np.add.reduceat)
def _reduceat(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, indices = lowering.lazy(b["array"]), lowering.array(b["indices"])
    axis = lowering.static(b["axis"]) % x.rank
    matrix, back = lines(lowering, x, axis)
    name = lowering.result("sums", "reduceat_lines({}, {})", lowering.array(matrix, dtype).name, indices.name)
    return back(name, dtype, indices.dims[0])


# --- polynomials ------------------------------------------------------------------------------------------------------

@lazily(np.polyval)
def _polyval(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    p, x = lowering.array(b["p"], dtype), lowering.lazy(b["x"])
    if p.rank != 1:
        lowering.no_form(np.polyval, " of several polynomials")
    return Lazy(x.dims, dtype, lambda index: narrowed(quoted("horner({}, {})", p.name, x.cast(index, dtype)), dtype),
                x.cost + 5)


@lazily(np.polyadd)
def _polyadd(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    a, c = (lowering.array(b[k], dtype) for k in ("a1", "a2"))
    if not a.rank == c.rank == 1:
        lowering.no_form(np.polyadd, " of numbers")
    name = lowering.result("polynomial", "add_at_the_end({}, {})", a.name, c.name)
    equal = a.dims[0].key == c.dims[0].key
    dim = a.dims[0] if equal else lowering.counted(name)
    return lowering.made(name, [dim], dtype)


@lazily(np.poly)
def _poly(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    name = lowering.result("polynomial", "with_roots({})", lowering.array(b["seq_of_zeros"], dtype).name)
    return lowering.made(name, [lowering.counted(name)], dtype)


# --- numbers ----------------------------------------------------------------------------------------------------------

@lazily(np.frexp, parts={"mantissa_of": np.float64, "exponent_of": np.int64})
@lazily(np.modf, parts={"fraction_of": np.float64, "np.trunc": np.float64})
def _parts(lowering, node, parts):
    x = lowering.lazy(node.args[0])
    x = lowering.array(x) if x.rank and x.cost > 1 else lowering.settled(x, x.dims)
    facts = lowering.fact(node).elements
    def part(name, of, dtype):
        def read(index):
            return cast(Operand(quoted("{}({})", name, x.cast(index, np.float64)), np.dtype(of)), dtype)
        return Lazy(x.dims, dtype, read, x.cost + 1)

    return [part(n, t, f.dtype) for (n, t), f in zip(parts.items(), facts)]


@form(np.nextafter, math.nextafter)
def _nextafter(args, out):
    if np.dtype(out) not in (np.float64, np.float32):
        return None
    return of_all("next_after32" if np.dtype(out) == np.float32 else "next_after", args, out)


@form(np.spacing, template="spacing({})")
@form(math.ulp, template="abs(spacing(abs({})))")
def _spacing(args, out, template):
    x = cast(args[0], out)
    if np.dtype(out) == np.float32:
        return quoted("spacing32({})", x)
    if np.dtype(out) != np.float64:
        return None
    return quoted(template, x)


@form(math.remainder)
def _remainder(args, out):
    return of_all("ieee_remainder", args, out)


@lazily(math.fsum)
def _fsum(lowering, node):
    x = lowering.array(node.args[0], np.float64)
    name = lowering.result("total", "exact_sum({})", x.name)
    return Lazy([], float, name, 0)


@lazily(math.factorial, helper="whole_factorial")
@lazily(math.isqrt, helper="whole_isqrt")
@lazily(math.comb, helper="whole_comb")
@lazily(math.perm, helper="whole_perm")
def _counted(lowering, node, helper):
    return Lazy([], int, quoted("{}({*})", helper, [lowering.scalar(a, np.int64) for a in node.args]), 3)
