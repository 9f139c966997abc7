# SPDX-License-Identifier: Apache-2.0
"""Assignments: to names, attributes and items, augmented assignments, and unpacking.

The tree of an assignment comes in; afterwards the names of the frame, or the containers, hold the value.  A write
into an array becomes a statement, see `memory.py`.
"""
import functools
import inspect
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import TEMPORARY, USER, Apply, Const, Var, operands
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, spell, unify
from gradscribe.ast_transform.core.operations import put_add, unpacked
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import RAISED, read_branch, truth_value
from gradscribe.ast_transform.reader.carries import containers_held, has_alias
from gradscribe.ast_transform.reader.container_aliases import freeze
from gradscribe.ast_transform.reader.containers import changed_in_place, drop_beyond_maxlen, put_element
from gradscribe.ast_transform.reader.dispatch import executes
from gradscribe.ast_transform.reader.dynamic_lists import grown_method, is_own_list, may_grow, set_grown
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.items import item_of, read_index
from gradscribe.ast_transform.reader.iterators import iterator, remaining_elements
from gradscribe.ast_transform.reader.list_of_tuples import rows_method
from gradscribe.ast_transform.reader.memory import (
    can_write,
    has_cell_alias,
    pending_values,
    record_cell,
    refuse_write,
    replace_all,
    write_entry,
)
from gradscribe.ast_transform.reader.methods import array_of
from gradscribe.ast_transform.reader.names import read_name
from gradscribe.ast_transform.reader.objects import OPERATORS, assign_attribute, dunder, iterated_value
from gradscribe.ast_transform.reader.operands import (
    as_given,
    as_operand,
    as_struct,
    operand_of_part,
    passed_value,
    settle,
    spelled_value,
)
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import makes_longer, spoken
from gradscribe.ast_transform.reader.values import Conflict, Grown, Part, RangeValue, Rows, Struct, View, Walk, held_by
from gradscribe.ast_transform.reader.views import is_array, is_view, may_be_cell
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError
from gradscribe.ast_transform.source.nonlocals import is_box

BINARY = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
    gast.Div: operator.truediv,
    gast.FloorDiv: operator.floordiv,
    gast.Mod: operator.mod,
    gast.Pow: operator.pow,
    gast.MatMult: operator.matmul,
    gast.BitAnd: operator.and_,
    gast.BitOr: operator.or_,
    gast.BitXor: operator.xor,
    gast.LShift: operator.lshift,
    gast.RShift: operator.rshift,
}


@executes("Assign")
def execute_assign(reader: Reader, node):
    name = makes_longer(node)
    if name is not None and may_grow(reader.environment.frame.env.get(name)):
        return joined_list(reader, name, node)
    writes = reader.memory.writes
    value = dispatch.evaluate(reader, node.value)
    if isinstance(value, Struct) and value.kind == "iterator" and reader.memory.writes != writes:
        fail(reader, LanguageError, "an iterator that changes something when it is gone through", node.value,
             "Make a list of it where it stands.")
    with pending_values(reader, [value]) as held:         # an earlier target may write into it
        for target in node.targets:
            assign(reader, target, held[0])


def joined_list(reader: Reader, name, node):
    """items = items + [...]: a list without aliases is extended in place."""
    target, old = node.targets[0], reader.environment.frame.env[name]
    with pending_values(reader, [old]) as held:
        value = dispatch.evaluate(reader, node.value.right)
    if old.mark is held[0].mark and only_shown_by(reader, name, held[0]) and not holds(value, held[0].mark):
        return augmented_value(reader, operator.add, held[0], value, node, lambda new: assign(reader, target, new))
    if any(name in loop.longer for loop in reader.loops.reading):
        fail(reader, LanguageError, f"{name} is a list that another name shows, and changes from pass to pass", node,
             f"Copy the list first: {name} = list({name}).")
    return assign(reader, target, dispatch.binary(reader, operator.add, held[0], value, node))


def only_shown_by(reader: Reader, name, held):
    """Whether a list belongs to this function, and no other name, container or iterator refers to it."""
    if isinstance(held, Struct) and (not is_own_list(reader, held) or held.mark in reader.containers.given_marks or
                                     held in reader.containers.frozen):
        return False
    found = containers_held(reader).get(held.mark)
    return found is not None and found[-1] == [(reader.environment.frame, name)]


