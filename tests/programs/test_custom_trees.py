"""Functions that bring their own derivative, of containers: in any order of keys, and never by places alone."""
import numpy as np
import pytest

import gradscribe as gs

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
P = {"a": np.array([1.0, 2.0]), "b": (np.array([3.0, 4.0]), 5.0)}


@gs.custom_vjp
def of_tree(p):
    return np.sum(p["a"] ** 2) + 3.0 * np.sum(p["b"][0]) + p["b"][1]


of_tree.defvjp(lambda p: (of_tree(p), p), lambda p, dy: ({"b": (7.0 * dy * np.ones(2), None), "a": 2.0 * dy * p["a"]},))


@gs.custom_vjp
def to_tree(x):
    return {"a": x ** 3, "b": (np.sin(x), 2.0 * x)}


to_tree.defvjp(lambda x: ({"b": (np.sin(x), 2.0 * x), "a": x ** 3}, x),
               lambda x, dy: (3.0 * x ** 2 * dy["a"] + np.cos(x) * dy["b"][0] + 2.0 * dy["b"][1],))


@gs.custom_jvp
def forward(x):
    return {"a": x ** 3, "b": (np.sin(x), 2.0 * x)}


@forward.defjvp
def forward_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    y = {"b": (np.sin(x), 2.0 * x), "a": x ** 3}
    return y, {"b": (np.cos(x) * t, 2.0 * t), "a": 3.0 * x ** 2 * t}


@WRAPS
@pytest.mark.parametrize("f", [of_tree, lambda p: 1.0 * of_tree(p), lambda p: of_tree({"b": p["b"], "a": p["a"]})])
def test_arguments(wrap, f):
    d = wrap(gs.grad(f))(P)
    assert d["a"].tolist() == [2.0, 4.0] and d["b"][0].tolist() == [7.0, 7.0] and d["b"][1] == 0.0


@WRAPS
def test_arguments_that_are_made_in_the_function(wrap):
    da, db = wrap(gs.grad(lambda a, b: of_tree({"b": (b, 1.0), "a": 2.0 * a}), (0, 1)))(P["a"], P["a"])
    assert da.tolist() == [8.0, 16.0] and db.tolist() == [7.0, 7.0]


@WRAPS
@pytest.mark.parametrize("made", [to_tree, forward])
def test_results(wrap, made):
    def f(x):
        y = made(x)
        return y["a"] * 2.0 + 10.0 * y["b"][0] + y["b"][1]
    value, slope = wrap(gs.value_and_grad(f))(2.0)
    assert value == pytest.approx(20.0 + 10.0 * np.sin(2.0), rel=1e-14)
    assert slope == pytest.approx(26.0 + 10.0 * np.cos(2.0), rel=1e-14)
    assert wrap(gs.grad(gs.grad(f)))(2.0) == pytest.approx(24.0 - 10.0 * np.sin(2.0), rel=1e-14)


def test_tangents():
    y, t = gs.jvp(forward, (2.0,), (1.0,))
    assert (y["a"], y["b"][1]) == (8.0, 4.0) and (t["a"], t["b"][1]) == (12.0, 2.0)
    assert t["b"][0] == pytest.approx(np.cos(2.0), rel=1e-15)


@WRAPS
def test_results_in_a_loop_with_a_branch(wrap):
    def f(x, made):
        t = 0.0
        for k in range(3):
            if x * k > 1.0:
                y = made(x * k)
                t = t + y["a"] * y["b"][0]
        return t
    want = gs.grad(lambda x: sum((x * k) ** 3 * np.sin(x * k) for k in range(3) if x * k > 1.0))(0.8)
    assert wrap(gs.grad(lambda x: f(x, to_tree)))(0.8) == pytest.approx(want, rel=1e-14)
    assert wrap(gs.grad(lambda x: f(x, forward)))(0.8) == pytest.approx(want, rel=1e-14)
