"""Convolution along named axes, with others summed over: by gs.lax.conv_general_dilated."""
import numpy as np

import gradscribe as gs


def convolve(A, B, axes=None, dot_axes=((), ()), mode="full"):
    """The axes of the result: what A alone has, what B alone has, what is convolved."""
    axes_a, axes_b = (range(A.ndim), range(B.ndim)) if axes is None else axes
    own_a = [k for k in range(A.ndim) if k not in axes_a and k not in dot_axes[0]]
    own_b = [k for k in range(B.ndim) if k not in axes_b and k not in dot_axes[1]]
    if not axes_a:
        return np.tensordot(A, B, dot_axes)
    long, short = [A.shape[k] for k in axes_a], [B.shape[k] for k in axes_b]
    shape_a, shape_b = [A.shape[k] for k in own_a], [B.shape[k] for k in own_b]
    if mode == "valid" and any(n < m for n, m in zip(long, short)):
        if any(n > m for n, m in zip(long, short)):
            raise ValueError("valid: one array must be at least as long as the other along every axis")
        swapped = convolve(B, A, (axes_b, axes_a), dot_axes[::-1], mode)
        b, a = len(own_b), len(own_a)
        return np.transpose(swapped, [*range(b, b + a), *range(b), *range(b + a, b + a + len(long))])
    across = int(np.prod([A.shape[k] for k in dot_axes[0]]))
    x = np.reshape(np.transpose(A, [*own_a, *dot_axes[0], *axes_a]), [int(np.prod(shape_a)), across, *long])
    kernel = np.reshape(np.transpose(B, [*own_b, *dot_axes[1], *axes_b]), [int(np.prod(shape_b)), across, *short])
    kernel = np.flip(kernel, axis=tuple(range(2, kernel.ndim)))
    if mode == "valid":
        padding = [(0, 0) for m in short]
    elif mode == "full":
        padding = [(m - 1, m - 1) for m in short]
    else:
        padding = [(m - 1 - (m - 1) // 2, (m - 1) // 2) for m in short]
    y = gs.lax.conv_general_dilated(x, kernel, [1] * len(short), padding)
    return np.reshape(y, [*shape_a, *shape_b, *y.shape[2:]])
