# SPDX-License-Identifier: Apache-2.0
"""Order statistics, functions that ignore NaN, covariances.

The derivative of a quantile depends on the ranks of the entries: the weight of an entry falls from 1 to 0 within a
distance of one rank from the quantile.
"""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import numeric_samples as samples
from gradscribe.ast_transform.rules.batching import (
    batched_reduction,
    by_example,
    everything,
    only,
    over_several,
    reduced,
    rows,
    shifted,
)
from gradscribe.ast_transform.rules.masked import in_double
from gradscribe.ast_transform.rules.reductions import (
    axis_list,
    conjugated,
    count,
    mean_of_ties,
    rank_of,
    real_sum,
    reduced_index,
    restore,
    spread_to_ties,
)

# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def may_be_nan(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind in "fc"


@static
def real_dtype(x):
    """The real dtype of counts of entries of x."""
    dtype = np.dtype(getattr(x, "dtype", type(x)))
    return np.zeros(0, dtype).real.dtype if dtype.kind in "fc" else np.dtype(float)


@static
def is_complex(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind == "c"


# --- functions that ignore NaN ----------------------------------------------------------------------------------------

def filled(a, value):
    if may_be_nan(a):
        return np.where(np.isnan(a), value, a)
    return a


def number_held(a, axis, keepdims):
    """The number of entries that are not NaN."""
    return np.sum((~np.isnan(a)).astype(real_dtype(a)), axis=axis, keepdims=keepdims)


def number_along(a, axis):
    """The same as number_held, with axes added so that it broadcasts with a."""
    if reduced_index(a, axis, False) is None:
        return number_held(a, axis, False)
    return number_held(a, axis, True)


def mean_held(a, axis):
    if len(axis_list(a, axis)) == a.ndim:
        return np.nanmean(a)
    if reduced_index(a, axis, False) is None:
        return np.nanmean(a, axis=axis)
    return np.nanmean(a, axis=axis, keepdims=True)


def gap_from_mean(a, axis):
    """The deviation of each entry from the mean; 0 for NaN."""
    return np.where(np.isnan(a), 0, a - mean_held(a, axis))


def held_degrees(a, axis, ddof, keepdims):
    if ddof == 0:
        return number_held(a, axis, keepdims)
    if ddof == 1:
        return number_held(a, axis, keepdims) - 1
    return np.maximum(number_held(a, axis, keepdims) - ddof, 0)


@general(np.nansum, samples=samples.with_gaps, rewrite=True, arrays=("a",), memory=FRESH)
class nansum:
    def primal(a, axis=None, dtype=None, *, keepdims=False):
        return np.sum(filled(a, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@general(np.nanprod, samples=samples.with_gaps, rewrite=True, arrays=("a",), memory=FRESH)
class nanprod:
    def primal(a, axis=None, dtype=None, *, keepdims=False):
        return np.prod(filled(a, 1), axis=axis, dtype=dtype, keepdims=keepdims)


@general(np.nancumsum, samples=samples.scans_with_gaps, rewrite=True, arrays=("a",), memory=FRESH)
class nancumsum:
    def primal(a, axis=None, dtype=None):
        return np.cumsum(filled(a, 0), axis=axis, dtype=dtype)


@general(np.nancumprod, samples=samples.scans_with_gaps, rewrite=True, arrays=("a",), memory=FRESH)
class nancumprod:
    def primal(a, axis=None, dtype=None):
        return np.cumprod(filled(a, 1), axis=axis, dtype=dtype)


@general(np.nanmean, samples=samples.with_gaps, rewrite=True, arrays=("a",), memory=FRESH)
class nanmean:
    def primal(a, axis=None, *, keepdims=False):
        if may_be_nan(a):
            return np.sum(filled(a, 0), axis=axis, keepdims=keepdims) / number_held(a, axis, keepdims)
        return np.mean(a, axis=axis, keepdims=keepdims)


def batched_variance(function):
    def part(first, batched, axis=None, ddof=0, keepdims=False):
        return function(first, axis=reduced(axis, first.ndim), ddof=ddof, keepdims=keepdims)
    return part


@general(np.nanvar, "a", samples=samples.variances_with_gaps, memory=FRESH)
class nanvar:
    def primal(a, axis=None, *, ddof=0, keepdims=False):
        return np.nanvar(a, axis=axis, ddof=ddof, keepdims=keepdims)

    def vjp_a(dy, a, axis=None, ddof=0, keepdims=False):
        share = dy / held_degrees(a, axis, ddof, keepdims)
        return 2 * restore(share, a, axis, keepdims) * conjugated(gap_from_mean(a, axis))

    def jvp_a(a_dot, a, axis=None, ddof=0, keepdims=False):
        return 2 * real_sum(gap_from_mean(a, axis), a_dot, axis, keepdims) / held_degrees(a, axis, ddof, keepdims)

    batch = batched_variance(np.nanvar)


@general(np.nanstd, "a", samples=samples.variances_with_gaps, memory=FRESH)
class nanstd:
    def primal(a, axis=None, *, ddof=0, keepdims=False):
        return np.nanstd(a, axis=axis, ddof=ddof, keepdims=keepdims)

    def vjp_a(dy, y, a, axis=None, ddof=0, keepdims=False):
        share = dy / (held_degrees(a, axis, ddof, keepdims) * np.where(y == 0, 1, y))
        return restore(share, a, axis, keepdims) * conjugated(gap_from_mean(a, axis))

    def jvp_a(a_dot, y, a, axis=None, ddof=0, keepdims=False):
        moved = real_sum(gap_from_mean(a, axis), a_dot, axis, keepdims)
        return moved / (held_degrees(a, axis, ddof, keepdims) * np.where(y == 0, 1, y))

    batch = batched_variance(np.nanstd)


@general(np.nanmax, "a", samples=samples.with_gaps_and_entries, ties=True, memory=FRESH, raises=True)
class nanmax:
    def primal(a, axis=None, *, keepdims=False):
        return np.nanmax(a, axis=axis, keepdims=keepdims)

    def vjp_a(dy, y, a, axis=None, keepdims=False):
        return spread_to_ties(dy, y, a, axis, keepdims)

    def jvp_a(a_dot, y, a, axis=None, keepdims=False):
        return mean_of_ties(a_dot, y, a, axis, keepdims)

    batch = batched_reduction(np.nanmax)


@general(np.nanmin, "a", samples=samples.with_gaps_and_entries, ties=True, memory=FRESH, raises=True)
class nanmin:
    def primal(a, axis=None, *, keepdims=False):
        return np.nanmin(a, axis=axis, keepdims=keepdims)

    def vjp_a(dy, y, a, axis=None, keepdims=False):
        return spread_to_ties(dy, y, a, axis, keepdims)

    def jvp_a(a_dot, y, a, axis=None, keepdims=False):
        return mean_of_ties(a_dot, y, a, axis, keepdims)

    batch = batched_reduction(np.nanmin)


# --- quantiles --------------------------------------------------------------------------------------------------------

@static
def known_method(method, what):
    if method not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ValueError(f"{what}: the method {method!r} has no derivative rule",
                         "Choose linear, lower, higher, midpoint or nearest.")


@static
def smooth_in_q(method, what):
    known_method(method, what)
    if method != "linear":
        raise ValueError(f"{what} with method={method!r} jumps where q changes: it has no derivative in q",
                         "Choose method='linear', or keep q constant.")


@static
def at_most_a_vector(q, what):
    if np.ndim(q) > 1:
        raise ValueError(f"{what} with several axes of q has no derivative rule", "Ravel q, and reshape the result.")


@static
def several(q):
    return np.ndim(q) == 1


@static
def before_all(ndim):
    """The index that puts a vector along a new first axis."""
    return (slice(None),) + (None,) * ndim


@static
def each_restored(x, axis, keepdims):
    """The same as reduced_index, with an axis for q before the others."""
    index = reduced_index(x, axis, keepdims)
    if index is None and not keepdims and axis is not None:     # leading axes were reduced
        index = tuple(None if i in axis_list(x, axis) else slice(None) for i in range(x.ndim))
    if index is None and axis is None and not keepdims:
        index = (None,) * x.ndim
    return None if index is None else (slice(None), *index)


@static
def after_q(x, axis):
    axes = tuple(a + 1 for a in axis_list(x, axis))
    return axes[0] if len(axes) == 1 else axes


@static
def all_but_first(x):
    return 1 if x.ndim == 2 else tuple(range(1, x.ndim))


def restore_each(dy, x, axis, keepdims):
    index = each_restored(x, axis, keepdims)
    if index is None:
        return dy
    return dy[index]


def weights_at(rank, place, method):
    """The weight of each entry in the quantile, by its rank."""
    if method == "linear":
        return np.maximum(0, 1 - np.abs(rank - place))
    if method == "lower":
        return rank == np.floor(place)
    if method == "higher":
        return rank == np.ceil(place)
    if method == "nearest":
        return rank == np.rint(place)
    return 0.5 * (rank == np.floor(place)) + 0.5 * (rank == np.ceil(place))


def quantile_weights(a, q, axis, method):
    """The weights of all entries; if q is a vector, with an axis for q before those of a."""
    rank = rank_of(a, axis)
    if several(q):
        return weights_at(rank, q[before_all(a.ndim)] * (count(a, axis) - 1), method).astype(a.dtype)
    return weights_at(rank, q * (count(a, axis) - 1), method).astype(a.dtype)


def quantile_steps(a, q, axis):
    """The derivative of the quantile in q, as weights of all entries."""
    rank, last = rank_of(a, axis), count(a, axis) - 1
    place = q[before_all(a.ndim)] * last if several(q) else q * last
    return last * ((rank == np.ceil(place)).astype(a.dtype) - (rank == np.floor(place)).astype(a.dtype))


def held_weights(a, q, axis, method):
    """The same as quantile_weights, for the entries that are not NaN, which are first in sorted order."""
    rank, last = rank_of(a, axis), number_along(a, axis) - 1
    if several(q):
        return weights_at(rank, q[before_all(a.ndim)] * last, method).astype(a.dtype)
    return weights_at(rank, q * last, method).astype(a.dtype)


def held_steps(a, q, axis):
    rank, last = rank_of(a, axis), number_along(a, axis) - 1
    place = q[before_all(a.ndim)] * last if several(q) else q * last
    return last * ((rank == np.ceil(place)).astype(a.dtype) - (rank == np.floor(place)).astype(a.dtype))


def weighed_adjoint(dy, weights, a, q, axis, keepdims):
    if several(q):
        return np.sum(restore_each(dy, a, axis, keepdims) * weights, axis=0)
    return restore(dy, a, axis, keepdims) * weights


def weighed_sum(weights, a, q, axis, keepdims):
    if several(q):
        return np.sum(weights * a, axis=after_q(a, axis), keepdims=keepdims)
    return np.sum(weights * a, axis=axis, keepdims=keepdims)


def adjoint_of_q(moved, q):
    """The adjoint of q: the sum over the results that each q affects."""
    if several(q):
        axes = all_but_first(moved)
        return moved if axes == () else np.sum(moved, axis=axes)
    return np.sum(moved)


def tangent_of_q(q_dot, steps, q):
    if several(q):
        return q_dot[before_all(steps.ndim - 1)] * steps
    return q_dot * steps


def batched_quantile(function):
    def part(a, q, batched, axis=None, method="linear", keepdims=False):
        only(batched, "a")
        if q.ndim > 1 or q.ndim == 1 and function is np.nanquantile:
            by_example("several quantiles of no example have no axis for them")
        whole = everything(axis, a.ndim)
        if keepdims and (whole or over_several(axis)):
            by_example("keepdims over several axes")
        if not whole and over_several(axis):
            by_example("several axes, which NumPy cannot take of no example")
        if whole:
            found = function(rows(a), q, axis=1, method=method)
        else:
            found = function(a, q, axis=shifted(axis), method=method, keepdims=keepdims)
        if q.ndim == 0:
            return found
        return np.moveaxis(found, 1, 0)
    return part


@general(np.quantile, "a", "q", samples=samples.quantiles, expand=True, memory=FRESH, raises=True, cell=True)
class quantile:
    def primal(a, q, axis=None, *, method="linear", keepdims=False):
        return np.quantile(a, q, axis=axis, method=method, keepdims=keepdims)

    def vjp_a(dy, a, q, axis=None, method="linear", keepdims=False):
        known_method(method, "np.quantile")
        at_most_a_vector(q, "np.quantile")
        return weighed_adjoint(dy, quantile_weights(a, q, axis, method), a, q, axis, keepdims)

    def jvp_a(a_dot, a, q, axis=None, method="linear", keepdims=False):
        known_method(method, "np.quantile")
        at_most_a_vector(q, "np.quantile")
        return weighed_sum(quantile_weights(a, q, axis, method), a_dot, q, axis, keepdims)

    def vjp_q(dy, a, q, axis=None, method="linear", keepdims=False):
        smooth_in_q(method, "np.quantile")
        at_most_a_vector(q, "np.quantile")
        return adjoint_of_q(dy * weighed_sum(quantile_steps(a, q, axis), a, q, axis, keepdims), q)

    def jvp_q(q_dot, a, q, axis=None, method="linear", keepdims=False):
        smooth_in_q(method, "np.quantile")
        at_most_a_vector(q, "np.quantile")
        return weighed_sum(tangent_of_q(q_dot, quantile_steps(a, q, axis), q), a, q, axis, keepdims)

    batch = batched_quantile(np.quantile)


@general(np.nanquantile, "a", "q", samples=samples.quantiles_with_gaps, expand=True, memory=FRESH, raises=True,
         cell=True)
class nanquantile:
    def primal(a, q, axis=None, *, method="linear", keepdims=False):
        return np.nanquantile(a, q, axis=axis, method=method, keepdims=keepdims)

    def vjp_a(dy, a, q, axis=None, method="linear", keepdims=False):
        known_method(method, "np.nanquantile")
        at_most_a_vector(q, "np.nanquantile")
        return weighed_adjoint(dy, held_weights(a, q, axis, method), a, q, axis, keepdims)

    def jvp_a(a_dot, a, q, axis=None, method="linear", keepdims=False):
        known_method(method, "np.nanquantile")
        at_most_a_vector(q, "np.nanquantile")
        return weighed_sum(held_weights(a, q, axis, method), a_dot, q, axis, keepdims)

    def vjp_q(dy, a, q, axis=None, method="linear", keepdims=False):
        smooth_in_q(method, "np.nanquantile")
        at_most_a_vector(q, "np.nanquantile")
        return adjoint_of_q(dy * weighed_sum(held_steps(a, q, axis), filled(a, 0), q, axis, keepdims), q)

    def jvp_q(q_dot, a, q, axis=None, method="linear", keepdims=False):
        smooth_in_q(method, "np.nanquantile")
        at_most_a_vector(q, "np.nanquantile")
        return weighed_sum(tangent_of_q(q_dot, held_steps(a, q, axis), q), filled(a, 0), q, axis, keepdims)

    batch = batched_quantile(np.nanquantile)


@general(np.percentile, samples=samples.percentiles, rewrite=True, arrays=("a", "q"), memory=FRESH)
class percentile:
    def primal(a, q, axis=None, *, method="linear", keepdims=False):
        return np.quantile(a, q / 100, axis=axis, method=method, keepdims=keepdims)


@general(np.nanpercentile, samples=samples.percentiles_with_gaps, rewrite=True, arrays=("a", "q"), memory=FRESH)
class nanpercentile:
    def primal(a, q, axis=None, *, method="linear", keepdims=False):
        return np.nanquantile(a, q / 100, axis=axis, method=method, keepdims=keepdims)


@general(np.nanmedian, samples=samples.with_gaps_and_entries, rewrite=True, arrays=("a",), memory=FRESH)
class nanmedian:
    def primal(a, axis=None, *, keepdims=False):
        return np.nanquantile(a, 0.5, axis=axis, keepdims=keepdims)


# --- covariances ------------------------------------------------------------------------------------------------------

@static
def rows_only(m, y, what):
    for each in (m, y):
        if each is not None and np.ndim(each) > 2:
            raise ValueError(f"{what} takes one or two axes, {np.ndim(each)} are given", "Reshape the observations.")


@static
def degrees_lost(ddof, bias):
    if ddof is None:
        return 0 if bias else 1
    if not isinstance(ddof, int):
        raise ValueError("np.cov takes as ddof a whole number that is known when transforming", "Write a literal.")
    return ddof


@static
def double(m, y, dtype):
    """The dtype of a covariance, which is at least float64 unless another one is requested."""
    if dtype is not None:
        return np.dtype(dtype)
    return np.result_type(m.dtype, np.float64) if y is None else np.result_type(m.dtype, y.dtype, np.float64)


def rows_of(m, rowvar):
    if m.ndim == 1:
        return m[None]
    if rowvar:
        return m
    return np.transpose(m)


def variables(m, y, rowvar):
    """The variables: one as a vector, several as rows."""
    if y is not None:
        return np.concatenate((rows_of(m, rowvar), rows_of(y, rowvar)))
    if m.ndim == 1:
        return m
    return rows_of(m, rowvar)


def adjoined(x):
    if x.ndim == 1:
        return np.conj(x) if is_complex(x) else x
    return np.conj(np.transpose(x)) if is_complex(x) else np.transpose(x)


@static
def has_observations(x):
    return x.has_entries((x.ndim - 1,)) if hasattr(x, "has_entries") else x.shape[-1] > 0


def freedom(whole, ddof, some=True):
    if ddof == 0:
        return whole
    if ddof == 1 and some:
        return whole - 1
    return max(whole - ddof, 0)


def gaps(x):
    if x.ndim == 1:
        return x - np.mean(x)
    return x - np.mean(x, axis=1, keepdims=True)


def weighed_gaps(x, weights, whole):
    if x.ndim == 1:
        return x - np.sum(x * weights) / whole
    return x - np.sum(x * weights, axis=1, keepdims=True) / whole


def covariance(x, ddof, weights, aweights):
    """The covariance of the rows of x; `weights`: all weights of observations, `aweights`: those other than counts."""
    if weights is None:
        gap = gaps(x)
        return gap @ adjoined(gap) / freedom(x.shape[-1], ddof, has_observations(x))
    whole = np.sum(weights)
    gap = weighed_gaps(x, weights, whole)
    if ddof == 0 or aweights is None:
        return (gap * weights) @ adjoined(gap) / freedom(whole, ddof)
    return (gap * weights) @ adjoined(gap) / (whole - ddof * np.sum(weights * aweights) / whole)


def both_weights(fweights, aweights):
    if fweights is None:
        return aweights
    if aweights is None:
        return fweights
    return fweights * aweights


@general(np.cov, samples=samples.covariances, rewrite=True, arrays=("m", "y", "fweights", "aweights"), memory=FRESH,
         cell=True)
class cov:
    def primal(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
        rows_only(m, y, "np.cov")
        x = variables(m, y, rowvar).astype(double(m, y, dtype))
        fweights, aweights = in_double(fweights), in_double(aweights)
        c = covariance(x, degrees_lost(ddof, bias), both_weights(fweights, aweights), aweights)
        if x.ndim == 1:
            return c
        return np.squeeze(c)


@general(np.corrcoef, samples=samples.correlations, rewrite=True, arrays=("x", "y"), memory=FRESH)
class corrcoef:
    def primal(x, y=None, rowvar=True, *, dtype=None):
        rows_only(x, y, "np.corrcoef")
        c = np.cov(x, y, rowvar, dtype=dtype)
        if np.ndim(c) == 0:
            return c / c
        if is_complex(c):
            scale = np.sqrt(np.real(np.diagonal(c)))
            r = c / scale[:, None] / scale
            return np.clip(np.real(r), -1, 1) + 1j * np.clip(np.imag(r), -1, 1)
        scale = np.sqrt(np.diagonal(c))
        return np.clip(c / scale[:, None] / scale, -1, 1)
