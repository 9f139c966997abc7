# SPDX-License-Identifier: Apache-2.0
"""Loop-carried dependences for threads: which loops may run their passes in parallel, and how to combine the results.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree
>>> tree = ast.parse('''def f(x, k):
...     z = np.empty((9,), np.float64)
...     s = 0.0
...     for i in range(9):
...         z[i] = x[i] + s
...         z[k[i]] += x[i]
...     for i in range(9):
...         z[k[i]] += x[i]
...         s += x[i]
...     for i in range(9):
...         z[k[i]] = x[i]''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "k": ("int64", 1)})
>>> order = Order(function)
>>> [order.free(loop) for loop in function.block if isinstance(loop, For)]
[None, Free(numbers={'s': '+'}, atomic={'z'}), None]

Source: R. Allen, K. Kennedy, Optimizing Compilers for Modern Architectures, 2002, chapters 2, 5 and 6.
"""
import functools
from typing import Any, NamedTuple, TypeGuard

from gradscribe.codegen.loops.analysis.arrays import shown_by
from gradscribe.codegen.loops.analysis.dependence import accumulated, indices_in, moved, occurrences
from gradscribe.codegen.loops.analysis.effects import CHECKS, OF_NUMBERS, PURE, SHOWN, Effects
from gradscribe.codegen.loops.analysis.liveness import Liveness
from gradscribe.codegen.loops.analysis.summaries import sets_no_entries
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Break,
    Call,
    Const,
    Continue,
    Expr,
    For,
    Function,
    If,
    Items,
    Let,
    Load,
    Name,
    Op,
    Return,
    Statement,
    Unpack,
    Update,
    all_blocks,
    expressions,
    holders,
    names_in,
    set_by,
    statements,
    walk,
)

CHOICES = {"max", "min", "maximum", "minimum", "fmax", "fmin"}
ADDED = {"float64", "float32", "int64", "int32", "uint64", "uint32"}        # dtypes with an atomic addition in CUDA


class Free(NamedTuple):
    """numbers: {name: the reduction that combines the values of two threads}; atomic: arrays to whose entries several
    threads add.
    """
    numbers: dict
    atomic: set


@functools.cache
def is_of_numbers(function: str) -> bool:
    """Whether a function of this name takes numbers only, so that each pass may call it on its own."""
    head, _, name = function.rpartition(".")
    if head:
        return head == "math" or head == "np" and name in OF_NUMBERS
    return name in PURE | CHECKS | {"range", "len"} or name.startswith("scipy_") or sets_no_entries(name)


class Order:
    """private: arrays of which each thread has its own; types: those of the function."""

    def __init__(self, function: Function, private=()):
        self.function, self.types, self.private = function, function.types, private
        self.above = holders(function)
        self.new: dict = {}
        self.blocks = {s: block for block in all_blocks(function) for s in block}
        self.roots = points_to(function)

    def apart(self, a: str, b: str, loop: For | None = None) -> bool:
        """Whether two names certainly share no memory; in a loop, if one is given."""
        if loop is not None and (a in self.fresh(loop) or b in self.fresh(loop)):
            return True
        first, second = self.roots.get(a, {None}), self.roots.get(b, {None})
        return None not in first | second and not first & second and not (first & GIVEN and second & GIVEN)

    def fresh(self, loop):
        """Arrays that were allocated before a loop and have no alias when it begins."""
        if loop not in self.new:
            found: set = set()
            for s in self.blocks.get(loop, [loop]):         # for all loops of the block at once
                every = list(statements([s]))
                if isinstance(s, For):
                    self.new[s] = set(found)
                found -= {n for i in every for n in set_by(i)}
                if isinstance(s, Alloc):
                    found.add(s.name)
                elif not isinstance(s, For):
                    found -= {n for i in every for e in expressions(i) for n in whole_in(e)}
        return self.new[loop]

    def entries(self, loop: For, at: For | None = None) -> set | None:
        """The arrays to whose entries several passes add; None where passes depend on each other otherwise."""
        return self.entries_of(loop, at, Effects(loop.block, branches=True, asks=SHOWN))

    def entries_of(self, loop, at, body):
        if not body.known or loop.index in body.sets or body.writes.keys() & body.whole or not all(
                is_of_numbers(e.function) for s in statements(loop.block) for whole in expressions(s)
                for e in walk(whole) if isinstance(e, Call)):
            return None
        others = body.reads.keys() | body.writes.keys() | body.whole - {"np"}
        if any(not self.apart(a, b, at or loop) for a in body.writes for b in others if a != b):
            return None
        own, atomic = Own([loop.index, *moved(loop), *self.stepped(loop)], body.sets | {loop.index}), set()
        for name, written in body.writes.items():
            if name in self.private:
                continue
            found = [*written, *body.reads.get(name, ())]
            if any(found[0][k] in own and all(i[k] == found[0][k] for i in found)
                   for k in range(min(map(len, found)))):
                continue
            if self.types.get(name, UNKNOWN).dtype not in (*ADDED, None) or not accumulated(name, loop):
                return None
            atomic.add(name)
        return atomic

    def stepped(self, loop):
        """Names that a pass sets once, to the index times a known number, plus or minus a loop-invariant one."""
        sets = [n for s in statements([loop]) for n in set_by(s)]
        for s in loop.block:
            if not isinstance(s, Let) or not is_pair(s.value, "+", "-", "*") or sets.count(s.name) > 1:
                continue
            begin, times = s.value.args if s.value.op != "*" else (None, s.value)
            outside = begin is None or isinstance(begin, Const) or isinstance(begin, Name) and begin.id not in sets
            if outside and is_pair(times, "*") and times.args[0] == Name(loop.index) and self.constant(times.args[1]):
                yield s.name

    def constant(self, e):
        """The value of an expression if it is a known whole number, else None."""
        if isinstance(e, Name):
            return self.numbers.get(e.id)
        if isinstance(e, Op) and e.op == "neg":
            value = self.constant(e.args[0])
            return None if value is None else -value
        return e.value if isinstance(e, Const) and type(e.value) is int else None

    @functools.cached_property
    def numbers(self):
        """{name: its value} of names that are set once, to a known whole number."""
        sets = [n for s in statements(self.function.block) for n in set_by(s)]
        self.numbers = {}
        found = [(s.name, self.constant(s.value)) for s in statements(self.function.block)
                 if isinstance(s, Let) and sets.count(s.name) == 1]
        return {n: v for n, v in found if v is not None}

    def free(self, loop: For, whole: For | None = None) -> Free | None:
        """How to combine the passes of a loop; None where their order matters.

        whole: the loop of the function to look at instead, where this one is not in the function.
        """
        body = Effects(loop.block, branches=True, asks=SHOWN)
        atomic = self.entries_of(loop, whole, body)
        if atomic is None or any(isinstance(s, Alloc) for s in statements(loop.block)) or leaves(loop.block):
            return None
        inner, numbers = indices_in(loop) - {loop.index}, {}
        for name in sorted(body.sets & body.names - inner):
            numbers[name] = put_together(name, loop)
            if numbers[name] is None:
                return None
        names = (body.sets - numbers.keys()) | inner
        # a loop that is not in the function is all that a pass does
        return None if names & self.live_after.get(whole or loop, set()) else Free(numbers, atomic)

    @functools.cached_property
    def live_after(self):
        """{statement: the live names after it}"""
        return Liveness(self.function.block).after


