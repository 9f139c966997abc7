# SPDX-License-Identifier: Apache-2.0
"""Interpolation, differences, integrals, cumulative sums, window functions and spaced points."""
import math

import numpy as np

from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, elementwise, general, static
from gradscribe.ast_transform.rules import numeric_samples as samples
from gradscribe.ast_transform.rules.batching import aligned, only, shifted
from gradscribe.ast_transform.rules.constants import laid, ramp, summed, widened
from gradscribe.ast_transform.rules.reductions import positive
from gradscribe.runtime.indexing import scatter_add

# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def part(ndim, axis, start, stop):
    """The index of a range along one axis: `[:, start:stop]`."""
    axis = positive(axis, ndim)
    return slice(start, stop) if ndim == 1 else (slice(None),) * axis + (slice(start, stop),)


@static
def rank(x):
    return np.ndim(x)


@static
def each_axis(f, axis):
    if axis is None:
        return tuple(range(f.ndim))
    return tuple(positive(a, f.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))


# --- interpolation ----------------------------------------------------------------------------------------------------

@static
def is_one_node(xp):
    """Whether there is only one node, so that the result does not depend on x; False if the length is not known."""
    return xp.dims[0].is_unit if hasattr(xp, "dims") else len(xp) == 1


def interval(x, xp):
    """The index of the left neighbouring node of each x."""
    return np.clip(np.searchsorted(xp, x, side="right") - 1, 0, xp.shape[0] - 2)


def outside(x, xp):
    return (x < xp[0]) | (x > xp[-1])


def slope(x, xp, fp):
    if is_one_node(xp):
        return 0 * fp[0]
    return np.where(outside(x, xp), 0, (np.diff(fp) / np.diff(xp))[interval(x, xp)])


def share(x, xp):
    """The weight of the right node in each value: 0 before all nodes, 1 after them."""
    left = interval(x, xp)
    return np.clip((x - xp[left]) / np.diff(xp)[left], 0, 1)


def to_nodes(dy, x, xp, like):
    """The adjoint of the nodes: each x contributes to the nodes on both sides of it."""
    if is_one_node(xp):
        return scatter_add(like, np.zeros_like(x, dtype=int), dy)
    left, right = interval(x, xp), share(x, xp)
    return scatter_add(like, left, dy * (1 - right)) + scatter_add(like, left + 1, dy * right)


def within(dy, x, xp, left, right):
    """An adjoint with zeros beyond the nodes, where the value is `left` or `right`."""
    if left is None and right is None:
        return dy
    if right is None:
        return np.where(x < xp[0], 0, dy)
    if left is None:
        return np.where(x > xp[-1], 0, dy)
    return np.where(outside(x, xp), 0, dy)


def _as_many_nodes(xp, fp, **others):
    return [(xp.dims[0], fp.dims[0])] if xp.ndim == fp.ndim == 1 else []


@general(np.interp, "x", "xp", "fp", "left", "right", samples=samples.interpolations, rewrite=("period",), expand=True,
         arrays=("x", "xp", "fp"), lengths=_as_many_nodes, memory=FRESH, raises=True)
