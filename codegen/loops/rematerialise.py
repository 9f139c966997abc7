# SPDX-License-Identifier: Apache-2.0
"""Rematerialisation: an array that is cheap to compute is computed in the later loop that reads it, and not stored.

Memory is slower than arithmetic: by the cost model (analysis/costs.py) a few operations on what a loop reads anyway may
cost less than to write and read an array.  An array whose entries are compared, or whose largest or smallest entry is
taken, is never recomputed: fused operations may round differently in two places, and the difference between the largest
entry and itself must be zero.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, a):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     s = 0.0
...     for i in range(n):
...         z[i] = x[i] * a
...         s += z[i]
...     y = np.empty((n,), np.float64)
...     for i in range(n):
...         y[i] = z[i] / s
...     return (y,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "a": ("float64", 0)})
>>> rematerialise(function)
{'z'}
>>> print(ast.unparse(to_tree(function)))
def f(x, a):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    s = 0.0
    for i in range(n):
        z[i] = x[i] * a
        s += z[i]
    y = np.empty((n,), np.float64)
    for i in range(n):
        y[i] = x[i] * a / s
    return (y,)

Source: P. Briggs, K. Cooper, L. Torczon, Rematerialization, 1992.
"""
import functools
import math
from typing import NamedTuple, cast

from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.analysis.arrays import Arrays, Use, is_entry
from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.contraction import check_lengths
from gradscribe.codegen.loops.form import (
    Call,
    Compare,
    Const,
    Do,
    Expr,
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Method,
    Name,
    Op,
    Select,
    Statement,
    Store,
    While,
    blocks,
    change,
    expressions,
    holders,
    names_in,
    names_read,
    rebuilt,
    renamed,
    set_by,
    statements,
    stored_by,
    walk,
)
from gradscribe.codegen.loops.shapes import around, as_held, is_check, take_out

ORDERED = {"ranked", "ranked_low", "ranked32", "ranked_low32", "max", "min", "maximum", "minimum", "fmax", "fmin"}
FREE = {"float", "abs", "complex", *(f"np.{n}" for n in ("float64", "float32", "float16", "complex128", "complex64"))}


def rematerialise(function: Function, machine: costs.Machine | None = None, repeated: bool = False) -> set:
    """Change a function in place; return the arrays that later loops no longer read.

    machine: the times of the cost model, MACHINE's by default; repeated: only arrays each entry of which is read in
    several passes, so that fusion cannot join their loops.
    """
    machine = machine or costs.MACHINE
    arrays, above, found = Arrays(function), holders(function), set()
    done: dict = {}
    ranges = functools.cache(lambda: Ranges(function))          # of whole numbers, which do not change
    own = sorted(arrays.own)
    for name in own:
        if name in arrays.own and _computed_again(
                function, name, arrays, above, done, machine, ranges, repeated):
            found.add(name)
    gone = [arrays.made[name] for name in own if name in found and name not in arrays.own]
    if gone:
        check_lengths(function, [(made, range(len(made.shape))) for made in gone])
    for made in gone:
        take_out(arrays.blocks[made], made)
    return found


class Done(NamedTuple):
    """The effects of a statement and those inside it: names set, arrays whose entries are stored, whether it stores
    into an array without a name, and whether it makes a call for its effect that is not a check.
    """
    sets: set
    stores: set
    nameless: bool
    acts: bool


def done_by(s: Statement) -> Done:
    every = list(statements([s]))
    entries = [t.array for i in every for t in stored_by(i)]
    return Done({n for i in every for n in set_by(i)}, {a.id for a in entries if isinstance(a, Name)},
                not all(isinstance(a, Name) for a in entries),
                any(isinstance(i, Do) and not is_check(i) for i in every))


