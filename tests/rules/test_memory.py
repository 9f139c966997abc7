"""What a record says of memory and dtype against NumPy, for each sample of each record.

A view must share memory with the operand, a new array must not; an operand that is not changed by the record is as it
was.  What a part `memory` says is asked as a pass asks it: with operands of the normal form.
"""
import copy
import warnings

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (tables wait for it)
import scipy.special  # noqa: F401

import gradscribe as gs
from gradscribe.ast_transform.core.alias import aliased, memory_of, record_of, updates
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Var
from gradscribe.ast_transform.core.memory import ALIASES, FRESH
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import describe

RULES.complete()
SAMPLED = [r for r in dict.fromkeys(RULES.values()) if r.samples is not None]


def leaves(value):
    if isinstance(value, (tuple, list)):
        for v in value:
            yield from leaves(v)
    elif isinstance(value, np.ndarray):
        yield value


def operand(value):
    """A value as an operand, and the arrays of its variables."""
    if isinstance(value, np.ndarray):
        return Var("x", describe(value))
    if isinstance(value, (tuple, list)) and any(True for _ in leaves(value)):
        return Pack(type(value).__name__, tuple(map(operand, value)))
    return Const(value)


def share(a, b):
    return a.size > 0 and b.size > 0 and np.shares_memory(a, b)


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda r: r.label)
def test_records_say_what_results_share(rule):
    compared = 0
    for function in rule.functions:
        for args, words in rule.samples(np.random.default_rng(3)):
            before = copy.deepcopy((args, words))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    made = function(*args, **words)
                except (TypeError, ValueError):     # a function of numbers, given an array by its record's samples
                    continue
            for a, b in zip(leaves([args, list(words.values())]), leaves([before[0], list(before[1].values())])):
                np.testing.assert_array_equal(a, b)
            value = Apply(function, tuple(map(operand, args)), tuple((k, operand(a)) for k, a in words.items()))
            memory, given = memory_of(value), list(leaves([args, list(words.values())]))
            results = [r for r in leaves([made]) if r.size]
            shared = [r for r in results if any(share(g, r) for g in given)]
            if memory is FRESH:
                assert not shared, (args, words)
            elif memory.certain and results and given[0].ndim and given[0].size:
                assert all(share(given[0], r) for r in results), (args, words)
            if memory.shares == "first":
                assert not any(share(g, r) for g in given[1:] for r in results), (args, words)
            compared += 1
    assert compared


@pytest.mark.parametrize("rule", [r for r in SAMPLED if "shown" in r.parts], ids=lambda r: r.label)
def test_each_of_several_results_is_the_view_that_the_record_says(rule):
    """The same entries at the same places: the address, the shape and the strides."""
    compared, part = 0, rule.parts["shown"]
    for args, words in rule.samples(np.random.default_rng(3)):
        made = rule.function(*args, **words)
        for k, y in enumerate(made):
            view = part(k, y, *args, **words)
            assert y.size == view.size == 0 or y.__array_interface__["data"][0] == view.__array_interface__["data"][0]
            assert (y.shape, y.strides if y.size else ()) == (view.shape, view.strides if y.size else ())
            compared += 1
    assert compared > 2


@pytest.mark.parametrize("rule", [r for r in SAMPLED if "entries" in r.options], ids=lambda r: r.label)
def test_new_arrays_have_the_entries_that_the_record_says(rule):
    entries = rule.options["entries"]
    for args, words in rule.samples(np.random.default_rng(3)):
        given = rule.signature.bind(*args, **words).arguments
        assert np.all(rule.function(*args, **words) == (given[entries] if isinstance(entries, str) else entries))


def test_what_no_record_describes_may_alias_everything():
    x, y = Var("x", describe(np.ones(3))), Var("y", describe(np.ones(3)))

    def unknown(a, b):
        return a
    value = Apply(unknown, (x, Pack("list", (y, Const(1.0)))))
    assert memory_of(value) is ALIASES and aliased(value) == (x, y) and not updates(value)


def test_rules_of_users_say_nothing_until_they_do():
    def same(x):
        return x

    @gs.rule.linear(same, "x")
    class same_:
        def vjp_x(dy):
            return dy
    try:
        x = Var("x", describe(np.ones(3)))
        assert aliased(Apply(same, (x,))) == (x,) and record_of(same).raises
    finally:
        del RULES[same]
