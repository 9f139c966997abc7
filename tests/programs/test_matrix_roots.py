# SPDX-License-Identifier: Apache-2.0
"""Square roots of matrices and Sylvester's equation: emitted and compiled derivatives against differences."""
import numpy as np
import pytest
import scipy.linalg

import gradscribe as gs

RNG = np.random.default_rng(11)
H = RNG.normal(size=(3, 3))
W = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
MATRICES = {
    "positive definite: a real root": H @ H.T + np.eye(3),
    "a negative eigenvalue: a complex root": np.diag([-1.0, 2.0, 3.0]) + 0.1 * H,
    "a pair of eigenvalues: a real root": np.array([[1.0, 2.0, 0.1], [-2.0, 1.5, 0.0], [0.2, 0.1, 0.7]]),
    "one row": np.array([[2.5]]),
}


def of_root(a):
    y = scipy.linalg.sqrtm(a)
    return np.sum(np.real(W[:len(a), :len(a)] * y)) + np.sum(np.abs(y @ y @ y) ** 2)


def central(f, a, step=1e-6):
    out = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        d = np.zeros_like(a)
        d[place] = step
        out[place] = (f(a + d) - f(a - d)) / (2 * step)
    return out


@pytest.mark.parametrize("case", MATRICES)
def test_gradients_of_square_roots(case):
    a, wanted = MATRICES[case], central(of_root, MATRICES[case])
    assert (scipy.linalg.sqrtm(a).dtype.kind == "c") == case.endswith("a complex root")
    for made in (gs.grad(of_root), gs.jit(gs.grad(of_root))):
        found = made(a)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gs.jit(of_root)(a), of_root(a), rtol=1e-12)


@pytest.mark.parametrize("case", MATRICES)
def test_tangents_and_second_derivatives(case):
    a = MATRICES[case]
    v, step = RNG.normal(size=a.shape), 1e-6
    y, y_dot = gs.jvp(scipy.linalg.sqrtm, (a,), (v,))
    np.testing.assert_array_equal(y, scipy.linalg.sqrtm(a))
    wanted = (scipy.linalg.sqrtm(a + step * v) - scipy.linalg.sqrtm(a - step * v)) / (2 * step)
    np.testing.assert_allclose(y_dot, wanted, rtol=1e-6, atol=1e-8)
    slope = gs.grad(of_root)
    wanted = (slope(a + step * v) - slope(a - step * v)) / (2 * step)
    np.testing.assert_allclose(gs.hvp(of_root, (a,), (v,)), wanted, rtol=1e-5, atol=1e-5)


def test_a_complex_matrix_is_holomorphic():
    a = H + 2 * np.eye(3) + 0.3j * H.T

    def entry(a):
        return scipy.linalg.sqrtm(a)[0, 1]
    found, step = gs.grad(entry, holomorphic=True)(a), 1e-6
    for place in np.ndindex(3, 3):
        d = np.zeros((3, 3), complex)
        d[place] = step
        assert abs((entry(a + d) - entry(a - d)) / (2 * step) - found[place]) < 1e-8


def test_the_result_counts_as_complex():
    """Values decide whether it is real; a sum that is to be real says so."""
    def whole(a):
        return np.sum(scipy.linalg.sqrtm(a))

    def real(a):
        return np.sum(np.real(scipy.linalg.sqrtm(a)))
    a = H @ H.T + np.eye(3)
    with pytest.raises(gs.TransformError, match=r"whole returns a complex128(.|\n)*take np.real or np.abs"):
        gs.grad(whole)(a)
    np.testing.assert_allclose(gs.grad(real)(a), central(real, a), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(dtype):
    a = (H @ H.T + np.eye(3)).astype(dtype)
    wanted = gs.grad(of_root)(a.astype(np.result_type(dtype, float)))
    for made in (gs.grad(of_root), gs.jit(gs.grad(of_root))):
        np.testing.assert_allclose(made(a), wanted, rtol=2e-3)


def of_sylvester(a, b, q):
    x = scipy.linalg.solve_sylvester(a, b, q)
    return np.sum(np.sin(x) * x)


@pytest.mark.parametrize("lead", [(), (2,)])
def test_sylvester(lead):
    """Of one matrix and of a stack; two matrices of two rows are no matrix of two rows of two."""
    a, b, q = (RNG.normal(size=(*lead, 2, 2)) + k * np.eye(2) for k in (3, 2, 0))
    compiled = gs.jit(gs.grad(of_sylvester, argnums=(0, 1, 2)))(a, b, q)
    for k, found in enumerate(gs.grad(of_sylvester, argnums=(0, 1, 2))(a, b, q)):
        given = [a, b, q]
        wanted = central(lambda v, given=given, k=k: of_sylvester(*given[:k], v, *given[k + 1:]), given[k])
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(compiled[k], wanted, rtol=1e-6, atol=1e-8)
