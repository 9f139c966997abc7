# SPDX-License-Identifier: Apache-2.0
"""Loop distribution and interchange: the innermost loop runs along the last axis, where entries are contiguous.

A loop whose passes may be taken in any order is distributed over the statements of its body.  Each inner loop is then
interchanged with it where that reads more entries in the order of memory.  Numbers that one part sets and another reads
become arrays with an entry for each pass (scalar expansion).

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, c, y):
...     for p in range(y.shape[0]):
...         s = 0.0
...         for i in range(x.shape[0]):
...             s += x[i] * c[i, p]
...         y[p] = s''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "c": ("float64", 2), "y": ("float64", 1)})
>>> function.block[0].range = (Name("n"),)
>>> function.block[0].block[1].range = (Name("m"),)
>>> function.params += ["n", "m"]
>>> interchange(function, {"y"})
>>> print(ast.unparse(to_tree(function)))
def f(x, c, y, n, m):
    s_each = np.empty((n,), np.float64)
    for p in range(n):
        s_each[p] = 0.0
    for i in range(m):
        for p in range(n):
            s_each[p] += x[i] * c[i, p]
    for p in range(n):
        y[p] = s_each[p]

Source: R. Allen, K. Kennedy, Automatic loop interchange, 1984; scalar expansion after D. Padua, M. Wolfe, Advanced
compiler optimizations for supercomputers, 1986.
"""
import itertools

from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.dependence import any_order, moved
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    For,
    Function,
    If,
    Let,
    Load,
    Name,
    Op,
    Store,
    Type,
    Update,
    While,
    all_blocks,
    all_names,
    change,
    copied,
    expressions,
    names_in,
    names_of,
    names_read,
    renamed,
    set_by,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.invariants import is_elementary
from gradscribe.codegen.loops.shapes import is_counted, is_whole, replace_in
from gradscribe.codegen.loops.uniform import few


def interchange(function: Function, own: set | None = None) -> None:
    """Change a function in place; own: arrays without aliases."""
    own = Arrays(function).own if own is None else own
    for block in list(all_blocks(function)):
        for loop in [s for s in block if is_counted(s)]:
            at = block.index(loop)
            block[at:at] = invariant_numbers(loop, function)
            parts = distributed(loop, function, own) or apart_from_loops(loop, function, own)
            if parts is not None:
                at = block.index(loop)
                block[at:at + 1] = parts


def invariant_numbers(loop, function):
    """Remove from a loop, and return, the whole numbers that are the same in each pass, such as lengths of slices."""
    if not any(is_whole(s, function.types) for s in loop.block):
        return []
    moved_out, changed = [], set_in([loop])
    inside = set(statements(loop.block))
    outside = {n for s in statements(function.block) if s not in inside for n in names_of(s)}
    for s in list(loop.block):
        if is_whole(s, function.types) and changed.isdisjoint(names_in(s.value)) and \
                s.name not in outside and sum(s.name in set_by(o) for o in statements(function.block)) == 1:
            loop.block.remove(s)
            changed.discard(s.name)
            moved_out.append(s)
    return moved_out


def distributed(loop, function, own):
    """The loops in the place of one whose inner loops become outer ones; None where that is impossible or no gain."""
    places, changed = {loop.index, *moved(loop)}, set_in([loop])
    if few(loop) or not is_distributable(loop):     # LLVM unrolls such loops: their order does not matter
        return None
    inner = [s for s in loop.block if isinstance(s, For) and names_in_range(s).isdisjoint(changed)]
    if not any(gains(s, places) for part in inner for s in by_gain(part, places)) or not any_order(
            loop, own, function, sums=True):
        return None
    for s in inner:
        if len(parts := by_gain(s, places)) > 1 and any_order(s, own, function, sums=True):
            replace_in(loop.block, s, parts)
    outer = [s for s in loop.block if gains(s, places) and names_in_range(s).isdisjoint(changed)]
    if not outer:
        return None
    index_lets = [s for s in loop.block if isinstance(s, Let) and s.name in places]
    groups: list = []
    for s in loop.block:
        if s in index_lets:
            continue
        if s in outer:
            groups.append([s])
        elif groups and groups[-1][0] not in outer:
            groups[-1].append(s)
        else:
            groups.append([s])
    expanded = shared(groups, places, loop)
    if any(function.types[n].rank != 0 or function.types[n].dtype not in DTYPES for n in expanded):
        return None
    return written(loop, groups, index_lets, expanded, function, outer)


