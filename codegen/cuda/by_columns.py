# SPDX-License-Identifier: Apache-2.0
"""Sums into columns, in two kernels: blocks put rows together, and a thread of each column the blocks' parts.

A loop over rows inside one over columns would leave a thread to each column, and columns may be few.  So the rows are
spread too: the threads of a block that lie along x take columns next to each other, those along y rows.  The order of
each sum is the same from call to call.
"""
import ast
from typing import NamedTuple

from gradscribe.codegen.cuda.kernels import copied, enclosed, identity, other, places_of, strided, text_of
from gradscribe.codegen.cuda.reach import Reach
from gradscribe.codegen.cuda.trees import is_counted, names_in, walk


class Sum(NamedTuple):
    """target: what is added to, an entry or a number; name: of a thread's part of it; parts: the array of all parts."""
    target: ast.expr
    name: str
    parts: str
    dtype: str


class Columns:
    """nest: of `loop`; sorting, fresh: as in module.py.

    Attribute inner: the loop over rows; None where there is none.
    """

    def __init__(self, nest, loop, sorting, fresh):
        self.nest, self.loop, self.sorting = nest, loop, sorting
        self.inner, self.sums = None, []
        index = {n.target.id for n in nest.loops}
        loops = [s for s in nest.body if isinstance(s, ast.For)]
        if nest.free.numbers or nest.free.atomic or len(loops) != 1 or not is_counted(loops[0]) or sorting.is_short(
                loops[0]) or names_in(loops[0].iter).keys() & (index | sorting.held | names_of(nest.body, ast.Store)):
            return
        self.at = nest.body.index(loops[0])
        if self.may_be_apart(loops[0], index):
            self.inner = loops[0]
            self.sums = self.found_sums(fresh)
            self.over = self.rows_of(loops[0])

    def may_be_apart(self, inner, index):
        """Whether the passes of a loop over rows may be put together later, and what is around it done then."""
        free = self.sorting.order.free(inner, self.loop)
        around = self.before + self.nest.body[self.at + 1:]
        if free is None or not set(free.numbers.values()) <= {"+"} or not (free.numbers or free.atomic):
            return False
        if not all(isinstance(s, ast.Assign) and (isinstance(s.targets[0], ast.Name) or isinstance(
                s.targets[0], ast.Subscript)) or isinstance(s, ast.AugAssign) for s in around):
            return False
        self.added, self.numbers = free.atomic, set(free.numbers)
        inside, above = Reach(*inner.body), Reach(*self.before)
        touched = inside.reads.keys() | inside.writes.keys() | inside.whole
        stored = names_of([inner], ast.Store)
        targets = [s.target for s in walk(inner) if self.is_sum(s)]
        if any(names_in(t.slice).keys() - index for t in targets) or \
                names_of([inner]) & set(self.sorting.order.private) or not is_along(inner, self.nest.loops[-1]) or \
                stored & (names_of(around) - self.numbers - index):
            return False
        if any(a != b and not self.sorting.order.apart(a, b, self.loop) for a in above.writes for b in touched) or \
                above.writes.keys() & inside.writes.keys() - self.added or any(
                    a == b or not self.sorting.order.apart(a, b, self.loop) for a in inside.writes.keys() - self.added
                    for b in above.reads.keys() | above.whole):
            return False
        self.wanted = bool((names_of(self.before, ast.Store) - self.numbers) & inside.names or
                           (above.writes.keys() - self.added) & touched)
        # what stands above is done by all threads of a column: once more must be the same
        return not self.wanted or not above.writes.keys() & (above.reads.keys() | self.added) and not any(
            isinstance(s, ast.AugAssign) or names_of([s]) & self.numbers and not self.begins(s) for s in self.before)

    def begins(self, s):
        """Whether a statement is what a number begins with."""
        return isinstance(s.targets[0], ast.Name) and s.targets[0].id in self.numbers and not names_of([s.value])

    def rows_of(self, inner):
        """The loops whose passes are rows: the outermost, and those inside it but the last, if they are as free."""
        found = [inner]
        while len(found[-1].body) == 1 and is_counted(found[-1].body[0]) and not names_in(
                found[-1].body[0].iter).keys() & {n.target.id for n in found}:
            free = self.sorting.order.free(found[-1].body[0], self.loop)
            if free is None or free.numbers.keys() - self.numbers or free.atomic - self.added:
                break
            found.append(found[-1].body[0])
        if any(names_in(n.iter).keys() & self.sorting.held for n in found):
            return [inner]
        return found[:-1] if len(found) > 1 else found

    @property
    def before(self):
        return self.nest.body[:self.at]

    def is_sum(self, s):
        """Whether a statement adds to an entry of a column."""
        return isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Subscript) and \
            isinstance(s.target.value, ast.Name) and s.target.value.id in self.added

    def found_sums(self, fresh):
        """The sums of the loop, each by its text."""
        kinds = self.sorting.kinds
        found = {n: Sum(ast.Name(n, ast.Load()), n, fresh(f"{n}_parts"), kinds[n].dtype) for n in sorted(self.numbers)}
        for s in walk(self.inner):
            if self.is_sum(s) and ast.unparse(s.target) not in found:
                name = s.target.value.id
                found[ast.unparse(s.target)] = Sum(s.target, fresh(f"{name}_part"), fresh(f"{name}_parts"),
                                                   kinds[name].dtype)
        return list(found.values())

    # the first kernel

    def rows(self, device, taken):
        """The lines of the kernel that takes the rows."""
        at, row, rows = self.place(taken), other("row", taken), other("rows", taken)
        out = [(1, f"{at}, {row} = cuda.grid(2)", None), (1, f"{rows} = cuda.gridsize(2)[1]", None)]
        out += [(1, f"{s.name} = {identity('+', s.dtype)}", None) for s in self.sums]
        out.append((1, f"if {at} < {self.count()}:", None))
        if len(self.nest.loops) > 1:
            out += [(2, line, None) for line in places_of(self.nest.loops, at)]
        if self.wanted:
            out += [(2, line, o) for _, line, o in text_of(device.block([
                s for s in self.before if not self.begins(s)]), 0)]
        body = text_of(device.block(Parts(self).block(copied(self.over[-1].body))), 0)
        place = self.inner.target.id
        if len(self.over) > 1:
            place = other("row_place", taken)
            body = [(0, line, None) for line in places_of(self.over, place)] + body
        inner = strided(place, row, self.length(), rows, body, self.inner)
        out += [(2 + k, line, o) for k, line, o in inner]
        return out + [(1, f"column_sum({s.parts}, {at}, {s.name})", None) for s in self.sums]

    def place(self, taken):
        return self.nest.loops[0].target.id if len(self.nest.loops) == 1 else other("place", taken)

    def count(self):
        """The text of the number of columns."""
        return " * ".join(enclosed(n.iter.args[0]) for n in self.nest.loops)

    def length(self):
        """The text of the number of rows."""
        return " * ".join(enclosed(n.iter.args[0]) for n in self.over) if len(self.over) > 1 else ast.unparse(
            self.inner.iter.args[0])

    # the second kernel

    def together(self, device, taken):
        """The lines of the kernel that puts parts together."""
        at, k = self.place(taken), other("k", taken)
        out = [(0, line, None) for line in places_of(self.nest.loops, at)] if len(self.nest.loops) > 1 else []
        out += text_of(device.block(self.before), 0)
        out.append((0, f"for {k} in range({self.sums[0].parts}.shape[0]):", None))
        out += [(1, f"{device.text(s.target)} += {s.parts}[{k}, {at}]", None) for s in self.sums]
        out += text_of(device.block(self.nest.body[self.at + 1:]), 0)
        out = strided(at, "cuda.grid(1)", self.count(), "cuda.gridsize(1)", out, self.loop)
        return [(1 + level, line, o) for level, line, o in out]


class Parts(ast.NodeTransformer):
    """Statements of rows add to what the thread has of a sum."""

    def __init__(self, columns):
        self.columns = columns
        self.names = {ast.unparse(s.target): s.name for s in columns.sums}

    def visit_AugAssign(self, node):
        if self.columns.is_sum(node):
            node.target = ast.Name(self.names[ast.unparse(node.target)], ast.Store())
        return node

    def block(self, body):
        return [self.visit(s) for s in body]


def names_of(nodes, context=(ast.Load, ast.Store)):
    return {n.id for s in nodes for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def is_along(inner, column):
    """Whether what a loop over rows reads lies together along the columns, and not along the rows."""
    found = [n.slice.elts[-1] if isinstance(n.slice, ast.Tuple) else n.slice for n in walk(inner)
             if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and not isinstance(n.value, ast.Attribute)]
    along = [names_in(last).keys() for last in found]
    return sum(column.target.id in names for names in along) >= sum(inner.target.id in names for names in along)
