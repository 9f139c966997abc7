"""Each pass as text: the normal form before it and after it."""
import ast
import doctest
import importlib
import inspect
from textwrap import dedent

import pytest
from passes import algebra_cases, memory_cases, other_cases, simplify_cases

from gradscribe.ast_transform import mapping, pipeline
from gradscribe.ast_transform.core.form import Function
from gradscribe.ast_transform.examples import show
from gradscribe.ast_transform.passes import simplify
from gradscribe.ast_transform.passes.check import check
from gradscribe.ast_transform.passes.jvp import Forward
from gradscribe.ast_transform.passes.vjp import reverse
from gradscribe.ast_transform.passes.vmap.batch import batched

CASES = {**simplify_cases.CASES, **algebra_cases.CASES, **memory_cases.CASES, **other_cases.CASES}
MODES = [Forward, reverse.Reverse, batched]
DRIVERS = [pipeline.Pipeline.finished, pipeline.Pipeline.nested, simplify.simplify, reverse.Reverse.run,
           mapping.read_on_devices]


def passes_of(driver):
    """The passes that a function names: they take a function or body of the normal form, and return a changed one."""
    names = {n.id for n in ast.walk(ast.parse(dedent(inspect.getsource(driver)))) if isinstance(n, ast.Name)}
    for name in sorted(names):
        value = driver.__globals__.get(name)
        if inspect.isfunction(value) and ".ast_transform.passes." in value.__module__ and value is not check:
            signature = inspect.signature(value)
            returned = signature.return_annotation
            if {"function", "body"} & set(list(signature.parameters)[:2]) and (
                    returned in (Function, list, tuple, None) or getattr(returned, "__origin__", None) is tuple):
                yield value


PASSES = {p for driver in DRIVERS for p in passes_of(driver)}


@pytest.mark.parametrize("name", sorted(p.__name__ for p in PASSES))
def test_each_pass_has_a_case(name):
    assert name in {p.__name__ for p in CASES}, f"add a case for {name} to a table in tests/passes"


def test_passes_are_found():
    assert {p.__name__ for p in CASES} <= {p.__name__ for p in PASSES}


@pytest.mark.parametrize("changed_by", CASES, ids=lambda p: p.__name__)
def test_before_and_after(changed_by):
    case = CASES[changed_by]
    function = case.given()
    assert show(function) == dedent(case.before).strip()
    assert show(check(case.change(function), changed_by.__name__)) == dedent(case.after).strip()


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.__name__)
def test_modes_show_what_they_make(mode):
    """The transformations show it in the doctests of their modules, which print a function and its normal form."""
    module = importlib.import_module(mode.__module__)
    examples = [e for test in doctest.DocTestFinder().find(module) for e in test.examples]
    assert any("show(" in e.source and e.want for e in examples)
    assert not doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed
