# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues of real matrices for compiled code, by Francis's QR iteration as in LAPACK for small matrices.

The steps, their tests and the order of the values are those of LAPACK's dgeev without vectors (dgebal, dgehd2, dlahqr,
dlanv2), so that compiled code returns them in NumPy's order unless rounding decides it.  For few rows, a call of LAPACK
costs more.

Sources: J. G. F. Francis, The QR transformation (1961, 1962); G. H. Golub and C. F. Van Loan, Matrix Computations,
7.5; M. Ahues and F. Tisseur, A new deflation criterion for the QR algorithm (LAPACK working note 122, 1997).
"""
import math

import numpy as np

from gradscribe.runtime.compiled import whole

SMALL = 32                                                  # the most rows; LAPACK handles larger matrices
ULP, TINY = 2.220446049250313e-16, 2.2250738585072014e-308
EXCEPTIONAL = 10                                            # steps without convergence before an exceptional shift


def lapack_geev(kind, left, right, n, a, lda, real, imaginary, vl, ldvl, vr, ldvr):
    """LAPACK's routine as Numba binds it (codegen/foreign.py); it overwrites the matrix."""
    raise NotImplementedError("called by compiled code only")


def exchanged(h, i, j, rows, columns):
    """Exchange rows and columns i and j: columns in the first `rows` rows, rows from column `columns` on."""
    for k in range(rows):
        h[k, i], h[k, j] = h[k, j], h[k, i]
    for k in range(columns, len(h)):
        h[i, k], h[j, k] = h[j, k], h[i, k]


@whole
def isolated(h):
    """Move rows that isolate an eigenvalue to the end, and columns to the front; (first, last) row of the rest."""
    low, high = 0, len(h) - 1
    found = True
    while found:
        found = False
        for i in range(high, -1, -1):
            alone = True
            for j in range(high + 1):
                alone = alone and (i == j or h[i, j] == 0)
            if alone:
                if i != high:
                    exchanged(h, i, high, high + 1, 0)
                if high == 0:
                    return 0, 0
                high -= 1
                found = True
    found = True
    while found:
        found = False
        for j in range(low, high + 1):
            alone = True
            for i in range(low, high + 1):
                alone = alone and (i == j or h[i, j] == 0)
            if alone:
                if j != low:
                    exchanged(h, j, low, high + 1, low)
                low += 1
                found = True
    return low, high


@whole
def balanced(h, low, high):
    """Scale rows and columns by powers of two, so that their norms are similar."""
    again = True
    while again:
        again = False
        for i in range(low, high + 1):
            column, row = 0.0, 0.0
            for k in range(low, high + 1):
                column += h[k, i] * h[k, i]
                row += h[i, k] * h[i, k]
            column, row = math.sqrt(column), math.sqrt(row)
            if column == 0 or row == 0:
                continue
            g, f, size = row / 2, 1.0, column + row
            while column < g:
                f, column, row, g = f * 2, column * 2, row / 2, g / 2
            g = column / 2
            while g >= row:
                f, column, row, g = f / 2, column / 2, row * 2, g / 2
            if column + row < 0.95 * size:
                again = True
                for k in range(low, len(h)):
                    h[i, k] /= f
                for k in range(high + 1):
                    h[k, i] *= f


def reflector(x, y, z):
    """(beta, tau, y, z) with 1 - tau v v' reflecting the vector to (beta, 0, 0), for v = (1, y, z)."""
    beside = math.sqrt(y * y + z * z)
    if beside == 0:
        return x, 0.0, 0.0, 0.0
    beta = -math.copysign(math.sqrt(x * x + beside * beside), x)
    return beta, (beta - x) / beta, y / (x - beta), z / (x - beta)


@whole
def to_hessenberg(h, low, high, sums):
    """Reduce to Hessenberg form by reflections from both sides; `sums` is a work array."""
    n = len(h)
    for i in range(low, high - 1):
        beside = 0.0
        for k in range(i + 2, high + 1):
            beside += h[k, i] * h[k, i]
        if beside == 0:
            continue
        x = h[i + 1, i]
        beta = -math.copysign(math.sqrt(x * x + beside), x)
        tau = (beta - x) / beta
        for k in range(i + 2, high + 1):
            h[k, i] /= x - beta
        h[i + 1, i] = 1.0
        for r in range(high + 1):
            total = 0.0
            for k in range(i + 1, high + 1):
                total += h[r, k] * h[k, i]
            total *= tau
            for k in range(i + 1, high + 1):
                h[r, k] -= total * h[k, i]
        for c in range(i + 1, n):
            sums[c] = 0.0
        for k in range(i + 1, high + 1):
            v = h[k, i]
            for c in range(i + 1, n):
                sums[c] += v * h[k, c]
        for k in range(i + 1, high + 1):
            v = h[k, i] * tau
            for c in range(i + 1, n):
                h[k, c] -= v * sums[c]
        h[i + 1, i] = beta
        for k in range(i + 2, high + 1):
            h[k, i] = 0.0


