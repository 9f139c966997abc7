# SPDX-License-Identifier: Apache-2.0
"""Rules for scipy.linalg, loaded if the program has imported it.

A function that NumPy also has is replaced by NumPy's.  `overwrite_a` and `check_finite` only affect the cost of a call,
and are ignored: nothing is overwritten, and entries are not checked to be finite.
"""
import numpy as np
import scipy.linalg

from gradscribe.ast_transform.core.kinds import Array, Length
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, linear, static
from gradscribe.ast_transform.rules import scipy_samples as samples
from gradscribe.ast_transform.rules.decompositions import adjoint_of_eigh, eigh_of, tangent_of_eigh, tangent_of_values
from gradscribe.ast_transform.rules.linalg import adjugated, conjugated, from_triangle, onto_triangle, square
from gradscribe.ast_transform.rules.products import transposed

# --- with a counterpart in NumPy --------------------------------------------------------------------------------------

@general(scipy.linalg.inv, samples=samples.regular, rewrite=True, memory=FRESH, raises=True)
class inv:
    def primal(a, overwrite_a=False, check_finite=True):
        return np.linalg.inv(a)


@general(scipy.linalg.det, samples=samples.regular, rewrite=True, memory=FRESH, raises=True)
class det:
    def primal(a, overwrite_a=False, check_finite=True):
        return np.linalg.det(a)


@general(scipy.linalg.svd, samples=samples.singular, rewrite=True, memory=FRESH, raises=True)
class svd:
    def primal(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True):
        return np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


@general(scipy.linalg.svdvals, samples=samples.matrices, rewrite=True, memory=FRESH, raises=True)
class svdvals:
    def primal(a, overwrite_a=False, check_finite=True):
        return np.linalg.svdvals(a)


@static
def triangle(lower):
    return "L" if lower else "U"


@static
def one_matrix(b, name):
    if b is not None:
        raise ValueError(f"scipy.linalg.{name} with a second matrix has no derivative rule",
                         "Divide by a factor of it: with L from np.linalg.cholesky(b), take inv(L) @ a @ inv(L).T.")


@general(scipy.linalg.eigh, "a", samples=samples.eigenvalues_and_vectors, partial=True, lengths=square, memory=FRESH,
         raises=True)
class eigh:
    """The eigenvectors may have other signs than NumPy's."""
    def primal(a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, check_finite=True):
        one_matrix(b, "eigh")
        return scipy.linalg.eigh(a, lower=lower, eigvals_only=eigvals_only)

    def vjp_a(dy, y, a, b=None, *, lower=True, eigvals_only=False):
        one_matrix(b, "eigh")
        if eigvals_only:
            w, v = eigh_of(a, lower)
            return onto_triangle(adjoint_of_eigh(dy, None, w, v), lower)
        return onto_triangle(adjoint_of_eigh(dy[0], dy[1], y[0], y[1]), lower)

    def jvp_a(a_dot, y, a, b=None, *, lower=True, eigvals_only=False):
        one_matrix(b, "eigh")
        if eigvals_only:
            w, v = eigh_of(a, lower)
            return tangent_of_values(from_triangle(a_dot, lower), v)
        return tangent_of_eigh(from_triangle(a_dot, lower), y[0], y[1])


@general(scipy.linalg.eigvalsh, samples=samples.plain_symmetric_matrices, rewrite=True, memory=FRESH, raises=True)
class eigvalsh:
    def primal(a, b=None, *, lower=True, overwrite_a=False, overwrite_b=False, check_finite=True):
        one_matrix(b, "eigvalsh")
        return np.linalg.eigvalsh(a, triangle(lower))


@static
def economic(mode, pivoting):
    if mode != "economic" or pivoting:
        raise ValueError(f"scipy.linalg.qr has a derivative rule for mode='economic' without pivoting, not {mode!r}",
                         'Use mode="economic".')


