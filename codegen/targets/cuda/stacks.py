# SPDX-License-Identifier: Apache-2.0
"""The lists of a thread as stacks in rows of arrays that have a column for each thread.

Values that loops without a known number of passes save for the backward sweep are taken last in, first out.  So a list
is the top of a stack of rows, and a list of lists holds the lengths of its lists.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of, to_tree, with_types
>>> function = with_types(Function("f", ["v", "dv"], {}, block_of('''saved = []
... while v > 0.1:
...     saved.append(v)
...     v = v * 0.5
... while len(saved) > 0:
...     v = saved.pop()
...     dv = dv * 0.5 + v''')), dict.fromkeys(["v", "dv"], ("float64", 0)))
>>> stacks = Stacks(function, lambda name: name)
>>> import ast
>>> print(ast.unparse(to_tree(function)))
def f(v, dv):
    saved_size = 0
    while v > 0.1:
        saved[saved_size] = v
        saved_size += 1
        v = v * 0.5
    while saved_size > 0:
        saved_size -= 1
        v = saved[saved_size]
        dv = dv * 0.5 + v
>>> stacks.rows
{'saved': ('float64', ())}
>>> function.block = stacks.before_taking(function.block)
>>> print(ast.unparse(to_tree(function)))
def f(v, dv):
    saved_size = 0
    while v > 0.1:
        saved[saved_size] = v
        saved_size += 1
        v = v * 0.5
    most_saved[0] = max(most_saved[0], saved_size)
"""
from gradscribe.codegen.kernels.given import NoKernel
from gradscribe.codegen.loops.build import entry, statement
from gradscribe.codegen.loops.form import (
    ONE,
    Alloc,
    Call,
    Const,
    Do,
    Function,
    If,
    Let,
    Method,
    Name,
    Type,
    Update,
    all_blocks,
    blocks,
    blocks_in_loops,
    change,
    children,
    expressions,
    rebuilt,
    statements,
)
from gradscribe.codegen.loops.lists import is_empty_list
from gradscribe.codegen.loops.types import type_of

ORDER = "bool", "int64", "float32", "float64"   # dtypes of numbers, the wider ones last