def pair(a, b, c, d):
    """The eigenvalues of a block of two rows, as in dlanv2: real parts, then imaginary parts."""
    if c == 0:
        return a, d, 0.0, 0.0
    if b == 0:
        return d, a, 0.0, 0.0
    if a - d == 0 and (b > 0) != (c > 0):
        size = math.sqrt(abs(b)) * math.sqrt(abs(c))
        return a, d, size, -size
    p = (a - d) / 2
    most = max(abs(b), abs(c))
    least = min(abs(b), abs(c)) * math.copysign(1.0, b) * math.copysign(1.0, c)
    scale = max(abs(p), most)
    z = p / scale * p + most / scale * least
    if z >= 4 * ULP:
        z = p + math.copysign(math.sqrt(scale) * math.sqrt(z), p)
        return d + z, d - most / z * least, 0.0, 0.0
    sigma = b + c
    tau = math.hypot(sigma, a - d)
    cosine = math.sqrt((abs(sigma) / tau + 1) / 2)
    sine = -(p / (tau * cosine)) * math.copysign(1.0, sigma)
    aa, bb = a * cosine + b * sine, -a * sine + b * cosine
    cc, dd = c * cosine + d * sine, -c * sine + d * cosine
    a, b = aa * cosine + cc * sine, bb * cosine + dd * sine
    c, d = -aa * sine + cc * cosine, -bb * sine + dd * cosine
    middle = (a + d) / 2
    if b != 0 and c != 0:
        size = math.sqrt(abs(b)) * math.sqrt(abs(c))
        if (b > 0) == (c > 0):
            p = math.copysign(size, c)
            return middle + p, middle - p, 0.0, 0.0
        return middle, middle, size, -size
    return middle, middle, 0.0, 0.0


def split(h, low, i, small):
    """The first row of the unreduced block that ends in row i: the subdiagonal entry before it is negligible."""
    for k in range(i, low, -1):
        beside = abs(h[k, k - 1])
        if beside <= small:
            return k
        size = abs(h[k - 1, k - 1]) + abs(h[k, k])
        if size == 0:
            if k - 2 >= low:
                size += abs(h[k - 1, k - 2])
            if k + 1 <= len(h) - 1:
                size += abs(h[k + 1, k])
        if beside <= ULP * size:
            other, apart = abs(h[k - 1, k]), abs(h[k - 1, k - 1] - h[k, k])
            ab, ba = max(beside, other), min(beside, other)
            aa, bb = max(abs(h[k, k]), apart), min(abs(h[k, k]), apart)
            size = aa + ab
            if ba * (ab / size) <= max(small, ULP * (bb * (aa / size))):
                return k
    return low


def shifts(h, first, i, step):
    """The two shifts of a step: (real, imaginary) of one, then of the other."""
    if step % (2 * EXCEPTIONAL) == 0:
        size = abs(h[i, i - 1]) + abs(h[i - 1, i - 2])
        a, b, c = 0.75 * size + h[i, i], -0.4375 * size, size
        d = a
    elif step % EXCEPTIONAL == 0:
        size = abs(h[first + 1, first]) + abs(h[first + 2, first + 1])
        a, b, c = 0.75 * size + h[first, first], -0.4375 * size, size
        d = a
    else:
        a, b, c, d = h[i - 1, i - 1], h[i - 1, i], h[i, i - 1], h[i, i]
    size = abs(a) + abs(b) + abs(c) + abs(d)
    if size == 0:
        return 0.0, 0.0, 0.0, 0.0
    a, b, c, d = a / size, b / size, c / size, d / size
    middle = (a + d) / 2
    inner = (a - middle) * (d - middle) - b * c
    root = math.sqrt(abs(inner))
    if inner >= 0:
        return middle * size, root * size, middle * size, -root * size
    one, two = middle + root, middle - root
    near = one * size if abs(one - d) <= abs(two - d) else two * size
    return near, 0.0, near, 0.0


def start(h, first, i, re1, im1, re2, im2):
    """The row where a step can begin, and the vector of its first reflection."""
    x, y, z = 0.0, 0.0, 0.0
    for m in range(i - 2, first - 1, -1):
        below = h[m + 1, m]
        size = abs(h[m, m] - re2) + abs(im2) + abs(below)
        below /= size
        x = below * h[m, m + 1] + (h[m, m] - re1) * ((h[m, m] - re2) / size) - im1 * (im2 / size)
        y = below * (h[m, m] + h[m + 1, m + 1] - re1 - re2)
        z = below * h[m + 2, m + 1]
        size = abs(x) + abs(y) + abs(z)
        x, y, z = x / size, y / size, z / size
        if m == first:
            break
        around = abs(h[m - 1, m - 1]) + abs(h[m, m]) + abs(h[m + 1, m + 1])
        if abs(h[m, m - 1]) * (abs(y) + abs(z)) <= ULP * abs(x) * around:
            return m, x, y, z
    return first, x, y, z


