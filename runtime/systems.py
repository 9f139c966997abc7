# SPDX-License-Identifier: Apache-2.0
"""Real linear systems for compiled code: stacks of small matrices, interleaved in blocks.

LAPACK takes one matrix at a time, and for ten rows a call costs more than the arithmetic.  Here the entries of LANES
matrices are interleaved, so that each step of an elimination is one loop over contiguous memory.  Matrices of more than
SMALL rows use LAPACK, with one set of work arrays for the stack.

Sources: G. H. Golub and C. F. Van Loan, Matrix Computations, 3.4 (elimination with partial pivoting), 4.2 (Cholesky),
8.5 (Jacobi's rotations).
"""
import numpy as np

from gradscribe.runtime.compiled import whole

LANES = 16                  # matrices of a block
SMALL = 20                  # rows; LANES such matrices with their right-hand sides fit the L1 cache
FEW = 4                     # in stacks of up to this length, matrices of more than SMALL_OF_FEW rows use LAPACK
SMALL_OF_FEW = 7
SMALL_MATRIX = 8            # rows of a single matrix up to which plain loops are faster
COLUMNS = 4                 # right-hand sides from which on BLAS is faster
SMALL_VALUES = 12           # as SMALL, for eigenvalues, where LAPACK needs fewer operations
SWEEPS = 40


# --- LAPACK, as Numba binds it (codegen/foreign.py); matrices are column-major ----------------------------------------

def lapack_gesv(kind, n, columns, a, lda, order, b, ldb):
    raise NotImplementedError("called by compiled code only")


def lapack_getrf(kind, rows, n, a, lda, order):
    raise NotImplementedError("called by compiled code only")


def lapack_getri(kind, n, a, lda, order):
    raise NotImplementedError("called by compiled code only")


def lapack_potrf(kind, triangle, n, a, lda):
    raise NotImplementedError("called by compiled code only")


def lapack_syevd(kind, vectors, triangle, n, a, lda, values):
    raise NotImplementedError("called by compiled code only")


def blas_trsm(triangle, turned, unit, m, n, a, b):
    raise NotImplementedError("called by compiled code only")


def kind_of(a):
    return ord("s") if a.itemsize == 4 else ord("d")


def large(count, n):
    """Whether LAPACK is faster for a stack."""
    return n > (SMALL if count > FEW else SMALL_OF_FEW)


# --- blocks -----------------------------------------------------------------------------------------------------------

@whole
def into_block(block, a, first, width, column):
    """Copy matrices of a stack into a block, from a column on; a stack of one is broadcast."""
    for s in range(width):
        k = first + s if a.shape[0] > 1 else 0
        for i in range(a.shape[1]):
            for j in range(a.shape[2]):
                block[i, column + j, s] = a[k, i, j]


@whole
def eliminated(block, n, width, signs):
    """Reduce the matrices of a block to triangular form; signs: -1 after an odd number of row exchanges."""
    columns, size, row = block.shape[1], np.empty(LANES, block.dtype), np.empty(LANES, np.int64)
    for k in range(n):
        for s in range(width):
            size[s] = abs(block[k, k, s])
            row[s] = k
        for i in range(k + 1, n):
            for s in range(width):
                here = abs(block[i, k, s])
                row[s] = i if here > size[s] else row[s]
                size[s] = here if here > size[s] else size[s]
        for s in range(width):
            i = row[s]
            if i != k:
                signs[s] = -signs[s]
                for j in range(k, columns):
                    block[i, j, s], block[k, j, s] = block[k, j, s], block[i, j, s]
        for i in range(k + 1, n):
            for s in range(width):
                pivot = block[k, k, s]
                size[s] = block[i, k, s] / pivot if pivot != 0 else pivot
            for j in range(k + 1, columns):
                for s in range(width):
                    block[i, j, s] -= size[s] * block[k, j, s]


