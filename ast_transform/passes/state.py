# SPDX-License-Identifier: Apache-2.0
"""Attributes that a function writes on objects from outside: read when it begins, written back when it ends.

An object whose attributes are written is found when the first write is read; the function is then read anew with the
object's numbers and arrays as values that are known only when running (Stateful), so that a changed attribute needs no
new version.  In emitted source they are `count = model.count` at the top and `model.count = count_1` where the function
ends; compiled code gets them as arguments and gives them as results.
"""
import inspect
import types
from collections.abc import Iterable

import gast
import numpy as np

from gradscribe.ast_transform.core.form import USER, Apply, Const, Effect, Var, walk
from gradscribe.ast_transform.core.kinds import Array, key_of
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.passes.described import describe, fact_of
from gradscribe.ast_transform.passes.objects import WATCHED
from gradscribe.ast_transform.passes.values import Conflict, Held, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError

APPENDED = "append "            # what stands for an attribute where a list is appended to
SIDE_EFFECT = "side effect, once a call"


def acts_once(statements: Iterable, what: str) -> None:
    """A transformation that evaluates its function more than once takes one that leaves all outside it as it is."""
    acts = next((s for s in walk(statements) if isinstance(s, Effect) and s.note is SIDE_EFFECT), None)
    if acts is not None:
        raise LanguageError(f"{what} evaluates its function more than once, and each time it changes an object or a "
                            "list from outside", acts.origin, "Return the new value.")


class NeedsState(Exception):
    """An attribute is written on an object that was taken for constant."""

    def __init__(self, value):
        super().__init__(type(value).__name__)
        self.value = value


