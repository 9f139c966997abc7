# SPDX-License-Identifier: Apache-2.0
"""Buffer reuse: a new array takes the memory of an array of the same dtype and shape that dies where it is filled.

If a loop sets `b[i]` and reads `a[i]`, and a is never read again, b becomes an alias of a: half the memory, and a sweep
over one array in place of two.  Each entry of b must be set in the last pass that reads that entry of a: both accesses
have the same index, which the loops around cover.  allocation.py handles arrays that are allocated inside loops.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     e = np.empty((n,), np.float64)
...     total = 0.0
...     for i in range(n):
...         e[i] = exp(x[i])
...         total += e[i]
...     p = np.empty((n,), np.float64)
...     for i in range(n):
...         p[i] = e[i] / total
...     return (p,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
>>> reuse_buffers(function)
>>> print(ast.unparse(to_tree(function)))
def f(x):
    n = x.shape[0]
    e = np.empty((n,), np.float64)
    total = 0.0
    for i in range(n):
        e[i] = exp(x[i])
        total += e[i]
    p = e
    for i in range(n):
        p[i] = e[i] / total
    return (p,)

Source: G. Chaitin, Register allocation and spilling via graph coloring, 1982, of arrays whose live ranges only touch.
"""

from gradscribe.codegen.loops.analysis.arrays import is_entry, shares_nothing
from gradscribe.codegen.loops.analysis.lengths import Lengths, is_short
from gradscribe.codegen.loops.form import (
    JUMPS,
    Alloc,
    Call,
    For,
    Function,
    Let,
    Load,
    Name,
    Op,
    Store,
    all_blocks,
    names_in,
    names_read,
    set_in,
    statements,
)
from gradscribe.codegen.loops.shapes import is_literal, replace_in


def reuse_buffers(function: Function) -> None:
    """Changes a function in place."""
    for block in all_blocks(function):
        fills_used_at_once(block)
    known = Lengths(function)
    at = {inner: k for k, s in enumerate(function.block) for inner in statements([s])}
    order = {s: k for k, s in enumerate(statements(function.block))}
    free = [s.name for s in function.block if _is_made_alone(s, known)]
    for s in [s for s in function.block if isinstance(s, Alloc) and s.how == "empty" and not is_short(s)]:
        if len(known.sets[s.name]) != 1 or not known.uses.get(s.name):
            continue
        for name in free:
            if name != s.name and _becomes(name, s, known, at, order):
                replace_in(function.block, s, [Let(s.name, Name(name), s.origin)])
                without_copies(function.block, s.name, name)
                free.remove(name)
                break


def update_in_place(function: Function) -> None:
    """Update an array in place if each pass of a loop allocates it anew from that of the previous pass, entry by entry.

    >>> import ast
    >>> from gradscribe.codegen.loops.trees import from_tree, to_tree
    >>> function = from_tree(ast.parse('''def f(x, n, steps):
    ...     first = np.zeros((n,), np.float64)
    ...     y = first
    ...     for i in range(steps):
    ...         new = np.empty((n,), np.float64)
    ...         for j in range(n):
    ...             new[j] = y[j] + x[i, j]
    ...         y = new
    ...     return (y,)''').body[0], {"x": ("float64", 2), "n": ("int64", 0), "steps": ("int64", 0)})
    >>> update_in_place(function)
    >>> print(ast.unparse(to_tree(function)))
    def f(x, n, steps):
        first = np.zeros((n,), np.float64)
        y = first
        for i in range(steps):
            for j in range(n):
                y[j] = y[j] + x[i, j]
        return (y,)
    """
    known = Lengths(function)
    order = {s: k for k, s in enumerate(statements(function.block))}
    blocks_of = {s: block for block in all_blocks(function) for s in block}
    for s in list(blocks_of):
        if isinstance(s, Let) and isinstance(s.value, Name) and (update := _update(s, known, order, blocks_of)):
            made, store = update
            block = blocks_of[s]
            block.remove(made)
            block.remove(s)
            store.entry = Load(Name(s.name), store.entry.index)


