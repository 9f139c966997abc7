# SPDX-License-Identifier: Apache-2.0
"""Operands: a value of the reader comes in; an operand of the normal form, or its Python value, comes out."""
import operator
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.children import name_of
from gradscribe.ast_transform.core.form import USER, Apply, Const, Pack, Param, Slice, Var, is_application, operands
from gradscribe.ast_transform.core.kinds import Array, Opaque, Sequence, spell, unknown, with_article
from gradscribe.ast_transform.core.operations import size_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import certain_value
from gradscribe.ast_transform.reader.frames import fail, here
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import (
    SPELLED,
    Bound,
    Conflict,
    FunctionValue,
    Grown,
    Method,
    Part,
    RangeValue,
    Rows,
    Struct,
    View,
    Walk,
)
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError


def settle(reader: Reader, value: Any) -> Any:
    """A value in its final form: a Part is read, a dict view becomes a list, a Conflict is refused."""
    if isinstance(value, Part):
        return as_struct(reader, value) if isinstance(value.fact, Sequence) else operand_of_part(reader, value)
    if isinstance(value, View):
        return dispatch.shown_by_dict_view(reader, value)
    if isinstance(value, Conflict):         # a write in the same expression made it one
        dispatch.unroll_for_conflict(reader, value, None)
        fail(reader, ShapeError, f"what is read here is {value.reason}", None, value.advice)
    return value


def passed_value(reader: Reader, value: Any) -> Any:
    """A value to be bound to a name; a dict view stays a view."""
    return value if isinstance(value, View) else settle(reader, value)


def operand_of_part(reader: Reader, part: Any) -> Any:
    if not isinstance(part, Part):
        return part
    parent = operand_of_part(reader, part.parent)
    if isinstance(part.fact, Sequence) and part.parent.fact.kind == "record" or \
            isinstance(part.parent.fact, Sequence) and part.parent.fact.kind == "record":
        value = Apply(getattr, (parent, part.key))
    else:
        value = Apply(operator.getitem, (parent, part.key))
    hint = str(part.key.value) if isinstance(part.key.value, str) else parent.hint
    return reader.build.let(hint if hint.isidentifier() else "item", value, part.fact)


def as_operand(reader: Reader, value: Any) -> Any:
    """A value as an operand of the normal form."""
    value = settle(reader, value) if not (isinstance(value, Part) and isinstance(value.fact, Sequence)) else value
    if isinstance(value, (Var, Const, Pack, Slice)):
        return value
    certain_value(reader, value, None)
    if isinstance(value, Part):
        return operand_of_part(reader, value)
    if isinstance(value, Struct):
        if value.whole is not None and value.version == 0:
            return operand_of_part(reader, value.whole)
        return pack(reader, value)
    if isinstance(value, Rows):
        fail(reader, LanguageError, "a list of tuples whose length is known only when running is no value here", None,
             "Take it apart first: a, b = zip(*rows); or keep several lists.")
    if isinstance(value, Grown):
        fail(reader, LanguageError, "a list whose length is known only when running is no value here", None,
             "Make an array of it: np.array(items).")
    if isinstance(value, (FunctionValue, Method, Bound, RangeValue, Walk)):
        fail(reader, LanguageError, f"{spelled_value(reader, value)} is not a value here", None,
             "Call it, or make a list of it.")
    return Const(value)


def must_be_plain(reader: Reader, value: Any, node: gast.AST | None) -> None:
    """Refuse a container that emitted code cannot make, such as an iterator or an instance of a subclass."""
    if isinstance(value, Struct):
        if value.kind == "object":
            fail(reader, LanguageError, f"an object of class {value.cls.__name__} is no value that can be returned or "
                 "handed on", node, "Use its attributes; named tuples and dataclasses can be returned.")
        if value.kind == "iterator" or value.kind != "record" and value.cls is not None:
            fail(reader, LanguageError, f"{spelled_value(reader, value)} is not a value here", node,
                 "Make a list or a dict of it.")
        for item in value.items:
            must_be_plain(reader, item, node)


def pack(reader: Reader, value: Any) -> Pack:
    must_be_plain(reader, value, None)
    return Pack(value.kind, tuple(as_operand(reader, i) for i in value.items), value.keys, value.cls)


def known_value(reader: Reader, value: Any, what: str, node: gast.AST | None) -> Any:
    """A value that must be known when transforming; if it depends on an argument, that is demanded."""
    try:
        return python_value(reader, value, node)
    except LanguageError as error:
        variable = getattr(error, "variable", None)
        if variable is None:
            raise
    demand(reader, variable, what, node)


def demand(reader: Reader, var: Any, what: str, node: gast.AST | None) -> None:
    raise Demand(
        var,
        f"{what} must be known when transforming",
        here(reader, node) if reader.environment.frame.plain else reader.build.origin,
    )


def root_arguments(reader: Reader, var: Any) -> list:
    """The arguments that a value is computed from."""
    found, queue, seen = [], [var], set()
    while queue:
        v = queue.pop()
        if v in seen:
            continue
        seen.add(v)
        made = reader.build.made.get(v)
        if made is None:
            found.append(v)
        else:
            queue += list(operands(made))
    return found


