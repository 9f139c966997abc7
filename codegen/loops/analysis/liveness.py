# SPDX-License-Identifier: Apache-2.0
"""Liveness: which values are read later.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of
>>> function = Function("f", ["x"], {}, block_of('''for i in range(3):
...     t = x[i]
...     s = 2.0 * t
... return s'''))
>>> read_after(function, function.block[0], {"t"}), read_after(function, function.block[0], {"s"})
(False, True)

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.2.5 (live-variable analysis).
"""
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.form import (
    JUMPS,
    Alloc,
    Break,
    Continue,
    For,
    Function,
    If,
    Let,
    Name,
    Raise,
    Return,
    While,
    blocks,
    names_of,
    names_read,
    set_by,
    set_in,
)


class Flow:
    """The names that statements read before they set them (upward-exposed uses), set, and set on every path."""

    def __init__(self, row):
        self.read, self.sets, self.certain = set(), set(), set()
        self.block(row)

    def block(self, block):
        for s in block:
            self.read |= names_of(s) - self.certain
            before, own = set(self.certain), set(set_by(s))
            if isinstance(s, (For, While)):
                self.certain |= own
                self.block(s.block)
                self.certain = before
                continue
            ends = []
            for arm in blocks(s):
                self.certain = set(before)
                self.block(arm)
                ends.append(self.certain)
            self.sets |= own
            self.certain = (set.intersection(*ends) if ends else before) | own


def read_outside_loops(block: list, indices: frozenset = frozenset()) -> set:
    """The names that statements read, without the indices of loops around them; indices: those of outer loops.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> sorted(read_outside_loops(block_of("for i in range(n):\\n    s = x[i]\\nt = i")))
    ['i', 'n', 'x']
    """
    found: set = set()
    for s in block:
        found |= names_of(s) - indices
        inside = indices | {s.index} if isinstance(s, For) else indices
        for inner in blocks(s):
            found |= read_outside_loops(inner, inside)
    return found


def read_after(function: Function, loop: For, names: set) -> bool:
    """Whether the value that a loop leaves in one of these names may be read after it, on any path."""
    users = set()                       # statements that read them, and those around

    def look(s):
        if s is not loop:
            found = [look(i) for b in blocks(s) for i in b]
            if any(found) or not names.isdisjoint(names_of(s)):
                users.add(s)
        return s in users
    for s in function.block:
        look(s)

    def read(s, fresh):
        """fresh: names that the loops around set in each pass before they read them."""
        if s not in users:
            return False
        if (names_of(s) & names) - fresh:
            return True
        own = frozenset()
        if isinstance(s, For):
            effects = Effects(s.block)
            own = {s.index} | (effects.sets - effects.names if effects.known else set_first(s.block))
        return any(read(inner, fresh | own) for b in blocks(s) for inner in b)
    return any(read(s, frozenset()) for s in function.block)


def set_first(block: list) -> set:
    """Names that a block sets on every path before anything reads them."""
    found: set = set()
    read: set = set()
    for s in block:
        if isinstance(s, JUMPS):
            break
        if isinstance(s, (Let, Alloc)):
            read |= names_of(s)
            found |= {s.name} - read
        else:
            read |= names_read([s]) | set_in([s])
    return found


class Liveness:
    """after: {statement of a block: the live names after it}, where no name is live after the block; unread: the
    statements `name = other` whose name is dead.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> block = block_of("while x[0] > 1:\\n    t = x\\n    x = s\\n    x[1] = t[1]\\n    y = t")
    >>> found = Liveness(block)
    >>> [sorted(found.after[s]) for s in block[0].block], found.unread == {block[0].block[3]}
    ([['s', 't'], ['s', 't', 'x'], ['s', 'x'], ['s', 'x']], True)
    """

    def __init__(self, block: list):
        self.jumps: list = []           # for each loop around, the live names after it and at its head
        self.after: dict = {}
        self.unread: set = set()
        self.block(block, frozenset())

    def block(self, block, live):
        """The live names before a block, from those after it."""
        for s in reversed(block):
            self.after[s] = live
            live = self.before(s, live)
        return live

    def before(self, s, live):
        if isinstance(s, (For, While)):
            head = live | names_of(s)
            while True:                 # what the next pass reads is live after this one
                self.jumps.append((live, head))
                more = self.block(s.block, head) - set(set_by(s))        # a pass has its own index
                self.jumps.pop()
                if more <= head:
                    return head
                head = head | more
        if isinstance(s, If):
            return self.block(s.block, live) | self.block(s.orelse, live) | names_of(s)
        if isinstance(s, (Break, Continue)):
            return self.jumps[-1][isinstance(s, Continue)]
        if isinstance(s, (Return, Raise)):
            return names_of(s)
        if not isinstance(s, (Let, Alloc)):
            return live | names_of(s)
        if isinstance(s, Let) and isinstance(s.value, Name):
            if s.name not in live:
                self.unread.add(s)
                return live
            self.unread.discard(s)
        return (live - {s.name}) | names_of(s)
