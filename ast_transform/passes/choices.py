# SPDX-License-Identifier: Apache-2.0
"""Arrays that are one of two, by a test: what a write into one leaves in the others (path-sensitive alias analysis).

y = a[1:] if test else b is a choice: y shows a part of a where the test held, and b where it did not.  A write into y
is one into a under the test, and one into b otherwise; a write into a is seen in y under the test.  So each array stays
known by itself, and the writes are the user's.  Where a test does not tell (a pass of a loop, an operation whose result
may share memory or not), what is shown is a Conflict, as storage.py has it.

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, t):\\n    a = x * 2\\n    b = a if t > 0 else x * 3\\n    b[0] = 5.0\\n    return a.sum()"
>>> print(show(form(text, np.ones(3), 1.0)))
f(x, t):
    a = x * 2
    t_1 = t > 0
    if t_1:
        pass
    else:
        z = x * 3
    join value = a | z
    value_1 = put(value, 0, 5.0)
    if t_1:
        pass
    else:
        pass
    join a_1 = value_1 | a
    join z_1 = undefined | value_1
    sum_a = np.sum(a_1)
    return sum_a
"""
from collections import namedtuple
from contextlib import contextmanager

from gradscribe.ast_transform.core.form import UNDEFINED, For, If, Join, Let, Var, While, operands, substituted, walk
from gradscribe.ast_transform.passes.views import Views, is_array

Choice = namedtuple("Choice", "step then orelse")   # the If, and for each arm the array and the path of views from it


