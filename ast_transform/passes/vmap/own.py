# SPDX-License-Identifier: Apache-2.0
"""Functions with a custom batching rule (gs.custom_vmap).

The rule is inlined in place of the call, with the whole batch: rule(axis_size, in_batched, *args) -> (values,
out_batched), where in_batched and out_batched say which values differ between the examples.  The tangent of such a
function has a batching rule, too: the tangent of the rule.
"""
from functools import partial
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Let, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.state import Batch
from gradscribe.ast_transform.passes.vmap.varies import differs
from gradscribe.ast_transform.reader.calls import rule_call
from gradscribe.ast_transform.reader.closures import substituted_value
from gradscribe.ast_transform.reader.derivatives import enter, leaves_by_rule, result_operand
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError


def by_own_rule(batch: Batch, step: Let, value: Any) -> None:
    """Batches the call of a function with a batching rule."""
    masks = [batch.mask(a) for a in value.args]
    made, flags = rule_read(batch, step, value.function, list(map(batch.op, value.args)), masks)
    for target, node, flag in zip(step.targets, made, flags):
        if is_none(node):
            batch.new[target] = node
            continue
        fact, label = fact_of(node), value.function.label
        rank = target.fact.rank + flag if isinstance(target.fact, Array) else None
        if not isinstance(fact, Array) or fact.rank != rank:
            raise KindError(f"the batch rule of {label} gives {spelled_value(batch.reader, node)} as "
                            f"{'the batch of ' * flag}{spelled_value(batch.reader, target)}", step.origin,
                            "Examples lie along axis 0 of what out_batched says is batched.")
        if flag:
            batch.define(target, node)
            continue
        batch.new[target] = node if not batch.differs(target) else batch.repeated(node, target.fact)
        batch.scope.append(batch.new[target])


def masks_by_own_rule(batch: Batch, step: Let, value: Any, masks: list) -> list:
    """The masks of the results of such a call, as the rule says; reads the rule for this alone."""
    build = batch.build
    before = build.block, build.origin, batch.count
    build.block, build.origin = [], step.origin
    try:
        args = [Var(a.hint, Array(np.dtype(a.fact.dtype), (batch.length, *a.fact.dims)), a.kind)
                if isinstance(a, Var) and differs(m) else a for a, m in zip(value.args, masks)]
        batch.count = build.length(next(a for a, m in zip(args, masks) if differs(m)), 0)
        return rule_read(batch, step, value.function, args, masks)[1]
    finally:
        build.block, build.origin, batch.count = before


def rule_read(batch, step, callee, args, masks):
    """(operands, whether they are batched) of the leaves of the result, by the rule."""
    env = dict(zip([p.value for p in callee.params], args))
    batched = {p.value for p, m in zip(callee.params, masks) if differs(m)}
    if batched & callee.custom.fixed:
        raise LanguageError(f"{callee.label} has a custom batching rule, and a function that is given to it reads "
                            "a value that differs between the examples", step.origin, "Make it an argument.")

    def flagged(value):
        if isinstance(value, Struct):
            return Struct(value.kind, map(flagged, value.items), value.keys, value.cls)
        return value if is_none(value) else Const(value in batched)
    reader = batch.reader
    given = [batch.count, Struct("list", list(map(flagged, callee.custom.tree))),
             *(substituted_value(v, env) for v in callee.custom.tree)]
    made, flags = values_and_flags(reader, callee.custom.rule.vmap_rule, callee.label, given, step.origin)
    flags = leaves_by_rule(callee, result_operand(reader, flags), "out_batched of the batch rule", step.origin, False)
    made = leaves_by_rule(callee, result_operand(reader, made), "the batch rule", step.origin, False)
    flags = [Const(False) if is_none(f) and is_none(m) else f for f, m in zip(flags, made)]
    if not all(isinstance(f, Const) and isinstance(f.value, bool) for f in flags):
        raise KindError(f"out_batched of the batch rule of {callee.label} must be True or False for each result",
                        step.origin, "Write literals, or make it of in_batched.")
    return made, [f.value for f in flags]


def is_none(value):
    return isinstance(value, Const) and value.value is None


