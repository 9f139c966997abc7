# SPDX-License-Identifier: Apache-2.0
"""Assigns values to variables in the loop form, with the checks of lengths that the facts of these need."""
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.kinds import Array
from gradscribe.codegen import shape_forms
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import node
from gradscribe.codegen.loops.form import change, names_in, names_of, renamed, set_by, statements
from gradscribe.codegen.lowered import Lazy


def assign(lowering: Any, target: Any, lazy: Any, clash: Any, view: bool = False) -> None:
    """name = value; clash: the value reads the name, so it is computed under another name first."""
    if target not in lowering.naming.names:
        return
    name, fact = lowering.naming[target], target.fact
    if not isinstance(fact, Array):
        lowering.refuse("a value that is no number and no array has no Numba form")
    if lazy.rank != fact.rank:
        if lazy.rank < fact.rank or any(d.kind != "one" for d in lazy.dims[:lazy.rank - fact.rank]):
            lowering.refuse(f"{target.hint} has rank {fact.rank}, its Numba form has {lazy.rank}")
        lazy = shape_forms.dropped(lazy, set(range(lazy.rank - fact.rank)))
    if not fact.dims:
        value = lazy.cast([], fact.dtype)
        if value != node(name):
            lowering.set(name, value)
        return
    hold(lowering, fact, lazy)
    lowering.keep(target, lazy.dims)
    lowering.views.pop(target, None)
    if lazy.name and lazy.exact == np.dtype(fact.dtype) and (not lazy.view or view):
        if lazy.name != node(name) and not taken_over(lowering, lazy.name, name):
            lowering.set(name, lazy.name)
        if lazy.view:
            lowering.views[target] = lazy.view
        return
    if clash or any(name in names_in(d.length) for d in lazy.dims):
        made = lowering.array(Lazy(lazy.dims, lazy.dtype, lazy.read, lazy.cost), fact.dtype)
        lowering.set(name, made.name)
        return
    lowering.array(Lazy(lazy.dims, lazy.dtype, lazy.read, lazy.cost, literal=lazy.literal), fact.dtype, name)


def hold(lowering, fact, lazy):
    """Adds checks of lengths that facts state and the lazy array does not guarantee."""
    for n, d in zip(fact.dims, lazy.dims):
        n = n.normal()
        if n.symbol is None and d.key != (None, n.offset) and not (n.offset == 1 and d.kind == "one"):
            lowering.say("same({}, {})", d.length, n.offset)
        elif n.symbol is not None and n.many and d.kind != "many":
            lowering.say("not_one({})", d.length)


def taken_over(lowering, temporary, name):
    """Renames a temporary of this statement to the target, if the target is not used meanwhile; returns whether."""
    made = lowering.body[lowering.program.start:]
    old = getattr(temporary, "id", None)
    if old not in lowering.program.temporaries or not any(
            isinstance(s, (loops.Let, loops.Alloc)) and s.name == old for s in statements(made)) or any(
            name in names_of(s) or name in set_by(s) for s in statements(made)):
        return False
    for s in statements(made):
        change(s, lambda e: renamed(e, {old: name}))
        if getattr(s, "name", None) == old:
            s.name = name
    return True
