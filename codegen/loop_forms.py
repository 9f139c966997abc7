# SPDX-License-Identifier: Apache-2.0
"""Lowering of blocks, loops and branches, with the values that they carry and join, to the loop form."""
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import Apply, Const, Let, Undefined, Var, all_made
from gradscribe.ast_transform.core.kinds import Array, Stack
from gradscribe.codegen.collectives import reductions, together
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, node, quoted
from gradscribe.codegen.loops.form import names_in
from gradscribe.codegen.lowered import ROW, Lazy
from gradscribe.codegen.phi_types import owned
from gradscribe.codegen.scalar_forms import literal, truth


def empty_list(lowering: Any, fact: Any) -> Any:
    """An empty list with a definite element type."""
    if not isinstance(fact, Stack) or not isinstance(fact.element, (Array, Stack)):
        lowering.refuse("a list of containers has no Numba form")
    return quoted("[{} for _ in range(0)]", nothing(lowering, fact.element))


def nothing(lowering, fact):
    """A placeholder value for a variable that is not set yet."""
    if isinstance(fact, Stack):
        return empty_list(lowering, fact)
    if not fact.dims:
        return literal(0, fact.dtype)
    lengths = [known_length(lowering, d) for d in fact.dims]
    lengths = [ZERO] * fact.rank if None in lengths else lengths        # it may be copied, but is never read
    return quoted("np.empty({}, {})", lengths, fact.dtype)


def known_length(lowering, length):
    """A length that is a constant or known from the arguments; else None."""
    n = length.normal()
    if n.symbol is None:
        return node(n.offset)
    if n.symbol not in lowering.program.named_lengths:
        return None
    name, offset = lowering.program.named_lengths[n.symbol]
    return name if n.offset == offset else quoted("{} + {}", name, n.offset - offset)


def copies(lowering: Any, pairs: Any) -> None:
    """Parallel assignments, in an order in which none overwrites what another reads."""
    moves: list = []
    for var, value in pairs:
        name = lowering.naming.names.get(var)
        if name is None or name in [t for t, _ in moves]:
            continue
        new = node(copied_value(lowering, var, value))
        if new != node(name):
            moves.append((name, new))
    while moves:
        free = next((k for k, (t, _) in enumerate(moves) if not any(
            t in names_in(n) for j, (_, n) in enumerate(moves) if j != k)), None)
        if free is None:
            lowering.set([t for t, _ in moves], [n for _, n in moves])
            return
        lowering.set(*moves.pop(free))


def copied_value(lowering, var, value):
    fact = var.fact
    if isinstance(value, Const) and isinstance(value.value, Undefined):
        return nothing(lowering, fact) if isinstance(fact, (Array, Stack)) else ZERO
    if isinstance(fact, Stack):
        if not isinstance(value, Var):
            lowering.refuse("a list that is a constant has no Numba form")
        return lowering.naming[value]
    if not isinstance(fact, Array):
        return ZERO if isinstance(value, Const) else lowering.refuse(
            "a value that a loop or a branch sets here is no number and no array, so it has no Numba form")
    if not fact.dims:
        return lowering.scalar(value, fact.dtype)
    lazy = lowering.lazy(value)
    if not lazy.rank:
        lowering.refuse("a number in one pass of a loop and an array in another has no Numba form")
    updated = lowering.program.function.notes["updated"]
    if lazy.view == ROW and var not in updated and lazy.exact == np.dtype(fact.dtype):
        return lazy.name                    # an alias is enough: nothing is written through it
    return lowering.array(lazy, fact.dtype).name


def _if(lowering, step):
    test = test_of(lowering, step.test)
    arms = []
    for arm in ("then", "orelse"):
        with lowering.into([]) as block:
            lower_block(lowering, getattr(step, arm))
            lowering.origin = step.origin or lowering.origin
            copies(lowering, [(j.var, getattr(j, arm)) for j in step.joins])
        arms.append(block)
    for j in step.joins:
        sides = [lowering.known.keys.get(v) for v in (j.then, j.orelse) if isinstance(v, Var)]
        if len(sides) == 2 and None not in sides and isinstance(j.var.fact, Array) and j.var.fact.dims:
            lowering.known.keys[j.var] = [a if a == b else (j.var, k) for k, (a, b) in enumerate(zip(*sides))]
            extents = [lowering.known.extents.get(v) or [None] * j.var.fact.rank for v in (j.then, j.orelse)]
            lowering.known.extents[j.var] = [a if a == b else None for a, b in zip(*extents)]
    then, orelse = arms
    if then:
        lowering.add(loops.If(test, then, orelse))
    elif orelse:
        lowering.add(loops.If(quoted("not {}", test), orelse, []))


def test_of(lowering: Any, test: Any) -> Any:
    """The test of a branch or a loop."""
    if isinstance(getattr(test, "fact", None), Stack):
        return quoted("len({}) > 0", lowering.naming[test])
    return truth(lowering.lazy(test).operand())


def into_loop(lowering, step):
    """The copies into a loop; a carried array of which only entries are written keeps its lengths."""
    copies(lowering, [(c.inner, c.init) for c in step.carries])
    for c in step.carries:
        if not isinstance(c.init, Var) or not isinstance(c.inner.fact, Array) or not c.inner.fact.dims:
            continue
        keys = lowering.known.keys.get(c.init) or [(c.init, k) for k in range(c.inner.fact.rank)]
        if is_updated(lowering, c.next, c.inner):
            lowering.known.keys[c.inner] = lowering.known.keys[c.outer] = keys
            lowering.known.extents[c.inner] = lowering.known.extents[c.outer] = lowering.known.extents.get(c.init)
            continue
        # if the value is set before the loop, facts say which lengths stay; `again` checks them after each pass
        stay = [m.same(n) and not m.is_unit and c.inner not in lowering.program.unset
                for m, n in zip(c.init.fact.dims, c.inner.fact.dims)]
        extents = lowering.known.extents.get(c.init) or [None] * len(keys)
        lowering.known.keys[c.inner] = [key if same else (c.inner, k) for k, (key, same) in enumerate(zip(keys, stay))]
        lowering.known.extents[c.inner] = [length if same else None for length, same in zip(extents, stay)]


