# SPDX-License-Identifier: Apache-2.0
"""Matrix factorisations.  Matrices are on the last two axes; the axes before them are stacks.

Sources: M. B. Giles, Collected matrix derivative results for forward and reverse mode (2008); I. Murray,
Differentiation of the Cholesky decomposition (2016); J. Townsend, Differentiating the singular value decomposition
(2016); Z.-Q. Wan and S.-X. Zhang, Automatic differentiation for complex valued SVD (2019).
Where NumPy reads only one triangle (cholesky, eigh), only its entries have an adjoint, and only their tangents count.
JAX takes the Hermitian part of the matrix first, as gradscribe.lax.linalg does.  Each complex eigenvector and singular
vector has a free phase; the derivative does not change it, as in JAX.
"""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules import linalg_samples
from gradscribe.ast_transform.rules.batching import by_example, same_call
from gradscribe.ast_transform.rules.linalg import (
    adjugated,
    as_given,
    as_read,
    conjugated,
    diagonal_of,
    from_lower,
    from_triangle,
    lower_half,
    onto_triangle,
    scaled_columns,
    square,
)
from gradscribe.ast_transform.rules.products import transposed


@general(np.linalg.cholesky, "a", samples=linalg_samples.positive_definite, lengths=square, memory=FRESH,
         raises=True, triangle=lambda upper=False: "upper" if upper else "lower")
class cholesky:
    def primal(a, *, upper=False):
        return np.linalg.cholesky(a, upper=upper)

    def vjp_a(dy, y, *, upper=False):
        if upper:
            return adjugated(adjoint_of_lower(adjugated(dy), conjugated(y)))
        return adjoint_of_lower(dy, transposed(y))

    def jvp_a(a_dot, y, *, upper=False):
        if upper:
            return adjugated(tangent_of_lower(adjugated(a_dot), adjugated(y)))
        return tangent_of_lower(a_dot, y)

    batch = same_call(np.linalg.cholesky)


def adjoint_of_lower(dy, yt):
    """Murray (2016), equation 10."""
    half = np.linalg.solve(yt, from_lower(yt @ dy))
    return lower_half(np.linalg.solve(yt, adjugated(half)))


def tangent_of_lower(a_dot, y):
    half = np.linalg.solve(y, from_lower(a_dot))
    return y @ lower_half(np.linalg.solve(y, adjugated(half)))


def over_gaps(m, w):
    """m_ij / (w_j - w_i); 0 where both are 0 (such as the diagonal), infinite where only the denominator is."""
    if w.ndim == 1:
        gap = w - w[:, None]
    else:
        gap = w[..., None, :] - w[..., None]
    return m / np.where(gap == 0, m == 0, gap)


def skew(m):
    """The skew part of m, which rotates vectors; without the diagonal if complex, which would change their phases."""
    if m.dtype.kind == "c":
        return without_diagonal((m - adjugated(m)) / 2)
    return (m - transposed(m)) / 2


def without_diagonal(m):
    return np.tril(m, -1) + np.triu(m, 1)


@general(np.linalg.eigh, "a", samples=linalg_samples.symmetric_matrices, partial=True, lengths=square, memory=FRESH,
         raises=True)
class eigh:
    def primal(a, UPLO="L"):
        return np.linalg.eigh(a, UPLO)

    def vjp_a(dy, y, UPLO="L"):
        return onto_triangle(adjoint_of_eigh(dy[0], dy[1], y[0], y[1]), is_lower(UPLO))

    def jvp_a(a_dot, y, UPLO="L"):
        return tangent_of_eigh(from_triangle(a_dot, is_lower(UPLO)), y[0], y[1])

    batch = same_call(np.linalg.eigh)


def adjoint_of_eigh(dw, dv, w, v):
    """The Hermitian adjoint of eigh; an adjoint that is None is not used."""
    vt = transposed(v)
    if dv is None:
        return scaled_columns(conjugated(v), dw) @ vt
    turned = conjugated(v) @ over_gaps(skew(vt @ dv), w) @ vt
    if dw is None:
        return turned
    return scaled_columns(conjugated(v), dw) @ vt + turned


