# SPDX-License-Identifier: Apache-2.0
"""The normal form, the intermediate representation of all passes: SSA with one operation in each statement.

    function  := params, block, result
    block     := statement*
    statement := Let(targets, value)                one operation; several targets if it has several results
               | For(index, count, items, carries, body)     `index` counts from 0, each item iterates over its source
               | While(carries, head, test, body)   `head` computes the test before each pass
               | If(test, then, orelse, joins)
               | Effect(value)                      print, assert, raise: kept, in order
    value     := operand | Apply(function, operands)
    operand   := Var | Const | Pack(operands) | Slice(operands)
    carry     := inner (in the body), init (at entry), next (after a pass), outer (after the loop)
    join      := var (after the branch), then, orelse

Joins and carries take the place of phi functions.  Writes are operations, too: `u_1 = put(u, i, v)` is the version of u
after the write.
"""
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

USER, ADJOINT, TANGENT, SAVED, TEMPORARY = range(5)     # the kinds of variables

AS_USUAL, AGAIN, ON_DISK = "", "again", "disk"          # the backward sweep chooses; computes it again; saves it there

SCALARS = (bool, int, float, complex, str)      # equal if their repr is: 0.0 is not -0.0, and nan is nan


class Var:
    """One value: `hint` is the name that printing prefers, `fact` its type (core/kinds.py).

    saving: how the backward sweep has it (checkpoints): AS_USUAL, AGAIN or ON_DISK
    """
    __slots__ = ("fact", "hint", "kind", "saving")

    def __init__(self, hint, fact, kind=TEMPORARY, saving=""):
        self.hint, self.fact, self.kind, self.saving = hint, fact, kind, saving

    def like(self, fact=None):
        return Var(self.hint, self.fact if fact is None else fact, self.kind, self.saving)

    def __repr__(self):
        return f"{self.hint}.{id(self) % 9973}"


