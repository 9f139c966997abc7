# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion: a value that is the same in every pass of a loop is computed once, before it.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(p, x):
...     n = x.shape[0]
...     out = np.empty((n,), np.float64)
...     for i in range(n):
...         out[i] = np.sin(np.exp(p[0])) * x[i]
...     return (out,)''')
>>> function = from_tree(tree.body[0], {"p": ("float64", 1), "x": ("float64", 1)})
>>> move_invariants(function)
>>> print(ast.unparse(to_tree(function)))
def f(p, x):
    n = x.shape[0]
    out = np.empty((n,), np.float64)
    alike_1 = np.sin(np.exp(p[0]))
    for i in range(n):
        out[i] = alike_1 * x[i]
    return (out,)

LLVM does this too, but not out of a loop that writes into an array that may alias the one that is read.

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2006, section 9.5 (loop-invariant expressions).
"""

from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.effects import ELEMENTARY, PURE, Effects
from gradscribe.codegen.loops.form import (
    JUMPS,
    Attribute,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Name,
    Nothing,
    Op,
    Select,
    Store,
    Unpack,
    Update,
    While,
    all_blocks,
    children,
    names_in,
    names_of,
    rebuilt,
    set_by,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import CASTS
from gradscribe.codegen.loops.types import is_double, type_of


def move_invariants(function: Function) -> None:
    """Changes a function in place."""
    _Invariants(function).run()


class _Invariants:
    """own: arrays without aliases; set: the names that the current loop sets; readable: whether it leaves an array
    unchanged.
    """

    def __init__(self, function):
        self.function, self.own, self.count = function, Arrays(function).own, 0
        self.set, self.readable = set(), None

    def run(self):
        for loop in reversed(_outer_first(self.function)):          # inner ones first
            if loop.kind == "range":
                self.loop(loop)

    def loop(self, loop):
        effects = Effects(loop.block, branches=True)
        self.set = set_in([loop])
        apart = effects.known and effects.writes.keys() <= self.own
        self.readable = (lambda name: name not in effects.writes and (apart or name in self.own)) if effects.known \
            else (lambda name: False)
        if any(isinstance(s, JUMPS[:3]) for s in statements(loop.block)):
            return
        moved = []
        for s in list(loop.block):
            if isinstance(s, (For, While, If)):
                continue
            if self.whole(s, loop):
                loop.block.remove(s)
                s.value = self.guarded(s.value, loop)
                self.set.discard(s.name)
                moved.append(s)
            elif isinstance(s, (Let, Store, Update, Unpack)):
                s.value = self.without(s.value, s, loop, moved)
        if not moved:
            return
        if not loop.block:
            loop.block.append(Nothing(loop.origin))
        block = next(b for b in all_blocks(self.function) if loop in b)
        at = block.index(loop)
        block[at:at] = moved

    def whole(self, s, loop):
        """Whether a statement is invariant: it sets a name once, always to the same, and only the loop reads it."""
        if not isinstance(s, Let) or not self.fixed(s.value) or not self.is_number(s.value):
            return False
        before = loop.block[:loop.block.index(s)]
        every, inside = list(statements(self.function.block)), set(statements(loop.block))
        return sum(s.name in set_by(o) for o in every) == 1 and all(
            o in inside for o in every if s.name in names_of(o)) and s.name not in names_in(s.value) and not any(
            s.name in names_of(o) for o in statements(before))

    def without(self, e, s, loop, moved):
        """An expression without its largest invariant parts that call an elementary function: these are moved before
        the loop.
        """
        if self.fixed(e) and self.is_number(e):
            if not any(is_elementary(n) for n in walk(e)):
                return e
            name = self.fresh()
            self.function.types[name] = type_of(e, self.function.types)
            moved.append(Let(name, self.guarded(e, loop), s.origin))
            return Name(name)
        if isinstance(e, (Op, Call, Items)):
            return rebuilt(e, lambda part: self.without(part, s, loop, moved))
        return e

    def is_number(self, e):
        return type_of(e, self.function.types).dtype in ("float64", "float32")

    def fixed(self, e):
        """Whether an expression is invariant: it cannot raise, has no effects, and its operands do not change."""
        if isinstance(e, Const):
            return True
        if isinstance(e, Name):
            return e.id not in self.set
        if isinstance(e, Length):
            return e.array not in self.set
        if isinstance(e, Load):
            return isinstance(e.array, Name) and e.array.id not in self.set and self.readable(e.array.id) and all(
                self.fixed(p) for p in e.index)
        if isinstance(e, Attribute):
            return isinstance(e.owner, Name) and e.owner.id in ("np", "math")
        if isinstance(e, Call):
            return not e.keywords and (is_elementary(e) or is_plain(e)) and all(map(self.fixed, e.args))
        if isinstance(e, Op):
            return e.op not in ("//", "%") and all(map(self.fixed, e.args))
        return isinstance(e, (Compare, Select)) and all(map(self.fixed, children(e)))

    def guarded(self, value, loop):
        """A value that may be computed even if the loop has no pass, when an entry that it reads may not exist."""
        sure = all(isinstance(p, Const) for n in walk(value) if isinstance(n, Load) for p in n.index)
        counts = loop.range
        if sure or len(counts) == 1 and isinstance(counts[0], Const) and counts[0].value > 0:
            return value
        first, last = counts[:2] if len(counts) > 1 else (Const(0), counts[0])
        down = len(counts) == 3 and (not isinstance(counts[2], Const) or counts[2].value < 0)
        zero = Const(0.0) if is_double(value, self.function.types) else Call("np.float32", (Const(0.0),))
        return Select(Compare((">" if down else "<",), (first, last)), value, zero)

    def fresh(self):
        while True:
            self.count += 1
            if f"alike_{self.count}" not in self.function.types:
                return f"alike_{self.count}"


def _outer_first(function):
    """The loops of a function, breadth first."""
    queue, found = list(function.block), []
    for s in queue:
        if isinstance(s, For):
            found.append(s)
        queue += [i for f in ("block", "orelse") for i in getattr(s, f, ())]
    return found


def is_elementary(e: Expr) -> bool:
    """Whether it is a call of an elementary function, of NumPy, Python or runtime/vmath.py."""
    if not isinstance(e, Call):
        return False
    head, _, name = e.function.rpartition(".")
    return head in ("", "np", "math") and name in ELEMENTARY


def is_plain(e: Call) -> bool:
    head, _, name = e.function.rpartition(".")
    if head:
        return head in ("np", "math") and name in CASTS | {"sqrt", "abs", "fabs"}
    return name in PURE and name not in ("complex", "int")
