# SPDX-License-Identifier: Apache-2.0
"""What a thread saves in lists, as rows of arrays with a column for each thread.

What loops without a known number of passes save for the way back comes back last in, first out.  So a list is the upper
end of a column; a list of lists holds how long these are.  How long columns become another kernel counts, that goes
the same way and does nothing else.

>>> tree = ast.parse('''saved = []
... while v > 0.1:
...     saved.append(v)
...     v = v * 0.5
... while saved:
...     v = saved.pop()
...     dv = dv * 0.5 + v''')
>>> lists = Saved(tree.body, {"v": "f"}, lambda name: name, "float64")
>>> print(ast.unparse(ast.Module(lists.block(tree.body), [])))
saved_size = 0
while v > 0.1:
    saved[saved_size] = v
    saved_size += 1
    v = v * 0.5
while saved_size > 0:
    saved_size -= 1
    v = saved[saved_size]
    dv = dv * 0.5 + v
>>> lists.dtypes
{'saved': 'float64'}
>>> print(ast.unparse(ast.Module(lists.counted(lists.block(tree.body), set()), [])))
saved_size = 0
while v > 0.1:
    saved_size += 1
    v = v * 0.5
most_saved[0] = max(most_saved[0], saved_size)
"""
import ast

from gradscribe.codegen.cuda.counting import only
from gradscribe.codegen.cuda.kernels import copied
from gradscribe.codegen.cuda.pullbacks import NoKernel, is_made_here, with_comments
from gradscribe.codegen.cuda.sorting import list_call
from gradscribe.codegen.cuda.trees import in_loop, walk

ORDER = "biuf"                          # kinds of numbers, the wider ones last
OF_WHOLE = {"len", "int", "range"}


