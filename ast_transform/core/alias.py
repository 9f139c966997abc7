# SPDX-License-Identifier: Apache-2.0
"""Alias analysis of one operation: by its record, whether its result shares memory with its operands.

An operation without a record may share memory with every array among its operands, and may raise.

>>> import numpy as np
>>> from gradscribe.ast_transform.core.kinds import unknown
>>> import gradscribe.ast_transform.rules.tables
>>> x = Var("x", Array(np.dtype(float), (unknown(), unknown())))
>>> memory_of(Apply(np.transpose, (x,))), memory_of(Apply(np.sin, (x,)))
(VIEW, FRESH)
>>> memory_of(Apply(lambda a: a, (x,)))
ALIASES
>>> memory_of(Apply(np.einsum, (Const("ij->ji"), x))), memory_of(Apply(np.einsum, (Const("ij->i"), x)))
(VIEW, FRESH)
"""
import inspect
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.draw import Draw
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Slice,
    Var,
    While,
    is_application,
    operands,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.memory import (
    ALIASES,
    FRESH,
    LOCKED,
    PART,
    UNKNOWN,
    UPDATES,
    VIEW,
    Memory,
    Undecided,
)
from gradscribe.ast_transform.core.rule import OPERATIONS, RULES, Operation, Rule, signature_of


def record_of(function: Any) -> Rule | Operation | None:
    """The record of an operation: its rule, or an Operation if it has no derivative; None without a record."""
    try:
        return RULES.get(function) or OPERATIONS.get(function)
    except TypeError:
        return None


def memory_of(value: Apply) -> Memory:
    """How the result of an operation relates to the memory of its operands (core/memory.py)."""
    function = value.function
    if isinstance(function, Function):
        return FRESH if function.notes.get("fresh") else ALIASES
    record = record_of(function)
    if record is not None and record.memory is not None:
        return record.memory
    if record is not None and "memory" in record.parts:
        return decided(record, "memory", value, ALIASES)
    return FRESH if isinstance(function, np.ufunc | Draw) else ALIASES      # a ufunc allocates, and so does a draw


def may_give_a_cell(value: Apply) -> bool:
    """Whether a result without axes may be an array in an operand's memory; an entry at integers is a number."""
    if is_application(value, operator.getitem):
        return any(isinstance(p, Const) and p.value is Ellipsis for p in parts_of(value.args[1]))
    if isinstance(value.function, Function):
        result = value.function.result
        shown = next((s.value for s in walk(value.function.body) if isinstance(s, Let) and result in s.targets), None)
        return may_give_a_cell(shown) if isinstance(shown, Apply) else isinstance(result, Var)
    return bool(memory_of(value).shares)


def decided(record: Rule | Operation, part: str, value: Apply, otherwise: Any) -> Any:
    """What a part of a record, such as `memory`, says of a call; `otherwise` if an argument that it asks is unknown."""
    wanted, names = signature_of(record.parts[part]).parameters, list(record.signature.parameters.values())
    given, rest = {}, []
    for k, a in enumerate(value.args):
        if k < len(names) and names[k].kind in (inspect.Parameter.POSITIONAL_ONLY,
                                                inspect.Parameter.POSITIONAL_OR_KEYWORD):
            given[names[k].name] = told(a)
        else:
            rest.append(told(a))
    given.update((k, told(a)) for k, a in value.kwargs)
    args = []
    for p in wanted.values():
        if p.kind is p.VAR_POSITIONAL:
            args += rest
        else:
            known = record.signature.parameters.get(p.name)
            args.append(given[p.name] if p.name in given else known.default if known is not None else p.default)
    try:
        return record.parts[part](*args)
    except Undecided:
        return otherwise


def told(node: Any) -> Any:
    """An argument as such a part of a record gets it."""
    if isinstance(node, Const):
        return node.value
    if isinstance(node, Pack):
        return tuple(map(told, node.items))
    if isinstance(node, Slice):
        return slice(*(None if p is None else told(p) for p in (node.start, node.stop, node.step)))
    return node.fact if isinstance(node, Var) and isinstance(node.fact, Array) else UNKNOWN


def holds_memory(var: Any) -> bool:
    """Whether a value may share memory with others: an array with axes, or a container."""
    return isinstance(var, Var) and (not isinstance(var.fact, Array) or bool(var.fact.dims))


def is_number(node: Any) -> bool:
    """Whether a value is certainly a number, which aliases no array."""
    return isinstance(node, Var) and isinstance(node.fact, Array) and not node.fact.dims


def viewed(value: Apply) -> Var | None:
    """The operand that a view is of: the first that holds memory."""
    if is_application(value, operator.getitem) or isinstance(value.args[0] if value.args else None, Var):
        first = value.args[0]
        return first if isinstance(first, Var) else None
    return next((v for v in operands(value) if holds_memory(v)), None)


