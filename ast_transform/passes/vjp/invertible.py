# SPDX-License-Identifier: Apache-2.0
"""Undoes the writes of a loop in its backward pass, so that earlier versions of an array need not be saved whole.

The forward pass saves the region that a write overwrites; the backward pass puts it back where the write was.  The
backward form of an inner loop that undoes its own writes ends with the array as that loop found it.  Induction
variables need nothing saved (induction.py).

>>> import numpy as np
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
        db_1 = 2 * db[i] * b_saved[i] * b[:i]
        db[i] *= np.sum(b[:i] ** 2)
        db[:i] += db_1
    return db
<BLANKLINE>

Source: A. Griewank and A. Walther, Evaluating Derivatives (2008), 4.2 (reversing overwrites).
"""
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.alias import record_of, updates
from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    For,
    If,
    Join,
    Let,
    Pack,
    Slice,
    Var,
    all_made,
    all_reads,
    blocks,
    is_application,
    made,
    operands,
    same_operand,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import put, shape_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vjp.expansion import length_beside
from gradscribe.ast_transform.passes.vjp.induction import is_steady, step_of, taken_back
from gradscribe.ast_transform.source.diagnose import ShapeError

MANY = 8                # entries that an axis of unknown length counts as


def cost_of(fact: Any) -> int:
    """The cost of saving a number or an array, in tenths of a number; an axis counts as MANY entries at most."""
    cost = 10
    for d in fact.dims if isinstance(fact, Array) else [None] * 3:
        n = None if d is None else d.normal()
        cost *= MANY if n is None or n.symbol is not None else min(max(n.offset, 1), MANY)
    return cost


class Write(NamedTuple):
    """A version is the later one with the overwritten entries put back."""
    later: Var
    index: Any
    old: Var

    def sources(self):
        return [self.later, self.old, *operands(self.index)]

    def replaced(self):
        return [self.old]


class Inside(NamedTuple):
    """A version is what the backward form of an inner loop ends with."""
    later: Var
    end: Var

    def sources(self):
        return [self.later, self.end]

    def replaced(self):
        return []


class Branch(NamedTuple):
    """A version is the later one with the entries that either arm has overwritten put back.

    arms: for each (statements that compute the indices, writes as (index, old), the last first)
    """
    later: Var
    test: Any
    arms: tuple

    def sources(self):
        own = {t for steps, _ in self.arms for s in steps for t in s.targets}
        read = [v for steps, writes in self.arms for node in (*(s.value for s in steps), *(i for i, _ in writes))
                for v in operands(node)]
        return [self.later, *operands(self.test), *self.replaced(), *(v for v in read if v not in own)]

    def replaced(self):
        return [old for _, writes in self.arms for _, old in writes]


class Same(NamedTuple):
    """The version at the end of an arm is that after the branch."""
    later: Var

    def sources(self):
        return [self.later]

    def replaced(self):
        return []


class Within(NamedTuple):
    """A version is what the backward form of a branch ends with, since loops in its arms undo their writes.

    arms: for each the link to the later version, None if the arm leaves the array unchanged
    """
    later: Var
    branch: If
    arms: tuple

    def sources(self):
        return [self.later, *(v for link in self.arms if link for v in link.sources())]

    def replaced(self):
        return [v for link in self.arms if link for v in link.replaced()]


class Counted(NamedTuple):
    """An induction variable is the later one with the steps of a pass reversed, the last first (induction.py)."""
    later: Var
    steps: list

    def sources(self):
        amounts = [o for _, s in self.steps for o in (s if isinstance(s, tuple) else (s,))]
        return [self.later, *(o for o in amounts if isinstance(o, Var))]

    def replaced(self):
        return []


