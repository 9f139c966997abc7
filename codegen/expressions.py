# SPDX-License-Identifier: Apache-2.0
"""Prints the operands and operations of the normal form as Python expressions (gast trees)."""
import math
import operator
import sys
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.draw import Draw
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Function,
    Pack,
    Slice,
    Undefined,
    Var,
    is_application,
)
from gradscribe.ast_transform.core.kinds import Array, Listed
from gradscribe.ast_transform.core.operations import (
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


class Expressions:
    """The part of emit.py's writer that prints expressions."""

    def expression(self, node):
        if isinstance(node, Var):
            return name(self.naming[node])
        if isinstance(node, Const):
            return self.constant(node.value)
        if isinstance(node, Pack):
            return self.pack(node)
        if isinstance(node, Slice):
            return gast.Slice(*(None if p is None else self.expression(p) for p in (node.start, node.stop, node.step)))
        return self.call(node)

    def pack(self, node):
        if node.kind == "tuple" and (shaped := whole_shape(node.items)) is not None:
            return gast.Attribute(self.expression(shaped), "shape", gast.Load())
        items = [self.expression(i) for i in node.items]
        if node.kind == "tuple":
            return gast.Tuple(items, gast.Load())
        if node.kind == "list":
            return gast.List(items, gast.Load())
        if node.kind == "dict":
            return gast.Dict([self.constant(k) for k in node.keys], items)
        return gast.Call(
            name(self.provide(node.cls.__name__, node.cls)), [], [gast.keyword(k, i) for k, i in zip(node.keys, items)]
        )

    def constant(self, value):
        if isinstance(value, slice):
            return gast.Slice(*(None if p is None else self.constant(p) for p in (value.start, value.stop, value.step)))
        if isinstance(value, Axes) and len(value) == 1:
            return self.constant(value[0])
        if isinstance(value, tuple):
            return gast.Tuple([self.constant(v) for v in value], gast.Load())
        if isinstance(value, list):
            return gast.List([self.constant(v) for v in value], gast.Load())
        if value is Ellipsis or value is None or isinstance(value, (bool, str, bytes)):
            return const(value)
        if isinstance(value, np.dtype):
            if value.kind not in "biufc":
                return const(str(value))
            return dotted("np.bool_" if value.kind == "b" else f"np.{value.name}")
        if isinstance(value, np.generic):
            return gast.Call(dotted(f"np.{value.dtype.name}"), [self.constant(value.item())], [])
        if isinstance(value, type) and issubclass(value, np.generic):
            return dotted(f"np.{np.dtype(value).name}")
        if isinstance(value, type) and value in (bool, int, float, complex):
            return name(value.__name__)
        if isinstance(value, (int, float)):
            return self.number(value)
        if isinstance(value, complex):
            imaginary = const(complex(0, value.imag))
            return imaginary if value.real == 0 else gast.BinOp(self.number(value.real), gast.Add(), imaginary)
        if isinstance(value, Undefined):
            return const(None)
        return name(
            self.provide(getattr(value, "__name__", type(value).__name__).replace("<lambda>", "function"), value)
        )

    def number(self, value):
        if isinstance(value, float) and not np.isfinite(value):
            node = dotted("np.nan" if value != value else "np.inf")
            return gast.UnaryOp(gast.USub(), node) if value < 0 else node
        if value == np.pi and isinstance(value, float):
            return dotted("np.pi")
        if value < 0 or isinstance(value, float) and str(value).startswith("-"):
            return gast.UnaryOp(gast.USub(), const(-value))
        return const(value)

    def call(self, node):
        function, args = node.function, node.args
        if isinstance(function, Quoted | Draw):
            return self.quoted(node) if isinstance(function, Quoted) else self.drawn(node)
        if isinstance(function, Function):
            return gast.Call(name(self.callees[function]), [self.expression(a) for a in args], [])
        if not node.kwargs and _hashable(function):
            if function in BINARY and len(args) == 2:
                return gast.BinOp(self.expression(args[0]), BINARY[function](), self.expression(args[1]))
            if function in UNARY and len(args) == 1:
                return as_test(gast.UnaryOp(UNARY[function](), self.expression(args[0])))
            if function in COMPARE and len(args) == 2:
                return gast.Compare(self.expression(args[0]), [COMPARE[function]()], [self.expression(args[1])])
        special = _EXPRESSIONS.get(function) if _hashable(function) else None
        if special is not None:
            return getattr(self, special)(node)
        return self.called(node)

    def called(self, node):
        """A call by the function's name."""
        function, args = node.function, node.args
        if spelled(function).startswith("np.") and takes_arrays(function):
            args = [Pack(a.kind, tuple(map(listed, a.items))) if isinstance(a, Pack) else a for a in args]
        words = [gast.keyword(k, self.expression(a)) for k, a in node.kwargs]
        return gast.Call(self.callee(function), [self.argument(a) for a in args], words)

    def argument(self, node):
        """An argument of a call, where start:stop of an index must be spelled slice(start, stop)."""
        return as_index(self.expression(node))

    def drawn(self, node):
        """rng.normal(...) or np.random.normal(...)"""
        function, args = node.function, [self.expression(a) for a in node.args]
        method = dotted(f"np.random.{function.name}") if function.owner is None else \
            gast.Attribute(args.pop(0), function.name, gast.Load())
        return gast.Call(method, args, [gast.keyword(k, self.expression(a)) for k, a in node.kwargs])

    def callee(self, function):
        text = spelled(function)
        if text.startswith("np."):
            return dotted(text)
        if text.startswith("math."):
            self.out.namespace["math"] = math
            return dotted(text)
        package = text.rpartition(".")[0]
        if package in PACKAGES:
            self.out.namespace.update({"scipy": sys.modules["scipy"], package: sys.modules[package]})
            return dotted(text)
        if getattr(function, "__module__", None) == "builtins":
            return name(text)
        return name(self.provide(text.split(".")[-1], function))

    def say_item(self, node):
        return gast.Subscript(*map(self.expression, node.args), gast.Load())

    def say_attribute(self, node):
        return gast.Attribute(self.expression(node.args[0]), node.args[1].value, gast.Load())

    def say_stack(self, node):
        rows = listed(node)
        return self.called(node if rows is node else Apply(np.array, (rows,)))

    def say_shape(self, node):
        x, k = node.args
        if isinstance(fact_of(x), Listed):
            shape = gast.Call(dotted("np.shape"), [self.expression(x)], [])
            first = isinstance(k, Const) and k.value == 0
            return gast.Call(name("len"), [self.expression(x)], []) if first else \
                gast.Subscript(shape, self.expression(k), gast.Load())
        return gast.Subscript(gast.Attribute(self.expression(x), "shape", gast.Load()), self.expression(k), gast.Load())

    def say_size(self, node):
        if isinstance(fact_of(node.args[0]), Listed):
            return gast.Call(dotted("np.size"), [self.expression(node.args[0])], [])
        return gast.Attribute(self.expression(node.args[0]), "size", gast.Load())

    def say_unpacked(self, node):
        return self.expression(node.args[0])

    def say_nonempty(self, node):
        return truth(self.expression(node.args[0]))

    def say_both(self, node):
        return gast.BoolOp(gast.And(), [self.expression(a) for a in node.args])

    def say_either(self, node):
        return gast.BoolOp(gast.Or(), [self.expression(a) for a in node.args])

    def say_run_length(self, node):
        """The length of range(start, stop, step)."""
        start, stop, step = node.args
        if not isinstance(step, Const) or step.value != 1:
            return gast.Call(name("len"), [gast.Call(name("range"), [self.expression(a) for a in node.args], [])], [])
        passes = self.expression(stop) if isinstance(start, Const) and start.value == 0 else gast.BinOp(
            self.expression(stop), gast.Sub(), self.expression(start))
        return gast.Call(name("max"), [passes, const(0)], [])

    def say_range(self, node):
        start, stop, step = node.args
        args = [start, stop, step]
        if isinstance(step, Const) and step.value == 1:
            args = [stop] if isinstance(start, Const) and start.value == 0 else [start, stop]
        return gast.Call(name("range"), [self.expression(a) for a in args], [])

    def say_astype(self, node):
        x, dtype, *number = node.args
        if number:
            return gast.Call(self.expression(dtype), [self.expression(x)], [])
        return gast.Call(gast.Attribute(self.expression(x), "astype", gast.Load()), [self.expression(dtype)], [])

    def say_as_array(self, node):
        return gast.Call(dotted("np.array"), [self.expression(node.args[0])], [])

    def say_as_list(self, node):
        held = pack_given(node.args[0], np.array)
        if held is not None and not any(fact_of(i).rank for i in held.items):
            return self.expression(held)                    # a list of numbers
        return gast.Call(name("list"), [self.expression(node.args[0])], [])

    def say_zeros_in_list(self, node):
        return gast.Call(name("list"), [gast.Call(dotted("np.zeros_like"), [self.expression(node.args[0])], [])], [])

    def say_empty_list(self, node):
        return gast.List([], gast.Load())

    def say_transpose(self, node):
        if len(node.args) == 1 and not node.kwargs:
            return gast.Attribute(self.expression(node.args[0]), "T", gast.Load())
        words = [gast.keyword(k, self.expression(a)) for k, a in node.kwargs]
        return gast.Call(dotted("np.transpose"), [self.expression(a) for a in node.args], words)

    def say_copy(self, node):
        x = node.args[0]
        if isinstance(x, Var) and isinstance(x.fact, Array) and x.fact.dims and not x.fact.weak:
            return gast.Call(gast.Attribute(self.expression(x), "copy", gast.Load()), [], [])
        return gast.Call(dotted("np.copy"), [self.expression(x)], [])


def whole_shape(items):
    """The array whose whole shape a tuple is: x for (x.shape[0], x.shape[1]); else None."""
    lengths = [i.args for i in items if isinstance(i, Apply) and i.function is shape_of]
    x = lengths[0][0] if lengths and len(lengths) == len(items) else None
    whole = isinstance(x, Var) and isinstance(x.fact, Array) and not isinstance(x.fact, Listed) and \
        [(v, getattr(k, "value", None)) for v, k in lengths] == [(x, k) for k in range(x.fact.rank)]
    return x if whole else None


_EXPRESSIONS = {
    operator.getitem: "say_item",
    getattr: "say_attribute",
    np.stack: "say_stack",
    shape_of: "say_shape",
    size_of: "say_size",
    unpacked: "say_unpacked",
    nonempty: "say_nonempty",
    stop_gradient: "say_unpacked",
    both: "say_both",
    either: "say_either",
    run_length: "say_run_length",
    range: "say_range",
    astype: "say_astype",
    no_elements: "say_empty_list",
    as_array: "say_as_array",
    as_list: "say_as_list",
    zeros_in_list: "say_zeros_in_list",
    np.transpose: "say_transpose",
    np.copy: "say_copy",
}


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
