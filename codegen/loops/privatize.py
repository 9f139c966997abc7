# SPDX-License-Identifier: Apache-2.0
"""Privatization: arrays and lists that a pass of a loop makes for itself become private memory of a thread.

A batched function with a while loop allocates vectors in each pass and aliases them, and its gradient appends saved
values to lists.  Threads cannot allocate memory, so

- an array of a few entries is allocated once (in a kernel as `cuda.local.array`), and an alias of it becomes a copy;
- a row of an array, `v = x[b]`, is substituted where its entries are read;
- a list becomes rows of one array, see lists.py; an additional loop before, which only counts, finds how many.

>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> import ast
>>> tree = ast.parse('''def f(a):
...     x = np.empty((8,), np.float64)
...     for b in range(8):
...         saved = []
...         y = a[b]
...         while True:
...             if not y < 9.0:
...                 break
...             saved.append(y)
...             y = y * y
...         while True:
...             if not len(saved) > 0:
...                 break
...             y += saved.pop()
...         x[b] = y
...     return (x,)''')
>>> function = from_tree(tree.body[0], {"a": ("float64", 1), "y": ("float64", 0)})
>>> private = privatize(function)
>>> print(ast.unparse(to_tree(function)))
def f(a):
    x = np.empty((8,), np.float64)
    saved_most = 0
    for b in range(8):
        saved_size = 0
        y = a[b]
        while True:
            if not y < 9.0:
                break
            saved_size += 1
            y = y * y
        saved_most = max(saved_most, saved_size)
    saved_kept = np.empty((saved_most, 8), np.float64)
    for b in range(8):
        saved_size = 0
        y = a[b]
        while True:
            if not y < 9.0:
                break
            saved_kept[saved_size, b] = y
            saved_size += 1
            y = y * y
        while True:
            if not saved_size > 0:
                break
            saved_size -= 1
            y += saved_kept[saved_size, b]
        x[b] = y
    return (x,)

Source: P. Tu, D. Padua, Automatic array privatization, 1993.
"""
import functools
from typing import Any, NamedTuple

from gradscribe.codegen.loops.accumulate import ZERO, is_short
from gradscribe.codegen.loops.analysis.aliases import aliases_at
from gradscribe.codegen.loops.analysis.arrays import families, is_entry, uses_in
from gradscribe.codegen.loops.analysis.def_use import DefUse
from gradscribe.codegen.loops.analysis.liveness import Liveness
from gradscribe.codegen.loops.analysis.parallelism import Order
from gradscribe.codegen.loops.analysis.slices import sliced
from gradscribe.codegen.loops.build import entry, quoted
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Call,
    Do,
    EmptyList,
    For,
    Function,
    Let,
    ListOf,
    Load,
    Name,
    Nothing,
    Return,
    Store,
    Type,
    all_names,
    blocks,
    change,
    expressions,
    names_in,
    rebuilt,
    set_by,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.lists import (
    Rows,
    appended,
    each_entry,
    handed_on,
    in_rows,
    is_empty_list,
    is_range,
    list_call,
    list_use,
    near,
    pops_in,
)
from gradscribe.codegen.loops.shapes import is_check
from gradscribe.codegen.loops.types import WORDS, type_of


class NotPrivate(Exception):
    """A loop cannot be privatized; `name`: an array that was taken for private and that a kernel cannot have."""

    def __init__(self, name: str | None = None):
        super().__init__(name)
        self.name: Any = name


class Private(NamedTuple):
    """made: {private array: its allocation}; loops: {private array: the loops whose passes use it}; numbers: {loop: its
    position among the loops before the change}.
    """
    made: dict[str, Alloc]
    loops: dict[str, list[For]]
    numbers: dict[For, int]


def privatize(function: Function, without: frozenset = frozenset()) -> Private:
    """Change a function in place; without: the positions of loops to leave alone."""
    passes = _Passes(function, without)
    passes.run()
    return passes.private


