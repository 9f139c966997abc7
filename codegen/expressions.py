# SPDX-License-Identifier: Apache-2.0
"""Prints the operands and operations of the normal form as Python expressions (gast trees)."""
import copy
import math
import operator
import sys
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.draw import Draw
from gradscribe.ast_transform.core.form import Apply, Const, Function, Pack, Slice, Undefined, Var, is_application
from gradscribe.ast_transform.core.kinds import Array, Listed
from gradscribe.ast_transform.core.operations import (
    ANSWER,
    Quoted,
    as_array,
    as_list,
    astype,
    both,
    either,
    no_elements,
    nonempty,
    run_length,
    shape_of,
    size_of,
    unpacked,
    zeros_in_list,
)
from gradscribe.ast_transform.core.rule import SEQUENCE
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import PACKAGES, spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.named_axes import Axes
from gradscribe.codegen.trees import as_index, as_test, const, dotted, name, truth
from gradscribe.codegen.writer import provide
from gradscribe.runtime.derivatives import stop_gradient

BINARY = {
    operator.add: gast.Add,
    operator.sub: gast.Sub,
    operator.mul: gast.Mult,
    operator.truediv: gast.Div,
    operator.floordiv: gast.FloorDiv,
    operator.mod: gast.Mod,
    operator.pow: gast.Pow,
    operator.matmul: gast.MatMult,
    operator.and_: gast.BitAnd,
    operator.or_: gast.BitOr,
    operator.xor: gast.BitXor,
    operator.lshift: gast.LShift,
    operator.rshift: gast.RShift,
}
UNARY = {operator.neg: gast.USub, operator.pos: gast.UAdd, operator.not_: gast.Not, operator.invert: gast.Invert}
COMPARE = {
    operator.lt: gast.Lt,
    operator.le: gast.LtE,
    operator.gt: gast.Gt,
    operator.ge: gast.GtE,
    operator.eq: gast.Eq,
    operator.ne: gast.NotEq,
}


def takes_arrays(function):
    """Whether a function takes a sequence of arrays, each of which may be a list of numbers instead."""
    rule = rule_of(function)
    return rule is not None and any(rule.takes(name) == SEQUENCE for name in rule.arguments)


def pack_given(node, function):
    """The list in function([...]), a call without other arguments; None for any other node."""
    given = node.args if is_application(node, function) and not node.kwargs else ()
    return given[0] if len(given) == 1 and isinstance(given[0], Pack) else None


def listed(node):
    """The nested list that an array is made from, which NumPy accepts instead; any other node unchanged."""
    held = pack_given(node, np.array)
    if held is not None:
        return held
    stack = pack_given(node, np.stack)
    rows = [] if stack is None else [listed(row) for row in stack.items]
    return Pack("list", tuple(rows)) if rows and all(new is not old for new, old in zip(rows, stack.items)) else node


def expression(writer: Any, node: Any) -> Any:
    if isinstance(node, Var):
        return name(writer.naming[node])
    if isinstance(node, Const):
        return constant(writer, node.value)
    if isinstance(node, Pack):
        return pack(writer, node)
    if isinstance(node, Slice):
        return gast.Slice(*(None if p is None else expression(writer, p) for p in (node.start, node.stop, node.step)))
    return call(writer, node)


def pack(writer, node):
    if node.kind == "tuple" and (shaped := whole_shape(node.items)) is not None:
        return gast.Attribute(expression(writer, shaped), "shape", gast.Load())
    items = [expression(writer, i) for i in node.items]
    if node.kind == "tuple":
        return gast.Tuple(items, gast.Load())
    if node.kind == "list":
        return gast.List(items, gast.Load())
    if node.kind == "dict":
        return gast.Dict([constant(writer, k) for k in node.keys], items)
    made = name(provide(writer, node.cls.__name__, node.cls))
    return gast.Call(made, [], [gast.keyword(k, i) for k, i in zip(node.keys, items)])


def constant(writer, value):
    if isinstance(value, slice):
        return gast.Slice(*(None if p is None else constant(writer, p) for p in (value.start, value.stop, value.step)))
    if isinstance(value, Axes) and len(value) == 1:
        return constant(writer, value[0])
    if isinstance(value, tuple):
        return gast.Tuple([constant(writer, v) for v in value], gast.Load())
    if isinstance(value, list):
        return gast.List([constant(writer, v) for v in value], gast.Load())
    if value is Ellipsis or value is None or isinstance(value, (bool, str, bytes)):
        return const(value)
    if isinstance(value, np.dtype):
        if value.kind not in "biufc":
            return const(str(value))
        return dotted("np.bool_" if value.kind == "b" else f"np.{value.name}")
    if isinstance(value, np.generic):
        return gast.Call(dotted(f"np.{value.dtype.name}"), [constant(writer, value.item())], [])
    if isinstance(value, type) and issubclass(value, np.generic):
        return dotted(f"np.{np.dtype(value).name}")
    if isinstance(value, type) and value in (bool, int, float, complex):
        return name(value.__name__)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, complex):
        imaginary = const(complex(0, value.imag))
        return imaginary if value.real == 0 else gast.BinOp(number(value.real), gast.Add(), imaginary)
    if isinstance(value, Undefined):
        return const(None)
    hint = getattr(value, "__name__", type(value).__name__).replace("<lambda>", "function")
    return name(provide(writer, hint, value))


