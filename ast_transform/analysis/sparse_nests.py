# SPDX-License-Identifier: Apache-2.0
"""Loop nests on numbers in one step: all passes of a structured loop at once, for `sparsity`.

The index of a loop is the array of its values, with an axis for each loop of the nest.  So numbers become arrays, reads
become gathers, and writes become scatters.  That is right if no pass reads what another one writes, and no entry is
written twice; both are checked by the places of the entries.  Where a loop is of another kind, or a check fails,
`Sequential` is raised, and its passes run one by one.

Source: L. Lamport, The parallel execution of DO loops (1974), for the condition.
"""
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import record_of
from gradscribe.ast_transform.core.form import Apply, Const, Effect, For, Let, Pack, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.core.rule import Rule


class Sequential(Exception):
    """The passes of a loop have to run one by one."""


class Nest:
    """A nest that runs at once in an interpreter: the arrays that it changes, and the places that are read and written.

    roots: {version of a changed array: the carry of the outermost loop}
    """

    def __init__(self, interpreter):
        self.interpreter, self.env = interpreter, interpreter.env
        self.roots: dict = {}
        self.reads: list = []
        self.writes: list = []

    def run(self, step: For) -> None:
        """Runs a loop; Sequential if that is not possible."""
        self.loop(step, 0)
        self.check()

    def loop(self, step, depth):
        count = self.interpreter.value(step.count)
        if not isinstance(count, (int, np.integer)) or step.reverse and step.items:
            raise Sequential
        for c in step.carries:
            if not isinstance(c.init, Var) or not is_array(c.inner):
                raise Sequential
            self.env[c.inner] = self.interpreter.value(c.init)
            self.roots[c.inner] = self.roots.get(c.init, c.inner) if depth else c.inner
        places = np.arange(count).reshape(-1, *[1] * depth)
        self.env[step.index] = places
        for var, source in step.items:
            if not is_number(var):
                raise Sequential
            found = self.interpreter.value(source)
            self.env[var] = found.start + found.step * places if isinstance(found, range) else \
                self.interpreter.apply(operator.getitem, [found, places], {})
        for s in step.body:
            self.statement(s, depth)
        for c in step.carries:
            if self.roots.get(c.next) is not self.roots[c.inner]:
                raise Sequential
            self.env[c.outer] = self.env[c.next]
            self.roots[c.outer] = self.roots[c.inner]

    def statement(self, s, depth):
        if isinstance(s, For):
            self.loop(s, depth + 1)
        elif isinstance(s, Let) and isinstance(s.value, Apply) and len(s.targets) == 1:
            self.let(s.targets[0], s.value)
        elif not isinstance(s, Effect):
            raise Sequential

    def let(self, target, value):
        args = [self.interpreter.value(a) for a in value.args]
        if value.function in (operator.getitem, put) and isinstance(value.args[0], Var) and is_array(value.args[0]):
            if not all(is_number(part) for part in parts(value.args[1])):
                raise Sequential
            self.note(target, value, args)
        elif not elementwise(value) or not is_number(target):
            raise Sequential
        self.env[target] = self.interpreter.apply(value.function, args, {})

    def note(self, target, value, args):
        """Notes the places of a read or write of an array that the nest changes."""
        root = self.roots.get(value.args[0])
        if value.function is put and (root is None or not is_number(value.args[2])):
            raise Sequential
        if value.function is operator.getitem and not is_number(target):
            raise Sequential
        if root is None:
            return
        shape = np.shape(getattr(args[0], "value", args[0]))
        try:
            places = np.arange(int(np.prod(shape))).reshape(shape)[args[1]]
        except (IndexError, TypeError):
            raise Sequential from None
        if value.function is put:
            self.roots[target] = root
            if np.shape(places) != np.broadcast_shapes(np.shape(places), np.shape(getattr(args[2], "value", args[2]))):
                raise Sequential
            self.writes.append((root, places))
        else:
            self.reads.append((root, places))

    def check(self):
        """Raises Sequential if an entry is written twice, or if a pass reads what another one writes."""
        for root in {id(r): r for r, _ in self.writes}.values():
            written = [np.ravel(p) for r, p in self.writes if r is root]
            places = np.concatenate(written)
            if np.unique(places).size != places.size:
                raise Sequential
            for r, read in self.reads:
                if r is root and not all(np.array_equal(read, w) for q, w in self.writes if q is root) and \
                        np.isin(read, places).any():
                    raise Sequential


def is_array(var):
    return isinstance(var, Var) and isinstance(var.fact, Array) and bool(var.fact.dims)


def is_number(node: Any) -> bool:
    """Whether an operand is a number in each pass."""
    if isinstance(node, Const):
        return isinstance(node.value, (bool, int, float, complex))
    return isinstance(node, Var) and isinstance(node.fact, Array) and not node.fact.dims


def parts(index):
    return index.items if isinstance(index, Pack) else (index,)


def elementwise(value):
    record = record_of(value.function)
    return isinstance(record, Rule) and not record.is_of_a_user() and not value.kwargs and \
        (record.kind == "elementwise" or bool(record.options.get("elementwise"))) and all(map(is_number, value.args))
