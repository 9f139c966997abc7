# SPDX-License-Identifier: Apache-2.0
"""Lowering of products of arrays: BLAS for matrices and stacks of them, loops where BLAS does not apply."""
import math
import operator

import numpy as np

from gradscribe.ast_transform.rules.products import einsum_labels
from gradscribe.codegen.array_forms import entrywise, flat, reduce, shaped
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, joined, quoted
from gradscribe.codegen.lowered import LINES, ONE, ROW, TURNED, Dim, Lazy, Lowering, lazily, product_of, shape
from gradscribe.codegen.scalar_forms import literal, narrowed
from gradscribe.codegen.shape_forms import dropped, inserted, permuted, spread

SHORT = 64                              # multiplications up to which loops are faster than BLAS

# --- products ---------------------------------------------------------------------------------------------------------


def factor(lowering, x, dtype):
    """An operand of BLAS, in its dtype: without a copy if the rows of it or its transpose are contiguous; on a device,
    any view.
    """
    if x.name and x.exact == dtype and (x.rank == 2 and x.view in ("transposed", LINES) or x.view == ROW or
                                        lowering.for_threads and x.rank):
        return x.name
    if x.rank == 2 and x.view == "transposed" and not x.name:       # materialise the expression, not its transpose
        return loops.Attribute(lowering.array(permuted(x, [1, 0]), dtype).name, "T")
    return lowering.array(x, dtype).name


def dot(lowering, a, b, dtype):
    """The product of two matrices or vectors."""
    dtype = np.dtype(dtype)
    lowering.agree([a.dims[-1], b.dims[0]])
    dims = a.dims[:-1] + b.dims[1:]
    if dtype.kind not in "fc":
        wide = inserted(a, {0}) if a.rank == 1 else a
        tall = inserted(b, {1}) if b.rank == 1 else b
        out = stack_product(lowering, inserted(wide, {0}), inserted(tall, {0}), dtype)
        return dropped(out, {0, *({1} if a.rank == 1 else ()), *({2} if b.rank == 1 else ())})
    strided = not dims and not lowering.for_threads and any(x.view is True for x in (a, b))     # BLAS would need copies
    if strided or is_short(*a.dims, *b.dims[1:]) or lowering.for_threads and lowering.depth.blocks > 1 and is_short(
            *dims) and is_short(*a.dims, *b.dims[1:], most=SHORT * SHORT):
        a, b = (x if x.cost <= 1 else lowering.array(x) for x in (a, b))
        b = Lazy([a.dims[-1], *b.dims[1:]], b.dtype, b.read, b.cost)        # the axes agree
        if b.rank == 2:
            a, b = inserted(a, {a.rank - 1}), permuted(b, (1, 0))
        whole = entrywise(lowering, operator.mul, dtype, a, b)
        return reduce(lowering, whole, (len(dims),), False, "sum", dtype)
    name = lowering.fresh("product")
    lowering.say("{} = np.dot({}, {})", name, factor(lowering, a, dtype), factor(lowering, b, dtype))
    if not dims:
        return Lazy([], dtype, name, 0)
    return lowering.made(name, dims, dtype)


def stack_product(lowering, a, b, dtype):
    """The products of two stacks of matrices with three axes each."""
    lowering.agree([a.dims[2], b.dims[1]])
    if is_short(a.dims[1], a.dims[2], b.dims[2]):
        a, b = (x if x.cost <= 1 else lowering.array(x) for x in (a, b))
        whole = entrywise(lowering, operator.mul, dtype, inserted(a, {2}), inserted(permuted(b, [0, 2, 1]), {1}))
        return reduce(lowering, whole, (3,), False, "sum", np.dtype(dtype))
    helper = "product" if np.dtype(dtype).kind in "fc" else "integer_product"
    first, second, name = stack(lowering, a, dtype), stack(lowering, b, dtype), lowering.fresh("product")
    lowering.say("{} = {}({}, {})", name, helper, first, second)
    dims, _ = lowering.broadcast([a.dims[:1], b.dims[:1]])
    return lowering.made(name, [*dims, a.dims[1], b.dims[2]], np.dtype(dtype))


