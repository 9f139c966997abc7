# SPDX-License-Identifier: Apache-2.0
"""The entry of the reader: a frame comes in, and the value that its function returns comes out.

The body is read statement by statement, in execution order.
"""
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.passes.activity import is_foreign
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import RAISED, Raises, raised_by_call
from gradscribe.ast_transform.reader.carries import argument_parts, mark_given
from gradscribe.ast_transform.reader.desugar import desugar
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.frames import depth, locate
from gradscribe.ast_transform.reader.inlining import ENDLESS
from gradscribe.ast_transform.reader.outer_state import begin_state, end_state
from gradscribe.ast_transform.reader.registered import as_children, as_objects
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import LanguageError, TooDeep
from gradscribe.ast_transform.source.live import mark_live
from gradscribe.ast_transform.source.read import parts_of


@late
def run(reader: Reader, frame: Any, entered: bool = False) -> Any:
    """Read a frame's body and return its result; `entered`: it is the outermost function that is read."""
    tree, first = frame.source.tree, not reader.environment.stack and not reader.context.rule_depth
    reader.environment.stack.append(frame)
    before = reader.build.origin
    if frame.source.function is not None and (not reader.context.rule_depth or is_foreign(frame.source.function)):
        reader.environment.functions.setdefault(frame.source.function, parts_of(frame.source.function))
    if first and reader.containers.apart:
        frame.env.update({n: argument_parts(reader, v) for n, v in frame.env.items()})
    if first and reader.unroll:
        own = {getattr(a, "id", a) for a in (tree.args.vararg, tree.args.kwarg)}    # *args and **named
        for n, value in frame.env.items():
            for held in value.items if n in own and isinstance(value, Struct) else [value]:
                mark_given(reader, held)
    if first:
        reader.outer.names.update((id(v.value), n) for n, v in frame.env.items() if isinstance(v, Const))
        begin_state(reader)
    try:
        if entered:
            frame.env.update({n: as_objects(reader, v) for n, v in frame.env.items()})
        if isinstance(tree, gast.Lambda):
            frame.statement = tree.body
            locate(reader, tree.body)
            try:
                value = dispatch.evaluate(reader, tree.body)
            except Raises as raised:
                raised_by_call(reader, raised, tree.body)
                raise
        else:
            mark_live(tree)
            value = dispatch.read_block(reader, desugar(tree.body))
            value = value if value is RAISED else Const(None) if value is None else value.value
        if first:
            end_state(reader)
            value = value if value is RAISED else as_children(reader, value)
    except TooDeep:
        raise
    except RecursionError:
        raise TooDeep(too_deep(reader, frame)) from None
    finally:
        reader.environment.stack.pop()
        reader.build.origin = before
    if value is RAISED:
        raise Raises(reader.build.block)
    return value


def too_deep(reader: Reader, frame):
    """The error for a function so deep that the reader reached Python's recursion limit."""
    again = [f for f in reader.environment.stack if f.source.function is not None and depth(reader, f.source) > 2]
    if again:
        return LanguageError(f"the recursion of {again[-1].source.name} {ENDLESS[0]}", again[-1].caller, ENDLESS[1])
    return LanguageError(
        "an expression is nested too deeply to be read", reader.build.origin, "Give its parts names."
    )
