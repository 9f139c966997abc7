# SPDX-License-Identifier: Apache-2.0
"""Checks of indices, where they are certain to hold or hold for a whole loop.

Lowering writes `place(i, n)` wherever an index might lie outside its axis; a loop with such a call in it is not
vectorised.  Here an index is a linear form of lengths, loop indices and numbers known at a loop's start.  Its smallest
and largest value follow from the loops' ranges.  Where both are certain the call goes.  Where the smallest is certain,
and the largest is known at the start of an innermost loop that reaches it in each pass, one check before the loop takes
the place of one in each pass.

>>> print(unchecked('''def f(x, w):
...     n = x.shape[0]
...     m = w.shape[0]
...     s = 0.0
...     for i in range(n):
...         s = s + x[place(i, n)] * w[place(i, m)]
...     return (s,)
... '''))
def f(x, w):
    n = x.shape[0]
    m = w.shape[0]
    s = 0.0
    reaches(n, n - 1, m)
    for i in range(n):
        s = s + x[i] * w[i]
    return (s,)

Source: R. Gupta, Optimizing array bound checks using flow analysis, 1993 (elimination and propagation out of loops).
"""
import ast
import itertools

from gradscribe.codegen.texts import walk

LEAVES = (ast.For, ast.While, ast.Raise, ast.Break, ast.Return, ast.Continue, ast.Assert)


def unchecked(text):
    tree = ast.parse(text)
    Bounds(tree.body[0]).run()
    return ast.unparse(ast.fix_missing_locations(tree))


class Linear:
    """const + sum of coefficients times symbols."""

    __slots__ = ("const", "terms")

    def __init__(self, const=0, terms=None):
        self.const, self.terms = const, {s: c for s, c in (terms or {}).items() if c}

    def plus(self, other, times=1):
        terms = dict(self.terms)
        for s, c in other.terms.items():
            terms[s] = terms.get(s, 0) + c * times
        return Linear(self.const + times * other.const, terms)

    def times(self, k):
        return Linear(self.const * k, {s: c * k for s, c in self.terms.items()})

    def replaced(self, symbol, value):
        c = self.terms.get(symbol, 0)
        if not c:
            return self
        return Linear(self.const, {s: k for s, k in self.terms.items() if s is not symbol}).plus(value, c)

    def __eq__(self, other):
        return isinstance(other, Linear) and self.const == other.const and self.terms == other.terms

    __hash__ = None


class Symbol:
    """An integer that is not known: what prints it, whether it is at least 0; a loop's index: its largest value."""

    __slots__ = ("count", "exact", "least", "order", "text", "top")
    _order = itertools.count()

    def __init__(self, text=None, least=False, top=None, count=None):
        self.text, self.least, self.top, self.count, self.exact = text, least, top, count, None
        self.order = next(self._order)


def of(symbol):
    return Linear(0, {symbol: 1})


class Loop:
    """An innermost loop being read: what is known at its start, what it sets, and the checks that go before it."""

    def __init__(self, node, index, env, stored):
        self.node, self.index, self.env, self.stored, self.checks = node, index, env, stored, []


