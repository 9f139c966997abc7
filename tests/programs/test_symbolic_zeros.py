# SPDX-License-Identifier: Apache-2.0
"""Rules that are told which arguments are differentiated, and where an adjoint is zero."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

X, Y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])


@gs.custom_jvp
def product(x, y):
    return x * y


def product_rule(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    if type(dx) is SymbolicZero:
        return x * y, 100.0 * dy
    if isinstance(dy, SymbolicZero):
        assert dy.ndim == 1 and dy.shape == (2,) and dy.dtype == np.float64
        return x * y, 10.0 * dx
    return x * y, dx + dy


product.defjvp(product_rule, symbolic_zeros=True)


@WRAPS
def test_forward_rule(wrap):
    np.testing.assert_array_equal(gs.jvp(lambda x: product(x, Y), (X,), (X,)), (X * Y, 10 * X))
    np.testing.assert_array_equal(gs.jvp(lambda y: product(X, y), (Y,), (X,)), (X * Y, 100 * X))
    np.testing.assert_array_equal(gs.jvp(product, (X, Y), (X, Y)), (X * Y, X + Y))
    assert wrap(gs.grad(lambda x: np.sum(product(x, Y))))(X).tolist() == [10.0, 10.0]
    assert wrap(gs.grad(lambda y: np.sum(product(X, y))))(Y).tolist() == [100.0, 100.0]
    assert wrap(gs.grad(lambda x, y: np.sum(product(x, y)), (0, 1)))(X, Y)[0].tolist() == [1.0, 1.0]


def test_a_rule_may_return_a_symbolic_zero():
    @gs.custom_jvp
    def f(x, y):
        return x * y
    f.defjvp(lambda p, t: (f(*p), t[1]), symbolic_zeros=True)
    assert gs.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,)) == (6.0, 0.0)
    assert gs.jvp(lambda y: f(3.0, y), (2.0,), (5.0,)) == (6.0, 5.0)


def test_a_zero_stays_symbolic_from_one_rule_to_the_next():
    @gs.custom_jvp
    def f(x, y):
        return y

    def rule(primals, tangents):
        assert type(tangents[1]) is SymbolicZero
        return primals[1], tangents[1]
    f.defjvp(rule, symbolic_zeros=True)
    y, dot = gs.jvp(lambda x: f(x, f(x, 4.0)), (2.0,), (1.0,))
    assert (y, dot) == (4.0, 0.0)


@gs.custom_vjp
def two(x, y):
    return x * y, x + y


def two_forward(x, y):
    assert isinstance(x, CustomVJPPrimal)
    return (x.value * y.value, x.value + y.value), (x.perturbed, y.perturbed, x.value, y.value)


def two_backward(kept, dy):
    x_asked, y_asked, x, y = kept
    first, second = dy
    scale = 1.0 if x_asked else 10.0
    if type(first) is SymbolicZero:
        return first, 50.0 * scale * second
    if type(second) is SymbolicZero:
        return (7.0 * first * y if y_asked else 5.0 * first * y), scale * first * x
    return first * y + second, first * x + second


two.defvjp(two_forward, two_backward, symbolic_zeros=True)


@WRAPS
def test_reverse_rule(wrap):
    assert wrap(gs.grad(lambda x: np.sum(two(x, Y)[0])))(X).tolist() == (5 * Y).tolist()
    assert wrap(gs.grad(lambda y: np.sum(two(X, y)[0])))(Y).tolist() == (10 * X).tolist()
    assert wrap(gs.grad(lambda y: np.sum(two(X, y)[1])))(Y).tolist() == [500.0, 500.0]
    assert wrap(gs.grad(lambda x: np.sum(two(x, Y)[1])))(X).tolist() == [0.0, 0.0]
    dx, dy = wrap(gs.grad(lambda x, y: np.sum(two(x, y)[0]), (0, 1)))(X, Y)
    assert dx.tolist() == (7 * Y).tolist() and dy.tolist() == X.tolist()
    both = wrap(gs.grad(lambda x: np.sum(two(x, Y)[0]) + np.sum(two(x, Y)[1])))(X)
    assert both.tolist() == (5 * Y).tolist()


def test_containers_and_arguments_that_are_not_differentiated():
    @gs.custom_vjp
    def f(p, k):
        return p["a"] * p["b"] * k

    def forward(p, k):
        assert p["a"].perturbed and not p["b"].perturbed
        values = custom_vjp_primal_tree_values(p)
        return f(values, k), (values, k)
    f = gs.custom_vjp(f.fun, nondiff_argnums=(1,))
    f.defvjp(forward, lambda k, kept, dy: ({"a": 3.0 * dy * kept[0]["b"], "b": None},), symbolic_zeros=True)
    assert gs.grad(lambda a: f({"a": a, "b": 4.0}, 2.0))(1.0) == 12.0


def test_a_rule_that_returns_no_pair():
    f = gs.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: primals[0])
    for call in (lambda: gs.grad(f)(1.0), lambda: gs.jvp(f, (1.0,), (1.0,))):
        with pytest.raises(gs.KindError, match=r"must return a pair, \(value, tangent\); it returns a float"):
            call()


def test_zeros_for_a_value():
    assert zero_from_primal(X).tolist() == [0.0, 0.0]
    zero = zero_from_primal(np.ones((2, 3), np.float32), symbolic_zeros=True)
    assert (zero.shape, zero.ndim, zero.dtype) == ((2, 3), 2, np.float32)
    with pytest.raises(gs.KindError, match="ndarray is not a CustomVJPPrimal"):
        custom_vjp_primal_tree_values(X)
