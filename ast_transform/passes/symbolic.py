# SPDX-License-Identifier: Apache-2.0
"""Arguments of custom rules with symbolic zeros: flags for differentiated arguments, and tangents known to be zero."""
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Function, Let, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.derivatives import enter
from gradscribe.ast_transform.reader.operands import settle, spelled_value
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.runtime.derivatives import CustomVJPPrimal, SymbolicZero

if TYPE_CHECKING:
    from gradscribe.ast_transform.reader.states import Reader


def is_array(value: Any) -> bool:
    """Whether a value is an array or a number."""
    return isinstance(value, Var) and isinstance(value.fact, Array) or isinstance(value, Const) and isinstance(
        value.value, (numbers.Number, np.ndarray, np.generic))


def each_array(reader, value, change):
    """A container with `change` applied to each array and number in it."""
    value = settle(reader, value)
    if isinstance(value, Struct):
        return Struct(value.kind, [each_array(reader, i, change) for i in value.items], value.keys, value.cls)
    return change(value) if is_array(value) else value


def zero_of(reader: "Reader", value: Any) -> Struct:
    """A symbolic zero of the shape and dtype of an operand."""
    fact = fact_of(value)
    lengths = [d.normal() for d in fact.dims]
    shape = [Const(n.offset) if n.symbol is None else reader.build.length(value, k) for k, n in enumerate(lengths)]
    return Struct("record", [Struct("tuple", shape), Const(np.dtype(fact.dtype))], ("shape", "dtype"), SymbolicZero)


def told(reader: "Reader", value: Any, active: set[Var]) -> Any:
    """An argument with each array in a record that tells whether its adjoint is needed."""
    return each_array(reader, value, lambda v: Struct(
        "record", [v, Const(v in active)], ("value", "perturbed"), CustomVJPPrimal))


def pair_of(reader: "Reader", callee: Function, args: list, step: Let) -> list:
    """[value, tangent], as a custom rule for forward mode returns them."""
    pair = settle(reader, enter(reader, callee.custom.rule.rule, args, {}))
    if not isinstance(pair, Struct) or pair.kind not in ("tuple", "list") or len(pair.items) != 2:
        raise KindError(f"the rule of {callee.label} must return a pair, (value, tangent); it returns "
                        f"{spelled_value(reader, pair)}", step.origin, "Return both: return y, y_dot.")
    return pair.items


def is_zero(value: Any) -> bool:
    return isinstance(value, Struct) and value.cls is SymbolicZero


def without_zeros(reader: "Reader", value: Any, zero: Any = 0.0) -> Any:
    """A result of a rule with numbers in the place of symbolic zeros."""
    value = settle(reader, value)
    if is_zero(value):
        return Const(zero)
    if not isinstance(value, Struct) or not any(map(_holds_zeros, value.items)):
        return value
    return Struct(value.kind, [without_zeros(reader, i, zero) for i in value.items], value.keys, value.cls)


def _holds_zeros(value):
    return is_zero(value) or isinstance(value, Struct) and any(map(_holds_zeros, value.items))