def next_pass(lowering, step):
    """The copies at the end of a pass."""
    for c in step.carries:
        keys = lowering.known.keys.get(c.inner)
        if keys is None or not isinstance(c.next, Var) or c.next is c.inner or not isinstance(
                c.inner.fact, Array) or is_updated(lowering, c.next, c.inner):
            continue
        later = lowering.lazy(c.next).dims
        for k, (key, d) in enumerate(zip(keys, later)):
            if key != (c.inner, k) and key != d.key and d.kind != "one":
                kept = (lowering.known.extents.get(c.inner) or {k: None})[k]
                lowering.say("same({}, {})", kept or loops.Length(lowering.naming[c.inner], k), d.length)
        if c.outer in lowering.naming.names:
            lowering.known.keys[c.outer] = [key if key != (c.inner, k) else (c.outer, k) for k, key in enumerate(keys)]
            lowering.known.extents[c.outer] = lowering.known.extents.get(c.inner)
    copies(lowering, [(c.inner, c.next) for c in step.carries])


def is_updated(lowering, value, base):
    """Whether a value is `base` after writes to its entries."""
    for _ in range(200):
        if value is base:
            return True
        made = lowering.program.maker.get(value) if isinstance(value, Var) else None
        if isinstance(made, Let) and isinstance(made.value, Apply) and (
                updates(made.value) or made.value.function is owned):
            value = made.value.args[0]
        elif made is not None and hasattr(made, "inner"):
            if not is_updated(lowering, made.next, made.inner):
                return False
            value = made.init
        elif made is not None and hasattr(made, "then"):
            return is_updated(lowering, made.then, base) and is_updated(lowering, made.orelse, base)
        else:
            return False
    return False


def for_loop(lowering, step):
    changed = [*all_made(step.body), *(c.inner for c in step.carries)]
    changed = {lowering.naming[v] for v in changed if v in lowering.naming.names}
    sources = []
    for v, source in step.items:
        if isinstance(source, Apply) and source.function is range:
            sources.append((v, [steady(lowering, lowering.scalar(a), changed) for a in source.args]))
            continue
        array = lowering.lazy(source)
        array = array if array.name else lowering.array(array)
        if changed & names_in(array.name):
            array = lowering.array(Lazy(array.dims, array.dtype, array.read, 1))
        sources.append((v, array))
    key = lowering.length_key(step.count)
    count = lowering.atom(lowering.scalar(step.count), "n")
    into_loop(lowering, step)
    index = lowering.naming.names.get(step.index) or lowering.fresh("at")
    lowering.bounds[step.index] = key
    head = "for {} in range({} - 1, -1, -1):" if step.reverse else "for {} in range({}):"
    with lowering.inside(head, index, count) as block:
        for v, source in sources:
            if v in lowering.naming.names:
                set_item(lowering, v, source, node(index))
        lower_block(lowering, step.body)
        lowering.origin = step.origin or lowering.origin
        next_pass(lowering, step)
        if not block:
            lowering.add(loops.Nothing())
    copies(lowering, [(c.outer, c.inner) for c in step.carries])


def set_item(lowering, v, source, index):
    """Sets the item of a pass: an element of a range or of an array."""
    name = lowering.naming[v]
    if isinstance(source, list):
        start, _, by = source
        sign, by = ("-", by.args[0]) if is_less(by) and start != ZERO else ("+", by)
        value = index if by == loops.ONE else quoted("{} * {}", index, by)
        lowering.set(name, value if start == ZERO else quoted("{} {} {}", start, sign, value))
    elif source.rank == 1:
        lowering.set(name, source.read([index]))
    else:
        lowering.set(name, entry(source.name, index))
        lowering.views[v] = True
        lowering.keep(v, source.dims[1:])


def steady(lowering, value, changed):
    """A scalar as a loop invariant: under a new name if the body changes what it reads."""
    if is_less(value) and isinstance(value.args[0], loops.Const):
        return value
    if not changed & names_in(value):
        return lowering.atom(value)
    return node(lowering.result("t", "{}", value))


def while_loop(lowering, step):
    into_loop(lowering, step)
    with lowering.inside("while True:"):
        lower_block(lowering, step.head)
        lowering.origin = step.origin or lowering.origin
        with lowering.inside("if not {}:", test_of(lowering, step.test)):
            lowering.say("break")
        lower_block(lowering, step.body)
        lowering.origin = step.origin or lowering.origin
        next_pass(lowering, step)
    copies(lowering, [(c.outer, c.inner) for c in step.carries])


def lower_block(lowering: Any, steps: list) -> None:
    for group in together(steps):
        step = group[0]
        if step.origin is not None:
            lowering.origin = step.origin
        if len(group) > 1:
            reductions(lowering, group)
        else:
            STEPS[type(step).__name__](lowering, step)


def is_less(e):
    """Whether an expression is a negation."""
    return getattr(e, "op", "") == "neg"


# by the class of a statement; lowering.py adds those that hold no blocks
STEPS: dict[str, Callable[..., None]] = {"If": _if, "For": for_loop, "While": while_loop}
