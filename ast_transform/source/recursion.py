# SPDX-License-Identifier: Apache-2.0
"""Linear recursion as loops: one down to the base case, one back over the statements after each call.

Applies to functions that call themselves at most once on each path, outside loops.  Variables that are live after the
recursive call are saved in lists.  Generated names end in a blank, unlike any name of the user's.

Source: Y. Liu, S. Stoller, From recursion to iteration: what are the optimizations?, PEPM 2000.

>>> tree = gast.parse('''def f(x):
...     if x < 0.5:
...         return x * x
...     return x * f(x / 2)''').body[0]
>>> print(ast.unparse(gast.gast_to_ast(as_loops(tree))).replace("result ", "result"))
def f(x):
    x_calls  = []
    while not x < 0.5:
        x_calls .append(x)
        x = x / 2
    result = x * x
    for x in reversed(x_calls ):
        result = x * result
    return result
"""
import ast
import copy

import gast

from gradscribe.ast_transform.source.exits import ends, leaves

APART = (gast.FunctionDef, gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
# nodes that refer to the variables or the state of one call
OWN_CALL = {gast.FunctionDef, gast.Lambda, gast.GeneratorExp, gast.Global, gast.Nonlocal, gast.Yield, gast.YieldFrom}
RESULT = "result "


class NeedsLoops(Exception):
    """The depth of a recursion is known only when running: the function must be read as loops."""

    def __init__(self, tree):
        super().__init__(tree.name)
        self.tree = tree


class _NotLinear(Exception):
    pass


def as_loops(tree: gast.AST) -> gast.FunctionDef | None:
    """The function without its recursion; None if the recursion is not linear."""
    try:
        return _Loops(tree).function()
    except _NotLinear:
        return None


class _Base:
    """A path on which the recursion ends."""

    def __init__(self, body):
        self.body = body


class _Call:
    """A path with a call: the statements before it, its arguments by parameter, the statements after it.

    saved: {variable that is live after the call: the list that it is saved in}
    """

    def __init__(self, before, arguments, rest):
        self.before, self.arguments, self.rest, self.saved = before, arguments, rest, {}


class _Branch:
    """Paths that split at a test.

    test_name: the variable that keeps the test of the last pass, which selects the base case; None if not needed
    """

    def __init__(self, before, node, then, orelse):
        self.before, self.node, self.then, self.orelse, self.test_name = before, node, then, orelse, None


class _Loops:
    def __init__(self, tree):
        if not isinstance(tree, gast.FunctionDef):
            raise _NotLinear
        spec = tree.args
        if spec.vararg or spec.kwarg or spec.kwonlyargs:
            raise _NotLinear
        self.tree, self.place = tree, tree
        self.params = [a.id for a in (*spec.posonlyargs, *spec.args)]
        self.defaults = dict(zip(self.params[len(self.params) - len(spec.defaults):], spec.defaults))
        self.own = set(self.params) | {n.id for n in gast.walk(tree) if isinstance(n, gast.Name) and
                                       isinstance(n.ctx, gast.Store)}
        inside = {type(n) for s in tree.body for n in gast.walk(s)}
        if tree.name in self.own or inside & OWN_CALL:
            raise _NotLinear
        self.count = 0

    def function(self):
        root = self.path(self.tree.body)
        calls, bases = list(_leaves(root, _Call)), list(_leaves(root, _Base))
        if not calls or not bases:
            raise _NotLinear
        pending = [c for c in calls if not self.is_tail_call(c.rest)]
        self.pending, self.several = pending, len(pending) > 1
        defined = dict(_defined(root, set(self.params)))
        for k, c in enumerate(pending):
            c.saved = {n: f"{n}_calls{k + 1 if self.several else ''} " for n in self.live_after(c.rest)
                       if n in defined[c]}
        self.name_tests(root)
        body = [self.at(gast.Assign([self.name(n, True)], gast.List([], gast.Load()), None))
                for c in pending for n in c.saved.values()]
        if pending and (self.several or not pending[0].saved):
            first = gast.List([], gast.Load()) if self.several else gast.Constant(0, None)
            body.append(self.at(gast.Assign([self.name("which ", True)], first, None)))
        body.append(self.down(root))
        body += self.base_case(root)
        body += self.back()
        made = copy.copy(self.tree)
        made.body = [*body, self.at(gast.Return(self.name(RESULT)))]
        return made

    # paths

    def path(self, body):
        """The paths through statements, as a tree of _Branch with _Base and _Call as leaves."""
        before = []
        for k, s in enumerate(body):
            rest = body[k + 1:]
            if isinstance(s, gast.Return) and isinstance(s.value, gast.IfExp) and self.calls([s]):
                self.place, value = s, s.value
                s = self.at(gast.If(value.test, [self.at(gast.Return(value.body))],
                                    [self.at(gast.Return(value.orelse))]))
            if isinstance(s, gast.If) and (self.calls([s]) or leaves(s, False)):
                if self.calls([s.test]):
                    raise _NotLinear
                return _Branch(before, s, self.path(s.body if ends(s.body) else s.body + rest),
                               self.path(s.orelse if ends(s.orelse) else s.orelse + rest))
            if self.calls([s]):
                return self.call(before, s, rest)
            if isinstance(s, gast.Return):
                return _Base([*before, s])
            if leaves(s, False):
                raise _NotLinear
            before.append(s)
        self.place = (body or self.tree.body)[-1]
        return _Base([*before, self.at(gast.Return(None))])

    def calls(self, nodes):
        """The reads of the function's name in some nodes."""
        return [n for node in nodes for n in gast.walk(node) if isinstance(n, gast.Name) and n.id == self.tree.name]

    def call(self, before, statement, rest):
        self.place = statement
        if not isinstance(statement, (gast.Return, gast.Assign, gast.AugAssign, gast.Expr)) or self.calls(rest):
            raise _NotLinear
        if isinstance(statement, gast.AugAssign) and not isinstance(statement.target, gast.Name):
            raise _NotLinear
        if isinstance(statement, gast.Assign) and any(not _plain(t) for t in statement.targets):
            raise _NotLinear
        statement = copy.deepcopy(statement)
        before, found = list(before), []
        statement.value = self.taken_out(statement.value, before, found)
        if len(found) != 1 or self.calls([statement]):
            raise _NotLinear
        return _Call(before, self.arguments(found[0]), [statement, *rest])

    def taken_out(self, node, before, found):
        """An expression with the call replaced by the result's name; operands that precede it move to `before`."""
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == self.tree.name:
            if self.calls([*node.args, *node.keywords]):
                raise _NotLinear
            found.append(node)
            return gast.copy_location(gast.Name(RESULT, gast.Load(), None, None), node)
        if not self.calls([node]):
            return node
        if isinstance(node, (gast.IfExp, gast.BoolOp, gast.NamedExpr, *APART)) or isinstance(
                node, gast.Compare) and len(node.comparators) > 1:
            raise _NotLinear
        reached = False
        for field in node._fields:
            value = getattr(node, field, None)
            parts = value if isinstance(value, list) else [value]
            for k, part in enumerate(parts):
                if not isinstance(part, (gast.expr, gast.keyword)):
                    continue
                if self.calls([part]):
                    reached, new = True, self.taken_out(part, before, found)
                elif not reached:
                    new = self.kept(part, before)
                else:
                    continue
                if isinstance(value, list):
                    value[k] = new
                else:
                    setattr(node, field, new)
        return node

    def kept(self, node, before):
        """An operand that is evaluated before the call: assigned to a variable, unless nothing can change it."""
        if isinstance(node, gast.keyword):
            node.value = self.kept(node.value, before)
            return node
        names = [n for n in gast.walk(node) if isinstance(n, gast.Name)]
        simple = isinstance(node, (gast.Name, gast.Constant)) or isinstance(node, gast.Attribute) and all(
            n.id not in self.own for n in names)
        if simple:
            return node
        self.count += 1
        name = f"operand_{self.count} "
        self.own.add(name)
        before.append(self.at(gast.Assign([self.name(name, True)], node, None)))
        return self.name(name)

    def arguments(self, call):
        """{parameter: argument} of a call."""
        if any(isinstance(a, gast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords) or len(
                call.args) > len(self.params):
            raise _NotLinear
        values = dict(zip(self.params, call.args))
        for k in call.keywords:
            if k.arg in values or k.arg not in self.params:
                raise _NotLinear
            values[k.arg] = k.value
        for n in self.params:
            if n not in values:
                if not isinstance(self.defaults.get(n), gast.Constant):
                    raise _NotLinear
                values[n] = self.defaults[n]
        return values

    def is_tail_call(self, rest):
        """Whether the statements after a call only return its result."""
        first = rest[0]
        return isinstance(first, gast.Return) and isinstance(first.value, gast.Name) and first.value.id == RESULT

    def live_after(self, rest):
        """The variables that are live after the recursive call: the statements `rest` read them."""
        found, bound = {}, set()
        for s in rest:
            for n in _evaluated(s):
                if isinstance(n, gast.Name) and n.id in self.own and n.id not in bound:
                    if isinstance(n.ctx, gast.Load) or isinstance(s, gast.AugAssign) and n is s.target:
                        found[n.id] = None
                elif isinstance(n, gast.Name) and n.id == RESULT:
                    continue
            if isinstance(s, gast.Assign):
                bound |= {n.id for t in s.targets for n in gast.walk(t) if isinstance(n, gast.Name) and
                          isinstance(n.ctx, gast.Store)}
        return list(found)

    # loops

    def name_tests(self, node):
        """Names the tests that select the base case after the loop."""
        if isinstance(node, _Branch):
            if all(any(_leaves(side, _Base)) for side in (node.then, node.orelse)):
                self.count += 1
                node.test_name = f"ends_{self.count} "
            self.name_tests(node.then)
            self.name_tests(node.orelse)

    def down(self, root):
        """The loop down to the base case."""
        self.place = self.tree.body[0]
        if isinstance(root, _Branch) and not root.before and root.test_name is None:
            first = isinstance(root.then, _Base)
            if first or isinstance(root.orelse, _Base):
                test = gast.copy_location(gast.UnaryOp(gast.Not(), root.node.test), root.node.test) if first else \
                    root.node.test
                return gast.copy_location(gast.While(test, self.step(root.orelse if first else root.then), []),
                                          root.node)
        return self.at(gast.While(self.at(gast.Constant(True, None)), self.step(root), []))

    def step(self, node):
        """The statements of a pass of the loop down."""
        if isinstance(node, _Base):
            return [self.at(gast.Break())]
        if isinstance(node, _Branch):
            before, test = list(node.before), node.node.test
            if node.test_name:
                self.place = node.node
                before.append(self.at(gast.Assign([self.name(node.test_name, True)], test, None)))
                test = self.name(node.test_name)
            return [*before, gast.copy_location(gast.If(test, self.step(node.then), self.step(node.orelse)), node.node)]
        self.place = node.rest[0]
        out = list(node.before)
        if node in self.pending:
            out += [self.append(held, self.name(n)) for n, held in node.saved.items()]
            if self.several:
                out.append(self.append("which ", gast.Constant(self.pending.index(node), None)))
            elif not node.saved:
                out.append(self.at(gast.AugAssign(self.name("which ", True), gast.Add(), gast.Constant(1, None))))
        changed = {n: v for n, v in node.arguments.items() if not (isinstance(v, gast.Name) and v.id == n)}
        if len(changed) == 1:
            (name, value), = changed.items()
            out.append(self.at(gast.Assign([self.name(name, True)], value, None)))
        elif changed:
            out.append(self.at(gast.Assign([gast.Tuple([self.name(n, True) for n in changed], gast.Store())],
                                           gast.Tuple(list(changed.values()), gast.Load()), None)))
        return out or [self.at(gast.Pass())]

    def append(self, name, value):
        return self.at(gast.Expr(gast.Call(gast.Attribute(self.name(name), "append", gast.Load()), [value], [])))

    def base_case(self, node):
        """The statements of the last call, which makes no other."""
        if isinstance(node, _Base):
            return self.assigned(node.body)
        if isinstance(node, _Call):
            return []
        then, orelse = self.base_case(node.then), self.base_case(node.orelse)
        return [gast.copy_location(gast.If(self.name(node.test_name), then, orelse), node.node)] if then and orelse \
            else then or orelse

    def back(self):
        """The loop back over the statements after the calls, from the last call on."""
        if not self.pending:
            return []
        self.place = self.pending[0].rest[0]
        if self.several:
            over = self.backwards("which ")
            return [self.at(gast.For(self.name("which_call ", True), over, self.dispatch(), [], None))]
        (call,), lists = self.pending, list(self.pending[0].saved.items())
        body, names = self.assigned(call.rest), [self.name(n, True) for n, _ in lists]
        if not lists:
            over = gast.Call(gast.Name("range", gast.Load(), None, None), [self.name("which ")], [])
            return [self.at(gast.For(self.name("_", True), over, body, [], None))]
        over = [self.backwards(held) for _, held in lists]
        if len(lists) == 1:
            return [self.at(gast.For(names[0], over[0], body, [], None))]
        pairs = gast.Call(gast.Name("zip", gast.Load(), None, None), over, [])
        return [self.at(gast.For(gast.Tuple(names, gast.Store()), pairs, body, [], None))]

    def backwards(self, held):
        return self.at(gast.Call(gast.Name("reversed", gast.Load(), None, None), [self.name(held)], []))

    def dispatch(self):
        """The statements after the call that was made, of several calls in the text."""
        arms = []
        for c in self.pending:
            self.place = c.rest[0]
            arms.append([*(self.at(gast.Assign([self.name(n, True)], gast.Call(gast.Attribute(
                self.name(held), "pop", gast.Load()), [], []), None)) for n, held in c.saved.items()),
                *self.assigned(c.rest)])
        body = arms.pop()
        while arms:
            self.place = self.pending[len(arms) - 1].rest[0]
            test = gast.Compare(self.name("which_call "), [gast.Eq()], [gast.Constant(len(arms) - 1, None)])
            body = [self.at(gast.If(test, arms.pop(), body))]
        return body

    def assigned(self, body):
        """Statements in which assignments to the result replace the returns."""
        out = []
        for k, s in enumerate(body):
            if isinstance(s, gast.Return):
                value = s.value if s.value is not None else gast.Constant(None, None)
                if not (isinstance(value, gast.Name) and value.id == RESULT):
                    self.place = s
                    out.append(self.at(gast.Assign([self.name(RESULT, True)], value, None)))
                return out or [gast.copy_location(gast.Pass(), s)]
            if leaves(s, False):
                if not isinstance(s, gast.If):
                    raise _NotLinear
                rest = body[k + 1:]
                out.append(gast.copy_location(gast.If(
                    s.test, self.assigned(s.body if ends(s.body) else s.body + rest),
                    self.assigned(s.orelse if ends(s.orelse) else s.orelse + rest)), s))
                return out
            out.append(s)
        self.place = body[-1]
        return [*out, self.at(gast.Assign([self.name(RESULT, True)], gast.Constant(None, None), None))]

    # nodes

    def name(self, name, store=False):
        return self.at(gast.Name(name, gast.Store() if store else gast.Load(), None, None))

    def at(self, node):
        for part in gast.walk(node):
            if not hasattr(part, "lineno") or part.lineno is None:
                gast.copy_location(part, self.place)
        return node


def _leaves(node, kind):
    if isinstance(node, _Branch):
        yield from _leaves(node.then, kind)
        yield from _leaves(node.orelse, kind)
    elif isinstance(node, kind):
        yield node


def _defined(node, names):
    """Yields (call, the names that may be set where it is made) for each call."""
    if isinstance(node, (_Branch, _Call)):
        names = names | {n.id for s in node.before for n in gast.walk(s) if isinstance(n, gast.Name) and isinstance(
            n.ctx, gast.Store)}
    if isinstance(node, _Branch):
        names = names | {n.id for n in gast.walk(node.node.test) if isinstance(n, gast.Name) and isinstance(
            n.ctx, gast.Store)}
        yield from _defined(node.then, names)
        yield from _defined(node.orelse, names)
    elif isinstance(node, _Call):
        yield node, names


def _evaluated(node):
    """The nodes of a statement, the value of an assignment before its targets."""
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, (gast.Assign, gast.AugAssign)):
        inner = [node.value, *(node.targets if isinstance(node, gast.Assign) else [node.target])]
    yield node
    for n in inner:
        yield from _evaluated(n)


def _plain(target):
    return isinstance(target, gast.Name) or isinstance(target, (gast.Tuple, gast.List)) and all(
        map(_plain, target.elts)) or isinstance(target, gast.Starred) and _plain(target.value)
