# SPDX-License-Identifier: Apache-2.0
"""gs.lax.linalg: functions of jax.lax.linalg, with their signatures and order of results, in plain NumPy.

np.linalg.cholesky and np.linalg.eigh read one triangle, and only its entries get a derivative.  Here, as in JAX, the
Hermitian part of the matrix is taken first, so that both triangles share the derivative; symmetrize_input=False skips
this.
"""
from typing import Any

import numpy as np
import scipy.linalg

from gradscribe.jax_names import missing

__all__ = ["cholesky", "cholesky_update", "eig", "eigh", "householder_product", "lu", "lu_pivots_to_permutation", "qr",
           "svd", "symmetric_product", "triangular_solve", "tridiagonal_solve"]


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
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors, in columns, and eigenvalues of Hermitian matrices, always in ascending order.

    lower: the triangle to read if the input is not symmetrized.  subset_by_index: (start, stop) of those to return.
    sort_eigenvalues and implementation have no effect.

    >>> eigh(np.array([[2.0, 2.0], [0.0, 2.0]]))[1]
    array([1., 3.])
    """
    if symmetrize_input:
        w, v = np.linalg.eigh(_symmetrized(x))
    elif lower:
        w, v = np.linalg.eigh(x)
    else:
        w, v = np.linalg.eigh(np.conj(_transposed(x)))
    if subset_by_index is not None:
        first, behind = subset_by_index
        return v[..., first:behind], w[..., first:behind]
    return v, w


def qr(x: np.ndarray, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """An orthogonal and an upper triangular factor.  The derivative is that of full_matrices=False.

    Raises ValueError for pivoting=True; use scipy.linalg.qr for that.

    >>> [part.shape for part in qr(np.eye(3, 2), full_matrices=False)]
    [(3, 2), (2, 2)]
    """
    if pivoting:
        raise ValueError("qr with pivoting has no derivative rule; its values: scipy.linalg.qr(x, pivoting=True)")
    q, r = np.linalg.qr(x, "complete" if full_matrices else "reduced")
    return q, r


def svd(x: np.ndarray, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: Any = None
        ) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left singular vectors, singular values and conjugate-transposed right ones; without compute_uv only the values.

    subset_by_index: (start, stop) of those to return; ValueError with full_matrices.  algorithm has no effect.

    >>> svd(np.diag([1.0, 2.0]), compute_uv=False)
    array([2., 1.])
    """
    first, behind = (0, None) if subset_by_index is None else subset_by_index
    if not compute_uv:
        s = np.linalg.svd(x, compute_uv=False)
        return s if subset_by_index is None else s[..., first:behind]
    if subset_by_index is not None and full_matrices:
        raise ValueError("subset_by_index is for full_matrices=False")
    u, s, vt = np.linalg.svd(x, full_matrices=full_matrices)
    if subset_by_index is None:
        return u, s, vt
    return u[..., first:behind], s[..., first:behind], vt[..., first:behind, :]


def cholesky_update(r_matrix: np.ndarray, w_vector: np.ndarray) -> np.ndarray:
    """The upper triangular factor R' with R'.T R' = R.T R + w w.T, by a rotation for each row.

    P. Gill, G. Golub, W. Murray, M. Saunders, Methods for modifying matrix factorizations (1974), section 3.

    >>> cholesky_update(np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([4.0, 0.0]))
    array([[5., 0.],
           [0., 2.]])
    """
    r, w = np.array(r_matrix), np.array(w_vector)
    for k in range(w.shape[0]):
        length = np.sqrt(r[k, k] ** 2 + w[k] ** 2)
        c, s = r[k, k] / length, w[k] / length
        row = c * r[k] + s * w
        w = c * w - s * r[k]
        r[k] = row
    return np.triu(r)


def eig(x: np.ndarray, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
        use_magma: bool | None = None, implementation: Any = None, enable_eigvec_derivs: bool | None = None
        ) -> list[np.ndarray]:
    """The eigenvalues of matrices, then the left and right eigenvectors as requested, in columns of norm 1.

    All are complex.  A left eigenvector v satisfies v.conj().T @ x = w v.conj().T.

    >>> w, v = eig(np.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> w, abs(v).round(6).tolist()
    (array([0.+1.j, 0.-1.j]), [[0.707107, 0.707107], [0.707107, 0.707107]])
    """
    w, right = np.linalg.eig(x)
    w, right = w + 0j, right + 0j
    out = [w]
    if compute_left_eigenvectors:
        left = np.conj(_transposed(np.linalg.inv(right)))
        out.append(left / np.sqrt(np.sum(np.abs(left) ** 2, axis=-2, keepdims=True)))
    if compute_right_eigenvectors:
        out.append(right)
    return out


def householder_product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """The first columns of the product of Householder reflections 1 - tau v v^H, with the v below the diagonal of a.

    a is (..., m, n), taus (..., k) with k <= n <= m, as from LAPACK's QR; the result has the shape of a.

    >>> householder_product(np.array([[9.0], [1.0]]), np.array([1.0]))
    array([[ 0.],
           [-1.]])
    """
    m, n = a.shape[-2:]
    q = np.zeros_like(a) + np.eye(m, n, dtype=a.dtype)
    for k in range(taus.shape[-1] - 1, -1, -1):
        below = np.tril(a, -1)[..., :, k]
        v = (below + np.eye(m, dtype=a.dtype)[k])[..., np.newaxis]
        q = q - taus[..., k, np.newaxis, np.newaxis] * (v @ (np.conj(_transposed(v)) @ q))
    return q


