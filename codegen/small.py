# SPDX-License-Identifier: Apache-2.0
"""Short arrays of known length become numbers.

An array of a few entries that is made here, and reached at literal places only, needs no memory: each entry is a name.
Loops of a few passes over such arrays are written out first.  `other = array` copies the numbers; it is left alone
where the array is used afterwards as well, since one of the two would not see what is written into the other.

>>> print(numbered('''def f(x):
...     v = np.empty((2,), np.float64)
...     for j in range(2):
...         v[j] = x[j] * 2.0
...     return (v[0] + v[1],)
... '''))
def f(x):
    v_0 = x[0] * 2.0
    v_1 = x[1] * 2.0
    return (v_0 + v_1,)
"""
import ast
import copy

from gradscribe.codegen.bounds import count_of
from gradscribe.codegen.texts import (
    KEPT,
    added_in_full,
    block_of,
    castable,
    dtype_of,
    in_order,
    parents_of,
    parts_of,
    replace,
    shape_of,
    typed,
    walk,
)
from gradscribe.codegen.versions import is_made

ENTRIES = 9                             # an array of more stays one
PASSES = 4                              # a loop of more stays one
WRITTEN = 64                            # statements that a loop may become


def numbered(text):
    tree = ast.parse(text)
    Small(tree.body[0], set()).run()
    return ast.unparse(ast.fix_missing_locations(tree))


