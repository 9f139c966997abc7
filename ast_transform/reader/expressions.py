# SPDX-License-Identifier: Apache-2.0
"""Expressions: a tree comes in (operator, comparison, conditional, display); its value comes out."""
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Var
from gradscribe.ast_transform.core.kinds import Array, Opaque
from gradscribe.ast_transform.core.operations import both, either
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.reader.assignments import BINARY, assign
from gradscribe.ast_transform.reader.bfloat16 import as_bfloat16
from gradscribe.ast_transform.reader.branches import (
    are_numbers,
    choose,
    logical_and,
    logical_or,
    negated,
    same_numbers,
    truth_value,
)
from gradscribe.ast_transform.reader.calls import WRITTEN_OUT
from gradscribe.ast_transform.reader.comparisons import compared, contains, hashed
from gradscribe.ast_transform.reader.container_aliases import same_object
from gradscribe.ast_transform.reader.containers import binary_on_containers, drop_beyond_maxlen, put_all
from gradscribe.ast_transform.reader.dispatch import EVALUATE, evaluates, late
from gradscribe.ast_transform.reader.draws import call_known
from gradscribe.ast_transform.reader.dynamic_lists import copied_list, grown_method
from gradscribe.ast_transform.reader.frames import fail, locate, tried
from gradscribe.ast_transform.reader.iteration import elements_of
from gradscribe.ast_transform.reader.iterators import consumed_at_once
from gradscribe.ast_transform.reader.memory import fresh_result, pending_values
from gradscribe.ast_transform.reader.names import read_name
from gradscribe.ast_transform.reader.objects import UNARY as OF_CLASS
from gradscribe.ast_transform.reader.objects import by_class, dunder
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.statements import inner_function
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Grown, Struct, View, is_function
from gradscribe.ast_transform.reader.views import made_as
from gradscribe.ast_transform.source.diagnose import LanguageError

UNARY = {gast.USub: operator.neg, gast.UAdd: operator.pos, gast.Invert: operator.invert, gast.Not: operator.not_}
COMPARE = {
    gast.Eq: operator.eq,
    gast.NotEq: operator.ne,
    gast.Lt: operator.lt,
    gast.LtE: operator.le,
    gast.Gt: operator.gt,
    gast.GtE: operator.ge,
}


def _made(function, operands):
    try:
        return function(*operands)
    except TypeError as error:          # NumPy has no subtraction of booleans
        return error


def frame(reader: Reader):
    return reader.environment.stack[-1]


@late
def evaluate(reader: Reader, node: gast.AST | None) -> Any:
    return EVALUATE[type(node).__name__](reader, node)


@evaluates("Constant")
def evaluate_constant(reader: Reader, node):
    return Const(as_bfloat16(reader, node.value, node))


@evaluates("Name")
def evaluate_name(reader: Reader, node):
    return read_name(reader, node.id, node)


@evaluates("BinOp")
def evaluate_bin_op(reader: Reader, node):
    with pending_values(reader, [evaluate(reader, node.left)]) as held:
        right = evaluate(reader, node.right)
    locate(reader, node)
    return binary(reader, BINARY[type(node.op)], held[0], right, node)


@late
def binary(reader: Reader, function: Callable, left: Any, right: Any, node: gast.AST | None) -> Any:
    left, right = settle(reader, left), settle(reader, right)
    if isinstance(left, Grown) and function is operator.add and getattr(right, "kind", None) == "list":
        made = copied_list(reader, left)
        grown_method(reader, made, "extend", [right], {}, node)
        return made
    text = isinstance(left, Const) and isinstance(left.value, (str, bytes)) and not isinstance(right, Const)
    if isinstance(left, Struct) or isinstance(right, Struct) or text:
        found = by_class(reader, function, left, right, node)
        if found is not None:
            return found
        made = binary_on_containers(reader, function, left, right, node)
        cls = next((v.cls for v in (left, right) if hasattr(getattr(v, "cls", None), "most")), None)
        return made if cls is None else drop_beyond_maxlen(Struct("list", made.items, (), cls))
    if isinstance(left, Const) and isinstance(right, Const) and (
            isinstance(left.value, (str, bytes)) or isinstance(right.value, (str, bytes))):
        return Const(tried(reader, function, left.value, right.value, node=node))
    return operation(reader, function, [left, right], node)


