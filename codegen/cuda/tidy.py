# SPDX-License-Identifier: Apache-2.0
"""What lowering leaves in the text for nobody: questions whose answer is known, numbers that are not read.

>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     m = n * 3
...     step = 0 if m == 1 else 1
...     if 6 == 0 or 5 == 0:
...         raise ValueError('empty')
...     return x''')
>>> tidy(tree.body[0])
>>> print(ast.unparse(tree))
def f(x):
    return x
"""
import ast

from gradscribe.codegen.texts import walk

OF_NUMBERS = (ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.operator,
              ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)


def tidy(function):
    """Changes a function."""
    while True:
        read = {n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        read |= {n.target.id for n in walk(function) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
        before = sum(1 for _ in walk(function))
        function.body = block(function.body, read)
        if sum(1 for _ in walk(function)) == before:
            break


def block(body, read):
    out = []
    for s in body:
        for field in ("body", "orelse"):
            if getattr(s, field, None):
                setattr(s, field, block(getattr(s, field), read) or [ast.Pass()])
        if isinstance(s, ast.If) and not s.orelse and known(s.test) is False:
            continue
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id not in read and \
                is_number(s.value):
            continue
        out.append(s)
    return out


def known(node):
    """The answer of a question about constants, None where it has others."""
    if all(isinstance(n, (ast.Constant, ast.Compare, ast.BoolOp, ast.cmpop, ast.boolop)) for n in ast.walk(node)):
        return bool(eval(compile(ast.Expression(node), "<known>", "eval"), {}))
    return None


def is_number(node):
    """Whether a value is made of numbers and lengths, so that making it does nothing else; a division may raise."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and isinstance(
            node.slice, ast.Constant)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        return False
    return isinstance(node, OF_NUMBERS) and all(map(is_number, ast.iter_child_nodes(node)))
