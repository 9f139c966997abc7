# SPDX-License-Identifier: Apache-2.0
"""Arrays that are set in two steps, a fill and a second nest, are set in one nest over all entries.

A border, a fill and a store of the middle, becomes one store of a selection.  A sum into shifted places, a fill and a
scatter in which several passes add to one entry, becomes a gather: each entry collects its terms in one order, and no
two threads write to it.  If a later loop reads each entry once, that loop gathers.  Tables of indices such as
`2 * i + j` are first substituted where they are read, so that the accesses through them are known to be affine.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     rows = np.empty((8, 3), np.int64)
...     for i in range(8):
...         for j in range(3):
...             rows[i, j] = 1 * i + 2 * j
...     out = np.empty((n, 10), np.float64)
...     for i in range(n):
...         for j in range(10):
...             out[i, j] = 0.0
...     for i in range(n):
...         for j in range(8):
...             out[i, j + 1] = x[i, j]
...     dout = np.zeros((n, 12), np.float64)
...     for i in range(n):
...         for j in range(8):
...             for k in range(3):
...                 dout[i, rows[j, k]] += x[i, j]
...     return (out, dout)''').body[0]
>>> function = from_tree(tree, {"x": ("float64", 2)})
>>> write_out_tables(function)
True
>>> in_one_step(function)
>>> print(ast.unparse(ast.fix_missing_locations(to_tree(function))))
def f(x):
    n = x.shape[0]
    out = np.empty((n, 10), np.float64)
    for i in range(n):
        for j in range(10):
            out[i, j] = x[i, j - 1] if 1 <= j and j < 9 else 0.0
    dout = np.empty((n, 12), np.float64)
    for i in range(n):
        for i_1 in range(12):
            dout_at = 0.0
            for k in range(3):
                j = i_1 - 2 * k
                if 0 <= j and j < 8:
                    dout_at += x[i, j]
            dout[i, i_1] = dout_at
    return (out, dout)

Source: M. Wolfe, High Performance Compilers for Parallel Computing, 1996, chapter 9 (loops over the target); W. Kelly,
W. Pugh, Finding legal reordering transformations using mappings, 1995 (affine maps of passes to entries).
"""
import math
from typing import Any, NamedTuple, cast

from gradscribe.codegen.loops.analysis.arrays import Arrays, is_entry
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.analysis.parallelism import Order
from gradscribe.codegen.loops.analysis.ranges import Linear, Ranges
from gradscribe.codegen.loops.build import ZERO, joined, quoted
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Let,
    Load,
    Name,
    Op,
    Select,
    Statement,
    Store,
    Type,
    all_names,
    change,
    names_in,
    names_of,
    rebuilt,
    renamed,
    set_by,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.shapes import as_held, as_number, castable, is_counted, is_literal, replace_in, take_out

CHECKS_EACH = 8                         # at most so many passes without a term for each one with a term


class Nest(NamedTuple):
    """Loops around one store of an entry, the outermost first.

    store: with the numbers in its index substituted; stored: the statement itself; lets: the statements before it that
    compute the numbers of its value.
    """
    loops: list
    store: Store
    stored: Store
    lets: tuple = ()

    @property
    def top(self) -> For:
        return self.loops[0]

    @property
    def lengths(self) -> dict[str, Expr]:
        """{index: the number of passes}"""
        return {loop.index: loop.range[0] for loop in self.loops}

    @property
    def values(self) -> list[Expr]:
        """The stored value, and the values of the numbers in it."""
        return [self.store.value, *(let.value for let in self.lets)]


def nest_of(s: Statement, arrays: Arrays | None = None) -> Nest | None:
    """The perfect nest of a loop down to a store; None of anything else.  arrays: those of the function, if assignments
    of numbers that are set there only may come before the inner statements.
    """
    loops: list = []
    lets: list = []
    while is_counted(s):
        *before, last = s.block
        if not all(isinstance(b, Let) and arrays is not None and arrays.sets[b.name] == 1 for b in before):
            break
        loops.append(s)
        lets += before
        s = last
    indices, numbers = {loop.index for loop in loops}, dict[str, Expr]()
    for let in lets:
        numbers[let.name] = renamed(let.value, numbers)
    if not loops or not isinstance(s, Store) or not isinstance(s.entry.array, Name) or len(indices) < len(loops) or any(
            names_in(loop.range[0]) & (indices | numbers.keys()) for loop in loops):
        return None
    used: list = []
    wanted = set(names_in(s.value))
    for let in reversed(lets):
        if let.name in wanted:          # not those that only the index uses
            used.insert(0, let)
            wanted |= names_in(let.value)
    return Nest(loops, Store(cast(Load, renamed(s.entry, numbers)), s.value, s.op, s.origin), s, tuple(used))


