# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on which a decision depends gives NumPy's result to the last bit.

Fast mathematics rounds differently: a product and a sum become one operation, a quotient a product with the reciprocal.
A stored number may then differ in its last bit.  A comparison of such a number may come out the other way where NumPy
finds a tie, and so change a mask, a branch or the number of passes of a loop.  So the operations that reach a
comparison, a test, a rounding or an order (a backward slice over names) are `exact`: their instructions carry no flags.
The slice stops at sums over the passes of a loop: their order is free, as it differs from one build of NumPy to the
next.  Powers and elementary functions are not NumPy's to the last bit either.

Only such sums may be reassociated: they are `summed`, and carry the flags for that.  Elsewhere `(x + h) - x` is not
simplified to `h`, and a compensated sum keeps its compensation.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, a, n):
...     m = a * n
...     t = m / 3.0
...     s = 0.0
...     for i in range(x.shape[0]):
...         y = x[i] * a + 1.0
...         if x[i] * 2.0 < t:
...             s += y * a
...     return (s,)''')
>>> function = from_tree(tree.body[0], {})
>>> mark_decisions(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, a, n):
    m = exact_mul_(a, n)
    t = exact_truediv_(m, 3.0)
    s = 0.0
    for i in range(x.shape[0]):
        y = x[i] * a + 1.0
        if exact_mul_(x[i], 2.0) < t:
            s = summed_add_(s, y * a)
    return (s,)

Source: M. Weiser, Program Slicing, 1984.
"""
from typing import Any, NamedTuple

from gradscribe.codegen.llvm_inline import in_single
from gradscribe.codegen.loops import form
from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.analysis.effects import ELEMENTARY
from gradscribe.codegen.loops.form import (
    EXACT,
    SUMMED,
    Alloc,
    Call,
    Compare,
    Const,
    For,
    Function,
    Items,
    Let,
    Load,
    Logic,
    Name,
    Op,
    Select,
    Store,
    Unpack,
    Update,
    expressions,
    holders,
    names_in,
    read_by,
    set_by,
    set_in,
    statements,
    stored_by,
    walk,
)
from gradscribe.codegen.loops.shapes import CASTS, around

ROUNDED = {"//", "%", ">>"}             # operations that round, and so decide
KEPT = {"+", "-", "*", "/", "neg"} | ROUNDED            # operations that fast mathematics rounds differently
SUMS = {"+", "-", "*"}
# functions of numbers whose result is continuous; that of any other may jump
SMOOTH = ELEMENTARY - {"arctan2", in_single("arctan2")} | {n for n in CASTS if n.startswith(("float", "complex"))} | {
    "float", "complex", "abs", "square", "sqrt", "conj", "sinc", "squared_size", "complex_quotient", "real_quotient",
    "complex_size"}
FREE = {"dot"}                          # sums whose order is free: the slice stops at them
WHOLE = {"range", "len", "int", "place", "meet"}


def mark_decisions(function: Function) -> None:
    """Mark operations in place: `exact` where a decision depends on them, `summed` in sums over passes."""
    for s in statements(function.block):        # no expression is shared: marks are kept by id
        form.change(s, form.unshared)
    found = _Slice(function)
    found.run()
    for s in statements(function.block):
        form.change(s, found.marked)
        if isinstance(s, (Update, Store)) and s.op is not None:
            s.op = found.mark_of(s) + s.op


class _Slice:
    """defined: {name: the values and the statements that set it or its entries}; holder: {id of an expression: the
    statement whose value or target it is}; exact, summed: ids of operations.
    """

    def __init__(self, function):
        self.function, self.above = function, holders(function)
        self.every = list(statements(function.block))
        self.defined, self.seen, self.waiting, self.holder = {}, set(), [], {}
        self.exact, self.summed = set(), set()
        self.stored = {t.array.id for s in self.every for t in stored_by(s) if isinstance(t.array, Name)}
        for s in self.every:
            for e in (getattr(s, "value", None), getattr(s, "entry", None), getattr(s, "targets", None)):
                if e is not None and isinstance(s, (Let, Store, Update, Unpack)):
                    self.holder[id(e)] = s
            self.define(s)
        self.whole = self.whole_names()

    def run(self):
        for s in self.every:
            if isinstance(s, For):
                self.waiting += s.range
            elif isinstance(s, Alloc):
                self.waiting += [*s.shape, *s.rest]
            elif isinstance(s, (form.If, form.While)):
                self.waiting.append(s.test)
            for e in expressions(s):
                for part in walk(e):
                    self.site(part)
            if isinstance(s, (Update, Store)) and s.op in ROUNDED:
                self.exact_if(s, not self.is_whole(s))
                self.waiting += [target_of(s), s.value]
            if isinstance(s, (Let, Update, Store)) and self.is_sum(s) and not self.of_threads(s):
                self.summed.update(map(id, added(s).operations))
        while self.waiting:
            self.needed(self.waiting.pop())

    def mark_of(self, e):
        return EXACT if id(e) in self.exact else SUMMED if id(e) in self.summed else ""

    def marked(self, e):
        mark = self.mark_of(e)
        new = form.rebuilt(e, self.marked)
        return Op(mark + e.op, new.args) if mark and isinstance(e, Op) else new

    # what sets a name

    def define(self, s):
        if isinstance(s, Let):
            self.set(Name(s.name), s.value)
        elif isinstance(s, (Alloc, For, Update)):
            self.defined.setdefault(set_by(s)[0], []).append(s)
        elif isinstance(s, Store):
            self.set(s.entry, s.value if s.op is None else s)
        elif isinstance(s, Unpack):
            self.set(s.targets, s.value)
        for e in read_by(s):
            for part in walk(e):
                if isinstance(part, form.Method) and isinstance(part.owner, Name):      # a list's append
                    for a in part.args:
                        self.set(part.owner, a)

    def set(self, target, value):
        if isinstance(target, Items):
            alike = isinstance(value, Items) and len(value.items) == len(target.items)
            for t, v in zip(target.items, value.items if alike else [value] * len(target.items)):
                self.set(t, v)
            return
        root = root_of(target)
        if root is None:
            return
        self.defined.setdefault(root, []).append(value)
        base = root_of(value) if isinstance(target, Name) and target.id in self.stored else None
        if base:
            self.defined.setdefault(base, []).append(target)    # reads through one alias see writes through the other

    def whole_names(self):
        """Names of whole numbers, whose arithmetic is exact anyway."""
        found = set(self.defined) - self.stored
        while True:
            wrong = {n for n in found if not all(self.is_whole(v, found) for v in self.defined[n])}
            if not wrong:
                return found
            found -= wrong

    def is_whole(self, e, names=None):
        """Whether an expression, or the value that a statement stores, is a whole number: an index or a count."""
        names = self.whole if names is None else names
        if isinstance(e, Const):
            return type(e.value) in (int, bool)
        if isinstance(e, Name):
            return e.id in names
        if isinstance(e, form.Attribute):
            return e.name in ("shape", "size")
        if isinstance(e, Load):
            return isinstance(e.array, form.Attribute) and e.array.name == "shape"
        if isinstance(e, Call):
            name = last_of(e)
            return name in WHOLE or name in CASTS and "int" in name
        if isinstance(e, Op):
            return e.op != "/" and all(self.is_whole(a, names) for a in e.args)
        if isinstance(e, (Update, Store)):
            return e.op != "/" and self.is_whole(e.value, names)
        if isinstance(e, Select):
            return self.is_whole(e.then, names) and self.is_whole(e.orelse, names)
        return isinstance(e, (Compare, Logic, form.Length, For))

    # decisions

    def site(self, e):
        """Put what an expression decides by on the worklist."""
        if isinstance(e, (Compare, Logic)):
            self.waiting += e.items
        elif isinstance(e, Select):
            self.waiting.append(e.test)
        elif isinstance(e, Op):
            if e.op == "not" or e.op in ROUNDED:
                self.exact_if(e, e.op in ROUNDED and not self.is_whole(e))
                self.waiting += e.args
        elif isinstance(e, Call) and decides(e):
            self.waiting += e.args

    def exact_if(self, e, holds):
        if holds:
            self.exact.add(id(e))

    def needed(self, e):
        """Make an operation that a decision reads exact, and put what it is computed from on the worklist."""
        if id(e) in self.seen and not isinstance(e, Name):
            return
        self.seen.add(id(e))
        statement = e if isinstance(e, (Update, Store)) else self.holder.get(id(e))
        if statement is not None and self.is_sum(statement):
            return                      # its order is free
        if isinstance(e, Name):
            if e.id not in self.seen:
                self.seen.add(e.id)
                self.waiting += self.defined.get(e.id, ())
            return
        if isinstance(e, Op):
            self.exact_if(e, e.op in KEPT and not self.is_whole(e) and not (
                e.op == "neg" and isinstance(e.args[0], Const)))    # LLVM gives a quotient the flags of its negation
        elif isinstance(e, (Update, Store)):
            self.exact_if(e, e.op in KEPT and not self.is_whole(target_of(e)))
        self.waiting += OPERANDS.get(type(e), lambda e: ())(e)

    def is_sum(self, s):
        """Whether a statement accumulates over the passes of a loop in which nothing else reads the partial sum."""
        mine = added(s)
        root = None if mine is None else root_of(mine.target)
        if root is None or self.is_whole(mine.target):
            return False
        for loop in around(s, self.above):
            if not isinstance(loop, (For, form.While)):
                continue
            if isinstance(mine.target, Load) and any(not names_in(p).isdisjoint(set_in([loop]))
                                                     for p in mine.target.index):
                continue
            return not any(others(n, root, mine) for n in statements([loop]))
        return False

    def of_threads(self, s):
        """Whether it is a sum over the passes of a prange loop: Numba recognises such a reduction itself."""
        target = added(s).target
        for loop in around(s, self.above):
            if isinstance(loop, For) and loop.kind == "prange":
                return isinstance(target, Name) and all(
                    isinstance(n, (Let, Update)) and added(n) is not None
                    for n in statements([loop]) if target.id in set_by(n))
        return False


def target_of(s):
    return s.entry if isinstance(s, Store) else Name(s.name)


OPERANDS = {                            # {kind of expression or statement: what its value is computed from}
    Op: lambda e: e.args,
    Update: lambda e: (target_of(e), e.value),
    Store: lambda e: (target_of(e), e.value),
    Select: lambda e: (e.then, e.orelse),
    Load: lambda e: (e.array,),
    form.Attribute: lambda e: () if e.name in ("shape", "size") else (e.owner,),
    Items: lambda e: e.items,
    form.ListOf: lambda e: e.items,
    Call: lambda e: () if last_of(e) in FREE else e.args,
    form.Method: lambda e: (*e.args, e.owner),
    For: lambda e: e.range,
    Alloc: lambda e: e.shape,
}


class Added(NamedTuple):
    """A statement that adds to its target, s += v or s = s + v - w, or multiplies it."""
    target: Any
    operations: list                # the statement itself, or the operations from its value down to the target
    multiplies: bool

    def like(self, other):
        """Whether another one accumulates into the same target in the same way."""
        return self.target == other.target and self.multiplies == other.multiplies


def added(s):
    """How a statement adds to its target, or None."""
    if isinstance(s, (Update, Store)) and s.op is not None:
        return Added(s.entry if isinstance(s, Store) else Name(s.name), [s], s.op == "*") if s.op in SUMS else None
    if not isinstance(s, Let):
        return None
    e, operations = s.value, []
    while isinstance(e, Op) and e.op in SUMS and len(e.args) == 2 and (
            not operations or (e.op == "*") == (operations[0].op == "*")):
        operations.append(e)
        if Name(s.name) in (e.args[:1] if e.op == "-" else e.args):
            return Added(Name(s.name), operations, operations[0].op == "*")
        e = e.args[0]
    return None


def others(s, root, mine):
    """How often a statement uses a name, not counting its use as the target of an accumulation like `mine`."""
    own = added(s)
    uses = sum(u.name == root for u in uses_in(s)) + set_by(s).count(root)
    if own is None or not own.like(mine):
        return uses
    if isinstance(s, Store):            # the array, and uses in its index
        return sum(u.name == root for u in uses_in(s) if not (u.around and u.around[0] is s.entry))
    return uses - (1 if isinstance(s, Update) else 2)


def last_of(e):
    """The name of a called function without its module."""
    return e.function.rpartition(".")[2]


def root_of(e):
    """The name of the array of an entry or view, or of a name itself; None of another expression."""
    while isinstance(e, (Load, form.Attribute, form.Method)):
        e = e.array if isinstance(e, Load) else e.owner
    if isinstance(e, form.Length):
        return e.array
    return e.id if isinstance(e, Name) and e.id not in ("np", "math") else None


def decides(e):
    """Whether the result of a function may jump where its arguments change a little."""
    return e.function.count(".") < 2 and last_of(e) not in SMOOTH | FREE