@whole
def substituted(block, n, width):
    """Solve for the right-hand sides of a block in triangular form."""
    for k in range(n):
        for s in range(width):
            if block[k, k, s] == 0:
                raise np.linalg.LinAlgError("Singular matrix")
    for i in range(n - 1, -1, -1):
        for j in range(n, block.shape[1]):
            for k in range(i + 1, n):
                for s in range(width):
                    block[i, j, s] -= block[i, k, s] * block[k, j, s]
            for s in range(width):
                block[i, j, s] /= block[i, i, s]


# --- equations --------------------------------------------------------------------------------------------------------

@whole
def solution_of_real(a, b):
    """The solutions of each system of a stack: a (k, n, n) or (1, n, n), b likewise (k, n, m)."""
    count, n, columns = max(len(a), len(b)) if len(a) and len(b) else 0, b.shape[1], b.shape[2]
    out = np.empty((count, n, columns), b.dtype)
    if large(count, n):
        matrix, right, order = np.empty((n, n), b.dtype), np.empty((columns, n), b.dtype), np.empty(n, np.int32)
        for c in range(count):
            for i in range(n):
                for j in range(n):
                    matrix[j, i] = a[c if len(a) > 1 else 0, i, j]
                for j in range(columns):
                    right[j, i] = b[c if len(b) > 1 else 0, i, j]
            if lapack_gesv(kind_of(b), n, columns, matrix.ctypes, n, order.ctypes, right.ctypes, n):
                raise np.linalg.LinAlgError("Singular matrix")
            for i in range(n):
                for j in range(columns):
                    out[c, i, j] = right[j, i]
        return out
    block, signs = np.empty((n, n + columns, LANES), b.dtype), np.empty(LANES, b.dtype)
    for first in range(0, count, LANES):
        width = min(LANES, count - first)
        into_block(block, a, first, width, 0)
        into_block(block, b, first, width, n)
        eliminated(block, n, width, signs)
        substituted(block, n, width)
        for s in range(width):
            for i in range(n):
                for j in range(columns):
                    out[first + s, i, j] = block[i, n + j, s]
    return out


@whole
def inverse_of_real(a):
    n = a.shape[1]
    one = np.zeros((1, n, n), a.dtype)
    for i in range(n):
        one[0, i, i] = 1
    return solution_of_real(a, one)


@whole
def triangles(a, diagonal, signs):
    """Compute the diagonals of the triangular forms of all matrices, and the signs of the row exchanges."""
    count, n = len(a), a.shape[1]
    if large(count, n):
        matrix, order = np.empty((n, n), a.dtype), np.empty(n, np.int32)
        for c in range(count):
            for i in range(n):
                for j in range(n):
                    matrix[i, j] = a[c, i, j]       # transposed, with the same determinant
            lapack_getrf(kind_of(a), n, n, matrix.ctypes, n, order.ctypes)
            signs[c] = 1
            for i in range(n):
                diagonal[c, i] = matrix[i, i]
                signs[c] = -signs[c] if order[i] != i + 1 else signs[c]
        return
    block = np.empty((n, n, LANES), a.dtype)
    for first in range(0, count, LANES):
        width = min(LANES, count - first)
        into_block(block, a, first, width, 0)
        signs[first:first + width] = 1
        eliminated(block, n, width, signs[first:first + width])
        for s in range(width):
            for i in range(n):
                diagonal[first + s, i] = block[i, i, s]


@whole
def determinant_of_real(a):
    diagonal, out = np.empty(a.shape[:2], a.dtype), np.empty(len(a), a.dtype)
    triangles(a, diagonal, out)
    for c in range(len(a)):
        for i in range(a.shape[1]):
            out[c] *= diagonal[c, i]
    return out


@whole
def log_determinant_of_real(a):
    """The sign of each determinant and the logarithm of its absolute value."""
    diagonal, sign, log = np.empty(a.shape[:2], a.dtype), np.empty(len(a), a.dtype), np.zeros(len(a), a.dtype)
    triangles(a, diagonal, sign)
    for c in range(len(a)):
        for i in range(a.shape[1]):
            here = diagonal[c, i]
            sign[c] *= np.sign(here)
            log[c] += np.log(abs(here)) if here != 0 else -np.inf
        if sign[c] == 0:
            log[c] = -np.inf
    return sign, log


