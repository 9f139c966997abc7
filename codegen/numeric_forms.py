# SPDX-License-Identifier: Apache-2.0
"""Statistics, calculus and polynomials: how Numba's loops compute them."""
import math

import numpy as np

from gradscribe.ast_transform.core.form import Const
from gradscribe.codegen.array_forms import STEPS, axes_of, none_empty, reduce
from gradscribe.codegen.line_forms import lines, reduce_lines
from gradscribe.codegen.lowered import Dim, Lazy, dtype_text, lazily, shape_text
from gradscribe.codegen.scalar_forms import Operand, cast, form, narrowed

# --- what passes over NaN ---------------------------------------------------------------------------------------------

def _beyond(sign):
    return lambda total, value, v: [f"{v} = {value}", f"if {v} {sign} {total} or {total} != {total}:",
                                    f"    {total} = {v}"]


STEPS["nanmax"], STEPS["nanmin"] = (None, _beyond(">")), (None, _beyond("<"))


@lazily(np.nanmax, kind="nanmax")
@lazily(np.nanmin, kind="nanmin")
def _extreme(lowering, node, kind):
    b = lowering.bound(node)
    x = lowering.lazy(b["a"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    return reduce(lowering, x, axes, lowering.static(b["keepdims"]), kind, lowering.fact(node).dtype)


@lazily(np.nanvar, root=False)
@lazily(np.nanstd, root=True)
def _variance(lowering, node, root):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["a"])
    if x.exact.kind == "c":
        lowering.no_form(node.function, " for complex numbers")
    axes, ddof = axes_of(lowering, lowering.static(b["axis"]), x.rank), lowering.scalar(b["ddof"])
    helper = lowering.helper("nan_variance_lines")
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: f"np.sqrt({helper}({lines}, {ddof}))" if root else f"{helper}({lines}, {ddof})")


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
    helper, several = lowering.helper("quantile_lines"), lowering.array(q, np.float64) if q.rank else None
    where = several.name if several else f"np.array([{lowering.atom(q.cast([], np.float64))}])"
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: f"{helper}({lines}, {where}, {number}, {skip}){'' if several else '[0]'}",
                        several.dims[0] if several else None)


# --- calculus ---------------------------------------------------------------------------------------------------------

def _missing(node):
    return isinstance(node, Const) and node.value is None


