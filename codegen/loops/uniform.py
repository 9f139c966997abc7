# SPDX-License-Identifier: Apache-2.0
"""Calls of elementary functions that are not inlined: uniform ones in vectorised loops, and those at many call sites.

The time of LLVM's vectoriser doubles with every operation on a uniform value, one that is the same in all lanes.  So a
call of a function of runtime/vmath.py with uniform arguments stays a call if it cannot be moved out of the loop.
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

UNROLLED = 8                            # LLVM unrolls loops of at most so many passes
PLACES = 8                              # the most call sites to inline, at 30 ms each; a call is a fifth slower


def mark_uniform(function: Function) -> None:
    """Rename calls, in place, whose arguments are the same in all lanes of a vectorised loop.

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
    """Whether LLVM unrolls a loop, so that the loop around may be vectorised."""
    return all(isinstance(e, Const) for e in loop.range) and len(range(*[e.value for e in loop.range])) <= UNROLLED


def varies(loop: For) -> set:
    """Names of numbers that differ between passes."""
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
    """Rename calls of an elementary function with many call sites: they become calls of one function of vectors.

    LLVM takes 30 ms to inline, vectorise and schedule one call, and longer if a loop has several.
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
    """{name: function for Numba} of the calls that are not inlined."""
    return {f"{word}_{name}_": called_apart(name, *about, lanes) for name, about in ELEMENTARY.items()
            for word, lanes in (("apart", 1), ("shared", lanes_of_host()))}
