# SPDX-License-Identifier: Apache-2.0
"""Flattening of lists of lists: one list of all entries and one list of lengths, which the memory of a thread can hold.

Lists are filled and emptied at their end, so the inner lists can follow each other in one list.

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

from gradscribe.codegen.loops.analysis.def_use import DefUse
from gradscribe.codegen.loops.build import quoted
from gradscribe.codegen.loops.form import (
    JUMPS,
    UNKNOWN,
    Function,
    Let,
    ListOf,
    Name,
    Type,
    all_names,
    blocks,
    change,
    statements,
    unused,
)
from gradscribe.codegen.loops.lists import appended, list_use, near, popped, pops_in, with_lists
from gradscribe.codegen.loops.types import type_of


class Nested(NamedTuple):
    """inner, outer: a list of an inner loop, and the list that it is appended to; holder: the list of outer lists, if
    any; mine: {outer, or a name of a list popped from the holder: the names of the lists popped from it}.
    """
    inner: str
    outer: str
    holder: str | None
    mine: dict


def flatten_lists(function: Function) -> None:
    """Changes a function in place."""
    while (found := _Lists(function).nested()) is not None:
        _Flat(function, found).block(function.block)


class _Lists:
    def __init__(self, function):
        self.function, self.of = function, DefUse(function)

    def nested(self):
        """The Nested of an `outer.append(inner)`; None where there is none, or where lists have other uses."""
        puts = (s for s in self.of.at if isinstance(appended(s)[1], Name))
        return next(filter(None, map(self.put, puts)), None)

    def put(self, s):
        outer, inner = s.value.owner.id, s.value.args[0].id
        of_inner = self.uses(inner, made=1, given=0, put=1, pop=0)
        of_outer = self.uses(outer, made=1, given=0, append=1)
        if of_inner is None or of_outer is None or len(of_outer["put"]) > 1 or self.of.blocks[s] is not self.of.blocks[
                of_inner["made"][0]]:
            return None
        holder, takers = None, {outer: of_outer}
        if of_outer["put"]:
            holder = of_outer["put"][0].value.owner.id
            of_holder = self.uses(holder, made=1, given=0, append=1, put=0)
            if of_outer["pop"] or of_holder is None:
                return None
            takers = self.taken(of_holder)
        elif self.of.blocks[of_outer["made"][0]] is self.function.block:
            return None
        each = [self.taken(found) for found in takers.values() if found is not None]
        if len(each) < len(takers) or any(None in last.values() for last in each):
            return None
        return Nested(inner, outer, holder, dict(zip(takers, map(list, each))))

    def taken(self, uses):
        """{name of a list popped from this one: its uses, None if it has others}"""
        names = [s.name if popped(s) else None for s in uses["pop"]]
        return {name: self.uses(name, made=0, given=1, append=0, put=0) for name in names}

    def uses(self, name, **times):
        """The uses of a list, {kind: the statements}; None if it has other uses, or not as many as `times` says."""
        found = {"made": [], "given": [], "append": [], "put": [], "pop": [], "len": [], None: []}
        for s in self.of.sets.get(name, ()):
            found["given" if popped(s) else "made" if isinstance(s, Let) and s.value == ListOf(()) else None].append(s)
        for use in self.of.uses.get(name, ()):
            found[list_use(use)].append(use.statement)
        return found if not found[None] and all(len(found[kind]) == n for kind, n in times.items()) else None


class _Flat:
    """count: {list of entries: its length}; counts: {list of lists: the list of their lengths}; of: {list of entries:
    the flat list that holds them}; kind: the type of an entry.
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

    def block(self, block):
        out, left = [], []
        for s in block:
            out += self.statement(s, left)
        for last in left:               # entries that were not popped
            rest = near(block[-1], "while {} > 0:", self.count[last])
            rest.block = [near(rest, "{} -= 1", self.count[last]),
                          near(rest, "{} = {}.pop()", self.fresh(f"{last}_left", self.kind), self.of[last])]
            out.insert(len(out) - isinstance(out[-1], JUMPS), rest)
        block[:] = out

    def statement(self, s, left):
        """The statements that replace one; lists of entries that it pops are added to `left`."""
        found, counts, count = self.found, self.counts, self.count
        if isinstance(s, Let) and s.value == ListOf(()):
            if s.name in (found.holder, found.outer):
                return [s, near(s, "{} = []", counts[s.name])]
            if s.name == found.inner:
                return [near(s, "{} = 0", count[s.name])]
        to, value = appended(s)
        if to is not None and to == found.holder:
            return [s, near(s, "{}.append({})", counts[to], counts[value.id])]
        if to == found.outer:
            return [near(s, "{}.append({})", counts[to], count[found.inner])]
        if to == found.inner:
            return [near(s, "{}.append({})", found.outer, value), near(s, "{} += 1", count[to])]
        source = popped(s)
        if source is not None and source == found.holder:
            return [s, near(s, "{} = {}.pop()", counts[s.name], counts[source])]
        if source in found.mine:
            left.append(s.name)
            return [near(s, "{} = {}.pop()", count[s.name], counts[source])]
        for block in blocks(s):
            self.block(block)
        less = [near(s, "{} -= 1", count[name]) for name in pops_in(s) if name in self.of]
        change(s, lambda e: with_lists(e, self.length, self.last))
        return [*less, s]

    def length(self, name):
        return Name(self.count[name]) if name in self.count else quoted("len({})", self.counts[name]) if \
            name in self.counts else None

    def last(self, name):
        return quoted("{}.pop()", self.of[name]) if name in self.of else None
