# SPDX-License-Identifier: Apache-2.0
"""Maps the lines of an emitted text to the user's statements that they come from."""
import ast
from collections.abc import Iterator
from typing import Any, cast

import gast

from gradscribe.ast_transform.core.form import Apply, Effect, For, If, Let, Pack, While
from gradscribe.ast_transform.source.origin import Origin


def origins(tree: gast.Module, source: str) -> dict[int, list[Origin]]:
    """{line, from 1: the origins of its statement} of a tree and its text; of loops and branches, the line of the head.

    There are several origins where several of the user's statements became one expression.
    """
    found = {}

    def visit(nodes, printed):
        for node, twin in zip(nodes, printed, strict=True):
            came_from = [o for o in getattr(node, "came_from", ()) if o is not None]
            if came_from:
                last = twin.body[0].lineno - 1 if hasattr(twin, "body") else twin.end_lineno
                found.update(dict.fromkeys(range(twin.lineno, max(last, twin.lineno) + 1), came_from))
            for block in ("body", "orelse"):
                if isinstance(getattr(node, block, None), list):
                    visit(getattr(node, block), getattr(twin, block))
    (again,) = cast(list[ast.FunctionDef], ast.parse(source).body)
    visit(tree.body, again.body)
    return found


def parts_of(step: Let | Effect | For | While | If) -> Iterator[Origin]:
    """The origins of the operations in a statement's expression, which may have been statements."""
    if isinstance(step, (Let, Effect)):
        yield from origins_in(step.value)
    elif isinstance(step, (If, While)):
        yield from origins_in(step.test)


def origins_in(node: Any) -> Iterator[Origin]:
    for inner in applies(node):
        if inner.origin is not None:
            yield inner.origin


def applies(node: Any) -> Iterator[Apply]:
    """The operations in a value, including itself."""
    if isinstance(node, Apply):
        yield node
        for a in node.args:
            yield from applies(a)
        for _, a in node.kwargs:
            yield from applies(a)
    elif isinstance(node, Pack):
        for a in node.items:
            yield from applies(a)
