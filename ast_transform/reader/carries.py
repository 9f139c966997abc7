# SPDX-License-Identifier: Apache-2.0
"""Carried values: the names of a loop or branch come in; their operands come out, each with its path in a container.

This file also finds which containers a pass changes, and which carried names share an array.
"""
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import aliased, is_fresh, updates
from gradscribe.ast_transform.core.form import UNDEFINED, USER, Apply, Carry, Const, Undefined, Var, walk
from gradscribe.ast_transform.core.kinds import Array, Listed, Mismatch, Opaque, same_dtype, settled, spell
from gradscribe.ast_transform.passes.activity import has_ties
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.choices import same_path
from gradscribe.ast_transform.reader.container_aliases import places_of_variables
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.dynamic_lists import can_grow, element_of, entered_list, refuse_stale_list
from gradscribe.ast_transform.reader.list_of_tuples import element_of_each
from gradscribe.ast_transform.reader.memory import held_arrays, record_cell, storages
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import SET_BEFORE, Conflict, Grown, Part, Rows, Struct, alike, held_by
from gradscribe.ast_transform.reader.views import COPIED_FIRST, base_path, is_array, may_be_cell
from gradscribe.ast_transform.source.nonlocals import is_name_of_box


class NotALoop(Exception):
    """Raised if what the body does to containers differs from pass to pass."""


def operand_paths(reader: Reader, n: str, value: Any) -> dict:
    """The paths to the operands in a value."""
    if isinstance(value, (Struct, Part)):
        value = reader.environment.frame.env[n] = with_parts_read(reader, value)
    return slot_of_item(reader, value)


def with_parts_read(reader: Reader, value, above=()):
    """A container with all its parts read."""
    value = settle(reader, value)
    if not isinstance(value, Struct) or value.whole is None and not any(
            isinstance(i, (Part, Struct)) for i in value.items):
        return value
    if value in above:
        raise NotALoop(f"{spelled_value(reader, value)} holds itself, by way of others")
    items = [with_parts_read(reader, i, (*above, value)) for i in value.items]
    if value.whole is None:
        value.items[:] = items
        return value
    return Struct(value.kind, items, value.keys, value.cls)


def argument_parts(reader: Reader, value: Any) -> Any:
    """A container that is an argument, with its parts read; the container still belongs to the caller."""
    if isinstance(value, Part):
        value = settle(reader, value)
    if not isinstance(value, Struct) or value.whole is None:
        return value
    made = Struct(value.kind, [argument_parts(reader, i) for i in value.items], value.keys, value.cls)
    reader.containers.given_marks.add(made.mark)
    for item in made.items:
        if isinstance(item, Var) and isinstance(item.fact, Array) and item.fact.dims:
            reader.memory.tokens[item] = frozenset({item})
            reader.build.made.pop(item, None)         # an array of its own, not a view of the container
            reader.memory.entry_tokens |= {item}
    return made


def mark_given(reader: Reader, value: Any) -> None:
    """Mark a container that is an argument, and those in it, as belonging to the caller."""
    if (
        isinstance(value, Struct)
        and value not in reader.containers.outside
        and value.mark not in reader.containers.given_marks
    ):
        reader.containers.given_marks.add(value.mark)
        for item in value.items:
            mark_given(reader, item)


def slot_of_item(reader: Reader, value):
    if isinstance(value, Struct):
        return {(k, *p): None for k, i in enumerate(value.items) for p in slot_of_item(reader, i)}
    if (
        isinstance(value, Var)
        or isinstance(value, Const)
        and isinstance(fact_of(value), Array)
        and not isinstance(value.value, bool)
    ):
        return {(): None}
    if isinstance(value, Const) and isinstance(value.value, bool):
        return {(): None}
    return {}


def leaf_of(reader: Reader, value: Any, path: tuple) -> Any:
    for k in path:
        value = value.items[k]
    return value