def stack(lowering, x, dtype):
    """A stack as an operand: contiguous, or on a device a transposed view, which its library accepts."""
    if lowering.for_threads and np.dtype(dtype).kind in "fc":
        if x.name and x.exact == dtype:
            return x.name
        if x.turned is not None and x.turned.turned is not None:
            return stack(lowering, x.turned.turned, dtype)
        if x.turned is not None:
            whole = x.turned if x.turned.name and x.turned.exact == dtype else lowering.array(x.turned, dtype)
            return quoted("{}.transpose((0, 2, 1))", whole.name)
    return lowering.array(x, dtype).name


def is_short(*dims, most=SHORT):
    """Whether the axes of a product have constant lengths with so few multiplications that calling BLAS costs more.

    In a loop on a device, threads do not call libraries; a thread computes a product itself if its result is short.
    """
    lengths = [1 if d.kind == "one" else d.key[1] if d.key is not None and d.key[0] is None else None for d in dims]
    return None not in lengths and math.prod(lengths) <= most


@lazily(operator.matmul, np.matmul)
def _matmul(lowering, node):
    a, b = (lowering.lazy(x) for x in node.args)
    dtype = np.dtype(lowering.fact(node).dtype)
    if a.rank <= 2 and b.rank <= 2:
        return dot(lowering, a, b, dtype)
    wide, tall = inserted(a, {0}) if a.rank == 1 else a, inserted(b, {b.rank}) if b.rank == 1 else b
    lead, picks = lowering.broadcast([wide.dims[:-2], tall.dims[:-2]])
    full = [three(lowering, x, lead) for x in (wide, tall)]
    out = stack_product(lowering, *full, dtype)
    out = shaped(lowering, out, [*lead, wide.dims[-2], tall.dims[-1]])
    gone = ({out.rank - 2} if a.rank == 1 else set()) | ({out.rank - 1} if b.rank == 1 else set())
    return dropped(out, gone) if gone else out


def three(lowering: Lowering, x: Lazy, lead: list[Dim] | None = None) -> Lazy:
    """A stack of matrices with one stacking axis; lead: the axes that it is broadcast to, unless it is one matrix."""
    own = x.dims[:-2]
    if lowering.for_threads and x.rank > 3 and (x.turned is not None or x.view == TURNED and x.name):
        whole = x.turned
        if whole is None:
            order, name = [*range(x.rank - 2), x.rank - 1, x.rank - 2], lowering.fresh("view")
            lowering.say("{} = np.ascontiguousarray({}.transpose({}))", name, x.name, tuple(order))
            whole = lowering.made(name, [x.dims[k] for k in order], x.dtype)
        return permuted(three(lowering, whole, lead), (0, 2, 1))
    if lead is not None and own and any(d.key != e.key for d, e in zip([ONE] * (len(lead) - len(own)) + own, lead)):
        x = lowering.array(spread(lowering, x, [*lead, *x.dims[-2:]]))
        own = lead
    if len(own) == 1:
        return x
    if not own:
        return inserted(x, {0})
    n = lowering.computed(product_of(own))
    if all(d.kind == "one" for d in own):
        n = ONE
    return shaped(lowering, x, [n, *x.dims[-2:]])


def tensordot(lowering, a, b, of_a, of_b, dtype):
    """The sum over pairs of axes, as one matrix product."""
    free_a = [k for k in range(a.rank) if k not in of_a]
    free_b = [k for k in range(b.rank) if k not in of_b]
    first, second = permuted(a, [*free_a, *of_a]), permuted(b, [*of_b, *free_b])
    for i, j in zip(of_a, of_b):
        lowering.agree([a.dims[i], b.dims[j]])
    dims = [a.dims[k] for k in free_a] + [b.dims[k] for k in free_b]
    first = grouped(lowering, first, len(free_a))
    second = grouped(lowering, second, len(of_b))
    out = dot(lowering, first, second, dtype)
    if not dims:
        return Lazy([], dtype, lambda index: entry(lowering.array(out).name, ZERO, ZERO), 0)
    if len(free_a) == 1 and len(free_b) == 1:
        return out
    return shaped(lowering, out, dims)


def grouped(lowering: Lowering, x: Lazy, split: int) -> Lazy:
    """x as a matrix: its first `split` axes as one, and the others as one."""
    if split == 1 and x.rank == 2:
        return x
    if not x.rank:
        return inserted(x, {0, 1})
    return shaped(lowering, x, [together(lowering, x.dims[:split]), together(lowering, x.dims[split:])])


