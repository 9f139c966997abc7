# SPDX-License-Identifier: Apache-2.0
"""Vectorisation of loops whose passes take different numbers of steps: 64 passes run at once, one in each lane.

The steps of a pass that iterates until its own test stops it depend on each other, so they cannot be vectorised; the
passes do not.  So the numbers carried from step to step are kept in short arrays with a lane for each of 64 passes.  A
step is a loop over the lanes, which is vectorised; a lane whose pass has ended takes the next pass.  No lane waits for
the longest pass, and only the last test of a lane is computed in vain.  Branches become selections (if-conversion).

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
from typing import Any, NamedTuple

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

LANES = 64                              # eight vectors of eight numbers
RARE = 6                                # branches that cost so many times the rest of a step are rarely all taken
STEP = 10 * costs.MACHINE.operation     # the overhead of a step of a while loop
KINDS = {"float64": "float", "int64": "int", "bool": "bool"}
HELD = {"float": "float64", "int": "int64", "bool": "float64"}          # a condition is 1.0 or 0.0
ZERO, ONE, NONE, MANY = Const(0.0), Const(1.0), Const(0), Const(LANES)
TRUE = Const(True)


class Unfit(Exception):
    """A loop has something that this pass does not support in lanes."""


def in_lanes(function: Function) -> None:
    """Change the outermost loops of a function in place."""
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
        """{number: "float", "int" or "bool"}, of the function before any loop has changed."""
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
    """The statements before the only loop of a pass, that loop, and the statements after it."""
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


class Variables(NamedTuple):
    """The names that all loops in lanes have.

    lane: the number of a lane; on, going: arrays of 1.0 and 0.0: whether a lane has a pass, and whether this goes on;
    at: the array of the indices of these passes; go: `going` of the lane in this step; lanes: how many there are; left:
    how many of them have a pass; more: the index of the next pass; ended: how many stopped in the last step.
    """
    lane: Name
    on: Name
    going: Name
    at: Name
    go: Name
    lanes: Name
    left: Name
    more: Name
    ended: Name

    def of(self, array):
        """The entry of the lane."""
        return Load(array, (self.lane,))


class Parts(NamedTuple):
    """A pass: the statements before its inner loop, before and after the loop's test, and after the loop."""
    before: list
    head: list
    test: Any
    body: list
    after: list