def is_steady(reader: Reader, before: Any, after: Any) -> bool:
    """Whether a pass leaves those parts of a value unchanged that are not operands (a string, a function)."""
    if isinstance(before, Struct) and isinstance(after, Struct):
        if before.kind == "iterator":
            return True
        if before.mark is not after.mark and (before.kind, before.keys, before.cls, len(before.items)) != (
                after.kind, after.keys, after.cls, len(after.items)):
            raise NotALoop("a container changes its structure from pass to pass")
        return all(map(partial(is_steady, reader), before.items, after.items))
    if isinstance(after, Conflict):
        return isinstance(before, Conflict) or bool(slot_of_item(reader, before))
    if isinstance(before, Struct) and not slot_of_item(reader, before):
        return isinstance(after, (Part, Grown, Rows))
    if slot_of_item(reader, before) or isinstance(before, (Part, Grown, Conflict)):
        return True                 # checked in `pair_with_ends`
    if slot_of_item(reader, after) or isinstance(after, (Struct, Part, Grown)):
        return False                # before the loop: None, a string or a function
    if held_by(before) or held_by(after):
        return alike(before, after) and all(
            x.mark is y.mark if isinstance(x, (Struct, Grown)) and isinstance(y, (Struct, Grown)) else
            same_item(reader, x, y, ()) or held_by(x) and is_steady(reader, x, y)
            for x, y in zip(held_by(before), held_by(after)))
    return same_item(reader, before, after, ())


def entered_value(reader: Reader, n: Any, value: Any, leaves: dict, known: dict, inner: dict,
                  label: str | None = None) -> Any:
    """The value of a carried name when a pass begins."""
    made = inner.setdefault(n, {})
    def visit(v, path):
        if isinstance(v, Struct):
            return Struct(v.kind, [visit(i, (*path, k)) for k, i in enumerate(v.items)], v.keys, v.cls)
        if path in leaves:
            fact = known.get((n, path)) or _loose(fact_of(v))
            var = made[path] = Var((label or n).strip(), fact, USER)
            if v in reader.choices.partly:
                reader.choices.partly.add(var)
            if isinstance(v, Const) or not may_share(reader, v):
                reader.memory.owned.add(var)
            return var
        return v
    return visit(value, ())


def pair_with_ends(reader: Reader, n: str, made: dict, value: Any) -> dict:
    """Each carried operand with its value at the end of a pass."""
    pairs = {}
    for path, var in made.items():
        v = value
        for k in path:
            if not isinstance(v, Struct) or k >= len(v.items):
                raise NotALoop(f"{n} changes its structure from pass to pass")
            v = v.items[k]
        if isinstance(v, Conflict):
            dispatch.unroll_for_conflict(reader, v, None)
            if v.memory:
                raise NotALoop(f"{n} is {v.reason}")
            raise NotALoop(f"{n} changes its kind from pass to pass")
        v = settle(reader, v)
        if (
            not isinstance(v, (Var, Const))
            or _undefined(v)
            or isinstance(v, Const)
            and isinstance(fact_of(v), Opaque)
        ):
            raise NotALoop(f"{n} changes its kind from pass to pass")
        pairs[path] = (var, v)
    if not made and isinstance(value, (Var,)):
        raise NotALoop(f"{n} changes its kind from pass to pass")
    return pairs


def as_floats(reader: Reader, value: Any, var: Any, block: list) -> Any:
    """The value at the end of a path; an array of ints is cast if it is one of floats on another path.

    NumPy would truncate what is written into the array of ints: see `of_one_dtype`.
    """
    if not is_array(value) or value.fact.kind not in "iu" or fact_of(var).kind not in "fc" or \
            value in reader.choices.partly:       # a name that may be unset cannot be read
        return value
    reader.kinds.ints_or_floats.add(var)
    outer, reader.build.block = reader.build.block, block
    try:
        return reader.build.cast(value, np.dtype(var.fact.dtype), value.hint)
    finally:
        reader.build.block = outer


def replaced_leaves(reader: Reader, value: Any, after: Any, outers: dict) -> Any:
    def visit(v, path):
        if path in outers:
            return outers[path]
        if isinstance(v, Struct):
            return Struct(v.kind, [visit(i, (*path, k)) for k, i in enumerate(v.items)], v.keys, v.cls)
        return v
    if isinstance(value, Struct) and (not isinstance(after, Struct) or len(after.items) != len(value.items)):
        raise NotALoop("a container changes its structure from pass to pass")
    return visit(value, ())


