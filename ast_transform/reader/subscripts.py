# SPDX-License-Identifier: Apache-2.0
"""np.einsum, and np.r_, np.c_, np.mgrid and np.ogrid: a call or an index comes in; an operation or an array comes out.

All forms of an einsum call become one: a subscript string and the operands.
"""
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, same_dtype
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import as_given, known_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.rules.products import LETTERS
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError

JOINS, GRIDS = type(np.r_).__bases__[0], type(np.mgrid).__bases__[0]     # classes of np.r_, np.mgrid


def call_einsum(reader: Reader, function, args, words, node):
    optimize = words.get("optimize")
    if not args or len(words) > (optimize is not None):
        fail(reader, RuleError, "np.einsum: only subscripts, operands and optimize are understood", node,
             "Leave the others out.")
    words = {} if optimize is None else {"optimize": without_path(reader, optimize, node)}
    first = settle(reader, args[0])
    if isinstance(first, Struct) or isinstance(fact_of(first), Array):
        args = subscripted(reader, args, node)
    subscripts = Const(known_value(reader, args[0], "the subscripts of np.einsum", node).replace(" ", ""))
    return dispatch.rule_call(reader, np.einsum, [subscripts, *args[1:]], words, node)


def without_path(reader: Reader, optimize, node):
    """Check the `optimize` argument of np.einsum, whose contraction order does not matter for adjoints."""
    value = settle(reader, optimize)
    if isinstance(value, Struct):
        return Const(True)
    return Const(known_value(reader, value, "optimize of np.einsum", node))


def subscripted(reader: Reader, args, node):
    """np.einsum(x, [0, 1], y, [1, 2], [0, 2]) is np.einsum("ab,bc->ac", x, y)."""
    operands, lists = list(args[:len(args) // 2 * 2:2]), list(args[1::2])
    if len(args) % 2:
        lists.append(args[-1])
    lists = [
        [
            known_value(reader, i, "an axis label of np.einsum", node)
            for i in dispatch.elements_of(reader, settle(reader, each), node)
        ]
        for each in lists
    ]
    used = sorted({i for each in lists for i in each if i is not Ellipsis})
    letters = sorted(LETTERS)[:len(used)] if len(used) > 26 else LETTERS
    names = {Ellipsis: "...", **dict(zip(used, letters))}
    terms = ["".join(names[i] for i in each) for each in lists]
    inputs = ",".join(terms[:len(operands)])
    return [Const(inputs if len(args) % 2 == 0 else f"{inputs}->{terms[-1]}"), *operands]


def in_brackets(reader: Reader, which: Any, index: Any, node: gast.AST | None) -> Any:
    """The value of np.r_[index], np.c_[index], np.mgrid[index] or np.ogrid[index]."""
    given = index.items if isinstance(index, Pack) else tuple(map(Const, index.value)) if isinstance(
        index, Const) and isinstance(index.value, tuple) else None
    items = [index] if given is None else list(given)
    if isinstance(which, JOINS):
        return joined_in_brackets(reader, which, items, node)
    return grid_in_brackets(reader, which, items, given is None, node)


def joined_in_brackets(reader: Reader, which, items, node):
    """np.r_ and np.c_: the items in the brackets joined along the first axis, or as columns along the last."""
    items = [dispatch.array_of(reader, as_given(i), node) if isinstance(i, (Pack, Struct)) else i for i in items]
    given = [part_in_brackets(reader, which, i, node) for i in items]
    arrays = [dispatch.array_of(reader, Struct("list", [a]), node) if not fact_of(a).dims else a for a in given]
    dtype = np.result_type(*[fact_of(a).dtype(1) if fact_of(a).weak else np.dtype(fact_of(a).dtype) for a in given])
    arrays = [a if same_dtype(fact_of(a).dtype, dtype) else dispatch.converted(reader, a, dtype, node) for a in arrays]
    if which.ndmin > 1:
        arrays = [reader.build.item(a, Const((slice(None), None))) if fact_of(a).rank == 1 else a for a in arrays]
    if len({fact_of(a).rank for a in arrays}) > 1:
        fail(reader, ShapeError, f"{spelled_brackets(which)}: the arrays have different numbers of axes", node)
    axis = {"axis": Const(which.axis)} if which.axis else {}
    return dispatch.rule_call(reader, np.concatenate, [Struct("list", arrays)], axis, node)


def part_in_brackets(reader: Reader, which, value, node):
    """One item in the brackets: a number, an array, or a range of numbers."""
    if isinstance(value, Slice) or isinstance(value, Const) and isinstance(value.value, slice):
        return range_in_brackets(reader, value, node)
    if not isinstance(fact_of(value), Array):
        fail(reader, RuleError, f"{spelled_brackets(which)} takes numbers, arrays and ranges", node,
             "Write np.concatenate([a, np.arange(n)]).")
    return value


def range_in_brackets(reader: Reader, value, node):
    """start:stop:step as an array; an imaginary step is the number of points, including both ends."""
    start, stop, step = ends_of(value)
    if isinstance(step, Const) and isinstance(step.value, complex):
        return dispatch.call_known(reader, np.linspace, [start, stop, Const(int(abs(step.value)))], {}, node)
    return arange_of(reader, start, stop, step, node)


def arange_of(reader: Reader, start: Any, stop: Any, step: Any, node: gast.AST | None) -> Any:
    """np.arange without the arguments that have their default values."""
    if not is_value(start, 0) or not is_value(step, 1):
        return dispatch.call_known(reader, np.arange, [start, stop, *([] if is_value(step, 1) else [step])], {}, node)
    return dispatch.call_known(reader, np.arange, [stop], {}, node)


def grid_in_brackets(reader: Reader, which, items, alone, node):
    """The coordinates of a grid: np.mgrid gives each as a full array, np.ogrid along its own axis only."""
    if not all(isinstance(i, Slice) or isinstance(i, Const) and isinstance(i.value, slice) for i in items):
        fail(reader, RuleError, "np.mgrid and np.ogrid take ranges", node, "Write np.meshgrid(a, b, indexing='ij').")
    ends = [ends_of(i) for i in items]
    if not which.sparse and not alone and all(
            is_value(a, 0) and is_value(step, 1) and fact_of(b).kind == "i" for a, b, step in ends):
        return dispatch.call_known(reader, np.indices, [Struct("tuple", [b for _, b, _ in ends])], {}, node)
    axes = [range_in_brackets(reader, i, node) for i in items]
    dtype = np.result_type(*[fact_of(a).dtype for a in axes])
    axes = [a if same_dtype(fact_of(a).dtype, dtype) else dispatch.converted(reader, a, dtype, node) for a in axes]
    if alone:
        return axes[0]
    if not which.sparse:
        return dispatch.array_of(
            reader, dispatch.call_known(reader, np.meshgrid, axes, {"indexing": Const("ij")}, node), node
        )
    return Struct("tuple", [a if len(axes) == 1 else reader.build.item(a, Const(tuple(
        slice(None) if i == k else None for i in range(len(axes))))) for k, a in enumerate(axes)])


def spelled_brackets(which):
    return f"np.{type(which).__name__[0].lower()}_"


def ends_of(value):
    """start, stop and step of a range in brackets."""
    given = value.value if isinstance(value, Const) else value
    start, stop, step = (p if isinstance(p, Var | Const) else Const(p) for p in (given.start, given.stop, given.step))
    return Const(0) if is_value(start, None) else start, stop, Const(1) if is_value(step, None) else step


def is_value(node, value):
    return isinstance(node, Const) and type(node.value) is type(value) and node.value == value


SPECIAL.update({
    np.einsum: call_einsum,
})
