# SPDX-License-Identifier: Apache-2.0
"""Reports in compiled code: compiled code calls back into Python for print, warnings.warn and loggers.

The text says `reported(report_1, (x, n))`.  Python compiles the user's call, at its line in the user's file, and runs
it with copies of the values, which a handler may keep.  The number of a report is an argument of the compiled function,
so machine code on disk does not contain it.

>>> import numpy as np, gradscribe as gs
>>> def f(x):
...     print(f"the sum of {x} is {np.sum(x):.2f}")
...     return np.sum(x)
>>> value = gs.jit(f)(np.array([1.0, 2.0]))
the sum of [1. 2.] is 3.00
"""
import ast
import builtins
import copy
from collections.abc import Iterable
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Effect, Pack, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import Quoted, is_report
from gradscribe.ast_transform.source.origin import Origin
from gradscribe.codegen.lowered import Lowering
from gradscribe.runtime import groups


def reports(body: Iterable[Any]) -> bool:
    """Whether a function has reports: then it must not run again, which would repeat them."""
    return any(isinstance(step, Effect) and is_report(step.value) for step in walk(body))


def report_statement(lowering: Lowering, quote: Quoted, operands: Iterable[Any], origin: Origin | None) -> None:
    """reported(report_1, (x, n))"""
    given: list = []
    parts = [part(lowering, operand, given) for operand in operands]
    function = function_of(quote, origin)

    def report(values):
        function(*[of(values) for of in parts])
    name = lowering.fresh("report")
    lowering.program.lifted.append((name, np.int64(groups.number_of(report))))
    lowering.program.reports.append(report)
    lowering.say("reported({}, {})", name, given)


def part(lowering, operand, given):
    """A function that rebuilds an operand from the values that compiled code passes; appends these to `given`."""
    if isinstance(operand, Pack):
        parts = [part(lowering, i, given) for i in operand.items]
        return lambda values: container(operand, [of(values) for of in parts])
    if isinstance(operand, Const) and not isinstance(operand.value, np.ndarray):
        return lambda values: operand.value
    fact = lowering.fact(operand)
    if not isinstance(fact, Array):
        lowering.refuse("this statement has no Numba form")
    place = len(given)
    given.append(lowering.array(operand).name if fact.dims else lowering.scalar(operand))
    if fact.dims:
        return lambda values: values[place].copy()
    return (lambda values: values[place].item()) if fact.weak else lambda values: values[place][()]


def container(pack, items):
    if pack.kind in ("tuple", "list"):
        return tuple(items) if pack.kind == "tuple" else items
    if pack.kind == "grown":
        return items[0].tolist() if pack.cls.weak else list(items[0])
    named = dict(zip(pack.keys, items))
    return named if pack.kind == "dict" else pack.cls(**named)


def function_of(quote, origin):
    """A quoted call as a function of its names, with the user's function and line in tracebacks and log records."""
    new = {name: f"value_{k}" for k, name in enumerate(quote.names)}
    space = {"__name__": _found(quote, "__name__", "__main__")}

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node):
            if node.id in new:
                return ast.copy_location(ast.Name(new[node.id], node.ctx), node)
            if isinstance(node.ctx, ast.Load):
                known = node.id.replace(" ", "_")       # placeholders have blanks
                space[known] = _found(quote, node.id, getattr(builtins, node.id, None))
                return ast.copy_location(ast.Name(known, node.ctx), node)
            return node

    tree = Rename().visit(gast.gast_to_ast(copy.deepcopy(quote.tree)))
    made = ast.parse(f"def report({', '.join(new.values())}): pass")
    made.body[0].body = [tree if isinstance(tree, ast.stmt) else ast.copy_location(ast.Expr(tree), tree)]
    code = compile(ast.fix_missing_locations(made), origin.file if origin else "<report>", "exec")
    exec(code, space)
    function = space.pop("report")
    function.__code__ = function.__code__.replace(co_name=origin.function if origin else "report")
    return function


def _found(quote, name, otherwise):
    try:
        return quote.lookup(name) if quote.lookup is not None else otherwise
    except NameError:
        return otherwise
