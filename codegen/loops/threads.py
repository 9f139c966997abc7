# SPDX-License-Identifier: Apache-2.0
"""Parallel loops: `prange` instead of `range` for loops that are long enough to run on several cores.

Only outermost loops with independent passes qualify: each pass writes its own entries or arrays that it allocates, and
numbers are reduced by sums.  A loop that may raise stays sequential, since Numba loses errors of other threads.  Which
version is faster depends on lengths at run time, so the text has both loops and a test of the number of innermost
passes.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = exp(x[i])
...     return (z,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
>>> spread(function, True)
>>> print(ast.unparse(to_tree(function)))
def f(x):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    if n > 16384:
        for i in prange(n):
            z[i] = exp(x[i])
    else:
        for i in range(n):
            z[i] = exp(x[i])
    return (z,)

Source: M. Wolfe, High Performance Compilers for Parallel Computing, 1996, chapter 11 (concurrent loops).
"""

from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.dependence import any_order, indices_in, summed
from gradscribe.codegen.loops.analysis.effects import ELEMENTARY, Effects
from gradscribe.codegen.loops.form import (
    Call,
    Compare,
    Const,
    Do,
    For,
    Function,
    If,
    Let,
    Method,
    Name,
    Op,
    copied,
    expressions,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import is_counted


def spread(function: Function, sums: bool) -> None:
    """Changes the outermost loops of a function in place.

    sums: whether loops that sum numbers may be parallel too; the order of their sums depends on the number of threads.
    """
    own = Arrays(function).own
    out: list = []
    for s in function.block:
        if is_counted(s) and may_be_spread(s, own, function, sums):
            test = enough(s)
            if all(isinstance(n, (Op, Const)) for n in walk(test.items[0])):
                out.append(s)           # literal lengths are short
                continue
            threads = copied(s)
            threads.kind = "prange"
            out.append(If(test, [threads], [s], s.origin))
        else:
            out.append(s)
    function.block = out


def may_be_spread(loop, own, function, sums):
    every = list(statements(loop.block))
    parts = [n for s in every for e in expressions(s) for n in walk(e)]
    if not any_order(loop, own, function, True) or any(isinstance(s, Do) for s in every) or any(
            isinstance(n, Call) and n.function.startswith(("np.dot", "np.lin")) for n in parts):
        return False
    dear = any(isinstance(n, Call) and n.function in ELEMENTARY for n in parts)
    operations = sum(isinstance(n, (Call, Method)) or isinstance(n, Op) and len(n.args) == 2 for n in parts)
    operations += sum(isinstance(s, For) for s in every)        # a range counts as one
    if not dear and operations < 2:
        return False                    # it is bound by memory
    effects = Effects(loop.block, branches=True)
    carried = effects.sets & effects.names - indices_in(loop)
    if carried and not sums:
        return False
    # Numba recognises a reduction only as `s += x`
    return not any(isinstance(s, Let) and s.name in carried for s in every) and all(summed(v, loop) for v in carried)


def enough(loop):
    """The test that a loop has enough passes to pay for waking threads, from the lengths of its deepest nest."""
    def deepest(node):
        found = [deepest(s) for s in node.block if is_counted(s)]
        return [node.range[0], *max(found, key=len, default=[])]
    lengths = set_in([loop])
    known = [d for d in deepest(loop) if not (isinstance(d, Name) and d.id in lengths)]
    product = known[0]
    for d in known[1:]:
        product = Op("*", (product, d))
    passes = int(costs.MACHINE.threads / max(costs.of_pass([loop]), costs.MACHINE.load))
    return Compare((">",), (product, Const(1 << max(passes, 1).bit_length() - 1)))
