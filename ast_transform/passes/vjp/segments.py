# SPDX-License-Identifier: Apache-2.0
"""Checkpointing: loops whose values are recomputed instead of saved.

A counted loop of n passes becomes √n segments of √n passes; a while loop becomes segments of 1, 2, 3, ... passes, so
that their number and the longest are both about √(2 n).  The state at the start of each segment is saved; going
backward, the segment is run again, saving its values, and then reversed (control.py).  That takes memory for 2 √n
states instead of n, and one more forward run.

A. Griewank, Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation,
Optimization Methods and Software 1, 1992, treats the general case; two levels are its simplest.
"""
import operator
from dataclasses import replace

from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import (
    SAVED,
    TEMPORARY,
    Apply,
    Carry,
    Const,
    For,
    Let,
    Var,
    While,
    copied,
    rebuilt,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence, unknown
from gradscribe.ast_transform.core.operations import both
from gradscribe.ast_transform.passes.nonnegative import Naturals

SHORT = 4                               # loops with at most this many passes are not cut


def segmented(body: list, naturals: Naturals) -> list:
    """A block whose checkpointed loops are cut into segments."""
    out = []
    for step in body:
        step = rebuilt(step, {}, lambda block: segmented(block, naturals))
        if isinstance(step, (For, While)) and step.policy == "segments":
            step.policy = ""
            if not draws(step.body) and not (isinstance(step, While) and draws(step.head)):
                out += counted(step, naturals) if isinstance(step, For) else uncounted(step)
                continue
        out.append(step)
    return out


def _number(hint, kind=SAVED):
    return Var(hint, Array(int, (), unknown(f"?{hint}")), kind)


def counted(step, naturals):
    """A for loop, cut into segments."""
    n = step.count
    if isinstance(n, Const) and n.value <= SHORT or any(isinstance(v.fact, Sequence) for v, _ in step.items):
        return [step]
    place = step.origin.made_by(0) if step.origin is not None else None
    size, segments = _number("size"), _number("segments")
    root, (floor, more, whole, left) = Var("t", Array(float)), (_number("t", TEMPORARY) for _ in range(4))
    before = []
    if not naturals.holds(n):
        n = _number("passes", TEMPORARY)
        before.append(Let((n,), Apply(max, (step.count, Const(0))), place))
    before += [
        Let((root,), Apply(operator.pow, (n, Const(0.5))), place),
        Let((floor,), Apply(int, (root,)), place),
        Let((size,), Apply(operator.add, (floor, Const(1))), place),
        Let((more,), Apply(operator.add, (n, size)), place),
        Let((whole,), Apply(operator.sub, (more, Const(1))), place),
        Let((segments,), Apply(operator.floordiv, (whole, size)), place),
    ]
    k, j, start, count = _number("segment"), _number("j"), _number("start"), _number("count")
    start.again = count.again = True
    head = [Let((step.index,), Apply(operator.add, (start, j)), step.origin)]
    for v, source in step.items:
        if isinstance(source, Apply):           # a range
            first, _, stride = source.args
            moved = _number("k")
            head.append(Let((moved,), Apply(operator.mul, (step.index, stride)), step.origin))
            head.append(Let((v,), Apply(operator.add, (first, moved)), step.origin))
        else:
            head.append(Let((v,), Apply(operator.getitem, (source, step.index)), step.origin))
    carries, inner = _nested(step)
    again = For(j, count, (), inner, [*head, *step.body], step.origin, policy="again")
    body = [
        Let((start,), Apply(operator.mul, (k, size)), place),
        Let((left,), Apply(operator.sub, (n, start)), place),
        Let((count,), Apply(min, (left, size)), place),
        again,
    ]
    return [*before, For(k, segments, (), carries, body, step.origin)]


def _nested(step):
    """(carries of the loop over segments, carries of the loop inside)"""
    carries, inner = [], []
    for c in step.carries:
        entered, left = (v.like(fact=_at_segments(v.fact, c.init)) for v in (c.inner, c.outer))
        inner.append(Carry(c.inner, entered, c.next, left))
        carries.append(Carry(entered, c.init, left, c.outer))
    return carries, inner


def _at_segments(fact, init):
    """The fact of a carry at the ends of segments, with new symbols for lengths that passes change."""
    if not isinstance(fact, Array):
        return fact
    before = init.fact.dims if isinstance(init, Var) and isinstance(init.fact, Array) else ()
    dims = tuple(d if d.normal().symbol is None or k < len(before) and before[k].same(d) else unknown("?segment")
                 for k, d in enumerate(fact.dims))
    return replace(fact, dims=dims)


def uncounted(step):
    """A while loop, cut into segments."""
    place = step.origin.made_by(0) if step.origin is not None else None
    carries, inner = _nested(step)
    env = {c.inner: o.inner for c, o in zip(step.carries, carries)}
    head = copied(step.head, env)
    test = substituted(step.test, env)
    size, longer, last = _number("size"), _number("size"), _number("size")
    j, later, end = _number("j"), _number("j"), _number("j")
    short, going = Var("t", Array(bool)), Var("t", Array(bool))
    carries.append(Carry(size, Const(1), longer, last))
    inner.append(Carry(j, Const(0), later, end))
    head_inside = [*step.head, Let((short,), Apply(operator.lt, (j, size)), place),
                   Let((going,), Apply(both, (step.test, short)), place)]
    again = While(inner, head_inside, going,
                  [*step.body, Let((later,), Apply(operator.add, (j, Const(1))), place)], step.origin, "again")
    body = [again, Let((longer,), Apply(operator.add, (size, Const(1))), place)]
    return [While(carries, head, test, body, step.origin)]