def left_unset(reader: Reader, outer: Any, init: Any, value: Any, runs: bool) -> None:
    """Note that a loop may leave a value unset: a pass may, or there is no pass and no value before the loop."""
    if value in reader.choices.partly or not runs and (_undefined(init) or init in reader.choices.partly):
        reader.choices.partly.add(outer)


def after_struct(reader: Reader, n: str, value: Any, carries: list, earlier: Any, last: Any, runs: bool) -> Any:
    items = []
    for v in value.items:
        if isinstance(v, Var):
            outer = Var(n.strip(), last.fact(v.fact), USER)
            reader.memory.tokens[outer] = frozenset({outer}) | storages(reader, v)
            record_cell(reader, outer, [v])
            carries.append(Carry(v.like(fact=earlier.fact(v.fact)), UNDEFINED, v, outer))
            left_unset(reader, outer, UNDEFINED, v, runs)
            items.append(outer)
        elif isinstance(v, Struct):
            items.append(after_struct(reader, n, v, carries, earlier, last, runs))
        elif isinstance(v, Part):
            return Conflict("set inside a loop only")
        else:
            items.append(v)
    return Struct(value.kind, items, value.keys, value.cls)


@late
def containers_held(reader: Reader) -> dict:
    """The containers that names hold: {mark: (container, keys, items, class, places where it is held)}."""
    found: dict[Any, tuple] = {}
    def visit(v, place):
        for k, i in enumerate(held_by(v)):
            visit(i, (*place, k))
        if isinstance(v, Rows):
            found.setdefault(v.mark, (v, "rows", [], None, []))[-1].append(place)
        if isinstance(v, Grown):
            found.setdefault(v.mark, (v, "grown", [v.value], None, []))[-1].append(place)
        if isinstance(v, Struct):
            known = v.mark in found
            found.setdefault(v.mark, (v, v.keys, list(v.items), v.cls, []))[-1].append(place)
            for k, i in enumerate(v.items) if not known else ():
                visit(i, (*place, k))
    for frame in places_of_variables(reader):
        for n, v in frame.env.items():
            visit(v, (frame, n))
    return found


def changed_containers(reader: Reader, before: dict, slots: dict, reading: Any, stores: dict) -> bool:
    """Whether a pass has changed containers that the loop must carry; a change of structure is refused."""
    own, after = {(reader.environment.frame, n) for n in slots}, containers_held(reader)
    known = len(reading.items.containers)
    for mark, (holder, keys, items, cls, places) in before.items():
        value = after[mark][0] if mark in after else None
        if isinstance(holder, Rows):
            continue                # its columns are visited as lists
        if isinstance(holder, Grown):
            if not isinstance(value, Grown) or value.value is not items[0]:
                if not isinstance(value, Grown) or any(p[:2] in own for p in places):
                    raise NotALoop("a list changes its structure from pass to pass")
                carry_container(reading, places[0])
            continue
        if isinstance(value, (Grown, Rows)):        # an inner loop has turned it into one
            if not can_grow(reader, holder, places, own):
                raise NotALoop("a container changes its structure from pass to pass")
            element = value.element if isinstance(value, Grown) else element_of_each(reader, value)
            reading.items.grown.append((places[0], element))
            return True
        if lengthened(reader, holder, items, value, places, own, reading):
            return True
        named = [p[:2] in own for p in places]
        if value is None:
            if not all(named):
                raise NotALoop("a container changes its structure from pass to pass")
            continue
        if (value.keys, value.cls, len(value.items)) != (keys, cls, len(items)):
            raise NotALoop("a container changes its structure from pass to pass")
        if all(same_item(reader, a, b, stores) for a, b in zip(items, value.items)) or named == [True]:
            continue                # unchanged, or carried with its name
        if any(named):
            raise NotALoop("a container that another name holds changes from pass to pass")
        carry_container(reading, places[0])
    return len(reading.items.containers) > known