class _Passes:
    """turned: loops that have counted down and now count up."""

    def __init__(self, function, without):
        self.function, self.types, self.taken, self.turned = function, function.types, all_names(function), []
        loops = [s for s in statements(function.block) if isinstance(s, For)]
        self.private = Private({}, {}, {loop: k for k, loop in enumerate(loops)})
        self.left_alone = {loops[k] for k in without}

    def run(self):
        self.block(self.function.block)
        made = list(self.private.made.values())
        self.function.block[:0] = made
        for back in self.turned:
            if Order(self.function, self.private.made).free(back) is None:
                back.range = quoted("range({} - 1, -1, -1)", back.count).args

    def block(self, block):
        for s in [*block]:
            wanted = isinstance(s, For) and s not in self.left_alone and self.wanted(s)
            if wanted and s.downward:
                s.range = (s.count,)
                self.turned.append(s)
            if not (wanted and is_range(s) and self.loop(s, block)):
                for inner in blocks(s):
                    self.block(inner)

    def loop(self, loop, block):
        """Privatize a loop; whether that was possible."""
        later = handed_on(loop, block, self.function, self.taken)
        for h in later:
            h.begin()
        try:
            made = _Loop(self, loop)
        except NotPrivate:
            for h in later:
                h.undo()
            return False
        before = made.run()
        at = block.index(loop)
        block[at:at] = before
        for h in later:
            rows = made.lists[h.inner]
            h.go_on(block, rows.array, rows.shape, rows.dtype)
            if h.back not in self.turned:
                self.turned.append(h.back)
        return True

    def wanted(self, loop):
        """Whether passes make or alias arrays or lists."""
        return any(isinstance(s, Alloc) or isinstance(s, Let) and isinstance(s.value, (Name, Load)) and self.rank(
            s.name) or any(isinstance(e, (ListOf, EmptyList)) for whole in expressions(s) for e in walk(whole))
            for s in statements([loop]))

    def rank(self, name):
        return self.types.get(name, UNKNOWN).rank

    def fresh(self, name, *kind):
        made = unused(name, self.taken)
        self.types[made] = Type(*kind)
        return made


