# SPDX-License-Identifier: Apache-2.0
"""Least squares and tensor equations; and np.linalg's aliases of products, transposes, diagonals and traces."""
import numpy as np

from gradscribe.ast_transform.core.kinds import Array, Sequence, unknown
from gradscribe.ast_transform.core.memory import ALIAS, FRESH, LOCKED
from gradscribe.ast_transform.core.rule import constant, general, static
from gradscribe.ast_transform.rules import linalg_samples as samples
from gradscribe.ast_transform.rules.linalg import adjugated, conjugated


@constant(np.linalg.matrix_rank, memory=FRESH, raises=True)
class matrix_rank:
    def primal(A, tol=None, hermitian=False):
        return np.linalg.matrix_rank(A, tol, hermitian)


# --- least squares ----------------------------------------------------------------------------------------------------

@static
def facts_of_lstsq(a, b, rcond=None):
    """The facts of np.linalg.lstsq; an example cannot show the number of residual sums, which depends on the rank."""
    dtype = np.result_type(*(x.dtype if x.kind in "fc" else float for x in (a, b)), np.float32)
    real = np.empty(0, dtype).real.dtype
    return Sequence("tuple", (Array(dtype, (a.dims[-1], *b.dims[1:])), Array(real, (unknown("?residuals"),)),
                              Array(np.dtype(np.int32), ()), Array(real, (unknown("?values"),))))


def pairs(x, y):
    """x y^T"""
    if x.ndim == 1:
        return np.outer(x, y)
    return x @ y.T


def plus(a, b):
    if a is None:
        return b
    if b is None:
        return a
    return a + b


@general(np.linalg.lstsq, "a", "b", samples=samples.least_squares, partial=True, fact=facts_of_lstsq,
         memory=FRESH, raises=True)
class lstsq:
    """Assumes that a has full rank, so that rcond discards nothing."""
    def primal(a, b, rcond=None):
        return np.linalg.lstsq(a, b, rcond)

    def vjp_a(dy, y, a, b):
        x, missed = y[0], b - a @ y[0]
        return plus(plus(from_solution(dy[0], x, missed, a), from_residuals(dy[1], x, missed)), from_values(dy[3], a))

    def vjp_b(dy, y, a, b):
        if dy[0] is None and dy[1] is None:
            return np.zeros_like(b)
        if dy[0] is None:
            return 2 * conjugated(b - a @ y[0]) * by_columns(dy[1], b)
        if dy[1] is None:
            return np.linalg.pinv(a).T @ dy[0]
        return np.linalg.pinv(a).T @ dy[0] + 2 * conjugated(b - a @ y[0]) * by_columns(dy[1], b)

    def jvp_a(a_dot, y, a, b):
        x, missed = y[0], b - a @ y[0]
        inverse = np.linalg.pinv(a)
        moved = a_dot @ x
        free = adjugated(a_dot) @ (adjugated(inverse) @ x)
        x_dot = inverse @ (adjugated(inverse) @ (adjugated(a_dot) @ missed) - moved) + free - inverse @ (a @ free)
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        s_dot = np.real(np.sum(conjugated(u) * (a_dot @ adjugated(vt)), axis=-2))
        return x_dot, change_of_residuals(-moved, missed, y[1]), np.zeros_like(y[2]), s_dot

    def jvp_b(b_dot, y, a, b):
        missed = b - a @ y[0]
        residuals_dot = change_of_residuals(b_dot, missed, y[1])
        return np.linalg.pinv(a) @ b_dot, residuals_dot, np.zeros_like(y[2]), np.zeros_like(y[3])


def from_solution(dx, x, missed, a):
    if dx is None:
        return None
    inverse = np.linalg.pinv(a)
    pulled = inverse.T @ dx
    free = pairs(inverse.T @ conjugated(x), conjugated(dx - a.T @ pulled))
    return pairs(conjugated(missed), inverse @ conjugated(pulled)) + free - pairs(pulled, x)


def from_residuals(dr, x, missed):
    if dr is None:
        return None
    return -2 * pairs(conjugated(missed) * by_columns(dr, missed), x)


def by_columns(dr, b):
    """The adjoint of each column's sum of residuals; 0 if there are no sums, because the rank is too small."""
    if b.ndim == 1:
        return np.sum(dr)
    return np.concatenate((dr, np.zeros(b.shape[1], dtype=dr.dtype)))[:b.shape[1]]


