# SPDX-License-Identifier: Apache-2.0
"""Scatter-additions in a fixed order: threads store (index, value) pairs, these are sorted by index, and one thread
adds up the values of each index.

Atomic additions come in another order in each call, and a sum of floating-point numbers depends on its order.

Source: G. Blelloch, Prefix sums and their applications, 1990 (segments of equal keys).

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> text = '''def f(x, k):
...     z = np.zeros((5,), np.float64)
...     for i in range(900):
...         z[k[i]] += x[i]
...     return (z,)'''
>>> function = from_tree(ast.parse(text).body[0], {"x": ("float64", 1), "k": ("int64", 1)})
>>> in_one_order(function)
>>> print(ast.unparse(ast.fix_missing_locations(to_tree(function))))
def f(x, k):
    z = np.zeros((5,), np.float64)
    z_keys = np.full((900,), -1, np.int64)
    z_added = np.empty((900,), np.float64)
    for i in range(900):
        z_keys[i] = k[i]
        z_added[i] = x[i]
    z_order = argsort_lines(z_keys.reshape((1, 900)))
    for z_first in range(900):
        z_key = z_keys[z_order[0, z_first]]
        if z_key >= 0 and (z_first == 0 or z_keys[z_order[0, z_first - 1]] != z_key):
            z_sum = z_added[z_order[0, z_first]]
            z_next = z_first + 1
            while z_next < 900 and z_keys[z_order[0, z_next]] == z_key:
                z_sum += z_added[z_order[0, z_next]]
                z_next += 1
            z[z_key] += z_sum
    return (z,)

If the number of additions is only known inside a pass, a loop before that counts them.
"""
import functools
from collections.abc import Iterable
from typing import NamedTuple, cast

import numpy as np

