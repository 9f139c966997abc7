# SPDX-License-Identifier: Apache-2.0
"""Scatter to gather: sums into shifted slices of one array become one loop over its entries.

The gradient of `u[:-2] + u[1:-1] + u[2:]` adds one array into three slices of another: three sweeps over both.  Here
one sweep visits each entry of the target once and gathers its terms, in the same order.  The source gets a border of
zeros, so that entries near the ends need no special case.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, du):
...     n = x.shape[0]
...     s = np.empty((n,), np.float64)
...     for i in range(n):
...         s[i] = 2.0 * x[i]
...     t = np.zeros((n + 2,), np.float64)
...     for i in range(n):
...         t[i] += s[i]
...     for i in range(n):
...         t[i + 1] -= 3.0 * s[i]
...     for i in range(n):
...         t[i + 2] += s[i]
...     return (t,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "du": ("float64", 1)})
>>> gather(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, du):
    n = x.shape[0]
    n_and_2 = n + 2 if n > 0 else 0
    s = np.zeros((n + 4,), np.float64)
    for i in range(n):
        s[i + 2] = 2.0 * x[i]
    t = np.zeros((n + 2,), np.float64)
    for i in range(n_and_2):
        t[i] = t[i] + s[i + 2] - 3.0 * s[i + 1] + s[i]
    return (t,)

Source: M. Wolfe, High Performance Compilers for Parallel Computing, 1996, chapter 9 (loops over the target); borders of
zeros, or ghost cells: F. Kjolstad, M. Snir, Ghost cell pattern, 2010.
"""
from typing import NamedTuple

from gradscribe.codegen.loops.allocation import moved_out
from gradscribe.codegen.loops.analysis.arrays import Arrays, is_place
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.analysis.lengths import Lengths
from gradscribe.codegen.loops.form import (
    Compare,
    Const,
    Expr,
    For,
    Function,
    Let,
    Load,
    Logic,
    Name,
    Op,
    Select,
    Store,
    Type,
    all_blocks,
    all_names,
    names_in,
    set_by,
    statements,
    unused,
)
from gradscribe.codegen.loops.shapes import entries_changed, is_counted

TERMS = 3                               # at least so many sweeps become one: for two, the border costs the gain


class Term(NamedTuple):
    """for i, j in range(..), range(..): target[i + a, j + b] op= factor * source[i, j]"""
    target: str
    source: str
    op: str
    factor: Expr | None                 # None: 1
    negative: bool
    shifts: tuple
    lengths: tuple
    indices: tuple
    origin: object


def gather(function: Function) -> None:
    """Changes a function in place."""
    while True:
        arrays = Arrays(function)
        found = next((run for block in all_blocks(function) for run in runs(block, function, arrays)), None)
        if found is None:
            return
        block, nests, terms = found
        put(function, block, nests, terms, arrays)


def runs(block, function, arrays):
    """(block, nests, terms) of nests that add to shifted slices of one array, without an access to it in between."""
    for k, s in enumerate(block):
        first = term_of(s, function.types)
        if first is None:
            continue
        nests, terms = [s], [first]
        for other in block[k + 1:]:
            term = term_of(other, function.types)
            if term is not None and alike(first, term):
                nests.append(other)
                terms.append(term)
                continue
            effects = Effects([other])
            changed = {t.source for t in terms} | {n for d in first.lengths for n in names_in(d)}
            if not effects.known or first.target in effects.read | effects.written or effects.written & changed:
                break
        if fits(terms, arrays):
            yield block, nests, terms


def alike(first, other):
    return (first.target, first.lengths) == (other.target, other.lengths)


def fits(terms, arrays):
    if len(terms) < TERMS or len({t.shifts for t in terms}) < TERMS or any(
            isinstance(n, Const) and n.value < 1 for n in terms[0].lengths):
        return False
    names = {t.source for t in terms}
    return terms[0].target not in names and terms[0].target in arrays.own and all(
        padded(n, terms[0].lengths, arrays) for n in names)


def padded(name, lengths, arrays):
    """Whether an array may get a border: it has no alias and is accessed by entry only, without negative indices."""
    return name in arrays.own and arrays.made[name].how == "empty" and arrays.made[name].shape == lengths and all(
        u.role == "entry" and is_place(u.parent, len(lengths)) and not any(map(from_the_end, u.parent.index))
        for u in arrays.uses[name])


def from_the_end(part):
    """Whether an index is a negative literal."""
    return isinstance(part, Op) and part.op == "neg" or isinstance(part, Const) and part.value < 0


def term_of(s, types):
    """The Term of a nest; None if it is no such sum."""
    indices, lengths, nest = [], [], s
    while is_counted(nest) and len(nest.block) == 1:
        indices.append(nest.index)
        lengths.append(nest.range[0])
        nest = nest.block[0]
    if not indices or not isinstance(nest, Store) or nest.op not in ("+", "-") or not isinstance(
            nest.entry.array, Name) or len(nest.entry.index) != len(indices):
        return None
    shifts = [shift_of(p, i) for p, i in zip(nest.entry.index, indices)]
    plain = tuple(map(Name, indices))
    found = linear(nest.value, plain)
    if None in shifts or found is None or len(set(indices)) < len(indices):
        return None
    source, factor, negative = found
    kinds = {types[nest.entry.array.id].dtype, types[source].dtype}
    if len(kinds) > 1 or not kinds <= {"float64", "float32"}:
        return None
    return Term(nest.entry.array.id, source, nest.op, factor, negative, tuple(shifts), tuple(lengths), tuple(indices),
                nest.origin)