def place_of(e: Expr, indices) -> Linear | None:
    """An index expression as a linear form of loop indices; None if it is not affine."""
    if isinstance(e, Const):
        return Linear(e.value) if type(e.value) is int else None
    if isinstance(e, Name):
        return Linear(0, {e.id: 1}) if e.id in indices else None
    if not isinstance(e, Op) or e.op not in ("+", "-", "*", "neg"):
        return None
    found: list = [place_of(a, indices) for a in e.args]
    if None in found:
        return None
    if e.op == "neg":
        return found[0].times(-1)
    left, right = found
    if e.op != "*":
        return left.plus(right, 1 if e.op == "+" else -1)
    return None if left.terms and right.terms else left.times(right.const) if not right.terms else right.times(
        left.const)


def written_out(form: Linear) -> Expr:
    """A linear form of indices as an expression.

    >>> import ast
    >>> from gradscribe.codegen.loops.trees import written
    >>> ast.unparse(written(written_out(Linear(-1, {"i": 1, "j": -2})))), ast.unparse(written(written_out(Linear(3))))
    ('i - 2 * j - 1', '3')
    """
    parts: list = [(c, Name(n) if abs(c) == 1 else Op("*", (Const(abs(c)), Name(n)))) for n, c in sorted(
        form.terms.items(), key=lambda t: t[1] < 0)]
    if form.const or not parts:
        parts.append((form.const, Const(abs(form.const))))
    (sign, out), *rest = parts
    out = out if sign >= 0 else Op("neg", (out,))
    for sign, part in rest:
        out = Op("+" if sign > 0 else "-", (out, part))
    return out


# --- tables of indices ------------------------------------------------------------------------------------------------

def write_out_tables(function: Function) -> bool:
    """Substitute tables of whole numbers that are linear forms of their indices where they are read, in place; whether
    there were any.
    """
    arrays = Arrays(function)
    ranges, found = Ranges(function), False
    for name in sorted(arrays.own):
        nest = table_of(name, arrays, function)
        if nest is None:
            continue
        uses = [u for u in arrays.uses[name] if not u.stored]
        if not all(u.role == "entry" and is_entry(u.parent, len(nest.store.entry.index)) and ranges.passed(
                nest.top, u.statement) and all(isinstance(p, (Name, Const)) for p in u.parent.index) for u in uses):
            continue
        at = nest.store.entry.index
        value = written_out(cast(Linear, place_of(nest.store.value, nest.lengths.keys())))

        def new(e, name=name, at=at, value=value):
            e = rebuilt(e, new)
            if isinstance(e, Load) and e.array == Name(name):
                return renamed(value, {i.id: p for i, p in zip(at, e.index) if isinstance(i, Name)})
            return e
        for u in uses:
            change(u.statement, new)
        take_out(arrays.blocks[nest.top], nest.top)
        take_out(arrays.blocks[arrays.made[name]], arrays.made[name])
        found = True
    return found


def table_of(name, arrays, function):
    """The nest that sets all entries of an array to linear forms of their indices."""
    made, stores = arrays.made[name], [u.statement for u in arrays.uses[name] if u.stored]
    nest = next((n for s in arrays.blocks[made] if (n := nest_of(s)) is not None and [n.stored] == stores), None)
    if nest is None or function.types[name].dtype != "int64" or nest.store.op is not None:
        return None
    lengths, at = nest.lengths, nest.store.entry.index
    whole = len(at) == len(made.shape) and all(
        p == ZERO and n == Const(1) or isinstance(p, Name) and lengths.get(p.id) == n for p, n in zip(at, made.shape))
    indices = {p.id for p in at if isinstance(p, Name)}
    return nest if whole and indices == lengths.keys() and place_of(nest.store.value, indices) is not None else None


# --- borders and sums into shifted places -----------------------------------------------------------------------------

class Steps(NamedTuple):
    """An array that is set in two steps: the fill (None where it is allocated with zeros), and the nest after it."""
    made: Alloc
    fill: Any
    nest: Nest
    value: Expr                         # of the fill
    places: list                        # the index of the nest's store, as linear forms
    top: Statement                      # the second step in the function


