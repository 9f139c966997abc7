# SPDX-License-Identifier: Apache-2.0
"""Comparison and sorting: containers and known values come in; the answer, or statements that compute it, come out."""
import collections
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import logical_and, logical_or, truth_value
from gradscribe.ast_transform.reader.containers import TEXTS, UNDECIDED
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.items import entry_as_it_was, facts_alike, mark_rows_as_elements
from gradscribe.ast_transform.reader.iterators import remaining_elements
from gradscribe.ast_transform.reader.list_of_tuples import filled, is_row, leaves_of, one_form
from gradscribe.ast_transform.reader.methods import array_of
from gradscribe.ast_transform.reader.objects import dunder, equal_objects, equal_to_outside, guard_object
from gradscribe.ast_transform.reader.operands import known_value, python_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.ufuncs import operator_entry_by_entry
from gradscribe.ast_transform.reader.values import RangeValue, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


class Unordered(Exception):
    """Raised for values whose order is known only at run time."""


@dataclass(eq=False, slots=True)
class Ordered:
    """A wrapper by which Python's own sort and search compare values of the reader."""
    holder: Any
    value: Any

    def __lt__(self, other):
        return is_less(self.holder, self.value, other.value)

    def __gt__(self, other):
        return other < self


@late
def is_equal(reader: Reader, a, b):
    """Whether two values are equal: True, False or UNDECIDED; a value equals itself."""
    a, b = settle(reader, a), settle(reader, b)
    if a is b:
        return True
    if isinstance(a, Const) and isinstance(b, Const):
        same = a.value is b.value or a.value == b.value
        return bool(same) if isinstance(same, (bool, np.bool_)) else UNDECIDED
    if isinstance(a, Struct) and isinstance(b, Struct):
        if "iterator" in (a.kind, b.kind):
            return UNDECIDED
        if a.cls is not None and a.kind in ("object", "record") or b.cls is not None and \
                b.kind in ("object", "record"):
            same = equal_objects(reader, a, b)
            return UNDECIDED if same is None else same
        queues = [s.cls is not None and issubclass(s.cls, collections.deque) for s in (a, b)]
        if a.kind != b.kind or queues[0] != queues[1] or len(a.items) != len(b.items):
            return False
        ordered = [s.cls is not None and issubclass(s.cls, collections.OrderedDict) for s in (a, b)]
        if all(ordered) and tuple(a.keys) != tuple(b.keys):
            return False
        if a.kind == "dict":
            if set(a.keys) != set(b.keys):
                return False
            b = Struct("dict", [b.items[b.keys.index(k)] for k in a.keys], a.keys)
        found = [is_equal(reader, x, y) for x, y in zip(a.items, b.items)]
        return False if False in found else True if all(f is True for f in found) else UNDECIDED
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Struct) and x.cls is not None and x.kind in ("object", "record") and isinstance(y, Const):
            same = equal_to_outside(reader, x, y)
            return UNDECIDED if same is None else same
    if any(isinstance(v, Const) and isinstance(v.value, TEXTS) or isinstance(v, Struct) for v in (a, b)):
        others = [v for v in (a, b) if isinstance(v, Var)]
        return False if all(isinstance(v.fact, Array) and not v.fact.dims for v in others) else UNDECIDED
    return UNDECIDED


def is_less(reader: Reader, a, b):
    a, b = settle(reader, a), settle(reader, b)
    if isinstance(a, Struct) and isinstance(b, Struct) and a.kind == b.kind and a.kind in ("tuple", "list"):
        for x, y in zip(a.items, b.items):
            same = is_equal(reader, x, y)
            if same is UNDECIDED:
                raise Unordered
            if not same:
                return is_less(reader, x, y)
        return len(a.items) < len(b.items)
    if isinstance(a, Const) and isinstance(b, Const) and not isinstance(a.value, np.ndarray):
        return bool(a.value < b.value)
    raise Unordered


@late
def sorted_items(reader: Reader, items: list, key: Any, reverse: bool, node: gast.AST | None) -> list:
    """The items, sorted by their keys."""
    values = [settle(reader, i if key is None else dispatch.call_value(reader, key, [i], {}, node)) for i in items]
    keys = [Ordered(reader, v) for v in values]
    try:
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
    except Unordered:
        return sorted_when_running(reader, [settle(reader, i) for i in items], values, reverse, node)
    return [items[k] for k in order]


def sorted_when_running(reader: Reader, items, keys, reverse, node):
    """The items, sorted by numbers or tuples of numbers that are known only at run time."""
    rows = all(map(is_row, keys))
    for key in keys[1:] if rows else ():
        one_form(reader, keys[0], key, node)
    columns = [[settle(reader, v) for v in c] for c in zip(*map(leaves_of, keys))] if rows else [keys]
    if not all(is_real_number(reader, v) for column in columns for v in column):
        fail(reader, LanguageError, "the order of these values is known only when running", node,
             "Sort an array: np.sort(np.array(values)), or values[np.argsort(keys)].")
    step = -1 if reverse else 1         # the sort is stable, also in reverse
    columns = [array_of(reader, Struct("list", list(column)[::step]), node) for column in columns]
    if len(columns) == 1:
        order = dispatch.rule_call(reader, np.argsort, columns, {"kind": Const("stable")}, node)
    else:
        order = dispatch.rule_call(reader, np.lexsort, [Struct("tuple", columns[::-1])], {}, node)
    return in_order(reader, items[::step], order, node)[::step]