@late
def operation(reader: Reader, function, operands, node):
    """The result of an operation that the user or a rule wrote."""
    for o in operands:
        if not isinstance(o, (Var, Const)):
            fail(reader, LanguageError, f"{spelled_value(reader, o)} is not a number or an array", node,
                 "Make an array of it: np.array(list(values)).")
    if reader.context.rule_depth:
        return fresh_result(reader, reader.build.arithmetic(function, operands), operands)
    one_kind_of_truth(reader, function, operands, node)
    rule = rule_of(function)
    if rule is not None and rule.options.get("natural") and function is rule.function:
        operands = of_a_power(reader, *operands)
    return reader.build.apply(function, *operands)


def one_kind_of_truth(reader: Reader, function, operands, node):
    """Refuse arithmetic on booleans that may be Python's or NumPy's: True + True is 2 in Python, True in NumPy."""
    facts = [fact_of(o) for o in operands]
    if not all(isinstance(f, Array) and f.kind == "b" and not f.dims for f in facts) or not any(
            map(partial(may_be_of_either_kind, reader), operands)):
        return
    made = [_made(function, [kind(1)] * len(operands)) for kind in (bool, np.bool_)]
    if type(made[0]) is not type(made[1]) and not {type(m) for m in made} <= {bool, np.bool_}:
        fail(reader, LanguageError, "arithmetic of truth values that may be Python's or NumPy's (True + True is 2, or "
             "True)", node, "Count with int(...): int(a) + int(b).")


def may_be_of_either_kind(reader: Reader, value: Any) -> bool:
    if not isinstance(value, Var) or value in reader.memory.entry_tokens | reader.kinds.of_one_kind or isinstance(
            value.fact, Array) and value.fact.dims:
        return False
    made = made_as(reader, value)
    return value in reader.kinds.of_either_kind or made is None or isinstance(
        made, Apply) and made.function in (both, either)


def of_a_power(reader: Reader, base, exponent):
    """The base of int ** int as a float if the exponent may be negative, since the result is then a float."""
    facts = fact_of(base), fact_of(exponent)
    if any(not isinstance(f, Array) or f.dims or not f.weak or f.dtype is not int for f in facts) or isinstance(
            base, Const) and isinstance(exponent, Const):
        return base, exponent
    naturals = Naturals(())
    naturals.made, naturals.indices = reader.build.made, reader.loops.natural_indices
    if naturals.holds(exponent):
        return base, exponent
    return Const(float(base.value)) if isinstance(base, Const) else reader.build.apply(float, base), exponent


@evaluates("UnaryOp")
def evaluate_unary_op(reader: Reader, node):
    value = settle(reader, evaluate(reader, node.operand))
    locate(reader, node)
    if isinstance(node.op, gast.Not):
        return negated(reader, truth_value(reader, value, node))
    method = dunder(reader, value, OF_CLASS.get(UNARY[type(node.op)]))
    if method is not None:
        return call_known(reader, method, [value], {}, node)
    return operation(reader, UNARY[type(node.op)], [value], node)


@evaluates("Compare")
def evaluate_compare(reader: Reader, node):
    def from_here(left, rest):          # evaluated only if all comparisons before it hold
        (op, comparator), *more = rest
        right = evaluate(reader, comparator)
        locate(reader, node)
        value = compare(reader, op, left, right, node)
        if not more or isinstance(value, Const) and not value.value:
            return value
        return logical_and(reader, value, lambda: from_here(right, more), node)
    return from_here(evaluate(reader, node.left), list(zip(node.ops, node.comparators)))


