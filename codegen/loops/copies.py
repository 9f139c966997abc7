# SPDX-License-Identifier: Apache-2.0
"""Copy and constant propagation: two names of one value become one, and a name of a literal becomes the literal.

The later name stays, since it is the user's where the earlier one comes from lowering; lengths keep their first name.

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
    out = np.zeros((n,), np.float64)
    for i in range(n):
        out[i] = 2 * x[i]
    return (out,)

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.1.5.
"""
from collections import Counter

from gradscribe.codegen.loops import form
from gradscribe.codegen.loops.form import Alloc, Const, Function, Length, Let, Name, renamed, set_by, statements


def propagate_copies(function: Function) -> None:
    """Changes a function in place."""
    sets = Counter(n for s in statements(function.block) for n in set_by(s))
    once = {s.name: s for block, in_loop in form.blocks_in_loops(function.block) if not in_loop for s in block
            if isinstance(s, (Let, Alloc)) and sets[s.name] == 1 and s.name not in function.params}
    given = {p for p in function.params if p not in sets}
    names: dict = {}                    # {name: what replaces it}
    for block in form.all_blocks(function):
        for s in list(block):
            if not isinstance(s, Let) or sets[s.name] != 1 or s.name in function.params:
                continue
            value = s.value
            while isinstance(value, Name) and value.id in names:
                value = names[value.id]
            if isinstance(value, Const) and type(value.value) is int or isinstance(value, Name) and value.id in given:
                names[s.name] = value
            elif isinstance(value, Name) and s.name in once and not isinstance(
                    getattr(once.get(value.id, s), "value", None), (Length, Name)):
                once[s.name] = once.pop(value.id)
                once[s.name].name = s.name
                names[value.id] = Name(s.name)
            elif isinstance(value, Name) and value.id in once:
                names[s.name] = value
            else:
                continue
            block.remove(s)
    names = {n: _last(v, names) for n, v in names.items()}
    for s in statements(function.block):
        form.change(s, lambda e: renamed(e, names))


def _last(value, names):
    while isinstance(value, Name) and value.id in names:
        value = names[value.id]
    return value
