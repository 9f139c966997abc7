# SPDX-License-Identifier: Apache-2.0
"""Simplification of whole numbers: common subexpressions, and checks and branches whose outcome is certain.

For an operand whose length may be one, lowering writes `step = 0 if n == 1 else 1` and `x[i * step]`; where it does not
know whether two lengths are equal, it writes both cases.  Once views are eliminated, value ranges decide more of these.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     for i in range(n):
...         t = i + 1
...         m = min(t, y.shape[0])
...         step = 0 if t == 1 else 1
...         if t == m:
...             for j in range(m):
...                 y[j] += x[j]
...         else:
...             fits(t, m)
...             for j in range(m):
...                 y[j] += x[j * step]''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1)})
>>> simplify(function)
True
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    for i in range(n):
        t = i + 1
        m = min(t, y.shape[0])
        fits(t, m)
        for j in range(m):
            y[j] += x[j]

Source: J. Cocke, Global common subexpression elimination, 1970; S. S. Muchnick, Advanced Compiler Design and
Implementation (1997), 18.3 (branches whose outcome is certain).
"""
import collections

from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import (
    Call,
    Compare,
    Const,
    Do,
    For,
    Function,
    If,
    Let,
    Logic,
    Name,
    Op,
    Select,
    all_blocks,
    change,
    expressions,
    names_in,
    names_of,
    place_in,
    rebuilt,
    renamed,
    set_by,
    set_in,
    statements,
)
from gradscribe.codegen.loops.shapes import around, is_check, is_whole, replace_in, take_out


def simplify(function: Function) -> bool:
    """Change a function in place; whether a branch has been removed."""
    sets = collections.Counter(name for s in statements(function.block) for name in set_by(s))
    for block in list(all_blocks(function)):
        _without_repetition(function, block, sets)
    _steps(function)
    return _certain(function)


# --- computed once ----------------------------------------------------------------------------------------------------

def _without_repetition(function, block, sets):
    """Remove numbers that a block has computed before, among names that are set once; sets: {name: how often it is}."""
    known: dict = {}                    # {value: the name that has it}
    for s in list(block):
        if is_whole(s, function.types, "place") and sets[s.name] == 1 and s.name not in function.params:
            first = known.get(s.value)
            if first is not None and _used_from(function, block, s):
                for other in statements(block):
                    if s.name in names_of(other):
                        change(other, lambda e, old=s.name, new=first: renamed(e, {old: new}))
                take_out(block, s)
                continue
            known.setdefault(s.value, s.name)
        changed = set_in([s])
        for value, name in list(known.items()):
            if name != getattr(s, "name", None) and name in changed or not changed.isdisjoint(names_in(value)):
                del known[value]


def _used_from(function, block, s):
    """Whether a name is read only after the statement that sets it, in its block."""
    at = block.index(s)
    return all(place_in(block, other) > at for other in statements(function.block) if s.name in names_of(other))


# --- steps of 0 or 1 --------------------------------------------------------------------------------------------------

def _steps(function):
    """Replace j * step by j where step is 0 only if n is 1, and j is below n."""
    ranges = Ranges(function)
    for s in list(statements(function.block)):
        if not isinstance(s, Let) or not isinstance(s.value, Select) or (s.value.then, s.value.orelse) != (
                Const(0), Const(1)) or not isinstance(s.value.test, Compare) or s.value.test.ops != ("==",) or \
                s.value.test.items[1] != Const(1) or len(ranges.sets[s.name]) > 1:
            continue
        for user in list(statements(function.block)):
            if s.name in names_of(user):
                change(user, _without_step(s, user, ranges))
        if not any(s.name in names_of(other) for other in statements(function.block)):
            take_out(next(b for b in all_blocks(function) if s in b), s)


def _without_step(made, user, ranges):
    """The function that replaces j * step by j in the expressions of a statement."""
    n, step = made.value.test.items[0], Name(made.name)
    counts = {a.index: a.range[0] for a in around(user, ranges.above) if isinstance(a, For) and len(a.range) == 1}

    def new(e):
        e = rebuilt(e, new)
        if isinstance(e, Op) and e.op == "*" and e.args[1] == step and isinstance(e.args[0], Name):
            count = counts.get(e.args[0].id)
            if count is not None and ranges.at_least(Op("-", (n, count)), 0, user):
                return e.args[0]
        return e
    return new


# --- certain outcomes -------------------------------------------------------------------------------------------------

def _certain(function):
    ranges, gone = Ranges(function), False
    for block in list(all_blocks(function)):
        for s in list(block):
            if isinstance(s, If):
                gone = _branch(block, s, ranges) or gone
            elif isinstance(s, Do) and isinstance(s.value, Call) and s.value.function in ("same", "fits") and \
                    ranges.equal(*s.value.args, s):
                take_out(block, s)
            elif isinstance(s, Let) and isinstance(s.value, Call) and s.value.function == "meet" and ranges.equal(
                    *s.value.args, s):
                s.value = s.value.args[0]
    return gone


def _branch(block, s, ranges):
    """Replace a branch on equal lengths by the arm that is certain, or if both are equal; whether it could."""
    tests = s.test.items if isinstance(s.test, Logic) and s.test.op == "and" else (s.test,)
    if not all(isinstance(t, Compare) and t.ops == ("==",) for t in tests):
        return False
    open_ = [t for t in tests if not ranges.equal(*t.items, s)]
    if not open_:
        replace_in(block, s, s.block)
        return True
    s.test = open_[0] if len(open_) == 1 else Logic("and", tuple(open_))
    checks = [o for o in s.orelse if is_check(o)]
    rest = [o for o in s.orelse if not is_check(o)]
    passed = all(c.value.function in ("same", "fits") and any(
        set(c.value.args) <= set(t.items) for t in open_) for c in checks)
    if not checks or not passed or not alike(s.block, rest):
        return False
    replace_in(block, s, [*checks, *s.block])
    return True


def alike(first: list, second: list) -> bool:
    """Whether two blocks are equal, statement by statement."""
    return len(first) == len(second) and all(
        type(a) is type(b) and list(expressions(a)) == list(expressions(b)) and set_by(a) == set_by(b) and
        getattr(a, "op", None) == getattr(b, "op", None) and getattr(a, "kind", None) == getattr(b, "kind", None) and
        alike(getattr(a, "block", []), getattr(b, "block", [])) and alike(getattr(a, "orelse", []), getattr(
            b, "orelse", [])) for a, b in zip(first, second))
