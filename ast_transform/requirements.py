# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, results, tangents and adjoints of transformations; errors point to the user's own line."""
import functools
import types
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Function, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, Opaque, Sequence, Stack, Stream, holds_numbers, spell, unify
from gradscribe.ast_transform.passes.described import AS_ARRAY, fact_of
from gradscribe.ast_transform.reader.values import Bound, FunctionValue, Part, Struct
from gradscribe.ast_transform.source.diagnose import KindError, ShapeError, TransformError
from gradscribe.ast_transform.source.origin import Origin
from gradscribe.ast_transform.source.read import read, unwrap

if TYPE_CHECKING:
    from gradscribe.ast_transform.reader.states import Reader

# places

def source_of(base):
    """The source of the function inside a callable (a partial, a method, a transformed function); None without one."""
    while True:
        if isinstance(base, (FunctionValue,)):
            return base.source
        if isinstance(base, functools.partial):
            base = base.func
        elif isinstance(base, types.MethodType):
            base = base.__func__
        elif isinstance(base, Bound):
            base = base.function
        elif hasattr(base, "transform") and hasattr(base, "base"):
            base = base.base
        else:
            break
    try:
        return read(base) if isinstance(unwrap(base), types.FunctionType) else None
    except TransformError:
        return None

AS_PARTS = "Give the arrays that it holds in a dictionary, a named tuple or a dataclass."


def place_of(base: Any, name: str | None = None, caller: Origin | None = None) -> Origin | None:
    """The place of a function's definition, or of its parameter `name`; without source, the place of the call."""
    source = source_of(base)
    if source is None:
        return caller
    spec = source.tree.args
    for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]:
        if a is not None and a.id == name:
            return source.origin(a, None, caller)
    return source.header(caller)


def place_of_result(base: Any, caller: Origin | None = None) -> Origin | None:
    """The place of the last expression that a function returns; without one, of its definition."""
    source = source_of(base)
    if source is None:
        return caller
    tree = source.tree
    if isinstance(tree, gast.Lambda):
        return source.origin(tree.body, None, caller)
    found = [n for n in _own(tree.body) if isinstance(n, gast.Return)]
    if not found:
        return place_of(base, None, caller)
    return source.origin(found[-1].value or found[-1], None, caller)


def _own(body):
    for node in body:
        yield node
        if not isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            for field in ("body", "orelse"):
                inner = getattr(node, field, None)
                if isinstance(inner, list):
                    yield from _own(inner)


def caller_of(reader: "Reader | None") -> Origin | None:
    """The place of the call that is being read; None for the outermost function."""
    return reader.build.origin if reader is not None and reader.environment.stack else None


# arguments and results

def check_inputs(value: Any, name: str, label: str, holomorphic: bool, base: Any,
                 caller: Origin | None = None) -> None:
    """Raises KindError unless a value to differentiate holds only floating-point numbers, or None."""
    def visit(fact, path):
        if isinstance(fact, Sequence):
            keys = fact.keys or range(len(fact.elements))
            for k, e in zip(keys, fact.elements):
                visit(e, f"{path}.{k}" if fact.kind == "record" else f"{path}[{k!r}]")
            return
        if isinstance(fact, Opaque) and fact.value is None:
            return
        where = f"{path} is {spell(fact)}"
        if not isinstance(fact, Array) or fact.kind not in "biufc":
            short = isinstance(fact, Array) and np.dtype(fact.dtype).name == "bfloat16"
            raise KindError(f"{label} needs floating-point arguments; {where}", place_of(base, name, caller),
                            f"NumPy computes with these in other dtypes. Convert it: {path}.astype(np.float32)."
                            if short else without(fact, path, name))
        if fact.kind in "iub":
            advice = "Convert it to float" if not fact.dims else f"Convert it: {path}.astype(float)"
            advice += ", or pass it as an argument of its own." if path != name else \
                f"{';' if fact.dims else ','} or name other arguments by argnums."
            raise KindError(f"{label} needs floating-point arguments; {where}", place_of(base, name, caller), advice)
        if holomorphic and fact.kind != "c":
            raise KindError(f"holomorphic=True needs complex arguments; {where}",
                            place_of(base, name, caller), f"Convert it: {path} + 0j; or leave holomorphic out.")
    visit(fact_of_value(value), name)


def without(fact, path, name):
    """The advice for a value that is to be differentiated and is not numeric."""
    value = getattr(fact, "value", None)
    if isinstance(value, np.ndarray):
        return AS_ARRAY
    if isinstance(fact, Array):
        return f"Convert it: {path}.astype(float)."
    if holds_numbers(value):
        return f"{AS_PARTS} Or name other arguments by argnums." if path == name else AS_PARTS
    return "Name the arguments to differentiate by argnums." if path == name else \
        "Pass it as an argument of its own, beside what is differentiated."


