# SPDX-License-Identifier: Apache-2.0
"""Memory traffic: a lower bound of the bytes that a loop reads and writes, in terms of lengths.

An access counts once for all passes of the loops that its index does not depend on, and an array once however many
neighbouring entries are read: what was just read is in a cache.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, written
>>> tree = ast.parse('''def f(x, w):
...     y = np.empty((n, m), np.float64)
...     for i in range(n):
...         for j in range(m):
...             y[i, j] = x[i, j] * w[j] + x[i, j]''')
>>> function = from_tree(tree.body[0], {"x": ("float32", 2), "w": ("float32", 1)})
>>> ast.unparse(written(bytes_moved([function.block[1]], function.types)))
'12 * n * m + 4 * m'

Source: S. Williams, A. Waterman, D. Patterson, Roofline, 2009 (compulsory traffic).
"""
import math

import numpy as np

from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Const,
    Expr,
    For,
    Load,
    Name,
    Op,
    Store,
    blocks,
    names_in,
    names_of,
    read_by,
    set_by,
    walk,
)


def bytes_moved(block: list, types: dict) -> Expr:
    """The bytes that statements move, of arrays with a known dtype."""
    found: dict = {}                    # {(array, whether it is written): the lengths of the loops around}
    _look(block, types, {}, {}, found)
    sizes: dict = {}
    for (array, _), lengths in found.items():
        size = np.dtype(types[array].dtype).itemsize * math.prod(n.value for n in lengths if isinstance(n, Const))
        lengths = tuple(n for n in lengths if not isinstance(n, Const))
        sizes[lengths] = sizes.get(lengths, 0) + size
    terms = [_product(size, lengths) for lengths, size in sorted(sizes.items(), key=lambda kv: -len(kv[0]))]
    total = terms[0] if terms else Const(0)
    for term in terms[1:]:
        total = Op("+", (total, term))
    return total


def _product(size, lengths):
    made: Expr = Const(size)
    for n in lengths:
        made = Op("*", (made, n))
    return made


def _look(block, types, loops, depends, found):
    """loops: {index of a loop around: its length}; depends: {name: the indices that it depends on}."""
    for s in block:
        for e in (e for whole in read_by(s) for e in walk(whole)):
            if isinstance(e, Load):
                _add(e, False, types, loops, depends, found)
        if isinstance(s, Store):
            _add(s.entry, True, types, loops, depends, found)
        inside = loops
        if isinstance(s, For):
            inside = {**loops, s.index: s.range[0] if len(s.range) == 1 else None}
        else:
            on = set().union(*(_indices(n, loops, depends) for n in names_of(s)))
            depends |= {n: depends.get(n, set()) | on for n in set_by(s)}
        for inner in blocks(s):
            _look(inner, types, inside, depends, found)


def _indices(name, loops, depends):
    return {name} if name in loops else depends.get(name, set())


def _add(e, written, types, loops, depends, found):
    array = e.array.id if isinstance(e.array, Name) else None
    if not types.get(array, UNKNOWN).rank or types[array].dtype is None:
        return
    on = set().union(*(_indices(n, loops, depends) for part in e.index for n in names_in(part)))
    lengths = tuple(n for index, n in loops.items() if index in on and n is not None)
    if not written and found.get((array, True)) == lengths:
        return                          # it has just been written
    if len(lengths) >= len(found.get((array, written), ())):
        found[array, written] = lengths
