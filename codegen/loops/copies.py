# SPDX-License-Identifier: Apache-2.0
"""Copy propagation: a name that is another one, or a number, is that wherever it stands.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     length = n
...     two = 2
...     total = np.zeros((length,), np.float64)
...     out = total
...     for i in range(length):
...         out[i] = two * x[i]
...     return (out,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
>>> propagate_copies(function)
>>> print(ast.unparse(to_tree(function)))
def f(x):
    n = x.shape[0]
    total = np.zeros((n,), np.float64)
    for i in range(n):
        total[i] = 2 * x[i]
    return (total,)

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.1.5.
"""
from collections import Counter

from gradscribe.codegen.loops import form
from gradscribe.codegen.loops.form import Const, Function, Let, Name, renamed, set_by, statements


def propagate_copies(function: Function) -> None:
    """Changes a function in place."""
    sets = Counter(n for s in statements(function.block) for n in set_by(s))
    lasting = {n for block, in_loop in form.blocks_in_loops(function.block) if not in_loop for s in block
               for n in set_by(s) if sets[n] == 1} | set(function.params) - set(sets)
    copies: dict = {}
    for block in form.all_blocks(function):
        for s in list(block):
            if isinstance(s, Let) and sets[s.name] == 1 and s.name not in function.params and (
                    isinstance(s.value, Name) and s.value.id in lasting or type(getattr(s.value, "value", None)) is int
                    and isinstance(s.value, Const)):
                copies[s.name] = s.value
                block.remove(s)
    for name, value in copies.items():
        while isinstance(value, Name) and value.id in copies:
            value = copies[value.id]
        copies[name] = value
    for s in statements(function.block):
        form.change(s, lambda e: renamed(e, copies))
