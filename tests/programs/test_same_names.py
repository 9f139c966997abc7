"""Functions of one name: what is called, and what is transformed, is told apart by more than its name."""
import functools

import numpy as np

import gradscribe as gs


def announced(fun):
    """A decorator as people write them: the function that is called has the name of the one inside."""
    @functools.wraps(fun)
    def call(*args):
        return fun(*args)
    return call


@announced
def scan(x):
    return np.cumsum(np.sin(x))


@announced
def scaled(x, y):
    return np.dot(np.tanh(x), y)


X, ONES = np.array([0.5, 1.0, 2.0]), np.ones(3)
# d/dx_j of sum_i cumsum(sin x)_i = (3 - j) cos x_j
ADJOINT = np.array([3.0, 2.0, 1.0]) * np.cos(X)


def test_a_pullback_of_a_function_that_calls_one_of_its_own_name():
    y, pull = gs.vjp(scan, X)
    dx = pull(ONES)
    assert type(dx) is tuple and len(dx) == 1
    assert np.allclose(dx[0], ADJOINT, rtol=1e-14) and np.allclose(y, np.cumsum(np.sin(X)), rtol=1e-15)


def test_the_text_defines_the_transformed_function_under_its_name():
    made = gs.vjp_of(scan)
    text = made.source_for(ONES, X)
    space = {}
    exec(text, space)
    assert np.array_equal(space["vjp_scan"](ONES, X)[0], made(ONES, X)[0])
    assert text.index("def vjp_scan_1(") < text.index("def vjp_scan(") and text.count("def ") == 2


def test_two_arguments_of_equal_shape():
    """A callee with as many parameters would have been called without a word."""
    y, pull = gs.vjp(scaled, X, ONES)
    dx, dy = pull(1.0)
    assert np.allclose(dx, 1 - np.tanh(X) ** 2, rtol=1e-14) and np.allclose(dy, np.tanh(X), rtol=1e-14)


def test_other_transformations_and_compiled_code():
    slope = np.tril(np.ones((3, 3))) * np.cos(X)
    for made in (gs.jacrev(scan), gs.jacfwd(scan), gs.jit(gs.jacrev(scan))):
        assert np.allclose(made(X), slope, rtol=1e-14)
    assert np.allclose(gs.jit(gs.vjp_of(scan))(ONES, X)[0], ADJOINT, rtol=1e-14)
    assert np.allclose(gs.vmap(gs.vjp_of(scan))(np.stack([ONES, ONES]), np.stack([X, X]))[0], ADJOINT, rtol=1e-14)
