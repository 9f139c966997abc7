# SPDX-License-Identifier: Apache-2.0
"""Taylor mode: each statement is followed by the higher derivatives of its values along a curve.

The arguments are functions of a number t, given by their derivatives of the orders 1 to K at one point.  The results
get theirs.  `series.py` says how an operation passes them on; here they go through branches and loops, which carry K
coefficients beside each value.

>>> from gradscribe.ast_transform.examples import show, taylor
>>> print(show(taylor("def f(x): return np.exp(x) * x", 2.0, order=2)))
jet_f(x, x_d1, x_d2):
    exp_x = np.exp(x)
    exp_x_d1 = x_d1 * exp_x
    t = x_d2 * exp_x
    t_1 = x_d1 * exp_x_d1
    exp_x_d2 = t + t_1
    t_2 = exp_x * x
    t_3 = exp_x_d1 * x
    t_4 = exp_x * x_d1
    t_d1 = t_3 + t_4
    t_5 = exp_x_d2 * x
    t_6 = exp_x_d1 * x_d1
    t_7 = 2 * t_6
    t_8 = exp_x * x_d2
    t_9 = t_5 + t_7
    t_d2 = t_9 + t_8
    return (t_2, [t_d1, t_d2])
"""
from typing import Any

import numpy as np

from gradscribe.ast_transform.analysis.dtypes import of_several_dtypes
from gradscribe.ast_transform.core.form import (
    TANGENT,
    TEMPORARY,
    Carry,
    Const,
    For,
    Function,
    If,
    Join,
    Let,
    Pack,
    Param,
    Var,
    While,
    copied,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence, Stack
from gradscribe.ast_transform.passes.activity import active_values, begun_with, passes_on
from gradscribe.ast_transform.passes.callees import has_custom_rule, without_calls
from gradscribe.ast_transform.passes.check import check_results
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.recurrences import Recurrences, Unordered
from gradscribe.ast_transform.passes.reparametrise import reparametrised
from gradscribe.ast_transform.passes.series import Series
from gradscribe.ast_transform.passes.simplify import merge_common
from gradscribe.ast_transform.passes.tangents import expanded, in_its_dtype, zero_tangent


class Taylor:
    """One application of Taylor mode to a function in normal form."""

    def __init__(self, reader, label: str, order: int, scaled: bool = False) -> None:
        self.reader, self.build, self.label = reader, reader.build, label
        self.series = Series(reader, label, order, scaled, self.block)

    def run(self, function: Function, wrt: list) -> Function:
        """The function that also returns the coefficients of its result; `wrt`: the parameters that have some."""
        params = self.parameters(function, wrt)
        body, result = self.begun(function)
        out = self.build.block = []
        self.block(body)
        self.build.origin = None
        whole = Pack("tuple", (result, self.of_result(result)))
        return Function(self.label, [*function.params, *params], out, whole, function.about, dict(function.notes))

    def solution(self, function: Function, state: Var, time: Var) -> Function:
        """The function that returns the coefficients of the solution of state' = function(state, time, ...).

        The coefficient k of the right side is k + 1 times the coefficient k + 1 of the state: `recurrences.py`.  What
        that does not take, lists and functions with custom rules, has K passes over all K coefficients, which start
        with zeros; each pass makes one more exact.
        """
        series = self.series
        series.orders[0].tangent[time] = Const(1.0)
        for forward in series.orders:
            forward.tangent[state] = Const(0.0)         # active, and not known yet
        body, result = self.begun(function)
        known = dict(self.build.made)
        try:
            out = self.build.block = []
            found = Recurrences(self.reader, self.label, len(series.orders), series.active)
            terms = found.run(body, result, state, time)
        except Unordered:
            out, self.build.made = [], known
            self.build.block = out
            self.by_passes(body, state, result)
            terms = self.build.apply(np.stack, Pack("list", tuple(forward.of(state) for forward in series.orders)))
        self.build.origin = None
        return Function(self.label, function.params, out, terms, function.about, dict(function.notes))

    def by_passes(self, body: list, state: Var, rate: Var) -> None:
        """The coefficients of a solution, by passes over all of them."""
        series, outer = self.series, self.build.block
        inits = [expanded(forward.build, Const(0.0), state) for forward in series.orders]
        for k, forward in enumerate(series.orders, 1):
            forward.tangent[state] = Var(f"{state.hint}_d{k}", forward.dot_fact(state), TANGENT)
        before, terms = series.entered(), [forward.tangent[state] for forward in series.orders]
        inner: list = []
        self.build.block = inner
        self.block(body)
        self.build.block, nexts = inner, []
        for k, forward in enumerate(series.orders, 1):
            found = series.raised(series.coefficient(rate, k - 1), k)
            whole = expanded(forward.build, Const(0.0) if found is None else found, state)
            nexts.append(in_its_dtype(forward.build, whole, forward.dot_fact(state)))
        self.build.block = outer
        series.left(before)
        carries = [Carry(term, init, following, term.like()) for term, init, following in zip(terms, inits, nexts)]
        outer.append(For(Var("i", Array(int)), Const(len(terms)), (), carries, inner, self.build.origin))
        for forward, c in zip(series.orders, carries):
            forward.tangent[state] = c.outer

    def begun(self, function: Function) -> tuple[list, Any]:
        """(body, result) of a function, ready for a walk: a copy without calls, whose active values are known."""
        series = self.series
        env: dict[Var, Any] = {}
        body = without_calls(copied(function.body, env), ("each", "vmap"))
        body, same = merge_common(body)
        result = substituted(substituted(function.result, env), same)
        begun = list(dict.fromkeys(v for forward in series.orders for v in forward.tangent))
        body = reparametrised(self.reader, body, active_values(body, begun))
        active, unset = active_values(body, begun), unset_values(body)
        series.orders[0].function = function
        series.active = active | begun_with(body, active, {v for v in unset if series.orders[0].needs_its_place(v)})
        dtypes = of_several_dtypes(body)
        for forward in series.orders:
            forward.function, forward.active, forward.unset = function, series.active, unset
            forward.dtype_by_path = dtypes
        self.build.made.update({t: s.value for s in walk(body) if isinstance(s, Let) for t in s.targets})
        return body, result

    def parameters(self, function: Function, wrt: list) -> list[Param]:
        """A parameter for each coefficient of each argument that has some."""
        taken, made = {p.name for p in function.params}, []
        for p in function.params:
            if p.value not in wrt:
                continue
            for k, forward in enumerate(self.series.orders, 1):
                name = f"{p.name}_d{k}"
                while name in taken:
                    name += "_"
                taken.add(name)
                forward.tangent[p.value] = Var(f"{p.name}_d{k}", forward.dot_fact(p.value), TANGENT)
                made.append(Param(name, forward.tangent[p.value]))
        return made

    def of_result(self, result: Any) -> Pack:
        """For each array in the result, a list of its coefficients."""
        if isinstance(result, Pack) and result.kind != "grown":
            return Pack(result.kind, tuple(map(self.of_result, result.items)), result.keys, result.cls)
        terms = [forward.as_its_value(forward.of(result), result) for forward in self.series.orders]
        for term in terms:
            check_results([term], [result], "Taylor mode")
        return Pack("list", tuple(terms))

    # statements

    def block(self, body: list) -> None:
        for step in body:
            with self.build.made_for(step, None if step.origin is None else step.origin.made_by(2)):
                if isinstance(step, Let):
                    self.let(step)
                elif isinstance(step, If):
                    self.branch(step)
                elif isinstance(step, (For, While)):
                    self.loop(step)
                else:
                    self.build.block.append(step)

    def let(self, step: Let) -> None:
        series, value = self.series, step.value
        reached = passes_on(value, series.active) and any(t in series.active for t in step.targets)
        if has_custom_rule(step) and reached:
            values = series.own_equation(step)[0]
            self.build.block += [Let((t,), y, step.origin) for t, y in zip(step.targets, values)]
        else:
            self.build.block.append(step)
        series.remember(step)
        if reached:
            for k in range(1, len(series.orders) + 1):
                series.set_coefficient(step, k)

    def branch(self, step: If) -> None:
        series, arms = self.series, []
        joined = [j for j in step.joins if j.var in series.active]
        for arm, side in ((step.then, "then"), (step.orelse, "orelse")):
            before, outer = series.entered(), self.build.block
            block: list = []
            self.build.block = block
            self.block(arm)
            self.build.block = block
            arms.append((block, [[f.handed(f.side(getattr(j, side), j.var), getattr(j, side), j.var)
                                  for f in series.orders] for j in joined]))
            self.build.block = outer
            series.left(before)
        joins = list(step.joins)
        for j, then, orelse in zip(joined, arms[0][1], arms[1][1]):
            for k, (forward, a, b) in enumerate(zip(series.orders, then, orelse), 1):
                dot = Var(f"{j.var.hint}_d{k}", forward.dot_fact(j.var), kind_of(j.var))
                joins.append(Join(dot, a, b))
                forward.tangent[j.var] = dot
        self.build.block.append(If(step.test, arms[0][0], arms[1][0], joins, step.origin))

    def loop(self, step: For | While) -> None:
        series, carried, items = self.series, [], []
        active = [c for c in step.carries if c.inner in series.active]
        inits = [[f.handed(f.side(c.init, c.outer), c.init, c.inner) for f in series.orders] for c in active]
        if isinstance(step, For):
            items = [(v, source, f, self.held(f, source)) for v, source in step.items if v in series.active and
                     isinstance(source, Var) for f in series.orders if source in f.tangent]
        before, outer, more = series.entered(), self.build.block, []
        for c, of_c in zip(active, inits):
            for k, (forward, init) in enumerate(zip(series.orders, of_c), 1):
                dot = forward.tangent[c.inner] = Var(f"{c.inner.hint}_d{k}", forward.dot_fact(c.inner), TANGENT)
                carried.append((c, forward, k, dot, init))
        for v, _, forward, held in items:
            fact = v.fact if isinstance(v.fact, Sequence) else forward.dot_fact(v)
            dot = forward.tangent[v] = Var(f"{v.hint}_d{series.orders.index(forward) + 1}", fact, kind_of(v))
            more.append((dot, held))
        body: list = []
        self.build.block = body
        self.block(step.body)
        self.build.block = body
        nexts = [self.handed_on(c, forward) for c, forward, *_ in carried]
        self.build.block = outer
        series.left(before)
        carries = list(step.carries)
        for (c, forward, k, dot, init), following in zip(carried, nexts):
            end = forward.tangent[c.outer] = Var(f"{c.outer.hint}_d{k}", forward.dot_fact(c.outer), TANGENT)
            carries.append(Carry(dot, init, following, end))
        if isinstance(step, For):
            outer.append(For(step.index, step.count, (*step.items, *more), carries, body, step.origin, step.reverse,
                             step.policy))
        else:
            outer.append(While(carries, step.head, step.test, body, step.origin, step.policy))

    def held(self, forward, source: Var) -> Var:
        """The coefficients of what a loop iterates over."""
        held = forward.tangent[source]
        held = expanded(forward.build, held, source) if isinstance(source.fact, Array) else held
        return held if isinstance(held, Var) else self.build.let(f"{source.hint}_dot", held, source.fact, TANGENT)

    @staticmethod
    def handed_on(c: Carry, forward) -> Any:
        """The coefficient that a pass of a loop hands to the next one."""
        unset = isinstance(c.next, Var) and c.next not in forward.tangent and isinstance(c.next.fact, Stack)
        found = zero_tangent(forward.build, c.next) if unset else forward.side(c.next, c.inner)
        if isinstance(found, Const) and isinstance(c.inner.fact, Array) and c.inner.fact.dims:
            found = expanded(forward.build, found, c.inner)
        return forward.handed(found, c.next, c.inner)


def kind_of(var: Var) -> int:
    """The kind of the variables for the coefficients of a value."""
    return TANGENT if var.kind != TEMPORARY else TEMPORARY