class interp:
    def primal(x, xp, fp, left=None, right=None, period=None):
        return np.interp(x, xp, fp, left=left, right=right)

    def rewritten(x, xp, fp, left=None, right=None, period=None):
        nodes = xp % period
        order = np.argsort(nodes, kind="stable")
        nodes, values = nodes[order], fp[order]
        nodes = np.concatenate((nodes[-1:] - period, nodes, nodes[:1] + period))
        return np.interp(x % period, nodes, np.concatenate((values[-1:], values, values[:1])))

    def vjp_x(dy, x, xp, fp):
        return dy * slope(x, xp, fp)

    def vjp_xp(dy, x, xp, fp):
        return to_nodes(-dy * slope(x, xp, fp), x, xp, xp)

    def vjp_fp(dy, x, xp, fp, left=None, right=None):
        return to_nodes(within(dy, x, xp, left, right), x, xp, fp).astype(fp.dtype)

    def vjp_left(dy, x, xp):
        return np.sum(np.where(x < xp[0], dy, 0))

    def vjp_right(dy, x, xp):
        return np.sum(np.where(x > xp[-1], dy, 0))

    def jvp_x(x_dot, y, x, xp, fp):
        return (x_dot * slope(x, xp, fp)).astype(y.dtype)

    def jvp_xp(xp_dot, y, x, xp, fp):
        return (-np.interp(x, xp, xp_dot) * slope(x, xp, fp)).astype(y.dtype)

    def jvp_fp(fp_dot, x, xp, left=None, right=None):
        return within(np.interp(x, xp, fp_dot), x, xp, left, right)

    def jvp_left(left_dot, x, xp):
        return np.where(x < xp[0], left_dot, 0)

    def jvp_right(right_dot, x, xp):
        return np.where(x > xp[-1], right_dot, 0)

    def batch(x, xp, fp, batched, left=None, right=None, period=None):
        only(batched, "x")
        return np.interp(x, xp, fp, left=left, right=right, period=period)


# --- differences and integrals ----------------------------------------------------------------------------------------

@static
def spacings(f, varargs, axis):
    """The index of each axis's spacing among the arguments; None for a spacing of 1."""
    axes = each_axis(f, axis)
    if len(varargs) not in (0, 1, len(axes)) or len(varargs) == 1 < len(axes) and np.ndim(varargs[0]):
        raise ValueError(f"np.gradient takes one number, or a spacing for each of {len(axes)} axes: {len(varargs)} "
                         "are given", "Give a number or a vector for each axis.")
    for each in varargs:
        if np.ndim(each) > 1:
            raise ValueError("np.gradient takes spacings that are numbers or vectors", "Give the nodes of one axis.")
    return tuple(None if not varargs else min(k, len(varargs) - 1) for k in range(len(axes)))


@static
def first_or_second(order):
    if order not in (1, 2):
        raise ValueError("np.gradient takes 1 or 2 as edge_order", "Write edge_order=1 or edge_order=2.")
    return order


def evenly(f, h, axis, order):
    n = f.ndim
    inner = (f[part(n, axis, 2, None)] - f[part(n, axis, None, -2)]) / (2 * h)
    if order == 1:
        first = (f[part(n, axis, 1, 2)] - f[part(n, axis, 0, 1)]) / h
        last = (f[part(n, axis, -1, None)] - f[part(n, axis, -2, -1)]) / h
    else:
        first = (-1.5 * f[part(n, axis, 0, 1)] + 2 * f[part(n, axis, 1, 2)] - 0.5 * f[part(n, axis, 2, 3)]) / h
        last = (1.5 * f[part(n, axis, -1, None)] - 2 * f[part(n, axis, -2, -1)] + 0.5 * f[part(n, axis, -3, -2)]) / h
    return np.concatenate((first, inner, last), axis=axis)


def unevenly(f, x, axis, order):
    """The slope of the parabola through three neighbours; at the edges, of a straight line if the order is 1."""
    n, step = f.ndim, np.diff(x)
    a, b = laid(step[:-1], n, axis), laid(step[1:], n, axis)
    inner = (b * (f[part(n, axis, 1, -1)] - f[part(n, axis, None, -2)]) / a
             + a * (f[part(n, axis, 2, None)] - f[part(n, axis, 1, -1)]) / b) / (a + b)
    first = (f[part(n, axis, 1, 2)] - f[part(n, axis, 0, 1)]) / step[0]
    last = (f[part(n, axis, -1, None)] - f[part(n, axis, -2, -1)]) / step[-1]
    if order == 2:
        second = (f[part(n, axis, 2, 3)] - f[part(n, axis, 1, 2)]) / step[1]
        first = first + (first - second) * (step[0] / (step[0] + step[1]))
        second = (f[part(n, axis, -2, -1)] - f[part(n, axis, -3, -2)]) / step[-2]
        last = last + (last - second) * (step[-1] / (step[-1] + step[-2]))
    return np.concatenate((first, inner, last), axis=axis)