@whole
def cholesky_of_real(a):
    """The Cholesky factor of each matrix, lower triangular; reads lower triangles."""
    count, n = len(a), a.shape[1]
    out = np.zeros(a.shape, a.dtype)
    if large(count, n):
        cholesky_by_lapack(a, out)
        return out
    block = np.empty((n, n, LANES), a.dtype)
    for first in range(0, count, LANES):
        width = min(LANES, count - first)
        into_block(block, a, first, width, 0)
        cholesky_of_block(block, n, width)
        for s in range(width):
            for i in range(n):
                for j in range(i + 1):
                    out[first + s, i, j] = block[i, j, s]
    return out


@whole
def cholesky_by_lapack(a, out):
    """Set the lower triangles of `out` to the Cholesky factors of all matrices."""
    n = a.shape[1]
    matrix = np.empty((n, n), a.dtype)
    for c in range(len(a)):
        for i in range(n):
            for j in range(i + 1):
                matrix[i, j] = a[c, i, j]
        if lapack_potrf(kind_of(a), ord("U"), n, matrix.ctypes, n):
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        for i in range(n):
            for j in range(i + 1):
                out[c, i, j] = matrix[i, j]


@whole
def cholesky_of_block(block, n, width):
    """Replace the lower triangles of the matrices of a block by their Cholesky factors."""
    for j in range(n):
        for k in range(j):
            for s in range(width):
                block[j, j, s] -= block[j, k, s] * block[j, k, s]
        for s in range(width):
            if not block[j, j, s] > 0:
                raise np.linalg.LinAlgError("Matrix is not positive definite")
            block[j, j, s] = np.sqrt(block[j, j, s])
        for i in range(j + 1, n):
            for k in range(j):
                for s in range(width):
                    block[i, j, s] -= block[i, k, s] * block[j, k, s]
            for s in range(width):
                block[i, j, s] /= block[j, j, s]


# --- a single matrix: its factors, and solutions by them --------------------------------------------------------------

@whole
def factors_of_matrix(a):
    """The triangular factors of a matrix, column-major, and the row that each row was exchanged with, from 1."""
    n = len(a)
    lu, order = np.empty((n, n), a.dtype), np.empty(n, np.int32)
    for i in range(n):
        for j in range(n):
            lu[j, i] = a[i, j]
    if n > SMALL_MATRIX:
        lapack_getrf(kind_of(a), n, n, lu.ctypes, n, order.ctypes)
        return lu, order
    for k in range(n):
        row, size = k, abs(lu[k, k])
        for i in range(k + 1, n):
            here = abs(lu[k, i])
            row, size = (i, here) if here > size else (row, size)
        order[k] = row + 1
        if row != k:
            for j in range(n):
                lu[j, k], lu[j, row] = lu[j, row], lu[j, k]
        if size != 0:
            for i in range(k + 1, n):
                lu[k, i] /= lu[k, k]
        for j in range(k + 1, n):
            for i in range(k + 1, n):
                lu[j, i] -= lu[k, i] * lu[j, k]
    return lu, order


@whole
def solution_by(lu, order, b):
    """The solutions of systems with one matrix from its factors, one for each column of b."""
    n = len(b)
    out, x = np.empty(b.shape, b.dtype), np.empty(n, b.dtype)
    for r in range(b.shape[1]):
        for i in range(n):
            x[i] = b[i, r]
        for i in range(n):
            other = order[i] - 1
            x[i], x[other] = x[other], x[i]
        for j in range(n):
            for i in range(j + 1, n):
                x[i] -= lu[j, i] * x[j]
        for j in range(n - 1, -1, -1):
            if lu[j, j] == 0:
                raise np.linalg.LinAlgError("Singular matrix")
            x[j] /= lu[j, j]
            for i in range(j):
                x[i] -= lu[j, i] * x[j]
        for i in range(n):
            out[i, r] = x[i]
    return out


