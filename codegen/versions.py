# SPDX-License-Identifier: Apache-2.0
"""Arrays that share a name get names of their own, as far as a row of statements goes.

Lowering keeps the user's names: an array made anew in each pass of a loop has the name of the one before.  What may be
joined is plain where each name stands for one array; what a pass hands on is said by `name = array` at its end.

>>> tree = ast.parse('''def f(x):
...     s = np.empty((3,), np.float64)
...     for i in range(4):
...         t = np.empty((3,), np.float64)
...         t[0] = s[0]
...         s = t
...         s = np.empty((3,), np.float64)
...         s[0] = x[i]
...     return s''')
>>> named_apart(tree.body[0])
>>> print(ast.unparse(tree))
def f(x):
    s_1 = np.empty((3,), np.float64)
    s = s_1
    for i in range(4):
        t = np.empty((3,), np.float64)
        t[0] = s[0]
        s_2 = np.empty((3,), np.float64)
        s_2[0] = x[i]
        s = s_2
    return s
"""
import ast
import itertools

from gradscribe.codegen.texts import walk

MADE = {"empty", "zeros", "ones", "full"}
COMPOUND = (ast.For, ast.While, ast.If)


def is_made(node):
    """name = np.empty((..), ..) and its kin."""
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and \
        isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) and \
        isinstance(node.value.func.value, ast.Name) and node.value.func.value.id == "np" and \
        node.value.func.attr in MADE and isinstance(node.value.args[0], ast.Tuple)


def named_apart(function):
    """Rewrites the body of a function in place."""
    Versions(function).run()


class Versions:
    def __init__(self, function):
        self.function, self.count = function, itertools.count(1)
        names = [n for n in walk(function) if isinstance(n, ast.Name)]
        self.taken = {n.id for n in names} | {a.arg for a in function.args.args}
        self.sets = {a.arg: 1 for a in function.args.args}
        for n in names:
            if isinstance(n.ctx, ast.Store):
                self.sets[n.id] = self.sets.get(n.id, 0) + 1
        self.entered = {n.value.id for n in walk(function) if isinstance(n, (ast.Subscript, ast.Attribute)) and
                        isinstance(n.value, ast.Name)}
        self.single = {n.targets[0].id for n in walk(function) if self.is_new(n) and
                       self.sets[n.targets[0].id] == 1}

    def is_new(self, node):
        """name = np.empty(..) and its kin, name = x[..], a view, or a product."""
        if is_made(node) or not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            return is_made(node)
        product = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "np.dot"
        return node.targets[0].id in self.entered and (product or isinstance(node.value, ast.Subscript))

    def run(self):
        self.function.body = self.block(self.function.body, False)
        Unread(self.function)

    def block(self, body, inner):
        """A block; `inner`: what it leaves under a name may be read after it."""
        out, now, said = [], {}, set()

        def say(names, origin):
            for v in sorted(names):
                alias = ast.Assign([ast.Name(v, ast.Store())], ast.Name(now[v], ast.Load()), lineno=0)
                alias.origin = origin
                out.append(alias)

        for s in body:
            origin = getattr(s, "origin", None)
            target = s.targets[0].id if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) else None
            if target is None:
                stored = {n.id for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                lost = stored & now.keys()
                if isinstance(s, (*COMPOUND, ast.AugAssign)):
                    say(lost - said, origin)
                else:                   # a, b = b, a reads before it sets
                    self.rename(s, now)
                for v in lost:
                    del now[v]
                if any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in walk(s)) and inner:
                    say(now.keys() - said, origin)
                    said |= now.keys()
            self.rename(s, now)
            if target is not None:
                now.pop(target, None)
                said.discard(target)
                if isinstance(s.value, ast.Name) and s.value.id in self.single:
                    now[target] = s.value.id
                    continue
                if self.is_new(s) and self.sets[target] > 1:
                    now[target] = s.targets[0].id = self.fresh(target)
            elif isinstance(s, COMPOUND):
                s.body, s.orelse = self.block(s.body, True), self.block(s.orelse, True)
            out.append(s)
        if inner:
            say(now.keys() - said, getattr(body[-1], "origin", None) if body else None)
        return out

    @staticmethod
    def rename(statement, now):
        for n in walk(statement):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                n.id = now.get(n.id, n.id)

    def fresh(self, name):
        new = next(n for k in self.count if (n := f"{name}_{k}") not in self.taken)
        self.taken.add(new)
        self.single.add(new)
        return new


class Unread:
    """Takes out other names for arrays, `name = array`, that nothing reads afterwards."""

    def __init__(self, function):
        self.left, self.gone = [], set()        # what is read after each loop around
        self.block(function.body, set())
        self.remove(function)

    def remove(self, node):
        for field in ("body", "orelse"):
            inner = getattr(node, field, None)
            if inner:
                kept = [s for s in inner if s not in self.gone]
                setattr(node, field, kept or ([ast.Pass()] if field == "body" else []))
                for s in kept:
                    self.remove(s)

    def block(self, body, live):
        """The names whose values at the start of a block are read, where `live` are read after it."""
        for s in reversed(body):
            live = self.before(s, live)
        return live

    def before(self, s, live):
        if isinstance(s, (ast.For, ast.While)):
            self.left.append(live)
            live = live | loaded(s.iter if isinstance(s, ast.For) else s.test)
            while not (more := self.block(s.body, live)) <= live:
                live = live | more
            self.left.pop()
            return live
        if isinstance(s, ast.If):
            return self.block(s.body, live) | self.block(s.orelse, live) | loaded(s.test)
        if isinstance(s, ast.Break):
            return self.left[-1]
        if isinstance(s, (ast.Return, ast.Raise)):
            return loaded(s)
        if not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name):
            return live | loaded(s)
        name = s.targets[0].id
        if isinstance(s.value, ast.Name):
            if name not in live:
                self.gone.add(s)
                return live
            self.gone.discard(s)
        return (live - {name}) | loaded(s.value)


def loaded(node):
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and (
        isinstance(n.ctx, ast.Load) or isinstance(node, ast.AugAssign))}
