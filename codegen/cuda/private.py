# SPDX-License-Identifier: Apache-2.0
"""What a pass of a loop makes for itself: short arrays in a thread's own memory, lists in rows of one array for all.

A batched function with a while loop makes vectors in each pass, gives them other names, and its gradient appends what
it will want to lists.  Threads have no memory to ask for, so

- an array of a few entries is made once (a kernel has it as `cuda.local.array`), and another name for it is a copy;
- a row of an array, `v = x[b]`, is written out where its entries are read;
- a list becomes rows of one array, a pass's entries under each other, next to those of its neighbours; how many rows
  there are a first pass counts, that does nothing else.

>>> tree = ast.parse('''def f(a):
...     x = np.empty((8,), np.float64)
...     for b in range(8):
...         saved = []
...         y = a[b]
...         while True:
...             if not y < 9.0:
...                 break
...             saved.append(y)
...             y = y * y
...         while True:
...             if not len(saved) > 0:
...                 break
...             y += saved.pop()
...         x[b] = y
...     return (x,)''')
>>> Private(tree.body[0], lambda tree: {"y": ("float64", 0), "x": ("float64", 1), "a": ("float64", 1)}).run()
>>> print(ast.unparse(tree))
def f(a):
    x = np.empty((8,), np.float64)
    saved_most = 0
    for b in range(8):
        saved_size = 0
        y = a[b]
        while True:
            if not y < 9.0:
                break
            saved_size += 1
            y = y * y
        saved_most = max(saved_most, saved_size)
    saved_kept = np.empty((saved_most, 8), np.float64)
    for b in range(8):
        saved_size = 0
        y = a[b]
        while True:
            if not y < 9.0:
                break
            saved_kept[saved_size, b] = y
            saved_size += 1
            y = y * y
        while True:
            if not saved_size > 0:
                break
            saved_size -= 1
            y += saved_kept[saved_size, b]
        x[b] = y
    return (x,)
"""
import ast
import math

from gradscribe.codegen.cuda.aliases import Aliases, entries, stores
from gradscribe.codegen.cuda.kernels import copied
from gradscribe.codegen.cuda.lists import down_from, handed_on, in_any_order, turn
from gradscribe.codegen.cuda.sorting import is_range, list_call
from gradscribe.codegen.cuda.trees import dtype_of, is_entry, is_made, parts_of, shape_of, walk

MOST = 64                               # entries of an array in a thread's own memory


class NotPrivate(Exception):
    """A loop's passes make something else for themselves; `name`: what a kernel cannot have that was thought to be."""

    def __init__(self, name=None):
        super().__init__(name)
        self.name = name


class Private:
    """kinds_of: gives {name: (dtype, rank)} of a tree; without: lines of loops that are left alone.

    Attributes: made: {array that threads have for themselves: its allocation}; loops: {such an array: the loops
    in which passes have it}.
    """

    def __init__(self, function, kinds_of, without=()):
        self.function, self.kinds_of, self.made, self.kinds = function, kinds_of, {}, None
        self.without, self.loops = without, {}
        self.turned = []                # loops that go back, with their passes in the other order
        self.taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {a.arg for a in function.args.args}

    def run(self):
        self.function.body = self.block(self.function.body)
        self.function.body[:0] = list(self.made.values())
        for back in self.turned:
            in_any_order(back, self.function, self.made)
        ast.fix_missing_locations(self.function)

    def block(self, body):
        out = []
        for s in body:
            if s.lineno not in self.without and down_from(s) is not None and self.wanted(s):
                turn(s)
                self.turned.append(s)
            if is_range(s) and s.lineno not in self.without and self.wanted(s):
                if self.kinds is None:
                    self.kinds = self.kinds_of(self.function)
                later = handed_on(s, body, self.fresh)
                for h in later:
                    h.begin()
                try:
                    loop = Loop(self, s)
                    made = loop.run()
                    self.loops |= dict.fromkeys(loop.shapes, [n for n in made if isinstance(n, ast.For)])
                    self.hand_on(later, loop, out)
                    if s in self.turned:
                        self.turned[self.turned.index(s)] = made[-1]
                    out += made
                    continue
                except NotPrivate:
                    for h in later:
                        h.undo()
            for field in ("body", "orelse"):
                inner = getattr(s, field, None)
                if isinstance(inner, list) and isinstance(s, (ast.For, ast.While, ast.If)):
                    setattr(s, field, self.block(inner) if inner else inner)
            out.append(s)
        return out

    def hand_on(self, later, loop, out):
        """What a loop's passes have in rows, another takes from there."""
        for h in later:
            kept, shape, dtype, _ = loop.lists[h.inner]
            out[out.index(h.made)] = h.sizes()
            h.go_on(kept, shape, dtype)
            self.kinds |= h.kinds() | {kept: (dtype, len(shape) + 2)}
        self.turned += {id(h.back): h.back for h in later}.values()

    def wanted(self, loop):
        return any(is_made(n) or isinstance(n, ast.List) or isinstance(n, ast.Assign) and isinstance(
            n.value, (ast.Name, ast.Subscript)) and self.rank(n.targets[0]) for n in walk(loop))

    def rank(self, node):
        if self.kinds is None:
            self.kinds = self.kinds_of(self.function)
        return self.kinds[node.id][1] if isinstance(node, ast.Name) and node.id in self.kinds else 0

    def fresh(self, name):
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


