"""Linear algebra.  Matrices stand on the last two axes, stacks before them.

Sources: M. B. Giles, Collected matrix derivative results for forward and reverse mode (2008); I. Murray,
Differentiation of the Cholesky decomposition (2016); J. Townsend, Differentiating the singular value decomposition
(2016).
Where NumPy reads one triangle only (cholesky, eigh) the matrix is taken as symmetric and so is its adjoint, as in JAX.
"""
import numpy as np

from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules.products import transposed
from gradscribe.ast_transform.rules.reductions import axis_list, refuse_complex, restore


def trace_of(m):
    if m.ndim == 2:
        return np.trace(m)
    return np.trace(m, axis1=-2, axis2=-1)


def on_matrices(s, a):
    """One number for each matrix of the stack, ready to meet it."""
    if a.ndim == 2:
        return s
    return s[..., None, None]


def symmetric(m):
    return (m + transposed(m)) / 2


def scaled_columns(m, s):
    """m @ diag(s)"""
    if m.ndim == 2:
        return m * s
    return m * s[..., None, :]


# --- inverse, solution, determinant -----------------------------------------------------------------------------------

@general(np.linalg.inv, "a", samples=samples.regular)
class inv:
    def vjp_a(dy, y):
        return -(transposed(y) @ dy @ transposed(y))

    def jvp_a(a_dot, y):
        return -(y @ a_dot @ y)


@general(np.linalg.solve, "a", "b", samples=samples.systems, unbroadcast=True)
class solve:
    def vjp_a(dy, y, a, b):
        if a.ndim == 2 and b.ndim == 1:
            return -np.outer(np.linalg.solve(a.T, dy), y)
        if b.ndim == 1:                 # (..., m, m) with (m,)
            return -(np.linalg.solve(transposed(a), dy[..., None]) * y[..., None, :])
        return -(np.linalg.solve(transposed(a), dy) @ transposed(y))

    def vjp_b(dy, a, b):
        if a.ndim > 2 and b.ndim == 1:
            return np.linalg.solve(transposed(a), dy[..., None])[..., 0]
        return np.linalg.solve(transposed(a), dy)

    def jvp_a(a_dot, y, a, b):
        if a.ndim > 2 and b.ndim == 1:
            return -np.linalg.solve(a, a_dot @ y[..., None])[..., 0]
        return -np.linalg.solve(a, a_dot @ y)

    def jvp_b(b_dot, a):
        return np.linalg.solve(a, b_dot)


@general(np.linalg.det, "a", samples=samples.regular)
class det:
    def vjp_a(dy, y, a):
        return on_matrices(dy * y, a) * transposed(np.linalg.inv(a))

    def jvp_a(a_dot, y, a):
        return y * trace_of(np.linalg.solve(a, a_dot))


@general(np.linalg.slogdet, "a", samples=samples.regular_real)
class slogdet:
    def vjp_a(dy, a):
        refuse_complex(a, "np.linalg.slogdet")
        return on_matrices(dy[1], a) * transposed(np.linalg.inv(a))

    def jvp_a(a_dot, y, a):
        refuse_complex(a, "np.linalg.slogdet")
        return np.zeros_like(y[0]), trace_of(np.linalg.solve(a, a_dot))


@general(np.linalg.matrix_power, samples=samples.powers, rewrite=True)
class matrix_power:
    def primal(a, n):
        whole_power(n)
        if n < 0:
            return power(np.linalg.inv(a), -n)
        if n == 0:
            return np.zeros_like(a) + np.eye(a.shape[-1], dtype=a.dtype)
        return power(a, n)


@static
def whole_power(n):
    if not isinstance(n, int):
        raise ValueError("np.linalg.matrix_power needs an integer that is known when transforming",
                         "Pass a literal, or an argument that is a plain number.")