class Choices(Views):
    # what a branch leaves

    def chosen(self, var, a, b, branch, kind, memo):
        """Notes of which arrays `var` is one, by the branch's test; versions of one array are that array."""
        if not is_array(var) or self.unroll and not all(     # compiled code knows one length for each axis
                m.same(n) for v in (a, b) if is_array(v) for m, n in zip(v.fact.dims, var.fact.dims)):
            return
        first, second = (self.choices.get(v) if isinstance(v, Var) else None for v in (a, b))
        if first is not None and second is not None and first.step is second.step:
            self.find_closed(a)
            self.find_closed(b)
            sides = [self.one_side(p, q, branch, kind, memo) for p, q in zip(first[1:], second[1:])]
            if None not in sides:
                self.choices[var] = Choice(first.step, *sides)
            return
        sides = [self.base_path(v) if is_array(v) else () for v in (a, b)]
        if not all(sides) or sides[0][1] or sides[1][1] or self.storages(a) != self.storages(b):
            self.choices[var] = Choice(branch, *self.handed_out(branch, sides))

    def handed_out(self, branch, sides):
        """The sides of a choice; what the operations of their views read of an arm is handed on by its branch."""
        found = []
        for side, arm in zip(sides, (branch.then, branch.orelse)):
            if not side or not side[1]:
                found.append(side)
                continue
            inside, known = {v for s in arm for v in _set_by(s)}, {}
            views = {v for _, v in side[1]} | {side[0]}
            for v in dict.fromkeys(v for made, _ in side[1] for v in operands(made)):
                if v in inside and v not in views:
                    known[v] = v.like()
                    branch.joins.append(Join(known[v], *((v, UNDEFINED) if arm is branch.then else (UNDEFINED, v))))
                    self.partly.add(known[v])
            found.append((side[0], [(substituted(made, known), view) for made, view in side[1]]))
        return found

    def one_side(self, p, q, branch, kind, memo):
        """One side of a choice that two arms leave in two versions; None where it is not one array."""
        if not p and not q:
            return ()
        if not p or not q or not same_path(p[1], q[1]):
            return None
        (a, path), (b, _) = p, q
        if a is b:
            return p
        if self.storages(a) != self.storages(b) or {a, b} & self.arm_only:
            return None
        whole = self.met(a, b, a.hint, branch, kind, memo)
        return (whole, path) if is_array(whole) else None

    def left_by(self, branch):
        """The arrays of this branch's choices, as the branch leaves them."""
        for j in branch.joins:
            choice = self.choices.get(j.var)
            if choice is not None and choice.step is branch:
                self.choices[j.var] = Choice(branch, *(
                    side and (next((k.var for k in branch.joins if getattr(k, arm) is side[0] and k.var is not j.var
                                    and all(is_array(v) and self.storages(v) == self.storages(side[0])
                                            for v in (k.then, k.orelse))), side[0]), side[1])
                    for arm, side in zip(("then", "orelse"), choice[1:])))

    # writes

    def reached(self, base) -> frozenset:
        """The arrays that one may be, by the tests that are known."""
        choice = self.choices.get(base)
        if choice is None:
            return frozenset({base})
        return frozenset().union(*(self.reached(side[0]) for side in choice[1:] if side))

    def beside(self, base, shown) -> list:
        """The other arrays of `shown` that a write into one changes under a test."""
        mine = self.reached(base)
        group = [v for v in shown if v is not base and mine & self.reached(v)]
        if not group or self.unclear(mine, mine):
            return []
        for v in (base, *group):
            self.find_closed(v)
        if any(side and side[0] in self.choices and self.reached(side[0]) & self.arm_only
               for side in self.choices.get(base, ((),))[1:]):
            return []                   # what such an array holds has no name where another test fails
        unseen = self.hidden(base, True)
        return [v for v in group if not self.unclear(mine, self.reached(v))
                and not mine & self.reached(v) & (unseen | self.hidden(v, False))]

    def find_closed(self, base):
        """Notes which arrays of a choice were made in an arm, which nothing outside it can name."""
        choice = self.choices.get(base)
        for side in choice[1:] if choice is not None else ():
            if side and side[0] not in self.in_arms:
                self.in_arms[side[0]] = any(side[0] in _set_by(s) for arm in (choice.step.then, choice.step.orelse)
                                           for s in walk(arm))
                if self.in_arms[side[0]]:
                    self.arm_only.add(side[0])
            if side:
                self.find_closed(side[0])

    def hidden(self, base, through) -> frozenset:
        """The arrays that one may be by way of what only an arm knows: a test there, or an array shown in part."""
        choice, found = self.choices.get(base), frozenset()
        for side in choice[1:] if choice is not None else ():
            if side:
                found |= self.reached(side[0]) if self.is_hidden(side, through) else self.hidden(side[0], through)
        return found

    def is_hidden(self, side, through) -> bool:
        """Whether a side of a choice is no way to an array; `through`: from what is shown to what shows it."""
        inside = bool(side) and self.in_arms.get(side[0], False)
        return inside and (side[0] in self.choices or through and bool(side[1]))

    def unclear(self, these, those) -> bool:
        """Whether two arrays may share memory by more than the tests."""
        return any(a is not b and self.storages(a) & self.storages(b) for a in these for b in those)

    def changed_too(self, base, root, shown, node) -> dict:
        """What is in each array now that `base` is `root`, by the tests of choices.

        Where nothing else is shown, the choice is forgotten: `root` is an array like others.
        """
        changed, group = {base: root}, self.beside(base, shown)
        if group:
            changed = {**self.passed_down(base, root, node), base: root}
            for v in group:
                self.as_now(v, changed, node)
            choice = self.choices.get(base)
            if choice is not None:
                self.choices[root] = Choice(choice.step, *(
                    side and (self.as_now(side[0], changed, node), side[1]) for side in choice[1:]))
        return changed

    def passed_down(self, base, new, node) -> dict:
        """The arrays of which `base` is one, each as it is after `base` has become `new`."""
        self.can_write(base, node)
        choice = self.choices.get(base)
        if choice is None:
            return {base: new}
        arms = []
        for side in choice[1:]:
            with self.own_block() as block:
                found = {} if not side or self.is_hidden(side, True) else \
                    self.passed_down(side[0], self.through(*side, new, node), node)
                arms.append((block, found))
        (then, first), (orelse, second) = arms
        return self.met_here(choice, then, orelse, {a: (first.get(a, a), second.get(a, a))
                                                    for a in dict.fromkeys([*first, *second])})

    def through(self, base, path, new, node):
        """The array that a choice shows by a path of views, after what it shows has become `new`."""
        if not path:
            same = all(m.same(n) for m, n in zip(new.fact.dims, base.fact.dims))
            return new if same else self.build.let(base.hint, new, base.fact, base.kind)
        return self.put_back(self.base_path(self.again(path, base))[1], new, node)

    def as_now(self, base, changed, node):
        """An array, after others have changed."""
        choice = self.choices.get(base)
        if base in changed or choice is None:
            return changed.get(base, base)
        now = [side and (side[0] if self.is_hidden(side, False) else self.as_now(side[0], changed, node))
               for side in choice[1:]]
        if all(not side or v is side[0] for v, side in zip(now, choice[1:])):
            return base
        self.can_write(base, node)
        arms = []
        for v, side in zip(now, choice[1:]):
            with self.own_block() as block:
                arms.append((block, base if not side or v is side[0] else self.again(side[1], v)))
        (then, first), (orelse, second) = arms
        new = changed[base] = self.met_here(choice, then, orelse, {base: (first, second)})[base]
        self.choices[new] = Choice(choice.step, *(side and (v, side[1]) for v, side in zip(now, choice[1:])))
        return new

    def met_here(self, choice, then, orelse, ends) -> dict:
        """The branch of a choice's test once more; `ends` says what each arm leaves for an array."""
        made, branch = {}, If(choice.step.test, then, orelse, [], self.build.origin)
        for old, values in ends.items():
            new = made[old] = Var(old.hint, old.fact, old.kind)
            if old in self.arm_only and any(v is old for v in values):
                values = [UNDEFINED if v is old else v for v in values]
                self.arm_only.add(new)
            branch.joins.append(Join(new, *values))
            self.tokens[new], self.layouts[new] = self.storages(old), self.rowwise(old)
            if old in self.partly:
                self.partly.add(new)
        self.build.block.append(branch)
        return made

    @contextmanager
    def own_block(self):
        """Statements of a block of its own."""
        outer, self.build.block = self.build.block, []
        try:
            yield self.build.block
        finally:
            self.build.block = outer

    # loops

    def carried_with(self, base, entry) -> list:
        """The arrays that a loop must carry where it carries one, since a write into either is seen in the other."""
        found, more = [], [v for v in self.beside(base, entry)]
        while more:
            found += more
            roots = frozenset().union(*map(self.reached, [base, *found]))
            more = [v for v in [*entry, *roots] if v is not base and v not in found and roots & self.reached(v)]
        return [] if any(map(self.made_in_arm, [base, *found])) else found

    def made_in_arm(self, base) -> bool:
        """Whether a choice is of an array that is nothing where another arm was taken."""
        self.find_closed(base)
        return bool(self.reached(base) & self.arm_only)

    def handed_over(self, mapping):
        """The choices of arrays that go on under other names."""
        for old, new in mapping.items():
            choice = self.choices.get(old)
            if choice is not None and new is not old and not self.made_in_arm(old):
                self.choices[new] = Choice(choice.step, *(
                    side and (mapping.get(side[0], side[0]), side[1]) for side in choice[1:]))


def same_path(path, other) -> bool:
    """Whether two paths of views are the same operations with the same operands."""
    return len(path) == len(other) and all(
        m.function is n.function and len(m.args) == len(n.args) and m.kwargs == n.kwargs and
        all(x is y for x, y in zip(m.args[1:], n.args[1:])) for (m, _), (n, _) in zip(path, other))


def _set_by(step):
    if isinstance(step, Let):
        return step.targets
    if isinstance(step, If):
        return [j.var for j in step.joins]
    return [c.outer for c in step.carries] if isinstance(step, (For, While)) else []
