# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the compiler, which point to the user's line, and the renderer of their messages.

RuleError: np.sort has no derivative rule
model.py:14, in loss
y = np.sum(np.sort(x)[:k])
^^^^^^^^^^
grad(loss) asks for x, and y depends on it.
"""
from typing import Any

from gradscribe.ast_transform.source import cells


class TransformError(Exception):
    """A function that cannot be transformed; str() shows the reason, the user's line and the way out.

    Attributes: reason (str), origin (the place in the user's code, or None), advice (str, the way out).
    """

    # set by the reader, on some errors only
    python: type[BaseException] | None      # the exception that Python itself would raise here for certain
    block: list                             # the statements that were being collected
    variable: Any                           # the value that would have to be known when transforming
    shared: bool                            # a container is changed that another name may show

    def __init__(self, reason: str, origin=None, advice: str = ""):
        super().__init__(reason)
        self.reason, self.origin, self.advice = reason, origin, advice

    def __str__(self):
        return render(self)

    def _render_traceback_(self):       # for IPython
        return cells.rendered(self)

    def __reduce__(self):               # errors are pickled between processes
        return type(self), (self.reason, self.origin, self.advice)


class LanguageError(TransformError):
    """Python outside the accepted language, or source that is not available."""


OF_OBJECTS = "an array of texts or other objects is not differentiated"


class RuleError(TransformError):
    """A function or an argument without a rule, or a derivative that does not exist."""


class ShapeError(TransformError):
    """Shapes, ranks or structures that do not fit."""


class KindError(TransformError, TypeError):
    """A value of the wrong type: an integer array asked for its gradient, an output that is not a scalar."""


for _class in (TransformError, LanguageError, RuleError, ShapeError, KindError):
    _class.__module__ = "gradscribe"        # where users find them, and what Python prints


class OutOfMemory(TransformError, MemoryError):
    """A device has too little memory for the arrays of a function."""


class LaunchError(TransformError, RuntimeError):
    """A device failed in a kernel, or could not start one."""


class TooDeep(RecursionError):
    """Python's recursion limit was reached while reading a function; `refusal`: the error if it cannot be raised."""

    def __init__(self, refusal: TransformError):
        super().__init__(refusal.reason)
        self.refusal = refusal


# the way out where a value must be known when transforming
KNOWN = ("Write a literal, or pass it as an argument of its own that is a plain number. In a loop over literals, "
         "for k in (1, 2),\nk is known in each pass.")


class Demand(Exception):
    """The caller must specialise again: with the value of a parameter or, if `variable` is None, with equal lengths."""

    def __init__(self, variable, reason, origin=None):
        super().__init__(reason)
        self.variable, self.reason, self.origin = variable, reason, origin


def render(error: TransformError) -> str:
    lines = [error.reason]
    places, origin = [], error.origin
    while origin is not None:
        places.append(origin)
        origin = origin.caller
    places.reverse()
    for k, place in enumerate(places):
        if len(places) > 8 and 2 <= k < len(places) - 2:
            lines += ["  ... and so on ..."] * (k == 2)
            continue
        lines.append(f"  {cells.place(place.file, place.line)}, in {place.function}")
        text = place.text()
        if text.strip():
            indent = len(text) - len(text.lstrip())
            end = place.end_column if place.end_line == place.line else len(text)
            start = max(place.column, indent)
            lines.append("    " + text.strip())
            lines.append("    " + " " * (start - indent) + "^" * max(1, end - start))
    if error.advice:
        lines += ["  " + line for line in error.advice.splitlines()]
    return "\n".join(lines)
