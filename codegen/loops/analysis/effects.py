# SPDX-License-Identifier: Apache-2.0
"""Effects of statements: what they read and write, and whether that is all they do.

>>> from gradscribe.codegen.loops.trees import block_of
>>> found = Effects(block_of("for i in range(n):\\n    z[i] = x[i] * s"))
>>> sorted(found.read), sorted(found.written), found.writes
(['n', 's', 'x'], ['i', 'z'], {'z': [(Name(id='i'),)]})
"""
import numpy as np

from gradscribe.codegen import llvm_inline
from gradscribe.codegen.loops.analysis.summaries import leaves_arguments, sets_no_entries
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Do,
    Expr,
    For,
    If,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Method,
    Name,
    Nothing,
    Op,
    Raise,
    Select,
    Slice,
    Store,
    Unpack,
    Update,
    While,
    children,
    read_by,
)

ELEMENTARY = frozenset(llvm_inline.ELEMENTARY)
PURE = ELEMENTARY | {"float", "int", "abs", "bool", "complex", "min", "max", "maximum", "minimum", "square", "sign",
                     "whole_sign", "fmax", "fmin", "heaviside", "ranked", "ranked_low", "unranked", "ranked32",
                     "ranked_low32", "unranked32", "complex_quotient", "real_quotient", "complex_size",
                     "whole_fmod"}
CHECKS = {"same", "is_length", "not_one", "reaches", "fits"}
OF_NUMBERS = {n for n, f in vars(np).items()                # lowered code calls these with numbers only
              if isinstance(f, np.ufunc) and f.signature is None or isinstance(f, type) and issubclass(f, np.generic)}
SHOWN = "shown"
# functions without a definition to read, which change no argument but the array for a product, and return none
READS_ONLY = {"np.dot", "add_dot", "subtract_dot", "collected", "collected_all"}


class Effects:
    """The effects of a block.

    reads, writes: arrays by entry, {name: [index, ...]}; whole: arrays read as a whole; names: numbers that are read
    before the block sets them; sets: names that it sets; certain: those that it sets on every path; known: False where
    it may have other effects; counts: how often an entry of each array is read or written.

    branches: whether to analyse branches and while loops, which otherwise are unknown effects; asks: whether a call
    that does not change its arguments is known, with SHOWN also one that may return them; raises: whether the block may
    raise errors, after which nothing is read.
    """

    def __init__(self, block, branches=False, asks=False, raises=False):
        self.reads, self.writes, self.whole, self.names, self.sets, self.known = {}, {}, set(), set(), set(), True
        self.certain, self.counts, self.branches, self.asks, self.raises = set(), {}, branches, asks, raises
        for s in block:
            self.statement(s)

    def statement(self, s):
        EFFECTS.get(type(s), Effects.unknown)(self, s)

    def unknown(self, s):
        self.known = False

    def nothing(self, s):
        pass

    def assignment(self, s):
        for e in read_by(s):
            self.value(e)
        if type(s) is Alloc and s.rest:
            self.whole.add("np")                # so that `foreign` holds: memory is taken
        self.set(s.name)

    def store(self, s):
        self.value(s.value)
        if s.op is not None:
            self.entry(s.entry, self.reads, 0)
        self.entry(s.entry, self.writes)

    def update(self, s):
        self.value(s.value)
        self.name(s.name)
        self.set(s.name)

    def unpacking(self, s):
        self.value(s.value)
        self.known = False

    def call(self, s):
        if not isinstance(s.value, Call) or s.value.function not in CHECKS:
            self.known = False
            return
        for a in s.value.args:                  # which of two errors is raised first does not matter
            self.value(a)

    def error(self, s):
        if not self.raises:
            self.known = False

    def for_loop(self, s):
        for e in s.range:
            self.value(e)
        certain = set(self.certain)
        self.set(s.index)
        for inner in s.block:
            self.statement(inner)
        self.certain = certain

    def while_loop(self, s):
        if not self.branches:
            self.known = False
            return
        self.value(s.test)
        before = set(self.certain)
        for inner in s.block:
            self.statement(inner)
        self.certain = before

    def branch(self, s):
        if not self.branches:
            self.known = False
            return
        self.value(s.test)
        before, ends = self.certain, []
        for arm in (s.block, s.orelse):
            self.certain = set(before)
            for inner in arm:
                self.statement(inner)
            ends.append(self.certain)
        self.certain = ends[0] & ends[1]

    def jump(self, s):
        if not self.branches:
            self.known = False

    def set(self, name):
        self.sets.add(name)
        self.certain.add(name)

    def name(self, name):
        if name not in self.certain:
            self.names.add(name)

    def entry(self, e, where, times=1):
        found = reads_of(e, self.asks)
        self.known = self.known and found.known
        if not found.entries:
            return
        self.names |= found.names - self.certain
        self.whole |= found.whole
        for array, index in found.entries[:-1]:
            self.reads.setdefault(array, []).append(index)
            self.counts[array] = self.counts.get(array, 0) + 1
        where.setdefault(e.array.id, []).append(e.index)
        self.counts[e.array.id] = self.counts.get(e.array.id, 0) + times

    def value(self, e):
        found = reads_of(e, self.asks)
        self.names |= found.names - self.certain
        self.whole |= found.whole
        self.known = self.known and found.known
        for array, index in found.entries:
            self.reads.setdefault(array, []).append(index)
            self.counts[array] = self.counts.get(array, 0) + 1

    def and_then(self, other):
        """Add the effects of another block; neither sets a number that the other reads."""
        for mine, more in ((self.reads, other.reads), (self.writes, other.writes)):
            for name, found in more.items():
                mine.setdefault(name, []).extend(found)
        for name, times in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + times
        for field in ("whole", "names", "sets", "certain"):
            getattr(self, field).update(getattr(other, field))
        self.known = self.known and other.known

    def foreign(self, own):
        """Whether it touches an array that may have an alias."""
        return bool((self.reads.keys() | self.writes.keys() | self.whole) - own)

    @property
    def read(self):
        return self.names | self.reads.keys() | self.whole

    @property
    def written(self):
        return self.sets | self.writes.keys()