def number(value):
    if isinstance(value, float) and not np.isfinite(value):
        node = dotted("np.nan" if value != value else "np.inf")
        return gast.UnaryOp(gast.USub(), node) if value < 0 else node
    if value == np.pi and isinstance(value, float):
        return dotted("np.pi")
    if value < 0 or isinstance(value, float) and str(value).startswith("-"):
        return gast.UnaryOp(gast.USub(), const(-value))
    return const(value)


def call(writer, node):
    function, args = node.function, node.args
    if isinstance(function, Quoted | Draw):
        return quoted(writer, node) if isinstance(function, Quoted) else drawn(writer, node)
    if isinstance(function, Function):
        return gast.Call(name(writer.callees[function]), [expression(writer, a) for a in args], [])
    if not node.kwargs and hashable(function):
        if function in BINARY and len(args) == 2:
            return gast.BinOp(expression(writer, args[0]), BINARY[function](), expression(writer, args[1]))
        if function in UNARY and len(args) == 1:
            return as_test(gast.UnaryOp(UNARY[function](), expression(writer, args[0])))
        if function in COMPARE and len(args) == 2:
            return gast.Compare(expression(writer, args[0]), [COMPARE[function]()], [expression(writer, args[1])])
    special = _EXPRESSIONS.get(function) if hashable(function) else None
    if special is not None:
        return special(writer, node)
    return called(writer, node)


def called(writer, node):
    """A call by the function's name."""
    function, args = node.function, node.args
    if spelled(function).startswith("np.") and takes_arrays(function):
        args = [Pack(a.kind, tuple(map(listed, a.items))) if isinstance(a, Pack) else a for a in args]
    words = [gast.keyword(k, expression(writer, a)) for k, a in node.kwargs]
    return gast.Call(callee(writer, function), [argument(writer, a) for a in args], words)


def argument(writer, node):
    """An argument of a call, where start:stop of an index must be spelled slice(start, stop)."""
    return as_index(expression(writer, node))


def drawn(writer, node):
    """rng.normal(...) or np.random.normal(...)"""
    function, args = node.function, [expression(writer, a) for a in node.args]
    method = dotted(f"np.random.{function.name}") if function.owner is None else \
        gast.Attribute(args.pop(0), function.name, gast.Load())
    return gast.Call(method, args, [gast.keyword(k, expression(writer, a)) for k, a in node.kwargs])


def callee(writer, function):
    text = spelled(function)
    if text.startswith("np."):
        return dotted(text)
    if text.startswith("math."):
        writer.out.namespace["math"] = math
        return dotted(text)
    package = text.rpartition(".")[0]
    if package in PACKAGES:
        writer.out.namespace.update({"scipy": sys.modules["scipy"], package: sys.modules[package]})
        return dotted(text)
    if getattr(function, "__module__", None) == "builtins":
        return name(text)
    return name(provide(writer, text.split(".")[-1], function))


def _item(writer, node):
    return gast.Subscript(*(expression(writer, a) for a in node.args), gast.Load())


def _attribute(writer, node):
    return gast.Attribute(expression(writer, node.args[0]), node.args[1].value, gast.Load())


def _stack(writer, node):
    rows = listed(node)
    return called(writer, node if rows is node else Apply(np.array, (rows,)))


def _shape(writer, node):
    x, k = node.args
    if isinstance(fact_of(x), Listed):
        shape = gast.Call(dotted("np.shape"), [expression(writer, x)], [])
        first = isinstance(k, Const) and k.value == 0
        return gast.Call(name("len"), [expression(writer, x)], []) if first else \
            gast.Subscript(shape, expression(writer, k), gast.Load())
    shape = gast.Attribute(expression(writer, x), "shape", gast.Load())
    return gast.Subscript(shape, expression(writer, k), gast.Load())


def _size(writer, node):
    if isinstance(fact_of(node.args[0]), Listed):
        return gast.Call(dotted("np.size"), [expression(writer, node.args[0])], [])
    return gast.Attribute(expression(writer, node.args[0]), "size", gast.Load())


def _unpacked(writer, node):
    return expression(writer, node.args[0])


