# SPDX-License-Identifier: Apache-2.0
"""Loop fusion: loops over the same entries become one loop.

Lowering writes a loop for each array statement.  A loop is fused with an earlier one of the same length if no entry is
read before it is written: both access whatever one of them writes at the index of the loop.  On the way up the loop
passes statements that are independent of it; allocations and numbers that it needs move with it.  Then inner loops are
fused in the same way.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = x[i] * y[i]
...     total = 0.0
...     for i in range(n):
...         total += exp(z[i])
...     return (total,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1)})
>>> Fusion(function).run()
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    total = 0.0
    for i in range(n):
        z[i] = x[i] * y[i]
        total += exp(z[i])
    return (total,)

Source: K. Kennedy, K. McKinley, Typed Fusion with Applications to Parallel and Sequential Code Generation, 1993.
"""

from collections.abc import Callable

from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.effects import ELEMENTARY, Effects, reads_only
from gradscribe.codegen.loops.analysis.liveness import read_after
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Const,
    Expr,
    For,
    Function,
    Length,
    Let,
    Load,
    Name,
    Op,
    Store,
    Unpack,
    blocks,
    change,
    expressions,
    names_in,
    renamed,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import is_check, is_counted, is_fill

ARRAYS = 16                             # at most so many, which LLVM still checks for overlap at run time
LONGEST = 1000                          # statements of a loop's body
FAR = 60                                # at most so many statements that a loop moves past


class Fusion:
    """touched: {statement, or (loop, "body"): its effects} and manners: {loop: its manner}, kept up to date; hoped:
    arrays that vanish if the loops that use them are fused.
    """

    def __init__(self, function: Function, allowed: Callable[[For, For], bool] | None = None):
        """allowed: what decides whether two loops are fused, if that is possible, in place of what is best for LLVM."""
        self.function, self.arrays, self.allowed = function, Arrays(function), allowed
        self.touched: dict = {}
        self.manners: dict = {}
        self.hoped: set = set()

    def run(self) -> None:
        """Changes the function in place."""
        self.function.block = self.block(self.function.block)

    def block(self, block):
        """A block with its loops fused, inner ones included."""
        loops = {s: s.block for s in block if is_counted(s)}
        for hoped in (self.used_alike(block), set()):
            self.hoped = hoped
            for s, inner in loops.items():
                s.block = list(inner)
            out = self.gathered(block)
            if not any(len(s.block) > len(loops[s]) and self.crowded(self.effects(s, "body")) for s in out
                       if s in loops):
                break
            self.touched, self.manners = {}, {}
        for s in out:
            for inner in blocks(s):
                inner[:] = self.block(inner)
        return out

    def gathered(self, block):
        out = []
        for s in block:
            if not (is_counted(s) and self.joined(s, out)):
                out.append(s)
        return out

    def used_alike(self, block):
        """Arrays that only loops of one head use: they vanish if these are fused."""
        heads = {}
        for s in block:
            if is_counted(s):
                for name, times in self.effects(s, "body").counts.items():
                    found = heads.setdefault(name, {})
                    found[s.index, s.range] = found.get((s.index, s.range), 0) + times
        return {n for n, found in heads.items() if len(found) == 1 and n in self.arrays.own and
                self.arrays.made[n].how == "empty" and len(self.arrays.uses[n]) == sum(found.values())}

    def crowded(self, *bodies, hoped=frozenset()):
        """Whether more arrays remain than LLVM checks for overlap."""
        if self.allowed is not None:
            return False
        names = set().union(*(where.keys() - hoped for body in bodies for where in (body.reads, body.writes)))
        return len(names) > ARRAYS and sum(not self.vanishes(n, *bodies) for n in names) > ARRAYS

    def vanishes(self, name, *bodies):
        """Whether only these loops use an array."""
        return name in self.arrays.own and self.arrays.made[name].how == "empty" and \
            len(self.arrays.uses[name]) == sum(body.counts.get(name, 0) for body in bodies)

    def joined(self, loop, out):
        """Fuse a loop with an earlier one, after what it needs has moved before that; whether that was possible."""
        effects, along = self.effects(loop), []
        for k in reversed(range(max(0, len(out) - FAR), len(out))):
            earlier, moving = out[k], [effects, *map(self.effects, along)]
            other = self.effects(earlier)
            if not other.known or not effects.known:
                return False
            if self.absorbed(earlier, loop, out[k + 1:]):
                out.remove(earlier)
                effects = self.effects(loop)
                continue
            if is_counted(earlier) and self.may_join(earlier, loop) and all(self.apart(m, other) for m in moving[1:]):
                other.and_then(effects)
                self.effects(earlier, "body").and_then(self.effects(loop, "body"))
                self.manners[earlier] = of_both(self.manner(earlier), self.manner(loop))
                earlier.block += loop.block
                for s in along:
                    out.remove(s)
                out[k:k] = along
                return True
            check = is_check(earlier)           # a check goes before what it guards
            if check or not all(self.apart(m, other) for m in moving):
                if not (check or isinstance(earlier, (Let, Alloc, Unpack)) or isinstance(
                        earlier, Store) and earlier.op is None or is_fill(earlier)):
                    return False
                along.insert(0, earlier)
        return False

    def apart(self, a, b):
        """Whether two statements commute; arrays that are not the function's own may alias."""
        own = self.arrays.own
        if (a.writes.keys() | b.writes.keys()) - own and (a.foreign(own) and b.foreign(own)):
            return False
        return not (a.written & (b.read | b.written)) and not (b.written & a.read)

    def effects(self, s, part=None):
        """The effects of a statement, or of a loop's body, cached until it is fused."""
        key = s if part is None else (s, part)
        if key not in self.touched:
            asks = isinstance(s, (Let, Store, Unpack)) and reads_only(s.value)
            self.touched[key] = Effects([s] if part is None else s.block, asks=asks)
        return self.touched[key]

    def manner(self, loop):
        if loop not in self.manners:
            self.manners[loop] = manner(loop)
        return self.manners[loop]

    def absorbed(self, fill, loop, between):
        """Move a loop that fills an array down into one that updates it, whose index it takes; whether it could."""
        if not is_counted(fill) or not is_fill(fill) or fill.range != loop.range:
            return False
        old, new, effects = fill.index, loop.index, self.effects(fill)
        waits = effects.writes.keys() | effects.names
        if not effects.known or not all(self.effects(s).known and not waits & self.effects(s).written and
                                        not effects.writes.keys() & self.effects(s).read for s in between):
            return False
        if old != new:
            if new in effects.read | effects.written or read_after(self.function, fill, {old}):
                return False
            fill.index = new
            for s in statements(fill.block):
                change(s, lambda e: renamed(e, {old: new}))
        keys = fill, (fill, "body"), loop, (loop, "body")
        for key in keys:
            self.touched.pop(key, None)
        if not self.may_join(fill, loop):
            return False
        loop.block = fill.block + loop.block
        for key in keys:
            self.touched.pop(key, None)
        self.manners.pop(loop, None)
        return True

    def may_join(self, first, second):
        if first.range != second.range or first.index != second.index:
            return False
        if len(first.block) + len(second.block) > LONGEST:
            return False
        a, b = self.effects(first, "body"), self.effects(second, "body")
        if not (a.known and b.known) or a.whole or b.whole or self.allowed is None and not alike(
                self.manner(first), self.manner(second)):
            return False
        sets = a.sets | b.sets
        arrays = a.reads.keys() | a.writes.keys() | b.reads.keys() | b.writes.keys()
        if not (a.writes.keys() | b.writes.keys()) <= self.arrays.own or self.crowded(a, b, hoped=self.hoped):
            return False
        if sets & (names_in(first.range[0]) | arrays | {first.index}) or a.sets & b.names or b.sets & a.names or \
                arrays & (a.names | b.names):
            return False
        for name in a.writes.keys() & (b.reads.keys() | b.writes.keys()) | b.writes.keys() & a.reads.keys():
            found = [i for where in (a.reads, a.writes, b.reads, b.writes) for i in where.get(name, ())]
            if not any(moves_with(first.index, found[0][k]) and all(i[k] == found[0][k] for i in found)
                       for k in range(len(found[0]))):
                return False
        return self.allowed is None or self.allowed(first, second)