def tangent_of_eigh(a_dot, w, v):
    turned = adjugated(v) @ a_dot @ v
    return diagonal_of(turned), v @ over_gaps(without_diagonal(turned), w)


@general(np.linalg.eigvalsh, "a", samples=linalg_samples.hermitian_matrices, lengths=square, memory=FRESH,
         raises=True)
class eigvalsh:
    def primal(a, UPLO="L"):
        return np.linalg.eigvalsh(a, UPLO)

    def vjp_a(dy, a, UPLO="L"):
        w, v = eigh_of(a, is_lower(UPLO))
        return onto_triangle(adjoint_of_eigh(dy, None, w, v), is_lower(UPLO))

    def jvp_a(a_dot, a, UPLO="L"):
        w, v = eigh_of(a, is_lower(UPLO))
        return tangent_of_values(from_triangle(a_dot, is_lower(UPLO)), v)

    batch = same_call(np.linalg.eigvalsh)


@static
def is_lower(UPLO):
    return UPLO.upper() == "L"


def eigh_of(a, lower):
    if lower:
        return np.linalg.eigh(a)
    return np.linalg.eigh(adjugated(a))


def tangent_of_values(a_dot, v):
    moved = np.sum(conjugated(v) * (a_dot @ v), axis=-2)
    if v.dtype.kind == "c":
        return np.real(moved)
    return moved


# --- singular values --------------------------------------------------------------------------------------------------

def rows(s):
    """The factor that scales the rows of m: diag(s) @ m is this times m."""
    return s[..., None]


def columns(s):
    """The factor that scales the columns of m: m @ diag(s) is m times this."""
    if s.ndim == 1:
        return s
    return s[..., None, :]


@general(np.linalg.svd, "a", samples=linalg_samples.singular, partial=True, memory=FRESH, raises=True)
class svd:
    """The derivative of the columns of u and v without a singular value is that of the space which they span."""
    def primal(a, full_matrices=True, compute_uv=True, hermitian=False):
        return np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, hermitian=hermitian)

    def vjp_a(dy, y, a, full_matrices=True, compute_uv=True, hermitian=False):
        if not compute_uv:
            u, s, vt = thin_svd(a, hermitian)
            return as_given((conjugated(u) * columns(dy)) @ conjugated(vt), hermitian)
        u, s, vt = y
        du, ds, dvt = dy
        if full_matrices:
            k = s.shape[-1]
            first_du, first_dv = of_the_first(u, du, k), of_the_first(of_vt(vt), of_vt(dvt), k)
            return as_given(adjoint_of_svd(u[..., :k], s, vt[..., :k, :], first_du, ds, first_dv), hermitian)
        return as_given(adjoint_of_svd(u, s, vt, du, ds, of_vt(dvt)), hermitian)

    def jvp_a(a_dot, y, a, full_matrices=True, compute_uv=True, hermitian=False):
        if not compute_uv:
            u, s, vt = thin_svd(a, hermitian)
            moved = np.sum(conjugated(u) * (as_read(a_dot, hermitian) @ adjugated(vt)), axis=-2)
            if a.dtype.kind == "c":
                return np.real(moved)
            return moved
        u, s, vt = y
        if full_matrices:
            k = s.shape[-1]
            first_u, first_v = u[..., :k], adjugated(vt[..., :k, :])
            u_dot, s_dot, v_dot = tangent_of_svd(as_read(a_dot, hermitian), first_u, s, first_v)
            other_u = -first_u @ (adjugated(u_dot) @ u[..., k:])
            other_v = -first_v @ (adjugated(v_dot) @ adjugated(vt[..., k:, :]))
            return (np.concatenate((u_dot, other_u), axis=-1), s_dot,
                    adjugated(np.concatenate((v_dot, other_v), axis=-1)))
        u_dot, s_dot, v_dot = tangent_of_svd(as_read(a_dot, hermitian), u, s, adjugated(vt))
        return u_dot, s_dot, adjugated(v_dot)

    def batch(a, batched, full_matrices=True, compute_uv=True):
        return np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def thin_svd(a, hermitian):
    if hermitian:
        return np.linalg.svd(a, full_matrices=False, hermitian=True)
    return np.linalg.svd(a, full_matrices=False)


