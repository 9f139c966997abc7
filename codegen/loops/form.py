# SPDX-License-Identifier: Apache-2.0
"""The loop form, the compiler's IR of loops: loops, branches and assignments over numbers and entries of arrays.

    function   := name, parameters, types {name: (dtype, rank)}, block
    statement  := Let(name, value) | Unpack(names, value) | Alloc(name, how, shape, dtype)
                | Store(access, value, op)          x[i] = value; with an operation, x[i] += value
                | Update(name, op, value)           name += value
                | For(index, range, block) | While(test, block) | If(test, block, block)
                | Do(call) | Return(value) | Raise(call) | Break | Continue | Nothing
    expression := Name | Const | Op | Compare | Logic | Select | Load(array, index) | Length(array, axis)
                | Call | Method | Attribute | Slice | Items | ListOf | EmptyList

Expressions are immutable, compared by value and may be shared; passes make new ones.  Statements are mutable and belong
to the block that holds them.  A name has one type in the whole function, as in Numba.  The `origin` of a statement is
the place in the user's source that it comes from.

>>> x, i = Name("x"), Name("i")
>>> Load(x, (i,)) == Load(Name("x"), (Name("i"),)), sorted(names_in(Op("+", (Load(x, (i,)), Const(1)))))
(True, ['i', 'x'])
"""
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

Kind = TypeVar("Kind")
Stated = TypeVar("Stated", bound="Statement")


class Type(NamedTuple):
    """The dtype and the rank of a value; None where unknown, as for lists and tuples."""
    dtype: str | None = None
    rank: int | None = None


UNKNOWN = Type()


# --- expressions ------------------------------------------------------------------------------------------------------

class Expr:
    """An expression; its parts are expressions, tuples of them, and words.  The slots cache results of analyses."""

    __slots__ = ("_asked", "_children", "_hash", "_names", "_reads", "_shown", "_used")
    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple]
        _children: tuple
        _names: frozenset
        _used: tuple

    def key(self) -> tuple:
        """The parts that decide equality."""
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other):
        return self is other or type(self) is type(other) and hash(self) == hash(other) and self.key() == other.key()

    def __hash__(self):
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((type(self), self.key())))
            return self._hash


@dataclass_transform(frozen_default=True, eq_default=False)
def expression(cls: type[Kind]) -> type[Kind]:
    return dataclass(frozen=True, eq=False, slots=True)(cls)


EXACT, SUMMED = "exact ", "summed "


def sign_of(op: str) -> str:
    """An operation without its mark EXACT or SUMMED."""
    return op.rpartition(" ")[2]


@expression
class Name(Expr):
    id: str


@expression
class Const(Expr):
    value: Any

    def key(self):
        """By representation: 0.0 differs from -0.0, and NaN equals NaN."""
        return type(self.value), repr(self.value) if isinstance(self.value, (float, complex)) else self.value


@expression
class Op(Expr):
    """Arithmetic: + - * / // % ** & | ^ << >> @ of two; neg, not, ~ and pos of one.

    A mark may precede the sign: EXACT, round as NumPy does; SUMMED, reassociate freely.
    """
    op: str
    args: tuple


@expression
class Compare(Expr):
    """a < b, or a chain: there is one item more than ops."""
    ops: tuple
    items: tuple


@expression
class Logic(Expr):
    """`and`, `or`."""
    op: str
    items: tuple


@expression
class Select(Expr):
    test: Expr
    then: Expr
    orelse: Expr


@expression
class Load(Expr):
    """array[index, ...]: an entry, or a view if a part is a slice or there are fewer parts than axes."""
    array: Expr
    index: tuple


@expression
class Length(Expr):
    """array.shape[axis] of a named array."""
    array: str
    axis: int


@expression
class Keyword(Expr):
    """name=value, of a call."""
    name: str
    value: Expr


@expression
class Call(Expr):
    """A call of a function by its name: `exp`, `np.dot`, `place`."""
    function: str
    args: tuple
    keywords: tuple = ()