@late
def compare(reader: Reader, op: gast.AST | None, left: Any, right: Any, node: gast.AST | None) -> Any:
    if isinstance(op, (gast.Is, gast.IsNot)):
        return identity(reader, left, right, isinstance(op, gast.Is), node)
    if not isinstance(op, (gast.In, gast.NotIn)) and (isinstance(left, View) or isinstance(right, View)):
        fail(reader, LanguageError, "a view of a dictionary is compared", node, "Compare lists: list(d.keys()).")
    left, right = settle(reader, left), settle(reader, right)
    if isinstance(op, (gast.In, gast.NotIn)):
        found = contains(reader, right, left, node)
        return found if isinstance(op, gast.In) else negated(reader, found)
    function = COMPARE[type(op)]
    found = by_class(reader, function, left, right, node)
    if found is not None:
        return found
    if function in (operator.eq, operator.ne) and are_numbers(left) and are_numbers(right):
        return same_numbers(reader, left, right, function is operator.eq, node)
    if isinstance(left, Struct) or isinstance(right, Struct) or \
            all(isinstance(v, Const) and not isinstance(v.value, (np.ndarray, np.generic)) for v in (left, right)):
        return compared(reader, function, left, right, node)
    words = [isinstance(v, Const) and isinstance(v.value, (str, bytes, type(None))) for v in (left, right)]
    if any(words) and function in (operator.eq, operator.ne):
        if any(isinstance(v, Var) and isinstance(v.fact, Opaque) for v in (left, right)):
            fail(reader, LanguageError, "a text that is made when running is not known when transforming", node,
                 "Compare what it is made from.")
        if any(isinstance(v, Var) and isinstance(v.fact, Array) and v.fact.dims for v in (left, right)):
            fail(reader, LanguageError, "an array is compared with what is no number, entry by entry", node,
                 "Write x is not None.")
        return Const(function is operator.ne)       # a number never equals a string
    return operation(reader, function, [left, right], node)


def identity(reader: Reader, left: Any, right: Any, positive: bool, node: gast.AST | None) -> Any:
    if isinstance(left, Const) and isinstance(right, Const):
        return Const((left.value is right.value) == positive)
    if any(isinstance(v, Const) and (v.value is None or v.value is Ellipsis) for v in (left, right)):
        return Const(not positive)  # a computed value is neither None nor ...
    if left is right:
        return Const(positive)
    if isinstance(left, Const) and is_function(right) or is_function(left) and isinstance(right, Const):
        return Const(not positive)  # only one of them is defined in the code being read
    same = same_object(reader, left, right)
    if same is not None:
        return Const(same == positive)
    fail(reader, LanguageError, "identity of values is not known when transforming", node, "Compare with ==.")


@evaluates("BoolOp")
def evaluate_bool_op(reader: Reader, node):
    first, *rest = node.values
    value = evaluate(reader, first)
    for other in rest:
        locate(reader, node)
        join = partial(logical_and, reader) if isinstance(node.op, gast.And) else partial(logical_or, reader)
        value = join(value, lambda o=other: evaluate(reader, o), node)
    return value


@evaluates("IfExp")
def evaluate_if_exp(reader: Reader, node):
    test = truth_value(reader, evaluate(reader, node.test), node.test)
    if isinstance(test, Const):
        return evaluate(reader, node.body if test.value else node.orelse)
    return choose(reader, test, lambda: evaluate(reader, node.body), lambda: evaluate(reader, node.orelse), node)


@evaluates("Lambda")
def evaluate_lambda(reader: Reader, node):
    return inner_function(reader, node)


@evaluates("NamedExpr")
def evaluate_named_expr(reader: Reader, node):
    value = evaluate(reader, node.value)
    assign(reader, node.target, value)
    reader.environment.bound_names += 1
    return value


@evaluates("Tuple")
def evaluate_tuple(reader: Reader, node):
    return Struct("tuple", elements(reader, node))


@evaluates("List")
def evaluate_list(reader: Reader, node):
    items = elements(reader, node)
    if len(items) == len(node.elts):
        for item, e in zip(items, node.elts):
            if isinstance(item, Struct):
                item.alone = isinstance(e, WRITTEN_OUT)
    return Struct("list", items)


def elements(reader: Reader, node):
    with pending_values(reader, []) as items:
        for e in node.elts:
            items += [evaluate(reader, e)] if not isinstance(e, gast.Starred) else elements_of(
                reader, consumed_at_once(reader, evaluate(reader, e.value)), e, fixed=True)
    return items


@evaluates("Dict")
def evaluate_dict(reader: Reader, node):
    with pending_values(reader, [Struct("dict", [])]) as held:
        for k, v in zip(node.keys, node.values):
            if k is None:
                other = settle(reader, evaluate(reader, v))
                if not isinstance(other, Struct) or other.kind != "dict":
                    fail(reader, LanguageError, f"** needs a dictionary, {spelled_value(reader, other)} is given", v)
                pairs = list(zip(other.keys, other.items))
            else:
                pairs = [(hashed(reader, evaluate(reader, k), k), evaluate(reader, v))]
            put_all(held[0], pairs)
        return held[0]