def shift_of(place, index):
    """a of index + a, if it is not negative; None for another index."""
    if place == Name(index):
        return 0
    if isinstance(place, Op) and place.op == "+" and place.args[0] == Name(index) and isinstance(
            place.args[1], Const) and place.args[1].value >= 0:
        return place.args[1].value
    return None


def linear(value, place):
    """(array, factor, whether it is negated) of factor * array[place] with a literal factor; None of others."""
    negative = False
    while isinstance(value, Op) and value.op == "neg":
        value, negative = value.args[0], not negative
    factor = None
    if isinstance(value, Op) and value.op == "*" and isinstance(value.args[0], Const):
        factor, value = value.args
    if isinstance(value, Load) and isinstance(value.array, Name) and value.index == place:
        return value.array.id, factor, negative
    return None


def put(function, block, nests, terms, arrays):
    """Replace the nests by one, and give their sources borders."""
    first, rank = terms[0], len(terms[0].indices)
    least = [min(t.shifts[k] for t in terms) for k in range(rank)]
    width = [max(t.shifts[k] for t in terms) - least[k] for k in range(rank)]
    for name in sorted({t.source for t in terms}):
        made = arrays.made[name]
        made.how = "zeros"
        made.shape = tuple(plus(n, 2 * w) for n, w in zip(made.shape, width))
        entries_changed(function.block, name, lambda e: Load(e.array, tuple(map(plus, e.index, width))))
    entry = Load(Name(first.target), tuple(map(plus, map(Name, first.indices), least)))
    value: Expr = entry
    for t in terms:
        places = [plus(Name(i), w - (a - low)) for i, w, a, low in zip(first.indices, width, t.shifts, least)]
        part: Expr = Load(Name(t.source), tuple(places))
        part = Op("*", (t.factor, part)) if t.factor is not None else part
        value = Op("-" if (t.op == "-") != t.negative else "+", (value, part))
    counts, lets = counted(function, block, first, width)
    nest = Store(entry, value, None, first.origin)
    for index, count in reversed(list(zip(first.indices, counts))):
        nest = For(index, (count,), [nest], "range", first.origin)
    block[block.index(nests[-1])] = nest
    for s in nests[:-1]:
        block.remove(s)
    at = block.index(nest)
    block[at:at] = lets
    known = Lengths(function)
    for name in sorted({t.source for t in terms}):
        moved_out(known, arrays.made[name])


def counted(function, block, term, width):
    """(the number of entries along each axis, the statements that compute them): 0 if nothing is added at all.

    These are put at the top of the function if the lengths are known there, for the next nest to reuse.
    """
    counts, lets, unknown = [], [], [n for n in term.lengths if not isinstance(n, Const)]
    for k, (n, w) in enumerate(zip(term.lengths, width)):
        count = plus(n, w)
        if unknown and not k:
            tests = [Compare((">",), (d, Const(0))) for d in dict.fromkeys(unknown)]
            count = Select(tests[0] if len(tests) == 1 else Logic("and", tuple(tests)), count, Const(0))
        if not isinstance(count, (Name, Const)):
            at = known_from(function, names_in(count))
            same = [s for s in function.block if isinstance(s, Let) and s.value == count] if at is not None else []
            if not same:
                made = Let(unused(f"{n.id if isinstance(n, Name) else 'n'}_and_{w}", all_names(function)), count,
                           term.origin)
                function.types[made.name] = Type("int64", 0)
                if at is None:
                    lets.append(made)
                else:
                    function.block.insert(at, made)
                same = [made]
            count = Name(same[0].name)
        counts.append(count)
    return counts, lets


def known_from(function, names):
    """The position in a function's block from which on names have their only values; None if they are set elsewhere."""
    sets = [n for s in statements(function.block) for n in set_by(s)]
    top = {n: k for k, s in enumerate(function.block) for n in set_by(s) if isinstance(s, Let)}
    if any(sets.count(n) > (n not in function.params) or n not in top and n not in function.params for n in names):
        return None
    at = max([top[n] + 1 for n in names if n in top], default=0)
    return at


def plus(e: Expr, n: int) -> Expr:
    """e + n, for n of at least 0."""
    if n == 0:
        return e
    if isinstance(e, Const):
        return Const(e.value + n)
    if isinstance(e, Op) and e.op == "+" and isinstance(e.args[1], Const):
        return plus(e.args[0], e.args[1].value + n)
    if isinstance(e, Op) and e.op == "-" and isinstance(e.args[1], Const):
        left = n - e.args[1].value
        return plus(e.args[0], left) if left >= 0 else Op("-", (e.args[0], Const(-left)))
    return Op("+", (e, Const(n)))
