"""np.lib.stride_tricks.sliding_window_view and np.require in programs; a window sees what is written into its array."""
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from programs import checks

import gradscribe as gs


def moving_maximum(x):
    return np.sum(np.max(sliding_window_view(x * x, 2), axis=1) * x[1:])


def filtered(x):
    A = np.outer(x, x)
    w = np.lib.stride_tricks.sliding_window_view(A, (2, 3))
    return np.sum(np.einsum("ijkl,kl->ij", w, A[:2, :3]) ** 2)


def along_one_axis(x):
    A = np.outer(x, x + 1)
    return np.sum(np.prod(sliding_window_view(A, window_shape=3, axis=0), axis=-1) * A[:2])


def seen_after_a_write(x):
    y = x * 1.0
    w = sliding_window_view(y, 3)
    y[1] = x[0] * x[2]
    return np.sum(w * w * np.arange(1.0, 4.0))


def required(x):
    y = np.require(x * x)
    z = np.require(y)
    z[0] = x[1] ** 2
    k = np.require([x[0], x[2]], dtype=float)
    c = np.require(np.outer(x, x), None, "C")
    c[0, 1] = 3.0
    return np.sum(y * x) + np.sum(k * k) + np.sum(c * c)


FOUND = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__]


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_derivatives(f):
    for x in checks.POINTS:
        checks.derivatives(f, x)


@pytest.mark.parametrize("f", FOUND[::2], ids=lambda f: f.__name__)
def test_float32(f):
    checks.float32(f)


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_examples(f):
    checks.examples(f)


def test_windows_are_not_written():
    def f(x):
        w = sliding_window_view(x * 2, 2)
        w[0] = x[1]
        return np.sum(w)

    with pytest.raises(gs.TransformError, match="does not let be written"):
        gs.grad(f)(np.ones(3))


@pytest.mark.parametrize("shape", [(1, 5), (1, 1, 5)])
def test_what_is_reshaped_of_one_entry_is_not_written(shape):
    """NumPy's ufunc.at writes into such a view all the same: into all entries at once."""
    def f(s):
        t = np.broadcast_to(s, shape).reshape(5)
        np.subtract.at(t, np.array([1, 2]), 0.4)
        return np.sum(t * t)

    with pytest.raises(gs.TransformError, match="does not let be written"):
        gs.grad(f)(1.3)
