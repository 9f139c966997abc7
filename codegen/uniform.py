# SPDX-License-Identifier: Apache-2.0
"""Calls of elementary functions that stay calls: those that give every lane of a vectorised loop one number.

LLVM's vectoriser takes time that doubles with every operation on a number that is the same in all lanes.  So where a
call of a function of runtime/vmath.py has to stay in a loop whose passes give it one and the same number, it stays a
call.
"""
import ast
import functools

from gradscribe.codegen.reach import Paths
from gradscribe.codegen.straight import ELEMENTARY as WRITTEN_OUT
from gradscribe.codegen.straight import called_apart
from gradscribe.codegen.texts import parents_of, walk

UNROLLED = 8                            # LLVM writes loops of so few passes out


def mark_uniform(function):
    """Renames calls of what is written out where no lane of a vectorised loop would give another number.

    >>> tree = ast.parse('''def f(p, x):
    ...     for i in range(x.shape[0]):
    ...         x[i] = sin(p[0]) + sin(x[i])''')
    >>> mark_uniform(tree.body[0])
    >>> print(ast.unparse(tree))
    def f(p, x):
        for i in range(x.shape[0]):
            x[i] = apart_sin_(p[0]) + sin(x[i])
    """
    calls = [n for n in walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and
             n.func.id in WRITTEN_OUT]
    if not calls:
        return
    parents, varying = parents_of(function), functools.cache(varies)
    for call in calls:
        names = {n.id for a in call.args for n in walk(a) if isinstance(n, ast.Name)}
        node, inner = call, set()
        while node in parents:
            node = parents[node]
            if isinstance(node, ast.While):
                break
            if not isinstance(node, ast.For):
                continue
            if not names & (varying(node) - inner):
                call.func.id = f"apart_{call.func.id}_"
                break
            if not few(node):
                break
            inner.add(node.target.id)


def few(loop):
    """Whether a loop is written out by LLVM, so that the one around may be vectorised."""
    ends = loop.iter.args if isinstance(loop.iter, ast.Call) else [None]
    return isinstance(loop.target, ast.Name) and all(isinstance(e, ast.Constant) for e in ends) and \
        len(range(*[e.value for e in ends])) <= UNROLLED


def varies(loop):
    """Names of numbers that are not the same in every pass."""
    found = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    reach = Paths(*loop.body)
    found |= reach.sets & reach.names
    while True:
        before = len(found)
        for s in walk(loop):
            if isinstance(s, ast.Assign):
                targets, sources = s.targets, [s.value]
            elif isinstance(s, ast.AugAssign):
                targets, sources = [s.target], [s.value, s.target]
            elif isinstance(s, ast.For) and s is not loop:
                targets, sources = [s.target], [s.iter] if few(s) else []
                if not few(s):
                    found |= {n.id for n in walk(s.target) if isinstance(n, ast.Name)}
            elif isinstance(s, (ast.If, ast.While)):
                targets = [n for inner in (*s.body, *s.orelse) for n in walk(inner) if isinstance(n, ast.Name) and
                           isinstance(n.ctx, ast.Store)]
                sources = [s.test]
            else:
                continue
            if any(isinstance(n, ast.Name) and n.id in found for v in sources for n in walk(v)):
                found |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name) and
                          isinstance(n.ctx, ast.Store)}
        if len(found) == before:
            return found


@functools.cache
def apart_functions():
    """The calls that stay calls, for Numba, by name."""
    return {f"apart_{name}_": called_apart(name, *about) for name, about in WRITTEN_OUT.items()}