class Undo:
    """The values of one loop that the backward pass restores by undoing: induction variables and, after `with_arrays`,
    versions of arrays.  `links` says for each how it is made from a later version.
    """

    def __init__(self, restore, carries):
        self.restore, self.links, self.overwritten = restore, {}, {}
        self.written = {}               # value that a write put into an array -> the read that gets it back
        self.free = set()               # overwritten entries that need not be put back
        self.promised = {}              # end of an inner loop that does not undo its writes yet -> its carry
        self.block = {}                 # the forward block of each link
        self.late = set()               # values that a backward form reads before their version is restored: saved
        self.inner = {}                 # version before an inner loop or branch -> the backward form that ends with it
        self.begun = {c.inner for c in carries}
        body = restore.step.body
        maker = {v: s for v, s in restore.maker.items() if restore.home[v] is body}
        for c in carries:
            if isinstance(c.next, Var) and c.next is not c.inner and (steps := step_of(c, maker)):
                self.links[c.inner], self.block[c.inner] = Counted(c.next, steps), body

    def with_arrays(self, carries):
        """A copy that undoes writes into arrays as well."""
        found = Undo(self.restore, carries)
        found.follow_arrays(carries)
        return found

    def follow_arrays(self, carries):
        for c in carries:
            if isinstance(c.next, Var) and isinstance(c.inner.fact, Array) and c.inner.fact.dims and is_steady(c):
                self.follow(c)
        for v in self.links.keys() & self.inner:
            self.read_too_early(v, self.inner[v])

    def read_too_early(self, version, backward):
        """Notes parts of a version, or of an older one, that are read before the version is restored: they are saved.

        version: of an array, before a loop or branch; backward: the backward form that ends with the version
        """
        earlier, more = set(), {version}
        while more:
            earlier |= more
            more = {v for v, link in self.links.items() if not earlier.isdisjoint(laters(link))} - earlier
        queue = list(dict.fromkeys(self.read_before_end(backward)))
        for v in queue:
            made = self.restore.maker.get(v)
            if v in self.written and self.written[v].args[0] in earlier:
                del self.written[v]
            if v in self.links:
                queue += [o for o in index_operands(self.links[v]) if o not in queue]
                continue
            if not isinstance(made, Let):
                continue
            if is_length(made.value):           # an array's versions have the same lengths; a part of one is read
                of = made.value.args[0]
                if of not in self and not self.leaves(of) and any(self.is_made_of(of, o) for o in earlier):
                    self.late.add(v)
            elif earlier.isdisjoint(operands(made.value)):
                queue += [o for o in operands(made.value) if o not in queue]
            else:
                self.late.add(v)

    def follow(self, carry):
        """Links the versions of an array from the end of a pass back to its beginning, or as far as can be undone.

        The pass may begin with another array, if the loop swaps arrays.
        """
        later, asked = carry.next, []
        while later not in self.begun:
            before, found = self.step_back(later, self.restore.step.body, asked)
            if found is None:
                return
            self.links[before] = found
            later = before

    def step_back(self, later, block, asked):
        """(the version before the statement that makes a version, the link between them), or (None, None).

        asked: values that are read before the backward forms of later statements have ended
        """
        restore, before, found = self.restore, None, None
        made = restore.maker.get(later)
        if restore.home.get(later) is not block:
            return None, None
        if writes_a_part(made):
            before, index, value = made.value.args
            old = self.replaced_by(made, block)
            found = Write(later, index, old) if old is not None else None
            if found and block is restore.step.body and made.value.function is put and self.made_alone(value) and \
                    shows(value, old, later) and self.is_read_back(value, index, later):
                self.written[value] = Apply(operator.getitem, (later, index))
        elif isinstance(made, For):
            inner = next(c for c in made.carries if c.outer is later)
            before, end = inner.init, self.end_of(inner)
            if end is not None:
                found = Inside(later, end)
                backward = restore.sweep.engine.restored[inner].backward.loop
                asked.append(self.read_before_end(backward))
                if isinstance(before, Var):
                    self.inner[before] = backward
        elif isinstance(made, If) and isinstance(restore.step, For):
            before, found = self.branch_of_writes(made, later)
            if found is None:
                before, found = self.branch_with_loops(made, later, asked)
        if found is None or not isinstance(before, Var) or type(before.fact) is not Array or any(
                before in early for early in asked):
            return None, None
        self.block[before] = block
        return before, found

    def branch_with_loops(self, branch, later, asked):
        """The same for a branch in whose arms loops write into the array."""
        backward = self.backward_form(branch)
        if backward is None:
            return None, None
        join, ends, arms, links = next(j for j in branch.joins if j.var is later), [], [], {}
        for block, v in ((branch.then, join.then), (branch.orelse, join.orelse)):
            local, found, early = set(all_made(block)), None, []
            if v in local:
                links[v], self.block[v] = Same(later), block
            while v in local:
                v, found = self.step_back(v, block, early)
                if found is None:
                    return None, None
                if v in local:
                    links[v] = found
            ends.append(v)
            arms.append(found)
        if ends[0] is not ends[1] or not any(arms):
            return None, None
        known = dict(self.links)
        self.links.update(links)
        asked.append(self.read_before_end(backward))
        if ends[0] in asked[-1]:
            self.links = known
            return None, None
        self.inner[ends[0]] = backward
        return ends[0], Within(later, branch, tuple(arms))

    def backward_form(self, branch):
        """The backward form of a branch; None if there is none."""
        mirror = self.restore.sweep.mirror.get(id(branch.then))
        return next((s for s in walk(self.restore.body) if isinstance(s, If) and s.then is mirror), None)

    def is_read_back(self, value, index, array):
        """Whether reading an array where a value was written gives the value: no entry repeats, the dtype is kept, and
        the index does not depend on the value.
        """
        return not may_repeat(index) and array not in self.restore.sweep.engine.several and not any(
            self.is_made_of(o, value) for o in operands(index))

    def is_made_of(self, v, other):
        """Whether the pass computes a value from another, directly or indirectly."""
        queue, maker = [v], self.restore.maker
        for u in queue:
            if u in maker and u is not other:
                step = maker[u]
                queue += [o for o in (operands(step.value) if isinstance(step, Let) else all_reads(step))
                          if o not in queue]
        return other in queue

    def branch_of_writes(self, branch, later):
        """The same for a branch whose arms write into the array and contain no loop that does."""
        join, ends, arms = next(j for j in branch.joins if j.var is later), [], []
        for block, v in ((branch.then, join.then), (branch.orelse, join.orelse)):
            maker, writes, steps = {t: s for s in block for t in made(s)}, [], {}
            local = set(all_made(block))
            while v in local:
                step = maker.get(v)
                if not writes_a_part(step):
                    return None, None
                old, more = self.replaced_by(step, block), [o for o in operands(step.value.args[1]) if o in local]
                if old is None or not self.has_shape(old) or not all(map(self.restore.cheap, more)):
                    return None, None
                for o in more:
                    steps[o] = maker[o]
                    more += [u for u in operands(maker[o].value) if u in local]
                if not all(map(self.restore.cheap, more)):
                    return None, None
                writes.append((step.value.args[1], old))
                v = step.value.args[0]
            ends.append(v)
            arms.append(([s for s in block if any(s is t for t in steps.values())], writes))
        return (ends[0], Branch(later, branch.test, tuple(arms))) if ends[0] is ends[1] else (None, None)

    def has_shape(self, old):
        """Whether one array can save these entries for all passes."""
        items = self.restore.step.items if isinstance(self.restore.step, For) else ()
        return not any(isinstance(v.fact, Sequence) for v, _ in items) and all(
            d.normal().symbol is None or self.restore.sweep.engine.length_of(d) is not None or length_beside(
                self.restore.sweep.engine.function, d) is not None for d in old.fact.dims)

    def replaced_by(self, step, block):
        """The entries that a write overwrites: an earlier read of them, or a new one to insert; None if neither."""
        before, index = step.value.args[:2]
        for s in block[:next(k for k, s in enumerate(block) if s is step)]:
            if isinstance(s, Let) and _is_item(s.value, before, index):
                return s.targets[0]
        build = self.restore.sweep.build
        outer, build.block, origin, build.origin = build.block, [], build.origin, step.origin
        try:
            old = build.item(before, index)
            if len(build.block) != 1:
                return None
            self.overwritten[old] = build.block[0], step, block
        except ShapeError:
            return None
        finally:
            build.block, build.origin = outer, origin
        return old

    def end_of(self, carry):
        """The variable that a backward loop ends with for the array that the forward loop began with; None if none."""
        engine = self.restore.sweep.engine
        known, other = engine.ends.get(carry), engine.restored.get(carry)
        if known is not None or other is None or not other.writes.may_undo(carry):
            return known
        end = Var(carry.inner.hint, carry.inner.fact, carry.inner.kind)
        self.promised[end] = carry
        return end

    def may_undo(self, carry):
        """Whether a loop that has been reversed can undo its writes into an array after all."""
        backward = self.restore.backward
        if carry.inner not in self.links or not isinstance(backward.loop, For) or not isinstance(
                self.restore.step, For):
            return False
        versions = self.versions(carry)
        return versions[-1:] == [carry.inner] and all(      # arrays that are exchanged go on as each other
            v not in backward.env and isinstance(link := self.links[v], (Write, Branch)) and all(
                map(self.at_hand, index_operands(link))) and all(
                self.has_shape(old) and old not in backward.env for old in link.replaced() if isinstance(link, Branch))
            for v in versions)

    def versions(self, carry):
        """The versions that undoing the writes of a pass restores, the latest first; none if one of them is saved."""
        later = {link.later: v for v, link in self.links.items() if not isinstance(link, Same)}
        found, v = [], carry.next
        while v not in self.begun:
            v = later.get(v)
            if v is None:
                return []
            found.append(v)
        return found

    def at_hand(self, v):
        """Whether the backward pass has a value, or can recompute it."""
        restore = self.restore
        if v in restore.backward.env or v not in restore.child.inside or v is restore.step.index or any(
                v is i for i, _ in restore.step.items):
            return True
        return restore.cheap(v) and all(map(self.at_hand, operands(restore.maker[v].value)))

    def stores_of(self, end):
        """The entries that an inner loop would save to undo its writes."""
        other = self.restore.sweep.engine.restored[self.promised[end]].writes
        return [old for v in other.versions(self.promised[end]) for old in other.links[v].replaced()
                if old not in other.free]

    def cost_of(self, end):
        """The cost of saving these."""
        return sum(MANY * cost_of(old.fact) for old in self.stores_of(end))

    def fulfil(self, end):
        """Makes an inner loop undo its writes, at the end of its backward passes, which do not read the array."""
        carry = self.promised.pop(end)
        other = self.restore.sweep.engine.restored[carry]
        made = other.writes.undone_late(carry, end)
        for v in made:
            self.restore.home[v], self.restore.maker[v] = self.restore.home[carry.outer], other.step

    def undone_late(self, carry, end):
        """Adds to a loop that has been reversed the undoing of its writes into one array.

        carry: what the forward loop carries; end: the name for the array as it was before the loop
        -> the stores that the forward loop fills for it
        """
        return LateUndo(self, carry).run(end)

    def read_before_end(self, step):
        """The values that are read before the backward form of a loop or branch has ended."""
        return [*(v for s in statements_before(self.restore.body, step) for v in all_reads(s)), *all_reads(step)]

    def made_alone(self, v):
        """Whether a value is the only result of a statement of the pass."""
        made = self.restore.maker.get(v) if isinstance(v, Var) else None
        return isinstance(made, Let) and len(made.targets) == 1

    def weigh(self, read):
        """Finds overwritten entries that need not be put back, since the backward pass does not read them.

        read: the values of this pass that it reads, and those that it recomputes them from
        """
        engine, step = self.restore.sweep.engine, self.restore.step

        def counts(use):
            return use.loops[-1:] != (step,) or not isinstance(use.step, Let) or not read.isdisjoint(use.step.targets)

        around = engine.analyses.regions.loops      # without loops that run again (checkpoints)
        self.free = {link.old for v, link in self.links.items() if isinstance(link, Write) and link.later in around and
                     self.block[v] is step.body and
                     not engine.analyses.regions.read_before(v, link.index, around[link.later], counts)}

    def straight_back(self, read):
        """Undoes two writes to one place at once, if nothing reads the version between them."""
        for v, link in list(self.links.items()):        # the latest first
            next_one = self.links.get(link.later)
            if isinstance(link, Write) and isinstance(next_one, Write) and link.later not in read and same_operand(
                    link.index, next_one.index):
                self.links[v] = link._replace(later=next_one.later)

    def __contains__(self, v):
        return v in self.links

    def last(self, v):
        """The version at the end of a pass: the backward pass has it from the start, and its lengths are the same."""
        while v in self.links:
            v = self.links[v].later
        return v

    def leaves(self, v):
        """Whether earlier versions of an array are restored from this one."""
        return any(v in laters(link) for link in self.links.values())

    def replaced(self):
        return {old for link in self.links.values() for old in link.replaced()}

    def sources(self, v):
        return self.links[v].sources()

    def index_operands(self, v):
        """The indices and tests of the link of a version."""
        return index_operands(self.links[v])

    def save(self, old):
        """Inserts the read of overwritten entries before their write, if it is a new one."""
        if old in self.overwritten:
            let, step, block = self.overwritten.pop(old)
            block.insert(next(k for k, s in enumerate(block) if s is step), let)
            self.restore.home[old], self.restore.maker[old] = block, let
            self.restore.sweep.note(old)

    def brought_back(self, v, env, prefix):
        """The operand of a restored version in the backward pass."""
        return self.value_of(self.links[v], v, self.block[v], env, prefix)

    def value_of(self, link, v, block, env, prefix):
        """The operand of the version that a link makes from the later one, in the backward form of a block."""
        if isinstance(link, Inside):
            return link.end
        if isinstance(link, Counted):
            steps, value = taken_back(v, link.steps, link.later)
            prefix.setdefault(id(block), []).extend(steps)
            return value
        if isinstance(link, Same):
            return env.get(link.later, link.later)
        new = Var(v.hint, v.fact, v.kind)
        if isinstance(link, Write):
            prefix.setdefault(id(block), []).append(Let((new,), Apply(put, (link.later, link.index, link.old))))
        elif isinstance(link, Within):
            ends = [link.later if a is None else self.value_of(a, v, b, env, prefix)
                    for a, b in zip(link.arms, (link.branch.then, link.branch.orelse))]
            self.backward_form(link.branch).joins.append(Join(new, *ends))
        else:
            prefix.setdefault(id(block), []).append(self.put_back_in_arms(link, v, new, env, prefix))
        return new

    def put_back_in_arms(self, link, v, new, env, prefix):
        """A branch that puts back the entries that the arms of a forward branch have overwritten."""
        arms, ends = [], []
        for steps, writes in link.arms:
            own = {t: t.like() for s in steps for t in s.targets}
            block, value = [Let(tuple(own[t] for t in s.targets), substituted(s.value, own)) for s in steps], link.later
            for index, old in writes:
                read = next(s for s in prefix[id(self.restore.home[old])] if env[old] in s.targets)
                block.append(Let((again := env[old].like(),), read.value))
                value, now = Var(v.hint, v.fact, v.kind), value
                block.append(Let((value,), Apply(put, (now, substituted(index, own), again))))
            arms.append(block)
            ends.append(value)
        return If(link.test, *arms, [Join(new, *ends)])