EFFECTS = {Let: Effects.assignment, Alloc: Effects.assignment, Store: Effects.store, Update: Effects.update,
           Unpack: Effects.unpacking, Do: Effects.call, Raise: Effects.error, For: Effects.for_loop,
           While: Effects.while_loop, If: Effects.branch, Break: Effects.jump, Continue: Effects.jump,
           Nothing: Effects.nothing}


class Reads:
    """What an expression reads: names of numbers, entries [(array, index)], arrays as a whole; known: whether that is
    its only effect.
    """

    __slots__ = ("entries", "known", "names", "whole")

    def __init__(self, names=frozenset(), entries=(), whole=frozenset(), known=True):
        self.names, self.entries, self.whole, self.known = names, entries, whole, known


NOTHING = Reads()
SLOTS = {False: "_reads", True: "_asked", SHOWN: "_shown"}         # the attributes in which expressions cache them


def reads_of(e: Expr, asks: bool | str = False) -> Reads:
    """The reads of an expression, cached in it."""
    slot = SLOTS[asks]
    try:
        return getattr(e, slot)
    except AttributeError:
        found = _reads_of(e, asks)
        object.__setattr__(e, slot, found)
        return found


def _reads_of(e, asks):
    kind = type(e)
    if kind is Const:
        return NOTHING
    if kind is Name:
        return Reads(frozenset([e.id]))
    if kind is Length:
        return Reads(frozenset([e.array]))
    if kind is Load:
        return _entry(e, asks)
    if kind is Attribute:
        if isinstance(e.owner, Name) and e.owner.id in ("np", "math"):
            return NOTHING
        if e.name in ("shape", "size", "T", "real", "imag") or not isinstance(e.owner, Name):
            return reads_of(e.owner, asks)
        return Reads(known=False)
    if kind is Call:
        return _call(e, asks)
    if kind is Method:
        return _together((*e.args, *(k.value for k in e.keywords)), asks, known=False)
    if kind in (Op, Compare, Logic, Select, Items):
        parts = e.args if kind is Op else (e.test, e.then, e.orelse) if kind is Select else e.items
        return _together(parts, asks)
    return Reads(known=False)


def _entry(e, asks):
    if isinstance(e.array, Attribute) and e.array.name == "shape":
        return reads_of(e.array, asks)
    if not isinstance(e.array, Name) or any(
            isinstance(p, Slice) or isinstance(p, Const) and p.value is None for p in e.index):
        return Reads(known=False)
    found = _together(e.index, asks)
    return Reads(found.names, (*found.entries, (e.array.id, e.index)), found.whole, found.known)


def _call(e, asks):
    head, _, name = e.function.rpartition(".")
    named = not head and (name in PURE or name == "range" or name == "len" and isinstance(
        e.args[0], Call) and e.args[0].function == "range")
    of_module = head in ("np", "math")
    if e.function == "np.dot" and any(map(_is_view, e.args)):
        views = [a for a in e.args if _is_view(a)]
        found = _call(Call(e.function, tuple([a.array if a in views else a for a in e.args])), asks)
        parts = [p for a in views for i in a.index for p in (children(i) if isinstance(i, Slice) else (i,))]
        more = _together(parts, asks)
        return Reads(found.names | more.names, found.entries + more.entries, found.whole | {
            a.array.id for a in views}, found.known and more.known)
    if asks and not named and (reads_only(e) or asks == SHOWN and sets_no_entries(e.function)) and not e.keywords:
        given = [a for part in e.args for a in (part.items if isinstance(part, Items) else (part,))]
        found = _together(e.args, asks)
        return Reads(found.names, found.entries, found.whole | {a.id for a in given if isinstance(a, Name)},
                     found.known)
    found = _together((*e.args, *(k.value for k in e.keywords)), asks, known=(named or of_module) and not e.keywords)
    if not of_module or name in OF_NUMBERS:
        return found
    roots = [a.owner if isinstance(a, Attribute) else a for a in e.args if isinstance(a, (Name, Attribute))]
    return Reads(found.names, found.entries, found.whole | {r.id for r in roots if isinstance(r, Name)}, found.known)


def _is_view(e):
    return isinstance(e, Load) and isinstance(e.array, Name) and any(isinstance(p, Slice) for p in e.index)


def _together(parts, asks, known=True):
    found = [reads_of(p, asks) for p in parts]
    return Reads(frozenset().union(*[f.names for f in found]), tuple([e for f in found for e in f.entries]),
                 frozenset().union(*[f.whole for f in found]), known and all(f.known for f in found))


def reads_only(e: Expr) -> bool:
    """Whether it is a call that neither changes nor returns an argument."""
    return isinstance(e, Call) and (e.function in READS_ONLY or e.function not in PURE and leaves_arguments(e.function))
