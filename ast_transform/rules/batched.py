# SPDX-License-Identifier: Apache-2.0
"""Whole-batch forms: what a call becomes where operands have an axis of examples in front.

A part takes what the record's signature names; `first` is the first argument, `batched` the names of the arguments that
have the axis (a list of arrays has it in all of them, or in none), `flags` says so of each of several positional
arguments, `rank` is the rank of one example's result, `count` the number of examples.  Ranks in a part are those with
the batch.  A function of each entry needs no part.  ByExample says that there is no such form: a loop calls the
function for each example.

>>> from gradscribe.ast_transform.core.rule import RULES
>>> RULES[np.sum].parts["batch"](np.ones((4, 2, 3)), ("x",)).shape
(4,)
"""
import builtins

import numpy as np

from gradscribe.ast_transform.core.rule import ByExample, static
from gradscribe.ast_transform.rules.batching import (
    aligned,
    batch,
    batch_each,
    by_example,
    everything,
    only,
    reduced,
    rows,
    shifted,
)
from gradscribe.runtime.broadcasting import broadcast_like
from gradscribe.runtime.derivatives import stop_gradient

# --- reductions and what goes along an axis -----------------------------------------------------------------

@batch_each(np.sum, np.mean, np.prod, np.max, np.min, np.any, np.all, np.count_nonzero)
def reduction(function):
    def part(first, batched, axis=None, keepdims=False):
        if keepdims:
            return function(first, axis=reduced(axis, first.ndim), keepdims=keepdims)
        return function(first, axis=reduced(axis, first.ndim))
    return part


@batch(np.median)
def median(first, batched, axis=None, keepdims=False):
    if everything(axis, first.ndim):
        if keepdims:
            by_example("keepdims over all axes")
        return np.median(rows(first), axis=1)
    return np.median(first, axis=shifted(axis), keepdims=keepdims)


@batch_each(np.var, np.std)
def variance(function):
    def part(first, batched, axis=None, ddof=0, keepdims=False):
        if keepdims:
            return function(first, axis=reduced(axis, first.ndim), ddof=ddof, keepdims=keepdims)
        if ddof == 0:
            return function(first, axis=reduced(axis, first.ndim))
        return function(first, axis=reduced(axis, first.ndim), ddof=ddof)
    return part


@batch_each(np.argmax, np.argmin, np.nanargmax, np.nanargmin)
def position(function):
    def part(first, batched, axis=None, keepdims=False):
        if axis is None:
            if keepdims:
                by_example("keepdims without an axis")
            return function(rows(first), axis=1)
        if keepdims:
            return function(first, axis=shifted(axis), keepdims=keepdims)
        return function(first, axis=shifted(axis))
    return part


@batch_each(np.cumsum, np.cumprod)
def cumulative(function):
    def part(first, batched, axis=None):
        if axis is None:
            return function(rows(first), axis=1)
        return function(first, axis=shifted(axis))
    return part


@batch(np.lib.stride_tricks.sliding_window_view)
def windows(x, batched, window_shape, axis=None):
    return np.lib.stride_tricks.sliding_window_view(x, window_shape, axis=reduced(axis, x.ndim))


@batch(np.sort)
def sort(first, batched, axis=-1):
    if axis is None:
        return np.sort(rows(first), axis=1)
    return np.sort(first, axis=shifted(axis))


@batch(np.argsort)
def argsort(first, batched, axis=-1, kind=None, stable=None):
    if axis is None:
        return np.argsort(rows(first), axis=1, kind=kind, stable=stable)
    return np.argsort(first, axis=shifted(axis), kind=kind, stable=stable)


@batch(np.diff)
def diff(first, batched, n=1, axis=-1):
    return np.diff(first, n=n, axis=shifted(axis))


