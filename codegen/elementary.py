# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of numbers in loops that are vectorised: those of runtime/vmath.py and vmath32.py."""
import ast

from gradscribe.codegen.reach import ELEMENTARY
from gradscribe.codegen.scalar_forms import OF_FLOAT32
from gradscribe.codegen.texts import is_double, is_single, walk


def in_loops(function, doubles, singles=frozenset()):
    """Calls them in innermost loops in which no number waits for the one of the pass before, sums apart.

    >>> tree = ast.parse('''def f(x):
    ...     s = 0.0
    ...     for i in range(x.shape[0]):
    ...         s = s + np.exp(x[i])
    ...     for i in range(x.shape[0]):
    ...         s = np.exp(s * x[i])''')
    >>> in_loops(tree.body[0], {"x", "s"})
    >>> print(ast.unparse(tree))
    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + exp(x[i])
        for i in range(x.shape[0]):
            s = np.exp(s * x[i])

    Those of numbers in single precision are in the text as np.float32(np.exp(x[i])).
    """
    for loop in walk(function):
        if isinstance(loop, ast.For) and not any(isinstance(n, (ast.For, ast.While, ast.If)) for s in loop.body
                                                 for n in walk(s)) and not waits(loop):
            for node in walk(loop):
                if not is_elementary(node):
                    if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.float32" and is_elementary(
                            node.args[0]) and node.args[0].func.attr in OF_FLOAT32 and all(
                                is_single(a, singles) for a in node.args[0].args):
                        node.func = ast.Name(OF_FLOAT32[node.args[0].func.attr], ast.Load())
                        node.args = node.args[0].args
                elif all(is_double(a, doubles) for a in node.args):
                    node.func = ast.Name(node.func.attr, ast.Load())


def is_elementary(node):
    """Whether it is a call of a function of NumPy's or Python's for which there is one here."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
        ast.unparse(node.func.value) in ("np", "math") and node.func.attr in ELEMENTARY and \
        len(node.args) < 3 and not node.keywords


def waits(loop):
    """Whether a pass reads a number that the pass before has set, otherwise than to add to it."""
    reads, sets, carried = {}, set(), set()
    for s in loop.body:
        target = s.targets[0] if isinstance(s, ast.Assign) else getattr(s, "target", None)
        for n in walk(s):
            if isinstance(n, ast.Name) and n is not target:
                reads[n.id] = reads.get(n.id, 0) + 1
                if n.id not in sets:
                    carried.add(n.id)
        if isinstance(target, ast.Name):
            if isinstance(s, ast.AugAssign):
                carried.add(target.id)
            sets.add(target.id)
    for s in loop.body:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and isinstance(s.value, ast.BinOp) and \
                isinstance(s.value.op, (ast.Add, ast.Sub)) and isinstance(s.value.left, ast.Name) and \
                s.value.left.id == s.targets[0].id and reads.get(s.targets[0].id) == 1:
            carried.discard(s.targets[0].id)
    return bool(carried & sets - {s.target.id for s in loop.body if isinstance(s, ast.AugAssign) and isinstance(
        s.target, ast.Name) and s.target.id not in reads})
