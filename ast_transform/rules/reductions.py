# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and sorts along axes.

A reduction's adjoint is constant along the reduced axes: the rules return it with axes of length one, and their caller
broadcasts it where the full shape is needed.
"""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH, VIEW
from gradscribe.ast_transform.core.rule import general, linear, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules.batching import (
    batched_diagonal,
    batched_reduction,
    by_example,
    everything,
    reduced,
    rows,
    shifted,
)
from gradscribe.ast_transform.rules.masked import (
    converted,
    everywhere,
    highest,
    lowest,
    needs_initial,
    same_rank,
    selected,
    selected_mean,
    selected_var,
    squared_size,
)

# --- helpers that run while transforming: axes are numbers, lengths are not known -------------------------------------

@static
def axis_list(x, axis):
    """The axes in `axis`, as non-negative numbers."""
    if axis is None:
        return tuple(range(x.ndim))
    if x.ndim == 0 and axis != ():
        raise ValueError(f"axis={axis} of an array without axes", "Leave axis= out.")
    return tuple(sorted(a % x.ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))))


@static
def positive(axis, ndim):
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for an array of rank {ndim}")
    return axis % ndim


@static
def reduced_index(x, axis, keepdims):
    """The index that restores the axes of a reduced array, `[:, None]`; None if broadcasting does not need it."""
    axes = axis_list(x, axis)
    if axis is None or keepdims or axes == tuple(range(len(axes))):
        return None
    return tuple(None if i in axes else slice(None) for i in range(x.ndim))


@static
def along_index(ndim, axis):
    """The index that puts a vector along one axis: `[:, None, None]` for axis 0 of 3; None for the last axis."""
    axis = axis % ndim
    return None if axis == ndim - 1 else (slice(None),) + (None,) * (ndim - 1 - axis)


@static
def along_axes(ndim, axis):
    """The same as along_index, for weights along one or several axes."""
    if not isinstance(axis, (tuple, list)):
        return along_index(ndim, axis)
    axes = [a % ndim for a in axis]
    if axes != sorted(axes):
        raise ValueError(f"np.average with weights along the axes {tuple(axis)}, which are not in order",
                         "Give the axes in order, and the weights with theirs in that order: np.transpose(weights).")
    return tuple(slice(None) if k in axes else None for k in range(ndim))


@static
def backwards(ndim, axis):
    """The index that reverses one axis: `[:, ::-1]`."""
    axis = axis % ndim
    return slice(None, None, -1) if axis == 0 else (slice(None),) * axis + (slice(None, None, -1),)


# --- helpers that are spliced in --------------------------------------------------------------------------------------

def restore(dy, x, axis, keepdims):
    """A reduced array with axes added so that it broadcasts with x: `dy[:, None]`."""
    index = reduced_index(x, axis, keepdims)
    if index is None or np.ndim(dy) == 0:       # a scalar broadcasts
        return dy
    return dy[index]


def lengths(x, axes):
    if len(axes) == 0:
        return 1
    if len(axes) == 1:
        return x.shape[axes[0]]
    return x.shape[axes[0]] * lengths(x, axes[1:])


def count(x, axis):
    """The number of entries of x for each entry of the reduced array."""
    axes = axis_list(x, axis)
    if len(axes) == x.ndim:
        return x.size
    return lengths(x, axes)


@static
def filled(x, axis):
    """Whether there is at least one entry of x for each reduced entry; the version is specialised to a yes."""
    axes = axis_list(x, axis)
    return x.has_entries(axes) if hasattr(x, "has_entries") else all(x.shape[k] for k in axes)


def divisor(x, axis):
    """The count, or 1 if it is 0: nothing is divided by it then, and Python would raise for 1.0 / 0."""
    if filled(x, axis):
        return count(x, axis)
    return max(count(x, axis), 1)


def positions(x, axis):
    """0, 1, 2, ... along one axis of x."""
    index = along_index(x.ndim, axis)
    if index is None:
        return np.arange(x.shape[axis])
    return np.arange(x.shape[axis])[index]


# --- sums -------------------------------------------------------------------------------------------------------------

@linear(np.sum, "x", samples=samples.reductions, full_rank="or number", memory=FRESH, order="vector", algebra="total")
class sum_:
    def primal(x, axis=None, *, keepdims=False):
        return np.sum(x, axis=axis, keepdims=keepdims)

    def vjp_x(dy, x, axis=None, keepdims=False):
        return restore(dy, x, axis, keepdims)

    def wider(a, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
        same_rank(a, where)
        total = np.sum(selected(a, where, 0, dtype), axis=axis, keepdims=keepdims)
        total = converted(total, dtype)         # narrow integers have a wider sum
        return total if initial is None else total + initial

    batch = batched_reduction(np.sum)


@linear(np.mean, "x", samples=samples.filled_reductions, full_rank="or number", memory=FRESH, order="vector",
        algebra="average")
class mean:
    def primal(x, axis=None, *, keepdims=False):
        return np.mean(x, axis=axis, keepdims=keepdims)

    def vjp_x(dy, x, axis=None, keepdims=False):
        return restore(dy, x, axis, keepdims) / divisor(x, axis)

    def wider(a, axis=None, dtype=None, *, keepdims=False, where=True):
        same_rank(a, where)
        no_whole_numbers(dtype, "mean")
        if everywhere(where):
            return np.mean(converted(a, dtype), axis=axis, keepdims=keepdims)
        return selected_mean(converted(a, dtype), axis, keepdims, where)

    batch = batched_reduction(np.mean)


@general(np.average, samples=samples.averages, rewrite=True, arrays=("a", "weights"), memory=FRESH)
class average:
    def primal(a, axis=None, weights=None, *, keepdims=False):
        if weights is None:
            return np.mean(a, axis=axis, keepdims=keepdims)
        if weights.ndim == a.ndim:
            return (np.sum(a * weights, axis=axis, keepdims=keepdims)
                    / np.sum(weights, axis=axis, keepdims=keepdims))
        index = along_axes(a.ndim, axis)
        if index is None:
            return np.sum(a * weights, axis=axis, keepdims=keepdims) / np.sum(weights)
        return np.sum(a * weights[index], axis=axis, keepdims=keepdims) / np.sum(weights)


def batched_variance(function):
    def part(first, batched, axis=None, ddof=0, keepdims=False):
        if keepdims:
            return function(first, axis=reduced(axis, first.ndim), ddof=ddof, keepdims=keepdims)
        if ddof == 0:
            return function(first, axis=reduced(axis, first.ndim))
        return function(first, axis=reduced(axis, first.ndim), ddof=ddof)
    return part


@general(np.var, "x", samples=samples.variances, memory=FRESH)
class var:
    def primal(x, axis=None, *, ddof=0, keepdims=False):
        return np.var(x, axis=axis, ddof=ddof, keepdims=keepdims)

    def vjp_x(dy, x, axis=None, ddof=0, keepdims=False):
        n = degrees(x, axis, ddof)
        return 2 * restore(dy, x, axis, keepdims) * conjugated(centred(x, axis)) / n

    def jvp_x(x_dot, x, axis=None, ddof=0, keepdims=False):
        n = degrees(x, axis, ddof)
        return 2 * real_sum(centred(x, axis), x_dot, axis, keepdims) / n

    def wider(a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=None):
        same_rank(a, where)
        no_whole_numbers(dtype, "var")
        a = converted(a, dtype)
        freedom = freedom_lost(ddof, correction)
        if everywhere(where):
            if mean is None:
                return np.var(a, axis=axis, ddof=freedom, keepdims=keepdims)
            return np.sum(squared_size(a - mean), axis=axis, keepdims=keepdims) / degrees(a, axis, freedom)
        return selected_var(a, axis, freedom, keepdims, where, mean)

    batch = batched_variance(np.var)


@general(np.std, "x", samples=samples.variances, memory=FRESH)
class std:
    def primal(x, axis=None, *, ddof=0, keepdims=False):
        return np.std(x, axis=axis, ddof=ddof, keepdims=keepdims)

    def wider(a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=None):
        same_rank(a, where)
        no_whole_numbers(dtype, "std")
        a = converted(a, dtype)
        freedom = freedom_lost(ddof, correction)
        if everywhere(where):
            if mean is None:
                return np.std(a, axis=axis, ddof=freedom, keepdims=keepdims)
            square = np.sum(squared_size(a - mean), axis=axis, keepdims=keepdims) / degrees(a, axis, freedom)
        else:
            square = selected_var(a, axis, freedom, keepdims, where, mean)
        return np.where(square == 0, 0, np.sqrt(np.where(square == 0, 1, square)))

    def vjp_x(dy, y, x, axis=None, ddof=0, keepdims=False):
        n = degrees(x, axis, ddof)
        return restore(dy / (n * np.where(y == 0, 1, y)), x, axis, keepdims) * conjugated(centred(x, axis))

    def jvp_x(x_dot, y, x, axis=None, ddof=0, keepdims=False):
        n = degrees(x, axis, ddof)
        return real_sum(centred(x, axis), x_dot, axis, keepdims) / (n * np.where(y == 0, 1, y))

    batch = batched_variance(np.std)


@static
def no_whole_numbers(dtype, name):
    """Refuse an integer dtype, in which np.mean would compute the quotient."""
    if dtype is not None and np.dtype(dtype).kind in "biu":
        raise ValueError(f"np.{name} with dtype={np.dtype(dtype).name} cuts off what is behind the decimal point",
                         f"Cut it off where it is used: int(np.{name}(x)).")


@static
def freedom_lost(ddof, correction):
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("np.var and np.std take ddof or correction, not both", "Leave one out.")
    return correction


def conjugated(x):
    if x.dtype.kind == "c":
        return np.conj(x)
    return x


def real_sum(gap, x_dot, axis, keepdims):
    if gap.dtype.kind == "c":
        return np.sum(np.real(np.conj(gap) * x_dot), axis=axis, keepdims=keepdims)
    return np.sum(gap * x_dot, axis=axis, keepdims=keepdims)


def centred(x, axis):
    if len(axis_list(x, axis)) == x.ndim:
        return x - np.mean(x)
    if reduced_index(x, axis, False) is None:
        return x - np.mean(x, axis=axis)
    return x - np.mean(x, axis=axis, keepdims=True)


def degrees(x, axis, ddof):
    n = count(x, axis)
    if ddof == 0:
        return n
    return n - ddof


def batched_scan(function):
    def part(first, batched, axis=None):
        if axis is None:
            return function(rows(first), axis=1)
        return function(first, axis=shifted(axis))
    return part


@linear(np.cumsum, "x", samples=samples.scans, expand=True, memory=FRESH, order="vector")
class cumsum:
    def primal(x, axis=None):
        return np.cumsum(x, axis=axis)

    def vjp_x(dy, x, axis=None):
        if x.ndim == 1:
            return np.cumsum(dy[::-1])[::-1]
        if axis is None:
            return np.reshape(np.cumsum(dy[::-1])[::-1], x.shape)
        back = backwards(x.ndim, axis)
        return np.cumsum(dy[back], axis=axis)[back]

    def wider(a, axis=None, dtype=None):
        return converted(np.cumsum(converted(a, dtype), axis=axis), dtype)

    batch = batched_scan(np.cumsum)


@linear(np.diff, "x", samples=samples.diffs, expand=True, cell=True)
class diff:
    def primal(x, n=1, axis=-1):
        return np.diff(x, n=n, axis=axis)

    def memory(n=1):
        return VIEW if n == 0 else FRESH

    def vjp_x(dy, x, n=1, axis=-1):     # the ends get zeros; cut, since n may exceed the length
        if n == 0:
            return dy
        index = up_to(x.ndim, axis)
        if x.ndim == 1:
            spread = np.diff(np.pad(dy, n), n=n)[:x.shape[0]]
        elif index == 0:
            spread = np.diff(np.pad(dy, pad_one(x, n, axis)), n=n, axis=axis)[:x.shape[0]]
        elif index == 1:
            spread = np.diff(np.pad(dy, pad_one(x, n, axis)), n=n, axis=axis)[:, :x.shape[1]]
        else:
            spread = np.diff(np.pad(dy, pad_one(x, n, axis)), n=n, axis=axis)[..., :x.shape[-1]]
        if n % 2 == 0:
            return spread
        return -spread

    def batch(first, batched, n=1, axis=-1):
        return np.diff(first, n=n, axis=shifted(axis))


@static
def up_to(ndim, axis):
    axis = axis % ndim
    if axis > 1 and axis != ndim - 1:
        raise ValueError("np.diff along an inner axis beyond the second has no derivative rule",
                         "Move the axis to the end: np.moveaxis(x, axis, -1).")
    return axis


@static
def pad_one(x, n, axis):
    return tuple((n, n) if i == axis % x.ndim else (0, 0) for i in range(x.ndim))


@linear(np.trace, "x", samples=samples.traces, full_rank=True, memory=FRESH)
class trace:
    def primal(x, offset=0, axis1=0, axis2=1):
        return np.trace(x, offset=offset, axis1=axis1, axis2=axis2)

    def vjp_x(dy, x, offset=0, axis1=0, axis2=1):
        if x.ndim == 2:
            if axis1 % 2 == 0:
                return dy * diagonal_ones(x, offset, 0, 1)
            return dy * diagonal_ones(x, -offset, 0, 1)
        shared = restore(dy, x, (axis1, axis2), False)
        if positive(axis1, x.ndim) < positive(axis2, x.ndim):
            ones = diagonal_ones(x, offset, axis1, axis2)
        else:
            ones = diagonal_ones(x, -offset, axis2, axis1)
        return shared * ones[plane(x, axis1, axis2)]

    batch = batched_diagonal(np.trace)


def diagonal_ones(x, offset, axis1, axis2):
    if offset == 0:
        return np.eye(x.shape[axis1], x.shape[axis2], dtype=x.dtype)
    return np.eye(x.shape[axis1], x.shape[axis2], k=offset, dtype=x.dtype)


@static
def plane(x, axis1, axis2):
    """The index that puts a matrix along two axes."""
    return tuple(slice(None) if i in (axis1 % x.ndim, axis2 % x.ndim) else None for i in range(x.ndim))


# --- products: entries may be zero, so never y / x --------------------------------------------------------------------

def before(x, axis):
    """The product of the entries before each one."""
    shifted = np.where(positions(x, axis) == 0, 1, np.roll(x, 1, axis=axis))
    return np.cumprod(shifted, axis=axis)


def others(x, axes):
    """The product of all other entries along the axes."""
    if len(axes) == 0:
        return 1
    axis = axes[0]
    back = backwards(x.ndim, axis)
    rest = before(x, axis) * before(x[back], axis)[back]
    if len(axes) == 1:
        return rest
    return rest * others(np.prod(x, axis=axis, keepdims=True), axes[1:])


@general(np.prod, "x", samples=samples.products, memory=FRESH, order="vector")
class prod:
    def primal(x, axis=None, *, keepdims=False):
        return np.prod(x, axis=axis, keepdims=keepdims)

    def vjp_x(dy, x, axis=None, keepdims=False):
        if x.ndim == 0:
            return dy
        return restore(dy, x, axis, keepdims) * others(x, axis_list(x, axis))

    def jvp_x(x_dot, x, axis=None, keepdims=False):
        if x.ndim == 0:
            return x_dot
        return np.sum(others(x, axis_list(x, axis)) * x_dot, axis=axis, keepdims=keepdims)

    def wider(a, axis=None, dtype=None, *, keepdims=False, initial=None, where=True):
        same_rank(a, where)
        product = np.prod(selected(a, where, 1, dtype), axis=axis, keepdims=keepdims)
        product = converted(product, dtype)
        return product if initial is None else product * initial

    batch = batched_reduction(np.prod)


def adjoints_of_products(dy, x):
    """dy[i] + x[i+1] dy[i+1] + x[i+1] x[i+2] dy[i+2] + ..., without a division, since entries may be 0."""
    total = dy.copy()
    for i in range(x.shape[0] - 1, 0, -1):
        total[i - 1] += x[i] * total[i]
    return total


def tangents_of_products(own, x):
    """own[i] + x[i] own[i-1] + x[i] x[i-1] own[i-2] + ...; own: the contribution of each entry's own tangent."""
    total = own.copy()
    for i in range(1, x.shape[0]):
        total[i] += x[i] * total[i - 1]
    return total


