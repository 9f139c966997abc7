# SPDX-License-Identifier: Apache-2.0
"""Lengths of arguments that a function compares because it does not know whether they are equal.

`c[i, :i + 1] += a[:i + 1, k]` has at most as many entries as c has columns and a has rows: the loop form has
min(i + 1, n_2), checks, and often each loop twice.  If both lengths are equal in the example, a version of the function
with one length for both needs none of this; see jit.py.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of
>>> undecided(Function("f", ["x", "y"], {}, block_of('''n_1 = x.shape[0]
... n_2 = y.shape[0]
... for i in range(n_1):
...     m = min(i + 1, n_2)
...     for j in range(m):
...         y[j] += x[i]
... return (y,)''')), {"n_1", "n_2"})
[('n_1', 'n_2')]

Source: the symbolic sizes of PyTorch's compiler ("duck shaping") assume that equal sizes in the example stay equal.
"""
from gradscribe.codegen.loops.analysis.effects import CHECKS
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Compare,
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Name,
    Type,
    blocks,
    children,
    expressions,
    statements,
    walk,
)

LEAST_OF = {"min", "max", "meet"}       # functions that choose one of two lengths
WHOLE = Type("int64", 0)


def undecided(function: Function, lengths: set) -> list:
    """The sets of lengths, as tuples of names, that meet in a minimum or the like, or in a check or test in a loop."""
    return _Undecided(function, lengths).run()


class _Undecided:
    """made_of: {a whole number, or (array, axis): the expressions that it is set to}; known: {the same: the lengths of
    arguments that it depends on}; found: the result, as the keys of a dict.
    """

    def __init__(self, function, lengths):
        self.function, self.lengths, self.made_of, self.found, self.known = function, lengths, {}, {}, {}
        for s in statements(function.block):
            if isinstance(s, Alloc):
                for axis, n in enumerate(s.shape):
                    self.made_of.setdefault((s.name, axis), []).append(n)
            elif isinstance(s, For):
                self.made_of.setdefault(s.index, []).extend(s.range)
            elif isinstance(s, Let) and function.types.get(s.name) == WHOLE:
                self.made_of.setdefault(s.name, []).append(s.value)

    def run(self):
        self.block(self.function.block, False)
        return list(self.found)

    def block(self, block, in_loop):
        for s in block:
            for e in (part for whole in expressions(s) for part in walk(whole)):
                if isinstance(e, Call) and (e.function in LEAST_OF or in_loop and e.function in CHECKS):
                    self.meet(e)
            if isinstance(s, If) and in_loop and isinstance(s.test, Compare) and s.test.ops == ("==",):
                self.meet(s.test)
            for inner in blocks(s):
                self.block(inner, in_loop or isinstance(s, For))

    def meet(self, e):
        names = self.origins_of(e)
        if len(names) > 1:
            self.found[tuple(sorted(names))] = None

    def origins_of(self, e):
        """The lengths of arguments that an expression depends on, other than by entries of arrays."""
        if isinstance(e, Name):
            return self.origins(e.id)
        if isinstance(e, Length):
            return self.origins((e.array, e.axis))
        return frozenset() if isinstance(e, Load) else frozenset().union(*map(self.origins_of, children(e)))

    def origins(self, name):
        """Those that a whole number, or (array, axis), depends on."""
        if name in self.lengths:
            return frozenset({name})
        if name not in self.known:
            self.known[name] = frozenset()              # ends the recursion: what a loop updates depends on itself
            self.known[name] = frozenset().union(*map(self.origins_of, self.made_of.get(name, ())))
        return self.known[name]
