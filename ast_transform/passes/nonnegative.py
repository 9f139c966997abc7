# SPDX-License-Identifier: Apache-2.0
"""Sign analysis: integers that are certainly not negative, such as lengths, loop indices, and arithmetic on these.

>>> from gradscribe.ast_transform.examples import form
>>> def count(text):
...     loop = f"def f(x, k):\\n    for i in range({text}):\\n        x = 2 * x\\n    return x"
...     body = form(loop, np.ones(5), 3).body
...     return Naturals(body).holds(next(s for s in walk(body) if isinstance(s, For)).count)
>>> [count(t) for t in ("len(x) // 2", "x.shape[0] - 1", "max(k, 0)", "k", "x.shape[0] - k")]
[True, True, True, False, False]
"""
import builtins
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, For, If, Let, Var, While, is_application, walk
from gradscribe.ast_transform.core.operations import run_length, shape_of, size_of

CLOSED = {operator.add, operator.mul, operator.floordiv, np.add, np.multiply, np.floor_divide, builtins.min, np.minimum,
          int, np.int64, np.int32}
COUNTS = {shape_of, size_of, run_length, abs, np.abs, np.size, np.count_nonzero, np.argmax, np.argmin}
LARGEST = {builtins.max, np.maximum}


class Naturals:
    """The integers of a block that are certainly not negative.  made, joined: the definitions of values; indices: loop
    indices from zero up; known: {value: whether it is certainly not negative}.
    """

    def __init__(self, body):
        self.made, self.indices, self.joined, self.known = {}, set(), {}, {}
        self.visit(body)

    def visit(self, body):
        for step in walk(body):
            if isinstance(step, Let):
                self.made.update((t, step.value if len(step.targets) == 1 else None) for t in step.targets)
            elif isinstance(step, If):
                self.joined.update((j.var, (j.then, j.orelse)) for j in step.joins)
            elif isinstance(step, (For, While)):
                self.joined.update((v, (c.init, c.next)) for c in step.carries for v in (c.inner, c.outer))
                if isinstance(step, For):
                    self.indices.add(step.index)
                    self.indices.update(v for v, source in step.items if from_zero(source))
                    if any(isinstance(s, For) and s.policy.startswith("again") for s in (step, *step.body)):
                        self.known[step.count] = True       # a segment of a longer loop, and the number of segments

    def holds(self, node):
        """Whether an integer is certainly at least zero; this may require an axis of an argument to be long enough."""
        if isinstance(node, Const):
            return type(node.value) is int and node.value >= 0
        if not isinstance(node, Var):
            return False
        if node in self.indices or self.known.get(node):
            return True
        if node not in self.known:
            before = dict(self.known)
            self.known[node] = True                 # assumed: the next value of a loop may depend on the one before
            if not (self.made_so(node) or self.is_length(node)):
                self.known = {**before, node: False}
        return self.known[node]

    def made_so(self, node):
        if node in self.joined:
            return all(map(self.holds, self.joined[node]))
        value = self.made.get(node)
        if isinstance(value, (Var, Const)):
            return self.holds(value)
        if not isinstance(value, Apply):
            return False
        if value.function in CLOSED:
            return all(map(self.holds, value.args))
        return value.function in COUNTS or value.function in LARGEST and any(map(self.holds, value.args)) or \
            is_application(value, np.sum) and isinstance(value.args[0], Var) and value.args[0].fact.kind == "b"

    def is_length(self, node):
        """Whether it is a length minus a number; requires arguments that are long, or large, enough."""
        n = node.fact.length and node.fact.length.normal()
        if not n or n.symbol is None or not (n.symbol.many or n.symbol.asked) or n.size is None or n.size < 0:
            return False
        n.symbol.least = max(n.symbol.least, -n.offset)
        return True


def from_zero(source: Any) -> bool:
    """Whether all indices of a range are certainly not negative: it counts up from zero or above, or down to there."""
    if not isinstance(source, Apply) or source.function is not range:
        return False
    start, stop, step = (Const(0), *source.args, Const(1)) if len(source.args) == 1 else (*source.args, Const(1))[:3]
    if not isinstance(step, Const) or type(step.value) is not int:
        return False
    least = start if step.value > 0 else stop
    return isinstance(least, Const) and type(least.value) is int and least.value >= (0 if step.value > 0 else -1)
