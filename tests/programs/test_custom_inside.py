# SPDX-License-Identifier: Apache-2.0
"""Functions that bring their own derivative, made inside the function that is differentiated."""
import numpy as np
import pytest

import gradscribe as gs


def both(f, *args):
    """What a function gives, eager and compiled, which are the same."""
    value = f(*args)
    np.testing.assert_allclose(gs.jit(f)(*args), value, rtol=1e-12)
    return value


def test_a_reverse_rule_reads_a_variable_of_the_function_around_it():
    def f(x, limit):
        @gs.custom_vjp
        def clipped(x):
            return x
        clipped.defvjp(lambda x: (x, ()), lambda res, dy: (np.minimum(dy, limit),))
        return 10.0 * clipped(x)

    assert both(gs.grad(f), 2.0, 3.0) == 3.0
    assert both(gs.grad(f), 2.0, 30.0) == 10.0


def test_a_forward_rule_serves_both_modes():
    def f(x):
        @gs.custom_jvp
        def sine(x):
            return np.sin(x)

        @sine.defjvp
        def sine_jvp(primals, tangents):
            return sine(primals[0]), 5.0 * tangents[0]
        return 2.0 * sine(x * x)

    x = 0.7
    assert f(x) == 2.0 * np.sin(x * x)
    np.testing.assert_allclose(both(gs.grad(f), x), 20.0 * x)
    np.testing.assert_allclose(gs.jvp(f, (x,), (1.0,)), (f(x), 20.0 * x))


def test_a_rule_for_each_argument_and_arguments_by_name():
    def f(z):
        @gs.custom_jvp
        def g(y, w, power=2):
            return y ** power * w
        g.defjvps(lambda y_dot, out, y, w: 7.0 * y_dot, None)
        return g(3.0 * z, w=z)

    assert f(1.5) == 4.5 ** 2 * 1.5
    assert both(gs.grad(f), 1.5) == 21.0


def test_arguments_that_are_not_differentiated():
    def f(x):
        def applied(function, x):
            return function(x)

        wrapped = gs.custom_vjp(applied, nondiff_argnums=(0,))
        wrapped.defvjp(lambda function, x: (function(x), x), lambda function, x, dy: (dy * function(x) * 100.0,))
        return np.sum(wrapped(np.cos, x))

    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(both(gs.grad(f), x), 100.0 * np.cos(x))


def test_a_rule_reads_what_differs_between_the_examples_of_a_batch():
    def h(z):
        def f(x):
            @gs.custom_jvp
            def g(y):
                return x * y

            @g.defjvp
            def g_jvp(primals, tangents):
                return x * primals[0], 3.0 * x * tangents[0]
            return g(z)
        return gs.vmap(f)(np.arange(3.0))

    value, tangent = gs.jvp(h, (1.0,), (2.0,))
    np.testing.assert_allclose(value, [0.0, 1.0, 2.0])
    np.testing.assert_allclose(tangent, [0.0, 6.0, 12.0])
    np.testing.assert_allclose(both(gs.jacrev(h), 1.0), [0.0, 3.0, 6.0])


def test_a_custom_gradient_is_made_inside():
    def f(x, scale):
        @gs.custom_gradient
        def g(y):
            return y ** 2, lambda dy: dy * scale
        return g(3.0 * x)

    assert both(gs.grad(f), 2.0, 5.0) == 15.0


def test_a_rule_that_reads_what_is_differentiated_is_refused():
    def f(z):
        @gs.custom_jvp
        def g(y):
            return z * y

        @g.defjvp
        def g_jvp(primals, tangents):
            return g(primals[0]), z * tangents[0]
        return g(3.0)

    with pytest.raises(gs.TransformError, match="says nothing of z"):
        gs.grad(f)(1.0)


def test_a_function_without_a_rule_and_one_with_two_are_refused():
    def none(x):
        return gs.custom_jvp(np.sin)(x)

    def two(x):
        @gs.custom_jvp
        def g(y):
            return y
        g.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        g.defjvp(lambda primals, tangents: (primals[0], 2.0 * tangents[0]))
        return g(x)

    with pytest.raises(gs.TransformError, match="has no rule yet"):
        gs.grad(none)(1.0)
    with pytest.raises(gs.TransformError, match="given a rule twice"):
        gs.grad(two)(1.0)