def values_and_flags(reader, rule, label, given, origin):
    pair = settle(reader, enter(reader, rule, given, {}))
    if not isinstance(pair, Struct) or pair.kind not in ("tuple", "list") or len(pair.items) != 2:
        raise KindError(
            f"the batch rule of {label} must return a pair, (values, out_batched); it returns "
            f"{spelled_value(reader, pair)}",
            origin,
            "Say of each result whether it is batched: return ys, True.",
        )
    return map(partial(settle, reader), pair.items)


class TangentRule:
    """The batching rule of the tangent of a function with one: returns ((value, tangent), out_batched).

    Arguments that are batched in both the primal and the tangent go to the rule as batched.  If some are batched in
    only one, both are batched if any argument is batched in both; otherwise the rule's tangent is mapped with vmap.
    """

    mode = "vmap"

    def __init__(self, rule):
        self.rule, self.vmap_rule, self.__name__ = rule, self, f"jvp_{rule.__name__}"

    def normal_form_(self, reader, args, words, node):
        count, flags, primals, tangents = args
        own, dots = map(partial(settle, reader), flags.items)
        mutual = _both(own, dots, lambda a, b: a and b)
        extra = [_both(own, dots, choose) for choose in (lambda a, b: a and not b, lambda a, b: b and not a)]
        if _any(mutual) and any(map(_any, extra)):
            either = _both(own, dots, lambda a, b: a or b)
            primals, tangents = (_spread(reader, count, v, f, either) for v, f in ((primals, own), (tangents, dots)))
            mutual, extra = either, [_both(own, own, lambda a, b: False)] * 2
        rule = _OfExamples(self.rule.vmap_rule, self.rule.__name__, count, mutual)
        axes = [_axis(f) for tree in extra for f in tree.items] if any(map(_any, extra)) else None
        pair, mapped = reader.engine.tangent_over(reader, rule, [*primals.items, *tangents.items], axes)
        mapped = iter(mapped)
        told = [_each(rule.flags, lambda f: Const(f.value | next(mapped))) for _ in range(2)]
        return Struct("tuple", [pair, Struct("tuple", told)])


class _OfExamples:
    """The rule as a function of the arguments alone; `flags`: the out_batched that it has returned."""

    def __init__(self, rule, name, count, in_batched):
        self.rule, self.__name__, self.count, self.in_batched, self.flags = rule, name, count, in_batched, None

    def parameter_names(self, count):
        return [f"x_{k}" for k in range(count)]

    def normal_form_(self, reader, args, words, node):
        given = [self.count, Struct("list", self.in_batched.items), *args]
        made, flags = values_and_flags(reader, self.rule, self.__name__, given, reader.build.origin)
        self.flags = flags
        return made


def _each(value, change):
    if isinstance(value, Struct):
        return Struct(value.kind, [_each(i, change) for i in value.items], value.keys, value.cls)
    return value if value.value is None else change(value)


def _both(a, b, choose):
    if isinstance(a, Struct):
        return Struct(a.kind, [_both(x, y, choose) for x, y in zip(a.items, b.items)], a.keys, a.cls)
    return a if a.value is None else Const(choose(a.value, b.value))


def _any(value):
    return any(map(_any, value.items)) if isinstance(value, Struct) else bool(value.value)


def _axis(flags):
    """in_axes of an argument."""
    if not isinstance(flags, Struct):
        return 0 if flags.value else None
    items = list(map(_axis, flags.items))
    return items if flags.kind == "list" else tuple(items) if flags.kind == "tuple" else dict(
        zip(flags.keys, items)) if flags.kind == "dict" else flags.cls(*items)


def _spread(reader, count, value, have, want):
    """A value repeated along a batch axis wherever `want` says so and `have` does not."""
    value = settle(reader, value)
    if isinstance(value, Struct):
        return Struct(value.kind, [_spread(reader, count, *each) for each in zip(value.items, have.items, want.items)],
                      value.keys, value.cls)
    if not isinstance(want, Const) or not want.value or have.value:
        return value
    if isinstance(value, Const) and type(value.value) is float and value.value == 0.0:
        return value                    # a zero tangent, which gets the shape of its primal later
    lengths = [reader.build.length(value, k) for k in range(fact_of(value).rank)]
    return rule_call(reader, np.broadcast_to, [value, Struct("tuple", [count, *lengths])], {}, None)
