"""Products of slices, which BLAS takes as they lie: the same numbers as NumPy's, for each kind, order and length."""
import numpy as np
import pytest

import gradscribe as gs


def of_matrix_and_vector(A, x, k):
    total = np.zeros(A.shape[0])
    for i in range(k):
        total = total + A[:, i + 1:] @ x[i + 1:] + A[:, :i] @ x[:i]
    return total


def of_vector_and_matrix(A, x, k):
    total = np.zeros(A.shape[1])
    for i in range(k):
        total = total + x[i:k] @ A[i:k, :] + np.concatenate([x[i:k] @ A[i:k, 1:], np.zeros(1)])
    return total


def of_matrices(A, B, k):
    total = np.zeros((A.shape[0], 2))
    for i in range(k):
        total = total + A[:, i:] @ B[i:, 1:3] + A[:, 1:] @ B[1:, :2]
    return total


def of_columns(A, k):
    """Rows that lie apart and a transposed slice."""
    total = np.zeros((A.shape[1] - 1, A.shape[1] - 1))
    for i in range(k):
        total = total + A[i:, 1:].T @ A[i:, :-1]
    return total


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("n, m", [(5, 4), (4, 4), (1, 4), (6, 3)])
def test_products_of_slices(n, m, dtype):
    rng = np.random.default_rng(n)
    A, B, x = rng.normal(size=(n, m)), rng.normal(size=(m, 4)), rng.normal(size=max(n, m))
    if np.dtype(dtype).kind == "c":
        A = A + 1j * rng.normal(size=A.shape)
    A, B, x = A.astype(dtype), B.astype(dtype), x.astype(dtype)
    cases = [(of_matrix_and_vector, (A, x[:m], m)), (of_vector_and_matrix, (A, x[:n], n)), (of_matrices, (A, B, m)),
             (of_columns, (A, n))]
    for f, args in cases:
        want = f(*args)
        np.testing.assert_allclose(gs.jit(f)(*args), want, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-6)


def test_no_slice_is_copied():
    A, x = np.ones((5, 4)), np.ones(4)
    compiled = gs.jit(of_matrix_and_vector)
    compiled(A, x, 4)
    assert compiled.lowered.count("np.dot(A[:, ") == 2, compiled.lowered


def written_between(A, x):
    """A product reads what the slice shows when it is taken, not when the slice was."""
    B = A * 1.0
    rows = B[:, 1:]
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] = B[i, j] * (i + 2.0 * j)
    y = rows @ x[1:]
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] = B[i, j] + 1.0
    z = rows @ x[1:]
    return y, z, B


def test_writes_between_a_slice_and_its_product():
    rng = np.random.default_rng(3)
    A, x = rng.normal(size=(3, 4)), rng.normal(size=4)
    for got, want in zip(gs.jit(written_between)(A, x), written_between(A, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def below(A, b):
    """Column by column, each by the slice below the diagonal."""
    x = b.copy()
    for i in range(A.shape[0] - 2, -1, -1):
        x[i] = x[i] - A[i, i + 1:] @ x[i + 1:]
    return np.sum(x * x)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_gradients_through_slices(n):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)) * 0.3, rng.normal(size=n)
    for got, want in zip(gs.jit(gs.grad(below, (0, 1)))(A, b), gs.grad(below, (0, 1))(A, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
