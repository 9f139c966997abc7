# SPDX-License-Identifier: Apache-2.0
"""What must hold of the names that a normal form is printed with, and of the updates that are printed in place.

A normal form only makes values; its text sets names, and changes arrays and lists in place.  This runs the text on
paper (translation validation by abstract interpretation): a name holds the values that it holds on every path, and two
values may show one array where they do on any.  A name that is set holds its new value alone; an update in
place takes away every value that may show what has changed.  Each operand must be what its name holds where it is read.

>>> from gradscribe.ast_transform.examples import form
>>> from gradscribe.ast_transform.passes.out_of_ssa import coalesce
>>> f = form("def f(x):\\n    a = x * 1.0\\n    b = np.sin(a)\\n    a[1] = 2.0\\n    return a, b", np.ones(3))
>>> naming = coalesce(f)
>>> verify(f, naming)
>>> naming.names.update((v, "a") for v in naming.names)
>>> verify(f, naming)  # doctest: +ELLIPSIS
Traceback (most recent call last):
gradscribe.ast_transform.passes.check.Broken: the text of f reads ... where its name a ...
"""
import os
from typing import TYPE_CHECKING

import numpy as np  # noqa: F401  (the example above)

from gradscribe.ast_transform.core.alias import aliased, memory_of, updates
from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    Apply,
    Function,
    Pack,
    Var,
    While,
    all_made,
    all_reads,
    operands,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence, Stack
from gradscribe.ast_transform.core.memory import HOLDS
from gradscribe.ast_transform.core.operations import as_list
from gradscribe.ast_transform.passes.check import Broken

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.out_of_ssa import Naming

CALLER = "", "what the caller holds"
TWICE = "held more than once, perhaps"     # by a container: with the kind of what it holds
ANY = "any kind"
NOTHING: frozenset = frozenset()


def verified(function: Function, naming: "Naming") -> "Naming":
    """The names of a text that was checked; GRADSCRIBE_VERIFY=0 leaves the check out, a twentieth of the time."""
    if os.environ.get("GRADSCRIBE_VERIFY") != "0":
        verify(function, naming)
    return naming


def verify(function: Function, naming) -> None:
    """Broken, with the value and the statement, where the text of a function would read another value."""
    paper, state = _Paper(function, naming), _State()
    given = [p.value for p in function.params if isinstance(p.value, Var)]
    for v in given:
        paper.set(state, v)
        if is_container(v):
            state.hold(v, {(TWICE, ANY)})
    state.held[CALLER] = frozenset(given)
    paper.block(function.body, state)
    paper.read(function.result, state, "the result")
    lost = set(given) - state.held[CALLER]
    if lost:
        raise Broken(f"the text of {function.label} changes its arguments {sorted(map(str, lost))}")


class _State:
    """What is known at a place.

    held    the values that a name holds on every path
    beside  the values that may be the same array or container as a value, or show a part of it: each beside the other
    inside  the values that a container may hold, or show parts of
    """

    def __init__(self, held=(), beside=(), inside=()):
        self.held, self.beside, self.inside = dict(held), dict(beside), dict(inside)

    def copy(self):
        return _State(self.held, self.beside, self.inside)

    def become(self, other):
        self.held, self.beside, self.inside = other.held, other.beside, other.inside

    def either(self, other):
        """What is known where two paths meet."""
        held = {name: values if values is other.held[name] else values & other.held[name]
                for name, values in self.held.items() if name in other.held}
        return _State(held, _union(self.beside, other.beside), _union(self.inside, other.inside))

    def afresh(self, made):
        """Statements make values anew: what showed those of a pass before does not show these."""
        for v in made:
            for other in self.beside.pop(v, NOTHING):
                if other in self.beside:            # which shows v, too
                    self.beside[other] -= {v}
            self.inside.pop(v, None)
        for v, others in self.inside.items():
            if not others.isdisjoint(made):
                self.inside[v] = others - made

    def show(self, var, others):
        if not others:
            return
        kind = kind_of(var.fact)
        others = frozenset(v for v in others if isinstance(v, Var) and v is not var and kind_of(v.fact) == kind)
        self.beside[var] = self.beside.get(var, NOTHING) | others
        for v in others:
            self.beside[v] = self.beside.get(v, NOTHING) | {var}

    def hold(self, var, others):
        if others:
            self.inside[var] = self.inside.get(var, NOTHING) | others

    def all_beside(self, var):
        return self.beside.get(var, NOTHING) | {var}

    def held_in(self, var):
        """A value, and what it holds."""
        return self.all_beside(var) | self.inside.get(var, NOTHING)

    def holders(self, var):
        return {v for v, others in self.inside.items() if var in others}

    def __eq__(self, other):
        return (self.held, self.beside, self.inside) == (other.held, other.beside, other.inside)


