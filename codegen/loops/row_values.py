# SPDX-License-Identifier: Apache-2.0
"""Rematerialisation between the inner loops of one pass: each loop recomputes cheap entries, and no array is stored.

A pass over a row may have several loops: the mean, the differences from it, their mean square, the quotients.  The
second loop stores an array that the third and fourth read, though its entries are a few operations on what these read
anyway.  The array is not stored where it costs less to recompute it in each loop than to write and read it.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     m = x.shape[1]
...     y = np.empty((n, m), np.float64)
...     c = np.empty((n, m), np.float64)
...     for i in range(n):
...         s = 0.0
...         for j in range(m):
...             s += x[i, j]
...         q = 0.0
...         for j in range(m):
...             c[i, j] = x[i, j] - s
...             q += c[i, j] * c[i, j]
...         for j in range(m):
...             y[i, j] = c[i, j] / q
...     return (y,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 2)})
>>> compute_in_each_loop(function, costs.Machine(load=1.0, store=1.0))
>>> print(ast.unparse(ast.fix_missing_locations(to_tree(function))))
def f(x):
    n = x.shape[0]
    m = x.shape[1]
    y = np.empty((n, m), np.float64)
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += x[i, j]
        q = 0.0
        for j in range(m):
            c = x[i, j] - s
            q += c * c
        for j in range(m):
            c = x[i, j] - s
            y[i, j] = c / q
    return (y,)

Source: P. Briggs, K. Cooper, L. Torczon, Rematerialization, 1992.
"""
from typing import NamedTuple

from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.analysis.arrays import Arrays, is_entry
from gradscribe.codegen.loops.contraction import check_lengths
from gradscribe.codegen.loops.form import (
    Alloc,
    Expr,
    For,
    Function,
    Let,
    Load,
    Name,
    Store,
    Type,
    change,
    holders,
    names_in,
    rebuilt,
    renamed,
    statements,
    walk,
)
from gradscribe.codegen.loops.rematerialise import block_of, compared, done_by, entered, may_be_repeated, operands
from gradscribe.codegen.loops.shapes import around, as_held, castable, replace_in, take_out


class Made(NamedTuple):
    """An array that may be recomputed: its allocation, the store of an entry, the loop of this, and {loop that reads
    entries: its index}.
    """
    array: Alloc
    store: Store
    loop: For
    readers: dict

    @property
    def name(self) -> str:
        return self.array.name

    @property
    def alone(self) -> bool:
        """Whether no other loop reads entries, so that they can be numbers."""
        return not self.readers.keys() - {self.loop}

    @property
    def index(self) -> str:  # type: ignore[override]  # tuple.index
        return self.store.entry.index[-1].id


def compute_in_each_loop(function: Function, machine: costs.Machine) -> None:
    """Change a function in place; machine: the times of the cost model."""
    arrays, above = Arrays(function), holders(function)
    order = {s: k for k, s in enumerate(statements(function.block))}
    found = [m for name in arrays.own if (m := _made(function, name, arrays, above)) is not None]
    for together in _by_block(found, above):
        every = chosen = {m.name: m for m in sorted(together, key=lambda m: order[m.store])}
        while any(not m.alone for m in chosen.values()):
            without = [{n: m for n, m in chosen.items() if n != name} for name in chosen]
            best = max(without, key=lambda some: _saved(some, every, machine))
            if _saved(best, every, machine) <= _saved(chosen, every, machine):
                if _saved(chosen, every, machine) > 0:
                    _compute(function, chosen, arrays)
                break
            chosen = best


def _by_block(found, above):
    """Groups of arrays whose loops are in one block."""
    groups: dict = {}
    for m in found:
        groups.setdefault(above.get(m.loop), []).append(m)
    return groups.values()


def _made(function, name, arrays, above):
    """The Made of an array; None if it cannot be recomputed."""
    made, uses = arrays.made[name], arrays.uses[name]
    stores = [u.statement for u in uses if u.stored]
    if len(stores) != 1 or len(made.shape) < 2 or made.how != "empty" or not castable(made) or not all(
            u.role == "entry" and is_entry(u.parent, len(made.shape)) for u in uses):
        return None
    (store,) = stores
    index = store.entry.index if isinstance(store, Store) and store.op is None else ()
    loops = [s for s in around(store, above) if isinstance(s, For)][:len(index)][::-1]
    if not index or [Name(s.index) for s in loops] != list(index) or any(
            s.range != (n,) or s.kind != "range" for s, n in zip(loops, made.shape)) or len(set(index)) < len(index):
        return None
    loop, block = loops[-1], block_of(loops[-1], function, above)
    if above.get(store) is not loop or not may_be_repeated(store.value) or any(map(compared, uses)) or any(
            above.get(inner) is not outer for outer, inner in zip(loops, loops[1:])):
        return None
    readers, last = {}, block.index(loop)
    for u in uses:
        if u.stored:
            continue
        at = u.parent.index
        reader = next((s for s in (u.statement, *around(u.statement, above)) if s in block), None)
        if at[:-1] != index[:-1] or not isinstance(reader, For) or reader.range != loop.range or at[-1] != Name(
                reader.index) or block.index(reader) < block.index(loop):
            return None
        if reader is loop and _before(u.statement, store, loop):
            return None
        last = max(last, block.index(reader))
        readers[reader] = reader.index
    return Made(made, store, loop, readers) if _unchanged(
        store, loop, block[block.index(loop):last + 1], arrays.own) else None


