# SPDX-License-Identifier: Apache-2.0
"""Lowering of comparisons of arrays, rounding, clipping, index arithmetic, and parts of complex numbers."""
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack
from gradscribe.ast_transform.core.kinds import promote
from gradscribe.codegen.array_forms import entrywise, reduce
from gradscribe.codegen.index_forms import places
from gradscribe.codegen.loops.build import ZERO, entry, joined, quoted
from gradscribe.codegen.lowered import Lazy, lazily, shape
from gradscribe.codegen.phi_types import owned
from gradscribe.codegen.scalar_forms import FORMS, cast, literal, of_dtype
from gradscribe.codegen.shape_forms import inserted
from gradscribe.runtime.derivatives import stop_gradient


def number_of(lowering, b, name):
    if isinstance(b[name], Const):
        return literal(b[name].value, float)
    return lowering.settled(lowering.lazy(b[name]), [None]).operand().node


@lazily(math.isclose)
def _numbers_close(lowering, node):
    b = lowering.bound(node)
    a, c = lowering.lazy(b["a"]), lowering.lazy(b["b"])
    rel, low = number_of(lowering, b, "rel_tol"), number_of(lowering, b, "abs_tol")
    return Lazy([], bool, quoted("near_math({}, {}, {}, {})", a.cast([], float), c.cast([], float), rel, low), 2)


@lazily(np.isclose)
def _isclose(lowering, node):
    b = lowering.bound(node)
    a, c = lowering.lazy(b["a"]), lowering.lazy(b["b"])
    if a.exact.kind == "c" or c.exact.kind == "c":
        lowering.no_form(node.function, " for complex numbers")
    rtol, atol, equal = number_of(lowering, b, "rtol"), number_of(lowering, b, "atol"), lowering.static(b["equal_nan"])
    loop = promote(a.dtype, c.dtype)
    loop = np.result_type(loop, np.float32) if np.dtype(loop).kind == "f" else np.float64
    return lowering.entries(lambda args, out: quoted(
        "near({*}, {}, {}, {})", [cast(a, loop) for a in args], rtol, atol, equal), [a, c], np.dtype(bool))


@lazily(np.allclose)
def _allclose(lowering, node):
    close = _isclose(lowering, node)
    out = reduce(lowering, close, tuple(range(close.rank)), False, "all", bool)
    return Lazy([], bool, out.read, out.cost)


@lazily(np.array_equal)
def _array_equal(lowering, node):
    b = lowering.bound(node)
    a, c = lowering.lazy(b["a1"]), lowering.lazy(b["a2"])
    if a.rank != c.rank:
        return Lazy([], bool, False, 0, literal=False)
    nan = lowering.static(b["equal_nan"])
    a, c = lowering.array(a), lowering.array(c)
    name, loop = lowering.fresh("equal"), promote(a.dtype, c.dtype)
    tests = [quoted("{} == {}", d.length, e.length) for d, e in zip(a.dims, c.dims)]
    lowering.set(name, joined("and", tests or [True]))
    with lowering.inside("if {}:", name):
        with lowering.nest([d if d.kind != "one" else e for d, e in zip(a.dims, c.dims)]) as index:
            x, y = (v.cast([ZERO if d.kind == "one" else i for i, d in zip(index, v.dims)], loop) for v in (a, c))
            test = "if {x} != {y} and not ({x} != {x} and {y} != {y}):" if nan else "if {x} != {y}:"
            with lowering.inside(test, x=x, y=y):
                lowering.say("{} = False", name)
    return Lazy([], bool, name, 0)


@lazily(np.isin)
def _isin(lowering, node):
    b = lowering.bound(node)
    x, among = lowering.lazy(b["element"]), lowering.array(b["test_elements"])
    invert, loop = lowering.static(b["invert"]), promote(x.dtype, among.dtype)
    out = lowering.fresh("member")
    if x.rank:
        lowering.say("{} = np.empty({}, np.bool_)", out, shape(x.dims))
    with lowering.nest(x.dims) as index:
        here = entry(out, *index) if x.rank else out
        lowering.set(here, invert)
        with lowering.nest(among.dims) as place:
            with lowering.inside("if {} == {}:", x.cast(index, loop), among.cast(place, loop)):
                lowering.set(here, not invert)
    return lowering.made(out, x.dims, np.dtype(bool)) if x.rank else Lazy([], np.dtype(bool), out, 0)


