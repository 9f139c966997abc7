# SPDX-License-Identifier: Apache-2.0
"""Taylor mode as a transformation: (x, ..., series of x, ...) -> (y, series of y)."""
from functools import partial
from typing import Any, NamedTuple

from gradscribe.ast_transform.core.form import TANGENT, Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.reader.operands import as_operand, settle
from gradscribe.ast_transform.reader.values import Part, Struct
from gradscribe.ast_transform.requirements import caller_of, check_fit, fact_of_value, in_order, place_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import (
    Transform,
    differentiated,
    halves,
    leaves_of,
    parameter_names,
    with_second_half,
)


class Series(NamedTuple):
    """The settings of Taylor mode.

    order: the number of coefficients; scaled: whether they are divided by the factorials of their orders
    """
    order: int
    scaled: bool = False


def jet(order: int, scaled: bool = False) -> Transform:
    """(x, ..., series of x, ...) -> (y, series of y)"""
    return Transform("jet", Series(order, scaled), split=partial(halves, "series", "series"),
                     names=partial(with_second_half, "_series"),
                     wanted=partial(differentiated, "jet"), derived=coefficients)


def coefficients(reader, settings, call):
    """The coefficients of the function that is called, with its value."""
    function = call.function
    function.body = drop_dead(function.body, function.result)       # dead code may have no rule
    made = reader.engine.taylor(function, leaves_of(call.wrt), f"jet_{function.label}", settings.order, settings.scaled)

    def operands():
        caller, names, out = caller_of(reader), parameter_names(function.about, len(call.extra)), []
        for primal, k in zip(call.wrt, call.places):
            if not isinstance(k, int):
                continue
            place, name = place_of(function.about, names[k], caller), names[k]
            terms = terms_of(reader, settings, call.extra[k], name, place)
            for n, term in enumerate(terms, 1):
                check_fit(fact_of_value(primal), fact_of_value(term), name, f"term {n} of the series", place)
            visit(reader, primal, terms, out)
        return out
    return made, operands


def terms_of(reader, settings, series, name, place) -> list:
    """The terms of a series."""
    series = settle(reader, series)
    if not isinstance(series, Struct) or series.kind not in ("tuple", "list"):
        raise KindError(f"the series of {name} must be a tuple or list of terms", place,
                        "Give the derivatives of the orders 1, 2, ..., in this order.")
    if len(series.items) != settings.order:
        raise KindError(f"the series of {name} has {len(series.items)} terms instead of {settings.order}", place,
                        "Give as many terms for each argument; 0.0, or an array of zeros, where there is none.")
    return series.items


def visit(reader, primal: Any, terms: list, out: list) -> None:
    """Appends the operands of the terms for each array and number of an argument."""
    if isinstance(primal, Struct) and primal.whole is None:
        parts = [in_order(primal, settle(reader, t)) for t in terms]
        for k, p in enumerate(primal.items):
            visit(reader, p, [part[k] for part in parts], out)
    elif isinstance(primal, Struct) or isinstance(primal, Var) and primal.fact.differentiable:
        for n, term in enumerate(terms, 1):
            operand = as_operand(reader, term)
            if isinstance(term, Part) and isinstance(operand, Var) and operand.hint.endswith("_series"):
                operand.hint = f"{operand.hint.removesuffix('_series')}_d{n}"
                operand.kind = TANGENT
            out.append(operand)


def solution(order: int) -> Transform:
    """(y, t, ...) -> the Taylor coefficients 1, ..., order in time of the solution of y' = f(y, t, ...) through y."""
    return Transform("solution", Series(order), wanted=state_and_time, derived=solved)


def state_and_time(reader, settings, base, args, words):
    """The places of y and t; KindError if they are no floating-point numbers."""
    found = differentiated("solution", reader, settings, base, args, words)
    for k, name in enumerate(parameter_names(base, 2)):
        if k not in found:
            raise KindError(f"solution needs floating-point arguments; {name} is not" if k < len(args) else
                            f"solution needs y and t; {name} is not given", place_of(base, name, caller_of(reader)),
                            f"Convert it to float: 1.0 * {name}." if k < len(args) else "Give both.")
    return [0, 1]


def solved(reader, settings, call):
    """The coefficients of the solution of the equation whose right-hand side is called."""
    function = call.function
    place, rate = place_of(function.about, None, caller_of(reader)), function.result
    state, time = call.wrt
    if not isinstance(state, Var) or not isinstance(state.fact, Array) or not isinstance(rate, (Var, Const)):
        raise KindError("y and its derivative must be arrays", place,
                        "gs.tree_util.ravel_pytree makes a vector of a tree.")
    if not isinstance(time, Var) or time.fact.dims:
        raise KindError("t must be a number", place, "Call it once for each time.")
    check_fit(state.fact, fact_of_value(rate), "y", "the derivative", place)
    function.body = drop_dead(function.body, function.result)
    return reader.engine.solution(function, state, time, f"solution_{function.label}", settings.order), list