@expression
class Method(Expr):
    owner: Expr
    name: str
    args: tuple
    keywords: tuple = ()


@expression
class Attribute(Expr):
    """x.T, x.real, x.size, and constants of modules: np.inf."""
    owner: Expr
    name: str


@expression
class Slice(Expr):
    lower: Expr | None
    upper: Expr | None
    step: Expr | None


@expression
class Items(Expr):
    """A tuple."""
    items: tuple


@expression
class ListOf(Expr):
    items: tuple


@expression
class EmptyList(Expr):
    """An empty list typed by an example of an element: [of for _ in range(0)]."""
    of: Expr


def children(e: Expr) -> tuple:
    """The direct subexpressions."""
    try:
        return e._children
    except AttributeError:
        found = []
        for name in e.__match_args__:
            part = getattr(e, name)
            if isinstance(part, Expr):
                found.append(part)
            elif type(part) is tuple:
                found += [p for p in part if isinstance(p, Expr)]
        object.__setattr__(e, "_children", tuple(found))
        return e._children


def walk(e: Expr) -> Iterator[Any]:
    """An expression and all its subexpressions, itself first."""
    yield e
    for part in children(e):
        yield from walk(part)


def names_in(e: Expr) -> frozenset:
    """The names that an expression reads."""
    try:
        return e._names
    except AttributeError:
        if isinstance(e, Name):
            found = frozenset([e.id])
        elif isinstance(e, Length):
            found = frozenset([e.array])
        else:
            found = frozenset().union(*map(names_in, children(e)))
        object.__setattr__(e, "_names", found)
        return found


def rebuilt(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An expression with `change` applied to its direct subexpressions; itself where none changes."""
    values, same = [], True
    for name in e.__match_args__:
        part = getattr(e, name)
        new = part
        if isinstance(part, Expr):
            new = change(part)
        elif type(part) is tuple and part:
            new = tuple([change(p) if isinstance(p, Expr) else p for p in part])
            if all(map(_is, new, part)):
                new = part
        same = same and new is part
        values.append(new)
    return e if same else type(e)(*values)


def _is(a, b):
    return a is b


def unshared(e: Expr) -> Expr:
    """A deep copy that shares no parts."""
    values = [unshared(part) if isinstance(part, Expr) else tuple(
        [unshared(p) if isinstance(p, Expr) else p for p in part]) if type(part) is tuple else part
        for part in (getattr(e, name) for name in e.__match_args__)]
    return type(e)(*values)


def renamed(e: Expr, names: dict) -> Expr:
    """An expression with names substituted: {name: expression or name}; in a Length only names."""
    if names_in(e).isdisjoint(names):
        return e
    if isinstance(e, Name):
        new = names.get(e.id, e)
        return Name(new) if isinstance(new, str) else new
    if isinstance(e, Length):
        new = names[e.array]
        return Length(new if isinstance(new, str) else new.id, e.axis)
    return rebuilt(e, lambda part: renamed(part, names))


# --- statements -------------------------------------------------------------------------------------------------------

@dataclass(eq=False, slots=True)
class Statement:
    """origin: the place in the user's source; line: the number of the printed line."""
    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple]


@dataclass_transform(eq_default=False)
def statement(cls: type[Kind]) -> type[Kind]:
    return dataclass(eq=False, slots=True)(cls)


@statement
class Let(Statement):
    name: str
    value: Expr
    origin: Any = None
    line: int = 0


@statement
class Unpack(Statement):
    """(a, b[i]) = values; targets are an Items."""
    targets: Items
    value: Expr
    origin: Any = None
    line: int = 0


@statement
class Alloc(Statement):
    """name = np.empty(shape, dtype) or np.zeros, np.ones, np.full; rest: the fill value of full, and the dtype."""
    name: str
    how: str
    shape: tuple
    rest: tuple
    origin: Any = None
    line: int = 0

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        last = self.rest[-1] if self.rest else None
        return last.name if isinstance(last, Attribute) else "float64"


