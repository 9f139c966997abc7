# SPDX-License-Identifier: Apache-2.0
"""Exceptions: a `try` comes in; its body, the handler that certainly runs, or a branch between them comes out."""
import copy
import operator

import gast

from gradscribe.ast_transform.core import operations
from gradscribe.ast_transform.core.alias import may_raise
from gradscribe.ast_transform.core.form import USER, Apply, Const, For, If, Let, While, blocks
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import ANSWER
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import read_branch
from gradscribe.ast_transform.reader.container_aliases import restore, snapshot
from gradscribe.ast_transform.reader.dispatch import executes
from gradscribe.ast_transform.reader.frames import fail, here
from gradscribe.ast_transform.reader.operands import python_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import LanguageError, TransformError

REPORTS = ("warn", "print", "log")  # np.errstate modes that only report, left to the caller's setting
ERRORS = ("divide", "invalid", "over", "under")
REPORT = "Do it in a statement of its own, and report its result."
OUTSIDE = "Open the context around the call of the transformed function."
BY_STRUCTURE = (KeyError, AttributeError, NameError)        # errors that no operation on numbers raises
OURS = (operations.__name__, "_operator", operator.__name__)
ASSIGNED = "Give what may raise a name in an assignment of its own; or test for the condition with if before."
TRY = "Test for the condition with if before the operation."


def _evaluated(statement):
    """An expression that raises the same errors as an assignment or expression, without effects; otherwise None."""
    if isinstance(statement, gast.Expr):
        return statement.value
    if isinstance(statement, gast.AugAssign):
        return gast.copy_location(gast.BinOp(_read(statement.target), statement.op, statement.value), statement)
    if not isinstance(statement, gast.Assign):
        return None
    targets = [n for t in statement.targets for n in (t.elts if isinstance(t, gast.Tuple) else [t])]
    places = [_read(n) for n in targets if isinstance(n, gast.Subscript)]
    if not all(isinstance(n, gast.Name | gast.Subscript) for n in targets) or places and len(targets) > 1:
        return None                     # targets before the one that raises would be set
    parts = [*([] if places and isinstance(statement.value, gast.Constant) else [statement.value]), *places]
    return parts[0] if len(parts) == 1 else gast.copy_location(gast.Tuple(parts, gast.Load()), statement)


def _read(target):
    new = copy.copy(target)
    new.ctx = gast.Load()
    return new


@executes("Try")
def execute_try(reader: Reader, node):
    if node.only_raises and not node.leaves and not reader.context.tries:
        return (
            dispatch.read_block(reader, node.body)
            or dispatch.read_block(reader, node.orelse)
            or dispatch.read_block(reader, node.finalbody)
        )
    if node.leaves:
        if node.handlers:
            fail(reader, LanguageError, "a try that is left by return, break or continue, and whose handler goes on",
                 node, TRY)
        fail(reader, LanguageError, "a try that is left by return, break or continue, and has a finally", node,
             "Set a name in it, and leave after it.")
    block = reader.build.block
    try:
        outcome = tried_with_handlers(reader, node, block)
    except TransformError as error:
        if getattr(error, "python", None) and error.block is block:     # it certainly raises, out of this try
            dispatch.read_block(reader, node.finalbody)
        raise
    return outcome or dispatch.read_block(reader, node.finalbody)


def tried_with_handlers(reader: Reader, node, block):
    size, before = len(block), snapshot(reader)
    wanted = [caught(reader, h) for h in node.handlers]
    handler = raised = None
    reader.context.tries.append((block, wanted))
    try:
        outcome = dispatch.read_block(reader, node.body)
        by_structure = all(issubclass(e, BY_STRUCTURE) for w in wanted for e in (w if type(w) is tuple else (w,)))
        decided = bool(node.handlers) and not all(cannot_raise(reader, s, by_structure) for s in block[size:])
        if decided:
            restore(before)
            del block[size:]
            outcome = decided_when_running(reader, node, node.body, by_structure)
    except TransformError as error:
        raised = getattr(error, "python", None) if error.block is block else None
        handler = next((h for h, w in zip(node.handlers, wanted) if raised and issubclass(raised, w)), None)
        if handler is None:
            raise
    finally:
        reader.context.tries.pop()
    if handler is None:
        return outcome if decided else outcome or dispatch.read_block(reader, node.orelse)
    reader.context.handled.append(raised)
    try:
        return dispatch.read_block(reader, handler.body)
    finally:
        reader.context.handled.pop()


