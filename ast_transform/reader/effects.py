# SPDX-License-Identifier: Apache-2.0
"""Effects: a statement with an effect outside the function (print, logging, raise) comes in, and an `Effect` comes out.

The user's statement is kept, with the values of the names that it reads.
"""
import copy
import logging
import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Effect, Undefined
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import restore, snapshot
from gradscribe.ast_transform.reader.dispatch import SPECIAL, late
from gradscribe.ast_transform.reader.dynamic_lists import grown_result
from gradscribe.ast_transform.reader.exceptions import REPORT
from gradscribe.ast_transform.reader.frames import fail, in_scope
from gradscribe.ast_transform.reader.names import read_name
from gradscribe.ast_transform.reader.operands import as_operand, known_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Grown, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError, TransformError


def is_report(reader: Reader, function: Any) -> bool:
    """Whether a function only reports something when it is called as a statement."""
    f = function.value if isinstance(function, Const) else None
    if isinstance(f, types.MethodType) and isinstance(f.__self__, logging.Logger):
        return f.__name__ in ("debug", "info", "warning", "error", "critical", "exception", "log")
    return f is print or f is warnings.warn or \
        isinstance(f, types.FunctionType) and f.__module__ == "logging" and f.__name__ in (
            "debug", "info", "warning", "error", "critical", "log")


@late
def report_effect(reader: Reader, node: gast.AST, keep: Callable | None = None, what: str = "a report") -> Any:
    """Add a report, an assertion or a raise as an Effect, with the values that it reads as operands."""
    if any(isinstance(n, gast.NamedExpr) for n in gast.walk(node)):
        fail(reader, LanguageError, f"a name is set in {what}", node, REPORT)
    given: dict[Any, Any] = {}
    env = reader.environment.frame.env

    def visit(part):
        root = part
        while isinstance(root, (gast.Attribute, gast.Subscript, gast.Call)):
            root = root.func if isinstance(root, gast.Call) else root.value
        named = in_scope(reader, root.id) if isinstance(root, gast.Name) else None
        whole = isinstance(named, (Struct, Grown)) and (
            root is not part or isinstance(named, Grown) or named.kind == "object")
        if isinstance(part, gast.expr) and (whole or isinstance(part, gast.Call)):
            held = list(reader.build.block)
            try:
                value = settle(reader, dispatch.evaluate(reader, part))
            except TransformError:
                if whole:
                    raise
            if not whole:
                reader.build.block[:] = held
            else:
                name = f"{part.attr if isinstance(part, gast.Attribute) else 'value'}{' ' * (len(given) + 1)}"
                given[name] = grown_result(reader, value) if isinstance(value, Grown) else value
                return gast.copy_location(gast.Name(name, gast.Load(), None, None), part)
        new = copy.copy(part)
        for field in part._fields:
            inner = getattr(part, field, None)
            if isinstance(inner, list):
                setattr(new, field, [visit(i) if isinstance(i, gast.AST) else i for i in inner])
            elif isinstance(inner, gast.AST):
                setattr(new, field, visit(inner))
        return new

    before, writes, drawn = snapshot(reader), reader.memory.writes, reader.draws.drawn
    made = copy.copy(node)
    for field in [f for f in node._fields if f != "func"]:
        part = getattr(node, field, None)
        setattr(made, field, [visit(p) for p in part] if isinstance(part, list) else part and visit(part))
    if reader.memory.writes != writes:
        fail(reader, LanguageError, f"{what} changes something", node, REPORT)
    if reader.draws.drawn != drawn:
        fail(reader, LanguageError, f"{what} draws random numbers", node, "Draw them in a line of their own.")
    restore(before)
    env.update(given)
    (keep or partial(effect, reader))(made)
    for name in given:
        del env[name]


@late
def effect(reader: Reader, node):
    """Keep a statement unchanged, as an Effect."""
    reader.build.block.append(Effect(quoted_tree(reader, node), reader.build.origin))


@late
def quoted_tree(reader: Reader, node):
    """A part of the user's tree as an operation; the values of its names are the operands."""
    lookup = reader.environment.frame.source.scope.lookup
    held = {n.id: in_scope(reader, n.id) for n in gast.walk(node) if isinstance(n, gast.Name)}
    names = [n for n, value in held.items() if value is not None]
    known = {n: held[n].value for n in names if isinstance(held[n], Const) and not isinstance(
        held[n].value, (bool, int, float, complex, str, np.generic, Undefined, type(None)))}
    names = [n for n in names if n not in known]
    operands = [as_operand(reader, read_name(reader, n)) for n in names]
    return Apply(Quoted(node, tuple(names), lambda n: known[n] if n in known else lookup(n)), tuple(operands))


def call_logger(reader: Reader, function, args, words, node):
    return Const(function(*[known_value(reader, a, "the name of a logger", node) for a in args]))


def call_quiet(reader: Reader, function, args, words, node):
    """warnings.simplefilter("ignore") inside warnings.catch_warnings(): NumPy's warnings are not shown."""
    if not args or known_value(reader, args[0], "the action of a warning filter", node) != "ignore":
        fail(reader, LanguageError, "only warnings that are ignored are understood", node,
             "Set the filter around the call of the transformed function.")
    reader.context.errstate["all"] = "ignore"
    return Const(None)


SPECIAL.update({
    logging.getLogger: call_logger,
    warnings.simplefilter: call_quiet,
    warnings.filterwarnings: call_quiet,
})