def _before(s, store, loop):
    """Whether a statement of a loop comes before a store, or is the store."""
    order = {i: k for k, i in enumerate(statements(loop.block))}
    return order[s] <= order[store]


def _unchanged(store, loop, block, own):
    """Whether statements do not change the operands of a stored value."""
    arrays, numbers = operands(store.value)
    foreign = bool(arrays - own)
    for s in block:
        done = done_by(s)
        if done.acts or not (arrays | numbers - {loop.index}).isdisjoint(done.sets) or not arrays.isdisjoint(
                done.stores) and not _first_in_its_pass(arrays & done.stores, store, s, loop) or foreign and (
                done.nameless or not done.stores <= own):
            return False
    return True


def _first_in_its_pass(arrays, store, s, loop):
    """Whether s is the loop of the store and sets these arrays before it, only at the same index."""
    order = {i: k for k, i in enumerate(statements([s]))}
    return s is loop and all(
        isinstance(i, Store) and i.op is None and i.entry.index == store.entry.index and order[i] < order[store]
        for i in order for t in [getattr(i, "entry", None)] if t is not None and getattr(t.array, "id", None) in arrays)


# --- gains ------------------------------------------------------------------------------------------------------------

def _needed(chosen, loop):
    """The arrays, in the order of their stores, that a loop must recompute if all the chosen ones are."""
    needed = {n for n, m in chosen.items() if loop in m.readers and m.loop is not loop}
    while True:
        more = {a for n in needed for a in operands(chosen[n].store.value)[0] if a in chosen and
                chosen[a].loop is not loop} - needed
        if not more:
            return [n for n in chosen if n in needed]
        needed |= more


def _saved(chosen, every, machine):
    """The time that recomputing the chosen arrays saves."""
    total = machine.store * sum(not m.alone for m in chosen.values())
    wanted = set()                      # arrays that would otherwise be numbers
    for loop in {r for m in chosen.values() for r in m.readers}:
        there, needed = entered(loop), _needed(chosen, loop)
        total += machine.load * sum(n in there for n in needed)
        bases = {a for n in needed for a in _read_along(chosen[n])} - chosen.keys() - there
        total -= machine.load * len(bases) + sum(_again(chosen[n], machine) for n in needed)
        wanted |= {n for n in bases if n in every and every[n].alone}
    return total - machine.store * len(wanted)


def _read_along(made):
    """The arrays of which a different entry is read in each pass to compute an entry."""
    return {e.array.id for e in walk(made.store.value) if isinstance(e, Load) and made.index in names_in(e)}


def _again(made, machine):
    """The time to compute an entry, without what is loop-invariant."""
    def changes(e):
        return made.index in names_in(e)
    return sum(costs.alone(e, machine) for e in walk(made.store.value) if changes(e))


# --- the loops --------------------------------------------------------------------------------------------------------

def _compute(function, chosen, arrays):
    """Replace entries by numbers that each loop that reads them computes first."""
    check_lengths(function, [(m.array, range(len(m.array.shape))) for m in chosen.values()])
    names = {n: Name(n) for n in chosen}

    def new(e):
        e = rebuilt(e, new)
        return names[e.array.id] if isinstance(e, Load) and isinstance(e.array, Name) and e.array.id in names else e
    loops = {r: _needed(chosen, r) for m in chosen.values() for r in (*m.readers, m.loop)}
    values = {n: new(as_held(m.store.value, m.array.dtype, function.types)) for n, m in chosen.items()}
    for loop in loops:
        for s in statements(loop.block):
            if not any(s is m.store for m in chosen.values()):
                change(s, new)
    for n, m in chosen.items():
        replace_in(m.loop.block, m.store, [Let(n, values[n], m.store.origin)])
    for loop, needed in loops.items():
        loop.block[:0] = [Let(n, at_index(values[n], chosen[n].index, loop.index), chosen[n].store.origin)
                          for n in needed]
    for n, m in chosen.items():
        function.types[n] = Type(function.types[n].dtype, 0)
        take_out(arrays.blocks[m.array], m.array)


def at_index(value: Expr, old: str, new: str) -> Expr:
    """A value with the index renamed."""
    return value if old == new else renamed(value, {old: new})