class _Paper:
    """The text of a function, run on paper."""

    def __init__(self, function, naming):
        self.function, self.naming, self.names = function, naming, naming.names
        self.made = {*all_made(function.body), *(p.value for p in function.params)}
        self.made.update(v for s in walk(function.body) for c in getattr(s, "carries", ()) for v in (c.inner, c.outer))
        self.wanted = {v for step in function.body for v in all_reads(step)} | set(operands(function.result))

    def read(self, node, state, where):
        for v in operands(node):
            name = self.names.get(v)
            if name is not None and v in self.made and v not in state.held.get(name, ()):
                raise Broken(f"the text of {self.function.label} reads {v} where its name {name} holds "
                             f"{sorted(map(str, state.held.get(name, ()))) or 'nothing'} ({where})")

    # setting names

    def set(self, state, var, stays=False):
        state.afresh({var})
        name = self.names.get(var)
        if name is not None:
            state.held[name] = (state.held.get(name, NOTHING) if stays else NOTHING) | {var}

    def hand_on(self, state, pairs, where):
        """Names set at once: (variable, value, whether it is a copy) for each."""
        for _, value, _ in pairs:
            if isinstance(value, Var):
                self.read(value, state, where)
        before, first = state.copy(), set()
        for var, value, copied in pairs:
            name = self.names.get(var)
            stays = value is UNDEFINED or isinstance(value, Var) and self.names.get(value) == name and not copied
            self.set(state, var, stays or name in first)
            first.add(name)
        new = {var: value for var, value, copied in pairs if may_change(var) and isinstance(value, Var)}
        same = {var: value for var, value, copied in pairs if var in new and not copied}
        for var, value, copied in pairs:
            if var not in new:
                continue
            near = before.all_beside(value) if not copied else NOTHING
            held = before.inside.get(value, NOTHING)
            state.show(var, {v for v in near if v not in new} | {v for v, other in same.items() if other in near})
            state.hold(var, {v for v in held if v not in new} | {v for v, other in same.items() if other in held})
            for v in before.holders(value) if not copied else ():
                state.hold(next((n for n, other in same.items() if other is v), v), {var})
                state.hold(v, {var})

    def shows(self, state, value, target):
        """What an operation's result shows, and what it holds."""
        if isinstance(value, Pack):
            state.hold(target, NOTHING.union(*map(state.held_in, operands(value))))
        if not isinstance(value, Apply) or not may_change(target):
            return
        shown = [v for v in aliased(value) if may_change(v)]
        found = NOTHING.union(*(state.held_in(v) if is_container(target) or not is_container(v) else
                                state.inside.get(v, NOTHING) for v in shown))
        if is_container(target):
            state.hold(target, found)
        if memory_of(value) is not HOLDS and value.function is not as_list:     # which is a list of its own
            state.show(target, found)
            for v in shown:                 # what comes out of a container may still be in it
                if is_container(v):
                    state.hold(v, {target})

    def without(self, base, state):
        """An array, or a list, has been changed in place: a list that changes leaves its arrays as they are."""
        if not isinstance(base, Var):
            return
        lost = state.all_beside(base) | state.holders(base)
        for name, values in state.held.items():
            if not lost.isdisjoint(values):
                state.held[name] = values - lost

    # statements

    def block(self, block, state):
        for step in block:
            getattr(self, "after_" + type(step).__name__)(step, state)

    def after_Let(self, step, state):
        where, value = step.origin and step.origin.statement, step.value
        if updates(value):
            return self.update(step, state, where)
        self.read(value, state, where)
        if isinstance(value, Var):
            return self.hand_on(state, [(step.targets[0], value, False)], where)
        for t in step.targets:
            self.set(state, t)
        for t in step.targets:
            self.shows(state, value, t)

    def update(self, step, state, where):
        value, (target, *parts) = step.value, step.targets
        base, others = value.args[0], value.args[1:]
        copied, name = id(step) in self.naming.copies, self.names.get(target)
        if copied:                                  # before the rest is read
            self.read(base, state, where)
            state.held[name] = frozenset({base} if self.names.get(base) == name else ())
            for other in others:
                self.read(other, state, where)
        else:
            self.read(value, state, where)
            if self.names.get(base) != name:
                raise Broken(f"{self.function.label} changes {base} in place under another name ({where})")
            self.without(base, state)
        near = state.all_beside(base) if isinstance(base, Var) and not copied else NOTHING
        held = state.inside.get(base, NOTHING) if isinstance(base, Var) else NOTHING
        for t in step.targets:
            self.set(state, t)
        state.show(target, near)
        if is_container(target):
            more = NOTHING.union(*(state.held_in(v) for o in others for v in put_away(o, target) if may_change(v)))
            state.hold(target, held | more | {(TWICE, kind_of(v.fact)) for v in held & more if isinstance(v, Var)})
        for t in parts:                             # what is taken off a list
            if may_change(t):
                state.show(t, held)
                state.hold(target, {t} if not held.isdisjoint({(TWICE, kind_of(t.fact)), (TWICE, ANY)}) else NOTHING)
                if is_container(t):
                    state.hold(t, held)

    def after_Effect(self, step, state):
        self.read(step.value, state, step.origin and step.origin.statement)

    def after_If(self, step, state):
        self.read(step.test, state, "a test")
        state.afresh({*all_made(step.then), *all_made(step.orelse)})
        ends = []
        for arm, side in ((step.then, "then"), (step.orelse, "orelse")):
            end = state.copy()
            self.block(arm, end)
            self.hand_on(end, [(j.var, getattr(j, side), False) for j in step.joins], "what a branch hands on")
            ends.append(end)
        state.become(ends[0].either(ends[1]))

    def after_For(self, step, state):
        self.read(step.count, state, "a loop's count")
        walked = []
        for v, source in step.items:
            self.read(source, state, "a loop's source")
            if v in self.wanted:            # it is found again whatever its name holds by then
                walked.append((("", id(step), len(walked)), frozenset(_gone_through(source))))
        state.held.update(walked)

        def one_pass(state):
            for place, values in walked:
                if not values <= state.held[place]:
                    raise Broken(f"{self.function.label} changes what a loop walks over: {sorted(map(str, values))}")
            self.set(state, step.index)
            for v, source in step.items:
                self.set(state, v)
                for o in _gone_through(source) if may_change(v) else ():
                    state.show(v, state.inside.get(o, NOTHING) if is_container(o) else state.all_beside(o))
                    if is_container(o):
                        state.hold(o, {v})
                    if is_container(v):
                        state.hold(v, state.inside.get(o, NOTHING))
            self.block(step.body, state)
        self.passes(step, state, one_pass)
        for place, _ in walked:
            del state.held[place]

    def after_While(self, step, state):
        def one_pass(state):
            self.asked(step, state)
            self.block(step.body, state)
        self.passes(step, state, one_pass)

    def asked(self, step, state):
        if isinstance(step, While):
            self.block(step.head, state)
            self.read(step.test, state, "a loop's test")

    def passes(self, step, state, one_pass):
        def pairs(side):
            return [(c.inner, getattr(c, side), (id(c), side) in self.naming.copied_in) for c in step.carries]
        state.afresh({*all_made(step.body), *all_made(getattr(step, "head", ()))})
        self.hand_on(state, pairs("init"), "what a loop is entered with")
        while True:
            end = state.copy()
            one_pass(end)
            self.hand_on(end, pairs("next"), "what a pass hands on")
            both = state.either(end)
            if both == state:
                break
            state.become(both)
        self.asked(step, state)
        self.hand_on(state, [(c.outer, c.inner, False) for c in step.carries], "what a loop leaves")


