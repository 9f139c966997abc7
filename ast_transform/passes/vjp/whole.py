# SPDX-License-Identifier: Apache-2.0
"""An array that is written from end to end forgets what it held: it is a new one from there on.

`k[0] = a; k[1:] = b` sets every entry of k, whatever k was.  The first of the two then writes into an empty array, so
that no adjoint reaches what was there, nothing of it is saved, and the entries can be computed again going backward.
"""
import numpy as np

from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    Let,
    Pack,
    Var,
    all_reads,
    blocks,
    operands,
    rebuilt,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put

START, END = (0, 0), (1, 0)             # ends of an interval: (from the front or the back, how far)


def part_of(index):
    """The interval of the first axis that an index reaches, as its two ends; None for any other index."""
    key = index.value if isinstance(index, Const) else None
    if isinstance(key, int) and not isinstance(key, bool):
        return (end(key), END if key == -1 else end(key + 1))
    if not isinstance(key, slice) or key.step not in (None, 1) or not all(
            k is None or type(k) is int for k in (key.start, key.stop)):
        return None
    return (START if key.start is None else end(key.start), END if key.stop is None else end(key.stop))


def end(k):
    """Where an index lies: k from the front, or -k from the back."""
    return (int(k < 0), k)


def apart(first, second):
    """Whether two indices reach no common entry, however long the axis is: one ends where the other begins, or before.

    Only ends that are counted from one side of the axis are in an order.
    """
    first, second = part_of(first), part_of(second)
    return first is not None and second is not None and any(
        a[1][0] == b[0][0] and a[1][1] <= b[0][1] for a, b in ((first, second), (second, first)))


def covers(parts):
    """Whether intervals leave no entry out, however long the axis is: from its start one leads to the next to its end.

    >>> covers({part_of(Const(0)), part_of(Const(slice(1, -1))), part_of(Const(-1))})
    True
    >>> covers({part_of(Const(slice(None, 2))), part_of(Const(slice(3, None)))})
    False
    """
    reached, more = set(), {START}
    while more:
        reached |= more
        more = {last for first, last in parts if first in reached} - reached
    return END in reached


def unread(x, index, sweep):
    """Whether nothing asks for the adjoint of this part of x: x is a new array that was written elsewhere."""
    made = sweep.made_by.get(x)
    if not isinstance(made, Apply) or made.function is not put or not apart(index, made.args[1]):
        return False
    return made.args[0] not in sweep.active or unread(made.args[0], index, sweep)


def forgotten(function, length_of, several):
    """The body with new arrays where old ones are written from end to end.

    length_of: the operand of a length; several: what has a dtype that is known when running only
    """
    counts, made = {}, {}
    for s in walk(function.body):
        if isinstance(s, Let):
            made.update((t, s) for t in s.targets)
    for v in [*(v for s in function.body for v in all_reads(s)), *operands(function.result)]:
        counts[v] = counts.get(v, 0) + 1

    def read_once(v):
        return counts.get(v) == 1

    def block(body):
        fresh = {}                                      # the first write of a row -> a new array
        for s in body:
            row, parts = [s], set()
            if not is_write(s):
                continue
            while True:
                write = row[-1].value
                parts.add(part_of(write.args[1]))
                base = write.args[0]
                if None in parts:
                    break
                if covers(parts):
                    if isinstance(base, Var) and base not in several and not is_new(made.get(base)):
                        new = empty(base, function, length_of)
                        if new is not None:
                            fresh[row[-1].targets[0]] = new
                    break
                before = made.get(base)
                if before is None or not any(before is t for t in body) or not is_write(before) or not read_once(base):
                    break
                row.append(before)
        out = []
        for s in body:
            if isinstance(s, Let) and s.targets[0] in fresh:
                new, value = fresh[s.targets[0]], s.value
                shape = new.args[0]
                if isinstance(shape, Pack) or isinstance(shape, Apply):         # lengths are looked up before
                    lengths = []
                    for n in shape.items if isinstance(shape, Pack) else (shape,):
                        if isinstance(n, Apply):
                            length = Var("n", Array(int, ()), TEMPORARY)
                            out.append(Let((length,), n, s.origin))
                            n = length
                        lengths.append(n)
                    shape = Pack("tuple", tuple(lengths)) if isinstance(shape, Pack) else lengths[0]
                    new = Apply(new.function, (shape,), new.kwargs)
                target = Var(s.targets[0].hint, s.targets[0].fact, s.targets[0].kind)
                out.append(Let((target,), new, s.origin))
                s = Let(s.targets, Apply(put, (target, *value.args[1:])), s.origin)
            out.append(rebuilt(s, {}, block) if blocks(s) else s)
        return out
    return block(function.body)


def is_write(s):
    return isinstance(s, Let) and isinstance(s.value, Apply) and s.value.function is put and \
        isinstance(s.targets[0].fact, Array)


def is_new(step):
    return step is not None and isinstance(step.value, Apply) and step.value.function in (
        np.empty, np.zeros, np.ones, np.empty_like, np.zeros_like, np.ones_like)


def empty(base, function, length_of):
    """An operation that makes an array like another of what the arguments tell."""
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
