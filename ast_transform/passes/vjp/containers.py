# SPDX-License-Identifier: Apache-2.0
"""Adjoints of containers: accumulated element by element; a loop over a list fills a list of adjoints."""
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradscribe.ast_transform.core.form import TEMPORARY, Apply, Const, Let, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Opaque, Sequence, same_dtype
from gradscribe.ast_transform.core.operations import push
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.types import static_key
from gradscribe.ast_transform.passes.vjp.expansion import created, expanded, in_its_dtype, shape_of_listed, zero_adjoint
from gradscribe.ast_transform.passes.vjp.precision import keeps_dtype

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.sweep import Sweep


class Pieces:
    """A partial adjoint of a container: for each element an operand, Pieces, a Taken or None."""
    __slots__ = ("elements", "fact")

    def __init__(self, fact, elements=None):
        self.fact, self.elements = fact, elements or [None] * len(fact.elements)


class Taken:
    """A reference to element k of a list of adjoints, which is read when it is needed."""
    __slots__ = ("k", "source")

    def __init__(self, source, k):
        self.source, self.k = source, k


def element_of(held, k):
    """Element k of a container's adjoint, given as Pieces, a Pack or a variable."""
    return held.elements[k] if isinstance(held, Pieces) else held.items[k] if isinstance(held, Pack) else Taken(held, k)


# -- lists of unknown length: their adjoints are arrays

def appended(sweep: "Sweep", step: Let, dy: Var | Const | Pack) -> None:
    """Reverses append, or insert at the front: the adjoint's last, or first, entry is that of the element."""
    (before, v), after = step.value.args, step.targets[0]
    dy = expanded(sweep, dy, after)
    place, rest = (-1, slice(None, -1)) if step.value.function is push else (0, slice(1, None))
    if isinstance(v, Var) and v in sweep.active:
        sweep.add(v, sweep.in_python(sweep.build.item(dy, Const(place), f"d{v.hint}"), v.fact))
    if before in sweep.active:
        sweep.add(before, sweep.build.item(dy, Const(rest), f"d{before.hint}"))


def taken_off(sweep: "Sweep", before: Var, rest: Var, value: Var, dys: list) -> None:
    """Reverses pop: the adjoint of the list before it."""
    drest = left_of_list(sweep, rest, value, dys[0])
    dy = expanded(sweep, zero_adjoint(sweep, value) if dys[1] is None else dys[1], value)
    whole = sweep.whole_fact(before)
    words = {} if isinstance(dy, Var) or whole.dtype == np.float64 else {"dtype": Const(np.dtype(whole.dtype))}
    last = sweep.build.item(dy, Const(None)) if value.fact.dims else \
        sweep.build.apply(np.array, Pack("list", (dy,)), **words)
    sweep.add(before, sweep.build.apply(np.concatenate, Pack("tuple", (drest, last)), hint=f"d{before.hint}",
                                        fact=whole))


def left_of_list(sweep, rest, value, drest):
    """The expanded adjoint of a list after pop; if the list is empty, its elements' shape is read from the value."""
    if not value.fact.dims or shape_of_listed(sweep, rest) is not None:
        return expanded(sweep, zero_adjoint(sweep, rest) if drest is None else drest, rest)
    shape = Pack("tuple", (sweep.build.length(rest, 0), *(
        sweep.build.length(value, k) for k in range(value.fact.rank))))
    if drest is None:
        return created(sweep, np.zeros, (shape,), np.dtype(rest.fact.dtype), sweep.whole_fact(rest), f"d{rest.hint}")
    return sweep.build.apply(np.reshape, expanded(sweep, drest, rest), shape, fact=sweep.whole_fact(rest))


def add_to_container(sweep: "Sweep", var: Var, value: Pieces | Pack | Var) -> None:
    if not sweep.is_outside(var):
        add_pieces(sweep, own_pieces(sweep, var), value)
        return
    for k in range(len(var.fact.elements)):
        give_element(sweep, var, k, element_of(value, k))


