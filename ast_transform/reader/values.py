# SPDX-License-Identifier: Apache-2.0
"""The values of the reader: what a name of the user's function may hold (operand, container, function, iterator)."""
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence


class Struct:
    """A container of known structure.  Two names for one list hold one Struct.

    `whole` is the operand or Part for the same container in emitted code, if there is one.  `identity` identifies the
    container in the running program: it is the same before and after a branch.  `given_by` is the function whose
    result this is; its fields may have names.
    """
    __slots__ = ("alone", "cls", "given_by", "items", "keys", "kind", "mark", "version", "whole")

    def __init__(self, kind, items, keys=(), cls=None, whole=None, identity=None):
        self.kind, self.items, self.keys, self.cls, self.whole = kind, list(items), tuple(keys), cls, whole
        self.version, self.mark = 0, object()       # copies keep the mark
        self.given_by = None
        self.alone = False              # a literal that is appended to a list, so it has no alias

    def fact(self, fact_of):
        return Sequence(self.kind, tuple(map(fact_of, self.items)), self.keys, self.cls)


class Frame:
    """One function being read: its variables, and the outer scopes for other names."""
    __slots__ = ("caller", "env", "errors", "outer", "plain", "source", "statement")

    def __init__(self, source, env=None, outer=None, caller=None, plain=True):
        self.source, self.env, self.outer, self.caller, self.plain = source, env or {}, outer, caller, plain
        self.statement, self.errors = None, {}          # {lines of a with: np.errstate settings}


@dataclass(eq=False, slots=True)
class Part:
    """container[key], which has not been read yet."""
    parent: Any
    key: Any
    fact: Any


SPENT = ("spent",)                      # marks an exhausted iterator; the keys of its Struct


class Grown:
    """A list whose length is known only at run time: its current operand, and the fact of its elements.

    once: None; for a list that represents a generator the number of loops around it, SPENT after it was iterated over
    """
    __slots__ = ("element", "mark", "once", "value", "version")

    def __init__(self, value, element, mark=None, once=None):
        self.value, self.element, self.mark, self.once, self.version = value, element, mark or object(), once, 0


class Rows:
    """A list of tuples whose length is known only at run time: a list for each leaf of the tuples, and their form."""
    __slots__ = ("columns", "form", "mark")

    def __init__(self, columns, form, mark=None):
        self.columns, self.form, self.mark = columns, form, mark or object()


@dataclass(eq=False, slots=True)
class FunctionValue:
    """A function or lambda defined in the function being read, whose variables it sees."""
    node: Any
    frame: Any
    source: Any
    defaults: list
    keyword_defaults: dict


@dataclass(eq=False, slots=True)
class Method:
    value: Any
    name: str


@dataclass(eq=False, slots=True)
class Bound:
    """A functools.partial or bound method: a function with some arguments bound."""
    function: Any
    args: list
    kwargs: dict


@dataclass(eq=False, slots=True)
class Converted:
    """A closure-converted function, which takes its captured values as last arguments: see closures.py."""
    function: Any
    params: list


@dataclass(eq=False, slots=True)
class Derived:
    """transform(base), made in the function being read."""
    transform: Any
    base: Any


@dataclass(eq=False, slots=True)
class Section:
    """A callable as a function from one leaf of one argument to one leaf of its result."""
    base: Any
    args: list
    words: dict
    place: Any                      # argument number or name
    path: tuple
    result: tuple


@dataclass(eq=False, slots=True)
class RangeValue:
    start: Any
    stop: Any
    step: Any


@dataclass(eq=False, slots=True)
class Walk:
    """What a for loop iterates over: known values, or a count, sources and a function that binds a pass."""
    static: list | None = None
    count: Any = None
    items: tuple = ()               # (hint, fact, source operand)
    bind: Any = None                # (index, item variables) -> value
    plain: bool = False             # range(n): the index itself
    held: list | tuple = ()         # the current values of the sources
    sources: tuple = ()             # (container, what must not change meanwhile: keys, rest or all)
    reads: tuple = ()               # (frame, name, value) from which Python computes its elements later
    lists: list | tuple = ()        # [mark, place, whether in order] of lists that Python reads

    def at(self, place, items):
        """The value that the loop's target is bound to in the pass with this index."""
        for held in self.lists:
            held[1] = place
        return self.bind(place, items)


@dataclass(eq=False, slots=True)
class View:
    """dict.keys(), .values() or .items(): the contents of the dictionary when the view is read."""
    value: Any
    name: str


STATELESS = "stateless"                 # for itertools.repeat, whose elements are all the same


@dataclass(eq=False, slots=True)
class Endless:
    """An endless iterator: `at` returns the element at an index.

    loops: the loops around its creation; None once it has been used; STATELESS if using it changes nothing
    """
    at: Any
    loops: Any


def held_by(value: Any) -> list:
    """The values inside a method, a view, a partial function, or a function with defaults."""
    if isinstance(value, (Method, View)):
        return [value.value]
    if isinstance(value, Bound):
        return [value.function, *value.args, *value.kwargs.values()]
    if isinstance(value, FunctionValue):
        return [*value.defaults, *value.keyword_defaults.values()]
    if isinstance(value, Rows):
        return value.columns
    if isinstance(value, Converted):
        return [value.function]
    return [value.base] if isinstance(value, Derived) else []


