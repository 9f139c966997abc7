"""Rows of the document on spectral radii and norms of edges: its figures."""
import numpy as np
import pytest

import gradscribe as gs


def spectral_radius(a):
    return np.max(np.abs(np.linalg.eigvals(a)))


def edge_norm(x, i, j):
    return np.sqrt(np.sum((x[i] - x[j]) ** 2))


REAL = np.array([[1.0, -1.0], [1.0, 1.0]])
COMPLEX = np.array([[1 + 1j, -1], [1, 1]])


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])
def test_s27_spectral_radius(wrap):
    assert wrap(spectral_radius)(REAL) == pytest.approx(1.4142135623730951, rel=1e-15)
    np.testing.assert_allclose(wrap(gs.grad(spectral_radius))(REAL), [[0.354, -0.354], [0.354, 0.354]], atol=5e-4)
    assert wrap(spectral_radius)(COMPLEX) == pytest.approx(1.9021130800247192, rel=1e-7)
    expected = [[0.38 - 0.616j, -0.38 - 0.235j], [0.38 + 0.235j, 0.145 - 0.235j]]
    np.testing.assert_allclose(wrap(gs.grad(spectral_radius))(COMPLEX), expected, atol=1e-3)
    assert gs.grad(spectral_radius)(REAL).dtype == np.float64


def test_s33_norms_of_edges():
    x = np.random.default_rng(0).standard_normal((6, 3))
    i, j = np.triu_indices(6, 1)
    looped = np.array([edge_norm(x, a, b) for a, b in zip(i, j)])
    assert looped.shape == (15,)
    batched = gs.vmap(edge_norm, (None, 0, 0))
    jitted = gs.jit(edge_norm)
    for norms in (batched(x, i, j), gs.jit(batched)(x, i, j), np.array([jitted(x, a, b) for a, b in zip(i, j)]),
                  np.linalg.norm(x[i] - x[j], axis=1)):
        np.testing.assert_allclose(norms, looped, rtol=1e-14)
    assert "for" not in batched.source


def test_s33_spectral_radii():
    many = np.random.default_rng(1).standard_normal((128, 3, 3))
    looped = np.array([spectral_radius(a) for a in many])
    batched = gs.vmap(spectral_radius)
    for radii in (batched(many), gs.jit(batched)(many), np.max(np.abs(np.linalg.eigvals(many)), axis=1)):
        np.testing.assert_allclose(radii, looped, rtol=1e-12)
    assert "np.max(np.absolute(np.linalg.eigvals(a)), axis=1)" in batched.source
    np.testing.assert_allclose(gs.vmap(gs.grad(spectral_radius))(many), [gs.grad(spectral_radius)(a) for a in many],
                               rtol=1e-9, atol=1e-12)
