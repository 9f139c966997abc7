# SPDX-License-Identifier: Apache-2.0
"""The arrays that a function allocates, the uses of names, and a flow-insensitive alias analysis.

An array is a function's own if it is allocated at one place in the text and neither it nor a part of it has an alias:
then a write into another array cannot change it.

>>> from gradscribe.codegen.loops.form import Function
>>> from gradscribe.codegen.loops.trees import block_of
>>> function = Function("f", ["x"], {}, block_of('''a = np.empty((3,), np.float64)
... b = np.empty((3,), np.float64)
... c = b[1:]
... a[0] = x[0]
... return (a, c)'''))
>>> Arrays(function).own
{'a'}
"""
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradscribe.codegen.loops.analysis.effects import reads_only
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Attribute,
    Call,
    Compare,
    Const,
    Do,
    Expr,
    For,
    Function,
    Items,
    Length,
    Let,
    Load,
    Name,
    Op,
    Return,
    Select,
    Slice,
    Statement,
    Store,
    Unpack,
    all_blocks,
    change,
    children,
    copied,
    names_in,
    names_of,
    place_in,
    read_by,
    renamed,
    set_by,
    statements,
    stored_by,
)


class Use(NamedTuple):
    """An occurrence of a name.

    around: the expressions that contain it, innermost last; role: "entry" where the name is indexed, "length" where its
    shape is read, otherwise "value"; stored: whether the entry is stored.
    """
    name: str
    around: tuple
    statement: Statement
    role: str = "value"
    stored: bool = False

    @property
    def parent(self) -> Any:
        return self.around[-1] if self.around else None


def uses_in(s: Statement) -> Iterator[Use]:
    """The uses of names in a statement itself, in the order in which they are evaluated."""
    stored = stored_by(s)
    for e in read_by(s):
        if not any(e is t for t in stored):         # x[i] += v has one use of x[i]
            yield from _uses(e, s)
    for t in stored:
        if isinstance(t.array, Name):
            yield Use(t.array.id, (t,), s, "entry", True)
        else:
            yield from _uses(t.array, s, (t,))
        if getattr(s, "op", None) is not None:
            for part in t.index:
                yield from _uses(part, s, (t,))


def _uses(e, s, around=()):
    for name, inside, role in names_used(e):
        yield Use(name, around + inside, s, role)


def names_used(e: Expr) -> tuple:
    """(name, the expressions that contain it, its role) for each name in an expression, as in Use."""
    try:
        return e._used
    except AttributeError:
        found = tuple(_names_used(e, ()))
        object.__setattr__(e, "_used", found)
        return found


def _names_used(e, around):
    if isinstance(e, Name):
        yield e.id, around, "value"
        return
    inside = (*around, e)
    parts = children(e)
    if isinstance(e, Length):
        yield e.array, inside, "length"
    elif isinstance(e, Load) and isinstance(e.array, Name):
        yield e.array.id, inside, "entry"
        parts = e.index
    for part in parts:
        if names_in(part):
            yield from _names_used(part, inside)


def is_entry(e: Load, rank: int) -> bool:
    """Whether it is one entry, not a view."""
    return len(e.index) == rank and not any(isinstance(p, Slice) or isinstance(p, Items) or getattr(
        p, "value", 0) is None for p in e.index)


def shares_nothing(use: Use, rank: int | None) -> bool:
    """Whether nothing can be written through a use: an entry, a length, a product, a result, an operand of NumPy's;
    rank: that of the array, to tell entries from rows, which are views.
    """
    parent = use.parent
    if use.role == "entry":
        return len(use.around) > 1 and reads_only(use.around[-2]) or rank is not None and is_entry(parent, rank)
    if isinstance(parent, Attribute):
        return parent.name in ("shape", "size") or parent.name == "T" and len(use.around) > 1 and isinstance(
            use.around[-2], Call)
    if isinstance(parent, Items):
        return is_given_out(use.around, use.statement)
    return use.role == "length" or reads_only(parent) or isinstance(parent, (Op, Compare, Select))


def is_given_out(around: tuple, s: Statement) -> bool:
    """Whether a tuple, the innermost of the expressions, is returned or passed to a function that reads only."""
    return isinstance(s, Return) if len(around) == 1 else reads_only(around[-2])


