# SPDX-License-Identifier: Apache-2.0
"""Closure conversion: a function given as an argument comes in, with parameters for the variables it captures.

A captured variable may have changed when the function is read again: later in the enclosing function, or in another
transformation.  So the function is stored with the current values of its variables; each array among them becomes a
parameter.
"""
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.frames import set_by
from gradscribe.ast_transform.reader.operands import as_operand, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import loaded
from gradscribe.ast_transform.reader.values import (
    Converted,
    Frame,
    FunctionValue,
    Part,
    Struct,
    held_by,
    holding,
    is_function,
)
from gradscribe.runtime.derivatives import closure_convert


def with_parameters(reader: Reader, value: Any, env: dict, memo: dict | None = None) -> Any:
    """A value with a parameter for each array that it holds or reads; `env` maps each parameter to its operand."""
    memo = {} if memo is None else memo
    if isinstance(value, FunctionValue):
        return function_alone(reader, value, env, memo)
    if isinstance(value, Converted):
        keep = {p: p for p in value.params}
        return Converted(with_parameters(reader, value.function, env, {**memo, "kept": keep}), value.params)
    if isinstance(value, Struct) and value.whole is None:
        if id(value) not in memo:
            memo[id(value)] = made = Struct(value.kind, (), value.keys, value.cls)
            made.items = [with_parameters(reader, i, env, memo) for i in value.items]
        return memo[id(value)]
    if isinstance(value, Part) or isinstance(value, Struct):
        return dispatch.as_parameter(reader, value, False, env)
    if isinstance(value, Var) and isinstance(value.fact, Array):
        if value in memo.get("kept", ()):
            return value
        if value not in memo:
            memo[value] = dispatch.as_parameter(reader, value, False, env)
        return memo[value]
    return holding(value, [with_parameters(reader, v, env, memo) for v in held_by(value)])


def function_alone(reader: Reader, value, env, memo):
    if id(value) in memo:
        return memo[id(value)]
    frame = Frame(value.frame.source, plain=value.frame.plain)
    made = memo[id(value)] = FunctionValue(value.node, frame, value.source, [], {})
    made.defaults = [with_parameters(reader, v, env, memo) for v in value.defaults]
    made.keyword_defaults = {k: with_parameters(reader, v, env, memo) for k, v in value.keyword_defaults.items()}
    spec = value.node.args
    own = {a.id for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg] if a}
    own |= set(set_by(reader, value.source))
    for name in loaded(value.node):
        where = value.frame
        while name not in own and where is not None:
            if name in where.env:
                frame.env[name] = with_parameters(reader, where.env[name], env, memo)
                break
            where = where.outer
    return made


def call_closure_convert(reader: Reader, function, args, words, node):
    """closure_convert(fun, *example_args): the differentiable values that fun captures become arguments."""
    if not is_function(args[0]):
        return Struct("tuple", [args[0], Struct("list", [])])
    env: dict[Any, Any] = {}
    closed = with_parameters(reader, args[0], env)
    hoisted = {p: v for p, v in env.items() if p.fact.differentiable}
    closed = substituted_value(closed, {p: v for p, v in env.items() if p not in hoisted})
    return Struct("tuple", [Converted(closed, list(hoisted)), Struct("list", list(hoisted.values()))])


def call_converted(reader: Reader, value: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    count = len(args) - len(value.params)
    given = [as_operand(reader, settle(reader, a)) for a in args[count:]]
    return dispatch.call_value(
        reader, substituted_value(value.function, dict(zip(value.params, given))), args[:count], words, node
    )


def substituted_value(value: Any, env: dict[Var, Any], memo: dict[int, Any] | None = None) -> Any:
    """A value of the reader with its variables replaced, including those that its functions read."""
    made: Any
    memo = {} if memo is None else memo
    if isinstance(value, Var):
        return env.get(value, value)
    if isinstance(value, Const) or id(value) in memo:
        return memo.get(id(value), value)
    if isinstance(value, Part):
        return part_of(substituted_value(value.parent, env, memo), value)
    if isinstance(value, Struct):
        made = memo[id(value)] = Struct(value.kind, (), value.keys, value.cls)
        if value.version == 0 and isinstance(value.whole, (Var, Part)):
            whole = substituted_value(value.whole, env, memo)
            made.whole = whole if isinstance(whole, (Var, Part)) else None
        made.items = [substituted_value(i, env, memo) for i in value.items]
        return made
    if isinstance(value, FunctionValue) and value.frame.outer is None:
        frame = Frame(value.frame.source, plain=value.frame.plain)
        made = memo[id(value)] = FunctionValue(value.node, frame, value.source, [], {})
        made.defaults = [substituted_value(v, env, memo) for v in value.defaults]
        made.keyword_defaults = {k: substituted_value(v, env, memo) for k, v in value.keyword_defaults.items()}
        frame.env.update({n: substituted_value(v, env, memo) for n, v in value.frame.env.items()})
        return made
    if isinstance(value, Converted):
        return Converted(substituted_value(value.function, env, memo), value.params)
    return holding(value, [substituted_value(v, env, memo) for v in held_by(value)])


def part_of(holder, part):
    """The corresponding part of another container."""
    if not isinstance(holder, (Pack, Struct)):
        return part if holder is part.parent else Part(holder, part.key, part.fact)
    found = holder.items[holder.keys.index(part.key.value) if holder.keys else part.key.value]
    return Struct(found.kind, found.items, found.keys, found.cls) if isinstance(found, Pack) else found


SPECIAL.update({
    closure_convert: call_closure_convert,
})
