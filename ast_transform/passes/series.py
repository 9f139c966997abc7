# SPDX-License-Identifier: Apache-2.0
"""Taylor coefficients of operations, order by order: what forward mode's rules say, evaluated in Taylor arithmetic.

A value that depends on a number t has the coefficients x_1, ..., x_K beside its value x.  They are its derivatives in
t, or, scaled, its Taylor coefficients: derivatives divided by the factorials of their orders.

Linear operations apply to each coefficient.  Products, and other operations that are linear in each operand, are
convolutions (Leibniz).  A quotient solves the convolution for its last term.  For every other operation y = f(x) the
rule of forward mode is an equation y' = g(x, y, x'), and the coefficients of its right side, which reach one order less
far, give those of y.  So each record yields all orders: for np.exp, whose partial derivative is y, the equation is
y' = y x', the classical recurrence.  An operation that a rule needs and that is there already is not computed again:
sine and cosine find each other.

Sources: R. D. Neidinger, Introduction to automatic differentiation and MATLAB object-oriented programming, SIAM Review
52 (2010); A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 13.
"""
import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gradscribe.ast_transform.core.form import (
    TANGENT,
    Const,
    Let,
    Var,
    all_made,
    all_reads,
    copied,
    made,
    operands,
    placed,
    rebuilt,
    walk,
)
from gradscribe.ast_transform.core.rule import Rule
from gradscribe.ast_transform.passes.activity import active_values, passes_on, rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.callees import has_custom_rule
from gradscribe.ast_transform.passes.jvp import Forward, operation_of, read_own_rule
from gradscribe.ast_transform.passes.simplify import key_of
from gradscribe.ast_transform.passes.tangents import expanded
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import RuleError


