"""gs.lax: branches and loops as functions, roots and linear systems: values and derivatives in closed form."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax

X = np.array([0.7, -1.3, 0.4, 1.9])
W = np.random.default_rng(0).standard_normal((4, 4)) / 2
XS = np.random.default_rng(1).standard_normal((6, 4))


def agree(f, *args, rtol=1e-12):
    """Value and gradient of a function, plain and compiled, against differences."""
    value, gradient = gs.value_and_grad(f)(*args)
    h = 1e-6
    flat = np.asarray(args[0], float)
    numeric = np.zeros_like(flat)
    for k in np.ndindex(flat.shape):
        e = np.zeros_like(flat)
        e[k] = h
        numeric[k] = (f(flat + e, *args[1:]) - f(flat - e, *args[1:])) / (2 * h)
    np.testing.assert_allclose(value, f(*args), rtol=rtol)
    np.testing.assert_allclose(gradient, numeric, rtol=2e-7, atol=2e-7)
    compiled = gs.jit(gs.value_and_grad(f))(*args)
    np.testing.assert_allclose(compiled[0], value, rtol=rtol)
    np.testing.assert_allclose(compiled[1], gradient, rtol=1e-10, atol=1e-12)


def rnn(w, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, {"square": h * h, "pair": (np.sum(h), x)}
    h, ys = lax.scan(step, np.zeros(4), xs)
    return np.sum(ys["square"] * ys["pair"][1]) + np.sum(ys["pair"][0]) + np.sum(h)


def rnn_from_the_end(w, xs):
    h, ys = lax.scan(lambda h, x: (np.tanh(w @ h + x), h), np.zeros(4), xs, reverse=True)
    return np.sum(ys[0] * ys[1]) + h[0]


def over_two_arrays(x, y):
    return lax.scan(lambda c, row: (c * row["x"] + row["y"], c), 1.0, {"x": x, "y": y})[0]


def counted(x):
    return lax.scan(lambda c, _: (c * x[0], None), x[1], None, length=5)[0]


def rows_one_by_one(x):
    return np.sum(lax.map(lambda v: (np.sin(v) * v, v ** 2), x)[0])


def prefixes(x):
    return np.sum(lax.associative_scan(lambda a, b: a * b, x) * np.arange(1.0, 5.0))


def suffixes_of_pairs(x):
    joined = lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, x ** 2), reverse=True)
    return joined[1][0] + joined[0][1]


def until_large(x):
    return np.sum(lax.while_loop(lambda v: np.sum(v ** 2) < 50.0, lambda v: v * 1.5 + 0.1, x))


def as_often_as_told(x, n):
    return np.sum(lax.fori_loop(1, n, lambda i, v: v * np.cos(x) + i, x))


def one_of_three(x, k):
    return lax.switch(k, [lambda v: np.sum(v), lambda v: np.sum(v ** 2), lambda v: np.sum(np.sin(v))], x)


def one_of_two(x):
    return lax.cond(x[0] > 0, lambda v: np.sum(v ** 3), lambda v: -np.sum(v), x)


@pytest.mark.parametrize("f, args", [
    (rnn, (W, XS)), (rnn_from_the_end, (W, XS)), (over_two_arrays, (X, X[::-1].copy())), (counted, (X,)),
    (rows_one_by_one, (X,)), (prefixes, (X,)), (suffixes_of_pairs, (X,)), (until_large, (X,)),
    (as_often_as_told, (X, 5)),
    (one_of_three, (X, 0)), (one_of_three, (X, 1)), (one_of_three, (X, 7)), (one_of_three, (X, -2)), (one_of_two, (X,)),
    (one_of_two, (-X,))], ids=lambda v: getattr(v, "__name__", ""))
def test_derivatives(f, args):
    agree(f, *args)


def test_scan_gives_what_its_description_says():
    def step(c, x):
        return c + x[0], (c, 2 * x[1])
    xs = (np.arange(4.0), np.arange(4))
    carry, (before, doubled) = lax.scan(step, 10.0, xs)
    assert carry == 16.0
    np.testing.assert_array_equal(before, [10.0, 10.0, 11.0, 13.0])
    np.testing.assert_array_equal(doubled, [0, 2, 4, 6])
    carry, (before, _) = lax.scan(step, 10.0, xs, reverse=True)
    np.testing.assert_array_equal(before, [16.0, 15.0, 13.0, 10.0])


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_scan_over_no_rows(wrap):
    carry, ys = wrap(lambda xs: lax.scan(lambda c, x: (c + np.sum(x), (c * x, c)), 2.0, xs))(np.zeros((0, 3)))
    assert carry == 2.0 and ys[0].shape == (0, 3) and ys[1].shape == (0,)
    product = gs.grad(lambda xs, c: lax.scan(lambda c, x: (c * np.sum(x), c), c, xs)[0], (0, 1))
    gradient = wrap(product)(np.zeros((0, 3)), 2.0)
    assert gradient[0].shape == (0, 3) and gradient[1] == 1.0


def test_a_loop_of_no_passes():
    assert lax.fori_loop(3, 1, lambda i, v: v + 1, 5.0) == 5.0
    assert gs.grad(lambda x, n: lax.fori_loop(0, n, lambda i, v: v * v, x))(3.0, 0) == 1.0
    assert gs.grad(lambda x: lax.while_loop(lambda v: v < 1.0, lambda v: v * v, x))(3.0) == 1.0


def test_vmap_of_scan_stays_one_loop():
    def total(x):
        return np.sum(lax.scan(lambda c, v: (c * v, c + v), 1.0, x)[1])
    batched = gs.vmap(total)
    np.testing.assert_allclose(batched(XS), [total(x) for x in XS], rtol=1e-13)
    np.testing.assert_allclose(gs.vmap(gs.grad(total))(XS), [gs.grad(total)(x) for x in XS], rtol=1e-12)
    assert "for b in" not in batched.source


def test_the_emitted_source_is_the_loop():
    lines = [line for line in gs.grad(rnn_from_the_end).source_for(W, XS).splitlines() if "#" not in line]
    assert sum("    for k in" in line for line in lines) == 2
    assert not any(word in line for line in lines for word in ("scan", "tree", "leaf", "lax"))


@pytest.mark.parametrize("call, message", [
    (lambda: lax.scan(lambda c, x: (c, x), 0.0), "needs its length"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, (np.zeros(3), np.zeros(4))), "3 rows|4 rows"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, np.zeros(3), length=4), "4"),
    (lambda: lax.switch(0, []), "a branch at least")])
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# roots and linear systems


def newton(f, x):
    for _ in range(30):
        x = x - f(x) / gs.jvp(f, (x,), (1.0,))[1]
    return x


def cube_root(a):
    return lax.custom_root(lambda x: x ** 3 - a, 1.0, newton, lambda g, y: y / g(1.0))


def dense(g, y):
    return np.linalg.solve(gs.jacfwd(g)(y), y)


A = np.array([[2.0, 1.0, 0.3], [0.5, 4.0, -1.0], [0.0, 0.2, 3.0]])
B = np.array([1.0, 2.0, -0.5])


def solved(a, b):
    return np.sum(np.sin(lax.custom_linear_solve(lambda x: a @ x, b, dense, dense)))


def test_derivatives_of_a_root():
    a = 5.0
    assert cube_root(a) == pytest.approx(a ** (1 / 3), rel=1e-14)
    for g in (gs.grad(cube_root), gs.jit(gs.grad(cube_root)), gs.jacfwd(cube_root)):
        assert g(a) == pytest.approx(a ** (-2 / 3) / 3, rel=1e-12)
    assert gs.grad(gs.grad(cube_root))(a) == pytest.approx(-2 / 9 * a ** (-5 / 3), rel=1e-11)
    assert gs.grad(gs.grad(gs.grad(cube_root)))(a) == pytest.approx(10 / 27 * a ** (-8 / 3), rel=1e-10)


def test_no_derivative_goes_to_the_guess():
    def f(a):
        return lax.custom_root(lambda x: x ** 3 - 2.0, a, newton, lambda g, y: y / g(1.0))
    assert gs.grad(f)(1.5) == 0.0


def test_derivatives_of_a_solution():
    def plain(a, b):
        return np.sum(np.sin(np.linalg.solve(a, b)))
    for k in (0, 1):
        np.testing.assert_allclose(gs.grad(solved, k)(A, B), gs.grad(plain, k)(A, B), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(gs.jit(gs.grad(solved, k))(A, B), gs.grad(plain, k)(A, B), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gs.hessian(solved, 1)(A, B), gs.hessian(plain, 1)(A, B), rtol=1e-11, atol=1e-13)
    direction = (np.ones((3, 3)), B)
    np.testing.assert_allclose(gs.jvp(solved, (A, B), direction)[1], gs.jvp(plain, (A, B), direction)[1], rtol=1e-12)


def test_a_solver_that_cannot_be_differentiated():
    """Rounding the residual away has no derivative that is of use; the implicit function theorem does not look."""
    def gauss_seidel(matvec, b):
        m, x = gs.jacfwd(matvec)(b), np.zeros_like(b)
        for _ in range(200):
            for i in range(len(b)):
                x[i] = np.round((b[i] - m[i] @ x + m[i, i] * x[i]) / m[i, i], 15)
        return x

    def f(b):
        x = lax.custom_linear_solve(lambda x: A @ x, b, gauss_seidel, lambda m, y: np.linalg.solve(A.T, y))
        return np.sum(x ** 2)
    np.testing.assert_allclose(gs.grad(f)(B), gs.grad(lambda b: np.sum(np.linalg.solve(A, b) ** 2))(B), rtol=1e-12)


def test_aux_of_a_solver():
    def f(b):
        x, steps = lax.custom_linear_solve(lambda x: A @ x, b, lambda m, y: (dense(m, y), 7.0), has_aux=True)
        return np.sum(x) + steps
    np.testing.assert_allclose(gs.grad(f)(B), np.linalg.solve(A.T, np.ones(3)), rtol=1e-13)
    assert f(B) == pytest.approx(np.sum(np.linalg.solve(A, B)) + 7.0)