def in_one_step(function: Function) -> None:
    """Changes a function in place."""
    arrays = Arrays(function)
    done: set = set()
    shared: set = set()
    while True:
        found = next((s for name in sorted(arrays.own - done) if (s := steps_of(name, arrays, function))), None)
        if found is None:
            return
        done.add(found.made.name)
        block = arrays.blocks[found.made]
        if found.nest.store.op is None:
            new = with_border(found, function)
        else:
            new = reader_gathers(found, arrays, function, shared) or gathered(found, function)
        if new is None:
            continue
        tops = [s for s in (found.fill, found.nest.top) if s is not None and s is not new.instead]
        arrays.forget(list(statements([*tops, new.instead])))
        for s in tops:
            take_out(block, s)
        replace_in(block, new.instead, [new.nest])
        if new.array is None:
            take_out(block, found.made)
            arrays.own.discard(found.made.name)
        elif found.fill is None:
            replace_in(block, found.made, [new.array])
            arrays.made[found.made.name] = new.array
            arrays.blocks[new.array] = block
        arrays.blocks[new.nest] = block
        arrays.read(list(statements([new.nest])))


class New(NamedTuple):
    """The replacement: the allocation of the array (None if it is no longer needed), the statement that the nest
    replaces, and the nest.
    """
    array: Any
    instead: Statement
    nest: Statement


def steps_of(name, arrays, function):
    """The Steps of an array; None if it is not set in two."""
    made, uses = arrays.made[name], arrays.uses[name]
    stores = list(dict.fromkeys(u.statement for u in uses if u.stored))
    if len(stores) != 2 - (made.how == "zeros") or not castable(made):
        return None
    block = arrays.blocks[made]
    nests = [n for s in block if name in stored_in(s) and (n := nest_of(s, arrays)) is not None]
    fill, value = None, ZEROS.get(made.dtype)
    if made.how == "empty" and nests:
        fill, *nests = nests
        value = fill.store.value if is_whole_fill(fill, made) else None
    if value is None or [n.stored for n in (*([fill] if fill else []), *nests)] != stores:
        return None
    (nest,) = nests
    after = {s for top in block[block.index(nest.top) + 1:] for s in statements([top])}
    indices = nest.lengths.keys()
    places = [place_of(p, indices) for p in nest.store.entry.index]
    seen = [i for p in places if p is not None for i in p.terms]
    if nest.store.op not in (None, "+") or None in places or sorted(seen) != sorted(indices) or not all(
            u.role == "length" or u.statement in stores or u.statement in after for u in uses) or any(
            n.array == Name(name) for value in nest.values for n in walk(value) if isinstance(n, Load)):
        return None
    inside = set(statements([nest.top]))
    numbers = {s.name for s in inside if isinstance(s, Let)}
    if not Effects([nest.top]).known or numbers and any(
            numbers & names_of(s) for s in statements(function.block) if s not in inside):
        return None                     # its passes have other effects, or its numbers are read elsewhere
    return Steps(made, fill and fill.top, nest, value, places, nest.top)


def stored_in(s):
    """The array of which the last statement of a nest sets an entry, in a list."""
    while isinstance(s, For):
        s = s.block[-1]
    return [s.entry.array.id] if isinstance(s, Store) and isinstance(s.entry.array, Name) else []


ZEROS = {"float64": Const(0.0), "float32": quoted("np.float32(0.0)"), "int64": Const(0)}


def is_whole_fill(nest, made):
    """Whether a nest sets all entries of an array to one number."""
    at = nest.store.entry.index
    return nest.store.op is None and is_literal(nest.store.value) and all(isinstance(p, Name) for p in at) and [
        nest.lengths.get(getattr(p, "id", None)) for p in at] == list(made.shape) and len(at) == len(nest.loops)


def within(form: Linear, length: Expr, extent: dict, step: int = 1) -> list:
    """The conditions for a form to be `step` times a valid index of an axis, without those that always hold; extent:
    {index: the length of its loop}.
    """
    if step == 1 and not form.const and list(form.terms.values()) == [1] and extent[next(iter(form.terms))] == length:
        return []
    least, most = extremes(form, extent)
    tests = [] if least is not None and least >= 0 else [quoted("0 <= {}", written_out(form))]
    if step > 1:
        tests.append(quoted("{} % {} == 0", written_out(form), step))
    if most is None or not isinstance(length, Const) or most >= step * length.value:
        whole = Op("*", (Const(step), length)) if step > 1 else length
        tests.append(quoted("{} < {}", written_out(form), Const(step * length.value) if isinstance(
            length, Const) else whole))
    return tests


def extremes(form, extent):
    """The smallest and the largest value of a form; None where it depends on a length that is not a literal."""
    ends = [form.const, form.const]
    for index, c in form.terms.items():
        n = extent[index]
        if not isinstance(n, Const):
            if c < 0:
                ends[0] = None
            else:
                ends[1] = None
            continue
        side = 1 if c > 0 else 0
        if ends[side] is not None:
            ends[side] += c * (n.value - 1)
    return ends


