# SPDX-License-Identifier: Apache-2.0
"""gs.lax.linalg: functions of jax.lax.linalg, with their signatures and order of results, in plain NumPy.

np.linalg.cholesky and np.linalg.eigh read one triangle, and only its entries get a derivative.  Here, as in JAX, the
Hermitian part of the matrix is taken before, unless symmetrize_input=False: then both triangles share the derivative.
"""
import numpy as np

__all__ = ["cholesky", "eigh", "qr", "svd", "triangular_solve"]


def _transposed(x):
    return np.swapaxes(x, -1, -2)


def _symmetrized(x):
    return (x + np.conj(_transposed(x))) / 2


def cholesky(x: np.ndarray, *, symmetrize_input: bool = True) -> np.ndarray:
    """The lower triangular factor of Hermitian positive definite matrices.

    >>> cholesky(np.array([[4.0, 3.0], [1.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    return np.linalg.cholesky(_symmetrized(x) if symmetrize_input else x)


def eigh(x: np.ndarray, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors, in columns, and eigenvalues of Hermitian matrices; these ascend whatever sort_eigenvalues says.

    lower: which triangle is read if the input is not symmetrized.

    >>> eigh(np.array([[2.0, 2.0], [0.0, 2.0]]))[1]
    array([1., 3.])
    """
    if symmetrize_input:
        w, v = np.linalg.eigh(_symmetrized(x))
    elif lower:
        w, v = np.linalg.eigh(x)
    else:
        w, v = np.linalg.eigh(np.conj(_transposed(x)))
    return v, w


def qr(x: np.ndarray, *, full_matrices: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """An orthogonal and an upper triangular factor.  The derivative is that of full_matrices=False.

    >>> [part.shape for part in qr(np.eye(3, 2), full_matrices=False)]
    [(3, 2), (2, 2)]
    """
    q, r = np.linalg.qr(x, "complete" if full_matrices else "reduced")
    return q, r


def svd(x: np.ndarray, *, full_matrices: bool = True, compute_uv: bool = True
        ) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular vectors, values and transposed vectors; without compute_uv the values.

    >>> svd(np.diag([1.0, 2.0]), compute_uv=False)
    array([2., 1.])
    """
    if not compute_uv:
        return np.linalg.svd(x, compute_uv=False)
    u, s, vt = np.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vt


def triangular_solve(a: np.ndarray, b: np.ndarray, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False) -> np.ndarray:
    """x with op(a) @ x = b if left_side, else with x @ op(a) = b; a is read as triangular, and op as the flags say.

    b may have an axis less than a: then it is one column, or row.

    >>> triangular_solve(np.array([[2.0, 9.0], [1.0, 4.0]]), np.array([2.0, 5.0]), left_side=True, lower=True)
    array([1., 1.])
    """
    m = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        m = np.tril(a, -1) if lower else np.triu(a, 1)
        m = m + np.eye(a.shape[-1], dtype=a.dtype)
    if conjugate_a:
        m = np.conj(m)
    if transpose_a == left_side:            # x @ m = b is m.T @ x.T = b.T
        m = _transposed(m)
    if b.ndim == a.ndim - 1:
        return np.linalg.solve(m, b[..., None])[..., 0]
    if left_side:
        return np.linalg.solve(m, b)
    return _transposed(np.linalg.solve(m, _transposed(b)))