# a rule for forward mode whose tangent is made by the function itself

@gs.custom_jvp
def divided(x, y):
    return x / y


@divided.defjvp
def divided_jvp(primals, tangents):
    (x, y), (x_dot, _) = primals, tangents
    return divided(x, y), divided(x_dot, y)             # nothing for y


def test_a_rule_that_calls_its_function_on_a_tangent():
    def f(x, y):
        return divided(np.sin(x), y)

    x, y = 0.4, 2.5
    np.testing.assert_allclose(both(gs.grad(f), x, y), np.cos(x) / y)
    assert gs.grad(f, 1)(x, y) == 0.0
    np.testing.assert_allclose(gs.jvp(f, (x, y), (1.0, 1.0))[1], np.cos(x) / y)
    np.testing.assert_allclose(gs.grad(gs.grad(f))(x, y), -np.sin(x) / y)


@gs.custom_jvp
def seven_times(x):
    return x ** 2


@seven_times.defjvp
def seven_times_jvp(primals, tangents):
    return seven_times(primals[0]), 7 * primals[0] * tangents[0]


def test_another_derivative_asks_the_rule_again():
    """f = c(x)**2 with c' = 7 x: f' = 14 x**3 and, by the rule again, f'' = 2 (7 x)**2 + 14 x**2."""
    def f(x):
        return seven_times(x) ** 2

    want = 2 * (7 * 0.8) ** 2 + 14 * 0.8 ** 2
    for second in (gs.hessian(f), gs.grad(gs.grad(f)), gs.jacfwd(gs.grad(f)), gs.jit(gs.grad(gs.grad(f)))):
        np.testing.assert_allclose(second(0.8), want, rtol=1e-14)
    np.testing.assert_allclose(gs.vmap(gs.grad(gs.grad(f)))(np.array([0.8, 0.8])), [want, want], rtol=1e-14)
    np.testing.assert_allclose(gs.grad(lambda x: gs.value_and_grad(f)(x)[0])(0.8), 14 * 0.8 ** 3, rtol=1e-14)


@gs.custom_jvp
def scaled(v, c):
    return v * c


@scaled.defjvp
def scaled_jvp(primals, tangents):
    return scaled(*primals), tangents[0] * primals[1] + primals[0] * tangents[1]


def test_a_number_given_to_a_function_shows_no_array():
    """An entry that a function gets lets the array be written in place: it is copied once, and not in each pass."""
    def f(x):
        y = x.copy()
        for k in range(1, len(x)):
            y[k] = scaled(y[k], y[k - 1])
        return np.sum(y)

    x = np.array([0.5, 0.7, 0.9, 1.2])
    g = gs.grad(f)
    np.testing.assert_allclose(g(x), [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(4)], rtol=1e-8)
    assert g.source_for(x).count(".copy()") == 1


@gs.custom_vjp
def cubed(x):
    return np.sum(x ** 3)


cubed.defvjp(lambda x: (np.sum(x ** 3), x), lambda x, dy: (3 * x ** 2 * dy,))


def test_the_hessian_of_a_reverse_rule():
    """Its value is no part of the result, and so need not have a tangent."""
    x = np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(gs.hessian(cubed)(x), np.diag(6 * x))
    np.testing.assert_allclose(gs.hessian(lambda x: cubed(2 * x) * 3)(x), np.diag(144 * x))
    np.testing.assert_allclose(gs.jit(gs.hessian(cubed))(x), np.diag(6 * x))


WIDE, ROW = np.ones((2, 3)), np.ones(2)


@pytest.mark.parametrize("adjoint", [lambda x, dy: (WIDE,), lambda x, dy: (ROW,), lambda x, dy: (x[:1] * dy,)])
def test_adjoints_of_another_shape(adjoint):
    """Arrays from outside, too."""
    f = gs.custom_vjp(lambda x: np.sum(x ** 2))
    f.defvjp(lambda x: (np.sum(x ** 2), x), adjoint)
    with pytest.raises(gs.KindError, match="adjoint of"):
        gs.grad(lambda x: f(x) * 2.0)(np.ones(3))
