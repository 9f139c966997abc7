# SPDX-License-Identifier: Apache-2.0
"""Running error analysis as a transformation: which arguments have errors; how it is done is in passes/errors.py."""
from typing import Any, NamedTuple

from gradscribe.ast_transform.core.kinds import Array, spell
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.errors import unit
from gradscribe.ast_transform.requirements import caller_of, place_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import Transform, differentiable, leaves_of, parameter_names

ROUNDED = "rounded"


class ErrorBound(NamedTuple):
    """The settings of running error analysis.

    inputs: the relative error of the arguments, ROUNDED, None, or a tuple of these
    """
    inputs: Any = None

    def relative(self, place):
        """The relative error of an argument: a number, ROUNDED or None."""
        if isinstance(self.inputs, tuple):
            return self.inputs[place] if isinstance(place, int) else None
        return self.inputs


def error_bound(inputs: Any = None) -> Transform:
    """(x, ...) -> (value, bound of its error)"""
    return Transform("error_bound", ErrorBound(inputs), wanted=uncertain, derived=bounded)


def uncertain(reader, settings, base, args, words):
    """The places of the arguments that have errors."""
    places = [*range(len(args)), *words]
    if isinstance(settings.inputs, tuple) and len(settings.inputs) != len(args):
        raise KindError(f"inputs has {len(settings.inputs)} entries, and {len(args)} positional arguments are given",
                        place_of(base, None, caller_of(reader)), "Give one for each, None for an exact one.")
    names = [*parameter_names(base, len(args)), *words]
    for value, name in zip([*args, *words.values()], names):
        fact = fact_of(value) if not hasattr(value, "items") else None
        if isinstance(fact, Array) and fact.kind == "c":
            raise KindError(f"error_bound needs real numbers; {name} is {spell(fact)}",
                            place_of(base, name, caller_of(reader)), "Give real and imaginary parts.")
    return [k for k, v in zip(places, [*args, *words.values()])
            if settings.relative(k) is not None and differentiable(v)]


def bounded(reader, settings, call):
    """The function that is called, with a bound of its error."""
    relative = {leaf: settings.relative(place) for place, value in zip(call.places, call.wrt)
                for leaf in leaves_of([value])}
    inputs = {leaf: unit if given == ROUNDED else float(given) for leaf, given in relative.items()}
    return reader.engine.error_bound(call.function, inputs, f"error_bound_{call.function.label}"), list