class Small:
    def __init__(self, function, doubles):
        self.function, self.doubles = function, doubles

    def run(self):
        self.read()
        self.found = self.candidates()
        if not self.found:
            return
        loops = self.loops()
        if loops:
            self.function.body = self.written_out(self.function.body, loops)
            self.read()
            left = self.candidates(False)
            self.found = {n: kind for n, kind in self.found.items() if n in left}
        if self.found:
            self.replaced()

    def read(self):
        self.parents, self.uses, self.sets, self.made = parents_of(self.function), {}, {}, {}
        self.short = {}                 # whether a loop may be written out
        self.order = {node: k for k, node in enumerate(in_order(self.function))}
        for node in self.order:
            if isinstance(node, ast.Name):
                where = self.sets if isinstance(node.ctx, ast.Store) else self.uses
                where.setdefault(node.id, []).append(node)
            elif is_made(node):
                self.made.setdefault(node.targets[0].id, []).append(node)

    # which

    def candidates(self, in_loops=True):
        """{name: (shape, dtype)} of arrays that may become numbers, other names for them included."""
        found, again, given = {}, True, {a.arg for a in self.function.args.args}
        for name, made in self.made.items():
            shape, how = shape_of(made[0]), made[0].value.func.attr
            if len(made) == 1 and len(self.sets[name]) == 1 and castable(made[0]) and how != "full" and all(
                    isinstance(d, ast.Constant) for d in shape):
                found[name] = (tuple(d.value for d in shape), dtype_of(made[0]))
        while again:                            # other names
            again = False
            for name, stores in self.sets.items():
                values = [self.parents[s].value for s in stores if isinstance(self.parents[s], ast.Assign) and
                          isinstance(self.parents[s].value, ast.Name)]
                kinds = {found.get(v.id) for v in values}
                if name not in found and name not in given and len(values) == len(stores) and len(kinds) == 1 and \
                        None not in kinds:
                    found[name] = kinds.pop()
                    again = True
        found = {n: kind for n, kind in found.items() if 0 < size(kind[0]) <= ENTRIES}
        while True:
            lost = {n for n in found if not all(self.fits(u, n, found, in_loops) for u in self.uses.get(n, ()))}
            lost |= {n for n in found for s in self.sets[n] if isinstance(self.parents[s].value, ast.Name) and
                     self.parents[s].value.id not in found}
            if not lost:
                return found
            found = {n: kind for n, kind in found.items() if n not in lost}

    def fits(self, use, name, found, in_loops):
        parent = self.parents[use]
        if isinstance(parent, ast.Subscript) and parent.value is use:
            parts = parts_of(parent)
            return len(parts) == len(found[name][0]) and all(
                self.place(p, n, use, in_loops) for p, n in zip(parts, found[name][0]))
        if isinstance(parent, ast.Assign) and parent.value is use and isinstance(parent.targets[0], ast.Name):
            return parent.targets[0].id in found and self.handed_over(parent, name)
        return False

    def place(self, part, n, use, in_loops):
        """A literal place on an axis, or the index of a loop that is written out."""
        value = literal(part)
        if value is not None:
            return 0 <= value < n
        names = [m.id for m in walk(part) if isinstance(m, ast.Name)]
        if not in_loops or len(names) != 1 or not isinstance(part, (ast.Name, ast.BinOp)):
            return False
        loop = self.loop_of(use, names[0])
        if loop is not None and loop not in self.short:
            self.short[loop] = may_be_written_out(loop)
        if loop is None or not self.short[loop]:
            return False
        count = count_of(loop).value
        ends = [literal(part, {names[0]: k}) for k in (0, count - 1)]
        return None not in ends and all(0 <= e < n for e in ends)

    def loop_of(self, node, index):
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == index:
                return node
        return None

    def around(self, node):
        """The innermost loop around a node, or the function."""
        while True:
            node = self.parents[node]
            if isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
                return node

    def handed_over(self, alias, name):
        """other = name: the array is not used by this name afterwards, before it is made again."""
        loop, at = self.around(alias), self.order[alias]
        return all(self.around(self.parents[s]) is loop and self.order[s] < at for s in self.sets[name]) and all(
            self.order[loop] <= self.order[u] <= self.order[alias.value] for u in self.uses[name])

    # loops

    def loops(self):
        """The loops whose indices are places in these arrays, and those around them as far as they are."""
        wanted = set()
        for name in self.found:
            for use in self.uses.get(name, ()):
                entry = self.parents[use]
                if isinstance(entry, ast.Subscript):
                    for part in parts_of(entry):
                        for m in walk(part):
                            if isinstance(m, ast.Name):
                                wanted.add(self.loop_of(use, m.id))
        return wanted - {None}

    def written_out(self, body, loops):
        out = []
        for s in body:
            for field in ("body", "orelse"):
                if isinstance(s, (ast.For, ast.While, ast.If)) and getattr(s, field):
                    setattr(s, field, self.written_out(getattr(s, field), loops))
            if s not in loops:
                out.append(s)
                continue
            count = count_of(s).value
            passes = range(count) if len(s.iter.args) == 1 else range(count - 1, -1, -1)
            for k in passes:
                for inner in s.body:
                    new = substituted(inner, s.target.id, k)
                    for old, node in zip(walk(inner), walk(new)):
                        node.origin = getattr(old, "origin", None)
                    out.append(new)
        return out

    # numbers

    def replaced(self):
        taken = {n.id for n in walk(self.function) if isinstance(n, ast.Name)}
        taken |= {a.arg for a in self.function.args.args}
        names = {}
        for name, (shape, _) in self.found.items():
            for place in places(shape):
                new = "_".join([name, *map(str, place)])
                while new in taken:
                    new += "_"
                taken.add(new)
                names[name, place] = new
        read = set()
        for name, (_, dtype) in self.found.items():
            for use in self.uses.get(name, ()):
                entry = self.parents[use]
                if not isinstance(entry, ast.Subscript):
                    continue
                place = tuple(literal(p) for p in parts_of(entry))
                number = ast.Name(names[name, place], entry.ctx)
                holder = self.parents[entry]
                replace(holder, entry, number)
                self.parents[number] = holder
                if isinstance(entry.ctx, ast.Store) and isinstance(holder, ast.Assign):
                    value = holder.value
                    holder.value = typed(value, dtype, self.doubles)
                    self.parents[holder.value] = holder
                    if holder.value is not value:
                        self.parents[value] = holder.value
                elif isinstance(holder, ast.AugAssign) and holder.target is number and dtype not in KEPT:
                    self.written_in_full(holder, dtype)
                read.add((name, place))
                if dtype == "float64":
                    self.doubles.add(number.id)
        sources = {self.parents[s].value.id for n in self.found for s in self.sets[n]
                   if isinstance(self.parents[s].value, ast.Name)}
        for name, (shape, dtype) in self.found.items():
            for s in self.sets[name]:
                statement = self.parents[s]
                lines = []
                for place in places(shape):
                    if isinstance(statement.value, ast.Name):
                        value = ast.Name(names[statement.value.id, place], ast.Load())
                    elif name not in sources and (name, place) not in read or self.set_first(
                            statement, names[name, place]):
                        continue
                    else:
                        value = first_value(statement, dtype)
                    line = ast.Assign([ast.Name(names[name, place], ast.Store())], value, lineno=0)
                    line.origin = getattr(statement, "origin", None)
                    lines.append(line)
                if dtype == "float64":
                    self.doubles |= {names[name, place] for place in places(shape)}
                self.put(statement, lines)

    def written_in_full(self, added, dtype):
        """name += value, of a dtype in which the sum of two is wider where it is computed, as a value of that dtype."""
        whole, both = added_in_full(added, added.target, dtype, self.doubles)
        self.put(added, [whole])
        self.parents |= {added.target: whole, whole.value: whole, both: whole.value, both.left: both,
                         added.value: both}

    def set_first(self, made, name):
        """Whether a statement of the same block sets a number before anything reads it."""
        block = block_of(made, self.parents)
        for s in block[block.index(made) + 1:]:
            found = [n for n in in_order(s) if isinstance(n, ast.Name) and n.id == name]
            if found:
                return isinstance(s, ast.Assign) and isinstance(found[0].ctx, ast.Store) and len(found) == 1
        return False

    def put(self, statement, lines):
        block = block_of(statement, self.parents)
        for line in lines:
            self.parents[line] = self.parents[statement]
        at = block.index(statement)
        block[at:at + 1] = lines or ([] if len(block) > 1 else [ast.Pass()])


