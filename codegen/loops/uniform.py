# SPDX-License-Identifier: Apache-2.0
"""Calls of elementary functions that stay calls: those that give every lane of a vectorised loop one number, and those
of a function that is called at many places.

LLVM's vectoriser takes time that doubles with every operation on a number that is the same in all lanes.  So where a
call of a function of runtime/vmath.py has to stay in a loop whose passes give it one and the same number, it stays a
call.
"""
import collections
import functools
from typing import Any

from gradscribe.codegen.llvm_inline import ELEMENTARY, called_apart, lanes_of_host
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Const,
    For,
    Function,
    If,
    Let,
    Unpack,
    Update,
    While,
    change,
    expressions,
    holders,
    names_in,
    read_by,
    rebuilt,
    set_by,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import around

UNROLLED = 8                            # LLVM writes loops of so few passes out
PLACES = 8                              # where a call costs a fifth of the time of the function, and inlining 30 ms


def mark_uniform(function: Function) -> None:
    """Renames calls of what is written out where no lane of a vectorised loop would give another number.

    >>> import ast
    >>> from gradscribe.codegen.loops.trees import from_tree, to_tree
    >>> tree = ast.parse('''def f(p, x):
    ...     for i in range(x.shape[0]):
    ...         x[i] = sin(p[0]) + sin(x[i])''')
    >>> function = from_tree(tree.body[0], {})
    >>> mark_uniform(function)
    >>> print(ast.unparse(to_tree(function)))
    def f(p, x):
        for i in range(x.shape[0]):
            x[i] = apart_sin_(p[0]) + sin(x[i])
    """
    above, varying = holders(function), functools.cache(varies)

    def stays(e, s):
        names, inner = frozenset().union(*map(names_in, e.args)), set()
        for loop in around(s, above):
            if isinstance(loop, While):
                return False
            if isinstance(loop, For):
                if not names & (varying(loop) - inner):
                    return True
                if not few(loop):
                    return False
                inner.add(loop.index)
        return False

    for s in above:
        def new(e, s=s):
            e = rebuilt(e, new)
            uniform = isinstance(e, Call) and e.function in ELEMENTARY and stays(e, s)
            return Call(f"apart_{e.function}_", e.args) if uniform else e
        change(s, new)


def few(loop: For) -> bool:
    """Whether a loop is written out by LLVM, so that the one around may be vectorised."""
    return all(isinstance(e, Const) for e in loop.range) and len(range(*[e.value for e in loop.range])) <= UNROLLED


def varies(loop: For) -> set:
    """Names of numbers that are not the same in every pass."""
    effects = Effects(loop.block, branches=True)
    found = {loop.index} | effects.sets & effects.names
    while True:
        before = len(found)
        for s in statements(loop.block):
            if isinstance(s, For) and not few(s):
                found.add(s.index)
            elif isinstance(s, (If, While)):
                if not found.isdisjoint(names_in(s.test)):
                    found |= set_in([s])
            elif isinstance(s, (Let, Alloc, Unpack, Update, For)):
                sources = {n for e in read_by(s) for n in names_in(e)}
                if not found.isdisjoint(sources) or isinstance(s, Update) and s.name in found:
                    found.update(set_by(s))
        if len(found) == before:
            return found


def mark_shared(function: Function) -> None:
    """Renames calls of an elementary function that is called at many places: LLVM takes 30 ms to inline, vectorise and
    schedule one, and longer the more there are in a loop.  They are calls of one function of vectors then.
    """
    def calls(s):
        return [n.function for e in expressions(s) for n in walk(e) if isinstance(n, Call) and n.function in ELEMENTARY]
    found = collections.Counter(name for s in statements(function.block) for name in calls(s))
    shared = {name for name, count in found.items() if count > PLACES}

    def new(e):
        e = rebuilt(e, new)
        return Call(f"shared_{e.function}_", e.args) if isinstance(e, Call) and e.function in shared else e
    for s in statements(function.block):
        if not shared.isdisjoint(calls(s)):
            change(s, new)


@functools.cache
def apart_functions() -> dict[str, Any]:
    """The calls that stay calls, for Numba, by name."""
    return {f"{word}_{name}_": called_apart(name, *about, lanes) for name, about in ELEMENTARY.items()
            for word, lanes in (("apart", 1), ("shared", lanes_of_host()))}
