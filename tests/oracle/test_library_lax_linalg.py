# SPDX-License-Identifier: Apache-2.0
"""gs.lax.linalg beside jax.lax.linalg: values, both modes, batches, compiled code."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import gradscribe as gs

jax.config.update("jax_enable_x64", True)

CLOSE = {"rtol": 1e-9, "atol": 1e-10}
OURS, THEIRS = gs.lax.linalg, jax.lax.linalg


def real(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def complex_(seed, *shape):
    return real(seed, *shape) + 1j * real(seed + 100, *shape)


def near_diagonal(x):
    """Far from symmetric, but with eigenvalues that are apart, and positive."""
    return x + np.diag(8.0 + 4.0 * np.arange(x.shape[-1]))


def agree(ours, theirs):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, **CLOSE)


def like(x, seed):
    return (complex_ if np.iscomplexobj(x) else real)(seed, *np.shape(x))


def weights_of(y, seed=50):
    return [like(v, seed) for v in jax.tree.leaves(y)]


def compare(name, args, words, invariant=lambda np, y: y, compiled=False):
    """invariant: what of the result does not depend on the signs that a library chooses."""
    def ours(*a):
        return invariant(np, getattr(OURS, name)(*a, **words))

    def theirs(*a):
        return invariant(jnp, getattr(THEIRS, name)(*a, **words))
    y = theirs(*args)
    agree(ours(*args), y)
    weights = weights_of(y)

    def loss(f, np):
        def total(*a):
            y = f(*a)
            parts = y if isinstance(y, tuple) else (y,)
            return sum(np.sum(np.real(w * v)) for w, v in zip(weights, parts))
        return total
    every = tuple(range(len(args)))
    g = gs.grad(loss(ours, np), every)
    wanted = jax.grad(loss(theirs, jnp), every)(*args)
    agree(g(*args), wanted)
    if compiled:
        agree(gs.jit(g)(*args), wanted)
    dots = tuple(like(a, 60 + k) for k, a in enumerate(args))
    agree(gs.jvp(ours, args, dots)[1], jax.jvp(theirs, args, dots)[1])
    if args[0].ndim > 2:
        return
    batches = tuple(np.stack([a, a + 0.1 * d]) for a, d in zip(args, dots))
    agree(gs.vmap(ours)(*batches), jax.vmap(theirs)(*batches))


MATRICES = {"one": near_diagonal(real(0, 3, 3)), "1x1": near_diagonal(real(1, 1, 1)),
            "stack": near_diagonal(real(2, 2, 3, 3)), "complex": near_diagonal(complex_(3, 3, 3))}


@pytest.mark.parametrize("name", MATRICES)
def test_cholesky(name):
    compare("cholesky", (MATRICES[name],), {}, compiled=name == "stack")


@pytest.mark.parametrize("words", [{}, {"lower": False}])
@pytest.mark.parametrize("name", MATRICES)
def test_eigh(name, words):
    def invariant(np, result):
        v, w = result
        return w, np.abs(v) ** 2
    compare("eigh", (MATRICES[name],), words, invariant, compiled=name == "complex" and not words)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", MATRICES)
def test_values_of_one_triangle(name, lower):
    """Of the derivative JAX says nothing there: it is that of a matrix whose other triangle changes too."""
    a = MATRICES[name]
    v, w = OURS.eigh(a, lower=lower, symmetrize_input=False)
    np.testing.assert_allclose(w, THEIRS.eigh(a, lower=lower, symmetrize_input=False)[1], **CLOSE)
    meant = v * w[..., None, :] @ np.conj(np.swapaxes(v, -1, -2))
    triangle = np.tril if lower else np.triu
    np.testing.assert_allclose(triangle(meant, -1 if lower else 1), triangle(a, -1 if lower else 1), **CLOSE)
    agree(OURS.cholesky(a, symmetrize_input=False), THEIRS.cholesky(a, symmetrize_input=False))
    da = gs.grad(lambda a: np.sum(OURS.eigh(a, lower=lower, symmetrize_input=False)[1] ** 2))(a)
    assert np.array_equal(da, triangle(da)) and np.all(da[..., np.arange(a.shape[-1]), np.arange(a.shape[-1])] != 0)


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 2), (1, 1)])
def test_qr(shape):
    def invariant(np, result):
        q, r = result
        return np.abs(q), np.abs(r)
    compare("qr", (real(4, *shape),), {"full_matrices": False}, invariant)
    agree(jax.tree.map(np.abs, OURS.qr(real(4, *shape))), jax.tree.map(np.abs, THEIRS.qr(real(4, *shape))))


@pytest.mark.parametrize("shape", [(4, 3), (2, 2, 3)])
def test_svd(shape):
    def invariant(np, result):
        u, s, vt = result
        return np.abs(u), s, np.abs(vt)
    compare("svd", (real(5, *shape),), {"full_matrices": False}, invariant)
    compare("svd", (real(5, *shape),), {"compute_uv": False})


SYSTEMS = [((3, 3), (3, 2), True), ((3, 3), (2, 3), False), ((3, 3), (3,), True), ((3, 3), (3,), False),
           ((2, 3, 3), (2, 3, 4), True), ((2, 3, 3), (2, 3), False), ((1, 1), (1, 1), True)]


@pytest.mark.parametrize("make", [real, complex_])
@pytest.mark.parametrize("a, b, left_side", SYSTEMS)
@pytest.mark.parametrize("words", [{}, {"lower": True, "transpose_a": True}, {"lower": True, "unit_diagonal": True},
                                   {"transpose_a": True, "conjugate_a": True}, {"lower": True, "conjugate_a": True}])
def test_triangular_solve(a, b, left_side, words, make):
    compare("triangular_solve", (near_diagonal(make(6, *a)), make(7, *b)), {"left_side": left_side, **words},
            compiled=make is real and a == (3, 3) and "unit_diagonal" in words and not left_side)


@pytest.mark.parametrize("x", [real(1, 4, 4), real(2, 2, 3, 4, 4), complex_(3, 4, 4)], ids=["one", "stack", "complex"])
def test_lu(x):
    agree(OURS.lu(x), THEIRS.lu(x))
    agree(gs.jit(lambda x: OURS.lu(x))(x), THEIRS.lu(x))
    pivots = OURS.lu(x)[1]
    agree(OURS.lu_pivots_to_permutation(pivots, 4), THEIRS.lu_pivots_to_permutation(pivots, 4))
    if x.dtype == np.float64:
        def loss(x):
            return np.sum(OURS.lu(x)[0] ** 3)
        agree(gs.grad(loss)(x), jax.grad(lambda x: jnp.sum(THEIRS.lu(x)[0] ** 3))(x))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 2)])
def test_lu_of_other_shapes(shape):
    agree(OURS.lu(real(4, *shape)), THEIRS.lu(real(4, *shape)))
    if len(shape) == 2:
        with pytest.raises(gs.ShapeError, match="must be equal"):
            gs.grad(lambda x: np.sum(OURS.lu(x)[0]))(real(4, *shape))


def differentiated(f, *args):
    """f's derivatives beside differences, and compiled beside not compiled."""
    gs.testing.check_grads(f, args, order=1)
    agree(gs.jit(f)(*args), f(*args))