class Const:
    """A value known when transforming: a number, None, a string, a dtype, a function."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Const({self.value!r})"


@dataclass(eq=False, slots=True, frozen=True)
class Pack:
    """A container display: kind is tuple, list, dict, record or grown.

    grown: one array that the caller of compiled code turns into a list; cls is the fact of its elements
    """
    kind: str
    items: tuple
    keys: tuple = ()
    cls: Any = None


@dataclass(eq=False, slots=True, frozen=True)
class Slice:
    start: Any
    stop: Any
    step: Any


def as_slice(part: Any) -> Any:
    """A part of an index, with a constant slice converted to a Slice."""
    if isinstance(part, Const) and isinstance(part.value, slice):
        return Slice(*(None if p is None else Const(p) for p in (part.value.start, part.value.stop, part.value.step)))
    return part


@dataclass(eq=False, slots=True, frozen=True)
class Apply:
    function: Any
    args: tuple
    kwargs: tuple = ()              # pairs of keyword and operand
    origin: Any = None              # of the statement that it was, if it is nested in another one


def is_application(node: Any, function: Any) -> bool:
    """Whether a node of an expression is a call of this function."""
    return isinstance(node, Apply) and node.function is function


def negated(node: Any) -> Any:
    """The operand of `not`; None if the node is something else."""
    return node.args[0] if is_application(node, operator.not_) else None


class Undefined:
    """The value of a name on a path that does not set it."""
    def __repr__(self):
        return "undefined"


UNDEFINED = Const(Undefined())


@dataclass(eq=False, slots=True)
class Let:
    targets: tuple
    value: Any
    origin: Any = None


@dataclass(eq=False, slots=True)
class Carry:
    inner: Var
    init: Any
    next: Any
    outer: Var


@dataclass(eq=False, slots=True)
class For:
    index: Var
    count: Any
    items: tuple                    # pairs of Var and source operand
    carries: list
    body: list
    origin: Any = None
    reverse: bool = False
    policy: str = ""                # for reverse mode: "segments" cuts the loop, "again" runs it again
    note: str = ""                  # a comment to print above it


@dataclass(eq=False, slots=True)
class While:
    carries: list
    head: list
    test: Any
    body: list
    origin: Any = None
    policy: str = ""                # as in For; "entered": it has at least one pass


@dataclass(eq=False, slots=True)
class Join:
    var: Var
    then: Any
    orelse: Any


@dataclass(eq=False, slots=True)
class If:
    test: Any
    then: list
    orelse: list
    joins: list
    origin: Any = None


@dataclass(eq=False, slots=True)
class Effect:
    value: Any
    origin: Any = None
    note: str = ""                  # a comment to print above it


@dataclass(eq=False)
class Function:
    """A function in normal form."""
    label: str
    params: list                    # of Param
    body: list
    result: Any
    about: Any = None               # the user's function that it was made from
    notes: dict = field(default_factory=dict)
    custom: Any = None              # the user's own rule for it: a Custom, see reader/derivatives.py

    def __repr__(self):
        return f"Function({self.label})"


@dataclass(eq=False, slots=True)
class Param:
    name: str
    value: Any                      # a Var, or a Const where the argument is static
    keyword: bool = False


def operands(node: Any) -> Iterator[Var]:
    """The variables in an operand or value, in order."""
    found: list = []
    _operands(node, found)
    return iter(found)


def _operands(node, found):
    kind = type(node)               # the hottest function of the compiler: no isinstance
    if kind is Var:
        found.append(node)
    elif kind is Apply:
        for a in node.args:
            _operands(a, found)
        for _, a in node.kwargs:
            _operands(a, found)
    elif kind is Pack:
        for a in node.items:
            _operands(a, found)
    elif kind is Slice:
        _operands(node.start, found)
        _operands(node.stop, found)
        _operands(node.step, found)


def placed(bound: dict[str, Any]) -> Iterator[tuple[str, int | None, Any]]:
    """The operands of a call: (argument, place in a sequence or None, operand).

    Lists inside a sequence become arrays when a call is read, so rules have derivatives for these operands only; for
    operands nested deeper see `astray`.
    """
    for name, value in bound.items():
        items = value.items if isinstance(value, Pack) else value if isinstance(value, tuple) else None
        if items is None:
            yield name, None, value
        else:
            yield from ((name, k, item) for k, item in enumerate(items))


def astray(bound: dict[str, Any], of: Callable[[Var], Any]) -> bool:
    """Whether a variable for which `of` is true is nested deeper in an argument than rules support (see `placed`)."""
    return any(of(v) for _, _, item in placed(bound) if not isinstance(item, Var) for v in operands(item))


def same_operand(a: Any, b: Any) -> bool:
    """Whether two operands certainly have equal values: one variable, equal constants, packs and slices of these."""
    if a is None or b is None or isinstance(a, Var) or isinstance(b, Var):
        return a is b
    if isinstance(a, Const) and isinstance(b, Const):
        return _same_constant(a.value, b.value)
    if isinstance(a, Pack) and isinstance(b, Pack):
        return a.kind == b.kind and len(a.items) == len(b.items) and all(map(same_operand, a.items, b.items))
    return isinstance(a, Slice) and isinstance(b, Slice) and all(
        same_operand(getattr(a, end), getattr(b, end)) for end in Slice.__slots__)


def _same_constant(a, b):
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, slice):
        return all(map(_same_constant, (a.start, a.stop, a.step), (b.start, b.stop, b.step)))
    return type(a) in SCALARS and repr(a) == repr(b)


def substituted(node: Any, env: dict[Var, Any]) -> Any:
    """A value with variables replaced; itself if nothing changes."""
    kind = type(node)
    if kind is Var:
        return env.get(node, node)
    if kind is Const:
        return node
    if kind is Apply:
        args = tuple([substituted(a, env) for a in node.args])
        kwargs = tuple([(k, substituted(a, env)) for k, a in node.kwargs]) if node.kwargs else ()
        return node if _same(args, node.args) and _same([a for _, a in kwargs], [a for _, a in node.kwargs]) \
            else Apply(node.function, args, kwargs, node.origin)
    if kind is Pack:
        items = tuple([substituted(a, env) for a in node.items])
        return node if _same(items, node.items) else Pack(node.kind, items, node.keys, node.cls)
    if kind is Slice:
        parts = [substituted(a, env) for a in (node.start, node.stop, node.step)]
        return node if _same(parts, (node.start, node.stop, node.step)) else Slice(*parts)
    return node


def _same(a, b):
    for x, y in zip(a, b):
        if x is not y:
            return False
    return True


def blocks(step: Any) -> tuple[list, ...]:
    """The blocks inside a statement."""
    kind = type(step)
    if kind is Let:
        return ()
    if kind is For:
        return (step.body,)
    if kind is While:
        return (step.head, step.body)
    if kind is If:
        return (step.then, step.orelse)
    return ()


def entry_reads(step: Let | For | While | If | Effect) -> Iterator[Var]:
    """The variables that a statement reads before its blocks run (for a simple statement: all)."""
    found: list = []
    _entry_reads(step, found)
    return iter(found)


def _entry_reads(step, found):
    kind = type(step)
    if kind is Let or kind is Effect:
        _operands(step.value, found)
    elif kind is For:
        _operands(step.count, found)
        for _, source in step.items:
            _operands(source, found)
        for c in step.carries:
            _operands(c.init, found)
    elif kind is While:
        for c in step.carries:
            _operands(c.init, found)
    elif kind is If:
        _operands(step.test, found)


def all_reads(step: Let | For | While | If | Effect) -> Iterator[Var]:
    """Every variable read in a statement, its blocks, carries and joins included."""
    found: list = []
    _all_reads(step, found)
    return iter(found)


def _all_reads(step, found):
    _entry_reads(step, found)
    for block in blocks(step):
        for inner in block:
            _all_reads(inner, found)
    kind = type(step)
    if kind is For or kind is While:
        for c in step.carries:
            _operands(c.next, found)
        if kind is While:
            _operands(step.test, found)
    elif kind is If:
        for j in step.joins:
            _operands(j.then, found)
            _operands(j.orelse, found)


def read_counts(function: Function) -> dict[Var, int]:
    """How often each value is read in a function."""
    counts: dict = {}
    for v in [*(v for s in function.body for v in all_reads(s)), *operands(function.result)]:
        counts[v] = counts.get(v, 0) + 1
    return counts


def made(step: Let | For | While | If | Effect) -> Iterator[Var]:
    """The variables that a statement defines for those after it."""
    if isinstance(step, Let):
        yield from step.targets
    elif isinstance(step, (For, While)):
        for c in step.carries:
            yield c.outer
    elif isinstance(step, If):
        for j in step.joins:
            yield j.var


def all_made(block: Iterable) -> Iterator[Var]:
    """Every variable defined in a block and the blocks inside it."""
    found: list = []
    _all_made(block, found)
    return iter(found)


def _all_made(block, found):
    for step in block:
        kind = type(step)
        if kind is Let:
            found += step.targets
            continue
        found += made(step)
        if kind is For:
            found.append(step.index)
            found += [item for item, _ in step.items]
        if kind is For or kind is While:
            found += [c.inner for c in step.carries]
        for inner in blocks(step):
            _all_made(inner, found)


def walk(block: Iterable) -> Iterator:
    """Every statement of a block and the blocks inside it, outer first."""
    for step in block:
        yield step
        if type(step) is not Let:
            for inner in blocks(step):
                yield from walk(inner)


def rebuilt(step: Let | For | While | If | Effect, env: dict[Var, Any], inner: Callable[[list], list],
            sub: Callable[[Any, dict[Var, Any]], Any] = substituted) -> Any:
    """A statement with its own operands replaced by `env` and its blocks by `inner(block)`; targets stay.

    sub: gives a value, or an operand, in which variables are replaced.
    """
    if isinstance(step, Let):
        return Let(step.targets, sub(step.value, env), step.origin)
    if isinstance(step, Effect):
        return Effect(sub(step.value, env), step.origin, step.note)
    if isinstance(step, For):
        body = inner(step.body)
        carries = [Carry(c.inner, sub(c.init, env), sub(c.next, env), c.outer) for c in step.carries]
        items = tuple((v, sub(s, env)) for v, s in step.items)
        return For(step.index, sub(step.count, env), items, carries, body, step.origin, step.reverse, step.policy,
                   step.note)
    if isinstance(step, While):
        head, body = inner(step.head), inner(step.body)
        carries = [Carry(c.inner, sub(c.init, env), sub(c.next, env), c.outer) for c in step.carries]
        return While(carries, head, sub(step.test, env), body, step.origin, step.policy)
    then, orelse = inner(step.then), inner(step.orelse)
    joins = [Join(j.var, sub(j.then, env), sub(j.orelse, env)) for j in step.joins]
    return If(sub(step.test, env), then, orelse, joins, step.origin)


def replaced(block: Iterable, env: dict[Var, Any]) -> list:
    """A block with variables replaced everywhere."""
    return [rebuilt(s, env, lambda b: replaced(b, env)) for s in block]


def without_effects(block: Iterable) -> list:
    """A block without its effects."""
    return [rebuilt(s, {}, without_effects) for s in block if not isinstance(s, Effect)]


def copied(block: list, env: dict[Var, Any], sub: Callable[[Any, dict[Var, Any]], Any] = substituted) -> list:
    """A copy of a block with fresh variables, which are added to `env`, for all it defines; sub: as in `rebuilt`."""
    for v in all_made(block):
        env[v] = v.like()
    return _renamed(block, env, sub)


def _renamed(block, env, sub):
    out = []
    for step in block:
        new = rebuilt(step, env, lambda b: _renamed(b, env, sub), sub)
        if isinstance(new, Let):
            new.targets = tuple(env.get(t, t) for t in new.targets)
        elif isinstance(new, (For, While)):
            for c in new.carries:
                c.inner, c.outer = env.get(c.inner, c.inner), env.get(c.outer, c.outer)
            if isinstance(new, For):
                new.index = env.get(new.index, new.index)
                new.items = tuple((env.get(v, v), s) for v, s in new.items)
        elif isinstance(new, If):
            for j in new.joins:
                j.var = env.get(j.var, j.var)
        out.append(new)
    return out
