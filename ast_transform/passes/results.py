# SPDX-License-Identifier: Apache-2.0
"""Results own their memory: one that may alias an argument, an outside array or another result is copied.

>>> from gradscribe.ast_transform.examples import form, show
>>> print(show(owned_results(form("def f(x): return x, x * 2", np.ones(3)))))
f(x):
    z = x * 2
    x_1 = np.copy(x)
    return (x_1, z)
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.alias import aliased, holds_memory, is_number, memory_of
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Pack,
    Var,
    While,
    operands,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed
from gradscribe.ast_transform.core.memory import LOCKED, UPDATES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.entries import is_cell
from gradscribe.ast_transform.passes.out_of_ssa import changes


class Sources:
    """May-alias analysis of a whole function: for each value the arrays that it may be, or be a view of.

    Arrays are represented by the values that first held them: arguments, outside arrays, and results of operations.
    """

    own: set
    flow: dict
    found: dict

    def __init__(self, function: Function, callers=()):
        self.own, self.flow, self.found, self.callers = set(), {}, {}, {*callers, function}
        self.locked: set = set()        # views that NumPy makes read-only, and values that may be such a view
        self.cells: set = set()         # views without axes
        self.given = {p.value for p in function.params if isinstance(p.value, Var)}
        updated = changes(function)[1]
        for step in walk(function.body):
            if isinstance(step, Let) and isinstance(step.value, Apply) and isinstance(step.value.function, Function) \
                    and step.value.function not in self.callers:
                self.of_call(step.targets, step.value)
            elif isinstance(step, Let):
                self.cells.update(step.targets if is_cell(step) else ())
                for t in step.targets:
                    self.of_value(t, step.value)
            elif isinstance(step, If):
                for j in step.joins:
                    self.flow[j.var] = [j.then, j.orelse]
            elif isinstance(step, (For, While)):
                for c in step.carries:
                    if c.inner in updated:      # the loop owns it, or copies it before the first iteration
                        self.own.add(c.inner)
                        self.flow[c.inner], self.flow[c.outer] = [c.next], [c.inner]
                    else:
                        self.flow[c.inner] = self.flow[c.outer] = [c.init, c.next]
                for v, source in step.items if isinstance(step, For) else ():
                    self.flow[v] = [source]

    def of_value(self, target, value):
        if not isinstance(value, Apply):
            self.flow[target] = list(operands(value))
        elif memory_of(value) is LOCKED:
            self.flow[target] = list(aliased(value))
            self.locked.add(target)
        elif memory_of(value) is UPDATES:       # in place only if nothing else aliases the array
            self.flow[target] = []
            self.own.add(target)
        else:
            self.flow[target] = list(aliased(value)) or [
                a for a in value.args if memory_of(value).shares and a in self.given]
            outside = memory_of(value).shares and any(
                isinstance(a, Const) and isinstance(a.value, np.ndarray) for a in value.args)
            if not self.flow[target] and not outside:
                self.own.add(target)
            elif outside:
                self.flow[target].append(Var("outside", None))

    def of_call(self, targets, value):
        """Notes which arguments of a call its results may alias."""
        callee = value.function
        if callee.notes.get("fresh"):   # each result is in memory of its own
            self.own.update(targets)
            return
        inner, given = Sources(callee, self.callers), dict(zip((p.value for p in callee.params), value.args))
        several = isinstance(callee.result, Pack) and len(callee.result.items) == len(targets) > 1
        for k, t in enumerate(targets):
            leaf = callee.result.items[k] if several else callee.result
            if is_number(leaf) and inner.may_be_cell(leaf):
                self.cells.add(t)
            shown = frozenset().union(*map(inner.of, operands(leaf)))
            self.flow[t] = [given.get(v, v) for v in shown if v not in inner.own]
            if not self.flow[t]:
                self.own.add(t)

    def of(self, var) -> frozenset:
        """The arrays that a value may alias."""
        if var not in self.found:
            seen, queue = {var}, [var]
            for v in queue:
                for source in self.flow.get(v, ()):
                    for s in operands(source):
                        if s not in seen and (holds_memory(s) or s not in self.flow):    # an argument without axes
                            seen.add(s)
                            queue.append(s)
            self.found[var] = frozenset(v for v in seen if v not in self.flow or v in self.own or v in self.locked)
        return self.found[var]

    def may_be_cell(self, var) -> bool:
        """Whether a scalar may be a view without axes of an array."""
        queue = [var]
        for v in queue:
            queue += [o for source in self.flow.get(v, ()) for o in operands(source)
                      if o not in queue and is_number(o)]
        return not self.cells.isdisjoint(queue)


def owned_results(function: Function) -> Function:
    """The function, changed in place so that each array among its results is in memory of its own."""
    taken: set
    sources, taken = Sources(function), set()

    def owned(node):
        if isinstance(node, Pack):
            items = tuple(map(owned, node.items))
            return node if all(a is b for a, b in zip(items, node.items)) else \
                Pack(node.kind, items, node.keys, node.cls)
        if is_number(node) and sources.may_be_cell(node):
            number = node.like()
            function.body.append(Let((number,), Apply(operator.getitem, (node, Pack("tuple", ()))), _origin(function)))
            return number
        constant = isinstance(node, Const) and isinstance(node.value, np.ndarray)
        if not constant and not (isinstance(node, Var) and isinstance(node.fact, Array) and node.fact.dims
                                 and not isinstance(node.fact, Listed)):
            return node
        shown = frozenset() if constant else sources.of(node)
        if not constant and all(v in sources.own for v in shown) and taken.isdisjoint(shown):
            taken.update(shown)
            return node
        new = Var(node.hint if isinstance(node, Var) else "result", fact_of(node), TEMPORARY)
        function.body.append(Let((new,), Apply(np.copy, (node,)), _origin(function)))
        return new

    function.result = owned(function.result)
    return function


def _origin(function):
    """The origin for copies of results: that of the last statement."""
    last = next((s.origin for s in reversed(function.body) if getattr(s, "origin", None) is not None), None)
    return None if last is None else last.made_by(0)