def carry_container(reading, place):
    if place not in reading.items.containers:
        reading.items.containers.append(place)


def lengthened(reader: Reader, holder, items, value, places, own, reading):
    """Whether a pass changes a list's length: the list must then have unknown length from before the loop."""
    if not can_grow(reader, holder, places, own) or value is None or \
            isinstance(value, Struct) and len(value.items) == len(items):
        return False
    held = value.items if isinstance(value, Struct) else []
    if not held and not items:
        return False
    reading.items.grown.append((places[0], element_of(reader, [*items, *held[len(items):]], None)))
    return True


def same_item(reader: Reader, a, b, stores):
    """Whether an item is unchanged, or is the same view of an array that the loop carries."""
    if isinstance(a, Struct) and isinstance(b, Struct):
        return a.mark is b.mark
    if isinstance(a, Var) and isinstance(b, Var) and a is not b and stores:
        (base, shown), (now, shows) = base_path(reader, a), base_path(reader, b)
        return base in stores and now is reader.environment.frame.env[stores[base]] and same_path(shown, shows)
    return a is b or isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and \
        not isinstance(a.value, np.ndarray) and a.value == b.value


def container_at(reader: Reader, place: tuple) -> Any:
    """The container at a place, which is (holder of variables, name, *numbers of items)."""
    value = dict(place[0].env.items())[place[1]]
    for k in place[2:]:
        value = value.items[k] if isinstance(value, Struct) else held_by(value)[k]
    return value


def enter_container(reader: Reader, place: tuple, known: dict, held: dict, aliases: dict, places: dict, stores: dict,
                    reading: Any) -> tuple:
    """Set the items of a container that the loop changes to their values when a pass begins; return all items."""
    holder = container_at(reader, place)
    if isinstance(holder, Grown):
        fact = known.get(((place, 0), ())) or holder.value.fact
        var = entered_list(reader, holder, fact, holder.value.hint)
        reader.memory.tokens[var] = storages(reader, holder.value) | {var} | aliases.get(((place, 0), ()), frozenset())
        held[place, 0] = {(): var}
        holder.value = var
        return holder, [var]
    for k, item in enumerate(holder.items):
        if (place, k) in reading.items.lost:
            holder.items[k] = Conflict(
                "an array that an earlier pass of the loop may have changed, or not", COPIED_FIRST, True)
            continue
        item = holder.items[k] = with_parts_read(reader, item) if isinstance(item, Part) else item
        leaves = slot_of_item(reader, item)
        if not leaves or isinstance(item, Struct) and item.kind != "tuple" and (
                item.mark not in places or len(places[item.mark][-1]) > 1 or (*place, k) in reading.items.containers):
            continue                # shared by all its holders, or carried at its own place
        if isinstance(item, Var) and base_path(reader, item)[0] in stores:
            continue                # a view of an array that the loop carries
        label = holder.keys[k] if holder.kind in ("object", "record") else \
            place[1].strip() if len(place) == 2 and is_name_of_box(place[1]) else \
            f"{place[1]}_{holder.keys[k] if holder.kind == 'dict' else k}"
        label = label if isinstance(label, str) and label.isidentifier() else "item"
        holder.items[k] = entered_value(reader, (place, k), item, leaves, known, held, label)
        for path, var in held[place, k].items():
            value = leaf_of(reader, item, path)
            reader.memory.tokens[var] = frozenset({var}) | aliases.get(((place, k), path), frozenset()) | (
                storages(reader, value) if isinstance(value, Var) else frozenset())
            record_cell(reader, var, [value])
            if ((place, k), path) in reading.maybe_aliased:
                reader.memory.owned.discard(var)
    return holder, list(holder.items)


