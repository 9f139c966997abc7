"""Loops that change a container, and another one that it holds: each is carried once."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.4, 0.7, 0.9, 1.1, 0.8])


def a_list_in_a_dict(x):
    d = {"a": x, "b": [x[0], x[1]]}
    for i in range(2):
        d["a"] = d["a"] * d["b"][i]
        d["b"][1] = d["a"][i]
    return np.sum(d["a"]) + d["b"][1]


def a_list_in_a_list(x):
    s = [[x[0], x[1]], x[2]]
    for i in range(len(x)):
        s[1] = s[1] * s[0][0] + x[i]
        s[0][1] = s[1] * s[0][1]
    return s[1] * s[0][1]


def three_deep(x):
    s = [[[x[0]], x[1]], x[2]]
    for i in range(len(x)):
        s[0][0][0] = s[0][0][0] * x[i] + s[1]
        s[0][1] = s[0][1] * s[0][0][0]
        s[1] = s[1] + s[0][1] * 0.1
    return s[1] * s[0][0][0] + s[0][1]


def another_list_in_each_pass(x):
    s = [[x[0], x[1]], x[2]]
    for i in range(len(x)):
        s[0] = [s[0][1] * x[i], s[0][0]]
        s[0][1] = s[0][1] * s[1]
        s[1] = s[1] * 1.1
    return s[0][0] + s[0][1] * s[1]


def by_another_name(x):
    d = {"a": x, "b": [x[0], x[1]]}
    e, n = d["b"], 0
    while n < 3:
        d["a"] = d["a"] * e[0]
        d["b"][0] = d["a"][n]
        e[1] = e[0] * d["b"][1]
        n += 1
    return np.sum(d["a"]) + e[1]


def under_a_test(x):
    d = {"a": x, "b": [x[0], x[1]]}
    for i in range(3):
        if x[i] > 0.6:
            d["a"] = d["a"] * d["b"][0]
            d["b"][1] = d["a"][i]
    return np.sum(d["a"]) + d["b"][1]


FUNCTIONS = [a_list_in_a_dict, a_list_in_a_list, three_deep, another_list_in_each_pass, by_another_name, under_a_test]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients(f):
    wanted = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(5)]
    made = gs.grad(f)(X)
    np.testing.assert_allclose(made, wanted, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), made, rtol=1e-14)
    np.testing.assert_allclose(gs.jacfwd(f)(X), made, rtol=1e-14)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(np.stack([X, X]))[1], made, rtol=1e-14)
    np.testing.assert_allclose(gs.grad(f)(X.astype(np.float32)), made, rtol=1e-5)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    grad, ones = gs.grad(f), np.ones(5)
    wanted = [(grad(X + h) @ ones - grad(X - h) @ ones) / 2e-6 for h in 1e-6 * np.eye(5)]
    np.testing.assert_allclose(gs.grad(lambda x: grad(x) @ ones)(X), wanted, rtol=1e-6, atol=1e-7)