class Bounds:
    def __init__(self, function):
        self.function, self.env, self.shapes = function, {}, {}
        self.loop, self.sure = None, False
        self.equal = {}                         # symbols that a check has shown to be another form
        self.least = not_negative(function)

    def run(self):
        for a in self.function.args.args:
            self.env[a.arg] = of(Symbol(a.arg, a.arg in self.least))
        self.function.body = self.block(self.function.body)

    # values

    def value(self, node):
        """The linear form of an integer expression; None if it has none."""
        if isinstance(node, ast.Constant):
            return Linear(node.value) if type(node.value) is int else None
        if isinstance(node, ast.Name):
            return self.env.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.value(node.operand)
            return inner and inner.times(-1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self.value(node.left), self.value(node.right)
            if left is None or right is None:
                return None
            return left.plus(right, 1 if isinstance(node.op, ast.Add) else -1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = self.value(node.left), self.value(node.right)
            if left is None or right is None or left.terms and right.terms:
                return None
            return left.times(right.const) if not right.terms else right.times(left.const)
        length = shape_entry(node)
        if length is not None:
            name, k = length
            known = self.shapes.get(name)
            if known is None:
                known = self.shapes[name] = {}
            if k not in known:
                known[k] = of(Symbol(f"{name}.shape[{k}]", True))
            return self.settled(known[k])
        return None

    def settled(self, form):
        """A form in which symbols that are known to be another form are replaced."""
        for _ in range(20):
            symbol = next((s for s in form.terms if s in self.equal), None)
            if symbol is None:
                return form
            form = form.replaced(symbol, self.equal[symbol])
        return form

    def set_equal(self, left, right):
        """A check has passed: two lengths are one."""
        if left is None or right is None:
            return
        gap = self.settled(left).plus(self.settled(right), -1)
        for s in sorted(gap.terms, key=lambda s: -s.order):
            if gap.terms[s] in (1, -1) and s.count is None:
                rest = Linear(gap.const, {t: c for t, c in gap.terms.items() if t is not s})
                self.equal[s] = rest.times(-gap.terms[s])
                return

    def extreme(self, form, largest):
        """The largest or smallest value over all loops' passes: a form without loop indices."""
        form = self.settled(form)
        for _ in range(50):
            inner = max((s for s in form.terms if s.count is not None), key=lambda s: s.order, default=None)
            if inner is None:
                return form
            high = (form.terms[inner] > 0) == largest
            form = self.settled(form.replaced(inner, inner.top if high else Linear(0)))
        return None

    def not_below(self, form):
        """Whether a form is certain to be at least 0."""
        if form is None:
            return False
        form = self.settled(form)
        return form.const >= 0 and all(c > 0 and s.least for s, c in form.terms.items())

    # statements

    def block(self, body):
        out = []
        for node in body:
            out += self.statement(node) or [node]
        return out

    def statement(self, node):
        """Reads a statement; gives what stands in its place, or None for itself."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            node.value = self.expression(node.value)
            self.assign(node.targets[0], node)
            return None
        if isinstance(node, ast.AugAssign):
            node.value = self.expression(node.value)
            if isinstance(node.target, ast.Name):
                self.forget(node.target.id)
            else:
                node.target = self.expression(node.target)
            return None
        if isinstance(node, ast.For):
            return self.counted(node)
        if isinstance(node, ast.If):
            node.test = self.expression(node.test)
            env, shapes, equal = self.env, self.shapes, self.equal
            sure, self.sure = self.sure, False
            ends = []
            for arm in ("body", "orelse"):
                self.env, self.shapes, self.equal = dict(env), dict(shapes), dict(equal)
                setattr(node, arm, self.block(getattr(node, arm)))
                ends.append(self.env)
            self.sure, self.env, self.shapes, self.equal = sure, env, shapes, equal
            for name in stored_in(node):
                self.forget(name)
                if name in ends[0] and ends[0][name] == ends[1].get(name):
                    self.env[name] = ends[0][name]
            if len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse:
                for test in node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(
                        node.test.op, ast.Or) else [node.test]:
                    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq):
                        self.set_equal(self.value(test.left), self.value(test.comparators[0]))
            return None
        if isinstance(node, ast.While):
            for name in stored_in(node):
                self.forget(name)
            kept = self.loop, self.sure, self.equal     # what a pass shows to be equal may not have been asked
            self.loop, self.sure, self.equal = None, False, dict(self.equal)
            node.test = self.expression(node.test)
            node.body = self.block(node.body)
            self.loop, self.sure, self.equal = kept
            for name in stored_in(node):
                self.forget(name)
            return None
        if isinstance(node, ast.Expr):
            call = node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "same":
                self.set_equal(*map(self.value, call.args))
            else:
                node.value = self.expression(node.value)
            return None
        if isinstance(node, ast.Return) and node.value is not None:
            node.value = self.expression(node.value)
        return None

    def assign(self, target, node):
        if isinstance(target, ast.Subscript):
            node.targets[0] = self.expression(target)
            return
        if not isinstance(target, ast.Name):
            for n in walk(target):
                if isinstance(n, ast.Name):
                    self.forget(n.id)
            return
        name, value = target.id, node.value
        form, shapes = self.value(value), self.shape_of(value)
        exact = self.distance(value)
        self.forget(name)
        if form is not None:
            self.env[name] = form
            if len(form.terms) == 1 and not form.const:
                (s, c), = form.terms.items()
                if c == 1 and s.text and "." in s.text:
                    s.text = name
        elif exact is not None:
            symbol = Symbol(name, True)
            symbol.exact = exact
            self.env[name] = of(symbol)
        if shapes is not None:
            self.shapes[name] = shapes

    def forget(self, name):
        self.env[name] = of(Symbol(name, name in self.least))
        self.shapes.pop(name, None)

    def distance(self, node):
        """len(range(a, b)): b - a, where it is not 0; a - b if it counts down."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and \
                isinstance(node.args[0], ast.Call) and isinstance(node.args[0].func, ast.Name) and \
                node.args[0].func.id == "range":
            args = node.args[0].args
            step = 1 if len(args) < 3 else {"1": 1, "-1": -1}.get(ast.unparse(args[2]))
            if step is None:
                return None
            first, last = (Linear(0), self.value(args[0])) if len(args) == 1 else map(self.value, args[:2])
            if first is not None and last is not None:
                return last.plus(first, -1).times(step)
        return None

    def shape_of(self, node):
        """The lengths of an array, as far as its making tells them."""
        if isinstance(node, ast.Name):
            known = self.shapes.get(node.id)
            return known if known is not None else self.shapes.setdefault(node.id, {})
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                node.func.attr in ("empty", "zeros", "ones", "full") and node.args and \
                isinstance(node.args[0], ast.Tuple):
            found = {k: self.value(d) for k, d in enumerate(node.args[0].elts)}
            return {k: d for k, d in found.items() if d is not None}
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if all(isinstance(p, ast.Slice) or isinstance(p, ast.Constant) and type(p.value) is int
                   or isinstance(p, (ast.Name, ast.Call, ast.BinOp)) for p in parts):
                found, axis = {}, 0
                for k, p in enumerate(parts):
                    if isinstance(p, ast.Slice):
                        if p.lower is None and p.upper is None and p.step is None:
                            found[axis] = self.value(length_node(node.value.id, k))
                        axis += 1
                return {k: d for k, d in found.items() if d is not None}
        return None

    # loops

    def counted(self, node):
        """for i in range(n), upwards or downwards."""
        node.iter = self.expression(node.iter)
        stored, count = stored_in(node), count_of(node)
        n = self.value(count) if count is not None else None
        start, equal, kept = self.env, self.equal, (self.loop, self.sure)
        self.env, self.equal = dict(start), dict(equal)
        for name in stored:                     # by their text these are numbers of this pass, not of the loop's start
            self.forget(name)
        index, growing = None, {}
        if n is not None:
            symbol = next(iter(n.terms), None)
            exact = symbol.exact if symbol is not None and n == of(symbol) else None
            if exact is not None:
                self.equal[symbol] = exact      # there is no pass otherwise
            index = Symbol(node.target.id, True, (exact or n).plus(Linear(-1)), n)
            self.env[node.target.id] = of(index)
            growing = grown(node)
            passes = of(index) if len(node.iter.args) == 1 else n.plus(Linear(-1)).plus(of(index), -1)
            for name, step in growing.items():
                start.setdefault(name, of(Symbol(name, name in self.least)))
                self.env[name] = start[name].plus(passes, step)
        inside = [i for s in node.body for i in walk(s)]
        innermost = index is not None and not any(isinstance(i, LEAVES) for i in inside)
        self.loop = Loop(node, index, dict(start), stored) if innermost else None
        self.sure, loop = innermost, self.loop
        node.body = self.block(node.body)
        (self.loop, self.sure), self.env, self.equal = kept, start, equal
        for name in stored:
            before = self.env.get(name)
            self.forget(name)
            if name in growing and self.not_below(n):
                self.env[name] = before.plus(n, growing[name])
        out = [ast.parse(text).body[0] for text in dict.fromkeys(loop.checks)] if loop is not None else []
        for s in out:
            s.origin = getattr(node, "origin", None)
        return [*out, node]

    # expressions

    def expression(self, node):
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            sure, self.sure = self.sure, False
            node = self.visit(node)
            self.sure = sure
            return node
        return self.visit(node)

    def visit(self, node):
        for field, inner in ast.iter_fields(node):
            if isinstance(inner, ast.expr):
                setattr(node, field, self.expression(inner))
            elif isinstance(inner, list):
                setattr(node, field, [self.expression(i) if isinstance(i, ast.expr) else i for i in inner])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "place":
            return self.place(node)
        return node

    def place(self, node):
        """The index itself, where it is certain to lie on its axis."""
        at, length = map(self.value, node.args)
        if at is None or length is None or not self.not_below(self.extreme(at, False)):
            return node
        length = self.settled(length)
        top = self.extreme(at, True)
        if top is not None and self.not_below(length.plus(top, -1).plus(Linear(-1))):
            return node.args[0]
        loop = self.loop
        if loop is None or not self.sure or any(s.count is not None for s in length.terms):
            return node
        last, c = at, at.terms.get(loop.index)
        if c:
            last = at.replaced(loop.index, loop.index.count.plus(Linear(-1)) if c > 0 else Linear(0))
        words = self.said(last, loop), self.said(length, loop)
        if None in words:
            return node
        loop.checks.append(f"reaches({ast.unparse(count_of(loop.node))}, {words[0]}, {words[1]})")
        return node.args[0]

    def said(self, form, loop):
        """A form as text at the start of a loop; None if it is not known there."""
        terms = []
        for s, c in sorted(form.terms.items(), key=lambda t: t[0].order):
            if s is loop.index or s.text is None or not self.known(s, loop):
                return None
            terms.append((c, s.text))
        terms.sort(key=lambda t: t[0] < 0)
        text = ""
        for c, name in terms:
            part = name if abs(c) == 1 else f"{abs(c)} * {name}"
            text = (f"{text} {'+' if c > 0 else '-'} {part}") if text else part if c > 0 else f"-{part}"
        if form.const or not text:
            text = f"{text} {'+' if form.const > 0 else '-'} {abs(form.const)}" if text else str(form.const)
        return text

    def known(self, symbol, loop):
        """Whether the text of a symbol means it at the start of a loop."""
        if "." not in symbol.text:
            return loop.env.get(symbol.text) == of(symbol)
        name, k = shape_entry(ast.parse(symbol.text, mode="eval").body)
        return name not in loop.stored and self.shapes.get(name, {}).get(k) == of(symbol)


# --- the text ---------------------------------------------------------------------------------------------------------

def shape_entry(node):
    """(name, axis) of name.shape[axis]."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and \
            isinstance(node.value.value, ast.Name) and isinstance(node.slice, ast.Constant):
        return node.value.value.id, node.slice.value
    return None


def length_node(name, k):
    return ast.Subscript(ast.Attribute(ast.Name(name, ast.Load()), "shape", ast.Load()), ast.Constant(k), ast.Load())


def stored_in(node):
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def count_of(node):
    """The number of passes of `for i in range(n)` or `range(n - 1, -1, -1)`."""
    if not (isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
            and isinstance(node.target, ast.Name)):
        return None
    args = node.iter.args
    if len(args) == 1:
        return args[0]
    if len(args) == 3 and ast.unparse(args[1]) == ast.unparse(args[2]) == "-1" and isinstance(args[0], ast.BinOp) and \
            isinstance(args[0].op, ast.Sub) and ast.unparse(args[0].right) == "1":
        return args[0].left
    return None


def grown(loop):
    """{name: step} of numbers that a loop's body sets once in each pass, to themselves and a constant."""
    sets = {}
    for n in walk(loop):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            sets[n.id] = sets.get(n.id, 0) + 1
    found = {}
    for s in loop.body:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and sets[s.targets[0].id] == 1 and \
                isinstance(s.value, ast.BinOp) and isinstance(s.value.op, (ast.Add, ast.Sub)) and \
                isinstance(s.value.left, ast.Name) and s.value.left.id == s.targets[0].id and \
                isinstance(s.value.right, ast.Constant) and type(s.value.right.value) is int:
            found[s.targets[0].id] = s.value.right.value if isinstance(s.value.op, ast.Add) else -s.value.right.value
    return found


def not_negative(function):
    """Names that hold only numbers of at least 0, whatever the arguments are."""
    values, other = {}, {a.arg for a in function.args.args}
    for node in walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and count_of(node) is not None:
            values.setdefault(node.target.id, []).append(ast.Constant(0))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            values.setdefault(node.target.id, []).append(ast.BinOp(node.target, node.op, node.value))
        elif isinstance(node, (ast.Assign, ast.For)):
            for t in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if not isinstance(t, ast.Subscript):
                    other |= {n.id for n in walk(t) if isinstance(n, ast.Name)}
    names = set(values) - other

    def least(node):
        if isinstance(node, ast.Constant):
            return type(node.value) is int and node.value >= 0
        if isinstance(node, ast.Name):
            return node.id in names
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            return least(node.left) and least(node.right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id == "len" or node.func.id == "place" or \
                node.func.id == "max" and any(map(least, node.args)) or \
                node.func.id in ("min", "meet") and all(map(least, node.args))
        return shape_entry(node) is not None

    while True:
        more = {n for n in names if not all(map(least, values[n]))}
        if not more:
            return names
        names -= more
