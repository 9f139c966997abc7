# SPDX-License-Identifier: Apache-2.0
"""State from outside: attributes that a function writes on captured objects; read at its start, written at its end.

The first write to an attribute finds its object.  The function is then read again with the object's numbers and arrays
as values that are known only at run time (Stateful), so that a changed attribute needs no new version.  In
emitted source they are `count = model.count` at the top and `model.count = count_1` at the end; compiled code takes
them as arguments and returns them as results.
"""
import inspect
import types
from collections.abc import Iterable
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import USER, Apply, Const, Effect, Var, walk
from gradscribe.ast_transform.core.kinds import Array, key_of
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.passes.described import describe, fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.frames import fail, set_by
from gradscribe.ast_transform.reader.memory import refuse_write
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.objects import WATCHED, put_attribute
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Conflict, Held, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError

APPENDED = "append "            # takes the place of an attribute for an append to a list
SIDE_EFFECT = "side effect, once a call"


def acts_once(statements: Iterable, what: str) -> None:
    """Refuse a function with outside effects for a transformation that evaluates it more than once."""
    acts = next((s for s in walk(statements) if isinstance(s, Effect) and s.note is SIDE_EFFECT), None)
    if acts is not None:
        raise LanguageError(f"{what} evaluates its function more than once, and each time it changes an object or a "
                            "list from outside", acts.origin, "Return the new value.")


class NeedsState(Exception):
    """Raised if an attribute is written on an object that was assumed to be constant."""

    def __init__(self, value):
        super().__init__(type(value).__name__)
        self.value = value


def begin_state(reader: Reader) -> None:
    """Record the written objects and the array arguments as they are at the start of the function."""
    reader.outer.places = {}
    structs = []
    for value in reader.outer.stateful:
        keys, items = [], []
        for name, held in {**numbers_of(type(value)), **vars(value)}.items():
            fact = describe(held, name)
            keys.append(name)
            if not isinstance(fact, Array):
                reader.environment.guards.append((value, name, held))
                items.append(lift(reader, held, name))
                continue
            reader.environment.kind_guards.append(_kind_guard(value, name, key_of(fact)))
            if reader.unroll:
                items.append(Var(name, fact, USER))
                reader.outer.inputs.append((value, name, items[-1]))
            else:
                owner = name_of_object(reader, value)
                tree = gast.Attribute(gast.Name(owner, gast.Load(), None, None), name, gast.Load())
                items.append(reader.build.let(
                    name, Apply(Quoted(tree, (), {owner: value}.__getitem__), ()), fact, USER))
        structs.append(Struct("object", items, keys, type(value)))
        reader.outer.places[id(value)] = len(structs) - 1
    reader.outer.now = Held(structs)
    reader.outer.before = [dict(zip(s.keys, s.items)) for s in structs]
    reader.outer.arguments_now = Held(
        list(reader.memory.entry_tokens) if reader.unroll and not reader.context.within_derivative else []
    )
    reader.outer.arguments_before = list(reader.outer.arguments_now.held)
    reader.memory.pending += [reader.outer.now, reader.outer.arguments_now]
    reader.outer.appended, reader.outer.root = [], reader.build.block


def end_state(reader: Reader) -> None:
    """Write back the attributes and arguments that have changed."""
    del reader.memory.pending[:2 + len(reader.outer.appended)]
    for owner, name, held, origin in reader.outer.appended:
        if reader.unroll:
            reader.outer.outputs.append((owner, APPENDED, held.held[0]))
        else:
            add_outside(reader, owner, name, held.held[0], origin)
    for value, struct, before in zip(reader.outer.stateful, reader.outer.now.held, reader.outer.before):
        for name, item in zip(struct.keys, struct.items):
            if item is before.get(name) or isinstance(item, Struct) and isinstance(before.get(name), Struct) and \
                    item.mark is before[name].mark:
                continue
            item = settle(reader, item)
            if not isinstance(item, (Var, Const)) or isinstance(item, Var) and not isinstance(fact_of(item), Array):
                fail(
                    reader,
                    LanguageError,
                    f"the attribute {name} of {name_of_object(reader, value)} is set to {spelled_value(reader, item)}",
                    None,
                    "Set numbers and arrays only, or return the new value.",
                )
            if reader.unroll:
                reader.outer.outputs.append((value, name, item))
            else:
                write_back(reader, value, name, item)
    for before, now in zip(reader.outer.arguments_before, reader.outer.arguments_now.held):
        if isinstance(now, Conflict):
            fail(reader, LanguageError, f"{before.hint} is {now.reason}", None, "Write into a copy, and return it.")
        if now is not before:
            reader.outer.argument_outputs.append((before, now))