def changed_items(reader: Reader, holders: dict, held: dict, stores: dict, lost: list) -> dict | None:
    """Each carried operand in a container with its value at the end of a pass; other items must stay unchanged."""
    pairs, after, more = {}, containers_held(reader), False
    for place, (holder, items) in holders.items():
        if holder.mark in after:        # a branch has replaced its Struct
            holder = after[holder.mark][0]
            holders[place] = holder, items
        if isinstance(holder, Grown):
            refuse_stale_list(reader, holder, None)
            pairs[(place, 0), ()] = held[place, 0][()], holder.value
            continue
        for k, (item, now) in enumerate(zip(items, holder.items)):
            if isinstance(now, Conflict):
                more = more or (place, k) not in lost
                lost += [(place, k)] if (place, k) not in lost else []
            elif (place, k) in held:
                for path, pair in pair_with_ends(reader, place[1], held[place, k], now).items():
                    pairs[(place, k), path] = pair
            elif not same_item(reader, item, now, stores):
                raise NotALoop("an item of a container changes its kind from pass to pass")
    return None if more else pairs


def leave_container(reader: Reader, holders: dict, held: dict, pairs: dict, lost: list, facts: dict, carries: list,
                    unchanged: dict, runs: bool, some: Callable) -> None:
    """Set the items of the containers that a loop changes to their values after the loop.

    some: a function that returns whether the loop certainly has a pass
    """
    for place, k in lost:
        container_at(reader, place).items[k] = Conflict(
            "an array that the loop may have changed, or not", COPIED_FIRST, True
        )
    for (place, k), made in held.items():
        holder, outers = container_at(reader, place), {}
        if isinstance(holder, Grown):
            var, new = pairs[(place, k), ()]
            fact = facts[(place, k), ()]
            if isinstance(fact, Listed) and fact.rank > 1 and holder.value.fact.dims[0].may_be_empty and not (
                    _is_longer(var.fact, new.fact) and some()):
                fact.dims[0].normal().symbol.empty = True
            outer = Var(var.hint, fact, USER)
            reader.memory.tokens[outer] = reader.memory.tokens[var] | storages(reader, new) | {outer}
            carries.append(Carry(var, holder.value, new, outer))
            holder.value, holder.element = outer, holders[place][0].element
            holder.version += 1
            continue
        item = holder.items[k] = with_parts_read(reader, holder.items[k])
        for path in made:
            var, new = pairs[(place, k), path]
            init = leaf_of(reader, item, path)
            if new is var:
                unchanged[var] = outers[path] = init
                continue
            outers[path] = outer = Var(var.hint, facts[(place, k), path], USER)
            reader.memory.tokens[outer] = reader.memory.tokens[var] | (
                storages(reader, new) if isinstance(new, Var) else frozenset()
            )
            record_cell(reader, outer, [var, new])
            carries.append(Carry(var, init, new, outer))
            left_unset(reader, outer, init, new, runs)
        holder.items[k] = replaced_leaves(reader, item, holders[place][0].items[k], outers)
        holder.version += 1


def has_stable_facts(reader: Reader, key: tuple, var: Any, value: Any, n: str, new: dict, reading: Any,
                     aliases: dict) -> bool:
    """Whether a carried value has the same facts when a pass ends as when it began."""
    try:
        fact = dispatch.one_fact(reader, var.fact, fact_of(value), f"?{n}")
    except Mismatch as error:
        raise NotALoop(f"{n.strip()} changes from pass to pass: {error}") from None
    new[key] = fact
    rest = settled(var.fact, fact, reading.since)
    if isinstance(value, Var) and isinstance(value.fact, Array):
        shown = reading.before if var in reader.lists.carried else reading.around
        more = frozenset(t for t in storages(reader, value) if t in shown) - reader.memory.tokens[var]
        if more:
            aliases[key] = aliases.get(key, frozenset()) | more
            rest = False
        if may_be_cell(reader, value) and var not in reader.views.cells:
            reading.cells.add(key)
            rest = False
        if var in reader.memory.owned and may_share(reader, value):
            reading.maybe_aliased.add(key)
            rest = False
    return rest


def has_stable_aliases(reader: Reader, ends: list, reading: Any, aliases: dict) -> bool:
    """Whether carried values that share memory at the end of a pass were assumed to share it at its beginning."""
    rest = True
    arrays = [(key, var, storages(reader, value)) for key, var, value in ends
              if is_array(value) or may_be_cell(reader, value)]
    for k, (key, var, shown) in enumerate(arrays):
        for other, second, as_well in arrays[:k]:
            if shown & as_well and not reader.memory.tokens[var] & reader.memory.tokens[second]:
                token = reading.token(other, second)
                for each in (key, other):
                    aliases[each] = aliases.get(each, frozenset()) | token
                rest = False
    return rest


