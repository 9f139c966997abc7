# SPDX-License-Identifier: Apache-2.0
"""Lowering to loops of joining and splitting arrays."""
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Pack
from gradscribe.ast_transform.core.operations import unpacked
from gradscribe.codegen.array_forms import flat
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, joined, quoted
from gradscribe.codegen.lowered import Lazy, Lowering, lazily, shape
from gradscribe.codegen.scalar_forms import literal


def items_of(lowering: Lowering, node: Any) -> list[Lazy]:
    if isinstance(node, Pack):
        return [lowering.lazy(i) for i in node.items]
    if isinstance(node, Const) and isinstance(node.value, (tuple, list)):
        return [lowering.constant(v) for v in node.value]
    x = lowering.lazy(node)
    n = x.dims[0]
    if n.key[0] is not None:
        lowering.refuse("the parts to join must be known when compiling")
    return [Lazy(x.dims[1:], x.dtype, lambda index, k=k: x.read([loops.Const(k), *index]), x.cost)
            for k in range(n.key[1])]


@lazily(np.concatenate)
def _concatenate(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    parts, axis = items_of(lowering, b["arrays"]), lowering.static(b["axis"])
    if axis is None:
        parts, axis = [flat(lowering, p) for p in parts], 0
    axis %= parts[0].rank
    dims = [lowering.agree([p.dims[k] for p in parts]) if k != axis else None for k in range(parts[0].rank)]
    if all(p.dims[axis].key[0] is None for p in parts):
        dims[axis] = lowering.length(sum(p.dims[axis].key[1] for p in parts))
    else:
        dims[axis] = lowering.computed(joined("+", [p.dims[axis].length for p in parts]), next(
            (p.dims[axis] for p in parts if p.dims[axis].kind == "many"), None))
    out, start = lowering.fresh("joined"), []
    lowering.say("{} = np.empty({}, {})", out, shape(dims), dtype)
    for p in parts:
        offset = lowering.atom(joined("+", start), "start") if start else None
        with lowering.nest(p.dims) as index:
            own = [quoted("{} + {}", offset, i) if offset and k == axis else i for k, i in enumerate(index)]
            lowering.say("{}[{*}] = {}", out, own, p.cast(index, dtype))
        start.append(p.dims[axis].length)
    return lowering.made(out, dims, dtype)


def stacked(lowering, parts, axis, dtype):
    dims = [lowering.agree([p.dims[k] for p in parts]) for k in range(parts[0].rank)]
    axis %= len(dims) + 1
    whole = [*dims[:axis], lowering.length(len(parts)), *dims[axis:]]
    out = lowering.result("stacked", "np.empty({}, {})", shape(whole), dtype)
    for k, p in enumerate(parts):
        with lowering.nest(p.dims) as index:
            lowering.say("{}[{*}] = {}", out, [*index[:axis], loops.Const(k), *index[axis:]], p.cast(index, dtype))
    return lowering.made(out, whole, dtype)


@lazily(np.stack)
def _stack(lowering, node):
    b = lowering.bound(node)
    parts, axis = items_of(lowering, b["arrays"]), lowering.static(b["axis"])
    return stacked(lowering, parts, axis, np.dtype(lowering.fact(node).dtype))


@lazily(np.array)
def _array(lowering, node):
    rows = node.args[0]
    if not isinstance(rows, Pack):
        x = lowering.lazy(rows)
        return Lazy(x.dims, x.dtype, x.read, x.cost, literal=x.literal)
    dtype = np.dtype(lowering.fact(node).dtype)
    if not rows.items:
        return Lazy([lowering.length(0)], dtype, literal(0, dtype), 0)
    return stacked(lowering, [_array(lowering, Apply(np.array, (i,))) if isinstance(i, Pack) else lowering.lazy(i)
                              for i in rows.items], 0, dtype)


@lazily(np.split, equal=True)
@lazily(np.array_split, equal=False)
def _split(lowering, node, equal):
    b = lowering.bound(node)
    x, sections = lowering.array(b["ary"]), lowering.static(b["indices_or_sections"])
    results = lowering.fact(node).elements
    axis = lowering.static(b["axis"]) % x.rank
    d, out = x.dims[axis], []
    if isinstance(sections, (tuple, list)):
        ends = [quoted("min({}, {})", s if s >= 0 else quoted("max({} - {}, 0)", d.length, -s), d.length)
                for s in sections] + [d.length]
    else:
        if equal and sections > 1:
            lowering.raises("array split does not result in an equal division", "{} % {} != 0", d.length, sections)
        ends = [quoted("{k} * ({n} // {many}) + min({k}, {n} % {many})", k=k, n=d.length, many=sections)
                for k in range(1, sections + 1)]
    start = ZERO
    for k, end in enumerate(ends[: len(results)]):
        end = lowering.atom(end, "end")
        if d.key[0] is None:
            parts = np.array_split(np.empty(d.key[1]), sections)
            dim = lowering.length(len(parts[k]))
        else:
            dim = lowering.computed(quoted("max({} - {}, 0)", end, start))

        def read(index, start=start):
            return x.read([quoted("{} + {}", start, i) if k == axis and start != ZERO else i
                           for k, i in enumerate(index)])

        out.append(Lazy([dim if k == axis else e for k, e in enumerate(x.dims)], x.dtype, read, 0))
        start = end
    return out


@lazily(unpacked)
def _unpacked(lowering, node):
    return items_of(lowering, node.args[0])


@lazily(np.meshgrid)
def _meshgrid(lowering, node):
    vectors = [flat(lowering, a) for a in node.args]
    order = list(range(len(vectors)))
    if dict(node.kwargs).get("indexing", Const("xy")).value == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    dims = [vectors[k].dims[0] for k in order]
    return [
        Lazy(dims, v.dtype, lambda index, v=v, k=k: v.read([index[order.index(k)]]), v.cost)
        for k, v in enumerate(vectors)
    ]