def power(a, n):
    """By squaring."""
    if n == 1:
        return a
    half = power(a, n // 2)
    if n % 2 == 0:
        return half @ half
    return half @ half @ a


@general(np.linalg.pinv, "a", samples=samples.full_ranks)
class pinv:
    def vjp_a(dy, y, a):
        refuse_complex(a, "np.linalg.pinv")
        yt = transposed(y)
        dyt = transposed(dy)
        left = dyt @ y @ yt
        right = yt @ y @ dyt
        return left - a @ (y @ left) + right - (right @ y) @ a - yt @ dy @ yt

    def jvp_a(a_dot, y, a):
        refuse_complex(a, "np.linalg.pinv")
        yt = transposed(y)
        a_dott = transposed(a_dot)
        left = y @ yt @ a_dott
        right = a_dott @ yt @ y
        return left - (left @ a) @ y + right - y @ (a @ right) - y @ a_dot @ y


@general(np.linalg.multi_dot, samples=samples.chains, rewrite=True)
class multi_dot:
    def primal(arrays):
        return chain(arrays)


def chain(arrays):
    if len(arrays) == 1:
        return arrays[0]
    return chain(arrays[:-1]) @ arrays[-1]


# --- factorisations ---------------------------------------------------------------------------------------------------

def lower_half(m):
    """The lower triangle, half of the diagonal."""
    return (np.tril(m) + np.tril(m, -1)) / 2


@general(np.linalg.cholesky, "a", samples=samples.positive_definite, symmetric=("a",))
class cholesky:
    def vjp_a(dy, y, a):
        refuse_complex(a, "np.linalg.cholesky")
        yt = transposed(y)
        half = np.linalg.solve(yt, lower_half(yt @ dy))
        return symmetric(np.linalg.solve(yt, transposed(half)))

    def jvp_a(a_dot, y, a):
        refuse_complex(a, "np.linalg.cholesky")
        half = np.linalg.solve(y, symmetric(a_dot))
        return y @ lower_half(np.linalg.solve(y, transposed(half)))


def over_gaps(m, w):
    """m_ij / (w_j - w_i). 0 where both are 0 (the diagonal, say); infinite where only the gap is."""
    if w.ndim == 1:
        gap = w - w[:, None]
    else:
        gap = w[..., None, :] - w[..., None]
    return m / np.where(gap == 0, m == 0, gap)


def skew(m):
    return (m - transposed(m)) / 2


def without_diagonal(m):
    return np.tril(m, -1) + np.triu(m, 1)


@general(np.linalg.eigh, "a", samples=samples.symmetric_matrices, symmetric=("a",))
class eigh:
    def primal(a):
        return np.linalg.eigh(a)

    def vjp_a(dy, y, a):
        refuse_complex(a, "np.linalg.eigh")
        w, v = y
        vt = transposed(v)
        turned = v @ over_gaps(skew(vt @ dy[1]), w) @ vt
        return scaled_columns(v, dy[0]) @ vt + turned

    def jvp_a(a_dot, y, a):
        refuse_complex(a, "np.linalg.eigh")
        w, v = y
        turned = transposed(v) @ symmetric(a_dot) @ v
        return np.diagonal(turned, axis1=-2, axis2=-1), v @ over_gaps(without_diagonal(turned), w)


@general(np.linalg.eigvalsh, "a", samples=samples.symmetric_matrices, symmetric=("a",))
class eigvalsh:
    def primal(a):
        return np.linalg.eigvalsh(a)

    def vjp_a(dy, a):
        refuse_complex(a, "np.linalg.eigvalsh")
        w, v = np.linalg.eigh(a)
        return scaled_columns(v, dy) @ transposed(v)

    def jvp_a(a_dot, a):
        refuse_complex(a, "np.linalg.eigvalsh")
        w, v = np.linalg.eigh(a)
        return np.sum(v * (symmetric(a_dot) @ v), axis=-2)


@static
def thin(full_matrices, compute_uv):
    if compute_uv and full_matrices:
        raise ValueError("np.linalg.svd with full_matrices=True has no derivative rule", "Pass full_matrices=False.")


def rows(s):
    """diag(s) @ m is rows(s) * m"""
    return s[..., None]


def columns(s):
    """m @ diag(s) is m * columns(s)"""
    if s.ndim == 1:
        return s
    return s[..., None, :]


@general(np.linalg.svd, "a", samples=samples.singular)
class svd:
    def primal(a, full_matrices=True, compute_uv=True):
        return np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)

    def vjp_a(dy, y, a, full_matrices=True, compute_uv=True):
        thin(full_matrices, compute_uv)
        refuse_complex(a, "np.linalg.svd")
        if not compute_uv:
            u, s, vt = np.linalg.svd(a, full_matrices=False)
            return (u * columns(dy)) @ vt
        u, s, vt = y
        du, ds, dvt = dy
        v, dv = transposed(vt), transposed(dvt)
        in_u = transposed(u) @ du
        in_v = vt @ dv
        core = 2 * over_gaps(skew(in_u), s * s) * columns(s) + 2 * rows(s) * over_gaps(skew(in_v), s * s)
        outside_u = (du - u @ in_u) / columns(s)
        outside_v = (dv - v @ in_v) / columns(s)
        return (u * columns(ds) + u @ core + outside_u) @ vt + u @ transposed(outside_v)

    def jvp_a(a_dot, y, a, full_matrices=True, compute_uv=True):
        thin(full_matrices, compute_uv)
        refuse_complex(a, "np.linalg.svd")
        if not compute_uv:
            u, s, vt = np.linalg.svd(a, full_matrices=False)
            return np.sum(u * (a_dot @ transposed(vt)), axis=-2)
        u, s, vt = y
        v = transposed(vt)
        in_uv = transposed(u) @ a_dot @ v
        off = without_diagonal(in_uv)
        u_turn = over_gaps(off * columns(s) + rows(s) * transposed(off), s * s)
        v_turn = over_gaps(rows(s) * off + transposed(off) * columns(s), s * s)
        u_dot = u @ u_turn + (a_dot @ v - u @ in_uv) / columns(s)
        v_dot = v @ v_turn + (transposed(a_dot) @ u - v @ transposed(in_uv)) / columns(s)
        return u_dot, np.diagonal(in_uv, axis1=-2, axis2=-1), transposed(v_dot)