@statement
class Store(Statement):
    """array[index] = value; op: array[index] op= value."""
    entry: Load
    value: Expr
    op: str | None = None
    origin: Any = None
    line: int = 0


@statement
class Update(Statement):
    """name op= value."""
    name: str
    op: str
    value: Expr
    origin: Any = None
    line: int = 0


@statement
class For(Statement):
    """for index in range(*range): block; kind: range, or prange for a parallel loop."""
    index: str
    range: tuple
    block: list
    kind: str = "range"
    origin: Any = None
    line: int = 0

    @property
    def count(self) -> Expr | None:
        """n of range(n) and of range(n - 1, -1, -1); None of other ranges."""
        if len(self.range) == 1:
            return self.range[0]
        return self.range[0].args[0] if self.downward else None

    @property
    def downward(self) -> bool:
        """Whether it is range(n - 1, -1, -1)."""
        return len(self.range) == 3 and self.range[1] == self.range[2] == MINUS_ONE and isinstance(
            self.range[0], Op) and self.range[0].op == "-" and self.range[0].args[1] == ONE


@statement
class While(Statement):
    test: Expr
    block: list
    origin: Any = None
    line: int = 0


@statement
class If(Statement):
    test: Expr
    block: list
    orelse: list
    origin: Any = None
    line: int = 0


@statement
class Do(Statement):
    """A call for its effect."""
    value: Expr
    origin: Any = None
    line: int = 0


@statement
class Return(Statement):
    value: Expr
    origin: Any = None
    line: int = 0


@statement
class Raise(Statement):
    value: Expr
    origin: Any = None
    line: int = 0


@statement
class Assert(Statement):
    test: Expr
    message: Expr | None
    origin: Any = None
    line: int = 0


@statement
class Break(Statement):
    origin: Any = None
    line: int = 0


@statement
class Continue(Statement):
    origin: Any = None
    line: int = 0


@statement
class Nothing(Statement):
    """pass"""
    origin: Any = None
    line: int = 0


@dataclass
class Function:
    """params: the names of the parameters; types: those of all names; filled: the parameters that are arrays without an
    axis of length 0.
    """
    name: str
    params: list
    types: dict
    block: list
    filled: frozenset = frozenset()


ONE, MINUS_ONE = Const(1), Op("neg", (Const(1),))
JUMPS = Break, Continue, Return, Raise


BLOCKS = {For: ("block",), While: ("block",), If: ("block", "orelse")}


def blocks(s: Statement) -> list:
    """The blocks inside a statement."""
    return [getattr(s, name) for name in BLOCKS.get(type(s), ())]


def statements(block: list) -> Iterator[Any]:
    """All statements of a block, nested ones included, in the order of the text."""
    for s in block:
        yield s
        if type(s) in BLOCKS:
            for inner in blocks(s):
                yield from statements(inner)


def all_blocks(function: Function) -> Iterator[list]:
    """All blocks of a function, its own first."""
    yield function.block
    for s in statements(function.block):
        yield from blocks(s)


def blocks_in_loops(block: list, in_loop: bool = False) -> Iterator[tuple[list, bool]]:
    """A block and all nested ones, each with whether it is in a loop."""
    yield block, in_loop
    for s in block:
        for inner in blocks(s):
            yield from blocks_in_loops(inner, in_loop or isinstance(s, (For, While)))


def place_in(block: list, inner: Statement) -> int:
    """The position of the statement of a block that is or contains another; -1 if none does."""
    return next((k for k, s in enumerate(block) if s is inner or any(i is inner for b in blocks(s)
                                                                     for i in statements(b))), -1)


def holders(function: Function) -> dict:
    """{statement: the statement in whose block it is}, of nested statements."""
    return {inner: s for s in statements(function.block) for b in blocks(s) for inner in b}


