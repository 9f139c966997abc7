"""Writes into the parts that np.split and its kin give, which are views, and into what broadcast_arrays shows."""
import numpy as np
import pytest

import gradscribe as gs


def first_of_a_part(x):
    b = np.array_split(x, 2)[1]
    b[0] *= 3
    return np.sum(x ** 2)


def at_places(x):
    a, b, c = np.split(x, [1, 3])
    b[:] = c[0] * 2 + a
    y = x * x
    a[0] = x[1]
    return np.sum(y * x) + np.sum(b) * a[0]


def between_parts(x):
    p, q, r = np.array_split(x, 3)
    q[0] *= p[0]
    p += q[0] * r[-1]
    return np.sum(x ** 2) + np.sum(p)


def by_columns(x):
    a, b = np.hsplit(x.reshape(-1, 1) * np.ones(4), 2)
    b[1] = a[2]
    a[:, 0] += b[:, 1] ** 2
    return np.sum(a * b) + np.sum(a ** 2)


def in_a_loop(x):
    y = np.stack([x, x ** 2], axis=1)
    for h in np.split(y, 2, axis=-1):
        h *= h[0]
    return np.sum(y ** 3)


def parts_of_parts(x):
    y = np.stack([x, x ** 2, x ** 3, x ** 4])
    top, low = np.vsplit(y, 2)
    left, right = np.array_split(low, 2, axis=1)
    right[0] = np.sum(left) + top[0, 0]
    y[2, -1] *= 2.0
    return np.sum(low * top) + np.sum(right ** 2)


def only_one(x):
    (a,) = np.split(x, 1)
    a[1] = a[0] ** 2
    return np.sum(x ** 2)


def shown_twice(x):
    a, b = np.broadcast_arrays(x, np.ones((2, len(x))))
    x[0] = 5.0 * x[1]
    return np.sum(a * a * b)


FUNCTIONS = [first_of_a_part, at_places, between_parts, by_columns, in_a_loop, parts_of_parts, only_one, shown_twice]
RNG = np.random.default_rng(8)
VECTORS = [RNG.standard_normal(n) for n in (5, 4, 7)]


def by_differences(f, x):
    return np.array([(f(x + 1e-5 * e) - f(x - 1e-5 * e)) / 2e-5 for e in np.eye(len(x))])


@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_and_gradients(f):
    derivative, compiled = gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))
    for x in VECTORS:
        value, d = derivative(x.copy())
        np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
        np.testing.assert_allclose(d, by_differences(f, x), rtol=1e-6, atol=1e-6)
        value, e = compiled(x.copy())
        np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
        np.testing.assert_allclose(e, d, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_tangents_and_batches(f):
    x, v = VECTORS[0], np.linspace(0.5, 1.5, 5)
    np.testing.assert_allclose(gs.jvp(f, (x.copy(),), (v,))[1], by_differences(f, x) @ v, rtol=1e-6)
    X = np.stack([x, x[::-1], 2 * x])
    np.testing.assert_allclose(gs.vmap(f)(X.copy()), [f(r.copy()) for r in X], rtol=1e-12)


def test_a_part_is_written_where_it_lies():
    text = gs.grad(at_places).source_for(VECTORS[0])
    assert "x[1:3] = b" in text and "unbroadcast" not in text