def along(f, spacing, axis, order):
    if rank(spacing) == 1:
        return unevenly(f, spacing, axis, order)
    return evenly(f, spacing, axis, order)


def along_each(f, varargs, places, axes, order):
    spacing = 1 if places[0] is None else varargs[places[0]]
    if len(axes) == 1:
        return (along(f, spacing, axes[0], order),)
    return (along(f, spacing, axes[0], order), *along_each(f, varargs, places[1:], axes[1:], order))


def _along_the_axes(f, varargs=(), axis=None, edge_order=1):
    return [(varargs[k].dims[0], f.dims[a]) for k, a in enumerate(each_axis(f, axis))
            if k < len(varargs) and isinstance(varargs[k], Array) and varargs[k].rank == 1]


@general(np.gradient, samples=samples.gradients, rewrite=True, arrays=("f",), lengths=_along_the_axes, memory=FRESH)
class gradient:
    def primal(f, *varargs, axis=None, edge_order=1):
        order, axes = first_or_second(edge_order), each_axis(f, axis)
        found = along_each(f, varargs, spacings(f, varargs, axis), axes, order)
        if len(axes) == 1:
            return found[0]
        return found


def _along_the_axis(y, x=None, dx=1.0, axis=-1):
    return [(x.dims[0], y.dims[axis])] if isinstance(x, Array) and x.rank == 1 else []


@general(np.trapezoid, samples=samples.trapezoids, rewrite=True, arrays=("y", "x"), lengths=_along_the_axis,
         memory=FRESH)
class trapezoid:
    def primal(y, x=None, dx=1.0, axis=-1):
        both = y[part(y.ndim, axis, 1, None)] + y[part(y.ndim, axis, None, -1)]
        if x is None:
            return np.sum(both, axis=axis) * dx / 2
        if x.ndim == 1:
            return np.sum(laid(np.diff(x), y.ndim, axis) * both, axis=axis) / 2
        return np.sum(np.diff(x, axis=axis) * both, axis=axis) / 2


@static
def axis_given(x, axis, what):
    if axis is None and x.ndim != 1:
        raise ValueError(f"{what} of an array with {x.ndim} axes needs one of them", "Write axis=0, or another.")
    return positive(0 if axis is None else axis, x.ndim)


def unit_shape(x, axis):
    if x.ndim == 1:
        return 1
    return x.shape[:axis] + (1,) + x.shape[axis + 1:]


@general(np.cumulative_sum, samples=samples.running, rewrite=True, arrays=("x",), memory=FRESH)
class cumulative_sum:
    def primal(x, *, axis=None, dtype=None, include_initial=False):
        axis = axis_given(x, axis, "np.cumulative_sum")
        found = np.cumsum(x, axis=axis, dtype=dtype)
        if include_initial:
            return np.concatenate((np.zeros(unit_shape(x, axis), dtype=found.dtype), found), axis=axis)
        return found


@general(np.cumulative_prod, samples=samples.running, rewrite=True, arrays=("x",), memory=FRESH)
class cumulative_prod:
    def primal(x, *, axis=None, dtype=None, include_initial=False):
        axis = axis_given(x, axis, "np.cumulative_prod")
        found = np.cumprod(x, axis=axis, dtype=dtype)
        if include_initial:
            return np.concatenate((np.ones(unit_shape(x, axis), dtype=found.dtype), found), axis=axis)
        return found


@general(np.unwrap, "p", samples=samples.phases, expand=True, memory=FRESH)
class unwrap:                       # whole periods are added, and these do not move
    def primal(p, discont=None, axis=-1, *, period=6.283185307179586):
        return np.unwrap(p, discont=discont, axis=axis, period=period)

    def vjp_p(dy):
        return dy

    def jvp_p(p_dot):
        return p_dot

    def batch(p, batched, discont=None, axis=-1, period=2 * math.pi):
        return np.unwrap(p, discont=discont, axis=shifted(axis), period=period)