def check_scalar(result: Any, function: Function, holomorphic: bool, caller: Origin | None = None) -> None:
    fact, label, base = fact_of(result), function.label, function.about

    def refuse(reason, advice):
        raise KindError(f"{reason}; {label} returns {spell(fact)}", place_of_result(base, caller), advice)
    if isinstance(fact, Opaque) and fact.value is None:
        refuse("grad needs a function that returns a scalar", "Return the value to differentiate.")
    if isinstance(fact, (Sequence, Stack)):
        refuse("grad needs a function that returns a scalar",
               "Return one number; others may come with it by has_aux=True.")
    if not isinstance(fact, Array):
        refuse("grad needs a function that returns a scalar", "Return the value to differentiate.")
    if fact.dims:
        refuse("grad needs a function that returns a scalar", "Sum it, or use gs.jacrev or gs.vjp.")
    if fact.kind in "iub":
        refuse("grad needs a function that returns a floating-point number",
               "The derivative of a whole number or a truth value is zero.")
    if fact.kind == "c" and not holomorphic:
        refuse("grad needs a real result", "Pass holomorphic=True, or take np.real or np.abs.")
    if holomorphic and fact.kind != "c":
        refuse("holomorphic=True needs a complex result", "Leave holomorphic out.")


def check_pair(result: Any, function: Function, caller: Origin | None = None) -> None:
    """Raises KindError unless a function with has_aux returns (value, aux)."""
    if not isinstance(result, Pack) or result.kind != "tuple" or len(result.items) != 2:
        raise KindError(
            f"has_aux: {function.label} must return a pair (value, aux); it returns {spell(fact_of(result))}",
            place_of_result(function.about, caller), "Return (value, aux), or leave has_aux out.")


# tangents and adjoints

def fact_of_value(value: Any) -> Array | Sequence | Stack | Opaque | Stream:
    """The fact of a value of the reader, which may be a container."""
    if isinstance(value, (Struct, Pack)):
        return Sequence(value.kind, tuple(map(fact_of_value, value.items)), tuple(value.keys), value.cls)
    if isinstance(value, (Part, Var)):
        return value.fact
    if isinstance(value, Const):
        return fact_of(value)
    return Opaque(value)


def check_fit(like: Array | Sequence | Stack | Opaque | Stream, given: Array | Sequence | Stack | Opaque | Stream,
              name: str, what: str, place: Origin | None) -> None:
    """Raises unless a tangent has the structure, dtypes and shapes of its primal, or an adjoint those of its result."""
    def visit(a, b, path):
        if isinstance(a, Sequence):
            if not isinstance(b, Sequence) or a.kind != b.kind or len(a.elements) != len(b.elements):
                raise KindError(f"{what} of {path} is {spell(b)}; {path} is {spell(a)}", place,
                                "Give it the same structure.")
            if set(a.keys) != set(b.keys):
                raise KindError(f"{what} of {path} has the keys {_keys(b)}; {path} has {_keys(a)}", place,
                                "Give it the same structure.")
            for k, e in zip(a.keys or range(len(a.elements)), a.elements):
                visit(e, b.elements[b.keys.index(k) if b.keys else k],
                      f"{path}.{k}" if a.kind == "record" else f"{path}[{k!r}]")
            return
        if not isinstance(a, Array) or not a.differentiable:
            return                      # its tangent is not read
        reason = f"{what} of {path} is {spell(b)}; {path} is {spell(a)}"
        if not isinstance(b, Array):
            raise KindError(reason, place, "Give it the same structure.")
        if a.rank != b.rank or not all(map(unify, a.dims, b.dims)):
            raise ShapeError(reason, place, "Give it the same shape.")
        same = b.kind == a.kind or b.kind == "f" or b.weak and b.kind == "i"        # a Python number takes the dtype
        real = a.kind == "c" and b.kind == "f" and not b.weak and np.result_type(b.dtype, np.complex64) == a.dtype
        if not same or not a.weak and not b.weak and a.dtype != b.dtype and not real:
            raise KindError(reason, place, "Give it the same dtype.")
    visit(like, given, name)


def in_order(like: Struct | Pack, value: Struct | Pack) -> list | tuple:
    """The items of a container in the order of the keys of `like`."""
    if isinstance(value, Struct) and value.keys and tuple(value.keys) != tuple(like.keys):
        return [value.items[value.keys.index(k)] for k in like.keys]
    return value.items


def _keys(fact):
    return ", ".join(map(str, fact.keys))
