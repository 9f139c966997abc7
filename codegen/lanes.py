# SPDX-License-Identifier: Apache-2.0
"""Loops of which each pass takes its own number of steps: many passes are taken at once, side by side.

A pass that goes on until its own test says stop is a chain of steps that wait for each other: the processor's vectors
stay empty.  The passes do not wait for each other.  So what they carry from step to step is kept in short arrays, a
lane for each of 64 passes; a step is a loop over the lanes, which is vectorised, and a lane whose pass has ended takes
the next one.  No lane waits for the longest, and nothing is computed that is thrown away but for a lane's last test.
Branches become choices, as in a vector they must.

>>> tree = ast.parse('''def f(a):
...     n = a.shape[0]
...     out = np.empty((n,), np.float64)
...     for b in range(n):
...         x = a[b]
...         while True:
...             if not x * x > 2.0:
...                 break
...             x = 0.5 * x + 0.1
...         out[b] = x
...     return (out,)''')
>>> Lanes(tree.body[0], {"out"}, {"a": ("float64", 1)}).run()
>>> print(ast.unparse(tree.body[0].body[2:-1]))
x_lanes = np.empty((64,), np.float64)
on, going, at = (np.empty((64,), np.float64), np.empty((64,), np.float64), np.empty((64,), np.int64))
lanes = min(n, 64)
for l in range(lanes):
    on[l], going[l], at[l] = (1.0, 0.0, -1)
left, more, ended = (lanes, 0, 1.0)
while True:
    if ended > 0.0:
        for l in range(lanes):
            if on[l] > going[l]:
                if at[l] >= 0:
                    b = at[l]
                    x = x_lanes[l]
                    out[b] = x
                if more < n:
                    b = more
                    x = a[b]
                    x_lanes[l] = x
                    at[l] = more
                    more += 1
                else:
                    on[l] = 0.0
                    left -= 1
    if left == 0:
        break
    ended = 0.0
    for l in range(lanes):
        x = x_lanes[l]
        go = on[l] * (1.0 if x * x > 2.0 else 0.0)
        x = 0.5 * x + 0.1
        x_lanes[l] = x if go > 0.0 else x_lanes[l]
        going[l] = go
        ended += on[l] - go

Source: T. Aila, S. Laine, Understanding the efficiency of ray traversal on GPUs, 2009 (persistent threads that fetch
work when a lane is free); masks after R. Allen, K. Kennedy, C. Porterfield, J. Warren, Conversion of control dependence
to data dependence, 1983.
"""
import ast
import copy
import textwrap

from gradscribe.codegen.ascending import any_order
from gradscribe.codegen.reach import ELEMENTARY
from gradscribe.codegen.texts import is_counted, is_entry, parts_of, walk
from gradscribe.codegen.threads import Paths
from gradscribe.codegen.versions import is_made

LANES = 64                              # a multiple of what LLVM takes at once: eight vectors of eight
RARE = 6                                # times what a step costs otherwise: branches that dear are not always taken
DEAR = 10                               # operations that an elementary function counts for
DTYPES = {"float64": "float", "int64": "int", "bool_": "bool", "bool": "bool"}
HELD = {"float": "float64", "int": "int64", "bool": "float64"}          # a condition is 1.0 or 0.0


class Unfit(Exception):
    """A loop has something that is not done in lanes."""