@general(scipy.linalg.qr, samples=samples.tall, rewrite=True, memory=FRESH, raises=True)
class qr:
    def primal(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
        economic(mode, pivoting)
        return np.linalg.qr(a)


@general(scipy.linalg.cholesky, samples=samples.positive_definite, rewrite=True, memory=FRESH, raises=True)
class cholesky:
    def primal(a, lower=False, overwrite_a=False, check_finite=True):
        if lower:
            return np.linalg.cholesky(a)
        return np.linalg.cholesky(a, upper=True)


@general(scipy.linalg.cho_factor, rewrite=True, memory=FRESH, raises=True)
class cho_factor:
    """The other triangle is zero; SciPy leaves arbitrary values there."""
    def primal(a, lower=False, overwrite_a=False, check_finite=True):
        if lower:
            return np.linalg.cholesky(a), True
        return np.linalg.cholesky(a, upper=True), False


@general(scipy.linalg.cho_solve, samples=samples.factored_systems, rewrite=True, sequence=("c_and_lower",),
         memory=FRESH, raises=True)
class cho_solve:
    def primal(c_and_lower, b, overwrite_b=False, check_finite=True):
        return by_cholesky(c_and_lower[0], c_and_lower[1], b)


def by_cholesky(c, lower, b):
    known_flag(lower, "cho_solve")
    if lower:
        half = scipy.linalg.solve_triangular(c, b, lower=True)
        return scipy.linalg.solve_triangular(c, half, trans=back(c), lower=True)
    return scipy.linalg.solve_triangular(c, scipy.linalg.solve_triangular(c, b, trans=back(c)))


@static
def known_flag(lower, name):
    if not isinstance(lower, (bool, int)):
        raise ValueError(f"scipy.linalg.{name} needs to know when transforming which triangle is meant",
                         "Write True or False.")


@static
def back(c):
    """The argument `trans` for the transposed factor."""
    return "C" if c.dtype.kind == "c" else "T"


# --- systems ----------------------------------------------------------------------------------------------------------

@static
def structure(assume_a):
    kinds = {None: "gen", "general": "gen", "symmetric": "sym", "hermitian": "her", "positive definite": "pos",
             "upper triangular": "upper", "lower triangular": "lower"}
    kind = kinds.get(assume_a, assume_a)
    if kind not in ("gen", "sym", "her", "pos", "upper", "lower"):
        raise ValueError(f"scipy.linalg.solve with assume_a={assume_a!r} has no derivative rule",
                         "Leave assume_a out: the solution is the same.")
    return kind


@general(scipy.linalg.solve, samples=samples.structured_systems, rewrite=True, memory=FRESH, raises=True)
class solve:
    def primal(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None,
               transposed=False):
        real_if_transposed(a, transposed)
        return solved(a, b, structure(assume_a), lower, transposed)


@static
def real_if_transposed(a, transposed):
    if transposed and a.dtype.kind == "c":
        raise ValueError("scipy.linalg.solve does not take transposed=True for a complex matrix",
                         "Transpose the matrix: scipy.linalg.solve(a.T, b).")


def solved(a, b, kind, lower, turned):
    """The solution of a x = b by the structure of a; a symmetric a is read from one triangle, transposed or not."""
    if kind == "pos" and lower:
        return by_cholesky(np.linalg.cholesky(a), True, b)
    if kind == "pos":
        return by_cholesky(np.linalg.cholesky(a, upper=True), False, b)
    if kind == "sym":
        return np.linalg.solve(mirrored(a, lower), b)
    if kind == "her":
        return np.linalg.solve(from_triangle(a, lower), b)
    if kind == "upper" or kind == "lower":
        return scipy.linalg.solve_triangular(a, b, trans="T" if turned else "N", lower=kind == "lower")
    if turned:
        return np.linalg.solve(transposed(a), b)
    return np.linalg.solve(a, b)


def mirrored(m, lower):
    """The symmetric matrix with this triangle, without conjugation if complex."""
    if lower:
        return np.tril(m) + transposed(np.tril(m, -1))
    return np.triu(m) + transposed(np.triu(m, 1))


@static
def transposition(trans, a, b):
    """"N", "T" or "C"; for real numbers "T" instead of "C"."""
    if a.ndim != 2 or b.ndim > 2:
        raise ValueError(f"scipy.linalg.solve_triangular of a stack of matrices (rank {a.ndim}) has no derivative rule",
                         "Solve for one matrix at a time, in a loop.")
    kind = {0: "N", 1: "T", 2: "C"}.get(trans, trans)
    return "T" if kind == "C" and a.dtype.kind != "c" else kind


@static
def other_way(kind):
    return {"N": "T", "T": "N"}.get(kind, kind)


def read_part(m, lower, unit_diagonal):
    """The triangle of m that is read."""
    if lower and unit_diagonal:
        return np.tril(m, -1)
    if lower:
        return np.tril(m)
    if unit_diagonal:
        return np.triu(m, 1)
    return np.triu(m)


def triangular(a, b, kind, lower, unit_diagonal):
    if kind == "N" and unit_diagonal:
        return scipy.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=True)
    if kind == "N":
        return scipy.linalg.solve_triangular(a, b, lower=lower)
    if unit_diagonal:
        return scipy.linalg.solve_triangular(a, b, trans=kind, lower=lower, unit_diagonal=True)
    return scipy.linalg.solve_triangular(a, b, trans=kind, lower=lower)


