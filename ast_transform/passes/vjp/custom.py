# SPDX-License-Identifier: Apache-2.0
"""Reverse mode of functions with custom derivatives (gs.custom_vjp, gs.custom_jvp).

Checks that the adjoints that the user's rule returns fit the arguments: the same keys in any order, the same shapes.
"""
from typing import TYPE_CHECKING

import numpy as np

from gradscribe.ast_transform.core.form import USER, Const, Function, Let, Pack, Param, Var, replaced, substituted
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.symbolic import is_array, is_zero, pair_of, without_zeros, zero_of
from gradscribe.ast_transform.passes.vjp.expansion import expanded, unbroadcast_adjoint, zero_adjoint
from gradscribe.ast_transform.reader.derivatives import (
    enter,
    leaves_by_rule,
    may_fit,
    refilled,
    result_operand,
    to_value,
)
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.registered import as_children
from gradscribe.ast_transform.reader.values import Struct, with_keys
from gradscribe.ast_transform.source.diagnose import KindError

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.sweep import Sweep


def own_rule(sweep: "Sweep", step: Let, dys: list) -> None:
    mark = step.value.function
    if mark.rule.mode == "jvp":
        dy: list = [zero_adjoint(sweep, t) if d is None else expanded(sweep, d, t) for d, t in zip(dys, step.targets)]
        return transposed_rule(sweep, step, mark, dy)
    absent = zero_of if mark.rule.symbolic_zeros else lambda reader, t: zero_adjoint(sweep, t)
    dy = [absent(sweep.reader, t) if d is None else expanded(sweep, d, t) for d, t in zip(dys, step.targets)]
    value = to_value(sweep.reader, refilled(mark.callee.custom.like, iter(dy)))
    fixed = [mark.args[k] for k in mark.rule.nondiff_argnums]
    found = as_children(sweep.reader, enter(sweep.reader, mark.rule.bwd, [*fixed, mark.residuals, value], {}))
    wanted = [a for k, a in enumerate(mark.args) if k not in mark.rule.nondiff_argnums]
    if not isinstance(found, Struct) or len(found.items) != len(wanted):
        adjoints = f"{len(wanted)} adjoint{'s' * (len(wanted) != 1)}"
        raise KindError(f"the backward half of {mark.rule.__name__} must return a tuple of {adjoints}", step.origin,
                        "One for each argument, None for zero.")
    for argument, part in zip(wanted, found.items):
        add_tree(sweep, argument, part, mark.rule.__name__, step.origin)


def add_tree(sweep, argument, part, label, origin):
    """Adds an adjoint from a user's rule: None is zero, a container must have the structure of the argument."""
    part = settle(sweep.reader, part)
    if is_zero(part) or isinstance(part, Const) and part.value is None:
        return
    if isinstance(argument, Struct):
        same = isinstance(part, Struct) and len(part.items) == len(argument.items) and \
            set(part.keys) == set(argument.keys)
        if not same:
            raise KindError(f"the backward half of {label} gives "
                            f"{with_keys(part, spelled_value(sweep.reader, part))} as the adjoint of "
                            f"{with_keys(argument, spelled_value(sweep.reader, argument))}", origin,
                            "Give it the structure of the argument.")
        for k, a in enumerate(argument.items):
            at = part.keys.index(argument.keys[k]) if argument.keys else k
            add_tree(sweep, a, part.items[at], label, origin)
    elif isinstance(argument, Var) and argument in sweep.active:
        whole = argument.fact.dims
        if not isinstance(fact_of(part), Array) or not may_fit(part, argument):
            raise KindError(f"the backward half of {label} gives {spelled_value(sweep.reader, part)} as the adjoint of "
                            f"{spelled_value(sweep.reader, argument)}", origin, "Give it the shape of the argument.")
        sweep.add(argument, unbroadcast_adjoint(sweep, part, whole, argument, ()))


def transposed_rule(sweep, step, mark, dy):
    """Reverse mode of a custom rule for forward mode: transposes it, as it is linear in the tangents."""
    from_args = [a for k, a in enumerate(mark.args) if k not in mark.rule.nondiff_argnums]
    fixed = [mark.args[k] for k in mark.rule.nondiff_argnums]
    given, dots = [], []            # an operand that is given twice has a tangent for each place
    def dot_of(value):
        if isinstance(value, Struct):
            return Struct(value.kind, [dot_of(settle(sweep.reader, i)) for i in value.items], value.keys, value.cls)
        if isinstance(value, Var) and value in sweep.active:
            given.append(value)
            dots.append(Var(f"{value.hint}_dot", sweep.whole_fact(value), USER))
            return dots[-1]
        if mark.rule.symbolic_zeros and is_array(value):
            return zero_of(sweep.reader, value)
        fact = fact_of(value) if is_array(value) else None
        shown = fact is not None and fact.kind in "fc" and (isinstance(value, Var) or fact.dims)
        return sweep.build.apply(np.zeros_like, value) if shown else Const(0.0)

    outer, sweep.build.block = sweep.build.block, []
    tangents = Struct("tuple", [dot_of(a) for a in from_args])
    y_dot = pair_of(sweep.reader, mark.callee, [*fixed, Struct("tuple", from_args), tangents], step)[1]
    y_dot = result_operand(sweep.reader, without_zeros(sweep.reader, y_dot))
    y_dot = Pack("tuple", tuple(leaves_by_rule(mark.callee, y_dot, "the rule", step.origin)))
    body, sweep.build.block = sweep.build.block, outer
    function = Function(sweep.label, [Param(v.hint, v) for v in dots], body, y_dot)
    inner = sweep.engine.again()
    inner.many = inner.linear = True
    origin = sweep.build.origin
    made = inner.run(function, dots, Pack("tuple", tuple(dy)))
    sweep.build.block, sweep.build.origin = outer, origin
    zeros = {v: sweep.build.apply(np.zeros_like, k) if k.fact.dims else Const(0.0) for k, v in zip(given, dots)}
    outer += replaced(made.body, zeros)
    for argument, part in zip(given, made.result.items):
        sweep.add(argument, substituted(part, zeros))
