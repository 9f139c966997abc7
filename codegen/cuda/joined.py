# SPDX-License-Identifier: Apache-2.0
"""Loops are joined where the passes of what they become may still be taken by threads.

What makes one processor fast (rows in one pass, lanes, memory used again) is left out: threads are many, memory is
what they wait for.

>>> from gradscribe.codegen.fusion import fused
>>> print(fused('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n, 9), np.float64)
...     for i in range(n):
...         for j in range(9):
...             z[i, j] = x[i, j] * y[i, j]
...     column = np.zeros((9,), np.float64)
...     for i in range(n):
...         for j in range(9):
...             column[j] += z[i, j]
...     total = 0.0
...     for i in range(n):
...         for j in range(9):
...             total += z[i, j]
...     return (column, total)
... ''', [None] * 15, {"x": ("float64", 2), "y": ("float64", 2)}, how=Joined)[0])
def f(x, y):
    n = x.shape[0]
    column = np.zeros((9,), np.float64)
    for i in range(n):
        for j in range(9):
            column[j] += x[i, j] * y[i, j]
    total = 0.0
    for i in range(n):
        for j in range(9):
            total += x[i, j] * y[i, j]
    return (column, total)
<BLANKLINE>
"""
import ast

from gradscribe.codegen.ascending import counted_down, upward
from gradscribe.codegen.cuda.added import in_place
from gradscribe.codegen.cuda.flat import flatten
from gradscribe.codegen.cuda.order import Order
from gradscribe.codegen.fusion import Fusion
from gradscribe.codegen.recompute import Recompute
from gradscribe.codegen.small import Small
from gradscribe.codegen.texts import in_loop, is_counted, parts_of, walk
from gradscribe.codegen.versions import named_apart


class InPasses(Small):
    """Short arrays of a pass become numbers of its thread; those that passes share stay arrays."""

    def candidates(self, in_loops=True):
        found = super().candidates(in_loops)
        while True:
            shared = {n for n in found if any(not in_loop(m, self.parents) for m in self.made.get(n, ()))}
            shared |= {n for n in found for s in self.sets[n] if isinstance(self.parents[s].value, ast.Name) and
                       self.parents[s].value.id not in found}
            shared |= {n for n in found for u in self.uses.get(n, ()) if isinstance(self.parents[u], ast.Assign) and
                       self.parents[u].targets[0].id not in found}
            if not shared:
                return found
            found = {n: kind for n, kind in found.items() if n not in shared}


class Joined(Fusion):
    def run(self):
        named_apart(self.function)
        self.rows()
        in_place(self.function)
        flatten(self.function)
        InPasses(self.function, self.doubles).run()
        self.find_own()
        self.fill_in_place()
        upward(self.function, self.own)
        self.upward()
        self.join()
        if Recompute(self.function, self.own, self.doubles).run():
            self.find_own()
            self.touched = {}
            self.join()
        self.contract()
        self.find_own()

    def upward(self):
        """Loops that count down count up also where several passes add to one entry."""
        for loop in walk(self.function):
            if isinstance(loop, ast.For) and counted_down(loop) is not None:
                before, loop.iter.args = loop.iter.args, [counted_down(loop)]
                if Order(self.function).free(loop) is None:
                    loop.iter.args = before

    def join(self):
        order = Order(self.function)
        self.order = order
        self.free = {loop: order.free(loop) for loop in walk(self.function) if is_counted(loop)}
        self.function.body = self.block(self.function.body)

    def manner(self, loop):
        return True, False, False

    def shrink(self, name, made, entries, lost, parents):
        """What one thread makes for another pass stays whole: passes would want each other's rows."""
        loops = {self.loop_of(e, axis, parents) for e in entries for axis in lost}
        if len(lost) == len(parts_of(entries[0])) or not any(self.free.get(loop) for loop in loops):
            super().shrink(name, made, entries, lost, parents)

    def crowded(self, *bodies, hoped=frozenset()):
        return False

    def may_join(self, first, second):
        """Both have their passes taken in any order, and so has what they become; or neither has."""
        free = self.free.get(first), self.free.get(second)
        if (free[0] is None) != (free[1] is None) or not super().may_join(first, second):
            return False
        if free[0] is None:
            return not any(self.free.get(n) is not None for loop in (first, second) for s in loop.body for n in walk(s)
                           if isinstance(n, ast.For))
        if free[0].atomic or free[1].atomic:
            return False
        one = ast.For(first.target, first.iter, first.body + second.body, [])
        return self.order.entries(one) == set()