def in_order(reader: Reader, items, order, node):
    """The elements of a homogeneous list, in an order that is known only at run time."""
    if all(map(is_row, items)):
        for row in items[1:]:
            one_form(reader, items[0], row, node)
        columns = [in_order(reader, list(c), order, node) for c in zip(*map(leaves_of, items))]
        return [filled(items[0], iter(row)) for row in zip(*columns)]
    facts = facts_alike(items)
    if facts is None:
        fail(reader, LanguageError, "values of several kinds in an order that is known only when running", node,
             "Make all of them arrays, or numbers, of one dtype and shape.")
    rows = reader.build.item(array_of(reader, Struct("list", items), node), order)
    mark_rows_as_elements(reader, rows, items)
    return [entry_as_it_was(reader, reader.build.item(rows, Const(k)), facts[0], node) for k in range(len(items))]


def is_real_number(reader: Reader, value):
    if isinstance(value, Const):
        return isinstance(value.value, (bool, int, float, np.bool_, np.integer, np.floating))
    return isinstance(value, Var) and isinstance(value.fact, Array) and not value.fact.dims and \
        value.fact.kind in "biuf"


@late
def place_of(reader: Reader, items: list, value: Any, node: gast.AST | None,
             known: str = "the place of this value") -> int | None:
    """The index of the first item that equals a value, or None."""
    for k, item in enumerate(items):
        same = is_equal(reader, item, value)
        if same is UNDECIDED:
            fail(reader, LanguageError, f"{known} is known only when running", node,
                 "Use an array: np.argmax(items == value), or np.any(items == value).")
        if same:
            return k
    return None


def contains(reader: Reader, holder: Any, value: Any, node: gast.AST | None) -> Any:
    if dunder(reader, holder, "__contains__") is not None:
        return truth_value(
            reader, dispatch.call_known(reader, dunder(reader, holder, "__contains__"), [holder, value], {}, node), node
        )
    if isinstance(holder, RangeValue):
        return in_progression(reader, holder, value, node)
    if isinstance(holder, Struct) and holder.kind == "iterator":
        holder = Struct("list", remaining_elements(reader, holder, node))
    if isinstance(holder, Struct):
        if holder.kind == "dict":
            return Const(hashed(reader, value, node) in holder.keys)
        found = [is_equal(reader, i, value) for i in holder.items]
        if True in found or UNDECIDED not in found:
            return Const(True in found)
        return any_equal(reader, [i for i, f in zip(holder.items, found) if f is UNDECIDED], value, node)
    if isinstance(holder, Const):
        wanted = known_value(reader, value, "what is looked for", node)
        guard_object(reader, holder, lambda held: wanted in held)
        return Const(tried(reader, operator.contains, holder.value, wanted, node=node))
    fail(reader, LanguageError, "membership in an array is not differentiated", node, "Use np.any(x == value).")


def any_equal(reader: Reader, items, value, node):
    """value in items, for numbers that are known only at run time."""
    result = Const(False)
    for item in map(partial(settle, reader), [value, *items]):
        fact = fact_of(item) if isinstance(item, (Var, Const)) else None
        if not isinstance(fact, Array) or fact.dims:
            fail(reader, LanguageError, "whether a container holds this value is known only when running", node,
                 "Compare numbers, or use np.any(array == value).")
    for item in items:
        result = logical_or(reader,
            result, lambda i=item: dispatch.operation(reader, operator.eq, [value, settle(reader, i)], node), node)
    return result


def in_progression(reader: Reader, values, value, node):
    parts = [values.start, values.stop, values.step]
    if all(isinstance(p, Const) for p in [*parts, value]):
        return Const(value.value in range(*(p.value for p in parts)))
    fact = fact_of(value) if isinstance(value, (Var, Const)) else None
    if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu" or not (
            isinstance(values.step, Const) and values.step.value == 1):
        fail(reader, LanguageError, "membership in this range is known only when running", node,
             "Compare: start <= value < stop.")
    return logical_and(reader, dispatch.operation(reader, operator.ge, [value, values.start], node),
                       lambda: dispatch.operation(reader, operator.lt, [value, values.stop], node), node)


def compared(reader: Reader, function: Callable, left: Any, right: Any, node: gast.AST | None) -> Any:
    """== and < of containers and known values; compared with an array, a list of numbers is converted to one."""
    known = isinstance(left, Const) and isinstance(right, Const)
    for v in (left, right):
        if isinstance(v, Const):
            guard_object(reader, v, (lambda _: function(left.value, right.value)) if known else None)
    made = operator_entry_by_entry(reader, function, left, right, node)
    if made is not None:
        return made
    if function in (operator.eq, operator.ne) and isinstance(left, Struct) and isinstance(right, Struct):
        same = is_equal(reader, left, right)
        if same is not UNDECIDED:
            return Const(same == (function is operator.eq))
    elif isinstance(left, Struct) and isinstance(right, Struct) and function in (operator.lt, operator.gt):
        try:
            return Const(is_less(reader, left, right) if function is operator.lt else is_less(reader, right, left))
        except Unordered:
            pass
    return Const(
        tried(reader, function, python_value(reader, left, node), python_value(reader, right, node), node=node)
    )


@late
def hashed(reader: Reader, key: Any, node: gast.AST | None) -> Any:
    """The key of a dictionary."""
    value = known_value(reader, key, "the key of a dictionary", node)
    try:
        hash(value)
    except TypeError as error:
        fail(reader, LanguageError, str(error), node)
    return value


def sorted_places(holder: Any, keys: list, largest: bool) -> Any:
    """The index of the first largest or smallest key; None if that is known only at run time."""
    held = [Ordered(holder, k) for k in keys]
    try:
        return (max if largest else min)(range(len(keys)), key=held.__getitem__)
    except Unordered:
        return None
