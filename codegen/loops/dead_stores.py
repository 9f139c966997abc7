# SPDX-License-Identifier: Apache-2.0
"""Dead-store elimination: an array is not filled if all its entries are set before any is read.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     m = y.shape[0]
...     a = np.empty((n, m), np.float64)
...     for i in range(n):
...         for j in range(m):
...             a[i, j] = 0.0
...     for i in range(n - 1, -1, -1):
...         for j in range(m):
...             a[i, j] = x[i] * y[j]
...         for j in range(m):
...             a[i, j] += y[j]
...     return (a,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1)})
>>> without_dead_fills(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    m = y.shape[0]
    a = np.empty((n, m), np.float64)
    for i in range(n - 1, -1, -1):
        for j in range(m):
            a[i, j] = x[i] * y[j]
        for j in range(m):
            a[i, j] += y[j]
    return (a,)

Source: S. S. Muchnick, Advanced Compiler Design and Implementation (1997), 18.10 (dead-store elimination), of arrays.
"""
from gradscribe.codegen.loops.analysis.arrays import Arrays, uses_in
from gradscribe.codegen.loops.form import (
    JUMPS,
    Alloc,
    For,
    Function,
    Load,
    Name,
    Store,
    all_blocks,
    blocks,
    names_in,
    names_of,
    set_by,
    set_in,
    statements,
)
from gradscribe.codegen.loops.shapes import is_literal


def without_dead_fills(function: Function) -> None:
    """Changes a function in place."""
    arrays = Arrays(function)
    for block in list(all_blocks(function)):
        made_here = [s for s in block if isinstance(s, Alloc) and s.name in arrays.own and s.shape]
        holder = {i: s for s in block for i in statements([s])} if made_here else {}
        for made in made_here:
            using = list(dict.fromkeys(holder.get(u.statement) for u in arrays.uses[made.name]))
            if None in using:
                continue
            if using and made.how == "zeros" and covers(using[0], made):
                made.how = "empty"
            elif len(using) > 1 and covers(using[1], made) and fills(using[0], made.name):
                take_out_fill(block, using[0], made.name)


def fills(nest, name):
    """Whether a nest only sets entries of an array to literals."""
    return isinstance(nest, For) and all(
        isinstance(s, Store) and s.op is None and s.entry.array == Name(name) and is_literal(s.value)
        and name not in names_in(s.value) for s in statements([nest]) if name in names_of(s))


def take_out_fill(block, nest, name):
    """Remove the stores into an array from a nest, and the loops that are empty then."""
    for inner in blocks(nest):
        inner[:] = [s for s in inner if not (isinstance(s, Store) and s.entry.array == Name(name))]
        for s in list(inner):
            take_out_fill(inner, s, name)
    if isinstance(nest, For) and not nest.block:
        block.remove(nest)


def covers(loop, made) -> bool:
    """Whether a loop sets each entry of an array before it reads it, in each pass the part at its index."""
    return isinstance(loop, For) and loop.kind == "range" and _covers(loop, made, ())


def _covers(loop, made, indices):
    """indices: those of the loops around, one for each of the first axes."""
    if loop.count != made.shape[len(indices)] or loop.index in set_in(loop.block) or not set_in([loop]).isdisjoint(
            n for d in made.shape for n in names_in(d)) or any(isinstance(s, JUMPS) for s in statements(loop.block)):
        return False
    indices, name = (*indices, loop.index), made.name
    for k, s in enumerate(loop.block):
        if not any(name in names_of(i) or name in set_by(i) for i in statements([s])):
            continue
        if len(indices) < len(made.shape):
            if not isinstance(s, For) or s.kind != "range" or not _covers(s, made, indices):
                return False
        elif not isinstance(s, Store) or s.op is not None or s.entry != Load(Name(name), tuple(map(Name, indices))) \
                or name in names_in(s.value):
            return False
        part = tuple(map(Name, indices))
        return all(u.role == "length" or u.role == "entry" and u.parent.index[:len(part)] == part
                   for later in statements(loop.block[k + 1:]) for u in uses_in(later) if u.name == name)
    return False
