# SPDX-License-Identifier: Apache-2.0
"""Range analysis: whole numbers as linear forms of lengths, loop indices and other numbers, and their lower bounds.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of
>>> block = block_of('''n = x.shape[0]
... for i in range(n):
...     t = i + 1
...     s = x[:t]''')
>>> ranges, s = Ranges(Function("f", ["x"], {}, block)), block[1].block[1]
>>> ranges.at_least(Op("-", (Name("n"), Name("t"))), 0, s), ranges.at_least(Op("-", (Name("t"), Const(2))), 0, s)
(True, False)

Source: W. Harrison, Compiler analysis of the value ranges for variables, 1977; P. Feautrier, Parametric integer
programming, 1988 (extremes of linear forms over loops).
"""
import itertools
from typing import Any

from gradscribe.codegen.loops.form import (
    MINUS_ONE,
    ONE,
    UNKNOWN,
    Alloc,
    Call,
    Const,
    Do,
    Expr,
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Name,
    Op,
    Statement,
    Update,
    blocks,
    holders,
    read_by,
    set_by,
    set_in,
    statements,
    stored_by,
    walk,
)
from gradscribe.codegen.loops.shapes import around


class Linear:
    """A linear form: const plus the sum of coefficients times symbols, {symbol: coefficient}."""

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

    def not_below(self) -> bool:
        """Whether it is at least 0 for all values of its symbols."""
        return all(c > 0 and s.least is not None for s, c in self.terms.items()) and \
            self.const + sum(c * s.least for s, c in self.terms.items()) >= 0

    def __eq__(self, other):
        return isinstance(other, Linear) and self.const == other.const and self.terms == other.terms

    __hash__: Any = None


class Symbol:
    """An unknown integer.

    said: the name or length that has it; least: a lower bound, None if unknown; top, count: of a loop's index, its
    largest value and the number of passes; exact: its value wherever there is a pass.
    """

    __slots__ = ("count", "exact", "least", "order", "said", "top")
    _order = itertools.count()

    def __init__(self, said=None, least=None, top=None, count=None):
        self.said, self.least, self.top, self.count, self.exact = said, least, top, count, None
        self.order = next(self._order)


def of(symbol: Symbol) -> Linear:
    return Linear(0, {symbol: 1})


