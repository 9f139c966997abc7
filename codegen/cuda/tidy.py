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

from gradscribe.codegen.cuda.trees import walk

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


def named(function, ranks_of):
    """Gives names to the numbers that a function returns, so that the device may keep them; ranks_of: makes {name: its
    rank} of the function's text.

    >>> tree = ast.parse("def f(x, n):\\n    s = x[0] * 2\\n    return (s / n, x.T, n, np.float16(x[1]))")
    >>> named(tree.body[0], lambda text: {"x": 2, "s": 0, "n": 0})
    >>> print(ast.unparse(tree))
    def f(x, n):
        s = x[0] * 2
        value = s / n
        return (value, x.T, n, np.float16(x[1]))
    """
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple) or not any(
            isinstance(number_of(v), ast.BinOp) for v in last.value.elts):
        return
    ranks = ranks_of(ast.unparse(function))
    taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {a.arg for a in function.args.args}
    for k, whole in enumerate(last.value.elts):
        value = number_of(whole)
        names = {n.id for n in walk(value) if isinstance(n, ast.Name) and n.id not in ("np", "math")}
        if not isinstance(value, ast.BinOp) or any(ranks.get(n) != 0 for n in names - OF_TEXT):
            continue
        name = "value"
        while name in taken:
            name += "_"
        taken.add(name)
        made = ast.Assign([ast.Name(name, ast.Store())], value)
        made.lineno, made.origin = last.lineno, getattr(last, "origin", None)
        function.body.insert(-1, made)
        if whole is value:
            last.value.elts[k] = ast.Name(name, ast.Load())
        else:
            whole.args[0] = ast.Name(name, ast.Load())


OF_TEXT = {"float", "int", "abs", "min", "max"}


def number_of(value):
    """What is rounded to half precision, where a value is."""
    return value.args[0] if isinstance(value, ast.Call) and ast.unparse(value.func) == "np.float16" else value


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
