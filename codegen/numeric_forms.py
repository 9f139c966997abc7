"""Statistics, calculus and polynomials: how Numba's loops compute them."""
import numpy as np

from gradscribe.codegen.array_forms import STEPS, axes_of, reduce
from gradscribe.codegen.line_forms import reduce_lines
from gradscribe.codegen.lowered import ONE, Dim, Lazy, lazily

# --- what passes over NaN ---------------------------------------------------------------------------------------------

def _beyond(sign):
    return lambda total, value, v: [f"{v} = {value}", f"if {v} {sign} {total} or {total} != {total}:",
                                    f"    {total} = {v}"]


STEPS["nanmax"], STEPS["nanmin"] = (None, _beyond(">")), (None, _beyond("<"))


@lazily(np.nanmax, np.nanmin)
def _extreme(lowering, node):
    b = lowering.bound(node)
    x = lowering.lazy(b["a"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    kind = node.function.__name__
    return reduce(lowering, x, axes, lowering.static(b["keepdims"]), kind, lowering.fact(node).dtype)


@lazily(np.nanvar, np.nanstd)
def _variance(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["a"])
    if x.exact.kind == "c":
        lowering.no_form(node.function, " for complex numbers")
    axes, ddof = axes_of(lowering, lowering.static(b["axis"]), x.rank), lowering.scalar(b["ddof"])
    helper, root = lowering.helper("nan_variance_lines"), node.function is np.nanstd
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: f"np.sqrt({helper}({lines}, {ddof}))" if root else f"{helper}({lines}, {ddof})")


# --- quantiles --------------------------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@lazily(np.quantile, np.nanquantile)
def _quantile(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x, q, method = lowering.lazy(b["a"]), lowering.lazy(b["q"]), lowering.static(b["method"])
    if method not in METHODS or q.rank > 1:
        lowering.no_form(node.function, " for these arguments")
    axes, number = axes_of(lowering, lowering.static(b["axis"]), x.rank), METHODS.index(method)
    skip, helper = node.function is np.nanquantile, lowering.helper("quantile_lines")
    several = lowering.array(q, np.float64) if q.rank else None
    where = several.name if several else f"np.array([{lowering.atom(q.cast([], np.float64))}])"
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: f"{helper}({lines}, {where}, {number}, {skip}){'' if several else '[0]'}",
                        several.dims[0] if several else None)


_ = (ONE, Dim, Lazy)