@whole
def solution_across(lu, order, b):
    """The same for the transposed matrix."""
    n = len(b)
    out, x = np.empty(b.shape, b.dtype), np.empty(n, b.dtype)
    for r in range(b.shape[1]):
        for j in range(n):
            if lu[j, j] == 0:
                raise np.linalg.LinAlgError("Singular matrix")
            x[j] = (b[j, r] - np.dot(lu[j, :j], x[:j])) / lu[j, j]
        for j in range(n - 1, -1, -1):
            x[j] -= np.dot(lu[j, j + 1:], x[j + 1:])
        for i in range(n - 1, -1, -1):
            other = order[i] - 1
            x[i], x[other] = x[other], x[i]
        for i in range(n):
            out[i, r] = x[i]
    return out


@whole
def regular(a):
    for i in range(len(a)):
        if a[i, i] == 0:
            raise np.linalg.LinAlgError("Singular matrix")


@whole
def exchange_rows(out, i, other):
    for r in range(out.shape[1]):
        out[i, r], out[other, r] = out[other, r], out[i, r]


@whole
def solutions_by(lu, order, b, across):
    """The solutions with a matrix, or its transpose, for a matrix of right-hand sides.

    By BLAS, for which row-major arrays are transposed: the factors are on the right of the solution.
    """
    n, columns = b.shape
    if n <= SMALL_MATRIX or columns < COLUMNS:
        return solution_across(lu, order, b) if across else solution_by(lu, order, b)
    regular(lu)
    out = b.copy()
    if across:
        blas_trsm(ord("U"), ord("N"), ord("N"), columns, n, lu.ctypes, out.ctypes)
        blas_trsm(ord("L"), ord("N"), ord("U"), columns, n, lu.ctypes, out.ctypes)
        for i in range(n - 1, -1, -1):
            exchange_rows(out, i, order[i] - 1)
        return out
    for i in range(n):
        exchange_rows(out, i, order[i] - 1)
    blas_trsm(ord("L"), ord("T"), ord("U"), columns, n, lu.ctypes, out.ctypes)
    blas_trsm(ord("U"), ord("T"), ord("N"), columns, n, lu.ctypes, out.ctypes)
    return out


@whole
def triangle_solution(a, b, lower, across):
    """The solutions with a triangular matrix, or its transpose: by substitution along its rows."""
    n, columns = b.shape
    regular(a)
    out = b.copy()
    if n > SMALL_MATRIX and columns >= COLUMNS:
        blas_trsm(ord("U") if lower else ord("L"), ord("T") if across else ord("N"), ord("N"), columns, n, a.ctypes,
                  out.ctypes)
        return out
    x = np.empty(n, b.dtype)
    for r in range(columns):
        for i in range(n):
            x[i] = b[i, r]
        for k in range(n):
            i = k if lower != across else n - 1 - k
            first, last = (0, i) if lower else (i + 1, n)
            if across:
                x[i] /= a[i, i]
                for j in range(first, last):
                    x[j] -= a[i, j] * x[i]
            else:
                x[i] = (x[i] - np.dot(a[i, first:last], x[first:last])) / a[i, i]
        for i in range(n):
            out[i, r] = x[i]
    return out


@whole
def inverse_by(lu, order):
    """The inverse of a matrix from its factors."""
    n = len(lu)
    out = np.zeros((n, n), lu.dtype)
    if n <= SMALL_MATRIX:
        for i in range(n):
            out[i, i] = 1
        return solution_by(lu, order, out)
    turned = lu.copy()
    for i in range(n):
        if lu[i, i] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
    lapack_getri(kind_of(lu), n, turned.ctypes, n, order.ctypes)
    for i in range(n):
        for j in range(n):
            out[i, j] = turned[j, i]
    return out


