# SPDX-License-Identifier: Apache-2.0
"""The verifier of the normal form, which runs after every pass.

Dominance: every value has one definition, and what a statement reads is defined before it where it is visible: an
argument, a statement above in the same block or an enclosing one, a carried value of an enclosing loop, or a result of
a branch.

Adjoints and tangents lose no precision: whatever is written into one, merged into one by a branch or a loop, or stored
in a list of them fits its dtype.  Those that a user gets have the dtypes of the values that they belong to.

>>> from gradscribe.ast_transform.examples import form
>>> f = form("def f(x): return np.sin(x) * 2", 1.0)
>>> check(f, "reading") is f
True
>>> f.body.reverse()
>>> check(f, "a wrong pass")  # doctest: +ELLIPSIS
Traceback (most recent call last):
gradscribe.ast_transform.passes.check.Broken: after a wrong pass: sin_x... is read in f where it is not defined ...
"""
from collections.abc import Iterable

import numpy as np

from gradscribe.ast_transform.core.form import (
    ADJOINT,
    TANGENT,
    UNDEFINED,
    Apply,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Var,
    While,
    all_made,
    made,
    operands,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Stack, spell
from gradscribe.ast_transform.core.operations import add_at, push, push_front, put, put_add
from gradscribe.ast_transform.passes.described import fact_of

WIDTH = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}        # writing a wider kind into a narrower one loses digits


class Broken(AssertionError):
    """A pass has left an invalid normal form."""


def check(function: Function, after: str, outside: set[Var] | None = None) -> Function:
    """The function, if its normal form is in order; else raises Broken, which names the pass `after` which it is not.

    outside: what it may read beside its arguments and its own values; None while it may still be part of another.
    """
    defined = _defined_once(function, after)
    _Scopes(function, after, defined, outside).check()
    for step in walk(function.body):
        for target, value, alike in _kept(step):
            if not _fits(fact_of(value), target.fact, alike):
                raise Broken(f"after {after}: {target} in {function.label} is {spell(target.fact)}, and given "
                             f"{spell(fact_of(value))}")
    return function


def _defined_once(function, after):
    """The values that a function defines; Broken where one has two definitions, or an adjoint is no float."""
    defined: set = set()
    for v in all_made(function.body):
        if v in defined:
            raise Broken(f"after {after}: {v} has two definitions in {function.label}")
        defined.add(v)
        if v.kind in (ADJOINT, TANGENT) and isinstance(v.fact, Array) and not v.fact.differentiable:
            raise Broken(f"after {after}: {v}, an adjoint or a tangent in {function.label}, is {spell(v.fact)}")
    return defined


class _Scopes:
    """A walk over a function that knows which values are visible at each read (dominance, by nesting of blocks)."""

    def __init__(self, function, after, defined, outside):
        self.function, self.after, self.defined, self.outside = function, after, defined, outside

    def check(self):
        end = self.block(self.function.body, {p.value for p in self.function.params})
        self.read(self.function.result, end, "the result")

    def read(self, node, scope, where):
        for v in operands(node):
            if v not in scope and (v in self.defined or self.outside is not None and v not in self.outside):
                raise Broken(
                    f"after {self.after}: {v} is read in {self.function.label} where it is not defined ({where})")

    def block(self, block, scope):
        """What is visible at the end of a block."""
        scope = set(scope)
        for step in block:
            if isinstance(step, (Let, Effect)):
                self.read(step.value, scope, step.origin and step.origin.statement)
            elif isinstance(step, For):
                self.for_loop(step, scope)
            elif isinstance(step, While):
                head = self.block(step.head, scope | {c.inner for c in step.carries})
                self.read(step.test, head, "a loop's test")
                self.carried(step, scope, self.block(step.body, head))
            elif isinstance(step, If):
                self.branch(step, scope)
            scope.update(made(step))
        return scope

    def for_loop(self, step, scope):
        self.read(step.count, scope, "a loop's count")
        for _, source in step.items:
            self.read(source, scope, "a loop's source")
        inner = scope | {step.index, *(v for v, _ in step.items), *(c.inner for c in step.carries)}
        self.carried(step, scope, self.block(step.body, inner))

    def branch(self, step, scope):
        self.read(step.test, scope, "a test")
        then, orelse = self.block(step.then, scope), self.block(step.orelse, scope)
        for j in step.joins:
            self.read(j.then, then, "a branch's result")
            self.read(j.orelse, orelse, "a branch's result")

    def carried(self, step, scope, end):
        for c in step.carries:
            self.read(c.init, scope, "a loop's first value")
            self.read(c.next, end, "a loop's next value")


def _kept(step):
    """[(adjoint or tangent, a value that it gets, whether it becomes that value or only gets entries of it)]."""
    if isinstance(step, Let) and isinstance(step.value, Apply) and step.value.function in (put, put_add, add_at):
        found = [(step.targets[0], step.value.args[0], True), (step.value.args[0], step.value.args[2], False)]
    elif isinstance(step, Let) and isinstance(step.value, Apply) and step.value.function in (push, push_front):
        found = [(*step.value.args, True)]
    elif isinstance(step, If):
        found = [(j.var, side, True) for j in step.joins for side in (j.then, j.orelse)]
    elif isinstance(step, (For, While)):
        found = [(v, value, True) for c in step.carries for v in (c.inner, c.outer) for value in (c.init, c.next)]
    else:
        return []
    return [f for f in found if isinstance(f[0], Var) and f[0].kind in (ADJOINT, TANGENT) and f[1] is not UNDEFINED]


def _fits(given, target, alike):
    """Whether no digits or imaginary parts are lost where a value becomes another (alike), or is written into it."""
    target = target.element if isinstance(target, Stack) else target
    if not isinstance(target, Array) or not isinstance(given, Array):
        return True
    same = np.dtype(given.dtype) == np.dtype(target.dtype)
    return same or WIDTH[given.kind] <= WIDTH[target.kind] and not (alike and given.dims)


def check_results(results: Iterable, values: Iterable, after: str) -> None:
    """Raises Broken if a derivative that a user gets has another kind of dtype than the value that it belongs to."""
    for result, value in zip(results, values):
        if isinstance(result, Pack) and hasattr(value, "items"):
            check_results(result.items, value.items, after)
        elif isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.differentiable:
            given = fact_of(result)
            if isinstance(given, Array) and given.kind != value.fact.kind:
                raise Broken(f"after {after}: the derivative of {value}, {spell(value.fact)}, is {spell(given)}")