def from_values(ds, a):
    if ds is None:
        return None
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (conjugated(u) * ds) @ conjugated(vt)


def change_of_residuals(moved, missed, residuals):
    """The tangents of the residuals, which are empty if a has no more rows than columns."""
    return np.atleast_1d(2 * np.real(np.sum(conjugated(missed) * moved, axis=0)))[:residuals.shape[0]]


# --- equations of tensors ---------------------------------------------------------------------------------------------

def product_of(shape):
    if len(shape) == 0:
        return 1
    if len(shape) == 1:
        return shape[0]
    return shape[0] * product_of(shape[1:])


@general(np.linalg.tensorinv, samples=samples.tensor_inverses, rewrite=True, memory=FRESH, raises=True)
class tensorinv:
    def primal(a, ind=2):
        rows = product_of(a.shape[:ind])
        return np.reshape(np.linalg.inv(np.reshape(a, (rows, -1))), a.shape[ind:] + a.shape[:ind])


@static
def moved_back(ndim, axes):
    """The permutation that moves the axes of the solution to the end."""
    axes = tuple(k % ndim for k in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    return tuple(k for k in range(ndim) if k not in axes) + axes


@general(np.linalg.tensorsolve, samples=samples.tensor_systems, rewrite=True, arrays=("a", "b"), memory=FRESH,
         raises=True)
class tensorsolve:
    def primal(a, b, axes=None):
        if axes is not None:
            return solved(np.transpose(a, moved_back(a.ndim, axes)), b)
        return solved(a, b)


def solved(a, b):
    shape = a.shape[b.ndim:]
    return np.reshape(np.linalg.solve(np.reshape(a, (-1, product_of(shape))), np.ravel(b)), shape)


# --- aliases ----------------------------------------------------------------------------------------------------------

@general(np.linalg.matmul, samples=samples.products, rewrite=True, memory=FRESH, raises=True)
class matmul:
    def primal(x1, x2):
        return x1 @ x2


@general(np.linalg.outer, samples=samples.vectors, rewrite=True, arrays=("x1", "x2"), memory=FRESH, raises=True)
class outer:
    def primal(x1, x2):
        two_vectors(x1, x2)
        return np.outer(x1, x2)


@static
def two_vectors(a, b):
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"np.linalg.outer takes two vectors, these arrays have ranks {a.ndim} and {b.ndim}",
                         "np.outer takes arrays of any rank.")


@general(np.linalg.cross, samples=samples.spatial, rewrite=True, arrays=("x1", "x2"), memory=FRESH, raises=True)
class cross:
    def primal(x1, x2, *, axis=-1):
        in_space(x1.shape[axis], x2.shape[axis])
        if axis == -1:
            return np.cross(x1, x2)
        return np.cross(x1, x2, axis=axis)


@static
def in_space(m, n):
    if 2 in (m, n):
        raise ValueError("np.linalg.cross takes vectors of three components", "np.cross takes those of two as well.")


@general(np.linalg.vecdot, samples=samples.pairs_of_vectors, rewrite=True, arrays=("x1", "x2"), memory=FRESH,
         raises=True)
class vecdot:
    def primal(x1, x2, *, axis=-1):
        if x1.dtype.kind == "c":
            return np.sum(np.conj(x1) * x2, axis=axis)
        return np.sum(x1 * x2, axis=axis)


@general(np.linalg.tensordot, samples=samples.contractions, rewrite=True, memory=FRESH, raises=True)
class tensordot:
    def primal(x1, x2, *, axes=2):
        return np.tensordot(x1, x2, axes=axes)


@general(np.linalg.matrix_transpose, samples=samples.stacks, rewrite=True, memory=ALIAS, raises=True)
class matrix_transpose:
    def primal(x):
        if x.ndim == 2:
            return x.T
        return np.swapaxes(x, -1, -2)


@general(np.linalg.diagonal, samples=samples.offset_stacks, rewrite=True, memory=LOCKED, raises=True)
class diagonal:
    def primal(x, *, offset=0):
        return np.diagonal(x, offset=offset, axis1=-2, axis2=-1)


@general(np.linalg.trace, samples=samples.offset_stacks, rewrite=True, memory=FRESH, raises=True)
class trace:
    def primal(x, *, offset=0):
        if x.ndim == 2 and offset == 0:
            return np.trace(x)
        return np.trace(x, offset=offset, axis1=-2, axis2=-1)