def pulled_back(dy, a, kind, lower, unit_diagonal):
    if kind == "C":
        return np.conj(triangular(a, np.conj(dy), "N", lower, unit_diagonal))
    return triangular(a, dy, other_way(kind), lower, unit_diagonal)


def pairs(x, y):
    """x y^T"""
    if x.ndim == 1:
        return np.outer(x, y)
    return x @ y.T


@general(scipy.linalg.solve_triangular, "a", "b", samples=samples.triangular_systems, lengths=square,
         memory=FRESH, raises=True)
class solve_triangular:
    def primal(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
        return scipy.linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)

    def vjp_a(dy, y, a, b, trans=0, lower=False, unit_diagonal=False):
        kind = transposition(trans, a, b)
        db = pulled_back(dy, a, kind, lower, unit_diagonal)
        if kind == "N":
            return -read_part(pairs(db, y), lower, unit_diagonal)
        if kind == "C":
            return -read_part(np.conj(pairs(y, db)), lower, unit_diagonal)
        return -read_part(pairs(y, db), lower, unit_diagonal)

    def vjp_b(dy, a, b, trans=0, lower=False, unit_diagonal=False):
        return pulled_back(dy, a, transposition(trans, a, b), lower, unit_diagonal)

    def jvp_a(a_dot, y, a, b, trans=0, lower=False, unit_diagonal=False):
        kind = transposition(trans, a, b)
        moved = read_part(a_dot, lower, unit_diagonal)
        if kind == "N":
            return -triangular(a, moved @ y, kind, lower, unit_diagonal)
        if kind == "C":
            return -triangular(a, adjugated(moved) @ y, kind, lower, unit_diagonal)
        return -triangular(a, moved.T @ y, kind, lower, unit_diagonal)

    def jvp_b(b_dot, a, b, trans=0, lower=False, unit_diagonal=False):
        return triangular(a, b_dot, transposition(trans, a, b), lower, unit_diagonal)


@static
def bands(l_and_u, ab, b):
    """The numbers of diagonals below and above the main one."""
    if ab.ndim != 2 or b.ndim > 2:
        raise ValueError(f"scipy.linalg.solve_banded of a stack of matrices (rank {ab.ndim}) has no derivative rule",
                         "Solve for one matrix at a time, in a loop.")
    if not all(isinstance(k, int) for k in l_and_u):
        raise ValueError("scipy.linalg.solve_banded needs numbers of diagonals that are known when transforming",
                         "Write them out, as in solve_banded((1, 1), ab, b).")
    return l_and_u


@static
def diagonals(l_and_u):
    """The offsets j - i of the diagonals, from the topmost to the lowest."""
    return list(range(l_and_u[1], -l_and_u[0] - 1, -1))


@static
def turned_over(l_and_u):
    return l_and_u[1], l_and_u[0]


