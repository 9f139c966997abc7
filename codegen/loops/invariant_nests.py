# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion of whole arrays: a nest that fills an array equally in every pass moves before the loop.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(K, v):
...     n = K.shape[0]
...     for t in range(30):
...         a = np.empty((n, n), np.float64)
...         for i in range(n):
...             for j in range(n):
...                 a[i, j] = exp(K[i, j])
...         v = np.dot(a, v)
...     return (v,)''')
>>> function = from_tree(tree.body[0], {"K": ("float64", 2), "v": ("float64", 1)})
>>> hoist_nests(function)
>>> print(ast.unparse(to_tree(function)))
def f(K, v):
    n = K.shape[0]
    a = np.empty((n, n), np.float64)
    for i in range(n):
        for j in range(n):
            a[i, j] = exp(K[i, j])
    for t in range(30):
        v = np.dot(a, v)
    return (v,)

A nest moves if it reads nothing that the loop changes, only it writes into its arrays, it precedes all their uses, and
it cannot raise where the loop has no pass.  invariants.py does the same for parts of statements.

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.5 (loop-invariant expressions).
"""
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.effects import PURE, Effects
from gradscribe.codegen.loops.analysis.liveness import read_outside_loops
from gradscribe.codegen.loops.analysis.ranges import is_length_check
from gradscribe.codegen.loops.analysis.values import Analyses, in_bounds
from gradscribe.codegen.loops.form import (
    JUMPS,
    Alloc,
    Call,
    Compare,
    Const,
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Logic,
    Name,
    Op,
    Select,
    Store,
    Update,
    While,
    all_blocks,
    blocks_in_loops,
    expressions,
    names_in,
    names_of,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.invariants import is_elementary, is_plain
from gradscribe.codegen.loops.shapes import is_counted


def hoist_nests(function: Function) -> None:
    """Changes a function in place."""
    if any(in_loop and isinstance(s, Alloc) for block, in_loop in blocks_in_loops(function.block) for s in block):
        while _Nests(function).one():
            pass


class _Nests:
    """outside: names that are read other than as the index of a loop around."""

    def __init__(self, function):
        self.function, self.asked, self.arrays = function, Analyses(function), Arrays(function)
        self.outside = read_outside_loops(function.block)

    def read_without(self, every):
        """The names that all other statements read."""
        inside = set(every)
        return {n for s in statements(self.function.block) if s not in inside for n in names_of(s)}

    def one(self):
        """Move a nest out of a loop; whether there was one."""
        for block in list(all_blocks(self.function)):
            for loop in block:
                if isinstance(loop, While) or isinstance(loop, For) and loop.kind == "range":
                    for nest in loop.block:
                        moved = is_counted(nest) and self.moves(nest, loop)
                        if moved:
                            loop.block[:] = [s for s in loop.block if s not in moved]
                            at = block.index(loop)
                            block[at:at] = moved
                            return True
        return False

    def moves(self, nest, loop):
        """What moves before the loop: the allocations and the nest; empty if it must stay."""
        effects = Effects([nest])
        every = list(statements([nest]))
        if not effects.known or effects.whole or not effects.writes or not all(map(self.plain, every)):
            return ()
        made = [s for s in loop.block if isinstance(s, Alloc) and s.name in effects.writes]
        names = {s.name for s in made}
        if names != effects.writes.keys() or not all(self.filled_here(s, nest, every) for s in made):
            return ()
        rest = [s for s in loop.block if s is not nest and s not in made]
        before = rest[:loop.block.index(nest) - len(made)]
        if any(not names.isdisjoint(names_of(i)) for i in statements(before)):
            return ()                   # they use the initial contents
        changed = set_in(rest) | ({loop.index} if isinstance(loop, For) else set())
        lengths = {n for s in made for d in (*s.shape, *s.rest) for n in names_in(d)}
        if not changed.isdisjoint(effects.names | (effects.reads.keys() - names) | lengths) or \
                not self.asked.families(effects.reads.keys() - names).isdisjoint(self.written(rest)):
            return ()
        indices = {s.index for s in every if isinstance(s, For)}
        if not indices.isdisjoint(self.outside) or not (effects.sets - indices).isdisjoint(
                self.read_without(every)):
            return ()
        ranges = self.asked.ranges
        sizes = [d for s in (*made, *before) if isinstance(s, Alloc) for d in s.shape]
        # if the loop has no pass, nothing has checked that lengths are not negative
        there = all(ranges.at_least(d, 0, loop) for d in sizes) and not any(map(is_length_check, before)) and \
            self.inside(every)
        return [*made, nest] if there or self.surely_runs(loop, before) else ()

    def surely_runs(self, loop, before):
        """Whether a loop certainly reaches what follows these statements: it has a pass, and nothing leaves that."""
        return isinstance(loop, For) and self.asked.ranges.has_a_pass(loop) and all(
            isinstance(s, (Let, Alloc, Store, Update, For, If)) for s in statements(before)) and not any(
            isinstance(s, JUMPS) for s in statements(loop.block))

    @staticmethod
    def plain(s):
        """Whether a statement only computes and cannot raise."""
        if isinstance(s, For):
            return is_counted(s)
        return isinstance(s, (Let, Store, Update)) and all(
            isinstance(n, (Name, Const, Length, Compare, Logic, Select)) or isinstance(n, Load) and isinstance(
                n.array, Name) or isinstance(n, Op) and n.op not in ("//", "%", "@") or isinstance(
                n, Call) and not n.keywords and (is_elementary(n) or is_plain(n) or n.function in PURE)
            for e in expressions(s) for n in walk(e))

    def filled_here(self, made, nest, every):
        """Whether an array has no alias and one allocation, and only the nest writes to it."""
        name, own = made.name, set(every)
        return name in self.arrays.own and name not in self.arrays.views and set(self.arrays.entered.get(name, ())) <= \
            own and nest in self.asked.known.loops_around(self.arrays.entered[name][0])

    def written(self, rest):
        """The families of the arrays that statements may write."""
        names = set()
        for s in rest:
            effects = Effects([s], branches=True, asks=True, raises=True)
            names |= effects.writes.keys() if effects.known else {n for i in statements([s]) for n in names_of(i)}
        return self.asked.families(names)

    def inside(self, every):
        """Whether all entries exist, even if the loop around has no pass."""
        counts = {s.index: s.count for s in every if isinstance(s, For)}
        return all(in_bounds(n, s, counts, self.asked) for s in every for e in expressions(s) for n in walk(e)
                   if isinstance(n, Load))
