# SPDX-License-Identifier: Apache-2.0
"""The lengths of arguments: which ones a version is made for, and which calls it serves.

A compiled version has short axes as constants, and lengths that its loops compare as one, for as long as calls agree.
"""
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, key_of, unify
from gradscribe.ast_transform.source.diagnose import Demand

SHORT = 16                              # up to this length, an axis has its length as a constant in compiled code


class Lengths:
    """What the calls of a compiled function have shown about the lengths of its arguments."""

    def __init__(self):
        self.short = {}                 # kind of the arguments -> the constant lengths of the first call
        self.general = set()            # kinds of arguments for which another call had other lengths
        self.equal = {}                 # kind of the arguments -> pairs of lengths that loops compare, by number

    def described(self, facts, words):
        """Short axes have constant lengths in the first version; once a second length occurs, a version for any length
        is made.  Lengths that loops compare and that are equal in the first call are one symbol, so that
        `c[i, :i + 1] += a[:i + 1, k]` has i + 1 entries; other arguments get one more version, for any lengths.
        """
        facts, words = self.in_short(facts, words)
        lengths, pairs = lengths_of([*facts, *words.values()]), self.equal.get(kind_of(facts, words), ())
        if all(lengths[a].size == lengths[b].size for a, b in pairs):
            for a, b in pairs:
                unify(lengths[a], lengths[b])
        return facts, words

    def in_short(self, facts, words):
        """Facts with constant lengths for short axes, unless a call had other lengths."""
        kind = kind_of(facts, words)
        if kind in self.general:
            return facts, words
        told, told_words = [short(f) for f in facts], {k: short(f) for k, f in words.items()}
        exact = (tuple(map(key_of, told)), tuple(map(key_of, told_words.values())))
        if self.short.setdefault(kind, exact) == exact:
            return told, told_words
        self.general.add(kind)
        return facts, words

    def taken_as(self, facts, words):
        """Assumptions about lengths that the arguments alone do not imply."""
        lengths = lengths_of([*facts, *words.values()])
        return (all(lengths[a].same(lengths[b]) for a, b in self.equal.get(kind_of(facts, words), ())),
                bool(not_empty(facts, words)))

    def meeting(self, kind, facts, words):
        """A callback for the lengths that loops compare: at first, it asks for a version in which they are equal."""
        lengths = lengths_of([*facts, *words.values()])

        def meet(found):
            place = {n.normal().symbol: k for k, n in reversed(list(enumerate(lengths))) if not n.normal().offset}
            rows = [[place[s] for s in symbols if s in place] for symbols in found]
            pairs = tuple((a, b) for a, *others in filter(None, rows) for b in others)
            if self.equal.setdefault(kind, pairs) is pairs and pairs:
                raise Demand(None, "lengths that are equal in the example")
        return meet


def kind_of(facts, words):
    """A key for arguments with the same dtypes, ranks and structure."""
    return tuple(map(key_of, facts)), tuple((k, key_of(f)) for k, f in words.items())


def short(fact):
    """A fact with constant lengths for short axes: all axes of a small array, and those after the first of others."""
    if isinstance(fact, Sequence):
        return replace(fact, elements=tuple(map(short, fact.elements)))
    if not isinstance(fact, Array) or not fact.dims:
        return fact
    sizes = [d.size for d in fact.dims]
    small = math.prod(sizes) <= SHORT * SHORT and max(sizes) <= SHORT
    dims = [Length(None, n) if 1 < n <= SHORT and (small or k) else d
            for k, (n, d) in enumerate(zip(sizes, fact.dims))]
    return Array(fact.dtype, tuple(dims), fact.length)


def lengths_of(facts: Iterable) -> list[Length]:
    """The lengths in facts, in order, and the integers, which may be lengths; equal ones share a symbol."""
    out: list[Length] = []
    for fact in facts:
        if isinstance(fact, Array):
            out += fact.dims if fact.dims or fact.length is None else (fact.length,)
        elif isinstance(fact, Sequence):
            out += lengths_of(fact.elements)
    return out


def not_empty(facts: Iterable, words: Mapping[str, Any]) -> list[Length]:
    """The lengths of all arrays among the arguments if none of them is 0, else an empty list."""
    lengths = [n for fact in arrays_in([*facts, *words.values()]) for n in fact.dims]
    return lengths if all(n.size for n in lengths) else []


def arrays_in(facts):
    """The facts of all arrays in a sequence of facts and their elements."""
    for fact in facts:
        if isinstance(fact, Array):
            yield fact
        elif isinstance(fact, Sequence):
            yield from arrays_in(fact.elements)


def agree(made: Iterable[Length], given: Iterable[Length]) -> bool:
    """Whether given lengths satisfy those that a version was made for: equal ones equal, constant ones the same, and
    unequal those that the version takes to be.
    """
    seen: dict[Any, int] = {}
    for a, b in zip(made, given):
        n, size = a.normal(), b.size
        if n.symbol is None:
            if size != n.offset:
                return False
        elif seen.setdefault(n.symbol, size - n.offset) != size - n.offset or size - n.offset < n.symbol.least:
            return False
    return all(_unequal(seen, *pair) for symbol in seen for pair in symbol.apart)


def _unequal(seen: dict[Any, int], *pair: Length) -> bool:
    """Whether two lengths are unequal where `seen` holds the values of the symbols."""
    a, b = (n.offset + (0 if n.symbol is None else seen.get(n.symbol, math.nan)) for n in map(Length.normal, pair))
    return a < b or a > b
