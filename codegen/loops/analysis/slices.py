# SPDX-License-Identifier: Apache-2.0
"""Program slices: what is left of statements that are gone through only for some numbers.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of, to_statements
>>> block = block_of('''k = 0
... while v > 0:
...     w = v * 2
...     z[k] = w
...     k += 1
...     v = v - u''')
>>> import ast
>>> print(ast.unparse(ast.fix_missing_locations(ast.Module(to_statements(only(block, {"k"}, set())), []))))
k = 0
while v > 0:
    k += 1
    v = v - u

Source: M. Weiser, Program slicing, 1984.
"""
from gradscribe.codegen.loops.form import (
    Do,
    For,
    If,
    Nothing,
    Store,
    While,
    blocks,
    names_in,
    names_of,
    set_by,
    statements,
    stored_by,
)


def paths(block: list) -> set:
    """Names on which the way through some statements hangs, and those that these are made of.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> sorted(paths(block_of('''while v > 0:
    ...     w = v * 2
    ...     y = w * w
    ...     v = v - u''')))
    ['u', 'v']
    """
    found = set()
    for s in statements(block):
        if isinstance(s, (For, While, If, Do)):
            found |= names_of(s)
    return _made_of(block, found)


def only(block: list, names: set, own: set) -> list:
    """Statements without those that set what nobody asks for; names: what is wanted beside the way through them; own:
    the arrays whose entries may be set.  The blocks inside are changed.
    """
    while True:
        needed, before = _made_of(block, names | paths(block)), sum(1 for _ in statements(block))
        block = _without(block, needed, own)
        if sum(1 for _ in statements(block)) == before:
            return block


def _made_of(block, found):
    """Some names, and those that they are made of."""
    found = set(found)
    while True:
        more = {n for s in statements(block) if not isinstance(s, For) and not _changed(s).isdisjoint(found)
                for n in names_of(s)} - found
        if not more:
            return found
        found |= more


def _changed(s):
    """The names of the numbers and arrays that an assignment sets, or sets entries of."""
    return {*set_by(s), *(n for e in stored_by(s) for n in names_in(e.array))}


def _without(block, needed, own):
    kept = []
    for s in block:
        for k, inner in enumerate(blocks(s)):
            inner[:] = _without(inner, needed, own) or ([Nothing()] if k == 0 else [])
        if isinstance(s, (For, If)):
            idle = all(isinstance(i, Nothing) for inner in blocks(s) for i in inner)
        else:
            changed = _changed(s)
            idle = bool(changed) and (isinstance(s, Store) and changed.isdisjoint(own) or changed.isdisjoint(needed))
        if not idle:
            kept.append(s)
    return kept