def test_householder_product():
    (reflections, taus), _ = scipy.linalg.qr(real(5, 5, 3), mode="raw")
    agree(OURS.householder_product(reflections, taus), THEIRS.householder_product(reflections, taus))
    stack = np.stack([reflections, reflections / 2]), np.stack([taus, taus / 3])
    agree(OURS.householder_product(*stack), THEIRS.householder_product(*stack))
    differentiated(lambda a, t: OURS.householder_product(a, t), reflections, taus)


def test_cholesky_update():
    r, w = np.linalg.cholesky(real(6, 4, 4) @ real(6, 4, 4).T + np.eye(4)).T.copy(), real(7, 4)
    agree(OURS.cholesky_update(r, w), THEIRS.cholesky_update(r, w))
    differentiated(lambda r, w: OURS.cholesky_update(r, w), r, w)


def test_symmetric_product():
    a, c = real(8, 2, 4, 3), real(9, 2, 4, 4)
    c = c + np.swapaxes(c, -1, -2)
    agree(OURS.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True),
          THEIRS.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True))
    differentiated(lambda a, c: OURS.symmetric_product(a, c, alpha=2.0, beta=0.5), a, c)


@pytest.mark.parametrize("shape", [(1,), (2,), (6,), (2, 3, 5)])
def test_tridiagonal_solve(shape):
    args = [real(seed, *shape) for seed in (10, 11, 12)] + [real(13, *shape, 2)]
    agree(OURS.tridiagonal_solve(*args), THEIRS.tridiagonal_solve(*args))
    agree(gs.jit(lambda *a: OURS.tridiagonal_solve(*a))(*args), THEIRS.tridiagonal_solve(*args))
    ours = gs.grad(lambda *a: np.sum(OURS.tridiagonal_solve(*a) ** 2), (1, 3))(*args)
    agree(ours, jax.grad(lambda *a: jnp.sum(THEIRS.tridiagonal_solve(*a) ** 2), (1, 3))(*args))


@pytest.mark.parametrize("x", [real(14, 4, 4), complex_(15, 3, 3), real(16, 2, 3, 3)], ids=["real", "complex", "stack"])
def test_eig(x):
    w, left, right = OURS.eig(x)
    agree(w, THEIRS.eig(x)[0])
    assert all(v.dtype == np.complex128 for v in (w, left, right))
    np.testing.assert_allclose(np.conj(np.swapaxes(left, -1, -2)) @ x,
                               w[..., None] * np.conj(np.swapaxes(left, -1, -2)), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(left * np.conj(left), axis=-2)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(x @ right, right * w[..., None, :], atol=1e-12)
    assert len(OURS.eig(x, compute_left_eigenvectors=False)) == len(THEIRS.eig(x, compute_left_eigenvectors=False)) == 2


def test_subsets():
    x = real(17, 4, 4)
    v, w = OURS.eigh(x, subset_by_index=(1, 3))
    agree((v, w), [part[..., 1:3] for part in OURS.eigh(x)])
    u, s, vt = OURS.svd(x, full_matrices=False, subset_by_index=(0, 2))
    np.testing.assert_allclose((u * s) @ vt, sum(s[k] * np.outer(u[:, k], vt[k]) for k in range(2)), atol=1e-12)
    agree(s, OURS.svd(x, compute_uv=False)[:2])
    agree(OURS.svd(x, compute_uv=False, subset_by_index=(1, 3)), OURS.svd(x, compute_uv=False)[1:3])
    with pytest.raises(ValueError, match="full_matrices=False"):
        OURS.svd(x, subset_by_index=(0, 2))
    with pytest.raises(ValueError, match="pivoting"):
        OURS.qr(x, pivoting=True)
