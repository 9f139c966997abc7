# SPDX-License-Identifier: Apache-2.0
"""with gs.insert_grad_of(x) as dx: the statement comes in; an `Edit` comes out, which the backward sweep reads.

In the normal form the Edit makes a new variable with the value of x; its operands are x and the variables that the
body may read.
"""
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Apply, Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import places_of_variables
from gradscribe.ast_transform.reader.dispatch import executes
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.memory import storages
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Frame, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


class Edit:
    """The body of an edit: its statements, the name of the adjoint, and {name of the function: number of operand}."""

    def __init__(self, body, name, names, source):
        self.body, self.name, self.names, self.source = body, name, names, source
        self.__name__ = "edited"

    def __call__(self, x, *others):
        return x


@executes("EditGradient")
def execute_edit_gradient(reader: Reader, node):
    """Replace x by the edited value in every name and container."""
    call, target = node.call, node.target
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], gast.Name):
        fail(reader, LanguageError, "insert_grad_of takes the name of one variable", call,
             "Give the value a name: y = ...; with gs.insert_grad_of(y) as dy:")
    if not isinstance(target, gast.Name):
        fail(reader, LanguageError, "insert_grad_of needs a name for the adjoint", call,
             "Write with gs.insert_grad_of(x) as dx:")
    x = settle(reader, dispatch.evaluate(reader, call.args[0]))
    if not isinstance(x, Var) or not isinstance(x.fact, Array) or not x.fact.differentiable:
        fail(reader, LanguageError, "insert_grad_of needs a number or an array that has a gradient, not "
             f"{spelled_value(reader, x)}", call)
    read = dict.fromkeys(n.id for s in node.body for n in gast.walk(s) if isinstance(n, gast.Name))
    operands, names = [x], {}

    def place(value):
        if isinstance(value, Struct):
            return Struct(value.kind, [place(settle(reader, i)) for i in value.items], value.keys, value.cls)
        if isinstance(value, Var):
            operands.append(value)
            return len(operands) - 1
        return value

    frame = reader.environment.frame
    for name in read:
        if name in frame.env and name != target.id:
            names[name] = place(settle(reader, frame.env[name]))
    edit = Edit(node.body, target.id, names, frame.source)
    new = reader.build.let(x.hint, Apply(edit, tuple(operands)), x.fact, x.kind)
    reader.memory.tokens[new] = storages(reader, x)
    reader.build.made.pop(new)
    for holder, key, value in list(every_value(reader)):
        if value is x:
            holder[key] = new


def every_value(reader: Reader):
    """(holder, key, value) of all variables of the functions being read, and of the items of their containers."""
    seen = set()

    def visit(holder, key, value):
        yield holder, key, value
        if isinstance(value, Struct) and id(value) not in seen:
            seen.add(id(value))
            for k, item in enumerate(value.items):
                yield from visit(value.items, k, item)

    for frame in places_of_variables(reader):
        for name, value in list(frame.env.items()):
            yield from visit(frame.env, name, value)


def edited(reader: Reader, edit: Any, operands: tuple, adjoint: Any) -> Any:
    """The adjoint after the body of an edit."""
    def value_of(place):
        if isinstance(place, Struct):
            return Struct(place.kind, [value_of(i) for i in place.items], place.keys, place.cls)
        return operands[place] if type(place) is int else place

    env = {name: value_of(place) for name, place in edit.names.items()}
    env[edit.name] = adjoint
    frame = Frame(edit.source, env, None, None, False)
    reader.environment.stack.append(frame)
    try:
        for statement in edit.body:
            frame.statement = statement
            if dispatch.execute(reader, statement) is not None:
                fail(reader, LanguageError, "the body of insert_grad_of returns", statement,
                     "Assign to the adjoint.")
    finally:
        reader.environment.stack.pop()
    made = settle(reader, frame.env[edit.name])
    return (
        dispatch.array_of(reader, made, None)
        if isinstance(made, Struct)
        else made
        if isinstance(made, Var)
        else Const(made.value)
    )
