"""Functions given to functions that have a rule of their own: what they read is as it was, and the rule knows it."""
from functools import partial

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs


@partial(gs.custom_jvp, nondiff_argnums=(0,))
def applied(f, x, values):
    return f(x, *values)


@applied.defjvp
def _rule(f, primals, tangents):
    x, values = primals
    return f(x, *values), gs.jvp(lambda x, v: f(x, *v), primals, tangents)[1]


@partial(gs.custom_vjp, nondiff_argnums=(0,))
def through(f, x):
    return f(x)


through.defvjp(lambda f, x: (f(x), x), lambda f, x, dy: (dy * gs.grad(f)(x),))


def converted(a):
    b = np.sin(a)
    f, values = gs.closure_convert(lambda x: x * x * b + a, 1.0)
    b = 100.0
    return applied(f, a, values) + 0.0 * b


def plain(a):
    return a * a * np.sin(a) + a


def test_what_a_function_reads_becomes_arguments():
    for order in range(1, 4):
        f, g = converted, plain
        for _ in range(order):
            f, g = gs.grad(f), gs.grad(g)
        assert f(2.0) == pytest.approx(g(2.0), rel=1e-13)
    assert gs.jit(gs.grad(converted))(2.0) == pytest.approx(gs.grad(plain)(2.0), rel=1e-13)
    points = np.array([2.0, 3.0])
    np.testing.assert_allclose(gs.vmap(gs.grad(converted))(points), gs.vmap(gs.grad(plain))(points), rtol=1e-13)


def test_in_a_loop():
    def f(a, n):
        s = 0.5
        for i in range(n):
            g, values = gs.closure_convert(lambda x, s=s: x * a + s, 1.0)
            s = applied(g, s * 0.5, values) + i
        return s

    def g(a, n):
        s = 0.5
        for i in range(n):
            s = s * 0.5 * a + s + i
        return s
    for n in (0, 1, 5):
        assert f(2.0, n) == g(2.0, n)
        assert gs.grad(f)(2.0, n) == pytest.approx(gs.grad(g)(2.0, n), rel=1e-14)
        assert gs.jvp(lambda a, n=n: f(a, n), (2.0,), (1.0,))[1] == pytest.approx(gs.grad(g)(2.0, n), rel=1e-14)


def test_a_name_that_changes_later():
    def f(a):
        k = 3.0
        y = through(lambda x: x * x * k, a)
        k = 100.0
        return y * k
    assert gs.grad(f)(2.0) == 1200.0


def test_a_function_in_a_function():
    def f(a, c):
        def inner(x):
            return x * x * c
        return through(lambda x: inner(x) + x, a)
    assert gs.grad(f)(2.0, 3.0) == 13.0
    with pytest.raises(gs.LanguageError, match="says nothing of c"):
        gs.grad(f, 1)(2.0, 3.0)


def test_what_is_read_and_differentiated_is_refused():
    with pytest.raises(gs.LanguageError, match="says nothing of a"):
        gs.grad(lambda a: through(lambda x: x * a, 1.0))(2.0)
    with pytest.raises(gs.LanguageError, match="says nothing of a"):
        gs.grad(lambda a: applied(lambda x: x * a, 1.0, []))(2.0)
    with pytest.raises(gs.LanguageError, match="says nothing of a"):
        gs.jvp(lambda a: applied(partial(lambda b, x: x * b, a), 1.0, []), (2.0,), (1.0,))
    def f(a):
        b = gs.stop_gradient(a)
        return through(lambda x: x * b, a)
    assert gs.grad(f)(2.0) == 2.0


def test_an_operand_that_is_given_twice():
    @gs.custom_jvp
    def product(x, y):
        return x * x * y

    @product.defjvp
    def _(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return product(x, y), 2 * x * y * dx + x * x * dy
    assert gs.grad(lambda a: product(a, a))(2.0) == 12.0
    assert gs.grad(gs.grad(lambda a: product(a, a)))(2.0) == 12.0
    assert gs.jit(gs.grad(lambda a: product(a, a)))(2.0) == 12.0
    assert gs.grad(lambda a: product(a, a) * product(2 * a, a))(2.0) == pytest.approx(6 * 4 * 32.0)


def test_outside_of_a_transformation():
    f, values = gs.closure_convert(lambda x: 2 * x, 1.0)
    assert values == [] and f(3.0, *values) == 6.0


def test_partial_eval_of_halves():
    """The parameters of vjp of vjp and of jvp of jvp have names of their own."""
    def f(x, w):
        return np.sum(np.sin(x) * w)
    x, w = np.array([0.3, 1.2]), np.array([2.0, -1.0])
    ddy, dx, dw = gs.vjp_of(gs.vjp_of(f))((x, w), 2.0, x, w)
    assert ddy == pytest.approx(np.sum(x * np.cos(x) * w) + np.sum(w * np.sin(x)), rel=1e-14)
    np.testing.assert_allclose(dx, 2 * (w * np.cos(x) - x * w * np.sin(x)), rtol=1e-13)
    np.testing.assert_allclose(dw, 2 * x * np.cos(x), rtol=1e-13)
    (y, y_dot), (_, y_ddot) = gs.jvp_of(gs.jvp_of(f))(x, w, x, w, x, w, 0 * x, 0 * w)
    assert y == f(x, w) and y_dot == pytest.approx(ddy, rel=1e-14)
    assert y_ddot == pytest.approx(np.sum(-x * x * np.sin(x) * w) + 2 * np.sum(x * np.cos(x) * w), rel=1e-13)


def counted(x):
    n = 0

    def g(v):
        nonlocal n
        n += 1
        return v * n
    return g(x[0]) + g(x[1]) + sum(g(v) for v in x) + sum([g(v) for v in x]) * n


def added_up_in_a_loop(x):
    total = 0.0

    def add(v):
        nonlocal total
        if v > 0:
            total += v * v
    for v in x:
        add(v)
    return total * x[0]


def best_by_recursion(x):
    best = x[0]

    def visit(k):
        nonlocal best
        if k < 4:
            if x[k] > best:
                best = x[k] * 2
            visit(k + 1)
    visit(0)
    return best


def parameter_that_is_set(x, n=1.0):
    def g(v):
        nonlocal n
        for _ in range(len(x)):
            n += v
        return v
    g(x[0])
    g(x[1])
    return n


def set_two_functions_deep(x):
    s = x

    def g():
        def h():
            nonlocal s
            s = s * 2
        h()
    while np.sum(s) < 10:
        g()
    return np.sum(s)


def swapped_beside_names_alike(x):
    a, b = x[0], x[1]

    def swap():
        nonlocal a, b
        a, b = b, a * x[2]

    def other(a):
        return a * 3
    for _ in range(3):
        swap()
    q = [a for a in x]
    return a - b + q[3] + other(x[1])


@pytest.mark.parametrize("f", [counted, added_up_in_a_loop, best_by_recursion, parameter_that_is_set,
                               set_two_functions_deep, swapped_beside_names_alike], ids=lambda f: f.__name__)
def test_variables_that_inner_functions_set(f):
    x = np.array([0.3, 0.5, 0.7, 1.1])
    want = differences(f, x)
    for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(gradient(x), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gs.jvp(f, (x,), (np.ones(4),))[1], np.sum(want), rtol=1e-6)


def test_such_variables_keep_their_names():
    source = gs.grad(added_up_in_a_loop).source_for(np.ones(3))
    assert "            total += v * v\n" in source
