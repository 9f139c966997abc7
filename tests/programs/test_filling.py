"""Programs that call what fills an array: np.put, np.putmask, np.place, np.fill_diagonal, np.nan_to_num, out=.

Each is checked against differences: gradient, jvp, value, compiled; the argument stays as it was.
"""
import numpy as np
import pytest
from programs import checks

import gradscribe as gs

POINTS = [np.array([0.9, 0.3, 0.7, 0.4]), np.array([0.2, 0.8, 0.6, 1.1])]
W = np.arange(1.0, 13.0).reshape(3, 4)


def put_into_a_matrix(x):
    A = W * x
    np.put(A, [0, 5, -1], x[:3] ** 2)
    A.put(2, x[1] * x[2])
    A.put([3, 3], x[2:])
    np.put(A.T, [1, 2], x[0])
    return np.sum(A * W * A)


def put_of_values_in_turn(x):
    y = np.zeros(6) + x[0]
    np.put(y, [0, 3, 1, 5], x[:2] * x[1])
    np.put(y, [[2, 4]], x)
    np.put(y, 1, [x[3], x[0]])
    return np.sum(y * y * np.arange(6))


def put_beyond_the_end(x):
    A, B = W * x, W + x
    np.put(A, [13, -2], x[:2] ** 2, mode="wrap")
    np.put(B, [40, -7], x[2:] ** 2, "clip")
    return np.sum(A * W * A) + np.sum(B * B * W)


def put_into_what_names_show(x):
    A = W * x
    row = A[1]
    A.put([4, 6], x[:2] ** 2)
    return np.sum(row * row * x)


def putmask_in_turn(x):
    A, y = W * x, x * 2
    np.putmask(A, W > 5, x[:3] ** 2)
    np.putmask(y, y > 1, x[:2] * x[1])
    np.putmask(A, A > 8, x)
    np.putmask(A, mask=W < 3, values=[[x[0], x[1] ** 2], [x[2], 1.0]])
    return np.sum(A * W * A) + np.sum(y * y)


def place_in_turn(x):
    A, y = W * x, x * 3
    np.place(A, W > 6, x[:2] ** 2)
    np.place(y, y > 1.5, np.exp(x))
    np.place(A, W == 2, [x[3]])
    return np.sum(A * W * A) + np.sum(y * y * y)


def diagonals_of_values(x):
    A, B, C = np.outer(x, x), W * x, W.T * x[:3]
    np.fill_diagonal(A, x[:2] ** 2)
    np.fill_diagonal(B, x ** 2)
    np.fill_diagonal(C, x[1:] ** 2)
    return np.sum(A * A) + np.sum(B * B * W) + np.sum(C * C * C)


def diagonals_that_wrap(x):
    A, B = np.ones((9, 2)) * x[:2], np.ones((9, 2)) * x[0]
    np.fill_diagonal(A, x[3] ** 2, wrap=True)
    np.fill_diagonal(B, x[1:] ** 2, True)
    return np.sum(A * A * np.arange(18.0).reshape(9, 2)) + np.sum(B * B)


def diagonals_of_cubes(x):
    A = np.ones((4, 4, 4)) * x
    np.fill_diagonal(A, x ** 2)
    B = np.ones((2, 2, 2)) * x[0]
    np.fill_diagonal(B, x[1])
    return np.sum(A * A * x) + np.sum(B * B)


def numbers_in_place(x):
    y = x + np.array([0.0, 0.0, np.inf, 0.0])
    z = np.nan_to_num(y, copy=False, posinf=2.0)
    z[0] = x[1] * x[2]
    w = np.nan_to_num(y[1:] * x[0], True, 0.0)
    v = np.nan_to_num([x[0], x[1]], copy=True)
    k = np.nan_to_num(np.array([1, 2]), False)
    return np.sum(y * y * x) + np.sum(w) * np.sum(v) * np.sum(k)


def numbers_in_a_view(x):
    A = W * x
    np.nan_to_num(A[1:, ::2], False)
    return np.sum(A * A)


def reductions_into_an_array(x):
    A, r, c = np.outer(x, x * x), np.zeros(4), np.zeros((2, 4))
    np.add.reduce(A, axis=0, out=r)
    np.multiply.reduce(A, 1, None, c[0])
    s = np.maximum.accumulate(x, out=c[1])
    t = np.add.reduceat(x * x, [0, 2], out=np.zeros(2))
    s *= 2.0
    return np.sum(r * c) + np.sum(t * t)


def reductions_of_some_entries(x):
    A = W * x
    m = W % 3 > 0
    s = np.logaddexp.reduce(A, where=m, initial=x[1]) + np.logaddexp2.reduce(A, axis=0, where=m)[1]
    t = np.hypot.reduce(A, 1, where=m, initial=2.0)
    u = np.fmax.reduce(A, axis=1, initial=1.0, where=m) * np.fmin.reduce(A, axis=1, initial=x[0])
    v = np.logical_and.reduce(A > 2, where=m) + np.logical_or.reduce(A > 9, initial=False)
    return np.sum(s * x * v) + np.sum(t * u)


FOUND = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__]


def quietly(f):
    def run(*args):
        with np.errstate(divide="ignore"):
            return f(*args)
    return run


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_derivatives(f):
    for x in POINTS:
        quietly(checks.derivatives)(f, x)


@pytest.mark.parametrize("f", FOUND[::3], ids=lambda f: f.__name__)
def test_float32(f):
    quietly(checks.float32)(f)


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_examples(f):
    X = np.array(POINTS)
    np.testing.assert_allclose(quietly(gs.vmap(f))(X), [quietly(f)(x) for x in X], rtol=1e-12)
    made = quietly(gs.vmap(gs.grad(f)))(X)
    np.testing.assert_allclose(made, [quietly(gs.grad(f))(x) for x in X], rtol=1e-12)


@pytest.mark.parametrize("f", checks.some_fast(FOUND, 4), ids=lambda f: f.__name__)
def test_compiled(f):
    quietly(checks.compiled)(f)


def test_what_is_given_is_written():
    def f(x, y):
        np.nan_to_num(y, copy=False)
        np.put(y, [0], x[1])
        return np.sum(x * y)

    x, y = np.array([1.0, 2.0]), np.array([np.nan, 3.0])
    np.testing.assert_allclose(gs.grad(f)(x, y), [2.0, 4.0])
