# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of numbers in double precision, in loops that are vectorised: those of runtime/vmath.py."""
import ast

from gradscribe.codegen.reach import ELEMENTARY
from gradscribe.codegen.texts import is_double, walk


def in_loops(function, doubles):
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
    """
    for loop in walk(function):
        if isinstance(loop, ast.For) and not any(isinstance(n, (ast.For, ast.While, ast.If)) for s in loop.body
                                                 for n in walk(s)) and not waits(loop):
            for node in walk(loop):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                        ast.unparse(node.func.value) in ("np", "math") and node.func.attr in ELEMENTARY and \
                        len(node.args) < 3 and not node.keywords and all(is_double(a, doubles) for a in node.args):
                    node.func = ast.Name(node.func.attr, ast.Load())


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
