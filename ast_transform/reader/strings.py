# SPDX-License-Identifier: Apache-2.0
"""f-strings: a tree comes in; a constant comes out, or a statement that makes the string at run time.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    return {'a_1': x}[f'a_{1}'] * 2"
>>> print(show(form(text, 1.0)))
f(x):
    t = x * 2
    return t
"""
from collections.abc import Callable
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Apply, Const
from gradscribe.ast_transform.core.kinds import Opaque
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import restore, snapshot
from gradscribe.ast_transform.reader.dispatch import evaluates
from gradscribe.ast_transform.reader.draws import refuse_drawing_text
from gradscribe.ast_transform.reader.frames import fail, in_scope, tried
from gradscribe.ast_transform.reader.names import read_name
from gradscribe.ast_transform.reader.objects import guard_object
from gradscribe.ast_transform.reader.operands import as_operand, python_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import LanguageError


@evaluates("JoinedStr")
def evaluate_joined_str(reader: Reader, node):
    refuse_drawing_text(reader, node)
    known = text_now(reader, node)
    if known is not None:
        return Const(known)
    names = list(
        dict.fromkeys(n.id for n in gast.walk(node) if isinstance(n, gast.Name) and in_scope(reader, n.id) is not None)
    )
    operands = tuple(as_operand(reader, read_name(reader, n)) for n in names)
    return reader.build.let(
        "text", Apply(Quoted(node, tuple(names), reader.environment.frame.source.scope.lookup), operands), Opaque(str)
    )


def text_now(reader: Reader, node):
    """The text of an f-string whose parts are all known; None for any other one, without effects."""
    before, held, writes = snapshot(reader), list(reader.build.block), reader.memory.writes
    try:
        return formatted(reader, node)
    except LanguageError:
        restore(before)
        reader.build.block[:] = held
        if reader.memory.writes != writes:
            fail(reader, LanguageError, "a text that is made when running changes a container", node,
                 "Change it in a statement of its own.")
        return None


def formatted(reader: Reader, node):
    if isinstance(node, gast.Constant):
        return node.value
    if isinstance(node, gast.JoinedStr):
        return "".join(formatted(reader, part) for part in node.values)
    value = dispatch.evaluate(reader, node.value)
    if isinstance(value, Const):
        guard_object(reader, value, str)
    value = python_value(reader, value, node)
    conversions: dict[int, Callable[..., Any]] = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}
    value = conversions[node.conversion](value)
    spec = "" if node.format_spec is None else formatted(reader, node.format_spec)
    return tried(reader, format, value, spec, node=node)
