# SPDX-License-Identifier: Apache-2.0
"""Lowered loops in the style of handwritten code, for printing: without checks and other details for compilers.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> function = from_tree(ast.parse('''def f(i, x, y):
...     n_1 = x.shape[0]
...     if i >= n_1:
...         pass
...     else:
...         t_2 = 2.0 * x[place(i, n_1)]
...         y[place(i, n_1)] += t_2
...         reaches(3, 2, n_1)
...         while True:
...             if not x[i] > 0.0:
...                 break
...             for k in range(n_1 - 1, -1, -1):
...                 x[k] = np.float32(0.5 * y[3 - 1])''').body[0], {
...     "i": ("int64", 0), "x": ("float32", 1), "y": ("float64", 1)})
>>> tidy(function)
>>> with_temporaries_inside(function, {"t_2"})
>>> print(ast.unparse(to_tree(function)))
def f(i, x, y):
    if i < x.shape[0]:
        y[i] += 2.0 * x[i]
        while x[i] > 0.0:
            for k in range(x.shape[0] - 1, -1, -1):
                x[k] = np.float32(0.5 * y[2])
"""
import itertools
from collections import Counter

from gradscribe.codegen.loops.analysis.effects import CHECKS
from gradscribe.codegen.loops.build import quoted
from gradscribe.codegen.loops.form import (
    BLOCKS,
    Break,
    Call,
    Compare,
    Const,
    Do,
    For,
    Function,
    If,
    Length,
    Let,
    Name,
    Nothing,
    Op,
    Raise,
    Store,
    Update,
    While,
    all_blocks,
    all_names,
    change,
    expressions,
    names_of,
    rebuilt,
    renamed,
    set_by,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.types import type_of

OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
TRUE, FALSE = Const(True), Const(False)


def tidy(function: Function) -> None:
    """Substitute lengths, drop checks, and simplify the tests of loops and branches, in place."""
    sets = Counter(n for s in statements(function.block) for n in set_by(s))
    lengths = {s.name: s.value for s in statements(function.block)
               if isinstance(s, Let) and isinstance(s.value, Length) and sets[s.name] == 1}
    for s in statements(function.block):
        change(s, lambda e: renamed(e, lengths))
    function.block = [m for s in function.block for m in _tidied(s, lengths, function.types)]
    taken = all_names(function)
    call_by(function, {n: _numbered(n[:-1], taken) for n in sorted(sets) if n.endswith("_") and n[-2:-1].isdigit()})


def _numbered(name, taken):
    """A name that is not taken, with the next free number."""
    stem, _, last = name.rpartition("_")
    if stem and last.isdigit():
        name = next(n for k in itertools.count(int(last)) if (n := f"{stem}_{k}") not in taken)
    return unused(name, taken)


def _tidied(s, gone, types):
    if isinstance(s, Let) and s.name in gone or isinstance(s, Nothing) or isinstance(s, Do) and isinstance(
            s.value, Call) and s.value.function in CHECKS:
        return []
    change(s, lambda e: _simplified(e, types))
    for name in BLOCKS.get(type(s), ()):
        setattr(s, name, [m for inner in getattr(s, name) for m in _tidied(inner, gone, types)])
    if isinstance(s, While) and s.test == TRUE and isinstance(first := next(iter(s.block), None), If) and [
            *map(type, first.block)] == [Break] and not first.orelse:
        s.test, s.block = _opposite(first.test, types), s.block[1:]
    if isinstance(s, If) and not s.block:
        s.test, s.block, s.orelse = _opposite(s.test, types), s.orelse, []
    if isinstance(s, If) and all(isinstance(i, Raise) for i in s.block) and not s.orelse:
        return []                       # empty, or a check of lengths
    return [s]


def _simplified(e, types):
    e = rebuilt(e, lambda part: _simplified(part, types))
    if isinstance(e, Call) and e.function == "place":
        return e.args[0]
    if isinstance(e, Call) and e.function in ("np.float32", "np.float64") and len(e.args) == 1 and \
            f"np.{type_of(e.args[0], types).dtype}" == e.function:
        return e.args[0]
    if isinstance(e, Op) and e.op == "not":
        return _opposite(e.args[0], types)
    if isinstance(e, Op) and e.op == "-" and all(isinstance(a, Const) and type(a.value) is int for a in e.args):
        return Const(e.args[0].value - e.args[1].value)
    if isinstance(e, Call) and e.function == "square":
        return quoted("{} ** 2", e.args[0])
    return e


def _opposite(e, types):
    """The negation of a condition; orders of numbers that may be NaN have no opposite."""
    if isinstance(e, Op) and e.op == "not":
        return e.args[0]
    if isinstance(e, Compare) and len(e.ops) == 1 and e.ops[0] in OPPOSITE and (e.ops[0] in ("==", "!=") or all(
            type_of(i, types).dtype == "int64" for i in e.items)):
        return Compare((OPPOSITE[e.ops[0]],), e.items)
    return quoted("not {}", e)


def shorten(function: Function) -> None:
    """Write x = x + y as an update, end loops by break in place of a flag, and drop empty arms.

    >>> import ast
    >>> from gradscribe.codegen.loops.trees import block_of, to_tree
    >>> function = Function("f", ["x", "y"], {}, block_of('''stop = False
    ... while not stop:
    ...     x = y + x
    ...     if x > 3.0:
    ...         stop = True
    ... if y > x:
    ...     pass
    ... else:
    ...     for k in range(3):
    ...         x = x - y'''))
    >>> shorten(function)
    >>> print(ast.unparse(to_tree(function)))
    def f(x, y):
        while True:
            x += y
            if x > 3.0:
                break
        if not y > x:
            for _ in range(3):
                x -= y
    """
    sets = Counter(n for s in statements(function.block) for n in set_by(s))
    reads = Counter(n for s in statements(function.block) for n in names_of(s))
    for s in list(statements(function.block)):
        if isinstance(s, If) and s.orelse and all(isinstance(i, Nothing) for i in s.block):
            s.test, s.block, s.orelse = _opposite(s.test, function.types), s.orelse, []
        if isinstance(s, For) and not reads[s.index]:
            s.index = "_"
    for block in all_blocks(function):
        for s in list(block):
            if isinstance(s, While):
                _end_by_break(block, s, sets, reads)
        block[:] = list(map(_as_update, block))


def _end_by_break(block, loop, sets, reads):
    """while not stop: ... if found: stop = True"""
    flag, last = loop.test.args[0] if isinstance(loop.test, Op) else None, loop.block[-1]
    begun = next((s for s in block if isinstance(s, Let) and s.name == getattr(flag, "id", None)), None)
    if begun is not None and begun.value == FALSE and sets[flag.id] == 2 and reads[flag.id] == 1 and isinstance(
            last, If) and not last.orelse and len(last.block) == 1 and isinstance(last.block[0], Let) and (
            last.block[0].name, last.block[0].value) == (flag.id, TRUE):
        loop.test, last.block = TRUE, [Break()]
        block.remove(begun)


def _as_update(s):
    place = Name(s.name) if isinstance(s, Let) else s.entry if isinstance(s, Store) and s.op is None else None
    if place is None or not isinstance(s.value, Op) or s.value.op not in ("+", "-", "*", "/") or len(s.value.args) == 1:
        return s
    first, *rest = s.value.args if s.value.args[0] == place or s.value.op in "-/" else reversed(s.value.args)
    if first != place:
        return s
    made = Update(s.name, s.value.op, *rest) if isinstance(s, Let) else Store(place, *rest, s.value.op)
    made.origin = s.origin
    return made


def with_temporaries_inside(function: Function, temporaries: set) -> None:
    """Substitute temporaries of the lowering that only the next statement reads."""
    reads = Counter(part.id for s in statements(function.block) for e in expressions(s) for part in walk(e)
                    if isinstance(part, Name))
    for block in all_blocks(function):
        out: list = []
        for s in block:
            before = out[-1] if out else None
            if isinstance(before, Let) and before.name in temporaries and reads[before.name] == 1 and not isinstance(
                    s, While) and any(
                    isinstance(part, Name) and part.id == before.name for e in expressions(s) for part in walk(e)):
                value = out.pop().value
                change(s, lambda e, value=value, name=before.name: renamed(e, {name: value}))
            out.append(s)
        block[:] = out


def call_by(function: Function, names: dict) -> None:
    """Rename names of a function in place: {old: new}."""
    def other(name):
        return names.get(name, name)
    for s in statements(function.block):
        change(s, lambda e: renamed(e, names))
        for word in ("name", "index"):
            if isinstance(getattr(s, word, None), str):
                setattr(s, word, other(getattr(s, word)))
    function.params = list(map(other, function.params))
    function.types.update({names[n]: t for n, t in function.types.items() if n in names})
