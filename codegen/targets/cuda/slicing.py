# SPDX-License-Identifier: Apache-2.0
"""Backward slices: the statements that what is stored in some arrays hangs on, and no others.

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

Source: M. Weiser, Program slicing, 1981.
"""
from gradscribe.codegen.loops.form import (
    BLOCKS,
    JUMPS,
    Do,
    If,
    Nothing,
    Store,
    blocks,
    copied,
    names_of,
    set_by,
    statements,
)


def backward_slice(block: list, arrays: set) -> list:
    """A copy of a block without the statements on which nothing hangs that is stored in these arrays."""
    return _Slice(block, arrays).kept(block)


class _Slice:
    """needed: the names on which what is stored hangs; found: the statements of the slice, with the branches that leave
    its loops.
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
