# SPDX-License-Identifier: Apache-2.0
"""The form of a function of each entry: from the table of scalar_forms.py, or from the function's record.

A record has the option `numba=True` where Numba has the function for numbers, or a part `scalar`, which is read with
the numbers of one entry.  These have the dtype of the result, or the one that they have in common where the result is
of a lesser kind: of a comparison, or of the size of a complex number.  Numbers in the text get that dtype.  A call has
the form of the function that is called; a function of the runtime is called by its name, and any other one is read.

>>> import ast
>>> import gradscribe.ast_transform.rules.tables
>>> from gradscribe.codegen.loops.build import node
>>> from gradscribe.codegen.loops.trees import written
>>> x = Operand(node("x"), np.float32)
>>> [ast.unparse(written(form_of(f)([x], np.dtype(np.float32)))) for f in (np.exp, np.reciprocal)]
['np.float32(np.exp(x))', 'np.float32(1.0) / x']
"""
import ast
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.rule import RULES, Rule
from gradscribe.ast_transform.source.read import read
from gradscribe.codegen.llvm_inline import ELEMENTARY
from gradscribe.codegen.loops.build import joined, quoted
from gradscribe.codegen.loops.form import Attribute, Select
from gradscribe.codegen.scalar_forms import (
    FORMS,
    Operand,
    cast,
    in_loops,
    literal,
    of_all,
    result_of_call,
    truth,
)
from gradscribe.runtime.modules import RUNTIME

KINDS = "biufc"                         # a number of one kind may be one of a later kind
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne}


def form_of(function: Any) -> Callable[..., Any] | None:
    """The form of a function of each entry: a function of operands and the result's dtype; None where there is none."""
    form = FORMS.get(function)
    rule = RULES.get(function) if form is None else None
    return form if rule is None else of_record(rule)


@functools.cache
def of_record(rule: Rule) -> Callable[..., Any] | None:
    """The form that a record gives."""
    if rule.options.get("numba"):
        return by_numba(rule.function)
    return Part(rule.parts["scalar"], rule.functions) if "scalar" in rule.parts else None


def by_numba(function):
    """The call of a function of NumPy or math, which Numba has for numbers."""
    name = function.__name__
    text = f"np.{name}" if isinstance(function, np.ufunc) else f"math.{name}"

    def make(args, out):
        if np.dtype(out).kind in "iub":             # floor of an integer
            return cast(args[0], out)
        return result_of_call(of_all(text, args, out), out)
    return in_loops(name, make) if name in ELEMENTARY else make


def example(operand):
    """A number like an operand."""
    return operand.exact.type(1 if operand.literal is None else operand.literal)


class Part:
    """The form that a part `scalar` gives, or a function that one calls."""

    def __init__(self, part: Callable[..., Any], functions: tuple = ()):
        """functions: of the record, which the part may call where Numba has them."""
        source, self.functions = read(part), functions
        tree: Any = gast.gast_to_ast(source.tree)
        self.names = [a.arg for a in tree.args.args]
        self.body = tree.body if isinstance(tree.body, list) else [ast.Return(tree.body)]
        self.lookup = source.scope.lookup

    def __call__(self, args, out):
        return self.made(args, out, False)

    def in_loops(self, args, out):
        return self.made(args, out, True)

    def made(self, args, out, in_a_loop):
        """The expression of the result; None where a form that it needs is not for these dtypes."""
        if len(args) > len(self.names):
            return None
        out = np.dtype(out)
        found = [a.exact for a in args if a is not None]
        loop = out if all(KINDS.index(d.kind) <= KINDS.index(out.kind) for d in found) else np.result_type(*found)
        given = dict.fromkeys(self.names[len(args):])
        given |= {n: None if a is None else Operand(cast(a, loop), loop, a.literal) for n, a in zip(self.names, args)}
        try:
            value = _Reading(self, given, loop, in_a_loop).block(self.body)
        except NotImplementedError:
            return None
        return cast(value, out)