class LateUndo:
    """Adds to a backward loop the statements that undo the writes of the forward loop into one array."""

    def __init__(self, undo, carry):
        self.undo, self.restore, self.carry = undo, undo.restore, carry
        self.statements, self.forward, self.backward = [], [], []       # new statements and carries of the two loops

    def run(self, end):
        loop, inner = self.restore.backward.loop, self.carry.inner
        value = held = Var(inner.hint, inner.fact, inner.kind)
        for v in self.undo.versions(self.carry):
            link, new = self.undo.links[v], Var(v.hint, v.fact, v.kind)
            for o in index_operands(link):
                self.compute(o)
            if isinstance(link, Write):
                self.statements += self.read_saved(link.old)
                self.statements.append(Let((new,), Apply(put, (value, self.here(link.index), self.here(link.old)))))
            else:
                self.statements.append(self.branch(link, v, value, new))
            value = new
        self.restore.step.carries.extend(self.forward)
        loop.carries.extend([*self.backward, Carry(held, self.carry.outer, value, end)])
        loop.body.extend(self.statements)
        self.restore.sweep.engine.ends[self.carry] = end
        return [c.outer for c in self.forward]

    def compute(self, v):
        """Makes a value of the forward pass available in the backward pass."""
        restore, (loop, _, env, renamed) = self.restore, self.restore.backward
        if v in renamed or v in env or v not in restore.child.inside:
            return
        source = next((s for i, s in restore.step.items if i is v), None)
        if source is not None:
            renamed[v] = v.like()
            loop.items = (*loop.items, (renamed[v], source))
            return
        made = restore.maker[v]
        for o in operands(made.value):
            self.compute(o)
        for t in made.targets:
            env[t] = Var(t.hint, t.fact, t.kind)
        self.statements.append(Let(tuple(env[t] for t in made.targets), self.here(made.value)))

    def here(self, value):
        """A value of the forward pass in the names of the backward pass."""
        return substituted(substituted(value, self.restore.backward.env), self.restore.backward.renamed)

    def read_saved(self, old):
        """Statements that read what a write replaced."""
        backward, prefix = self.restore.backward, {}
        self.undo.save(old)
        if old not in backward.env:
            self.restore.store(old, backward.env, prefix, self.forward, self.backward, [], backward.at)
        return [Let(s.targets, self.here(s.value)) for lets in prefix.values() for s in lets]

    def branch(self, link, v, value, new):
        """A branch that undoes the writes of either arm of a forward branch."""
        arms, ends = [], []
        for steps, writes in link.arms:
            own, now = {t: t.like() for s in steps for t in s.targets}, value
            block = [Let(tuple(own[t] for t in s.targets), self.here(substituted(s.value, own))) for s in steps]
            for index, old in writes:
                block += self.read_saved(old)
                place, before, now = self.here(substituted(index, own)), now, Var(v.hint, v.fact, v.kind)
                block.append(Let((now,), Apply(put, (before, place, self.here(old)))))
            arms.append(block)
            ends.append(now)
        return If(self.here(link.test), *arms, [Join(new, *ends)])