def together(lowering, dims):
    """Several axes as one."""
    many = [d for d in dims if d.kind != "one"]
    if len(many) < 2:
        return many[0] if many else ONE
    return lowering.computed(product_of(many))


@lazily(np.dot, axis=-2)
@lazily(np.inner, axis=-1)
def _dot(lowering, node, axis):
    """The sum of products over the last axis of a and `axis` of b, or the only one that b has."""
    a, b = (lowering.lazy(x) for x in node.args)
    dtype = np.dtype(lowering.fact(node).dtype)
    if not a.rank or not b.rank:
        return entrywise(lowering, operator.mul, lowering.fact(node).dtype, a, b)
    if axis == -1 and b.rank == 2 and a.rank <= 2:
        return dot(lowering, a, permuted(b, (1, 0)), dtype)
    if a.rank <= 2 and b.rank <= 2:
        return dot(lowering, a, b, dtype)
    return tensordot(lowering, a, b, (a.rank - 1,), (max(b.rank + axis, 0),), dtype)


@lazily(np.tensordot)
def _tensordot(lowering, node):
    bound = lowering.bound(node)
    a, b, axes = lowering.lazy(bound["a"]), lowering.lazy(bound["b"]), lowering.static(bound["axes"])
    if isinstance(axes, (tuple, list)):
        of_a, of_b = (tuple(v) if isinstance(v, (tuple, list)) else (v,) for v in axes)
    else:
        of_a, of_b = tuple(range(a.rank - axes, a.rank)), tuple(range(axes))
    dtype = np.dtype(lowering.fact(node).dtype)
    if not of_a:
        return outer(lowering, a, b, lowering.fact(node).dtype)
    return tensordot(lowering, a, b, tuple(k % a.rank for k in of_a), tuple(k % b.rank for k in of_b), dtype)


def outer(lowering, a, b, dtype):
    return entrywise(lowering, operator.mul, dtype, inserted(a, set(range(a.rank, a.rank + b.rank))), b)


@lazily(np.outer)
def _outer(lowering, node):
    a, b = (flat(lowering, x) for x in node.args)
    return outer(lowering, a, b, lowering.fact(node).dtype)


@lazily(np.einsum)
def _einsum(lowering, node):
    terms = node.args[0].value
    xs = [lowering.lazy(a) for a in node.args[1:]]
    labels, result = einsum_labels(terms, [Shaped(x.rank) for x in xs])
    dtype, labels = np.dtype(lowering.fact(node).dtype), list(labels)
    if len(xs) > 2:                         # two at a time, in an order that suits the lengths of the example
        sizes = [np.broadcast_to(0.0, [size(d) for d in lowering.fact(a).dims]) for a in node.args[1:]]
        path, _ = np.einsum_path(",".join(labels) + "->" + result, *sizes, optimize="greedy")
        for chosen in path[1:-1]:
            pairs = [(xs.pop(k), labels.pop(k)) for k in sorted(chosen, reverse=True)]
            left = "".join(labels) + result
            kept = "".join(c for c in dict.fromkeys("".join(t for _, t in pairs)) if c in left)
            xs.append(contraction(lowering, *map(list, zip(*pairs)), kept, dtype))
            labels.append(kept)
    return contraction(lowering, xs, labels, result, dtype)


def size(length):
    n = length.normal()
    return n.offset if n.symbol is None else max(1, (n.symbol.size or 8) + n.offset)


