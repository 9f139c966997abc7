# SPDX-License-Identifier: Apache-2.0
"""Loops of which each pass takes its own number of steps: many passes are taken at once, in the lanes of vectors.

A pass that goes on until its own test says stop is a chain of steps that wait for each other: the processor's vectors
stay empty.  The passes do not wait for each other.  So what they carry from step to step is kept in short arrays, a
lane for each of 64 passes; a step is a loop over the lanes, which is vectorised, and a lane whose pass has ended takes
the next one.  No lane waits for the longest, and nothing is computed that is thrown away but for a lane's last test.
Branches become choices, as in a vector they must.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
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
>>> function = from_tree(tree.body[0], {"a": ("float64", 1)})
>>> in_lanes(function)
>>> print(ast.unparse(to_tree(function).body[2:-1]))
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
import functools

from gradscribe.codegen.llvm_inline import STRAIGHT
from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.dependence import any_order, indices_in
from gradscribe.codegen.loops.analysis.effects import ELEMENTARY, Effects
from gradscribe.codegen.loops.form import (
    MINUS_ONE,
    Alloc,
    Attribute,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Do,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Name,
    Nothing,
    Op,
    Raise,
    Return,
    Select,
    Store,
    Type,
    Unpack,
    Update,
    While,
    all_names,
    copied,
    expressions,
    names_in,
    names_read,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.shapes import is_counted
from gradscribe.codegen.loops.types import inferred

LANES = 64                              # a multiple of what LLVM takes at once: eight vectors of eight
RARE = 6                                # times what a step costs otherwise: branches that dear are not always taken
STEP = 10 * costs.MACHINE.operation     # of a loop that ends when it ends, beside what its statements take
KINDS = {"float64": "float", "int64": "int", "bool": "bool"}
HELD = {"float": "float64", "int": "int64", "bool": "float64"}          # a condition is 1.0 or 0.0
ZERO, ONE, NONE, MANY = Const(0.0), Const(1.0), Const(0), Const(LANES)
TRUE = Const(True)


class Unfit(Exception):
    """A loop has something that is not done in lanes."""


def in_lanes(function: Function) -> None:
    """Changes the outermost loops of a function in place."""
    lanes = _Lanes(function)
    block: list = []
    for s in function.block:
        try:
            block += lanes.of(s) if is_counted(s) else [s]
        except Unfit:
            block.append(s)
    function.block = block


class _Lanes:
    def __init__(self, function):
        self.function = function
        self.taken = all_names(function)

    @functools.cached_property
    def own(self):
        return Arrays(self.function).own

    @functools.cached_property
    def kinds(self):
        """{number: "float", "int" or "bool"}, as the function was given: its lanes stand in it only at the end."""
        types = inferred(self.function, {p: self.function.types[p] for p in self.function.params})
        return {n: KINDS[t.dtype] for n, t in types.items() if t.rank == 0 and t.dtype in KINDS}

    def of(self, loop):
        before, inner, after = parts_of_pass(loop.block)
        if not any(self.kinds.get(n) == "float" for n in set_in([inner])):
            raise Unfit
        arms = [i for s in inner.block if isinstance(s, If) for i in (*s.block, *s.orelse)]
        if costs.of_pass(arms) > RARE * (STEP + costs.of_pass([inner]) - costs.of_pass(arms)):
            raise Unfit
        effects = Effects(loop.block, branches=True)
        if effects.sets & effects.names - indices_in(loop):
            raise Unfit                         # a sum over the passes
        if not any_order(loop, self.own, self.function, True):
            raise Unfit
        writer = Writer(loop, (before, inner, after), self.kinds, self.fresh)
        new = writer.statements()
        for s in statements(new):
            s.origin = loop.origin
        self.function.types.update(writer.types)
        return new

    def fresh(self, name):
        return unused(name, self.taken)


def parts_of_pass(block):
    """What comes before the only loop of a pass, that loop, and what comes after it."""
    loops, every = [s for s in block if isinstance(s, (While, For))], list(statements(block))
    if len(loops) != 1 or sum(isinstance(s, (For, While)) for s in every) > 1 or any(
            isinstance(s, (Return, Raise, Continue, Do, Alloc)) for s in every):
        raise Unfit
    at, loop = block.index(loops[0]), loops[0]
    if any(isinstance(s, Break) for s in statements([*block[:at], *block[at + 1:]])):
        raise Unfit
    if isinstance(loop, For) and (not is_counted(loop) or any(
            isinstance(n, (Load, Length)) for s in statements([loop]) for e in expressions(s)
            for n in walk(e))):
        raise Unfit
    return block[:at], loop, block[at + 1:]


def called(e: Call):
    """The name of a function of numbers: one of Python's, of NumPy's or math's, or of runtime/vmath.py."""
    head, _, name = e.function.rpartition(".")
    return name if head in ("", "np", "math") else None