class Lanes:
    """Works on a function's text in place.

    own: arrays that are known by one name only; arrays: the dtype's name and the rank of each parameter.
    """

    def __init__(self, function, own, arrays):
        self.function, self.own, self.arrays, self.found = function, own, arrays, None
        self.taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {
            a.arg for a in function.args.args}

    def run(self):
        body = []
        for s in self.function.body:
            try:
                body += self.in_lanes(s) if is_counted(s) else [s]
            except Unfit:
                body.append(s)
        self.function.body = body

    def in_lanes(self, loop):
        before, inner, after = parts_of_pass(loop.body)
        kinds = self.kinds()
        if not any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and kinds.get(n.id) == "float"
                   for n in walk(inner)):
            raise Unfit
        arms = [s for n in inner.body if isinstance(n, ast.If) for s in (*n.body, *n.orelse)]
        if cost(arms) > RARE * (DEAR + cost([inner]) - cost(arms)):
            raise Unfit
        reach = Paths(*loop.body)
        if reach.sets & reach.names - {n.target.id for n in walk(loop) if isinstance(n, ast.For)}:
            raise Unfit                         # a sum over the passes
        if not any_order(loop, self.own, self.function, Paths):
            raise Unfit
        new = Writer(loop, before, inner, after, kinds, self.fresh).statements()
        for s in (s for n in new for s in walk(n) if isinstance(s, ast.stmt)):
            s.origin = getattr(loop, "origin", None)
        return new

    def kinds(self):
        """Of the function as it is given: what is made of its loops stands in it only at the end."""
        if self.found is None:
            self.found = Kinds(self.function, self.arrays).kinds
        return self.found

    def fresh(self, name):
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def cost(body):
    """Of statements, all branches taken: operations."""
    nodes = [n for s in body for n in walk(s)]
    return sum(isinstance(n, (ast.BinOp, ast.Compare)) + DEAR * (isinstance(n, ast.Call) and called(n) in ELEMENTARY)
               for n in nodes)


def parts_of_pass(body):
    """What comes before the only loop of a pass, that loop, and what comes after it."""
    loops = [s for s in body if isinstance(s, (ast.While, ast.For))]
    if len(loops) != 1 or any(isinstance(n, (ast.For, ast.While)) for s in body for n in walk(s) if n not in loops):
        raise Unfit
    at = body.index(loops[0])
    for n in (n for s in body for n in walk(s)):
        if isinstance(n, (ast.Return, ast.Raise, ast.Continue, ast.Expr)) or isinstance(n, ast.stmt) and is_made(n):
            raise Unfit
    if any(isinstance(n, ast.Break) for s in (*body[:at], *body[at + 1:]) for n in walk(s)):
        raise Unfit
    if isinstance(loops[0], ast.For) and (not is_counted(loops[0]) or any(
            isinstance(n, ast.Subscript) for n in walk(loops[0]))):
        raise Unfit
    return body[:at], loops[0], body[at + 1:]


class Kinds:
    """{number: "float", "int" or "bool"}, of a whole function, since Numba gives a name one type."""

    def __init__(self, function, arrays):
        self.dtypes = {n: DTYPES.get(dtype) for n, (dtype, rank) in arrays.items() if rank}
        self.kinds = {n: DTYPES.get(dtype) for n, (dtype, rank) in arrays.items() if not rank}
        values = {}
        for n in walk(function):
            if isinstance(n, ast.Assign) and is_made(n):
                dtype = ast.unparse(n.value.args[-1]).removeprefix("np.") if len(n.value.args) > 1 else "float64"
                self.dtypes[n.targets[0].id] = DTYPES.get(dtype)
            elif isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
                values.setdefault(n.targets[0].id, []).append(n.value)
            elif isinstance(n, ast.Assign):
                for m in (m for t in n.targets if isinstance(t, ast.Tuple) for m in walk(t)):
                    if isinstance(m, ast.Name):
                        values.setdefault(m.id, []).append(None)
            elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
                values.setdefault(n.target.id, []).append(ast.BinOp(n.target, n.op, n.value))
            elif isinstance(n, ast.For) and isinstance(n.target, ast.Name):
                values.setdefault(n.target.id, []).append(ast.Constant(0))
        self.open = values.keys() - self.kinds.keys()           # not known yet: may be anything
        for _ in range(8):
            before = dict(self.kinds), set(self.open)
            for name in sorted(values):
                found = [self.of(v) for v in values[name] if v is None or not self.waits(v)]
                if found:
                    self.kinds[name] = together(found)
                    self.open.discard(name)
            if before == (self.kinds, self.open):
                break
        self.kinds = {n: k for n, k in self.kinds.items() if k is not None}

    def waits(self, node):
        """Whether a value's kind hangs on a name of which nothing is known yet."""
        return bool(self.open) and any(isinstance(n, ast.Name) and n.id in self.open for n in walk(node))

    def of(self, node):
        if isinstance(node, ast.Constant):
            return {bool: "bool", int: "int", float: "float"}.get(type(node.value))
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id)
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
                return "int"
            return self.dtypes.get(node.value.id) if isinstance(node.value, ast.Name) and is_entry(
                node, len(parts_of(node))) else None
        if isinstance(node, ast.UnaryOp):
            return "bool" if isinstance(node.op, ast.Not) else self.number(node.operand)
        if isinstance(node, ast.Compare):
            return "bool" if all(self.of(n) for n in (node.left, *node.comparators)) else None
        if isinstance(node, ast.BoolOp):
            return "bool" if all(self.of(n) == "bool" for n in node.values) else None
        if isinstance(node, ast.IfExp):
            return together([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.BinOp):
            left, right = self.number(node.left), self.number(node.right)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Div):
                return "float"
            if isinstance(node.op, ast.Pow):
                return "float" if left == "float" else None
            return together([left, right]) if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)) else None
        if isinstance(node, ast.Call) and not node.keywords:
            kinds = [self.number(a) for a in node.args]
            name = called(node)
            if name in ("abs", "min", "max"):
                return together(kinds)
            if name in ELEMENTARY and not name.endswith("32") or name in ("sqrt", "float"):
                return "float" if None not in kinds else None
            return "int" if name == "len" else None
        return None

    def number(self, node):
        kind = self.of(node)
        return "int" if kind == "bool" else kind


