# SPDX-License-Identifier: Apache-2.0
"""Functions that bring their own form for a batch: the rule is read in place of the call, forward mode of it too."""
import numpy as np
import pytest

import gradscribe as gs

custom_vmap, sequential_vmap = gs.custom_batching.custom_vmap, gs.custom_batching.sequential_vmap
XS, TS = np.arange(3.0), 2.0 + np.arange(3.0)
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])


@custom_vmap
def told(x):
    return np.sin(x)


@told.def_vmap
def told_rule(axis_size, in_batched, xs):       # another function, so that a test sees which one was read
    return np.cos(xs) * axis_size, in_batched[0]


@custom_vmap
def dot(a, b):
    return np.sum(a * b)


@dot.def_vmap
def dot_rule(axis_size, in_batched, a, b):
    if in_batched[0] and in_batched[1]:
        return 1.0 + np.sum(a * b, axis=1), True
    return 2.0 + (a @ b if in_batched[0] else b @ a), True


@WRAPS
def test_the_rule_is_the_batch(wrap):
    assert told(1.0) == np.sin(1.0)
    np.testing.assert_allclose(wrap(gs.vmap(told))(XS), 3 * np.cos(XS), rtol=1e-15)
    np.testing.assert_allclose(wrap(gs.vmap(lambda x: 2 * told(x + 1)))(XS), 6 * np.cos(XS + 1), rtol=1e-15)


@WRAPS
def test_it_is_told_what_is_batched(wrap):
    a, b = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0, 100.0])
    np.testing.assert_allclose(wrap(gs.vmap(dot, (0, None)))(a, b), 2 + a @ b)
    np.testing.assert_allclose(wrap(gs.vmap(dot, (None, 0)))(b, a), 2 + a @ b)
    np.testing.assert_allclose(wrap(gs.vmap(dot))(a, 2 * a), 1 + 2 * np.sum(a * a, axis=1))
    np.testing.assert_allclose(wrap(gs.vmap(dot, (1, None)))(a.T, b), 2 + a @ b)


def test_a_result_may_be_the_same_for_all():
    @custom_vmap
    def pair(x, y):
        return x + y, y

    @pair.def_vmap
    def rule(axis_size, in_batched, x, y):
        return (x + y, 7 * y), (True, in_batched[1])
    first, second = gs.vmap(pair, (0, None), (0, None))(XS, 5.0)
    assert first.tolist() == [5.0, 6.0, 7.0] and second == 35.0
    assert gs.vmap(pair, (0, None))(XS, 5.0)[1].tolist() == [35.0, 35.0, 35.0]


def test_containers():
    @custom_vmap
    def f(p):
        return {"s": np.sin(p["a"]), "t": (p["b"], None)}

    @f.def_vmap
    def rule(axis_size, in_batched, p):
        (flags,) = in_batched
        return {"t": (7 * p["b"], None), "s": np.cos(p["a"])}, {"s": flags["a"], "t": (flags["b"], None)}
    y = gs.vmap(f)({"a": XS, "b": TS})
    assert y["s"].tolist() == np.cos(XS).tolist() and y["t"][0].tolist() == (7 * TS).tolist()


@WRAPS
def test_forward_mode_differentiates_the_rule(wrap):
    def tangent(x, t):
        return gs.jvp(told, (x,), (t,))
    assert np.allclose(tangent(1.0, 2.0), (np.sin(1.0), 2 * np.cos(1.0)), rtol=1e-15)
    want = 3 * np.cos(XS), -3 * np.sin(XS) * TS
    for got in (wrap(gs.vmap(tangent))(XS, TS), gs.jvp(gs.vmap(told), (XS,), (TS,))):
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_what_is_batched_in_the_tangent_alone():
    def tangent(x, t):
        return gs.jvp(told, (x,), (t,))
    y, dots = gs.vmap(tangent, (None, 0), (None, 0))(0.5, TS)      # the rule is told that nothing is batched
    np.testing.assert_allclose(y, 3 * np.cos(0.5))
    np.testing.assert_allclose(dots, -3 * np.sin(0.5) * TS)
    np.testing.assert_allclose(gs.jacfwd(told)(XS), -3 * np.diag(np.sin(XS)), atol=1e-15)


def test_tangents_where_some_are_batched_and_some_are_not():
    a, b = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0, 100.0])

    def tangent(a, b, da):
        return gs.jvp(lambda a: dot(a, b), (a,), (da,))
    y, dots = gs.vmap(tangent)(a, 2 * a, a + 1)
    np.testing.assert_allclose(y, 1 + np.sum(2 * a * a, axis=1))
    np.testing.assert_allclose(dots, np.sum((a + 1) * 2 * a, axis=1))

    def of_both(a, b, db):
        return gs.jvp(dot, (a, b), (np.ones(3), db))
    y, dots = gs.vmap(of_both, (0, None, 0))(a, b, a)      # nothing is batched in a value and its tangent
    np.testing.assert_allclose(y, 2 + a @ b)
    np.testing.assert_allclose(dots, np.sum(a * a, axis=1) + np.sum(b))


def test_reverse_mode_of_the_batch_is_that_of_the_rule():
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(gs.vmap(told)(x)))(XS), -3 * np.sin(XS), rtol=1e-15)
    with pytest.raises(gs.RuleError, match="has a custom batching rule and no reverse rule"):
        gs.grad(told)(1.0)


def test_with_a_reverse_rule():
    @gs.custom_vjp
    @custom_vmap
    def f(x, y):
        return np.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        return np.cos(x) * y, True

    def forward(x, y):
        return f(x, y), (x, y)

    def backward(kept, dy):
        x, y = kept
        return 5 * dy * y, 7 * dy
    f.defvjp(forward, backward)
    np.testing.assert_allclose(gs.vmap(f)(XS, TS), np.cos(XS) * TS)
    assert gs.grad(f, (0, 1))(1.0, 2.0) == (10.0, 7.0)
    y, d = gs.vmap(gs.value_and_grad(f))(XS, TS)
    np.testing.assert_allclose(y, np.cos(XS) * TS)
    np.testing.assert_allclose(d, 5 * TS)


def test_the_one_outside_has_the_methods_of_both():
    inner = custom_vmap(gs.custom_jvp(lambda x: x))
    inner.defjvp(lambda primals, tangents: (primals[0], 3 * tangents[0]))
    inner.def_vmap(lambda n, flags, x: (10 * x, True))
    assert gs.vmap(inner)(XS).tolist() == [0.0, 10.0, 20.0]
    with pytest.raises(AttributeError, match="defvjp"):
        _ = inner.defvjp


def test_one_after_the_other():
    @sequential_vmap
    def f(x):
        return x * x if x > 0 else -x
    mapped = gs.vmap(f)
    assert mapped(XS - 1).tolist() == [1.0, 0.0, 1.0]
    assert "one example at a time" in mapped.source
    assert gs.vmap(gs.grad(f))(XS - 1).tolist() == [-1.0, -1.0, 2.0]
    assert gs.jvp(mapped, (XS - 1,), (XS,))[1].tolist() == [-0.0, -1.0, 4.0]


def test_a_lambda_with_a_rule_of_its_own():
    f = gs.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (2 * x, None), lambda kept, dy: (7 * dy,))
    assert gs.vmap(f)(XS).tolist() == [0.0, 2.0, 4.0]
    assert gs.grad(lambda x: np.sum(gs.vmap(f)(x)))(XS).tolist() == [7.0, 7.0, 7.0]
