# SPDX-License-Identifier: Apache-2.0
"""Lists that a pass uses as a stack, stored in the rows of one array with a column for each pass, to coalesce accesses.

The gradient of a sum over a batch has two loops over the examples: the first appends the list of each pass to a list,
the second, which runs backwards, pops it again.  Where threads have their lists in rows (thread_memory.py), the second
loop reads these rows; their number in each pass is saved for it.

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
from typing import Any, NamedTuple, TypeGuard, cast

from gradscribe.codegen.loops.analysis.arrays import Use
from gradscribe.codegen.loops.analysis.def_use import DefUse
from gradscribe.codegen.loops.build import entry, statement
from gradscribe.codegen.loops.form import (
    Call,
    Do,
    EmptyList,
    Expr,
    For,
    Function,
    Length,
    Let,
    ListOf,
    Load,
    Logic,
    Method,
    Name,
    Select,
    Statement,
    Type,
    While,
    all_blocks,
    all_names,
    blocks,
    change,
    expressions,
    rebuilt,
    unused,
    walk,
)
from gradscribe.codegen.loops.shapes import around, is_counted, replace_in
from gradscribe.codegen.loops.types import type_of

CALLS = {"append": 1, "pop": 0}         # {method: its number of arguments}


# --- operations of lists ----------------------------------------------------------------------------------------------

def list_call(e: Expr) -> str | None:
    """'append' or 'pop' if it is such a call, at the end of a list; else None."""
    call: Any = e
    at_end = isinstance(e, Method) and isinstance(e.owner, Name) and len(e.args) == CALLS.get(e.name)
    return call.name if at_end and not call.keywords else None


def is_empty_list(s: Statement) -> TypeGuard[Let]:
    """Whether a statement makes an empty list."""
    return isinstance(s, Let) and (s.value == ListOf(()) or isinstance(s.value, EmptyList))


def appended(s: Statement) -> tuple[str, Expr] | tuple[None, None]:
    """(list, value) of a statement that appends to a list; Nones of another statement."""
    if isinstance(s, Do) and list_call(s.value) == "append":
        call: Any = s.value
        return call.owner.id, call.args[0]
    return None, None


def popped(s: Statement) -> str | None:
    """The list of a `name = list.pop()`; else None."""
    return cast(Any, s.value).owner.id if isinstance(s, Let) and list_call(s.value) == "pop" else None


def pops_in(s: Statement) -> list[str]:
    """The lists that a statement itself pops from."""
    return [e.owner.id for whole in expressions(s) for e in walk(whole) if list_call(e) == "pop"]


def list_use(use: Use) -> str | None:
    """The operation of a list: 'append' to it, 'put' into another one, 'pop', 'len'; None for any other use, or if the
    statement may pop several entries or none.
    """
    call, s = use.parent, use.statement
    if isinstance(call, Call) and call.function == "len":
        return "len"
    if list_call(call) == "append" and appended(s)[0] == call.owner.id:
        return "append" if call.args != (Name(use.name),) else "put" if call.owner.id != use.name else None
    certain = not isinstance(s, (For, While)) and not any(isinstance(e, (Select, Logic)) for e in use.around)
    return "pop" if list_call(call) == "pop" and certain and pops_in(s).count(use.name) == 1 else None


def with_lists(e: Expr, length: Callable, last: Callable) -> Expr:
    """An expression with len and pop of lists replaced by length(name) and last(name), unless these are None."""
    e, made = rebuilt(e, lambda part: with_lists(part, length, last)), None
    if list_call(e) == "pop":
        made = last(cast(Any, e).owner.id)
    elif isinstance(e, Call) and e.function == "len" and isinstance(e.args[0], Name):
        made = length(e.args[0].id)
    return e if made is None else made


def name_appended(function: Function) -> None:
    """Give names to the values that are appended to lists.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> function = Function("f", ["x"], {}, block_of("kept = []\\nkept.append(x + 1)"))
    >>> name_appended(function)
    >>> function.block[1].name, appended(function.block[2])
    ('kept_next', ('kept', Name(id='kept_next')))
    """
    taken = all_names(function)
    for block in [*all_blocks(function)]:
        for s in [*block]:
            name, value = cast(Any, appended(s))
            if name is not None and not isinstance(value, Name):
                new = unused(f"{name}_next", taken)
                function.types[new] = type_of(value, function.types)
                block.insert(block.index(s), Let(new, value, s.origin))
                s.value = Method(s.value.owner, "append", (Name(new),))


# --- rows -------------------------------------------------------------------------------------------------------------

class Rows(NamedTuple):
    """array: the rows of all passes; size: the length of the list of a pass; index: that of the pass; shape, dtype:
    those of an entry of the list, the dtype as NumPy's name.
    """
    array: str
    size: str
    index: str  # type: ignore[assignment]  # tuple.index
    shape: tuple
    dtype: str

    def entry(self, at: Iterable = ()) -> Load:
        return entry(self.array, self.size, *at, self.index)


def near(s: Statement, template: str, *given: Any) -> Statement:
    """The statement of a template, with the origin of another statement."""
    made: Any = statement(template, *given)
    made.origin = cast(Any, s).origin
    return made


def each_entry(s: Statement, shape: tuple, make: Callable[[tuple], tuple[Expr, Expr]]) -> list[Statement]:
    """A statement for each entry of a short array; make(index): (target, value)."""
    return [near(s, "{} = {}", *make(at)) for at in itertools.product(*map(range, shape))]


def in_rows(s: Any, lists: dict) -> list[Statement]:
    """The statements that replace one when lists are in rows: {list: its Rows}."""
    for block in blocks(s):
        block[:] = [m for i in block for m in in_rows(i, lists)]
    to, value = cast(Any, appended(s))
    if to in lists:
        rows: Any = lists[to]
        return [*each_entry(s, rows.shape, lambda at: (rows.entry(at), entry(value, *at) if at else value)),
                near(s, "{} += 1", rows.size)]
    if is_empty_list(s) and s.name in lists:
        return [near(s, "{} = 0", lists[s.name].size)]
    less = [near(s, "{} -= 1", lists[name].size) for name in pops_in(s) if name in lists]
    rows = lists.get(popped(s))
    if rows is not None and rows.shape:
        return [*less, near(s, "{} = np.empty({}, {})", s.name, rows.shape, f"np.{rows.dtype}"),
                *each_entry(s, rows.shape, lambda at: (entry(s.name, *at), rows.entry(at)))]
    change(s, lambda e: with_lists(e, lambda name: Name(lists[name].size) if name in lists else None,
                                   lambda name: lists[name].entry() if name in lists else None))
    return [*less, s]


def is_range(s: Statement) -> TypeGuard[For]:
    """Whether it is for name in range(count), where the count is a name, a literal or a length."""
    return is_counted(s) or isinstance(s, For) and s.kind == "range" and len(s.range) == 1 and isinstance(
        s.range[0], Length)


def handed_on(loop: Any, block: list[Statement], function: Function, taken: set) -> list["Handed"]:
    """The lists of a loop's passes that a later loop of the same block pops, and that have no other use.

    taken: the names in use, to which new ones are added.
    """
    of, found = DefUse(function), []
    for put in loop.block if is_range(loop) else ():
        outer, inner = appended(put)
        (made, *again), users = of.sets.get(outer, [None]), [u.statement for u in of.uses.get(outer, ())]
        if made is None or again or not is_empty_list(made) or made not in block[:block.index(loop)] or not isinstance(
                inner, Name) or not any(is_empty_list(s) and s.name == inner.id for s in loop.block):
            continue
        back = next((s for s in block[block.index(loop) + 1:] if s is of.above.get(users[-1])), None)
        if users == [put, users[-1]] and popped(users[-1]) == outer and isinstance(
                back, For) and back.downward and back.count == loop.count:
            mine = users[-1].name
            if of.sets[mine] == [users[-1]] and all(
                    list_use(u) in ("pop", "len") and back in around(u.statement, of.above) for u in of.uses[mine]):
                found.append(Handed(made, loop, put, inner.id, back, users[-1], function, taken))
    return found


class Handed:
    """A list that each pass of one loop makes and a pass of another loop pops.

    made: the statement that makes the list of lists; put, pop: those that append a list to it and pop one.
    """

    def __init__(self, made, loop, put, inner, back, pop, function, taken):
        self.made, self.loop, self.put, self.inner, self.back, self.pop = made, loop, put, inner, back, pop
        self.sizes, self.size = unused(f"{inner}_sizes", taken), unused(f"{pop.name}_size", taken)
        self.kept = near(put, "{}[{}] = len({})", self.sizes, loop.index, inner)
        function.types |= {self.sizes: Type("int64", 1), self.size: Type("int64", 0)}

    def begin(self) -> None:
        """Save the lengths of lists in the first loop."""
        replace_in(self.loop.block, self.put, [self.kept])

    def undo(self) -> None:
        replace_in(self.loop.block, self.kept, [self.put])

    def go_on(self, block: list[Statement], rows: str, shape: tuple, dtype: str) -> None:
        """Read the rows of the first loop in the second; block: that of both; shape, dtype: of an entry of a list."""
        back = self.back
        replace_in(block, self.made, [near(self.made, "{} = np.empty(({},), np.int64)", self.sizes, back.count)])
        taken = {self.pop.name: Rows(rows, self.size, back.index, shape, dtype)}
        back.block[:] = [near(self.pop, "{} = {}[{}]", self.size, self.sizes, back.index),
                         *(m for s in back.block if s is not self.pop for m in in_rows(s, taken))]
        back.range = (back.count,)
