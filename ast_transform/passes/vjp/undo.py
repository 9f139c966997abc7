# SPDX-License-Identifier: Apache-2.0
"""Arrays that a loop writes into: going backward, each write is undone, so that every version costs what its write cost.

The forward pass saves what a write overwrites, the region and not the array; the backward pass puts it back at the
place of the write.  A loop inside that undoes its own writes ends with the array as the loop found it.

>>> import gradscribe as gs
>>> def f(a):
...     b = a.copy()
...     for i in range(len(b)):
...         b[i] = b[i] * np.sum(b[:i] ** 2)
...     return np.sum(b)
>>> print(gs.grad(f).source_for(np.ones(3)).split("db = ")[1])
np.ones_like(b)
    for i in reversed(range(n_0)):
        # b[i] = b[i] * np.sum(b[:i] ** 2)
        dt = db[i]
        db[i] = 0.0
        b_2 = b_saved[i]
        b[i] = b_2
        db[:i] += dt * b_2 * (2 * b[:i])
        db[i] += dt * sum_z_saved[i]
    return db
<BLANKLINE>

Source: A. Griewank and A. Walther, Evaluating Derivatives (2008), 4.2 (reversing overwrites).
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    For,
    Let,
    Pack,
    Slice,
    Var,
    all_reads,
    entry_reads,
    operands,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import add_at, put, put_add, shape_of
from gradscribe.ast_transform.passes.vjp.undone import is_steady
from gradscribe.ast_transform.source.diagnose import ShapeError


WRITES = (put, put_add, add_at)


class Undo:
    """The versions of the arrays of one loop that undoing the writes brings back, and what each is made of."""

    def __init__(self, restore, carries):
        self.restore, self.links, self.overwritten = restore, {}, {}
        self.promised = {}              # the ends of loops that do not undo their writes yet: what they carry
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
            if isinstance(made, Let) and isinstance(made.value, Apply) and made.value.function in WRITES and isinstance(
                    made.value.args[0], Var):
                before, index = made.value.args[:2]
                old = self.replaced_by(made, before, index)
                if old is None or type(before.fact) is not Array:
                    return
                self.links[before] = later, index, old
            elif isinstance(made, For):
                inner = next(c for c in made.carries if c.outer is later)
                before, end = inner.init, self.end_of(inner)
                if end is None or not isinstance(before, Var) or not self.comes_late_enough(before, inner, end):
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

    def end_of(self, carry):
        """What the backward loop leaves an array as: what the forward loop began with."""
        engine = self.restore.sweep.engine
        known, other = engine.ends.get(carry), engine.restored.get(carry)
        if known is not None or other is None or not other.writes.may_undo(carry):
            return known
        end = Var(carry.inner.hint, carry.inner.fact, carry.inner.kind)
        self.promised[end] = carry
        return end

    def may_undo(self, carry):
        """Whether a loop that was reversed without it can undo its writes into an array after all."""
        restore = self.restore
        if carry.inner not in self.links or not isinstance(restore.loop, For) or not isinstance(restore.step, For):
            return False
        return all(v not in restore.env and (end := self.links[v])[1] is not None and all(
            self.at_hand(o) for o in operands(end[1])) for v in self.versions(carry))

    def versions(self, carry):
        """What undoing the writes of a pass brings back, the latest first."""
        later = {link[0]: v for v, link in self.links.items()}
        found, v = [], carry.next
        while v is not carry.inner:
            v = later[v]
            found.append(v)
        return found

    def at_hand(self, v):
        """Whether the backward pass has a value, or can make it of such."""
        restore = self.restore
        if v in restore.env or v not in restore.child.inside or v is restore.step.index or any(
                v is i for i, _ in restore.step.items):
            return True
        return restore.cheap(v) and all(map(self.at_hand, operands(restore.maker[v].value)))

    def cost_of(self, end):
        """What the loop's stores cost."""
        other = self.restore.sweep.engine.restored[self.promised[end]].writes
        return sum(10 * (1 + 3 * (1 + other.links[v][2].fact.rank)) for v in other.versions(self.promised[end]))

    def fulfil(self, end):
        """The loop undoes its writes: at the end of its backward passes, since none of them asks for the array."""
        carry = self.promised.pop(end)
        other = self.restore.sweep.engine.restored[carry]
        made = other.writes.undone_late(carry, end)
        for v in made:
            self.restore.home[v], self.restore.maker[v] = self.restore.home[carry.outer], other.step
        for v, (later, index, old) in self.links.items():
            if old is end:
                self.links[v] = later, None, end

    def undone_late(self, carry, end):
        restore = self.restore
        step, loop, env = restore.step, restore.loop, restore.env
        held, prefix, forward, backward = Var(carry.inner.hint, carry.inner.fact, carry.inner.kind), {}, [], []
        more, value = [], held

        def known(v):
            """The name of a value in the backward pass."""
            if v in restore.renamed or v in env or v not in restore.child.inside:
                return
            if any(v is i for i, _ in step.items):
                restore.renamed[v] = v.like()
                loop.items = (*loop.items, (restore.renamed[v], next(s for i, s in step.items if i is v)))
                return
            made = restore.maker[v]
            for o in operands(made.value):
                known(o)
            for t in made.targets:
                env[t] = Var(t.hint, t.fact, t.kind)
            more.append(Let(tuple(env[t] for t in made.targets), here(made.value)))

        def here(value):
            return substituted(substituted(value, env), restore.renamed)

        for v in self.versions(carry):
            later, index, old = self.links[v]
            self.save(old)
            if old not in env:
                restore.store(old, env, prefix, forward, backward, [], restore.index)
                for lets in prefix.values():
                    more += [Let(s.targets, here(s.value)) for s in lets]
                prefix.clear()
            for o in operands(index):
                known(o)
            new = Var(v.hint, v.fact, v.kind)
            more.append(Let((new,), Apply(put, (value, here(index), here(old)))))
            value = new
        step.carries.extend(forward)
        loop.carries.extend([*backward, Carry(held, carry.outer, value, end)])
        loop.body.extend(more)
        restore.sweep.engine.ends[carry] = end
        return [c.outer for c in forward]

    def comes_late_enough(self, version, carry, end):
        """Whether nothing asks for a version before the backward loop that brings it back."""
        maker, block = self.restore.maker, self.restore.body
        loop = self.restore.sweep.engine.restored[carry].loop
        place = next(k for k, s in enumerate(block) if s is loop)
        queue = [*(v for s in block[:place] for v in all_reads(s)), *entry_reads(loop)]
        seen = set()
        for v in queue:
            if v is version:
                return False
            made = maker.get(v)
            if v not in seen and isinstance(made, Let) and not is_length(made.value):
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

    def last(self, v):
        """The version that a pass leaves: it has the same lengths, and is there from the start."""
        while v in self.links:
            v = self.links[v][0]
        return v

    def replaced(self):
        return {old for _, index, old in self.links.values() if index is not None}

    def sources(self, v):
        later, index, old = self.links[v]
        return [later, old, *(() if index is None else operands(index))]

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


def is_length(value):
    return isinstance(value, Apply) and value.function is shape_of


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
