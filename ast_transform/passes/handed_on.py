# SPDX-License-Identifier: Apache-2.0
"""Renames adjoints before writes into them under another name, which would otherwise cost a copy.

In reverse mode, a write turns the adjoint of the written array into that of the array before it.  If the two have one
name, the write is made in place.  If they have not, as after an exchange `u, v = v, u`, naming would copy the array.
This pass binds the new name to the array instead, if nothing reads it by its old name any more.

>>> import numpy as np
>>> import gradscribe as gs
>>> def f(u, n):
...     v = np.zeros_like(u)
...     for t in range(n):
...         v[1:] = u[:-1] * u[1:]
...         u, v = v, u
...     return np.sum(u)
>>> backward = gs.grad(f).source_for(np.ones(4), 20).split("reversed")[1]
>>> ".copy()" in backward, "dv_1 = du\\n" in backward
(False, True)
"""
from gradscribe.ast_transform.core.alias import is_fresh, updates
from gradscribe.ast_transform.core.form import (
    ADJOINT,
    Apply,
    For,
    Function,
    If,
    Let,
    Var,
    While,
    all_reads,
    operands,
)


def handed_on(function: Function) -> Function:
    """The function with such bindings before writes; it is changed in place."""
    function.body = _block(function.body, set(operands(function.result)), set())
    return function


def _block(block, later, own):
    """own: the values that an enclosing loop carries into the block; later: the values that are live at its end."""
    out, own, after = [], set(own), [later]
    for step in reversed(block):
        after.append(after[-1].union(all_reads(step)))
    after.reverse()
    for k, step in enumerate(block):
        rest = after[k + 1]
        if isinstance(step, (For, While)):
            nexts = set().union(*(operands(c.next) for c in step.carries))
            step.body = _block(step.body, nexts | rest, {c.inner for c in step.carries})
            own |= {c.outer for c in step.carries}
        elif isinstance(step, If):
            for arm in ("then", "orelse"):
                ends = set().union(*(operands(getattr(j, arm)) for j in step.joins))
                setattr(step, arm, _block(getattr(step, arm), ends | rest, set()))
        elif isinstance(step, Let) and isinstance(step.value, Apply):
            if updates(step.value) and _goes_on(step.value.args[0], step.targets[0], own, rest):
                base, *others = step.value.args
                name = step.targets[0].like()
                out.append(Let((name,), base, step.origin))
                step.value = Apply(step.value.function, (name, *others), step.value.kwargs)
            if updates(step.value) or is_fresh(step.value):
                own.update(step.targets)
        out.append(step)
    return out


def _goes_on(base, target, own, rest):
    """Whether an adjoint may go on under another name: it is carried or made here, and has no later reader."""
    return isinstance(base, Var) and base in own and base not in rest and \
        base.kind == target.kind == ADJOINT and base.hint != target.hint
