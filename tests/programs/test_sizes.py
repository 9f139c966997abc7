"""Sizes that depend on values: what a whole number made from an array says of lengths."""
import numpy as np
import pytest

import gradscribe as gs

POINTS = [np.array(p) for p in ([0.31, 0.42, 0.53], [0.31, -0.42, -0.53], [0.31, -0.42, 0.53], [0.53, 0.42, 0.31])]


def place_of_the_largest(x):
    n = np.argmax(x)
    y = np.ones(n + 1) * x[0]
    return np.mean(y * np.arange(1, n + 2))


def place_of_the_least(x):
    n = np.argmin(x)
    y = np.broadcast_to(x[0], (n + 1,)) * np.arange(n + 1)
    return np.sum(y) + np.mean(y)


def number_of_true_entries(x):
    n = np.sum(x > 0)
    y = np.zeros(n)
    for i in range(n):
        y[i] = x[0] * i
    return np.sum(y) / n + np.mean(np.linspace(x[0], x[1], n) ** 2)


def entries_counted(x):
    y = np.broadcast_to(x[0], (np.count_nonzero(x > 0),))
    return np.sum(y) + 2 * np.sum(np.sort(x)[-np.count_nonzero(x > 0):])


def product_of_numbers(x):
    n = np.prod(np.where(x > 0, 1, 2))
    return np.sum(np.full(n, x[0])) + np.mean(np.repeat(x[1], n))


def rounded(x):
    z = np.zeros(int(np.round(np.abs(x[0]) * 4)) + 2)
    z[0] = x[1]
    return np.sum(z * z) + np.mean(np.sin(z))


def the_larger_number(x):
    n = np.maximum(int(x[0] * 10), 2)
    z = np.zeros(n)
    z[-1] = x[1]
    s = 0.0
    for i in range(n):
        s = s + z[i] ** 2 * x[2]
    return s


def place_in_an_order(x):
    z = x[0] * np.ones((np.searchsorted(np.array([-1.0, 0.0, 0.35, 0.6]), x[0]), 2))
    return np.mean(z) + np.sum(z)


def quotient_and_rest(x):
    n, r = divmod(int(x[0] * 10), 2)
    return np.sum(np.full((n, r + 1), x[1]))


PROGRAMS = [place_of_the_largest, place_of_the_least, number_of_true_entries, entries_counted, product_of_numbers,
            rounded, the_larger_number, place_in_an_order, quotient_and_rest]


@pytest.mark.parametrize("transform", [gs.grad, pytest.param(lambda f: gs.jit(gs.grad(f)), marks=pytest.mark.slow)],
                         ids=["plain", "compiled"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient(f, transform):
    gradient = transform(f)
    for x in POINTS:
        slopes = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        np.testing.assert_allclose(gradient(x), slopes, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_tangent_and_batch(f):
    gradient = gs.grad(f)
    for x in POINTS:
        np.testing.assert_allclose(gs.jvp(f, (x,), (np.array([1.0, 2, 3]),))[1], gradient(x) @ [1, 2, 3], rtol=1e-12)
    X = np.stack(POINTS)
    np.testing.assert_allclose(gs.vmap(f)(X), [f(x) for x in POINTS], rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(gradient)(X), [gradient(x) for x in POINTS], rtol=1e-12)
