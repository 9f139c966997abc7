# SPDX-License-Identifier: Apache-2.0
"""Histograms: differentiable in weights and edges; counts have no derivative."""
import numpy as np

from gradscribe.ast_transform.core.memory import ALIASES
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import numeric_samples as samples


@static
def is_count(bins, what):
    """Whether `bins` is the number of bins; otherwise it is their edges."""
    if isinstance(bins, str):
        raise ValueError(f"{what}: how many bins {bins!r} makes depends on the data",
                         "Make the edges outside: np.histogram_bin_edges.")
    return isinstance(bins, int) or getattr(bins, "ndim", None) == 0


@static
def is_point(low, high):
    return isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == high


@static
def edge_dtype(a):
    dtype = np.result_type(a.dtype if hasattr(a, "dtype") else type(a))
    return dtype if dtype.kind == "f" else np.dtype(float)


@static
def only_real(a):
    if hasattr(a, "dtype") and a.dtype.kind == "c":
        raise ValueError("histograms of complex numbers have no derivative rule", "Take their real parts.")


def even_edges(a, bins, limits):
    """Edges of equal bins between the limits, or between the smallest and largest entry."""
    only_real(a)
    if limits is None:
        low, high = np.min(a), np.max(a)
        half = (low == high).astype(edge_dtype(a)) / 2
        return np.linspace(low - half, high + half, bins + 1)
    half = 0.5 if is_point(limits[0], limits[1]) else 0
    edges = np.linspace(limits[0] - half, limits[1] + half, bins + 1)
    return edges.astype(edge_dtype(a))


def edges_of(a, bins, limits, what):
    if is_count(bins, what):
        return even_edges(a, bins, limits)
    return bins


@general(np.histogram_bin_edges, samples=samples.bins, rewrite=True, arrays=("a", "bins"), as_given=("range",),
         memory=ALIASES)
class histogram_bin_edges:
    def primal(a, bins=10, range=None):
        return edges_of(a, bins, range, "np.histogram_bin_edges")


def inside(a, edges):
    return (a >= edges[0]) & (a <= edges[-1])


def in_a_row(a):
    if a.ndim == 1:
        return a
    return np.ravel(a)


def bin_of(a, edges):
    """The bin of each entry; the last edge belongs to the last bin."""
    return np.searchsorted(edges[1:-1], a, side="right")


@general(np.histogram, samples=samples.histograms, rewrite=True, arrays=("a", "bins", "weights"), as_given=("range",),
         memory=ALIASES)
class histogram:
    def primal(a, bins=10, range=None, density=None, weights=None):
        edges = edges_of(a, bins, range, "np.histogram")
        values = in_a_row(a)
        counted = inside(values, edges)
        if weights is None:
            counts = np.bincount(bin_of(values[counted], edges), minlength=edges.size - 1)
        else:
            held = np.where(counted, in_a_row(weights), 0)
            counts = np.bincount(bin_of(values, edges), held, edges.size - 1)
            counts = counts.astype(weights.dtype)
        if density:
            width = np.diff(edges)
            return counts / width.astype(float) / np.sum(counts), edges
        return counts, edges


@static
def is_edges(bins):
    """Whether a list is the edges of both axes, rather than a pair."""
    return isinstance(bins, (tuple, list)) and len(bins) != 2


@static
def columns_only(sample):
    if not isinstance(sample, (tuple, list)):
        raise ValueError("np.histogramdd of an array: how many columns it has is not known when transforming",
                         "Give a list of its columns: [x[:, 0], x[:, 1]].")


@static
def common_dtype(columns):
    """The dtype of the array that NumPy makes of the columns."""
    dtype = np.result_type(*(c.dtype for c in columns))
    if dtype.kind == "c":
        raise ValueError("np.histogramdd of complex numbers has no derivative rule", "Take their real parts.")
    return dtype


def edges_each(columns, bins, limits, k):
    """The edges of each axis; the same for all axes if `bins` is not a list."""
    own = bins[k] if isinstance(bins, (tuple, list)) else bins
    edges = edges_of(columns[k], own, None if limits is None else limits[k], "np.histogramdd")
    if k + 1 == len(columns):
        return [edges]
    return [edges, *edges_each(columns, bins, limits, k + 1)]


def inside_all(columns, edges):
    if len(columns) == 1:
        return inside(columns[0], edges[0])
    return inside_all(columns[:-1], edges[:-1]) & inside(columns[-1], edges[-1])


def bin_of_all(columns, edges):
    """The flat index of each point's bin, row by row over the bins of all axes."""
    last = bin_of(columns[-1], edges[-1])
    if len(columns) == 1:
        return last
    return bin_of_all(columns[:-1], edges[:-1]) * (edges[-1].size - 1) + last


def entries(shape):
    if len(shape) == 1:
        return shape[0]
    return shape[0] * entries(shape[1:])


def volume(counts, edges, k):
    """Counts divided by the widths of their bins along each axis."""
    if k == len(edges):
        return counts
    return volume(counts / np.diff(edges[k])[across(len(edges), k)], edges, k + 1)


@static
def across(ndim, axis):
    return (slice(None),) + (None,) * (ndim - 1 - axis)


@general(np.histogramdd, samples=samples.spaces_of_bins, rewrite=True, arrays=("weights",),
         sequence=("sample", "bins"), as_given=("range",), memory=ALIASES)
class histogramdd:
    def primal(sample, bins=10, range=None, density=None, weights=None):
        columns_only(sample)
        sample = [column.astype(common_dtype(sample)) for column in sample]
        edges = edges_each(sample, bins, range, 0)
        counted = inside_all(sample, edges)
        shape = tuple(e.size - 1 for e in edges)
        held = counted.astype(float) if weights is None else np.where(counted, weights, 0)
        counts = np.reshape(np.bincount(bin_of_all(sample, edges), held, entries(shape)), shape)
        if density:
            return volume(counts, edges, 0) / np.sum(counts), edges
        return counts, edges


@general(np.histogram2d, samples=samples.planes_of_bins, rewrite=True, arrays=("x", "y", "weights"),
         sequence=("bins",), as_given=("range",), memory=ALIASES)
class histogram2d:
    def primal(x, y, bins=10, range=None, density=None, weights=None):
        each = [bins, bins] if is_edges(bins) else bins
        counts, edges = np.histogramdd([x, y], each, range, density, weights)
        return counts, edges[0], edges[1]