def laters(link):
    """The later versions of a link."""
    inside = [v for a in link.arms if a for v in laters(a)] if isinstance(link, Within) else []
    return [link.later, *inside]


def index_operands(link):
    """The indices and tests of a link."""
    if isinstance(link, Within):
        return [v for a in link.arms if a for v in index_operands(a)]
    return [] if isinstance(link, Inside) else [
        v for v in link.sources() if v is not link.later and v not in link.replaced()]


def statements_before(block, step):
    """The statements before one in a block or in arms of its branches; None if it is in none of them."""
    for k, s in enumerate(block):
        if s is step:
            return block[:k]
        for arm in blocks(s) if isinstance(s, If) else ():
            found = statements_before(arm, step)
            if found is not None:
                return [*block[:k], *found]
    return None


def writes_a_part(step: Any) -> bool:
    """Whether a statement writes into an array, and so makes a new version."""
    return isinstance(step, Let) and updates(step.value) and isinstance(base := step.value.args[0], Var) and type(
        base.fact) is Array


def shows(value, old, array):
    """Whether reading back a value from an array has the same fact: a Python number comes back as one of NumPy."""
    return isinstance(value, Var) and type(value.fact) is Array and value.fact.rank == old.fact.rank and all(
        a.same(b) for a, b in zip(value.fact.dims, old.fact.dims)) and not value.fact.weak and np.dtype(
        value.fact.dtype) == np.dtype(array.fact.dtype)


