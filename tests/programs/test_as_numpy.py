# SPDX-License-Identifier: Apache-2.0
"""What NumPy's functions do with words, orders and lengths that are seldom given."""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.7, 1.2, 0.4, 1.9, 2.5, 3.1])


def like_ints(x):
    return np.sum(np.full_like(np.arange(3), x[0], dtype=float)) ** 2


def bases_of_their_own(x):
    return np.sum(np.logspace(x[0], 2.0, 2, base=np.array([2.0, 10.0]))) + np.sum(
        np.logspace(0.5, 1.5, 4, base=x[:2]) * np.arange(8.0).reshape(4, 2))


def one_row_of_indices(x):
    return np.sum(np.take_along_axis(x.reshape(2, 3), np.array([[0, 2, 1]]), axis=1) ** 2)


def one_row_of_entries(x):
    return np.sum(np.take_along_axis(x.reshape(1, 6), np.array([[0, 2], [1, 1]]), axis=1) ** 2)


def one_node(x):
    return np.sum(np.interp(x[1:], np.array([1.0]), x[:1]) * x[1:])


def cut_in_any_order(x):
    p, q, r = np.split(x, np.array([4, 1]))
    return np.sum(p * p) + np.sum(q) + np.sum(r ** 3)


def cut_by_an_array(x):
    p, q, r = np.split(x.reshape(2, 3), np.cumsum(np.array([1, 1])), axis=1)
    return np.sum(p * p) * np.sum(q) + np.sum(r ** 3)


def along_two_axes(x):
    return np.sum(np.average(x.reshape(1, 2, 3), axis=(0, 1), weights=np.array([[1.0, 3.0]])) ** 2)


def without_bounds(x):
    return np.sum(np.clip(x, None, None) ** 2)


def edges_of_both_axes(x):
    return np.sum(np.histogram2d(x, x, bins=[0.0, 1.0, 1.5, 4.0], weights=x)[0] ** 2)


def pieces_without_entries(x):
    return np.sum(np.piecewise(x, [x < 0, x >= 0], [lambda v: v * np.max(v), lambda v: v ** 2]))


ALL = [like_ints, bases_of_their_own, one_row_of_indices, one_row_of_entries, one_node, cut_in_any_order,
       cut_by_an_array, along_two_axes, without_bounds, edges_of_both_axes, pieces_without_entries]
ONLY_EAGER = {cut_in_any_order, cut_by_an_array}        # compiled, the places where an array is cut are literals


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_derivatives(f):
    want = differences(f, X)
    np.testing.assert_allclose(gs.value_and_grad(f)(X)[0], f(X), rtol=1e-14)
    np.testing.assert_allclose(gs.grad(f)(X), want, rtol=1e-6, atol=1e-8)
    v = np.linspace(0.5, 1.5, len(X))
    np.testing.assert_allclose(gs.jvp(f, (X,), (v,))[1], want @ v, rtol=1e-6)
    np.testing.assert_allclose(gs.vmap(f)(np.stack([X, 1.1 * X])), [f(X), f(1.1 * X)], rtol=1e-14)
    if f not in ONLY_EAGER:
        np.testing.assert_allclose(gs.jit(gs.grad(f))(X), want, rtol=1e-6, atol=1e-8)


def found_in_order(v, a, order):
    return np.searchsorted(a, v, sorter=order)


def test_words_in_batches():
    a = np.array([3.0, 1.0, 2.0])
    found = gs.vmap(found_in_order, in_axes=(0, None, None))(np.array([0.5, 1.5, 2.5]), a, np.argsort(a))
    np.testing.assert_array_equal(found, [0, 1, 2])


def series_of_powers(x):
    return np.sum(x ** np.array([0.0, 1.0, 2.0]))


def series_of_float_powers(x):
    return np.sum(np.float_power(x, np.array([0.0, 1.0, 2.0])))


@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_powers_whose_exponent_is_zero(wrap):
    """x ** 0 is 1 for every x, 0 too."""
    assert wrap(gs.grad(lambda x, b: x ** b))(0.0, 0.0) == 0
    assert wrap(gs.grad(lambda x, b: x ** b))(2.0, 0.5) == 0.5 * 2.0 ** -0.5
    for series in (series_of_powers, series_of_float_powers):
        assert wrap(gs.grad(series))(0.0) == 1 and gs.jvp(series, (0.0,), (1.0,)) == (1, 1)


@pytest.mark.parametrize("mean", [np.mean, np.var, np.std])
def test_means_that_are_cut_off(mean):
    for x in (X, np.arange(4)):
        with pytest.raises(gs.TransformError, match="cuts off what is behind the decimal point"):
            gs.vmap(lambda v: mean(v, dtype=int))(np.stack([x, x]))


NODES, HEIGHTS = np.array([-1.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 4.0, 2.0, 5.0])


def between_chosen_nodes(x):
    return np.sum(np.interp(x, NODES[NODES > 0], HEIGHTS[NODES > 0]))


def heights_of_chosen_nodes(x):
    m = x > -9
    return np.sum(np.interp(np.array([1.5, 2.5]), np.arange(6.0)[m], x[m]))


def resized_of_chosen(x):
    return np.sum(np.resize(x[x > 0], 7) * np.arange(7.0))


def counted_of_chosen(x):
    held = x[x > 0]
    return np.sum(np.histogram(held, 3, weights=held)[0] ** 2)


def resized(x):
    return np.sum(np.resize(x, 8) * np.arange(8.0))


@pytest.mark.parametrize("f", [between_chosen_nodes, heights_of_chosen_nodes, resized_of_chosen, counted_of_chosen,
                               resized])
def test_lengths_that_are_not_known(f):
    """A form for what has one entry, or none, is taken where that is certain only."""
    try:
        found = gs.grad(f)(X)
    except gs.TransformError:
        return
    np.testing.assert_allclose(found, differences(f, X), rtol=1e-6, atol=1e-8)


def test_one_node_and_then_several():
    def through(x, nodes, heights):
        return np.sum(np.interp(x, nodes, heights))
    gradient = gs.grad(through)
    for n in (1, 5, 1):
        found = gradient(X, NODES[:n], HEIGHTS[:n])
        np.testing.assert_allclose(found, differences(lambda x, n=n: through(x, NODES[:n], HEIGHTS[:n]), X), atol=1e-7)
