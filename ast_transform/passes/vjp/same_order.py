# SPDX-License-Identifier: Apache-2.0
"""Backward loops that run in forward order: if passes only add to adjoints, their order does not matter, and forward
carries are recomputed along the way instead of being saved.

    for j in range(n):                      # for j in range(n):
        r -= x[j] * mul                     mul = 1.0
        mul *= t                            for j in range(n):
                                                dx[j] -= dr * mul
                                                mul *= t

Source: A. Griewank, A. Walther, Evaluating Derivatives (2008), chapter 12 (only dependences between passes need
reversal).
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

LINES = 3                               # statements to recompute at most; more read worse than saved values


def carried_along(restore: "Restore", needed: Iterable[Var]) -> list[Carry]:
    """The carries that a backward loop in forward order recomputes; empty if it must run backwards, or reads values
    that cannot be recomputed that way.

    Compiled code saves numbers instead: recomputing them would make each pass depend on the one before, which prevents
    vectorisation.
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
    """Whether the init of a carry is available after the loop, and one statement of a pass makes its next value."""
    start, then = carry.init, carry.next
    if start is UNDEFINED or carry.inner in restore.sweep.engine.analyses.unset or not isinstance(then, Var):
        return False
    return type(carry.inner.fact) is Array and (isinstance(start, Const) or isinstance(start, Var)) and \
        made_in_a_line(then, restore)


def made_in_a_line(v, restore) -> bool:
    """Whether a pass makes a value on every path, by arithmetic or by a view of an array that does not change."""
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
    """Whether a loop's body only adds to its carries."""
    changed = [c for c in carries if c.next is not c.inner]
    return _adds(body, root := {c.inner: c.inner for c in changed}) and all(
        isinstance(c.next, Var) and root.get(c.next) is c.inner for c in changed)


def _adds(body, root):
    """The same for a block; `root`, {version of a sum: the carry that it began as}, is extended."""
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
