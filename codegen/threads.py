# SPDX-License-Identifier: Apache-2.0
"""Loops that are spread over the processor's cores: `prange` instead of `range`, where there is enough to do.

Only outermost loops are, whose passes are independent: each writes entries of its own, or arrays that it makes itself,
and numbers are summed.  A loop in which something may be raised is left alone, since Numba loses what another thread
raises.  Which is faster depends on lengths that are known when the function runs, so that the text
has both loops, and a test of how many passes the innermost loops have.

>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = exp(x[i])
...     return (z,)''')
>>> spread(tree.body[0], {"z"}, True)
>>> print(ast.unparse(tree))
def f(x):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    if n > 8192:
        for i in prange(n):
            z[i] = exp(x[i])
    else:
        for i in range(n):
            z[i] = exp(x[i])
    return (z,)
"""
import ast
import copy

from gradscribe.codegen.ascending import any_order, summed
from gradscribe.codegen.reach import ELEMENTARY, Paths
from gradscribe.codegen.texts import is_counted, names_in, walk

PASSES = 65536                          # of innermost loops, below which starting threads costs more than it gains
DEAR = 8                                # a pass that calls an elementary function counts for so many


def spread(function, own, sums):
    """Changes the outermost loops of a function in place.

    own: arrays that are known by one name only; sums: whether loops that sum numbers are spread as well, the order of
    whose sums then depends on the number of threads.
    """
    out = []
    for s in function.body:
        if is_counted(s) and may_be_spread(s, own, function, sums):
            test = enough(s)
            if all(isinstance(n, (ast.BinOp, ast.Mult, ast.Constant)) for n in walk(test.left)):
                out.append(s)           # lengths that are numbers are short ones
                continue
            threads = copy.deepcopy(s)
            for a, b in zip(walk(s), walk(threads)):
                b.origin = getattr(a, "origin", None)
            threads.iter.func = ast.Name("prange", ast.Load())
            choice = ast.If(test, [threads], [s])
            choice.origin = getattr(s, "origin", None)
            out.append(choice)
        else:
            out.append(s)
    function.body = out


def may_be_spread(loop, own, function, sums):
    if not any_order(loop, own, function, Paths) or any(
            isinstance(n, ast.Expr) or isinstance(n, ast.Call) and ast.unparse(n.func).startswith(("np.dot", "np.lin"))
            for n in walk(loop)):
        return False
    called = {n.func.id for n in walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    operations = sum(isinstance(n, (ast.BinOp, ast.Call)) for s in loop.body for n in walk(s))
    if not called & ELEMENTARY and operations < 2:
        return False                    # memory is what it waits for
    reach, names = Paths(*loop.body), names_in(loop)
    inner = {n.target.id for n in walk(loop) if isinstance(n, ast.For)}
    carried = reach.sets & reach.names - inner
    if carried and not sums:
        return False
    # Numba knows a sum by `s += x`
    return not any(isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and n.targets[0].id in carried
                   for n in walk(loop)) and all(summed(v, loop, names[v]) for v in carried)


def enough(loop):
    """The test that there is: the product of the lengths of the deepest nest."""
    def deepest(node):
        found = [deepest(s) for s in node.body if is_counted(s)]
        return [node.iter.args[0], *max(found, key=len, default=[])]
    lengths = {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    known = [d for d in deepest(loop) if not (isinstance(d, ast.Name) and d.id in lengths)]
    product = copy.deepcopy(known[0])
    for d in known[1:]:
        product = ast.BinOp(product, ast.Mult(), copy.deepcopy(d))
    dear = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ELEMENTARY
               for n in walk(loop))
    return ast.Compare(product, [ast.Gt()], [ast.Constant(PASSES // DEAR if dear else PASSES)])
