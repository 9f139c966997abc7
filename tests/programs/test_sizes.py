"""Sizes that depend on values: what a whole number made from an array says of lengths."""
import math

import numpy as np
import pytest
from programs import checks

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


# parts of an axis whose length is known only when running

def chosen(x):
    a, b = np.split(x[x > 0.0], 2)
    return np.sum(a * b * b)


def joined(x):
    a, b = np.split(np.concatenate([x, x * x]), 2)
    return np.sum(a * b)


def repeated(x):
    a, b, c = np.split(np.repeat(x, 3), 3)
    return np.sum(a * b * c)


def stepped(x):
    a, b = np.split(x[::2], 2)
    return np.sum(a * b)


def columns(x):
    rows = np.outer(x, x)[:, x > 0.0]
    return sum((k + 1.0) * np.sum(part ** 2) for k, part in enumerate(np.split(rows, 2, axis=1)))


def flat(x):
    a, b = np.hsplit(np.ravel(np.outer(x, x)), 2)
    return np.sum(a * b)


@pytest.mark.parametrize("f", [chosen, joined, repeated, stepped, columns, flat], ids=lambda f: f.__name__)
def test_equal_parts(f):
    x = np.array([0.4, 0.7, 1.1, 0.6, 0.2, 0.9, 1.3, 1.5])
    checks.derivatives(f, x)
    for wrap in (gs.jit, lambda f: f):
        np.testing.assert_allclose(wrap(gs.grad(f))(x), checks.differences(f, x), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(wrap(gs.vmap(f))(np.array([x, 2.0 * x])), [f(x), f(2.0 * x)], rtol=1e-13)


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_unequal_parts(wrap):
    d = wrap(gs.grad(chosen))
    assert d(np.array([1.0, -1.0, 2.0])).tolist() == [4.0, 0.0, 4.0]
    with pytest.raises(ValueError, match="equal division"):
        d(np.array([1.0, 3.0, 2.0]))


def test_more_whole_numbers_than_there_are_lengths_to_try_become_an_array():
    def f(x):
        def step(carry, k):
            return -np.sin(carry), k
        last, counts = gs.lax.scan(step, x, np.arange(12))
        return last * np.sum(counts)

    expected, d = 0.5, 66.0
    for _ in range(12):
        expected, d = -np.sin(expected), -d * np.cos(expected)
    np.testing.assert_allclose(f(0.5), 66.0 * expected)
    np.testing.assert_allclose(gs.grad(f)(0.5), d)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(0.5), d)
    np.testing.assert_allclose(gs.jacfwd(f)(0.5), d)


@pytest.mark.parametrize("f, value, d", [
    (lambda x: np.sum(x[[]]), 0.0, 0.0),
    (lambda x: np.sum(x[:, []]) + np.sum(x[[], [1]]), 0.0, 0.0),
    (lambda x: np.sum(gs.at(x)[[]].add(2.0)), 15.0, 1.0),
    (lambda x: np.sum(gs.at(x)[np.array([0]), []].set(7.0)), 15.0, 1.0),
])
def test_an_empty_list_is_an_index_that_names_no_place(f, value, d):
    x = np.arange(6.0).reshape(2, 3)
    assert f(x) == value and gs.jit(f)(x) == value
    assert gs.grad(f)(x).tolist() == gs.jit(gs.grad(f))(x).tolist() == [[d] * 3] * 2


def test_a_product_of_arrays_of_several_shapes():
    x = np.arange(1.0, 4.0)
    f = lambda x: np.sum(math.prod([x, x, np.sum(x)]))         # noqa: E731 (a one-line shorthand)
    np.testing.assert_allclose(f(x), 84.0)
    for df in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(df(x), 2.0 * x * 6.0 + 14.0)


@pytest.mark.parametrize("reduce", [np.max, np.min, np.maximum.reduce, np.minimum.reduce, np.fmax.reduce,
                                    np.fmin.reduce])
@pytest.mark.parametrize("shape, axis", [((0,), 0), ((3,), 0), ((0, 2), 0), ((2, 0), 1), ((2, 3), 1), ((2, 0), None)])
def test_initial_is_the_result_where_there_are_no_entries(reduce, shape, axis):
    def f(x):
        return np.sum(reduce(x, axis=axis, initial=1.0) ** 2) + np.sum(reduce(x, axis=axis, initial=0.7, where=x > 0.9))

    if axis is None and reduce not in (np.max, np.min):
        axis = 1
    x = np.random.default_rng(3).uniform(0.5, 1.5, shape)
    value, dx = gs.value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_allclose(dx, checks.differences_by_entry(f, x), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gs.vmap(f)(np.array([x, x])), [f(x), f(x)])
    if reduce in (np.max, np.min):
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x), dx)


def test_lengths_that_are_those_of_the_longer_one():
    """np.polyadd of two lengths: what is so from a length on is claimed from there on."""
    def f(c):
        return np.polyadd(c, [1.0, 2.0, 3.0, 4.0]) ** 2

    for n in (0, 1, 2, 4, 6):
        c = np.arange(1.0, n + 1)
        dc, = gs.vjp(f, c)[1](np.ones(max(n, 4)))
        np.testing.assert_allclose(dc, checks.differences_by_entry(lambda c: np.sum(f(c)), c), rtol=1e-6)
        assert np.array_equal(gs.vmap(f)(np.array([c, c])), [f(c), f(c)])


def test_products_of_blocks_with_numbers():
    x = np.array([1.0, 2.0, 3.0])
    for f in (lambda x: np.sum(np.kron(x, 2.0) ** 2), lambda x: np.sum(np.kron(2.0, x) ** 2)):
        assert gs.grad(f)(x).tolist() == [8, 16, 24]
        assert gs.jit(gs.grad(f))(x).tolist() == [8, 16, 24]


@pytest.mark.parametrize("f", [lambda x: np.polyadd(x, 2.0), lambda x: np.convolve(x, 2.0),
                               lambda x: np.polyval(np.outer(x, x), 0.5)])
def test_compiled_forms_of_vectors_refuse_numbers(f):
    with pytest.raises(gs.TransformError, match="no Numba form"):
        gs.jit(f)(np.array([1.0, 2.0]))


@pytest.mark.parametrize("f", [lambda x: np.mean(np.sin(x)), lambda x: np.mean(x),
                               lambda x: np.mean(x[np.arange(len(x))] * 2)])
def test_the_mean_of_nothing_has_a_gradient_of_nothing(f):
    """Eager as compiled, before and after other lengths; Python raises at 1.0 / 0."""
    gradient = gs.grad(f)
    for n in (3, 0, 2, 0):
        x = np.linspace(0.1, 0.9, n)
        near = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(n)]
        np.testing.assert_allclose(gradient(x), near, rtol=1e-8)
        np.testing.assert_allclose(gs.jit(gradient)(x), near, rtol=1e-8)


def test_the_mean_of_nothing_that_is_chosen():
    gradient = gs.grad(lambda x: np.mean(x[x > 2] * 2))
    for x, want in (([1.0, 3.0, 5.0], [0, 1, 1]), ([1.0, 1.0, 1.0], [0, 0, 0])):
        np.testing.assert_array_equal(gradient(np.array(x)), want)
