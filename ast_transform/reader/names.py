# SPDX-License-Identifier: Apache-2.0
"""Names: a name comes in, its value comes out; values from outside the function become constants or captures."""
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.draw import STREAMS
from gradscribe.ast_transform.core.form import USER, Const, Undefined, Var
from gradscribe.ast_transform.passes.activity import is_foreign
from gradscribe.ast_transform.passes.described import fact_of, is_array
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.bfloat16 import as_bfloat16
from gradscribe.ast_transform.reader.desugar import spelled_name
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.frames import fail, set_by
from gradscribe.ast_transform.reader.iterators import as_it_was, pending_reads
from gradscribe.ast_transform.reader.memory import NotSetYet
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Conflict, Grown, Struct, Walk, variables_in
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError


def is_spelled(key):
    """Whether the key of a dict can be written in emitted code."""
    return isinstance(key, (str, int, bytes, type(None))) or type(key) is float and abs(key) < np.inf or \
        type(key) is tuple and all(map(is_spelled, key))


def not_set(reader: Reader, frame, name, node):
    """Refuse a name without a value, or raise NotSetYet if an earlier pass of a loop may have set it."""
    loop = next((loop for loop in reversed(reader.loops.reading) if (frame, name) in loop.unset.first_set), None)
    try:
        fail(reader, LanguageError, f"{name.strip()} has no value here", node, "Set it before it is read.")
    except LanguageError as error:
        if loop is None:
            raise
        loop.unset.read.add((frame, name))
        raise NotSetYet(loop, name, error) from None


def read_name(reader: Reader, name: str, node: gast.AST | None = None) -> Any:
    frame = reader.environment.frame
    while frame is not None:
        if name in frame.env:
            value = frame.env[name]
            if isinstance(value, Conflict):
                dispatch.unroll_for_conflict(reader, value, node)
                fail(reader, ShapeError, f"{spelled_name(name)} is {value.reason}", node, value.advice)
            if isinstance(value, Const) and isinstance(value.value, Undefined):
                not_set(reader, frame, name, node)
            if reader.choices.partly and any(v in reader.choices.partly for v in variables_in(value)):
                reader.environment.partly_read.add(name)
                for loop in reader.loops.reading:
                    loop.unset.read.add((frame, name))
            if isinstance(value, (Walk, Var, Grown)):
                as_it_was(reader, pending_reads(reader, value), node)
            if isinstance(value, Walk):
                frame.env[name] = Conflict("an iterator that has been read already")
            return value
        if name in set_by(reader, frame.source):
            fail(reader, LanguageError, f"{name} is read before it has a value", node,
                 "Python looks no further for a name that the function sets somewhere.")
        frame = frame.outer
    try:
        value = reader.environment.frame.source.scope.lookup(name)
    except NameError:
        advice = {
            "np": "Its module lacks import numpy as np.",
            "numpy": "Its module lacks import numpy.",
            "math": "Its module lacks import math.",
        }.get(name, "It is neither set before this line nor defined in the module.")
        fail(reader, LanguageError, f"{name} is not defined", node, advice)
    if not reader.context.rule_depth or is_foreign(reader.environment.frame.source.function):
        reader.environment.guards.append((reader.environment.frame.source.scope, name, value))
    return lift(reader, value, name)


@late
def lift(reader: Reader, value: Any, name: str) -> Any:
    """A captured Python value as a value of the reader."""
    value = as_bfloat16(reader, value)
    if type(value) in STREAMS or is_array(value) and value.dtype.kind in "biufc":
        return capture(reader, value, name)
    if isinstance(value, np.ndarray):
        return Const(value)
    if any(value is outer for outer in reader.environment.lifting):
        fail(reader, LanguageError, f"{name} is from outside the function, and holds itself", None,
             "Use a list without it.")
    if isinstance(value, (list, tuple, dict)):
        reader.environment.lifting.append(value)
        try:
            return lifted_container(reader, value, name)
        finally:
            reader.environment.lifting.pop()
    return Const(value)


def lifted_container(reader: Reader, value, name):
    if type(value) in (list, tuple):
        reader.outer.lists_read.add(id(value))
        if any(value is owner for owner, *_ in reader.outer.appended):
            fail(reader, LanguageError, f"{name} is from outside the function, which appends to it and reads it", None,
                 "Give it to the function as an argument, or return what is to be appended.")
        return lifted(reader,
            Struct(type(value).__name__, [lift(reader, v, f"{name}_{k}") for k, v in enumerate(value)], whole=None)
        )
    if type(value) is dict and all(map(is_spelled, value)):
        return lifted(reader, Struct("dict", [lift(reader, v, f"{name}_{k}") for k, v in value.items()], tuple(value)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Struct(
            "record",
            [lift(reader, v, f"{name}_{k}") for k, v in zip(value._fields, value)],
            value._fields,
            type(value),
        )
    return Const(value)


def lifted(reader: Reader, container):
    reader.containers.outside.add(container)
    return container


def capture(reader: Reader, value: Any, name: str) -> Any:
    """A captured array: a name in the emitted module."""
    from_facts = reader.environment.captured.get(id(value))
    if from_facts is None:
        fact = fact_of(Const(value))
        from_facts = reader.environment.captured[id(value)] = (Var(name, fact, USER), value)
    return from_facts[0]
