# SPDX-License-Identifier: Apache-2.0
"""Rematerialisation: values that a backward loop recomputes, in the order of the forward loop and in the same arms."""
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from gradscribe.ast_transform.core.alias import raised
from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    For,
    If,
    Let,
    Var,
    While,
    all_reads,
    made,
    operands,
    rebuilt,
    replaced,
    walk,
)
from gradscribe.ast_transform.core.operations import pop
from gradscribe.ast_transform.passes.vjp.invertible import writes_a_part

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.tape import Restore


def compute_again(restore: "Restore", needed: Iterable[Var], saved: Container[Var], env: dict[Var, Any],
                  prefix: dict[int, list], after: dict[Var, Any], backward: list[Carry]) -> None:
    """Adds statements that recompute the values that are needed and not saved to `prefix`, and their names to `env`."""
    again, queue = {}, [v for v in needed if v not in saved]
    while queue:
        v = queue.pop()
        if v in again or v in saved:
            continue
        c = after.get(v)
        if v in restore.undo:
            sources = restore.undo.sources(v)
        elif c is not None and (not restore.cheap(v) or restore.found_by_the_next(c, saved)):
            again[v] = c
            queue.append(c.inner)
            continue
        else:
            sources = operands(restore.value_of(v))
        again[v] = None
        queue += [o for o in sources if o in restore.child.inside and o not in env and o in restore.home]
    for v in in_order(restore, again):
        c = again[v]
        if v in restore.undo and c is None and v not in env:
            env[v] = restore.undo.brought_back(v, env, prefix)
        elif c is not None and v not in env:
            held, end = Var(v.hint, v.fact, v.kind), Var(v.hint, v.fact, v.kind)
            backward.append(Carry(held, c.outer, c.inner, end))
            env[v] = held
        elif v not in env:          # not made already with another result of the same statement
            step, targets = restore.maker[v], []
            for t in step.targets:
                targets.append(Var(t.hint, t.fact, t.kind))
                env.setdefault(t, targets[-1])
            prefix.setdefault(id(restore.home[v]), []).append(     # what raises is the user's line again
                Let(tuple(targets), value := restore.value_of(v), step.origin if raised(step) and value is step.value
                    else None))


def in_order(restore, again):
    """Values to recompute, each after those that it is computed from."""
    out = {}

    def visit(v):
        if v in out or v not in again:
            return
        if v in restore.undo and again[v] is None:
            for o in restore.undo.sources(v):
                visit(o)
        elif again[v] is None:
            for o in operands(restore.value_of(v)):
                visit(o)
        out[v] = None

    for s in walk(restore.step.body):
        for v in _targets(s):
            visit(v)
    for v in again:
        visit(v)
    return list(out)


def assembled(restore: "Restore", body: list, env: dict[Var, Any], prefix: dict[int, list]) -> list:
    """The backward body with the statements that restore its values, each in its arm."""
    mirrored = {id(back): front for front, back in fronts(restore).items()}

    def placed(block, front):
        before = replaced(prefix.get(front, ()), env)
        return _late(before, [rebuilt(s, env, lambda inner: placed(inner, mirrored.get(id(inner)))) for s in block])

    return placed(body, id(restore.step.body))


def fronts(restore):
    """{forward block, by identity: the backward block that mirrors it}"""
    found = {}
    for block in {id(b): b for b in restore.home.values()}.values():
        if id(block) in restore.sweep.mirror:
            found[id(block)] = restore.sweep.mirror[id(block)]
    return found


def _targets(step):
    if isinstance(step, Let):
        return step.targets
    if isinstance(step, (For, While)):
        return [c.outer for c in step.carries]
    if isinstance(step, If):
        return [j.var for j in step.joins]
    return ()


def _late(steps, block):
    """The block with each restoring statement just before its first reader, so that the name of a value and that of its
    later version need not be live at once.  A read of an array stays before a write that undoes another.
    """
    for step in reversed(steps):
        wanted = set(made(step))
        if isinstance(step, Let) and isinstance(step.value, Apply) and step.value.function is pop:
            wanted = {step.targets[1]}
        shown = set(operands(step.value)) if isinstance(step, Let) and not writes_a_part(step) else ()
        place = next((k for k, s in enumerate(block) if not wanted.isdisjoint(all_reads(s)) or
                      writes_a_part(s) and s.value.args[0] in shown), len(block))
        block = [*block[:place], step, *block[place:]]
    return block