class _Reading:
    """One reading of a part: `given` holds operands by name, `dtype` what numbers in the text are."""

    def __init__(self, part, given, dtype, in_a_loop):
        self.lookup, self.functions = part.lookup, part.functions
        self.given, self.dtype, self.in_a_loop = given, dtype, in_a_loop

    def block(self, body):
        """What the statements return: tests are of ranks, dtypes and arguments left out, which are known."""
        for step in body:
            if isinstance(step, ast.Return):
                if isinstance(step.value, ast.Constant) and step.value.value is None:
                    raise NotImplementedError
                return self.value(step.value)
            if isinstance(step, ast.If):
                found = self.block(step.body if self.known(step.test) else step.orelse)
                if found is not None:
                    return found
            elif isinstance(step, ast.Assign):
                self.given[step.targets[0].id] = self.value(step.value)
            elif not isinstance(step, ast.Expr):
                raise TypeError(f"a part `scalar` has no {type(step).__name__}: {ast.unparse(step)}")
        return None

    def known(self, test):
        """What a test gives for a number of each operand's dtype."""
        names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        shown = {n: v and example(v) for n, v in self.given.items()}
        space = {n: shown[n] if n in shown else self.lookup(n) for n in names}
        return eval(compile(ast.fix_missing_locations(ast.Expression(test)), "<part>", "eval"), space)

    def value(self, e):
        """An expression as an operand."""
        kind = type(e)
        if kind is ast.Name and e.id in self.given:
            return self.given[e.id]
        if kind is ast.BinOp:
            return self.call(OPERATORS[type(e.op)], self.alike(e.left, e.right))
        if kind is ast.Compare:
            return self.call(OPERATORS[type(e.ops[0])], self.alike(e.left, *e.comparators))
        if kind is ast.UnaryOp and isinstance(e.op, ast.Not):
            return Operand(quoted("not {}", truth(self.value(e.operand))), bool)
        if kind is ast.UnaryOp and isinstance(e.op, ast.USub) and not isinstance(e.operand, ast.Constant):
            return self.call(operator.neg, [self.value(e.operand)])
        if kind is ast.BoolOp:
            return Operand(joined("and" if isinstance(e.op, ast.And) else "or", [
                truth(self.value(v)) for v in e.values]), bool)
        if kind is ast.IfExp:
            then, orelse = self.alike(e.body, e.orelse)
            return Operand(Select(truth(self.value(e.test)), then.node, orelse.node), then.dtype)
        if kind is ast.Attribute and e.attr in ("real", "imag"):
            of = self.value(e.value)
            return Operand(Attribute(of.node, e.attr), np.empty(0, of.exact).real.dtype)
        if kind is ast.Call:
            return self.call(self.known(e.func), [self.value(a) for a in e.args])
        number = self.known(e)
        return Operand(literal(number, self.dtype), self.dtype, number)

    def alike(self, *parts):
        """Several expressions in the dtype that they have in common."""
        values = list(map(self.value, parts))
        found = [v.exact for v in values if v.literal is None]
        dtype = np.result_type(*found) if found else np.dtype(self.dtype)
        return [Operand(cast(v, dtype), dtype, v.literal) for v in values]

    def call(self, function, args):
        if any(vars(module).get(getattr(function, "__name__", "")) is function for module in RUNTIME):
            made = of_all(function.__name__, args, self.dtype)
            return Operand(result_of_call(made, self.dtype), self.dtype)
        form = by_numba(function) if function in self.functions else form_of(function)
        if form is None:
            if not isinstance(function, types.FunctionType):
                raise TypeError(f"a part `scalar` calls {function!r}, which has no form for numbers")
            form = Part(function)
        with np.errstate(all="ignore"):
            out = np.asarray(function(*map(example, args))).dtype
        out = self.dtype if out.kind == self.dtype.kind else out
        made = (getattr(form, "in_loops", form) if self.in_a_loop else form)(args, out)
        if made is None:
            raise NotImplementedError
        return Operand(made, out)
