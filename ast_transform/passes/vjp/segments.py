# SPDX-License-Identifier: Apache-2.0
"""Checkpointing: loops whose values are recomputed instead of saved.

A counted loop of n passes becomes √n segments of √n passes; a while loop becomes segments of 1, 2, 3, ... passes, so
that their number and the longest are both about √(2 n).  The state at the start of each segment is saved; going
backward, the segment is run again, saving its values, and then reversed (control.py).  That takes memory for 2 √n
states instead of n, and one more forward run.

With more levels, the loop over the passes of a segment is cut again when it runs again.  r levels keep about r n^(1/r)
states, (2 r - 1) n^(1/r) while an array of states replaces the last segment's, for r - 1 more forward runs.  A budget
of memory chooses the fewest levels that fit (`levels_for`).

A. Griewank, Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation,
Optimization Methods and Software 1, 1992; A. Griewank and A. Walther, Algorithm 799: revolve, ACM Transactions on
Mathematical Software 26, 2000, for the general case.
"""
import math
import operator
from dataclasses import replace

import numpy as np

from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import (
    AGAIN,
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
from gradscribe.ast_transform.source.diagnose import KindError

SHORT = 4                               # loops with at most this many passes are not cut


def segmented(body: list, naturals: Naturals) -> list:
    """A block whose checkpointed loops are cut into segments."""
    out: list = []
    for step in body:
        step = rebuilt(step, {}, lambda block: segmented(block, naturals))
        if isinstance(step, (For, While)) and step.policy.startswith("segments"):
            words, step.policy = step.policy.split(), ""
            disk = "disk" * ("disk" in words)
            if not draws(step.body) and not (isinstance(step, While) and draws(step.head)):
                budget = next((int(w) for w in words if w.isdecimal()), None)
                levels = 2 if disk or budget is None else levels_for(step, budget)
                out += [step] if levels == 1 else counted(step, naturals, levels, disk) if isinstance(step, For) else \
                    uncounted(step)
                continue
        out.append(step)
    return out


def levels_for(step: For | While, budget: int) -> int:
    """The fewest levels with which the states of a loop fit into so many bytes; 2 where its length is not known.

    Raises KindError for a budget that no number of levels meets.
    """
    passes = passes_of(step.count) if isinstance(step, For) else None
    state = sum(bytes_of(c.init) for c in step.carries) if passes else 0
    if not passes or not state:
        return 2
    needed = [math.ceil((2 * r - 1) * passes ** (1 / r)) * state for r in range(1, passes.bit_length() + 1)]
    for levels, need in enumerate(needed, 1):
        if need <= budget:
            return levels
    need = min(needed)
    raise KindError(f"a budget of {budget:,} bytes is too small: {passes:,} passes with {state:,} bytes each need "
                    f"{need:,}", step.origin, f"Give budget={need}, or compute in float32.")


def passes_of(count):
    """The number of passes in the example, or None."""
    if isinstance(count, Const):
        return count.value
    length = count.fact.length if isinstance(count, Var) and isinstance(count.fact, Array) else None
    return None if length is None else length.size


def bytes_of(value):
    """The size of a carry in the example; 0 if it is not known."""
    fact = value.fact if isinstance(value, Var) else None
    if not isinstance(fact, Array) or any(d.size is None for d in fact.dims):
        return 0
    return math.prod(d.size for d in fact.dims) * np.dtype(fact.dtype).itemsize


def _number(hint, kind=SAVED):
    return Var(hint, Array(int, (), unknown(f"?{hint}")), kind)


def counted(step: For, naturals: Naturals, levels: int = 2, policy: str = "") -> list:
    """A for loop, cut into segments.

    levels: how often, as the passes of a segment are cut when they run again; policy: of the loop over segments,
    "disk" if its states are stored there
    """
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
        Let((root,), Apply(operator.pow, (n, Const((levels - 1) / levels))), place),
        Let((floor,), Apply(int, (root,)), place),
        Let((size,), Apply(operator.add, (floor, Const(1))), place),
        Let((more,), Apply(operator.add, (n, size)), place),
        Let((whole,), Apply(operator.sub, (more, Const(1))), place),
        Let((segments,), Apply(operator.floordiv, (whole, size)), place),
    ]
    k, j, start, count = _number("segment"), _number("j"), _number("start"), _number("count")
    start.saving = count.saving = AGAIN
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
    again = For(j, count, (), inner, [*head, *step.body], step.origin, policy=" ".join(["again"] * (levels - 1)))
    body = [
        Let((start,), Apply(operator.mul, (k, size)), place),
        Let((left,), Apply(operator.sub, (n, start)), place),
        Let((count,), Apply(min, (left, size)), place),
        again,
    ]
    return [*before, For(k, segments, (), carries, body, step.origin, policy=policy)]


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


