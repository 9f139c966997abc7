# SPDX-License-Identifier: Apache-2.0
"""Loop-carried dependences: which loops may execute their passes in any order.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of
>>> block = block_of('''z = np.empty((n,), np.float64)
... for i in range(n):
...     z[i] = 2.0 * x[i]
... for i in range(n):
...     z[i + 1] = z[i]''')
>>> function = Function("f", ["x", "n"], {}, block)
>>> any_order(block[1], {"z"}, function), any_order(block[2], {"z"}, function)
(True, False)

Source: R. Allen, K. Kennedy, Optimizing Compilers for Modern Architectures, 2002, chapters 2 and 5.
"""
from collections.abc import Iterator
from typing import Any

from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.analysis.liveness import read_after
from gradscribe.codegen.loops.form import (
    Alloc,
    Const,
    For,
    Function,
    Let,
    Name,
    Op,
    Store,
    Update,
    names_in,
    names_of,
    read_by,
    set_by,
    set_in,
    statements,
    walk,
)


def any_order(loop: For, own: set, function: Function, branches: bool = False, sums: bool = False) -> bool:
    """Whether the passes of a loop may be executed in any order, one after the other.

    own: arrays without aliases; branches: whether to analyse branches or give up at them; sums: whether several passes
    may add to one entry of an array.
    """
    body = Effects(loop.block, branches=branches)
    if not body.known or loop.index in body.sets or body.writes.keys() & body.whole or not body.writes.keys() <= own:
        return False
    own_places = {Name(n) for n in (loop.index, *moved(loop))}
    changed = set_in([loop])
    private = {s.name for s in statements(loop.block) if isinstance(s, Alloc)}      # each pass allocates its own
    if (body.reads.keys() | body.writes.keys() | body.whole) & body.sets - private:
        return False                            # an array that may be carried to the next pass
    for name, written in body.writes.items():
        if name in private:
            continue
        found = [*written, *body.reads.get(name, ())]
        if not all(separate(w, o, own_places, changed) for w in written for o in found) and not (
                sums and accumulated(name, loop)):
            return False
    inner = indices_in(loop)
    carried = body.sets & body.names - inner
    return all(summed(v, loop, less=True) for v in carried) and not read_after(
        function, loop, (body.sets - carried) | inner)


def separate(a: tuple, b: tuple, own_places: set, changed: set) -> bool:
    """Whether two entries, accessed in two different passes, are certainly different.

    own_places: names with a different value in each pass; changed: all names that the loop sets.  In a loop over j,
    [i, j] and [j, i] are the same entry only where j is i in both, so in one pass.
    """
    def fixed(own, others):
        return {(p, q) for p, q in zip(own, others) if p in own_places and changed.isdisjoint(names_in(q))}
    return any(p == q and p in own_places for p, q in zip(a, b)) or not fixed(a, b).isdisjoint(fixed(b, a))


def accumulated(name: str, loop: For) -> bool:
    """Whether a loop only adds to the entries of an array."""
    return all(u.stored and isinstance(u.statement, Store) and u.statement.op in ("+", "-")
               for s in statements(loop.block) if name in names_of(s) for u in uses_in(s) if u.name == name)


def indices_in(loop: For) -> set:
    """The indices of a loop and of those inside."""
    return {s.index for s in statements([loop]) if isinstance(s, For)}


def moved(loop: For) -> Iterator[str]:
    """Names that a pass sets once, to the index plus or minus a loop-invariant number: different in each pass."""
    sets = [n for s in statements([loop]) for n in set_by(s)]
    for s in loop.block:
        if isinstance(s, Let) and sets.count(s.name) == 1 and isinstance(s.value, Op) and s.value.op in ("+", "-") and \
                len(s.value.args) == 2:
            for one, other in (s.value.args, s.value.args[::-1]):
                if one == Name(loop.index) and (isinstance(other, Const) or isinstance(
                        other, Name) and other.id not in sets):
                    yield s.name


def summed(name: str, loop: For, less: bool = False) -> bool:
    """Whether a loop only adds to a number; less: or also subtracts from it as `name = name - v`."""
    adds = 0
    for s in statements([loop]):
        if isinstance(s, Update) and s.name == name:
            if s.op not in ("+", "-"):
                return False
            adds += 1
        elif isinstance(s, Let) and s.name == name:
            value: Any = s.value
            pair = isinstance(value, Op) and len(value.args) == 2
            sides = value.args if pair and value.op == "+" else value.args[:1] if less and pair and value.op == "-" \
                else ()
            if Name(name) not in sides:
                return False
            adds += 2
    return adds == occurrences(loop, name)


def occurrences(loop: For, name: str) -> int:
    """How often the name of a number occurs in a loop."""
    return sum(set_by(s).count(name) + sum(n == Name(name) for e in read_by(s) if name in names_in(e) for n in walk(e))
               for s in statements([loop]))