@general(np.cumprod, "x", samples=samples.scan_products, memory=FRESH, order="vector")
class cumprod:
    def primal(x, axis=None):
        return np.cumprod(x, axis=axis)

    def vjp_x(dy, x, axis=None):
        if x.ndim == 1:
            return before(x, 0) * adjoints_of_products(dy, x)
        if axis is None:
            flat = np.ravel(x)
            return np.reshape(before(flat, 0) * adjoints_of_products(dy, flat), x.shape)
        later = adjoints_of_products(np.moveaxis(dy, axis, 0), np.moveaxis(x, axis, 0))
        return before(x, axis) * np.moveaxis(later, 0, axis)

    def jvp_x(x_dot, x, axis=None):
        if x.ndim == 1:
            return tangents_of_products(before(x, 0) * x_dot, x)
        if axis is None:
            flat = np.ravel(x)
            return tangents_of_products(before(flat, 0) * np.ravel(x_dot), flat)
        moved = tangents_of_products(np.moveaxis(before(x, axis) * x_dot, axis, 0), np.moveaxis(x, axis, 0))
        return np.moveaxis(moved, 0, axis)

    def wider(a, axis=None, dtype=None):
        return converted(np.cumprod(converted(a, dtype), axis=axis), dtype)

    batch = batched_scan(np.cumprod)


