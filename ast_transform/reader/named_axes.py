# SPDX-License-Identifier: Apache-2.0
"""Collectives over a named axis: a call comes in; an operation with the names of its axes comes out.

The enclosing vmap binds the names; passes/vmap/collectives.py gives the operation its meaning over a batch.
"""
import inspect
import math
from types import FunctionType
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const
from gradscribe.ast_transform.core.kinds import Array, Length, spell, unify, unknown
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.calls import bound_to, call_value
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import as_operand, known_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.rules.several_axes import SEVERAL
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError
from gradscribe.runtime import collectives as named

REDUCING = {named.psum, named.pmean, named.pmax, named.pmin}
MOVING = {named.all_gather, named.psum_scatter, named.all_to_all}
SENDING = {named.ppermute, named.pshuffle}
ABOUT = {named.axis_index, named.axis_size}
HALVES = {named.psum: (named.psum_start, named.psum_done), named.pmean: (named.pmean_start, named.pmean_done)}
HINTS = {"psum": "total", "pmean": "mean", "pmax": "largest", "pmin": "least", "all_gather": "gathered",
         "psum_scatter": "share", "all_to_all": "exchanged", "ppermute": "sent", "pshuffle": "sent"}
COLLECTIVES = REDUCING | MOVING | SENDING | ABOUT           # passes/overlap.py splits some into halves
WRITTEN = COLLECTIVES.union(*HALVES.values())


class Axes(tuple):
    """The names of an operation's axes; `sizes`: the number of devices or examples of each, or None if unknown."""

    def __new__(cls, names, sizes):
        made = super().__new__(cls, names)
        made.sizes = tuple(sizes)
        return made

    def without(self, name):
        kept = [(n, size) for n, size in zip(self, self.sizes) if n != name]
        return Axes([n for n, _ in kept], [size for _, size in kept])


def is_collective(value: Any) -> bool:
    return isinstance(value, Apply) and isinstance(value.function, FunctionType) and value.function in WRITTEN


def call_collective(reader: Reader, function, args, words, node):
    signature = inspect.signature(function)
    given = dict(bound_to(reader, function, signature, args, words, node).arguments)
    name = known_value(reader, given.pop("axis_name"), f"axis_name of {function.__name__}", node)
    names = tuple(dict.fromkeys(name)) if isinstance(name, (tuple, list)) else (name,)
    for n in names:
        if n not in reader.context.axes:
            have = ", ".join(map(repr, reader.context.axes)) or "none"
            fail(reader, LanguageError, f"{function.__name__}: no axis is named {n!r} here (bound: {have})", node,
                 f"Call the function through gs.vmap(..., axis_name={n!r}).")
    if function in SENDING and len(names) != 1:
        fail(reader, LanguageError, f"{function.__name__} is along one axis, not {len(names)}", node,
             "Name one axis.")
    if function in ABOUT:
        return of_axis(reader, function, names)
    x = given.pop("x")
    options = {k: known_value(reader, given[k], f"{k} of {function.__name__}", node) if k in given else p.default
               for k, p in signature.parameters.items() if k not in ("x", "axis_name")}
    if function in MOVING and len(names) > 1:
        return over_several(reader, function, x, names, options, node)
    return over_leaves(reader, function, x, names, options, node)


def call_half(reader: Reader, function, args, words, node):
    whole = function.__name__.partition("_")[0]
    fail(reader, LanguageError, f"{function.__name__} is what emitted code says for a sum that travels", node,
         f"Call gs.lax.{whole}: where there is work beside it, it is taken apart.")


def of_axis(reader: Reader, function, names):
    """(index of this example in row-major order along the axes, number of examples)."""
    out = None
    for n in names:
        length = reader.context.axes[n]
        if function is named.axis_size:
            own = operand_of_length(length) or reader.build.let(
                "n", over_axis(reader, function, (), (n,)), Array(int, (), length))
        else:
            own = reader.build.let("i", over_axis(reader, function, (), (n,)), Array(np.dtype(int)))
        if out is not None:
            if function is named.axis_index:
                out = reader.build.multiply(out, of_axis(reader, named.axis_size, (n,)))
                out = reader.build.add(out, own)
            else:
                out = reader.build.multiply(out, own)
        else:
            out = own
    return out


def over_several(reader: Reader, function, x, names, options, node):
    """A collective that moves entries along several axes, as a sequence of collectives along one axis each."""
    x = settle(reader, x)
    if isinstance(x, Struct):
        items = [over_several(reader, function, i, names, options, node) for i in x.items]
        return Struct(x.kind, items, x.keys, x.cls)
    x = as_operand(reader, x)
    fact, (each, asked) = fact_of(x), SEVERAL[function]
    if not isinstance(fact, Array):
        fail(reader, LanguageError, f"{function.__name__} of {spell(fact)}", node, "Give numbers or arrays.")
    new = function is named.all_gather and not options["tiled"]
    for name in asked[:-1]:
        axis_in(reader, options, name, fact.rank + new, function, fact, node)
    return call_value(reader, Const(each), [x, Struct("tuple", list(map(Const, names))), *(
        Const(options[name]) for name in asked)], {}, node)