def aliased(value: Apply) -> tuple:
    """The operands that the result of an operation may share memory with."""
    shares = memory_of(value).shares
    if not shares:
        return ()
    if shares == "first" and value.args and isinstance(value.args[0], Apply):
        return aliased(value.args[0])
    found = list(dict.fromkeys(v for a in (*value.args, *dict(value.kwargs).values()) for v in _memory_in(a)))
    return tuple(found[:1] if shares == "first" else found)


def _memory_in(node):
    """The variables whose memory an operand may share; for a nested operation, those that its result may alias."""
    if isinstance(node, Apply):
        return aliased(node)
    if isinstance(node, Pack):
        return [v for item in node.items for v in _memory_in(item)]
    return [node] if holds_memory(node) else []


def is_fresh(value: Any) -> bool:
    """Whether an operation certainly makes a new array, or a number; one that may return its first operand does if that
    operand is new.
    """
    if not isinstance(value, Apply):
        return False
    memory = memory_of(value)
    return memory is FRESH or memory.shares == "first" and not memory.certain and bool(value.args) and is_fresh(
        value.args[0])


def reads(value: Any) -> str:
    """How much an operation reads of its first operand, an array: "all", the "part" at an index, or its "shape"."""
    record = record_of(value.function) if isinstance(value, Apply) and value.args else None
    return "all" if record is None else record.options.get("reads", "all")


def filled_with(value: Any) -> Any:
    """The number that all entries of a new array are; None if they are not known to be one."""
    record = record_of(value.function) if isinstance(value, Apply) else None
    if record is None:
        return None
    entries = record.options.get("entries")
    if isinstance(entries, str):        # the argument of this name
        place = list(record.signature.parameters).index(entries)
        given = dict(value.kwargs).get(entries, value.args[place] if place < len(value.args) else None)
        entries = given.value if isinstance(given, Const) and type(given.value) in (int, float) else None
    return entries


def role(value: Any) -> str:
    """The algebraic role of an operation by its record: "sum", "product", "total", ...; "" if it has none."""
    record = record_of(value.function) if isinstance(value, Apply) else None
    return "" if record is None else record.options.get("algebra", "")


def updates(value: Any) -> bool:
    """Whether an operation writes into its first operand: its result is that operand after the write."""
    record = record_of(value.function) if isinstance(value, Apply) else None
    return record is not None and (record.memory is UPDATES or record.changes)


def may_raise(value: Apply) -> bool:
    """Whether an operation may raise, so that it must not be moved up or be added to another path."""
    record = record_of(value.function)
    if record is None or record.raises is True:
        return True
    if record.raises == "numbers":
        return not any(isinstance(v.fact, Array) and not v.fact.weak for v in operands(value))
    return getattr(value.function, "__module__", "") in ("math", "cmath")       # NumPy gives nan where these raise


def shows(value: Any) -> bool:
    """Whether a value computes nothing: an operand, or a view."""
    return not isinstance(value, Apply) or memory_of(value).certain


def raised(step: Let | For | While | If | Effect) -> tuple[str, ...]:
    """The floating-point errors that raise in a statement, by np.errstate; none in views and Python arithmetic."""
    if isinstance(step, Let) and (shows(step.value) or all(
            isinstance(t.fact, Array) and t.fact.weak for t in step.targets)):
        return ()
    return step.origin.raised() if step.origin is not None else ()


def repeatable(value: Apply) -> bool:
    """Whether one result may serve for two calls with the same operands.

    Not if the result is an array to be written, or the operation writes or may have effects, as one without a record.
    """
    if isinstance(value.function, Function):
        return bool(value.function.notes.get("fresh"))
    record = record_of(value.function)
    if record is None or record.changes or record.memory is UPDATES or record.memory is ALIASES:
        return False
    return not record.options.get("allocates") and not record.options.get("of_shape")


def is_cheap(value: Apply) -> bool:
    """Whether computing a result again costs less than saving it: a view, a length, a filled array, arithmetic."""
    record = record_of(value.function)
    if record is None:
        return False
    said = record.options.get("cheap")
    if said is False:
        return False
    if callable(said):
        said = said(*map(told, value.args))
    return bool(said or record.options.get("of_shape") or record.options.get("allocates") == "filled") or \
        memory_of(value) in (VIEW, PART, LOCKED)


def gathers(index: Any) -> bool:
    """Whether an index holds an array, so that it reads a copy (advanced indexing)."""
    for p in index if type(index) is tuple else (index,):
        if isinstance(p, Array) and (p.dims or p.kind == "b") or isinstance(p, (np.ndarray, list, bool, np.bool_)):
            return True
    return False


def parts_of(index: Any) -> list:
    """The parts of an index, as operands."""
    if isinstance(index, Pack):
        return list(index.items)
    if isinstance(index, Const) and isinstance(index.value, tuple):
        return [Const(p) for p in index.value]
    return [index]
