# SPDX-License-Identifier: Apache-2.0
"""A whole number that is an argument: what a version takes it to be, or to be equal to, is asked of each call."""
import itertools

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 0.3, 0.9, 1.1])


def nothing_left(x, n):
    return np.sum((np.arange(1, n + 1) * x[0])[3:] ** 2) + x[1]


def what_is_left(x, n):
    return np.sum(np.ones(n)[2:] * x[0]) * np.ones(n)[-1:].sum()


def no_passes(x, n):
    s = x[0]
    for v in (np.ones(n) * x[1])[2:]:
        s = s * v + x[2]
    return s


def taken_apart(x, n):
    a, b, *rest = np.ones(n) * x[0]
    return a * b + sum(rest)


def beside_a_length(x, n):
    return np.sum((x[:3] + np.zeros(n)) ** 2 * np.arange(n))


def beside_an_argument(x, n):
    return np.sum(x * (x[0] * np.ones(n)))


def in_a_container(x, config):
    s = x[0]
    for v, k in zip([x, 2 * x, 3 * x], range(config["n"])):
        s = s + np.sum(v * v) * (k + 1)
    return s


def two_of_them(x, n, m):
    return np.sum(x[0] * np.ones(n) + x[1] * np.arange(m))


def from_a_number_on(x, n):
    s = x[3]
    for v, k in zip([x[0], x[1] * x[2], x[2]], range(n, 5)):
        s = s * v + k * x[0]
    return s


def down_to_a_number(x, n):
    return sum(v * k for v, k in zip(list(x), range(5, n, -2)))


def the_first_of_a_list(x, n):
    s = x[3]
    for v in itertools.islice([x[0] * x[1], x[1], x[2]], n):
        s = s * v + 1.0
    return s


def some_of_an_array(x, n):
    s = x[3]
    for v in itertools.islice(x, 1, n + 1, 2):
        s = s * v + x[0]
    return s


def all_but_the_last(x, n):
    return sum(v * v for v in itertools.islice(x, len(x) - 1)) * n


CASES = [(from_a_number_on, [(2,), (5,), (7,), (-1,), (4,)]), (down_to_a_number, [(0,), (5,), (-9,), (3,)]),
         (the_first_of_a_list, [(2,), (0,), (5,), (1,)]), (some_of_an_array, [(3,), (0,), (9,)]),
         (all_but_the_last, [(2,)]),
         (nothing_left, [(2,), (5,), (3,), (4,)]), (what_is_left, [(1,), (3,), (2,), (4,)]),
         (no_passes, [(1,), (2,), (4,), (3,)]), (taken_apart, [(4,), (3,), (2,)]),
         (beside_a_length, [(3,), (1,), (3,)]),
         (beside_an_argument, [(4,), (1,), (4,)]), (in_a_container, [({"n": n},) for n in (2, 0, 5, 1)]),
         (two_of_them, [(3, 3), (3, 1), (1, 3), (2, 2)])]


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
@pytest.mark.parametrize("f, calls", CASES, ids=lambda v: getattr(v, "__name__", None))
def test_one_function_called_with_others(f, calls, wrap):
    g = wrap(gs.value_and_grad(f))
    for more in (*calls, *calls):
        value, found = g(X, *more)
        wanted = [(f(X + d, *more) - f(X - d, *more)) / 2e-6 for d in 1e-6 * np.eye(4)]
        np.testing.assert_allclose(value, f(X, *more), rtol=1e-12)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


TABLE, CHOSEN, LETTERS = {1: 2.0, 2: 5.0}, {1, 3}, "abc"


def looked_up(x, n):
    weights = {"w1": 3.0, "w2": 4.0, "a": 1.5, "b": 2.5, "c": 6.5}
    s = x[0] * TABLE[n] + x[1] * (2.0 if n in CHOSEN else 3.0)
    return s * weights["w%d" % n] * x[2] + weights["w" + str(n)] * weights[LETTERS[n]] * x[3] * weights[f"w{n}"]


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_what_a_number_is_looked_up_in(wrap):
    g = wrap(gs.value_and_grad(looked_up))
    for n in (1, 2, np.int64(1)):
        value, found = g(X, n)
        np.testing.assert_allclose(value, looked_up(X, n), rtol=1e-12)
        np.testing.assert_allclose(found, [(looked_up(X + d, n) - looked_up(X - d, n)) / 2e-6
                                           for d in 1e-6 * np.eye(4)], rtol=1e-6)