def python_value(reader: Reader, value: Any, node: gast.AST | None) -> Any:
    value = settle(reader, value)
    if isinstance(value, Const):
        return value.value
    if isinstance(value, (Struct, Pack)) and value.kind in ("tuple", "list"):
        return (tuple if value.kind == "tuple" else list)(python_value(reader, i, node) for i in value.items)
    if isinstance(value, Struct) and value.kind == "dict":
        return dict(zip(value.keys, (python_value(reader, i, node) for i in value.items)))
    if isinstance(value, Slice):
        return slice(
            *(None if p is None else python_value(reader, p, node) for p in (value.start, value.stop, value.step))
        )
    if isinstance(value, Var):
        n = value.fact.length.normal() if isinstance(value.fact, Array) and value.fact.length is not None else None
        if n is not None and n.symbol is None:
            return n.offset
        known = entry_from_outside(reader, value)
        if known is not None:
            array, place, entry = known
            reader.environment.kind_guards.append(lambda: array[place] == entry)
            return entry
        error = LanguageError(
            "this depends on a value that is not known when transforming",
            here(reader, node) if node is not None and reader.environment.frame.plain else reader.build.origin,
            "Use a literal, or an operation on arrays.",
        )
        error.variable = value
        raise error
    fail(reader, LanguageError, f"{spelled_value(reader, value)} is no value that is known when transforming", node,
         "Use a literal, or an operation on arrays.")


def entry_from_outside(reader: Reader, value: Any) -> tuple | None:
    """(array, index, value) of an entry of a captured integer array, to which the version is specialised; or None."""
    made: Any = reader.build.made.get(value) if isinstance(value, Var) else None
    if not is_application(made, operator.getitem) or not isinstance(made.args[1], Const):
        return None
    array = next((array for var, array in reader.environment.captured.values() if var is made.args[0]), None)
    if array is None or array.dtype.kind not in "iu":
        return None
    entry = array[made.args[1].value]
    return (array, made.args[1].value, int(entry)) if np.ndim(entry) == 0 else None


def spelled_value(reader: Reader, value: Any) -> str:
    if isinstance(value, Struct):
        kind = name_of(value.cls) if isinstance(value.cls, type) else value.kind
        return f"an object of class {kind}" if value.kind == "object" else \
            f"{with_article(kind)} of {len(value.items)}"
    if isinstance(value, (Var, Const)):
        return spell(fact_of(value))
    return SPELLED.get(type(value)) or with_article(type(value).__name__)


def entry_count(reader: Reader, value: Any) -> Any:
    fact = fact_of(value)
    if not fact.rank:
        return Const(1)
    if fact.rank == 1:
        return reader.build.length(value, 0)
    rest = [d for d in fact.dims if not d.is_unit]
    if all(d.normal().symbol is None for d in rest):
        return Const(int(np.prod([d.normal().offset for d in rest], dtype=int)))
    length = rest[0] if len(rest) == 1 else unknown("?size", any(d.many for d in rest))
    return reader.build.let("size", Apply(size_of, (value,)), Array(int, (), length))


def parameter(reader: Reader, name: str, fact: Any) -> tuple:
    if isinstance(fact, Opaque):
        return [Param(name, Const(fact.value))], Const(fact.value)
    if isinstance(fact, Sequence) and reader.unroll:
        leaves: list = []
        value = parameter_leaves(reader, name, fact, leaves)
        return leaves, value
    var = Var(name, fact, USER)
    if isinstance(fact, Sequence):
        return [Param(name, var)], as_struct(reader, var)
    return [Param(name, var)], var


def parameter_leaves(reader: Reader, path, fact, out):
    if isinstance(fact, Sequence):
        labels = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
        items = [parameter_leaves(reader, f"{path}_{k}", e, out) for k, e in zip(labels, fact.elements)]
        return Struct(fact.kind, items, fact.keys, fact.cls)
    if isinstance(fact, Opaque):
        return Const(fact.value)
    label = "".join(c if c.isalnum() else "_" for c in path)
    var = Var(label, fact, USER)
    out.append(Param(label, var))
    return var


def as_struct(reader: Reader, container: Any) -> Any:
    """The container in an operand or Part, as a Struct of its parts."""
    fact = container.fact
    keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
    return Struct(
        fact.kind, [part(reader, container, k, e) for k, e in zip(keys, fact.elements)], fact.keys, fact.cls, container
    )


def part(reader: Reader, container, key, fact):
    return Const(fact.value) if isinstance(fact, Opaque) else Part(container, Const(key), fact)


def as_given(index: Any) -> Any:
    """An index in the form in which a method receives it."""
    return Struct("tuple", index.items) if isinstance(index, Pack) else index


def is_count(value: Any) -> bool:
    """Whether a value is a Python integer that is not known when transforming."""
    return isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.weak and value.fact.dtype is int
