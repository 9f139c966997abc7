# SPDX-License-Identifier: Apache-2.0
"""NumPy functions that take functions, written in Python: the reader inlines each in place of its call."""
import numpy as np

from gradscribe.ast_transform.core.memory import ALIASES, FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import arranging_samples as samples
from gradscribe.ast_transform.rules.reductions import positive
from gradscribe.ast_transform.rules.shapes import is_sequence


def entry_by_entry(function, dtype, first, *rows):
    """np.vectorize(function) applied to vectors, and numbers beside them."""
    out = np.empty(first.shape[0], dtype=dtype)
    for i in range(first.shape[0]):
        out[i] = function(*[row[i] if np.ndim(row) == 1 else row for row in rows])
    return out


@general(np.apply_over_axes, samples=samples.over_axes, rewrite=True, memory=ALIASES)
class apply_over_axes:
    def primal(func, a, axes):
        return over_each(func, np.asarray(a), axes if is_sequence(axes) else (axes,))


def over_each(func, a, axes):
    if len(axes) == 0:
        return a
    part = func(a, axes[0])
    return over_each(func, part if np.ndim(part) == a.ndim else np.expand_dims(part, axes[0]), axes[1:])


@static
def empty_lines(ndim):
    if ndim == 0:
        raise ValueError("np.apply_along_axis needs an axis: a number has none", "Call the function.")


def each_line(func1d, lines, args, kwargs):
    return np.array([func1d(line, *args, **kwargs) for line in lines])


@general(np.apply_along_axis, samples=samples.along_axes, rewrite=True, as_given=("args",), memory=FRESH)
class apply_along_axis:
    def primal(func1d, axis, arr, *args, **kwargs):
        arr = np.asarray(arr)
        empty_lines(arr.ndim)
        if arr.ndim == 1:
            return np.asarray(func1d(arr, *args, **kwargs))
        axis = positive(axis, arr.ndim)
        moved = arr if axis == arr.ndim - 1 else np.moveaxis(arr, axis, -1)
        if arr.ndim == 2:
            out = each_line(func1d, moved, args, kwargs)
        else:
            out = each_line(func1d, np.reshape(moved, (-1, moved.shape[-1])), args, kwargs)
            out = np.reshape(out, moved.shape[:-1] + out.shape[1:])
        return out if out.ndim < arr.ndim or axis == arr.ndim - 1 else back_in_place(out, arr.ndim, axis)


def back_in_place(out, ndim, axis):
    """Move the axes of each result from the end to the place of the line's axis."""
    return np.moveaxis(out, tuple_range(ndim - 1, out.ndim), tuple_range(axis, axis + out.ndim - ndim + 1))


@static
def tuple_range(start, stop):
    return tuple(range(start, stop))


@general(np.fromfunction, samples=samples.from_functions, rewrite=True, memory=ALIASES)
class fromfunction:
    def primal(function, shape, *, dtype=float, **kwargs):
        if len(shape) == 1:
            return function(np.arange(shape[0], dtype=dtype), **kwargs)
        grid = np.indices(shape, dtype=dtype)
        return function(*[grid[k] for k in range(len(shape))], **kwargs)
