# SPDX-License-Identifier: Apache-2.0
"""A text whose arrays in half precision are said to be so: entries are widened where they are read, rounded where they
are stored.

>>> text = '''def f(x, w):
...     n = x.shape[0]
...     total = np.float32(0.0)
...     z = np.empty((n,), np.float16)
...     for i in range(n):
...         z_i = np.float16(x[i] * w)
...         z[i] = z_i
...         total += z_i
...     return (total, z)'''
>>> half = np.dtype("e")
>>> print(stored_short(text, [None] * 9, "f", [(half, 1), (np.dtype("f"), 0)], [half, half])[0])
def f(x, w):
    n = x.shape[0]
    total = np.float32(0.0)
    z = np.empty((n,), np.float16)
    for i in range(n):
        z_i = np.float32(np.float16(np.float32(x[i]) * w))
        z[i] = np.float16(z_i)
        total += z_i
    return (np.float16(total), z)
<BLANKLINE>
"""
import ast

import numpy as np

from gradscribe.codegen.cuda.inferred import inferred
from gradscribe.codegen.cuda.trees import is_entry, parts_of
from gradscribe.codegen.cuda.trees import walk as nodes_of
from gradscribe.codegen.loops.trees import printed

HALF = np.dtype("float16")
MADE = {"np.empty", "np.zeros", "np.ones"}
KEEP = {"product"}                      # functions of the host that take arrays in half precision


def cast(name, value):
    return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load()), [value], [])


def is_cast(node, name):
    return isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) == f"np.{name}"


