# SPDX-License-Identifier: Apache-2.0
"""Rematerialisation between the loops of a pass: entries that each of them can compute again are numbers.

A pass over rows has loops one after another: the mean, what is left, its mean square, the quotient.  What the second
computes the third and the fourth read: an array, though its entries are a few operations on what is read anyway.  Where
all that is made so costs less to compute in each loop than to write and read, no array is written.

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
    """An array whose entries may be computed again: its allocation, the store of an entry, the loop that this is in,
    and the loops after that one that read entries, with how they call its last index.
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
        """Whether no other loop reads entries: they are numbers, unless something else wants them."""
        return not self.readers.keys() - {self.loop}

    @property
    def index(self) -> str:  # type: ignore[override]  # tuple.index
        return self.store.entry.index[-1].id


def compute_in_each_loop(function: Function, machine: costs.Machine) -> None:
    """Changes a function in place; machine: what takes how long."""
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
    """Arrays whose loops stand in one block."""
    groups: dict = {}
    for m in found:
        groups.setdefault(above.get(m.loop), []).append(m)
    return groups.values()


def _made(function, name, arrays, above):
    """The Made of an array, None where its entries are not to be computed again."""
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
    """Whether a statement of a loop comes before a store, or is in it."""
    order = {i: k for k, i in enumerate(statements(loop.block))}
    return order[s] <= order[store]


def _unchanged(store, loop, block, own):
    """Whether what a value is made of stays the same in a row of statements."""
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
    """Whether a loop sets these arrays, at the entries that a value is made of, before the store, or once for all in
    an earlier statement of the same pass.
    """
    order = {i: k for k, i in enumerate(statements([s]))}
    return s is loop and all(
        isinstance(i, Store) and i.op is None and i.entry.index == store.entry.index and order[i] < order[store]
        for i in order for t in [getattr(i, "entry", None)] if t is not None and getattr(t.array, "id", None) in arrays)


# --- what is gained ---------------------------------------------------------------------------------------------------

def _needed(chosen, loop):
    """The arrays, in the order of their stores, that a loop computes entries of, if all that are chosen are."""
    needed = {n for n, m in chosen.items() if loop in m.readers and m.loop is not loop}
    while True:
        more = {a for n in needed for a in operands(chosen[n].store.value)[0] if a in chosen and
                chosen[a].loop is not loop} - needed
        if not more:
            return [n for n in chosen if n in needed]
        needed |= more


def _saved(chosen, every, machine):
    """What computing entries of some of the arrays again saves."""
    total = machine.store * sum(not m.alone for m in chosen.values())
    wanted = set()                      # what would be numbers otherwise
    for loop in {r for m in chosen.values() for r in m.readers}:
        there, needed = entered(loop), _needed(chosen, loop)
        total += machine.load * sum(n in there for n in needed)
        bases = {a for n in needed for a in _read_along(chosen[n])} - chosen.keys() - there
        total -= machine.load * len(bases) + sum(_again(chosen[n], machine) for n in needed)
        wanted |= {n for n in bases if n in every and every[n].alone}
    return total - machine.store * len(wanted)


def _read_along(made):
    """The arrays of which an entry is made that is another in each pass of the loop."""
    return {e.array.id for e in walk(made.store.value) if isinstance(e, Load) and made.index in names_in(e)}


def _again(made, machine):
    """What it takes to compute an entry: what does not change in the loop is computed once."""
    def changes(e):
        return made.index in names_in(e)
    return sum(costs.alone(e, machine) for e in walk(made.store.value) if changes(e))


# --- the loops --------------------------------------------------------------------------------------------------------

def _compute(function, chosen, arrays):
    """Entries of arrays are numbers, which each loop that reads them computes first."""
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
    """A value by another index."""
    return value if old == new else renamed(value, {old: new})