class Ranges:
    """What is known of whole numbers at a statement, from names that are set once, before it, in a block around it."""

    def __init__(self, function: Function):
        self.function, self.above, self.least = function, holders(function), not_negative(function)
        self.sets: dict = {}
        for s in statements(function.block):
            for name in set_by(s):
                self.sets.setdefault(name, []).append(s)
        self.order = {s: k for k, s in enumerate(statements(function.block))}
        self.symbols: dict = {}
        self.values: dict = {}          # {name: the form of its value}
        self._lengths: dict | None = None
        self.proved: dict = {}          # {(form, symbols that may be replaced, statement): whether it is at least 0}
        self.chosen: dict = {}          # {symbol: (whether it is a minimum, the forms of its operands)}
        self.quotients: dict = {}       # {symbol: (the form of the dividend, the divisor)}

    def at_least(self, e: Expr, least: int, s: Statement) -> bool:
        """Whether an expression is certainly at least a number at a statement."""
        form = self.form(e, s)
        return form is not None and self._not_below(form.plus(Linear(-least)), 8, s)

    @property
    def lengths(self) -> dict:
        """{symbol: [(form with it, statement)]} of statements that raise if a form is below 0: allocations and checks
        that a number is a length.
        """
        if self._lengths is None:
            self._lengths = {}          # set before it is complete: making forms reads it
            for s in self.order:
                for e in s.shape if isinstance(s, Alloc) else s.value.args if is_length_check(s) else ():
                    form = self.form(e, s)
                    if form is not None and not form.not_below():
                        for symbol in form.terms:
                            self._lengths.setdefault(symbol, []).append((form, s))
        return self._lengths

    def more_than_a_length(self, form, s):
        """Whether a form is at least a multiple of a length that an earlier statement has found not negative."""
        return any(c // length.terms[symbol] > 0 and self.passed(other, s) and form.plus(
            length, -(c // length.terms[symbol])).not_below()
            for symbol, c in form.terms.items() for length, other in self.lengths.get(symbol, ()))

    def passed(self, other, s):
        """Whether `other` has certainly run before `s` in this pass of the loops around (dominance)."""
        holder, path = self.above.get(other), [s, *around(s, self.above)]
        if self.order[other] >= self.order[s] or holder is not None and holder not in path:
            return False
        if not isinstance(holder, If):
            return True
        inside = path[path.index(holder) - 1]       # in the same arm, or in the other one
        return any(other in block and inside in block for block in blocks(holder))

    def equal(self, a: Expr, b: Expr, s: Statement) -> bool:
        """Whether two expressions are certainly equal at a statement."""
        forms = self.form(a, s), self.form(b, s)
        return a == b or None not in forms and forms[0] == forms[1]

    def _not_below(self, form, depth, s):
        """Whether a form is certainly at least 0 at a statement; memoised."""
        asked = form.const, frozenset(form.terms.items()), depth, s
        if asked not in self.proved:
            self.proved[asked] = self._is_not_below(form, depth, s)
        return self.proved[asked]

    def _is_not_below(self, form, depth, s):
        """The same; of a minimum or maximum from its operands, of a quotient from its dividend."""
        low = self.lowest(form)
        if low is not None and (low.not_below() or self.more_than_a_length(low, s)):
            return True
        for symbol, c in form.terms.items():
            if symbol in self.quotients and depth:
                # d * symbol is between of - d + 1 and of, and symbol at least k where of is at least d * k
                of, d = self.quotients[symbol]
                rest = form.plus(Linear(0, {symbol: c}), -1)
                if c > 0 and not rest.terms:
                    least = of.plus(Linear(d * (rest.const // c)))
                else:
                    least = rest.times(d).plus(of, c).plus(Linear(min(0, c * (1 - d))))
                if self._not_below(least, depth - 1, s):
                    return True
            if symbol in self.chosen and depth:
                smallest, given = self.chosen[symbol]
                of_each = all if (c > 0) == smallest else any
                if of_each(self._not_below(form.replaced(symbol, other), depth - 1, s) for other in given):
                    return True
        return False

    def passes(self, loop):
        """The number of passes of a loop, valid in its body: len(range(a, b)) is b - a there, since it is not 0."""
        count, sets = loop.count, self.sets.get(getattr(loop.count, "id", None), [])
        if len(sets) == 1 and isinstance(sets[0], Let) and sets[0].name not in self.function.params:
            value = sets[0].value
            if isinstance(value, Call) and value.function == "len" and isinstance(value.args[0], Call) and \
                    value.args[0].function == "range" and self.order[sets[0]] < self.order[loop]:
                first, *rest = value.args[0].args
                ends = (Const(0), first) if not rest else (first, rest[0])
                step = {ONE: 1, MINUS_ONE: -1}.get(rest[1]) if len(rest) > 1 else 1
                forms = [self.form(e, sets[0]) for e in ends]
                if step and None not in forms:
                    return forms[1].plus(forms[0], -1).times(step)
        return self.form(count, loop)

    def has_a_pass(self, loop) -> bool:
        """Whether a loop certainly has a pass."""
        passes = self.passes(loop)
        return passes is not None and self._not_below(passes.plus(Linear(-1)), 8, loop)

    def lowest(self, form):
        """The smallest value over the passes of the loops around, without their indices; None if too many."""
        for _ in range(20):
            inner = max((x for x in form.terms if x.count is not None), key=lambda x: x.order, default=None)
            if inner is None:
                return form
            form = form.replaced(inner, Linear(0) if form.terms[inner] > 0 else inner.top)
        return None

    def form(self, e, s):
        """The linear form of an expression at a statement; None if it has none."""
        if isinstance(e, Const):
            return Linear(e.value) if type(e.value) is int else None
        if isinstance(e, Name):
            return self.of_name(e.id, s)
        if isinstance(e, Length):
            least = least_length(e, self.function)
            return of(self.symbol(e, least) if self.fixed(e.array, s) else Symbol(e, 0))
        if isinstance(e, Call) and e.function in ("min", "max"):
            given = [self.form(a, s) for a in e.args]
            if None in given:
                return None
            key = e.function, *[(f.const, tuple(sorted((x.order, c) for x, c in f.terms.items()))) for f in given]
            symbol = self.symbol(key, None)
            self.chosen[symbol] = e.function == "min", given
            return of(symbol)
        if not isinstance(e, Op) or e.op not in ("+", "-", "*", "//", "neg"):
            return None
        found = [self.form(a, s) for a in e.args]
        if e.op == "//":
            return self.quotient(*found, s)
        if None in found:
            return None
        if e.op == "neg":
            return found[0].times(-1)
        left, right = found
        if e.op == "*":
            return None if left.terms and right.terms else left.times(right.const) if not right.terms else right.times(
                left.const)
        return left.plus(right, 1 if e.op == "+" else -1)

    def quotient(self, form, divisor, s):
        """The form of a floor division by a positive literal; None for another divisor."""
        if None in (form, divisor) or divisor.terms or divisor.const < 1:
            return None
        d = divisor.const
        whole = Linear(form.const // d, {x: c // d for x, c in form.terms.items()})
        rest = form.plus(whole, -d)
        if not rest.terms:
            return whole
        key = "//", d, form.const, tuple(sorted((x.order, c) for x, c in form.terms.items()))
        symbol = self.symbol(key, 0 if self._not_below(form, 8, s) else None)
        self.quotients[symbol] = form, d
        return of(symbol)

    def symbol(self, said, least, top=None, count=None):
        if said not in self.symbols:
            self.symbols[said] = Symbol(said, least, top, count)
        return self.symbols[said]

    def of_name(self, name, s):
        """The form of a name: the index of a loop around, or the value of the only statement that sets it, if that has
        certainly run in this pass of the loops around.
        """
        sets = self.sets.get(name, [])
        loop = next((a for a in around(s, self.above) if isinstance(a, For) and a.index == name), None)
        if loop is not None and loop.count is not None and name not in set_in(loop.block):
            count = self.passes(loop)
            return of(self.symbol(loop, 0, count and count.plus(Linear(-1)), count))
        if len(sets) == 1 and name not in self.function.params and isinstance(sets[0], Let) and \
                self.fixed(name, s):
            if name not in self.values:
                whole = self.function.types.get(name, UNKNOWN).dtype in ("int64", None)
                self.values[name] = self.form(sets[0].value, sets[0]) if whole else None
            if self.values[name] is not None:
                return self.values[name]
        # a name that is set again gets a new symbol at each use
        least = 0 if name in self.least else None
        return of(self.symbol(Name(name), least) if self.fixed(name, s) else Symbol(Name(name), least))

    def fixed(self, name, s):
        """Whether a name has one value, at most one in each pass of the loops around, and has it at `s`."""
        sets = self.sets.get(name, [])
        if name in self.function.params or not sets:
            return not sets
        return len(sets) == 1 and self.passed(sets[0], s)


def is_length_check(s: Statement) -> bool:
    return isinstance(s, Do) and isinstance(s.value, Call) and s.value.function == "is_length"


def least_length(e: Length, function: Function) -> int:
    """The lower bound of a length of an array whose name is not set again."""
    return 1 if e.array in function.filled else 0


def natural(function: Function) -> frozenset:
    """Names of numbers that are never negative, from the ranges where they are set."""
    ranges, found = Ranges(function), not_negative(function)
    for name, sets in ranges.sets.items():
        if name not in found and name not in function.params and len(sets) == 1 and isinstance(
                sets[0], Let) and isinstance(sets[0].value, Op) and ranges.at_least(sets[0].value, 0, sets[0]):
            found.add(name)
    return frozenset(found)


def natural_places(function: Function) -> dict:
    """{id: expression} of computed indices that are never negative; indices are not shared expressions."""
    ranges = Ranges(function)
    return {id(part): part for s in statements(function.block) for whole in (*read_by(s), *stored_by(s))
            for e in walk(whole) if isinstance(e, Load) for part in e.index
            if isinstance(part, Op) and ranges.at_least(part, 0, s)}


def not_negative(function: Function) -> set:
    """Names that hold only numbers of at least 0, for all arguments."""
    values: dict = {}
    other = set(function.params)
    for s in statements(function.block):
        if isinstance(s, Let):
            values.setdefault(s.name, []).append(s.value)
        elif isinstance(s, For) and s.count is not None:
            values.setdefault(s.index, []).append(Const(0))
        elif isinstance(s, Update):
            values.setdefault(s.name, []).append(Op(s.op, (Name(s.name), s.value)))
        else:
            other |= {*set_by(s)}
    names = set(values) - other

    def least(e):
        if isinstance(e, Const):
            return type(e.value) is int and e.value >= 0
        if isinstance(e, Name):
            return e.id in names
        if isinstance(e, Op) and e.op in ("+", "*"):
            return all(map(least, e.args))
        if isinstance(e, Call):
            return e.function in ("len", "place") or e.function == "max" and any(map(least, e.args)) or \
                e.function in ("min", "meet") and all(map(least, e.args))
        return isinstance(e, Length)

    while True:
        more = {n for n in names if not all(map(least, values[n]))}
        if not more:
            return names
        names -= more
