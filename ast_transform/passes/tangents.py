# SPDX-License-Identifier: Apache-2.0
"""Tangents that are zero, and compact tangents broadcast to the shapes of their values."""
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import TANGENT, TEMPORARY, Apply, Const, Pack, Var, is_application
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence, Stack
from gradscribe.ast_transform.core.operations import no_elements, zeros_in_list
from gradscribe.ast_transform.passes.anf import Builder
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vjp.expansion import is_whole, typed
from gradscribe.ast_transform.passes.vjp.sweep import Sweep
from gradscribe.ast_transform.passes.words import is_plain, word


def zero_tangent(build: Builder, var: Var) -> Any:
    """The zero tangent of a value."""
    if isinstance(var.fact, Sequence):
        return zeros_of(build, var)
    if isinstance(var.fact, Stack) or is_application(build.made.get(var), no_elements):
        return build.let(f"{var.hint}_dot", Apply(no_elements, ()), var.fact, TANGENT)
    if isinstance(var.fact, Listed):
        return build.let(f"{var.hint}_dot", Apply(zeros_in_list, (var,)), var.fact, TANGENT)
    return Const(0.0)


def name_tangents(build: Builder, tangents: dict) -> None:
    """Names the tangents of values that have no name of their own after their operation: prod_x_dot, not t_dot."""
    for var, dot in tangents.items():
        if isinstance(dot, Var) and var.kind == TEMPORARY and is_plain(var.hint) and dot.hint == f"{var.hint}_dot":
            found = word(build.made.get(var), None, var.hint, not getattr(var.fact, "dims", ()))
            dot.hint = f"{found or var.hint}_dot"


def zeros_of(build, held):
    """Zeros for each number and array of a container."""
    fact, items = held.fact, []
    for key, element in zip(fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements)), fact.elements):
        if isinstance(element, Sequence) or isinstance(element, Array) and element.dims and element.differentiable:
            item = build.let("item", Apply(getattr if fact.kind == "record" else operator.getitem,
                                                (held, Const(key))), element)
            items.append(zeros_of(build, item) if isinstance(element, Sequence) else expanded(build, Const(0.0), item))
        else:
            items.append(Const(0.0))
    return Pack(fact.kind, tuple(items), fact.keys, fact.cls)


def in_its_dtype(build: Builder, value: Any, fact: Any) -> Any:
    """A tangent in the dtype of its value: it is to be written into, carried, joined, stored or returned."""
    if not isinstance(value, Var) or not isinstance(fact, Array) or not isinstance(value.fact, Array):
        return typed(value, fact)
    another = np.dtype(value.fact.dtype) != np.dtype(fact.dtype)
    if another and (fact.dims or fact.kind in "fc" and not fact.weak and not value.fact.weak) or \
            fact.kind == "c" and value.fact.kind != "c" and not fact.weak:
        return build.cast(value, np.dtype(fact.dtype), value.hint, value.kind)
    if fact.kind == "c" and value.fact.kind != "c":
        return build.let(value.hint, Apply(complex, (value,)), Array(complex), value.kind)
    return value


def expanded(build: Builder, value: Any, var: Var) -> Any:
    """A tangent with every axis of its value."""
    if isinstance(var.fact, Listed):
        return zero_tangent(build, var) if isinstance(value, Const) else value
    if not isinstance(var.fact, Array) or not var.fact.dims:
        return typed(value, Sweep.whole_fact(var)) if isinstance(var.fact, Array) else value
    fact, want = fact_of(value), var.fact
    if is_whole(fact, want.dims):
        return value
    whole = Array(np.dtype(Sweep.whole_fact(var).dtype), want.dims)
    hint = f"{var.hint}_dot"
    if isinstance(value, Const) and value.value == 0:
        kind = TANGENT if want.differentiable else TEMPORARY        # zeros for integers have no tangent dtype
        return build.apply(np.zeros_like, var, hint=hint, fact=whole, kind=kind)
    if fact.rank == 0:
        return build.apply(np.full_like, var, value, hint=hint, fact=whole, kind=TANGENT)
    shape = Pack("tuple", tuple(build.length(var, k) for k in range(want.rank)))
    return build.apply(np.broadcast_to, value, shape, hint=hint, fact=Array(fact.dtype, want.dims), kind=TANGENT)