@batch_each(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
def transformed_line(function):
    def part(first, batched, n=None, axis=-1, norm=None):
        return function(first, n=n, axis=shifted(axis), norm=norm)
    return part


@batch_each(np.fft.fft2, np.fft.ifft2)
def transformed_plane(function):
    def part(first, batched, s=None, axes=(-2, -1), norm=None):
        if axes is None:
            by_example("all axes")
        return function(first, s=s, axes=shifted(axes), norm=norm)
    return part


@batch_each(np.fft.fftn, np.fft.ifftn)
def transformed(function):
    def part(first, batched, s=None, axes=None, norm=None):
        if axes is None:
            if s is not None:
                by_example("lengths without axes")
            return function(first, axes=all_axes(first.ndim), norm=norm)
        return function(first, s=s, axes=shifted(axes), norm=norm)
    return part


@static
def all_axes(rank):
    return tuple(range(1, rank))


@batch_each(np.fft.fftshift, np.fft.ifftshift, np.flip)
def all_or_some(function):
    def part(first, batched, axes=None, axis=None):
        if axes is None and axis is None:
            return function(first, all_axes(first.ndim))
        if axes is None:
            return function(first, shifted(axis))
        return function(first, shifted(axes))
    return part


@batch_each(np.trace, np.diagonal)
def diagonal(function):
    def part(first, batched, offset=0, axis1=0, axis2=1):
        return function(first, offset=offset, axis1=shifted(axis1), axis2=shifted(axis2))
    return part


# --- shapes -------------------------------------------------------------------------------------------------

@batch(np.reshape)
def reshape(a, shape, batched, order="C"):
    if order != "C":
        by_example("another order")
    return np.reshape(a, (a.shape[0], *shape))


@batch(np.ravel)
def ravel(a, batched, order="C"):
    if order != "C":
        by_example("another order")
    if a.ndim == 1:
        return a[:, None]
    return rows(a)


@batch(np.expand_dims)
def expand_dims(a, axis, batched):
    return np.expand_dims(a, shifted(axis))


@batch(np.squeeze)
def squeeze(a, batched, units, axis=None):
    if axis is None:
        if len(units) == 0:
            return a
        return np.squeeze(a, axis=shifted(units))
    return np.squeeze(a, axis=shifted(axis))


@batch(np.atleast_1d)
def atleast_1d(a, batched):
    return aligned(a, 1)


@batch(np.atleast_2d)
def atleast_2d(a, batched):
    return aligned(a, 2)


@batch(np.ascontiguousarray, stop_gradient)
def same(first, batched):
    return first


@static
def turned(axes, rank):
    return (0, *(a % (rank - 1) + 1 for a in axes))


@batch(np.transpose)
def transpose(a, batched, axes=None):
    if a.ndim <= 2:
        return a
    if axes is not None:
        return np.transpose(a, turned(axes, a.ndim))
    if a.ndim == 3:
        return np.swapaxes(a, 1, 2)
    return np.transpose(a, backwards(a.ndim))


@static
def backwards(rank):
    return (0, *range(rank - 1, 0, -1))


@batch(np.matrix_transpose)
def matrix_transpose(a, batched):
    return np.matrix_transpose(a)


@batch(np.swapaxes)
def swapaxes(a, axis1, axis2, batched):
    return np.swapaxes(a, shifted(axis1), shifted(axis2))


@batch(np.moveaxis)
def moveaxis(a, source, destination, batched):
    return np.moveaxis(a, shifted(source), shifted(destination))


@batch(np.flipud)
def flipud(m, batched):
    return np.flip(m, 1)


@batch(np.fliplr)
def fliplr(m, batched):
    return np.flip(m, 2)


@batch(np.rot90)
def rot90(m, batched, k=1, axes=(0, 1)):
    return np.rot90(m, k, axes=shifted(axes))


@batch(np.roll)
def roll(a, shift, batched, axis=None):
    only(batched, "a")
    if axis is None:
        if a.ndim > 2:
            by_example("np.roll without an axis")
        return np.roll(a, shift, axis=1)
    return np.roll(a, shift, axis=shifted(axis))


@batch(np.concatenate)
def concatenate(arrays, batched, axis=0):
    if axis is None:
        by_example("np.concatenate without an axis")
    return np.concatenate(arrays, axis=shifted(axis))


@batch(np.stack)
def stack(arrays, batched, axis=0):
    return np.stack(arrays, axis=shifted(axis))


@batch(np.array)
def array(arrays, batched, rank):
    if rank != arrays[0].ndim:
        by_example("a list of lists")
    return np.stack(arrays, axis=1)


@batch_each(np.split, np.array_split)
def split(function):
    def part(ary, indices_or_sections, batched, axis=0):
        only(batched, "ary")
        return function(ary, indices_or_sections, axis=shifted(axis))
    return part


@batch(np.broadcast_to)
def broadcast_to(array, shape, batched, rank, count):
    return np.broadcast_to(aligned(array, rank), (count, *shape))


@batch(broadcast_like)
def filled_like(value, like, batched, rank, count):
    if "value" not in batched:
        return broadcast_like(value, like)
    if "like" in batched:
        return broadcast_like(aligned(value, rank), like)
    return np.broadcast_to(aligned(value, rank), (count, *like.shape))


@batch(np.repeat)
def repeat(a, repeats, batched, axis=None):
    only(batched, "a")
    if axis is None:
        if a.ndim == 1:
            return np.repeat(a[:, None], repeats, axis=1)
        return np.repeat(rows(a), repeats, axis=1)
    return np.repeat(a, repeats, axis=shifted(axis))


@static
def tiles(reps, rank):
    reps = reps if isinstance(reps, tuple) else (reps,)
    if len(reps) > rank - 1:
        raise ByExample("more repetitions than axes")
    return (1,) * (rank - len(reps)) + reps


@batch(np.tile)
def tile(A, reps, batched):
    return np.tile(A, tiles(reps, A.ndim))


@static
def paddings(pad_width, rank):
    """One pair for each axis, none of them for the batch."""
    width = np.asarray(pad_width)
    pairs = np.broadcast_to(width, (rank - 1, 2)).tolist()
    return ((0, 0), *map(tuple, pairs))


@batch(np.pad)
def pad(array, pad_width, batched, mode="constant", constant_values=0):
    only(batched, "array")
    if mode != "constant":
        return np.pad(array, paddings(pad_width, array.ndim), mode=mode)
    return np.pad(array, paddings(pad_width, array.ndim), constant_values=constant_values)


@batch_each(np.tril, np.triu)
def triangle(function):
    def part(m, batched, k=0):
        if m.ndim < 3:
            by_example("a triangle of a vector")
        return function(m, k=k)
    return part


@batch(np.diag)
def diag(v, batched, k=0):
    if v.ndim == 3:
        return np.diagonal(v, offset=k, axis1=1, axis2=2)
    if k != 0:
        by_example("a diagonal beside the main one")
    return v[:, :, None] * np.eye(v.shape[1], dtype=v.dtype)


# --- places -------------------------------------------------------------------------------------------------

@batch(np.take)
def take(a, indices, batched, axis=None):
    if "indices" not in batched:
        if axis is None:
            return np.take(rows(a), indices, axis=1)
        return np.take(a, indices, axis=shifted(axis))
    if "a" in batched:
        if a.ndim != 2 or indices.ndim != 2:
            by_example("places that differ")
        return np.take_along_axis(a, indices, axis=1)
    if axis is None and a.ndim > 1 or axis is not None and axis != 0:
        by_example("places that differ along another axis")
    return np.take(a, indices, axis=0)


@batch(np.take_along_axis)
def take_along_axis(arr, indices, batched, axis=-1):
    if axis is None or len(batched) != 2:
        by_example("only one of the two differs")
    return np.take_along_axis(arr, indices, axis=shifted(axis))


@batch(np.searchsorted)
def searchsorted(a, v, batched, side="left", sorter=None):
    only(batched, "v")
    return np.searchsorted(a, v, side=side, sorter=sorter)


@batch(np.digitize)
def digitize(x, bins, batched, right=False):
    only(batched, "x")
    return np.digitize(x, bins, right=right)


@batch(np.isin)
def isin(element, test_elements, batched, assume_unique=False, invert=False):
    only(batched, "element")
    return np.isin(element, test_elements, invert=invert)


@batch(np.nan_to_num)
def nan_to_num(x, batched, nan=0.0, posinf=None, neginf=None):
    only(batched, "x")
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@batch(builtins.round)
def rounded_by_python(number, batched, ndigits=None):
    if ndigits is not None:
        by_example("Python's round finds the nearest decimal number, NumPy's rounds a multiple of each number")
    return np.round(number)


@batch(np.round)
def rounded(a, batched, decimals=0):
    return np.round(a, decimals)


# --- arrays like others -------------------------------------------------------------------------------------

@batch_each(np.zeros_like, np.ones_like, np.empty_like)
def like(function):
    def part(a, batched, dtype=None, shape=None):
        if shape is not None:
            by_example("another shape")
        if dtype is None:
            return function(a)
        return function(a, dtype=dtype)
    return part


@batch(np.full_like)
def full_like(a, fill_value, batched, rank, count, dtype=None):
    if "fill_value" not in batched:
        return np.full_like(a, fill_value, dtype=dtype)
    if "a" in batched:
        return np.full_like(a, aligned(fill_value, rank), dtype=dtype)
    return np.full((count, *a.shape), aligned(fill_value, rank), dtype=a.dtype if dtype is None else dtype)


@batch(np.full)
def full(shape, fill_value, batched, rank, count, dtype=None):
    if dtype is None:
        return np.full((count, *shape), aligned(fill_value, rank))
    return np.full((count, *shape), aligned(fill_value, rank), dtype=dtype)