@lazily(np.round, np.around)
def _round(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    decimals = lowering.static(b["decimals"], "the decimals")
    x = lowering.lazy(b["a"])
    if np.dtype(dtype).kind in "iub":
        return x if decimals >= 0 else lowering.no_form(np.round, " of integers to tens")
    if np.dtype(dtype).kind == "c":
        lowering.no_form(np.round, " for complex numbers")
    scale = literal(10.0 ** abs(decimals), dtype)
    return Lazy(x.dims, dtype, lambda index: of_dtype(
        quoted("round_to({}, {}, {})", x.cast(index, dtype), decimals, scale), dtype), x.cost + 1)


@lazily(np.nan_to_num)
def _nan_to_num(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["x"])
    if dtype.kind in "iub":
        return x
    if dtype.kind == "c":
        lowering.no_form(np.nan_to_num, " for complex numbers")
    most = float(np.finfo(dtype).max)

    def value(name, default):
        given = b[name]
        missing = isinstance(given, Const) and given.value is None
        return literal(default, dtype) if missing else lowering.atom(lowering.scalar(given, dtype))

    values = [value("nan", 0.0), value("neginf", -most), value("posinf", most)]
    return Lazy(x.dims, lowering.fact(node).dtype, lambda index: quoted(
        "finite_or({}, {*})", x.cast(index, dtype), values), x.cost + 1)


@lazily(np.clip)
def _clip(lowering, node):
    b = lowering.bound(node)
    def given(*names):
        return next((b[n] for n in names if not isinstance(b[n], Const) or b[n].value is not None), None)
    bounds = [given("a_min", "min"), given("a_max", "max")]
    args = [lowering.lazy(b["a"]), *(None if v is None else lowering.lazy(v) for v in bounds)]
    return lowering.entries(FORMS[np.clip], args, lowering.fact(node).dtype, np.clip)


@lazily(stop_gradient, owned)
def _as_it_is(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy(x.dims, x.dtype, x.read, x.cost, literal=x.literal)


@lazily(np.ascontiguousarray)
def _ascontiguousarray(lowering, node):
    x = lowering.lazy(node.args[0])
    if x.rank:
        return Lazy(x.dims, x.dtype, x.read, x.cost)
    return inserted(Lazy([], np.dtype(x.dtype), x.read, x.cost), {0})


@lazily(np.angle)
def _angle(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    z, degrees = lowering.lazy(b["z"]), lowering.static(b["deg"])
    z = lowering.array(z) if z.cost > 1 and z.rank else z
    template = "np.arctan2({0}.imag, {0}.real)" if z.exact.kind == "c" else "np.arctan2(0.0, {})"
    def read(index):
        angle = quoted(template, z.read(index))
        return of_dtype(quoted("{} * 57.29577951308232", angle) if degrees else angle, dtype)
    return Lazy(z.dims, dtype, read, z.cost + 2)


@lazily(np.iscomplexobj, real=False)
@lazily(np.isrealobj, real=True)
def _complexobj(lowering, node, real):
    value = (lowering.lazy(node.args[0]).exact.kind == "c") != real
    return Lazy([], bool, value, 0, literal=value)


@lazily(operator.contains)
def _contains(lowering, node):
    holder, x = node.args
    items = holder.items if isinstance(holder, Pack) else None
    if isinstance(holder, Const) and isinstance(holder.value, (tuple, list, set, frozenset, range)):
        items = [Const(v) for v in holder.value]
    if items is None:
        members = lowering.lazy(holder)
        equal = entrywise(lowering, operator.eq, np.dtype(bool), members, x)
        return reduce(lowering, equal, tuple(range(members.rank)), False, "any", bool)
    tests = [entrywise(lowering, operator.eq, bool, x, i).read([]) for i in items]
    return Lazy([], bool, joined("or", tests or [False]), 1)


@lazily(operator.is_, negated=False)
@lazily(operator.is_not, negated=True)
def _is(lowering, node, negated):
    if any(isinstance(a, Const) and a.value is None for a in node.args):
        value = all(isinstance(a, Const) and a.value is None for a in node.args) != negated
        return Lazy([], bool, value, 0, literal=value)
    lowering.no_form(node.function)


@lazily(np.unravel_index)
def _unravel_index(lowering, node):
    b = lowering.bound(node)
    x, dims = lowering.lazy(b["indices"]), lowering.lengths(b["shape"])
    if lowering.static(b["order"]) != "C":
        lowering.no_form(np.unravel_index, " in this order")
    total = lowering.atom(joined("*", [d.length for d in dims]), "n")
    out = []
    for k in range(len(dims)):
        after = [d.length for d in dims[k + 1:]]
        def read(index, k=k, after=after):
            place = quoted("place({}, {})", x.read(index), total)
            place = quoted("{} // {}", place, joined("*", after)) if after else place
            return place if k == 0 else quoted("{} % {}", place, dims[k].length)
        out.append(Lazy(x.dims, np.dtype(np.int64), read, x.cost + 2))
    return out


@lazily(np.tril_indices, sign="<=")
@lazily(np.triu_indices, sign=">=")
def _triangle_indices(lowering, node, sign):
    b = lowering.bound(node)
    rows = lowering.length(b["n"])
    columns = rows if isinstance(b["m"], Const) and b["m"].value is None else lowering.length(b["m"])
    k = lowering.scalar(b["k"])
    return places(lowering, Lazy([rows, columns], np.dtype(bool), lambda index: quoted(
        "{} {} {} + {}", index[1], sign, index[0], k), 1))


@lazily(np.diag_indices)
def _diag_indices(lowering, node):
    b = lowering.bound(node)
    return [Lazy([lowering.length(b["n"])], np.dtype(np.int64), lambda index: index[0], 0)] * lowering.static(b["ndim"])
