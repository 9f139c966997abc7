# SPDX-License-Identifier: Apache-2.0
"""The Schur form for compiled code, and its uses: Sylvester equations and square roots of matrices.

Sources: G. H. Golub and C. F. Van Loan, Matrix Computations, 7.5 and 7.6; R. H. Bartels and G. W. Stewart, Solution of
the matrix equation AX + XB = C (1972); A. Bjorck and S. Hammarling, A Schur method for the square root of a matrix
(1983).
"""
import math

import numpy as np

from gradscribe.runtime.compiled import whole

ULP, TINY = 2.220446049250313e-16, 2.2250738585072014e-308
EXCEPTIONAL, MOST = 10, 300                             # steps without convergence: before an exceptional shift; limit


@whole
def to_hessenberg_form(t, u):
    """Reduce t to Hessenberg form by reflections, which are accumulated in u."""
    n = len(t)
    v = np.empty(n, np.complex128)
    for k in range(n - 2):
        size = 0.0
        for i in range(k + 2, n):
            size += abs(t[i, k])
        if size == 0:
            continue
        size = 0.0
        for i in range(k + 1, n):
            v[i] = t[i, k]
            size = math.hypot(size, abs(v[i]))
        first = abs(v[k + 1])
        v[k + 1] += size if first == 0 else v[k + 1] / first * size
        half = size * (size + first)                    # half of the squared norm of v
        for j in range(k, n):
            total = 0j
            for i in range(k + 1, n):
                total += np.conj(v[i]) * t[i, j]
            total /= half
            for i in range(k + 1, n):
                t[i, j] -= v[i] * total
        for i in range(n):
            total, turned = 0j, 0j
            for j in range(k + 1, n):
                total += t[i, j] * v[j]
                turned += u[i, j] * v[j]
            total /= half
            turned /= half
            for j in range(k + 1, n):
                t[i, j] -= total * np.conj(v[j])
                u[i, j] -= turned * np.conj(v[j])
        for i in range(k + 2, n):
            t[i, k] = 0


def shift_of(a, b, c, d):
    """The eigenvalue of [[a, b], [c, d]] that is nearer to d: Wilkinson's shift."""
    half = (a - d) / 2
    root = np.sqrt(half * half + b * c)
    far = half + root if abs(half + root) >= abs(half - root) else half - root
    return d if far == 0 else d - b * c / far


@whole
def turned(t, u, low, high, shift):
    """One QR step on rows low to high."""
    n = len(t)
    x, y = t[low, low] - shift, t[low + 1, low]
    for k in range(low, high):
        size = math.hypot(abs(x), abs(y))
        if size > 0:
            c, s = x / size, y / size
            for j in range(max(k - 1, low), n):
                above, below = t[k, j], t[k + 1, j]
                t[k, j] = np.conj(c) * above + np.conj(s) * below
                t[k + 1, j] = c * below - s * above
            for i in range(min(k + 2, high) + 1):
                left, right = t[i, k], t[i, k + 1]
                t[i, k] = left * c + right * s
                t[i, k + 1] = right * np.conj(c) - left * np.conj(s)
            for i in range(n):
                left, right = u[i, k], u[i, k + 1]
                u[i, k] = left * c + right * s
                u[i, k + 1] = right * np.conj(c) - left * np.conj(s)
        if k + 1 < high:
            x, y = t[k + 1, k], t[k + 2, k]


@whole
def to_schur(t, u):
    """Reduce t to upper triangular form by rotations, which are accumulated in u: the original t is u t u^H."""
    n = len(t)
    for i in range(n):
        for j in range(n):
            u[i, j] = 1 if i == j else 0
    to_hessenberg_form(t, u)
    high, steps = n - 1, 0
    while high > 0:
        low = high
        while low > 0:
            if abs(t[low, low - 1]) <= max(ULP * (abs(t[low - 1, low - 1]) + abs(t[low, low])), TINY):
                t[low, low - 1] = 0
                break
            low -= 1
        if low == high:
            high, steps = high - 1, 0
            continue
        steps += 1
        if steps > MOST:
            raise np.linalg.LinAlgError("Schur form not found. Possibly ill-conditioned.")
        if steps % EXCEPTIONAL:
            shift = shift_of(t[high - 1, high - 1], t[high - 1, high], t[high, high - 1], t[high, high])
        else:
            shift = t[high, high] + abs(t[high, high - 1])
        turned(t, u, low, high, shift)
    for i in range(n):
        for j in range(i):
            t[i, j] = 0


@whole
def in_schur_form(a):
    """The Schur form (t, u) with a = u t u^H."""
    t, u = np.empty(a.shape, np.complex128), np.empty(a.shape, np.complex128)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            t[i, j] = a[i, j]
    to_schur(t, u)
    return t, u


@whole
def sylvester_solution(a, b, q):
    """x with a x + x b = q, for each matrix of a stack."""
    m, n = q.shape[1], q.shape[2]
    if a.shape[1] != m or a.shape[2] != m or b.shape[1] != n or b.shape[2] != n:
        raise ValueError("incompatible dimensions")
    out = np.empty((max(len(a), len(b), len(q)), m, n), np.complex128)
    for k in range(len(out) if m and n else 0):
        t, u = in_schur_form(a[k if len(a) > 1 else 0])
        s, v = in_schur_form(b[k if len(b) > 1 else 0])
        least = TINY                    # the smallest divisor, as in LAPACK's trsyl
        for i in range(m):
            for j in range(i, m):
                least = max(least, ULP * abs(t[i, j]))
        for i in range(n):
            for j in range(i, n):
                least = max(least, ULP * abs(s[i, j]))
        y = np.dot(np.ascontiguousarray(np.conj(u.T)), np.dot(q[k if len(q) > 1 else 0].astype(np.complex128), v))
        for j in range(n):
            for i in range(m - 1, -1, -1):
                total = y[i, j]
                for p in range(i + 1, m):
                    total -= t[i, p] * y[p, j]
                for p in range(j):
                    total -= y[i, p] * s[p, j]
                divisor = t[i, i] + s[j, j]
                y[i, j] = total / (divisor if abs(divisor) > least else complex(least, 0.0))
        x = np.dot(np.dot(u, y), np.ascontiguousarray(np.conj(v.T)))
        for i in range(m):
            for j in range(n):
                out[k, i, j] = x[i, j]
    return out


@whole
def square_roots(a):
    """x with x x = a, for each matrix of a stack; eigenvalues in the right half plane or on its boundary above 0."""
    out, n, real = np.empty(a.shape, np.complex128), a.shape[1], not np.iscomplexobj(a)
    for k in range(len(a) if n else 0):
        t, u = in_schur_form(a[k])
        size = 0.0
        for i in range(n):
            for j in range(i, n):
                size = math.hypot(size, abs(t[i, j]))
        r = np.zeros((n, n), np.complex128)
        for j in range(n):
            value = t[j, j]
            if real and abs(value.imag) <= 10 * n * ULP * size:     # a real eigenvalue, up to rounding
                value = complex(value.real, 0.0)
            r[j, j] = np.sqrt(value)
            for i in range(j - 1, -1, -1):
                total, divisor = t[i, j], r[i, i] + r[j, j]
                for p in range(i + 1, j):
                    total -= r[i, p] * r[p, j]
                r[i, j] = total / divisor if divisor != 0 else 0j if total == 0 else complex(np.inf, 0.0)
        x = np.dot(np.dot(u, r), np.ascontiguousarray(np.conj(u.T)))
        for i in range(n):
            for j in range(n):
                out[k, i, j] = x[i, j]
    return out
