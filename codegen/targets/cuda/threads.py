# SPDX-License-Identifier: Apache-2.0
"""Rewrites statements for threads, and distributes the passes of loops over threads.

Passes are distributed over a grid of one to three axes by grid-stride loops.  The innermost loop lies along the lanes
of a warp, so that their reads are coalesced.  A sum is taken over the passes of a thread, then over the threads of a
block pairwise, then over the blocks in order, so it is the same in every call on every machine.
"""
from collections.abc import Iterable
from typing import Any, cast

from gradscribe.ast_transform.source.diagnose import TransformError
from gradscribe.codegen.loops.analysis.effects import CHECKS
from gradscribe.codegen.loops.build import ZERO, node, quoted
from gradscribe.codegen.loops.form import (
    Attribute,
    Break,
    Call,
    Const,
    Do,
    Expr,
    For,
    If,
    Items,
    Let,
    Load,
    Name,
    Nothing,
    Op,
    Statement,
    Store,
    Unpack,
    Update,
    While,
    blocks,
    change,
    copied,
    expressions,
    free_name,
    names_in,
    rebuilt,
    statements,
    walk,
)
from gradscribe.codegen.loops.types import DTYPES, type_of
from gradscribe.codegen.targets.cuda.form import numbered, strided
from gradscribe.codegen.targets.cuda.placement import Nest
from gradscribe.runtime.device_functions import NOTING, SCIPY
from gradscribe.runtime.on_device import OF_LIBDEVICE, OF_MATH

FIRST = {1: ("thread",), 2: ("column", "row"), 3: ("column", "row", "plane")}      # a thread's first pass
STEPS = {1: ("threads",), 2: ("columns", "rows"), 3: ("columns", "rows", "planes")}
ELEMENTARY = (OF_MATH.keys() | OF_LIBDEVICE.keys()) - {"power"}
OF_BLOCKS = {"+": "sum", "*": "prod", "max": "max", "min": "min", "maximum": "maximum", "minimum": "minimum",
             "fmax": "fmax", "fmin": "fmin"}       # in the names of the functions that reduce over a block


class ThreadCode:
    """Rewrites statements for threads: scalars that stay on the device are entries of arrays.

    held: those scalars; atomic: arrays to whose entries several threads add; single: whether nothing is in double
    precision.  Attribute places: whether a statement has a check that may fail.
    """

    def __init__(self, held: Iterable, types: dict, atomic: Iterable = (), check_bounds: bool = True,
                 single: bool = False):
        self.held, self.types, self.atomic, self.check_bounds = set(held), types, set(atomic), check_bounds
        self.single, self.places, self.origin = single, False, None

    def block(self, block: list) -> list:
        return guarded([self.statement(copied(s)) for s in block])

    def statement(self, s: Statement) -> Statement:
        if isinstance(s, Do) and not self.check_bounds and is_check(s) and cast(
                Call, s.value).function == "reaches":
            return Nothing()
        self.origin = cast(Any, s).origin
        change(s, self.expression)
        for inner in blocks(s):
            inner[:] = [self.statement(i) for i in inner]
        if isinstance(s, Let) and s.name in self.held:
            return Store(Load(Name(s.name), (ZERO,)), s.value, None, s.origin)
        if isinstance(s, Update) and s.name in self.held:
            return Store(Load(Name(s.name), (ZERO,)), s.value, s.op, s.origin)
        if isinstance(s, For) and s.index in self.held:
            s.index, held = f"{s.index}_at", s.index
            s.block[:0] = [Store(Load(Name(held), (ZERO,)), Name(s.index), None, s.origin)]
        if isinstance(s, Store) and s.op is not None and cast(Name, s.entry.array).id in self.atomic:
            index = s.entry.index[0] if len(s.entry.index) == 1 else Items(s.entry.index)
            value = s.value if s.op == "+" else Op("neg", (s.value,))
            return Do(Call("cuda.atomic.add", (s.entry.array, index, value)), s.origin)
        return s

    def expression(self, e: Expr) -> Expr:
        if isinstance(e, Name):
            return Load(e, (ZERO,)) if e.id in self.held else e
        if isinstance(e, Attribute) and e.owner in (Name("np"), Name("math")):
            return e
        if not isinstance(e, Call):
            return rebuilt(e, self.expression)
        if e.function == "len" and is_plain_range(e.args[0]):      # a form that numba-cuda-mlir compiles too
            begin, end = e.args[0].args[:2]
            e = cast(Call, quoted("max({} - {}, 0)", end, begin))
        if self.single and is_rounded(e):
            inner = e.args[0]
            e = Call(e.function, (Call(inner.function, tuple([a.args[0] for a in inner.args])),))
        of_complex = any(self.is_complex(a) for a in e.args)
        e = cast(Call, rebuilt(e, self.expression))
        head, _, name = e.function.rpartition(".")
        if head == "np" and name not in DTYPES:
            return Call(f"complex_{name}" if of_complex else name, e.args, e.keywords)
        if head:
            return e
        of_scipy = name.startswith("scipy_")
        if of_scipy and (of_complex or name.removeprefix("scipy_") not in SCIPY):
            raise TransformError(f"the device has no {name.removeprefix('scipy_')}{' of complex numbers' * of_complex}",
                                 self.origin, "Compute it on the processor, by gs.jit(f).")
        if name == "place" and not self.check_bounds:
            return Call("place_of", e.args)
        if name == "place" or name in NOTING:
            self.places = True
            return Call(f"{name}_in", (*e.args, Name("wrong")))
        return e

    def is_complex(self, e):
        return (type_of(e, self.types).dtype or "").startswith("complex")


