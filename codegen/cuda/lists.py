# SPDX-License-Identifier: Apache-2.0
"""Lists of a program as a module for a device has them.

The gradient of a sum over a batch has two loops over its examples: the first puts a list of each pass into a list, the
second, which goes back, takes it out again.  Where threads have their lists in rows of one array (private.py), the
second loop reads these rows; how many of them a pass has is kept for it.

>>> tree = ast.parse('''def f(a):
...     kept = []
...     for b in range(n):
...         saved = []
...         saved.append(a[b])
...         kept.append(saved)
...     for b in range(n - 1, -1, -1):
...         mine = kept.pop()
...         while len(mine) > 0:
...             a[b] += mine.pop()''')
>>> body = tree.body[0].body
>>> handed = handed_on(body[1], body, lambda name: name)
>>> for h in handed:
...     h.begin()
>>> print(ast.unparse(body[1]))
for b in range(n):
    saved = []
    saved.append(a[b])
    saved_sizes[b] = len(saved)
>>> for h in handed:
...     print(ast.unparse(h.sizes()))
...     h.go_on("rows", [], "float64")
saved_sizes = np.empty((n,), np.int64)
>>> print(ast.unparse(body[2]))
for b in range(n):
    mine_size = saved_sizes[b]
    while mine_size > 0:
        mine_size -= 1
        a[b] += rows[mine_size, b]
"""
import ast

from gradscribe.codegen.cuda.order import Order
from gradscribe.codegen.cuda.sorting import is_range, list_call
from gradscribe.codegen.cuda.trees import walk


class Appended(ast.NodeTransformer):
    """What a list gets has a name."""

    def of(self, tree):
        self.taken, self.changed = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}, False
        self.visit(tree)
        ast.fix_missing_locations(tree)
        return self.changed

    def visit_Expr(self, node):
        if list_call(node.value) != "append" or isinstance(node.value.args[0], ast.Name):
            return node
        name = f"{node.value.func.value.id}_next"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.changed = True
        made = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], node.value.args[0]), node)
        made.origin = getattr(node, "origin", None)
        node.value.args = [ast.Name(name, ast.Load())]
        return [made, node]


def handed_on(loop, block, fresh):
    """The lists of a loop's passes that a later loop of the same block goes through: Handed; none if some are used
    otherwise.  fresh: gives a name that nothing has.
    """
    if not is_range(loop):
        return []
    after = block[block.index(loop) + 1:]
    found = []
    for s in loop.body:
        if isinstance(s, ast.Expr) and list_call(s.value) == "append" and isinstance(s.value.args[0], ast.Name):
            outer, inner = s.value.func.value.id, s.value.args[0].id
            made = next((m for m in block[:block.index(loop)] if is_list(m, outer)), None)
            if made is None or not any(is_list(m, inner) for m in loop.body):
                continue
            back = next((m for m in after if uses(m, outer)), None)
            pop = next((m for m in getattr(back, "body", ()) if isinstance(m, ast.Assign) and isinstance(
                m.targets[0], ast.Name) and list_call(m.value) == "pop" and m.value.func.value.id == outer), None)
            if pop is None or down_from(back) != ast.unparse(loop.iter.args[0]) or [
                    uses(m, outer) for m in (loop, back)] != [1, 1] or sum(uses(m, outer) for m in block) != 3:
                continue
            mine = pop.targets[0].id
            calls = sum(list_call(n) == "pop" and n.func.value.id == mine or is_length(n, mine) for n in walk(back))
            if calls + 1 == uses(back, mine):
                found.append(Handed(made, loop, s, inner, back, pop, mine, fresh))
    return found


