# SPDX-License-Identifier: Apache-2.0
"""Normal forms of small functions, printed as text: for doctests, and to see what a pass does.

>>> print(show(form("def f(x): return np.sin(x) * x", 2.0)))
f(x):
    sin_x = np.sin(x)
    t = sin_x * x
    return t
"""
import numpy as np

from gradscribe.ast_transform.core.form import Function
from gradscribe.ast_transform.mapping import vmap
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.ast_transform.shown import show  # noqa: F401  (examples print what they make)
from gradscribe.ast_transform.source.read import from_text


def form(text, *args, pipeline=None) -> Function:
    """The normal form of the first function in a text, specialised to arguments like these."""
    function = from_text(text, {"np": np}, f"<example {text}>")
    names = function.__code__.co_varnames[:len(args)]
    return (pipeline or Pipeline()).normal_form(
        function, names, [describe(a, n) for a, n in zip(args, names)], {}, function.__name__)


def gradient(text, *args, wrt=(0,)) -> Function:
    """The gradient of the first function in a text, before simplification."""
    pipeline = Pipeline()
    made = form(text, *args, pipeline=pipeline)
    return pipeline.reverse(made, [made.params[k].value for k in wrt], f"grad_{made.label}", many=len(wrt) > 1)


def tangent(text, *args, wrt=(0,)) -> Function:
    """The tangent of the first function in a text, before simplification."""
    pipeline = Pipeline()
    made = form(text, *args, pipeline=pipeline)
    return pipeline.forward(made, [made.params[k].value for k in wrt], f"jvp_{made.label}")


def taylor(text, *args, wrt=(0,), order=2) -> Function:
    """The higher derivatives of the first function in a text along a curve, before simplification."""
    pipeline = Pipeline()
    made = form(text, *args, pipeline=pipeline)
    return pipeline.taylor(made, [made.params[k].value for k in wrt], f"jet_{made.label}", order)


def bound(text, *args) -> Function:
    """The first function in a text with a bound of its rounding error, before simplification."""
    pipeline = Pipeline()
    made = form(text, *args, pipeline=pipeline)
    return pipeline.error_bound(made, {}, f"error_bound_{made.label}")


def batched(text, *args, axes=0) -> Function:
    """The first function in a text mapped over a batch, before simplification."""
    function = from_text(text, {"np": np}, f"<example {text}>")
    names = function.__code__.co_varnames[:len(args)]
    transform = vmap(axes)
    return Pipeline().normal_form(Transforming(transform, function), names,
                                  [describe(a, n) for a, n in zip(args, names)], {}, f"vmap_{function.__name__}")


class Transforming:
    """A transformed function, in the form that the reader accepts."""

    def __init__(self, transform, base):
        self.transform, self.base = transform, base

    def normal_form_(self, reader, args, words, node):
        return self.transform.read(reader, self.base, args, words)