# --- order statistics: equal entries share the adjoint equally, as in JAX ---------------------------------------------

def spread_to_ties(dy, y, x, axis, keepdims):
    ties = (x == restore(y, x, axis, keepdims)).astype(x.dtype)
    share = dy / np.sum(ties, axis=axis, keepdims=keepdims)
    return restore(share, x, axis, keepdims) * ties


def mean_of_ties(x_dot, y, x, axis, keepdims):
    ties = (x == restore(y, x, axis, keepdims)).astype(x.dtype)
    return np.sum(ties * x_dot, axis=axis, keepdims=keepdims) / np.sum(ties, axis=axis, keepdims=keepdims)


@static
def one_more(x, axis):
    """Widths for np.pad that add an entry along each reduced axis; None if no reduced axis is empty."""
    axes = axis_list(x, axis)
    return None if filled(x, axis) else tuple((0, int(k in axes)) for k in range(x.ndim))


def with_one(x, axis, value):
    """x with at least one entry along each reduced axis, so that a maximum or minimum exists."""
    more = one_more(x, axis)
    return x if more is None else np.pad(x, more, constant_values=value)


@general(np.max, "x", alias=(np.amax,), samples=samples.extremes, ties=True, memory=FRESH, raises=True)
class max_:
    def primal(x, axis=None, *, keepdims=False):
        return np.max(x, axis=axis, keepdims=keepdims)

    def vjp_x(dy, y, x, axis=None, keepdims=False):
        return spread_to_ties(dy, y, x, axis, keepdims)

    def jvp_x(x_dot, y, x, axis=None, keepdims=False):
        return mean_of_ties(x_dot, y, x, axis, keepdims)

    def wider(a, axis=None, *, keepdims=False, initial=None, where=True):
        same_rank(a, where)
        a = selected(a, where, lowest(a.dtype))
        if needs_initial(where, initial, "np.max"):
            return np.maximum(np.max(with_one(a, axis, lowest(a.dtype)), axis=axis, keepdims=keepdims), initial)
        return np.max(a, axis=axis, keepdims=keepdims)

    batch = batched_reduction(np.max)


