# SPDX-License-Identifier: Apache-2.0
"""Functions of scipy.linalg and derivatives of determinants, for compiled code: plain loops, as in compiled.py."""
import math

import numpy as np

from gradscribe.runtime.compiled import put, whole


@whole
def triangular_solution(a, b, lower, unit):
    """The solution of a triangular system with several right-hand sides."""
    n, columns = b.shape
    if a.shape[0] != n or a.shape[1] != n:
        raise ValueError("incompatible dimensions")
    out = np.empty((n, columns), b.dtype)
    for step in range(n):
        i = step if lower else n - 1 - step
        if not unit and a[i, i] == 0:
            raise ValueError("singular matrix")
        for j in range(columns):
            total = b[i, j]
            for k in range(i) if lower else range(i + 1, n):
                total -= a[i, k] * out[k, j]
            out[i, j] = total if unit else total / a[i, i]
    return out


@whole
def banded_solution(below, above, ab, b):
    """The solution of a banded system with several right-hand sides, by elimination with partial pivoting."""
    n = len(b)
    if ab.shape[1] != n or ab.shape[0] != below + above + 1:
        raise ValueError("incompatible dimensions")
    rows, out = np.zeros((n, 2 * below + above + 1), b.dtype), b.copy()     # entry j of row i at j - i + below
    for i in range(n):
        for j in range(max(0, i - below), min(n, i + above + 1)):
            rows[i, j - i + below] = ab[above + i - j, j]
    for k in range(n):
        banded_pivot(rows, out, below, above, k)
        for i in range(k + 1, min(n, k + below + 1)):
            factor = rows[i, k - i + below] / rows[k, below]
            for j in range(k, min(n, k + below + above + 1)):
                rows[i, j - i + below] -= factor * rows[k, j - k + below]
            for j in range(out.shape[1]):
                out[i, j] -= factor * out[k, j]
    for i in range(n - 1, -1, -1):
        for j in range(out.shape[1]):
            total = out[i, j]
            for k in range(i + 1, min(n, i + below + above + 1)):
                total -= rows[i, k - i + below] * out[k, j]
            out[i, j] = total / rows[i, below]
    return out


@whole
def banded_pivot(rows, out, below, above, k):
    """Exchange row k with the row that has the largest entry in column k; above it, `below` more diagonals fill in."""
    n, best = len(rows), k
    for i in range(k + 1, min(n, k + below + 1)):
        if abs(rows[i, k - i + below]) > abs(rows[best, k - best + below]):
            best = i
    if rows[best, k - best + below] == 0:
        raise ValueError("singular matrix")
    if best != k:
        for j in range(k, min(n, k + below + above + 1)):
            p, q = j - k + below, j - best + below
            rows[k, p], rows[best, q] = rows[best, q], rows[k, p]
        for j in range(out.shape[1]):
            out[k, j], out[best, j] = out[best, j], out[k, j]


@whole
def lu_factors(a):
    """p, l, u of each square matrix of a stack, with partial pivoting."""
    count, n = a.shape[0], a.shape[1]
    p, low, up = np.zeros((count, n, n), a.real.dtype), np.zeros_like(a), a.copy()
    order = np.empty(n, np.int64)
    for s in range(count):
        for i in range(n):
            order[i] = i
        for k in range(n):
            best = k
            for i in range(k + 1, n):
                if abs(up[s, i, k].real) + abs(up[s, i, k].imag) > abs(up[s, best, k].real) + abs(up[s, best, k].imag):
                    best = i
            if best != k:
                order[k], order[best] = order[best], order[k]
                for j in range(n):
                    up[s, k, j], up[s, best, j] = up[s, best, j], up[s, k, j]
                    low[s, k, j], low[s, best, j] = low[s, best, j], low[s, k, j]
            low[s, k, k] = 1
            for i in range(k + 1, n):
                if up[s, k, k] != 0:
                    low[s, i, k] = up[s, i, k] / up[s, k, k]
                up[s, i, k] = 0
                for j in range(k + 1, n):
                    up[s, i, j] -= low[s, i, k] * up[s, k, j]
        for i in range(n):
            p[s, order[i], i] = 1
    return p, low, up


