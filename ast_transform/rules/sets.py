# SPDX-License-Identifier: Apache-2.0
"""Sorting by several keys, partitions, and sets, which are found by the first position of each distinct entry."""
import numpy as np
from numpy.lib import _arraysetops_impl as sets

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, general, static
from gradscribe.ast_transform.rules import arranging_samples as samples
from gradscribe.ast_transform.rules.batching import batched_partition
from gradscribe.ast_transform.rules.reductions import positive
from gradscribe.ast_transform.rules.shapes import along
from gradscribe.runtime.indexing import scatter_add


@static
def common_dtype(*arrays):
    return np.result_type(*(a.dtype for a in arrays))


# --- order ------------------------------------------------------------------------------------------------------------

@constant(np.lexsort, samples=samples.keys, sequence=("keys",), memory=FRESH)
class lexsort:
    def primal(keys, axis=-1):
        return np.lexsort(keys, axis=axis)


def ranks_along(x, axis):
    """The position of each entry in sorted order."""
    if x.ndim == 1:
        return np.argsort(np.argsort(x, kind="stable"))
    return np.argsort(np.argsort(x, axis=axis, kind="stable"), axis=axis)


def rearranged(values, of, like, axis):
    """Values that belong to the entries of one array, in the order of these entries in a rearranged array."""
    order = np.argsort(of, axis=axis, kind="stable")
    if values.ndim == 1:
        return values[order[ranks_along(like, axis)]]
    return np.take_along_axis(np.take_along_axis(values, order, axis=axis), ranks_along(like, axis), axis=axis)


@general(np.partition, "a", samples=samples.partitions, memory=FRESH)
class partition:
    def primal(a, kth, axis=-1, kind="introselect"):
        return np.partition(a, kth, axis=axis)

    def vjp_a(dy, y, a, axis=-1):
        if axis is None:
            return np.reshape(rearranged(dy, y, np.ravel(a), 0), a.shape)
        return rearranged(dy, y, a, axis)

    def jvp_a(a_dot, y, a, axis=-1):
        if axis is None:
            return rearranged(np.ravel(a_dot), np.ravel(a), y, 0)
        return rearranged(a_dot, a, y, axis)

    batch = batched_partition(np.partition)


@general(np.sort_complex, samples=samples.to_be_sorted, rewrite=True, memory=FRESH)
class sort_complex:
    def primal(a):
        ordered = np.sort(a, axis=-1)
        if ordered.dtype.kind == "c":
            return ordered
        return ordered.astype(complex_of(ordered))


@static
def complex_of(x):
    return np.dtype(np.complex64 if x.dtype.char in "bhBH" else np.complex128)


# --- sets -------------------------------------------------------------------------------------------------------------

@static
def counted_by_unique(axis=None, **flags):
    """For each result of np.unique, the axis whose length is the number of distinct entries."""
    first = 0 if axis is None else axis
    kept = [first, *(place for flag, place in (("return_index", 0), ("return_inverse", None), ("return_counts", 0))
                     if flags[flag])]
    return kept


def first_places(ar, axis, equal_nan):
    """The first position of each distinct entry."""
    if equal_nan:
        return np.unique(ar, return_index=True, axis=axis)[1]
    return np.unique(ar, return_index=True, axis=axis, equal_nan=False)[1]


def nothing_beside(dot, y):
    """The tangents of all results: that of the values, and none for indices and counts."""
    if len(y) == 2:
        return (dot, np.zeros_like(y[1]))
    if len(y) == 3:
        return (dot, np.zeros_like(y[1]), np.zeros_like(y[2]))
    return (dot, np.zeros_like(y[1]), np.zeros_like(y[2]), np.zeros_like(y[3]))


@general(np.unique, "ar", samples=samples.all_different, by_value=counted_by_unique, memory=FRESH)
class unique:
    def primal(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True):
        return np.unique(ar, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts,
                         axis=axis, equal_nan=equal_nan)

    def vjp_ar(dy, ar, return_index=False, return_inverse=False, return_counts=False, axis=None, equal_nan=True):
        d = dy[0] if return_index or return_inverse or return_counts else dy
        first = first_places(ar, axis, equal_nan)
        if axis is not None:
            return scatter_add(ar, along(positive(axis, ar.ndim), first), d)
        if ar.ndim == 1:
            return scatter_add(ar, first, d)
        return np.reshape(scatter_add(np.ravel(ar), first, d), ar.shape)

    def jvp_ar(ar_dot, y, ar, return_index=False, return_inverse=False, return_counts=False, axis=None,
               equal_nan=True):
        dot = np.take(ar_dot, first_places(ar, axis, equal_nan), axis=axis)
        if return_index or return_inverse or return_counts:
            return nothing_beside(dot, y)
        return dot


@general(np.unique_values, samples=samples.sets, rewrite=True, memory=FRESH)
class unique_values:
    def primal(x):
        return np.unique(x, equal_nan=False)


@general(np.unique_counts, samples=samples.sets, rewrite=True, memory=FRESH)
class unique_counts:
    def primal(x):
        values, counts = np.unique(x, return_counts=True, equal_nan=False)
        return sets.UniqueCountsResult(values, counts)


@general(np.unique_inverse, samples=samples.sets, rewrite=True, memory=FRESH)
class unique_inverse:
    def primal(x):
        values, inverse = np.unique(x, return_inverse=True, equal_nan=False)
        return sets.UniqueInverseResult(values, inverse)


@general(np.unique_all, samples=samples.sets, rewrite=True, memory=FRESH)
class unique_all:
    def primal(x):
        values, index, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
        return sets.UniqueAllResult(values, index, inverse, counts)


@general(np.union1d, samples=samples.two_sets, rewrite=True, memory=FRESH)
class union1d:
    def primal(ar1, ar2):
        return np.unique(np.concatenate((ar1, ar2), axis=None))


@general(np.intersect1d, samples=samples.shared_sets, rewrite=True, memory=FRESH)
class intersect1d:
    def primal(ar1, ar2, assume_unique=False, return_indices=False):
        ar1, ar2 = np.asarray(ar1), np.asarray(ar2)
        if return_indices:
            values, first = np.unique(ar1, return_index=True)
            others, second = np.unique(ar2, return_index=True)
            shared = np.isin(values, ar2)
            return values[shared].astype(common_dtype(ar1, ar2)), first[shared], second[np.isin(others, ar1)]
        values = np.unique(ar1)
        return values[np.isin(values, ar2)].astype(common_dtype(ar1, ar2))


@general(np.setdiff1d, samples=samples.two_sets, rewrite=True, memory=FRESH)
class setdiff1d:
    def primal(ar1, ar2, assume_unique=False):
        if assume_unique:
            values = np.ravel(ar1)
        else:
            values = np.unique(ar1)
        return values[np.isin(values, ar2, invert=True)]


@general(np.setxor1d, samples=samples.two_sets, rewrite=True, memory=FRESH)
class setxor1d:
    def primal(ar1, ar2, assume_unique=False):
        first, second = np.unique(ar1), np.unique(ar2)
        return np.sort(np.concatenate((first[np.isin(first, ar2, invert=True)],
                                       second[np.isin(second, ar1, invert=True)])))