class _Loop:
    """A loop to privatize; NotPrivate if it has anything else than this pass supports.

    own: the names of arrays and lists that it sets, by `setters`; rows: {name of a row: the view that it is}; shapes:
    {short array: (its lengths, the name of its dtype)}; kinds: {list: the same of its entries, with () for numbers};
    lists: {list: its Rows}; forward: the number of statements before the first that pops from a list.
    """

    def __init__(self, passes, loop):
        self.passes, self.loop, self.types, self.of = passes, loop, passes.types, DefUse(passes.function)
        self.inside, self.rows, self.shapes, self.kinds = list(statements([loop])), {}, {}, {}
        self.stored = {n for s in self.inside for n in set_by(s)}
        self.own = {n for n in self.stored if passes.rank(n) != 0}
        self.setters = [s for s in self.inside if not self.own.isdisjoint(set_by(s))]
        made = {s.name for s in self.setters if is_empty_list(s)}
        self.forward = next((k for k, s in enumerate(loop.block) if any(map(pops_in, statements([s])))),
                            len(loop.block))
        self.require_own_names()
        self.find_rows()
        self.find_shapes()
        require(made == self.kinds.keys() and self.own == self.shapes.keys() | self.rows.keys() | made)
        self.require_plain_uses()
        self.require_copies_suffice()
        if made:
            self.require_countable()
        self.lists = {name: Rows(passes.fresh(f"{name}_kept", WORDS.get(dtype, dtype), len(shape) + 2), passes.fresh(
            f"{name}_size", "int64", 0), loop.index, shape, dtype) for name, (shape, dtype) in self.kinds.items()}

    # conditions

    def require_own_names(self):
        """Require that the names of private memory are used in the loop only, and that a list is made once."""
        inside = set(self.inside)
        require(sum(set_by(s).count(self.loop.index) for s in inside) == 1)
        require(self.own.isdisjoint(self.passes.function.params) and all(
            s in inside for name in self.own for s in self.of.users(name)))
        for s in self.setters:
            require(isinstance(s, (Let, Alloc)))
            require(not is_empty_list(s) or s in self.loop.block and self.is_once(s))

    def is_once(self, s):
        return len(self.of.sets[s.name]) == 1

    def find_rows(self):
        """Find rows of outer arrays at indices that do not change within a pass."""
        entered = {s.entry.array.id for s in self.inside if isinstance(s, Store)}
        for s in self.setters:
            row = s.value if isinstance(s, Let) else None
            if isinstance(row, Load) and isinstance(row.array, Name) and row.array.id not in self.own:
                moving = (names_in(row) - {self.loop.index}) & self.stored | {
                    n for p in row.index for n in names_in(p)} & entered
                require(self.is_once(s) and not moving and self.is_at_numbers(row))
                self.rows[s.name] = row

    def is_at_numbers(self, e):
        return is_entry(e, len(e.index)) and all(type_of(p, self.types).rank == 0 for p in e.index)

    def find_shapes(self):
        """Find the shapes of short arrays, of their aliases and of entries of lists, by a fixpoint."""
        def take(kinds, name, kind):
            require(kind is None or kinds.setdefault(name, kind) == kind)
            return kind is None
        for s in self.setters:
            if isinstance(s, Alloc):
                require(s.shape and is_short(s) and s.how in ("empty", "zeros"))
                take(self.shapes, s.name, (tuple(n.value for n in s.shape), s.dtype))
        aliases = [s for s in self.setters if isinstance(s, Let) and s.name not in self.rows and not is_empty_list(s)
                   and not self.is_outside(s.value)]
        puts = [put for put in map(appended, self.inside) if put[0] is not None]
        unknown = len(aliases) + len(puts) + 1
        while True:
            left = sum([take(self.shapes, s.name, self.array(s.value)) for s in aliases])
            left += sum([take(self.kinds, name, self.array(value) or self.number(value)) for name, value in puts])
            if left in (0, unknown):
                require(not left)
                break
            unknown = left

    def array(self, e):
        """The (shape, dtype) of a short array; None if it is not known yet, or if it is none."""
        if isinstance(e, Name):
            return self.shapes.get(e.id)
        if self.is_row(e):
            shape, dtype = self.shapes[e.array.id]
            return shape[len(e.index):], dtype
        found = self.kinds.get(e.owner.id) if list_call(e) == "pop" else None
        return found if found and found[0] else None

    def number(self, e):
        dtype, rank = type_of(e, self.types)
        return ((), "bool_" if dtype == "bool" else dtype) if rank == 0 and dtype is not None else None

    def is_outside(self, e):
        """Whether it is a whole array, or row, from outside; so is its alias then, since no loop reads a length."""
        return isinstance(e, Name) and (e.id in self.rows or e.id not in self.own)

    def is_row(self, e):
        """Whether it is x[k] of a short array with more axes."""
        return isinstance(e, Load) and isinstance(e.array, Name) and e.array.id in self.shapes and len(
            e.index) < len(self.shapes[e.array.id][0]) and self.is_at_numbers(e)

    def require_plain_uses(self):
        """Require that arrays are accessed by entry or aliased, and that lists are filled first and then emptied."""
        for use in (u for name in self.own for u in self.of.uses.get(name, ())):
            s, e = use.statement, use.parent
            if use.name in self.kinds:
                require(list_use(use) in ("append", "pop", "len"))
            elif use.role == "entry":
                rank = len(self.shapes[use.name][0]) if use.name in self.shapes else self.passes.rank(use.name)
                require(is_entry(e, rank) or isinstance(s, Let) and s.value is e and self.is_row(e))
            else:
                require(list_use(use) == "put" or isinstance(s, Let) and s.value == Name(use.name))
        every = {e.owner.id for s in self.inside for whole in expressions(s) for e in walk(whole) if list_call(e)}
        require(every <= self.kinds.keys())      # an outer list grows in the order of the passes
        require(not any(appended(s)[0] for s in statements(self.loop.block[self.forward:])))

    def outside(self, name):
        """The key of an array that is not private: its family, which may share memory."""
        return "outside", self.families.get(name, name)

    @functools.cached_property
    def families(self):
        return families(self.passes.function)

    def require_copies_suffice(self):
        """Require that aliases can be copies: what is written through one is not read through another afterwards."""
        def key(name):
            return name if name in self.own else self.outside(name) if self.passes.rank(name) != 0 else None
        of_rows = {name: self.outside(row.array.id) for name, row in self.rows.items()}
        aliases, live = aliases_at([self.loop], self.types, key), Liveness([self.loop]).after
        for s in self.inside:
            if isinstance(s, Store):
                name = key(s.entry.array.id)
                others = {other for pair in aliases[s] if name in pair for other in pair if of_rows.get(
                    other, other) != of_rows.get(name, name)}
                require(others <= self.own - live[s])

    def require_countable(self):
        """Require that what fills lists can run twice, first to count: it must not read outer entries that it sets."""
        read, written = set(), set()
        for s in statements(self.loop.block[:self.forward]):
            require(not isinstance(s, Return) and (not isinstance(s, Do) or is_check(s) or appended(s)[0]))
            for use in uses_in(s):
                name = self.rows[use.name].array.id if use.name in self.rows else use.name
                if name not in self.own and self.passes.rank(name) != 0 and use.role != "length":
                    require(not use.stored or s.op is None)
                    (written if use.stored else read).add(self.outside(name))
        require(read.isdisjoint(written))

    # transformation

    def run(self):
        """Change the loop; return the statements to put before it."""
        loop, passes = self.loop, self.passes
        filling = [k for k, s in enumerate(loop.block) if any(appended(i)[0] for i in statements([s]))]
        parts = [[m for i in in_rows(s, self.lists) for m in self.in_memory(i)] for s in loop.block]
        loop.block[:] = [s for part in parts for s in part]
        for name, (shape, dtype) in self.shapes.items():
            passes.private.made[name] = near(loop, "{} = np.empty({}, {})", name, shape, f"np.{dtype}")
        before = []
        if filling:
            sizes = {rows.size for rows in self.lists.values()}
            filled = sliced([s for part in parts[:filling[-1] + 1] for s in part], sizes, self.shapes)
            counting = For(loop.index, loop.range, filled, "range", loop.origin)
            longest = {name: passes.fresh(f"{name}_most", "int64", 0) for name in self.lists}
            counting.block += [near(loop, "{0} = max({0}, {1})", most, self.lists[name].size)
                               for name, most in longest.items()]
            before = [*(near(loop, "{} = 0", most) for most in longest.values()), counting, *(
                near(loop, "{} = np.empty(({}, {*}, {}), {})", rows.array, longest[name], rows.shape, loop.count,
                     f"np.{rows.dtype}") for name, rows in self.lists.items())]
        passes.private.loops.update(dict.fromkeys(self.shapes, [s for s in [*before, loop] if isinstance(s, For)]))
        return before

    def in_memory(self, s):
        """The statements that replace one when arrays are private and rows are substituted."""
        for k, block in enumerate(blocks(s)):
            block[:] = [m for i in block for m in self.in_memory(i)] or [Nothing()][k:]
        if isinstance(s, (Let, Alloc)) and s.name in self.rows:
            return []
        if isinstance(s, (Let, Alloc)) and s.name in self.shapes:
            name, (shape, dtype) = s.name, self.shapes[s.name]
            if isinstance(s, Let):
                source, first = (s.value, ()) if isinstance(s.value, Name) else (s.value.array, s.value.index)
                return each_entry(s, shape, lambda at: (entry(name, *at), self.with_rows(entry(source, *first, *at))))
            return each_entry(s, shape, lambda at: (entry(name, *at), Call(f"np.{dtype}", (ZERO,)))) if \
                s.how == "zeros" else []
        change(s, self.with_rows)
        return [s]

    def with_rows(self, e):
        e = rebuilt(e, self.with_rows)
        row = self.rows.get(e.array.id) if isinstance(e, Load) and isinstance(e.array, Name) else None
        return e if row is None else Load(row.array, (*row.index, *e.index))


def require(holds):
    """Raise NotPrivate unless a condition holds."""
    if not holds:
        raise NotPrivate
