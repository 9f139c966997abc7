"""Places that are known only when running: no example has them, so the record says what comes out."""
import numpy as np
import pytest

import gradscribe as gs

X, W = np.array([0.3, -0.2, 1.1, 0.4]), np.array([1.0, 2.0, -1.0, 0.5, 3.0])


@pytest.mark.parametrize("k", (0, 2, -2, np.array(3), np.array(-1)))
def test_insert(k):
    da, dv = gs.grad(lambda x, v, k: np.insert(x, k, v) @ W, argnums=(0, 1))(X, 0.7, k)
    place = k if k >= 0 else k - 1              # of the new entry: before the one that was meant
    np.testing.assert_array_equal(da, np.delete(W, place))
    assert dv == W[place]


@pytest.mark.parametrize("k, axis", [(np.array(1), 0), (np.array([2, 0]), 1), (np.array([[0], [1]]), 0), (1, -1)])
def test_take(k, axis):
    a = np.arange(6.0).reshape(2, 3)
    w = np.cos(np.arange(np.take(a, k, axis=axis).size)).reshape(np.take(a, k, axis=axis).shape)
    da = gs.grad(lambda a, k: np.sum(np.take(a, k, axis=axis) * w))(a, k)
    at = np.zeros((2, 3))
    np.add.at(at, (k,) if axis == 0 else (slice(None), k), w)
    np.testing.assert_array_equal(da, at)
