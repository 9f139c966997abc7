# SPDX-License-Identifier: Apache-2.0
"""The Taylor coefficients of the solution of y' = f(y, t), order by order, in one loop.

The coefficients of a value are the rows of an array.  Before the loop, f runs once, and its values are the rows 0.  The
pass k computes row k of each value from rows that are there, and with the rate of y row k + 1 of y:

    linear operations    row k of the operands
    products             the sum over j of row j of one factor times row k - j of the other
    quotients y = a / b  what is left of row k of a, divided by b
    others, y' = g x'    the sum over j of row j of x' times row k - 1 - j of g, divided by k

So the length of the source does not depend on the order.  A rule that is no partial derivative gives y' as operations
on x'.  These are linear in x', and a pass computes their row k - 1: they are `late`.

Sources: A. Jorba, M. Zou, Experimental Mathematics 14 (2005), section 2.1; A. Griewank, A. Walther, Evaluating
Derivatives, 2nd edition, SIAM 2008, section 13.2.
"""
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import (
    TANGENT,
    Apply,
    Carry,
    Const,
    For,
    Let,
    Pack,
    Var,
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
from gradscribe.ast_transform.passes.series import by_equation, derivative_in_time, in_place, is_by_rule, is_product
from gradscribe.ast_transform.passes.simplify import key_of
from gradscribe.ast_transform.passes.tangents import expanded, in_its_dtype
from gradscribe.ast_transform.reader.inlining import inline_part
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.reader.values import Struct


class Unordered(Exception):
    """The coefficients of these operations are not computed in one loop."""


def convolved(a, b, k):
    """Row k of a product."""
    return np.sum(a[:k + 1] * b[:k + 1][::-1], axis=0)


def convolved_before(a, b, k):
    """Row k - 1 of a product."""
    return np.sum(a[:k] * b[:k][::-1], axis=0)


def convolved_rest(a, b, k):
    """Row k of a product, without the term that has row k of b."""
    return np.sum(a[1:k + 1] * b[:k][::-1], axis=0)


class Recurrences:
    """The loop over the orders of one solution.

    rows: two evaluations of forward mode, at the rows k and k - 1, whose tangents are rows; index: k and k - 1;
    members: values that have coefficients; late: those whose row k - 1 is computed; stacks: {value: the array of its
    coefficients}; carried: {value: that array at the beginning of a pass}; rates: {value: its derivative in t};
    passes: what a pass does, in this order; known: {operation: its value}
    """

    def __init__(self, reader: Any, label: str, order: int) -> None:
        self.reader, self.build, self.order = reader, reader.build, order
        self.rows = (Forward(reader, label), Forward(reader, label))
        self.index: list[Any] = []
        self.members: set[Var] = set()
        self.late: set[Var] = set()
        self.stacks: dict[Var, Any] = {}
        self.carried: dict[Var, Var] = {}
        self.rates: dict[Var, Var] = {}
        self.given: dict[Var, Var] = {}
        self.passes: list[Callable[[], None]] = []
        self.before: list[Let] = []
        self.added_last: list[Let] = []
        self.equations: dict[int, list] = {}
        self.known: dict[Any, Var] = {}

    def run(self, body: list, result: Any, state: Var, time: Var) -> Any:
        """The coefficients 1, ..., order of the solution as rows of an array; its statements join the block."""
        outer, same = self.build.block, {}
        for forward in self.rows:
            forward.active = self.members
        self.members |= {state, time}
        for step in body:
            if not isinstance(step, Let):
                raise Unordered
            self.statement(rebuilt(step, same, list), same)
        outer += self.before
        rate = substituted(result, same)
        first = expanded(self.build, rate, state)
        self.given[state] = self.stacks[state] = self.with_rows(state, state, first, count=self.order + 1)
        if rate in self.members and self.order > 1:
            del self.stacks[state]
            self.given[time] = self.with_rows(time, time, Const(1.0))
            self.loop(outer, state, rate)
        return self.build.item(self.stacks[state], Const(slice(1, None)), f"{state.hint}_series", TANGENT)

    # what the passes do

    def statement(self, step: Let, same: dict[Var, Any]) -> None:
        """Adds a statement of f, and with it what its derivative reads, in the order in which a pass computes rows."""
        self.added(step, same)
        while self.added_last:
            self.planned(self.added_last.pop(0))

    def added(self, step: Let, same: dict[Var, Any]) -> None:
        """Adds a statement before the loop; a value that is there already is not computed again."""
        key = key_of(step.value) if len(step.targets) == 1 else None
        if key in self.known:
            same[step.targets[0]] = self.known[key]
            return
        if key is not None:
            self.known[key] = step.targets[0]
        self.before.append(step)
        self.build.made.update(dict.fromkeys(step.targets, step.value))
        if passes_on(step.value, self.members):
            if has_custom_rule(step):
                raise Unordered
            self.joined(step)
            self.added_last.append(step)

    def planned(self, step: Let) -> None:
        """Adds to a pass what computes the row of a statement."""
        if is_by_rule(step):
            forward = self.rows[0]
            rule, bound, y = forward.checked(step)
            if by_equation(rule):
                found = self.equations[id(step)] = derivative_in_time(forward, step, rule, bound, y, self)
                if rule.kind == "elementwise":
                    for x, _ in found:
                        self.rate(x)
        self.passes.append(partial(self.row, step, 0))

    def joined(self, step: Let) -> None:
        """Notes that the results of a statement have coefficients."""
        new = [t for t in step.targets if t.fact.differentiable]
        for v in (*new, *self.members.intersection(operands(step.value))):
            if not isinstance(v.fact, Array) or isinstance(v.fact, Listed):
                raise Unordered
        self.members.update(new)

    def has_series(self, v: Var) -> bool:
        return v in self.members

    def rate(self, x: Var) -> Var:
        """The derivative of a value in t, whose row k - 1 is k times row k of the value."""
        if x not in self.rates:
            rate = self.rates[x] = Var(f"{x.hint}_rate", self.rows[0].dot_fact(x), TANGENT)
            self.members.add(rate)
            self.late.add(rate)

            def row():
                now = self.build.multiply(self.index[0], self.row_of(x, 0))
                self.rows[1].tangent[rate] = now
                self.kept(rate, 1)
            self.passes.append(row)
        return self.rates[x]

    def written(self, read: Callable[[], Any], step: Let) -> Any:
        """What a part of a rule gives: operations on rates join the pass, others will be added to f."""
        outer, self.build.block = self.build.block, []
        try:
            result = read()
        finally:
            block, self.build.block = self.build.block, outer
        env: dict[Var, Any] = {}
        for inner in block:
            if not isinstance(inner, Let):
                raise Unordered
            inner = rebuilt(inner, env, list)
            self.build.made.update(dict.fromkeys(inner.targets, inner.value))
            if not self.late.isdisjoint(operands(inner.value)):
                self.joined(inner)
                self.late.update(t for t in inner.targets if t in self.members)
                self.passes.append(partial(self.row, inner, 1))
                continue
            self.added(inner, env)
        return in_place(result, env)

    # rows

    def loop(self, outer: list, state: Var, rate: Var) -> None:
        """Adds the loop over k = 1, ..., order - 1."""
        k, passes = Var("k", Array(int, (), unknown("?int"))), Const(self.order - 1)
        self.build.block = body = []
        self.index = [k, self.build.apply(operator.sub, k, Const(1))]
        for forward in self.rows:
            forward.active = self.members
        for of_pass in self.passes:
            of_pass()
        following = self.build.apply(operator.add, k, Const(1))
        self.rows[0].tangent[state] = self.build.divide(self.row_of(rate, 0), following)
        self.kept(state, 0, following)
        self.build.block = outer
        carries = [Carry(inner, self.begun(v), self.stacks[v], Var(inner.hint, inner.fact, TANGENT))
                   for v, inner in self.carried.items()]
        self.stacks = {v: c.outer for v, c in zip(self.carried, carries)}
        orders = (k, Apply(range, (Const(1), Const(self.order), Const(1))))
        outer.append(For(Var("i", Array(int)), passes, (orders,), carries, body, self.build.origin))

    def begun(self, v: Var) -> Any:
        """The rows of a value before the loop: the first, and those of y and t that are known."""
        if v in self.given:
            return self.given[v]
        return self.with_rows(v, *(() if v in self.late else (v,)))

    def with_rows(self, v: Var, *rows: Any, count: int | None = None) -> Var:
        """An array for the coefficients of a value, with these as the first."""
        fact = self.fact(v, count)
        lengths = [Const(fact.dims[0].offset), *map(self.length, v.fact.dims)]
        words = {} if np.dtype(fact.dtype) == np.float64 else {"dtype": Const(np.dtype(fact.dtype))}
        shape = Pack("tuple", tuple(lengths)) if v.fact.dims else lengths[0]
        stack = self.build.apply(np.zeros, shape, hint=f"{v.hint}_series", fact=fact,
                                 kind=TANGENT, **words)
        for k, row in enumerate(rows):
            row = in_its_dtype(self.build, row, self.rows[0].dot_fact(v))
            stack = self.build.apply(put, stack, Const(k), row, hint=stack.hint, fact=fact, kind=TANGENT)
        return stack

    def fact(self, v: Var, count: int | None = None) -> Array:
        """The type of the coefficients of a value."""
        return Array(self.rows[0].dot_fact(v).dtype, (Length(None, count or self.order), *v.fact.dims))

    def length(self, d: Length) -> Any:
        """The length of an axis of a value that may not be there before the loop."""
        d = d.normal()
        if d.symbol is None:
            return Const(d.offset)
        for v in self.members:
            if v not in self.late:
                for k, other in enumerate(v.fact.dims):
                    if other.same(d):
                        return self.build.length(v, k)
        raise Unordered

    def stack(self, v: Var) -> Any:
        """The coefficients of a value that are known at this place of a pass."""
        if v not in self.stacks:
            fact = self.given[v].fact if v in self.given else self.fact(v)
            self.stacks[v] = self.carried[v] = Var(f"{v.hint}_series", fact, TANGENT)
        return self.stacks[v]

    def row_of(self, v: Any, late: int) -> Any:
        """Row k of a value, or its row k - 1; None if it has none."""
        if v not in self.members:
            return None
        known = self.rows[late].tangent
        if v not in known:
            if v not in self.given and (v in self.late if late else True):
                raise Unordered             # the pass has not computed it yet
            known[v] = self.build.item(self.stack(v), self.index[late], f"{v.hint}_k", TANGENT)
        return known[v]

    def kept(self, v: Var, late: int, k: Any = None) -> None:
        """Writes the row of a value into its coefficients."""
        row = expanded(self.build, self.rows[late].tangent[v], v)
        row = self.rows[late].tangent[v] = in_its_dtype(self.build, row, self.rows[late].dot_fact(v))
        stack = self.stack(v)
        self.stacks[v] = self.build.apply(put, stack, self.index[late] if k is None else k, row, hint=stack.hint,
                                          fact=stack.fact, kind=TANGENT)

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
        rule, bound, y = forward.checked(step)
        found = self.equations.get(id(step))
        step = Let(step.targets, operation_of(step), step.origin)
        if rule.kind == "linear":
            active = {a for a, _, v in placed(bound) if v in self.members}
            terms = [forward.same_call(step, bound, active, rule)]
        elif is_product(rule):
            terms = [self.product(step, rule, bound, late)]
        elif "times" in rule.parts:
            terms = [self.quotient(step, rule, bound, late)]
        elif late:
            raise Unordered                 # it is not linear in a rate
        elif rule.kind == "elementwise":
            terms = [self.from_rates(found)]
        else:
            terms = [self.from_late(term) for term in found]
        terms = [t for t in terms if t is not None]
        if terms and (isinstance(terms[0], Struct) or len(step.targets) > 1):
            forward.several(step, terms)
        elif terms:
            forward.define(step.targets[0], total(self.build, terms))

    def product(self, step: Let, rule: Rule, bound: dict[str, Any], late: int) -> Any:
        """Row k of an operation that is linear in each of some operands."""
        slots = [(a, j, v) for a, j, v in placed(bound) if a in rule.active and v in self.members]
        forward = self.rows[late]

        def changed(rows):
            new: dict[str, Any] = {}
            for (a, j, _), row in zip(slots, rows):
                old = new.get(a, bound[a])
                items = old.items if isinstance(old, Pack) else old
                new[a] = row if j is None else (*items[:j], row, *items[j + 1:])
            return forward.call_with(step, rule, bound, new)
        if not slots:
            return None
        if len(slots) == 1:
            return changed([forward.whole_tangent(slots[0][2])])
        if len(slots) > 2:
            raise Unordered
        (_, _, a), (_, _, b) = slots
        if rule.kind == "elementwise" and alike(a, b):
            return inline_part(self.reader, convolved, [self.stack(a), self.stack(b), self.index[late]])
        k = self.index[late]
        first = changed([self.item(a, Const(0)), self.item(b, k)])
        return self.summed(first, k, lambda j, back: changed([self.item(a, j), self.item(b, back)]))

    def quotient(self, step: Let, rule: Rule, bound: dict[str, Any], late: int) -> Any:
        """Row k of a result y that solves times(divisor, y) = dividend."""
        forward, k, y = self.rows[late], self.index[late], step.targets[0]
        dividend, divisor = (bound[name] for name in rule.options["solves"])
        entries = rule.kind == "elementwise"
        left = forward.whole_tangent(dividend) if not entries else self.row_of(dividend, late)
        if divisor in self.members:
            if entries and alike(divisor, y):
                rest = inline_part(self.reader, convolved_rest, [self.stack(divisor), self.stack(y), k])
                left = self.build.negative(rest) if left is None else self.build.subtract(left, rest)
            else:
                def less(j, back):
                    given = {**bound, rule.options["solves"][1]: self.item(divisor, j), "y": self.item(y, back)}
                    return self.build.negative(read_part(self.reader, rule, "times", given))
                left = expanded(self.build, Const(0.0) if left is None else left, y)
                left = self.summed(left, k, less)
        if left is None:
            return None
        if entries:
            return self.build.divide(left, divisor)
        return forward.call_with(step, rule, bound, {rule.options["solves"][0]: left})

    def from_rates(self, found: list) -> Any:
        """Row k of y from y' = the sum of partial derivatives times rates."""
        whole, parts, k = [], [], self.index[0]
        for x, slope in found:
            if slope not in self.members:
                if not is_zero(slope):
                    whole.append(self.build.multiply(self.row_of(x, 0), slope))
            elif alike(x, slope):
                stacks = [self.stack(self.rates[x]), self.stack(slope)]
                parts.append(inline_part(self.reader, convolved_before, [*stacks, k]))
            else:
                before, term = self.index[1], partial(self.times, self.rates[x], slope)
                parts.append(self.summed(term(Const(0), before), before, term))
        if parts:
            whole.append(self.build.divide(total(self.build, parts), k))
        return total(self.build, whole) if whole else None

    def from_late(self, term: Any) -> Any:
        """Row k of y from row k - 1 of y'."""
        if isinstance(term, Struct):
            return Struct("tuple", [self.from_late(p) or Const(0.0) for p in term.items])
        row = self.row_of(term, 1)
        return None if row is None else self.build.divide(row, self.index[0])

    def times(self, a: Var, b: Var, j: Any, k: Any) -> Any:
        return self.build.multiply(self.item(a, j), self.item(b, k))

    def item(self, v: Var, k: Any) -> Any:
        return self.build.item(self.stack(v), k, f"{v.hint}_k", TANGENT)

    def summed(self, first: Any, k: Any, term: Callable[[Any, Any], Any]) -> Any:
        """first plus the sum of term(j, k - j) over j = 1, ..., k."""
        outer, end = self.build.block, self.build.apply(operator.add, k, Const(1))
        passes = self.build.apply(run_length, Const(1), end, Const(1), fact=Array(int, (), unknown("?count")))
        j = Var("j", Array(int, (), unknown("?int")))
        fact = fact_of(first)
        inner, last = (Var("total", Array(fact.dtype, fact.dims), TANGENT) for _ in range(2))
        self.build.block = body = []
        following = self.build.add(inner, term(j, self.build.apply(operator.sub, k, j)))
        self.build.block = outer
        outer.append(For(Var("i", Array(int)), passes, ((j, Apply(range, (Const(1), end, Const(1)))),),
                         [Carry(inner, first, following, last)], body, self.build.origin))
        return last


def total(build: Any, terms: list) -> Any:
    """The sum of terms."""
    found = terms[0]
    for t in terms[1:]:
        found = build.add(found, t)
    return found


def is_zero(node: Any) -> bool:
    return isinstance(node, Const) and node.value == 0


def alike(a: Var, b: Var) -> bool:
    """Whether two values have the same axes."""
    return a.fact.rank == b.fact.rank and all(m.same(n) for m, n in zip(a.fact.dims, b.fact.dims))
