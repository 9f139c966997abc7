"""Helpers that stay functions in source that is read: values, derivatives, and what is read in place all the same."""
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(5)
X = rng.uniform(0.5, 1.5, 6)
A = rng.uniform(0.2, 1.0, (4, 6))


class Grid:
    def __init__(self, h):
        self.h = h


GRID = Grid(0.5)


def slope(f, grid):
    out = np.empty_like(f)
    out[1:-1] = (f[2:] - f[:-2]) / (2 * grid.h)
    out[0] = (f[1] - f[0]) / grid.h
    out[-1] = (f[-1] - f[-2]) / grid.h
    return out


def two(u, v, k):
    p = u * v + k
    q = np.sin(p) * u
    r = p / (1 + v * v)
    return q, r


def inner(u, scale=2.0):
    a = np.tanh(u * scale)
    b = a * u
    return b + np.exp(-b)


def outer(u):
    a = inner(u) + inner(2 * u, 0.5)
    b = np.cos(a) * u
    return a * b


def writes(u):
    u[0] = u[1] * 2
    v = u * u
    w = v + 1
    return w


def gives_back(u):
    v = u * 2
    if v[0] > 1e9:
        v[0] = 0.0
    return u


def shows(u):
    v = u * 2
    w = v[::2]
    return w


def recurse(u, n):
    if n == 0:
        return u
    v = np.sin(u)
    return recurse(v + u, n - 1)


def with_loop(u, n):
    s = u * 0.0
    for _ in range(n):
        s = np.sin(s + u)
    return s


def branches(u, t):
    a = u * t
    if t > 1.0:
        b = a * a
    else:
        b = np.sin(a)
    return b


def number(a, b):
    c = a * b
    d = np.sin(c) + a
    return d * c


def mixed(u, flag, name, n):
    v = u * n
    if flag:
        v = v + 1.0
    if name == "sine":
        v = np.sin(v)
    return v


def f_object(x):
    return np.sum(slope(x, GRID) ** 2 * slope(x * x, GRID))


def f_two(x):
    q, r = two(x, x + 1, 0.3)
    s, t = two(q, r, 0.3)
    return np.sum(s * t) + np.sum(q)


def f_one_of_two(x):
    _, r = two(x, x * x, 0.1)
    return np.sum(r)


def f_nested(x):
    return np.sum(outer(x) * inner(x))


def f_loop(x):
    u = x
    for _ in range(4):
        u = 0.5 * (outer(u) + u)
    return np.sum(u)


def f_writes(x):
    y = x.copy()
    return np.sum(writes(y) * y)


def f_gives_back(x):
    y = gives_back(x)
    return np.sum(y * y)


def f_shows(x):
    y = shows(x)
    return np.sum(y ** 3)


def f_recurse(x):
    return np.sum(recurse(x, 3))


def f_with_loop(x):
    return np.sum(with_loop(x, 3) * with_loop(x * x, 2))


def f_branches(x):
    return np.sum(branches(x, 2.0)) + np.sum(branches(x, 0.5) * branches(x, x[0]))


def f_number(x):
    s = 0.0
    for k in range(x.shape[0]):
        s = s + number(x[k], s)
        s = s + number(s, 0.3)
    return s


def f_mixed(x):
    return np.sum(mixed(x, True, "sine", 3)) + np.sum(mixed(x, False, "cosine", 2) ** 2)


def f_in_branch(x):
    if x[0] > 0.1:
        y = outer(x)
    else:
        y = inner(x)
    return np.sum(y)


def f_unused(x):
    outer(x)
    two(x, x, 1.0)
    return np.sum(x * x)


FUNCTIONS = [f_object, f_two, f_one_of_two, f_nested, f_loop, f_writes, f_gives_back, f_shows, f_recurse, f_with_loop,
             f_branches, f_number, f_mixed, f_in_branch, f_unused]


