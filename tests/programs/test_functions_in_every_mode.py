"""Helpers that stay functions in forward mode and in batches, and what modes derive of what modes have derived."""
import numpy as np
import pytest

import gradscribe as gs


def growth(s, r):
    h, f = s
    a, b = r
    t = a * h - b * h * f
    return np.array([t, a * f])


def two(x, k):
    y = np.sin(x) * k
    z = np.cos(x) + y
    w = y * z
    return w, z


def writes(x, i):
    y = x * 2
    y[i] = np.sin(y[0])
    z = y * x
    return z


def half_active(x, y):
    a = np.ones(3) * y
    b = a * 2
    c = x * 3
    return b, c


def gives_its_argument(x, y):
    a = x * 2
    b = a * 3
    c = b + 1
    return x, c


def by_a_test(x, t):
    y = x * 2
    if t > 0.5:
        y = y * t
    z = np.sin(y)
    return z


def first_entries(x, n):
    s = 0.0
    for i in range(n):
        s = s + x[i]
    return s


def model(x, y):
    z = np.zeros(3)
    for k in range(3):
        w, q = two(x, 2.0)
        z = z + w * q + writes(x, k)
    b, c = half_active(x, y)
    z = z + b * c
    p, d = gives_its_argument(x, y)
    u = growth(z[:2], x[1:])
    if y > 1:
        z = writes(z, 1)
    return np.sum(z * x * d * p) + np.sum(u)


def with_a_test(x, t):
    a = by_a_test(x, t)
    return np.sum(a * x) + growth(x[:2], x[1:])[0]


def counted(x, n):
    return first_entries(x, n) * x


X, D = np.array([0.3, 0.5, 0.7]), np.array([1.0, -2.0, 0.5])
XS = np.random.default_rng(0).uniform(0.2, 0.9, (4, 3))
YS = np.array([0.3, 1.5, 2.0, 0.7])


@pytest.mark.parametrize("y, dy", [(1.5, 0.7), (0.5, 0.0)])
def test_tangents(y, dy):
    value, tangent = gs.jvp(model, (X, y), (D, dy))
    dx, along = gs.grad(model, (0, 1))(X, y)
    h = 1e-6
    near = (model(X + h * D, y + h * dy) - model(X - h * D, y - h * dy)) / (2 * h)
    np.testing.assert_allclose([value, tangent], [model(X, y), near], rtol=1e-8)
    np.testing.assert_allclose(tangent, dx @ D + along * dy, rtol=1e-13)

    def f(x):
        return model(x, y)
    H = gs.hessian(f)(X)
    np.testing.assert_allclose(H, H.T, rtol=1e-12)
    np.testing.assert_allclose(gs.grad(lambda x: gs.jvp(f, (x,), (D,))[1])(X), H @ D, rtol=1e-12)
    np.testing.assert_allclose(gs.jvp(gs.grad(f), (X,), (D,))[1], H @ D, rtol=1e-12)
    np.testing.assert_allclose(gs.jacfwd(f)(X), dx, rtol=1e-12)
    np.testing.assert_allclose(gs.jit(lambda x: gs.jvp(f, (x,), (D,))[1])(X), dx @ D, rtol=1e-12)
    np.testing.assert_allclose(gs.linearize(f, X)[1](D), dx @ D, rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(lambda d: gs.jvp(f, (X,), (d,))[1])(np.eye(3)), dx, rtol=1e-12)


@pytest.mark.parametrize("f, axes, args", [
    (model, (0, None), (XS, 1.5)), (model, (None, 0), (X, YS)), (model, (0, 0), (XS, YS)),
    (with_a_test, (0, 0), (XS, YS)),
    (with_a_test, (0, None), (XS, 0.7)), (counted, (0, 0), (XS, np.array([0, 1, 3, 2]))), (counted, (0, None), (XS, 2)),
    (model, (0, None), (XS[:1], 1.5)), (model, (0, None), (XS[:0], 1.5))])
def test_batches(f, axes, args):
    def each(g):
        number = len(args[axes.index(0)])
        rows = [g(*(a if axis is None else a[k] for a, axis in zip(args, axes))) for k in range(number)]
        return np.array(rows) if rows else np.zeros((0, 3) if g is not f or f is counted else (0,))
    batch = gs.vmap(f, in_axes=axes)
    np.testing.assert_allclose(batch(*args), each(f), rtol=1e-13)
    np.testing.assert_allclose(gs.jit(batch)(*args), each(f), rtol=1e-12)
    if f is not counted and axes[0] == 0:
        np.testing.assert_allclose(gs.vmap(gs.grad(f), in_axes=axes)(*args), each(gs.grad(f)), rtol=1e-12)


def test_texts():
    """One function for one kind of arguments, called by its callers' derivatives."""
    def f(s, r):
        for _ in range(3):
            s = s + 0.1 * growth(s, r)
        return np.sum(s)
    S, R = np.array([1.0, 0.5]), np.array([0.3, 0.2])
    tangent = gs.jacfwd(f).source_for(S, R)
    assert tangent.count("def vmap_jvp_growth(") == 1 and tangent.count("vmap_jvp_growth(") == 2, tangent
    batch = gs.vmap(f, in_axes=(0, None)).source_for(np.stack([S, S]), R)
    assert batch.count("def vmap_growth(") == 1 and batch.count("vmap_growth(") == 2, batch
    gradient = gs.vmap(gs.grad(f), in_axes=(0, None)).source_for(np.stack([S, S]), R)
    assert "def vmap_vjp_growth(" in gradient, gradient


def test_parts_are_unpacked_as_the_user_does():
    f = gs.grad(lambda s, r: np.sum(growth(s, r) ** 2), (0, 1))
    text = f.source_for(np.array([1.0, 0.5]), np.array([0.3, 0.2]))
    assert "h, f = s\n" in text and "a, b = r\n" in text and "np.array([dh, df])" in text, text


def test_what_has_a_line_or_two_is_read_in_place():
    def square(x):
        return x * x
    def f(x):
        return np.sum(square(np.sin(x)))
    assert "square" not in gs.vmap(f).source_for(np.ones((2, 3)))


def test_single_precision_and_complex():
    x = X.astype(np.float32)
    value, tangent = gs.jvp(lambda x: two(x, 2.0)[0], (x,), (D.astype(np.float32),))
    assert value.dtype == tangent.dtype == np.float32
    z = X + 1j * X[::-1]
    value, tangent = gs.jvp(lambda z: two(z, 2.0)[0], (z,), (D + 0j,))
    h = 1e-6
    np.testing.assert_allclose(tangent, (two(z + h * D, 2.0)[0] - two(z - h * D, 2.0)[0]) / (2 * h), rtol=1e-8)
