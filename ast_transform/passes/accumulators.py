# SPDX-License-Identifier: Apache-2.0
"""Scalar replacement: what each iteration adds to one entry of an adjoint is summed in a scalar, and added afterwards.

Nothing in the loop may read or set the entry.  A statement beside the loop must use the same index, because the write
after the loop runs even if there is no iteration.  This is for compiled code, which keeps the scalar in a register.

Source: S. Carr and K. Kennedy, Scalar replacement in the presence of conditional control flow, Software: Practice and
Experience 24 (1994).

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import gradient, show
>>> from gradscribe.ast_transform.passes.simplify import simplify
>>> text = '''def f(A, x):
...     total = 0.0
...     for i in range(len(x)):
...         total += np.sin(x[i])
...         for k in range(i):
...             total += A[i, k] * x[i]
...     return total'''
>>> made = summed_in_numbers(simplify(gradient(text, np.eye(3), np.ones(3), wrt=(1,))))
>>> print("\\n".join(line[8:] for line in show(made).splitlines()[5:13]))
enter dx_i = 0.0
for k in reversed range(i):
    A_1 = A[(i, k)]
    dx_i_1 = dx_i + A_1
    next dx_i = dx_i_1
leave dx_i_2 = dx_i
dx_2 = put_add(dx_1, i, dx_i_2)
x_1 = x[i]
"""
import operator

from gradscribe.ast_transform.analysis.regions import Regions, access, named
from gradscribe.ast_transform.core.alias import parts_of, reads, updates
from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    For,
    Function,
    If,
    Let,
    Var,
    While,
    blocks,
    operands,
    replaced,
    same_operand,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put_add
from gradscribe.ast_transform.passes.dead_writes import own_write
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.types import item


def summed_in_numbers(function: Function) -> Function:
    """A function with such entries summed in scalars; it is changed in place."""
    params = [p.value for p in function.params]
    while (found := _find(function.body, (), (), Regions(function.body, function.result, params))) is not None:
        _replace(*found)
    return function


def _find(block, loops, before, regions):
    """The arguments of `_replace` for an innermost loop with such an entry in a carried array, or None."""
    for at, loop in enumerate(block):
        inside = loops if isinstance(loop, If) else (*loops, loop)
        for inner in blocks(loop):
            found = _find(inner, inside, (*before, *block), regions)
            if found is not None:
                return found
        for carry in loop.carries if isinstance(loop, (For, While)) else ():
            names = _names(carry, loop, regions) if type(carry.inner.fact) is Array else None
            for step in loop.body if names else ():
                if _adds_a_number(step, names) and _stays(step.value.args[1], loop, regions) and \
                        _reached(step.value.args[1], carry.inner.fact, (*before, *block)) and \
                        _untouched(step.value.args[1], names, loops, regions):
                    return block, at, carry, step.value.args[1], names, regions
    return None


def _names(carry, loop, regions):
    """The versions of a carried array in one iteration, or None if it is used as a whole or not carried on."""
    names = [carry.inner]
    for v in names:
        for use in regions.uses.get(v, ()):
            if use.part is carry and use.role == "next":
                continue
            if use.part is not None:
                if use.step is loop or not any(v is o for o in named(use)):
                    return None
                more = [use.part.var] if use.role == "join" else [use.part.inner, use.part.outer]
            else:
                what, _ = access(v, use.step)
                if what == "all":
                    return None
                more = use.step.targets if what == "write" else ()
            names += [m for m in more if not any(m is n for n in names)]
    return names if any(carry.next is n for n in names) else None


def _adds_a_number(step, names):
    """Whether a statement that reverse mode made adds a scalar to an entry of the array."""
    if own_write(step) is not put_add or not any(step.targets[0] is n for n in names):
        return False
    array, index, value = step.value.args
    fact = fact_of(value)
    return not item(array.fact, index).rank and isinstance(fact, Array) and not fact.rank and (
        fact.weak and fact.kind != "c" or fact.dtype == array.fact.dtype) and array.fact.kind in "fc"


def _stays(index, loop, regions):
    """Whether an index is loop-invariant."""
    return all(loop not in regions.loops.get(v, ()) for v in operands(index))


def _reached(index, fact, steps):
    """Whether one of these statements, which run whenever the loop does, indexes an array of this shape alike."""
    for step in steps:
        value = step.value if isinstance(step, Let) else None
        if isinstance(value, Apply) and value.args and (reads(value) == "part" or updates(value)):
            array = value.args[0]
            if isinstance(array, Var) and type(array.fact) is Array and len(value.args) > 1 and same_operand(
                    value.args[1], index) and array.fact.rank == fact.rank and all(
                    a.same(b) for a, b in zip(array.fact.dims, fact.dims)):
                return True
    return False


def _untouched(index, names, loops, regions):
    """Whether nothing in the loop reads or sets the entry; sums into it may be reordered."""
    for v in names:
        for use in regions.uses.get(v, ()):
            what, place = access(v, use.step) if use.part is None else ("shape", None)
            if what == "part" or what == "write" and use.step.value.function is not put_add:
                if not regions.apart(index, loops, place, use.loops, None, v.fact):
                    return False
    return True


def _replace(block, at, carry, index, names, regions):
    loop, array = block[at], carry.inner
    hint = "_".join([array.hint, "".join(_spelled(p) for p in parts_of(index))]).rstrip("_")
    fact = Array(array.fact.dtype, ())
    first = Var(hint, fact, array.kind)
    total, start, env, body = first, Const(0.0), {}, []
    for step in loop.body:
        if _adds_a_number(step, names) and same_operand(step.value.args[1], index):
            more = Var(hint, fact, array.kind)
            body.append(Let((more,), Apply(operator.add, (total, step.value.args[2])), step.origin))
            env[step.targets[0]] = step.value.args[0]
            total = more
        else:
            body.append(step)
    for v in env:
        while env[v] in env:
            env[v] = env[env[v]]
    loop.body = replaced(body, env)
    for c in loop.carries:
        c.next = substituted(c.next, env)
    earlier = next((s for s in block[:at] if isinstance(s, Let) and s.targets[0] is carry.init), None)
    if earlier is not None and own_write(earlier) is put_add and len(regions.uses[carry.init]) == 1 and same_operand(
            earlier.value.args[1], index) and _adds_a_number(earlier, earlier.targets):
        start, carry.init = earlier.value.args[2], earlier.value.args[0]
        block.remove(earlier)
    after = Var(hint, fact, array.kind)
    changed = carry.outer.like()
    position = block.index(loop)
    if carry.next is carry.inner:               # the loop changes no other entry of the array
        changed = carry.init
        loop.carries.remove(carry)
        loop.body = replaced(loop.body, {carry.inner: changed})
        for c in loop.carries:
            c.next = substituted(c.next, {carry.inner: changed})
    block.insert(position + 1, Let((carry.outer,), Apply(put_add, (changed, index, after)), loop.origin))
    if changed is not carry.init:
        carry.outer = changed
    loop.carries.append(Carry(first, start, total, after))


def _spelled(part):
    return part.hint if isinstance(part, Var) and len(part.hint) == 1 else \
        str(part.value) if isinstance(part, Const) and type(part.value) is int and part.value >= 0 else ""
