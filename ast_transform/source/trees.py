# SPDX-License-Identifier: Apache-2.0
"""The nodes of a syntax tree as from ast.walk, without operators and contexts, and three times as fast.

>>> import ast
>>> [type(n).__name__ for n in nodes(ast.parse("a + f(b)", mode="eval"))]
['Expression', 'BinOp', 'Name', 'Call', 'Name', 'Name']
"""
import ast

import gast

WITHOUT_NODES = frozenset("""ctx op ops id attr arg name kind type_comment level module conversion simple
                             is_async""".split())
_fields: dict = {ast.Constant: ()}


def nodes(tree: ast.AST) -> list:
    """A node and all nodes inside it, level by level."""
    found = [tree]
    for node in found:
        kind = type(node)
        fields = _fields.get(kind)
        if fields is None:
            fields = _fields[kind] = tuple(f for f in kind._fields if f not in WITHOUT_NODES)
        for field in fields:
            inner = getattr(node, field, None)
            if inner is None:
                continue
            if isinstance(inner, list):
                found += [n for n in inner if isinstance(n, ast.AST)]
            elif isinstance(inner, ast.AST):
                found.append(inner)
    return found


def name_at(node: ast.AST, name: str, context: type = gast.Load) -> ast.AST:
    """A name that is read, or set (context: gast.Store), with the place of a node."""
    return gast.copy_location(gast.Name(name, context(), None, None), node)