def own_pieces(sweep, container):
    """The partial adjoint of a container, as Pieces."""
    if sweep.is_outside(container):
        raise AssertionError("a loop adds to the adjoint of a container from outside")
    held = sweep.adjoint.get(container)
    if not isinstance(held, Pieces):
        held = sweep.adjoint[container] = in_pieces(sweep, held, container.fact)
    return held


def in_pieces(sweep, held, fact):
    if held is None:
        return Pieces(fact)
    held = read_piece(sweep, held) if isinstance(held, Taken) else held
    return Pieces(fact, [element_of(held, k) for k in range(len(fact.elements))])


def give_element(sweep: "Sweep", container: Var, k: int, part: Pieces | Taken | Pack | Var | Const | None) -> None:
    """Adds a contribution to the adjoint of element k of a container."""
    fact = container.fact.elements[k]
    if not sweep.is_outside(container):
        add_piece(sweep, own_pieces(sweep, container), k, part, fact)
    elif part is not None:
        give_outside(sweep, container, (k,), part, fact)


def give_outside(sweep, container, path, part, fact):
    """The same for a container from outside the loop, which carries a sum for each array in the container."""
    if not fact.differentiable:
        return
    part = read_piece(sweep, part) if isinstance(part, Taken) else part
    if isinstance(fact, Sequence):
        for k, f in enumerate(fact.elements):
            if element_of(part, k) is not None:
                give_outside(sweep, container, (*path, k), element_of(part, k), f)
        return
    sweep.add(element_outside(sweep, container, path), part)


def element_outside(sweep, container, path):
    """A variable for an element of a container, set before the outermost loop that the container is outside of."""
    around, step = sweep, None
    while around.outer is not None and around.is_outside(container):
        around, step = around.outer, around.loop_step
    known = sweep.engine.elements.get((container, path, id(step)))
    if known is not None:
        return known
    value, fact = container, container.fact
    for k in path:
        key = fact.keys[k] if fact.kind in ("dict", "record") else k
        function = getattr if fact.kind == "record" else operator.getitem
        fact = fact.elements[k]
        made = Var(f"{container.hint}_{'_'.join(map(str, path))}", fact)
        sweep.engine.insert_before(step, Let((made,), Apply(function, (value, Const(key))), step.origin))
        around.note(made)
        sweep.made_by[made] = Apply(function, (value, Const(key)))
        value = made
    sweep.active.add(value)
    sweep.engine.elements[container, path, id(step)] = value
    sweep.engine.places[value] = (container, path)
    return value


def settle_elements(sweep: "Sweep", variables: Iterable[Var]) -> None:
    """Moves sums for elements of containers to the containers' adjoints, once the outermost such loop has ended."""
    for v in variables:
        container, path = sweep.engine.places.get(v, (None, ()))
        if container is None or sweep.is_outside(container):
            continue
        held, fact = own_pieces(sweep, container), container.fact
        for k in path[:-1]:
            fact = fact.elements[k]
            if not isinstance(held.elements[k], Pieces):
                held.elements[k] = in_pieces(sweep, held.elements[k], fact)
            held = held.elements[k]
        add_piece(sweep, held, path[-1], sweep.adjoint.pop(v), fact.elements[path[-1]])


def add_pieces(sweep, held, value):
    """Adds a container's adjoint, given as Pieces, a Pack or a variable, to Pieces."""
    for k, fact in enumerate(held.fact.elements):
        add_piece(sweep, held, k, element_of(value, k), fact)


def add_piece(sweep, held, k, part, fact):
    if part is None or not fact.differentiable:
        return
    earlier = held.elements[k]
    if earlier is None:
        if isinstance(fact, Sequence) and not isinstance(part, Taken):
            earlier = held.elements[k] = Pieces(fact)
            add_pieces(sweep, earlier, part)
        else:
            held.elements[k] = part
        return
    if isinstance(fact, Sequence):
        if isinstance(earlier, Taken):
            source = read_piece(sweep, earlier)
            earlier = held.elements[k] = Pieces(fact)
            add_pieces(sweep, earlier, source)
        add_pieces(sweep, earlier, read_piece(sweep, part) if isinstance(part, Taken) else part)
        return
    held.elements[k] = sweep.build.add(whole_piece(sweep, part, fact), whole_piece(sweep, earlier, fact))