def read_by(s: Statement) -> Iterator[Expr]:
    """The expressions that a statement itself evaluates, without those of its blocks.

    Of x[i] = v these are i and v; of x[i] += v also x[i].
    """
    if isinstance(s, (Let, Do, Return, Raise, Update)):
        yield s.value
    elif isinstance(s, Store):
        yield s.value
        if s.op is None:
            yield from s.entry.index
        else:
            yield s.entry
    elif isinstance(s, Unpack):
        yield s.value
        for t in s.targets.items:
            if isinstance(t, Load):
                yield from t.index
    elif isinstance(s, Alloc):
        yield from s.shape
        yield from s.rest
    elif isinstance(s, For):
        yield from s.range
    elif isinstance(s, (While, If, Assert)):
        yield s.test


def set_by(s: Statement) -> tuple:
    """The names that a statement itself sets, without entries and without those that its blocks set."""
    if isinstance(s, (Let, Alloc, Update)):
        return (s.name,)
    if isinstance(s, For):
        return (s.index,)
    if isinstance(s, Unpack):
        return tuple(t.id for t in flat(s.targets) if isinstance(t, Name))
    return ()


def flat(targets: Items) -> Iterator[Expr]:
    for t in targets.items:
        if isinstance(t, Items):
            yield from flat(t)
        else:
            yield t


def stored_by(s: Statement) -> list:
    """The entries that a statement itself stores."""
    if isinstance(s, Store):
        return [s.entry]
    if isinstance(s, Unpack):
        return [t for t in flat(s.targets) if isinstance(t, Load)]
    return []


def names_of(s: Any) -> frozenset:
    """The names that a statement itself uses: in expressions, as arrays that it stores into, as what it updates."""
    kind = type(s)
    if kind is Let or kind is Do:
        return names_in(s.value)
    if kind is Store:
        return names_in(s.value) | names_in(s.entry)
    if kind is If or kind is While:
        return names_in(s.test)
    found = frozenset().union(*map(names_in, read_by(s)), *map(names_in, stored_by(s)))
    return found | {s.name} if kind is Update else found


def names_read(block: list) -> set:
    """The names that statements use, nested ones included."""
    return {n for s in statements(block) for n in names_of(s)}


def set_in(block: list) -> set:
    """The names that statements set, nested ones included."""
    return {n for s in statements(block) for n in set_by(s)}


def all_names(function: Function) -> set:
    """Every name of a function."""
    return {n for s in statements(function.block) for n in (*names_of(s), *set_by(s))} | set(function.params)


def free_name(name: str, taken: Container) -> str:
    """A name that is not taken: this one, with underscores appended if needed.

    >>> free_name("x", {"x", "x_"})
    'x__'
    """
    while name in taken:
        name += "_"
    return name


def unused(name: str, taken: set) -> str:
    """A name that is not taken; it is added to `taken`."""
    name = free_name(name, taken)
    taken.add(name)
    return name


def copied(s: Stated) -> Stated:
    """A copy of a statement and those in its blocks; expressions are shared."""
    parts = [[copied(i) for i in part] if isinstance(part, list) else part
             for part in (getattr(s, name) for name in s.__match_args__)]
    return type(s)(*parts)


PARTS = {Let: ("value",), Unpack: ("targets", "value"), Alloc: ("shape", "rest"), Store: ("entry", "value"),
         Update: ("value",), For: ("range",), While: ("test",), If: ("test",), Do: ("value",), Return: ("value",),
         Raise: ("value",), Assert: ("test",)}


def expressions(s: Statement) -> Iterator[Expr]:
    """The expressions of a statement itself, entries that it stores included."""
    for name in PARTS.get(type(s), ()):
        part = getattr(s, name)
        if type(part) is tuple:
            yield from part
        else:
            yield part


def change(s: Statement, f: Callable[..., Expr]) -> None:
    """Replace each expression e of a statement itself by f(e), entries that it stores included."""
    for name in PARTS.get(type(s), ()):
        part = getattr(s, name)
        setattr(s, name, tuple(map(f, part)) if type(part) is tuple else f(part))
