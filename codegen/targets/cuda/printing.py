# SPDX-License-Identifier: Apache-2.0
"""Prints the lines of kernels, with the user's statements as comments above the lines of their backward sweep.

>>> from gradscribe.codegen.loops.trees import block_of
>>> print("\\n".join(lines(block_of('''if i < n:
...     x[i] += sin(y[i]) * np.float32(0.5)
... else:
...     if n > 2:
...         x[0] = max(y[0], math.pi)'''))))
    if i < n:
        x[i] += sin(y[i]) * np.float32(0.5)
    elif n > 2:
        x[0] = max(y[0], math.pi)
"""
import ast

from gradscribe.ast_transform.source.origin import Origin
from gradscribe.codegen.loops.form import (
    BLOCKS,
    If,
    copied,
    statements,
)
from gradscribe.codegen.loops.trees import to_statements


def lines(block: list, level: int = 1, heading: Origin | None = None,
          around: Origin | None = None) -> list[str]:
    """The lines of a block; heading: the statement in the last comment above; around: the origin of the loop or branch
    that holds the block.
    """
    out, compound = [], [s.origin for s in block if type(s) in BLOCKS]
    for s in block:
        if s.origin is None or s.origin is around or type(s) not in BLOCKS and any(s.origin is o for o in compound):
            pass                        # part of another statement
        elif is_backward(s) and all(is_backward(i) and i.origin.same_statement(s.origin) for i in statements([s])):
            if heading is None or not heading.same_statement(s.origin):
                heading = s.origin
                out += [f"{'    ' * level}# {heading.statement}"] * bool(heading.statement)
        else:
            heading = None
        out += ["    " * level + line for line in head_of(s)]
        if type(s) in BLOCKS:
            out += lines(s.block, level + 1, heading, s.origin) or ["    " * (level + 1) + "pass"]
            orelse = getattr(s, "orelse", [])
            if len(orelse) == 1 and isinstance(orelse[0], If):
                first, *rest = lines(orelse, level, heading, orelse[0].origin)
                out += [f"{'    ' * level}el{first.strip()}", *rest]
            elif orelse:
                out += ["    " * level + "else:", *lines(orelse, level + 1, heading, s.origin)]
    return out


def is_backward(s):
    return s.origin is not None and s.origin.generated == 1


def head_of(s):
    """The lines of a statement without its blocks."""
    (made,) = to_statements([s if type(s) not in BLOCKS else emptied(s)])
    text = ast.unparse(ast.fix_missing_locations(made)).splitlines()
    return text[:1] if type(s) in BLOCKS else text


def emptied(s):
    made = copied(s)
    for name in BLOCKS[type(s)]:
        setattr(made, name, [])
    return made
