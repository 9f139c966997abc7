# SPDX-License-Identifier: Apache-2.0
"""Induction variables: integers that a loop only counts up or down; a backward pass reverses the step.

`p = p + 1` needs no saved values: a pass began with the value that it left, minus one.  A step may be an operand that
the backward pass has or recomputes.  An inner loop that takes a step in each pass is one step of that multiple.

>>> import gradscribe as gs
>>> def f(x):
...     s, k = 0.0, 0
...     while x[k] > 0.0:
...         s += x[k] ** 2
...         k += 2
...     return s
>>> print(gs.grad(f).source_for(np.ones(3)).split("# while")[1])
 x[k] > 0.0:
    dx = np.zeros_like(x)
    for _ in range(passes):
        k = k - 2
        # s += x[k] ** 2
        dx[k] += 2 * x[k]
    return dx
<BLANKLINE>
"""
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Carry, Const, For, Let, Var, is_application
from gradscribe.ast_transform.core.kinds import Array, Stack
from gradscribe.ast_transform.passes.described import fact_of


def is_whole(node):
    """Whether a node is a signed integer."""
    fact = fact_of(node) if isinstance(node, (Var, Const)) else None
    return type(fact) is Array and not fact.dims and fact.kind == "i"


def step_of(carry: Carry, maker: Mapping[Var, Any]) -> list[tuple[Callable, Any]] | None:
    """The steps of a pass, last first: [(inverse operator, operand or (count, constant))]; None if it is no induction
    variable.
    """
    steps, v = [], carry.next
    while v is not carry.inner:
        made = maker.get(v) if isinstance(v, Var) and is_whole(v) else None
        if isinstance(made, Let) and isinstance(made.value, Apply) and made.value.function in (
                operator.add, operator.sub) and len(made.value.args) == 2:
            first, second = made.value.args
            forward = is_application(made.value, operator.add)
            if forward and not leads(first, carry.inner, maker):
                first, second = second, first
            if not is_whole(second) or leads(second, carry.inner, maker):
                return None
            steps.append((operator.sub if forward else operator.add, second))
            v = first
        elif isinstance(made, For):
            inner = next(c for c in made.carries if c.outer is v)
            own = step_of(inner, {t: s for s in made.body if isinstance(s, Let) for t in s.targets})
            if not own or len(own) > 1 or not isinstance(own[0][1], Const) or not is_whole(made.count):
                return None
            steps.append((own[0][0], (made.count, own[0][1])))
            v = inner.init
        else:
            return None
    return steps if is_whole(carry.inner) else None


def leads(v, inner, maker):
    """Whether an operand is computed from a carried value by steps."""
    for _ in range(100):
        if v is inner:
            return True
        made = maker.get(v) if isinstance(v, Var) else None
        if isinstance(made, For):
            v = next(c for c in made.carries if c.outer is v).init
        elif isinstance(made, Let) and isinstance(made.value, Apply) and made.value.function in (
                operator.add, operator.sub):
            return any(leads(a, inner, maker) for a in made.value.args)
        else:
            return False
    return False


def is_steady(carry: Carry) -> bool:
    """Whether a carry has the same shape in all passes, or is a list of numbers."""
    fact = carry.inner.fact
    if isinstance(fact, Stack):
        return isinstance(fact.element, Array) and not fact.element.dims
    return isinstance(fact, Array) and all(
        len(other.dims) == len(fact.dims) and all(m.same(n) for m, n in zip(other.dims, fact.dims))
        for other in map(fact_of, (carry.init, carry.next)) if isinstance(other, Array))


def is_one(steps: Iterable[tuple[Callable, Any]]) -> bool:
    """Whether each pass adds one."""
    return [(f, getattr(o, "value", None)) for f, o in steps] == [(operator.sub, 1)]


def taken_back(v: Var, steps: Iterable[tuple[Callable, Any]], later: Var) -> tuple[list[Let], Var]:
    """(statements that compute the value `v` that a pass began with from the one it left, the former's variable)."""
    out, value = [], later
    for function, amount in steps:
        if isinstance(amount, tuple):
            count, by = amount
            amount = count
            if by.value != 1:
                amount = Var("t", Array(np.result_type(fact_of(count).dtype, int)))
                out.append(Let((amount,), Apply(operator.mul, (count, by))))
        new = Var(v.hint, v.fact, v.kind)
        out.append(Let((new,), Apply(function, (value, amount))))
        value = new
    return out, value