@whole
def matrix_exponential(a):
    """The exponential of each matrix of a stack, by scaling, a Padé approximant of degree 13, and squaring.

    N. J. Higham, The scaling and squaring method for the matrix exponential revisited (2005).
    """
    out, n = np.empty_like(a), a.shape[1]
    c = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
         10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)
    one = np.eye(n).astype(a.dtype)
    for s in range(a.shape[0]):
        size = 0.0
        for j in range(n):
            total = 0.0
            for i in range(n):
                total += abs(a[s, i, j])
            size = max(size, total)
        halvings = 0
        if 5.37 < size < np.inf:
            halvings = int(math.ceil(math.log2(size / 5.37)))
        x = np.ascontiguousarray((a[s] / 2.0 ** halvings).astype(a.dtype))
        x2 = np.dot(x, x)
        x4 = np.dot(x2, x2)
        x6 = np.dot(x2, x4)
        odd = np.ascontiguousarray((c[13] * x6 + c[11] * x4 + c[9] * x2).astype(a.dtype))
        odd = np.dot(x6, odd) + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * one
        odd = np.dot(x, np.ascontiguousarray(odd.astype(a.dtype)))
        even = np.ascontiguousarray((c[12] * x6 + c[10] * x4 + c[8] * x2).astype(a.dtype))
        even = (np.dot(x6, even) + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * one).astype(a.dtype)
        y = np.ascontiguousarray(np.linalg.solve(even - odd, even + odd))
        for _ in range(halvings):
            y = np.dot(y, y)
        for i in range(n):
            for j in range(n):
                out[s, i, j] = y[i, j]
    return out


@whole
def cofactors(a):
    """As in matrices.py, matrix by matrix."""
    out = np.empty_like(a)
    for k in range(a.shape[0]):
        det = np.linalg.det(a[k])
        if det != 0:
            put(out, k, det * np.linalg.inv(a[k]).T)
            continue
        u, s, vt = np.linalg.svd(a[k])
        put(out, k, (np.conj(u) * other_values(s)) @ np.conj(vt))
        scaled_in_place(out, k, np.linalg.det(u) * np.linalg.det(vt))
    return out


def scaled_in_place(out, k, number):
    """Multiply a matrix of a stack by a number, in place and in the matrix's dtype."""
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[k, i, j] *= number


def other_values(s):
    """For each value, the product of all other values, in the dtype of s."""
    out, product = np.ones_like(s), s.dtype.type(1)
    for i in range(len(s)):
        out[i] = product
        product *= s[i]
    product = s.dtype.type(1)
    for i in range(len(s) - 1, -1, -1):
        out[i] *= product
        product *= s[i]
    return out


@whole
def cofactors_along(a, b):
    """As in matrices.py, matrix by matrix."""
    out = np.zeros_like(b) if len(a) <= len(b) else np.zeros_like(a)
    for k in range(len(out) if out.size else 0):
        u, s, vt = np.linalg.svd(a[k if len(a) > 1 else 0])
        inner = np.conj(u.T) @ b[k if len(b) > 1 else 0] @ np.conj(vt.T)
        change = np.zeros_like(inner)
        for i in range(len(s)):
            without = s.copy()
            without[i] = 1
            pairs = other_values(without)
            pairs[i] = 0
            for j in range(len(s)):
                change[j, i] -= pairs[j] * inner[i, j]
                change[i, i] += pairs[j] * inner[j, j]
        put(out, k, np.ascontiguousarray(np.conj(u)) @ change @ np.conj(vt))
        scaled_in_place(out, k, np.linalg.det(u) * np.linalg.det(vt))
    return out