def together(kinds):
    found = set(kinds)
    if found == {"int", "float"}:
        return "float"
    return found.pop() if len(found) == 1 else None


def called(node):
    """The name of a function of numbers: one of Python's, of NumPy's or math's, or of runtime/vmath.py."""
    function = node.func
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) in ("np", "math"):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


class Writer:
    """Writes one loop in lanes."""

    def __init__(self, loop, before, inner, after, kinds, fresh):
        self.loop, self.before, self.after, self.kinds, self.fresh = loop, before, after, kinds, fresh
        self.index = loop.target.id
        self.outside = {n.id for n in walk(loop) if isinstance(n, ast.Name)} - stored([loop])
        self.head, self.test, self.body = self.step_of(inner)
        self.set, self.exposed, self.lines, self.masks = set(), set(), [], 0

    def step_of(self, inner):
        """The statements before a loop's test, the test, and those after it."""
        if isinstance(inner, ast.While):
            first = next((k for k, s in enumerate(inner.body) if isinstance(s, ast.If) and len(s.body) == 1
                          and isinstance(s.body[0], ast.Break) and not s.orelse), None)
            if inner.orelse or not (isinstance(inner.test, ast.Constant) and inner.test.value is True) or first is None:
                raise Unfit
            head, test, body = inner.body[:first], inner.body[first].test, inner.body[first + 1:]
            test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else \
                ast.UnaryOp(ast.Not(), test)
        else:
            if inner.target.id in stored(inner.body) | stored(self.after) | loaded(self.after):
                raise Unfit
            count, step = inner.target.id, self.fresh("steps")
            self.kinds = {**self.kinds, step: "int"}
            self.before = [*self.before, assigned(step, inner.iter.args[0]), assigned(count, ast.Constant(0))]
            head, test = [], ast.Compare(ast.Name(count, ast.Load()), [ast.Lt()], [ast.Name(step, ast.Load())])
            body = [*inner.body, assigned(count, ast.BinOp(ast.Name(count, ast.Load()), ast.Add(), ast.Constant(1)))]
        if any(isinstance(n, (ast.Break, ast.Delete)) for s in (*head, *body) for n in walk(s)):
            raise Unfit
        return head, test, body

    def statements(self):
        changed = stored([*self.before, *self.head, *self.body])
        self.number = {n: self.fresh(f"{n}_l") for n in changed if self.kinds.get(n) == "bool"}
        lane, on, going, at, go = map(self.fresh, ("l", "on", "going", "at", "go"))
        lanes, left, more, ended = map(self.fresh, ("lanes", "left", "more", "ended"))
        self.row(self.head)
        test = ast.unparse(self.mask(self.test))
        head, self.lines = self.lines, []
        self.row(self.body)
        step, read_after = self.lines, exposed_in(self.after)
        kept = sorted((self.exposed | read_after) & changed)
        if any(n not in self.kinds for n in kept) or read_after & changed - set(kept):
            raise Unfit
        arrays = {n: self.fresh(f"{n}_lanes") for n in kept}
        local = {n: self.number.get(n, n) for n in kept}
        twice = {n: self.fresh(f"{n}_before") for n in kept if n in stored(self.head) and n in stored(self.body)}
        loads = [f"{local[n]} = {arrays[n]}[{lane}]" for n in kept if n in self.exposed or n in twice]
        stores = []
        for n in kept:
            if n in stored(self.body):
                other = twice.get(n) or local[n] if n in stored(self.head) else f"{arrays[n]}[{lane}]"
                stores.append(f"{arrays[n]}[{lane}] = {local[n]} if {go} > 0.0 else {twice.get(n, other)}")
            elif n in stored(self.head):
                stores.append(f"{arrays[n]}[{lane}] = {local[n]}")
        if self.index in loaded([*self.head, *self.body, ast.Expr(self.test)]):
            loads.insert(0, f"{self.index} = {at}[{lane}]")
        n = ast.unparse(self.loop.iter.args[0])
        taken = [f"{arrays[v]}[{lane}] = " + (f"1.0 if {v} else 0.0" if v in self.number else v)
                 for v in kept if v in stored(self.before)]
        given = [f"{v} = {arrays[v]}[{lane}]" + (" > 0.0" if v in self.number else "")
                 for v in kept if v in read_after]
        made = [f"{arrays[v]} = np.empty(({LANES},), np.{HELD[self.kinds[v]]})" for v in kept]
        text = f"""
{lines(made, 0)}
{on}, {going}, {at} = np.empty(({LANES},), np.float64), np.empty(({LANES},), np.float64), np.empty(({LANES},), np.int64)
{lanes} = min({n}, {LANES})
for {lane} in range({lanes}):
    {on}[{lane}], {going}[{lane}], {at}[{lane}] = 1.0, 0.0, -1
{left}, {more}, {ended} = {lanes}, 0, 1.0
while True:
    if {ended} > 0.0:
        for {lane} in range({lanes}):
            if {on}[{lane}] > {going}[{lane}]:
                if {at}[{lane}] >= 0:
                    {self.index} = {at}[{lane}]
{lines([*given, *map(ast.unparse, self.after)], 5)}
                if {more} < {n}:
                    {self.index} = {more}
{lines([*map(ast.unparse, self.before), *taken], 5)}
                    {at}[{lane}] = {more}
                    {more} += 1
                else:
                    {on}[{lane}] = 0.0
                    {left} -= 1
    if {left} == 0:
        break
    {ended} = 0.0
    for {lane} in range({lanes}):
{lines([*loads, *head, f"{go} = {on}[{lane}] * {bracketed(test)}", *(f"{b} = {local[v]}" for v, b in twice.items()),
        *step, *stores], 2)}
        {going}[{lane}] = {go}
        {ended} += {on}[{lane}] - {go}
"""
        return ast.parse(text).body

    # a step, without branches

    def row(self, body, mask=None):
        """Statements one after the other; mask: the number that says whether they count."""
        for s in body:
            if isinstance(s, ast.Pass):
                continue
            if isinstance(s, ast.If):
                self.choice(s, mask)
                continue
            if isinstance(s, ast.AugAssign):
                s = ast.Assign([s.target], ast.BinOp(ast.Name(getattr(s.target, "id", ""), ast.Load()), s.op, s.value))
            if not isinstance(s, ast.Assign) or len(s.targets) > 1 or not isinstance(s.targets[0], ast.Name):
                raise Unfit
            name = s.targets[0].id
            if name not in self.kinds:
                raise Unfit
            value = self.mask(s.value) if name in self.number else self.value(s.value, mask)
            local = self.number.get(name, name)
            if mask is None:
                self.lines.append(f"{local} = {ast.unparse(value)}")
                self.set.add(name)
            else:
                self.read(name)
                self.lines.append(f"{local} = {bracketed(ast.unparse(value))} if {mask} > 0.0 else {local}")

    def choice(self, node, mask):
        """Both arms, each with a mask of its own."""
        self.masks += 1
        then, other = self.fresh(f"then_{self.masks}"), self.fresh(f"else_{self.masks}")
        test = ast.unparse(self.mask(node.test, mask))
        self.lines.append(f"{then} = {f'{mask} * {bracketed(test)}' if mask else test}")
        if node.orelse:
            self.lines.append(f"{other} = {mask or '1.0'} - {then}")
        self.row(node.body, then)
        self.row(node.orelse, other)

    def read(self, name):
        if name not in self.set:
            self.exposed.add(name)

    def value(self, node, mask=None):
        """A number, without branches between what is computed."""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node
        if isinstance(node, ast.Name):
            self.read(node.id)
            if node.id not in self.kinds or node.id in self.number:
                raise Unfit
            return node
        if isinstance(node, ast.Subscript):
            constant = all(isinstance(p, ast.Name) and (p.id == self.index or p.id in self.outside)
                           for p in parts_of(node))
            if mask is not None or not constant or not isinstance(node.value, ast.Name):
                raise Unfit                     # what is read where nothing was to be read may lie outside
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return ast.UnaryOp(node.op, self.value(node.operand, mask))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            return ast.BinOp(self.value(node.left, mask), node.op, self.value(node.right, mask))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, exponent = self.value(node.left, mask), self.value(node.right, mask)
            if isinstance(exponent, ast.Constant) and exponent.value in (2, 3, 4) and type(exponent.value) is int:
                return ast.BinOp(base, node.op, exponent)
            return ast.Call(ast.Name("power", ast.Load()), [floating(base), floating(exponent)], [])
        if isinstance(node, ast.IfExp):
            test = ast.Compare(self.mask(node.test, mask), [ast.Gt()], [ast.Constant(0.0)])
            return ast.IfExp(test, self.value(node.body, mask), self.value(node.orelse, mask))
        if isinstance(node, ast.Call) and not node.keywords:
            name, args = called(node), [self.value(a, mask) for a in node.args]
            if name in ("abs", "min", "max", "float"):
                return ast.Call(ast.Name(name, ast.Load()), args, [])
            if name == "sqrt":
                return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "sqrt", ast.Load()), args, [])
            if name in ELEMENTARY and not name.endswith("32"):
                return ast.Call(ast.Name(name, ast.Load()), [floating(a) for a in args], [])
        raise Unfit

    def mask(self, node, under=None):
        """A condition as 1.0 or 0.0."""
        if isinstance(node, ast.Constant) and type(node.value) is bool:
            return ast.Constant(float(node.value))
        if isinstance(node, ast.Name) and self.kinds.get(node.id) == "bool":
            self.read(node.id)
            return ast.Name(self.number[node.id], ast.Load()) if node.id in self.number else as_mask(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ast.BinOp(ast.Constant(1.0), ast.Sub(), self.mask(node.operand, under))
        if isinstance(node, ast.BoolOp):
            found = [self.mask(v, under) for v in node.values]
            if isinstance(node.op, ast.And):
                return product(found)
            one = ast.Constant(1.0)
            return ast.BinOp(one, ast.Sub(), product([ast.BinOp(one, ast.Sub(), m) for m in found]))
        if isinstance(node, ast.Compare):
            sides = [self.value(n, under) for n in (node.left, *node.comparators)]
            return product([as_mask(ast.Compare(a, [op], [b])) for a, op, b in zip(sides, node.ops, sides[1:])])
        raise Unfit


# --- text -------------------------------------------------------------------------------------------------------------

def as_mask(test):
    return ast.IfExp(test, ast.Constant(1.0), ast.Constant(0.0))


def product(factors):
    whole = factors[0]
    for f in factors[1:]:
        whole = ast.BinOp(whole, ast.Mult(), f)
    return whole


def floating(node):
    """An argument as a number in double precision."""
    if isinstance(node, ast.Constant):
        return ast.Constant(float(node.value))
    return ast.Call(ast.Name("float", ast.Load()), [node], [])


def bracketed(text):
    return text if text.isidentifier() else f"({text})"


def assigned(name, value):
    return ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value), lineno=0)


def lines(statements, level):
    return textwrap.indent("\n".join(statements) or "pass", "    " * level)


def stored(body):
    return {n.id for s in body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def loaded(body):
    return {n.id for s in body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def exposed_in(body):
    """Names that statements read before they certainly set them."""
    return Paths(*body).names if body else set()
