# SPDX-License-Identifier: Apache-2.0
"""Elimination and hoisting of bounds checks.

Lowering writes `place(i, n)` wherever an index might be out of bounds; such a call prevents vectorisation.  Here an
index is a linear form of lengths, loop indices and numbers known at the start of a loop, and its extremes follow from
the ranges of the loops.  If both extremes are within the axis, the call is removed.  If the smallest is, and the
largest is known at the start of a loop that evaluates it in each pass, one check before the loop replaces it.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, w):
...     n = x.shape[0]
...     m = w.shape[0]
...     s = 0.0
...     for i in range(n):
...         s = s + x[place(i, n)] * w[place(i, m)]
...     return (s,)''')
>>> function = from_tree(tree.body[0], {})
>>> without_checks(function)
>>> print(ast.unparse(to_tree(function)))
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
from typing import Any, NamedTuple

from gradscribe.codegen.loops.analysis.ranges import Linear, Symbol, least_length, not_negative, of
from gradscribe.codegen.loops.form import (
    MINUS_ONE,
    ONE,
    Alloc,
    Assert,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Do,
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Logic,
    Method,
    Name,
    Op,
    Raise,
    Return,
    Select,
    Slice,
    Store,
    Unpack,
    Update,
    While,
    blocks,
    change,
    rebuilt,
    set_by,
    set_in,
    statements,
)


def without_checks(function: Function) -> None:
    """Changes a function in place."""
    _Bounds(function).run()


class Loop(NamedTuple):
    """The current loop, if all its passes run to their end: the env at its start, the names that it sets, and the
    checks to put before it.
    """
    node: For
    index: Symbol  # type: ignore[assignment]  # tuple.index
    env: dict
    stored: set
    checks: list


class _Bounds:
    """An abstract interpretation over linear forms.  env: {name: its form}; shapes: {array: {axis: form}}; equal:
    {symbol: the form that a check has shown it to be}; loop: the loop around, if its passes run to their end; sure:
    whether the current expression is evaluated in each of them.
    """

    def __init__(self, function):
        self.function, self.env, self.shapes = function, {}, {}
        self.loop: Any = None
        self.sure, self.equal = False, {}
        self.least, self.set_again = not_negative(function), set_in(function.block)

    def least_of(self, name):
        return 0 if name in self.least else None

    def run(self):
        for p in self.function.params:
            self.env[p] = of(Symbol(Name(p), self.least_of(p)))
        self.function.block = self.block(self.function.block)

    # values

    def value(self, e):
        """The linear form of an integer expression; None if it has none."""
        if isinstance(e, Const):
            return Linear(e.value) if type(e.value) is int else None
        if isinstance(e, Name):
            return self.env.get(e.id)
        if isinstance(e, Op):
            found = list(map(self.value, e.args))
            if None in found:
                return None
            if e.op == "neg":
                return found[0].times(-1)
            if e.op in ("+", "-"):
                return found[0].plus(found[1], 1 if e.op == "+" else -1)
            if e.op == "*" and not (found[0].terms and found[1].terms):
                left, right = found
                return left.times(right.const) if not right.terms else right.times(left.const)
            return None
        if isinstance(e, Length):
            known = self.shapes.setdefault(e.array, {})
            if e.axis not in known:
                known[e.axis] = of(Symbol(e, 0 if e.array in self.set_again else least_length(e, self.function)))
            return self.settled(known[e.axis])
        return None

    def settled(self, form):
        """A form with symbols replaced by the forms that they are known to equal."""
        for _ in range(20):
            symbol = next((s for s in form.terms if s in self.equal), None)
            if symbol is None:
                return form
            form = form.replaced(symbol, self.equal[symbol])
        return form

    def set_equal(self, left, right):
        """Record that a check has found two lengths equal."""
        if left is None or right is None:
            return
        gap = self.settled(left).plus(self.settled(right), -1)
        for s in sorted(gap.terms, key=lambda s: -s.order):
            if gap.terms[s] in (1, -1) and s.count is None:
                rest = Linear(gap.const, {t: c for t, c in gap.terms.items() if t is not s})
                self.equal[s] = rest.times(-gap.terms[s])
                return

    def extreme(self, form, largest):
        """The largest or smallest value over all passes of the loops, a form without loop indices."""
        form = self.settled(form)
        for _ in range(50):
            inner = max((s for s in form.terms if s.count is not None), key=lambda s: s.order, default=None)
            if inner is None:
                return form
            high = (form.terms[inner] > 0) == largest
            form = self.settled(form.replaced(inner, inner.top if high else Linear(0)))
        return None

    def not_below(self, form):
        """Whether a form is certainly at least 0."""
        if form is None:
            return False
        form = self.settled(form)
        return form.not_below()

    # statements

    def block(self, block):
        out = []
        for s in block:
            out += self.statement(s) or [s]
        return out

    def statement(self, s):
        """Interpret a statement; return the statements that replace it, or None to keep it."""
        if isinstance(s, For):
            return self.counted(s)
        if isinstance(s, If):
            self.branches(s)
        elif isinstance(s, While):
            self.repeated(s)
        elif isinstance(s, Do) and isinstance(s.value, Call) and s.value.function == "same":
            self.set_equal(*map(self.value, s.value.args))
        elif isinstance(s, (Let, Alloc)):
            change(s, self.expression)
            self.assign(s)
        elif isinstance(s, Store):
            s.value = self.expression(s.value)
            s.entry = self.expression(s.entry)
        elif isinstance(s, (Update, Unpack)):
            s.value = self.expression(s.value)
            for name in set_by(s):
                self.forget(name)
        elif isinstance(s, (Do, Return)):
            change(s, self.expression)
        return None

    def branches(self, s):
        s.test = self.expression(s.test)
        env, shapes, equal = self.env, self.shapes, self.equal
        sure, self.sure = self.sure, False
        ends = []
        for arm in ("block", "orelse"):
            self.env, self.shapes, self.equal = dict(env), dict(shapes), dict(equal)
            setattr(s, arm, self.block(getattr(s, arm)))
            ends.append(self.env)
        self.sure, self.env, self.shapes, self.equal = sure, env, shapes, equal
        for name in set_in([s]):
            self.forget(name)
            if name in ends[0] and ends[0][name] == ends[1].get(name):
                self.env[name] = ends[0][name]
        if len(s.block) == 1 and isinstance(s.block[0], Raise) and not s.orelse:
            for test in s.test.items if isinstance(s.test, Logic) and s.test.op == "or" else [s.test]:
                if isinstance(test, Compare) and test.ops[0] == "!=":
                    self.set_equal(self.value(test.items[0]), self.value(test.items[1]))

    def repeated(self, s):
        for name in set_in([s]):
            self.forget(name)
        kept = self.loop, self.sure, self.equal     # the loop may have no pass that checks
        self.loop, self.sure, self.equal = None, False, dict(self.equal)
        s.test = self.expression(s.test)
        s.block = self.block(s.block)
        self.loop, self.sure, self.equal = kept
        for name in set_in([s]):
            self.forget(name)

    def assign(self, s):
        name = s.name
        form, shapes, exact = None, None, None
        if isinstance(s, Alloc):
            shapes = known_only({k: self.value(d) for k, d in enumerate(s.shape)})
        else:
            form, shapes, exact = self.value(s.value), self.shape_of(s.value), self.distance(s.value)
        self.forget(name)
        if form is not None:
            self.env[name] = form
            if len(form.terms) == 1 and not form.const:
                (symbol, c), = form.terms.items()
                if c == 1 and isinstance(symbol.said, Length):
                    symbol.said = Name(name)
        elif exact is not None:
            symbol = Symbol(Name(name), 0)
            symbol.exact = exact
            self.env[name] = of(symbol)
        if shapes is not None:
            self.shapes[name] = shapes

    def forget(self, name):
        self.env[name] = of(Symbol(Name(name), self.least_of(name)))
        self.shapes.pop(name, None)

    def distance(self, e):
        """The form of len(range(a, b)) where it is not 0: b - a, or a - b if it counts down."""
        if not (isinstance(e, Call) and e.function == "len" and isinstance(e.args[0], Call)
                and e.args[0].function == "range"):
            return None
        args = e.args[0].args
        step = 1 if len(args) < 3 else {ONE: 1, MINUS_ONE: -1}.get(args[2])
        if step is None:
            return None
        first, last = (Linear(0), self.value(args[0])) if len(args) == 1 else map(self.value, args[:2])
        return last.plus(first, -1).times(step) if first is not None and last is not None else None

    def shape_of(self, e):
        """The lengths of an array, as far as the expression shows them."""
        if isinstance(e, Name):
            return self.shapes.setdefault(e.id, {})
        if not isinstance(e, Load) or not isinstance(e.array, Name) or not all(
                isinstance(p, (Slice, Name, Call, Method)) or isinstance(p, Const) and type(p.value) is int or
                isinstance(p, Op) and len(p.args) == 2 for p in e.index):
            return None
        axes = [k for k, p in enumerate(e.index) if isinstance(p, Slice)]
        return known_only({axis: self.value(Length(e.array.id, k)) for axis, k in enumerate(axes)
                           if e.index[k] == WHOLE})

    # loops

    def counted(self, s):
        """for i in range(n), upwards or downwards."""
        change(s, self.expression)
        stored, count = set_in([s]), s.count
        n = self.value(count) if count is not None else None
        start, equal, kept = self.env, self.equal, (self.loop, self.sure)
        self.env, self.equal = dict(start), dict(equal)
        for name in stored:             # in the loop these names have the values of a pass
            self.forget(name)
        index, growing = None, {}
        if n is not None:
            symbol = next(iter(n.terms), None)
            exact = symbol.exact if symbol is not None and n == of(symbol) else None
            if exact is not None:
                self.equal[symbol] = exact      # as there is a pass
            index = Symbol(Name(s.index), 0, (exact or n).plus(Linear(-1)), n)
            self.env[s.index] = of(index)
            growing = grown(s)
            passes = of(index) if not s.downward else n.plus(Linear(-1)).plus(of(index), -1)
            for name, step in growing.items():
                start.setdefault(name, of(Symbol(Name(name), self.least_of(name))))
                self.env[name] = start[name].plus(passes, step)
        whole = index is not None and runs_whole(s.block)
        self.loop = Loop(s, index, dict(start), stored, []) if whole else None
        self.sure, loop = whole, self.loop
        s.block = self.block(s.block)
        (self.loop, self.sure), self.env, self.equal = kept, start, equal
        for name in stored:
            before = self.env.get(name)
            self.forget(name)
            if name in growing and self.not_below(n):
                self.env[name] = before.plus(n, growing[name])
        checks = [Do(check, s.origin) for check in dict.fromkeys(loop.checks)] if loop is not None else []
        return [*checks, s]

    # expressions

    def expression(self, e):
        if isinstance(e, (Select, Logic)):
            sure, self.sure = self.sure, False
            e = rebuilt(e, self.expression)
            self.sure = sure
            return e
        e = rebuilt(e, self.expression)
        return self.place(e) if isinstance(e, Call) and e.function == "place" else e

    def place(self, e):
        """The index itself, if it is certainly within its axis or a check before the loop ensures that."""
        at, length = map(self.value, e.args)
        if at is None or length is None or not self.not_below(self.extreme(at, False)):
            return e
        length = self.settled(length)
        top = self.extreme(at, True)
        if top is not None and self.not_below(length.plus(top, -1).plus(Linear(-1))):
            return e.args[0]
        loop = self.loop
        if loop is None or not self.sure or any(s.count is not None for s in length.terms):
            return e
        last, c = at, at.terms.get(loop.index)
        if c:
            last = at.replaced(loop.index, loop.index.count.plus(Linear(-1)) if c > 0 else Linear(0))
        words = self.said(last, loop), self.said(length, loop)
        if None in words:
            return e
        loop.checks.append(Call("reaches", (loop.node.count, *words)))
        return e.args[0]

    def said(self, form, loop):
        """A form as an expression at the start of a loop; None if it is not known there."""
        terms = sorted(form.terms.items(), key=lambda t: t[0].order)
        if any(s is loop.index or s.said is None or not self.known(s, loop) for s, _ in terms):
            return None
        out = None
        for s, c in sorted(terms, key=lambda t: t[1] < 0):
            part = s.said if abs(c) == 1 else Op("*", (Const(abs(c)), s.said))
            if out is not None:
                out = Op("+" if c > 0 else "-", (out, part))
            elif c > 0:
                out = part
            else:
                out = Op("neg", (s.said,)) if c == -1 else Op("*", (Op("neg", (Const(-c),)), s.said))
        if out is None:
            return Const(form.const) if form.const >= 0 else Op("neg", (Const(-form.const),))
        return Op("+" if form.const > 0 else "-", (out, Const(abs(form.const)))) if form.const else out

    def known(self, symbol, loop):
        """Whether the name or length of a symbol has its value at the start of a loop."""
        if isinstance(symbol.said, Name):
            return loop.env.get(symbol.said.id) == of(symbol)
        array, axis = symbol.said.array, symbol.said.axis
        return array not in loop.stored and self.shapes.get(array, {}).get(axis) == of(symbol)


WHOLE = Slice(None, None, None)


def known_only(found):
    return {k: d for k, d in found.items() if d is not None}


def runs_whole(block: list, inside: bool = False) -> bool:
    """Whether nothing in a loop's block leaves the pass or raises a user's error; inside: in an inner loop."""
    for s in block:
        if isinstance(s, (Return, Raise, Assert)) or isinstance(s, (Break, Continue)) and not inside:
            return False
        deeper = inside or isinstance(s, (For, While))
        if not all(runs_whole(b, deeper) for b in blocks(s)):
            return False
    return True


# --- induction variables ----------------------------------------------------------------------------------------------

def grown(loop: For) -> dict:
    """{name: step} of induction variables: numbers that each pass sets once, to themselves plus a constant."""
    sets: dict = {}
    for s in statements([loop]):
        for name in set_by(s):
            sets[name] = sets.get(name, 0) + 1
    found = {}
    for s in loop.block:
        if isinstance(s, Let) and sets[s.name] == 1 and isinstance(s.value, Op) and s.value.op in ("+", "-"):
            left, right = s.value.args
            if left == Name(s.name) and isinstance(right, Const) and type(right.value) is int:
                found[s.name] = right.value if s.value.op == "+" else -right.value
    return found
