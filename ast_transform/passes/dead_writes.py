# SPDX-License-Identifier: Apache-2.0
"""Dead store elimination for regions of arrays.

Reverse mode restores what a write replaced, and clears the adjoint of what was written.  Both are dead if no later
statement or iteration reads that region: then the final array serves as well, and nothing of it is saved.  A region
that is cleared and then added to is set instead.

>>> import numpy as np
>>> import gradscribe as gs
>>> def f(L, b):
...     x = np.zeros_like(b)
...     for i in range(len(b)):
...         x[i] = 3 * b[i]
...         x[i] -= L[i, :i] @ x[:i]
...     return np.sum(x)
>>> print(gs.grad(f, 1).source_for(np.eye(3), np.ones(3)).split("db = ")[1])
np.zeros_like(b)
    for i in reversed(range(b.shape[0])):
        # x[i] -= L[i, :i] @ x[:i]
        dx[:i] -= dx[i] * L[i, :i]
        # x[i] = 3 * b[i]
        db[i] = 3 * dx[i]
    return db
<BLANKLINE>
"""
import operator
from typing import Any

from gradscribe.ast_transform.analysis.regions import Regions, access
from gradscribe.ast_transform.core.alias import aliased, reads, record_of, updates
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    Effect,
    For,
    If,
    Let,
    Var,
    While,
    blocks,
    is_application,
    operands,
    replaced,
    same_operand,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put, put_add


def without_dead_writes(body: list, result: Any, params: list) -> tuple[list, Any]:
    """The body and the result without dead writes that reverse mode made; the statements are changed in place."""
    while found := set_first(body, (), Regions(body, result, params), set()):
        for v in found:
            while found[v] in found:
                found[v] = found[found[v]]
        body, result = replaced(body, found), substituted(result, found)
    sums: dict[int, list]
    regions, env, sums = Regions(body, result, params), {}, {}

    def visit(block, loops):
        for step in block:
            if own_write(step) is put:
                if not regions.read_later(step.targets[0], step.value.args[1], loops):
                    env[step.targets[0]] = step.value.args[0]
                    env.update(copied_before(step, block, regions))
                else:
                    env.update(copied_before(step, block, regions, kept=True))
            elif own_write(step) is put_add and (earlier := written_before(step, regions, loops)) is not None:
                array, index, value = step.value.args
                _, _, first = earlier.value.args
                zero = earlier.value.function is put and isinstance(first, Const) and first.value == 0
                total = value if zero else sum_of(first, value, step, sums)
                if total is not None:
                    env[earlier.targets[0]] = earlier.value.args[0]
                    step.value = Apply(earlier.value.function, (array, index, total))
            for inner in blocks(step):
                visit(inner, loops if isinstance(step, If) else (*loops, step))
        block[:] = [s for step in block for s in (*sums.get(id(step), ()), step)]

    visit(body, ())
    body, result = _put_in(env, body, result)
    return _put_in(written_back(body, Regions(body, result, params)), body, result)


def _put_in(env, body, result):
    """The body and the result with values substituted, through chains of replacements."""
    for v in env:
        while env[v] in env:
            env[v] = env[env[v]]
    return (replaced(body, env), substituted(result, env)) if env else (body, result)


def written_back(body, regions):
    """{array after a write of what is there already, x[i] = x[i]: the array before it}."""
    env = {}

    def visit(block, loops):
        for step in block:
            if own_write(step) is put and is_there(*step.value.args, loops, regions):
                env[step.targets[0]] = step.value.args[0]
                env.update(copied_before(step, block, regions))
            for inner in blocks(step):
                visit(inner, loops if isinstance(step, If) else (*loops, step))

    visit(body, ())
    return env


def is_there(array, index, value, loops, regions):
    """Whether a value was read from this region of an array, and no write has changed the region since."""
    if not isinstance(value, Var):
        return False
    if own_copy(made := regions.maker.get(value)):
        made = regions.maker.get(made.value.args[0])
    if not isinstance(made, Let) or not isinstance(made.value, Apply) or reads(made.value) != "part":
        return False
    if not regions.same(made.value.args[1], index) or value.fact.dtype != array.fact.dtype:
        return False
    while array is not made.value.args[0]:
        write = regions.maker.get(array)
        if own_write(write) not in (put, put_add) or not regions.apart(
                index, loops, write.value.args[1], regions.loops[array], None, array.fact):
            return False
        array = write.value.args[0]
    return True


def set_first(block, loops, regions, touched):
    """Moves the sum into a region that was cleared before the other sums into the array, as a write that sets it.

    Sums may be reordered.  Returns the replacements of values; the block is changed.  touched: ids of statements that
    have been moved since the regions were analysed.
    """
    env = {}
    for step in list(block):
        for inner in blocks(step):
            env.update(set_first(inner, loops if isinstance(step, If) else (*loops, step), regions, touched))
        found = cleared_and_added(step, block, loops, regions) if own_write(step) is put_add else None
        if found is None or any(id(s) in touched for s in (step, *found[0], *found[1])):
            continue
        (cleared, *_, first), moved = found
        touched.update(id(s) for s in (step, *found[0], *moved))
        array, _, value = step.value.args
        new, before = cleared.targets[0].like(), cleared.value.args[0]
        at = block.index(first)
        first.value = Apply(first.value.function, (new, *first.value.args[1:]))
        block[:] = [s for s in block[:at] if s is not cleared] + moved + [
            Let((new,), Apply(put, (before, cleared.value.args[1], value)), step.origin)] + [
            s for s in block[at:] if s is not step and not any(s is m for m in moved)]
        env.update({cleared.targets[0]: before, step.targets[0]: array})
    return env


