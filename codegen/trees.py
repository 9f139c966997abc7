# SPDX-License-Identifier: Apache-2.0
"""Constructors of the gast nodes that are printed."""
from typing import Any

import gast


def name(identifier: str, ctx: gast.expr_context | None = None) -> gast.Name:
    return gast.Name(identifier, ctx or gast.Load(), None, None)


def const(value: Any) -> gast.Constant:
    return gast.Constant(value, None)


def assign(target: gast.expr, value: gast.expr) -> gast.Assign:
    return gast.Assign([target], value, None)


def dotted(text: str) -> gast.expr:
    head, *rest = text.split(".")
    node = name(head)
    for part in rest:
        node = gast.Attribute(node, part, gast.Load())
    return node


def as_index(node: gast.expr) -> gast.expr:
    """A slice as a call of slice(), which may stand outside square brackets."""
    if isinstance(node, gast.Slice):
        parts = [p or const(None) for p in (node.lower, node.upper, node.step)]
        if not node.step:
            parts = parts[:2] if node.lower else parts[1:2]
        return gast.Call(name("slice"), parts, [])
    return node


def method_call(target: str, method: str, *args: gast.expr) -> gast.Call:
    return gast.Call(gast.Attribute(name(target), method, gast.Load()), list(args), [])


def truth(node: gast.expr) -> gast.Call:
    """bool(x), whether a list has elements, as a value."""
    call = gast.Call(name("bool"), [node], [])
    call.of_list = True
    return call


def as_test(node: gast.expr) -> gast.expr:
    """A value as a test, where bool(x) of a list is printed as x."""
    if getattr(node, "of_list", False):
        return node.args[0]
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        node.operand = as_test(node.operand)
    elif isinstance(node, gast.BoolOp):
        node.values = [as_test(v) for v in node.values]
    return node
