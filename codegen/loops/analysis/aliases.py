# SPDX-License-Identifier: Apache-2.0
"""Flow-sensitive alias analysis: which names may share memory before each statement.

>>> from gradscribe.codegen.loops.form import Store
>>> from gradscribe.codegen.loops.trees import block_of
>>> block = block_of('''while x[0] > 1.0:
...     n = np.empty((2,), np.float64)
...     n[0] = old[1]
...     old = v
...     v = n
...     v[0] = 1.0''')
>>> found = aliases_at(block, {})
>>> [sorted(map(sorted, found[s])) for s in block[0].block if isinstance(s, Store)]
[[], [['n', 'v']]]

At the first store `n` is a new array without aliases; `old` has the memory that `v` had before.

Source: J.-D. Choi, M. Burke, P. Carini, Efficient flow-sensitive interprocedural computation of pointer-induced aliases
and side effects, 1993, without its calls.
"""
from collections.abc import Callable, Hashable

from gradscribe.codegen.loops.analysis.arrays import shown_by
from gradscribe.codegen.loops.form import (
    Alloc,
    Break,
    Continue,
    Do,
    For,
    If,
    Let,
    Raise,
    Return,
    Unpack,
    While,
    set_by,
)

NONE: frozenset = frozenset()


def aliases_at(block: list, types: dict, key: Callable[[str], Hashable] = lambda name: name) -> dict:
    """{statement: the pairs of names that may share memory before it}; a list shares the memory of its elements.

    key: the key of a name in the pairs, None for names to ignore.
    """
    found = _Aliases(types, key)
    found.block(block, NONE)
    return found.at


class _Aliases:
    """jumps: for each loop around, [the pairs at its breaks, those at its continues]."""

    def __init__(self, types, key):
        self.types, self.key, self.at, self.jumps = types, key, {}, []

    def block(self, block, now):
        """The pairs after a block; none where its end is unreachable."""
        for s in block:
            self.at[s] = self.at.get(s, NONE) | now
            now = self.after(s, now)
        return now

    def after(self, s, now):
        if isinstance(s, (For, While)):
            while True:
                self.jumps.append([NONE, NONE])
                end = self.block(s.block, now)
                broken, continued = self.jumps.pop()
                if end | continued <= now:
                    return now | broken
                now = now | end | continued
        if isinstance(s, If):
            return self.block(s.block, now) | self.block(s.orelse, now)
        if isinstance(s, (Break, Continue)):
            self.jumps[-1][isinstance(s, Continue)] |= now
        if isinstance(s, (Break, Continue, Return, Raise)):
            return NONE
        if not isinstance(s, (Let, Alloc, Unpack, Do)):
            return now
        shown = {self.key(n) for n in (NONE if isinstance(s, Alloc) else shown_by(s.value, self.types))} - {None}
        shown |= {other for pair in now if pair & shown for other in pair}
        given = {self.key(n) for n in set_by(s)} - {None}
        now = frozenset([pair for pair in now if pair.isdisjoint(given)])
        if isinstance(s, Do):
            given = shown
        return now | {frozenset([a, b]) for a in given for b in shown if a != b}