def same_precision(reader: Reader, slots: dict, start: dict, facts: dict, body: list) -> None:
    """Raise NotALoop if a carried value changes its dtype and the first pass depends on that.

    Ties of a maximum depend on the precision; integers of few bits, and unsigned ones, wrap around.
    """
    ties = any(map(has_ties, walk(body)))
    for n in slots:
        for path in slots[n]:
            fact = facts.get((n, path))
            before = fact_of(leaf_of(reader, start[n], path)) if fact is not None else None
            if not isinstance(fact, Array) or not isinstance(before, Array) or same_dtype(fact.dtype, before.dtype):
                continue
            rounds = ties and fact.differentiable and before.differentiable and (
                fact.dims or before.dtype is not float)
            if rounds or wraps(before):
                raise NotALoop(f"{n.strip()} changes from pass to pass: {spell(before)} before, {fact.dtype} after")


def wraps(fact: Array) -> bool:
    """Whether arithmetic of whole numbers of this kind is not that of numbers: narrow, unsigned or of truth values."""
    return not fact.weak and fact.kind in "biu" and np.dtype(fact.dtype) != np.int64


def kept_from_before(reader: Reader, n: str, kept: dict, inner: dict, reading: Any, aliases: dict) -> Any:
    """The value at the beginning of a pass of a name that the loop sets first, and that a pass may not set."""
    if n not in kept:
        return UNDEFINED
    if not isinstance(kept[n], Array):
        return not_kept(kept[n])
    var = Var(n.strip(), kept[n], USER)
    reader.memory.tokens[var] = reading.token((n, ()), var) | kept.get((n, "shows"), frozenset()) | aliases.get(
        (n, ()), frozenset())
    inner[n] = {(): var}
    reader.choices.partly.add(var)
    return var


def has_alias(reader: Reader, var: Any) -> bool:
    """Whether another name, a container or a view may refer to this array."""
    seen = 0
    def count(v, above=frozenset()):
        if isinstance(v, Struct):
            return 0 if v in above else sum(count(i, {*above, v}) for i in v.items)
        return v is var
    for place in places_of_variables(reader):
        for _, value in place.env.items():
            seen += count(value)
    return seen > 1 or may_share(reader, var) or isinstance(var, Var) and any(
        v is not var and storages(reader, v) & storages(reader, var) for _, _, v in held_arrays(reader))


def may_share(reader: Reader, var: Any) -> bool:
    if not isinstance(var, Var) or var in reader.memory.owned or isinstance(var.fact, Array) and not var.fact.dims:
        return False
    made = reader.build.made.get(var)
    return not is_fresh(made) and not updates(made) or shown_by_view(reader, var)


def shown_by_view(reader: Reader, var):
    """Whether a name holds a view of the array."""
    for frame in reader.environment.stack:
        for value in frame.env.values():
            made = reader.build.made.get(value) if isinstance(value, Var) else None
            while isinstance(made, Apply) and aliased(made):
                if var in aliased(made):
                    return True
                made = reader.build.made.get(aliased(made)[0])
    return False


def not_kept(why: Any) -> Conflict:
    """The Conflict for a name that a pass may not set, and whose value from an earlier pass is not known."""
    return why if isinstance(why, Conflict) else Conflict("set in some passes of the loop only", SET_BEFORE)


def _loose(fact: Any) -> Any:
    """The fact of a carried value before its body is read: a literal's value may change."""
    if isinstance(fact, Array) and fact.length is not None:
        return Array(fact.dtype, fact.dims, fact.length)
    return fact


def _undefined(value: Any) -> bool:
    return isinstance(value, Const) and isinstance(value.value, Undefined)


def _is_longer(before, after):
    """Whether a list is certainly longer after a pass."""
    m, n = before.dims[0].normal(), after.dims[0].normal()
    return m.symbol is n.symbol and n.offset > m.offset
