# SPDX-License-Identifier: Apache-2.0
"""Backward loops that go forward: where a pass only adds to adjoints, no pass waits for a later one, and what the loop
carries is made again on the way instead of being saved.

    for j in range(n):                      # for j in range(n):
        r -= x[j] * mul                     mul = 1.0
        mul *= t                            for j in range(n):
                                                dx[j] -= dr * mul
                                                mul *= t

Source: A. Griewank, A. Walther, Evaluating Derivatives (2008), chapter 12 (reversal is for what a pass hands on).
"""
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradscribe.ast_transform.core.alias import reads, repeatable, updates
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    Apply,
    Carry,
    Const,
    For,
    Function,
    Let,
    Var,
    all_reads,
    is_application,
    operands,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import Quoted, put_add

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.tape import Restore

LINES = 3                               # statements that are made again: one more costs a reader what a store does


def carried_along(restore: "Restore", needed: Iterable[Var]) -> list[Carry]:
    """The carries that a backward loop makes again in the forward loop's order, with all that it reads of a pass; none
    where it reads something else, or where its passes wait for each other.

    Compiled code saves numbers: made again, each would wait for the one before, where saved ones fill vectors.
    """
    step = restore.step
    if not isinstance(step, For) or not only_adds(restore.carries, restore.body):
        return []
    inside, free = restore.child.inside, {step.index, *(v for v, _ in step.items)}
    by_name, found, lines, queue, seen = {c.inner: c for c in step.carries}, [], set(), list(needed), set()
    while queue:
        v = queue.pop()
        if v in seen or v not in inside or v in free:
            continue
        seen.add(v)
        carry = by_name.get(v)
        if carry is not None:
            if not starts_anew(carry, restore):
                return []
            found.append(carry)
            queue.append(carry.next)
        elif made_in_a_line(v, restore):
            lines.add(id(restore.maker[v]))
            queue += operands(restore.maker[v].value)
        else:
            return []
    numbers = restore.sweep.engine.reader.unroll and not all(c.inner.fact.dims for c in found)
    return [] if numbers or len(lines) > LINES else found


def starts_anew(carry, restore) -> bool:
    """Whether what a loop begins with is there afterwards, and a pass makes the next value in a line of its own."""
    start, then = carry.init, carry.next
    if start is UNDEFINED or carry.inner in restore.sweep.engine.unset or not isinstance(then, Var):
        return False
    return type(carry.inner.fact) is Array and (isinstance(start, Const) or isinstance(start, Var)) and \
        made_in_a_line(then, restore)


def made_in_a_line(v, restore) -> bool:
    """Whether a pass makes a value by arithmetic, or by a view of what does not change, whatever way it takes."""
    made = restore.maker.get(v)
    if not isinstance(made, Let) or len(made.targets) > 1 or restore.home[v] is not restore.step.body or \
            not isinstance(made.value, Apply) or type(v.fact) is not Array or v in restore.undo:
        return False
    value = made.value
    if isinstance(value.function, (Function, Quoted)) or updates(value) or is_draw(value) or not repeatable(value) or \
            not all(type(o.fact) is Array for o in operands(value)):
        return False
    return restore.cheap(v)


def only_adds(carries, body) -> bool:
    """Whether a loop's body does nothing with what it carries but add to it, or hand it on as it is."""
    changed = [c for c in carries if c.next is not c.inner]
    return _adds(body, root := {c.inner: c.inner for c in changed}) and all(
        isinstance(c.next, Var) and root.get(c.next) is c.inner for c in changed)


def _adds(body, root):
    """root: {a sum so far: what it began as}, which grows."""
    for s in body:
        if isinstance(s, For):
            if any(v in root for v in (*operands(s.count), *(o for _, source in s.items for o in operands(source)))):
                return False
            mine = [c for c in s.carries if isinstance(c.init, Var) and c.init in root]
            root.update((c.inner, root[c.init]) for c in mine)
            if not _adds(s.body, root) or any(root.get(c.next) is not root[c.inner] for c in mine) or any(
                    c.next in root for c in s.carries if c not in mine):
                return False
            root.update((c.outer, root[c.inner]) for c in mine)
            continue
        found = [v for v in all_reads(s) if v in root]
        if not found or isinstance(s, Let) and reads(s.value) == "shape":
            continue
        if not isinstance(s, Let) or len(found) > 1 or len(s.targets) > 1:
            return False
        value, (old,) = s.value, found
        if not (is_application(value, put_add) and value.args[0] is old or
                is_application(value, operator.add) and old in value.args):
            return False
        root[s.targets[0]] = root[old]
    return True
