# SPDX-License-Identifier: Apache-2.0
"""Sums into a loop-invariant entry become sums of a number, which is added to the entry after the loop.

`dz[k, i] += d[j] * z[k, j]` in a loop over j that also adds to `dz[k, j]` would load and store in each pass, since LLVM
does not know when j is i.  The order of the additions to that entry changes, so this is for fast mathematics only.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y, k):
...     n = x.shape[0]
...     for j in range(n):
...         y[j] += x[k]
...         y[k] += x[j]
...     return (y,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1), "k": ("int64", 0)})
>>> sums_of_numbers(function, {"y"})
>>> print(ast.unparse(to_tree(function)))
def f(x, y, k):
    n = x.shape[0]
    y_sum = 0.0
    for j in range(n):
        y[j] += x[k]
        y_sum += x[j]
    if n > 0:
        y[k] += y_sum
    return (y,)

Source: S. Carr, K. Kennedy, Scalar replacement in the presence of conditional control flow, 1994 (of reductions).
"""
from typing import cast

from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.dependence import accumulated
from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import (
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Let,
    Name,
    Store,
    Type,
    Update,
    While,
    all_blocks,
    all_names,
    names_in,
    set_in,
    unused,
)
from gradscribe.codegen.loops.shapes import is_counted


def sums_of_numbers(function: Function, own: set | None = None) -> None:
    """Change a function in place; own: arrays without aliases."""
    own = Arrays(function).own if own is None else own
    for block in all_blocks(function):
        for loop in [s for s in block if is_counted(s) and is_innermost(s)]:
            if not names_in(cast(Expr, loop.count)).isdisjoint(set_in(loop.block)):
                continue
            sums = [s for s in loop.block if stays(s, loop, function) and s.entry.array.id in own]
            for place in dict.fromkeys(s.entry for s in sums):
                if accumulated(place.array.id, loop) and elsewhere(place, loop):
                    replaced(place, loop, block, function)


def is_innermost(loop):
    return not any(isinstance(s, (For, While, If)) for s in loop.block)


def stays(s, loop, function):
    """Whether a statement adds a real number to a loop-invariant entry."""
    return isinstance(s, Store) and s.op in ("+", "-") and isinstance(s.entry.array, Name) and \
        function.types[s.entry.array.id].dtype == "float64" and \
        len(s.entry.index) == function.types[s.entry.array.id].rank and \
        set_in([loop]).isdisjoint(n for part in s.entry.index for n in names_in(part))


def elsewhere(place, loop):
    """Whether the loop adds to other entries of the array too."""
    return any(isinstance(s, Store) and s.entry.array == place.array and s.entry != place for s in loop.block)


def replaced(place, loop, block, function):
    name = unused(f"{place.array.id}_sum", all_names(function))
    function.types[name] = Type("float64", 0)
    for k, s in enumerate(loop.block):
        if isinstance(s, Store) and s.entry == place:
            loop.block[k] = Update(name, s.op, s.value, s.origin)
    at = block.index(loop)
    first = next(s for s in loop.block if isinstance(s, Update) and s.name == name)
    added = Store(place, Name(name), "+", first.origin)
    if not Ranges(function).has_a_pass(loop):           # without a pass the entry may not exist
        added = If(Compare((">",), (loop.count, Const(0))), [added], [], first.origin)
    block.insert(at + 1, added)
    block.insert(at, Let(name, Const(0.0), first.origin))