class Series:
    """The coefficients of values: those of order k are the tangents of the k-th of `orders`.

    later: {value that a rule reads: how to make its coefficient of an order}; made: {operation: its value};
    equations: {statement: what forward mode says of it}; rates: {value: the value that is its derivative in t};
    absent: coefficients that are zero; walk: adds the coefficients of a block to the current one
    """

    def __init__(self, reader, label: str, order: int, scaled: bool, walk: Callable[[list], None]) -> None:
        self.reader, self.build, self.scaled, self.walk = reader, reader.build, scaled, walk
        self.orders = [Forward(reader, label) for _ in range(order)]
        self.active: set[Var] = set()
        self.later: dict[Var, Callable[[int], None]] = {}
        self.made: dict[Any, Var] = {}
        self.equations: dict[int, list] = {}
        self.rates: dict[Var, Var] = {}
        self.absent: set[tuple[Var, int]] = set()

    # weights of the two kinds of coefficients

    def weight(self, *parts: int) -> int:
        """How often a product of coefficients of these orders counts in the coefficient of their sum."""
        if self.scaled:
            return 1
        return math.factorial(sum(parts)) // math.prod(map(math.factorial, parts))

    def raised(self, rate: Any, k: int) -> Any:
        """The coefficient k of a value from the coefficient k - 1 of its derivative."""
        if not self.scaled or k == 1 or rate is None:
            return rate
        return self.build.apply(operator.truediv, rate, Const(k))

    def lowered(self, x: Any, k: int) -> Any:
        """The coefficient k of the derivative of a value; None if it is zero."""
        found = self.coefficient(x, k + 1)
        return found if found is None or not self.scaled else self.build.multiply(Const(k + 1), found)

    # coefficients

    def coefficient(self, node: Any, k: int) -> Any:
        """The coefficient of an operand; None if it is zero."""
        if k == 0 or not isinstance(node, Var):
            return None if k else node
        forward = self.orders[k - 1]
        if node not in forward.tangent and node in self.later and (node, k) not in self.absent:
            self.later[node](k)
            if node not in forward.tangent:
                self.absent.add((node, k))
        found = forward.tangent.get(node)
        return None if isinstance(found, Const) and found.value == 0 else found

    def whole(self, node: Any, k: int) -> Any:
        """The same with every axis of its value; None if it is zero."""
        found = self.coefficient(node, k)
        return found if k == 0 or found is None else expanded(self.build, found, node)

    def set_coefficient(self, step: Let, k: int) -> None:
        """Makes the coefficient k of a statement's results, where those of its operands are known."""
        forward = self.orders[k - 1]
        if has_custom_rule(step):
            for target, rate in zip(step.targets, self.own_equation(step)[1]):
                found = self.raised(rate if k == 1 else self.coefficient(rate, k - 1), k)
                if target.fact.differentiable and found is not None:
                    forward.define(target, found)
            return self.named(step.targets, k)
        for v in operands(step.value):
            self.coefficient(v, k)
        if not forward.moved(step):
            self.by_rule(step, k)
        self.named(step.targets, k)

    def named(self, values: tuple[Var, ...], k: int) -> None:
        """Names the coefficients of values after these."""
        for target in values:
            found = self.orders[k - 1].tangent.get(target)
            if isinstance(found, Var) and found.hint == f"{target.hint}_dot":
                found.hint = f"{target.hint}_d{k}"

    def by_rule(self, step: Let, k: int) -> None:
        """The coefficient k of an operation's results by its record."""
        forward = self.orders[k - 1]
        rule, bound, y = forward.checked(step)
        step = Let(step.targets, operation_of(step), step.origin)
        if rule.kind == "linear":
            active = {a for a, _, v in placed(bound) if isinstance(v, Var) and self.coefficient(v, k) is not None}
            term = forward.same_call(step, bound, active, rule) if active else None
            rows = [] if term is None else [term]
        elif is_product(rule):
            rows = [self.product(step, rule, bound, k)]
        elif "times" in rule.parts:
            rows = [self.quotient(step, rule, bound, k)]
        else:
            rows = self.by_equation(step, rule, bound, y, k)
        rows = [r for r in rows if r is not None]
        if not rows:
            return
        if isinstance(rows[0], Struct) or len(step.targets) > 1:
            forward.several(step, rows)
        else:
            forward.define(step.targets[0], self.total(rows))

    def total(self, terms: list) -> Any:
        """The sum of terms; None if there is none."""
        total = None
        for t in terms:
            total = t if total is None else self.build.add(total, t)
        return total

    def times(self, weight: int, value: Any) -> Any:
        number = Const(weight if weight < 2**53 else float(weight))
        return value if weight == 1 else self.build.multiply(number, value)

    # products and quotients

    def product(self, step: Let, rule: Rule, bound: dict[str, Any], k: int) -> Any:
        """The coefficient k of an operation that is linear in each of some operands: Leibniz' rule."""
        slots = [(a, j, v) for a, j, v in placed(bound) if a in rule.active]
        forward, terms = self.orders[k - 1], []
        if rule.kind == "elementwise":
            return self.total(list(self.convolved(slots[0][2], slots[1][2], k, rule)))
        for parts in compositions(k, len(slots)):
            given = [v if not n else self.whole(v, n) for (_, _, v), n in zip(slots, parts)]
            if any(v is None for v in given):
                continue
            changed: dict[str, Any] = {}
            for (a, j, _), v in zip(slots, given):
                changed[a] = v if j is None else (*changed.get(a, ()), v)
            terms.append(self.times(self.weight(*parts), forward.call_with(step, rule, bound, changed)))
        return self.total(terms)

    def convolved(self, a: Any, b: Any, k: int, rule: Rule | None = None) -> Iterator:
        """The terms of the coefficient k of a product of each entry; those of a square are computed once."""
        square = self.first(a) is self.first(b)
        for j in range(k, -1, -1):
            if square and 2 * j < k:
                return
            x, y = self.coefficient(a, j), self.coefficient(b, k - j)
            if x is not None and y is not None:
                twice = 2 if square and 2 * j > k else 1
                yield self.times(twice * self.weight(j, k - j), self.build.multiply(x, y))

    def first(self, v: Any) -> Any:
        """The first of the values that one operation makes, if it was written more than once."""
        return self.made.get(key_of(self.build.made.get(v)), v) if isinstance(v, Var) else v

    def quotient(self, step: Let, rule: Rule, bound: dict[str, Any], k: int) -> Any:
        """The coefficient k of a result y that solves times(divisor, y) = dividend: its last term in Leibniz' rule."""
        dividend, divisor = rule.options["solves"]
        y, b = step.targets[0], bound[divisor]
        entries, left = rule.kind == "elementwise", None
        for j in range(1, k + 1):
            slope = self.coefficient(b, j) if entries else self.whole(b, j)
            value = self.coefficient(y, k - j) if entries else self.whole(y, k - j)
            if slope is not None and value is not None:
                term = read_part(self.reader, rule, "times", {**bound, divisor: slope, "y": value})
                term = self.times(self.weight(j, k - j), term)
                left = term if left is None else self.build.add(left, term)
        own = self.coefficient(bound[dividend], k) if entries else self.whole(bound[dividend], k)
        if own is None and left is None:
            return None
        over = own if left is None else self.build.negative(left) if own is None else self.build.subtract(own, left)
        if entries:
            return self.build.divide(over, b)
        return self.orders[k - 1].call_with(step, rule, bound, {dividend: over})

    # equations

    def by_equation(self, step: Let, rule: Rule, bound: dict[str, Any], y: Any, k: int) -> list:
        """The terms of the coefficient k of an operation: one order less of what forward mode says."""
        if id(step.value) not in self.equations:
            found = derivative_in_time(self.orders[0], step, rule, bound, y, self)
            self.equations[id(step.value)] = [step.value, *found]
        found = self.equations[id(step.value)][1:]
        if rule.kind == "elementwise":
            rates = (self.rate_times(x, slope, k - 1) for x, slope in found)
            return [self.raised(rate, k) for rate in rates if rate is not None]
        if len(step.targets) == 1 and not isinstance(y, Struct):
            rates = (self.coefficient(term, k - 1) for term in found)
            return [self.raised(rate, k) for rate in rates if rate is not None]
        return [Struct("tuple", [self.raised(self.coefficient(p, k - 1), k) or Const(0.0) for p in term.items])
                for term in found]

    def rate_times(self, x: Any, slope: Any, k: int) -> Any:
        """The coefficient k of x' times a partial derivative."""
        terms = []
        for j in range(k, -1, -1):
            rate, factor = self.lowered(x, j), self.coefficient(slope, k - j)
            if rate is not None and factor is not None:
                terms.append(self.times(self.weight(j, k - j), self.build.multiply(rate, factor)))
        return self.total(terms)

    def own_equation(self, step: Let) -> tuple[list, list]:
        """(values, derivatives in t) of the results of a function with a custom rule for forward mode."""
        if id(step.value) not in self.equations:
            values, rates = own_derivative_in_time(self.orders[0], step, self)
            self.equations[id(step.value)] = [step.value, values, rates]
        return tuple(self.equations[id(step.value)][1:])

    def has_series(self, v: Var) -> bool:
        return v in self.later or any(v in forward.tangent for forward in self.orders)

    def rate(self, x: Var) -> Var:
        """The derivative of a value in t, as a value that has coefficients itself."""
        if x not in self.rates:
            forward, first = self.orders[0], self.coefficient(x, 1)
            first = expanded(forward.build, Const(0.0) if first is None else first, x)
            rate = self.rates[x] = self.build.let(f"{x.hint}_d1", first, forward.dot_fact(x), TANGENT)

            def moved(k):
                found = self.lowered(x, k)
                if found is not None:
                    self.orders[k - 1].tangent[rate] = expanded(self.build, found, x)
            self.active.add(rate)
            self.later[rate] = moved
        return self.rates[x]

    def written(self, read: Callable[[], Any], step: Let) -> Any:
        """What a part of a rule gives.  Its statements join the block, but for those that are there already."""
        outer, self.build.block = self.build.block, []
        try:
            result = read()
        finally:
            block, self.build.block = self.build.block, outer
        if not all(isinstance(inner, Let) for inner in block):
            self.walked_again(block)
            return result
        env: dict[Var, Any] = {}
        for inner in block:
            inner = rebuilt(inner, env, list)
            key = key_of(inner.value)
            if len(inner.targets) == 1 and key is not None and key in self.made:
                env[inner.targets[0]] = self.made[key]
                continue
            outer.append(inner)
            self.build.made.update(dict.fromkeys(inner.targets, inner.value))
            self.remember(inner)
            if passes_on(inner.value, self.active):
                new = [t for t in inner.targets if t.fact.differentiable]
                self.active.update(new)
                self.later.update((t, partial(self.set_coefficient, inner)) for t in new)
        return in_place(result, env)

    def walked_again(self, block: list) -> None:
        """Adds statements with loops or branches; a copy of them computes all coefficients up to an order."""
        self.build.block += block
        self.active |= active_values(block, self.active)
        read = {v for step in block for v in all_reads(step)}.difference(all_made(block))

        def again(v, k):
            for n in range(1, k + 1):
                for w in read:
                    self.coefficient(w, n)
            env: dict[Var, Any] = {}
            body, orders = copied(block, env), self.orders
            self.build.made.update({t: s.value for s in walk(body) if isinstance(s, Let) for t in s.targets})
            self.active |= {w for v, w in env.items() if v in self.active}
            for forward in orders:
                forward.active = self.active
            self.orders = orders[:k]
            self.walk(body)
            self.orders = orders
            found = orders[k - 1].tangent.get(env[v])
            if found is not None:
                orders[k - 1].tangent[v] = found
        self.later.update((v, partial(again, v)) for step in block for v in made(step) if v in self.active)

    def remember(self, step: Let) -> None:
        """Notes an operation of the current block, so that a rule that needs it finds it."""
        key = key_of(step.value) if len(step.targets) == 1 else None
        if key is not None:
            self.made.setdefault(key, step.targets[0])

    # blocks

    def entered(self) -> tuple:
        """What is known where a block begins; `left` with it forgets what the block adds."""
        known = (self.later.copy(), self.made.copy(), self.equations.copy(), self.rates.copy(), self.absent.copy())
        return known, [dict(forward.tangent) for forward in self.orders]

    def left(self, before: tuple) -> None:
        (self.later, self.made, self.equations, self.rates, self.absent), tangents = before
        for forward, tangent in zip(self.orders, tangents):
            forward.tangent = tangent


