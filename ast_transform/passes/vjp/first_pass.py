# SPDX-License-Identifier: Apache-2.0
"""Peels the first backward pass of a loop that only one `return` or `break` leaves.

`while True` with one `return` or `break` takes that arm in its last pass only, which is the first pass backward.  So
the test need not be saved, and the arm reads the values that the loop ends with.  codegen/emit.py prints the arm before
the loop (loop peeling), and the loop's test in the middle of its body.

>>> import numpy as np
>>> import gradscribe as gs
>>> def f(x, c):
...     h = 1.0
...     while True:
...         x = np.sin(x) * c
...         if h + x > 3.0:
...             return h * x
...         h = h + x
>>> print(gs.grad(f).source_for(0.5, 1.5).split("dx = ", 1)[1])
h
    dh = x
    while True:
        x_1 = x_saved.pop()
        # x = np.sin(x) * c
        dx = dx * c * np.cos(x_1)
        if not x_saved:
            break
        # h = h + x
        dx += dh
    return dx
<BLANKLINE>

Source: loop peeling, Bacon, Graham and Sharp, Compiler transformations for high-performance computing, ACM Computing
Surveys 26(4), 1994, section 6.2.
"""
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradscribe.ast_transform.core.alias import repeatable, updates
from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    For,
    If,
    Let,
    Var,
    While,
    all_made,
    blocks,
    copied,
    negated,
    rebuilt,
    substituted,
    walk,
    without_effects,
)

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.sweep import Sweep


def leaving(loop: For | While) -> tuple[If, str] | None:
    """(the branch that leaves a loop, its arm "then" or "orelse") if nothing else ends the loop; None otherwise."""
    if not isinstance(loop, While) or not isinstance(loop.test, Var):
        return None
    asked = next((s.value for s in loop.head if isinstance(s, Let) and s.targets[0] is loop.test), None)
    if negated(asked) is None or len(loop.head) != 1:
        return None
    stop = next((c for c in loop.carries if c.inner is negated(asked)), None)
    if stop is None or not isinstance(stop.init, Const) or stop.init.value is not False:
        return None
    for step in loop.body:
        for j in step.joins if isinstance(step, If) and isinstance(step.test, Var) else ():
            if j.var is stop.next:
                for arm, other in (("then", "orelse"), ("orelse", "then")):
                    side = getattr(j, arm)
                    if isinstance(side, Const) and side.value is True and getattr(j, other) is stop.inner:
                        return step, arm
    return None


def left_with(sweep: "Sweep", loop: For | While, branch: If, arm: str) -> tuple[dict[Var, Var], list]:
    """({value in the last pass: its name after the loop}, statements that recompute what the arm that leaves made)."""
    joined = {j.var: getattr(j, arm) for j in branch.joins}
    ends = {c: joined.get(c.next, c.next) for c in loop.carries if isinstance(c.next, Var)}
    values, block = {v: c.outer for c, v in ends.items() if isinstance(v, Var)}, getattr(branch, arm)
    again = []
    if not any(isinstance(s, Let) and not is_pure(s.value) for s in walk(block)):
        again = without_effects(copied(block, values))
        for step in walk(again):
            if step.origin is not None:
                step.origin = step.origin.made_by(1)
        sweep.build.made.update({t: s.value for s in walk(again) if isinstance(s, Let) for t in s.targets})
        for v in {v for s in block for inner in blocks(s) for v in all_made(inner)}:
            del values[v]               # local to inner arms and loops
    return values, again


def is_pure(value):
    """Whether a value may be computed twice: it writes nothing, and has the same result each time."""
    return not isinstance(value, Apply) or not updates(value) and repeatable(value)


def first_apart(body: list, branch: If, arm: str, first: Var, values: dict[Var, Var], again: list) -> None:
    """Makes `first`, whether the pass is the first one backward, the test of the branch that leaves the loop."""
    for step in walk(body):
        if isinstance(step, If) and step.test is branch.test:
            if arm == "orelse":
                step.then, step.orelse = step.orelse, step.then
                for j in step.joins:
                    j.then, j.orelse = j.orelse, j.then
            step.test, step.then[:] = first, [*again, *in_place(step.then, values)]
            for j in step.joins:
                j.then = substituted(j.then, values)


def in_place(block, env):
    """Replaces variables in a block.  The lists stay the same objects, since tables refer to blocks by identity."""
    block[:] = [rebuilt(s, env, lambda inner: in_place(inner, env)) for s in block] if env else block
    return block


def with_known(body: list, first: Var, carries: Iterable[Carry]) -> None:
    """Propagates constants into the arms: a carry's init into the first pass, a constant next into the others."""
    begun = {c.inner: c.init for c in carries if isinstance(c.init, Const)}
    later = {c.inner: c.next for c in carries if isinstance(c.next, Const)}
    for step in walk(body):
        if isinstance(step, If) and step.test is first:
            for side, known in (("then", begun), ("orelse", later)):
                in_place(getattr(step, side), known)
                for j in step.joins:
                    setattr(j, side, substituted(getattr(j, side), known))
