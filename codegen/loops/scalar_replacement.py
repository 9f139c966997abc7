# SPDX-License-Identifier: Apache-2.0
"""Scalar replacement: short arrays of known length become numbers.

An array of a few entries that is allocated here and accessed at literal indices only needs no memory: each entry is a
number with a name.  Loops of a few passes over such arrays are unrolled first.  An alias `other = array` copies the
numbers; that is not possible if the array is used afterwards, since a write to one would not change the other.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     v = np.empty((2,), np.float64)
...     for j in range(2):
...         v[j] = x[j] * 2.0
...     return (v[0] + v[1],)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
>>> replace_short_arrays(function)
>>> print(ast.unparse(to_tree(function)))
def f(x):
    v_0 = x[0] * 2.0
    v_1 = x[1] * 2.0
    return (v_0 + v_1,)

Source: D. Callahan, S. Carr, K. Kennedy, Improving register allocation for subscripted variables, 1990.
"""
import itertools
import math
from typing import NamedTuple

from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.form import (
    Alloc,
    Break,
    Call,
    Const,
    Continue,
    For,
    Function,
    Let,
    Name,
    Op,
    Return,
    Store,
    Type,
    While,
    all_blocks,
    all_names,
    blocks,
    change,
    copied,
    holders,
    names_of,
    rebuilt,
    set_by,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.shapes import around, as_number, castable, entries_changed, replace_in

ENTRIES = 9                             # an array of more entries stays an array
PASSES = 4                              # a loop of more passes is not unrolled
UNROLLED = 64                            # at most so many statements after unrolling


def replace_short_arrays(function: Function, in_passes: bool = False) -> None:
    """Change a function in place; in_passes: replace only arrays that a loop allocates in each of its passes."""
    found = _Short(function, in_passes)
    candidates = found.candidates()
    loops = found.loops(candidates)
    if loops:
        function.block = _unrolled(function.block, loops)
        found = _Short(function, in_passes)
        left = found.candidates(False)
        candidates = {n: kind for n, kind in candidates.items() if n in left}
    if candidates:
        found.replaced(candidates)


class Kind(NamedTuple):
    shape: tuple
    dtype: str


class _Short:
    """sets, uses: {name: the statements that set it, its uses}; order: {statement: its position}; fits_in: {loop:
    whether it may be unrolled}.
    """

    def __init__(self, function, in_passes):
        self.function, self.in_passes, self.above = function, in_passes, holders(function)
        self.sets, self.uses, self.fits_in = {}, {}, {}
        self.order = {s: k for k, s in enumerate(statements(function.block))}
        for s in self.order:
            for name in set_by(s):
                self.sets.setdefault(name, []).append(s)
            for use in uses_in(s):
                self.uses.setdefault(use.name, []).append(use)

    # candidates

    def candidates(self, in_loops=True):
        """{name: Kind} of arrays that may become numbers, aliases included."""
        found, again = {}, True
        for name, sets in self.sets.items():
            made = sets[0]
            if len(sets) == 1 and isinstance(made, Alloc) and castable(made) and made.how != "full" and all(
                    isinstance(d, Const) for d in made.shape):
                found[name] = Kind(tuple(d.value for d in made.shape), made.dtype)
        while again:                            # aliases
            again = False
            for name, sets in self.sets.items():
                values = [s.value for s in sets if isinstance(s, Let) and isinstance(s.value, Name)]
                kinds = {found.get(v.id) for v in values}
                if name not in found and name not in self.function.params and len(values) == len(sets) and \
                        len(kinds) == 1 and None not in kinds:
                    found[name] = kinds.pop()
                    again = True
        found = {n: kind for n, kind in found.items() if 0 < math.prod(kind.shape) <= ENTRIES}
        while True:
            lost = {n for n in found if not all(self.fits(u, found, in_loops) for u in self.uses.get(n, ()))}
            lost |= {n for n in found for s in self.sets[n] if isinstance(s, Let) and s.value.id not in found}
            if self.in_passes:
                lost |= self.shared(found)
            if not lost:
                return found
            found = {n: kind for n, kind in found.items() if n not in lost}

    def shared(self, found):
        """Arrays that passes share, and those with an alias that does not become numbers."""
        return {n for n in found if any(
            isinstance(s, Alloc) and not any(isinstance(a, (For, While)) for a in around(s, self.above))
            for s in self.sets[n]) or any(not u.around and isinstance(u.statement, Let) and
                                          u.statement.name not in found for u in self.uses.get(n, ()))}

    def fits(self, use, found, in_loops):
        if use.role == "entry":
            shape = found[use.name].shape
            return len(use.parent.index) == len(shape) and all(
                self.place(p, n, use.statement, in_loops) for p, n in zip(use.parent.index, shape))
        return not use.around and isinstance(use.statement, Let) and use.statement.name in found and \
            self.is_last_use(use.statement, use.name)

    def place(self, part, n, s, in_loops):
        """Whether an index is a literal within an axis, or depends on the index of a loop that is unrolled."""
        value = literal(part)
        if value is not None:
            return 0 <= value < n
        names = [m.id for m in walk(part) if isinstance(m, Name)]
        if not in_loops or len(names) != 1 or not (isinstance(part, Name) or isinstance(part, Op) and
                                                   len(part.args) == 2):
            return False
        loop = self.loop_of(s, names[0])
        if loop is not None and loop not in self.fits_in:
            self.fits_in[loop] = may_be_unrolled(loop)
        if loop is None or not self.fits_in[loop]:
            return False
        ends = [literal(part, {names[0]: k}) for k in (0, loop.count.value - 1)]
        return None not in ends and all(0 <= e < n for e in ends)

    def loop_of(self, s, index):
        return next((a for a in around(s, self.above) if isinstance(a, For) and a.index == index), None)

    def loop_around(self, s):
        """The innermost loop around a statement, or None."""
        return next((a for a in around(s, self.above) if isinstance(a, (For, While))), None)

    def is_last_use(self, alias, name):
        """Whether, after other = name, the array is not used as `name` before it is allocated again."""
        loop, at = self.loop_around(alias), self.order[alias]
        first = self.order.get(loop, -1)
        return all(self.loop_around(s) is loop and self.order[s] < at for s in self.sets[name]) and all(
            first <= self.order[u.statement] <= at for u in self.uses[name])

    def loops(self, found):
        """The loops whose indices occur in indices of these arrays."""
        return {loop for name in found for u in self.uses.get(name, ()) if u.role == "entry" for part in u.parent.index
                for m in walk(part) if isinstance(m, Name) and (loop := self.loop_of(u.statement, m.id))}

    # numbers

    def replaced(self, found):
        """Replace each entry of the arrays by a number."""
        function, names = self.function, {}
        taken = all_names(function)
        for name, (shape, _) in found.items():
            for place in places(shape):
                new = unused("_".join([name, *map(str, place)]), taken)
                names[name, place] = new
                function.types[new] = Type(function.types[name].dtype, 0)
        read = {(name, tuple(map(literal, u.parent.index))) for name in found for u in self.uses.get(name, ())
                if u.role == "entry"}
        for block in list(all_blocks(function)):
            for s in list(block):
                if isinstance(s, Store) and isinstance(s.entry.array, Name) and s.entry.array.id in found:
                    name = s.entry.array.id
                    number = names[name, tuple(map(literal, s.entry.index))]
                    replace_in(block, s, [as_number(s, number, found[name].dtype, function.types)])
        for name in found:
            entries_changed(function.block, name, lambda e: Name(names[e.array.id, tuple(map(literal, e.index))]))
        sources = {s.value.id for n in found for s in self.sets[n] if isinstance(s, Let)}
        for name, (shape, dtype) in found.items():
            for s in self.sets[name]:
                block = next(b for b in all_blocks(function) if s in b)
                lines = []
                for place in places(shape):
                    number = names[name, place]
                    if isinstance(s, Let):
                        value = Name(names[s.value.id, place])
                    elif name not in sources and (name, place) not in read or set_before_read(block, s, number):
                        continue
                    else:
                        value = first_value(s, dtype)
                    lines.append(Let(number, value, s.origin))
                replace_in(block, s, lines)


def set_before_read(block: list, made: Alloc, name: str) -> bool:
    """Whether a later statement of the block sets a number before anything reads it."""
    for s in block[block.index(made) + 1:]:
        if isinstance(s, Let) and s.name == name:
            return name not in names_of(s)
        if name in set_in([s]) or any(name in names_of(i) for i in statements([s])):
            return False
    return False


# --- loop unrolling ---------------------------------------------------------------------------------------------------

def may_be_unrolled(loop: For) -> bool:
    count = loop.count
    return isinstance(count, Const) and 0 < count.value <= PASSES and loop.index not in set_in(loop.block) and not any(
        isinstance(s, (While, Break, Continue, Return, Alloc)) for s in statements(loop.block)) and \
        written(loop) <= UNROLLED


def written(loop: For) -> int:
    """The number of statements of a loop when it and the counted loops in it are unrolled."""
    total = sum(written(s) if isinstance(s, For) else 1 + sum(1 for _ in statements([s])) for s in loop.block)
    return total * (loop.count.value if isinstance(loop.count, Const) else PASSES)


def _unrolled(block, loops):
    out = []
    for s in block:
        for inner in blocks(s):
            inner[:] = _unrolled(inner, loops)
        if s not in loops:
            out.append(s)
            continue
        passes = range(s.count.value)
        for k in reversed(passes) if s.downward else passes:
            out += [substituted(inner, s.index, k) for inner in s.block]
    return out


def substituted(statement, name: str, value: int):
    """A copy of a statement with a literal substituted for a name, and constants folded."""
    def new(e):
        if isinstance(e, Name):
            return Const(value) if e.id == name else e
        e = rebuilt(e, new)
        known = literal(e) if isinstance(e, Op) and len(e.args) == 2 else None
        return e if known is None else Const(known) if known >= 0 else Op("neg", (Const(-known),))
    made = copied(statement)
    for s in statements([made]):
        change(s, new)
    return made


def places(shape: tuple) -> list:
    return list(itertools.product(*map(range, shape)))


def literal(e, known=None):
    """The value of an integer expression of literals and of names with a known value; or None."""
    if isinstance(e, Const):
        return e.value if type(e.value) is int else None
    if isinstance(e, Name):
        return (known or {}).get(e.id)
    if not isinstance(e, Op) or e.op not in ("neg", "+", "-", "*"):
        return None
    found = [literal(a, known) for a in e.args]
    if None in found:
        return None
    if e.op == "neg":
        return -found[0]
    left, right = found
    return left + right if e.op == "+" else left - right if e.op == "-" else left * right


def first_value(made: Alloc, dtype: str):
    """The value of an entry before it is set."""
    one = made.how == "ones"
    if dtype == "bool_":
        return Const(one)
    if dtype == "int64":
        return Const(int(one))
    value = Const(float(one))
    return value if dtype == "float64" else Call(f"np.{dtype}", (value,))