def is_rounded(e: Call) -> bool:
    """Whether a call is an elementary function in double precision whose argument and result are in single."""
    inner = e.args[0] if e.function == "np.float32" and len(e.args) == 1 else None
    return isinstance(inner, Call) and inner.function in ELEMENTARY and all(
        isinstance(a, Call) and a.function == "np.float64" and len(a.args) == 1 for a in inner.args)


def is_plain_range(e: Expr) -> bool:
    """Whether an expression is a range with a start, a stop, and a step of 1."""
    return isinstance(e, Call) and e.function == "range" and (len(e.args) == 2 or e.args[2:] == (Const(1),))


def is_check(s: Statement) -> bool:
    return isinstance(s, Do) and isinstance(s.value, Call) and s.value.function.removesuffix("_in") in CHECKS


def guarded(block: list, loop: bool = False) -> list:
    """Statements in which those after a check run only if no check has failed; loop: whether they are in a loop."""
    for k, s in enumerate(block):
        inside = loop or isinstance(s, (For, While))
        for inner in blocks(s):
            inner[:] = guarded(inner, inside)
        if is_check(s) and block[k + 1:] and not is_check(block[k + 1]):
            rest = If(quoted("wrong[0] == 0"), guarded(block[k + 1:], loop), [Break()] if loop else [], s.origin)
            return [*block[:k + 1], rest]
    return block


# --- reductions over passes -------------------------------------------------------------------------------------------

def is_zero(s: Statement | None, name: str) -> bool:
    """Whether a statement sets a number to zero."""
    if not isinstance(s, Let) or s.name != name:
        return False
    e = s.value
    while isinstance(e, Call) and len(e.args) == 1:
        e = e.args[0]
    return isinstance(e, Const) and e.value == 0 and type(e.value) is not bool


def identity(op: str, dtype: str) -> Expr:
    """The identity element of an operation."""
    value = {"+": 0, "*": 1}[op]
    if dtype in ("float64", "int64"):
        return Const(float(value) if dtype == "float64" else value)
    return quoted("complex({}, 0.0)", float(value)) if dtype == "complex128" else quoted("np.{}({})", dtype, value)


# --- distribution over the grid ---------------------------------------------------------------------------------------

def along_lanes(nest: Nest) -> tuple:
    """(the nest with that of its two innermost loops innermost that more arrays have in their last index, whether some
    arrays have the other one).

    Neighbouring lanes of a warp run neighbouring passes of that loop.  If other arrays are indexed by the other loop
    last, a block of eight warps runs a tile, so that its warps share the cache lines that each of them loads.
    """
    if len(nest.loops) < 2:
        return nest, False
    outer, inner = (n.index for n in nest.loops[-2:])
    lasts = [e.index[-1] for e in entries_in(nest.body) if {outer, inner} <= names_in(e)]
    of_outer, of_inner = (sum(name in names_in(i) for i in lasts) for name in (outer, inner))
    if of_outer > of_inner:
        nest = nest._replace(loops=[*nest.loops[:-2], nest.loops[-1], nest.loops[-2]])
    return nest, bool(of_outer and of_inner)


def entries_in(block: list):
    """The entries that statements read or store into."""
    for s in statements(block):
        for whole in expressions(s):
            yield from (e for e in walk(whole) if isinstance(e, Load) and isinstance(e.array, Name))


def spread(nest: Nest, device: ThreadCode, taken: set) -> list:
    """The statements of a nest over the grid; device: rewrites statements for threads; taken: names in use.

    The two innermost loops have an axis of the grid each; the others share the third, where a position encodes a pass
    of each of them.
    """
    count = min(len(nest.loops), 3)
    first, steps = ([free_name(n, taken) for n in names[count]] for names in (FIRST, STEPS))
    head, where = [], [(node(a), node(b)) for a, b in zip(first, steps)]
    if count == 1:
        where = [(numbered("grid"), numbered("gridsize"))]
    else:
        head = [Unpack(cast(Items, node(first)), quoted("cuda.grid({})", count)),
                Unpack(cast(Items, node(steps)), quoted("cuda.gridsize({})", count))]
    outer, block = nest.loops[:-2] if len(nest.loops) > 3 else [], device.block(nest.body)
    for axis, n in enumerate(reversed(nest.loops[len(outer):])):
        block = strided(n.index, where[axis][0], device.expression(n.range[0]), where[axis][1], block, n.origin)
    if outer:
        at = free_name("place", taken)
        block = places_of(outer, at) + block
        block = strided(at, where[2][0], device.expression(stops(nest)[0]), where[2][1], block, outer[0].origin)
    return head + block


def product(lengths: list) -> Expr:
    """The product of lengths."""
    first, *rest = lengths
    for n in rest:
        first = Op("*", (first, n))
    return first


def places_of(loops: list, at: str) -> list:
    """The statements that decode a position in several loops into the pass of each."""
    lengths = [n.range[0] for n in loops]
    made = []
    for k, n in enumerate(loops):
        inside = lengths[k + 1:]
        value = Op("//", (Name(at), product(inside))) if inside else Name(at)
        made.append(Let(n.index, Op("%", (value, lengths[k])) if k else value))
    return made


def stops(nest: Nest) -> list:
    """The lengths of the grid's axes, outermost first."""
    lengths = [n.range[0] for n in nest.loops]
    return lengths if len(lengths) < 4 else [product(lengths[:-2]), *lengths[-2:]]