def stored_short(text, origins, label, kinds, results, bfloat16=False):
    """A text, and where its lines come from, in which entries of arrays in half precision are widened when they are
    read; kinds, results: dtypes of parameters (with their ranks) and of what it returns.

    bfloat16: what is read is widened by `single`, since there the format is no dtype of Numba's.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        node.origin = origins[node.lineno - 1] if getattr(node, "lineno", 0) else None
    function = tree.body[0]
    ranks = {n: kind.rank for n, kind in inferred(text, label, kinds).items()}
    Stored(function, ranks, {a.arg for a, (dtype, rank) in zip(function.args.args, kinds) if dtype == HALF and rank},
           results, "single" if bfloat16 else None).run()
    lines = [(text.split("\n", 1)[0], None)]
    printed(ast.fix_missing_locations(function).body, 1, lines)
    return "\n".join(line for line, _ in lines) + "\n", [origin for _, origin in lines]


class Stored(ast.NodeTransformer):
    """ranks: of names; given: parameters in half precision; widening: the function that widens numbers, None for
    np.float32.
    """

    def __init__(self, function, ranks, given, results, widening=None):
        self.function, self.ranks, self.given, self.results = function, ranks, given, results
        self.widening = widening

    def run(self):
        self.find()
        while True:                     # what is added into is in single precision, with all that it is a view of
            added = {n.target.value.id for n in nodes_of(self.function) if isinstance(n, ast.AugAssign) and isinstance(
                n.target, ast.Subscript) and isinstance(n.target.value, ast.Name)}
            wrong = {b for n in added & self.half for b in self.bases(n)} & self.half
            changed = [n for n in nodes_of(self.function) if isinstance(n, ast.Assign) and getattr(
                n.targets[0], "id", None) in wrong and self.makes(n.value)]
            if not changed:
                break
            for n in changed:
                n.value = self.single(n.value)
            self.find()
        self.sure = self.certain()
        self.function.body = [self.visit(s) for s in self.function.body]
        for node in nodes_of(self.function) if self.widening else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and self.reads_half(
                    node.targets[0]) and not self.reads_half(node.value) and not is_cast(node.value, "float16"):
                node.value = cast("float16", node.value)        # a constant: numbers of Numba's are not converted
            if is_cast(node, "float32") and (is_cast(node.args[0], "float16") or self.reads_half(node.args[0])):
                node.func = ast.Name(self.widening, ast.Load())

    def reads_half(self, value):
        """Whether a value is an entry of an array in half precision."""
        return isinstance(value, ast.Subscript) and self.is_number(value) and value.value.id in self.half

    def makes(self, value):
        """Whether a value is a new array in half precision, no view."""
        return self.is_half(value) and not self.base(value)

    def single(self, value):
        """What makes an array in half precision, as what makes one in single."""
        if isinstance(value, ast.Call) and ast.unparse(value.func) in MADE:
            value.args[-1] = dtype("float32")
            return value
        whole = value.func.value if ast.unparse(getattr(value, "func", value)).endswith(".copy") else value
        return ast.Call(ast.Attribute(whole, "astype", ast.Load()), [dtype("float32")], [])

    def find(self):
        """The names of arrays in half precision."""
        self.half, more = set(self.given), True
        self.values = {}
        for n in nodes_of(self.function):
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
                self.values.setdefault(n.targets[0].id, []).append(n.value)
            elif isinstance(n, ast.Call) and getattr(n.func, "attr", "") in ("append", "insert"):
                self.values.setdefault(n.func.value.id, []).append(n.args[-1])
        while more:
            found = {n for n, values in self.values.items() if self.ranks.get(n) != 0 and any(map(
                self.is_half, values))}
            more = not found <= self.half
            self.half |= found

    def certain(self):
        """Those that are in half precision whatever is done."""
        maybe = self.half
        while True:
            kept = {n for n in self.half if n in self.given or n in self.values and all(map(
                self.is_half, self.values[n]))}
            if kept == self.half:
                break
            self.half = kept
        self.half = maybe
        return kept

    def bases(self, name):
        """A name, and those that it may be a view of or another name for."""
        found, more = set(), {name}
        while more:
            found |= more
            more = {b for n in more for v in self.values.get(n, ()) if (b := self.base(v))} - found
        return found

    def base(self, value):
        while isinstance(value, (ast.Subscript, ast.Attribute)) or isinstance(value, ast.Call) and isinstance(
                value.func, ast.Attribute) and value.func.attr in ("reshape", "transpose", "ravel"):
            value = value.func.value if isinstance(value, ast.Call) else value.value
        return value.id if isinstance(value, ast.Name) and self.ranks.get(value.id) else None

    def is_half(self, value):
        """Whether an array is in half precision."""
        if isinstance(value, ast.Name):
            return value.id in self.half
        if isinstance(value, ast.Subscript):
            return self.is_half(value.value) and not self.is_number(value)
        if isinstance(value, ast.Attribute):
            return value.attr not in ("shape", "size", "ndim") and self.is_half(value.value)
        if isinstance(value, ast.IfExp):
            return self.is_half(value.body) or self.is_half(value.orelse)
        if not isinstance(value, ast.Call):
            return False
        name = ast.unparse(value.func)
        if name in MADE:
            return ast.unparse(value.args[-1]) == "np.float16"
        if name in ("np.dot", *KEEP):
            return all(map(self.is_half, value.args))
        if isinstance(value.func, ast.Attribute) and name.startswith("np."):
            return bool(value.args) and self.is_half(value.args[0])
        if isinstance(value.func, ast.Attribute):
            return value.func.attr != "astype" and self.is_half(value.func.value)
        return False

    def is_number(self, node):
        return isinstance(node.value, ast.Name) and is_entry(node, self.ranks.get(node.value.id, 0)) and not any(
            self.ranks.get(getattr(p, "id", None)) for p in parts_of(node))

    # reads and stores

    def visit_Subscript(self, node):
        read = isinstance(node.ctx, ast.Load) and self.reads_half(node)
        node.slice = self.visit(node.slice)
        return cast("float32", node) if read else node

    def visit_Assign(self, node):
        node.value, target = self.visit(node.value), node.targets[0]
        if isinstance(target, ast.Subscript):
            target.slice = self.visit(target.slice)
            if isinstance(target.value, ast.Name) and target.value.id in self.half and self.is_number(target):
                node.value = self.as_stored(node.value)
        return node

    def visit_AugAssign(self, node):
        node.value, target = self.visit(node.value), node.target
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", None) in self.half:
            read = self.visit(ast.Subscript(target.value, target.slice, ast.Load()))
            return ast.copy_location(ast.Assign([target], self.as_stored(ast.BinOp(read, node.op, node.value))), node)
        return node

    def as_stored(self, value):
        """A value as an array in half precision takes it."""
        while is_cast(value, "float16") or is_cast(value, "float32") and not isinstance(value.args[0], ast.Constant):
            value = value.args[0]
        entry = isinstance(value, ast.Subscript) and getattr(value.value, "id", None) in self.half
        return value if entry or is_cast(value, "float32") else cast("float16", value)

    def visit_Call(self, node):
        if ast.unparse(node.func) in MADE:
            return node
        array = [self.is_half(a) and not (isinstance(a, ast.Name) and not self.ranks.get(a.id)) for a in node.args]
        whole = isinstance(node.func, ast.Name) and node.func.id not in KEEP
        if ast.unparse(node.func) == "np.dot" and len(node.args) == 3 and self.is_half(node.args[2]) != all(array[:2]):
            whole, array[2] = True, False
        node.args = [self.visit(a) for a in node.args]
        if whole:
            node.args = [ast.Call(ast.Attribute(a, "astype", ast.Load()), [dtype("float32")], []) if half else a
                         for a, half in zip(node.args, array)]
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        return self.widened(node) if is_cast(node, "float16") else node

    def widened(self, node):
        """np.float16(v) as a number in single precision."""
        value = node.args[0]
        if isinstance(value, ast.Constant):
            return cast("float32", ast.Constant(float(np.float16(value.value))))
        known = is_cast(value, "float32") and isinstance(value.args[0], ast.Subscript) and getattr(
            value.args[0].value, "id", None) in self.sure
        return value if known else cast("float32", node)

    def visit_Return(self, node):
        given = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        parts = []
        for value, kind in zip(given, self.results):
            half = self.is_half(value)
            sure = half and (not isinstance(value, ast.Name) or value.id in self.sure)
            number = not isinstance(value, ast.Name) or not self.ranks.get(value.id)
            if kind == HALF and not sure:
                value = cast("float16", value) if number else ast.Call(
                    ast.Attribute(value, "astype", ast.Load()), [dtype("float16")], [])
            elif kind != HALF and half:
                value = ast.Call(ast.Attribute(value, "astype", ast.Load()), [dtype("float32")], [])
            parts.append(value)
        node.value = ast.Tuple(parts, ast.Load())
        return node


def dtype(name):
    return ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load())
