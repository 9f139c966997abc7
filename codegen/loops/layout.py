# SPDX-License-Identifier: Apache-2.0
"""Data layout: the axis that innermost loops run along is the last one, where entries lie side by side.

What a loop saves for the backward loop is stored as the forward loop comes by it, here column after column; where both
loops read rows otherwise, its axes are exchanged.  Only the function sees such an array, by entries.

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

Interchange (interchange.py), which follows, puts j inside in the first loop.

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
        axes = range(rank - 1, -1, -1)          # of equal ones the last stays
        last = min(axes, key=lambda axis: nests.strides(name, axis))
        if last != rank - 1:
            order = [*(k for k in range(rank) if k != last), last]
            made.shape = tuple(made.shape[k] for k in order)
            entries_changed(function.block, name, lambda e, order=order: Load(
                e.array, tuple(e.index[k] for k in order)))
            nests.read(nests.reach.get(name, ()))


class _Nests:
    """inner: innermost loops, each with the loops of which one can be inside: itself, and the one around it where they
    can be exchanged; entries: {loop: those in it of arrays with several axes}; reach: {array: the loops that reach it}.
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
        """How many entries lie apart in one pass after the other, in the loops that reach an array, with this axis
        last.
        """
        total = 0
        for loop in self.reach.get(name, ()):
            total += min(sum(apart(e, places, axis if e.array == Name(name) else len(e.index) - 1)
                             for e in self.entries[loop]) for places in self.inner[loop])
        return total


def apart(e, places, last):
    """Whether an entry's places lie apart in memory where these names change, with an axis of its array last."""
    changed = [k for k, part in enumerate(e.index) if not names_in(part).isdisjoint(places)]
    return bool(changed) and last not in changed