def contraction(lowering, xs, labels, result, dtype):
    """An einsum of one or two operands: by BLAS if it is a stack of matrix products, else by loops over all labels."""
    if len(xs) == 2 and all(len(set(t)) == len(t) for t in labels) and dtype.kind in "fc":
        a, b = labels
        shared = [c for c in a if c in b and c not in result]
        order = [c for c in a if c not in shared] + [c for c in b if c not in shared]
        if shared and sorted(order) == sorted(result) and all(c in result for c in order) and not any(
                c in b for c in order if c in a) and not ones(xs, labels, shared):
            out = tensordot(lowering, *xs, [a.index(c) for c in shared], [b.index(c) for c in shared], dtype)
            return permuted(out, [order.index(c) for c in result])
        stacked = [c for c in a if c in b and c in result]
        own_a, own_b = ([c for c in t if c not in shared + stacked] for t in labels)
        if shared and all(c in result for c in own_a + own_b) and not ones(xs, labels, shared + stacked):
            for c in shared + stacked:
                lowering.agree([x.dims[t.index(c)] for x, t in zip(xs, labels)])
            full = [three_groups(lowering, x, [[t.index(c) for c in part] for part in parts]) for x, t, parts in
                    zip(xs, labels, ([stacked, own_a, shared], [stacked, shared, own_b]))]
            out = stack_product(lowering, *full, dtype)
            dims = [xs[0].dims[a.index(c)] for c in stacked + own_a] + [xs[1].dims[b.index(c)] for c in own_b]
            order = stacked + own_a + own_b
            return permuted(shaped(lowering, out, dims), [order.index(c) for c in result])
    sizes = {}
    for x, t in zip(xs, labels):
        for d, c in zip(x.dims, t):
            if c not in sizes or sizes[c].kind == "one":
                sizes[c] = d
            elif d.kind != "one":
                lowering.agree([sizes[c], d])
    xs = [x if x.cost <= 1 else lowering.array(x) for x in xs]
    summed = [c for c in dict.fromkeys("".join(labels)) if c not in result]
    every = [*result, *summed]

    def read(index):
        at = dict(zip(every, index))
        reads = [x.cast([ZERO if d.kind == "one" else at[c] for d, c in zip(x.dims, t)], dtype)
                 for x, t in zip(xs, labels)]
        return narrowed(joined("*", reads), dtype) if len(reads) > 1 else reads[0]

    whole = Lazy([sizes[c] for c in every], dtype, read, 2)
    total = reduce(lowering, whole, tuple(range(len(result), len(every))), False, "sum", dtype)
    return Lazy(total.dims, dtype, lambda index: narrowed(total.read(index), dtype), total.cost) if np.dtype(
        dtype).kind in "iu" else total


def ones(xs, labels, wanted):
    """Whether any axis with one of the wanted labels has length one."""
    return any(x.dims[t.index(c)].kind == "one" for x, t in zip(xs, labels) for c in wanted)


def three_groups(lowering, x, groups):
    """x with three axes, each of which combines one group of its axes."""
    moved = permuted(x, [k for group in groups for k in group])
    if lowering.for_threads and groups[0] and [len(group) for group in groups[1:]] == [1, 1]:
        return three(lowering, moved)
    return shaped(lowering, moved, [together(lowering, [x.dims[k] for k in group]) for group in groups])


class Shaped:
    def __init__(self, ndim):
        self.ndim = ndim


@lazily(np.kron)
def _kron(lowering, node):
    a, b = (lowering.lazy(x) for x in node.args)
    rank = max(a.rank, b.rank)
    if not rank:
        return entrywise(lowering, operator.mul, lowering.fact(node).dtype, a, b)
    a, b = (inserted(x, set(range(rank - x.rank))) for x in (a, b))
    order = [k for pair in zip(range(rank), range(rank, 2 * rank)) for k in pair]
    both = lowering.array(permuted(outer(lowering, a, b, lowering.fact(node).dtype), order))
    dims = []
    for d, e in zip(a.dims, b.dims):
        dims.append(d if e.kind == "one" else e if d.kind == "one" else lowering.computed(product_of([d, e])))
    return shaped(lowering, both, dims)


@lazily(np.cross)
def _cross(lowering, node):
    bound, dtype = lowering.bound(node), lowering.fact(node).dtype
    places = [lowering.static(bound[k]) for k in ("axisa", "axisb", "axisc", "axis")]
    axisa, axisb, axisc = places[:3] if places[3] is None else [places[3]] * 3
    a, b = (lowering.array(vectors_last(lowering.lazy(bound[k]), axis)) for k, axis in (("a", axisa), ("b", axisb)))
    plane = [x.dims[-1].key == (None, 2) for x in (a, b)]
    for x in (a, b):
        if x.dims[-1].key not in ((None, 2), (None, 3)):
            lowering.say("same({}, 3)", x.dims[-1].length)
    lead, picks = lowering.broadcast([a.dims[:-1], b.dims[:-1]])
    dims = lead if all(plane) else [*lead, lowering.length(3)]
    components = [2] if all(plane) else range(3)
    out = lowering.fresh("cross")

    def product(p, i, q, j):
        if plane[0] and i == 2 or plane[1] and j == 2:
            return literal(0, dtype)
        return quoted("{} * {}", a.cast([*p, loops.Const(i)], dtype), b.cast([*q, loops.Const(j)], dtype))

    if dims:
        lowering.say("{} = np.empty({}, {})", out, shape(dims), dtype)
    with lowering.nest(lead) as index:
        for k in components:
            i, j = (k + 1) % 3, (k + 2) % 3
            p, q = picks[0](index), picks[1](index)
            slot = [*index] if all(plane) else [*index, loops.Const(k)]
            lowering.set(entry(out, *slot) if dims else out,
                         quoted("{} - {}", product(p, i, q, j), product(p, j, q, i)))
    if not dims:
        return Lazy([], np.dtype(dtype), out, 0)
    made = lowering.made(out, dims, np.dtype(dtype))
    if all(plane):
        return made
    order = list(range(len(lead)))
    order.insert(axisc % len(dims), len(lead))
    return permuted(made, order)


