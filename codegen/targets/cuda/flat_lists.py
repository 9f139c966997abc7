# SPDX-License-Identifier: Apache-2.0
"""A pass's list of lists as one list of all entries, and one of how many each has: what a thread can have.

Lists are filled at their end and emptied from there, so that one after the other they may as well be one.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, n):
...     kept = []
...     for b in range(n):
...         outer = []
...         for k in range(5):
...             inner = []
...             inner.append(x[b])
...             outer.append(inner)
...         kept.append(outer)
...     for b in range(n - 1, -1, -1):
...         mine = kept.pop()
...         for k in range(5):
...             last = mine.pop()
...             while len(last) > 0:
...                 x[b] += last.pop()''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "n": ("int64", 0)})
>>> flatten_lists(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, n):
    kept = []
    kept_counts = []
    for b in range(n):
        outer = []
        outer_counts = []
        for k in range(5):
            inner_count = 0
            outer.append(x[b])
            inner_count += 1
            outer_counts.append(inner_count)
        kept.append(outer)
        kept_counts.append(outer_counts)
    for b in range(n - 1, -1, -1):
        mine = kept.pop()
        mine_counts = kept_counts.pop()
        for k in range(5):
            last_count = mine_counts.pop()
            while last_count > 0:
                last_count -= 1
                x[b] += mine.pop()
            while last_count > 0:
                last_count -= 1
                last_left = mine.pop()

Source: G. Blelloch, Vector Models for Data-Parallel Computing, 1990, chapter 4 (segmented vectors).
"""
from typing import NamedTuple

from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.build import quoted, statement
from gradscribe.codegen.loops.form import (
    JUMPS,
    UNKNOWN,
    Call,
    Expr,
    Function,
    Let,
    ListOf,
    Name,
    Statement,
    Type,
    all_blocks,
    all_names,
    blocks,
    change,
    rebuilt,
    set_by,
    statements,
    unused,
)
from gradscribe.codegen.loops.types import type_of
from gradscribe.codegen.targets.cuda.lists import appended, list_call, list_use, popped, pops_in


class Nested(NamedTuple):
    """inner, outer: a list of a pass's inner loop, and the one that has it; holder: the list of the outer ones, if any;
    mine: {the outer one, or a name for what the holder gives: the names for what that gives}.
    """
    inner: str
    outer: str
    holder: str | None
    mine: dict


class Uses(NamedTuple):
    """What is done with a list: the statements that make it, append to it and take from it; the lists that give it, and
    those that it is put into.
    """
    made: list
    puts: list
    pops: list
    given_by: list
    put_in: list

    def are(self, made: int, puts: int | None, put_in: int) -> bool:
        """Whether a list is made, filled and put into another so often; puts: None if that does not matter."""
        return (len(self.made), len(self.put_in)) == (made, put_in) and puts in (None, len(self.puts))


def flatten_lists(function: Function) -> None:
    """Changes a function in place."""
    while (found := _Lists(function).nested()) is not None:
        _Flat(function, found).run()


class _Lists:
    def __init__(self, function):
        self.function, self.blocks = function, {s: block for block in all_blocks(function) for s in block}
        self.sets, self.uses = {}, {}
        for s in statements(function.block):
            for name in set_by(s):
                self.sets.setdefault(name, []).append(s)
            for use in uses_in(s):
                self.uses.setdefault(use.name, []).append(use)

    def nested(self):
        """A Nested of `outer.append(inner)`, None where there is none, or where lists are used otherwise."""
        puts = (s for s in statements(self.function.block) if isinstance(appended(s)[1], Name))
        return next(filter(None, map(self.of, puts)), None)

    def of(self, put):
        outer, inner = put.value.owner.id, put.value.args[0].id
        of_inner, of_outer = self.of_list(inner), self.of_list(outer)
        if of_inner is None or of_outer is None or not of_inner.are(1, None, 1) or of_inner.pops or of_inner.given_by \
                or not of_outer.are(1, 1, len(of_outer.put_in[:1])) or of_outer.given_by or \
                self.blocks[put] is not self.blocks[of_inner.made[0]]:
            return None
        holder, takers = next(iter(of_outer.put_in), None), {outer: of_outer}
        if holder is None and self.blocks[of_outer.made[0]] is self.function.block:
            return None
        if holder is not None:
            of_holder = self.of_list(holder)
            if of_outer.pops or of_holder is None or not of_holder.are(1, 1, 0) or of_holder.given_by:
                return None
            takers = {name: self.taken(name, holder) for name in map(popped_as, of_holder.pops)}
        if None in takers.values():
            return None
        mine = {name: list(map(popped_as, found.pops)) for name, found in takers.items()}
        known = all(self.taken(last, name) is not None for name, each in mine.items() for last in each)
        return Nested(inner, outer, holder, mine) if known else None

    def taken(self, name, source):
        """The uses of what a list gives, None where it is anything else as well."""
        found = self.of_list(name)
        return found if found is not None and found.are(0, 0, 0) and found.given_by == [source] else None

    def of_list(self, name):
        """The Uses of a list; None where it is used otherwise."""
        sets, uses = self.sets.get(name, ()), self.uses.get(name, ())
        made, given_by = [s for s in sets if isinstance(s, Let) and s.value == ListOf(())], [
            popped(s) for s in sets if popped(s) is not None]
        kinds: dict = {"append": [], "pop": [], "put": [], "len": []}
        for use in uses:
            kind = list_use(use)
            if kind is None:
                return None
            kinds[kind].append(use.statement)
        return Uses(made, kinds["append"], kinds["pop"], given_by, [s.value.owner.id for s in kinds["put"]]) if len(
            made) + len(given_by) == len(sets) else None


