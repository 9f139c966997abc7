# SPDX-License-Identifier: Apache-2.0
"""Loop reversal: loops that count down count up if the order of their passes does not matter.

The loops of the reverse sweep run those of the forward sweep backwards.  Where each pass accesses only its own entries
and sums numbers, any order will do.  In the order of memory entries are read twice as fast, and the loop may be fused.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for j in range(n - 1, -1, -1):
...         t = 2.0 * x[j]
...         z[j] += t
...     for j in range(n - 1, -1, -1):
...         z[j + 1] = z[j]''')
>>> function = from_tree(tree.body[0], {})
>>> upward(function, {"z"})
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    for j in range(n):
        t = 2.0 * x[j]
        z[j] += t
    for j in range(n - 1, -1, -1):
        z[j + 1] = z[j]

Source: M. Wolfe, High Performance Compilers for Parallel Computing, 1996, section 9.6 (loop reversal).
"""

from gradscribe.codegen.loops.analysis.dependence import any_order
from gradscribe.codegen.loops.form import For, Function, Name, statements


def upward(function: Function, own: set) -> None:
    """Change the loops of a function in place; own: arrays without aliases."""
    for loop in list(statements(function.block)):
        if isinstance(loop, For) and counts_down(loop) and any_order(loop, own, function, sums=True):
            loop.range = (loop.count,)


def counts_down(loop: For) -> bool:
    """Whether it is range(n - 1, -1, -1), where n is a name."""
    return loop.downward and loop.kind == "range" and isinstance(loop.count, Name)