class Stacks:
    """Rewrites a function in place; fresh: makes an unused name.

    Attributes: rows: {rows: (their dtype, the shape of each, () for scalars)}; top: {rows: the name of their number};
    sizes: {rows: the name of the largest number, in the kernel that counts}.
    """

    def __init__(self, function: Function, fresh):
        self.function, self.types = function, function.types
        every = list(statements(function.block))
        made = [s.name for s in every if is_empty_list(s)]
        of = {n: n for n in made}               # {list: the rows that it is the top of}
        again = {s.name for b, in_loop in blocks_in_loops(function.block) if in_loop for s in b
                 if is_empty_list(s)} | {n for n in made if made.count(n) > 1}
        self.holds = {}                         # {list of lists: a list that is appended to it}
        for s in every:
            found = called(s, "append")
            if found is not None and getattr(found.args[0], "id", None) in of:
                self.holds[found.owner.id] = found.args[0].id
        for s in every:
            found = called(s, "pop")
            if isinstance(s, Let) and found is not None and found.owner.id in self.holds:
                of.setdefault(s.name, of[self.holds[found.owner.id]])
        self.of = of
        self.check(every)
        self.rows = {r: self.kind(r, every) for r in dict.fromkeys(of.values())}
        self.size = {n: fresh(f"{n}_size") for n in of}
        self.top = {r: fresh(f"{r}_top") if r in again or sum(v == r for v in of.values()) > 1 else self.size[r]
                    for r in self.rows}
        self.sizes = {r: fresh(f"most_{r}") for r in self.rows}
        counts = dict.fromkeys([*self.size.values(), *self.top.values()])
        function.types.update(dict.fromkeys(counts, Type("int64", 0)))
        function.types.update((r, Type(dtype, 1 + len(shape))) for r, (dtype, shape) in self.rows.items())
        for block in list(all_blocks(function)):
            block[:] = [m for s in block for m in self.statement(s)]
        ends = set(self.size.values())
        function.block[:0] = [Let(t, Const(0)) for t in self.top.values() if t not in ends]

    def check(self, every):
        """Checks that lists are only used as stacks."""
        for s in every:
            found = called(s, "append") or called(s, "pop")
            if called(s, "append") is not None and (getattr(found.args[0], "id", None) in self.of) != (
                    found.owner.id in self.holds):
                raise NoKernel(f"the list {found.owner.id} has lists and numbers")
            inner = found.args if found is not None and found.owner.id not in self.holds else () \
                if found is not None else expressions(s)
            for name in set().union(*map(self.used, inner)):
                raise NoKernel(f"the list {name} is more than a stack")

    def used(self, e):
        """The lists that an expression uses for more than their lengths."""
        if isinstance(e, Call) and e.function == "len":
            return set()
        return {e.id} & self.of.keys() if isinstance(e, Name) else set().union(*map(self.used, children(e)))

    def kind(self, rows, every):
        """(dtype, shape) of the values in rows."""
        if rows in self.holds:
            return "int64", ()
        found = [called(s, "append") for s in every]
        put = [c.args[0] for c in found if c is not None and self.of.get(c.owner.id) == rows]
        made = {s.name: s for s in every if isinstance(s, Alloc)}
        arrays = [made.get(getattr(v, "id", None)) for v in put]
        if any(arrays):
            if None in arrays or len({(a.shape, a.dtype) for a in arrays}) > 1:
                raise NoKernel(f"what {rows} saves is not of one shape")
            return arrays[0].dtype, arrays[0].shape
        kinds = [type_of(v, self.types) for v in put]
        if any(k.rank != 0 or k.dtype not in ORDER for k in kinds):
            raise NoKernel(f"what {rows} saves is no number")
        return max((k.dtype for k in kinds), key=ORDER.index, default="float64"), ()

    # statements

    def statement(self, s):
        """The statements that replace a statement."""
        put, taken = called(s, "append"), called(s, "pop")
        if is_empty_list(s) and s.name in self.of:
            made = [Let(self.size[s.name], Const(0))]
        elif put is not None and put.owner.id in self.of:
            rows, value = self.of[put.owner.id], put.args[0]
            made = [statement("{} = {}", entry(rows, self.top[rows]), Name(self.size[value.id]) if getattr(
                value, "id", None) in self.of else value), *self.steps(put.owner.id, "+")]
        elif taken is not None and taken.owner.id in self.of:
            rows, made = self.of[taken.owner.id], self.steps(taken.owner.id, "-")
            if isinstance(s, Let):
                made.append(Let(self.size.get(s.name, s.name), entry(rows, self.top[rows])))
        else:
            change(s, self.asked)
            return [s]
        for m in made:
            m.origin = None if taken else s.origin
            change(m, self.asked)
        return made

    def steps(self, name, sign):
        return [Update(n, sign, ONE) for n in dict.fromkeys([self.top[self.of[name]], self.size[name]])]

    def asked(self, e):
        """An expression with the lengths of lists replaced by their counters."""
        if isinstance(e, Call) and e.function == "len" and getattr(e.args[0], "id", None) in self.of:
            return Name(self.size[e.args[0].id])
        return rebuilt(e, self.asked)

    # the kernel that counts

    def leave(self, names):
        """Keeps only the rows that are among some names."""
        self.rows = {r: kind for r, kind in self.rows.items() if r in names}
        self.top, self.sizes = ({r: of[r] for r in self.rows} for of in (self.top, self.sizes))

    def before_taking(self, block):
        """The statements before the first that takes from a list, followed by those that store the sizes."""
        out = []
        for s in block:
            if any(isinstance(i, Update) and i.op == "-" and i.name in self.top.values() for i in statements([s])):
                if not isinstance(s, If):
                    return [*out, *self.most()]
                s = If(s.test, *[self.before_taking(b) if b else [] for b in blocks(s)])
            out.append(s)
        return out

    def most(self):
        return [statement("{} = max({0}, {})", entry(self.sizes[r], 0), top) for r, top in self.top.items()]


def called(s, name):
    """The call of a list's method that a statement consists of, or None."""
    value = s.value if isinstance(s, (Do, Let)) else None
    found = isinstance(value, Method) and value.name == name and isinstance(value.owner, Name)
    return value if found and len(value.args) == (name == "append") else None