def vectors_last(x, axis):
    axis %= x.rank
    return x if axis == x.rank - 1 else permuted(x, [*(k for k in range(x.rank) if k != axis), axis])


# for each mode, the length of the result, and s where a[i + s] is the last entry of a that goes into sum i
CONVOLVED = {"full": ("{m} + {n} - 1", "0"), "same": ("max({m}, {n})", "(min({m}, {n}) - 1) // 2"),
             "valid": ("max({m}, {n}) - min({m}, {n}) + 1", "min({m}, {n}) - 1")}


@lazily(np.convolve)
def _convolve(lowering, node):
    """Makes the longest loop the innermost: over the terms of a sum if the sums are few, else over the sums."""
    bound, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    a, v, mode = lowering.array(bound["a"]), lowering.array(bound["v"]), lowering.static(bound["mode"])
    if not a.rank == v.rank == 1:
        lowering.no_form(np.convolve, " of numbers")
    m, n = a.dims[0].length, v.dims[0].length
    lowering.raises("np.convolve of an empty array", "{} == 0 or {} == 0", m, n)
    count, last = (quoted(t, m=m, n=n) for t in CONVOLVED[mode])
    k, shift = lowering.result("n", "{}", count), lowering.result("shift", "{}", last)
    out, total, i, j, first, start, count = (
        lowering.fresh(s) for s in ("convolved", "sum", "at", "from", "first", "start", "count"))
    lowering.say("{} = np.zeros({}, {})", out, k, dtype)

    def added_along_sums(short, long):
        """For each entry of the shorter array, adds its products with a part of the longer one."""
        with lowering.inside("for {} in range({}):", j, short.dims[0].length):
            lowering.set(first, quoted("max({} - {}, 0)", j, shift))
            lowering.set(start, quoted("max({} - {}, 0)", shift, j))
            lowering.set(count, quoted("max(min({} - {}, {} - {}), 0)", k, first, long.dims[0].length, start))
            with lowering.inside("for {} in range({}):", i, count):
                lowering.say("{}[{} + {}] += {} * {}", out, first, i, short.cast([loops.Name(j)], dtype),
                             long.cast([quoted("{} + {}", start, i)], dtype))

    def summed_one_by_one():
        with lowering.inside("for {} in range({}):", i, k):
            lowering.set(total, literal(0, dtype))
            lowering.set(first, quoted("max({} + {} - {} + 1, 0)", i, shift, n))
            lowering.set(start, quoted("{} + {} - {}", i, shift, first))
            lowering.set(count, quoted("max(min({m} - {f}, {i} + {s} + 1 - {f}), 0)", i=i, m=m, s=shift, f=first))
            with lowering.inside("for {} in range({}):", j, count):
                lowering.say("{} += {} * {}", total, a.cast([quoted("{} + {}", first, j)], dtype),
                             v.cast([quoted("{} - {}", start, j)], dtype))
            lowering.say("{}[{}] = {}", out, i, total)

    outer = lowering.say("if {} <= {}:", n, m)
    with lowering.into(outer.block):
        added_along_sums(v, a)
    with lowering.into(outer.orelse):
        added_along_sums(a, v)
    if mode == "valid":
        lowering.body.remove(outer)
        few = lowering.say("if {} < min({}, {}):", k, m, n)
        with lowering.into(few.block):
            summed_one_by_one()
        few.orelse.append(outer)
    return lowering.made(out, [lowering.computed(loops.Name(k))], dtype)