# --- Bessel's function and windows ------------------------------------------------------------------------------------

@static
def dtype_of(x):
    return np.dtype(getattr(x, "dtype", type(x)))


def bessel_one(x):
    """The derivative of np.i0, an integral over an angle; 64 angles suffice for full precision until i0 overflows."""
    angle = ((np.arange(64) + 0.5) * (np.pi / 128)).astype(dtype_of(x))
    cosine = np.cos(angle)
    if rank(x) == 0:
        return np.mean(np.sinh(x * cosine) * cosine)
    return np.mean(np.sinh(x[..., None] * cosine) * cosine, axis=-1)


@elementwise(np.i0, samples=samples.bessel, special=[(0.0, 0.0), (30.0, 768532038938.957)], memory=FRESH, cell=True)
class i0:
    def partial_x(x):
        return bessel_one(x)


@general(np.kaiser, "beta", samples=samples.kaisers, expand=True, memory=FRESH)
class kaiser:
    def primal(M, beta):
        return np.kaiser(M, beta)

    def vjp_beta(dy, y, M, beta):
        return np.sum(dy * of_beta(y, M, beta))

    def jvp_beta(beta_dot, y, M, beta):
        return beta_dot * of_beta(y, M, beta)


def of_beta(y, M, beta):
    place = (2 * np.arange(M) - (M - 1)) / max(M - 1, 1)         # a window of length 1 has one entry, 1
    height = np.sqrt(1 - place * place)
    return (height * bessel_one(beta * height) - y * bessel_one(beta)) / np.i0(beta)


for _window in (np.bartlett, np.blackman, np.hamming, np.hanning):
    constant(_window, "M", samples=samples.window_lengths, memory=FRESH)(type(_window.__name__, (), {}))


# --- spaced points ----------------------------------------------------------------------------------------------------

@general(np.logspace, samples=samples.logarithmic, rewrite=True, arrays=("start", "stop", "base"), memory=FRESH)
class logspace:
    def primal(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
        if np.ndim(base) == 0:
            powers = np.power(base, np.linspace(start, stop, num, endpoint=endpoint, axis=axis))
        else:                           # an axis of start and stop, which the powers are laid along as they are
            bases = base + np.zeros_like(start) + np.zeros_like(stop)
            exponents = np.linspace(start + np.zeros_like(bases), stop, num, endpoint=endpoint, axis=axis)
            powers = np.power(np.expand_dims(bases, axis), exponents)
        return powers if dtype is None else powers.astype(dtype)


@general(np.geomspace, "start", "stop", samples=samples.geometric, expand=True, unbroadcast="own",
         arrays=("start", "stop"), memory=FRESH, raises=True)
class geomspace:
    def primal(start, stop, num=50, endpoint=True, *, axis=0):
        return np.geomspace(start, stop, num, endpoint=endpoint, axis=axis)

    def vjp_start(dy, y, start, num=50, endpoint=True, axis=0):
        return summed(dy * y * (1 - ramp(y, num, endpoint, axis)), axis) / start

    def vjp_stop(dy, y, stop, num=50, endpoint=True, axis=0):
        return summed(dy * y * ramp(y, num, endpoint, axis), axis) / stop

    def jvp_start(start_dot, y, start, num=50, endpoint=True, axis=0):
        return widened(start_dot / start, y.ndim, axis) * y * (1 - ramp(y, num, endpoint, axis))

    def jvp_stop(stop_dot, y, stop, num=50, endpoint=True, axis=0):
        return widened(stop_dot / stop, y.ndim, axis) * y * ramp(y, num, endpoint, axis)

    def batch(start, stop, batched, rank, num=50, endpoint=True, axis=0):
        first = aligned(start, rank - 1) if "start" in batched else start
        last = aligned(stop, rank - 1) if "stop" in batched else stop
        return np.geomspace(first, last, num, endpoint=endpoint, axis=shifted(axis))