class Writer:
    """Writes one loop in lanes.

    kinds: those of the numbers; types: those of new names; outside: names that the loop does not set; number: {boolean:
    the name of its mask in a step}; set: names that a step has set so far; exposed: names that it reads before it sets
    them; lines: the statements of a step so far.
    """

    def __init__(self, loop, parts, kinds, fresh):
        self.loop, self.kinds, self.fresh, self.types = loop, kinds, fresh, {}
        self.index = loop.index
        self.outside = names_read([loop]) - set_in([loop])
        self.parts = self.parts_with_step(*parts)
        self.set, self.exposed, self.lines, self.masks = set(), set(), [], 0

    def parts_with_step(self, before, inner, after):
        """The Parts of a pass, with the inner loop as steps."""
        if isinstance(inner, While):
            first = next((k for k, s in enumerate(inner.block) if isinstance(s, If) and len(s.block) == 1
                          and isinstance(s.block[0], Break) and not s.orelse), None)
            if inner.test != TRUE or first is None:
                raise Unfit
            head, test, body = inner.block[:first], inner.block[first].test, inner.block[first + 1:]
            test = test.args[0] if isinstance(test, Op) and test.op == "not" else Op("not", (test,))
        else:
            if inner.index in set_in(inner.block) | set_in(after) | names_read(after):
                raise Unfit
            count, step = Name(inner.index), Name(self.named("steps", "int64"))
            self.kinds = {**self.kinds, step.id: "int"}
            before = [*before, Let(step.id, inner.range[0]), Let(count.id, NONE)]
            head, test = [], Compare(("<",), (count, step))
            body = [*inner.block, Let(count.id, Op("+", (count, Const(1))))]
        if any(isinstance(s, Break) for s in statements([*head, *body])):
            raise Unfit
        return Parts(before, head, test, body, after)

    def named(self, name, dtype, rank=0):
        """A new name of a given type."""
        new = self.fresh(name)
        self.types[new] = Type(dtype, rank)
        return new

    def statements(self):
        """The statements in the place of the loop."""
        changed = set_in(self.parts.before) | set_in(self.parts.head) | set_in(self.parts.body)
        self.number = {n: self.named(f"{n}_l", "float64") for n in sorted(changed)
                       if self.kinds.get(n) == "bool"}
        v = self.variables()
        self.row(self.parts.head)
        test = self.mask(self.parts.test)
        head, self.lines = self.lines, []
        self.row(self.parts.body)
        read_after = Effects(self.parts.after, branches=True).names if self.parts.after else set()
        kept = sorted((self.exposed | read_after) & changed)
        if any(n not in self.kinds for n in kept) or read_after & changed - set(kept):
            raise Unfit
        arrays = {n: Name(self.named(f"{n}_lanes", HELD[self.kinds[n]], 1)) for n in kept}
        step = self.step(v, arrays, head, test, self.lines)
        made = [Alloc(arrays[n].id, "empty", (MANY,), (Attribute(Name("np"), HELD[self.kinds[n]]),)) for n in kept]
        return [
            *made,
            Unpack(Items((v.on, v.going, v.at)), Items((empty("float64"), empty("float64"), empty("int64")))),
            Let(v.lanes.id, Call("min", (self.loop.range[0], MANY))),
            For(v.lane.id, (v.lanes,), [
                Unpack(Items((v.of(v.on), v.of(v.going), v.of(v.at))), Items((ONE, ZERO, MINUS_ONE)))]),
            Unpack(Items((v.left, v.more, v.ended)), Items((v.lanes, NONE, ONE))),
            While(TRUE, [
                If(Compare((">",), (v.ended, ZERO)), [
                    For(v.lane.id, (v.lanes,), [self.refill(v, arrays, read_after)])], []),
                If(Compare(("==",), (v.left, NONE)), [Break()], []),
                Let(v.ended.id, ZERO),
                For(v.lane.id, (v.lanes,), step)])]

    def variables(self):
        lane = Name(self.named("l", "int64"))
        on, going = (Name(self.named(n, "float64", 1)) for n in ("on", "going"))
        at = Name(self.named("at", "int64", 1))
        go = Name(self.named("go", "float64"))
        lanes, left, more = (Name(self.named(n, "int64")) for n in ("lanes", "left", "more"))
        return Variables(lane, on, going, at, go, lanes, left, more, Name(self.named("ended", "float64")))

    def step(self, v, arrays, head, test, body):
        """A step of all lanes; arrays: {number that lanes keep: its array}; head, body: before and after the test."""
        head_sets, body_sets = set_in(self.parts.head), set_in(self.parts.body)
        local = {n: Name(self.number.get(n, n)) for n in arrays}
        twice = {n: Name(self.named(f"{n}_before", HELD[self.kinds[n]])) for n in arrays
                 if n in head_sets and n in body_sets}
        loads = [Let(local[n].id, v.of(arrays[n])) for n in arrays if n in self.exposed or n in twice]
        goes, stores = Compare((">",), (v.go, ZERO)), []
        for n in arrays:
            if n in body_sets:
                other = twice.get(n) or (local[n] if n in head_sets else v.of(arrays[n]))
                stores.append(Store(v.of(arrays[n]), Select(goes, local[n], other)))
            elif n in head_sets:
                stores.append(Store(v.of(arrays[n]), local[n]))
        if self.index in names_read([*self.parts.head, *self.parts.body]) | names_in(self.parts.test):
            loads.insert(0, Let(self.index, v.of(v.at)))
        return [*loads, *head, Let(v.go.id, Op("*", (v.of(v.on), test))),
                *(Let(b.id, local[n]) for n, b in twice.items()), *body, *stores, Store(v.of(v.going), v.go),
                Update(v.ended.id, "+", Op("-", (v.of(v.on), v.go)))]

    def refill(self, v, arrays, read_after):
        """End the pass of a lane that has stopped, and start the next pass in it, if any is left."""
        taken = [Store(v.of(arrays[n]), as_mask(Name(n)) if n in self.number else Name(n))
                 for n in arrays if n in set_in(self.parts.before)]
        given = [Let(n, Compare((">",), (v.of(arrays[n]), ZERO)) if n in self.number else v.of(arrays[n]))
                 for n in arrays if n in read_after]
        return If(Compare((">",), (v.of(v.on), v.of(v.going))), [
            If(Compare((">=",), (v.of(v.at), NONE)), [
                Let(self.index, v.of(v.at)), *given, *map(copied, self.parts.after)], []),
            If(Compare(("<",), (v.more, self.loop.range[0])), [
                Let(self.index, v.more), *map(copied, self.parts.before), *taken, Store(v.of(v.at), v.more),
                Update(v.more.id, "+", Const(1))],
               [Store(v.of(v.on), ZERO), Update(v.left.id, "-", Const(1))])], [])

    # a step, without branches

    def row(self, block, mask=None):
        """Write statements; mask: the number that is 1.0 in lanes where they take effect."""
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
        """Write both arms, each under its own mask."""
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
        """The expression of a number in a lane, without branches."""
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
                raise Unfit                     # an entry read under a mask may be out of bounds
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
        """The expression of a condition in a lane, as 1.0 or 0.0."""
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
    """An argument in double precision."""
    return Const(float(e.value)) if isinstance(e, Const) else Call("float", (e,))
