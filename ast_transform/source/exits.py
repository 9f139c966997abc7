# SPDX-License-Identifier: Apache-2.0
"""How control leaves a block of statements: by return, raise, break or continue, or at its end."""
import ast

import gast


def ends(body: list[gast.stmt]) -> bool:
    """Whether no path reaches the end of a block."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, (gast.Return, gast.Raise, gast.Break, gast.Continue)) or \
        isinstance(last, gast.Try) and ends(last.orelse or last.body) and \
        all(ends(h.body) for h in last.handlers) or \
        isinstance(last, gast.If) and ends(last.body) and ends(last.orelse) or \
        endless(last) and not any(map(breaks, last.body))


def leaves(node: gast.AST, in_loop: bool) -> bool:
    """Whether a node contains a return of this function, or with `in_loop` a break or continue of this loop."""
    if isinstance(node, gast.Return) or in_loop and isinstance(node, (gast.Break, gast.Continue)):
        return True
    if isinstance(node, (gast.FunctionDef, gast.Lambda)) or not isinstance(
            node, (gast.stmt, gast.ExceptHandler, gast.match_case)):
        return False
    if isinstance(node, (gast.For, gast.While)):        # a break in the else leaves the loop around
        return any(leaves(n, False) for n in node.body) or any(leaves(n, in_loop) for n in node.orelse)
    return any(leaves(n, in_loop) for n in ast.iter_child_nodes(node))


def gives(node: gast.AST) -> bool:
    """Whether a node contains a return with a value."""
    if isinstance(node, gast.Return):
        return node.value is not None and not (isinstance(node.value, gast.Constant) and node.value.value is None)
    return isinstance(node, (gast.stmt, gast.ExceptHandler, gast.match_case)) and \
        not isinstance(node, gast.FunctionDef) and any(map(gives, ast.iter_child_nodes(node)))


def endless(loop: gast.AST) -> bool:
    """Whether a loop is `while True`, or has another constant test that is true."""
    return isinstance(loop, gast.While) and isinstance(loop.test, gast.Constant) and bool(loop.test.value)


def breaks(node):
    """Whether a node contains a break of the loop around it."""
    if isinstance(node, (gast.For, gast.While)):
        return any(map(breaks, node.orelse))
    return isinstance(node, gast.Break) or isinstance(node, (gast.stmt, gast.ExceptHandler, gast.match_case)) and \
        not isinstance(node, gast.FunctionDef) and any(map(breaks, ast.iter_child_nodes(node)))