def _nonempty(writer, node):
    return truth(expression(writer, node.args[0]))


def _both(writer, node):
    return gast.BoolOp(gast.And(), [expression(writer, a) for a in node.args])


def _either(writer, node):
    return gast.BoolOp(gast.Or(), [expression(writer, a) for a in node.args])


def _run_length(writer, node):
    """The length of range(start, stop, step)."""
    start, stop, step = node.args
    if not isinstance(step, Const) or step.value != 1:
        return gast.Call(name("len"), [gast.Call(name("range"), [expression(writer, a) for a in node.args], [])], [])
    passes = expression(writer, stop) if isinstance(start, Const) and start.value == 0 else gast.BinOp(
        expression(writer, stop), gast.Sub(), expression(writer, start))
    return gast.Call(name("max"), [passes, const(0)], [])


def _range(writer, node):
    start, stop, step = node.args
    args = [start, stop, step]
    if isinstance(step, Const) and step.value == 1:
        args = [stop] if isinstance(start, Const) and start.value == 0 else [start, stop]
    return gast.Call(name("range"), [expression(writer, a) for a in args], [])


def _astype(writer, node):
    x, dtype, *number = node.args
    if number:
        return gast.Call(expression(writer, dtype), [expression(writer, x)], [])
    return gast.Call(gast.Attribute(expression(writer, x), "astype", gast.Load()), [expression(writer, dtype)], [])


def _as_array(writer, node):
    return gast.Call(dotted("np.array"), [expression(writer, node.args[0])], [])


def _as_list(writer, node):
    held = pack_given(node.args[0], np.array)
    if held is not None and not any(fact_of(i).rank for i in held.items):
        return expression(writer, held)                    # a list of numbers
    return gast.Call(name("list"), [expression(writer, node.args[0])], [])


def _zeros_in_list(writer, node):
    return gast.Call(name("list"), [gast.Call(dotted("np.zeros_like"), [expression(writer, node.args[0])], [])], [])


def _empty_list(writer, node):
    return gast.List([], gast.Load())


def _transpose(writer, node):
    if len(node.args) == 1 and not node.kwargs:
        return gast.Attribute(expression(writer, node.args[0]), "T", gast.Load())
    words = [gast.keyword(k, expression(writer, a)) for k, a in node.kwargs]
    return gast.Call(dotted("np.transpose"), [expression(writer, a) for a in node.args], words)


def _copy(writer, node):
    x = node.args[0]
    if isinstance(x, Var) and isinstance(x.fact, Array) and x.fact.dims and not x.fact.weak:
        return gast.Call(gast.Attribute(expression(writer, x), "copy", gast.Load()), [], [])
    return gast.Call(dotted("np.copy"), [expression(writer, x)], [])


def quoted(writer: Any, value: Any, answer: str = "") -> Any:
    """A piece of the user's tree with the names of this text; answer: the name for a statement's result."""
    quote = value.function
    tree = copy.deepcopy(quote.tree)
    wanted = dict(zip(quote.names, value.args))
    class Rename(gast.NodeTransformer):
        def visit_Name(self, node):
            if node.id == ANSWER:
                return name(answer, node.ctx)
            if node.id in wanted:
                return expression(writer, wanted[node.id])
            if quote.lookup is not None and isinstance(node.ctx, gast.Load):
                try:
                    found = quote.lookup(node.id)
                except NameError:
                    return node
                if not (hasattr(__builtins__, "get") and __builtins__.get(node.id) is found or
                        getattr(__builtins__, node.id, None) is found):
                    return name(provide(writer, node.id.strip(), found))     # placeholders have blanks
            return node
    return Rename().visit(tree)


def whole_shape(items):
    """The array whose whole shape a tuple is: x for (x.shape[0], x.shape[1]); else None."""
    lengths = [i.args for i in items if isinstance(i, Apply) and i.function is shape_of]
    x = lengths[0][0] if lengths and len(lengths) == len(items) else None
    whole = isinstance(x, Var) and isinstance(x.fact, Array) and not isinstance(x.fact, Listed) and \
        [(v, getattr(k, "value", None)) for v, k in lengths] == [(x, k) for k in range(x.fact.rank)]
    return x if whole else None


_EXPRESSIONS = {
    operator.getitem: _item,
    getattr: _attribute,
    np.stack: _stack,
    shape_of: _shape,
    size_of: _size,
    unpacked: _unpacked,
    nonempty: _nonempty,
    stop_gradient: _unpacked,
    both: _both,
    either: _either,
    run_length: _run_length,
    range: _range,
    astype: _astype,
    no_elements: _empty_list,
    as_array: _as_array,
    as_list: _as_list,
    zeros_in_list: _zeros_in_list,
    np.transpose: _transpose,
    np.copy: _copy,
}


def hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