def state_items(reader: Reader) -> list:
    """The identities of the current attribute values, for comparison."""
    return [list(map(id, s.items)) for s in reader.outer.now.held] if reader.outer.places else []


def name_of_object(reader: Reader, value: Any) -> str:
    return reader.outer.names.get(id(value), type(value).__name__.lower())


def appends_outside(reader: Reader, call: gast.AST) -> bool:
    """Whether a call is values.append(value) on a captured list; it is then recorded, to run at the function's end."""
    at, name = call.func, getattr(getattr(call.func, "value", None), "id", None)
    if not isinstance(at, gast.Attribute) or at.attr != "append" or name is None or len(call.args) != 1:
        return False
    owner = list_outside(reader, name)
    if owner is None:
        return False
    if id(owner) in reader.outer.lists_read:
        fail(reader, LanguageError, f"{name} is from outside the function, which reads it and appends to it", call,
             "Give it to the function as an argument, or return what is to be appended.")
    if reader.build.block is not reader.outer.root:
        fail(reader, LanguageError, f"{name} is from outside the function, and how often it is appended to is not "
             "certain", call, "Append where the function ends, or return what is to be appended.")
    value = settle(reader, dispatch.evaluate(reader, call.args[0]))
    if not isinstance(fact_of(value) if isinstance(value, (Var, Const)) else None, Array):
        fail(
            reader,
            LanguageError,
            f"{spelled_value(reader, value)} is appended to {name}, which is from outside the function",
            call,
            "Append numbers and arrays only, or return what is to be appended.",
        )
    held = Held([value])
    reader.memory.pending.insert(2, held)
    reader.outer.appended.append((owner, name, held, reader.build.origin))
    scope = reader.environment.frame.source.scope         # the list's identity matters, not its contents
    reader.environment.kind_guards.append(lambda: scope.lookup(name) is owner)
    return True


def list_outside(reader: Reader, name):
    """The captured list of a name that neither this function nor an enclosing one sets, or None."""
    frame = reader.environment.frame
    while frame is not None:
        if name in frame.env or name in set_by(reader, frame.source):
            return None
        frame = frame.outer
    try:
        found = reader.environment.frame.source.scope.lookup(name)
    except NameError:
        return None
    return found if type(found) is list else None


def add_outside(reader: Reader, owner, name, value, origin):
    call = gast.Call(gast.Attribute(gast.Name(name, gast.Load(), None, None), "append", gast.Load()),
                     [gast.Name("value ", gast.Load(), None, None)], [])
    reader.build.block.append(Effect(Apply(Quoted(gast.Expr(call), ("value ",), {name: owner}.__getitem__),
                                           (value,)), origin, SIDE_EFFECT))


def write_back(reader: Reader, value, name, item):
    owner = name_of_object(reader, value)
    at = gast.Attribute(gast.Name(owner, gast.Load(), None, None), name, gast.Store())
    tree = gast.Assign([at], gast.Name("value ", gast.Load(), None, None), None)
    reader.build.block.append(Effect(Apply(Quoted(tree, ("value ",), {owner: value}.__getitem__), (item,)),
                                     reader.environment.returned_at or reader.build.origin, SIDE_EFFECT))


def stateful_attribute(reader: Reader, value: Any) -> Any:
    """The current attributes of an object if the function writes some of them, otherwise None."""
    place = reader.outer.places.get(id(value))
    return None if place is None else reader.outer.now.held[place]


@late
def write_state(reader: Reader, value, target, new):
    """value.attribute = new, for a captured object."""
    cls = type(value)
    if isinstance(value, (types.ModuleType, type)) or not hasattr(value, "__dict__") or \
            any(n in vars(c) for c in cls.__mro__[:-1] for n in WATCHED):
        refuse_write(reader, target)
    found = inspect.getattr_static(cls, target.attr, None)
    if isinstance(found, property):
        if found.fset is None:
            refuse_write(reader, target)
        dispatch.call_known(reader, found.fset, [Const(value), new], {}, target)
        return
    if id(value) not in reader.outer.places:
        raise NeedsState(value)
    reader.memory.writes += 1
    holder = stateful_attribute(reader, value)
    reader.memory.written.append({holder.mark})
    put_attribute(holder, target.attr, new)


def numbers_of(cls):
    """The numbers and arrays among a class's attributes, which are its objects' defaults."""
    found = {}
    for c in reversed(cls.__mro__[:-1]):
        found.update({n: v for n, v in vars(c).items() if not n.startswith("__") and
                      isinstance(v, (bool, int, float, complex, np.generic, np.ndarray))})
    return found


def _kind_guard(value, name, key):
    return lambda: hasattr(value, name) and key_of(describe(getattr(value, name), name)) == key