from gradscribe.ast_transform.source.diagnose import TransformError
from gradscribe.codegen.loops.analysis.slices import asked, sliced
from gradscribe.codegen.loops.build import ZERO, node, quoted, statement
from gradscribe.codegen.loops.form import (
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Name,
    Op,
    Store,
    Type,
    While,
    all_names,
    blocks,
    copied,
    expressions,
    names_of,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.lists import is_range
from gradscribe.codegen.targets.cuda.placement import Placement
from gradscribe.codegen.targets.cuda.scans import of_line
from gradscribe.codegen.targets.cuda.threads import places_of, product

BELOW = "The loop must not set arrays that it reads: it first runs once to count the additions."
NUMBER = Type("int64", 0)


class Sum(NamedTuple):
    """An addition: its block, the enclosing loops whose number of passes is known before, whether these are all."""
    block: list
    statement: Store
    loops: list
    counted: bool


def in_one_order(function: Function, private: Iterable[str] = ()) -> None:
    """Rewrites a function in place; private: arrays that each thread has for itself."""
    segments = Segments(function, private)
    function.block = segments.of_block(function.block)


class Segments:
    """The rewriting of one function."""

    def __init__(self, function, private):
        self.function, self.types, self.placement = function, function.types, Placement(function, private)
        self.fresh = functools.partial(unused, taken=all_names(function))

    def of_block(self, block):
        out: list = []
        for s in block:
            kind = self.placement.of(s)
            if kind == "kernel" and self.placement.nest(s).free.atomic:
                out += self.of_nest(s, self.placement.nest(s).free.atomic)
                continue
            if kind == "host":
                for inner in blocks(s):
                    inner[:] = self.of_block(inner)
            out.append(s)
        return out

    def new(self, stem, kind=NUMBER):
        name = self.fresh(stem)
        self.types[name] = kind
        return name

    def of_nest(self, loop, atomic):
        """The statements that replace a loop that adds to entries of some arrays."""
        before, after, sets = [], [], set_in([loop])
        found = list(sums([loop], [], True, sets, atomic))
        numbers = {s.statement: (self.new(f"{s.statement.entry.array.id}_number"), self.new(
            f"{s.statement.entry.array.id}_most")) for s in found if not s.counted}
        if numbers:
            before += self.counting(loop, found, atomic, sets, numbers)
        for s in found:
            number, most = numbers.get(s.statement, (None, None))
            made, first, last = self.of_sum(s.statement, s.loops, number, most)
            k = s.block.index(s.statement)
            s.block[k:k + 1] = made
            if number is not None:
                s.loops[-1].block[:0] = of_line(s.statement.origin, Let(number, ZERO))
            before += first
            after += last
        return [*before, loop, *after]

    def counting(self, loop, found, atomic, sets, numbers):
        """The statements that find the most additions of any pass; numbers: {addition: (its counter, the most)}."""
        private, free = self.placement.order.private, self.placement.nest(loop).free.numbers
        if not all(s.loops for s in found):
            raise without_order(next(iter(numbers)))
        copy, out = copied(loop), []
        for s, there in zip(found, list(sums([copy], [], True, sets, atomic)), strict=True):
            number, most = numbers.get(s.statement, (None, None))
            k, origin = there.block.index(there.statement), s.statement.origin
            there.block[k:k + 1] = of_line(origin, statement("{} += 1", number)) if number else []
            if number:
                inner = there.loops[-1]
                inner.block[:0] = of_line(origin, Let(number, ZERO))
                inner.block += of_line(origin, Let(most, quoted("max({}, {})", most, number)))
                out += of_line(origin, Let(most, ZERO))
        copy.block = sliced(copy.block, {n for pair in numbers.values() for n in pair}, private)
        set_there = {s.entry.array.id for s in statements([loop]) if isinstance(s, Store)} - atomic
        read = {e.array.id for s in statements([copy]) for whole in expressions(s) for e in walk(whole)
                if isinstance(e, Load) and isinstance(e.array, Name)}
        if any(a == b or not self.placement.order.apart(a, b) for a in set_there for b in read - set(private)
               if a not in private) or asked([copy]) & free.keys() or read & atomic:
            raise without_order(next(iter(numbers)))
        return [*out, copy]

    def of_sum(self, s, loops, number=None, most=None):
        """(statements that replace an addition, those that make its arrays, those that add up the values).

        number, most: the addition's number in its pass, and the most that a pass has; None if each pass has one.
        """
        name, dtype = s.entry.array.id, self.types[s.entry.array.id].dtype
        lengths = [n.range[0] for n in loops] + ([Name(most)] if number else [])
        index = [Name(n.index) for n in loops] + ([Name(number)] if number else [])
        count, parts = product(lengths), s.entry.index
        keys, added = (self.new(f"{name}_{what}", Type(kind, len(lengths))) for what, kind in (
            ("keys", "int64"), ("added", dtype)))
        order = self.new(f"{name}_order", Type("int64", 2))
        first, key, total, after = (self.new(f"{name}_{what}", kind) for what, kind in (
            ("first", NUMBER), ("key", NUMBER), ("sum", Type(dtype, 0)), ("next", NUMBER)))
        widths = [self.new(f"{name}_length") for _ in parts[1:]]
        place = parts[0]
        for width, part in zip(widths, parts[1:]):
            place = Op("+", (Op("*", (place, Name(width))), part))
        axes = [Let("", Name(key))]
        if widths:                      # the length of the first axis is not needed
            axes = places_of([For("", (Name(w),), []) for w in ("", *widths)], key)
        value = Op("neg", (s.value,)) if s.op == "-" else s.value
        made = [statement("{}[{*}] = {}", keys, index, place), statement("{}[{*}] = {}", added, index, value)]
        made += [statement("{} += 1", number)] if number else []
        begin = [Let(width, Length(name, axis)) for axis, width in enumerate(widths, 1)]
        begin += [statement("{} = np.full({}, -1, np.int64)", keys, lengths),
                  statement("{} = np.empty({}, {})", added, lengths, node(np.dtype(dtype)))]
        end, where, what = [], keys, added
        if len(lengths) > 1:
            where, what = self.new(f"{keys}_line", Type("int64", 1)), self.new(f"{added}_line", Type(dtype, 1))
            all_of_them = self.new(f"{name}_count")
            end = [Let(all_of_them, count), *(statement("{} = {}.reshape(({},))", flat, array, all_of_them)
                                              for flat, array in ((where, keys), (what, added)))]
            count = Name(all_of_them)
        names = {"keys": where, "added": what, "order": order, "n": count, "first": first, "key": key, "sum": total,
                 "next": after}
        segment = statement("while {next} < {n} and {keys}[{order}[0, {next}]] == {key}:", **names)
        segment.block += [statement("{sum} += {added}[{order}[0, {next}]]", **names),
                          statement("{next} += 1", **names)]
        head = statement("if {key} >= 0 and ({first} == 0 or {keys}[{order}[0, {first} - 1]] != {key}):", **names)
        head.block += [statement("{sum} = {added}[{order}[0, {first}]]", **names),
                       statement("{next} = {first} + 1", **names), segment,
                       Store(Load(Name(name), tuple(a.value for a in axes)), Name(total), "+")]
        each = statement("for {first} in range({n}):", **names)
        each.block += [statement("{key} = {keys}[{order}[0, {first}]]", **names), head]
        end += [statement("{order} = argsort_lines({keys}.reshape((1, {n})))", **names), each]
        return of_line(s.origin, *made), of_line(s.origin, *begin), of_line(s.origin, *end)


def sums(block: list, loops: list, counted: bool, sets: set, atomic: set):
    """Each addition in a block as a Sum."""
    for s in block:
        if isinstance(s, Store) and s.op is not None and cast(Name, s.entry.array).id in atomic:
            yield Sum(block, s, loops, counted)
        elif isinstance(s, For):
            known = counted and is_range(s) and names_of(s).isdisjoint(sets)
            yield from sums(s.block, [*loops, s] if known else loops, known, sets, atomic)
        elif isinstance(s, (While, If)):
            for inner in blocks(s):
                yield from sums(inner, loops, counted and isinstance(s, If), sets, atomic)


def without_order(s: Store) -> TransformError:
    return TransformError(f"the additions to {cast(Name, s.entry.array).id} have no fixed order: the number of "
                          "additions in a pass is not known before the loop", s.origin, BELOW)