def _update(handed, known, order, blocks_of):
    """(allocation, store) of a carried array that may be updated in place; else None.  handed: the name = new."""
    name, new, block = handed.name, handed.value.id, blocks_of[handed]
    made, sets = known.sets.get(new, []), known.sets[name]
    if len(made) != 1 or not isinstance(made[0], Alloc) or made[0].how != "empty" or len(sets) != 2 or \
            blocks_of[made[0]] is not block or sets[1] is not handed:
        return None
    (made,), start = made, sets[0]
    row = block[block.index(made):block.index(handed)]
    loop = next((x for x in known.loops_around(handed) if blocks_of[x] is blocks_of[start]), None)
    if not isinstance(known.above.get(handed), For) or not isinstance(loop, For) or not isinstance(start, Let) or \
            not isinstance(start.value, Name) or any(isinstance(i, JUMPS) for i in statements(row)):
        return None
    first, source = start.value.id, known.sets.get(start.value.id, [])
    if len(source) != 1 or not isinstance(source[0], Alloc) or blocks_of[source[0]] is not blocks_of[start] or \
            known.kinds.get(first) is None or known.kinds[first] != known.kinds.get(new) or \
            any(order[u.statement] > order[start] or u.statement is not start and not shares_nothing(u, len(made.shape))
                for u in known.uses.get(first, ())) or \
            not known.lasting(made.shape):
        return None
    stores = {u.statement for u in known.uses.get(new, ()) if u.statement is not handed}
    if len(stores) != 1:
        return None
    (store,), rank = stores, len(made.shape)
    if not isinstance(store, Store) or store.op is not None or store.entry.array != Name(new) or \
            new in names_in(store.value) or not is_entry(store.entry, rank):
        return None
    around = [x for x in known.loops_around(store) if x in set(statements(row))]
    if not all(isinstance(x, For) for x in around) or sorted(x.index for x in around) != sorted(
            getattr(p, "id", "") for p in store.entry.index):
        return None
    inside, last = set(statements(row[row.index(_top(store, row)):])), max(order[i] for i in statements([loop]))
    for use in known.uses.get(name, ()):
        before = use.role == "entry" and not use.stored and use.parent.index == store.entry.index and order[
            use.statement] <= order[store] and known.loops_around(use.statement) == known.loops_around(store)
        if use.statement in inside and not before or not shares_nothing(use, rank) and order[use.statement] <= last:
            return None
    return made, store


def _top(s, row):
    return next(t for t in row if s is t or s in set(statements([t])))


def without_copies(block: list, name: str, source: str) -> None:
    """Remove `name[i] = source[i]`, where both are one array, and loops that hold nothing else."""
    for s in list(block):
        if isinstance(s, Store) and s.op is None and s.entry.array == Name(name) and s.value == Load(
                Name(source), s.entry.index):
            block.remove(s)
        elif isinstance(s, For) and name in names_read([s]):
            without_copies(s.block, name, source)
            if not s.block:
                block.remove(s)


def _is_made_alone(s, known):
    """Whether a statement makes an array, or a product, without aliases."""
    if not isinstance(s, (Let, Alloc)):
        return False
    fresh = isinstance(s, Alloc) and not is_short(s) or isinstance(s, Let) and isinstance(
        s.value, Call) and bool(known.kinds.get(s.name))
    return fresh and known.single(s.name)


def _becomes(name, made, known, at, order):
    """Whether the last loop that reads an array is the first that sets another one, entry by entry."""
    uses, later, kind = known.uses.get(name, []), known.uses[made.name], known.kinds.get(made.name)
    if kind and not known.lasting(kind[1]):
        return False
    if not uses or not kind or known.kinds.get(name) != kind or at[known.sets[name][0]] > at[made]:
        return False
    last = max(at[u.statement] for u in uses)
    if min(at[u.statement] for u in later) != last or not isinstance(known.function.block[last], For):
        return False
    reads = [u for u in uses if at[u.statement] == last]
    sets = [u for u in later if at[u.statement] == last]
    places = {_entry(u, len(kind[1]), known) for u in (*reads, *sets)}
    if len(places) != 1 or None in places or any(u.stored for u in reads):
        return False
    # each entry has one pass of the nest, which runs the statements in the order of the text
    first = min((order[u.statement] for u in sets if u.stored), default=None)
    return first is not None and all(order[u.statement] <= first for u in reads) and all(
        order[u.statement] >= first for u in sets)


def _entry(use, rank, known):
    """The index of the entry that is used, if it consists of the indices of the loops around; else None."""
    if use.role != "entry" or not is_entry(use.parent, rank):
        return None
    loops = known.loops_around(use.statement)
    if not all(isinstance(x, For) for x in loops) or not all(isinstance(p, Name) for p in use.parent.index):
        return None
    indices = [p.id for p in use.parent.index]
    return tuple(indices) if sorted(x.index for x in loops) == sorted(indices) else None


def fills_used_at_once(block: list) -> None:
    """Merge `a[i] = 0.0` and a later `a[i] += v` into one store, if nothing between accesses the array."""
    for fill in list(block):
        if not isinstance(fill, Store) or fill.op is not None or not is_literal(fill.value) or not isinstance(
                fill.entry.array, Name):
            continue
        name, entry = fill.entry.array.id, fill.entry
        indices = {n for p in entry.index for n in names_in(p)}
        for s in block[block.index(fill) + 1:]:
            if name in names_read([s]) | set_in([s]):
                if isinstance(s, Store) and s.op in ("+", "-") and s.entry == entry and name not in names_in(s.value):
                    replace_in(block, s, [Store(entry, Op(s.op, (fill.value, s.value)), None, s.origin)])
                    block.remove(fill)
                break
            if set_in([s]) & indices or any(isinstance(i, JUMPS) for i in statements([s])):
                break