@general(np.linalg.svdvals, "a", samples=samples.tall)
class svdvals:
    def primal(a):
        return np.linalg.svdvals(a)

    def vjp_a(dy, a):
        refuse_complex(a, "np.linalg.svdvals")
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        return (u * columns(dy)) @ vt

    def jvp_a(a_dot, a):
        refuse_complex(a, "np.linalg.svdvals")
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        return np.sum(u * (a_dot @ transposed(vt)), axis=-2)


@static
def reduced_mode(mode):
    if mode != "reduced":
        raise ValueError(f"np.linalg.qr in mode {mode!r} has no derivative rule", 'Use mode="reduced".')


@general(np.linalg.qr, "a", samples=samples.tall)
class qr:
    """For at least as many rows as columns: with fewer, r is not square and np.linalg.solve says so."""
    def primal(a, mode="reduced"):
        return np.linalg.qr(a, mode=mode)

    def vjp_a(dy, y, a, mode="reduced"):
        reduced_mode(mode)
        refuse_complex(a, "np.linalg.qr")
        q, r = y
        dq, dr = dy
        m = r @ transposed(dr) - transposed(dq) @ q
        inside = dq + q @ (np.tril(m) + transposed(np.tril(m, -1)))
        return transposed(np.linalg.solve(r, transposed(inside)))

    def jvp_a(a_dot, y, a, mode="reduced"):
        reduced_mode(mode)
        refuse_complex(a, "np.linalg.qr")
        q, r = y
        scaled = transposed(np.linalg.solve(transposed(r), transposed(a_dot)))
        inside = transposed(q) @ scaled
        turn = np.tril(inside, -1) - transposed(np.tril(inside, -1))
        return q @ (turn - inside) + scaled, (inside - turn) @ r


@general(np.linalg.eigvals, "a", samples=samples.spread_spectra, complex_result=True)
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