def lu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lu, pivots, permutation) of matrices (..., m, n): x[permutation] = L U, with ones on the diagonal of L.

    lu holds L below the diagonal, and U on and above it; row k was swapped with row pivots[k], int32 of shape
    (..., min(m, n)).  Only square matrices are differentiable.

    >>> both, pivots, permutation = lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> both, pivots, permutation
    (array([[4.  , 4.  ],
           [0.25, 1.  ]]), array([1, 1], dtype=int32), array([1, 0], dtype=int32))
    """
    m, n = x.shape[-2:]
    if x.ndim > 2:
        found = [_lu(each) for each in x.reshape((-1, m, n))]
        permutation = np.array([order for _, order in found], np.int64).reshape((*x.shape[:-2], m))
        both = np.array([parts for parts, _ in found], x.dtype).reshape(x.shape)
    else:
        both, permutation = _lu(x)
    return both, _swaps(permutation, min(m, n)), permutation.astype(np.int32)


def _lu(x):
    p, lower, upper = scipy.linalg.lu(x)
    m, n = x.shape
    lower = np.tril(lower, -1)
    if m > n:
        upper = np.concatenate((upper, np.zeros((m - n, n), x.dtype)))
    elif m < n:
        lower = np.concatenate((lower, np.zeros((m, n - m), x.dtype)), axis=1)
    return lower + upper, np.argmax(p, axis=0)


def _swaps(permutation, count):
    """The pivots that give a permutation."""
    rows = permutation.reshape((-1, permutation.shape[-1]))
    swaps = np.zeros((rows.shape[0], count), np.int32)
    now = np.zeros(rows.shape, np.int64) + np.arange(rows.shape[1])
    for b in range(rows.shape[0]):
        for k in range(count):
            at = np.argmax(now[b] == rows[b, k])
            now[b, at] = now[b, k]
            now[b, k] = rows[b, k]
            swaps[b, k] = at
    return swaps.reshape((*permutation.shape[:-1], count))


def lu_pivots_to_permutation(pivots: np.ndarray, permutation_size: int) -> np.ndarray:
    """The permutation, of dtype int32, that results from swapping each row k with row pivots[..., k] in turn.

    >>> lu_pivots_to_permutation(np.array([1, 2]), 3)
    array([1, 2, 0], dtype=int32)
    """
    swaps = pivots.reshape((-1, pivots.shape[-1]))
    rows = np.zeros((swaps.shape[0], permutation_size), np.int32) + np.arange(permutation_size, dtype=np.int32)
    for b in range(swaps.shape[0]):
        for k in range(swaps.shape[1]):
            at, held = swaps[b, k], rows[b, k]
            rows[b, k] = rows[b, at]
            rows[b, at] = held
    return rows.reshape((*pivots.shape[:-1], permutation_size))


def symmetric_product(a_matrix: np.ndarray, c_matrix: np.ndarray, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> np.ndarray:
    """alpha A A.T + beta C, for a symmetric C; symmetrize_output copies the lower triangle to the upper one.

    >>> symmetric_product(np.array([[1.0, 2.0]]), np.array([[10.0]]), beta=0.5)
    array([[10.]])
    """
    out = alpha * (a_matrix @ _transposed(a_matrix)) + beta * c_matrix
    return np.tril(out) + _transposed(np.tril(out, -1)) if symmetrize_output else out


def tridiagonal_solve(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of dl[k] x[k - 1] + d[k] x[k] + du[k] x[k + 1] = b[k], with dl[0] and du[-1] taken as 0.

    The diagonals are (..., n), b is (..., n, m).  Gaussian elimination with partial pivoting:
    E. Anderson et al., LAPACK users' guide (1999), gtsv.

    >>> tridiagonal_solve(np.array([0.0, 1.0]), np.array([2.0, 3.0]), np.array([1.0, 0.0]), np.array([[3.0], [4.0]]))
    array([[1.],
           [1.]])
    """
    if d.ndim > 1:
        n = d.shape[-1]
        rows = [_tridiagonal(*parts) for parts in zip(dl.reshape((-1, n)), d.reshape((-1, n)), du.reshape((-1, n)),
                                                      b.reshape((-1, *b.shape[-2:])))]
        return np.stack(rows).reshape(b.shape)
    return _tridiagonal(dl, d, du, b)


def _tridiagonal(below, diagonal, above, b):
    n = diagonal.shape[0]
    first, second, third, x = np.array(diagonal), np.array(above), np.zeros_like(diagonal), np.array(b)
    if n:
        second[n - 1] = 0.0
    for k in range(n - 1):
        if np.abs(first[k]) >= np.abs(below[k + 1]):
            factor = below[k + 1] / first[k]
            first[k + 1] = first[k + 1] - factor * second[k]
            x[k + 1] = x[k + 1] - factor * x[k]
        else:
            factor = first[k] / below[k + 1]
            held, right = first[k + 1], second[k + 1]
            first[k], third[k] = below[k + 1], right
            first[k + 1], second[k + 1] = second[k] - factor * held, -factor * right
            second[k] = held
            row = x[k] - factor * x[k + 1]
            x[k] = x[k + 1]
            x[k + 1] = row
    for k in range(n - 1, -1, -1):
        if k + 1 < n:
            x[k] = x[k] - second[k] * x[k + 1]
        if k + 2 < n:
            x[k] = x[k] - third[k] * x[k + 2]
        x[k] = x[k] / first[k]
    return x


def triangular_solve(a: np.ndarray, b: np.ndarray, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False) -> np.ndarray:
    """x with op(a) @ x = b if left_side, else with x @ op(a) = b; only one triangle of a is read.

    op transposes and conjugates as the flags say.  b may have one axis less than a: it is then one column, or row.

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


def __getattr__(name):
    raise missing(__name__, name)