def over_leaves(reader: Reader, function, x, names, options, node):
    x = settle(reader, x)
    if isinstance(x, Struct):
        return Struct(x.kind, [over_leaves(reader, function, i, names, options, node) for i in x.items], x.keys, x.cls)
    x = as_operand(reader, x)
    fact = fact_of(x)
    if not isinstance(fact, Array):
        fail(reader, LanguageError, f"{function.__name__} of {spell(fact)}", node, "Give numbers or arrays.")
    if isinstance(x, Const) and not fact.dims and function in (named.psum, named.pmax, named.pmin):
        counts = [operand_of_length(reader.context.axes[n]) for n in names]
        if all(counts):             # a constant on all devices, whose number is known
            many = math.prod(c.value for c in counts) if function is named.psum else 1
            return Const(x.value * many)
    out = fact_over(reader, function, fact, reader.context.axes[names[0]], options, node)
    value = over_axis(reader, function, (x,), names, options)
    return reader.build.let(HINTS.get(function.__name__, "t"), value, out)


def operand_of_length(length):
    n = length.normal()
    return Const(n.offset) if n.symbol is None else None


def over_axis(reader: Reader, function, operands, names, options=None):
    sizes = [operand_of_length(reader.context.axes[n]) for n in names]
    axes = Axes(names, [None if size is None else size.value for size in sizes])
    return Apply(function, (*operands, Const(axes)), tuple((k, Const(v)) for k, v in (options or {}).items()))


def fact_over(reader: Reader, function, fact, n, options, node):
    """The fact of the result for one example."""
    dtype, dims = fact.dtype, fact.dims
    if function is named.psum and fact.kind == "b":
        dtype = np.dtype(int)
    if function is named.pmean and fact.kind in "biu":
        dtype = np.dtype(float)
    if dims and isinstance(dtype, type):
        dtype = np.dtype(dtype)
    if function in SENDING:
        check_pairs(reader, function, n, options["perm"], node)
    if function not in MOVING:
        return Array(np.dtype(dtype) if not fact.weak else dtype, dims)
    if function is named.all_gather:
        axis = axis_in(reader, options, "axis", len(dims) + (not options["tiled"]), function, fact, node)
        if not options["tiled"]:
            return Array(np.dtype(dtype), (*dims[:axis], n, *dims[axis:]))
        return Array(np.dtype(dtype), (*dims[:axis], unknown("?tiled"), *dims[axis + 1:]))
    dims = list(dims)
    split = "scatter_dimension" if function is named.psum_scatter else "split_axis"
    axis = axis_in(reader, options, split, len(dims), function, fact, node)
    if options["tiled"]:
        dims[axis] = unknown("?share")
        if function is named.all_to_all:
            dims[axis_in(reader, options, "concat_axis", len(dims), function, fact, node)] = unknown("?tiled")
        return Array(np.dtype(dtype), tuple(dims))
    if not unify(dims[axis], n):
        fail(reader, ShapeError, f"{function.__name__}: axis {axis} of {spell(fact)} has length {dims[axis].size}, "
             f"and there are {n.size} examples", node,
             "Give an axis as long as there are examples, or tiled=True.")
    del dims[axis]
    if function is named.all_to_all:
        dims.insert(axis_in(reader, options, "concat_axis", len(dims) + 1, function, fact, node), n)
    return Array(np.dtype(dtype), tuple(dims))


def axis_in(reader: Reader, options, name, rank, function, fact, node):
    axis = options[name]
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        fail(reader, ShapeError, f"{function.__name__}: {name} is {axis!r}, and x is {spell(fact)}", node,
             f"Give an axis from {-rank} to {rank - 1}." if rank else "Give an array.")
    options[name] = axis % rank
    return axis % rank


def check_pairs(reader: Reader, function, n, perm, node):
    size, known = n.normal(), None
    if size.symbol is None:
        known = size.offset
    if function is named.pshuffle:
        perm = list(perm)
        good = sorted(perm) == list(range(len(perm))) and unify(n, Length(None, len(perm)))
    else:
        perm = [tuple(p) for p in perm]
        ends = list(zip(*perm)) or [(), ()]
        good = all(len(set(e)) == len(e) and all(type(k) is int and 0 <= k and (known is None or k < known)
                                                 for k in e) for e in ends)
    if not good:
        fail(reader, LanguageError, f"{function.__name__}: perm is {perm}, and there are {n.size} examples", node,
             "Name each example once." if function is named.pshuffle else
             "Give pairs (from, to), with no example twice on a side.")


SPECIAL.update({
    **dict.fromkeys(COLLECTIVES, call_collective),
    **dict.fromkeys(WRITTEN - COLLECTIVES, call_half),
})
