# SPDX-License-Identifier: Apache-2.0
"""Lists of tuples whose length is known only when running: a list for each place of the tuples.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = ("def f(x):\\n    out = []\\n    for v in x:\\n        out.append((v, v * v))\\n    a, b = zip(*out)\\n"
...         "    return np.array(b)")
>>> print(show(form(text, np.ones(3))))
f(x):
    n_0 = shape_of(x, 0)
    out_0 = no_elements()
    out_1 = no_elements()
    enter out_0_1 = out_0
    enter out_1_1 = out_1
    for i in range(n_0), v of x:
        t = v * v
        out_0_2 = push(out_0_1, v)
        out_1_2 = push(out_1_1, t)
        next out_0_1 = out_0_2
        next out_1_1 = out_1_2
    leave out_0_3 = out_0_1
    leave out_1_3 = out_1_1
    out_0_4 = as_list(out_0_3)
    out_1_4 = as_list(out_1_3)
    t_1 = as_array(out_1_3)
    return t_1
"""
import operator
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, For, Let, Pack, Var, all_reads, is_application, operands
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import COUNTS
from gradscribe.ast_transform.passes.values import Grown, Rows, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError

UNZIP = "Take it apart first: a, b = zip(*rows); or keep several lists."


def is_row(value: Any) -> bool:
    """Whether a value is a tuple, of tuples perhaps: nothing in it can be replaced; or a list that nothing else shows.
    """
    return isinstance(value, Struct) and (
        value.kind == "tuple" and value.cls is None or value.kind == "record" and issubclass(value.cls, tuple) or
        value.kind == "list" and value.alone)


def leaves_of(row: Struct) -> list:
    """What stands in a tuple of tuples, from left to right."""
    return [leaf for item in row.items for leaf in (leaves_of(item) if is_row(item) else [item])]


def filled(form: Struct, leaves: Iterator) -> Struct:
    """A tuple of the same form with other leaves; takes them from an iterator."""
    items = [filled(i, leaves) if is_row(i) else next(leaves) for i in form.items]
    return alike_row(form, items)


def alike_row(form, items):
    made = Struct(form.kind, items, form.keys, form.cls)
    made.alone = form.alone
    return made