@executes("AugAssign")
def execute_aug_assign(reader: Reader, node):
    read: Callable[..., Any]
    write: Callable[..., Any]
    target, function = node.target, BINARY[type(node.op)]
    if isinstance(target, gast.Name):
        with pending_values(
            reader, [read_name(reader, target.id, target)]
        ) as held:  # evaluating the right-hand side may change it
            value = dispatch.evaluate(reader, node.value)
        old = held[0]
        if isinstance(old, (Struct, Grown, Rows, Conflict)):
            old = read_name(reader, target.id, target)
        return augmented_value(reader, function, old, value, node, lambda new: assign(reader, target, new))
    if isinstance(target, gast.Attribute):
        holder = settle(reader, dispatch.evaluate(reader, target.value))
        read, write = (
            (lambda h: dispatch.read_attribute(reader, h, target.attr, target)),
            partial(assign_attribute, reader),
        )
    elif isinstance(target, gast.Subscript):
        holder = settle(reader, dispatch.evaluate(reader, target.value))
        if not isinstance(holder, (Struct, Grown)):
            return augment_item(reader, holder, node)
        index = read_index(reader, target.slice)
        read = functools.partial(partial(item_of, reader), index=index, node=target)
        def write(t, new, h):
            if is_box(t.value):
                takes_name(reader, t.value.id, new)
            assign_item(reader, h, index, new, t)
    else:
        refuse_write(reader, target)
    with pending_values(reader, [holder]) as held:
        held.append(settle(reader, read(held[0])))
        value = dispatch.evaluate(reader, node.value)
        return augmented_value(reader, function, held[1], value, node, lambda new: write(target, new, held[0]),
                               has_setter(reader, held[0], target))


def has_setter(reader: Reader, holder, target):
    """Whether an assignment calls a method of the user's class: the setter of a property, or __setitem__."""
    if not isinstance(holder, Struct) or holder.cls is None:
        return False
    if isinstance(target, gast.Subscript):
        return dunder(reader, holder, "__setitem__") is not None
    return hasattr(type(inspect.getattr_static(holder.cls, target.attr, None)), "__set__")


def augmented_value(reader: Reader, function, old, value, node, write, always_write=False):
    """old op= value: in place where the type is mutable, otherwise by `write(new value)`.

    always_write: call `write` after a change in place too, since a setter of the user's class expects the call
    """
    if isinstance(old, Struct):
        in_place = dunder(reader, old, f"__i{OPERATORS[function]}__")
        if in_place is not None:
            return write(dispatch.call_known(reader, in_place, [old, value], {}, node))
        if changed_in_place(reader, function, old, value, node):
            drop_beyond_maxlen(old)
            return write(old) if always_write else None
    if isinstance(old, (Grown, Rows)) and function is operator.add:
        extend = partial(grown_method, reader) if isinstance(old, Grown) else partial(rows_method, reader)
        extend(old, "extend", [value], {}, node)
        return write(old) if always_write else None
    if is_array(old):
        can_write(reader, old, node)
    result = dispatch.binary(reader, function, old, value, node)
    if is_array(old):
        check_augmented(reader, old, value, result, node)
        result = as_stored(reader, old, result)
    return None if changes_in_place(reader, old, value, result, node) and not always_write else write(result)


def changes_in_place(reader: Reader, old, value, result, node):
    """Whether x += v has been written into x and all its aliases; False if x has none."""
    if not is_array(old):
        if may_be_cell(reader, old) and (is_view(reader, old) or has_cell_alias(reader, old)):
            fail(reader, LanguageError, f"{old.hint} may be an array without axes, which something else shows, or a "
                 "number", node, "Write x = x + v to make a new number.")
        record_cell(reader, result, [old])
        return False
    if not has_alias(reader, old):
        return False
    replace_all(reader, old, result, node)
    return True


def as_stored(reader: Reader, old, result):
    """The result of x op= v, converted to x's dtype."""
    fact = fact_of(result)
    if not isinstance(fact, Array) or np.dtype(fact.dtype) == np.dtype(old.fact.dtype):
        return result
    return reader.build.cast(result, old.fact.dtype, old.hint)


