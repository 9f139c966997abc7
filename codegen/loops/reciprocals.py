# SPDX-License-Identifier: Apache-2.0
"""Divisions on the critical path of a recurrence become products with a reciprocal that is computed beside the path.

This is possible where only the dividend depends on the previous pass.  A division takes three times as long as a
product.  The last digit may differ, so this is for fast mathematics only.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, d, n):
...     y = np.zeros((n,), np.float64)
...     for i in range(n - 1):
...         y[i + 1] = (x[i] - y[i]) / d[i]
...     return (y,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "d": ("float64", 1), "n": ("int64", 0)})
>>> reciprocals(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, d, n):
    y = np.zeros((n,), np.float64)
    for i in range(n - 1):
        y[i + 1] = (x[i] - y[i]) * (1.0 / d[i])
    return (y,)

Source: R. Allen, K. Kennedy, Optimizing Compilers for Modern Architectures, 2002, chapter 6 (recurrences bound a loop).
"""
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.dependence import any_order
from gradscribe.codegen.loops.form import (
    Const,
    For,
    Function,
    If,
    Let,
    Name,
    Op,
    Store,
    Update,
    While,
    change,
    expressions,
    names_in,
    rebuilt,
    statements,
    walk,
)
from gradscribe.codegen.loops.types import type_of


def reciprocals(function: Function) -> None:
    """Changes a function in place."""
    own = Arrays(function).own
    for loop in [s for s in statements(function.block) if isinstance(s, For)]:
        if any(isinstance(s, (For, While, If)) for s in loop.block) or not has_division(loop) or any_order(
                loop, own, function, sums=True):
            continue
        carried = carried_by(loop)

        def quotient(e, carried=carried):
            e = rebuilt(e, quotient)
            if not isinstance(e, Op) or e.op != "/" or isinstance(e.args[1], Const):
                return e
            above, below = e.args
            if carried.isdisjoint(names_in(above)) or not carried.isdisjoint(names_in(below)) or \
                    {type_of(part, function.types).dtype for part in e.args} != {"float64"}:
                return e
            return Op("*", (above, Op("/", (Const(1.0), below))))
        for s in loop.block:
            change(s, quotient)


def has_division(loop):
    return any(isinstance(n, Op) and n.op == "/" for s in loop.block for e in expressions(s) for n in walk(e))


def carried_by(loop) -> set:
    """Names that may depend on the previous pass: arrays that are written, numbers that are updated or read these."""
    found = {s.entry.array.id for s in loop.block if isinstance(s, Store) and isinstance(s.entry.array, Name)}
    found |= {s.name for s in loop.block if isinstance(s, Update)}
    numbers = [s for s in loop.block if isinstance(s, Let)]
    while more := {s.name for s in numbers if s.name not in found and not found.isdisjoint(names_in(s.value))}:
        found |= more
    return found