class Saved:
    """body: of a function; kinds: {name: kind of NumPy's dtype} of what is known; fresh: gives a name that nothing has;
    floating: the dtype of floating-point numbers.

    Attributes: dtypes: {rows: their dtype}; shapes: {rows: the lengths of what each is, () of a number}; sizes: what
    numbers of entries are called in the counting kernel.
    """

    def __init__(self, body, kinds, fresh, floating):
        self.kinds, self.floating = dict(kinds), floating
        self.parents = {c: n for s in body for n in walk(s) for c in ast.iter_child_nodes(n)}
        self.nodes = [n for s in body for n in walk(s)]
        made = [n for n in self.nodes if isinstance(n, ast.Assign) and isinstance(n.value, ast.List)
                and not n.value.elts and isinstance(n.targets[0], ast.Name)]
        self.rows = {n.targets[0].id: n.targets[0].id for n in made}        # {list: the rows that it is the end of}
        again = {n.targets[0].id for n in made if in_loop(n, self.parents) or sum(
            m.targets[0].id == n.targets[0].id for m in made) > 1}
        self.holds = {}                 # {list of lists: a list that it has got}
        for n in self.nodes:
            if list_call(n) == "append" and getattr(n.args[0], "id", None) in self.rows:
                self.holds[n.func.value.id] = n.args[0].id
        for n in self.nodes:
            if isinstance(n, ast.Assign) and list_call(n.value) == "pop" and n.value.func.value.id in self.holds:
                self.rows.setdefault(n.targets[0].id, self.rows[self.holds[n.value.func.value.id]])
        if self.rows:
            self.check()
        self.size = {n: fresh(f"{n}_size") for n in self.rows}
        self.top = {r: fresh(f"{r}_top") if r in again or sum(v == r for v in self.rows.values()) > 1 else self.size[r]
                    for r in dict.fromkeys(self.rows.values())}
        self.arrays = {n.targets[0].id: n.value for n in self.nodes if isinstance(n, ast.Assign) and is_made_here(
            n.value) and isinstance(n.targets[0], ast.Name)}
        self.shapes = dict.fromkeys(self.top, ())
        self.dtypes = {r: "int64" if r in self.holds else self.dtype(r) for r in self.top}
        self.sizes = {r: fresh(f"most_{r}") for r in self.top}

    def check(self):
        for n in self.nodes:
            if not isinstance(n, ast.Name) or n.id not in self.rows:
                continue
            parent = self.parents[n]
            above = self.parents.get(parent)
            fine = isinstance(parent, ast.Assign) and n in parent.targets and (
                isinstance(parent.value, ast.List) or list_call(parent.value) == "pop") or \
                isinstance(parent, ast.Attribute) and list_call(above) is not None and above.func is parent or \
                list_call(parent) == "append" and n in parent.args or isinstance(parent, ast.Call) and ast.unparse(
                    parent.func) == "len" or isinstance(parent, (ast.While, ast.If)) and parent.test is n or \
                isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
            if not fine:
                raise NoKernel(f"the list {n.id} is more than a stack")
        for n in self.nodes:
            held = list_call(n) == "append" and getattr(n.args[0], "id", None) in self.rows
            if list_call(n) == "append" and held != (n.func.value.id in self.holds):
                raise NoKernel(f"the list {n.func.value.id} has lists and numbers")

    # dtypes

    def dtype(self, rows):
        put = [n.args[0] for n in self.nodes if list_call(n) == "append" and self.rows.get(n.func.value.id) == rows]
        arrays = [self.arrays.get(getattr(v, "id", None)) for v in put]
        if any(arrays):
            if None in arrays or len({ast.dump(a) for a in arrays}) > 1:
                raise NoKernel(f"what {rows} saves is not of one shape")
            lengths = arrays[0].args[0]
            self.shapes[rows] = tuple(lengths.elts if isinstance(lengths, ast.Tuple) else [lengths])
            return ast.unparse(arrays[0].args[1]).removeprefix("np.") if len(arrays[0].args) > 1 else self.floating
        kinds = [self.kind(v, frozenset()) for v in put]
        if None in kinds:
            raise NoKernel(f"what {rows} saves is no number")
        return {"b": "bool_", "f": self.floating}.get(max(kinds, key=ORDER.index, default="f"), "int64")

    def kind(self, value, asked):
        """The kind of a number, None of what is none."""
        if isinstance(value, ast.Constant):
            return {bool: "b", int: "i", float: "f"}.get(type(value.value))
        if isinstance(value, (ast.Compare, ast.BoolOp)) or isinstance(value, ast.UnaryOp) and isinstance(
                value.op, ast.Not):
            return "b"
        if isinstance(value, ast.Name):
            return None if value.id in self.arrays else self.kind_of_name(value.id, asked)
        if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            return self.kind_of_name(value.value.id, asked)
        if isinstance(value, ast.Subscript):
            return "i" if ast.unparse(value.value).endswith(".shape") else None
        if isinstance(value, ast.Call) and list_call(value) == "pop":
            return self.kind_of_name(value.func.value.id, asked)
        if isinstance(value, ast.Call) and ast.unparse(value.func) in OF_WHOLE:
            return "i"
        if isinstance(value, ast.Call) and ast.unparse(value.func) not in ("abs", "min", "max"):
            return "f" if isinstance(value.func, ast.Name) or ast.unparse(value.func).split(".")[0] in ("np", "math") \
                else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Div, ast.Pow)):
            return "f"
        parts = value.args if isinstance(value, ast.Call) else [value.left, value.right] if isinstance(
            value, ast.BinOp) else [value.body, value.orelse] if isinstance(value, ast.IfExp) else [
            value.operand] if isinstance(value, ast.UnaryOp) else []
        return self.widest([self.kind(p, asked) for p in parts])

    def kind_of_name(self, name, asked):
        if name in asked:
            return "b"                  # what it is otherwise says more
        if name in self.kinds:
            return self.kinds[name]
        found = []
        for n in self.nodes:
            if isinstance(n, ast.For) and getattr(n.target, "id", None) == name:
                found.append("i")
            elif isinstance(n, (ast.Assign, ast.AugAssign)) and not isinstance(n.value, ast.List):
                target = n.targets[0] if isinstance(n, ast.Assign) else n.target
                whole = isinstance(n, ast.AugAssign) and not isinstance(n.op, (ast.Div, ast.Pow))
                if getattr(target, "id", None) == name or isinstance(target, ast.Subscript) and getattr(
                        target.value, "id", None) == name:
                    found.append(self.kind(n.value, asked | {name}) if whole or isinstance(n, ast.Assign) else "f")
            elif list_call(n) == "append" and n.func.value.id == name:
                found.append(self.kind(n.args[0], asked | {name}))
        return self.widest(found)

    @staticmethod
    def widest(kinds):
        return None if None in kinds or not kinds else max(kinds, key=ORDER.index)

    # statements

    def block(self, body):
        return [m for s in copied(body) for m in self.statement(s)]

    def statement(self, s):
        """What stands for a statement."""
        made = self.changed(s)
        if made:
            with_comments(made[0], s)
        return made

    def changed(self, s):
        if isinstance(s, (ast.For, ast.While, ast.If)):
            for field in ("iter", "test"):
                if hasattr(s, field):
                    setattr(s, field, Asked(self).visit(self.as_test(getattr(s, field))))
            s.body, s.orelse = ([m for n in block for m in self.statement(n)] for block in (s.body, s.orelse))
            return [s]
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.List) and getattr(
                s.targets[0], "id", None) in self.rows:
            return read(f"{self.size[s.targets[0].id]} = 0")
        if isinstance(s, ast.Expr) and list_call(s.value) == "append" and s.value.func.value.id in self.rows:
            name, value = s.value.func.value.id, s.value.args[0]
            text = self.size[value.id] if getattr(value, "id", None) in self.rows else ast.unparse(
                Asked(self).visit(value))
            return read(f"{self.rows[name]}[{self.top[self.rows[name]]}] = {text}\n" + self.steps(name, "+"))
        taken = [n for n in walk(s) if list_call(n) == "pop" and n.func.value.id in self.rows]
        if not taken:
            return [Asked(self).visit(s)]
        if len(taken) > 1:
            raise NoKernel("two numbers are taken from lists at once")
        if isinstance(s, ast.Assign) and getattr(s.targets[0], "id", None) in self.rows:
            s.targets[0].id = self.size[s.targets[0].id]
        return [*read(self.steps(taken[0].func.value.id, "-")), Asked(self).visit(s)]

    def steps(self, name, sign):
        return "\n".join(f"{n} {sign}= 1" for n in dict.fromkeys([self.top[self.rows[name]], self.size[name]]))

    def as_test(self, test):
        if isinstance(test, ast.Name) and test.id in self.rows:
            return ast.parse(f"{self.size[test.id]} > 0", mode="eval").body
        return test

    def begun(self):
        """The numbers of entries of columns of which lists are ends, before there are any."""
        ends = set(self.size.values())
        return [s for t in self.top.values() if t not in ends for s in read(f"{t} = 0")]

    # the kernel that counts

    def counted(self, body, own):
        """What is left of a thread's statements, as block made them, that says how long its columns become; own: the
        thread's own arrays.
        """
        tops = set(self.top.values())
        most = [s for r in self.top for s in read(f"{self.sizes[r]}[0] = max({self.sizes[r]}[0], {self.top[r]})")]
        return only(self.forward(copied(body), tops, most), {*tops, *self.sizes.values()},
                    own | set(self.sizes.values()))

    def forward(self, body, tops, most):
        """The statements before the first that takes something from a list, and then how many there are."""
        out = []
        for s in body:
            if any(isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Sub) and getattr(
                    n.target, "id", None) in tops for n in walk(s)):
                if not isinstance(s, ast.If):
                    return [*out, *copied(most)]
                for field in ("body", "orelse"):
                    if getattr(s, field):
                        setattr(s, field, self.forward(getattr(s, field), tops, most))
            out.append(s)
        return out


class Asked(ast.NodeTransformer):
    """Lengths of lists are numbers, and what is taken from a list is an entry of its rows."""

    def __init__(self, saved):
        self.saved = saved

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not) and getattr(node.operand, "id", None) in self.saved.rows:
            return ast.parse(f"{self.saved.size[node.operand.id]} == 0", mode="eval").body
        return self.generic_visit(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and getattr(
                node.args[0], "id", None) in self.saved.rows:
            return ast.Name(self.saved.size[node.args[0].id], ast.Load())
        if list_call(node) == "pop" and node.func.value.id in self.saved.rows:
            rows = self.saved.rows[node.func.value.id]
            return ast.parse(f"{rows}[{self.saved.top[rows]}]", mode="eval").body
        return node


def read(text):
    return ast.parse(text).body