def augment_item(reader: Reader, holder, node):
    """x[i] += v: reads and writes one place; an entry that an index array selects twice is written once."""
    if not is_array(holder):
        refuse_write(reader, node.target, holder)
    index, before = read_index(reader, node.target.slice), holder
    with pending_values(reader, [holder]) as held:
        value = settle(reader, dispatch.evaluate(reader, node.value))
    holder = held[0]
    value = as_operand(reader, array_of(reader, value, node) if isinstance(value, Struct) else value)
    if holder is not before:            # x[i], if it is a number, was read before evaluating v changed the array
        shown = item_of(reader, before, index, node.target)
        old = item_of(reader, holder, index, node.target) if is_array(shown) and is_view(reader, shown) else shown
        return write_entry(
            reader,
            holder,
            index,
            as_operand(reader, dispatch.binary(reader, BINARY[type(node.op)], old, value, node)),
            node.target,
        )
    basic = not any(is_array(p) for p in operands(index))
    if isinstance(node.op, gast.Add) and basic and isinstance(holder, Var) and \
            "biufc".index(fact_of(value).kind) <= "biufc".index(holder.fact.kind):
        return write_entry(reader, holder, index, value, node.target, put_add)
    if isinstance(node.op, gast.Sub) and basic and isinstance(holder, Var) and holder.fact.kind in "fc" and \
            "biufc".index(fact_of(value).kind) <= "biufc".index(holder.fact.kind) and fact_of(value).kind in "ifc":
        less = as_operand(reader, dispatch.operation(reader, operator.neg, [value], node))
        return write_entry(reader, holder, index, less, node.target, put_add)
    old = item_of(reader, holder, index, node.target)
    new = as_operand(reader, dispatch.binary(reader, BINARY[type(node.op)], old, value, node))
    if "biufc".index(fact_of(new).kind) > "biufc".index(holder.fact.kind):
        fail(
            reader,
            ShapeError,
            f"{spelled_value(reader, new)} cannot be written back into {spelled_value(reader, holder)}",
            node,
            "Create it with a dtype that holds both.",
        )
    return write_entry(reader, holder, index, new, node.target)


def check_augmented(reader: Reader, old, value, result, node):
    """Refuse x += v if it would change the dtype or shape of the array x."""
    fact, kinds = fact_of(value) if isinstance(value, (Var, Const)) else None, "biufc"
    fits = np.can_cast(np.dtype(fact_of(result).dtype), np.dtype(old.fact.dtype), "same_kind")
    wider = isinstance(fact, Array) and (kinds.index(fact.kind) > kinds.index(old.fact.kind) or
                                         fact.rank > old.fact.rank)
    if wider or not fits:
        fail(reader, ShapeError, f"{spell(fact if wider else fact_of(result))} cannot be added to {spell(old.fact)} "
             "in place", node, "Write x = x + v to make a new array.")


def assign(reader: Reader, target: gast.AST | None, value: Any) -> None:
    if isinstance(target, gast.Name):
        bind_name(reader, target.id, value)
    elif isinstance(target, (gast.Tuple, gast.List)):
        unpack(reader, target, value)
    elif isinstance(target, gast.Subscript):
        holder = settle(reader, dispatch.evaluate(reader, target.value))
        if is_box(target.value):
            takes_name(reader, target.value.id, value)
        assign_item(reader, holder, read_index(reader, target.slice), value, target)
    elif isinstance(target, gast.Attribute):
        assign_attribute(reader, target, value)
    else:
        refuse_write(reader, target)


def assign_item(reader: Reader, holder, index, value, target):
    method = dunder(reader, holder, "__setitem__")
    if method is not None:
        dispatch.call_known(reader, method, [holder, as_given(index), value], {}, target)
    elif isinstance(holder, Var) and isinstance(holder.fact, Array):
        value = settle(reader, value)
        value = array_of(reader, value, target) if isinstance(value, Struct) else value
        write_entry(reader, holder, index, as_operand(reader, value), target)
    elif isinstance(holder, Struct):
        put_element(reader, holder, index, value, target)
    elif isinstance(holder, Grown):
        set_grown(reader, holder, index, value, target)
    else:
        refuse_write(reader, target, holder)


def bind_name(reader: Reader, name: str, value: Any) -> None:
    """Bind a name to a value; a temporary that the statement has just made is renamed to it."""
    takes_name(reader, name, value)
    if isinstance(value, Walk) and value.static is not None:
        reads = value.reads
        value = iterator(reader, value.static, *(s for s, _ in value.sources))
        value.cls = (value.cls[0], (*value.cls[1], *reads), value.cls[2])
    if isinstance(value, Struct) and value.kind == "iterator":
        freeze(reader, value.cls[0])
    reader.environment.frame.env[name] = value


