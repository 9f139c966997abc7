"""Dicts that are arguments: the types and the order of their keys, and whole numbers beside what is differentiated."""
import numpy as np
import pytest

import gradscribe as gs

W = np.array([0.5, 1.5, 2.5])


def by_the_type_of_its_keys(d):
    s = 0.0
    for k in d:
        s = s + d[k] ** 2 * (10.0 if type(k) is bool else 3.0 if type(k) is float else 1.0)
    return s


def by_the_type_in_a_tuple(d):
    return sum(v ** 2 * (10.0 if type(k[0]) is bool else 1.0) for k, v in d.items())


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_keys_that_are_equal_but_of_other_types(wrap):
    g, h = wrap(gs.value_and_grad(by_the_type_of_its_keys)), wrap(gs.value_and_grad(by_the_type_in_a_tuple))
    for key in (1, True, 1.0, True, 1):
        value, found = g({key: 2.0})
        by = by_the_type_of_its_keys({key: 1.0})
        assert value == 4.0 * by
        assert found == {key: 4.0 * by} and list(map(type, found)) == [type(key)]
        by = by_the_type_in_a_tuple({(key, 0): 1.0})
        assert h({(key, 0): 2.0}) == (4.0 * by, {(key, 0): 4.0 * by})


def test_a_tuple_known_by_its_value_is_told_from_one_that_is_equal():
    f = gs.jit(lambda x, how: x * (2.0 if type(how[0]) is bool else 3.0), static_argnums=1)
    assert [f(1.5, how) for how in ((1,), (True,), (1,))] == [4.5, 3.0, 4.5]


def in_its_order(x, d):
    return sum(a * b for a, b in zip(d.values(), (1.0, 2.0))) * x


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_another_order_is_another_structure(wrap):
    g = wrap(gs.grad(in_its_order))
    assert [g(1.7, d) for d in ({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}, {"a": 1.0, "b": 2.0})] == [5.0, 4.0, 5.0]


def with_a_number(p):
    return np.sum(p["w"] ** 2 * p["n"])


@pytest.mark.parametrize("n", [3, True, np.int64(3), np.array([3]), np.array([1, 2, 3])], ids=repr)
@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_what_is_whole_has_no_adjoint(wrap, n):
    def pulled(p):
        return gs.vjp(with_a_number, p)[1](1.0)[0]

    for f in (pulled, lambda p: gs.vjp(lambda q: with_a_number(q[0]), [p, 4])[1](1.0)[0][0]):
        found = wrap(f)({"w": W, "n": n})
        np.testing.assert_allclose(found["w"], 2 * W * n)
        assert found["n"] is None and list(found) == ["w", "n"]


def test_what_is_whole_in_a_list_has_no_adjoint():
    found = gs.vjp(lambda v: v[0] * v[1] * v[2], [1.5, 3, 2.0])[1](1.0)
    assert found == ([6.0, None, 4.5],)


def test_whole_numbers_are_not_taken_for_floats():
    def f(v, x):
        a = np.array([v[1], 1])
        a[0] = 2.5 * x                  # cut off: the array has whole numbers
        return np.sum(a) * v[0]

    value, pullback = gs.vjp(f, [1.5, 3], 1.3)
    assert value == f([1.5, 3], 1.3) == 6.0
    assert pullback(1.0) == ([4.0, None], 0.0)
