"""Calls that are recorded, memory that is let go of, and what the host's function says: all without a device."""
import tracemalloc

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.runtime import device
from gradscribe.runtime.graphs import KEPT


@pytest.fixture(autouse=True)
def plain():
    with device.using("plain"):
        yield




def loss(w, x, n):
    y = np.tanh(x @ w)
    return np.sum(y * y) * n, y


X = np.random.default_rng(0).standard_normal((5, 3))


def test_calls_of_equal_shapes():
    """First as it stands, then recorded; other numbers and shapes are other graphs; results are the caller's own."""
    f = gs.jit(loss, target="cuda", graph=True)
    kept = []
    for k in range(4):
        w = X[k, :, None] * np.ones(2)
        value, y = f(w, X, 2.0)
        kept.append((y, np.tanh(X @ w)))
        np.testing.assert_allclose(value, 2 * np.sum(np.tanh(X @ w) ** 2), rtol=1e-13)
    for found, expected in kept:
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(f(X.T[:, :2], X, 3.0)[0], 3 * np.sum(np.tanh(X @ X.T[:, :2]) ** 2), rtol=1e-13)
    np.testing.assert_allclose(f(X.T, X[:4], 3.0)[1], np.tanh(X[:4] @ X.T), rtol=1e-13)


def test_gradients_recorded():
    f = gs.jit(gs.value_and_grad(lambda w, x: loss(w, x, 1.0)[0]), target="cuda", graph=True)
    for k in range(3):
        w = X.T[:, :2] + k
        value, dw = f(w, X)
        expected, dw_expected = gs.value_and_grad(lambda w, x: loss(w, x, 1.0)[0])(w, X)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(dw, dw_expected, rtol=1e-12)


def test_an_index_beyond_the_end_in_a_graph():
    f = gs.jit(lambda x, i: x[i] * 2, target="cuda", graph=True)
    for _ in range(3):
        np.testing.assert_array_equal(f(X[0], np.array([1, 2])), X[0, 1:] * 2)
        with pytest.raises(IndexError, match="out of bounds"):
            f(X[0], np.array([1, 5]))


def test_graphs_are_counted():
    from gradscribe.runtime.graphs import Graphed
    f = Graphed(lambda x: (x + 1,))
    for n in range(2 * KEPT):
        for _ in range(3):
            np.testing.assert_array_equal(f(np.zeros(n))[0], np.ones(n))
    assert len(f.graphs) == KEPT


def chain(x):
    a = np.tanh(x @ x)
    b = np.tanh(a @ a)
    c = np.tanh(b @ b)
    d = np.tanh(c @ c)
    return np.sum(np.tanh(d @ d))


def test_memory_is_let_go_of():
    """Products one after another need three arrays at a time, whatever their number."""
    f = gs.jit(chain, target="cuda")
    x = np.random.default_rng(1).standard_normal((60, 60)) / 8
    np.testing.assert_allclose(f(x), chain(x), rtol=1e-12)
    assert f.lowered.count("    del ") > 3
    tracemalloc.start()
    f(x)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4 * x.nbytes


def test_branches_keep_what_they_may_need():
    def f(x, n):
        y = x @ x
        if n > 2:
            z = y @ x
        else:
            z = x
        return z @ z
    compiled = gs.jit(f, target="cuda")
    for n in (1, 5):
        np.testing.assert_allclose(compiled(X.T @ X, n), f(X.T @ X, n), rtol=1e-12)