@lazily(np.interp)
def _interp(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, xp, fp = lowering.lazy(b["x"]), lowering.as_it_lies(b["xp"], np.float64), lowering.as_it_lies(b["fp"], dtype)
    lowering.agree([xp.dims[0], fp.dims[0]])
    none_empty(lowering, xp.dims, "array of sample points is empty")
    ends = [f"{fp.name}[{k}]" if _missing(b[name]) else lowering.atom(lowering.scalar(b[name], dtype))
            for name, k in (("left", 0), ("right", -1))]
    lowering.helper("interpolate")
    return Lazy(x.dims, dtype, lambda index: f"interpolate({x.cast(index, np.float64)}, {xp.name}, {fp.name}, "
                f"{', '.join(ends)})", x.cost + 3)


@lazily(np.unwrap)
def _unwrap(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["p"])
    axis, period = lowering.static(b["axis"]) % x.rank, lowering.atom(lowering.scalar(b["period"], np.float64))
    discont = f"{period} / 2" if _missing(b["discont"]) else lowering.scalar(b["discont"], np.float64)
    matrix, back = lines(lowering, x, axis)
    matrix, name = lowering.array(matrix, dtype), lowering.fresh("unwrapped")
    helper = lowering.helper("unwrap_lines")
    lowering.say(f"{name} = {helper}({matrix.name}, {discont}, {period})")
    return back(name, dtype, x.dims[axis])


@form(np.i0)
def _i0(args, out):
    return cast(Operand(f"bessel_zero({cast(args[0], np.float64)})", np.dtype(np.float64)), out)


@lazily(np.bartlett, kind=0)
@lazily(np.blackman, kind=1)
@lazily(np.hamming, kind=2)
@lazily(np.hanning, kind=3)
@lazily(np.kaiser, kind=4)
def _window(lowering, node, kind):
    b = lowering.bound(node)
    dim, beta = lowering.length(b["M"]), "0.0"
    if "beta" in b:
        beta = lowering.atom(lowering.scalar(b["beta"], np.float64))
    if isinstance(b["M"], Const):
        dim = lowering.length(Const(max(int(b["M"].value), 0)))
    lowering.helper("window")
    return Lazy([dim], np.dtype(np.float64), lambda index: f"window({kind}, {index[0]}, {dim.text}, {beta})", 5)


def spaced(lowering, start, stop, dim, endpoint, axis, entry):
    """Between two ends that broadcast, along a new axis; `entry` makes the text of one from its place and the ends."""
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
    parts = lowering.atom(f"max({dim.text}{' - 1' if endpoint else ''}, 1)", "n")
    lowering.helper(helper)
    dims, read = spaced(lowering, start, stop, dim, endpoint, lowering.static(b["axis"]),
                        lambda i, a, z: f"{helper}({i}, {a}, {z}, {parts}, {endpoint})")
    return Lazy(dims, dtype, lambda index: cast(Operand(read(index), np.dtype(np.float64)), dtype), 3)


# --- methods of ufuncs ------------------------------------------------------------------------------------------------

def _each(text):
    return lambda total, value, v: [f"{total} = {text.format(total, value)}"]


STEPS.update({
    "logaddexp": (-np.inf, _each("np.logaddexp({}, {})")),
    "logaddexp2": (-np.inf, _each("np.logaddexp2({}, {})")),
    "hypot": (0, _each("math.hypot({}, {})")),
    "bitwise_and": (-1, _each("{} & {}")),
    "bitwise_or": (0, _each("{} | {}")),
    "bitwise_xor": (0, _each("{} ^ {}")),
    "logical_xor": (False, _each("{} != {}")),
})


def _reduce(lowering, node, kind):
    b = lowering.bound(node)
    x = lowering.lazy(b["array"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    return reduce(lowering, x, axes, lowering.static(b["keepdims"]), kind, lowering.fact(node).dtype)


for _name in ("logaddexp", "logaddexp2", "hypot", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor"):
    lazily(getattr(np, _name).reduce, kind=_name)(_reduce)


@lazily(np.maximum.accumulate, step="maximum")
@lazily(np.minimum.accumulate, step="minimum")
def _accumulate(lowering, node, step):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["array"])
    axis, helper = lowering.static(b["axis"]) % x.rank, lowering.helper(step)
    out = lowering.fresh("scan")
    lowering.say(f"{out} = np.empty({shape_text(x.dims)}, {dtype_text(dtype)})")
    with lowering.nest(x.dims) as index:
        value, here = x.cast(index, dtype), f"{out}[{', '.join(index)}]"
        before = f"{out}[{', '.join(f'{i} - 1' if k == axis else i for k, i in enumerate(index))}]"
        lowering.say(f"{here} = {value}")
        if index[axis] != "0":
            with lowering.inside(f"if {index[axis]} > 0:"):
                lowering.say(f"{here} = {helper}({before}, {here})")
    return lowering.made(out, x.dims, dtype)


@lazily(np.add.reduceat)
def _reduceat(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, indices = lowering.lazy(b["array"]), lowering.array(b["indices"])
    axis = lowering.static(b["axis"]) % x.rank
    matrix, back = lines(lowering, x, axis)
    matrix, name, helper = lowering.array(matrix, dtype), lowering.fresh("sums"), lowering.helper("reduceat_lines")
    lowering.say(f"{name} = {helper}({matrix.name}, {indices.name})")
    return back(name, dtype, indices.dims[0])


# --- polynomials ------------------------------------------------------------------------------------------------------

@lazily(np.polyval)
def _polyval(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    p, x = lowering.array(b["p"], dtype), lowering.lazy(b["x"])
    if p.rank != 1:
        lowering.no_form(np.polyval, " of several polynomials")
    lowering.helper("horner")
    return Lazy(x.dims, dtype, lambda index: narrowed(f"horner({p.name}, {x.cast(index, dtype)})", dtype), x.cost + 5)


@lazily(np.polyadd)
def _polyadd(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    a, c = (lowering.array(b[k], dtype) for k in ("a1", "a2"))
    if not a.rank == c.rank == 1:
        lowering.no_form(np.polyadd, " of numbers")
    name, helper = lowering.fresh("polynomial"), lowering.helper("add_at_the_end")
    lowering.say(f"{name} = {helper}({a.name}, {c.name})")
    equal = a.dims[0].key == c.dims[0].key
    dim = a.dims[0] if equal else Dim(f"{name}.shape[0]", (name, lowering.fresh("key")), "maybe")
    return lowering.made(name, [dim], dtype)


@lazily(np.poly)
def _poly(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    z, name = lowering.array(b["seq_of_zeros"], dtype), lowering.fresh("polynomial")
    helper = lowering.helper("with_roots")
    lowering.say(f"{name} = {helper}({z.name})")
    return lowering.made(name, [Dim(f"{name}.shape[0]", (name, lowering.fresh("key")), "maybe")], dtype)


# --- numbers ----------------------------------------------------------------------------------------------------------

@lazily(np.frexp, parts={"mantissa_of": np.float64, "exponent_of": np.int64})
@lazily(np.modf, parts={"fraction_of": np.float64, "np.trunc": np.float64})
def _parts(lowering, node, parts):
    x = lowering.lazy(node.args[0])
    x = lowering.array(x) if x.rank and x.cost > 1 else lowering.settled(x, x.dims)
    facts = lowering.fact(node).elements
    for name in parts:
        if name != "np.trunc":
            lowering.helper(name)

    def part(name, of, dtype):
        def read(index):
            return cast(Operand(f"{name}({x.cast(index, np.float64)})", np.dtype(of)), dtype)
        return Lazy(x.dims, dtype, read, x.cost + 1)

    return [part(n, t, f.dtype) for (n, t), f in zip(parts.items(), facts)]


@form(np.nextafter, math.nextafter)
def _nextafter(args, out):
    if np.dtype(out) not in (np.float64, np.float32):
        return None
    digits = "32" if np.dtype(out) == np.float32 else ""
    return f"next_after{digits}({cast(args[0], out)}, {cast(args[1], out)})"


@form(np.spacing, text="spacing({})")
@form(math.ulp, text="abs(spacing(abs({})))")
def _spacing(args, out, text):
    x = cast(args[0], out)
    if np.dtype(out) == np.float32:
        return f"spacing32({x})"
    if np.dtype(out) != np.float64:
        return None
    return text.format(x)


@form(math.remainder)
def _remainder(args, out):
    return f"ieee_remainder({cast(args[0], out)}, {cast(args[1], out)})"


@lazily(math.fsum)
def _fsum(lowering, node):
    x = lowering.array(node.args[0], np.float64)
    name, helper = lowering.fresh("total"), lowering.helper("exact_sum")
    lowering.say(f"{name} = {helper}({x.name})")
    return Lazy([], float, lambda index: name, 0)


@lazily(math.factorial, helper="whole_factorial")
@lazily(math.isqrt, helper="whole_isqrt")
@lazily(math.comb, helper="whole_comb")
@lazily(math.perm, helper="whole_perm")
def _counted(lowering, node, helper):
    lowering.helper(helper)
    numbers = ", ".join(lowering.scalar(a, np.int64) for a in node.args)
    return Lazy([], int, lambda index: f"{helper}({numbers})", 3)