class Arrays:
    """made: {name: allocation} of the arrays that the function allocates; again: names allocated at two places; own:
    arrays without aliases; uses: {allocated name: its uses}; entered: {array: the statements that store an entry of
    it}; views: names through which something may be written otherwise than by entry; alone: names that are bound to one
    allocation only, which may have aliases; given: parameters that are never rebound; sets: how many statements set a
    name.
    """

    def __init__(self, function: Function):
        self.blocks = {s: block for block in all_blocks(function) for s in block}
        self.made: dict = {}
        self.entered: dict = {}
        other: set = set()
        every: list[Use]
        self.again, self.views, every = set(), set(), []
        self.sets: Counter = Counter()
        for s in statements(function.block):
            self.sets.update(set_by(s))
            if isinstance(s, Alloc):
                if s.name in self.made:
                    self.again.add(s.name)
                self.made[s.name] = s
            elif isinstance(s, (Let, Unpack, For)):
                other.update(set_by(s))
            every += uses_in(s)
            for t in stored_by(s):
                if isinstance(t.array, Name):
                    self.entered.setdefault(t.array.id, []).append(s)
        self.uses: dict = {name: [] for name in self.made}
        for use in every:
            if use.name in self.uses:
                self.uses[use.name].append(use)
            if not shares_nothing(use, function.types.get(use.name, UNKNOWN).rank):
                self.views.add(use.name)
        shown = {name for name, uses in self.uses.items() for use in uses if not self.plain(use)}
        self.alone = self.made.keys() - other - self.again
        self.own = self.alone - shown
        self.given = set(function.params) - other - self.made.keys()

    def forget(self, changed: list) -> None:
        """Forget the uses in statements that a pass is about to change or has removed."""
        for name in {n for s in changed for n in names_of(s)} & self.uses.keys():
            self.uses[name] = [u for u in self.uses[name] if u.statement not in changed]

    def read(self, changed: list) -> None:
        """Add the uses in statements that a pass has changed; arrays of the function's own must still be."""
        for use in (u for s in changed for u in uses_in(s) if u.name in self.uses):
            self.uses[use.name].append(use)

    def plain(self, use):
        """Whether a use makes no alias of the array: an entry, a length, an operand of a product, a result."""
        around, turned = use.around, False
        if use.role == "length":
            return True
        if use.role == "entry":
            return is_place(use.parent, len(self.made[use.name].shape)) or len(around) > 1 and reads_only(around[-2])
        if isinstance(use.parent, Attribute):
            if use.parent.name != "T":
                return use.parent.name in ("shape", "size")
            around, turned = around[:-1], True
        if around:
            return isinstance(around[-1], Items) and is_given_out(around, use.statement) or reads_only(around[-1])
        s = use.statement
        return isinstance(s, Store) and s.op is None or isinstance(s, Let) and not turned and self.is_last_alias(s)

    def is_last_alias(self, alias):
        """Whether other = name comes after all writes to the array, and nothing is written through the other name."""
        name, other = alias.value.id, alias.name
        block = self.blocks[alias]
        if self.blocks[self.made[name]] is not block:
            return False
        at = block.index(alias)
        return block.index(self.made[name]) < at and other not in self.entered and other not in self.views and \
            not any(place_in(block, s) >= at for s in self.entered.get(name, ()))


def apart(function: Function) -> dict:
    """{name: array} of the arrays that the function allocates and that share no memory with another name anywhere:
    writes through other names, in whatever order, cannot change them.  Names that one array has one after the other
    (`b = a`) map to its first.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> apart(Function("f", ["x"], {}, block_of('''a = np.empty((3,), np.float64)
    ... a[0] = x[0]
    ... b = a
    ... b[1] = x[1]
    ... return (b,)''')))
    {'a': 'a', 'b': 'a'}
    """
    function = _with_products_made(function)
    first: dict = {}
    how_often = Counter(n for s in statements(function.block) for n in set_by(s))
    made = {s.name for s in statements(function.block) if isinstance(s, Alloc)}
    for s in statements(function.block):
        if isinstance(s, Let) and isinstance(s.value, Name) and how_often[s.name] == 1:
            source = first.get(s.value.id, s.value.id)
            if source in made:
                first[s.name] = source
    if first:
        for block in all_blocks(function):
            block[:] = [s for s in block if not (isinstance(s, Let) and s.name in first)]
        for s in statements(function.block):
            change(s, lambda e: renamed(e, first))
    arrays = Arrays(function)
    alone = {n for n in arrays.own if not any(
        u.role == "value" and not u.around and isinstance(u.statement, Let) for u in arrays.uses[n])}
    return {name: array for name, array in (*((n, n) for n in sorted(alone)), *first.items()) if array in alone}


def _with_products_made(function):
    """A copy of a function in which products are allocations."""
    made = Function(function.name, function.params, function.types, list(map(copied, function.block)))
    for block in all_blocks(made):
        for k, s in enumerate(block):
            rank = function.types.get(s.name, UNKNOWN).rank if isinstance(s, Let) else None
            if rank and isinstance(s.value, Call) and s.value.function == "np.dot":
                block[k] = Alloc(s.name, "empty", (Const(0),) * rank, ())
    return made


def families(function: Function) -> dict:
    """{name: its family}: arrays of different families never share memory.  All arguments are one family.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> found = families(Function("f", ["x"], {}, block_of('''a = np.empty((3,), np.float64)
    ... b = a.reshape((1, 3))
    ... c = np.dot(b, x)
    ... return (c,)''')))
    >>> found["a"] == found["b"], found["a"] == found["c"], found["c"] == found["x"]
    (True, False, False)

    Source: B. Steensgaard, Points-to analysis in almost linear time, 1996.
    """
    found: dict = {}

    def root(name):
        while found.setdefault(name, name) != name:
            name = found[name]
        return name

    def joined(names):
        for name in names:
            found[root(name)] = root(names[0])
    joined(function.params)
    for s in statements(function.block):
        if isinstance(s, (Let, Unpack, Do)):
            names = [*set_by(s), *sorted(n for n in shown_by(s.value, function.types) if n not in ("np", "math"))]
            joined([n for n in names if function.types.get(n, UNKNOWN).rank != 0])
        elif isinstance(s, Alloc):
            root(s.name)
    return {name: root(name) for name in found}


def shown_by(e: Expr, types: dict) -> frozenset:
    """The arrays that a value may be, or be a view of."""
    if isinstance(e, (Op, Compare, Const, Length)) or reads_only(e) or isinstance(e, Load) and isinstance(
            e.array, Name) and (rank := types.get(e.array.id, UNKNOWN).rank) is not None and is_entry(e, rank):
        return frozenset()
    if isinstance(e, Load):
        return shown_by(e.array, types)
    return frozenset([e.id]) if isinstance(e, Name) else frozenset().union(*(shown_by(c, types) for c in children(e)))


def is_place(e: Load, rank: int) -> bool:
    """Whether an index has a part for each axis, and no slice."""
    return len(e.index) == rank and not any(isinstance(p, Slice) for p in e.index)
