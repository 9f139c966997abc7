# SPDX-License-Identifier: Apache-2.0
"""Subscripts: a value and an index come in; the item, a statement that reads it, or a slice comes out."""
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import holds_memory
from gradscribe.ast_transform.core.form import Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence
from gradscribe.ast_transform.passes.described import fact_of, is_array, no_array
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import certain_value
from gradscribe.ast_transform.reader.containers import default_for_missing, is_place
from gradscribe.ast_transform.reader.dispatch import evaluates, late
from gradscribe.ast_transform.reader.dynamic_lists import array_of_grown, grown_item
from gradscribe.ast_transform.reader.frames import fail, locate
from gradscribe.ast_transform.reader.list_of_tuples import row_item
from gradscribe.ast_transform.reader.memory import pending_values, storages
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.objects import dunder, guard_object
from gradscribe.ast_transform.reader.operands import (
    as_given,
    as_struct,
    demand,
    entry_from_outside,
    known_value,
    settle,
    spelled_value,
)
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.subscripts import GRIDS, JOINS, arange_of, in_brackets
from gradscribe.ast_transform.reader.values import Grown, Part, RangeValue, Rows, Struct, View
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError


@evaluates("Attribute")
def evaluate_attribute(reader: Reader, node):
    value = settle(reader, dispatch.evaluate(reader, node.value))
    locate(reader, node)
    return dispatch.read_attribute(reader, value, node.attr, node)


@evaluates("Subscript")
def evaluate_subscript(reader: Reader, node):
    with pending_values(reader, [dispatch.evaluate(reader, node.value)]) as held:
        index = read_index(reader, node.slice)
    locate(reader, node)
    return settle(reader, item_of(reader, held[0], index, node))


@late
def read_index(reader: Reader, node: gast.AST) -> Any:
    """An index as an operand; a slice with known ends is a constant."""
    if isinstance(node, gast.Slice):
        parts = [
            None if p is None else settle(reader, dispatch.evaluate(reader, p))
            for p in (node.lower, node.upper, node.step)
        ]
        if all(p is None or isinstance(p, Const) for p in parts):
            return Const(slice(*(None if p is None else p.value for p in parts)))
        return Slice(*parts)
    if isinstance(node, gast.Tuple):
        entries = [
            dispatch.elements_of(reader, dispatch.evaluate(reader, e.value), e)
            if isinstance(e, gast.Starred)
            else [read_index(reader, e)]
            for e in node.elts
        ]
        return Pack("tuple", tuple(part_of_index(reader, i, node) for part in entries for i in part))
    return as_index(reader, settle(reader, dispatch.evaluate(reader, node)), node)


def as_index(reader: Reader, value, node):
    if isinstance(value, Grown):
        return array_of_grown(reader, value)
    if isinstance(value, RangeValue):
        return arange_of(reader, value.start, value.stop, value.step, node)
    if isinstance(value, Struct):
        if value.kind != "tuple":
            return list_as_index(reader, value, node) if value.kind == "list" else value
        return Pack("tuple", tuple(part_of_index(reader, i, node) for i in value.items))
    return value


@late
def list_as_index(reader: Reader, value, node):
    """A list used as an index, as an array; an empty one becomes an array of integers, as in NumPy."""
    places = dispatch.array_of(reader, value, node)
    fact = fact_of(places)
    empty = fact.kind == "f" and any(d.same(Length(None, 0)) for d in fact.dims)
    return dispatch.converted(reader, places, np.dtype(int), node) if empty else places


def part_of_index(reader: Reader, value, node):
    """One part of a tuple of indices, where a tuple or list is an array of positions."""
    if isinstance(value, Pack):
        value = Struct("tuple", value.items)
    return list_as_index(reader, value, node) if isinstance(value, Struct) else as_index(reader, value, node)


@evaluates("Slice")
def evaluate_slice(reader: Reader, node):
    return read_index(reader, node)