def whole_piece(sweep, part, fact):
    return read_piece(sweep, part) if isinstance(part, Taken) else part


def read_piece(sweep: "Sweep", part: Taken) -> Var:
    """The variable that holds an element of a container of adjoints."""
    function: Callable
    fact, key, function = part.source.fact, part.k, operator.getitem
    if isinstance(fact, Sequence) and fact.kind in ("dict", "record"):
        key, function = fact.keys[part.k], getattr if fact.kind == "record" else operator.getitem
    element = fact.elements[part.k] if isinstance(fact, Sequence) else fact.element
    return sweep.build.let(part.source.hint, Apply(function, (part.source, Const(key))), element, TEMPORARY)


# -- statements on containers

def item_of_container(sweep: "Sweep", container: Var, index: Var | Const | Slice,
                      dy: Pieces | Pack | Var | None) -> None:
    if dy is None or container not in sweep.active:
        return
    key = static_key(index)
    if container.fact.kind in ("dict",):
        key = container.fact.keys.index(key)
    if isinstance(key, slice):
        for j, k in enumerate(range(len(container.fact.elements))[key]):
            give_element(sweep, container, k, element_of(dy, j))
        return
    give_element(sweep, container, key % len(container.fact.elements), dy)


def field_adjoint(sweep: "Sweep", step: Let, dys: list) -> None:
    container, key = step.value.args
    if container in sweep.active and dys[0] is not None:
        give_element(sweep, container, container.fact.keys.index(key.value), dys[0])


def unpack_statement(sweep: "Sweep", step: Let, dys: list) -> None:
    """a, b = container"""
    (container,) = step.value.args
    if container not in sweep.active:
        return
    for k, (d, t) in enumerate(zip(dys, step.targets)):
        give_element(sweep, container, k, d if d is None or isinstance(t.fact, Sequence) else expanded(sweep, d, t))


def unpack_pack(sweep: "Sweep", pack: Pack, dy: Pieces | Pack | Var) -> None:
    """Adds the parts of the adjoint of (a, b) to a and b."""
    for k, item in enumerate(pack.items):
        part = element_of(dy, k)
        if part is None:
            continue
        part = read_piece(sweep, part) if isinstance(part, Taken) else part
        if isinstance(item, Pack):
            unpack_pack(sweep, item, part)
        elif isinstance(item, Var) and item in sweep.active:
            sweep.add(item, part)


# -- whole containers

def materialised(sweep: "Sweep", value: Any, fact: Any,
                 path: Var | tuple | None = None) -> Var | Const | Pack:
    """The adjoint of a container as one operand, with zeros for missing elements."""
    if isinstance(value, Taken):
        value = read_piece(sweep, value)
    if not isinstance(fact, Sequence):
        if value is None:
            return zero_like_path(sweep, fact, path)
        return finished(sweep, value, fact, path)
    if isinstance(value, Var) and isinstance(value.fact, Sequence):
        return value
    if value is None:
        value = Pieces(fact)
    if isinstance(value, Pack):
        value = Pieces(fact, list(value.items))
    whole = whole_run(value)
    if whole is not None:
        return whole
    keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
    items = tuple(materialised(sweep, v, f, part_path(path, key, fact)) for v, f, key in
                  zip(value.elements, fact.elements, keys))
    return Pack(fact.kind, items, fact.keys, fact.cls)