class State:
    def begin_state(self):
        """The objects whose attributes are written, and the arrays that are arguments, as they are at the start."""
        self.state = {}
        structs = []
        for value in self.stateful:
            keys, items = [], []
            for name, held in {**numbers_of(type(value)), **vars(value)}.items():
                fact = describe(held, name)
                keys.append(name)
                if not isinstance(fact, Array):
                    self.guards.append((value, name, held))
                    items.append(self.lift(held, name))
                    continue
                self.kind_guards.append(_kind_guard(value, name, key_of(fact)))
                if self.unroll:
                    items.append(Var(name, fact, USER))
                    self.state_inputs.append((value, name, items[-1]))
                else:
                    owner = self.name_of(value)
                    tree = gast.Attribute(gast.Name(owner, gast.Load(), None, None), name, gast.Load())
                    items.append(self.build.let(
                        name, Apply(Quoted(tree, (), {owner: value}.__getitem__), ()), fact, USER))
            structs.append(Struct("object", items, keys, type(value)))
            self.state[id(value)] = len(structs) - 1
        self.state_now = Held(structs)
        self.state_before = [dict(zip(s.keys, s.items)) for s in structs]
        self.arguments_now = Held(list(self.entry_tokens) if self.unroll and not self.within_derivative else [])
        self.arguments_before = list(self.arguments_now.held)
        self.pending += [self.state_now, self.arguments_now]
        self.appended, self.root = [], self.build.block

    def end_state(self):
        """Write back what has changed."""
        del self.pending[:2 + len(self.appended)]
        for owner, name, held, origin in self.appended:
            if self.unroll:
                self.state_outputs.append((owner, APPENDED, held.held[0]))
            else:
                self.add_outside(owner, name, held.held[0], origin)
        for value, struct, before in zip(self.stateful, self.state_now.held, self.state_before):
            for name, item in zip(struct.keys, struct.items):
                if item is before.get(name) or isinstance(item, Struct) and isinstance(before.get(name), Struct) and \
                        item.mark is before[name].mark:
                    continue
                item = self.settle(item)
                if not isinstance(item, (Var, Const)) or isinstance(item, Var) and not isinstance(fact_of(item), Array):
                    self.fail(LanguageError, f"the attribute {name} of {self.name_of(value)} is set to "
                              f"{self.spell(item)}", None, "Set numbers and arrays only, or return the new value.")
                if self.unroll:
                    self.state_outputs.append((value, name, item))
                else:
                    self.write_back(value, name, item)
        for before, now in zip(self.arguments_before, self.arguments_now.held):
            if isinstance(now, Conflict):
                self.fail(LanguageError, f"{before.hint} is {now.reason}", None, "Write into a copy, and return it.")
            if now is not before:
                self.argument_outputs.append((before, now))

    def state_items(self):
        """What the attributes hold now, to be compared."""
        return [list(map(id, s.items)) for s in self.state_now.held] if self.state else []

    def name_of(self, value):
        return self.state_names.get(id(value), type(value).__name__.lower())

    def appends_outside(self, call):
        """values.append(value) for a list from outside: done once, where the function ends; whether it is that."""
        at, name = call.func, getattr(getattr(call.func, "value", None), "id", None)
        if not isinstance(at, gast.Attribute) or at.attr != "append" or name is None or len(call.args) != 1:
            return False
        owner = self.list_outside(name)
        if owner is None:
            return False
        if id(owner) in self.lists_read:
            self.fail(LanguageError, f"{name} is from outside the function, which reads it and appends to it", call,
                      "Give it to the function as an argument, or return what is to be appended.")
        if self.build.block is not self.root:
            self.fail(LanguageError, f"{name} is from outside the function, and how often it is appended to is not "
                      "certain", call, "Append where the function ends, or return what is to be appended.")
        value = self.settle(self.eval(call.args[0]))
        if not isinstance(fact_of(value) if isinstance(value, (Var, Const)) else None, Array):
            self.fail(LanguageError, f"{self.spell(value)} is appended to {name}, which is from outside the function",
                      call, "Append numbers and arrays only, or return what is to be appended.")
        held = Held([value])
        self.pending.insert(2, held)
        self.appended.append((owner, name, held, self.build.origin))
        scope = self.frame.source.scope         # which list it is matters, and not what it holds
        self.kind_guards.append(lambda: scope.lookup(name) is owner)
        return True

    def list_outside(self, name):
        """The list that a name means if neither this function nor one around it that is read sets the name."""
        frame = self.frame
        while frame is not None:
            if name in frame.env or name in self.set_by(frame.source):
                return None
            frame = frame.outer
        try:
            found = self.frame.source.scope.lookup(name)
        except NameError:
            return None
        return found if type(found) is list else None

    def add_outside(self, owner, name, value, origin):
        call = gast.Call(gast.Attribute(gast.Name(name, gast.Load(), None, None), "append", gast.Load()),
                         [gast.Name("value ", gast.Load(), None, None)], [])
        self.build.block.append(Effect(Apply(Quoted(gast.Expr(call), ("value ",), {name: owner}.__getitem__),
                                             (value,)), origin, SIDE_EFFECT))

    def write_back(self, value, name, item):
        owner = self.name_of(value)
        at = gast.Attribute(gast.Name(owner, gast.Load(), None, None), name, gast.Store())
        tree = gast.Assign([at], gast.Name("value ", gast.Load(), None, None), None)
        self.build.block.append(Effect(Apply(Quoted(tree, ("value ",), {owner: value}.__getitem__), (item,)),
                                       self.returned_at or self.build.origin, SIDE_EFFECT))

    def stateful_attribute(self, value):
        """The attributes of an object as they are now, if the function writes some; None otherwise."""
        place = self.state.get(id(value))
        return None if place is None else self.state_now.held[place]

    def write_state(self, value, target, new):
        """value.attribute = new, for an object from outside."""
        cls = type(value)
        if isinstance(value, (types.ModuleType, type)) or not hasattr(value, "__dict__") or \
                any(n in vars(c) for c in cls.__mro__[:-1] for n in WATCHED):
            self.refuse_write(target)
        found = inspect.getattr_static(cls, target.attr, None)
        if isinstance(found, property):
            if found.fset is None:
                self.refuse_write(target)
            self.call_known(found.fset, [Const(value), new], {}, target)
            return
        if id(value) not in self.state:
            raise NeedsState(value)
        self.writes += 1
        holder = self.stateful_attribute(value)
        self.written.append({holder.mark})
        self.put_attribute(holder, target.attr, new)


def numbers_of(cls):
    """The numbers and arrays that a class has, which its objects have until they are given their own."""
    found = {}
    for c in reversed(cls.__mro__[:-1]):
        found.update({n: v for n, v in vars(c).items() if not n.startswith("__") and
                      isinstance(v, (bool, int, float, complex, np.generic, np.ndarray))})
    return found


def _kind_guard(value, name, key):
    return lambda: hasattr(value, name) and key_of(describe(getattr(value, name), name)) == key