@general(np.min, "x", alias=(np.amin,), samples=samples.extremes, ties=True, memory=FRESH, raises=True)
class min_:
    def primal(x, axis=None, *, keepdims=False):
        return np.min(x, axis=axis, keepdims=keepdims)

    def vjp_x(dy, y, x, axis=None, keepdims=False):
        return spread_to_ties(dy, y, x, axis, keepdims)

    def jvp_x(x_dot, y, x, axis=None, keepdims=False):
        return mean_of_ties(x_dot, y, x, axis, keepdims)

    def wider(a, axis=None, *, keepdims=False, initial=None, where=True):
        same_rank(a, where)
        a = selected(a, where, highest(a.dtype))
        if needs_initial(where, initial, "np.min"):
            return np.minimum(np.min(with_one(a, axis, highest(a.dtype)), axis=axis, keepdims=keepdims), initial)
        return np.min(a, axis=axis, keepdims=keepdims)

    batch = batched_reduction(np.min)


@general(np.ptp, samples=samples.filled_reductions, rewrite=True, memory=FRESH)
class ptp:
    def primal(x, axis=None, *, keepdims=False):
        return np.max(x, axis=axis, keepdims=keepdims) - np.min(x, axis=axis, keepdims=keepdims)


@general(np.sort, "x", samples=samples.sorts, memory=FRESH, order="vector")
class sort:
    def primal(x, axis=-1, kind=None, *, stable=None):
        return np.sort(x, axis=axis, kind=kind, stable=stable)

    def vjp_x(dy, x, axis=-1):          # the inverse of a permutation is its argsort
        if axis is None:
            return np.reshape(dy[np.argsort(np.argsort(np.ravel(x), kind="stable"))], x.shape)
        order = np.argsort(x, axis=axis, kind="stable")
        if x.ndim == 1:
            return dy[np.argsort(order)]
        return np.take_along_axis(dy, np.argsort(order, axis=axis), axis=axis)

    def jvp_x(x_dot, x, axis=-1):
        if axis is None:
            return np.ravel(x_dot)[np.argsort(np.ravel(x), kind="stable")]
        order = np.argsort(x, axis=axis, kind="stable")
        if x.ndim == 1:
            return x_dot[order]
        return np.take_along_axis(x_dot, order, axis=axis)

    def batch(first, batched, axis=-1):
        if axis is None:
            return np.sort(rows(first), axis=1)
        return np.sort(first, axis=shifted(axis))