def with_border(steps, function):
    """One nest over all entries, each of which is the stored value or the fill."""
    nest, made = steps.nest, steps.made
    if any(len(p.terms) != 1 or set(p.terms.values()) != {1} or p.const < 0 for p in steps.places):
        return None
    ranges, tests, back, order = Ranges(function), [], {}, {}
    for place, length in zip(steps.places, made.shape):
        (index,) = place.terms
        n, shift = nest.lengths[index], place.const
        order[index] = length
        if not shift and ranges.equal(n, length, nest.top):
            continue
        back[index] = written_out(Linear(-shift, {index: 1}))
        if shift:
            tests.append(Compare(("<=",), (Const(shift), Name(index))))
        if not (isinstance(n, Const) and isinstance(length, Const) and n.value + shift == length.value):
            stop = Const(n.value + shift) if isinstance(n, Const) else Op("+", (n, Const(shift))) if shift else n
            tests.append(Compare(("<",), (Name(index), stop)))
    value, numbers = nest.store.value, {}
    for let in nest.lets:
        numbers[let.name] = renamed(let.value, numbers)
    if any(sum(n == Name(let.name) for v in nest.values for n in walk(v)) > 1 for let in nest.lets):
        return None                     # it would be computed several times
    value = as_held(renamed(renamed(value, numbers), back), made.dtype, function.types)
    if tests:
        value = Select(joined("and", tests), value, steps.value)
    return New(empty(made), nest.top, around(order, [Store(
        Load(Name(made.name), tuple(map(Name, order))), value, None, nest.store.origin)], nest.store.origin))


def around(order, block, origin):
    """Loops around a block; order: {index: length}, the outermost first."""
    for index, length in reversed(order.items()):
        block = [For(index, (length,), block, "range", origin)]
    return block[0]


def empty(made):
    return Alloc(made.name, "empty", made.shape, made.rest, made.origin, made.line)


def gather_of(steps, function, at, extent):
    """The statements that sum an entry in a number, and the name of this; None where that takes too many passes.

    at: the index of the entry, as linear forms; extent: {index: the length of its loop}.
    """
    solved = [solvable(p, steps.nest.lengths) for p in steps.places]
    if None in solved or not worth(steps, solved):
        return None
    name = unused(f"{steps.made.name}_at", all_names(function))
    function.types[name] = Type(steps.made.dtype, 0)
    return gathers(steps, function, solved, at, steps.nest.lengths | extent, name), name


def solvable(place, lengths):
    """The loop index to solve an affine index for, given the others: that of the longest loop."""
    def size(i):
        n = lengths[i]
        return n.value if isinstance(n, Const) else math.inf, -abs(place.terms[i])
    return max(place.terms, key=size, default=None)


def worth(steps, solved):
    """Whether few enough passes of the gather find no term."""
    more = 1
    for place, index, length in zip(steps.places, solved, steps.made.shape):
        n = steps.nest.lengths[index]
        others = [steps.nest.lengths[i] for i in place.terms if i != index]
        if not all(isinstance(m, Const) for m in others):
            return False
        step = abs(place.terms[index])
        if step > 1:
            more *= length.value / max(1, n.value) if isinstance(length, Const) and isinstance(n, Const) else \
                step
    return more <= CHECKS_EACH


def gathers(steps, function, solved, places, extent, name):
    """The statements that sum an entry in a number."""
    nest, made = steps.nest, steps.made
    ranges, given, levels = Ranges(function), {}, []

    def known(n):
        return next((m for m in extent.values() if ranges.equal(m, n, steps.top)), n)
    extent = {i: known(n) for i, n in extent.items()}
    for place, index, at in zip(steps.places, solved, places):
        c, others = place.terms[index], [i for i in nest.lengths if i in place.terms and i != index]
        form = at.plus(Linear(place.const), -1).plus(Linear(0, {i: place.terms[i] for i in others}), -1)
        levels.append((others, index, form.times(1 if c > 0 else -1), abs(c)))
    store = Store(nest.store.entry, nest.store.value, "+", nest.store.origin)
    block = [*(Let(let.name, let.value, let.origin) for let in nest.lets),
             as_number(store, name, made.dtype, function.types)]
    for others, index, form, c in reversed(levels):
        tests, lets = within(form, known(nest.lengths[index]), extent, c), []
        if form.terms == {index: 1} and not form.const and c == 1:
            pass
        elif others or tests:
            found = Op("//", (written_out(form), Const(c))) if c > 1 else written_out(form)
            if c == 1:
                tests = [Compare(t.ops, tuple(Name(index) if i == found else i for i in t.items)) for t in tests]
                lets = [Let(index, found, nest.store.origin)]
            else:
                block = [Let(index, found, nest.store.origin), *block]
        else:
            given[index] = written_out(form)
        block = [*lets, If(joined("and", tests), block, [], nest.store.origin)] if tests else [*lets, *block]
        for i in reversed(others):
            block = [For(i, (nest.lengths[i],), block, "range", nest.store.origin)]
    for s in statements(block) if given else ():
        change(s, lambda e: renamed(e, given))
    zero = ZEROS.get(made.dtype) if steps.fill is None else steps.value
    return [Let(name, zero, nest.store.origin), *block]


