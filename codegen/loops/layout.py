# SPDX-License-Identifier: Apache-2.0
"""Data layout: the axes of private arrays are permuted so that innermost loops run along the last one, contiguously.

What the forward loop saves for the backward loop is stored in the order of the forward loop, here column by column; if
both loops otherwise read rows, its axes are exchanged.  This applies to arrays that only the function accesses, by
entry.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y, n, m):
...     saved = np.empty((n, m), np.float64)
...     for j in range(n):
...         for i in range(m):
...             saved[j, i] = x[i, j]
...     for i in range(m):
...         for j in range(n):
...             y[i, j] += x[i, j] * saved[j, i]''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 2), "y": ("float64", 2), "n": ("int64", 0), "m": ("int64", 0)})
>>> lay_out(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y, n, m):
    saved = np.empty((m, n), np.float64)
    for j in range(n):
        for i in range(m):
            saved[i, j] = x[i, j]
    for i in range(m):
        for j in range(n):
            y[i, j] += x[i, j] * saved[i, j]

The next pass, interchange.py, makes j the inner loop of the first nest.

Source: M. Kandemir, A. Choudhary, J. Ramanujam, P. Banerjee, Improving locality using loop and data transformations in
an integrated framework, 1998.
"""
from gradscribe.codegen.loops.analysis.arrays import Arrays, is_entry
from gradscribe.codegen.loops.analysis.dependence import any_order, moved
from gradscribe.codegen.loops.form import (
    For,
    Function,
    Load,
    Name,
    While,
    expressions,
    holders,
    names_in,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.interchange import is_distributable, names_in_range
from gradscribe.codegen.loops.shapes import entries_changed, is_counted


def lay_out(function: Function) -> None:
    """Changes a function in place."""
    arrays = Arrays(function)
    nests = _Nests(function, arrays.own)
    for name in sorted(arrays.own):
        made, uses = arrays.made[name], arrays.uses[name]
        rank = len(made.shape)
        if rank < 2 or any(u.role != "entry" or not is_entry(u.parent, rank) for u in uses):
            continue
        axes = range(rank - 1, -1, -1)          # among equals the last wins
        last = min(axes, key=lambda axis: nests.strides(name, axis))
        if last != rank - 1:
            order = [*(k for k in range(rank) if k != last), last]
            made.shape = tuple(made.shape[k] for k in order)
            entries_changed(function.block, name, lambda e, order=order: Load(
                e.array, tuple(e.index[k] for k in order)))
            nests.read(nests.reach.get(name, ()))


class _Nests:
    """inner: {innermost loop: the indices that may become innermost, its own and, if interchange is legal, those of the
    loop around}; entries: {loop: its accesses to arrays with several axes}; reach: {array: the loops that access it}.
    """

    def __init__(self, function, own):
        above, self.inner, exchanged = holders(function), {}, {}
        self.entries, self.reach = {}, {}
        for loop in (s for s in statements(function.block) if is_counted(s)):
            if any(isinstance(s, (For, While)) for s in statements(loop.block)):
                continue
            around = above.get(loop)
            if around not in exchanged:
                exchanged[around] = is_counted(around) and is_distributable(around) and any_order(
                    around, own, function, sums=True)
            free = exchanged[around] and names_in_range(loop).isdisjoint(set_in(around.block))
            self.inner[loop] = [{loop.index}, {around.index, *moved(around)}] if free else [{loop.index}]

        self.read(self.inner)
        for loop in self.inner:
            for name in {e.array.id for e in self.entries[loop] if isinstance(e.array, Name)}:
                self.reach.setdefault(name, []).append(loop)

    def read(self, loops):
        for loop in loops:
            self.entries[loop] = [e for s in statements(loop.block) for whole in expressions(s) for e in walk(whole)
                                  if isinstance(e, Load) and len(e.index) > 1]

    def strides(self, name, axis):
        """The number of accesses with a large stride in the loops that access an array, with this axis last."""
        total = 0
        for loop in self.reach.get(name, ()):
            total += min(sum(apart(e, places, axis if e.array == Name(name) else len(e.index) - 1)
                             for e in self.entries[loop]) for places in self.inner[loop])
        return total


def apart(e, places, last):
    """Whether an access has a large stride where these names change, with this axis of its array last."""
    changed = [k for k, part in enumerate(e.index) if not names_in(part).isdisjoint(places)]
    return bool(changed) and last not in changed