@general(np.median, "x", samples=samples.medians, ties=True, memory=FRESH, cell=True)
class median:
    def primal(x, axis=None, *, keepdims=False):
        return np.median(x, axis=axis, keepdims=keepdims)

    def vjp_x(dy, x, axis=None, keepdims=False):
        return middle_weights(x, axis) * restore(dy, x, axis, keepdims)

    def jvp_x(x_dot, x, axis=None, keepdims=False):
        return np.sum(middle_weights(x, axis) * x_dot, axis=axis, keepdims=keepdims)

    def batch(first, batched, axis=None, keepdims=False):
        if everything(axis, first.ndim):
            if keepdims:
                by_example("keepdims over all axes")
            return np.median(rows(first), axis=1)
        return np.median(first, axis=shifted(axis), keepdims=keepdims)


@static
def single_axis(x, axis):
    """The reduced axis; None if there are several."""
    axes = axis_list(x, axis)
    return axes[0] if len(axes) == 1 else None


@static
def whole(x, axis):
    return len(axis_list(x, axis)) == x.ndim


@static
def axes_last(x, axis):
    """The permutation that moves the reduced axes to the end."""
    axes = axis_list(x, axis)
    return tuple(a for a in range(x.ndim) if a not in axes) + axes


@static
def axes_back(x, axis):
    order = axes_last(x, axis)
    return tuple(order.index(a) for a in range(x.ndim))