def may_be_written_out(loop):
    count = count_of(loop)
    if not isinstance(count, ast.Constant) or not 0 < count.value <= PASSES or loop.orelse:
        return False
    inside = [n for s in loop.body for n in walk(s)]
    if any(isinstance(n, (ast.While, ast.Break, ast.Continue, ast.Return)) or is_made(n) or isinstance(n, ast.Name)
           and n.id == loop.target.id and isinstance(n.ctx, ast.Store) for n in inside):
        return False
    return written(loop) <= WRITTEN


def written(node):
    """The statements that a block is when its counted loops are written out."""
    total = 0
    for s in node.body:
        total += written(s) if isinstance(s, ast.For) else 1 + sum(isinstance(n, ast.stmt) for n in walk(s))
    count = count_of(node)
    return total * (count.value if isinstance(count, ast.Constant) else PASSES)


def size(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def places(shape):
    out = [()]
    for n in shape:
        out = [(*place, k) for place in out for k in range(n)]
    return out


def literal(node, known=None):
    """The value of an integer expression of literals, and of names whose value is known; or None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return (known or {}).get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand, known)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        left, right = literal(node.left, known), literal(node.right, known)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right if isinstance(node.op, ast.Sub) else \
            left * right
    return None


def substituted(node, name, value):
    """A copy of a tree with a literal for a name; places that become literals are numbers."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, inner):
            return ast.Constant(value) if inner.id == name else inner

        def visit_BinOp(self, inner):
            self.generic_visit(inner)
            known = literal(inner)
            return inner if known is None else ast.Constant(known) if known >= 0 else ast.UnaryOp(
                ast.USub(), ast.Constant(-known))

    return Put().visit(copy.deepcopy(node))


def first_value(made, dtype):
    """What an entry is before it is set."""
    one = made.value.func.attr == "ones"
    if dtype == "bool_":
        return ast.Constant(one)
    if dtype == "int64":
        return ast.Constant(int(one))
    value = ast.Constant(float(one))
    return value if dtype == "float64" else ast.Call(ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load()),
                                                     [value], [])