def _computed_again(function, name, arrays, above, done, machine, ranges, repeated):
    """Compute the array in the loops that read it later; whether that is possible and gains.

    done: {statement: Done} of the statements of outer blocks looked at so far; a recomputation does not change it.
    """
    made, store = arrays.made[name], _only_store(name, arrays)
    if store is None:
        return False
    indices = [p.id if isinstance(p, Name) else None for p in store.entry.index]
    nest = _nest(store, indices, made.shape, above)
    if nest is None:
        return False
    value, numbers = _written_out(store, block_of(store, function, above), arrays)
    if not may_be_repeated(value):
        return False
    within = set(statements([nest]))
    reads = [u for u in arrays.uses[name] if not u.stored]
    inside = [u for u in reads if u.statement in within]
    later = [u for u in reads if u.statement not in within]
    block = block_of(nest, function, above)
    first, places = block.index(nest), _places(later, nest, block, above)
    if not places or min(places) <= first or any(map(compared, reads)):
        return False
    readers = _passes_of_readers(later, places, block, made.shape, above, ranges)
    if readers is None or repeated and 1 in readers.values():
        return False
    if not _unchanged(store, value, indices, nest, block[first:max(places) + 1], arrays, above, done) or not _gains(
            store, value, readers, nest, inside, machine):
        return False
    _replace_reads(function, name, indices, as_held(value, made.dtype, function.types), later, arrays,
                   [] if inside else [store])
    if not inside:
        _remove_store(function, store, numbers, arrays, above)
        arrays.own.discard(name)
    return True


def _only_store(name, arrays):
    """The statement that stores an array, if there is one only and all uses of the array are by entry."""
    uses, rank = arrays.uses[name], len(arrays.made[name].shape)
    stores = [u.statement for u in uses if u.stored]
    if len(stores) != 1 or not all(u.role == "entry" and is_entry(u.parent, rank) for u in uses):
        return None
    return stores[0] if isinstance(stores[0], Store) and stores[0].op is None else None


def _places(later, nest, block, above):
    """The positions in the block of a nest of the statements that hold these uses; None where one is outside it."""
    tops = [next((t for t in (u.statement, *around(u.statement, above)) if above.get(t) is above.get(nest)), None)
            for u in later]
    return None if None in tops or any(t not in block for t in tops) else [block.index(t) for t in tops]


def _passes_of_readers(later, places, block, shape, above, ranges):
    """{statement that reads an array: the passes for each of its entries}; None where one is not known."""
    readers: dict = {}
    for u, k in zip(later, places):
        times = _passes_each(u.statement, block[k], shape, above, ranges)
        if times is None:
            return None
        readers[block[k]] = max(readers.get(block[k], 0), times)
    return readers


def _replace_reads(function, name, indices, value, later, arrays, gone):
    """Put an entry's value in the place of later reads of it; gone: the statements that will be removed."""
    def new(e):
        e = rebuilt(e, new)
        if isinstance(e, Load) and e.array == Name(name):
            return renamed(value, dict(zip(indices, e.index)))
        return e
    readers = list(dict.fromkeys(u.statement for u in later))
    arrays.forget([*readers, *gone])
    for s in readers:
        change(s, new)
    arrays.read(readers)


def _remove_store(function, store, numbers, arrays, above):
    """Remove a store, and the assignments of numbers that only it has read."""
    within = block_of(store, function, above)
    _drop(function, store, above)
    for s in numbers:
        if s.name not in names_read(function.block):
            arrays.forget([s])
            take_out(within, s)


def _written_out(store, block, arrays):
    """A value with the numbers that its pass has computed for it substituted, and the statements that set them, last
    first: only numbers that are set once, from entries that have not changed since.
    """
    value, found = store.value, []
    for k, s in reversed(list(enumerate(block[:block.index(store)]))):
        if not isinstance(s, Let) or s.name not in names_in(value) or arrays.sets[s.name] != 1 or not may_be_repeated(
                s.value):
            continue
        entries = operands(s.value)[0]
        if any(isinstance(t.array, Name) and t.array.id in entries for i in statements(block[k + 1:block.index(store)])
               for t in stored_by(i)):
            break
        value = renamed(value, {s.name: s.value})
        found.append(s)
    return value, found


def block_of(s: Statement, function: Function, above: dict) -> list:
    """The block that holds a statement."""
    holder = above.get(s)
    return function.block if holder is None else next(b for b in blocks(holder) if s in b)


def _nest(store, indices, shape, above):
    """The outermost of the loops over all entries, directly nested around the statement."""
    s = store
    for index, length in zip(reversed(indices), reversed(shape)):
        s = above.get(s)
        if not isinstance(s, For) or s.index != index or s.range != (length,) or s.kind != "range":
            return None
    return s if indices and len(set(indices)) == len(indices) else None