@whole
def log_determinant_by(lu, order):
    """The sign of a determinant and the logarithm of its absolute value, from a matrix's factors."""
    sign, log = lu.dtype.type(1), lu.dtype.type(0)
    for i in range(len(lu)):
        here = lu[i, i]
        sign = -sign if (order[i] != i + 1) != (here < 0) else sign
        if here == 0:
            return here * 0, here * 0 - np.inf
        log += np.log(abs(here))
    return sign, log


@whole
def determinant_by(lu, order):
    out = lu.dtype.type(1)
    for i in range(len(lu)):
        out *= -lu[i, i] if order[i] != i + 1 else lu[i, i]
    return out


# --- eigenvalues of symmetric matrices --------------------------------------------------------------------------------

@whole
def rotated(block, n, width, cosine, sine):
    """A sweep of Jacobi rotations, one for each pair of rows and columns; lower triangles only."""
    one = block.dtype.type(1)
    for p in range(n - 1):
        for q in range(p + 1, n):
            for s in range(width):
                low, apart = block[q, p, s], block[q, q, s] - block[p, p, s]
                twice, far = abs(low + low), abs(apart)
                large = twice if twice > far else far
                small = (far if twice > far else twice) / large if large > 0 else large
                size = far + large * np.sqrt(small * small + one)
                t = (low + low) / size if size > 0 else size
                t = -t if apart < 0 else t
                c = one / np.sqrt(t * t + one)
                cosine[s] = c
                sine[s] = t * c
                block[p, p, s] -= t * low
                block[q, q, s] += t * low
                block[q, p, s] = 0
            for k in range(n):
                if k != p and k != q:
                    i, j = (p, k) if k < p else (k, p)
                    m, r = (q, k) if k < q else (k, q)
                    for s in range(width):
                        x, y = block[i, j, s], block[m, r, s]
                        block[i, j, s] = cosine[s] * x - sine[s] * y
                        block[m, r, s] = sine[s] * x + cosine[s] * y


@whole
def settled(block, n, width, eps):
    """Whether all off-diagonal entries are negligible, or NaN."""
    for s in range(width):
        beside, on = abs(block[0, 0, s]) * 0, abs(block[0, 0, s])
        for i in range(1, n):
            on += abs(block[i, i, s])
            for j in range(i):
                beside += abs(block[i, j, s])
        if not beside <= eps * on:
            return False
    return True


@whole
def symmetric_values(a):
    """The eigenvalues of symmetric matrices, ascending; reads lower triangles."""
    count, n = len(a), a.shape[1]
    out = np.empty((count, n), a.dtype)
    if n > (SMALL_VALUES if count > FEW else SMALL_OF_FEW):
        matrix, values = np.empty((n, n), a.dtype), np.empty(n, a.dtype)
        for c in range(count):
            for i in range(n):
                for j in range(i + 1):
                    matrix[i, j] = a[c, i, j]
            if lapack_syevd(kind_of(a), ord("N"), ord("U"), n, matrix.ctypes, n, values.ctypes):
                raise np.linalg.LinAlgError("Eigenvalues did not converge")
            for i in range(n):
                out[c, i] = values[i]
        return out
    block, cosine, sine = np.empty((n, n, LANES), a.dtype), np.empty(LANES, a.dtype), np.empty(LANES, a.dtype)
    eps = np.finfo(a.dtype).eps / 4
    for first in range(0, count if n else 0, LANES):
        width = min(LANES, count - first)
        into_block(block, a, first, width, 0)
        sweep = 0
        while not settled(block, n, width, eps):
            if sweep == SWEEPS:
                raise np.linalg.LinAlgError("Eigenvalues did not converge")
            rotated(block, n, width, cosine, sine)
            sweep += 1
        for s in range(width):
            for i in range(n):
                here, j = block[i, i, s], i
                while j > 0 and out[first + s, j - 1] > here:
                    out[first + s, j] = out[first + s, j - 1]
                    j -= 1
                out[first + s, j] = here
    return out