def may_repeat(index: Var | Const | Pack | Slice) -> bool:
    """Whether an index may reach an entry more than once: one with an integer array."""
    for p in index.items if isinstance(index, Pack) else (index,):
        fact = fact_of(p) if isinstance(p, (Var, Const)) else None
        if isinstance(fact, Array) and fact.dims and fact.kind in "iu" or isinstance(p, Const) and isinstance(
                p.value, (np.ndarray, list)):
            return True
    return False


def names_rows(index: Var | Const | Pack | Slice, made_by: Mapping[Var, Any]) -> bool:
    """Whether an index of arrays reaches each row once: x[np.arange(n), labels]."""
    arrays = [p for p in (index.items if isinstance(index, Pack) else (index,)) if isinstance(p, Var) and p.fact.dims]
    first = arrays[0].fact.dims[0] if arrays else None
    return first is not None and all(p.fact.rank == 1 and p.fact.dims[0].same(first) for p in arrays) and any(
        counts_up(made_by.get(p)) for p in arrays)


def counts_up(value):
    """Whether an operation gives the integers from 0 on, as np.arange(n)."""
    record = record_of(value.function) if isinstance(value, Apply) else None
    return record is not None and bool(record.options.get("counts")) and len(value.args) == 1 and all(
        k == "dtype" for k, _ in value.kwargs)


def is_length(value: Any) -> bool:
    """x.shape[k]"""
    return isinstance(value, Apply) and value.function is shape_of


def _is_item(value, array, index):
    return is_application(value, operator.getitem) and value.args[0] is array and same_operand(
        value.args[1], index)
