# SPDX-License-Identifier: Apache-2.0
"""Tables: values that inner loops compute again in each pass of an outer loop are computed once, into an array.

A coefficient such as `exp(0.1 * k[i])` in a loop over time is the same at all times.  If it calls an elementary
function, it becomes an array that is filled before the loop, with an entry for each pass of the loops it depends on.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(u, k, steps):
...     n = u.shape[0]
...     if k.shape[0] != n:
...         raise ValueError('lengths')
...     v = np.zeros((n,), np.float64)
...     for t in range(steps):
...         for i in range(n):
...             v[i] += exp(0.1 * k[i]) * u[i]
...     return (v,)''')
>>> function = from_tree(tree.body[0], {"u": ("float64", 1), "k": ("float64", 1), "steps": ("int64", 0)})
>>> tabulate(function)
>>> print(ast.unparse(to_tree(function)))
def f(u, k, steps):
    n = u.shape[0]
    if k.shape[0] != n:
        raise ValueError('lengths')
    v = np.zeros((n,), np.float64)
    table = np.empty((n,), np.float64)
    for i in range(n):
        table[i] = exp(0.1 * k[i])
    for t in range(steps):
        for i in range(n):
            v[i] += table[i] * u[i]
    return (v,)

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.5 (loop-invariant expressions); D. Padua, M.
Wolfe, Advanced compiler optimizations for supercomputers, 1986 (scalar expansion).
"""
import functools
from collections import Counter

from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.analysis.values import Analyses, in_bounds, is_computed, with_values
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Call,
    Const,
    For,
    Function,
    Let,
    Load,
    Name,
    Op,
    Store,
    Type,
    Update,
    all_blocks,
    all_names,
    names_in,
    rebuilt,
    set_by,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.invariants import is_elementary
from gradscribe.codegen.loops.types import REAL, type_of


def tabulate(function: Function) -> None:
    """Changes a function in place."""
    if not any(is_elementary(n) for s in statements(function.block) if isinstance(s, (Let, Store, Update))
               for n in walk(s.value)):
        return
    for block in list(all_blocks(function)):
        for loop in [s for s in block if isinstance(s, For) and s.kind == "range" and s.count is not None]:
            _Tables(function, block, loop).run()


class _Tables:
    """The tables of a loop; block: the one that holds the loop."""

    def __init__(self, function, block, loop):
        self.function, self.block, self.loop = function, block, loop
        self.set, self.found, self.made, self.asked = set_in([loop]), {}, [], Analyses(function)

    @functools.cached_property
    def written(self):
        """The families of the arrays that the loop writes; None if that is unknown."""
        effects = Effects(self.loop.block, branches=True, asks=True, raises=True)
        return self.asked.families(effects.writes) if effects.known else None

    def run(self):
        self.inside(self.loop.block, [], {})
        at = self.block.index(self.loop)
        self.block[at:at] = self.made

    def inside(self, block, loops, lets):
        """Replace values in statements that every pass of these loops runs; lets: {number that is set there: value}."""
        lets = dict(lets)
        for s in block:
            if isinstance(s, For):
                if s.kind == "range" and s.count is not None:
                    self.inside(s.block, [*loops, s], lets)
            elif isinstance(s, (Let, Store, Update)):
                if loops and any(is_elementary(n) for n in walk(s.value)):
                    s.value = self.without(s.value, s, loops, lets)
                if isinstance(s, Let):
                    lets[s.name] = s.value

    def without(self, e, s, loops, lets):
        """An expression with calls replaced by entries of tables."""
        if is_elementary(e):
            entry = self.entry(with_values(e, {n: v for n, v in lets.items() if self.once[n] == 1}), s, loops)
            if entry is not None:
                return entry
        return rebuilt(e, lambda part: self.without(part, s, loops, lets)) if isinstance(e, (Op, Call)) else e

    @functools.cached_property
    def once(self):
        """{name: how often the loop sets it}"""
        return Counter(n for s in statements([self.loop]) for n in set_by(s))

    def entry(self, e, s, loops):
        """The entry of a table for the value of an expression; None if it may not or should not have one."""
        over = [x for x in loops if x.index in names_in(e)]
        dtype = type_of(e, self.function.types).dtype
        if not over or dtype not in REAL or not is_computed(e, is_elementary) or not (
                names_in(e) & self.set) <= {x.index for x in over} or self.written is None:
            return None
        counts, loads = {x.index: x.count for x in over}, [n for n in walk(e) if isinstance(n, Load)]
        if not self.written.isdisjoint(self.asked.families(n.array.id for n in loads)):
            return None
        lasting = self.asked.known.lasting(counts.values()) and all(
            names_in(n).isdisjoint(self.set) and self.asked.ranges.at_least(n, 0, self.loop) for n in counts.values())
        there = lasting and all(in_bounds(n, s, counts, self.asked) for n in loads)
        as_large = any(goes_over(n, over) for n in loads) or any(
            kind and Counter(counts.values()) <= Counter(kind[1]) for kind in self.asked.known.kinds.values())
        if not there or not as_large or not self.gains(e):
            return None
        index = tuple(Name(x.index) for x in over)
        key = e, tuple(counts.values())
        if key not in self.found:
            name = self.found[key] = unused("table", all_names(self.function) | set(self.found.values()))
            self.function.types[name] = Type(dtype, len(over))
            fill = Store(Load(Name(name), index), e, None, s.origin)
            for x in reversed(over):
                fill = For(x.index, (x.count,), [fill], "range", s.origin)
            self.made += [Alloc(name, "empty", tuple(counts.values()), (Attribute(Name("np"), dtype),), s.origin), fill]
        return Load(Name(self.found[key]), index)

    def gains(self, e):
        """Whether to fill and read a table costs less than to compute; assumed if the passes are unknown."""
        passes, again = self.loop.count, costs.arithmetic(e)
        return not isinstance(passes, Const) or passes.value * again > \
            again + costs.MACHINE.store + passes.value * costs.MACHINE.load


def goes_over(e, loops) -> bool:
    """Whether each loop's index has its own axis, so that the array has as many entries as the loops have passes."""
    return len(e.index) >= len(loops) and all(sum(x.index in names_in(p) for p in e.index) == 1 for x in loops) and all(
        sum(x.index in names_in(p) for x in loops) <= 1 for p in e.index)
