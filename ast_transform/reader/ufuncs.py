# SPDX-License-Identifier: Apache-2.0
"""Special arguments of NumPy calls: lists as arrays, equal lengths, ufunc.outer, dtype= and where=.

The arguments of a call come in as the user wrote them; they come out as the rule of the function takes them.
"""
import operator
from collections.abc import Callable
from functools import partial
from inspect import Parameter
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence, same_dtype
from gradscribe.ast_transform.core.rule import ARRAY, AS_GIVEN, SEQUENCE
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.types import equal_lengths
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.operands import as_operand, known_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.subscripts import arange_of
from gradscribe.ast_transform.reader.values import Grown, Part, RangeValue, Struct
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError


def as_taken(reader: Reader, rule: Any, bound: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> tuple:
    """The arguments of a call, with lists converted to the arrays, or sequences of arrays, that the rule takes."""
    positional, keywords, parameters = [], dict(words), bound.signature.parameters
    for name, value in bound.arguments.items():
        takes, kind = rule.takes(name), parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(taken_for(reader, takes or ARRAY, v, node) for v in value)
            positional += bound.arguments[name]
        elif kind is not Parameter.VAR_KEYWORD:
            bound.arguments[name] = new = taken_for(reader, takes, value, node)
            if name in words:
                keywords[name] = new
            else:
                positional.append(new)
    return positional, keywords


def taken_for(reader: Reader, takes, value, node):
    """A list converted to what the rule takes.  If the record does not say, it becomes an array if it holds values
    that can be differentiated: lists of integers may be lengths, axes or positions.
    """
    if isinstance(value, RangeValue) and takes == ARRAY:
        return arange_of(reader, value.start, value.stop, value.step, node)
    if takes == AS_GIVEN or isinstance(value, Part) and not isinstance(value.fact, Sequence):
        return value
    held = settle(reader, value)
    if not isinstance(held, Struct) or held.kind not in ("list", "tuple"):
        return value
    if takes == SEQUENCE:
        items = [taken_for(reader, ARRAY, i, node) for i in held.items]
        items = [dispatch.array_of_grown(reader, i) if isinstance(i, Grown) else i for i in items]
        same = all(new is old for new, old in zip(items, held.items))
        return value if same else Struct(held.kind, items, held.keys, held.cls)
    return dispatch.array_of(reader, held, node) if takes == ARRAY or holds_entries(reader, held) else value


def holds_entries(reader: Reader, value):
    """Whether a list contains, at any depth, a number or array that can be differentiated."""
    return any(
        isinstance(item, Grown) or isinstance(item, Struct) and holds_entries(reader, item) or
        isinstance(item, (Var, Part)) and item.fact.differentiable for item in value.items)


def operator_entry_by_entry(reader: Reader, function: Callable, left: Any, right: Any, node: gast.AST | None) -> Any:
    """An operator on an array and a list of numbers; None if NumPy does not handle it."""
    for one, other in ((left, right), (right, left)):
        if isinstance(other, Struct) and other.kind in ("list", "tuple") and of_numpy(one) and (
                one.fact.dims or function is not operator.mul):             # number * list repeats the list
            left, right = (dispatch.array_of(reader, v, node) if isinstance(v, Struct) else v for v in (left, right))
            return dispatch.operation(reader, function, [left, right], node)
    return None


def of_numpy(value):
    """Whether a value is an array or a NumPy scalar, whose operators accept lists; Python's numbers do not."""
    return isinstance(value, Var) and isinstance(value.fact, Array) and not value.fact.weak


def with_equal_lengths(reader: Reader, rule: Any, bound: Any, node: gast.AST | None) -> None:
    """Check the equal lengths that a record requires of the operands of a call."""
    try:
        equal_lengths(
            rule,
            {
                k: tuple(map(partial(settle, reader), v)) if isinstance(v, (tuple, list)) else settle(reader, v)
                for k, v in bound.arguments.items()
            },
        )
    except Unfit as error:
        fail(reader, ShapeError, f"{spelled(rule.function)}: {error}", node, error.advice)


def call_outer(reader: Reader, function, args, words, node):
    """ufunc.outer(a, b): each entry of a with each entry of b."""
    ufunc = function.__self__
    if len(args) != 2:
        fail(reader, RuleError, f"np.{ufunc.__name__}.outer: only (a, b) is understood", node)
    a, b = (
        dispatch.array_of(reader, v, node) if isinstance(v, Struct) else v for v in map(partial(settle, reader), args)
    )
    for v in (a, b):
        if not isinstance(fact_of(v), Array):
            fail(
                reader,
                ShapeError,
                f"np.{ufunc.__name__}.outer: an array is needed, {spelled_value(reader, v)} is given",
                node,
            )
    if fact_of(a).rank and fact_of(b).rank:
        a = reader.build.item(a, Const((Ellipsis,) + (None,) * fact_of(b).rank))
    return dispatch.call_known(reader, ufunc, [a, b], words, node)


def call_ufunc(reader: Reader, ufunc: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    """A ufunc with dtype=, which converts the operands, or where=, which without out= leaves entries unset."""
    words, label = dict(words), f"np.{ufunc.__name__}"
    mask = settle(reader, words.pop("where", Const(True)))
    if not (isinstance(mask, Const) and mask.value is True):
        fail(reader, RuleError, f"{label} with where= and without out= leaves the other entries unset", node,
             f"Write np.where(mask, {label}(...), 0), or give out=.")
    dtype = known_value(reader, words.pop("dtype", Const(None)), f"the dtype of {label}", node)
    if dtype is None:
        return dispatch.call_known(reader, ufunc, args, words, node)
    dtype, operands = tried(reader, np.dtype, dtype, node=node), []
    for value in map(partial(settle, reader), args):
        fact = fact_of(dispatch.array_of(reader, value, node) if isinstance(value, Struct) else value)
        if isinstance(fact, Array) and not np.can_cast(np.dtype(fact.dtype), dtype, "same_kind"):
            fail(reader, ShapeError, f"{label}: {spelled_value(reader, value)} is not converted to {dtype}", node,
                 "NumPy refuses it as well; convert it with astype.")
        operands.append(dispatch.converted(reader, value, dtype, node))
    value = as_operand(reader, settle(reader, dispatch.call_known(reader, ufunc, operands, words, node)))
    if not same_dtype(np.dtype(fact_of(value).dtype), dtype):
        fail(reader, RuleError, f"{label} with dtype={dtype} gives {np.dtype(fact_of(value).dtype)}", node,
             "Leave dtype= out, and convert the result with astype.")
    return value


SPECIAL.update({
    **{u.outer: call_outer for u in vars(np).values() if isinstance(u, np.ufunc) and u.nin == 2 and u.nout == 1},
})
