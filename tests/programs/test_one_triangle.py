# SPDX-License-Identifier: Apache-2.0
"""Functions that read one triangle of a matrix: entries of the other one have no derivative, in any mode."""
import numpy as np
import pytest
import scipy.linalg

import gradscribe as gs

RNG = np.random.default_rng(0)
NOT_SYMMETRIC = RNG.standard_normal((3, 3)) + np.diag([5.0, 10.0, 15.0])
STACK = RNG.standard_normal((2, 3, 3)) + np.diag([5.0, 10.0, 15.0])
ONE = NOT_SYMMETRIC[:1, :1]
W = np.array([1.0, 2.0, 3.0])


def of_eigh(a, **words):
    w, v = np.linalg.eigh(a, **words)
    n = a.shape[-1]
    return np.sum(W[:n] * w ** 2) + np.sum(W[:n, None] * v ** 2 * W[:n] ** 2)


LOWER = {
    "cholesky": lambda a: np.sum(np.linalg.cholesky(a) ** 3),
    "eigh": of_eigh,
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) ** 3),
    "pinv": lambda a: np.sum(100.0 * np.linalg.pinv(a, hermitian=True) ** 2),
    "svd": lambda a: np.sum(np.abs(np.linalg.svd(a, hermitian=True)[0]) ** 3),
    "singular values": lambda a: np.sum(np.linalg.svd(a, hermitian=True, compute_uv=False) ** 3),
}
UPPER = {
    "cholesky": lambda a: np.sum(np.linalg.cholesky(a, upper=True) ** 3),
    "eigh": lambda a: of_eigh(a, UPLO="U"),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a, "U") ** 3),
}
CASES = [pytest.param(f, triangle, id=f"{name}-{triangle.__name__}")
         for triangle, kind in ((np.tril, LOWER), (np.triu, UPPER)) for name, f in kind.items()]


def differences(f, x, eps=1e-6):
    out = np.empty_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = eps
        out[i] = (f(x + e) - f(x - e)) / (2 * eps)
    return out


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * np.max(np.abs(b), initial=1.0))


@pytest.mark.parametrize("a", [NOT_SYMMETRIC, STACK, ONE], ids=["one", "stack", "1x1"])
@pytest.mark.parametrize("f, triangle", CASES)
def test_first_derivatives(f, triangle, a):
    da = gs.grad(f)(a)
    close(da, differences(f, a))
    assert np.array_equal(da, triangle(da))
    v = RNG.standard_normal(a.shape)
    close(gs.jvp(f, (a,), (v,))[1], np.sum(da * v))
    other = triangle(v)
    assert gs.jvp(f, (a,), (v - other,))[1] == 0
    close(gs.vmap(gs.grad(f))(np.stack([a, a + 0.1])), np.stack([da, gs.grad(f)(a + 0.1)]))


@pytest.mark.parametrize("f, triangle", CASES)
def test_second_derivatives(f, triangle):
    v = RNG.standard_normal((3, 3))
    g = gs.grad(f)
    wanted = (g(NOT_SYMMETRIC + 1e-5 * v) - g(NOT_SYMMETRIC - 1e-5 * v)) / 2e-5
    close(gs.jvp(g, (NOT_SYMMETRIC,), (v,))[1], wanted)
    close(gs.grad(lambda a: np.sum(v * g(a)))(NOT_SYMMETRIC), wanted)


@pytest.mark.parametrize("f, triangle", [CASES[0], CASES[1], CASES[2], CASES[-1]])
def test_compiled(f, triangle):
    close(gs.jit(gs.grad(f))(STACK), gs.grad(f)(STACK))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("f, triangle", CASES)
def test_dtypes_and_no_rows(f, triangle, dtype):
    def real(a):
        return np.real(f(a))
    assert gs.grad(real)(NOT_SYMMETRIC.astype(dtype)).dtype == dtype
    if f not in (LOWER["svd"], LOWER["pinv"], LOWER["singular values"]):
        assert gs.grad(real)(np.zeros((0, 0), dtype)).shape == (0, 0)


@pytest.mark.parametrize("words", [{"assume_a": k, "lower": lower, "transposed": t} for k in ("sym", "her", "pos")
                                   for lower in (False, True) for t in (False, True)], ids=str)
def test_structured_systems_of_scipy(words):
    b = RNG.standard_normal(3)

    def f(a, b):
        return np.sum(W * scipy.linalg.solve(a, b, **words))
    value, (da, db) = gs.value_and_grad(f, (0, 1))(NOT_SYMMETRIC, b)
    close(value, f(NOT_SYMMETRIC, b))
    close(da, differences(lambda a: f(a, b), NOT_SYMMETRIC))
    close(db, differences(lambda b: f(NOT_SYMMETRIC, b), b))


@pytest.mark.parametrize("shape, of_b", [((3, 3), (3, 2)), ((3, 3), (3, 1)), ((3, 3), (3,)), ((2, 3, 3), (3,)),
                                         ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)), ((1, 3, 3), (2, 3, 2)),
                                         ((2, 3, 3), (4, 1, 3, 2)), ((1, 1), (1, 2)), ((0, 0), (0, 2))], ids=str)
def test_solve_of_a_matrix_whose_width_is_known(shape, of_b):
    """The adjoint of the matrix has the matrix's axes, not those of the solution."""
    a, b = RNG.standard_normal(shape) + 4 * np.eye(shape[-1]), RNG.standard_normal(of_b)

    def f(a, b):
        return np.sum(np.linalg.solve(a, b) ** 3)
    da, db = gs.grad(f, (0, 1))(a, b)
    close(da, differences(lambda a: f(a, b), a))
    close(db, differences(lambda b: f(a, b), b))


def test_solve_with_columns():
    def f(x, a):
        return np.sum(np.linalg.solve(a, np.column_stack([x[:3], x[1:]])) ** 2)
    x, a = RNG.standard_normal(4), RNG.standard_normal((3, 3)) + 4 * np.eye(3)
    dx, da = gs.grad(f, (0, 1))(x, a)
    close(dx, differences(lambda x: f(x, a), x))
    close(da, differences(lambda a: f(x, a), a))


@pytest.mark.parametrize("width", [2, 3])
def test_arms_that_make_arrays_of_different_lengths(width):
    def f(a, b, zs):
        n, m = b.shape
        total = np.zeros((n, m))
        for z in zs:
            if n == m:
                v = np.linalg.inv(z * a)
            else:
                v = np.linalg.solve(z * a, b)
            total += v
        return np.sum(W[:m] * total ** 2)
    a, b, zs = RNG.standard_normal((3, 3)) + 4 * np.eye(3), RNG.standard_normal((3, width)), np.array([1.0, 2.0])
    da, db = gs.grad(f, (0, 1))(a, b, zs)
    close(da, differences(lambda a: f(a, b, zs), a))
    close(db, differences(lambda b: f(a, b, zs), b))
