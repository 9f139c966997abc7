# SPDX-License-Identifier: Apache-2.0
"""Array contraction: arrays whose entries live within one pass of a loop become numbers, or lose an axis.

An uninitialised array that is accessed only at the index of a loop needs no axis for it.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     total = 0.0
...     for i in range(n):
...         z[i] = x[i] * y[i]
...         total += exp(z[i])
...     return (total,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1)})
>>> contract(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        z = x[i] * y[i]
        total += exp(z)
    return (total,)

Source: J. Warren, A Hierarchical Basis for Reordering Transformations, 1984.
"""

from collections.abc import Callable, Iterable

from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Const,
    Do,
    For,
    Function,
    If,
    Load,
    Name,
    Store,
    Type,
    While,
    all_blocks,
    change,
    expressions,
    holders,
    names_in,
    names_of,
    names_read,
    rebuilt,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import (
    around,
    as_number,
    castable,
    depth,
    is_counted,
    replace_in,
    take_out,
)

FIRST = "first"                         # in place of a loop, for an axis of length 1
ZERO, ONE = Const(0), Const(1)


def contract(function: Function, may_shrink: Callable[..., bool] | None = None) -> None:
    """Change a function in place.  may_shrink(array, uses, axes, loops): whether to remove these axes, called last."""
    arrays, above, found = Arrays(function), holders(function), []
    for name in sorted(arrays.own):
        made, uses = arrays.made[name], arrays.uses[name]
        if not uses or any(u.role != "entry" for u in uses) or made.how != "empty" or not castable(made):
            continue
        first = uses[0]                         # the first use must not be a read
        if not first.stored or not isinstance(first.statement, Store) or first.statement.op is not None:
            continue
        lost, loops = [], set()
        for axis in range(len(made.shape)):
            over = {loop_of(u, axis, made, above) for u in uses}
            if len(over) == 1 and None not in over:
                lost.append(axis)
                loops |= over
        while loops and not set_in_its_pass(made, first, loops, above):
            inner = max((n for n in loops if n != FIRST), key=lambda n: depth(n, above))
            loops.remove(inner)                 # its axis stays
            lost = [k for k in lost if loop_of(first, k, made, above) is not inner]
        if lost and stored_always(first.statement, name, loops, above) and (
                may_shrink is None or may_shrink(made, uses, lost, loops)):
            found.append((made, lost))
    if found and may_shrink is None:
        check_lengths(function, found)
    if found:
        shrink(function, found)


def check_lengths(function: Function, found: Iterable[tuple[Alloc, Iterable[int]]]) -> None:
    """Add checks of removed lengths that may be negative: the allocation would have raised."""
    ranges = Ranges(function)
    for made, lost in found:
        block = next(b for b in all_blocks(function) if made in b)
        checks = [Do(Call("is_length", (n,)), made.origin) for n in dict.fromkeys(made.shape[k] for k in lost)
                  if not ranges.at_least(n, 0, made)]
        replace_in(block, made, [*checks, made])


def loop_of(use, axis, made, above):
    """The loop whose index is at an axis of an entry; FIRST for an axis of length 1; else None."""
    part = use.parent.index[axis]
    if part == ZERO:
        return FIRST if made.shape[axis] == ONE else None
    if not isinstance(part, Name):
        return None
    loop = next((s for s in around(use.statement, above) if isinstance(s, For) and s.index == part.id), None)
    return loop if loop is not None and is_counted(loop) else None


def shrink(function, found):
    """Remove axes from arrays; an array without axes becomes a number.  found: [(allocation, axes to remove)]."""
    made, kept = {m.name: m for m, _ in found}, {}
    for m, lost in found:
        kept[m.name] = [k for k in range(len(m.shape)) if k not in lost]
        function.types[m.name] = Type(function.types[m.name].dtype, len(kept[m.name]))

    def new(e):
        e = rebuilt(e, new)
        if not isinstance(e, Load) or not isinstance(e.array, Name) or e.array.id not in made:
            return e
        axes = kept[e.array.id]
        return Load(e.array, tuple(e.index[k] for k in axes)) if axes else e.array
    for block in list(all_blocks(function)):
        for s in list(block):
            name = s.entry.array.id if isinstance(s, Store) and isinstance(s.entry.array, Name) else None
            if name in made and not kept[name]:
                s.value = new(s.value)
                replace_in(block, s, [as_number(s, name, made[name].dtype, function.types)])
            elif isinstance(s, Alloc) and s is made.get(s.name):
                if kept[s.name]:
                    s.shape = tuple(s.shape[k] for k in kept[s.name])
                else:
                    take_out(block, s)
            elif not made.keys().isdisjoint(names_of(s)):
                change(s, new)


def set_in_its_pass(made, first, loops, above):
    """Whether no entry of an array outlives a pass of the loops at whose indices it is always accessed.

    An entry is accessed in one pass only if nothing repeats these loops after the allocation; otherwise each pass must
    set it before it reads it.
    """
    own = {n for n in loops if n != FIRST}
    if not own:
        return True
    inner, holder = max(own, key=lambda n: depth(n, above)), above.get(made)
    again = False
    for s in around(inner, above):
        if s is holder:
            break
        again = again or isinstance(s, (For, While)) and s not in own
    return not again or set_first(inner.block, made.name, made.shape, {Name(loop.index) for loop in own}, {})


def set_first(block, name, lengths, indices, whole):
    """Whether statements set every entry of an array that a pass accesses before they read one.

    lengths: those of its axes; indices: those of the pass; whole: {index of an inner loop: its number of passes}
    """
    for s in block:
        if name not in names_read([s]):
            continue
        if isinstance(s, Store) and s.op is None and name not in names_in(s.value) and s.entry.array == Name(name):
            kept = [(p, n) for p, n in zip(s.entry.index, lengths) if p not in indices and (p, n) != (ZERO, ONE)]
            return len({p for p, _ in kept}) == len(kept) and all(whole.get(p) == n for p, n in kept)
        if isinstance(s, If) and name not in names_in(s.test):
            return set_first(s.block, name, lengths, indices, whole) and set_first(
                s.orelse, name, lengths, indices, whole)
        if is_counted(s):
            return len(places_of(s, name)) == 1 and set_first(s.block, name, lengths, indices, {
                **whole, Name(s.index): s.range[0]})
        return False
    return False


def places_of(loop, name):
    """The indices at which a loop accesses an array."""
    return {n.index for s in statements([loop]) if name in names_of(s) for e in expressions(s)
            for n in walk(e) if isinstance(n, Load) and n.array == Name(name)}


def stored_always(store, name, loops, above):
    """Whether a store, or others in its place, fill an array on every path through each pass of these loops."""
    kept = {p.id for p in store.entry.index if isinstance(p, Name)}
    for s in around(store, above):
        if s in loops:
            break
        if isinstance(s, If):
            if not (stores(s.block, name, kept) and stores(s.orelse, name, kept)):
                return False
        elif isinstance(s, While) or isinstance(s, For) and s.index not in kept:
            return False
    return True


def stores(block, name, kept):
    """Whether statements fill an array on every path; kept: the indices of loops that fill a remaining axis."""
    return any(
        isinstance(s, Store) and s.op is None and s.entry.array == Name(name)
        or isinstance(s, If) and stores(s.block, name, kept) and stores(s.orelse, name, kept)
        or isinstance(s, For) and s.index in kept and stores(s.block, name, kept) for s in block)