GIVEN = {"given"}


def leaves(block: list[Statement]) -> bool:
    """Whether a block jumps out of its pass: break, continue or return."""
    return any(isinstance(s, (Break, Continue)) or isinstance(s, If) and (leaves(s.block) or leaves(s.orelse))
               for s in block) or any(isinstance(s, Return) for s in statements(block))


def is_pair(e: Expr, *ops: str) -> TypeGuard[Op]:
    return isinstance(e, Op) and e.op in ops and len(e.args) == 2


def whole_in(e):
    """The names in an expression that are used as a whole, not by entry."""
    if isinstance(e, Name):
        yield e.id
    elif isinstance(e, Load) and isinstance(e.array, Name):
        for part in e.index:
            yield from whole_in(part)
    else:
        for name in e.__match_args__:
            part = getattr(e, name)
            for p in part if type(part) is tuple else (part,):
                if isinstance(p, Expr):
                    yield from whole_in(p)


class Own:
    """Indices that differ in each pass: the loop's index, alone or plus or minus something loop-invariant.

    names: those with a different value in each pass; sets: all names that the loop sets.
    """

    def __init__(self, names, sets):
        self.names, self.sets = set(names), sets

    def __contains__(self, e):
        while is_pair(e, "+", "-"):
            stays = [names_in(side).isdisjoint(self.sets) and not any(isinstance(n, (Call, Load)) for n in walk(side))
                     for side in e.args]
            if stays[0] == stays[1]:
                return False
            e = e.args[stays[0]]
        return isinstance(e, Name) and e.id in self.names


def points_to(function: Function) -> dict:
    """{array: the allocations that its name may point to}; None among them is unknown memory.

    Source: L. Andersen, Program Analysis and Specialization for the C Programming Language, 1994, chapter 4.
    """
    roots: dict = {p: {"given"} for p in function.params}
    aliases = []
    for k, s in enumerate(statements(function.block)):
        if isinstance(s, Alloc):
            roots.setdefault(s.name, set()).add((s.name, k))
        elif isinstance(s, Let) and function.types.get(s.name, UNKNOWN).rank != 0:
            sources = shown_by(s.value, function.types) - {"np", "math"}
            if sources:
                aliases += [(s.name, source) for source in sources]
            else:
                roots.setdefault(s.name, set()).add((s.name, k))
        elif isinstance(s, Unpack) and not isinstance(s.value, Items):
            for name in set_by(s):
                roots.setdefault(name, set()).add(None)
    changed = True
    while changed:
        changed = False
        for name, source in aliases:
            there = roots.setdefault(name, set())
            more = roots.get(source, set()) - there
            changed = changed or bool(more)
            there |= more
    return roots


def put_together(name: str, loop: For) -> str | None:
    """The reduction of a number in a loop: +, *, min or the like, or the constant that it is set to; else None."""
    found, uses = set(), 0
    for s in statements([loop]):
        if isinstance(s, Update) and s.name == name:
            found.add({"+": "+", "*": "*", "-": "+"}.get(s.op))
            uses += 1
        elif isinstance(s, Let) and s.name == name:
            value: Any = s.value
            if isinstance(value, Const) and type(value.value) is bool:
                found.add(str(value.value))
                uses += 1
                continue
            sides = value.args[:1] if is_pair(value, "-") else value.args if is_pair(value, "+", "*") else \
                value.args[:1] if isinstance(value, Call) and value.function in CHOICES and len(value.args) == 2 else ()
            if Name(name) not in sides:
                return None
            found.add(value.function if isinstance(value, Call) else "*" if value.op == "*" else "+")
            uses += 2
    if len(found) != 1 or None in found or uses != occurrences(loop, name):
        return None
    return found.pop()