class Writer:
    """Writes one loop in lanes.

    kinds: of the numbers; types: of the names that are new; outside: names that the loop does not set; number: {a
    condition: the name of the number that it is in a step}; set, exposed: names that a step has set, and that it reads
    before; lines: the statements of a step so far.
    """

    def __init__(self, loop, parts, kinds, fresh):
        self.loop, self.kinds, self.fresh, self.types = loop, kinds, fresh, {}
        self.before, inner, self.after = parts
        self.index = loop.index
        self.outside = names_read([loop]) - set_in([loop])
        self.head, self.test, self.body = self.step_of(inner)
        self.set, self.exposed, self.lines, self.masks = set(), set(), [], 0

    def step_of(self, inner):
        """The statements before a loop's test, the test, and those after it."""
        if isinstance(inner, While):
            first = next((k for k, s in enumerate(inner.block) if isinstance(s, If) and len(s.block) == 1
                          and isinstance(s.block[0], Break) and not s.orelse), None)
            if inner.test != TRUE or first is None:
                raise Unfit
            head, test, body = inner.block[:first], inner.block[first].test, inner.block[first + 1:]
            test = test.args[0] if isinstance(test, Op) and test.op == "not" else Op("not", (test,))
        else:
            if inner.index in set_in(inner.block) | set_in(self.after) | names_read(self.after):
                raise Unfit
            count, step = Name(inner.index), Name(self.named("steps", "int64"))
            self.kinds = {**self.kinds, step.id: "int"}
            self.before = [*self.before, Let(step.id, inner.range[0]), Let(count.id, NONE)]
            head, test = [], Compare(("<",), (count, step))
            body = [*inner.block, Let(count.id, Op("+", (count, Const(1))))]
        if any(isinstance(s, Break) for s in statements([*head, *body])):
            raise Unfit
        return head, test, body

    def named(self, name, dtype, rank=0):
        """A new name, of a type."""
        new = self.fresh(name)
        self.types[new] = Type(dtype, rank)
        return new

    def statements(self):
        head_sets, body_sets = set_in(self.head), set_in(self.body)
        changed = set_in(self.before) | head_sets | body_sets
        self.number = {n: self.named(f"{n}_l", "float64") for n in sorted(changed)
                       if self.kinds.get(n) == "bool"}
        lane = Name(self.named("l", "int64"))
        on, going = (Name(self.named(n, "float64", 1)) for n in ("on", "going"))
        at = Name(self.named("at", "int64", 1))
        go = Name(self.named("go", "float64"))
        lanes, left, more = (Name(self.named(n, "int64")) for n in ("lanes", "left", "more"))
        ended = Name(self.named("ended", "float64"))

        def of(array):
            return Load(array, (lane,))

        self.row(self.head)
        test = self.mask(self.test)
        head, self.lines = self.lines, []
        self.row(self.body)
        step = self.lines
        read_after = Effects(self.after, branches=True).names if self.after else set()
        kept = sorted((self.exposed | read_after) & changed)
        if any(n not in self.kinds for n in kept) or read_after & changed - set(kept):
            raise Unfit
        arrays = {n: Name(self.named(f"{n}_lanes", HELD[self.kinds[n]], 1)) for n in kept}
        local = {n: Name(self.number.get(n, n)) for n in kept}
        twice = {n: Name(self.named(f"{n}_before", HELD[self.kinds[n]])) for n in kept
                 if n in head_sets and n in body_sets}
        loads = [Let(local[n].id, of(arrays[n])) for n in kept if n in self.exposed or n in twice]
        goes, stores = Compare((">",), (go, ZERO)), []
        for n in kept:
            if n in body_sets:
                other = twice.get(n) or (local[n] if n in head_sets else of(arrays[n]))
                stores.append(Store(of(arrays[n]), Select(goes, local[n], other)))
            elif n in head_sets:
                stores.append(Store(of(arrays[n]), local[n]))
        if self.index in names_read([*self.head, *self.body]) | names_in(self.test):
            loads.insert(0, Let(self.index, of(at)))
        n = self.loop.range[0]
        taken = [Store(of(arrays[v]), as_mask(Name(v)) if v in self.number else Name(v))
                 for v in kept if v in set_in(self.before)]
        given = [Let(v, Compare((">",), (of(arrays[v]), ZERO)) if v in self.number else of(arrays[v]))
                 for v in kept if v in read_after]
        made = [Alloc(arrays[v].id, "empty", (MANY,), (Attribute(Name("np"), HELD[self.kinds[v]]),)) for v in kept]
        refill = If(Compare((">",), (of(on), of(going))), [
            If(Compare((">=",), (of(at), NONE)), [Let(self.index, of(at)), *given, *map(copied, self.after)], []),
            If(Compare(("<",), (more, n)), [
                Let(self.index, more), *map(copied, self.before), *taken, Store(of(at), more),
                Update(more.id, "+", Const(1))],
               [Store(of(on), ZERO), Update(left.id, "-", Const(1))])], [])
        return [
            *made,
            Unpack(Items((on, going, at)), Items((empty("float64"), empty("float64"), empty("int64")))),
            Let(lanes.id, Call("min", (n, MANY))),
            For(lane.id, (lanes,), [Unpack(Items((of(on), of(going), of(at))), Items((ONE, ZERO, MINUS_ONE)))]),
            Unpack(Items((left, more, ended)), Items((lanes, NONE, ONE))),
            While(TRUE, [
                If(Compare((">",), (ended, ZERO)), [For(lane.id, (lanes,), [refill])], []),
                If(Compare(("==",), (left, NONE)), [Break()], []),
                Let(ended.id, ZERO),
                For(lane.id, (lanes,), [
                    *loads, *head, Let(go.id, Op("*", (of(on), test))),
                    *(Let(b.id, local[v]) for v, b in twice.items()), *step, *stores, Store(of(going), go),
                    Update(ended.id, "+", Op("-", (of(on), go)))])])]

    # a step, without branches

    def row(self, block, mask=None):
        """Statements one after the other; mask: the number that says whether they count."""
        for s in block:
            if isinstance(s, Nothing):
                continue
            if isinstance(s, If):
                self.choice(s, mask)
                continue
            if not isinstance(s, (Let, Update)) or s.name not in self.kinds:
                raise Unfit
            given = Op(s.op, (Name(s.name), s.value)) if isinstance(s, Update) else s.value
            value = self.mask(given) if s.name in self.number else self.value(given, mask)
            local = self.number.get(s.name, s.name)
            if mask is None:
                self.lines.append(Let(local, value))
                self.set.add(s.name)
            else:
                self.read(s.name)
                self.lines.append(Let(local, Select(Compare((">",), (mask, ZERO)), value, Name(local))))

    def choice(self, s, mask):
        """Both arms, each with a mask of its own."""
        self.masks += 1
        then = Name(self.named(f"then_{self.masks}", "float64"))
        other = Name(self.named(f"else_{self.masks}", "float64"))
        test = self.mask(s.test, mask)
        self.lines.append(Let(then.id, Op("*", (mask, test)) if mask else test))
        if s.orelse:
            self.lines.append(Let(other.id, Op("-", (mask or ONE, then))))
        self.row(s.block, then)
        self.row(s.orelse, other)

    def read(self, name):
        if name not in self.set:
            self.exposed.add(name)

    def value(self, e, mask=None):
        """A number, without branches between what is computed."""
        if isinstance(e, Const) and type(e.value) in (int, float):
            return e
        if isinstance(e, Name):
            self.read(e.id)
            if e.id not in self.kinds or e.id in self.number:
                raise Unfit
            return e
        if isinstance(e, Load):
            constant = all(isinstance(p, Name) and (p.id == self.index or p.id in self.outside) for p in e.index)
            if mask is not None or not constant or not isinstance(e.array, Name):
                raise Unfit                     # what is read where nothing was to be read may lie outside
            return e
        if isinstance(e, Op) and e.op in ("neg", "pos", "+", "-", "*", "/"):
            return Op(e.op, tuple([self.value(a, mask) for a in e.args]))
        if isinstance(e, Op) and e.op == "**":
            base, exponent = (self.value(a, mask) for a in e.args)
            if isinstance(exponent, Const) and exponent.value in (2, 3, 4) and type(exponent.value) is int:
                return Op("**", (base, exponent))
            return Call("power", (floating(base), floating(exponent)))
        if isinstance(e, Select):
            test = Compare((">",), (self.mask(e.test, mask), ZERO))
            return Select(test, self.value(e.then, mask), self.value(e.orelse, mask))
        if isinstance(e, Call) and not e.keywords:
            name, args = called(e), tuple([self.value(a, mask) for a in e.args])
            if name in ("abs", "min", "max", "float"):
                return Call(name, args)
            if name == "sqrt":
                return Call("np.sqrt", args)
            if name in ELEMENTARY and STRAIGHT[name][2] == "float64":
                return Call(name, tuple(map(floating, args)))
        raise Unfit

    def mask(self, e, under=None):
        """A condition as 1.0 or 0.0."""
        if isinstance(e, Const) and type(e.value) is bool:
            return Const(float(e.value))
        if isinstance(e, Name) and self.kinds.get(e.id) == "bool":
            self.read(e.id)
            return Name(self.number[e.id]) if e.id in self.number else as_mask(e)
        if isinstance(e, Op) and e.op == "not":
            return Op("-", (ONE, self.mask(e.args[0], under)))
        if isinstance(e, Logic):
            found = [self.mask(v, under) for v in e.items]
            return product(found) if e.op == "and" else Op("-", (ONE, product([Op("-", (ONE, m)) for m in found])))
        if isinstance(e, Compare):
            sides = [self.value(n, under) for n in e.items]
            return product([as_mask(Compare((op,), (a, b))) for a, op, b in zip(sides, e.ops, sides[1:])])
        raise Unfit


def empty(dtype):
    return Call("np.empty", (Items((MANY,)), Attribute(Name("np"), dtype)))


def as_mask(test):
    return Select(test, ONE, ZERO)


def product(factors):
    return functools.reduce(lambda a, b: Op("*", (a, b)), factors)


def floating(e):
    """An argument as a number in double precision."""
    return Const(float(e.value)) if isinstance(e, Const) else Call("float", (e,))
