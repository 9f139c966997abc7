# SPDX-License-Identifier: Apache-2.0
"""Layers with sliding windows: convolutions, transposed convolutions, pooling.

Shapes are (batch, space, channels), kernels (window, inputs, outputs), unless dimension_numbers say otherwise.
Padding is 'VALID', 'SAME' or a pair (before, after) for each spatial axis.
"""
from collections.abc import Sequence

import numpy as np

from gradscribe import lax, random
from gradscribe.nn.initializers import Initializer, glorot_normal, normal
from gradscribe.nn.layers import Layer

__all__ = ["AvgPool", "Conv", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv3D", "Conv3DTranspose", "ConvTranspose",
           "GeneralConv", "GeneralConvTranspose", "MaxPool", "SumPool"]

Padding = str | Sequence[tuple[int, int]]

LINE, PLANE, SPACE = ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"), ("NHWDC", "HWDIO", "NHWDC")


def _count(length, size, stride, pad):
    """The number of windows of a size that fit into a length; -1, an unknown length, stays -1."""
    if length == -1:
        return -1
    if pad == "SAME":
        return -(-length // stride)
    before, after = (0, 0) if pad == "VALID" else pad
    return (before + length + after - size) // stride + 1


def _enlarged(length, size, stride, pad):
    """The output length of a transposed convolution."""
    if length == -1:
        return -1
    if pad == "SAME":
        return length * stride
    if pad == "VALID":
        return length * stride + max(size - stride, 0)
    return (length - 1) * stride + 1 + pad[0] + pad[1] - size + 1


def _made(lengths, dimension_numbers, out_chan, window_shape, strides, padding, W_init, b_init):
    """The init_fun of a convolution with output lengths lengths(input length, window, stride, pad)."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    pads = [padding] * len(window_shape) if isinstance(padding, str) else list(padding)
    space = [c for c in rhs_spec if c not in "IO"]

    def init_fun(rng, input_shape):
        sizes = {c: lengths(input_shape[lhs_spec.index(c)], *rest)
                 for c, *rest in zip(space, window_shape, strides, pads, strict=True)}
        sizes.update(N=input_shape[lhs_spec.index("N")], C=out_chan)
        kernel = {**dict(zip(space, window_shape)), "O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        of_kernel, of_bias = random.split(rng)
        W = W_init(of_kernel, tuple(kernel[c] for c in rhs_spec))
        b = b_init(of_bias, tuple(out_chan if c == "C" else 1 for c in out_spec))
        return tuple(sizes[c] for c in out_spec), (W, b)
    return init_fun


def GeneralConv(dimension_numbers: Sequence[str], out_chan: int, filter_shape: Sequence[int],
                strides: Sequence[int] | None = None, padding: Padding = "VALID", W_init: Initializer | None = None,
                b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A convolution whose axes are named as in lax.conv_general_dilated; params (W, b).

    W_init is by default glorot_normal over the kernel's axes.

    >>> init_fun, apply_fun = GeneralConv(("NCH", "OIH", "NCH"), 4, (3,))
    >>> init_fun(random.key(0), (-1, 2, 10))[0]
    (-1, 4, 8)
    """
    rhs_spec = dimension_numbers[1]
    strides = (1,) * len(filter_shape) if strides is None else tuple(strides)
    if W_init is None:
        W_init = glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return lax.conv_general_dilated(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b
    return _made(_count, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init), apply_fun


def GeneralConvTranspose(dimension_numbers: Sequence[str], out_chan: int, filter_shape: Sequence[int],
                         strides: Sequence[int] | None = None, padding: Padding = "VALID",
                         W_init: Initializer | None = None,
                         b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A transposed convolution, which enlarges its inputs by the strides, as lax.conv_transpose.

    >>> GeneralConvTranspose(("NCH", "OIH", "NCH"), 4, (3,), (2,))[0](random.key(0), (-1, 2, 10))[0]
    (-1, 4, 21)
    """
    rhs_spec = dimension_numbers[1]
    strides = (1,) * len(filter_shape) if strides is None else tuple(strides)
    if W_init is None:
        W_init = glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return lax.conv_transpose(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b
    return _made(_enlarged, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init), apply_fun


def Conv(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
         W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A convolution of images (batch, rows, columns, channels); params (W, b).

    >>> Conv(8, (3, 3), (2, 2), "SAME")[0](random.key(0), (-1, 28, 28, 1))[0]
    (-1, 14, 14, 8)
    """
    return GeneralConv(PLANE, out_chan, filter_shape, strides, padding, W_init, b_init)


Conv2D = Conv


def Conv1D(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
           padding: Padding = "VALID", W_init: Initializer | None = None,
           b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A convolution of series (batch, time, channels).

    >>> Conv1D(8, (3,))[0](random.key(0), (-1, 10, 2))[0]
    (-1, 8, 8)
    """
    return GeneralConv(LINE, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv3D(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
           padding: Padding = "VALID", W_init: Initializer | None = None,
           b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A convolution of volumes: three spatial axes between the batch and the channels.

    >>> Conv3D(8, (3, 3, 3))[0](random.key(0), (-1, 5, 6, 7, 2))[0]
    (-1, 3, 4, 5, 8)
    """
    return GeneralConv(SPACE, out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                  padding: Padding = "VALID", W_init: Initializer | None = None,
                  b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A transposed convolution of images (batch, rows, columns, channels).

    >>> ConvTranspose(8, (3, 3), (2, 2), "SAME")[0](random.key(0), (-1, 7, 7, 1))[0]
    (-1, 14, 14, 8)
    """
    return GeneralConvTranspose(PLANE, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                    padding: Padding = "VALID", W_init: Initializer | None = None,
                    b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A transposed convolution of series (batch, time, channels).

    >>> Conv1DTranspose(8, (3,), (2,))[0](random.key(0), (-1, 10, 2))[0]
    (-1, 21, 8)
    """
    return GeneralConvTranspose(LINE, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv3DTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                    padding: Padding = "VALID", W_init: Initializer | None = None,
                    b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: B008
    """A transposed convolution of volumes: three spatial axes between the batch and the channels.

    >>> Conv3DTranspose(8, (2, 2, 2), (2, 2, 2))[0](random.key(0), (-1, 5, 6, 7, 2))[0]
    (-1, 10, 12, 14, 8)
    """
    return GeneralConvTranspose(SPACE, out_chan, filter_shape, strides, padding, W_init, b_init)


def _pooling(window_shape, strides, padding, spec, pooled):
    """The layer of pooled(inputs, window, strides, pads) over the spatial axes."""
    strides = (1,) * len(window_shape) if strides is None else tuple(strides)
    batch, channels = (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))
    if isinstance(padding, str) and padding not in ("SAME", "VALID"):
        raise ValueError(f"padding is 'SAME', 'VALID' or pairs, not {padding!r}")
    pads = [padding] * len(window_shape) if isinstance(padding, str) else [tuple(pad) for pad in padding]
    axes = [i for i in range(len(window_shape) + 2) if i not in (batch, channels)]
    window, steps = [1] * (len(axes) + 2), [1] * (len(axes) + 2)
    around = padding if isinstance(padding, str) else [(0, 0)] * (len(axes) + 2)
    for axis, size, stride, pad in zip(axes, window_shape, strides, pads, strict=True):
        window[axis], steps[axis] = size, stride
        if not isinstance(padding, str):
            around[axis] = pad

    def init_fun(rng, input_shape):
        shape = list(input_shape)
        for axis, size, stride, pad in zip(axes, window_shape, strides, pads):
            shape[axis] = _count(shape[axis], size, stride, pad)
        return tuple(shape), ()

    def apply_fun(params, inputs, **kwargs):
        return pooled(inputs, tuple(window), tuple(steps), around)
    return init_fun, apply_fun


def _largest(inputs, window, strides, padding):
    return lax.reduce_window(inputs, -np.inf, np.maximum, window, strides, padding)


def _summed(inputs, window, strides, padding):
    return lax.reduce_window(inputs, 0.0, np.add, window, strides, padding)


def _averaged(inputs, window, strides, padding):
    counts = lax.reduce_window(np.ones(inputs.shape, inputs.dtype), 0.0, np.add, window, strides, padding)
    return lax.reduce_window(inputs, 0.0, np.add, window, strides, padding) / counts


def MaxPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
            spec: str | None = None) -> Layer:
    """The maximum of each window; strides are 1 by default, spec names the axes ('NHWC').

    >>> init_fun, apply_fun = MaxPool((2,), (2,))
    >>> apply_fun((), np.array([[[1.0], [3.0], [2.0], [0.0]]])).tolist()
    [[[3.0], [2.0]]]
    """
    return _pooling(window_shape, strides, padding, spec, _largest)


def SumPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
            spec: str | None = None) -> Layer:
    """The sum of each window.

    >>> SumPool((2,), (2,))[1]((), np.array([[[1.0], [3.0], [2.0], [0.0]]])).tolist()
    [[[4.0], [2.0]]]
    """
    return _pooling(window_shape, strides, padding, spec, _summed)


def AvgPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
            spec: str | None = None) -> Layer:
    """The mean of each window, without padding.

    >>> AvgPool((2,), (2,), "SAME")[1]((), np.array([[[1.0], [3.0], [2.0]]])).tolist()
    [[[2.0], [2.0]]]
    """
    return _pooling(window_shape, strides, padding, spec, _averaged)
