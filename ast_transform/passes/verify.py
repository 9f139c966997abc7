# SPDX-License-Identifier: Apache-2.0
"""Translation validation of the printed text: every name holds the value that the normal form reads by it.

A normal form only makes values; its text assigns to names, and changes arrays and lists in place.  This is an abstract
interpretation of the text: a name holds the values that it holds on every path, and two values may alias if they do on
any path.  Assigning to a name leaves it its new value alone; an update in place removes every value that may alias what
has changed.  Each operand must be a value that its name holds where it is read.

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
TWICE = "held more than once, perhaps"     # a container may have one element twice; with the kind of the element
ANY = "any kind"
NOTHING: frozenset = frozenset()


def verified(function: Function, naming: "Naming") -> "Naming":
    """The names, once they are verified; GRADSCRIBE_VERIFY=0 skips that, which saves a twentieth of the time."""
    if os.environ.get("GRADSCRIBE_VERIFY") != "0":
        verify(function, naming)
    return naming


def verify(function: Function, naming) -> None:
    """Raises Broken, with the value and the statement, if the text of a function would read another value."""
    interpreter, state = _Interpreter(function, naming), _State()
    given = [p.value for p in function.params if isinstance(p.value, Var)]
    for v in given:
        interpreter.set(state, v)
        if is_container(v):
            state.hold(v, {(TWICE, ANY)})
    state.held[CALLER] = frozenset(given)
    interpreter.block(function.body, state)
    interpreter.read(function.result, state, "the result")
    lost = set(given) - state.held[CALLER]
    if lost:
        raise Broken(f"the text of {function.label} changes its arguments {sorted(map(str, lost))}")


class _State:
    """The abstract state at a place.

    held    {name: the values that it holds on every path}
    aliases {value: the values that may alias it}, a symmetric relation
    inside  {container: the values that it may hold, or hold views of}
    """

    def __init__(self, held=(), aliases=(), inside=()):
        self.held, self.aliases, self.inside = dict(held), dict(aliases), dict(inside)

    def copy(self):
        return _State(self.held, self.aliases, self.inside)

    def replace_by(self, other):
        self.held, self.aliases, self.inside = other.held, other.aliases, other.inside

    def join(self, other):
        """The join of two states, where two paths meet."""
        held = {name: values if values is other.held[name] else values & other.held[name]
                for name, values in self.held.items() if name in other.held}
        return _State(held, _union(self.aliases, other.aliases), _union(self.inside, other.inside))

    def forget(self, made):
        """Forgets the aliases of values that are about to be defined again, from an earlier iteration."""
        for v in made:
            for other in self.aliases.pop(v, NOTHING):
                if other in self.aliases:            # the relation is symmetric
                    self.aliases[other] -= {v}
            self.inside.pop(v, None)
        for v, others in self.inside.items():
            if not others.isdisjoint(made):
                self.inside[v] = others - made

    def show(self, var, others):
        if not others:
            return
        kind = kind_of(var.fact)
        others = frozenset(v for v in others if isinstance(v, Var) and v is not var and kind_of(v.fact) == kind)
        self.aliases[var] = self.aliases.get(var, NOTHING) | others
        for v in others:
            self.aliases[v] = self.aliases.get(v, NOTHING) | {var}

    def hold(self, var, others):
        if others:
            self.inside[var] = self.inside.get(var, NOTHING) | others

    def all_aliases(self, var):
        return self.aliases.get(var, NOTHING) | {var}

    def held_in(self, var):
        """A value with its aliases, and what it holds."""
        return self.all_aliases(var) | self.inside.get(var, NOTHING)

    def holders(self, var):
        return {v for v, others in self.inside.items() if var in others}

    def __eq__(self, other):
        return (self.held, self.aliases, self.inside) == (other.held, other.aliases, other.inside)


class _Interpreter:
    """The interpreter: runs the text of a function on abstract states."""

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

    # assignments

    def set(self, state, var, stays=False):
        state.forget({var})
        name = self.names.get(var)
        if name is not None:
            state.held[name] = (state.held.get(name, NOTHING) if stays else NOTHING) | {var}

    def assign(self, state, pairs, where):
        """A parallel assignment; pairs: [(variable, value, whether it is copied)]."""
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
            near = before.all_aliases(value) if not copied else NOTHING
            held = before.inside.get(value, NOTHING)
            state.show(var, {v for v in near if v not in new} | {v for v, other in same.items() if other in near})
            state.hold(var, {v for v in held if v not in new} | {v for v, other in same.items() if other in held})
            for v in before.holders(value) if not copied else ():
                state.hold(next((n for n, other in same.items() if other is v), v), {var})
                state.hold(v, {var})

    def shows(self, state, value, target):
        """Notes what the result of an operation aliases, and what it holds."""
        if isinstance(value, Pack):
            state.hold(target, NOTHING.union(*map(state.held_in, operands(value))))
        if not isinstance(value, Apply) or not may_change(target):
            return
        shown = [v for v in aliased(value) if may_change(v)]
        found = NOTHING.union(*(state.held_in(v) if is_container(target) or not is_container(v) else
                                state.inside.get(v, NOTHING) for v in shown))
        if is_container(target):
            state.hold(target, found)
        if memory_of(value) is not HOLDS and value.function is not as_list:     # these make a new list
            state.show(target, found)
            for v in shown:                 # an element may still be in its container
                if is_container(v):
                    state.hold(v, {target})

    def kill(self, base, state):
        """Removes what may alias or hold an array or list that is changed in place; the elements of a list stay."""
        if not isinstance(base, Var):
            return
        lost = state.all_aliases(base) | state.holders(base)
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
            return self.assign(state, [(step.targets[0], value, False)], where)
        for t in step.targets:
            self.set(state, t)
        for t in step.targets:
            self.shows(state, value, t)

    def update(self, step, state, where):
        value, (target, *parts) = step.value, step.targets
        base, others = value.args[0], value.args[1:]
        copied, name = id(step) in self.naming.copies, self.names.get(target)
        if copied:                                  # before the other operands are read
            self.read(base, state, where)
            state.held[name] = frozenset({base} if self.names.get(base) == name else ())
            for other in others:
                self.read(other, state, where)
        else:
            self.read(value, state, where)
            if self.names.get(base) != name:
                raise Broken(f"{self.function.label} changes {base} in place under another name ({where})")
            self.kill(base, state)
        near = state.all_aliases(base) if isinstance(base, Var) and not copied else NOTHING
        held = state.inside.get(base, NOTHING) if isinstance(base, Var) else NOTHING
        for t in step.targets:
            self.set(state, t)
        state.show(target, near)
        if is_container(target):
            more = NOTHING.union(*(state.held_in(v) for o in others for v in _put_in(o, target) if may_change(v)))
            state.hold(target, held | more | {(TWICE, kind_of(v.fact)) for v in held & more if isinstance(v, Var)})
        for t in parts:                             # elements taken off a list
            if may_change(t):
                state.show(t, held)
                state.hold(target, {t} if not held.isdisjoint({(TWICE, kind_of(t.fact)), (TWICE, ANY)}) else NOTHING)
                if is_container(t):
                    state.hold(t, held)

    def after_Effect(self, step, state):
        self.read(step.value, state, step.origin and step.origin.statement)

    def after_If(self, step, state):
        self.read(step.test, state, "a test")
        state.forget({*all_made(step.then), *all_made(step.orelse)})
        ends = []
        for arm, side in ((step.then, "then"), (step.orelse, "orelse")):
            end = state.copy()
            self.block(arm, end)
            self.assign(end, [(j.var, getattr(j, side), False) for j in step.joins], "a branch's result")
            ends.append(end)
        state.replace_by(ends[0].join(ends[1]))

    def after_For(self, step, state):
        self.read(step.count, state, "a loop's count")
        sources = []
        for v, source in step.items:
            self.read(source, state, "a loop's source")
            if v in self.wanted:            # the loop keeps its source, even if the name is set again
                sources.append((("", id(step), len(sources)), frozenset(_elements_of(source))))
        state.held.update(sources)

        def one_pass(state):
            for place, values in sources:
                if not values <= state.held[place]:
                    raise Broken(f"{self.function.label} changes what a loop iterates over: {sorted(map(str, values))}")
            self.set(state, step.index)
            for v, source in step.items:
                self.set(state, v)
                for o in _elements_of(source) if may_change(v) else ():
                    state.show(v, state.inside.get(o, NOTHING) if is_container(o) else state.all_aliases(o))
                    if is_container(o):
                        state.hold(o, {v})
                    if is_container(v):
                        state.hold(v, state.inside.get(o, NOTHING))
            self.block(step.body, state)
        self.passes(step, state, one_pass)
        for place, _ in sources:
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
        state.forget({*all_made(step.body), *all_made(getattr(step, "head", ()))})
        self.assign(state, pairs("init"), "a loop's first value")
        while True:
            end = state.copy()
            one_pass(end)
            self.assign(end, pairs("next"), "a loop's next value")
            both = state.join(end)
            if both == state:
                break
            state.replace_by(both)
        self.asked(step, state)
        self.assign(state, [(c.outer, c.inner, False) for c in step.carries], "a loop's last value")


def _elements_of(source):
    """The arrays and containers over whose elements a loop iterates; none if it iterates over a new array."""
    return aliased(source) if isinstance(source, Apply) else operands(source)


def _union(first, second):
    both = {**second, **first}
    for v, others in second.items():
        if both[v] is not others:
            both[v] = both[v] | others
    return both


def _put_in(node, container):
    """The values that a container holds, or views, once an operand is put into it; none for a list of numbers."""
    element = container.fact.element if isinstance(container.fact, Stack) else None
    if isinstance(container.fact, Listed) and container.fact.rank == 1 or isinstance(
            element, Array) and not element.dims:
        return ()
    return aliased(node) if isinstance(node, Apply) else operands(node)


def kind_of(fact):
    """The kind of a fact, for aliasing: only values of one kind may be the same object, or views of one."""
    if isinstance(fact, Stack | Listed):
        return "list", kind_of(fact.element) if isinstance(fact, Stack) else Array
    return next((kind for kind in (Array, Sequence) if isinstance(fact, kind)), None)


def is_container(var):
    return isinstance(var.fact, Stack | Listed | Sequence) or not isinstance(var.fact, Array)


def may_change(var):
    """Whether a value is mutable: an array with axes, or a container."""
    return is_container(var) or bool(var.fact.dims)
