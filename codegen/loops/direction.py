# SPDX-License-Identifier: Apache-2.0
"""Loop reversal: loops that count down count up where the order of their passes does not matter.

Backward loops run the forward ones in reverse.  Where a pass touches only its own entries, and numbers are summed, any
order will do; entries in the order of memory are read twice as fast, and such a loop may be joined with others.

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
    """Changes a function's loops in place; own: arrays that are known by one name only."""
    for loop in list(statements(function.block)):
        if isinstance(loop, For) and counts_down(loop) and any_order(loop, own, function, sums=True):
            loop.range = (loop.count,)


def counts_down(loop: For) -> bool:
    """Whether it is range(n - 1, -1, -1), of a name."""
    return loop.downward and loop.kind == "range" and isinstance(loop.count, Name)