def of_vt(dvt):
    if dvt is None:
        return None
    return adjugated(dvt)


def of_the_first(u, du, k):
    """The adjoint of the first k columns, to which the other columns stay orthogonal."""
    if du is None:
        return None
    return du[..., :k] - conjugated(u[..., k:] @ (transposed(du[..., k:]) @ u[..., :k]))


def adjoint_of_svd(u, s, vt, du, ds, dv):
    """The adjoint of the thin SVD; an adjoint that is None is not used."""
    if du is None and dv is None:
        return (conjugated(u) * columns(ds)) @ conjugated(vt)
    if dv is None:
        return from_u(u, s, vt, du, ds)
    if du is None:
        return from_v(u, s, vt, ds, dv)
    return from_u(u, s, vt, du, ds) + from_v(u, s, vt, None, dv)


def from_u(u, s, vt, du, ds):
    inside = transposed(u) @ du
    core = 2 * over_gaps(skew(inside), s * s) * columns(s)
    if u.dtype.kind == "c":             # the free factors: u carries them, v does not
        phases = 1j * np.imag(np.diagonal(inside, axis1=-2, axis2=-1)) / s
        core = core + rows(phases) * np.eye(s.shape[-1], dtype=u.dtype)
    outside = (du - conjugated(u) @ inside) / columns(s)
    if ds is None:
        return (conjugated(u) @ core + outside) @ conjugated(vt)
    return (conjugated(u) * columns(ds) + conjugated(u) @ core + outside) @ conjugated(vt)


def from_v(u, s, vt, ds, dv):
    inside = conjugated(vt) @ dv
    core = 2 * rows(s) * over_gaps(skew(inside), s * s)
    outside = (dv - transposed(vt) @ inside) / columns(s)
    if ds is None:
        return conjugated(u) @ (core @ conjugated(vt) + adjugated(outside))
    return conjugated(u) @ (core @ conjugated(vt) + rows(ds) * conjugated(vt) + adjugated(outside))


def tangent_of_svd(a_dot, u, s, v):
    in_uv = adjugated(u) @ a_dot @ v
    off = without_diagonal(in_uv)
    u_turn = over_gaps(off * columns(s) + rows(s) * adjugated(off), s * s)
    v_turn = over_gaps(rows(s) * off + adjugated(off) * columns(s), s * s)
    u_dot = u @ u_turn + (a_dot @ v - u @ in_uv) / columns(s)
    v_dot = v @ v_turn + (adjugated(a_dot) @ u - v @ adjugated(in_uv)) / columns(s)
    if u.dtype.kind == "c":
        u_dot = u_dot + u * columns(1j * np.imag(np.diagonal(in_uv, axis1=-2, axis2=-1)) / s)
    return u_dot, diagonal_of(in_uv), v_dot


@general(np.linalg.svdvals, "a", samples=linalg_samples.any_matrices, memory=FRESH, raises=True)
class svdvals:
    def primal(a):
        return np.linalg.svdvals(a)

    def vjp_a(dy, a):
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        return (conjugated(u) * columns(dy)) @ conjugated(vt)

    def jvp_a(a_dot, a):
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        moved = np.sum(conjugated(u) * (a_dot @ adjugated(vt)), axis=-2)
        if a.dtype.kind == "c":
            return np.real(moved)
        return moved

    batch = same_call(np.linalg.svdvals)


# --- triangular and orthogonal ----------------------------------------------------------------------------------------

@static
def known_mode(mode):
    if mode not in ("reduced", "r"):
        raise ValueError(f"np.linalg.qr in mode {mode!r} has no derivative rule", 'Use mode="reduced".')


@general(np.linalg.qr, "a", samples=linalg_samples.orthogonalised, partial=True, memory=FRESH, raises=True,
         triangle=lambda mode="reduced": "upper" if mode == "r" else (None, "upper"))
