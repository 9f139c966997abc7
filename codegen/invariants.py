# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion: what every pass of a loop computes alike is computed once, before it.

>>> tree = ast.parse('''def f(p, x):
...     n = x.shape[0]
...     out = np.empty((n,), np.float64)
...     for i in range(n):
...         out[i] = np.sin(np.exp(p[0])) * x[i]
...     return (out,)''')
>>> Invariants(tree.body[0], {"out"}, {"p", "x", "out"}).run()
>>> print(ast.unparse(tree))
def f(p, x):
    n = x.shape[0]
    out = np.empty((n,), np.float64)
    alike_1 = np.sin(np.exp(p[0]))
    for i in range(n):
        out[i] = alike_1 * x[i]
    return (out,)

LLVM moves such code as well, but not out of a loop that writes into an array which may be the one that is read; and its
vectoriser takes time that doubles with every operation on a number that is the same in all lanes.  So where a call of a
function of runtime/vmath.py has to stay in a loop whose passes give it one and the same number, it stays a call.

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.5 (loop-invariant expressions).
"""
import ast
import functools

from gradscribe.codegen.reach import ELEMENTARY, PURE, Paths
from gradscribe.codegen.straight import ELEMENTARY as WRITTEN_OUT
from gradscribe.codegen.straight import called_apart
from gradscribe.codegen.texts import (
    CASTS,
    block_of,
    children,
    is_double,
    is_single,
    names_in,
    parents_of,
    parts_of,
    replace,
    walk,
)

UNROLLED = 8                            # LLVM writes loops of so few passes out


class Invariants:
    """Works on a function's text in place; own: arrays that are known by one name only."""

    def __init__(self, function, own, doubles, singles=frozenset()):
        self.function, self.own, self.doubles, self.singles = function, own, doubles, singles
        self.parents, self.names, self.count = parents_of(function), names_in(function), 0

    def run(self):
        for loop in reversed([n for n in walk(self.function) if isinstance(n, ast.For)]):       # inner ones first
            if isinstance(loop.target, ast.Name) and not loop.orelse and isinstance(loop.iter, ast.Call) and \
                    ast.unparse(loop.iter.func) == "range":
                self.loop(loop)

    def loop(self, loop):
        reach = Paths(*loop.body)
        nodes = [n for s in loop.body for n in walk(s)]
        self.set = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {loop.target.id}
        apart = reach.known and reach.writes.keys() <= self.own
        self.may_be_read = (lambda name: name not in reach.writes and (apart or name in self.own)) if reach.known else (
            lambda name: False)
        left = any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in nodes)
        moved = []
        for s in list(loop.body):
            if isinstance(s, (ast.For, ast.While, ast.If)) or left:
                continue
            if self.whole(s, loop):
                loop.body.remove(s)
                s.value = self.guarded(s.value, loop)
                self.set.discard(s.targets[0].id)
                moved.append(s)
            elif isinstance(s, (ast.Assign, ast.AugAssign)):
                for holder, value in self.alike(s, s.value):
                    name = ast.Name(self.fresh(), ast.Store())
                    new = ast.Assign([name], self.guarded(value, loop))
                    new.origin = getattr(s, "origin", None)
                    replace(holder, value, ast.Name(name.id, ast.Load()))
                    moved.append(ast.fix_missing_locations(ast.copy_location(new, s)))
                    (self.doubles if is_double(value, self.doubles) else self.singles).add(name.id)
        if not moved:
            return
        if not loop.body:
            loop.body.append(ast.copy_location(ast.Pass(), loop))
        block = block_of(loop, self.parents)
        at = block.index(loop)
        block[at:at] = moved
        self.parents, self.names = parents_of(self.function), names_in(self.function)

    def whole(self, s, loop):
        """A statement that gives a name its only value, the same in every pass, which nothing reads outside."""
        if not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name) or not self.fixed(s.value) or not \
                self.is_number(s.value):
            return False
        name, before = s.targets[0].id, loop.body[:loop.body.index(s)]
        uses = self.names[name]
        inside = {n for statement in loop.body for n in walk(statement)}
        return sum(isinstance(n.ctx, ast.Store) for n in uses) == 1 and all(n in inside for n in uses) and not any(
            isinstance(n, ast.Name) and n.id == name for part in (*before, s.value) for n in walk(part))

    def alike(self, holder, node):
        """The largest parts that call an elementary function and are the same in every pass, with what holds them."""
        if self.fixed(node) and self.is_number(node):
            if any(is_elementary(n) for n in walk(node)):
                yield holder, node
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Tuple)):
            for inner in children(node):
                if isinstance(inner, ast.expr):
                    yield from self.alike(node, inner)

    def is_number(self, node):
        return is_double(node, self.doubles) or is_single(node, self.singles)

    def fixed(self, node):
        """An expression of numbers that raises nothing, changes nothing, and reads what the loop leaves alone."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id not in self.set
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute):
                return node.value.attr == "shape" and self.fixed(node.value.value)
            return isinstance(node.value, ast.Name) and node.value.id not in self.set and self.may_be_read(
                node.value.id) and all(self.fixed(p) and not isinstance(p, ast.Tuple) for p in parts_of(node))
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name) and node.value.id in ("np", "math")
        if isinstance(node, ast.Call):
            return not node.keywords and (is_elementary(node) or is_plain(node)) and all(map(self.fixed, node.args))
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, (ast.FloorDiv, ast.Mod)) and self.fixed(node.left) and self.fixed(node.right)
        return isinstance(node, (ast.UnaryOp, ast.Compare, ast.IfExp)) and all(
            self.fixed(n) for n in children(node))

    def guarded(self, value, loop):
        """A value that may be computed where the loop makes no pass: an entry may not be there then."""
        sure = all(isinstance(p, ast.Constant) for n in walk(value) if isinstance(n, ast.Subscript) and isinstance(
            n.value, ast.Name) for p in parts_of(n))
        counts = loop.iter.args
        if sure or len(counts) == 1 and isinstance(counts[0], ast.Constant) and counts[0].value > 0:
            return value
        first, last = counts[:2] if len(counts) > 1 else (ast.Constant(0), counts[0])
        down = len(counts) == 3 and (not isinstance(counts[2], ast.Constant) or counts[2].value < 0)
        test = ast.Compare(first, [ast.Gt() if down else ast.Lt()], [last])
        zero = ast.Constant(0.0) if is_double(value, self.doubles) else ast.parse("np.float32(0.0)", mode="eval").body
        return ast.IfExp(test, value, zero)

    def fresh(self):
        while True:
            self.count += 1
            if f"alike_{self.count}" not in self.names:
                return f"alike_{self.count}"


def is_elementary(node):
    """A call of an elementary function: that of NumPy or Python, or the one that is written out."""
    if not isinstance(node, ast.Call):
        return False
    f = node.func
    if isinstance(f, ast.Attribute):
        return ast.unparse(f.value) in ("np", "math") and f.attr in ELEMENTARY
    return isinstance(f, ast.Name) and f.id in ELEMENTARY


def is_plain(node):
    f = node.func
    if isinstance(f, ast.Attribute):
        return ast.unparse(f.value) in ("np", "math") and f.attr in CASTS | {"sqrt", "abs", "fabs"}
    return isinstance(f, ast.Name) and f.id in PURE and f.id not in ("complex", "int")


# --- calls that stay calls --------------------------------------------------------------------------------------------

def mark_uniform(function):
    """Renames calls of what is written out where no lane of a vectorised loop would give another number.

    >>> tree = ast.parse('''def f(p, x):
    ...     for i in range(x.shape[0]):
    ...         x[i] = sin(p[0]) + sin(x[i])''')
    >>> mark_uniform(tree.body[0])
    >>> print(ast.unparse(tree))
    def f(p, x):
        for i in range(x.shape[0]):
            x[i] = apart_sin_(p[0]) + sin(x[i])
    """
    calls = [n for n in walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and
             n.func.id in WRITTEN_OUT]
    if not calls:
        return
    parents, varying = parents_of(function), functools.cache(varies)
    for call in calls:
        names = {n.id for a in call.args for n in walk(a) if isinstance(n, ast.Name)}
        node, inner = call, set()
        while node in parents:
            node = parents[node]
            if isinstance(node, ast.While):
                break
            if not isinstance(node, ast.For):
                continue
            if not names & (varying(node) - inner):
                call.func.id = f"apart_{call.func.id}_"
                break
            if not few(node):
                break
            inner.add(node.target.id)


def few(loop):
    """Whether a loop is written out by LLVM, so that the one around may be vectorised."""
    ends = loop.iter.args if isinstance(loop.iter, ast.Call) else [None]
    return isinstance(loop.target, ast.Name) and all(isinstance(e, ast.Constant) for e in ends) and \
        len(range(*[e.value for e in ends])) <= UNROLLED


def varies(loop):
    """Names of numbers that are not the same in every pass."""
    found = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    reach = Paths(*loop.body)
    found |= reach.sets & reach.names
    while True:
        before = len(found)
        for s in walk(loop):
            if isinstance(s, ast.Assign):
                targets, sources = s.targets, [s.value]
            elif isinstance(s, ast.AugAssign):
                targets, sources = [s.target], [s.value, s.target]
            elif isinstance(s, ast.For) and s is not loop:
                targets, sources = [s.target], [s.iter] if few(s) else []
                if not few(s):
                    found |= {n.id for n in walk(s.target) if isinstance(n, ast.Name)}
            elif isinstance(s, (ast.If, ast.While)):
                targets = [n for inner in (*s.body, *s.orelse) for n in walk(inner) if isinstance(n, ast.Name) and
                           isinstance(n.ctx, ast.Store)]
                sources = [s.test]
            else:
                continue
            if any(isinstance(n, ast.Name) and n.id in found for v in sources for n in walk(v)):
                found |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name) and
                          isinstance(n.ctx, ast.Store)}
        if len(found) == before:
            return found


@functools.cache
def apart_functions():
    """The calls that stay calls, for Numba, by name."""
    return {f"apart_{name}_": called_apart(name, *about) for name, about in WRITTEN_OUT.items()}
