# SPDX-License-Identifier: Apache-2.0
"""Uses of a name that have nothing to do with each other get names of their own.

Lowering keeps the user's names, and the backward sweep computes again what the forward one did, by the same names.
A web is a set of assignments and uses, each use with all the assignments that may have made what it reads; two webs of
one name are two variables.  The first keeps the name.

>>> tree = ast.parse('''def f(x, n):
...     s = 0.0
...     for i in range(n):
...         t = x[i]
...         s = s + t
...     for i in range(n):
...         t = s * x[i]
...         x[i] = t
...     return s''')
>>> webs_apart(tree.body[0])
>>> print(ast.unparse(tree))
def f(x, n):
    s = 0.0
    for i in range(n):
        t = x[i]
        s = s + t
    for i in range(n):
        t_1 = s * x[i]
        x[i] = t_1
    return s

Source: S. S. Muchnick, Advanced Compiler Design and Implementation (1997), 16.3.3.
"""
import ast
import itertools

from gradscribe.codegen.texts import walk


def webs_apart(function, loops_own=False):
    """Changes a function's text in place; loop variables keep their names, with loops_own for themselves alone."""
    if any(isinstance(n, (ast.comprehension, ast.Lambda, ast.NamedExpr)) for n in walk(function)):
        return                                  # names of their own
    webs = Webs()
    for p in function.args.args:
        webs.set_by(p.arg, None)
    webs.block(function.body)
    if not webs.known:
        return
    taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {p.arg for p in function.args.args}
    named: dict = {}
    kept = {webs.top(n) for n in webs.fixed}
    if loops_own:
        named = {(n.id, "first"): n.id for n in webs.fixed}
    for node in webs.nodes:
        web = webs.top(node)
        if web not in named:
            name = node.id
            if (name, "first") in named and web not in kept:
                name = next(c for c in (f"{node.id}_{k}" for k in itertools.count(1)) if c not in taken)
            taken.add(name)
            named[web] = named[node.id, "first"] = name
    for node in webs.nodes:
        node.id = named[webs.top(node)]


class Webs:
    """Which assignments each use may read, found in one walk over the blocks, loops twice."""

    def __init__(self):
        self.reaching, self.above, self.nodes, self.fixed = {}, {}, [], set()
        self.left, self.known = [], True            # of each loop around: what reaches its head and its end by a jump

    def top(self, node):
        while self.above.get(node, node) is not node:
            node = self.above[node]
        return node

    def meet(self, nodes):
        first, *rest = map(self.top, nodes)
        for other in rest:
            self.above[self.top(other)] = self.top(first)

    def set_by(self, name, node):
        if node is None:
            node = ast.Name(name, ast.Store())
            self.fixed.add(node)
        self.seen(node)
        self.reaching[name] = frozenset([node])

    def seen(self, node):
        if node not in self.above:
            self.above[node] = node
            self.nodes.append(node)

    def read(self, tree):
        for node in walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.reaching:
                self.seen(node)
                self.meet([*self.reaching[node.id], node])

    def block(self, body):
        for s in body:
            self.statement(s)

    def statement(self, s):
        if isinstance(s, ast.Assign):
            self.read(s.value)
            for t in s.targets:
                self.target(t)
        elif isinstance(s, ast.AugAssign):
            self.read(s.value)
            self.target(s.target, again=True)
        elif isinstance(s, ast.If):
            self.read(s.test)
            before = self.copied()
            self.block(s.body)
            after, self.reaching = self.reaching, before
            self.block(s.orelse)
            self.joined(after)
        elif isinstance(s, (ast.For, ast.While)):
            self.loop(s)
        elif isinstance(s, (ast.Break, ast.Continue)):
            self.left[-1].append(self.copied())
        elif isinstance(s, (ast.Expr, ast.Return)):
            if s.value is not None:
                self.read(s.value)
        elif isinstance(s, ast.Raise):
            self.read(s)
        elif not isinstance(s, ast.Pass):
            self.known = False

    def target(self, t, again=False):
        if isinstance(t, ast.Name):
            if again and t.id in self.reaching:
                self.seen(t)
                self.meet([*self.reaching[t.id], t])
            self.set_by(t.id, t)
        elif isinstance(t, (ast.Tuple, ast.List)):
            for e in t.elts:
                self.target(e)
        else:
            self.read(t)

    def loop(self, s):
        if isinstance(s, ast.For):
            self.read(s.iter)
        before = self.copied()
        for _ in range(2):                          # what a pass leaves, the next one finds
            self.left.append([])
            if isinstance(s, ast.For):
                self.fixed |= {n for n in walk(s.target) if isinstance(n, ast.Name)}
                self.target(s.target)
            else:
                self.read(s.test)
            self.block(s.body)
            for other in self.left.pop():
                self.joined(other)
            self.joined(before)
        if isinstance(s, ast.While):
            self.read(s.test)
        self.block(s.orelse)

    def copied(self):
        return dict(self.reaching)

    def joined(self, other):
        for name, found in other.items():
            here = self.reaching.get(name)
            if here is not found:
                self.reaching[name] = here | found if here else found
