# SPDX-License-Identifier: Apache-2.0
"""Lists of a pass as rows of one array, a pass's entries under each other, next to those of its neighbours.

The gradient of a sum over a batch has two loops over its examples: the first puts a list of each pass into a list, the
second, which goes back, takes it out again.  Where threads have their lists in rows (thread_memory.py), the second loop
reads these rows; how many of them a pass has is kept for it.

>>> import ast
>>> from gradscribe.codegen.loops.form import all_names
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(a, n):
...     kept = []
...     for b in range(n):
...         saved = []
...         saved.append(a[b])
...         kept.append(saved)
...     for b in range(n - 1, -1, -1):
...         mine = kept.pop()
...         while len(mine) > 0:
...             a[b] += mine.pop()''')
>>> function = from_tree(tree.body[0], {"a": ("float64", 1), "n": ("int64", 0)})
>>> for handed in handed_on(function.block[1], function.block, function, all_names(function)):
...     handed.begin()
...     handed.go_on(function.block, "rows", (), "float64")
>>> print(ast.unparse(to_tree(function)))
def f(a, n):
    saved_sizes = np.empty((n,), np.int64)
    for b in range(n):
        saved = []
        saved.append(a[b])
        saved_sizes[b] = len(saved)
    for b in range(n):
        mine_size = saved_sizes[b]
        while mine_size > 0:
            mine_size -= 1
            a[b] += rows[mine_size, b]
"""
import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.build import entry, statement
from gradscribe.codegen.loops.form import (
    Call,
    Expr,
    For,
    Function,
    Length,
    Load,
    Name,
    Statement,
    Type,
    blocks,
    change,
    rebuilt,
    statements,
    unused,
)
from gradscribe.codegen.loops.shapes import is_counted, replace_in
from gradscribe.codegen.targets.cuda.lists import (
    appended,
    is_empty_list,
    list_call,
    list_use,
    mentions,
    popped,
    pops_in,
)


class Rows(NamedTuple):
    """array: the rows of all passes; size: how many a pass has; index: the pass's; shape, dtype: of an entry of the
    list, the dtype by its name in NumPy.
    """
    array: str
    size: str
    index: str
    shape: tuple
    dtype: str

    def entry(self, at: Iterable = ()) -> Load:
        return entry(self.array, self.size, *at, self.index)


def near(s: Statement, made: Iterable[Statement]) -> list[Statement]:
    """New statements, which come from the user's place of another."""
    made = list(made)
    for m in statements(made):
        m.origin = s.origin
    return made


def each_entry(s: Statement, shape: tuple, make: Callable[[tuple], tuple[Expr, Expr]]) -> list[Statement]:
    """A statement for each entry of a short array: what it sets, and to what."""
    return near(s, [statement("{} = {}", *make(at)) for at in itertools.product(*map(range, shape))])


def in_rows(s: Statement, lists: dict[str, Rows]) -> list[Statement]:
    """The statements in the place of one, with lists in rows: {list: its Rows}."""
    for block in blocks(s):
        block[:] = [m for i in block for m in in_rows(i, lists)]
    to, value = appended(s)
    if to in lists:
        rows = lists[to]
        return [*each_entry(s, rows.shape, lambda at: (rows.entry(at), entry(value, *at) if at else value)),
                *near(s, [statement("{} += 1", rows.size)])]
    if is_empty_list(s) and s.name in lists:
        return near(s, [statement("{} = 0", lists[s.name].size)])
    less = near(s, [statement("{} -= 1", lists[name].size) for name in pops_in(s) if name in lists])
    source = popped(s)
    if source in lists and lists[source].shape:
        rows = lists[source]
        made = near(s, [statement("{} = np.empty({}, {})", s.name, rows.shape, f"np.{rows.dtype}")])
        return [*less, *made, *each_entry(s, rows.shape, lambda at: (entry(s.name, *at), rows.entry(at)))]

    def new(e):
        e = rebuilt(e, new)
        if list_call(e) == "pop" and e.owner.id in lists:
            return lists[e.owner.id].entry()
        name = e.args[0].id if isinstance(e, Call) and e.function == "len" and isinstance(e.args[0], Name) else None
        return Name(lists[name].size) if name in lists else e
    change(s, new)
    return [*less, s]


def is_range(s: Statement) -> bool:
    """for name in range(count), the count being a number or a length."""
    return is_counted(s) or isinstance(s, For) and s.kind == "range" and len(s.range) == 1 and isinstance(
        s.range[0], Length)


def handed_on(loop: Statement, block: list[Statement], function: Function, taken: set) -> list["Handed"]:
    """The lists of a loop's passes that a later loop of the same block goes through; none that is used otherwise.

    taken: names, to which those that are made are added.
    """
    if not is_range(loop):
        return []
    at, found = block.index(loop), []
    for s in loop.block:
        outer, inner = appended(s)
        if not isinstance(inner, Name) or not any(is_empty_list(m) and m.name == inner.id for m in loop.block):
            continue
        made = next((m for m in block[:at] if is_empty_list(m) and m.name == outer), None)
        back = next((m for m in block[at + 1:] if mentions([m], outer)), None)
        if made is None or not isinstance(back, For) or not back.downward or back.count != loop.count or \
                mentions([loop], outer) != 1 or mentions([back], outer) != 1 or mentions(function.block, outer) != 3:
            continue
        pop = next((m for m in back.block if popped(m) == outer), None)
        if pop is not None and mentions(function.block, pop.name) == 1 + sum(
                use.name == pop.name and list_use(use) in ("pop", "len") for m in statements(back.block)
                for use in uses_in(m)):
            found.append(Handed(made, loop, s, inner.id, back, pop, function, taken))
    return found


class Handed:
    """A list that each pass of one loop makes, and a pass of another takes.

    made: what makes the list of lists; put, pop: what puts a list there, and what takes it out.
    """

    def __init__(self, made, loop, put, inner, back, pop, function, taken):
        self.made, self.loop, self.put, self.inner, self.back, self.pop = made, loop, put, inner, back, pop
        self.function, self.sizes = function, unused(f"{inner}_sizes", taken)
        self.size = unused(f"{pop.name}_size", taken)

    def begin(self) -> None:
        """The first loop keeps how long lists are."""
        self.function.types |= {self.sizes: Type("int64", 1), self.size: Type("int64", 0)}
        self.kept = near(self.put, [statement("{}[{}] = len({})", self.sizes, self.loop.index, self.inner)])
        replace_in(self.loop.block, self.put, self.kept)

    def undo(self) -> None:
        replace_in(self.loop.block, *self.kept, [self.put])

    def go_on(self, block: list[Statement], rows: str, shape: tuple, dtype: str) -> None:
        """The second loop reads the rows of what the first has written; block: in which both stand; shape, dtype: of
        an entry of a list.
        """
        replace_in(block, self.made, near(self.made, [
            statement("{} = np.empty(({},), np.int64)", self.sizes, self.loop.count)]))
        index = self.back.index
        replace_in(self.back.block, self.pop, [])
        taken = {self.pop.name: Rows(rows, self.size, index, shape, dtype)}
        self.back.block[:] = [*near(self.pop, [statement("{} = {}[{}]", self.size, self.sizes, index)]),
                              *(m for s in self.back.block for m in in_rows(s, taken))]
        self.back.range = (self.back.count,)