class qr:
    """For at least as many rows as columns: with fewer, r is not square, and np.linalg.solve raises."""
    def primal(a, mode="reduced"):
        return np.linalg.qr(a, mode=mode)

    def vjp_a(dy, y, a, mode="reduced"):
        known_mode(mode)
        if mode == "r":
            q, r = np.linalg.qr(a)
            return over_right(conjugated(q @ from_lower(r @ transposed(dy))), r)
        q, r = y
        dq, dr = dy
        if dq is None:
            return over_right(conjugated(q @ from_lower(r @ transposed(dr))), r)
        if dr is None:
            return over_right(dq - conjugated(q @ from_lower(transposed(dq) @ q)), r)
        m = r @ transposed(dr) - transposed(dq) @ q
        return over_right(dq + conjugated(q @ from_lower(m)), r)

    def jvp_a(a_dot, y, a, mode="reduced"):
        known_mode(mode)
        if mode == "r":
            q, r = np.linalg.qr(a)
            inside = adjugated(q) @ over_right(a_dot, transposed(r))
            return (inside - turning(inside)) @ r
        q, r = y
        scaled = over_right(a_dot, transposed(r))
        inside = adjugated(q) @ scaled
        turn = turning(inside)
        return q @ (turn - inside) + scaled, (inside - turn) @ r

    def batch(a, batched, mode="reduced"):
        if mode != "reduced":
            by_example("a mode other than reduced")
        return np.linalg.qr(a)


def over_right(m, r):
    """m @ inverse of the transpose of r"""
    return transposed(np.linalg.solve(r, transposed(m)))


def turning(inside):
    """The rotation of q that keeps r triangular, with a real diagonal."""
    low = np.tril(inside, -1)
    if inside.dtype.kind == "c":
        return low - adjugated(low) + 1j * np.imag(inside - without_diagonal(inside))
    return low - transposed(low)


# --- any square matrix ------------------------------------------------------------------------------------------------

@general(np.linalg.eigvals, "a", samples=samples.spread_spectra, complex_result=True, lengths=square, memory=FRESH,
         raises=True)
class eigvals:
    def vjp_a(dy, a):
        w, v = np.linalg.eig(a)
        da = transposed((v * columns(dy)) @ np.linalg.inv(v))
        if a.dtype.kind == "c":
            return da
        return np.real(da)

    def jvp_a(a_dot, a):
        w, v = np.linalg.eig(a)
        return np.sum(transposed(np.linalg.inv(v)) * (a_dot @ v), axis=-2)

    batch = same_call(np.linalg.eigvals)


def phase_rows(v):
    """1 / v at the largest entry of each column, which LAPACK makes real, and 0 elsewhere."""
    size = np.abs(v)
    largest = np.arange(v.shape[-2])[:, None] == np.argmax(size, axis=-2, keepdims=True)
    return np.where(largest, 1 / np.where(largest, v, 1), 0)


@general(np.linalg.eig, "a", samples=samples.spread_spectra, complex_result=True, memory=FRESH, raises=True)
class eig:
    """Each column of v has length one, and its largest entry is real; the derivative keeps both properties."""
    def vjp_a(dy, y, a):
        w, v = y
        dw, dv = dy
        along = np.sum(dv * v, axis=-2)
        dv = dv - columns(np.real(along)) * np.conj(v)
        if v.dtype.kind == "c":
            dv = dv - 1j * columns(np.imag(along)) * phase_rows(v)
        turned = over_gaps(without_diagonal(transposed(v) @ dv), w)
        da = np.linalg.solve(transposed(v), (turned + columns(dw) * np.eye(w.shape[-1], dtype=a.dtype)) @ transposed(v))
        if a.dtype.kind == "c":
            return da
        return np.real(da)

    def jvp_a(a_dot, y, a):
        w, v = y
        turned = np.linalg.solve(v, a_dot @ v)
        free = v @ over_gaps(without_diagonal(turned), w)
        along = np.real(np.sum(np.conj(v) * free, axis=-2))
        if v.dtype.kind == "c":
            along = along + 1j * np.imag(np.sum(phase_rows(v) * free, axis=-2))
        return np.diagonal(turned, axis1=-2, axis2=-1), free - v * columns(along)

    batch = same_call(np.linalg.eig)
