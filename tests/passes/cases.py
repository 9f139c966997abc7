"""A case for each pass: a small function, its normal form before the pass, and the form after it."""
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from unittest import mock

import numpy as np

import gradscribe as gs
from gradscribe.ast_transform import examples
from gradscribe.ast_transform.core.form import Function, substituted
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.ast_transform.source.read import from_text


@dataclass(frozen=True)
class Case:
    """given makes a function; change applies the pass to it as the pipeline does; before and after are its texts."""

    given: Callable[[], Function]
    before: str
    after: str
    change: Callable[[Function], Function]


# what a pass is given

def form(text, *args):
    """The normal form of a function."""
    return examples.form(dedent(text).strip(), *args)


def gradient(text, *args, wrt=(0,)):
    """A gradient without dead statements."""
    return cleaned(examples.gradient(dedent(text).strip(), *args, wrt=wrt))


def as_generated(text, *args):
    """The normal form of a function whose statements count as those of a rule."""
    function = form(text, *args)
    for step in function.body:
        step.origin = step.origin.made_by(1)
    return function


def raw_gradient(text, *args):
    """The same before reverse mode's own passes over it."""
    module = "gradscribe.ast_transform.passes.vjp.reverse"
    with mock.patch(f"{module}.inner_writes", lambda body, result: body), \
            mock.patch(f"{module}.without_dead_writes", lambda body, result, params: (body, result)):
        return gradient(text, *args)


def transformed(text, transform, *args):
    """The normal form of a function that calls Gradscribe's own, under a transformation."""
    text = dedent(text).strip()
    function = from_text(text, {"np": np, "gs": gs}, f"<example {text}>")
    names = function.__code__.co_varnames[:len(args)]
    facts = [describe(a, n) for a, n in zip(args, names, strict=True)]
    return Pipeline().normal_form(examples.Transforming(transform, function), names, facts, {}, "f")


# how a pass is applied that returns something else than a function

def on_body(change):
    """A pass that takes a block and returns another, or changes the one that it gets."""
    def changed(function):
        body = change(function.body)
        function.body = function.body if body is None else body
        return function
    return changed


def new_body(change):
    """A pass that takes a function and returns its new body."""
    def changed(function):
        function.body = change(function)
        return function
    return changed


def new_body_and_result(change):
    """A pass that takes a function and returns its new body and result."""
    def changed(function):
        function.body, function.result = change(function)
        return function
    return changed


def with_replacements(change):
    """A pass that takes a block, and returns another and replacements of values."""
    def changed(function):
        function.body, env = change(function.body)
        function.result = substituted(function.result, env)
        return function
    return changed


def in_place(change):
    """A pass that changes a function and returns nothing."""
    def changed(function):
        change(function)
        return function
    return changed


def cleaned(function):
    """The function without dead statements."""
    function.body = drop_dead(function.body, function.result)
    return function


def then_cleaned(change):
    """A pass after which the pipeline drops dead statements."""
    return lambda function: cleaned(change(function))
