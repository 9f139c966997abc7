"""Convolution along named axes, with others summed over: scipy.signal's, mapped over the rest."""
import math

import numpy as np
import scipy.signal


def convolve(A, B, axes=None, dot_axes=((), ()), mode="full"):
    """The axes of the result: what A alone has, what B alone has, what is convolved."""
    axes_a, axes_b = (range(A.ndim), range(B.ndim)) if axes is None else axes
    if not axes_a:
        return np.tensordot(A, B, dot_axes)
    own_a = [k for k in range(A.ndim) if k not in axes_a and k not in dot_axes[0]]
    own_b = [k for k in range(B.ndim) if k not in axes_b and k not in dot_axes[1]]
    shape_a, shape_b = [A.shape[k] for k in own_a], [B.shape[k] for k in own_b]
    summed = math.prod([A.shape[k] for k in dot_axes[0]])
    images = np.reshape(np.transpose(A, [*own_a, *dot_axes[0], *axes_a]),
                        [math.prod(shape_a), summed, *[A.shape[k] for k in axes_a]])
    kernels = np.reshape(np.transpose(B, [*own_b, *dot_axes[1], *axes_b]),
                         [math.prod(shape_b), summed, *[B.shape[k] for k in axes_b]])
    y = np.stack([np.stack([sum([scipy.signal.convolve(a, b, mode) for a, b in zip(image, kernel)])
                            for kernel in kernels]) for image in images])
    return np.reshape(y, [*shape_a, *shape_b, *y.shape[2:]])
