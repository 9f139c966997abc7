"""Equations of tensors; and np.linalg's own names for products and for what moves entries."""
import numpy as np

from gradscribe.ast_transform.core.rule import constant, general, static
from gradscribe.ast_transform.rules import linalg_samples as samples


@constant(np.linalg.matrix_rank)
class matrix_rank:
    def primal(A, tol=None, hermitian=False):
        return np.linalg.matrix_rank(A, tol, hermitian)


# --- equations of tensors ---------------------------------------------------------------------------------------------

def product_of(shape):
    if len(shape) == 0:
        return 1
    if len(shape) == 1:
        return shape[0]
    return shape[0] * product_of(shape[1:])


@general(np.linalg.tensorinv, samples=samples.tensor_inverses, rewrite=True)
class tensorinv:
    def primal(a, ind=2):
        rows = product_of(a.shape[:ind])
        return np.reshape(np.linalg.inv(np.reshape(a, (rows, -1))), a.shape[ind:] + a.shape[:ind])


@static
def moved_back(ndim, axes):
    """The order of axes in which those that the solution has come last."""
    axes = tuple(k % ndim for k in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    return tuple(k for k in range(ndim) if k not in axes) + axes


@general(np.linalg.tensorsolve, samples=samples.tensor_systems, rewrite=True)
class tensorsolve:
    def primal(a, b, axes=None):
        if axes is not None:
            return solved(np.transpose(a, moved_back(a.ndim, axes)), b)
        return solved(a, b)


def solved(a, b):
    shape = a.shape[b.ndim:]
    return np.reshape(np.linalg.solve(np.reshape(a, (-1, product_of(shape))), np.ravel(b)), shape)


# --- second names -----------------------------------------------------------------------------------------------------

@general(np.linalg.matmul, samples=samples.products, rewrite=True)
class matmul:
    def primal(x1, x2):
        return x1 @ x2


@general(np.linalg.outer, samples=samples.vectors, rewrite=True)
class outer:
    def primal(x1, x2):
        two_vectors(x1, x2)
        return np.outer(x1, x2)


@static
def two_vectors(a, b):
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"np.linalg.outer takes two vectors, these arrays have ranks {a.ndim} and {b.ndim}",
                         "np.outer takes arrays of any rank.")


@general(np.linalg.cross, samples=samples.spatial, rewrite=True)
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


@general(np.linalg.vecdot, samples=samples.pairs_of_vectors, rewrite=True)
class vecdot:
    def primal(x1, x2, *, axis=-1):
        if x1.dtype.kind == "c":
            return np.sum(np.conj(x1) * x2, axis=axis)
        return np.sum(x1 * x2, axis=axis)


@general(np.linalg.tensordot, samples=samples.contractions, rewrite=True)
class tensordot:
    def primal(x1, x2, *, axes=2):
        return np.tensordot(x1, x2, axes=axes)


@general(np.linalg.matrix_transpose, samples=samples.stacks, rewrite=True)
class matrix_transpose:
    def primal(x):
        if x.ndim == 2:
            return x.T
        return np.swapaxes(x, -1, -2)


@general(np.linalg.diagonal, samples=samples.offset_stacks, rewrite=True)
class diagonal:
    def primal(x, *, offset=0):
        return np.diagonal(x, offset=offset, axis1=-2, axis2=-1)


@general(np.linalg.trace, samples=samples.offset_stacks, rewrite=True)
class trace:
    def primal(x, *, offset=0):
        if x.ndim == 2 and offset == 0:
            return np.trace(x)
        return np.trace(x, offset=offset, axis1=-2, axis2=-1)
