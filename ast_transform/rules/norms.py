# SPDX-License-Identifier: Apache-2.0
"""Norms, and the condition number of a matrix."""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import linalg_samples as samples
from gradscribe.ast_transform.rules.batching import by_example, reduced, rows
from gradscribe.ast_transform.rules.linalg import conjugated
from gradscribe.ast_transform.rules.reductions import axis_list, restore


@static
def norm_kind(x, ord, axis):
    """The kind of formula that np.linalg.norm uses."""
    axes = axis_list(x, axis)
    if ord is None or (len(axes) == 2 and ord == "fro") or (len(axes) == 1 and ord == 2):
        return "euclidean"
    if len(axes) == 1:
        return {1: "sum", np.inf: "extreme", -np.inf: "extreme", 0: "count"}.get(ord, "power")
    return {1: "columns", -1: "columns", np.inf: "rows", -np.inf: "rows"}.get(ord, "singular")


@static
def matrix_axes(x, axis):
    """The non-negative axes of rows and columns; None if they are the last two, in order."""
    axes = (0, 1) if axis is None else tuple(a % x.ndim for a in axis)
    return None if axes == (x.ndim - 2, x.ndim - 1) else axes


@static
def summed_axis(x, axis, kind):
    """The axis along which a matrix norm sums: for column sums, the axis of the rows."""
    axes = (0, 1) if axis is None else axis
    return axes[0] if kind == "columns" else axes[1]


def direction(x):
    """The derivative of each entry's absolute value; 0 at 0."""
    if x.dtype.kind == "c":
        return np.conj(x) / np.where(x == 0, 1, np.abs(x))
    return np.sign(x)


def slope(y, x, ord, axis):
    """The derivative of the norm in each entry of x; y is the norm, broadcast along x."""
    kind = norm_kind(x, ord, axis)
    if kind == "sum":
        return direction(x)
    if kind == "count":
        return np.zeros_like(x)
    if kind == "power":
        return direction(x) * (np.abs(x) / y) ** (ord - 1)
    if kind == "extreme":
        ties = (np.abs(x) == y).astype(y.dtype)
        return direction(x) * ties / np.sum(ties, axis=axis, keepdims=True)
    if kind == "columns" or kind == "rows":
        ties = (np.sum(np.abs(x), axis=summed_axis(x, axis, kind), keepdims=True) == y).astype(y.dtype)
        return direction(x) * (ties / np.sum(ties, axis=axis, keepdims=True))
    axes = matrix_axes(x, axis)
    if axes is None:
        return of_singular_values(x, ord)
    return np.moveaxis(of_singular_values(np.moveaxis(x, axes, (-2, -1)), ord), (-2, -1), axes)


def of_singular_values(m, ord):
    u, s, vt = np.linalg.svd(m, full_matrices=False)
    if ord == "nuc":
        return conjugated(u @ vt)
    if ord == 2 and m.ndim == 2:
        return conjugated(np.outer(u[:, 0], vt[0]))
    if ord == 2:
        return conjugated(u[..., :1] * vt[..., :1, :])
    if m.ndim == 2:
        return conjugated(np.outer(u[:, -1], vt[-1]))
    return conjugated(u[..., -1:] * vt[..., -1:, :])


@general(np.linalg.norm, "x", samples=samples.norms, ties=True, memory=FRESH, raises=True)
class norm:
    def primal(x, ord=None, axis=None, keepdims=False):
        return np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)

    def vjp_x(dy, y, x, ord=None, axis=None, keepdims=False):
        if norm_kind(x, ord, axis) == "euclidean":
            return restore(dy / y, x, axis, keepdims) * conjugated(x)
        return restore(dy, x, axis, keepdims) * slope(restore(y, x, axis, keepdims), x, ord, axis)

    def jvp_x(x_dot, y, x, ord=None, axis=None, keepdims=False):
        if norm_kind(x, ord, axis) == "euclidean":
            if x.dtype.kind == "c":
                return np.real(np.sum(np.conj(x) * x_dot, axis=axis, keepdims=keepdims)) / y
            return np.sum(x * x_dot, axis=axis, keepdims=keepdims) / y
        moved = np.sum(slope(restore(y, x, axis, keepdims), x, ord, axis) * x_dot, axis=axis, keepdims=keepdims)
        if x.dtype.kind == "c":
            return np.real(moved)
        return moved

    def batch(x, batched, ord=None, axis=None, keepdims=False):
        if axis is None and x.ndim > 3:
            if ord is not None or keepdims:
                by_example("more than two axes")
            return np.linalg.norm(rows(x), axis=1)
        return np.linalg.norm(x, ord=ord, axis=reduced(axis, x.ndim), keepdims=keepdims)


@general(np.linalg.matrix_norm, samples=samples.matrix_norms, rewrite=True, memory=FRESH, raises=True)
class matrix_norm:
    def primal(x, *, keepdims=False, ord="fro"):
        return np.linalg.norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


@static
def ones(n):
    return (1,) * n


@general(np.linalg.vector_norm, samples=samples.vector_norms, rewrite=True, memory=FRESH, raises=True)
class vector_norm:
    def primal(x, *, axis=None, keepdims=False, ord=2):
        if axis is None and ord == 2:
            return np.linalg.norm(x, keepdims=keepdims)
        if axis is None and keepdims:
            return np.reshape(np.linalg.norm(np.ravel(x), ord=ord), ones(x.ndim))
        if axis is None:
            return np.linalg.norm(np.ravel(x), ord=ord)
        if isinstance(axis, tuple):
            return of_several_axes(x, axis, keepdims, ord)
        return np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)


def of_several_axes(x, axis, keepdims, ord):
    if x.dtype.kind in "biu":
        x = x.astype(float)
    if ord == 2:
        return np.sqrt(np.sum(np.abs(x) ** 2, axis=axis, keepdims=keepdims))
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(np.abs(x).dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1 / ord)


@general(np.linalg.cond, samples=samples.conditions, rewrite=True, memory=FRESH, raises=True)
class cond:
    def primal(x, p=None):
        if p is None or p == 2:
            s = np.linalg.svdvals(x)
            return s[..., 0] / s[..., -1]
        if p == -2:
            s = np.linalg.svdvals(x)
            return s[..., -1] / s[..., 0]
        return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))
