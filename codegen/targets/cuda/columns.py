# SPDX-License-Identifier: Apache-2.0
"""Column sums in two kernels: blocks sum parts of the rows, then one thread for each column sums the blocks' parts.

A loop over rows inside one over columns would use only one thread for each column, and columns may be few.  So the rows
are distributed too: along x, the threads of a block take neighbouring columns, along y, rows.  The order of each sum is
the same in every call.
"""
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from gradscribe.codegen.loops.analysis.effects import SHOWN, Effects
from gradscribe.codegen.loops.build import node, quoted, statement
from gradscribe.codegen.loops.form import (
    Do,
    Expr,
    For,
    If,
    Items,
    Let,
    Load,
    Name,
    Store,
    Unpack,
    Update,
    copied,
    free_name,
    names_in,
    names_read,
    read_by,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import is_counted
from gradscribe.codegen.targets.cuda.form import numbered, strided
from gradscribe.codegen.targets.cuda.placement import Nest, Placement, is_short
from gradscribe.codegen.targets.cuda.threads import ThreadCode, identity, places_of, product


class Sum(NamedTuple):
    """target: the entry or scalar that is added to; name: of a thread's partial sum; parts: the array of all parts."""
    target: Expr
    name: str
    parts: str
    dtype: str


class Columns:
    """The column sums of a loop nest.  nest: that of `loop`; fresh: makes unused names.

    Attribute inner: the loop over rows, or None if there is none.
    """

    def __init__(self, nest: Nest, loop: For, placement: Placement, fresh: Callable[[str], str]):
        self.nest, self.loop, self.placement, self.order = nest, loop, placement, placement.order
        self.inner: Any = None
        self.sums: list = []
        index = {n.index for n in nest.loops}
        loops = [s for s in nest.body if isinstance(s, For)]
        if nest.free.numbers or nest.free.atomic or len(loops) != 1 or not is_counted(loops[0]) or is_short(
                loops[0]) or names_in(loops[0].range[0]) & (index | placement.held | set_in(nest.body)):
            return
        self.at = nest.body.index(loops[0])
        if self.may_be_apart(loops[0], index):
            self.inner = loops[0]
            self.sums = self.found_sums(fresh)
            self.over = self.rows_of(loops[0])

    @property
    def before(self):
        return self.nest.body[:self.at]

    @property
    def after(self):
        return self.nest.body[self.at + 1:]

    def may_be_apart(self, inner, index):
        """Whether the sums of a loop over rows may be completed later, together with the statements around the loop."""
        free, around = self.order.free(inner, self.loop), self.before + self.after
        if free is None or not set(free.numbers.values()) <= {"+"} or not (free.numbers or free.atomic) or not all(
                isinstance(s, (Let, Store, Update)) for s in around):
            return False
        self.added, self.numbers = free.atomic, set(free.numbers)
        inside, above = Effects(inner.block, asks=SHOWN), Effects(self.before, asks=SHOWN)
        touched = inside.reads.keys() | inside.writes.keys() | inside.whole - {"np"}
        targets = [s.entry for s in statements([inner]) if self.is_sum(s)]
        if any(names_in(p) - index for t in targets for p in t.index) or \
                names(inner.block) & set(self.order.private) or not is_along(inner, self.nest.loops[-1]) or \
                set_in([inner]) & (names(around) - self.numbers - index):
            return False
        if any(a != b and not self.order.apart(a, b, self.loop) for a in above.writes for b in touched) or \
                above.writes.keys() & inside.writes.keys() - self.added or any(
                    a == b or not self.order.apart(a, b, self.loop) for a in inside.writes.keys() - self.added
                    for b in above.reads.keys() | above.whole - {"np"}):
            return False
        self.wanted = bool((set_in(self.before) - self.numbers) & inside.names or
                           (above.writes.keys() - self.added) & touched)
        # all threads of a column repeat the statements above the loop: repetition must not change them
        return not self.wanted or not above.writes.keys() & (above.reads.keys() | self.added) and not any(
            isinstance(s, Update) or isinstance(s, Store) and s.op is not None or names([s]) & self.numbers and
            not self.begins(s) for s in self.before)

    def begins(self, s):
        """Whether a statement sets the initial value of a scalar sum."""
        return isinstance(s, Let) and s.name in self.numbers and not names_in(s.value) - {"np"}

    def rows_of(self, inner):
        """The loops whose passes are rows: `inner`, and the loops inside it except the last, if equally independent."""
        found = [inner]
        while len(found[-1].block) == 1 and is_counted(found[-1].block[0]) and names_in(
                found[-1].block[0].range[0]).isdisjoint(n.index for n in found):
            free = self.order.free(found[-1].block[0], self.loop)
            if free is None or free.numbers.keys() - self.numbers or free.atomic - self.added:
                break
            found.append(found[-1].block[0])
        if any(names_in(n.range[0]) & self.placement.held for n in found):
            return [inner]
        return found[:-1] if len(found) > 1 else found

    def is_sum(self, s):
        """Whether a statement adds to an entry of an array of sums."""
        return isinstance(s, Store) and s.op is not None and s.entry.array.id in self.added

    def found_sums(self, fresh):
        """The sums of the loop over rows, each as a Sum."""
        types = self.placement.types
        found = {Name(n): Sum(Name(n), n, fresh(f"{n}_parts"), types[n].dtype) for n in sorted(self.numbers)}
        for s in statements([self.inner]):
            if self.is_sum(s) and s.entry not in found:
                name = s.entry.array.id
                found[s.entry] = Sum(s.entry, fresh(f"{name}_part"), fresh(f"{name}_parts"), types[name].dtype)
        return list(found.values())

    # the first kernel

    def rows(self, device: ThreadCode, taken: set) -> list:
        """The statements of the first kernel, which sums parts of the rows."""
        at, row, rows = self.place(taken), free_name("row", taken), free_name("rows", taken)
        out = [Unpack(cast(Items, node([at, row])), quoted("cuda.grid(2)")), Let(rows, numbered("gridsize", 1, 2))]
        out += [Let(s.name, identity("+", s.dtype)) for s in self.sums]
        inside = places_of(self.nest.loops, at) if len(self.nest.loops) > 1 else []
        if self.wanted:
            inside += device.block([s for s in self.before if not self.begins(s)])
        block, place = device.block([self.to_part(copied(s)) for s in self.over[-1].block]), self.inner.index
        if len(self.over) > 1:
            place = free_name("row_place", taken)
            block[:0] = places_of(self.over, place)
        inside += strided(place, node(row), self.length(), node(rows), block, self.inner.origin)
        out.append(If(quoted("{} < {}", at, self.count()), inside, []))
        return out + [Do(quoted("column_sum({}, {}, {})", s.parts, at, s.name)) for s in self.sums]

    def to_part(self, s):
        """A statement in which sums are added to the thread's partial sums."""
        if self.is_sum(s):
            return Update(next(m.name for m in self.sums if m.target == s.entry), s.op, s.value, s.origin)
        if hasattr(s, "block"):
            s.block = list(map(self.to_part, s.block))
        if hasattr(s, "orelse"):
            s.orelse = list(map(self.to_part, s.orelse))
        return s

    def place(self, taken):
        return self.nest.loops[0].index if len(self.nest.loops) == 1 else free_name("place", taken)

    def count(self) -> Expr:
        """The number of columns."""
        return product([n.range[0] for n in self.nest.loops])

    def length(self) -> Expr:
        """The number of rows."""
        return product([n.range[0] for n in self.over])

    # the second kernel

    def sum_of_parts(self, device: ThreadCode, taken: set) -> list:
        """The statements of the second kernel, which sums the parts."""
        at, k = self.place(taken), free_name("k", taken)
        out = places_of(self.nest.loops, at) if len(self.nest.loops) > 1 else []
        out += device.block(self.before)
        loop: Any = statement("for {} in range({}.shape[0]):", k, self.sums[0].parts)
        for s in self.sums:
            value = quoted("{}[{}, {}]", s.parts, k, at)
            target: Any = device.expression(s.target)
            loop.block.append(Store(target, value, "+") if isinstance(target, Load) else Update(target.id, "+", value))
        out += [loop, *device.block(self.after)]
        return strided(at, numbered("grid"), self.count(), numbered("gridsize"), out, self.loop.origin)


def names(block: list) -> set:
    """The names that statements read or set."""
    return names_read(block) | set_in(block)


def is_along(inner: For, column: For) -> bool:
    """Whether neighbouring columns, rather than rows, are contiguous in what a loop over rows reads."""
    read = (e for s in statements([inner]) for whole in ((s.value, *s.entry.index) if isinstance(s, Store) else read_by(
        s)) for e in walk(whole) if isinstance(e, Load))
    lasts = [names_in(e.index[-1]) for e in read]
    return sum(column.index in n for n in lasts) >= sum(inner.index in n for n in lasts)