def apart_from_loops(loop, function, own):
    """The loops in the place of one that calls elementary functions beside inner loops: those with the calls hold no
    loops, so that LLVM vectorises them.  None where there are no such calls, or no gain.

    >>> from gradscribe.codegen.loops.trees import block_of, to_tree
    >>> import ast
    >>> block = block_of('''for j in range(n):
    ...     s = 0.0
    ...     for k in range(m):
    ...         s = s + x[j, k]
    ...     y[j] = np.exp(s)''')
    >>> types = {"x": Type("float64", 2), "y": Type("float64", 1), "s": Type("float64", 0)}
    >>> function = Function("f", ["x", "y", "n", "m"], types, block)
    >>> for s in apart_from_loops(block[0], function, {"y"}):
    ...     print(ast.unparse(ast.fix_missing_locations(to_tree(Function("g", [], {}, [s])).body[0])))
    s_each = np.empty((n,), np.float64)
    for j in range(n):
        s = 0.0
        for k in range(m):
            s = s + x[j, k]
        s_each[j] = s
    for j in range(n):
        y[j] = np.exp(s_each[j])
    """
    if few(loop) or not any(isinstance(s, For) for s in loop.block) or not is_distributable(loop):
        return None
    places = {loop.index, *moved(loop)}
    index_lets = [s for s in loop.block if isinstance(s, Let) and s.name in places]
    rows, dear = rows_of_calls([s for s in loop.block if s not in index_lets])
    crossing = shared(rows, places, loop)
    number = all(function.types[n].rank == 0 and function.types[n].dtype in DTYPES for n in crossing)
    if len(rows) < 2 or not number or dear * SCALAR < len(crossing) * (costs.MACHINE.load + costs.MACHINE.store):
        return None
    if not only_forward(rows, crossing) or not any_order(loop, own, function, sums=True):
        return None
    arrays, out = with_an_entry_each(crossing, loop, function)
    for run in rows:
        names = set_in(run)
        later = {n: e for n, e in arrays.items() if n not in names}
        for s in statements(run):
            change(s, lambda e, later=later: renamed(e, later))
        needed = [copied(s) for s in index_lets if s.name in names_read(run)]
        kept = [Store(arrays[n], Name(n), None, loop.origin) for n in crossing if n in names]
        out.append(For(loop.index, loop.range, [*needed, *run, *kept], "range", loop.origin))
    return out


def rows_of_calls(block):
    """A block cut into rows of statements, those that call elementary functions beside loops apart from the others; and
    what these calls cost.
    """
    groups: list = []                   # (whether it calls elementary functions beside loops, statements)
    for looping, run in itertools.groupby(block, lambda s: isinstance(s, For)):
        run = list(run)
        calls = not looping and any(map(is_elementary, parts_of(run)))
        if groups and not calls and not groups[-1][0]:
            groups[-1][1].extend(run)
        else:
            groups.append((calls, run))
    dear = sum(costs.of_function(e.function) for calls, run in groups if calls for e in parts_of(run)
               if is_elementary(e))
    return [run for _, run in groups], dear


def only_forward(rows, crossing):
    """Whether other rows only read the names that a row sets, if they are later and if the names are in `crossing`."""
    sets, reads = [set_in(run) for run in rows], [names_read(run) for run in rows]
    for k, names in enumerate(sets):
        indices = {s.index for s in statements(rows[k]) if isinstance(s, For)}
        for name in names - indices:
            others = [j for j in range(len(rows)) if j != k and name in sets[j] | reads[j]]
            if others and (name not in crossing or min(others) < k or any(name in sets[j] for j in others)):
                return False
    return True


def parts_of(run):
    """The expressions in statements that are not loops, with all subexpressions."""
    return (n for s in run if not isinstance(s, For) for e in expressions(s) for n in walk(e))


def is_distributable(loop: For) -> bool:
    return not any(isinstance(s, (If, While, Alloc)) for s in statements(loop.block))


SCALAR = 4                              # a scalar call of an elementary function takes so many times a vectorised one
DTYPES = {"float64": "float64", "float32": "float32", "int64": "int64", "bool": "bool_", "complex128": "complex128"}


def names_in_range(s: For) -> set[str]:
    return {n for e in s.range for n in names_in(e)}