def moved(x, k):
    """x shifted by k along the first axis: entry i is x[i + k], or zero beyond the ends."""
    if k == 0:
        return x
    zeros = np.zeros_like(x[:abs(k)])
    if k > 0:
        return np.concatenate((x[k:], zeros))
    return np.concatenate((zeros, x[:k]))


def transposed_bands(l_and_u, ab):
    """The diagonals of the transposed matrix, in SciPy's storage."""
    return np.stack([moved(ab[l_and_u[1] + k], -k) for k in diagonals(turned_over(l_and_u))])


def over_right_sides(x, b):
    return x if b.ndim == 1 else np.sum(x, axis=1)


def down_right_sides(x, b):
    return x if b.ndim == 1 else x[:, None]


def _banded(l_and_u, ab, b, **others):
    if isinstance(ab, Array) and isinstance(b, Array) and ab.rank == 2 and b.rank:
        if isinstance(l_and_u, tuple) and all(isinstance(k, int) for k in l_and_u):
            yield ab.dims[0], Length(None, sum(l_and_u) + 1)
        yield ab.dims[1], b.dims[0]


@static
def _like_the_right_side(l_and_u, ab, b, **others):
    both = ab.kind in "fc" and b.kind in "fc"
    return Array(np.result_type(ab.dtype, b.dtype, *() if both else (float,)), b.dims)


@general(scipy.linalg.solve_banded, "ab", "b", samples=samples.banded_systems, as_given=("l_and_u",), lengths=_banded,
         fact=_like_the_right_side, memory=FRESH, raises=True)