class Columns:
    def element_of_rows(self, rows, node):
        """The facts that cover all tuples of a list, in their form."""
        first = rows[0]
        for row in rows:
            self.one_form(first, row, node)
        return alike_row(first, [self.element_of(list(column), node) for column in zip(*[r.items for r in rows])])

    def one_form(self, a, b, node):
        """The tuples of a list are of one form."""
        if is_row(a) != is_row(b) or is_row(a) and (a.kind, a.keys, a.cls, len(a.items)) != (
                b.kind, b.keys, b.cls, len(b.items)):
            self.fail(LanguageError, f"a list of unknown length that holds {self.spell(a)} and {self.spell(b)}", node,
                      "Make all its elements of one kind, or keep two lists.")
        for x, y in zip(a.items, b.items) if is_row(a) else ():
            self.one_form(x, y, node)

    def grown_rows(self, struct, element, name):
        """The lists that stand for a list of tuples, with what it held so far."""
        facts, held = leaves_of(element), [leaves_of(self.settle(item)) for item in struct.items]
        for item in struct.items:
            self.keep_lists(self.settle(item))
        columns = [self.grown_list(fact, f"{name}_{k}" if len(facts) > 1 else name) for k, fact in enumerate(facts)]
        for leaves in held:
            for column, leaf in zip(columns, leaves):
                self.append_to(column, self.settle(leaf))
        return Rows(columns, element, struct.mark)

    def row_from(self, rows, leaves):
        """A row that is read: a list in it is not changed, since that would not show in the rows."""
        row = filled(rows.form, iter(leaves))
        self.keep_lists(row)
        return row

    def keep_lists(self, row):
        if isinstance(row, Struct):
            if row.kind == "list":
                row.alone = False
                self.row_lists.add(row)
                self.outside.add(row)
            for item in row.items:
                self.keep_lists(item)

    def element_of_each(self, rows):
        return filled(rows.form, iter([column.element for column in rows.columns]))

    def rows_method(self, rows, name, args, words, node):
        if name == "append" and len(args) == 1 and not words:
            row = self.settle(args[0])
            if not is_row(row):
                self.fail(LanguageError, f"a list of tuples that holds {self.spell(row)}", node,
                          "Make all its elements of one kind, or keep two lists.")
            self.one_form(rows.form, row, node)
            for column, leaf in zip(rows.columns, leaves_of(row)):
                self.grown_method(column, "append", [leaf], {}, node)
            return Const(None)
        if name == "extend" and len(args) == 1 and not words:
            for row in self.listed(args[0], node):
                if isinstance(row, Struct):
                    row.alone = False           # it may be one that another name shows
                self.rows_method(rows, "append", [row], {}, node)
            return Const(None)
        if name == "pop" and not args and not words:
            self.about_to_change(rows.columns[0], node)
            return self.row_from(rows, [self.pop_from(column) for column in rows.columns])
        if name == "copy" and not args:
            return self.copied_rows(rows)
        self.fail(LanguageError, f"the method {name} of a list whose length is known only when running", node,
                  "append, extend and pop() are understood.")

    def copied_rows(self, rows):
        return Rows([self.copied_list(column) for column in rows.columns], rows.form)

    def row_item(self, rows, index, node):
        """rows[k]"""
        found = [self.grown_item(column, index, node) for column in rows.columns]
        if all(isinstance(part, Grown) for part in found):
            return Rows(found, rows.form)
        return self.row_from(rows, found)

    def unzipped(self, rows):
        """zip(*rows)"""
        columns = iter(rows.columns)

        def taken(item):
            if not is_row(item):
                return self.copied_list(next(columns))
            return Rows([self.copied_list(next(columns)) for _ in leaves_of(item)], item)
        return [taken(item) for item in rows.form.items]

    def array_of_rows(self, rows, node):
        """np.array(rows): tuples of numbers are rows of a matrix."""
        if any(is_row(item) for item in rows.form.items):
            self.fail(LanguageError, "an array of a list of tuples of tuples", node, UNZIP)
        arrays = [self.array_of_grown(column) for column in rows.columns]
        return self.rule_call(np.stack, [Struct("list", arrays)], {"axis": Const(1)}, node)

    # a list that every pass of a counted loop makes longer by one

    def lengths_after(self, loop):
        """A list to which each pass of a counted loop adds equally many elements is as long as that tells."""
        if not isinstance(loop, For) or not self.certain_count(loop.count):
            return
        count = fact_of(loop.count).length
        for c in loop.carries:
            if c.inner not in self.list_vars or not isinstance(c.next, Var) or not isinstance(c.init, Var):
                continue
            start, inner, after = (v.fact.dims[0].normal() for v in (c.init, c.inner, c.next))
            each = after.offset - inner.offset
            if after.symbol is not inner.symbol or inner.symbol is None:
                continue
            if count.symbol is None:
                length = start.plus(each * count.offset)
            elif each == 1 and start.symbol is None:
                length = count.plus(start.offset)
            else:
                continue
            c.outer.fact = replace(c.outer.fact, dims=(length, *c.outer.fact.dims[1:]))
            if self.unroll and each == 1 and (start.symbol, start.offset) == (None, 0):
                self.written_at_places(loop, c)

    def certain_count(self, count):
        """Whether the number of passes is certainly not negative."""
        if isinstance(count, Const):
            return type(count.value) is int and count.value >= 0
        made = self.build.made.get(count)
        return isinstance(made, Apply) and made.function in COUNTS and fact_of(count).length is not None

    def written_at_places(self, loop, c):
        """An array that grows by a row in each pass is made before the loop, and the row written into its place."""
        empty = self.build.made.get(c.init)
        step = next((s for s in loop.body if isinstance(s, Let) and s.targets == (c.next,)), None)
        reads = [v for s in loop.body for v in all_reads(s)] + [
            v for other in loop.carries if other is not c for v in operands(other.next)]
        if not is_application(empty, np.zeros) or step is None or \
                not is_application(step.value, np.concatenate) or reads.count(c.inner) > 1 or c.next in reads:
            return
        (both,), row = step.value.args, None
        made = self.build.made.get(both.items[1]) if isinstance(both, Pack) and both.items[0] is c.inner else None
        if is_application(made, operator.getitem) and _is_new_axis(made.args[1]):
            row = made.args[0]
        elif is_application(made, np.array) and isinstance(made.args[0], Pack):
            (row,) = made.args[0].items
        if row is None:
            return
        shape = empty.args[0]
        rest = shape.items[1:] if isinstance(shape, Pack) else ()
        c.init = self.build.apply(np.empty, Pack("tuple", (loop.count, *rest)) if rest else loop.count,
                                  hint=c.outer.hint, dtype=Const(np.dtype(c.outer.fact.dtype)))
        c.inner.fact = c.next.fact = c.outer.fact
        step.value = Apply(put, (c.inner, loop.index, row))


def _is_new_axis(index):
    return isinstance(index, Const) and index.value is None
