# SPDX-License-Identifier: Apache-2.0
"""The convolutions of jax.lax, as sums of matrix products, one for each position of the kernel.

Internally, channels are last. A convolution is the cross-correlation of Dumoulin and Visin, "A guide to convolution
arithmetic for deep learning" (2016), with their names for strides, dilations and padding:

    out[n, p, o] = sum over i and c of  x[n, p * stride + i * dilation, c] * w[i, c, o]
"""
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradscribe.lax.platforms import platform_dependent
from gradscribe.lax.windows import (
    axis_numbers,
    count_of,
    cropped,
    dilated_length,
    padtype_to_pads,
    placed,
    spread,
    window,
)

Pads = str | Sequence[tuple[int, int]]


class ConvDimensionNumbers(NamedTuple):
    """The order of axes: batch, features, then space; for the kernel output features, input features, space."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: Any = None) -> ConvDimensionNumbers:
    """The axes of a convolution from three strings such as ('NHWC', 'HWIO', 'NHWC'); None is channels first.

    Axes of space have the order of the kernel's string. Raises ValueError for strings that do not match.

    >>> conv_dimension_numbers((8, 32, 32, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise ValueError(f"a convolution needs arrays of the same rank, not of {rank} and {len(rhs_shape)}")
    if dimension_numbers is None:
        order = tuple(range(rank))
        return ConvDimensionNumbers(order, order, order)
    lhs, rhs, out = dimension_numbers
    for text, letters in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if len(text) != rank or any(text.count(letter) != 1 for letter in letters):
            raise ValueError(f"{text!r} does not name {rank} axes, {letters[0]} and {letters[1]} among them")
    space = [letter for letter in rhs if letter not in "OI"]
    for text in (lhs, out):
        if sorted([letter for letter in text if letter not in "NC"]) != sorted(space):
            raise ValueError(f"{text!r} and {rhs!r} name different axes of space")
    return ConvDimensionNumbers(
        (lhs.index("N"), lhs.index("C"), *[lhs.index(letter) for letter in space]),
        (rhs.index("O"), rhs.index("I"), *[rhs.index(letter) for letter in space]),
        (out.index("N"), out.index("C"), *[out.index(letter) for letter in space]),
    )


def conv_general_dilated(lhs: np.ndarray, rhs: np.ndarray, window_strides: Sequence[int], padding: Pads,
                         lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
                         dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
                         precision: Any = None, preferred_element_type: Any = None) -> np.ndarray:
    """Convolution (without flipping the kernel) over any number of spatial axes, as jax.lax.conv_general_dilated.

    `padding` is 'VALID', 'SAME', 'SAME_LOWER' or a pair (before, after) for each spatial axis; negative padding crops.
    `preferred_element_type` is the dtype of sums and result. `precision` has no effect. Raises ValueError for
    arguments that do not fit each other.

    >>> x, w = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 5))
    >>> y = conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    >>> y[0, :, :, 0].tolist()
    [[8.0, 12.0, 12.0, 8.0], [12.0, 18.0, 18.0, 12.0], [12.0, 18.0, 18.0, 12.0], [8.0, 12.0, 12.0, 8.0]]
    """
    space = lhs.ndim - 2
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    strides = axis_numbers(window_strides, space, "window_strides")
    base = axis_numbers(lhs_dilation, space, "lhs_dilation")
    dilation = axis_numbers(rhs_dilation, space, "rhs_dilation")
    if feature_group_count != 1 and batch_group_count != 1:
        raise ValueError("feature_group_count and batch_group_count cannot both be more than one")
    x = _arranged(lhs, (numbers.lhs_spec[0], *numbers.lhs_spec[2:], numbers.lhs_spec[1]))
    w = _arranged(rhs, (*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0]))
    if preferred_element_type is not None:
        x = x.astype(preferred_element_type)
        w = w.astype(preferred_element_type)
    if any(d != 1 for d in base):
        if isinstance(padding, str):
            raise ValueError("padding by a name is not defined where lhs_dilation is: pairs, or conv_transpose")
        x = spread(x, (1, *base, 1))
    if not isinstance(padding, str):
        x = _padded(x, padding)
    elif padding.upper() != "VALID":
        kernel = [dilated_length(k, d) for k, d in zip(w.shape, dilation)]
        x = placed(x, [None, *padtype_to_pads(x.shape[1:-1], kernel, strides, padding), None])
    out = _correlation(x, w, strides, dilation, feature_group_count, batch_group_count)
    return _rearranged(out, numbers.out_spec)


def conv(lhs: np.ndarray, rhs: np.ndarray, window_strides: Sequence[int], padding: str, precision: Any = None,
         preferred_element_type: Any = None) -> np.ndarray:
    """Convolution with channels first: images (n, c, h, w) with a kernel (o, c, i, j).

    >>> conv(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), (1, 1), "VALID").tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: np.ndarray, rhs: np.ndarray, window_strides: Sequence[int], padding: Pads,
                              lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
                              precision: Any = None, preferred_element_type: Any = None) -> np.ndarray:
    """Convolution with channels first, with dilations.

    >>> conv_with_general_padding(np.ones((1, 1, 3)), np.ones((1, 1, 2)), (1,), [(1, 0)], None, (2,)).tolist()
    [[[1.0, 2.0]]]
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Pads,
                     batch_group_count: int = 1) -> tuple[int, ...]:
    """The shape of a convolution with channels first, from shapes that include dilation.

    >>> conv_shape_tuple((8, 3, 32, 32), (16, 3, 5, 5), (2, 2), "SAME")
    (8, 16, 16, 16)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise ValueError(f"padding has {len(pads)} pairs for {len(lhs_shape) - 2} axes of space")
    lengths = [lo + n + hi for n, (lo, hi) in zip(lhs_shape[2:], pads)]
    space = [max(count_of(n, k, s), 0) for n, k, s in zip(lengths, rhs_shape[2:], strides)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def conv_transpose(lhs: np.ndarray, rhs: np.ndarray, strides: Sequence[int], padding: Pads,
                   rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                   transpose_kernel: bool = False, precision: Any = None, preferred_element_type: Any = None,
                   use_consistent_padding: bool = False) -> np.ndarray:
    """Transposed convolution: that of an array with strides - 1 zeros between its entries. It upsamples images.

    'SAME' and 'VALID' refer to the forward convolution; with `use_consistent_padding` pairs do so too, otherwise they
    are the padding here. `transpose_kernel` flips the kernel and exchanges its feature axes, which makes this the
    derivative of the forward convolution. Channels are last by default.

    >>> x, w = np.ones((1, 2, 1)), np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1)
    >>> conv_transpose(x, w, (2,), "VALID")[0, :, 0].tolist()
    [3.0, 2.0, 4.0, 2.0, 1.0]
    """
    space = lhs.ndim - 2
    if dimension_numbers is None:
        if space > 3:
            raise ValueError(f"conv_transpose has no layout of its own for {space} axes of space: dimension_numbers")
        letters = ("", "H", "HW", "HWD")[space]
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    strides = axis_numbers(strides, space, "strides")
    dilation = axis_numbers(rhs_dilation, space, "rhs_dilation")
    x = _arranged(lhs, (numbers.lhs_spec[0], *numbers.lhs_spec[2:], numbers.lhs_spec[1]))
    if transpose_kernel:
        w = _arranged(rhs, (*numbers.rhs_spec[2:], numbers.rhs_spec[0], numbers.rhs_spec[1]))
        w = np.flip(w, tuple(range(space)))
    else:
        w = _arranged(rhs, (*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0]))
    if preferred_element_type is not None:
        x = x.astype(preferred_element_type)
        w = w.astype(preferred_element_type)
    kernel = [dilated_length(k, d) for k, d in zip(w.shape, dilation)]
    if any(s != 1 for s in strides):
        x = spread(x, (1, *strides, 1))
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or pairs, not {padding!r}")
        x = placed(x, [None, *[_other_way(k, s, padding) for k, s in zip(kernel, strides)], None])
    elif use_consistent_padding:
        pads = [(k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(kernel, padding)]
        x = placed(cropped(x, [None, *pads, None]), [None, *[(max(lo, 0), max(hi, 0)) for lo, hi in pads], None])
    else:
        x = _padded(x, padding)
    return _rearranged(_correlation(x, w, (1,) * space, dilation, 1, 1), numbers.out_spec)


def _other_way(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of a transposed convolution, from that of the forward convolution."""
    if padding == "VALID":
        return kernel - 1, stride - 1 + max(kernel - stride, 0)
    before = min((kernel + stride - 1) // 2, kernel - 1)
    return before, kernel + stride - 2 - before


def _correlation(x: np.ndarray, w: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...],
                 feature_groups: int, batch_groups: int) -> np.ndarray:
    """The correlation of x (n, *lengths, c) with w (*kernel, c, o), in groups of features or of the batch."""
    n, *lengths, c = x.shape
    *kernel, inner, o = w.shape
    if feature_groups == 1 and batch_groups == 1:
        return _sum_of_products(x, w, strides, dilation)
    groups = max(feature_groups, batch_groups)
    if batch_groups == 1:
        x = np.moveaxis(x.reshape(n, *lengths, groups, inner), -2, 0)
    else:
        x = x.reshape(groups, n // groups, *lengths, c)
    w = np.moveaxis(w.reshape(*kernel, inner, groups, o // groups), -2, 0)
    out = _grouped_sum_of_products(x, w, strides, dilation)
    out = np.moveaxis(out, 0, -2)
    return out.reshape(*out.shape[:-2], o)


def _sum_of_products(x: np.ndarray, w: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]) -> np.ndarray:
    """The sum over the kernel's positions, by the faster method: on a GPU each launch has a cost."""
    if w.ndim != 4:
        return _by_positions(x, w, strides, dilation)
    return platform_dependent(x, w, cuda=lambda x, w: _by_patches(x, w, strides, dilation),
                              default=lambda x, w: _by_positions(x, w, strides, dilation))


def _by_patches(x: np.ndarray, w: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]) -> np.ndarray:
    """One product of all patches of the images, gathered in one array, with the kernels as a matrix (im2col).

    Source: K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document processing,
    2006.
    """
    n, height, width, c = x.shape
    down, across, _, o = w.shape
    heights = count_of(height, dilated_length(down, dilation[0]), strides[0])
    widths = count_of(width, dilated_length(across, dilation[1]), strides[1])
    rows = strides[0] * np.arange(heights)[:, None, None, None] + dilation[0] * np.arange(down)[:, None]
    columns = strides[1] * np.arange(widths)[:, None, None] + dilation[1] * np.arange(across)
    patches = x[:, rows, columns]
    pixels = n * heights * widths
    return (patches.reshape(pixels, down * across * c) @ w.reshape(down * across * c, o)).reshape(n, heights, widths, o)


def _by_positions(x: np.ndarray, w: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]) -> np.ndarray:
    """A product of (pixels, c) with (c, o) for each position of the kernel."""
    n, *lengths, c = x.shape
    *kernel, _, o = w.shape
    counts = [count_of(length, dilated_length(k, d), s) for length, k, d, s in zip(lengths, kernel, dilation, strides)]
    pixels = n * math.prod(counts)
    out = np.zeros((pixels, o), np.result_type(x, w))
    if len(kernel) == 1:
        for i in range(kernel[0]):
            out += x[:, window(i, dilation[0], counts[0], strides[0])].reshape(pixels, c) @ w[i]
    elif len(kernel) == 2:
        for i in range(kernel[0]):
            rows = window(i, dilation[0], counts[0], strides[0])
            for j in range(kernel[1]):
                columns = window(j, dilation[1], counts[1], strides[1])
                out += x[:, rows, columns].reshape(pixels, c) @ w[i, j]
    else:
        for at in np.ndindex(*kernel):
            box = (slice(None), *[window(i, d, count, s) for i, d, count, s in zip(at, dilation, counts, strides)])
            out += x[box].reshape(pixels, c) @ w[at]
    return out.reshape(n, *counts, o)


