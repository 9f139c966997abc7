# SPDX-License-Identifier: Apache-2.0
"""Memory that a loop would ask for in every pass is asked for once, before it.

An array that is made empty in a loop, and known by one name only, is written anew in each pass: the memory of the pass
before will do.  It is made before the outermost loop in which its lengths do not change; products are written into
such an array.  Arrays that a pass hands on to the next by another name are left alone.

>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     for t in range(9):
...         z = np.empty((n,), np.float64)
...         for i in range(n):
...             z[i] = x[i] * t
...         p = np.dot(z, y)
...         for i in range(p.shape[0]):
...             x[i] = z[i] + p[i]
...     return (x,)''')
>>> Buffers(tree.body[0], {"x": ("float64", 1), "y": ("float64", 2)}).run()
>>> print(ast.unparse(tree))
def f(x, y):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    p = np.empty((y.shape[1],), np.float64)
    for t in range(9):
        for i in range(n):
            z[i] = x[i] * t
        np.dot(z, y, p)
        for i in range(p.shape[0]):
            x[i] = z[i] + p[i]
    return (x,)
"""
import ast
import copy
import math

from gradscribe.codegen.bounds import shape_entry
from gradscribe.codegen.rows import length_of
from gradscribe.codegen.texts import block_of, dtype_of, in_order, is_entry, parents_of, take_out, walk
from gradscribe.codegen.versions import is_made

LOOPS = (ast.For, ast.While)
STACKED = 256                           # entries of an array on the stack: 2 KB in double precision


class Buffers:
    """Works on a function's text in place; arrays: the dtype's name and the rank of each parameter."""

    def __init__(self, function, arrays):
        self.function, self.arrays = function, arrays

        self.parents, self.sets, self.uses = parents_of(self.function), {}, {}
        for node in walk(self.function):
            if isinstance(node, ast.Name):
                (self.sets if isinstance(node.ctx, ast.Store) else self.uses).setdefault(node.id, []).append(node)
        self.find_kinds()

    def on_stack(self):
        """The statements that make short arrays of known length that only this function sees."""
        return [s for s in walk(self.function) if is_made(s) and s.value.func.attr in ("empty", "zeros") and
                self.single(s.targets[0].id) and all(isinstance(d, ast.Constant) for d in s.value.args[0].elts) and
                math.prod(d.value for d in s.value.args[0].elts) <= STACKED]

    def run(self):
        for s in list(in_order(self.function)):
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and self.around(s):
                if is_made(s) and s.value.func.attr == "empty" and self.single(s.targets[0].id):
                    self.move(s, self.around(s), s.value.args[0].elts)
                elif is_product(s.value) and self.kinds.get(s.targets[0].id) and self.single(s.targets[0].id):
                    self.into_buffer(s)

    def find_kinds(self):
        """{name: (dtype, lengths)} of the arrays whose lengths are known; None where they are not alike."""
        self.kinds = {n: (dtype, [length_of(n, k) for k in range(rank)])
                      for n, (dtype, rank) in self.arrays.items() if n not in self.sets}
        for s in in_order(self.function):
            if not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name):
                continue
            name, found = s.targets[0].id, None
            if is_made(s):
                found = dtype_of(s), s.value.args[0].elts
            elif isinstance(s.value, ast.Name):
                found = self.kinds.get(s.value.id)
            elif is_product(s.value):
                found = self.product(s.value)
            if name in self.kinds and not same(self.kinds[name], found):
                found = None
            self.kinds[name] = found

    def product(self, node):
        """The kind of a product, if those of its operands are known."""
        given = []
        for a in node.args:
            turned = isinstance(a, ast.Attribute) and a.attr == "T"
            a = a.value if turned else a
            kind = self.kinds.get(a.id) if isinstance(a, ast.Name) else None
            if kind is None:
                return None
            given.append((kind[0], kind[1][::-1] if turned else kind[1]))
        (dtype, first), (other, second) = given
        if dtype != other or dtype not in ("float64", "float32", "complex128", "complex64"):
            return None
        return (dtype, [*first[:-1], *second[1:]]) if len(first) + len(second) > 2 else None

    def single(self, name):
        """Whether an array is made at one place, and no other name is given to it or to a part of it."""
        return len(self.sets[name]) == 1 and all(self.plain(u) for u in self.uses.get(name, ()))

    def plain(self, use):
        parent = self.parents[use]
        if isinstance(parent, ast.Attribute) and parent.attr == "T":
            use, parent = parent, self.parents[parent]
        elif isinstance(parent, ast.Attribute):
            return parent.attr in ("shape", "size")
        if isinstance(parent, ast.Subscript) and parent.value is use:
            kind = self.kinds.get(use.id) if isinstance(use, ast.Name) else None
            return bool(kind) and is_entry(parent, len(kind[1])) or is_product(self.parents[parent])
        return is_product(parent)

    def around(self, node):
        """The loops around a statement, the innermost first."""
        found = []
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, LOOPS):
                found.append(node)
        return found

    def move(self, made, loops, lengths):
        """Put the allocation before the outermost loop in which nothing sets its lengths."""
        names = {n.id for d in lengths for n in walk(d) if isinstance(n, ast.Name)}
        setting = {loop for n in names for store in self.sets.get(n, ()) for loop in self.around(store)}
        place = None
        for loop in loops:
            if is_spread(loop) or loop in setting:
                break
            place = loop
        if place is None or not all(map(self.natural, lengths)):
            return False
        if made in self.parents:
            block = block_of(made, self.parents)
            take_out(block, made)
        block = block_of(place, self.parents)
        block.insert(block.index(place), made)
        self.parents[made] = self.parents[place]
        return True

    def natural(self, length):
        """A length that is not negative for certain: the loop may have no pass."""
        if isinstance(length, ast.Name):
            stores = self.sets.get(length.id, ())
            value = getattr(self.parents[stores[0]], "value", None) if len(stores) == 1 else None
            return isinstance(value, ast.Call) and ast.unparse(value.func) in ("len", "max", "meet", "same") or \
                shape_entry(value) is not None
        return isinstance(length, ast.Constant) or shape_entry(length) is not None

    def into_buffer(self, s):
        """name = np.dot(a, b): the product is written into an array made before."""
        name, (dtype, lengths) = s.targets[0].id, self.kinds[s.targets[0].id]
        made = ast.Assign([ast.Name(name, ast.Store())], ast.Call(
            dotted("np.empty"), [ast.Tuple(copy.deepcopy(lengths), ast.Load()), dotted(f"np.{dtype}")], []), lineno=0)
        made.origin = getattr(s, "origin", None)
        if self.move(made, self.around(s), lengths):
            s.value.args.append(ast.Name(name, ast.Load()))
            written = ast.Expr(s.value)
            written.origin = made.origin
            block = block_of(s, self.parents)
            block[block.index(s)] = written
            self.parents[written] = self.parents[s]
            self.parents[s.value] = written


def is_spread(loop):
    """Whether its passes run at the same time: each has memory of its own."""
    return isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "prange"


def is_product(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "np.dot" and len(node.args) == 2


def same(a, b):
    return a is not None and b is not None and a[0] == b[0] and list(map(ast.unparse, a[1])) == list(
        map(ast.unparse, b[1]))


def dotted(text):
    return ast.parse(text, mode="eval").body