def _passes_each(s, outer, shape, above, ranges):
    """The number of passes, for each entry of an array, of the loops around a statement up to `outer`; None where that
    is unknown, where a branch or a while loop is among them, and where there are fewer loops than axes.
    """
    found = (s, *around(s, above))
    path = found[:found.index(outer) + 1]
    loops = [a for a in path if isinstance(a, For)]
    if any(isinstance(a, (If, While)) for a in path) or len(loops) < len(shape):
        return None
    if len(loops) == len(shape):
        return 1
    more, less = [n.count for n in loops], []
    for n in shape:
        k = next((k for k, m in enumerate(more) if m is not None and ranges().equal(m, n, s)), None)
        if k is None:
            less.append(n)
        else:
            del more[k]
    if not all(isinstance(n, Const) for n in (*more, *less)) or Const(0) in less:
        return None
    return math.prod(n.value for n in more) / math.prod(n.value for n in less)


def compared(use: Use) -> bool:
    return any(isinstance(e, Compare) or isinstance(e, Call) and e.function in ORDERED for e in use.around)


def _unchanged(store, value, indices, nest, block, known, above, done):
    """Whether the operands of a value have not changed where it is read; known: Arrays."""
    arrays, numbers = operands(value)
    made_of, foreign = arrays | numbers - set(indices), arrays - known.own
    apart = known.alone if foreign <= known.given else known.own        # these share no memory with foreign arrays
    for s in block:
        if s not in done:
            done[s] = done_by(s)
        sets, stores, nameless, acts = done[s]
        if acts or not made_of.isdisjoint(sets) or foreign and (nameless or not stores <= apart):
            return False
        if not arrays.isdisjoint(stores) and not (s is nest and _before(store, indices, nest, arrays, above)):
            return False
    return True


def _before(store, indices, nest, arrays, above):
    """Whether a nest stores only the entries of the same pass into these arrays, and before the store."""
    places, order = tuple(map(Name, indices)), {s: k for k, s in enumerate(statements([nest]))}
    return all(order[s] < order[store] and isinstance(s, Store) and s.op is None and t.index == places and
               above.get(s) is above.get(store)
               for s in order for t in stored_by(s) if isinstance(t.array, Name) and t.array.id in arrays)


def _gains(store, value, readers, nest, inside, machine):
    """Whether to recompute a value in the nests that read it takes at most the time to write and read it; readers:
    {nest: passes for each entry}.
    """
    arrays, again = operands(value)[0], costs.arithmetic(value, machine)
    read = machine.load * sum(len(arrays - entered(r)) for r in readers)
    loops = [s for s in statements([nest]) if isinstance(s, For)]
    alone = not inside and all(isinstance(s, For) or s is store for n in loops for s in n.block)
    kept = machine.store + machine.load * len(readers)
    first = machine.load * len(arrays) * alone + again * (not inside)
    more = sum(times * (costs.beside_memory(r.block, again, machine) if machine.hides else again)
               for r, times in readers.items())
    return more + read <= kept + first


def entered(reader: Statement) -> set[str]:
    """The arrays whose entries a statement reads or sets."""
    return {n.array.id for s in statements([reader]) for e in expressions(s) for n in walk(e)
            if isinstance(n, Load) and isinstance(n.array, Name)}


def _drop(function, s, above):
    """Remove a statement, and the loops that hold nothing else."""
    block, holder = block_of(s, function, above), above.get(s)
    if block == [s] and isinstance(holder, For):
        _drop(function, holder, above)
    else:
        take_out(block, s)


def may_be_repeated(value: Expr) -> bool:
    """Whether a value is arithmetic with the same result in another loop, on numbers and entries at simple indices."""
    for n in walk(value):
        if isinstance(n, Op):
            if n.op not in ("+", "-", "*", "/", "neg", "pos", "~", "not"):
                return False
        elif isinstance(n, Compare):            # of computed numbers, it might come out differently
            if any(isinstance(m, Select) or isinstance(m, Op) and len(m.args) == 2 for m in n.items):
                return False
        elif isinstance(n, Call) and n.function not in FREE or isinstance(n, (Method, Length)):
            return False
        elif isinstance(n, Load) and not (isinstance(n.array, Name) and all(map(_simple_index, n.index))):
            return False
    return True


def _simple_index(p):
    return isinstance(p, (Name, Const)) or isinstance(p, Op) and len(p.args) == 2 and all(
        isinstance(q, (Name, Const)) for q in p.args)


def operands(value: Expr) -> tuple[set[str], frozenset[str]]:
    """The arrays and the numbers that a value is computed from."""
    arrays = {cast(Name, n.array).id for n in walk(value) if isinstance(n, Load)}
    return arrays, names_in(value) - arrays