class Loop:
    """A loop whose passes make things for themselves."""

    def __init__(self, whole, loop):
        self.whole, self.loop, self.rank = whole, loop, whole.rank
        self.rows, self.shapes, self.lists, self.sizes = {}, {}, {}, {}
        self.again = {}

    def run(self):
        """The statements in the place of the loop."""
        self.look()
        loop, before = copied(self.loop), []
        if self.lists:
            forward = self.forward(loop.body)
            last = max(k for k, s in enumerate(forward) if any(list_call(n) == "append" for n in walk(s)))
            counting = ast.For(copied(loop.target), copied(loop.iter), self.written(forward[:last + 1], True), [])
            counting.origin, counting.lineno = getattr(loop, "origin", None), 0
            for name in self.lists:
                most = self.whole.fresh(f"{name}_most")
                before.append(parsed(f"{most} = 0", loop))
                counting.body.append(parsed(f"{most} = max({most}, {self.sizes[name]})", loop))
                self.lists[name] = (*self.lists[name], most)
            before.append(counting)
            for kept, shape, dtype, most in self.lists.values():
                lengths = ", ".join([most, *map(str, shape), ast.unparse(loop.iter.args[0])])
                before.append(parsed(f"{kept} = np.empty(({lengths}), np.{dtype})", loop))
        loop.body = self.written(loop.body, False)
        for name, (shape, dtype) in self.shapes.items():
            lengths = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
            self.whole.made[name] = parsed(f"{name} = np.empty(({lengths}), np.{dtype})", loop)
        return [*before, loop]

    # what there is

    def look(self):
        loop, inside = self.loop, set(map(id, walk(self.loop)))
        stored = [n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        own = {n for n in stored if self.rank(ast.Name(n)) or self.is_list(n)}
        for n in walk(self.whole.function):
            if isinstance(n, ast.Name) and n.id in own and id(n) not in inside:
                raise NotPrivate
        assigns = [n for n in walk(loop) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
                   and n.targets[0].id in own]
        if sum(stored.count(n) for n in own) != len(assigns):
            raise NotPrivate
        for n in assigns:                               # rows of arrays from outside
            name, value = n.targets[0].id, n.value
            if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id not in own:
                parts = parts_of(value)
                if stored.count(name) > 1 or any(isinstance(p, (ast.Slice, ast.Starred)) for p in parts) or any(
                        m.id in stored and m.id != loop.target.id for p in parts for m in walk(p)
                        if isinstance(m, ast.Name)) or value.value.id in stored:
                    raise NotPrivate
                self.rows[name] = (value.value.id, parts)
        for n in assigns:
            if is_made(n):
                shape = [s.value if isinstance(s, ast.Constant) else None for s in shape_of(n)]
                if None in shape or math.prod(shape) > MOST or n.value.func.attr not in ("empty", "zeros"):
                    raise NotPrivate
                self.take(n.targets[0].id, shape, dtype_of(n))
        lists = {n.targets[0].id for n in assigns if isinstance(n.value, ast.List)}
        for name in lists:
            if stored.count(name) > 1 or not any(s for s in loop.body if isinstance(s, ast.Assign) and
                                                 getattr(s.targets[0], "id", None) == name):
                raise NotPrivate
            self.sizes[name] = self.whole.fresh(f"{name}_size")
        if any(list_call(n) and n.func.value.id not in lists for n in walk(loop)):
            raise NotPrivate            # a list of what is around the loop grows in the order of its passes
        for _ in range(len(assigns) + 1):               # other names of short arrays
            for n in assigns:
                if isinstance(n.value, ast.Name) and n.value.id in self.shapes:
                    self.take(n.targets[0].id, *self.shapes[n.value.id])
                if self.is_row(n.value):
                    shape, dtype = self.shapes[n.value.value.id]
                    self.take(n.targets[0].id, shape[len(parts_of(n.value)):], dtype)
                if list_call(n.value) == "pop" and n.value.func.value.id in self.lists:
                    _, shape, dtype = self.lists[n.value.func.value.id]
                    self.take(n.targets[0].id, shape, dtype)
            for n in walk(loop):
                if list_call(n) == "append" and n.func.value.id in lists:
                    self.appended(n.func.value.id, n.args[0])
        if lists - self.lists.keys():
            raise NotPrivate
        aliases = Aliases(loop, assigns, self.rows)
        for n in assigns:
            if n.targets[0].id not in self.shapes.keys() | self.rows.keys() | lists:
                raise NotPrivate
            if isinstance(n.value, ast.Name) and not aliases.is_copy(n):
                raise NotPrivate
            if self.is_row(n.value) and (not aliases.settled(n.value.value.id) or
                                         stores(loop, n.targets[0].id)):
                raise NotPrivate
        parents = {c: p for p in walk(loop) for c in ast.iter_child_nodes(p)}
        for n in walk(loop):
            if isinstance(n, ast.Name) and n.id in own and not self.plain(n, parents):
                raise NotPrivate
        forward = self.forward(loop.body)
        for n in (m for s in loop.body[len(forward):] for m in walk(s)):
            if list_call(n) == "append":
                raise NotPrivate
        if self.lists:
            outside = [e for s in forward for e in entries(s) if e.value.id not in own]
            set_there = {e.value.id for e in outside if isinstance(e.ctx, ast.Store)}
            read_there = {e.value.id for e in outside if isinstance(e.ctx, ast.Load)}
            if set_there & read_there or any(isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Subscript) and
                                             n.target.value.id not in own for s in forward for n in walk(s)):
                raise NotPrivate

    def is_list(self, name):
        return any(isinstance(n, ast.Assign) and isinstance(n.value, ast.List) and isinstance(n.targets[0], ast.Name)
                   and n.targets[0].id == name for n in walk(self.loop))

    def take(self, name, shape, dtype):
        if self.shapes.setdefault(name, (list(shape), dtype)) != (list(shape), dtype):
            raise NotPrivate

    def appended(self, name, value):
        if isinstance(value, ast.Name) and value.id in self.shapes:
            found = self.shapes[value.id]
        elif isinstance(value, ast.Name) and self.rank(value) == 0 and value.id in self.whole.kinds:
            found = [], self.whole.kinds[value.id][0]
        else:
            if isinstance(value, ast.Name) and self.rank(value):
                return                  # of a shape that is not known yet
            raise NotPrivate
        if name not in self.lists:
            self.lists[name] = self.whole.fresh(f"{name}_kept"), found[0], found[1]
        elif self.lists[name][1:] != tuple(found):
            raise NotPrivate

    def is_row(self, value):
        """x[k] of a short array that has more axes."""
        return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in \
            self.shapes and len(parts_of(value)) < len(self.shapes[value.value.id][0]) and not any(
            isinstance(p, (ast.Slice, ast.Starred, ast.Tuple)) or isinstance(p, ast.Constant) and p.value is None or
            isinstance(p, ast.Name) and self.rank(p) for p in parts_of(value))

    def plain(self, node, parents):
        parent = parents[node]
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return node.id in self.shapes and (is_entry(parent, len(self.shapes[node.id][0])) or isinstance(
                parents[parent], ast.Assign) and parents[parent].value is parent and self.is_row(parent)) or \
                node.id in self.rows and is_entry(parent, self.rank(node))
        if isinstance(parent, ast.Assign):
            return True
        if isinstance(parent, ast.Attribute):
            return list_call(parents[parent]) is not None and parents[parent].func is parent
        if isinstance(parent, ast.Call):
            return ast.unparse(parent.func) == "len" or list_call(parent) == "append" and node in parent.args
        return False

    def forward(self, body):
        """The statements before the first that takes from a list."""
        for k, s in enumerate(body):
            if any(list_call(n) == "pop" for n in walk(s)):
                return body[:k]
        return body

    # what it becomes

    def written(self, body, counting):
        """Statements with their lists and arrays as threads have them; counting: only what lists get is counted."""
        out = []
        for s in copied(body):
            out += self.statement(s, counting)
        return out

    def statement(self, s, counting):
        if isinstance(s, (ast.For, ast.While, ast.If)):
            if isinstance(s, ast.For):
                s.iter = self.value(s.iter, s)[0]
                before = []
            else:
                s.test, before = self.value(s.test, s)
            s.body = self.written(s.body, counting) or [ast.Pass()]
            s.orelse = self.written(s.orelse, counting)
            return [*before, s]
        if isinstance(s, ast.Expr) and list_call(s.value) == "append":
            name = s.value.func.value.id
            size = self.sizes[name]
            add = parsed(f"{size} += 1", s)
            if counting:
                return [add]
            value, before = self.value(s.value.args[0], s)
            text = ast.unparse(value)
            return [*before, *self.each(self.lists[name][1], lambda at: (
                f"{self.kept(name, at)} = {text}" + (f"[{', '.join(at)}]" if at else "")), s), add]
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
            name = s.targets[0].id
            if name in self.rows:
                return []
            if name in self.sizes:
                return [parsed(f"{self.sizes[name]} = 0", s)]
            if is_made(s) and name in self.shapes:
                shape, dtype = self.shapes[name]
                if s.value.func.attr == "empty":
                    return []
                return self.each(shape, lambda at: f"{name}[{', '.join(at)}] = np.{dtype}(0)", s)
            if name in self.shapes and isinstance(s.value, ast.Name):
                source = s.value.id
                return self.each(self.shapes[name][0], lambda at: (
                    f"{name}[{', '.join(at)}] = " + self.entry(source, at)), s)
            if name in self.shapes and self.is_row(s.value):
                source, first = s.value.value.id, list(map(ast.unparse, parts_of(s.value)))
                return self.each(self.shapes[name][0], lambda at: (
                    f"{name}[{', '.join(at)}] = {source}[{', '.join([*first, *at])}]"), s)
            if name in self.shapes and list_call(s.value) == "pop":
                taken = s.value.func.value.id
                return [parsed(f"{self.sizes[taken]} -= 1", s), *self.each(self.shapes[name][0], lambda at: (
                    f"{name}[{', '.join(at)}] = {self.kept(taken, at)}"), s)]
        if counting and isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript) and \
                s.targets[0].value.id not in self.shapes:
            return []
        before = []
        for field in ("value", "target"):
            if isinstance(getattr(s, field, None), ast.AST):
                made, more = self.value(getattr(s, field), s)
                setattr(s, field, made)
                before += more
        if isinstance(s, ast.Assign):
            s.targets = [self.value(t, s)[0] for t in s.targets]
        return [*before, s]

    def value(self, node, s):
        change = Change(self)
        made = change.visit(node)
        if len(change.popped) > 1:
            raise NotPrivate
        return made, [parsed(f"{self.sizes[n]} -= 1", s) for n in change.popped]

    def entry(self, name, at):
        if name in self.rows:
            base, parts = self.rows[name]
            return f"{base}[{', '.join([*map(ast.unparse, parts), *at])}]"
        return f"{name}[{', '.join(at)}]"

    def kept(self, name, at):
        return f"{self.lists[name][0]}[{', '.join([self.sizes[name], *at, self.loop.target.id])}]"

    def each(self, shape, text, s):
        """A statement for each entry of a short array."""
        places = [[]]
        for n in shape:
            places = [[*p, str(k)] for p in places for k in range(n)]
        return [parsed(text(at), s) for at in places]


class Change(ast.NodeTransformer):
    def __init__(self, loop):
        self.loop, self.popped = loop, []

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.loop.rows:
            base, parts = self.loop.rows[node.value.id]
            indices = [*copied(parts), *parts_of(node)]
            return ast.Subscript(ast.Name(base, ast.Load()), ast.Tuple(indices, ast.Load()), node.ctx)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and isinstance(node.args[0], ast.Name) and \
                node.args[0].id in self.loop.sizes:
            return ast.Name(self.loop.sizes[node.args[0].id], ast.Load())
        if list_call(node) == "pop" and node.func.value.id in self.loop.lists:
            self.popped.append(node.func.value.id)
            return ast.parse(self.loop.kept(node.func.value.id, []), mode="eval").body
        return node


def parsed(text, near):
    made = ast.parse(text).body[0]
    for n in ast.walk(made):
        n.origin = getattr(near, "origin", None)
    return made
