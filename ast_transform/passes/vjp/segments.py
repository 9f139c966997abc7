# SPDX-License-Identifier: Apache-2.0
"""Checkpointing: loops whose values are recomputed instead of saved.

A counted loop of n passes becomes √n segments of √n passes; a while loop becomes segments of 1, 2, 3, ... passes, so
that their number and the longest are both about √(2 n).  The state at the start of each segment is saved; going
backward, the segment is run again, saving its values, and then reversed (control.py).  That takes memory for 2 √n
states instead of n, and one more forward run.

With more levels, the loop over the passes of a segment is cut again when it runs again.  r levels keep about r n^(1/r)
states for r - 1 more forward runs.  A budget of memory chooses the fewest levels that fit (`levels_for`).  The segments
of a while loop are then 1, 2^(r - 1), 3^(r - 1), ... passes long: k of them have about k^r / r passes.

A. Griewank, Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation,
Optimization Methods and Software 1, 1992; A. Griewank and A. Walther, Algorithm 799: revolve, ACM Transactions on
Mathematical Software 26, 2000, for the general case.
"""
import builtins
import functools
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import gast
import numpy as np

from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import (
    AGAIN,
    ON_DISK,
    SAVED,
    TEMPORARY,
    Apply,
    Carry,
    Const,
    Effect,
    For,
    If,
    Let,
    Var,
    While,
    copied,
    rebuilt,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, unknown
from gradscribe.ast_transform.core.operations import Quoted, both, size_of
from gradscribe.ast_transform.passes.anf import Builder
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.source.diagnose import KindError

SHORT = 4                               # loops with at most this many passes are not cut


class Asked(NamedTuple):
    """What a checkpoint asks of the loops inside it: For.policy has it as words after "segments".

    >>> Asked.of("segments budget=4096 levels=3 disk")
    Asked(budget=4096, levels=3, on_disk=True)
    """
    budget: int | None = None
    levels: int | None = None
    on_disk: bool = False

    def __str__(self):
        words = [f"{k}={v}" for k, v in zip(self._fields, self) if v and v is not True]
        return " ".join(["segments", *words, *["disk"] * self.on_disk])

    @staticmethod
    def of(text):
        """From the words of For.policy."""
        said = dict(word.split("=") for word in text.split()[1:] if "=" in word)
        return Asked(**{k: int(v) for k, v in said.items()}, on_disk=text.endswith("disk"))


def segmented(body: list, naturals: Naturals, length_of: Callable[[Length], Any]) -> list:
    """A block whose checkpointed loops are cut into segments; length_of: gives a length as an operand, None if it is
    not known outside of loops.
    """
    out: list = []
    for step in body:
        step = rebuilt(step, {}, lambda block: segmented(block, naturals, length_of))
        if isinstance(step, (For, While)) and step.policy.startswith("segments"):
            asked, step.policy = Asked.of(step.policy), ""
            if not draws(step.body) and not (isinstance(step, While) and draws(step.head)):
                out += cut_counted(step, naturals, asked, length_of) if isinstance(step, For) else cut_uncounted(
                    step, asked)
                continue
        out.append(step)
    return out


def cut_uncounted(step, asked):
    """A while loop as a checkpoint asks: in segments, with the levels that it names."""
    if asked.budget and not asked.levels:
        raise KindError("a budget does not tell how often to cut a while loop, whose number of passes is not known "
                        "before it runs", step.origin, "Give levels=2, or more, as well.")
    return uncounted(step, asked.levels or 2)


def cut_counted(step, naturals, asked, length_of):
    """A for loop as a checkpoint asks: in segments, unless the budget has room for all states, and after a test where
    another call may have more passes, or longer states.
    """
    if any(isinstance(v.fact, Sequence) for v, _ in step.items):
        return [step]
    kept = all(d.normal().symbol is None or length_of(d) is not None for c in step.carries for d in dims_of(c.init))
    arrays = functools.partial(arrays_of_states, kept=kept, disk=asked.on_disk)
    levels = levels_for(step, asked, arrays)
    before, passes = not_negative(step, naturals)
    tested = test_of_budget(step, passes, asked.budget, levels, *arrays(levels)) if asked.budget else []
    cut = [step] if levels == 1 else counted(step, passes, levels, ON_DISK * asked.on_disk)
    return [*before, *tested, *cut]


def not_negative(step: For, naturals: Naturals) -> tuple[list, Any]:
    """(statements, the number of passes, which they make where a range may end before its start)"""
    if naturals.holds(step.count):
        return [], step.count
    passes = _number("passes", TEMPORARY)
    return [Let((passes,), Apply(max, (step.count, Const(0))), place_of(step))], passes


def place_of(step):
    """The origin of what is made for a loop."""
    return step.origin.made_by(0) if step.origin is not None else None


def arrays_of_states(levels: int, kept: bool = True, disk: bool = False) -> tuple[int, int]:
    """(k, m): so many levels have at most k arrays of ⌊n^(1/levels)⌋ + m states each in memory, for n passes.

    There is an array for each level, and one more while it replaces another, unless one array serves all segments
    (kept), as with two levels.

    >>> arrays_of_states(1), arrays_of_states(2), arrays_of_states(3)
    ((1, 0), (2, 1), (4, 2))
    """
    replaced = levels > 2 or levels == 2 and not kept
    return levels + replaced - disk, min(levels - 1, 2)


def levels_for(step: For, asked: Asked, arrays: Callable[[int], tuple[int, int]]) -> int:
    """The fewest levels with which the states of a loop fit into the budget; those asked for, or 2, without a budget or
    where the length of the loop, or that of its states, is not known.

    Raises KindError for a budget that no number of levels meets.
    """
    passes, state = passes_of(step.count), sum(bytes_of(c.init) for c in step.carries)
    least = asked.levels or 1 + asked.on_disk
    if not asked.budget or not passes or not state:
        return max(least, 2)
    needed = {}
    for levels in range(least, max(least, passes.bit_length()) + 1):
        number, more = arrays(levels)
        needed[levels] = number * (int(passes ** (1 / levels)) + more) * state
        if needed[levels] <= asked.budget:
            return levels
    need = min(needed.values())
    raise KindError(f"a budget of {asked.budget:,} bytes is too small: {passes:,} passes with {state:,} bytes each "
                    f"need {need:,}", step.origin, f"Give budget={need}, or compute in float32.")


def test_of_budget(step: For, passes: Any, budget: int, levels: int, number: int, more: int) -> list:
    """if the states take more than the budget: raise MemoryError(...); nothing where all lengths are constant.

    The levels are those of the first call; another call of the same version may have more passes, or longer states.
    passes: their number, not negative; number, more: of `arrays_of_states`
    """
    build = Builder(place_of(step))
    fixed, state = 0, None
    for c in step.carries:
        if type(fact_of(c.init)) is Array:
            dims, width = dims_of(c.init), number * np.dtype(fact_of(c.init).dtype).itemsize
            if not any(d.normal().symbol for d in dims):
                fixed += width * math.prod(d.normal().offset for d in dims)
            else:
                part = build.multiply(Const(width), build.apply(size_of, c.init))
                state = part if state is None else build.add(state, part)
    state = Const(fixed) if state is None else build.add(state, Const(fixed)) if fixed else state
    root = step.count if levels == 1 else build.apply(int, build.apply(operator.pow, passes, Const(1 / levels)))
    each = build.add(root, Const(more)) if more else root
    test = build.apply(operator.gt, build.multiply(state, each), Const(budget))
    if isinstance(test, Const):
        return []                       # as in the first call
    words = f"a budget of {budget:,} bytes is too small for a loop of this length: give levels={levels + 1}, or more"
    raised = Quoted(gast.parse(f"raise MemoryError({words!r})").body[0], (), vars(builtins).__getitem__)
    return [*build.block, If(test, [Effect(Apply(raised, ()), build.origin)], [], [], build.origin)]


def passes_of(count):
    """The number of passes in the example, or None."""
    if isinstance(count, Const):
        return count.value
    length = count.fact.length if isinstance(count, Var) and isinstance(count.fact, Array) else None
    return None if length is None else length.size


def bytes_of(value):
    """The size of a carry in the example; 0 if it is not known."""
    fact, sizes = fact_of(value), [d.size for d in dims_of(value)]
    return math.prod(sizes) * np.dtype(fact.dtype).itemsize if isinstance(fact, Array) and None not in sizes else 0


def dims_of(value):
    """The lengths of the axes of a carry."""
    fact = fact_of(value)
    return fact.dims if isinstance(fact, Array) else ()


def _number(hint, kind=SAVED):
    return Var(hint, Array(int, (), unknown(f"?{hint}")), kind)


def counted(step: For, n: Any, levels: int = 2, policy: str = "") -> list:
    """A for loop, cut into segments.

    n: the number of passes, not negative; levels: how often, as the passes of a segment are cut when they run again;
    policy: of the loop over segments, ON_DISK if its states are stored there
    """
    if isinstance(n, Const) and n.value <= SHORT:
        return [step]
    place = place_of(step)
    size, segments = _number("size"), _number("segments")
    root, (floor, more, whole, left) = Var("t", Array(float)), (_number("t", TEMPORARY) for _ in range(4))
    before = [
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


def uncounted(step: While, levels: int = 2) -> list:
    """A while loop, cut into segments of 1, 2^(levels - 1), 3^(levels - 1), ... passes."""
    place = place_of(step)
    carries, inner = _nested(step)
    env = {c.inner: o.inner for c, o in zip(step.carries, carries)}
    head = copied(step.head, env)
    test = substituted(step.test, env)
    name = "size" if levels == 2 else "segment"
    number, longer, last = _number(name), _number(name), _number(name)
    size, power = number, []
    if levels > 2:
        size = _number("size")
        size.saving = AGAIN
        power = [Let((size,), Apply(operator.pow, (number, Const(levels - 1))), place)]
    j, later, end = _number("j"), _number("j"), _number("j")
    short, going = Var("t", Array(bool)), Var("t", Array(bool))
    carries.append(Carry(number, Const(1), longer, last))
    inner.append(Carry(j, Const(0), later, end))
    head_inside = [*step.head, Let((short,), Apply(operator.lt, (j, size)), place),
                   Let((going,), Apply(both, (step.test, short)), place)]
    again = While(inner, head_inside, going,
                  [*step.body, Let((later,), Apply(operator.add, (j, Const(1))), place)], step.origin,
                  " ".join(["again"] * (levels - 1)))
    body = [*power, again, Let((longer,), Apply(operator.add, (number, Const(1))), place)]
    return [While(carries, head, test, body, step.origin)]


