# SPDX-License-Identifier: Apache-2.0
"""Program slices: the statements that decide how often loops run, and those that given names depend on.

>>> import ast
>>> from gradscribe.codegen.loops.trees import block_of, to_statements
>>> block = block_of('''k = 0
... while v > 0:
...     w = v * 2
...     z[k] = w
...     k += 1
...     v = v - u''')
>>> for s in to_statements(sliced(block, {"k"})):
...     print(ast.unparse(s))
k = 0
while v > 0:
    k += 1
    v = v - u

Source: M. Weiser, Program slicing, 1984.
"""
from collections.abc import Container

from gradscribe.codegen.loops.form import (
    BLOCKS,
    JUMPS,
    Alloc,
    Do,
    For,
    If,
    Let,
    Nothing,
    Statement,
    Store,
    Unpack,
    Update,
    blocks,
    copied,
    names_in,
    names_of,
    set_by,
    statements,
    stored_by,
)

ASSIGNMENTS = Let, Alloc, Unpack, Update, Store


def asked(block: list) -> set:
    """The names on which the control flow of statements depends, also indirectly.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> sorted(asked(block_of('''while v > 0:
    ...     w = v * 2
    ...     y = w * w
    ...     v = v - u''')))
    ['u', 'v']
    """
    return made_of(block, {n for s in statements(block) if not isinstance(s, ASSIGNMENTS) for n in names_of(s)})


def made_of(block: list, found: set) -> set:
    """Names, and those that they are computed from."""
    assignments = [(changed_by(s), names_of(s)) for s in statements(block) if isinstance(s, ASSIGNMENTS)]
    while not (more := set().union(*(read for changed, read in assignments if changed & found))) <= found:
        found = found | more
    return found


def changed_by(s: Statement) -> set:
    """The names that a statement itself sets, arrays whose entries it sets included."""
    return {*set_by(s), *(n for e in stored_by(s) for n in names_in(e.array))}


def sliced(block: list, names: set, own: Container = ()) -> list:
    """A copy of statements without those that neither the control flow nor `names` depend on; own: the only arrays
    whose entries it may set.
    """
    found, count = list(map(copied, block)), 0
    while count != (count := sum(1 for _ in statements(found))):
        found = _needed(found, made_of(found, names | asked(found)), own)
    return found


def _needed(block, needed, own):
    kept = []
    for s in block:
        for k, inner in enumerate(blocks(s)):
            inner[:] = _needed(inner, needed, own) or [Nothing()][k:]
        idle = isinstance(s, (For, If)) and all(isinstance(i, Nothing) for i in statements([s]) if i is not s)
        if isinstance(s, ASSIGNMENTS):
            idle = changed_by(s).isdisjoint(needed) or isinstance(s, Store) and s.entry.array.id not in own
        if not idle:
            kept.append(s)
    return kept


def backward_slice(block: list, arrays: set) -> list:
    """A copy of a block without the statements that what is stored in these arrays does not depend on.

    >>> from gradscribe.codegen.loops.trees import block_of, to_statements
    >>> block = block_of('''k = 0
    ... w = 1.0
    ... while v > 0:
    ...     w = v * 2
    ...     z[k] = w
    ...     k += 1
    ...     v = v - u
    ... most[0] = k''')
    >>> def shown(block):
    ...     import ast
    ...     print(ast.unparse(ast.Module(to_statements(block), [])))
    >>> shown(backward_slice(block, {"most"}))
    k = 0
    while v > 0:
        k += 1
        v = v - u
    most[0] = k
    """
    return _Slice(block, arrays).kept(block)


class _Slice:
    """needed: the names that the stores depend on; found: the statements of the slice, with the branches that leave its
    loops.
    """

    def __init__(self, block, arrays):
        self.needed, self.found, before = set(arrays), set(), -1
        while len(self.needed) > before:
            before = len(self.needed)
            for s in block:
                self.add(s)

    def add(self, s):
        """Whether a statement is in the slice; then what it reads is needed."""
        if type(s) in BLOCKS:
            found = any([self.add(inner) for b in blocks(s) for inner in b])
            for i in statements([s] if found else []):
                if isinstance(i, JUMPS) or isinstance(i, If) and any(isinstance(j, JUMPS) for j in statements([i])):
                    self.found.add(i)
                    self.needed |= names_of(i)
        elif isinstance(s, Store):
            found = getattr(s.entry.array, "id", None) in self.needed
        else:
            found = isinstance(s, Do) or not self.needed.isdisjoint(set_by(s))
        if found:
            self.found.add(s)
            self.needed |= names_of(s)
        return found

    def kept(self, block):
        out = []
        for s in block:
            if s in self.found:
                out.append(made := copied(s))
                for name in BLOCKS.get(type(s), ()):
                    setattr(made, name, self.kept(getattr(s, name)))
                if type(s) in BLOCKS and not made.block:
                    made.block = [Nothing()]
        return out
