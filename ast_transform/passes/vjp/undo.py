# SPDX-License-Identifier: Apache-2.0
"""Arrays that a loop writes into: going backward, each write is undone, so that every version costs what its write cost.

The forward pass saves what a write overwrites, the region and not the array; the backward pass puts it back at the
place of the write.  A loop inside that undoes its own writes ends with the array as the loop found it.

>>> import gradscribe as gs
>>> def f(a):
...     b = a.copy()
...     for i in range(1, len(b)):
...         b[i] = b[i] * np.sum(b[:i])
...     return np.sum(b)
>>> print(gs.grad(f).source_for(np.ones(3)).split("for i")[2])
 in reversed(range(n)):
    pass

Source: A. Griewank and A. Walther, Evaluating Derivatives (2008), 4.2 (reversing overwrites).
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import Apply, Const, For, Let, Pack, Slice, Var, all_reads, operands
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.vjp.undone import is_steady
from gradscribe.ast_transform.source.diagnose import ShapeError


class Undo:
    """The versions of the arrays of one loop that undoing the writes brings back, and what each is made of."""

    def __init__(self, restore, carries):
        self.restore, self.links, self.overwritten = restore, {}, {}
        for c in carries:
            if isinstance(c.next, Var) and isinstance(c.inner.fact, Array) and c.inner.fact.dims and is_steady(c):
                self.follow(c)

    def follow(self, carry):
        """The versions from the one that a pass leaves to the one that it begins with, or as far as writes go."""
        later, restore = carry.next, self.restore
        while later is not carry.inner:
            made = restore.maker.get(later)
            if restore.home.get(later) is not restore.step.body:
                return
            if isinstance(made, Let) and updates(made.value) and isinstance(made.value.args[0], Var):
                before, index = made.value.args[:2]
                old = self.replaced_by(made, before, index)
                if old is None or type(before.fact) is not Array:
                    return
                self.links[before] = later, index, old
            elif isinstance(made, For):
                inner = next(c for c in made.carries if c.outer is later)
                before, end = inner.init, restore.sweep.engine.ends.get(inner)
                if end is None or not isinstance(before, Var) or not self.comes_late_enough(before, end):
                    return
                self.links[before] = later, None, end
            else:
                return
            later = before

    def replaced_by(self, step, before, index):
        """What a write replaces: as the forward pass has read it, or a new name for it."""
        body = self.restore.step.body
        for s in body[:next(k for k, s in enumerate(body) if s is step)]:
            if isinstance(s, Let) and _is_item(s.value, before, index):
                old = s.targets[0]
                break
        else:
            build = self.restore.build
            block, build.block, origin, build.origin = build.block, [], build.origin, step.origin
            try:
                old = build.item(before, index)
                if len(build.block) != 1:
                    return None
                self.overwritten[old] = build.block[0], step
            except ShapeError:
                return None
            finally:
                build.block, build.origin = block, origin
        return old

    def comes_late_enough(self, version, end):
        """Whether nothing asks for a version before the backward loop that brings it back."""
        maker, block = self.restore.maker, self.restore.body
        place = next(k for k, s in enumerate(block) if isinstance(s, For) and any(c.outer is end for c in s.carries))
        queue = [v for s in block[:place] for v in all_reads(s)]
        seen = set()
        for v in queue:
            if v is version:
                return False
            made = maker.get(v)
            if v not in seen and isinstance(made, Let):
                seen.add(v)
                queue += operands(made.value)
        return True

    def straight_back(self, read):
        """Two writes to one place are undone at once, where nothing reads the version between them."""
        for v, (later, index, old) in self.links.items():       # the latest first
            if index is not None and later in self.links and later not in read:
                last, other, _ = self.links[later]
                if other is not None and same_place(other, index):
                    self.links[v] = last, index, old

    def __contains__(self, v):
        return v in self.links

    def replaced(self):
        return {old for _, index, old in self.links.values() if index is not None}

    def sources(self, v):
        later, index, old = self.links[v]
        return [later] if index is None else [later, old, *operands(index)]

    def save(self, old):
        """The forward pass reads what a write replaces, if it does not yet."""
        if old in self.overwritten:
            let, step = self.overwritten.pop(old)
            body = self.restore.step.body
            body.insert(next(k for k, s in enumerate(body) if s is step), let)
            self.restore.home[old], self.restore.maker[old] = body, let
            self.restore.sweep.note(old)

    def brought_back(self, v, prefix):
        """A version as the backward pass has it."""
        later, index, old = self.links[v]
        if index is None:
            return old
        new = Var(v.hint, v.fact, v.kind)
        prefix.setdefault(id(self.restore.step.body), []).append(Let((new,), Apply(put, (later, index, old))))
        return new


def _is_item(value, array, index):
    return isinstance(value, Apply) and value.function is operator.getitem and value.args[0] is array and same_place(
        value.args[1], index)


def same_place(a, b):
    """Whether two indices are the same, for certain."""
    return _key(a) == _key(b)


def _key(index):
    if isinstance(index, Const):
        return type(index.value), id(index.value) if isinstance(index.value, np.ndarray) else repr(index.value)
    if isinstance(index, Pack):
        return tuple(map(_key, index.items))
    return tuple(map(_key, (index.start, index.stop, index.step))) if isinstance(index, Slice) else index