def gathered(steps, function):
    """One nest over all entries, each of which gathers its terms."""
    taken, own = all_names(function), {}
    for place, length in zip(steps.places, steps.made.shape):
        alone = len(place.terms) == 1 and not place.const and set(place.terms.values()) == {1}
        index = next(iter(place.terms)) if alone else unused(f"{steps.nest.top.index}_{len(own)}", taken)
        function.types[index] = Type("int64", 0)
        own[index] = length
    found = gather_of(steps, function, [Linear(0, {i: 1}) for i in own], own)
    if found is None:
        return None
    block, name = found
    entry = Load(Name(steps.made.name), tuple(map(Name, own)))
    return New(empty(steps.made), steps.nest.top, around(
        own, [*block, Store(entry, Name(name), None, steps.nest.store.origin)], steps.nest.store.origin))


def reader_gathers(steps, arrays, function, shared):
    """The only nest that reads the array, each entry at most once, with the gather inside it; None where there is none.

    shared: names of indices that only such nests use, so that the next one may use them too.
    """
    made, nest = steps.made, steps.nest
    reads = [u for u in arrays.uses[made.name] if not u.stored]
    block = arrays.blocks[nest.top]
    reader = next((n for s in block if (n := nest_of(s)) is not None and len(reads) == 1 and
                   n.stored is reads[0].statement), None)
    # an index check of an entry that is never read might have raised
    if reader is None or reads[0].role != "entry" or reader.store.op is not None or any(
            isinstance(e, Call) and e.function == "place" for value in nest.values for e in walk(value)):
        return None
    at = [place_of(p, reader.lengths.keys()) for p in reads[0].parent.index]
    if None in at or any(list(p.terms.values()) != [1] for p in at) or len({i for p in at for i in p.terms}) < len(
            reader.loops):
        return None
    until = Effects(block[block.index(nest.top) + 1:block.index(reader.top) + 1])       # with the reader's own stores
    operands = {n for e in (*nest.values, *nest.lengths.values()) for n in names_in(e)} - nest.lengths.keys() - {
        let.name for let in nest.lets}
    order, of_arrays = Order(function), [n for n in operands if function.types.get(n, UNKNOWN).rank]
    if not until.known or operands & (until.sets | until.writes.keys()) or not all(
            order.apart(written, n) for written in until.writes for n in of_arrays):
        return None
    taken = all_names(function) - shared | {
        n for s in statements([nest.top, reader.top]) for n in (*names_of(s), *set_by(s))}
    new = {i: unused(f"{i}_", taken) for i in sorted(nest.lengths.keys() & reader.lengths.keys())}
    apart = renamed_nest(nest, new)
    function.types |= {j: Type("int64", 0) for j in new.values()}
    shared |= set(new.values())
    inside = steps._replace(nest=apart, places=[Linear(p.const, {new.get(i, i): c for i, c in p.terms.items()})
                                                for p in steps.places])
    found = gather_of(inside, function, at, reader.lengths)
    if found is None:
        return None
    body, name = found

    def instead(e):
        return Name(name) if e == reads[0].parent else rebuilt(e, instead)
    store = Store(reader.store.entry, instead(reader.store.value), None, reader.store.origin)
    return New(None, reader.top, around(reader.lengths, [*body, store], reader.store.origin))


def renamed_nest(nest, new):
    """A copy of a nest with renamed indices."""
    names = {i: Name(j) for i, j in new.items()}
    loops = [For(new.get(n.index, n.index), n.range, [], n.kind, n.origin, n.line) for n in nest.loops]
    lets = tuple(Let(let.name, renamed(let.value, names), let.origin) for let in nest.lets)
    return nest._replace(loops=loops, lets=lets, store=Store(
        renamed(nest.store.entry, names), renamed(nest.store.value, names), nest.store.op, nest.store.origin))
