# SPDX-License-Identifier: Apache-2.0
"""A function that is transformed again: its versions are found, unless what they were made from may have changed."""
import copy
import functools
import gc
import math
import pickle
import types
import weakref

import numpy as np
import pytest

import gradscribe as gs

FACTOR = 2.0
STEPS = [1.0, 2.0]
OPTIONS = types.ModuleType("options")
OPTIONS.factor = 3.0


def helper(x):
    return 3.0 * x


def plain(x):
    return FACTOR * x * x


def calling(x):
    return helper(x) * x


def of_a_list(x):
    total = 0.0
    for s in STEPS:
        total = total + s * x
    return total


def of_a_module(x):
    return OPTIONS.factor * x


class Settings:
    factor = 4.0


def of_a_class(x):
    return Settings.factor * x


def with_default(x, a=2.0):
    return a * x


def made(f):
    """Versions that a new transformation begins with."""
    return len(gs.grad(f)._versions)


def test_versions_are_found_again():
    assert gs.grad(plain)(3.0) == 12.0
    assert made(plain) == 1 and gs.grad(plain)(5.0) == 20.0 and made(plain) == 1
    assert gs.value_and_grad(plain)(3.0) == (18.0, 12.0)
    assert gs.grad(plain)._known is not gs.value_and_grad(plain)._known


def test_other_options_are_other_versions():
    def f(x, y):
        return x * y
    assert gs.grad(f, 0)(2.0, 3.0) == 3.0 and gs.grad(f, 1)(2.0, 3.0) == 2.0
    assert gs.grad(f, (0, 1))(2.0, 3.0) == (3.0, 2.0) and gs.grad(f, (0,))(2.0, 3.0) == (3.0,)


def test_globals(monkeypatch):
    assert gs.grad(plain)(3.0) == 12.0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert gs.grad(plain)(3.0) == 30.0
    assert gs.grad(calling)(2.0) == 12.0
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    assert gs.grad(calling)(2.0) == 4.0


def test_contents_of_a_cell():
    a = 2.0

    def f(x):
        return a * x
    assert gs.grad(f)(1.0) == 2.0
    a = 7.0
    assert gs.grad(f)(1.0) == 7.0


def test_lists_modules_and_classes_are_read_again(monkeypatch):
    assert gs.grad(of_a_list)(1.0) == 3.0
    monkeypatch.setitem(globals(), "STEPS", STEPS)
    STEPS.append(4.0)
    try:
        assert gs.grad(of_a_list)(1.0) == 7.0 and not made(of_a_list)
    finally:
        STEPS.pop()
    assert gs.grad(of_a_module)(1.0) == 3.0
    monkeypatch.setattr(OPTIONS, "factor", 6.0)
    assert gs.grad(of_a_module)(1.0) == 6.0
    assert gs.grad(of_a_class)(1.0) == 4.0
    monkeypatch.setattr(Settings, "factor", 8.0)
    assert gs.grad(of_a_class)(1.0) == 8.0


def test_code_and_defaults():
    assert gs.grad(with_default)(1.0) == 2.0
    with_default.__defaults__ = (9.0,)
    try:
        assert gs.grad(with_default)(1.0) == 9.0
    finally:
        with_default.__defaults__ = (2.0,)
    code = helper.__code__
    assert gs.grad(calling)(2.0) == 12.0
    try:
        helper.__code__ = (lambda x: 5.0 * x).__code__
        assert gs.grad(calling)(2.0) == 20.0
    finally:
        helper.__code__ = code


def test_a_rule_that_is_set_again():
    @gs.custom_vjp
    def h(x):
        return x

    def f(x):
        return h(x) * 2.0
    h.defvjp(lambda x: (x, ()), lambda res, dy: (dy,))
    assert gs.grad(f)(1.0) == 2.0
    h.defvjp(lambda x: (x, ()), lambda res, dy: (10.0 * dy,))
    assert gs.grad(f)(1.0) == 20.0


def test_objects_are_read_again():
    class Scale:
        def __init__(self, a):
            self.a, self.parts = a, [a]

    scale = Scale(2.0)

    def f(x):
        return scale.a * x * len(scale.parts)
    assert gs.grad(f)(1.0) == 2.0
    scale.parts.append(1)
    assert gs.grad(f)(1.0) == 4.0
    scale.a = 3.0
    assert gs.grad(f)(1.0) == 6.0


def test_arrays_from_outside():
    data, order = np.ones(3), np.array([0, 1])

    def f(x):
        return np.sum(data * x)

    def g(x):
        return x[order[1]]
    assert gs.grad(f)(1.0) == 3.0
    data[:] = 2.0
    assert gs.grad(f)(1.0) == 6.0 and made(f) == 1
    assert list(gs.grad(g)(np.ones(2))) == [0.0, 1.0]
    order[1] = 0
    assert list(gs.grad(g)(np.ones(2))) == [1.0, 0.0]


def test_attributes_that_are_copied_belong_to_the_function():
    gs.grad(plain)(3.0)

    @functools.wraps(plain)
    def other(x):
        return math.pi * x
    assert gs.grad(other)(3.0) == math.pi
    again = types.FunctionType((lambda x: 4.0 * x).__code__, globals(), "again")
    vars(again).update(vars(plain))
    assert gs.grad(again)(3.0) == 4.0


def test_copies_and_pickles_are_empty():
    gs.grad(plain)(3.0)
    store = vars(plain)["__gradscribe__"]
    for other in (pickle.loads(pickle.dumps(store)), copy.deepcopy(store)):
        assert other.owner is None and not other.known


def test_a_function_that_is_done_with_goes():
    def f(x):
        return x * x
    gs.grad(f)(1.0)
    there = weakref.ref(f)
    del f
    gc.collect()
    assert there() is None


def test_numbers_that_are_asked_for():
    def power(x, n):
        total = 1.0
        for _ in range(n):
            total = total * x
        return total
    assert [gs.grad(power)(2.0, n) for n in (1, 2, 3, 2)] == [1.0, 4.0, 12.0, 4.0]


@pytest.mark.parametrize("n", [2, 5, 2])
def test_lengths(n):
    assert list(gs.grad(lambda x: np.sum(x * x))(np.ones(n))) == [2.0] * n
    assert list(gs.grad(summed)(np.ones(n))) == [2.0] * n


def summed(x):
    return np.sum(x * x)


def test_what_is_seen_of_a_new_array_inside_an_expression():
    """The imaginary part of what np.where makes shows neither the array that was chosen from, nor the mask."""
    def f(x):
        a = x
        for _ in range(3):
            a = a.astype(complex)
            c = np.where(a.real > 0.1, a * 2j, 1j).imag
        a[1] = 0.7
        return np.sum(c ** 2) + np.sum(a.real)

    x = np.array([0.3, 0.7, -0.4])
    np.testing.assert_allclose(gs.grad(f)(x), [8 * 0.3 + 1, 8 * 0.7, 1.0], rtol=1e-14)


def test_a_name_that_a_loop_sets_first_is_none_that_its_first_line_reads():
    """`held` has no value before the loop, and was printed under the name of the argument: None, as the loop began."""
    def f(m):
        for _ in m:
            held = m
            m[:1] = 0.7
        return held ** 2

    m = np.arange(1.0, 10.0).reshape(3, 3)
    y, pull = gs.vjp(f, m.copy())
    want = np.where(np.arange(3)[:, None] == 0, 0.7, m)
    np.testing.assert_array_equal(y, want ** 2)
    np.testing.assert_array_equal(pull(np.ones((3, 3)))[0], np.where(np.arange(3)[:, None] == 0, 0.0, 2 * m))