class Handed:
    """A list in each pass of one loop that a pass of another takes."""

    def __init__(self, made, loop, put, inner, back, pop, mine, fresh):
        self.made, self.loop, self.put, self.inner, self.back, self.pop = made, loop, put, inner, back, pop
        self.mine, self.counts, self.size = mine, fresh(f"{inner}_sizes"), fresh(f"{mine}_size")

    def begin(self):
        """The first loop keeps how long lists are."""
        self.kept = statement(f"{self.counts}[{self.loop.target.id}] = len({self.inner})", self.put)
        self.loop.body[self.loop.body.index(self.put)] = self.kept

    def undo(self):
        self.loop.body[self.loop.body.index(self.kept)] = self.put

    def sizes(self):
        """The statement in the place of the one that makes the list of lists."""
        return statement(f"{self.counts} = np.empty(({ast.unparse(self.loop.iter.args[0])},), np.int64)", self.made)

    def go_on(self, rows, shape, dtype):
        """The second loop reads the rows of what the first has written; shape, dtype: of an entry of a list."""
        index = self.back.target.id
        head = statement(f"{self.size} = {self.counts}[{index}]", self.pop)
        self.back.body = [head, *Taken(self, rows, shape, dtype).block(
            [s for s in self.back.body if s is not self.pop])]
        turn(self.back)

    def kinds(self):
        """The kinds of the names that are new."""
        return {self.counts: ("int64", 1), self.size: ("int64", 0)}


class Taken(ast.NodeTransformer):
    """What a pass takes from its list is read from rows."""

    def __init__(self, handed, rows, shape, dtype):
        self.handed, self.rows, self.shape, self.dtype, self.index = handed, rows, shape, dtype, handed.back.target.id

    def block(self, body):
        return [m for s in body for m in self.statement(s)]

    def statement(self, s):
        less = statement(f"{self.handed.size} -= 1", s)
        if isinstance(s, ast.Assign) and self.is_pop(s.value) and self.shape:
            name, lengths = s.targets[0].id, ", ".join(map(str, self.shape)) + "," * (len(self.shape) == 1)
            places = [[]]
            for n in self.shape:
                places = [[*p, str(k)] for p in places for k in range(n)]
            return [less, statement(f"{name} = np.empty(({lengths}), np.{self.dtype})", s), *(statement(
                f"{name}[{', '.join(at)}] = {self.entry(at)}", s) for at in places)]
        if isinstance(s, (ast.For, ast.While, ast.If)):
            for field in ("iter", "test"):
                if hasattr(s, field):
                    setattr(s, field, self.visit(getattr(s, field)))
            s.body, s.orelse = self.block(s.body), self.block(s.orelse)
            return [s]
        popped = any(map(self.is_pop, walk(s)))
        return [less, self.visit(s)] if popped else [self.visit(s)]

    def entry(self, at):
        return f"{self.rows}[{', '.join([self.handed.size, *at, self.index])}]"

    def is_pop(self, node):
        return list_call(node) == "pop" and node.func.value.id == self.handed.mine

    def visit_Call(self, node):
        self.generic_visit(node)
        if is_length(node, self.handed.mine):
            return ast.Name(self.handed.size, ast.Load())
        return ast.parse(self.entry([]), mode="eval").body if self.is_pop(node) else node


def turn(back):
    """A loop that counts down counts up."""
    count = down_from(back)
    if count is not None:
        back.iter = ast.parse(f"range({count})", mode="eval").body


def in_any_order(back, function, private):
    """A second loop whose passes may not be taken in any order goes back as it did; private: arrays of a thread's."""
    if Order(function, None, private).free(back) is None:
        count = ast.unparse(back.iter.args[0])
        back.iter = ast.parse(f"range({count} - 1, -1, -1)", mode="eval").body


def uses(node, name):
    return sum(isinstance(n, ast.Name) and n.id == name for n in walk(node))


def is_list(node, name):
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and not node.value.elts and isinstance(
        node.targets[0], ast.Name) and node.targets[0].id == name


def is_length(node, name):
    return isinstance(node, ast.Call) and ast.unparse(node) == f"len({name})"


def down_from(loop):
    """n, as text, of range(n - 1, -1, -1)."""
    if not isinstance(loop, ast.For) or loop.orelse or not isinstance(loop.target, ast.Name):
        return None
    found = ast.unparse(loop.iter)
    return found.removeprefix("range(").removesuffix(" - 1, -1, -1)") if found.endswith(" - 1, -1, -1)") else None


def statement(text, near):
    made = ast.parse(text).body[0]
    for n in ast.walk(made):
        n.origin = getattr(near, "origin", None)
    return made