def popped_as(s: Statement) -> str | None:
    """The name that gets the last entry of a list, where one does."""
    return s.name if popped(s) is not None else None


class _Flat:
    """count: {list of entries: how many it has}; counts: {list of lists: the list of how many each has}; of: {list of
    entries: that in which they are}; kind: of an entry.
    """

    def __init__(self, function, found):
        self.function, self.found, self.taken = function, found, all_names(function)
        self.kind = next((type_of(value, function.types) for to, value in map(appended, statements(function.block))
                          if to == found.inner), UNKNOWN)
        self.counts = {n: self.fresh(f"{n}_counts", UNKNOWN) for n in dict.fromkeys(
            [found.holder, found.outer, *found.mine]) if n}
        self.of = {last: name for name, each in found.mine.items() for last in each}
        self.count = {n: self.fresh(f"{n}_count", Type("int64", 0)) for n in (found.inner, *self.of)}

    def fresh(self, name, kind):
        made = unused(name, self.taken)
        self.function.types[made] = kind
        return made

    def run(self):
        self.block(self.function.block)

    def block(self, block):
        out, left = [], []
        for s in block:
            out += self.statement(s, left)
        for last in left:               # entries that nothing took
            rest = statement("while {} > 0:", self.count[last])
            rest.block = [statement("{} -= 1", self.count[last]), statement(
                "{} = {}.pop()", self.fresh(f"{last}_left", self.kind), self.of[last])]
            for s in statements([rest]):
                s.origin = block[-1].origin
            out.insert(len(out) - isinstance(out[-1], JUMPS), rest)
        block[:] = out

    def statement(self, s, left):
        """The statements in the place of one; left: the lists of entries that its block takes are added."""
        found, counts = self.found, self.counts

        def made(template, *given):
            new = statement(template, *given)
            new.origin = s.origin
            return new
        if isinstance(s, Let) and s.value == ListOf(()):
            if s.name in (found.holder, found.outer):
                return [s, made("{} = []", counts[s.name])]
            if s.name == found.inner:
                return [made("{} = 0", self.count[s.name])]
        to, value = appended(s)
        if to == found.inner:
            s.value = quoted("{}.append({})", found.outer, value)
            return [s, made("{} += 1", self.count[to])]
        if to == found.outer:
            return [made("{}.append({})", counts[to], self.count[found.inner])]
        if to is not None and to == found.holder:
            return [s, made("{}.append({})", counts[to], counts[value.id])]
        source = popped(s)
        if source is not None and source == found.holder:
            return [s, made("{} = {}.pop()", counts[s.name], counts[source])]
        if source in found.mine:
            left.append(s.name)
            return [made("{} = {}.pop()", self.count[s.name], counts[source])]
        for block in blocks(s):
            self.block(block)
        taken = [name for name in pops_in(s) if name in self.of]
        change(s, self.value)
        return [*(made("{} -= 1", self.count[name]) for name in taken), s]

    def value(self, e: Expr) -> Expr:
        e = rebuilt(e, self.value)
        if isinstance(e, Call) and e.function == "len" and isinstance(e.args[0], Name):
            name = e.args[0].id
            return Name(self.count[name]) if name in self.count else Call("len", (Name(self.counts[name]),)) if \
                name in self.counts else e
        if list_call(e) == "pop" and e.owner.id in self.of:
            return quoted("{}.pop()", self.of[e.owner.id])
        return e
