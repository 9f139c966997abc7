# SPDX-License-Identifier: Apache-2.0
"""Numbers as text in single precision: where all arrays are in single precision, nothing is done in double.

Numba takes `0.5` for a double, and the product of a float32 and a whole number for one.

>>> tree = ast.parse('''s = 0.0
... for k in range(3):
...     s += 2 * x[k] * k
... if s > 1:
...     y[0] = s / 3''')
>>> in_single(tree.body, {"x", "y"})
>>> print(ast.unparse(tree))
s = np.float32(0.0)
for k in range(3):
    s += np.float32(2) * x[k] * np.float32(k)
if s > np.float32(1):
    y[0] = s / np.float32(3)
"""
import ast

from gradscribe.codegen.cuda.trees import walk

OF_NUMBERS = {"len", "range", "int", "min", "max", "abs"}


def in_single(body, arrays):
    """Changes statements in place; arrays: the names of those in single precision."""
    floats, more = set(), True
    while more:
        more = False
        for n in (n for s in body for n in walk(s)):
            if isinstance(n, (ast.Assign, ast.AugAssign)):
                target = n.targets[0] if isinstance(n, ast.Assign) else n.target
                if isinstance(target, ast.Name) and target.id not in floats and is_float(n.value, floats, arrays):
                    floats.add(target.id)
                    more = True
    change = InSingle(floats, arrays)
    for s in body:
        change.visit(s)
        ast.fix_missing_locations(s)


def is_float(node, floats, arrays):
    """Whether a value is a floating-point number."""
    if isinstance(node, ast.Constant):
        return type(node.value) is float
    if isinstance(node, ast.Name):
        return node.id in floats
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in arrays
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) or any(is_float(n, floats, arrays) for n in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and is_float(node.operand, floats, arrays)
    if isinstance(node, ast.IfExp):
        return is_float(node.body, floats, arrays) or is_float(node.orelse, floats, arrays)
    if isinstance(node, ast.Call):
        return any(is_float(a, floats, arrays) for a in node.args) if ast.unparse(node.func) in OF_NUMBERS else \
            "int" not in ast.unparse(node.func)
    return False


class InSingle(ast.NodeTransformer):
    def __init__(self, floats, arrays):
        self.floats, self.arrays = floats, arrays

    def float(self, node):
        return is_float(node, self.floats, self.arrays)

    def single(self, node):
        """A whole number beside a floating-point one, as one of these."""
        if self.float(node):
            return node
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "float32", ast.Load()), [node], [])

    def visit_Constant(self, node):
        if type(node.value) is not float:
            return node
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "float32", ast.Load()), [node], [])

    def visit_BinOp(self, node):
        sides = (node.left, node.right) if not isinstance(node.op, ast.Pow) else (node.left,)
        if any(map(self.float, sides)) or isinstance(node.op, ast.Div):
            node.left = self.single(node.left)
            if not isinstance(node.op, ast.Pow):
                node.right = self.single(node.right)
        return self.each(node)

    def visit_Compare(self, node):
        values = [node.left, *node.comparators]
        if any(map(self.float, values)):
            node.left, *node.comparators = map(self.single, values)
        return self.each(node)

    def visit_Subscript(self, node):
        return node                     # indices are whole numbers

    def each(self, node):
        """The parts of a node, but for the numbers that were just wrapped."""
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, field, [self.part(v) for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self.part(value))
        return node

    def part(self, node):
        wrapped = isinstance(node, ast.Call) and ast.unparse(node.func) == "np.float32" and isinstance(
            node.args[0], ast.Constant)
        return node if wrapped else self.visit(node)

    def visit_Call(self, node):
        wrapped = ast.unparse(node.func) == "np.float32" and isinstance(node.args[0], ast.Constant)
        if not wrapped:
            node.args = [self.visit(a) for a in node.args]
        return node