def decided_when_running(reader: Reader, node, body, by_structure):
    """Evaluate each statement that may raise in a `try` of its own, and branch on whether it raised."""
    body = list(body)
    while body and not may_raise_in(reader, body[:1], by_structure):
        del body[0]
    if not body:
        return dispatch.read_block(reader, node.orelse)
    tried, rest = body[0], body[1:]
    evaluated = _evaluated(tried)
    if not evaluated:
        fail(reader, LanguageError, "a handler that goes on, where it is known only when running whether this raises",
             tried, ASSIGNED)
    if here(reader, tried).errors:
        fail(reader, LanguageError, "a handler that goes on, of errors that np.errstate makes", tried, TRY)
    made, several = [], len(node.handlers) > 1

    def keep(statement):
        answers = [gast.parse(f"a = {k if several else bool(k)}").body for k in range(len(node.handlers) + 1)]
        for (answer,) in answers:
            answer.targets[0].id = ANSWER
        handlers = [gast.ExceptHandler(h.type, None, a) for h, a in zip(node.handlers, answers[1:])]
        tree = gast.Try([statement], handlers, answers[0], [])
        made.append(
            reader.build.let("raised", dispatch.quoted_tree(reader, tree), Array(int if several else bool), USER)
        )

    dispatch.report_effect(reader, gast.copy_location(gast.Expr(evaluated), tried), keep, "what a try tries")

    def arm(handlers):
        if not handlers:
            return dispatch.read_block(reader, [tried]) or decided_when_running(reader, node, rest, by_structure)
        k, handler = handlers[0]
        test = made[0] if not several else dispatch.compare(reader, gast.Eq(), made[0], Const(k), node)
        return read_branch(
            reader, test, lambda: dispatch.read_block(reader, handler.body), lambda: arm(handlers[1:]), node
        )

    return arm(list(enumerate(node.handlers, 1)))


def may_raise_in(reader: Reader, body, by_structure):
    """Whether statements may raise; if they cannot, they have been read."""
    block, size, before = reader.build.block, len(reader.build.block), snapshot(reader)
    dispatch.read_block(reader, body)
    if all(cannot_raise(reader, s, by_structure) for s in block[size:]):
        return False
    restore(before)
    del block[size:]
    return True


def raised_now(reader: Reader, found: type, node: gast.AST | None) -> None:
    """Leave the body of a try at a `raise` that the try certainly catches."""
    if any(b is reader.build.block and any(issubclass(found, w) for w in wanted)
           for b, wanted in filter(None, reader.context.tries)):
        fail(reader, LanguageError, f"{found.__name__} is raised", node, TRY, python=found)


def caught(reader: Reader, handler):
    """The exceptions that a handler catches."""
    if handler.type is None:
        return BaseException
    found = python_value(reader, dispatch.evaluate(reader, handler.type), handler.type)
    if handler.name is not None and any(isinstance(n, gast.Name) and n.id == handler.name.id
                                        for s in handler.body for n in gast.walk(s)):
        fail(reader, LanguageError, "a handler that reads its exception is not understood", handler.type,
             TRY)
    return found


def cannot_raise(reader: Reader, step, by_structure):
    """Whether a statement cannot raise: NumPy's operations at most warn, and Python's raise no KeyError."""
    if isinstance(step, (For, While, If)):
        return all(cannot_raise(reader, s, by_structure) for b in blocks(step) for s in b)
    if not isinstance(step, Let):
        return False
    if not by_structure and step.origin is not None and step.origin.errors:
        return False
    if by_structure and isinstance(step.value, Apply) and (
            step.value.function in RULES or getattr(step.value.function, "__module__", "") in OURS):
        return True
    if not isinstance(step.value, Apply):
        return True
    return not may_raise(step.value)