class solve_banded:
    """A is stored by diagonals: entry j of diagonal k, counted to the right, is A[j - k, j]."""
    def primal(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
        return scipy.linalg.solve_banded(l_and_u, ab, b)

    def vjp_ab(dy, y, l_and_u, ab, b):
        db = adjoint_of_banded(dy, l_and_u, ab, b)
        return -np.stack([over_right_sides(moved(db, -k) * y, b) for k in diagonals(l_and_u)])

    def vjp_b(dy, l_and_u, ab, b):
        return adjoint_of_banded(dy, l_and_u, ab, b)

    def jvp_ab(ab_dot, y, l_and_u, ab, b):
        change = 0
        for k in diagonals(bands(l_and_u, ab, b)):
            change = change + moved(down_right_sides(ab_dot[l_and_u[1] - k], b) * y, k)
        return -scipy.linalg.solve_banded(l_and_u, ab, change)

    def jvp_b(b_dot, l_and_u, ab, b):
        return scipy.linalg.solve_banded(bands(l_and_u, ab, b), ab, b_dot)


def adjoint_of_banded(dy, l_and_u, ab, b):
    l_and_u = bands(l_and_u, ab, b)
    return scipy.linalg.solve_banded(turned_over(l_and_u), transposed_bands(l_and_u, ab), dy)


@static
def parts_apart(permute_l, p_indices):
    if permute_l or p_indices:
        raise ValueError("scipy.linalg.lu with permute_l or p_indices has no derivative rule",
                         "Leave them out: p, l, u = scipy.linalg.lu(a).")


@general(scipy.linalg.lu, "a", samples=samples.square, partial=True, lengths=square, memory=FRESH, raises=True)
class lu:
    """For square matrices (solve_triangular refuses others); the permutation of the rows is constant."""
    def primal(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
        return scipy.linalg.lu(a, permute_l=permute_l, p_indices=p_indices)

    def vjp_a(dy, y, a, permute_l=False, p_indices=False):
        parts_apart(permute_l, p_indices)
        p, low, up = y
        if dy[1] is None and dy[2] is None:         # the order of the rows alone
            return np.zeros_like(a)
        inside = scipy.linalg.solve_triangular(low, from_factors(low, up, dy[1], dy[2]), trans="T", lower=True)
        return p @ scipy.linalg.solve_triangular(up, inside.T).T

    def jvp_a(a_dot, y, a, permute_l=False, p_indices=False):
        parts_apart(permute_l, p_indices)
        p, low, up = y
        half = scipy.linalg.solve_triangular(low, p.T @ a_dot, lower=True)
        inside = scipy.linalg.solve_triangular(up, half.T, trans="T").T
        return np.zeros_like(p), low @ np.tril(inside, -1), np.triu(inside) @ up


def from_factors(low, up, dlow, dup):
    if dlow is None:
        return np.triu(dup @ up.T)
    if dup is None:
        return np.tril(low.T @ dlow, -1)
    return np.tril(low.T @ dlow, -1) + np.triu(dup @ up.T)


# --- functions of matrices --------------------------------------------------------------------------------------------

def change_of_expm(a, e):
    """The derivative of the exponential at a along e: a block of the exponential of [[a, e], [0, a]].

    R. Mathias, A chain rule for matrix functions and applications (1996), Theorem 2.1.
    """
    n = a.shape[-1]
    upper, under = np.concatenate((a, e), axis=-1), np.concatenate((np.zeros_like(a), a), axis=-1)
    return scipy.linalg.expm(np.concatenate((upper, under), axis=-2))[..., :n, n:]


@general(scipy.linalg.expm, "A", samples=samples.exponents, lengths=square, memory=FRESH, raises=True)
class expm:
    def primal(A):
        return scipy.linalg.expm(A)

    def vjp_A(dy, A):
        return change_of_expm(transposed(A), dy)

    def jvp_A(A_dot, A):
        return change_of_expm(A, A_dot)


@general(scipy.linalg.expm_frechet, samples=samples.exponents_and_directions, rewrite=True, arrays=("A", "E"),
         memory=FRESH, raises=True)
class expm_frechet:
    def primal(A, E, method=None, compute_expm=True, check_finite=True):
        if compute_expm:
            return scipy.linalg.expm(A), change_of_expm(A, E)
        return change_of_expm(A, E)


@general(scipy.linalg.polar, samples=samples.matrices_to_turn, rewrite=True, memory=FRESH, raises=True)
class polar:
    def primal(a, side="right"):
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        if side == "left":
            return u @ vt, (u * s) @ adjugated(u)
        return u @ vt, (adjugated(vt) * s) @ vt


def _sylvester(a, b, q, **others):
    if all(isinstance(x, Array) and x.rank >= 2 for x in (a, b, q)):
        if not a.rank == b.rank == q.rank:
            raise ValueError(f"ranks {a.rank}, {b.rank} and {q.rank} must be equal")
        for x, k in ((a, -2), (b, -1)):
            yield x.dims[-1], x.dims[-2]
            yield x.dims[-1], q.dims[k]
            yield from zip(x.dims[:-2], q.dims)


@static
def of_one_kind(a, b, q):
    if len({x.dtype.kind == "c" for x in (a, b, q)}) > 1:
        raise ValueError("scipy.linalg.solve_sylvester gives a wrong solution where real and complex matrices meet",
                         "Make all of them complex: a.astype(complex).")


@general(scipy.linalg.solve_sylvester, "a", "b", "q", samples=samples.sylvester, lengths=_sylvester, memory=FRESH,
         raises=True)
class solve_sylvester:
    def vjp_a(dy, y, a, b, q):
        of_one_kind(a, b, q)
        return -(scipy.linalg.solve_sylvester(transposed(a), transposed(b), dy) @ transposed(y))

    def vjp_b(dy, y, a, b, q):
        of_one_kind(a, b, q)
        return -(transposed(y) @ scipy.linalg.solve_sylvester(transposed(a), transposed(b), dy))

    def vjp_q(dy, a, b, q):
        of_one_kind(a, b, q)
        return scipy.linalg.solve_sylvester(transposed(a), transposed(b), dy)

    def jvp_a(a_dot, y, a, b, q):
        of_one_kind(a, b, q)
        return -scipy.linalg.solve_sylvester(a, b, a_dot @ y)

    def jvp_b(b_dot, y, a, b, q):
        of_one_kind(a, b, q)
        return -scipy.linalg.solve_sylvester(a, b, y @ b_dot)

    def jvp_q(q_dot, a, b, q):
        of_one_kind(a, b, q)
        return scipy.linalg.solve_sylvester(a, b, q_dot)


def as_complex(x):
    return x + 0j               # SciPy's solve_sylvester is wrong where real and complex arrays meet


@general(scipy.linalg.sqrtm, "A", samples=samples.with_square_roots, complex_result=True, lengths=square, memory=FRESH,
         raises=True)
class sqrtm:
    """From X X = A follows X' X + X X' = A'.  The result counts as complex even for a real A: it depends on values."""
    def primal(A):
        return scipy.linalg.sqrtm(A)

    def vjp_A(dy, y, A):
        root = transposed(y)
        if y.dtype.kind != "c":
            return scipy.linalg.solve_sylvester(root, root, dy)
        root = as_complex(root)
        dA = scipy.linalg.solve_sylvester(root, root, as_complex(dy))
        if A.dtype.kind == "c":
            return dA
        return np.real(dA)

    def jvp_A(A_dot, y):
        if y.dtype.kind != "c":
            return scipy.linalg.solve_sylvester(y, y, A_dot)
        root = as_complex(y)
        return scipy.linalg.solve_sylvester(root, root, as_complex(A_dot))


# --- matrices built from arrays ---------------------------------------------------------------------------------------

def height(arrs):
    if len(arrs) == 0:
        return 0
    if len(arrs) == 1:
        return rows_of(arrs[0])
    return rows_of(arrs[0]) + height(arrs[1:])


def width(arrs):
    if len(arrs) == 0:
        return 0
    if len(arrs) == 1:
        return columns_of(arrs[0])
    return columns_of(arrs[0]) + width(arrs[1:])


def rows_of(a):
    return a.shape[0] if a.ndim == 2 else 1


def columns_of(a):
    return 1 if a.ndim == 0 else a.shape[-1]


@static
def at_most_matrices(arrs):
    if any(a.ndim > 2 for a in arrs):
        raise ValueError("scipy.linalg.block_diag of stacks of matrices has no derivative rule",
                         "Give it one matrix at a time, in a loop.")


@linear(scipy.linalg.block_diag, "arrs", samples=samples.blocks, expand=True, memory=FRESH, raises=True)
class block_diag:
    def primal(*arrs):
        return scipy.linalg.block_diag(*arrs)

    def vjp_arrs(dy, k, *arrs):
        at_most_matrices(arrs)
        row, column, a = height(arrs[:k]), width(arrs[:k]), arrs[k]
        if a.ndim == 0:
            return dy[row, column]
        if a.ndim == 1:
            return dy[row, column:column + columns_of(a)]
        return dy[row:row + rows_of(a), column:column + columns_of(a)]


@static
def a_vector(x, name):
    if x.ndim != 1:
        raise ValueError(f"scipy.linalg.{name} of an array of rank {x.ndim} has no derivative rule",
                         "Give it vectors: np.ravel(x).")


@general(scipy.linalg.toeplitz, samples=samples.first_columns, rewrite=True, arrays=("c", "r"), memory=FRESH,
         raises=True)
class toeplitz:
    def primal(c, r=None):
        a_vector(c, "toeplitz")
        if r is None:
            return along_diagonals(c, conjugated(c))
        a_vector(r, "toeplitz")
        return along_diagonals(c, r)


def along_diagonals(c, r):
    values = np.concatenate((r[:0:-1], c))
    return values[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])[::-1]]


@general(scipy.linalg.hankel, samples=samples.first_columns, rewrite=True, arrays=("c", "r"), memory=FRESH, raises=True)
class hankel:
    def primal(c, r=None):
        a_vector(c, "hankel")
        if r is None:
            return across_diagonals(np.concatenate((c, np.zeros_like(c)[1:])), c, c)
        a_vector(r, "hankel")
        return across_diagonals(np.concatenate((c, r[1:])), c, r)


def across_diagonals(values, c, r):
    return values[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])]


@general(scipy.linalg.circulant, samples=samples.vectors, rewrite=True, memory=FRESH, raises=True)
class circulant:
    def primal(c):
        a_vector(c, "circulant")
        n = c.shape[0]
        return c[(np.arange(n)[:, None] - np.arange(n)) % n]
