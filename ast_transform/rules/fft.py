"""Discrete Fourier transforms.  They are symmetric matrices, so the adjoint is the same transform."""
import numpy as np

from gradscribe.ast_transform.core.rule import constant, linear, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules.reductions import along_index, positions


def as_operand(dx, x):
    """A real operand has a real adjoint."""
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
    """Which of the two directions is scaled, seen from the other one."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


@static
def whole_arrays(s):
    if s is not None:
        raise ValueError("a Fourier transform with s= has no derivative rule", "Cut or pad before it.")


@linear(np.fft.fft, "x", samples=samples.transforms, expand=True)
class fft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.fft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):
        return as_operand(fitted(np.fft.fft(dy, axis=axis, norm=norm), x, n, axis), x)


@linear(np.fft.ifft, "x", samples=samples.transforms, expand=True)
class ifft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.ifft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):
        return as_operand(fitted(np.fft.ifft(dy, axis=axis, norm=norm), x, n, axis), x)


@linear(np.fft.rfft, "x", samples=samples.real_transforms, expand=True)
class rfft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.rfft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):
        if n is None:
            return np.real(np.fft.fft(dy, n=x.shape[axis], axis=axis, norm=norm))
        return np.real(fitted(np.fft.fft(dy, n=n, axis=axis, norm=norm), x, n, axis))


@linear(np.fft.irfft, "x", samples=samples.half_spectra, expand=True)
class irfft:
    def primal(x, n=None, axis=-1, norm=None):
        return np.fft.irfft(x, n=n, axis=axis, norm=norm)

    def vjp_x(dy, x, n=None, axis=-1, norm=None):   # each inner frequency stands for two
        half = np.conj(np.fft.rfft(dy, axis=axis, norm=swapped(norm)))
        k = positions(half, axis)
        alone = (k == 0) | (2 * k == dy.shape[axis])
        twice = np.where(alone, half, 2 * half)
        if n is None:
            return as_operand(twice, x)
        return as_operand(fitted(twice, x, n // 2 + 1, axis), x)


@linear(np.fft.fftn, "x", samples=samples.plane_transforms, expand=True)
class fftn:
    def primal(x, s=None, axes=None, norm=None):
        return np.fft.fftn(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=None, norm=None):
        whole_arrays(s)
        return as_operand(np.fft.fftn(dy, axes=axes, norm=norm), x)


@linear(np.fft.ifftn, "x", samples=samples.plane_transforms, expand=True)
class ifftn:
    def primal(x, s=None, axes=None, norm=None):
        return np.fft.ifftn(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=None, norm=None):
        whole_arrays(s)
        return as_operand(np.fft.ifftn(dy, axes=axes, norm=norm), x)


@linear(np.fft.fft2, "x", samples=samples.plane_transforms, expand=True)
class fft2:
    def primal(x, s=None, axes=(-2, -1), norm=None):
        return np.fft.fft2(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=(-2, -1), norm=None):
        whole_arrays(s)
        return as_operand(np.fft.fft2(dy, axes=axes, norm=norm), x)


@linear(np.fft.ifft2, "x", samples=samples.plane_transforms, expand=True)
class ifft2:
    def primal(x, s=None, axes=(-2, -1), norm=None):
        return np.fft.ifft2(x, s=s, axes=axes, norm=norm)

    def vjp_x(dy, x, s=None, axes=(-2, -1), norm=None):
        whole_arrays(s)
        return as_operand(np.fft.ifft2(dy, axes=axes, norm=norm), x)


@linear(np.fft.fftshift, "x", samples=samples.shifts, full_rank="moves")
class fftshift:
    def primal(x, axes=None):
        return np.fft.fftshift(x, axes=axes)

    def vjp_x(dy, axes=None):
        return np.fft.ifftshift(dy, axes=axes)


@linear(np.fft.ifftshift, "x", samples=samples.shifts, full_rank="moves")
class ifftshift:
    def primal(x, axes=None):
        return np.fft.ifftshift(x, axes=axes)

    def vjp_x(dy, axes=None):
        return np.fft.fftshift(dy, axes=axes)


@constant(np.fft.fftfreq)
class fftfreq:
    def primal(n, d=1.0):
        return np.fft.fftfreq(n, d)


@constant(np.fft.rfftfreq)
class rfftfreq:
    def primal(n, d=1.0):
        return np.fft.rfftfreq(n, d)
