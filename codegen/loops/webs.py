# SPDX-License-Identifier: Apache-2.0
"""Renaming of webs: independent live ranges of one name become different variables.

Lowering keeps the user's names, and the reverse sweep recomputes values of the forward one under the same names.  A web
is a maximal set of assignments and uses in which each use is with all the definitions that reach it; two webs of one
name are two variables.  The first keeps the name.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, n):
...     s = 0.0
...     for i in range(n):
...         t = x[i]
...         s = s + t
...     for i in range(n):
...         t = s * x[i]
...         x[i] = t
...     return s''')
>>> function = from_tree(tree.body[0], {})
>>> webs_apart(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, n):
    s = 0.0
    for i in range(n):
        t = x[i]
        s = s + t
    for i in range(n):
        t_1 = s * x[i]
        x[i] = t_1
    return s

Source: S. S. Muchnick, Advanced Compiler Design and Implementation (1997), 16.3.3.
"""
import itertools
from typing import Any, NamedTuple

from gradscribe.codegen.loops.form import (
    Alloc,
    Break,
    Continue,
    For,
    Function,
    If,
    Items,
    Let,
    Name,
    Unpack,
    Update,
    While,
    all_names,
    change,
    names_in,
    names_of,
    rebuilt,
    renamed,
    set_by,
    set_in,
)


class Site(NamedTuple):
    """An occurrence of a name: its use by a statement, or its definition.  A statement reads all at once."""
    statement: Any
    name: str
    sets: bool


def webs_apart(function: Function, loops_own: bool = False) -> None:
    """Rename webs in place; loop indices keep their names, with loops_own exclusively."""
    webs = _Webs(function)
    taken = all_names(function)
    kept = {webs.top(site) for site in webs.fixed}
    named: dict = {(site.name, "first"): site.name for site in webs.fixed} if loops_own else {}
    for site in webs.above:
        web = webs.top(site)
        if web not in named:
            name = site.name
            if (name, "first") in named and web not in kept:
                name = next(c for c in (f"{name}_{k}" for k in itertools.count(1)) if c not in taken)
                function.types[name] = function.types[site.name]
            taken.add(name)
            named[web] = named[site.name, "first"] = name
    reads: dict = {}
    sets: dict = {}
    for site in webs.above:
        name = named[webs.top(site)]
        if name != site.name:
            (sets if site.sets else reads).setdefault(site.statement, {})[site.name] = name
    for s in {*reads, *sets}:
        _rename(s, reads.get(s, {}), sets.get(s, {}))


def _rename(s, reads, sets):
    if isinstance(s, Unpack):
        s.targets = _renamed_targets(s.targets, reads, sets)
        s.value = renamed(s.value, reads)
        return
    if reads:
        change(s, lambda e: renamed(e, reads))
    if isinstance(s, (Let, Alloc, Update)):
        s.name = sets.get(s.name, s.name)
    elif isinstance(s, For):
        s.index = sets.get(s.index, s.index)


def _renamed_targets(target, reads, sets):
    if isinstance(target, Name):
        return Name(sets.get(target.id, target.id))
    if isinstance(target, Items):
        return rebuilt(target, lambda t: _renamed_targets(t, reads, sets))
    return renamed(target, reads)


class _Webs:
    """Reaching definitions and the webs that they form, found in one walk over the blocks, loops twice.

    reaching: {name: the sites that may have set it}; above: a union-find forest of sites, in the order of the walk;
    fixed: the sites of parameters and loop indices; left: for each loop around, what reaches its head and end by jumps.
    """

    def __init__(self, function):
        self.reaching, self.above, self.fixed, self.left = {}, {}, set(), []
        for p in function.params:
            self.fixed.add(self.set(None, p))
        self.block(function.block)

    def top(self, site):
        while self.above[site] != site:
            site = self.above[site]
        return site

    def meet(self, sites):
        first, *rest = map(self.top, sites)
        for other in rest:
            self.above[self.top(other)] = first

    def site(self, s, name, sets=False):
        site = Site(s, name, sets)
        self.above.setdefault(site, site)
        return site

    def set(self, s, name):
        site = self.site(s, name, True)
        self.reaching[name] = frozenset([site])
        return site

    def read(self, s, names):
        for name in sorted(names):
            if name in self.reaching:
                self.meet([*self.reaching[name], self.site(s, name)])

    def block(self, block):
        for s in block:
            self.statement(s)

    def statement(self, s):
        if isinstance(s, If):
            self.read(s, names_in(s.test))
            before = dict(self.reaching)
            self.block(s.block)
            after, self.reaching = self.reaching, before
            self.block(s.orelse)
            self.joined(after)
        elif isinstance(s, (For, While)):
            self.loop(s)
        elif isinstance(s, (Break, Continue)):
            self.left[-1].append(dict(self.reaching))
        elif isinstance(s, Update):
            self.read(s, names_in(s.value))
            if s.name in self.reaching:
                self.meet([*self.reaching[s.name], self.site(s, s.name, True)])
            self.set(s, s.name)
        else:
            self.read(s, names_of(s))
            for name in set_by(s):
                self.set(s, name)

    def loop(self, s):
        if isinstance(s, For):
            self.read(s, names_of(s))
        before = {n: self.reaching[n] for n in set_in([s]) if n in self.reaching}
        for _ in range(2):                          # definitions of a pass reach the next one
            self.left.append([])
            if isinstance(s, For):
                self.fixed.add(self.set(s, s.index))
            else:
                self.read(s, names_in(s.test))
            self.block(s.block)
            for other in self.left.pop():
                self.joined(other)
            self.joined(before)
        if isinstance(s, While):
            self.read(s, names_in(s.test))

    def joined(self, other):
        for name, found in other.items():
            here = self.reaching.get(name)
            if here is not found:
                self.reaching[name] = here | found if here else found