def takes_name(reader: Reader, name, value):
    """Rename a temporary that the statement has just made to the name that it is assigned to."""
    made = value.value if isinstance(value, Grown) else value
    if (
        isinstance(made, Var)
        and made.kind == TEMPORARY
        and reader.environment.frame.plain
        and made in reader.build.made
    ):
        made.hint, made.kind = spoken(name), USER


def unpack(reader: Reader, target, value):
    elements, value = target.elts, iterated_value(reader, value, target)
    star = next((k for k, e in enumerate(elements) if isinstance(e, gast.Starred)), None)
    if isinstance(value, Var) and isinstance(value.fact, Array):
        value = Struct("tuple", rows_to_unpack(reader, value, len(elements), star, target))
        elements, star = [e.value if k == star else e for k, e in enumerate(elements)], None
    if isinstance(value, Part) and isinstance(value.fact, Sequence):
        value = as_struct(reader, value)
    if isinstance(value, (View, Walk, RangeValue)) or \
            isinstance(value, Const) and isinstance(value.value, (str, tuple)):
        value = Struct("tuple", dispatch.elements_of(reader, value, target))
    if not isinstance(value, Struct):
        fail(reader, ShapeError, f"{spelled_value(reader, value)} cannot be unpacked", target)
    if value.kind == "iterator":
        value = Struct("tuple", remaining_elements(reader, value, target))
    if value.kind == "dict":
        value = Struct("tuple", [Const(k) for k in value.keys])
    items = value.items
    if star is None and len(items) != len(elements) or star is not None and len(items) < len(elements) - 1:
        fail(reader, ShapeError, f"{len(items)} values for {len(elements)} names", target)
    if star is not None:
        after = len(elements) - star - 1
        middle = Struct("list", items[star:len(items) - after])
        items = [*items[:star], middle, *items[len(items) - after:]]
        elements = [*elements[:star], elements[star].value, *elements[star + 1:]]
    elif (
        value.whole is not None
        and not reader.unroll
        and all(isinstance(i, Part) and isinstance(i.fact, Array) for i in items)
        and all(isinstance(e, gast.Name) for e in elements)
        and value.kind != "record"
        and len(items) > 1          # a single value is read as an item
    ):
        whole = operand_of_part(reader, value.whole)
        named = reader.build.several(
            [e.id for e in elements], Apply(unpacked, (whole,)), [i.fact for i in items], USER
        )
        for k, (e, v) in enumerate(zip(elements, named)):
            reader.environment.frame.env[e.id] = v
            reader.views.walked[v] = Apply(operator.getitem, (whole, Const(k)))     # an array inside the container
        return
    with pending_values(reader, [passed_value(reader, i) for i in items]) as held:
        for k, e in enumerate(elements):
            assign(reader, e, held[k])


def rows_to_unpack(reader: Reader, array, n, star, node):
    """The rows of an array for unpacking into n names; a starred name gets the list of the remaining rows."""
    if not array.fact.dims:
        fail(reader, ShapeError, "a scalar cannot be unpacked", node)
    length, least = array.fact.dims[0], n if star is None else n - 1
    size = length.size
    if size is not None and (size < least or star is None and size > least):
        fail(reader, ShapeError, f"an array of {size} rows for {n} names", node)
    if size is None:
        raise_where(reader, operator.ne if star is None else operator.lt, reader.build.length(array, 0), least,
                    f"expected {'' if star is None else 'at least '}{least} values to unpack", node)
    if star is None:
        unify(length, Length(None, n))
        return [reader.build.item(array, Const(k)) for k in range(n)]
    length.demand(least)
    after = n - 1 - star
    between = item_of(reader, array, Const(slice(star or None, -after or None)), node)
    return [
        *(reader.build.item(array, Const(k)) for k in range(star)),
        dispatch.call_value(reader, Const(list), [between], {}, node),
        *(reader.build.item(array, Const(k - after)) for k in range(after)),
    ]


def raise_where(reader: Reader, compare, value, number, why, node):
    """if compare(value, number): raise ValueError(why), as Python does for unpacking."""
    def fails():
        dispatch.effect(reader, gast.parse(f"raise ValueError({why!r})").body[0])
        return RAISED
    test = truth_value(reader, dispatch.operation(reader, compare, [value, Const(number)], node), node)
    read_branch(reader, test, fails, lambda: None, node)


def holds(value, mark):
    """Whether a value is the container with this mark, or contains it."""
    inner = value.items if isinstance(value, Struct) else held_by(value)
    return getattr(value, "mark", None) is mark or any(holds(v, mark) for v in inner)
