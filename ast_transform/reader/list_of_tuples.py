# SPDX-License-Identifier: Apache-2.0
"""Lists of tuples of dynamic length: list methods come in; one list for each field of the tuples comes out.

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

import gast
import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    For,
    Let,
    Pack,
    Var,
    all_reads,
    is_application,
    operands,
)
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import COUNTS
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Grown, Rows, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError

UNZIP = "Take it apart first: a, b = zip(*rows); or keep several lists."


def is_row(value: Any) -> bool:
    """Whether a value is an immutable tuple, possibly nested, or an unshared list."""
    return isinstance(value, Struct) and (
        value.kind == "tuple" and value.cls is None or value.kind == "record" and issubclass(value.cls, tuple) or
        value.kind == "list" and value.alone)


def leaves_of(row: Struct) -> list:
    """The leaves of a tuple of tuples, from left to right."""
    return [leaf for item in row.items for leaf in (leaves_of(item) if is_row(item) else [item])]


def filled(form: Struct, leaves: Iterator) -> Any:
    """A tuple of the same form with leaves from an iterator."""
    items = [filled(i, leaves) if is_row(i) else next(leaves) for i in form.items]
    return alike_row(form, items)


def alike_row(form, items):
    made = Struct(form.kind, items, form.keys, form.cls)
    made.alone = form.alone
    return made


def element_of_rows(reader: Reader, rows: list, node: gast.AST | None) -> Any:
    """A tuple of the facts that cover the leaves of all tuples of a list."""
    first = rows[0]
    for row in rows:
        one_form(reader, first, row, node)
    return alike_row(
        first, [dispatch.element_of(reader, list(column), node) for column in zip(*[r.items for r in rows])]
    )


def one_form(reader: Reader, a: Any, b: Any, node: gast.AST | None) -> None:
    """Check that two tuples of a list have the same form."""
    if is_row(a) != is_row(b) or is_row(a) and (a.kind, a.keys, a.cls, len(a.items)) != (
            b.kind, b.keys, b.cls, len(b.items)):
        fail(
            reader,
            LanguageError,
            f"a list of unknown length that holds {spelled_value(reader, a)} and {spelled_value(reader, b)}",
            node,
            "Make all its elements of one kind, or keep two lists.",
        )
    for x, y in zip(a.items, b.items) if is_row(a) else ():
        one_form(reader, x, y, node)


def grown_rows(reader: Reader, struct: Any, element: Any, name: str) -> Rows:
    """The column lists that represent a list of tuples, filled with its current rows."""
    facts, held = leaves_of(element), [leaves_of(settle(reader, item)) for item in struct.items]
    for item in struct.items:
        keep_lists(reader, settle(reader, item))
    columns = [
        dispatch.grown_list(reader, fact, f"{name}_{k}" if len(facts) > 1 else name) for k, fact in enumerate(facts)
    ]
    for leaves in held:
        for column, leaf in zip(columns, leaves):
            dispatch.append_to(reader, column, settle(reader, leaf))
    return Rows(columns, element, struct.mark)


def row_from(reader: Reader, rows: Any, leaves: list) -> Any:
    """A row that is read; a list in it may not be changed, since the change would not reach the columns."""
    row = filled(rows.form, iter(leaves))
    keep_lists(reader, row)
    return row


def keep_lists(reader: Reader, row):
    if isinstance(row, Struct):
        if row.kind == "list":
            row.alone = False
            reader.lists.row_lists.add(row)
            reader.containers.outside.add(row)
        for item in row.items:
            keep_lists(reader, item)


def element_of_each(reader: Reader, rows: Any) -> Any:
    return filled(rows.form, iter([column.element for column in rows.columns]))


def rows_method(reader: Reader, rows: Any, name: str, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    if name == "append" and len(args) == 1 and not words:
        row = settle(reader, args[0])
        if not is_row(row):
            fail(reader, LanguageError, f"a list of tuples that holds {spelled_value(reader, row)}", node,
                 "Make all its elements of one kind, or keep two lists.")
        one_form(reader, rows.form, row, node)
        for column, leaf in zip(rows.columns, leaves_of(row)):
            dispatch.grown_method(reader, column, "append", [leaf], {}, node)
        return Const(None)
    if name == "extend" and len(args) == 1 and not words:
        for row in dispatch.elements_of(reader, args[0], node):
            if isinstance(row, Struct):
                row.alone = False           # another name may refer to it
            rows_method(reader, rows, "append", [row], {}, node)
        return Const(None)
    if name == "pop" and not args and not words:
        dispatch.about_to_change(reader, rows.columns[0], node)
        return row_from(reader, rows, [dispatch.pop_from(reader, column) for column in rows.columns])
    if name == "copy" and not args:
        return copied_rows(reader, rows)
    fail(reader, LanguageError, f"the method {name} of a list whose length is known only when running", node,
         "append, extend and pop() are understood.")


def copied_rows(reader: Reader, rows: Any) -> Any:
    return Rows([dispatch.copied_list(reader, column) for column in rows.columns], rows.form)


def row_item(reader: Reader, rows: Any, index: Any, node: gast.AST | None) -> Any:
    """rows[k]"""
    found = [dispatch.grown_item(reader, column, index, node) for column in rows.columns]
    if all(isinstance(part, Grown) for part in found):
        return Rows(found, rows.form)
    return row_from(reader, rows, found)


def unzipped(reader: Reader, rows: Any) -> list:
    """zip(*rows)"""
    columns = iter(rows.columns)

    def taken(item):
        if not is_row(item):
            return dispatch.copied_list(reader, next(columns))
        return Rows([dispatch.copied_list(reader, next(columns)) for _ in leaves_of(item)], item)
    return [taken(item) for item in rows.form.items]


def array_of_rows(reader: Reader, rows: Any, node: gast.AST | None) -> Any:
    """np.array(rows): a matrix whose rows are the tuples of numbers."""
    if any(is_row(item) for item in rows.form.items):
        fail(reader, LanguageError, "an array of a list of tuples of tuples", node, UNZIP)
    arrays = [dispatch.array_of_grown(reader, column) for column in rows.columns]
    return dispatch.rule_call(reader, np.stack, [Struct("list", arrays)], {"axis": Const(1)}, node)


def set_lengths_after(reader: Reader, loop: Any) -> None:
    """Set the lengths of lists to which each pass of a counted loop adds the same number of elements."""
    if not isinstance(loop, For) or not certain_count(reader, loop.count):
        return
    count = fact_of(loop.count).length
    for c in loop.carries:
        if c.inner not in reader.lists.carried or not isinstance(c.next, Var) or not isinstance(c.init, Var):
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
        if reader.unroll and each == 1 and (start.symbol, start.offset) == (None, 0):
            preallocate(reader, loop, c)


def certain_count(reader: Reader, count):
    """Whether the number of passes is certainly not negative."""
    if isinstance(count, Const):
        return type(count.value) is int and count.value >= 0
    made = reader.build.made.get(count)
    return isinstance(made, Apply) and made.function in COUNTS and fact_of(count).length is not None


def preallocate(reader: Reader, loop, c):
    """Replace an array that grows by a row in each pass by one that is allocated before the loop."""
    empty = reader.build.made.get(c.init)
    step = next((s for s in loop.body if isinstance(s, Let) and s.targets == (c.next,)), None)
    reads = [v for s in loop.body for v in all_reads(s)] + [
        v for other in loop.carries if other is not c for v in operands(other.next)]
    if not is_application(empty, np.zeros) or step is None or \
            not is_application(step.value, np.concatenate) or reads.count(c.inner) > 1 or c.next in reads:
        return
    (both,), row = step.value.args, None
    made: Any = reader.build.made.get(both.items[1]) if isinstance(both, Pack) and both.items[0] is c.inner else None
    if is_application(made, operator.getitem) and _is_new_axis(made.args[1]):
        row = made.args[0]
    elif is_application(made, np.array) and isinstance(made.args[0], Pack):
        (row,) = made.args[0].items
    if row is None:
        return
    shape = empty.args[0]
    rest = shape.items[1:] if isinstance(shape, Pack) else ()
    c.init = reader.build.apply(np.empty, Pack("tuple", (loop.count, *rest)) if rest else loop.count,
                                hint=c.outer.hint, dtype=Const(np.dtype(c.outer.fact.dtype)))
    c.inner.fact = c.next.fact = c.outer.fact
    step.value = Apply(put, (c.inner, loop.index, row))


def _is_new_axis(index):
    return isinstance(index, Const) and index.value is None