def moves_with(index: str, place: Expr) -> bool:
    """Whether an index differs in each pass of a loop: its index, alone or plus or minus a literal."""
    if isinstance(place, Op) and place.op in ("+", "-") and len(place.args) == 2 and isinstance(place.args[1], Const):
        place = place.args[0]
    return place == Name(index)


# --- profitability ----------------------------------------------------------------------------------------------------

def alike(first, second):
    """Whether fusion of two loops is profitable, by their manners.

    LLVM vectorises innermost loops without indirect indices and without recurrences; a loop that it cannot vectorise
    would prevent it for the other.  A call of an elementary function is vectorised in an innermost loop only.
    """
    (plain, deep, dear), (plain_2, deep_2, dear_2) = first, second
    return plain == plain_2 and (deep == deep_2 or not (dear_2 if deep else dear))


def of_both(first, second):
    """The manner of two fused loops."""
    return first[0] and second[0], first[1] or second[1], first[2] or second[2]


def manner(loop: For) -> tuple:
    """(can be vectorised, has inner loops, calls elementary functions)."""
    plain, deep, dear = True, False, False
    for s in statements(loop.block):
        deep = deep or isinstance(s, For)
        if isinstance(s, Let) and s.name in names_in(s.value):
            plain = plain and s.name not in names_in(added(s.name, s.value))
        for e in expressions(s):
            for part in walk(e):
                if isinstance(part, Load):
                    plain = plain and not any(isinstance(n, (Load, Length)) for p in part.index for n in walk(p))
                elif isinstance(part, Call):
                    dear = dear or part.function in ELEMENTARY
    return plain, deep, dear


def added(name, value):
    """The term that a value adds to the number of this name; the value itself if it is no such sum."""
    if isinstance(value, Op) and value.op in ("+", "-") and len(value.args) == 2:
        left, right = value.args
        if left == Name(name):
            return right
        if value.op == "+" and right == Name(name):
            return left
    return value