@static
def kept_rank(x, axis):
    return x.ndim - len(axis_list(x, axis))


@static
def some_axis(axis):
    if axis in ((), []):
        raise ValueError("a quantile along no axis has no derivative rule", "Leave it out: it is the array itself.")


def rank_of(x, axis):
    """The rank of each entry along the axes; equal entries are ranked in order of position."""
    some_axis(axis)
    one = single_axis(x, axis)
    if x.ndim == 1:
        return np.argsort(np.argsort(x, kind="stable"))
    if one is not None:
        return np.argsort(np.argsort(x, axis=one, kind="stable"), axis=one)
    if whole(x, axis):
        return np.reshape(np.argsort(np.argsort(np.ravel(x), kind="stable")), x.shape)
    moved = np.transpose(x, axes_last(x, axis))
    rows = np.reshape(moved, moved.shape[:kept_rank(x, axis)] + (-1,))
    rank = np.argsort(np.argsort(rows, axis=-1, kind="stable"), axis=-1)
    return np.transpose(np.reshape(rank, moved.shape), axes_back(x, axis))


def middle_weights(x, axis):
    """The weights of a median: 1 at the middle entry of an odd number, 1/2 at both middle entries of an even one."""
    n = count(x, axis)
    rank = rank_of(x, axis)
    twice = (rank == (n - 1) // 2).astype(x.dtype) + (rank == n // 2).astype(x.dtype)
    return twice / 2