def _gone_through(source):
    """The arrays and containers whose elements a loop is given: none where it walks over a new array."""
    return aliased(source) if isinstance(source, Apply) else operands(source)


def _union(first, second):
    both = {**second, **first}
    for v, others in second.items():
        if both[v] is not others:
            both[v] = both[v] | others
    return both


def put_away(node, container):
    """The values that a container holds, or holds parts of, once it is given an operand; a list of numbers holds none.
    """
    element = container.fact.element if isinstance(container.fact, Stack) else None
    if isinstance(container.fact, Listed) and container.fact.rank == 1 or isinstance(
            element, Array) and not element.dims:
        return ()
    return aliased(node) if isinstance(node, Apply) else operands(node)


def kind_of(fact):
    """What may be the same object, or show a part of it: arrays, containers of known structure, and lists that grow
    by what they hold."""
    if isinstance(fact, Stack | Listed):
        return "list", kind_of(fact.element) if isinstance(fact, Stack) else Array
    return next((kind for kind in (Array, Sequence) if isinstance(fact, kind)), None)


def is_container(var):
    return isinstance(var.fact, Stack | Listed | Sequence) or not isinstance(var.fact, Array)


def may_change(var):
    """Whether a value is an array with axes, or a container: no number."""
    return is_container(var) or bool(var.fact.dims)
