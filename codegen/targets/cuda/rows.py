# SPDX-License-Identifier: Apache-2.0
"""Kernels by rows: each block runs a pass of the outer loops, and its threads run the passes of the loops inside.

A row is read once from memory and stays in the cache for loops that read it again.  Each thread computes the statements
between the loops itself.  A sum over a row is reduced over the block's threads, and each of them gets the result.  A
sum over all rows is kept by each thread until the end, when the block stores its total among the parts.
"""
from typing import Any

from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.build import quoted, statement
from gradscribe.codegen.loops.form import (
    Do,
    Expr,
    For,
    If,
    Let,
    Load,
    Name,
    Op,
    Store,
    Update,
    free_name,
    names_of,
    names_read,
    read_by,
    set_by,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.targets.cuda.form import call, strided
from gradscribe.codegen.targets.cuda.placement import Nest, Placement, is_short
from gradscribe.codegen.targets.cuda.threads import (
    OF_BLOCKS,
    ThreadCode,
    identity,
    is_zero,
    places_of,
    product,
)

SIZES = ("float64", "float32", "int64", "int32")


class Rows:
    """Attribute inner: {inner loop: its scalar sums and extremes}, or None if the nest cannot run by rows."""

    def __init__(self, nest: Nest, placement: Placement):
        self.nest, self.placement, self.types = nest, placement, placement.types
        self.inner: Any = None if nest.free.atomic or not self.has_form(nest.free.numbers) else self.found()

    def has_form(self, numbers):
        """Whether there are block reductions for these operations and dtypes."""
        return set(numbers.values()) <= OF_BLOCKS.keys() and all(self.types[n].dtype in SIZES for n in numbers)

    def found(self):
        """{inner loop: its reductions} if all inner loops have passes that may run in any order; else None."""
        inner, places = {}, {n.index for n in self.nest.loops}
        for k, s in enumerate(self.nest.body):
            if isinstance(s, For):
                free = self.placement.order.free(s)
                if free is None or free.atomic or not places.isdisjoint(names_of(s)) or is_short(s) or \
                        not self.has_form(free.numbers):
                    return None
                inner[s] = {n: op for n, op in free.numbers.items() if n not in self.nest.free.numbers}
            elif isinstance(s, Store) and s.op is None:     # all threads do it: none may read the array before
                if s.entry.array.id in arrays_read(self.nest.body[:k + 1]):
                    return None
            elif not self.is_part(s) and not isinstance(s, Let):
                return None
        set_here = {n for s in self.nest.body if s not in inner for n in set_by(s)}
        if not inner or any(not set_here.isdisjoint(names_of(s)) for s in inner) or not (
                names_read(self.nest.body) | set_in(self.nest.body)).isdisjoint(self.placement.order.private):
            return None
        return inner

    def count(self) -> Expr:
        """The number of rows."""
        return product([n.range[0] for n in self.nest.loops])

    def length(self) -> Expr:
        """The length of a row."""
        return next(iter(self.inner)).range[0]

    def block(self, device: ThreadCode, taken: set) -> list:
        """The kernel's statements; device: rewrites statements for threads; taken: names in use."""
        loops = self.nest.loops
        out: list = []
        read: set = set()               # arrays read since the last barrier
        for s in self.nest.body:
            if s in self.inner and Effects(s.block).writes.keys() & read:
                out.append(barrier())
                read = set()
            read |= arrays_read([s])
            if self.is_part(s):
                out.append(If(quoted("cuda.threadIdx.x == 0"), device.block([s]), [], s.origin))
            elif s in self.inner:
                out += self.by_threads(s, device)
            else:
                out += device.block([s])
                if isinstance(s, Store):
                    out.append(barrier())
        at = loops[0].index
        if len(loops) > 1:
            at = free_name("place", taken)
            out[:0] = places_of(loops, at)
        return strided(at, quoted("cuda.blockIdx.x"), device.expression(self.count()), quoted("cuda.gridDim.x"), out,
                       loops[0].origin)

    def by_threads(self, loop, device):
        """An inner loop, whose passes the threads of the block share."""
        out, after = [], []
        for name, op in self.inner[loop].items():
            of_block = self.of_block(name, op)
            if op in "+*" and not (op == "+" and self.begins_with_zero(name, loop)):
                before = free_name(f"{name}_before", self.types.keys())
                out += [Let(before, Name(name)), Let(name, identity(op, self.types[name].dtype))]
                of_block = Op(op, (Name(before), of_block))
            after.append(Let(name, of_block))
        out += strided(loop.index, quoted("cuda.threadIdx.x"), device.expression(loop.range[0]),
                       quoted("cuda.blockDim.x"), device.block(loop.block), loop.origin)
        effects = Effects(loop.block)
        return [*out, *after, *([barrier()] if effects.writes or not effects.known else [])]

    def of_block(self, name, op):
        """The reduction of a scalar over the threads of a block."""
        return call(f"row_{OF_BLOCKS[op]}_{self.types[name].dtype}", name)

    def is_part(self, s):
        """Whether a statement adds to a reduction over all rows."""
        return isinstance(s, (Let, Update)) and s.name in self.nest.free.numbers

    def parts(self, name: str, op: str, part: str) -> list:
        """The statements that store a block's part of a reduction over all rows."""
        return [Let(name, self.of_block(name, op)),
                If(quoted("cuda.threadIdx.x == 0"), [statement("{}[cuda.blockIdx.x] = {}", part, name)], [])]

    def begins_with_zero(self, name, loop):
        """Whether the last statement above a loop that uses its sum sets it to zero."""
        above = self.nest.body[:self.nest.body.index(loop)]
        touched = [s for s in above if name in names_read([s]) | set_in([s])]
        return bool(touched) and is_zero(touched[-1], name)


def barrier() -> Do:
    """A barrier for the threads of a block."""
    return Do(quoted("cuda.syncthreads()"))


def arrays_read(block: list) -> set:
    """The arrays whose entries statements read."""
    return {e.array.id for s in statements(block) for whole in read_by(s) for e in walk(whole)
            if isinstance(e, Load) and isinstance(e.array, Name)}
