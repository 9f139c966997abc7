# SPDX-License-Identifier: Apache-2.0
"""Whole-batch forms of statistics, spacings and arrangements; rules/batched.py says what they are given."""
import math

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
    several,
    shifted,
)


@batch_each(np.nanmax, np.nanmin)
def reduction_over_numbers(function):
    def part(first, batched, axis=None, keepdims=False):
        if keepdims:
            return function(first, axis=reduced(axis, first.ndim), keepdims=keepdims)
        return function(first, axis=reduced(axis, first.ndim))
    return part


@batch_each(np.nanvar, np.nanstd)
def variance_over_numbers(function):
    def part(first, batched, axis=None, ddof=0, keepdims=False):
        return function(first, axis=reduced(axis, first.ndim), ddof=ddof, keepdims=keepdims)
    return part


@batch_each(np.quantile, np.nanquantile)
def quantile(function):
    def part(a, q, batched, axis=None, method="linear", keepdims=False):
        only(batched, "a")
        if q.ndim > 1 or q.ndim == 1 and function is np.nanquantile:
            by_example("several quantiles of no example have no axis for them")
        whole = everything(axis, a.ndim)
        if keepdims and (whole or several(axis)):
            by_example("keepdims over several axes")
        if not whole and several(axis):
            by_example("several axes, which NumPy cannot take of no example")
        if whole:
            found = function(rows(a), q, axis=1, method=method)
        else:
            found = function(a, q, axis=shifted(axis), method=method, keepdims=keepdims)
        if q.ndim == 0:
            return found
        return np.moveaxis(found, 1, 0)
    return part


@batch(np.interp)
def interp(x, xp, fp, batched, left=None, right=None, period=None):
    only(batched, "x")
    return np.interp(x, xp, fp, left=left, right=right, period=period)


@batch(np.unwrap)
def unwrap(p, batched, discont=None, axis=-1, period=2 * math.pi):
    return np.unwrap(p, discont=discont, axis=shifted(axis), period=period)


@batch(np.linspace)
def linspace(start, stop, batched, rank, num=50, endpoint=True, dtype=None, axis=0):
    if rank < 1:
        by_example("no points")
    first = aligned(start, rank - 1) if "start" in batched else start
    last = aligned(stop, rank - 1) if "stop" in batched else stop
    return np.linspace(first, last, num, endpoint=endpoint, dtype=dtype, axis=shifted(axis))


@batch(np.geomspace)
def geomspace(start, stop, batched, rank, num=50, endpoint=True, axis=0):
    first = aligned(start, rank - 1) if "start" in batched else start
    last = aligned(stop, rank - 1) if "stop" in batched else stop
    return np.geomspace(first, last, num, endpoint=endpoint, axis=shifted(axis))


@batch(np.polyval)
def polyval(p, x, batched):
    only(batched, "x")
    return np.polyval(p, x)


@batch_each(np.frexp, np.modf)
def two_results(function):
    def part(x, batched):
        return function(x)
    return part


# --- arrangements -------------------------------------------------------------------------------------------

@batch_each(np.partition, np.argpartition)
def partition(function):
    def part(a, kth, batched, axis=-1):
        only(batched, "a")
        if axis is None:
            return function(rows(a), kth, axis=1)
        return function(a, kth, axis=shifted(axis))
    return part


@batch(np.delete)
def delete(arr, obj, batched, axis=None):
    only(batched, "arr")
    if axis is None:
        return np.delete(rows(arr), obj, axis=1)
    return np.delete(arr, obj, axis=shifted(axis))


@batch(np.atleast_3d)
def atleast_3d(a, batched):
    if a.ndim == 1:
        return a[:, None, None, None]
    if a.ndim == 2:
        return a[:, None, :, None]
    if a.ndim == 3:
        return a[:, :, :, None]
    return a


@static
def alike(ranks_of):
    return len(set(ranks_of)) == 1


@batch(np.choose)
def choose(a, choices, batched, mode="raise"):
    if not alike([c.ndim for c in choices]):
        by_example("choices of several ranks")
    if "a" in batched and "choices" in batched and a.ndim != choices[0].ndim:
        by_example("choices of another rank")
    if "a" not in batched and choices[0].ndim - 1 < a.ndim:
        by_example("choices of another rank")
    if "choices" not in batched and a.ndim - 1 < choices[0].ndim:
        by_example("choices of another rank")
    return np.choose(a, choices, mode=mode)


@batch(np.kron)
def kron(a, b, batched):
    if len(batched) == 2:
        if a.ndim != 2 or b.ndim != 2:
            by_example("matrices")
        return np.reshape(a[:, :, None] * b[:, None, :], (a.shape[0], a.shape[1] * b.shape[1]))
    if "a" in batched:
        if a.ndim != 2 or b.ndim != 1:
            by_example("matrices")
        return np.reshape(a[:, :, None] * b, (a.shape[0], a.shape[1] * b.shape[0]))
    if a.ndim != 1 or b.ndim != 2:
        by_example("matrices")
    return np.reshape(a[:, None] * b[:, None, :], (b.shape[0], a.shape[0] * b.shape[1]))


@static
def contraction(first, second, axes, batched):
    """np.tensordot as np.einsum: ranks of one example, the axes that are summed, which of a and b have the batch."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    if isinstance(axes, int):
        pairs = [(first - axes + k, k) for k in range(axes)]
    else:
        left, right = ((n,) if isinstance(n, int) else tuple(n) for n in axes)
        pairs = [(i % first, j % second) for i, j in zip(left, right)]
    if first + second > 20:
        raise ByExample("many axes")
    one, two = letters[:first], list(letters[first:first + second])
    for i, j in pairs:
        two[j] = one[i]
    two = "".join(two)
    summed = {one[i] for i, _ in pairs}
    out = "".join(c for c in one + two if c not in summed)
    return f"{'z' * ('a' in batched)}{one},{'z' * ('b' in batched)}{two}->z{out}"


@static
def ranks(a, b, batched):
    return a - ("a" in batched), b - ("b" in batched)


@batch(np.tensordot)
def tensordot(a, b, batched, axes=2):
    first, second = ranks(a.ndim, b.ndim, batched)
    return np.einsum(contraction(first, second, axes, batched), a, b)


@batch(math.log)
def logarithm(x, batched, base=None):
    if base is None:
        return np.log(x)
    return np.log(x) / np.log(base)