def is_by_rule(step: Let) -> bool:
    """Whether the coefficients of an operation come from its record, not from where its operands go."""
    return rule_of(getattr(operation_of(step), "function", None)) is not None


def is_product(rule: Rule) -> bool:
    """Whether an operation is linear in each of some operands."""
    return rule.kind == "bilinear" or rule.options.get("algebra") == "product"


def by_equation(rule: Rule) -> bool:
    """Whether the coefficients of an operation follow from what forward mode says of its derivative."""
    return rule.kind != "linear" and not is_product(rule) and "times" not in rule.parts


def derivative_in_time(forward: Forward, step: Let, rule: Rule, bound: dict[str, Any], y: Any, series: Any) -> list:
    """The right side of y' = g(x, y, x'): (x, partial derivative) for functions of each entry, else terms.

    series: what says which values have coefficients, gives their derivatives in t, and adds what a rule writes.
    """
    found = []
    for a in dict.fromkeys(a for a, _, v in placed(bound) if isinstance(v, Var) and series.has_series(v)):
        x = bound[a]
        if a not in rule.active:
            if rule.kind == "elementwise":
                continue
            raise RuleError(f"{spelled(rule.function)} has no derivative with respect to {a}", step.origin,
                            f"{forward.label} asks for it. Take gs.stop_gradient of it, or add it: docs/rules.md")
        given = {"y": y, **bound}
        if rule.kind == "elementwise":
            name = f"taylor_{a}" if f"taylor_{a}" in rule.parts else f"partial_{a}"
            found.append((x, series.written(partial(forward.part, rule, name, given), step)))
        else:
            given[f"{a}_dot"] = series.rate(x)
            found.append(series.written(partial(forward.part, rule, f"jvp_{a}", given), step))
    return found


def own_derivative_in_time(forward: Forward, step: Let, series: Any) -> tuple[list, list]:
    """(values, derivatives in t) of the results of a function with a custom rule for forward mode."""
    def moving(value):
        return series.rate(value) if isinstance(value, Var) and series.has_series(value) else None

    def read():
        return Struct("tuple", [Struct("tuple", part) for part in read_own_rule(forward, step, moving)])
    values, rates = series.written(read, step).items
    return values.items, rates.items


def compositions(k: int, count: int) -> Iterator[tuple[int, ...]]:
    """The ways to write k as a sum of so many orders, the greatest first order first.

    >>> list(compositions(2, 2))
    [(2, 0), (1, 1), (0, 2)]
    """
    if count == 1:
        yield (k,)
        return
    for first in range(k, -1, -1):
        for rest in compositions(k - first, count - 1):
            yield (first, *rest)


def in_place(value: Any, env: dict[Var, Any]) -> Any:
    """A value of the reader with variables replaced."""
    if isinstance(value, Struct):
        return Struct(value.kind, [in_place(i, env) for i in value.items], value.keys, value.cls)
    return env.get(value, value) if isinstance(value, Var) else value
