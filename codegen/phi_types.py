# SPDX-License-Identifier: Apache-2.0
"""Gives each phi, a value that a loop carries or branches join, one type, before variables get names.

In Numba a name has one type: contiguous arrays that the function owns, or scalars of one dtype.  Where a value of
another dtype or layout would be copied into such a name, a statement that converts it is inserted before.
"""
from collections.abc import Container
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import aliased, updates
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Pack,
    Param,
    Var,
    While,
    all_made,
    copied,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import operation
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.out_of_ssa import changes


def owned(x: np.ndarray) -> np.ndarray:
    """A contiguous copy, for a carried value that the function must own."""
    return np.array(x)


operation(owned, memory=FRESH)


# --- one type for carries and joins -----------------------------------------------------------------------------------

def free_name(name, reserved):
    while name in reserved:
        name += "_"
    return name


def settle(function: Function, reserved: Container[str] = ()) -> Function:
    """A copy of a function in which carries and joins get values of their own dtype and layout."""
    env = {p.value: p.value.like() for p in function.params if isinstance(p.value, Var)}
    params = [
        Param(free_name(p.name, reserved), env.get(p.value, p.value) if isinstance(p.value, Var) else p.value)
        for p in function.params
    ]
    body = copied(function.body, env)
    made = Function(function.label, params, body, substituted(function.result, env), function.about)
    made.notes["renamed"] = env
    shown = {p.value for p in params if isinstance(p.value, Var)}
    maker = {}
    for step in walk(body):
        if isinstance(step, Let):
            for t in step.targets:
                maker[t] = step.value
        if isinstance(step, For):
            for v, _ in step.items:
                shown.add(v)
        if not isinstance(step, Let):
            maker.update((c.outer, step) for c in getattr(step, "carries", ()))
            maker.update((j.var, step) for j in getattr(step, "joins", ()))
    for v, value in [(v, value) for v, value in maker.items() if not isinstance(value, (For, While, If))]:
        if (
            isinstance(v.fact, Array)
            and v.fact.dims
            and (isinstance(value, Var) or isinstance(value, Apply) and is_view(value))
        ):
            shown.add(v)
    separate(params, body)
    copied_in, made.notes["updated"] = changes(made)
    _settle(body, shown, copied_in, made.notes["updated"], maker)
    return made


def is_view(value: Any) -> bool:
    return isinstance(value, Apply) and not updates(value) and bool(aliased(value))


def is_row(value, maker):
    """Whether a value is x[i] of a contiguous array, with integers for its first axes, and so contiguous too."""
    made = maker.get(value)
    if not isinstance(made, Apply) or getattr(made.function, "__name__", "") != "getitem":
        return False
    index, whole = made.args[1], maker.get(made.args[0])
    parts = index.items if isinstance(index, Pack) else [index]
    return all(isinstance(p, (Var, Const)) and isinstance(fact_of(p), Array) and not fact_of(p).dims and
               fact_of(p).kind in "iu" for p in parts) and whole is not None and not isinstance(whole, Var) and (
               not is_view(whole) or is_row(made.args[0], maker))


def separate(params, body):
    """Renames variables that share a name but differ in type."""
    types = {}
    for v in [*(p.value for p in params if isinstance(p.value, Var)), *all_made(body)]:
        kind = (np.dtype(v.fact.dtype), v.fact.rank) if isinstance(v.fact, Array) else repr(type(v.fact))
        seen = types.setdefault(v.hint, [])
        if kind not in seen:
            seen.append(kind)
        if kind != seen[0]:
            v.hint = f"{v.hint}_{seen.index(kind)}_"


def _settle(block, shown, copied_in, updated, maker):
    out = []
    for step in block:
        if isinstance(step, (For, While)):
            if isinstance(step, While):
                _settle(step.head, shown, copied_in, updated, maker)
            _settle(step.body, shown, copied_in, updated, maker)
            for c in step.carries:
                for side, before in (("init", out), ("next", step.body)):
                    value = getattr(c, side)
                    copy = (id(c), side) in copied_in or value in shown and not (
                        c.inner not in updated and is_row(value, maker))
                    setattr(c, side, _owned(before, value, c.inner, copy, step.origin))
        elif isinstance(step, If):
            for arm in ("then", "orelse"):
                inner = getattr(step, arm)
                _settle(inner, shown, copied_in, updated, maker)
                for j in step.joins:
                    setattr(j, arm, _owned(inner, getattr(j, arm), j.var, getattr(j, arm) in shown, step.origin))
        out.append(step)
    block[:] = out


def _owned(block, value, target, copy, origin):
    """A value that can be copied into a carried name; adds a conversion to the block if need be."""
    fact = target.fact
    if not isinstance(fact, Array) or isinstance(value, Const) or not isinstance(value, (Var, Apply)):
        return value
    if isinstance(value, Var):
        own = value.fact
        ranked = isinstance(own, Array) and own.rank == fact.rank
        if ranked and np.dtype(own.dtype) == np.dtype(fact.dtype) and (not fact.dims or not copy):
            return value
        if ranked:                      # the lengths of the carried name may change from pass to pass
            fact = Array(fact.dtype, own.dims, fact.length)
    new = Var(target.hint, fact, target.kind)
    block.append(Let((new,), Apply(owned, (value,)), origin))
    return new