def by_gain(s, places):
    """An inner loop split into a loop of the statements that gain from interchange and one of the others, if these are
    independent; otherwise the loop itself.
    """
    if not is_counted(s) or not all(isinstance(i, Store) for i in s.block):
        return [s]
    alone = [For(s.index, s.range, [i], s.kind, i.origin) for i in s.block]
    groups = [[a.block[0] for a in alone if gains(a, places) == side] for side in (True, False)]
    written = [{i.entry.array.id for i in group if isinstance(i.entry.array, Name)} for group in groups]
    touched = [{n for i in group for n in names_of(i)} for group in groups]
    if not all(groups) or not written[0].isdisjoint(touched[1]) or not written[1].isdisjoint(touched[0]):
        return [s]
    return [For(s.index, s.range, group, s.kind, s.origin) for group in groups]


def gains(s, places):
    """Whether an inner loop reads more entries in the order of memory once it is interchanged with the loop around."""
    if not isinstance(s, For) or not is_counted(s) or any(not isinstance(i, (Let, Store, Update)) for i in s.block):
        return False
    apart = 0                           # entries with a large stride now, less those after
    for n in (n for i in s.block for e in expressions(i) for n in walk(e)):
        if isinstance(n, Load) and n.index:
            *first, last = map(names_in, n.index)
            apart += any(s.index in names for names in first) and s.index not in last
            apart -= any(names & places for names in first) and not last & places
    return apart > 0


def shared(groups, places, loop):
    """The numbers that one part sets and another reads, in the order of the text."""
    found: dict = {}
    sets = [set_in(g) - {s.index for s in statements(g) if isinstance(s, For)} for g in groups]
    reads = [names_read(g) for g in groups]
    for k, names in enumerate(sets):
        for name in sorted(names):
            elsewhere = any(name in reads[j] | sets[j] for j in range(len(groups)) if j != k)
            carried = name in names_read([loop]) and not set_before_read(name, groups)
            if elsewhere and not carried:
                found[name] = None
    return list(found)


def set_before_read(name, groups):
    """Whether a pass sets a number before it reads it: otherwise it updates one from before the loop."""
    for s in (s for g in groups for s in g):
        if isinstance(s, Let) and s.name == name:
            return name not in names_of(s)
        if any(name in names_of(i) or name in set_by(i) for i in statements([s])):
            return False
    return False


def written(loop, groups, index_lets, expanded, function, outer):
    arrays, out = with_an_entry_each(expanded, loop, function)
    for group in groups:
        needed = [s for s in index_lets if s.name in names_read(group)]
        for s in statements(group):
            change(s, lambda e: renamed(e, arrays))
        first = group[0]
        group = [with_entries(s, arrays) for s in group]
        if first in outer:
            body = [*map(copied, needed), *first.block]
            inside = For(loop.index, loop.range, body, "range", loop.origin)
            out.append(For(first.index, first.range, [inside], "range", first.origin))
        else:
            out.append(For(loop.index, loop.range, [*map(copied, needed), *group], "range", loop.origin))
    return out


def with_an_entry_each(names, loop, function):
    """({name: its entry in a pass}, the allocations) of numbers expanded to an entry for each pass of a loop."""
    taken, arrays, made = all_names(function), {}, []
    for name in names:
        new, dtype = unused(f"{name}_each", taken), function.types[name].dtype
        function.types[new] = Type(dtype, 1)
        arrays[name] = Load(Name(new), (Name(loop.index),))
        made.append(Alloc(new, "empty", (loop.range[0],), (Attribute(Name("np"), DTYPES[dtype]),), loop.origin))
    return arrays, made


def with_entries(s, arrays):
    """A statement, changed to set entries in the place of numbers."""
    if isinstance(s, For):
        s.block = [with_entries(i, arrays) for i in s.block]
    elif isinstance(s, Let) and s.name in arrays:
        place, value = arrays[s.name], s.value
        adds = isinstance(value, Op) and value.op in ("+", "-") and len(value.args) == 2 and value.args[0] == place
        adds = adds and place.array.id not in names_in(value.args[1])
        return Store(place, value.args[1], value.op, s.origin) if adds else Store(place, value, None, s.origin)
    elif isinstance(s, Update) and s.name in arrays:
        return Store(arrays[s.name], s.value, s.op, s.origin)
    return s
