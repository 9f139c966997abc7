# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues of stacks of matrices for compiled code; matrices with two rows in closed form."""
import numpy as np

from gradscribe.runtime.compiled import put, put_line, whole
from gradscribe.runtime.francis import scale_of


@whole
def eig(a):
    """Eigenvalues and eigenvectors of complex matrices; real ones are converted, since their values may be complex.

    Real matrices with real eigenvalues use LAPACK's routine for real matrices, whose order is NumPy's.
    """
    w, v = np.empty(a.shape[:2], a.dtype), np.empty_like(a)
    for k in range(a.shape[0]):
        complete, scale = True, scale_of(a, k)
        if not np.any(a[k].imag):
            try:
                values, vectors = np.linalg.eig(np.ascontiguousarray(a[k].real * scale).astype(a.real.dtype))
                put_line(w, k, values / scale)
                put(v, k, vectors)
                complete = False
            except Exception:           # Numba catches nothing narrower; the values are complex, and computed below
                pass
        if complete:
            pairs = np.linalg.eig((a[k] * scale).astype(a.dtype))
            put_line(w, k, pairs[0] / scale)
            put(v, k, pairs[1])
    return w, v


def eigenvalues_of_two(m):
    """The eigenvalues of a complex 2x2 matrix in LAPACK's order: the second is the one nearer to m[1, 1].

    Source: LAPACK's zgebal and zlahqr, which needs one step here, since Wilkinson's shift is exact.

    >>> eigenvalues_of_two(np.array([[2.0, 0.0], [1.0, 3.0]], complex))
    (np.complex128(3+0j), np.complex128(2+0j))
    """
    a, b, c, d = m[0, 0], m[0, 1], m[1, 0], m[1, 1]
    if c == 0:
        return a, d
    if b == 0:
        return d, a
    size = max(max(abs(a.real), abs(a.imag)), max(abs(d.real), abs(d.imag)))
    size = max(size, max(max(abs(b.real), abs(b.imag)), max(abs(c.real), abs(c.imag))))
    x, product = (a / size - d / size) / 2, (b / size) * (c / size)
    y = np.sqrt(x * x + product)
    if x.real * y.real + x.imag * y.imag < 0:
        y = -y
    if x + y == 0:
        return a, d
    t = size * (product / (x + y))
    return a + t, d - t


def finite(z):
    return z.real - z.real == 0 and z.imag - z.imag == 0


@whole
def eigenvalues(a):
    """The eigenvalues of complex matrices, without eigenvectors."""
    w = np.empty(a.shape[:2], a.dtype)
    for k in range(a.shape[0]):
        if a.shape[1] == 2 and finite(a[k, 0, 0] + a[k, 0, 1] + a[k, 1, 0] + a[k, 1, 1]):
            w[k, 0], w[k, 1] = eigenvalues_of_two(a[k])
        else:
            scale = scale_of(a, k)
            put_line(w, k, np.linalg.eigvals((a[k] * scale).astype(a.dtype)) / scale)
    return w


def vector_of_two(m, w):
    """The eigenvector of norm 1 whose largest entry is real and positive."""
    x, y = m[0, 1], w - m[0, 0]
    if abs(x) + abs(y) < abs(m[1, 0]) + abs(w - m[1, 1]):
        x, y = w - m[1, 1], m[1, 0]
    size = max(abs(x), abs(y))
    x, y = x / size, y / size
    largest = x if abs(x) >= abs(y) else y
    turn = np.conj(largest) / abs(largest) / np.sqrt(abs(x) ** 2 + abs(y) ** 2)
    return x * turn, y * turn


@whole
def complex_eig(a):
    """Eigenvalues, in the order of `eigenvalues`, and eigenvectors of complex matrices."""
    w, v = np.empty(a.shape[:2], a.dtype), np.empty_like(a)
    for k in range(a.shape[0]):
        if a.shape[1] == 2 and finite(a[k, 0, 0] + a[k, 0, 1] + a[k, 1, 0] + a[k, 1, 1]):
            w[k, 0], w[k, 1] = eigenvalues_of_two(a[k])
            if a[k, 0, 1] == 0 and a[k, 1, 0] == 0:
                v[k, 0, 0] = v[k, 1, 1] = 1.0
                v[k, 0, 1] = v[k, 1, 0] = 0.0
            else:
                v[k, 0, 0], v[k, 1, 0] = vector_of_two(a[k], w[k, 0])
                v[k, 0, 1], v[k, 1, 1] = vector_of_two(a[k], w[k, 1])
        else:
            scale = scale_of(a, k)
            pairs = np.linalg.eig((a[k] * scale).astype(a.dtype))
            put_line(w, k, pairs[0] / scale)
            put(v, k, pairs[1])
    return w, v