def phase_rows(v):
    """1 / v at the largest entry of each column, which LAPACK makes real; 0 elsewhere."""
    size = np.abs(v)
    largest = np.arange(v.shape[-2])[:, None] == np.argmax(size, axis=-2, keepdims=True)
    return np.where(largest, 1 / np.where(largest, v, 1), 0)


@general(np.linalg.eig, "a", samples=samples.spread_spectra, complex_result=True)
class eig:
    """Each column of v has length one and its largest entry is real: its derivative keeps both."""
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


# --- norms ------------------------------------------------------------------------------------------------------------

@static
def norm_kind(x, ord, axis):
    """Which formula np.linalg.norm takes."""
    axes = axis_list(x, axis)
    if ord is None or (len(axes) == 2 and ord == "fro") or (len(axes) == 1 and ord == 2):
        return "euclidean"
    if x.dtype.kind == "c":
        raise ValueError(f"np.linalg.norm with ord={ord!r} of complex arrays has no derivative rule",
                         "Take the norm of np.abs(z), or ord=None.")
    if len(axes) == 1:
        return {1: "sum", np.inf: "extreme", -np.inf: "extreme", 0: "count"}.get(ord, "power")
    if len(axes) == 2 and x.ndim == 2 and ord in (1, -1, np.inf, -np.inf, 2, -2, "nuc"):
        return {1: "columns", -1: "columns", np.inf: "rows", -np.inf: "rows"}.get(ord, "singular")
    raise ValueError(f"np.linalg.norm with ord={ord!r} over {len(axes)} axes of {x.ndim} has no derivative rule",
                     "Take the norms one matrix at a time, in a loop.")


@static
def summed_axis(axis, kind):
    """The axis of a matrix whose entries are summed: the columns' sums go down axis 0."""
    rows_first = axis is None or axis[0] % 2 == 0
    return 0 if (kind == "columns") == rows_first else 1


def slope(y, x, ord, axis):
    """What the change of x is multiplied with to give the change of the norm; y is laid along x."""
    kind = norm_kind(x, ord, axis)
    if kind == "sum":
        return np.sign(x)
    if kind == "count":
        return np.zeros_like(x)
    if kind == "power":
        return np.sign(x) * (np.abs(x) / y) ** (ord - 1)
    if kind == "extreme":
        ties = (np.abs(x) == y).astype(x.dtype)
        return np.sign(x) * ties / np.sum(ties, axis=axis, keepdims=True)
    if kind == "columns" or kind == "rows":
        ties = (np.sum(np.abs(x), axis=summed_axis(axis, kind), keepdims=True) == y).astype(x.dtype)
        return np.sign(x) * (ties / np.sum(ties))
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    if ord == "nuc":
        return u @ vt
    if ord == 2:
        return np.outer(u[:, 0], vt[0])
    return np.outer(u[:, -1], vt[-1])


@general(np.linalg.norm, "x", samples=samples.norms, ties=True)
class norm:
    def primal(x, ord=None, axis=None, keepdims=False):
        return np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)

    def vjp_x(dy, y, x, ord=None, axis=None, keepdims=False):
        if norm_kind(x, ord, axis) == "euclidean":
            if x.dtype.kind == "c":
                return restore(dy / y, x, axis, keepdims) * np.conj(x)
            return restore(dy / y, x, axis, keepdims) * x
        return restore(dy, x, axis, keepdims) * slope(restore(y, x, axis, keepdims), x, ord, axis)

    def jvp_x(x_dot, y, x, ord=None, axis=None, keepdims=False):
        if norm_kind(x, ord, axis) == "euclidean":
            if x.dtype.kind == "c":
                return np.real(np.sum(np.conj(x) * x_dot, axis=axis, keepdims=keepdims)) / y
            return np.sum(x * x_dot, axis=axis, keepdims=keepdims) / y
        return np.sum(slope(restore(y, x, axis, keepdims), x, ord, axis) * x_dot, axis=axis, keepdims=keepdims)
