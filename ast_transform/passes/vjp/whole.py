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

# what the first axis is made of, and whether no entry is in two parts, however long it is
COVERS = [({"0", "1:"}, True), ({":-1", "-1"}, True), ({":"}, True), ({"0", "1:-1", "-1"}, False)]


def part_of(index):
    """0, -1, 1:, :-1, 1:-1 or : for an index of the first axis; None for any other."""
    if not isinstance(index, Const):
        return None
    key = index.value
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key) if key in (0, -1) else None
    if not isinstance(key, slice) or key.step not in (None, 1):
        return None
    start, stop = "" if key.start in (None, 0) else str(key.start), "" if key.stop is None else str(key.stop)
    found = f"{start}:{stop}"
    return found if found in ("1:", ":-1", "1:-1", ":") else None


def apart(first, second):
    """Whether two indices reach no common entry, however long the axis is."""
    return any({part_of(first), part_of(second)} == parts and exact for parts, exact in COVERS)


def unread(x, index, sweep):
    """Whether nothing asks for the adjoint of this part of x: x is a new array that was written elsewhere."""
    made = sweep.made_by.get(x)
    if not isinstance(made, Apply) or made.function is not put or not apart(index, made.args[1]):
        return False
    return made.args[0] not in sweep.active or unread(made.args[0], index, sweep)


def forgotten(function, length_of):
    """The body with new arrays where old ones are written from end to end; length_of: the operand of a length."""
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
                if any(parts == cover for cover, _ in COVERS):
                    if isinstance(base, Var) and not is_new(made.get(base)):
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
