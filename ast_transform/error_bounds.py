# SPDX-License-Identifier: Apache-2.0
"""Running error analysis as a transformation: which arguments have errors; how it is done is in passes/errors.py."""
from gradscribe.ast_transform.core.kinds import Array, spell
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.errors import unit
from gradscribe.ast_transform.requirements import caller_of, place_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import Transform, differentiable, leaves_of, parameter_names

ROUNDED = "rounded"


class ErrorBound(Transform):
    """(value, bound of its error); inputs: the relative error of the arguments, ROUNDED, None, or a tuple of these."""

    prefix = "error_bound"

    def __init__(self, inputs=None):
        self.inputs = inputs

    def wanted(self, reader, base, args, words):
        places = [*range(len(args)), *words]
        if isinstance(self.inputs, tuple) and len(self.inputs) != len(args):
            raise KindError(f"inputs has {len(self.inputs)} entries, and {len(args)} positional arguments are given",
                            place_of(base, None, caller_of(reader)), "Give one for each, None for an exact one.")
        names = [*parameter_names(base, len(args)), *words]
        for value, name in zip([*args, *words.values()], names):
            fact = fact_of(value) if not hasattr(value, "items") else None
            if isinstance(fact, Array) and fact.kind == "c":
                raise KindError(f"error_bound needs real numbers; {name} is {spell(fact)}",
                                place_of(base, name, caller_of(reader)), "Give real and imaginary parts.")
        self.places = [k for k, v in zip(places, [*args, *words.values()])
                       if self.relative(k) is not None and differentiable(v)]
        return self.places

    def relative(self, place):
        """The relative error of an argument: a number, ROUNDED or None."""
        if isinstance(self.inputs, tuple):
            return self.inputs[place] if isinstance(place, int) else None
        return self.inputs

    def apply(self, engine, function, wrt):
        relative = {leaf: self.relative(place) for place, value in zip(self.places, wrt) for leaf in leaves_of([value])}
        inputs = {leaf: unit if given == ROUNDED else float(given) for leaf, given in relative.items()}
        return engine.error_bound(function, inputs, f"error_bound_{function.label}")