@late
def item_of(reader: Reader, value: Any, index: Any, node: gast.AST | None) -> Any:
    if isinstance(value, Part) and isinstance(value.fact, Sequence):
        value = as_struct(reader, value)
    value = settle(reader, value) if isinstance(value, View) else value
    if isinstance(value, Grown):
        return grown_item(reader, value, index, node)
    if isinstance(value, Rows):
        return row_item(reader, value, index, node)
    if isinstance(value, Struct):
        method = dunder(reader, value, "__getitem__")
        if method is not None:
            return dispatch.call_known(reader, method, [value, as_given(index)], {}, node)
        if value.kind == "iterator":
            fail(reader, LanguageError, "an iterator is not indexed", node, "Make a list of it first.")
        if isinstance(index, Var):
            return chosen_item(reader, value, index, node)
        key = known_value(reader, index, "the index of a container", node)
        return certain_value(reader, struct_item(reader, value, key, node), node)
    value = settle(reader, value)
    if isinstance(value, Const):
        if isinstance(value.value, JOINS | GRIDS):
            return in_brackets(reader, value.value, index, node)
        if is_array(value.value):
            fail(reader, LanguageError, "an array of objects is not differentiated", node, "Use a list.")
        if isinstance(value.value, np.ndarray):
            unfit = no_array(fact_of(value))
            fail(reader, ShapeError, str(unfit), node, unfit.advice)
        key = known_value(reader, index, "the index of a container", node)
        guard_object(reader, value, lambda held: held[key])
        try:
            return lift(reader, value.value[key], "item")
        except LanguageError:
            raise
        except Exception as error:
            fail(reader, ShapeError, f"indexing: {error}", node)
    if not isinstance(value, Var):
        fail(reader, LanguageError, f"{spelled_value(reader, value)} is not indexed", node)
    return reader.build.item(value, index)


def chosen_item(reader: Reader, value, index, node):
    """[a, b][i] with i known only at run time: a row of the stacked elements."""
    facts = facts_alike(value.items)
    known = entry_from_outside(reader, index)
    if is_place(index) and facts and value.kind in ("list", "tuple"):
        try:
            rows = dispatch.array_of(reader, value, node)
        except ShapeError:
            if known is None:
                raise
        else:
            mark_rows_as_elements(reader, rows, value.items)
            return entry_as_it_was(reader, reader.build.item(rows, index), facts[0], node)
    if known is None:
        demand(reader, index, "the index of a container", node)
    return certain_value(
        reader, struct_item(reader, value, known_value(reader, index, "the index of a container", node), node), node
    )


def mark_rows_as_elements(reader: Reader, rows: Any, items: list) -> None:
    """Record that the rows of a new array represent elements of a list: they cannot be written, and alias these."""
    reader.lists.chosen_rows.add(rows)
    reader.memory.tokens[rows] = storages(reader, rows).union(*(storages(reader, i) for i in items if holds_memory(i)))


def facts_alike(items: list) -> list | None:
    """The facts of elements that one array can hold unchanged, NumPy types first; None if no array can."""
    facts: list = [fact_of(i) if isinstance(i, Const) else getattr(i, "fact", None) for i in items]
    alike = facts and all(isinstance(f, Array) for f in facts) and (
        not any(f.weak for f in facts) or len({np.dtype(f.dtype) for f in facts}) == 1)
    return sorted(facts, key=lambda f: f.weak) if alike else None


def entry_as_it_was(reader: Reader, entry: Any, fact: Any, node: gast.AST | None) -> Any:
    """An entry of an array made from a list; a Python number is converted back, so that it does not widen float32."""
    return dispatch.call_known(reader, fact.dtype, [entry], {}, node) if fact.weak else entry


def struct_item(reader: Reader, value, key, node):
    if value.kind == "dict":
        if dispatch.hashed(reader, Const(key), node) not in value.keys:
            found = default_for_missing(reader, value, key, node)
            if found is not None:
                return found
            fail(reader, ShapeError, f"the dictionary has no key {key!r}", node, python=KeyError)
        return value.items[value.keys.index(key)]
    try:
        found = value.items[key]
    except (IndexError, TypeError) as error:
        fail(reader, ShapeError, str(error), node, python=type(error))
    if isinstance(key, slice):
        whole = None
        if value.whole is not None:
            whole = Part(value.whole, Const(key), Sequence(value.kind, tuple(value.whole.fact.elements[key])))
        return Struct(value.kind, found, whole=whole)
    if (
        isinstance(found, Part)
        and isinstance(key, int)
        and key < 0
        and value.whole is not None
        and value.version == 0
    ):
        return Part(value.whole, Const(key), found.fact)
    return found
