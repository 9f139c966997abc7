# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms.  Each is a symmetric matrix, so its adjoint is the same transform."""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, general, linear, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules.batching import all_axes, batched_turn, by_example, shifted
from gradscribe.ast_transform.rules.reductions import along_index, positions


def as_operand(dx, x):
    """An adjoint in the kind of its operand: real for a real operand."""
    if x.dtype.kind == "c":
        return dx
    return np.real(dx)


def fitted(dx, x, n, axis):
    """The adjoint of cutting or zero-padding x to n entries along the axis."""
    if n is None:
        return dx
    j = np.arange(x.shape[axis])
    index = along_index(x.ndim, axis)
    if index is None:
        return np.where(j < n, np.take(dx, j % n, axis=axis), 0)
    return np.where((j < n)[index], np.take(dx, j % n, axis=axis), 0)


@static
def swapped(norm):
    """The `norm` of the transform in the opposite direction."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


@static
def transformed_axes(s, axes, ndim):
    """The axes of a multi-dimensional transform."""
    if axes is None:
        axes = tuple(range(ndim)) if s is None else tuple(range(-len(s), 0))
    axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    if s is not None and len({a % ndim for a in axes}) < len(axes):
        raise ValueError("a Fourier transform with s= along one axis twice has no derivative rule",
                         "Transform along that axis in two steps.")
    return axes


@static
def is_whole(n):
    """Whether n is -1, the length of the axis."""
    return isinstance(n, int) and n == -1


def fitted_along(dx, x, s, axes):
    """The adjoint of cutting or zero-padding x to the lengths s."""
    if s is None or len(axes) == 0:
        return dx
    if is_whole(s[0]):
        return fitted_along(dx, x, s[1:], axes[1:])
    return fitted_along(fitted(dx, x, s[0], axes[0]), x, s[1:], axes[1:])


def length_for_last(s):
    if s is None or is_whole(s[-1]):
        return None
    return s[-1]


def batched_line(function):
    def part(first, batched, n=None, axis=-1, norm=None):
        return function(first, n=n, axis=shifted(axis), norm=norm)
    return part


@linear(np.fft.fft, "x", samples=samples.transforms, expand=True, memory=FRESH, raises=True)
class fft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.fft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):
        return as_operand(fitted(np.fft.fft(dy, axis=axis, norm=norm), x, n, axis), x)

    batch = batched_line(np.fft.fft)


@linear(np.fft.ifft, "x", samples=samples.transforms, expand=True, memory=FRESH, raises=True)
class ifft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.ifft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):
        return as_operand(fitted(np.fft.ifft(dy, axis=axis, norm=norm), x, n, axis), x)

    batch = batched_line(np.fft.ifft)


@linear(np.fft.rfft, "x", samples=samples.real_transforms, expand=True, memory=FRESH, raises=True)
class rfft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.rfft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):
        if n is None:
            return np.real(np.fft.fft(dy, n=x.shape[axis], axis=axis, norm=norm))
        return np.real(fitted(np.fft.fft(dy, n=n, axis=axis, norm=norm), x, n, axis))

    batch = batched_line(np.fft.rfft)


@linear(np.fft.irfft, "x", samples=samples.half_spectra, expand=True, memory=FRESH, raises=True)
class irfft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.irfft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):   # each inner frequency counts twice
        half = np.conj(np.fft.rfft(dy, axis=axis, norm=swapped(norm)))
        k = positions(half, axis)
        alone = (k == 0) | (2 * k == dy.shape[axis])
        twice = np.where(alone, half, 2 * half)
        if n is None:
            return as_operand(twice, x)
        return as_operand(fitted(twice, x, n // 2 + 1, axis), x)

    batch = batched_line(np.fft.irfft)


def batched_transform(function):
    def part(first, batched, s=None, axes=None, norm=None):
        if axes is None:
            if s is not None:
                by_example("lengths without axes")
            return function(first, axes=all_axes(first.ndim), norm=norm)
        return function(first, s=s, axes=shifted(axes), norm=norm)
    return part


@linear(np.fft.fftn, "x", samples=samples.plane_transforms, expand=True, memory=FRESH, raises=True, cell=True)
class fftn:
    def primal(x, s=None, axes=None, norm=None):
        return np.fft.fftn(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=None, norm=None):
        along = transformed_axes(s, axes, x.ndim)
        if s is None:
            return as_operand(np.fft.fftn(dy, axes=axes, norm=norm), x)
        return as_operand(fitted_along(np.fft.fftn(dy, axes=along, norm=norm), x, s, along), x)

    batch = batched_transform(np.fft.fftn)


@linear(np.fft.ifftn, "x", samples=samples.plane_transforms, expand=True, memory=FRESH, raises=True, cell=True)
class ifftn:
    def primal(x, s=None, axes=None, norm=None):
        return np.fft.ifftn(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=None, norm=None):
        along = transformed_axes(s, axes, x.ndim)
        if s is None:
            return as_operand(np.fft.ifftn(dy, axes=axes, norm=norm), x)
        return as_operand(fitted_along(np.fft.ifftn(dy, axes=along, norm=norm), x, s, along), x)

    batch = batched_transform(np.fft.ifftn)


def batched_plane(function):
    def part(first, batched, s=None, axes=(-2, -1), norm=None):
        if axes is None:
            by_example("all axes")
        return function(first, s=s, axes=shifted(axes), norm=norm)
    return part


@linear(np.fft.fft2, "x", samples=samples.plane_transforms, expand=True, memory=FRESH, raises=True, cell=True)
class fft2:
    def primal(x, s=None, axes=(-2, -1), norm=None):
        return np.fft.fft2(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=(-2, -1), norm=None):
        along = transformed_axes(s, axes, x.ndim)
        if s is None:
            return as_operand(np.fft.fft2(dy, axes=axes, norm=norm), x)
        return as_operand(fitted_along(np.fft.fft2(dy, axes=along, norm=norm), x, s, along), x)

    batch = batched_plane(np.fft.fft2)


@linear(np.fft.ifft2, "x", samples=samples.plane_transforms, expand=True, memory=FRESH, raises=True, cell=True)
class ifft2:
    def primal(x, s=None, axes=(-2, -1), norm=None):
        return np.fft.ifft2(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=(-2, -1), norm=None):
        along = transformed_axes(s, axes, x.ndim)
        if s is None:
            return as_operand(np.fft.ifft2(dy, axes=axes, norm=norm), x)
        return as_operand(fitted_along(np.fft.ifft2(dy, axes=along, norm=norm), x, s, along), x)

    batch = batched_plane(np.fft.ifft2)


# --- transforms from and to real arrays over several axes: the last axis of the spectrum is halved --------------------

def along_others(y, s, axes, norm):
    if len(axes) == 1:
        return y
    if s is not None:
        return np.fft.fftn(y, s=s[:-1], axes=axes[:-1], norm=norm)
    if len(axes) == 2:
        return np.fft.fft(y, axis=axes[0], norm=norm)
    return np.fft.fftn(y, axes=axes[:-1], norm=norm)


def back_along_others(y, s, axes, norm):
    if len(axes) == 1:
        return y
    if s is not None:
        return np.fft.ifftn(y, s=s[:-1], axes=axes[:-1], norm=norm)
    if len(axes) == 2:
        return np.fft.ifft(y, axis=axes[0], norm=norm)
    return np.fft.ifftn(y, axes=axes[:-1], norm=norm)


@general(np.fft.rfftn, samples=samples.real_planes, rewrite=True, memory=FRESH)
class rfftn:
    def primal(x, s=None, axes=None, norm=None):
        along = transformed_axes(s, axes, x.ndim)
        return along_others(np.fft.rfft(x, n=length_for_last(s), axis=along[-1], norm=norm), s, along, norm)


@general(np.fft.rfft2, samples=samples.real_planes, rewrite=True, memory=FRESH)
class rfft2:
    def primal(x, s=None, axes=(-2, -1), norm=None):
        along = transformed_axes(s, axes, x.ndim)
        return along_others(np.fft.rfft(x, n=length_for_last(s), axis=along[-1], norm=norm), s, along, norm)


@general(np.fft.irfftn, samples=samples.half_planes, rewrite=True, memory=FRESH)
class irfftn:
    def primal(x, s=None, axes=None, norm=None):
        along = transformed_axes(s, axes, x.ndim)
        n = length_of_real(x, s, along)
        return np.fft.irfft(back_along_others(x, s, along, norm), n=n, axis=along[-1], norm=norm)


@general(np.fft.irfft2, samples=samples.half_planes, rewrite=True, memory=FRESH)
class irfft2:
    def primal(x, s=None, axes=(-2, -1), norm=None):
        along = transformed_axes(s, axes, x.ndim)
        n = length_of_real(x, s, along)
        return np.fft.irfft(back_along_others(x, s, along, norm), n=n, axis=along[-1], norm=norm)


def length_of_real(x, s, axes):
    """The length of the real result; -1 means the length of the spectrum, not that of the result."""
    if s is None:
        return None
    if is_whole(s[-1]):
        return x.shape[axes[-1]]
    return s[-1]


@general(np.fft.hfft, samples=samples.half_spectra, rewrite=True, memory=FRESH)
class hfft:
    def primal(x, n=None, axis=-1, norm=None):
        if x.dtype.kind == "c":
            return np.fft.irfft(np.conj(x), n=n, axis=axis, norm=swapped(norm))
        return np.fft.irfft(x, n=n, axis=axis, norm=swapped(norm))


@general(np.fft.ihfft, samples=samples.real_transforms, rewrite=True, memory=FRESH)
class ihfft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.conj(np.fft.rfft(x, n=n, axis=axis, norm=swapped(norm)))


@linear(np.fft.fftshift, "x", samples=samples.shifts, full_rank="moves", memory=FRESH)
class fftshift:
    def primal(x, axes=None):
        return np.fft.fftshift(x, axes=axes)

    def vjp_x(dy, axes=None):
        return np.fft.ifftshift(dy, axes=axes)

    batch = batched_turn(np.fft.fftshift)


@linear(np.fft.ifftshift, "x", samples=samples.shifts, full_rank="moves", memory=FRESH)
class ifftshift:
    def primal(x, axes=None):
        return np.fft.ifftshift(x, axes=axes)

    def vjp_x(dy, axes=None):
        return np.fft.fftshift(dy, axes=axes)

    batch = batched_turn(np.fft.ifftshift)


@constant(np.fft.fftfreq, memory=FRESH)
class fftfreq:
    def primal(n, d=1.0):
        return np.fft.fftfreq(n, d)


@constant(np.fft.rfftfreq, memory=FRESH)
class rfftfreq:
    def primal(n, d=1.0):
        return np.fft.rfftfreq(n, d)