@whole
def step_of_francis(h, first, i, number):
    """A double-shift step on rows first to i."""
    re1, im1, re2, im2 = shifts(h, first, i, number)
    m, x, y, z = start(h, first, i, re1, im1, re2, im2)
    for k in range(m, i):
        three = k < i - 1
        if k > m:
            x, y, z = h[k, k - 1], h[k + 1, k - 1], h[k + 2, k - 1] if three else 0.0
        elif not three:
            z = 0.0
        beta, tau, y, z = reflector(x, y, z)
        if k > m:
            h[k, k - 1], h[k + 1, k - 1] = beta, 0.0
            if three:
                h[k + 2, k - 1] = 0.0
        elif m > first:
            h[k, k - 1] *= 1 - tau
        ty, tz = tau * y, tau * z
        if three:
            for j in range(k, i + 1):
                total = h[k, j] + y * h[k + 1, j] + z * h[k + 2, j]
                h[k, j] -= total * tau
                h[k + 1, j] -= total * ty
                h[k + 2, j] -= total * tz
            for j in range(first, min(k + 3, i) + 1):
                total = h[j, k] + y * h[j, k + 1] + z * h[j, k + 2]
                h[j, k] -= total * tau
                h[j, k + 1] -= total * ty
                h[j, k + 2] -= total * tz
        else:
            for j in range(k, i + 1):
                total = h[k, j] + y * h[k + 1, j]
                h[k, j] -= total * tau
                h[k + 1, j] -= total * ty
            for j in range(first, i + 1):
                total = h[j, k] + y * h[j, k + 1]
                h[j, k] -= total * tau
                h[j, k + 1] -= total * ty


@whole
def francis(h, real, imaginary):
    """Compute the eigenvalues of a matrix, which is overwritten; False if the iteration does not converge."""
    n = len(h)
    low, high = isolated(h)
    balanced(h, low, high)
    to_hessenberg(h, low, high, real)
    for k in range(n):
        if k < low or k > high:
            real[k], imaginary[k] = h[k, k], 0.0
    small = TINY * ((high - low + 1) / ULP)
    i = high
    while i >= low:
        done = False
        for step in range(30 * max(10, high - low + 1) + 1):
            first = split(h, low, i, small)
            if first > low:
                h[first, first - 1] = 0.0
            if first >= i - 1:
                if first == i:
                    real[i], imaginary[i] = h[i, i], 0.0
                else:
                    real[i - 1], real[i], imaginary[i - 1], imaginary[i] = pair(
                        h[i - 1, i - 1], h[i - 1, i], h[i, i - 1], h[i, i])
                i = first - 1
                done = True
                break
            step_of_francis(h, first, i, step + 1)
        if not done:
            return False
    return True


def scale_of(a, k):
    """The power of two to scale a matrix by so that squares of its entries neither overflow nor underflow; mostly 1.

    LAPACK should do so itself, but some builds leave the values scaled (SciPy 1.17 for Linux).
    """
    most = 0.0
    for i in range(a.shape[1]):
        for j in range(a.shape[2]):
            size = abs(a[k, i, j])
            if not size < np.inf:
                raise np.linalg.LinAlgError("Array must not contain infs or NaNs")
            most = max(most, size)
    return 1.0 if most == 0 or 1e-100 < most < 1e100 else 2.0 ** -np.floor(np.log2(most))


@whole
def by_lapack(a, k, scale, real, imaginary):
    """The eigenvalues of one matrix of a stack, by LAPACK; False if the iteration does not converge."""
    n = a.shape[1]
    matrix, none = np.empty((n, n)), np.empty((1, 1))
    for i in range(n):
        for j in range(n):
            matrix[j, i] = a[k, i, j] * scale           # column-major
    return not lapack_geev(ord("d"), ord("N"), ord("N"), n, matrix.ctypes, n, real.ctypes, imaginary.ctypes,
                           none.ctypes, 1, none.ctypes, 1)


@whole
def real_eigenvalues(a):
    """The eigenvalues of a stack of real matrices, without vectors."""
    n = a.shape[1]
    out, h = np.empty(a.shape[:2], np.complex128), np.empty((n, n))
    real, imaginary = np.empty(n), np.empty(n)
    for k in range(a.shape[0] if n else 0):
        scale = scale_of(a, k)
        for i in range(n):
            for j in range(n):
                h[i, j] = a[k, i, j] * scale
        if not (n <= SMALL and francis(h, real, imaginary)) and not by_lapack(a, k, scale, real, imaginary):
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        for i in range(n):
            out[k, i] = complex(real[i] / scale, imaginary[i] / scale)
    return out
