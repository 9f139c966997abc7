# SPDX-License-Identifier: Apache-2.0
"""A kernel of rows: one block takes a pass of one loop or of several, its threads the passes of the loops inside.

A row is read where it lies, and stays near for the loops that read it again.  What is between the loops, each thread
computes for itself; a sum goes over the threads of the block, and each of them has it.  A sum over all rows is each
thread's own until the end, when the block's goes to its place among the parts.
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
    """Attribute inner: {loop of a pass: its numbers}; None where a pass has others."""

    def __init__(self, nest: Nest, placement: Placement):
        self.nest, self.placement, self.types = nest, placement, placement.types
        self.inner: Any = None if nest.free.atomic or not self.has_form(nest.free.numbers) else self.found()

    def has_form(self, numbers):
        """Whether a block has a function that puts numbers together."""
        return set(numbers.values()) <= OF_BLOCKS.keys() and all(self.types[n].dtype in SIZES for n in numbers)

    def found(self):
        """{loop: its numbers} of a pass whose loops all have passes in any order."""
        inner, places = {}, {n.index for n in self.nest.loops}
        for k, s in enumerate(self.nest.body):
            if isinstance(s, For):
                free = self.placement.order.free(s)
                if free is None or free.atomic or not places.isdisjoint(names_of(s)) or is_short(s) or \
                        not self.has_form(free.numbers):
                    return None
                inner[s] = {n: op for n, op in free.numbers.items() if n not in self.nest.free.numbers}
            elif isinstance(s, Store) and s.op is None:     # all threads do it: none may have to read it before
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
        """The kernel's statements; device: has statements as threads run them; taken: names of others."""
        loops = self.nest.loops
        out: list = []
        read: set = set()               # since the threads of the block have waited for each other
        for s in self.nest.body:
            if s in self.inner and Effects(s.block).writes.keys() & read:
                out.append(together())
                read = set()
            read |= arrays_read([s])
            if self.is_part(s):
                out.append(If(quoted("cuda.threadIdx.x == 0"), device.block([s]), [], s.origin))
            elif s in self.inner:
                out += self.by_threads(s, device)
            else:
                out += device.block([s])
                if isinstance(s, Store):
                    out.append(together())
        at = loops[0].index
        if len(loops) > 1:
            at = free_name("place", taken)
            out[:0] = places_of(loops, at)
        return strided(at, quoted("cuda.blockIdx.x"), device.expression(self.count()), quoted("cuda.gridDim.x"), out,
                       loops[0].origin)

    def by_threads(self, loop, device):
        """A loop of a pass, by the threads of the block."""
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
        return [*out, *after, *([together()] if effects.writes or not effects.known else [])]

    def of_block(self, name, op):
        """What the threads of a block have of a number, put together."""
        return call(f"row_{OF_BLOCKS[op]}_{self.types[name].dtype}", name)

    def is_part(self, s):
        """Whether a statement of a pass puts something to a number of all rows."""
        return isinstance(s, (Let, Update)) and s.name in self.nest.free.numbers

    def parts(self, name: str, op: str, part: str) -> list:
        """The statements that put what a block has of a number among the parts."""
        return [Let(name, self.of_block(name, op)),
                If(quoted("cuda.threadIdx.x == 0"), [statement("{}[cuda.blockIdx.x] = {}", part, name)], [])]

    def begins_with_zero(self, name, loop):
        """Whether a sum is set to zero above its loop, and not touched since."""
        above = self.nest.body[:self.nest.body.index(loop)]
        touched = [s for s in above if name in names_read([s]) | set_in([s])]
        return bool(touched) and is_zero(touched[-1], name)


def together() -> Do:
    """The threads of a block wait for each other."""
    return Do(quoted("cuda.syncthreads()"))


def arrays_read(block: list) -> set:
    """Arrays of which statements read entries."""
    return {e.array.id for s in statements(block) for whole in read_by(s) for e in walk(whole)
            if isinstance(e, Load) and isinstance(e.array, Name)}