def _grouped_sum_of_products(x, w, strides, dilation):
    """The same with an axis of groups in front: x (g, n, *lengths, c), w (g, *kernel, c, o)."""
    groups, n, *lengths, c = x.shape
    _, *kernel, _, o = w.shape
    counts = [count_of(length, dilated_length(k, d), s) for length, k, d, s in zip(lengths, kernel, dilation, strides)]
    pixels = n * math.prod(counts)
    out = np.zeros((groups, pixels, o), np.result_type(x, w))
    for at in np.ndindex(*kernel):
        box = [window(i, d, count, s) for i, d, count, s in zip(at, dilation, counts, strides)]
        box = (slice(None), slice(None), *box)
        entry = (slice(None), *at)
        out += x[box].reshape(groups, pixels, c) @ w[entry]
    return out.reshape(groups, n, *counts, o)


def _padded(x: np.ndarray, padding: Sequence[tuple[int, int]]) -> np.ndarray:
    """x padded with zeros along its spatial axes; negative padding crops."""
    if len(padding) != x.ndim - 2:
        raise ValueError(f"padding has {len(padding)} pairs for {x.ndim - 2} axes of space")
    if any(lo < 0 or hi < 0 for lo, hi in padding):
        x = cropped(x, [None, *padding, None])
    if any(lo > 0 or hi > 0 for lo, hi in padding):
        x = np.pad(x, ((0, 0), *[(max(lo, 0), max(hi, 0)) for lo, hi in padding], (0, 0)))
    return x


def _arranged(x: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """x with its axes in an order."""
    if order == tuple(range(x.ndim)):
        return x
    return x.transpose(order)


def _rearranged(out: np.ndarray, spec: tuple[int, ...]) -> np.ndarray:
    """A result (n, *space, o) with its axes in the order of `spec`."""
    order = (spec[0], *spec[2:], spec[1])
    return _arranged(out, tuple([order.index(axis) for axis in range(len(order))]))