def holding(value: Any, parts: list) -> Any:
    """A copy of a value with its parts replaced."""
    if all(a is b for a, b in zip(held_by(value), parts)):
        return value
    if isinstance(value, (Method, View)):
        return type(value)(parts[0], value.name)
    if isinstance(value, Bound):
        n = len(value.args) + 1
        return Bound(parts[0], parts[1:n], dict(zip(value.kwargs, parts[n:])))
    if isinstance(value, FunctionValue):
        n = len(value.defaults)
        return replace(value, defaults=parts[:n], keyword_defaults=dict(zip(value.keyword_defaults, parts[n:])))
    if isinstance(value, Rows):
        return Rows(parts, value.form, value.mark)
    if isinstance(value, Converted):
        return Converted(parts[0], value.params)
    return replace(value, base=parts[0])


def hold(value: Any, k: int, part: Any) -> None:
    """Replace a part of a value."""
    changed = holding(value, [part if j == k else v for j, v in enumerate(held_by(value))])
    for name in value.__slots__:
        setattr(value, name, getattr(changed, name))


def alike(a: Any, b: Any) -> bool:
    """Whether two values are equal except for the parts they hold."""
    if type(a) is not type(b) or len(held_by(a)) != len(held_by(b)):
        return False
    if isinstance(a, (Method, View)):
        return a.name == b.name
    if isinstance(a, Rows):
        return a.mark is b.mark
    if isinstance(a, Converted):
        return a.params is b.params
    if isinstance(a, FunctionValue):
        return a.node is b.node and a.frame is b.frame
    return isinstance(a, Bound) and list(a.kwargs) == list(b.kwargs) or isinstance(a, Derived) and \
        a.transform is b.transform
SPELLED = {                         # for messages
    FunctionValue: "a function", Method: "a method", Bound: "a function", Derived: "a function", Section: "a function",
    Converted: "a function", RangeValue: "a range",
    Walk: "an iterator", View: "a view of a dictionary", Endless: "an iterator without an end",
    Grown: "a list", Rows: "a list of tuples", Slice: "a slice",
}


class Held:
    """Values of a partly evaluated expression, with the interface of a frame's variables."""
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held

    @property
    def env(self):
        return self

    def items(self):
        return [("item" + " " * k, v) for k, v in enumerate(self.held)]

    def values(self):
        return self.held

    def get(self, key, default=None):
        k = len(key) - 4
        return self.held[k] if k < len(self.held) else default

    def __setitem__(self, key, value):
        self.held[len(key) - 4] = value

    def clear(self):
        """Do nothing: all values are overwritten by an update."""

    def update(self, env):
        for key, value in env.items():
            self[key] = value


SET_BEFORE = "Set it before the loop."


@dataclass(eq=False, slots=True)
class Conflict:
    """The value of a name for which no single value exists after a branch; reading it is an error."""
    reason: str
    advice: str = "Give it one kind on every path."
    memory: bool = False                # about aliases, so that unrolling the loop resolves it


@dataclass(eq=False, slots=True)
class Known:
    """An operand as a @static helper of a rule sees it: rank and dtype, and whether it has entries."""
    ndim: int
    dtype: Any
    dims: tuple = ()

    def has_entries(self, axes):
        """Whether these axes have entries in the example, to which the result is specialised; False if unsure."""
        return all(self.dims[k].demand(1) for k in axes)


def known(node: Any) -> Any:
    """An operand as a static helper sees it."""
    if isinstance(node, Const):
        return node.value
    if isinstance(node, (Var, Part)) and isinstance(node.fact, Array):
        return Known(node.fact.rank, _dtype(node.fact), node.fact.dims)
    if isinstance(node, Struct):
        items = [
            Known(0, np.dtype(type(i.value)))
            if isinstance(i, Const) and type(i.value) in (float, complex)
            else known(i)
            for i in node.items
        ]
        return tuple(items) if node.kind == "tuple" else items
    if isinstance(node, Pack):
        return tuple(known(i) for i in node.items)
    if isinstance(node, Slice):
        return slice(*(None if p is None else known(p) for p in (node.start, node.stop, node.step)))
    return node


def _dtype(fact):
    return np.dtype(fact.dtype)


def as_value(value: Any) -> Struct | Const:
    """A Python value as a value of the reader."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return Struct("tuple", [as_value(v) for v in value])
    if isinstance(value, list):
        return Struct("list", [as_value(v) for v in value])
    return Const(value)


def as_python(node: Any) -> Any:
    """The Python value of a value known when transforming; raises ValueError if it is not known."""
    if isinstance(node, Const):
        return node.value
    if isinstance(node, (Struct, Pack)) and node.kind in ("tuple", "list"):
        items = [as_python(i) for i in node.items]
        return tuple(items) if node.kind == "tuple" else items
    if isinstance(node, Slice):
        return slice(*(None if p is None else as_python(p) for p in (node.start, node.stop, node.step)))
    raise ValueError


class Pullback:
    """A custom backward rule: its function, its residuals, and the arguments whose adjoints it returns."""

    def __init__(self, callee, residuals, args):
        self.callee, self.rule, self.residuals, self.args = callee, callee.custom.rule, residuals, args
        self.__name__ = "pullback"


def is_function(value: Any) -> bool:
    """Whether a value is a function that may capture another function's variables."""
    return isinstance(value, (FunctionValue, Bound, Derived, Converted)) or isinstance(value, Method)


def variables_in(value: Any) -> Iterator[Var]:
    """The variables of a value of the reader."""
    if isinstance(value, Struct):
        for item in value.items:
            yield from variables_in(item)
    elif isinstance(value, Var):
        yield value


def with_keys(value: Any, words: str) -> str:
    """The text for a container in a message; a dict is described by its keys."""
    return f"a dict of {', '.join(map(repr, value.keys))}" if getattr(value, "kind", None) == "dict" else words
