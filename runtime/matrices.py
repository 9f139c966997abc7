# SPDX-License-Identifier: Apache-2.0
"""The derivatives of the determinant for stacks of matrices, including singular ones, and solvers by factors."""
import numpy as np


def others(s):
    """For each value along the last axis, the product of all other values.

    >>> others(np.array([2.0, 3.0, 5.0]))
    array([15., 10.,  6.])
    """
    before, after = np.ones_like(s), np.ones_like(s)
    before[..., 1:] = np.cumprod(s[..., :-1], axis=-1)
    after[..., :-1] = np.cumprod(s[..., :0:-1], axis=-1)[..., ::-1]
    return before * after


def cofactors(a):
    """The derivative of np.linalg.det(a): the cofactor matrix, which for an invertible a is det(a) inv(a).T.

    a: (..., n, n).  For a singular matrix it is computed from the singular values: each entry is a sum of products of
    n - 1 of them (R. A. Horn and C. R. Johnson, Matrix Analysis, 0.8.2, for the adjugate, whose transpose this is).

    >>> cofactors(np.array([[1.0, 2.0], [2.0, 4.0]])).round(12)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    det = np.linalg.det(a)
    if np.all(det != 0):
        return det[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)
    u, s, vt = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vt)
    return sign[..., None, None] * (np.conj(u) * others(s)[..., None, :]) @ np.conj(vt)


def cofactors_along(a, b):
    """The derivative of cofactors(a) along b; as a linear map of b it is its own transpose.

    a, b: (..., n, n).  In the bases of the singular vectors, where a is diagonal, the determinant's second derivative
    consists of products of n - 2 singular values, without divisions.

    >>> cofactors_along(np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 4., -3.],
           [-2.,  1.]])
    """
    u, s, vt = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vt)
    inner = np.conj(np.swapaxes(u, -1, -2)) @ b @ np.conj(np.swapaxes(vt, -1, -2))
    diagonal, out = np.diagonal(inner, axis1=-2, axis2=-1), np.zeros_like(inner)
    for i in range(s.shape[-1]):
        without = s.copy()
        without[..., i] = 1
        pairs = others(without)
        pairs[..., i] = 0
        out[..., :, i] = -pairs * inner[..., i, :]
        out[..., i, i] = np.sum(pairs * diagonal, axis=-1)
    return sign[..., None, None] * (np.conj(u) @ out @ np.conj(vt))


def factors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangular factors of a matrix and the order of its rows, in compiled code; not used in plain Python.

    a: (n, n).
    """
    return np.empty_like(a), np.empty(len(a), np.int32)


def solved_by(a: np.ndarray, lu: np.ndarray, order: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.linalg.solve(a, b), from the factors of a."""
    return np.linalg.solve(a, b)


def solved_across(a: np.ndarray, lu: np.ndarray, order: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.linalg.solve with the transposed matrix, from the factors of a."""
    return np.linalg.solve(a.T, b)


def solved_by_triangle(a: np.ndarray, b: np.ndarray, lower: bool, across: bool) -> np.ndarray:
    """np.linalg.solve for a triangular matrix, lower or upper; across: for its transpose.

    >>> solved_by_triangle(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0]), True, False)
    array([1., 2.])
    """
    return np.linalg.solve(a.T if across else a, b)


def inverted_by(a: np.ndarray, lu: np.ndarray, order: np.ndarray) -> np.ndarray:
    """np.linalg.inv(a), from the factors of a."""
    return np.linalg.inv(a)


def determined_by(a: np.ndarray, lu: np.ndarray, order: np.ndarray) -> np.ndarray:
    """np.linalg.det(a), from the factors of a."""
    return np.linalg.det(a)


def log_determined_by(a: np.ndarray, lu: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.linalg.slogdet(a), from the factors of a."""
    return np.linalg.slogdet(a)
