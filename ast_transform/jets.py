# SPDX-License-Identifier: Apache-2.0
"""Taylor mode as a transformation: (x, ..., series of x, ...) -> (y, series of y)."""
from typing import Any

from gradscribe.ast_transform.core.form import TANGENT, Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.reader.operands import as_operand, settle
from gradscribe.ast_transform.reader.values import Part, Struct
from gradscribe.ast_transform.requirements import caller_of, check_fit, fact_of_value, in_order, place_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import Transform, differentiated, fresh, leaves_of, parameter_names


class Jet(Transform):
    """order: the number of coefficients; scaled: whether they are divided by the factorials of their orders."""

    prefix = "jet"

    def __init__(self, order: int, scaled: bool = False) -> None:
        self.order, self.scaled = order, scaled

    def names(self, names):
        out = list(names)
        for n in names:
            out.append(fresh(f"{n}_series", out))
        return out

    def split(self, reader, args):
        half = len(args) // 2
        if len(args) != 2 * half:
            raise KindError(f"each primal needs a series; {len(args)} arguments are given", caller_of(reader),
                            "Give the primals, then as many series.")
        return args[:half], args[half:]

    def wanted(self, reader, base, args, words):
        return differentiated("jet", base, args, caller_of(reader))

    def apply(self, engine, function, wrt):
        self.kept, self.about = wrt, function.about
        function.body = drop_dead(function.body, function.result)       # dead code may have no rule
        return engine.taylor(function, leaves_of(wrt), f"jet_{function.label}", self.order, self.scaled)

    def extra_operands(self, reader, made, extra, wrt):
        caller, names, out = caller_of(reader), parameter_names(self.about, len(extra)), []
        for primal, k in zip(self.kept, wrt):
            if not isinstance(k, int):
                continue
            place, name = place_of(self.about, names[k], caller), names[k]
            terms = self.terms(reader, extra[k], name, place)
            for n, term in enumerate(terms, 1):
                check_fit(fact_of_value(primal), fact_of_value(term), name, f"term {n} of the series", place)
            self.visit(reader, primal, terms, out)
        return out

    def terms(self, reader, series, name, place) -> list:
        """The terms of a series."""
        series = settle(reader, series)
        if not isinstance(series, Struct) or series.kind not in ("tuple", "list"):
            raise KindError(f"the series of {name} must be a tuple or list of terms", place,
                            "Give the derivatives of the orders 1, 2, ..., in this order.")
        if len(series.items) != self.order:
            raise KindError(f"the series of {name} has {len(series.items)} terms instead of {self.order}", place,
                            "Give as many terms for each argument; 0.0, or an array of zeros, where there is none.")
        return series.items

    def visit(self, reader, primal: Any, terms: list, out: list) -> None:
        """Appends the operands of the terms for each array and number of an argument."""
        if isinstance(primal, Struct) and primal.whole is None:
            parts = [in_order(primal, settle(reader, t)) for t in terms]
            for k, p in enumerate(primal.items):
                self.visit(reader, p, [part[k] for part in parts], out)
        elif isinstance(primal, Struct) or isinstance(primal, Var) and primal.fact.differentiable:
            for n, term in enumerate(terms, 1):
                operand = as_operand(reader, term)
                if isinstance(term, Part) and isinstance(operand, Var) and operand.hint.endswith("_series"):
                    operand.hint = f"{operand.hint.removesuffix('_series')}_d{n}"
                    operand.kind = TANGENT
                out.append(operand)


class Solution(Transform):
    """(y, t, ...) -> the Taylor coefficients 1, ..., order in time of the solution of y' = f(y, t, ...) through y."""

    prefix = "solution"

    def __init__(self, order: int) -> None:
        self.order = order

    def wanted(self, reader, base, args, words):
        caller = caller_of(reader)
        found = differentiated("solution", base, args, caller)
        for k, name in enumerate(parameter_names(base, 2)):
            if k not in found:
                raise KindError(f"solution needs floating-point arguments; {name} is not" if k < len(args) else
                                f"solution needs y and t; {name} is not given", place_of(base, name, caller),
                                f"Convert it to float: 1.0 * {name}.")
        return [0, 1]

    def apply(self, engine, function, wrt):
        place, rate = place_of(function.about, None, caller_of(engine.reader)), function.result
        state, time = wrt
        if not isinstance(state, Var) or not isinstance(state.fact, Array) or not isinstance(rate, (Var, Const)):
            raise KindError("y and its derivative must be arrays", place,
                            "gs.tree_util.ravel_pytree makes a vector of a tree.")
        if not isinstance(time, Var) or time.fact.dims:
            raise KindError("t must be a number", place)
        check_fit(state.fact, fact_of_value(rate), "y", "the derivative", place)
        function.body = drop_dead(function.body, function.result)
        return engine.solution(function, state, time, f"solution_{function.label}", self.order)