def cleared_and_added(step, block, loops, regions):
    """([the write that clears the region, the writes after it, last first], what must be computed before), or None."""
    array, index, value = step.value.args
    places = {id(s): k for k, s in enumerate(block)}
    if is_view(value, regions):
        return None
    chain, after = [], step
    while True:
        made = regions.maker.get(array)
        if own_write(made) not in (put, put_add) or id(made) not in places:
            return None
        for use in regions.uses[array]:
            what, place = ("all", None) if use.part is not None else access(array, use.step)
            if what == "all" or what == "write" and use.step is not after or what == "part" and not regions.apart(
                    index, loops, place, use.loops, None, array.fact):
                return None
        before, place, new = made.value.args
        if made.value.function is put:
            if regions.same(place, index) and isinstance(new, Const) and new.value == 0:
                break
            if not regions.apart(index, loops, place, loops, None, array.fact):
                return None
        chain.append(made)
        array, after = before, made
    if not chain or regions.same(chain[-1].value.args[1], index):      # the sum that follows sets it as well
        return None
    first = chain[-1]
    moved, queue = [], [value]
    for v in queue:
        maker = regions.maker.get(v)
        if maker is None or places.get(id(maker), -1) < places[id(first)] or any(maker is m for m in moved):
            continue
        if not isinstance(maker, Let) or not isinstance(maker.value, Apply) or updates(maker.value) or aliased(
                maker.value) or maker.origin is None or not maker.origin.generated or is_draw(maker.value):
            return None
        moved.append(maker)
        queue += operands(maker.value)
    return [made, *chain], sorted(moved, key=lambda s: places[id(s)])


def is_view(value: Any, regions: Regions) -> bool:
    """Whether a value may be a view of an array, which may change."""
    shown = regions.maker.get(value) if isinstance(value, Var) and value.fact.dims else None
    return shown is not None and (
        not isinstance(shown, Let) or not isinstance(shown.value, Apply) or bool(aliased(shown.value)))


def copied_before(step, block, regions, kept=False):
    """{copy of the part that a write clears: the part itself}, if all readers of the copy come before a later write.

    x[i] += x[j] reads before it writes, even if the two parts overlap.  kept: the write stays, so the last reader of
    the copy must come before it.
    """
    array, index, _ = step.value.args
    places = {id(s): k for k, s in enumerate(block)}
    for use in regions.uses.get(array, ()):
        read = use.step.value if isinstance(use.step, Let) and use.part is None else None
        if not is_application(read, operator.getitem) or not same_operand(
                read.args[1], index):
            continue
        for copy in (u.step for u in regions.uses.get(use.step.targets[0], ()) if own_copy(u.step)):
            uses = [u for u in regions.uses.get(copy.targets[0], ()) if kept or u.step is not step]
            if not uses or not all(id(u.step) in places and u.part is None and only_reads(u.step, copy.targets[0])
                                   for u in uses):
                continue
            last = max(places[id(u.step)] for u in uses)
            if kept and last >= places[id(step)]:
                continue
            if kept or all(places.get(id(u.step), -1) >= last or id(u.step) in places and isinstance(u.step, Let) and
                   not updates(u.step.value)
                   for u in regions.uses.get(step.targets[0], ()) if u.part is None or u.role != "next"):
                return {copy.targets[0]: use.step.targets[0]}
    return {}


def only_reads(step, array):
    """Whether a statement reads an array, and its result does not alias it."""
    value = step.value if isinstance(step, Let) else None
    return isinstance(value, Apply) and (value.function is put_add and value.args[0] is not array or
                                         not updates(value) and not aliased(value))


def own_copy(step):
    """Whether a statement copies an array, and a transformation made it."""
    record = record_of(step.value.function) if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return record is not None and record.options.get("allocates") == "copied" and bool(
        record.options.get("elementwise")) and (step.origin is None or step.origin.generated)


def own_write(step: Let | For | While | If | Effect) -> Any:
    """The function by which a statement that a transformation made may write into an array; None of the user's."""
    if isinstance(step, Let) and (step.origin is None or step.origin.generated) and isinstance(step.value, Apply) and \
            isinstance(step.value.args[0] if step.value.args else None, Var):
        return step.value.function
    return None


def written_before(step, regions, loops):
    """The last write into the region that this statement adds to, if it has no other use in between; or None.

    None if a view is added: where a part of an array is set to one that overlaps it, NumPy may read what it has just
    written.
    """
    array, index, value = step.value.args
    after = step
    if is_view(value, regions):
        return None
    while True:
        made = regions.maker.get(array)
        if own_write(made) not in (put, put_add) or regions.loops[array] != loops:
            return None
        for use in regions.uses[array]:
            what, place = ("all", None) if use.part is not None else access(array, use.step)
            if what == "all" or what == "write" and use.step is not after or use.step is not step and \
                    what != "shape" and not regions.apart(index, loops, place, use.loops, None, array.fact):
                return None
        before, place, value = made.value.args
        if regions.same(place, index):
            return made
        array, after = before, made


def sum_of(first, second, step, sums):
    """The sum of two values of one shape, computed before a statement; None if their shapes or dtypes differ.

    sums: {id of a statement: the statements to insert before it}
    """
    facts = [v.fact if isinstance(v, Var) else None for v in (first, second)]
    if not all(type(f) is Array and f.kind in "fc" for f in facts) or facts[0].dtype != facts[1].dtype or \
            facts[0].rank != facts[1].rank or not all(m.same(n) for m, n in zip(facts[0].dims, facts[1].dims)):
        return None
    total = Var(first.hint, facts[0], TEMPORARY)
    value = Apply(operator.mul, (Const(2), first)) if first is second else Apply(operator.add, (first, second))
    sums[id(step)] = [Let((total,), value, step.origin)]
    return total
