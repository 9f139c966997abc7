"""Generators that a function makes and seeds: a second evaluation draws the same numbers."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, -1.0, 2.0])
NOISE = np.random.RandomState(5).randn(3)          # NumPy's own, with the seed of the functions below
FRESH = np.random.default_rng(7).normal(size=3)


def noisy(x):
    rng = np.random.RandomState(5)
    return np.sum(np.sin(x) * rng.randn(x.shape[0]))


def noisy_bits(x):
    rng = np.random.Generator(np.random.PCG64(7))
    return np.sin(x) * rng.normal(size=3)


def pulled(f):
    def slope(x):
        y, pull = gs.vjp(f, x)
        return y * pull(np.ones_like(y))[0]
    return slope


def test_a_pullback_inside_a_function():
    got = pulled(noisy)(X)
    inside = gs.jacfwd(pulled(noisy))(X)
    assert np.allclose(got, np.sum(np.sin(X) * NOISE) * np.cos(X) * NOISE, rtol=1e-13)
    c = np.cos(X) * NOISE
    assert np.allclose(inside, np.outer(c, c) - np.diag(np.sum(np.sin(X) * NOISE) * np.sin(X) * NOISE), rtol=1e-13)


def test_a_jacobian_and_a_derivative_of_it():
    assert np.allclose(gs.jacrev(noisy_bits)(X), np.diag(np.cos(X) * FRESH), rtol=1e-13)
    second = gs.grad(lambda x: np.sum(gs.jacfwd(noisy_bits)(x)))(X)
    assert np.allclose(second, -np.sin(X) * FRESH, rtol=1e-13)


def linearized(x):
    y, push = gs.linearize(noisy, x)
    return push(np.ones_like(x))


def test_a_linear_function_inside_a_function():
    assert np.allclose(gs.grad(linearized)(X), -np.sin(X) * NOISE, rtol=1e-13)


def outer_stream(x):
    rng = np.random.RandomState(5)
    y, pull = gs.vjp(lambda x: np.sin(x) * rng.randn(3), x)
    return np.sum(pull(np.ones(3))[0])


def no_seed(x):
    y, pull = gs.vjp(lambda x: np.sin(x) * np.random.RandomState().randn(3), x)
    return np.sum(pull(np.ones(3))[0])


def seed_is_drawn(x):
    y, pull = gs.vjp(lambda x: np.sin(x) * np.random.RandomState(np.random.randint(5)).randn(3), x)
    return np.sum(pull(np.ones(3))[0])


@pytest.mark.parametrize("f", [outer_stream, no_seed, seed_is_drawn])
def test_what_would_draw_other_numbers_is_refused(f):
    with pytest.raises(gs.LanguageError, match="each time draws other random numbers"):
        gs.grad(f)(X)
