# SPDX-License-Identifier: Apache-2.0
"""Replaces arrays that are overwritten completely by new ones.

`k[0] = a; k[1:] = b` sets every entry of k, so the first write may as well write into np.empty.  Then no adjoint
reaches the old array, nothing of it is saved, and the entries can be recomputed in the backward pass.
"""
from collections import Counter
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

import numpy as np

from gradscribe.ast_transform.analysis.regions import Regions
from gradscribe.ast_transform.core.alias import parts_of
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    Function,
    Let,
    Pack,
    Slice,
    Var,
    all_reads,
    as_slice,
    blocks,
    operands,
    rebuilt,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Length
from gradscribe.ast_transform.core.operations import put

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.sweep import Sweep


def unread(x: Var, index: Var | Const | Pack | Slice, sweep: "Sweep") -> bool:
    """Whether the adjoint of this part of x is never read: x is a new array that was written elsewhere."""
    made, regions = sweep.made_by.get(x), sweep.engine.analyses.regions
    if not isinstance(made, Apply) or made.function is not put:
        return False
    base, other, _ = made.args
    loops = regions.loops.get(x, ())
    return regions.apart(index, loops, other, loops, None, x.fact) and (
        base not in sweep.active or unread(base, index, sweep))


def forgotten(function: Function, length_of: Callable[[Length], Var | Apply | None], several: Container[Var]) -> list:
    """The body of a function with new arrays in place of those that are overwritten completely.

    length_of: gives the operand of a length; several: values whose dtype is known only when running
    """
    writes = {s.targets[0]: s for s in walk(function.body) if is_write(s)}
    if not writes:
        return function.body
    return with_new_arrays(function.body, new_arrays(function, writes, length_of, several))


def new_arrays(function, writes, length_of, several):
    """{result of a write: the operation that makes the new array it may write into}, where what follows sets the rest.

    writes: the writes of the function by their results
    """
    body = function.body
    made = {t: s for s in walk(body) if isinstance(s, Let) for t in s.targets}
    counts = Counter([*(v for s in body for v in all_reads(s)), *operands(function.result)])
    regions = Regions(body, function.result, [p.value for p in function.params])
    fresh: dict[Var, Apply] = {}
    seen: set[Var] = set()
    for last in reversed(list(writes.values())):
        if last.targets[0] in seen:
            continue                    # of a longer chain
        found = chain(last, writes, counts, regions.loops)
        seen.update(s.targets[0] for s in found)
        if (found := covering(found, regions)) is not None:
            base = found[-1].value.args[0]
            if isinstance(base, Var) and base not in several and not is_new(made.get(base)):
                new = empty(base, function, length_of)
                if new is not None:
                    fresh[found[-1].targets[0]] = new
    return fresh


def chain(last, writes, counts, loops):
    """A write, and those before it in the same pass whose results only the next of them reads; the last first."""
    found = [last]
    while (before := writes.get(found[-1].value.args[0])) is not None and counts[before.targets[0]] == 1 and \
            loops[before.targets[0]] == loops[last.targets[0]]:
        found.append(before)
    return found


def covering(found, regions):
    """The shortest run of last writes that sets every entry; None if all of the writes together do not."""
    fact, loops = found[0].targets[0].fact, regions.loops[found[0].targets[0]]
    indices = [s.value.args[1] for s in found]
    if not any(isinstance(as_slice(p), Slice) for index in indices for p in parts_of(index)) or not regions.cover(
            indices, loops, fact):
        return None                     # entry by entry, what they held costs no more than a new array
    return next(found[:k] for k in range(1, len(found) + 1) if regions.cover(indices[:k], loops, fact))


def with_new_arrays(body, fresh):
    """The body in which each write of `fresh` writes into the new array that its operation makes."""
    out = []
    for s in body:
        if isinstance(s, Let) and s.targets[0] in fresh:
            new, target = fresh[s.targets[0]], s.targets[0].like()
            shape = with_lengths_looked_up(new.args[0], s.origin, out)
            out.append(Let((target,), Apply(new.function, (shape,), new.kwargs), s.origin))
            s = Let(s.targets, Apply(put, (target, *s.value.args[1:])), s.origin)
        out.append(rebuilt(s, {}, lambda inner: with_new_arrays(inner, fresh)) if blocks(s) else s)
    return out


def with_lengths_looked_up(shape, origin, out):
    """A shape whose lengths are operands: those that are operations become statements of `out`."""
    if isinstance(shape, Pack):
        return Pack("tuple", tuple(with_lengths_looked_up(n, origin, out) for n in shape.items))
    if not isinstance(shape, Apply):
        return shape
    length = Var("n", Array(int, ()), TEMPORARY)
    out.append(Let((length,), shape, origin))
    return length


def is_write(s):
    return isinstance(s, Let) and isinstance(s.value, Apply) and s.value.function is put and \
        isinstance(s.targets[0].fact, Array)


def is_new(step):
    return step is not None and isinstance(step.value, Apply) and step.value.function in (
        np.empty, np.zeros, np.ones, np.empty_like, np.zeros_like, np.ones_like)


def empty(base, function, length_of):
    """An operation that makes an array like `base` from arguments alone; None if they do not have its lengths."""
    fact = base.fact
    if not isinstance(fact, Array) or fact.dtype is None or np.dtype(fact.dtype).kind not in "fc":
        return None
    for p in function.params:
        twin = p.value
        if isinstance(twin, Var) and type(twin.fact) is Array and twin.fact.dtype == fact.dtype and \
                twin.fact.rank == fact.rank and all(a.same(b) for a, b in zip(twin.fact.dims, fact.dims)):
            return Apply(np.empty_like, (twin,))
    lengths = [Const(d.normal().offset) if d.normal().symbol is None else length_of(d) for d in fact.dims]
    if None in lengths or not lengths:
        return None
    shape = lengths[0] if len(lengths) == 1 else Pack("tuple", tuple(lengths))
    dtype = np.dtype(fact.dtype)
    return Apply(np.empty, (shape,), () if dtype == np.float64 else (("dtype", Const(dtype)),))
