# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that have a normal form of their own: which ones are inlined, and how.

A call is kept where a mode makes a derivative function of the callee; elsewhere its body is inlined.

>>> from gradscribe.ast_transform.core.form import Const, Param
>>> x, y, z = Var("x", Array(float)), Var("y", Array(float)), Var("z", Array(float))
>>> callee = Function("f", [Param("x", x)], [Let((y,), Apply(abs, (x,)))], y)
>>> call = Let((z,), Apply(callee, (Const(-2.0),)))
>>> inlined(call)[0].value.args[0].value
-2.0
"""
from collections.abc import Callable, Iterable

from gradscribe.ast_transform.core.form import (
    Apply,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Param,
    Var,
    While,
    copied,
    rebuilt,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array


def called(step: Let | For | While | If | Effect) -> Function | None:
    """The function with its own normal form that a statement calls, or None."""
    function = step.value.function if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return function if isinstance(function, Function) else None


def is_call(step: Let | For | While | If | Effect) -> bool:
    """Whether a statement calls such a function, and it has no custom rule."""
    callee = called(step)
    return callee is not None and callee.custom is None


def has_custom_rule(step: Let | For | While | If | Effect) -> bool:
    """Whether a statement calls a function with a custom rule."""
    callee = called(step)
    return callee is not None and callee.custom is not None


def is_of_some_lines(callee: Function) -> bool:
    """Whether a function has three source lines or more."""
    return len({s.origin.line for s in walk(callee.body) if getattr(s, "origin", None) is not None}) >= 3


def stands_alone(callee: Function) -> bool:
    """Whether a mode keeps calls of a callee: it has some lines, and its results do not alias its arguments."""
    return is_of_some_lines(callee) and bool(callee.notes.get("fresh"))


def are_its_own(results: list, params: Iterable[Param]) -> bool:
    """Whether results are arrays, different from one another and from the parameters."""
    return all(isinstance(r, Var) and type(r.fact) is Array for r in results) and \
        len(set(results)) == len(results) and {p.value for p in params}.isdisjoint(results)


def in_place_of_calls(body: list, instead: Callable[[Let, Function], list | None]) -> tuple[list, bool]:
    """(the body with other statements in place of calls, whether any call was replaced).

    instead(step, callee): the statements for a call, or None to keep it
    """
    found = False

    def visit(block):
        nonlocal found
        out = []
        for step in block:
            step = rebuilt(step, {}, visit)
            callee = called(step)
            new = None if callee is None else instead(step, callee)
            found |= new is not None
            out += [step] if new is None else new
        return out
    body = visit(body)
    return body, found


def inlined(step: Let) -> list:
    """The body of a callee, to stand in place of its call."""
    callee, args = step.value.function, step.value.args
    env = {p.value: a for p, a in zip(callee.params, args)}
    body = copied(callee.body, env)
    result = substituted(callee.result, env)
    if isinstance(result, Pack):
        return [*body, *(Let((t,), r, step.origin) for t, r in zip(step.targets, result.items))]
    return [*body, Let(step.targets, result, step.origin)]


EVERY = ("vjp", "jvp", "vmap", "each")


def without_calls(body: Iterable, custom: tuple[str, ...] = (), plain: bool = True) -> list:
    """The body with calls inlined.

    custom: the kinds of custom rules whose functions are inlined; plain: whether those without a rule are
    """
    out = []
    for step in body:
        step = rebuilt(step, {}, lambda block: without_calls(block, custom, plain))
        callee = called(step)
        if callee is not None and callee.custom and callee.custom.rule.mode in custom:
            own = Function(callee.label, callee.params, callee.body, callee.result)
            out += without_calls(inlined(Let(step.targets, Apply(own, step.value.args), step.origin)), custom)
        elif plain and is_call(step):
            out += without_calls(inlined(step), custom)
        else:
            out.append(step)
    return out