def without_others(sweep: "Sweep", held: Var | Const | Pack, fact: Any) -> Var | Const | Pack:
    """The adjoint of a whole container, with None for parts that have none: integers, bools."""
    if not isinstance(fact, Sequence):
        return held if fact.differentiable or isinstance(fact, Opaque) else Const(None)
    if all_differentiable(fact):
        return held
    items = []
    for k, f in enumerate(fact.elements):
        part = element_of(held, k)
        items.append(without_others(sweep, read_piece(sweep, part) if isinstance(part, Taken) else part, f))
    return Pack(fact.kind, tuple(items), fact.keys, fact.cls)


def all_differentiable(fact):
    return all(map(all_differentiable, fact.elements)) if isinstance(fact, Sequence) else \
        fact.differentiable or isinstance(fact, Opaque)


def whole_run(value):
    """The list that all elements are taken from, in order; None if there is none."""
    elements = value.elements
    if elements and all(
        isinstance(e, Taken) and e.source is elements[0].source and e.k == k for k, e in enumerate(elements)
    ):
        source = elements[0].source
        if (
            isinstance(source.fact, Sequence)
            and len(source.fact.elements) == len(elements)
            and source.fact.kind == value.fact.kind
            and source.fact.keys == value.fact.keys
        ):
            return source
    return None


def part_path(path, key, fact):
    return None if path is None else (path, key, fact)


def value_at(sweep, path):
    """A statement that reads the primal container at a path."""
    if isinstance(path, Var):
        return path
    parent, key, fact = path
    k = fact.keys.index(key) if fact.kind in ("dict", "record") else key
    function = getattr if fact.kind == "record" else operator.getitem
    source = value_at(sweep, parent)
    return sweep.build.let(source.hint, Apply(function, (source, Const(key))), fact.elements[k])


def zero_like_path(sweep: "Sweep", fact: Any, path: Var | tuple | None) -> Var | Const | Pack:
    if not isinstance(fact, Array):
        return Const(None)
    if not fact.differentiable:
        return Const(None) if path is None else value_at(sweep, path)
    if not fact.dims:
        return finished(sweep, Const(0.0), fact, path)
    if path is None:
        raise AssertionError("no array to make zeros of")
    return sweep.build.apply(
        np.zeros_like, value_at(sweep, path), fact=Array(np.dtype(fact.dtype), fact.dims), hint="d"
    )


def finished(sweep: "Sweep", value: Var | Const | Pack, fact: Any, path: Var | tuple | None) -> Var | Const | Pack:
    """An adjoint as a result: expanded, in the dtype of its value, and a float if it is a literal."""
    if not isinstance(fact, Array):
        return value
    found = fact_of(value)
    if isinstance(value, Const) and not fact.dims:
        value = Const(float(value.value)) if type(value.value) is int else value
        if fact.weak:
            return Const(complex(value.value)) if fact.kind == "c" else value
        return value if fact.dtype == np.float64 else Const(fact.dtype.type(value.value))
    if fact.dims and (
        found.rank != fact.rank or not all(a.same(b) or a.many or b.is_unit for a, b in zip(found.dims, fact.dims))
    ):
        var = path if isinstance(path, Var) else value_at(sweep, path)
        return in_its_dtype(sweep, expanded(sweep, value, var), fact)
    value = sweep.floating(value)
    found = fact_of(value)
    if fact.weak and fact.kind == "c" and found.kind == "f" and not fact.dims:
        return sweep.build.let("t", Apply(complex, (value,)), fact)
    if fact.weak and not found.weak and found.kind == "f" and found.dtype != np.float64 and not fact.dims:
        return sweep.build.let("t", Apply(float, (value,)), fact)
    if sweep.engine.analyses.mixed and fact.kind == "f" and isinstance(value, Var) and not (    # one for each path
            fact.dims and same_dtype(found.dtype, fact.dtype) and keeps_dtype(sweep.build.block, value)):
        return sweep.build.let("t", Apply(float, (value,)), fact) if fact.weak else sweep.converted(value, fact.dtype)
    if not fact.weak and not same_dtype(found.dtype, fact.dtype) and not (
            found.weak and fact.dtype == np.float64):
        value = sweep.converted(value, fact.dtype)
    return value
