# SPDX-License-Identifier: Apache-2.0
"""Simple statements and blocks: a tree comes in; the outcome comes out (Returned, RAISED, or None to continue)."""
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import RAISED, Raises, Returned, raised_by_call
from gradscribe.ast_transform.reader.calls import call_node, call_value
from gradscribe.ast_transform.reader.dispatch import EXECUTE, executes, late
from gradscribe.ast_transform.reader.draws import refuse_draws
from gradscribe.ast_transform.reader.effects import is_report, report_effect
from gradscribe.ast_transform.reader.exceptions import raised_now
from gradscribe.ast_transform.reader.frames import fail, here, locate, tried
from gradscribe.ast_transform.reader.operands import must_be_plain
from gradscribe.ast_transform.reader.outer_state import appends_outside
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import FunctionValue
from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.ast_transform.source.read import Source


@executes("Import")
def execute_import(reader: Reader, node):
    for alias in node.names:
        module = tried(reader, __import__, alias.name, node=node)
        reader.environment.frame.env[alias.asname or alias.name.split(".")[0]] = Const(
            __import__(alias.name, fromlist=["_"]) if alias.asname else module)


@executes("ImportFrom")
def execute_import_from(reader: Reader, node):
    module = tried(reader, lambda: __import__(node.module, fromlist=[a.name for a in node.names]), node=node)
    for alias in node.names:
        reader.environment.frame.env[alias.asname or alias.name] = Const(
            tried(reader, getattr, module, alias.name, node=node)
        )


@late
def read_block(reader: Reader, body: list) -> Any:
    for node in body:
        reader.environment.frame.statement = node
        locate(reader, node)
        try:
            outcome = execute(reader, node)
        except Raises as raised:
            outcome = raised_by_call(reader, raised, node)
        if outcome is RAISED or isinstance(outcome, Returned):
            return outcome
    return None


@late
def execute(reader: Reader, node):
    return EXECUTE[type(node).__name__](reader, node)


@executes("Pass")
def execute_pass(reader: Reader, node):
    pass


@executes("Return")
def execute_return(reader: Reader, node):
    value = Const(None) if node.value is None else dispatch.evaluate(reader, node.value)
    if len(reader.environment.stack) == 1:
        must_be_plain(reader, value, node)
    reader.environment.returned_at = (
        here(reader, node) if reader.environment.frame.plain else reader.environment.returned_at
    )
    return Returned(value)


@executes("Expr")
def execute_expr(reader: Reader, node):
    if isinstance(node.value, gast.Constant):
        return
    if isinstance(node.value, gast.Call):
        if appends_outside(reader, node.value):
            return
        function = dispatch.evaluate(reader, node.value.func)
        if is_report(reader, function):
            report_effect(reader, node.value)
            return
        call_node(reader, node.value, function)
        return
    dispatch.evaluate(reader, node.value)


@executes("Assert")
def execute_assert(reader: Reader, node):
    writes = reader.memory.writes
    with refuse_draws(reader, "an assertion", node):
        test = dispatch.evaluate(reader, node.test)
    if reader.memory.writes != writes:
        fail(reader, LanguageError, "an assertion changes something", node, "Assert its result.")
    if not (isinstance(test, Const) and test.value):
        certain = isinstance(test, Const)
        if certain:
            raised_now(reader, AssertionError, node)
        report_effect(reader, node)
        return RAISED if certain else None
    return None


@executes("Raise")
def execute_raise(reader: Reader, node):
    cls = node.exc.func if isinstance(node.exc, gast.Call) else node.exc
    found = dispatch.evaluate(reader, cls) if isinstance(cls, gast.Name) else None
    if isinstance(found, Const) and isinstance(found.value, type):
        raised_now(reader, found.value, node)
    if node.exc is None:
        if reader.context.handled:
            raised_now(reader, reader.context.handled[-1], node)
        fail(reader, LanguageError, "raise without an exception, where it is not known what is handled", node,
             "Name it: raise ValueError(...).")
    report_effect(reader, node)
    return RAISED


@executes("FunctionDef")
def execute_function_def(reader: Reader, node):
    value = inner_function(reader, node)
    for decorator in reversed(node.decorator_list):
        value = call_value(reader, dispatch.evaluate(reader, decorator), [value], {}, decorator)
    reader.environment.frame.env[node.name] = value


def inner_function(reader: Reader, node: gast.AST) -> Any:
    defaults = [dispatch.evaluate(reader, d) for d in node.args.defaults]
    words = {
        a.id: dispatch.evaluate(reader, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d is not None
    }
    name = getattr(node, "name", "lambda")
    outer = reader.environment.frame.source
    if reader.environment.frame not in reader.environment.enclosing:
        reader.environment.enclosing.append(reader.environment.frame)
    return FunctionValue(
        node, reader.environment.frame, Source(node, outer.scope, outer.file, name, None), defaults, words
    )
