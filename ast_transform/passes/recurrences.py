# SPDX-License-Identifier: Apache-2.0
"""The Taylor coefficients of the solution of y' = f(y, t), by loops over the orders.

The coefficients of a value x are the rows of an array x_series, and x is its row 0.  The statements of f run first.  A
loop over k then computes row k of each value from rows that are there:

    linear operations    row k of the operands
    products a b         the sum over j of row j of a times row k - j of b
    quotients y = a / b  row k of a, without the terms of y b that have a row of b above 0, divided by b
    others, y' = g x'    the sum over j of row j of x' times row k - 1 - j of g, divided by k

Row k of f(y, t), divided by k + 1, is row k + 1 of y.  So the length of the source does not depend on the order.

A rule that has no partial derivative writes y' as operations on x'.  They are linear in x', whose row k - 1 is k times
row k of x, and the pass k computes their row k - 1: they are `late`.

A function without branches and loops is one such loop.  Otherwise each run of statements between branches and loops has
one of its own, the arrays go through branches and loops, and pass p over the whole function makes row p + 1 of y.

Sources: A. Jorba, M. Zou, A software package for the numerical integration of ODEs by means of high-order Taylor
methods, Experimental Mathematics 14 (2005), section 2.1; A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition,
SIAM 2008, section 13.2.
"""
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import (
    TANGENT,
    UNDEFINED,
    Apply,
    Carry,
    Const,
    Effect,
    For,
    If,
    Join,
    Let,
    Pack,
    Var,
    While,
    operands,
    placed,
    rebuilt,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, unknown
from gradscribe.ast_transform.core.operations import put, run_length
from gradscribe.ast_transform.core.rule import Rule
from gradscribe.ast_transform.passes.activity import passes_on
from gradscribe.ast_transform.passes.callees import has_custom_rule
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.jvp import Forward, operation_of
from gradscribe.ast_transform.passes.series import (
    by_equation,
    derivative_in_time,
    in_place,
    is_by_rule,
    is_product,
    own_derivative_in_time,
)
from gradscribe.ast_transform.passes.simplify import key_of
from gradscribe.ast_transform.passes.tangents import expanded, in_its_dtype
from gradscribe.ast_transform.passes.words import is_plain, word
from gradscribe.ast_transform.reader.inlining import inline_part
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.reader.values import Struct


class Unordered(Exception):
    """The coefficients of these statements are not computed as rows of arrays."""


def convolved(a, b, end):
    """The last of `end` rows of a product."""
    return np.sum(a[:end] * b[:end][::-1], axis=0)


def convolved_rest(a, b, k, end):
    """Row k = end - 1 of a product, without the term that has row k of b."""
    return np.sum(a[1:end] * b[:k][::-1], axis=0)


class Recurrences:
    """The coefficients of one solution.

    members: values that have coefficients; visible: values that are there before the loop that is made; stacks: {value:
    the array of its coefficients, as far as they are known}; same: {value: the one that is used in its place}; known:
    {operation: its value}; end: how many rows are computed; group: the run of statements whose loop is being made;
    rows: forward mode at the rows k and k - 1 of that loop
    """

    def __init__(self, reader: Any, label: str, order: int, active: set[Var]) -> None:
        self.reader, self.build, self.order, self.active = reader, reader.build, order, active
        self.members: set[Var] = set()
        self.visible: list[Var] = []
        self.stacks: dict[Var, Any] = {}
        self.same: dict[Var, Any] = {}
        self.known: dict[Any, Var] = {}
        self.end: Any = Const(order)
        self.rows = (Forward(reader, label), Forward(reader, label))
        for forward in self.rows:
            forward.active = self.members
        self.group = Group([])

    def run(self, body: list, result: Any, state: Var, time: Var) -> Var:
        """The coefficients 1, ..., order of the solution as rows of an array; its statements join the block."""
        self.members |= {state, time}
        self.visible += [state, time]
        self.stacks[time] = self.with_rows(time, *(time, Const(1.0))[:self.order])
        if all(isinstance(step, (Let, Effect)) for step in body):
            found = self.by_turns(body, result, state)
        else:
            found = self.by_passes(body, result, state)
        return self.build.item(found, Const(slice(1, None)), f"{state.hint}_series", TANGENT)

    def by_turns(self, body: list, result: Any, state: Var) -> Var:
        """The coefficients of a solution, each after those of lower order."""
        self.begun(body)
        rate = substituted(result, self.same)
        rows = self.with_rows(state, state, expanded(self.build, rate, state), count=self.order + 1)
        if rate not in self.members or self.order == 1:
            return rows
        self.group.given[state] = rows

        def advance():
            following = self.after(0)
            self.rows[0].tangent[state] = self.build.divide(self.row_of(rate, 0), following)
            self.kept(state, 0, following)
        self.group.passes.append(advance)
        self.ended()
        return self.stacks[state]

    def by_passes(self, body: list, result: Any, state: Var) -> Var:
        """The coefficients of a solution, by passes over the whole function, each of which knows one row more."""
        outer = self.build.block
        rows = self.with_rows(state, state, count=self.order + 1)
        inner, last = (Var(rows.hint, rows.fact, TANGENT) for _ in range(2))
        p = Var("p", Array(int))
        self.stacks[state] = inner
        block: list = []
        self.build.block = block
        self.end = following = self.build.apply(operator.add, p, Const(1))
        self.block(body)
        rate = self.handed(substituted(result, self.same), state)
        row = self.build.divide(self.build.item(rate, p, f"{state.hint}_rate", TANGENT), following)
        row = in_its_dtype(self.build, row, self.rows[0].dot_fact(state))
        found = self.build.apply(put, inner, following, row, hint=rows.hint, fact=rows.fact, kind=TANGENT)
        self.build.block = outer
        outer.append(For(p, Const(self.order), (), [Carry(inner, rows, found, last)], block, self.build.origin))
        return last

    # statements

    def block(self, body: list) -> None:
        """Adds the statements of a block with their coefficients."""
        run: list = []
        for step in body:
            if isinstance(step, (Let, Effect)):
                run.append(step)
                continue
            self.begun(run)
            self.ended()
            run = []
            step = rebuilt(step, self.same, list)
            origin, self.build.origin = self.build.origin, step.origin
            if isinstance(step, If):
                self.branch(step)
            else:
                self.loop(step)
            self.build.origin = origin
        self.begun(run)
        self.ended()

    def inside(self, body: list) -> list:
        """The statements of an inner block; `self.stacks` is what it is at its end."""
        outer, known, visible = self.build.block, dict(self.known), list(self.visible)
        block: list = []
        self.build.block = block
        self.block(body)
        self.build.block, self.known, self.visible = outer, known, visible
        return block

    def branch(self, step: If) -> None:
        joined = [j for j in step.joins if j.var in self.active]
        before, visible, arms = dict(self.stacks), list(self.visible), []
        for arm, side in ((step.then, "then"), (step.orelse, "orelse")):
            block, outer = self.inside(arm), self.build.block
            self.build.block = block
            arms.append((block, [self.handed(substituted(getattr(j, side), self.same), j.var) for j in joined]))
            self.build.block, self.stacks, self.visible = outer, dict(before), list(visible)
        joins = [Join(j.var, substituted(j.then, self.same), substituted(j.orelse, self.same)) for j in step.joins]
        for j, then, orelse in zip(joined, arms[0][1], arms[1][1]):
            joins.append(Join(self.new_stack(j.var), then, orelse))
        self.build.block.append(If(step.test, arms[0][0], arms[1][0], joins, step.origin))

    def loop(self, step: For | While) -> None:
        active = [c for c in step.carries if c.inner in self.active]
        inits = [self.handed(c.init, c.outer) for c in active]
        before, visible = dict(self.stacks), list(self.visible)
        inner = [self.new_stack(c.inner) for c in active]
        outer = self.build.block
        block: list = []
        self.build.block = block
        if isinstance(step, For):
            for v, source in step.items:
                if source in self.members and v.fact.differentiable:
                    index = Pack("tuple", (Const(slice(None)), step.index))
                    self.new_stack(v, self.build.item(self.stacks[source], index, self.name(v), TANGENT))
        block += self.inside(step.body)
        self.build.block = block
        nexts = [self.handed(substituted(c.next, self.same), c.inner) for c in active]
        self.build.block, self.stacks, self.visible = outer, before, visible
        carries = [Carry(c.inner, c.init, substituted(c.next, self.same), c.outer) for c in step.carries]
        carries += [Carry(stack, init, following, self.new_stack(c.outer))
                    for c, stack, init, following in zip(active, inner, inits, nexts)]
        if isinstance(step, For):
            outer.append(For(step.index, step.count, step.items, carries, block, step.origin, step.reverse, step.policy,
                             step.note))
        else:
            outer.append(While(carries, step.head, step.test, block, step.origin, step.policy))

    def new_stack(self, v: Var, stack: Var | None = None) -> Var:
        """The coefficients of a value that a branch or a loop makes."""
        if not is_plain_array(v):
            raise Unordered
        self.members.add(v)
        self.visible.append(v)
        self.stacks[v] = Var(self.name(v), self.fact(v), TANGENT) if stack is None else stack
        return self.stacks[v]

    def handed(self, node: Any, like: Var) -> Any:
        """The coefficients of what becomes the value `like`."""
        if not is_plain_array(like):
            raise Unordered
        if node not in self.stacks:
            return self.with_rows(like, *(() if node is UNDEFINED else (node,)))
        stack, fact = self.stacks[node], self.fact(like)
        if stack.fact.rank != fact.rank:
            raise Unordered
        return in_its_dtype(self.build, stack, fact)

    # groups

    def begun(self, steps: list) -> None:
        """Adds a run of statements, and plans what computes their rows."""
        self.group = Group(self.build.block)
        for forward in self.rows:
            forward.tangent = {}
        for step in steps:
            if isinstance(step, Effect):
                self.build.block.append(rebuilt(step, self.same, list))
                continue
            step = rebuilt(step, self.same, list)
            if has_custom_rule(step) and passes_on(step.value, self.members):
                self.by_own_rule(step)
            else:
                self.added(step, self.same)
            while self.group.waiting:
                inner, depth = self.group.waiting.pop(0)
                self.group.depth = depth + 1
                self.planned(inner)
            self.group.depth = 0

    def added(self, step: Let, same: dict[Var, Any]) -> None:
        """Adds a statement before the loop; a value that is there already is not computed again."""
        key = key_of(step.value) if len(step.targets) == 1 else None
        if key in self.known:
            same[step.targets[0]] = self.known[key]
            return
        if key is not None:
            self.known[key] = step.targets[0]
        self.group.before.append(step)
        self.build.made.update(dict.fromkeys(step.targets, step.value))
        self.visible += [t for t in step.targets if isinstance(t.fact, Array)]
        if passes_on(step.value, self.members) and self.group.depth <= max(0, self.order - 2):
            if has_custom_rule(step):
                raise Unordered
            self.joined(step)
            self.group.waiting.append((step, self.group.depth))

    def planned(self, step: Let, late: int = 0) -> None:
        """Adds to a pass what computes the row of a statement, after that of all values that it reads."""
        if is_by_rule(step):
            forward = self.rows[late]
            rule, bound, y = forward.checked(step)
            if by_equation(rule) and (rule.kind == "elementwise" or not late):
                found = self.group.equations[id(step)] = derivative_in_time(forward, step, rule, bound, y, self)
                if rule.kind == "elementwise" and not late:
                    for x, _ in found:
                        self.rate(x)
        self.group.passes.append(partial(self.row, step, late))

    def by_own_rule(self, step: Let) -> None:
        """Adds the values that a custom rule gives, and to a pass what computes their rows from their derivatives."""
        self.group.own_call = step
        values, rates = own_derivative_in_time(self.rows[0], step, self)
        self.group.own_call = None
        if self.group.late.intersection(values):
            raise Unordered
        self.group.before += [Let((t,), y, step.origin) for t, y in zip(step.targets, values) if y is not t]
        self.joined(step)

        def row():
            for t, rate in zip(step.targets, rates):
                found = self.from_late(rate)
                if t.fact.differentiable and found is not None:
                    self.rows[0].define(t, found)
                    self.kept(t, 0)
        self.group.passes.append(row)

    def joined(self, step: Let) -> None:
        """Notes that the results of a statement have coefficients."""
        new = [t for t in step.targets if t.fact.differentiable]
        if not all(map(is_plain_array, (*new, *self.members.intersection(operands(step.value))))):
            raise Unordered
        self.members.update(new)
        self.group.own.update(new)

    def has_series(self, v: Var) -> bool:
        return v in self.members

    def rate(self, x: Var) -> Var:
        """The derivative of a value in t, whose row k - 1 is k times row k of the value."""
        if x not in self.group.rates:
            rate = self.group.rates[x] = Var(f"{self.plain_name(x)}_rate", self.rows[0].dot_fact(x), TANGENT)
            self.members.add(rate)
            self.group.own.add(rate)
            self.group.late.add(rate)

            def row():
                self.rows[1].tangent[rate] = self.build.multiply(self.group.index[0], self.row_of(x, 0))
                self.kept(rate, 1)
            self.group.passes.append(row)
        return self.group.rates[x]

    def written(self, read: Callable[[], Any], step: Let) -> Any:
        """What a part of a rule gives: operations on rates join the pass, others the statements before the loop."""
        outer, self.build.block = self.build.block, []
        try:
            result = read()
        finally:
            block, self.build.block = self.build.block, outer
        same: dict[Var, Any] = {}
        for inner in block:
            if not isinstance(inner, Let):
                raise Unordered
            inner = rebuilt(inner, same, list)
            call = self.group.own_call
            if call is not None and has_custom_rule(inner) and is_same_call(inner.value, call.value):
                self.group.before.append(Let(call.targets, inner.value, inner.origin))
                same.update(zip(inner.targets, call.targets))
            elif self.group.late.isdisjoint(operands(inner.value)):
                self.added(inner, same)
            else:
                self.build.made.update(dict.fromkeys(inner.targets, inner.value))
                self.joined(inner)
                self.group.late.update(t for t in inner.targets if t in self.members)
                self.planned(inner, 1)
        return in_place(result, same)

    def ended(self) -> None:
        """Adds the loop over the orders of the group, which leaves the coefficients of its values."""
        group, outer = self.group, self.build.block
        if not group.passes or self.end == Const(1):
            return
        k = Var("k", Array(int, (), unknown("?int")))
        body: list = []
        self.build.block = body
        group.index = [k, self.build.apply(operator.sub, k, Const(1))]
        for of_pass in group.passes:
            of_pass()
        self.build.block = outer
        carries = []
        for v, inner in group.carried.items():
            first = group.given[v] if v in group.given else self.with_rows(v, *(() if v in group.late else (v,)))
            carries.append(Carry(inner, first, self.stacks[v], Var(inner.hint, inner.fact, TANGENT)))
            self.stacks[v] = carries[-1].outer
        outer.append(self.over(k, Const(1), self.end, carries, body))

    def over(self, k: Var, start: Any, end: Any, carries: list, body: list) -> For:
        """for k in range(start, end)"""
        passes = self.build.apply(operator.sub, end, start) if isinstance(end, Const) else \
            self.build.apply(run_length, start, end, Const(1), fact=Array(int, (), unknown("?count")))
        return For(Var("i", Array(int)), passes, ((k, Apply(range, (start, end, Const(1)))),), carries, body,
                   self.build.origin)

    # arrays of coefficients

    def with_rows(self, v: Var, *rows: Any, count: int | None = None) -> Var:
        """An array for the coefficients of a value, with these as the first."""
        fact = self.fact(v, count)
        lengths = [Const(fact.dims[0].offset), *map(self.length, v.fact.dims)]
        shape = Pack("tuple", tuple(lengths)) if v.fact.dims else lengths[0]
        words = {} if np.dtype(fact.dtype) == np.float64 else {"dtype": Const(np.dtype(fact.dtype))}
        stack = self.build.apply(np.zeros, shape, hint=self.name(v), fact=fact, kind=TANGENT, **words)
        for k, row in enumerate(rows):
            row = in_its_dtype(self.build, row, self.rows[0].dot_fact(v))
            stack = self.build.apply(put, stack, Const(k), row, hint=stack.hint, fact=fact, kind=TANGENT)
        return stack

    def fact(self, v: Var, count: int | None = None) -> Array:
        """The type of the coefficients of a value."""
        return Array(self.rows[0].dot_fact(v).dtype, (Length(None, count or self.order), *v.fact.dims))

    def name(self, v: Var) -> str:
        """The name of the coefficients of a value."""
        return f"{self.plain_name(v)}_series"

    def plain_name(self, v: Var) -> str:
        """The name of a value; that of its operation if it has none."""
        return is_plain(v.hint) and word(self.build.made.get(v), None, v.hint, not v.fact.dims) or v.hint

    def length(self, d: Length) -> Any:
        """The length of an axis of a value that may not be there before the loop."""
        d = d.normal()
        if d.symbol is None:
            return Const(d.offset)
        for v in self.visible:
            for k, other in enumerate(v.fact.dims):
                if other.same(d):
                    return self.build.length(v, k)
        raise Unordered

    def stack(self, v: Var) -> Any:
        """The coefficients of a value that are known at this place of a pass."""
        if v not in self.stacks:
            fact = self.group.given[v].fact if v in self.group.given else self.fact(v)
            self.stacks[v] = self.group.carried[v] = Var(self.name(v), fact, TANGENT)
        return self.stacks[v]

    def after(self, late: int) -> Any:
        """The number of the row after the one that is computed."""
        return self.group.index[0] if late else self.build.apply(operator.add, self.group.index[0], Const(1))

    def item(self, v: Var, k: Any) -> Any:
        return self.build.item(self.stack(v), k, f"{self.plain_name(v)}_k", TANGENT)

    def row_of(self, v: Any, late: int) -> Any:
        """Row k of a value, or its row k - 1; None if it has none."""
        if v not in self.members:
            return None
        known = self.rows[late].tangent
        if v not in known:
            if v in (self.group.late if late else self.group.own):
                raise Unordered             # the pass has not computed it yet
            known[v] = self.item(v, self.group.index[late])
        return known[v]

    def kept(self, v: Var, late: int, k: Any = None) -> None:
        """Writes the row of a value into its coefficients."""
        row = expanded(self.build, self.rows[late].tangent[v], v)
        row = self.rows[late].tangent[v] = in_its_dtype(self.build, row, self.rows[late].dot_fact(v))
        if isinstance(row, Var) and row.hint == f"{v.hint}_dot":
            row.hint = f"{self.plain_name(v)}_k"
        stack = self.stack(v)
        self.stacks[v] = self.build.apply(put, stack, self.group.index[late] if k is None else k, row, hint=stack.hint,
                                          fact=stack.fact, kind=TANGENT)

    # rows

    def row(self, step: Let, late: int) -> None:
        """The rows of the results of a statement."""
        origin, self.build.origin = self.build.origin, None if step.origin is None else step.origin.made_by(2)
        forward = self.rows[late]
        for v in operands(step.value):
            self.row_of(v, late)
        if not forward.moved(step):
            self.by_rule(step, late)
        for t in step.targets:
            if t in forward.tangent:
                self.kept(t, late)
        self.build.origin = origin

    def by_rule(self, step: Let, late: int) -> None:
        """The row of an operation's results by its record."""
        forward = self.rows[late]
        rule, bound, _ = forward.checked(step)
        found = self.group.equations.get(id(step))
        step = Let(step.targets, operation_of(step), step.origin)
        if rule.kind == "linear":
            active = {a for a, _, v in placed(bound) if v in self.members}
            terms = [forward.same_call(step, bound, active, rule)]
        elif is_product(rule):
            terms = [self.product(step, rule, bound, late)]
        elif "times" in rule.parts:
            terms = [self.quotient(step, rule, bound, late)]
        elif found is None:
            raise Unordered                 # only what is linear in a rate is late
        elif rule.kind == "elementwise":
            terms = [self.from_partials(found, late)]
        else:
            terms = [self.from_late(term) for term in found]
        terms = [t for t in terms if t is not None]
        if terms and (isinstance(terms[0], Struct) or len(step.targets) > 1):
            forward.several(step, terms)
        elif terms:
            forward.define(step.targets[0], self.total(terms))

    def product(self, step: Let, rule: Rule, bound: dict[str, Any], late: int) -> Any:
        """Row k of an operation that is linear in each of some operands."""
        slots = [(a, j, v) for a, j, v in placed(bound) if a in rule.active and v in self.members]
        forward, k = self.rows[late], self.group.index[late]

        def with_these(*rows):
            new: dict[str, Any] = {}
            for (a, j, _), row in zip(slots, rows):
                old = new.get(a, bound[a])
                items = old.items if isinstance(old, Pack) else old
                new[a] = row if j is None else (*items[:j], row, *items[j + 1:])
            return forward.call_with(step, rule, bound, new)

        def terms(taken, left, k):
            """The sum of the products whose other factors have rows that add up to k."""
            v, *others = left
            if not others:
                return with_these(*taken, self.item(v, k))
            first = terms((*taken, self.item(v, Const(0))), others, k)
            return self.summed(first, k, lambda j, back: terms((*taken, self.item(v, j)), others, back))
        operand = [v for _, _, v in slots]
        if len(slots) == 1:
            return with_these(forward.whole_tangent(operand[0]))
        if len(slots) == 2 and rule.kind == "elementwise" and alike(*operand):
            return inline_part(self.reader, convolved, [*map(self.stack, operand), self.after(late)])
        return terms((), operand, k) if slots else None

    def quotient(self, step: Let, rule: Rule, bound: dict[str, Any], late: int) -> Any:
        """Row k of a result y that solves times(divisor, y) = dividend."""
        forward, k, y = self.rows[late], self.group.index[late], step.targets[0]
        names = rule.options["solves"]
        dividend, divisor = (bound[name] for name in names)
        entries = rule.kind == "elementwise"
        left = self.row_of(dividend, late) if entries else forward.whole_tangent(dividend)
        if divisor in self.members and entries and alike(divisor, y):
            rest = inline_part(self.reader, convolved_rest, [self.stack(divisor), self.stack(y), k, self.after(late)])
            left = self.build.negative(rest) if left is None else self.build.subtract(left, rest)
        elif divisor in self.members:
            def less(j, back):
                given = {**bound, names[1]: self.item(divisor, j), "y": self.item(y, back)}
                return self.build.negative(read_part(self.reader, rule, "times", given))
            left = expanded(self.build, Const(0.0) if left is None else left, y)
            left = self.summed(left, k, less)
        if left is None:
            return None
        return self.build.divide(left, divisor) if entries else forward.call_with(step, rule, bound, {names[0]: left})

    def from_partials(self, found: list, late: int) -> Any:
        """Row k of y from y' = the sum of partial derivatives times rates; row k - 1 of what is linear in a rate."""
        whole, parts, (k, before) = [], [], self.group.index
        for x, slope in found:
            moved = x if late else self.group.rates[x]
            if isinstance(slope, Const) and slope.value == 0:
                continue
            if late and x not in self.group.late:
                raise Unordered
            if slope not in self.members:
                whole.append(self.build.multiply(self.row_of(x, late), slope))
            elif alike(x, slope):
                parts.append(inline_part(self.reader, convolved, [self.stack(moved), self.stack(slope), k]))
            else:
                term = partial(self.times, moved, slope)
                parts.append(self.summed(term(Const(0), before), before, term))
        if parts:
            whole.append(self.total(parts) if late else self.build.divide(self.total(parts), k))
        return self.total(whole) if whole else None

    def times(self, a: Var, b: Var, j: Any, k: Any) -> Any:
        return self.build.multiply(self.item(a, j), self.item(b, k))

    def from_late(self, term: Any) -> Any:
        """Row k of y from row k - 1 of y'."""
        if isinstance(term, Struct):
            return Struct("tuple", [self.from_late(p) or Const(0.0) for p in term.items])
        row = self.row_of(term, 1)
        return None if row is None else self.build.divide(row, self.group.index[0])

    def summed(self, first: Any, k: Any, term: Callable[[Any, Any], Any]) -> Any:
        """The first term plus the sum of term(j, k - j) over j = 1, ..., k."""
        outer, end = self.build.block, self.build.apply(operator.add, k, Const(1))
        j, fact = Var("j", Array(int, (), unknown("?int"))), fact_of(first)
        inner, last = (Var("total", Array(fact.dtype, fact.dims), TANGENT) for _ in range(2))
        body: list = []
        self.build.block = body
        following = self.build.add(inner, term(j, self.build.apply(operator.sub, k, j)))
        self.build.block = outer
        outer.append(self.over(j, Const(1), end, [Carry(inner, first, following, last)], body))
        return last

    def total(self, terms: list) -> Any:
        """The sum of terms."""
        found = terms[0]
        for t in terms[1:]:
            found = self.build.add(found, t)
        return found


class Group:
    """A run of statements with one loop over the orders.

    before: the statements, before the loop; depth: how many derivatives led to the next one, of which only the rows
    below order - depth are read; waiting: those whose part of a pass is not planned, with their depths; passes: what a
    pass does; own: values whose rows it computes; late: those whose row k - 1 pass k computes; rates: {value: its
    derivative in t}; equations: {statement: what forward mode says of it}; own_call: the call whose custom rule is
    read; given: arrays of coefficients that have rows already; carried: {value: its array at the beginning of a pass};
    index: k and k - 1
    """

    def __init__(self, before: list) -> None:
        self.before = before
        self.waiting: list[tuple[Let, int]] = []
        self.depth = 0
        self.own_call: Let | None = None
        self.passes: list[Callable[[], None]] = []
        self.own: set[Var] = set()
        self.late: set[Var] = set()
        self.rates: dict[Var, Var] = {}
        self.equations: dict[int, list] = {}
        self.given: dict[Var, Var] = {}
        self.carried: dict[Var, Var] = {}
        self.index: list[Any] = []


def alike(a: Var, b: Var) -> bool:
    """Whether two values have the same axes."""
    return a.fact.rank == b.fact.rank and all(m.same(n) for m, n in zip(a.fact.dims, b.fact.dims))


def is_same_call(a: Apply, b: Apply) -> bool:
    """Whether two calls of functions with custom rules are calls of one function with the same operands."""
    return a.function.custom.rule is b.function.custom.rule and len(a.args) == len(b.args) and all(
        m is n for m, n in zip(a.args, b.args))


def is_plain_array(v: Var) -> bool:
    return isinstance(v.fact, Array) and not isinstance(v.fact, Listed)