def differences(f, x):
    return np.array([(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(x.size)])


@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_and_derivatives(f):
    x = X.copy()
    want = differences(f, x)
    found = gs.grad(f)(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-7)
    value, again = gs.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-13)
    np.testing.assert_allclose(again, found, rtol=1e-12)
    v = np.cos(np.arange(6.0))
    np.testing.assert_allclose(gs.jvp(f, (X,), (v,))[1], found @ v, rtol=1e-10)
    bent = (gs.grad(f)(X + 1e-6 * v) - gs.grad(f)(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(gs.jvp(gs.grad(f), (X,), (v,))[1], bent, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gs.grad(lambda x: gs.grad(f)(x) @ v)(X), bent, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(A)[2], gs.grad(f)(A[2]), rtol=1e-12)
    assert gs.grad(f)(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("f", [f_two, f_nested, f_number, f_object])
def test_compiled(f):
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), gs.grad(f)(X), rtol=1e-11)


def test_texts():
    text = gs.grad(f_two).source_for(X)
    assert text.count("def two(") == 1 and text.count("def vjp_two(") == 1 and "q, r = two(x, x + 1, 0.3)" in text
    assert "def slope(f):" in gs.grad(f_object).source_for(X)
    assert "def writes(" not in gs.grad(f_writes).source_for(X)
    assert "def recurse(" not in gs.grad(f_recurse).source_for(X)


def test_results_are_apart():
    """What a backward half returns belongs to its caller, also where it is the adjoint that it was given."""
    def passed(u):
        a = u * 1.0
        b = a + 0.0
        return b

    def f(x):
        y = passed(x)
        return np.sum(y) + np.sum(y * x)
    first = gs.grad(f)(X)
    second = gs.grad(f)(X)
    first += 1.0
    np.testing.assert_allclose(second, 1 + 2 * X, rtol=1e-14)


def test_a_constant_object_that_is_gone_is_no_other():
    for h in (0.5, 0.25, 2.0):
        grid = Grid(h)

        def f(x, grid=grid):
            return np.sum(slope(x, grid) ** 2)
        np.testing.assert_allclose(gs.grad(f)(X), differences(f, X), rtol=1e-6, atol=1e-7)


def test_negative_truth_values():
    def f(x, w):
        return -np.sum((x > 0.9) * (w * x)) - np.sum((x < 1.2) * w * x)
    w = np.ones(6)
    want = -1.0 * (X > 0.9) * w - (X < 1.2) * w
    np.testing.assert_allclose(gs.grad(f)(X, w), want, rtol=1e-14)

    def g(x, t):
        return -((x > t) * x) * 2
    assert gs.grad(g)(np.float64(1.3), np.float64(0.2)) == -2.0


def third(u):
    v = u * 3.0
    w = v / 3.0
    return w + 1.0


def test_a_result_that_became_its_argument_is_copied():
    """After simplification the backward half of `third` returns its argument: the gradient is the caller's alone."""
    def f(x):
        return third(x)
    y, pullback = gs.vjp(f, X)
    dy = np.ones(6)
    got = pullback(dy)
    got = got[0] if isinstance(got, tuple) else got
    assert not np.shares_memory(got, dy)
    np.testing.assert_allclose(got, np.ones(6), rtol=1e-15)
    assert not np.shares_memory(y, X)


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["eager", "jit"])
def test_products_of_small_counts_do_not_wrap_round(wrap):
    """`x / n / m` with int8 counts is no `x / (n * m)`, which would wrap round at 128."""
    def f(x, n, m):
        return np.sum(x / n / m)
    n, m = np.int8(100), np.int8(100)
    np.testing.assert_allclose(wrap(gs.grad(f))(X, n, m), np.full(6, 1e-4), rtol=1e-14)


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["eager", "jit"])
def test_an_index_of_an_index_with_arrays(wrap):
    """`X[i][:, idx]` is no `X[i, :, idx]`, which puts the axis of `idx` first."""
    def f(x, i, idx, w):
        return np.sum(x[i][:, idx] * w)
    x, idx, w = rng.normal(size=(3, 4, 5)), np.array([0, 2, 2]), rng.normal(size=(4, 3))
    want = np.zeros_like(x)
    for k, column in enumerate(idx):
        want[1, :, column] += w[:, k]
    np.testing.assert_allclose(wrap(gs.grad(f))(x, 1, idx, w), want, rtol=1e-14)


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["eager", "jit"])
def test_log_det_where_the_matrix_is_singular(wrap):
    """Where `np.where` chooses, the logarithm's identity with the inverse is not taken: the other arm is the answer."""
    def f(a):
        d = np.linalg.det(a)
        return np.where(d > 0, np.log(d), 0.0) + np.sum(a * a)
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    with np.errstate(all="ignore"):
        got = wrap(gs.grad(f))(a)
    np.testing.assert_allclose(got, 2 * a, rtol=1e-14)
