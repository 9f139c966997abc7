# SPDX-License-Identifier: Apache-2.0
"""Sliding windows over arrays: their lengths and padding, reductions over them, pooling."""
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe.bounds import highest_of, lowest_of

Pads = str | Sequence[tuple[int, int]]



def axis_numbers(values: Sequence[int] | None, count: int, name: str) -> tuple[int, ...]:
    """One positive number for each axis; None is ones. Raises ValueError for another count or a number that is not.

    >>> axis_numbers((2, 1), 2, "strides"), axis_numbers(None, 3, "strides")
    ((2, 1), (1, 1, 1))
    """
    if values is None:
        return (1,) * count
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} numbers for {count} axes")
    if any(value < 1 for value in values):
        raise ValueError(f"{name} must be at least one")
    return tuple(values)


def dilated_length(length: int, dilation: int) -> int:
    """The length of an axis with dilation - 1 entries inserted between its own.

    >>> dilated_length(3, 2)
    5
    """
    if dilation == 1:
        return length
    return (length - 1) * dilation + 1


def count_of(length: int, size: int, stride: int) -> int:
    """The number of windows of a size that fit into an axis.

    >>> count_of(7, 3, 2)
    3
    """
    if stride == 1:
        return max(length - size + 1, 0)
    return max((length - size) // stride + 1, 0)


def window(i: int, dilation: int, count: int, stride: int) -> slice:
    """The slice of an axis with the i-th entries of all windows.

    >>> window(1, 1, 3, 2)
    slice(1, 7, 2)
    """
    start = i
    if dilation != 1:
        start = i * dilation
    if stride == 1:
        return slice(start, start + count)
    return slice(start, start + count * stride, stride)


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int],
                    padding: str) -> list[tuple[int, int]]:
    """The padding (before, after) of each axis, from its name; ValueError for an unknown name.

    'SAME' makes ceil(length / stride) windows, with odd padding after, 'SAME_LOWER' before.

    >>> padtype_to_pads((8, 8), (3, 2), (1, 2), "SAME")
    [(1, 1), (0, 0)]
    """
    name = padding.upper()
    if name == "VALID":
        return [(0, 0) for _ in in_shape]
    if name not in ("SAME", "SAME_LOWER"):
        raise ValueError(f"padding must be 'VALID', 'SAME', 'SAME_LOWER' or pairs, not {padding!r}")
    totals = [_same_total(n, k, s) for n, k, s in zip(in_shape, window_shape, window_strides)]
    if name == "SAME":
        return [(total // 2, total - total // 2) for total in totals]
    return [(total - total // 2, total // 2) for total in totals]


def _same_total(length: int, size: int, stride: int) -> int:
    """The total padding of an axis for 'SAME'."""
    if stride == 1:
        return size - 1
    return max((-(-length // stride) - 1) * stride + size - length, 0)


def placed(x: np.ndarray, pads: Sequence[tuple[int, int] | None], value: Any = 0) -> np.ndarray:
    """x padded with a value: np.pad for computed widths, not negative; None for an axis without padding.

    >>> placed(np.ones((2, 1)), [(1, 2), None])[:, 0].tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    shape = [length if pad is None else pad[0] + length + pad[1] for length, pad in zip(x.shape, pads)]
    out = np.full(tuple(shape), value, x.dtype)
    inside = [slice(None) if pad is None else slice(pad[0], pad[0] + length) for length, pad in zip(x.shape, pads)]
    out[tuple(inside)] = x
    return out


def cropped(x: np.ndarray, pads: Sequence[tuple[int, int] | None]) -> np.ndarray:
    """x cropped by the negative widths.

    >>> cropped(np.arange(5), [(-1, 2)]).tolist()
    [1, 2, 3, 4]
    """
    return x[tuple([slice(None) if pad is None else slice(max(-pad[0], 0), length - max(-pad[1], 0))
                    for length, pad in zip(x.shape, pads)])]


def spread(x: np.ndarray, dilation: Sequence[int], value: Any = 0) -> np.ndarray:
    """x with dilation - 1 entries of a value between neighbours along each axis.

    >>> spread(np.array([1, 2, 3]), (2,)).tolist()
    [1, 0, 2, 0, 3]
    """
    shape = [dilated_length(length, d) for length, d in zip(x.shape, dilation)]
    out = np.full(tuple(shape), value, x.dtype)
    out[tuple([slice(None) if d == 1 else slice(None, None, d) for d in dilation])] = x
    return out


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """The shape of the result of reduce_window.

    >>> reduce_window_shape_tuple((8, 8), (3, 3), (1, 2), ((1, 1), (0, 0)))
    (8, 3)
    """
    rank = len(operand_shape)
    base = axis_numbers(base_dilation, rank, "base_dilation")
    dilation = axis_numbers(window_dilation, rank, "window_dilation")
    lengths = [lo + dilated_length(n, b) + hi for n, b, (lo, hi) in zip(operand_shape, base, padding)]
    sizes = [dilated_length(k, d) for k, d in zip(window_dimensions, dilation)]
    return tuple([max(count_of(n, k, s), 0) for n, k, s in zip(lengths, sizes, window_strides)])


def reduce_window(operand: np.ndarray, init_value: Any, computation: Callable,
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: Pads = "VALID", base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> np.ndarray:
    """Each window reduced to one entry by an associative function of two arrays, such as np.add or np.maximum.

    The reduction starts from `init_value`: 0 for np.add, -inf for np.maximum. For functions other than np.add,
    np.multiply, np.maximum and np.minimum it is also the value of padding, and must be neutral. Of equal extremes, the
    first in the window gets the derivative.

    >>> reduce_window(np.arange(6.0), 0.0, np.add, (2,), (2,)).tolist()
    [1.0, 5.0, 9.0]
    >>> reduce_window(np.array([1.0, 4.0, 2.0]), -np.inf, np.maximum, (3,), (1,), "SAME").tolist()
    [4.0, 4.0, 4.0]
    """
    rank = operand.ndim
    ones = (1,) * rank
    strides = axis_numbers(window_strides, rank, "window_strides")
    base = axis_numbers(base_dilation, rank, "base_dilation")
    dilation = axis_numbers(window_dilation, rank, "window_dilation")
    sizes = axis_numbers(window_dimensions, rank, "window_dimensions")
    x = operand
    kind = computation.__name__ if isinstance(computation, np.ufunc) else "another"
    neutral = _neutral(kind, x.dtype, init_value)
    if base != ones:
        x = spread(x, base, neutral)
    covered = [dilated_length(size, d) for size, d in zip(sizes, dilation)]
    if not isinstance(padding, str):
        x = _surrounded(x, padding, neutral)
    elif padding.upper() != "VALID":
        pads = padtype_to_pads(x.shape, covered, strides, padding)
        still = [size == 1 and stride == 1 for size, stride in zip(sizes, strides)]
        x = placed(x, [None if s else pad for s, pad in zip(still, pads)], neutral)
    counts = [count_of(length, size, stride) for length, size, stride in zip(x.shape, covered, strides)]
    x = _reduced(x, computation, kind, sizes, dilation, strides, counts)
    if init_value == neutral:
        return x
    return computation(np.asarray(init_value, x.dtype), x)


def _neutral(kind: str, dtype: np.dtype, init_value: Any) -> Any:
    """The value of padding for a reduction: the operation's neutral element, or init_value."""
    if kind == "add":
        return 0
    if kind == "multiply":
        return 1
    if kind == "maximum":
        return lowest_of(dtype)
    if kind == "minimum":
        return highest_of(dtype)
    return init_value


def _reduced(x: np.ndarray, computation: Callable, kind: str, sizes: tuple[int, ...], dilation: tuple[int, ...],
             strides: tuple[int, ...], counts: list[int]) -> np.ndarray:
    """The reduction: it starts from the first entries of all windows and adds the others in row-major order."""
    still = [size == 1 and stride == 1 for size, stride in zip(sizes, strides)]
    shape = tuple([length if s else count for s, length, count in zip(still, x.shape, counts)])
    first = [slice(None) if s else _every(count, stride) for s, count, stride in zip(still, counts, strides)]
    out = x[tuple(first)].reshape(shape)
    for at in range(1, math.prod(sizes)):
        place = _unravelled(at, sizes)
        box = [slice(None) if s else window(i, d, count, stride)
               for s, i, d, count, stride in zip(still, place, dilation, counts, strides)]
        y = x[tuple(box)].reshape(shape)
        if kind == "add":
            out = out + y
        elif kind == "maximum":
            out = np.where((y > out) | (y != y), y, out)
        elif kind == "minimum":
            out = np.where((y < out) | (y != y), y, out)
        else:
            out = computation(out, y)
    return out


def _every(count: int, stride: int) -> slice:
    """The slice with the first entries of all windows."""
    if stride == 1:
        return slice(0, count)
    return slice(0, count * stride, stride)


def _unravelled(at: int, sizes: tuple[int, ...]) -> list[int]:
    """The indices in a window of an entry with a row-major number."""
    place = []
    step = math.prod(sizes)
    for size in sizes:
        step = step // size
        place.append(0 if size == 1 else at // step % size)
    return place


def max_pool(inputs: np.ndarray, window_shape: Sequence[int], strides: Sequence[int] | None = None,
             padding: Pads = "VALID") -> np.ndarray:
    """The maxima of windows over the spatial axes, for arrays (batch, *space, features).

    >>> max_pool(np.arange(16.0).reshape(1, 4, 4, 1), (2, 2), (2, 2))[0, :, :, 0].tolist()
    [[5.0, 7.0], [13.0, 15.0]]
    """
    return _pool(inputs, lowest_of(inputs.dtype), np.maximum, window_shape, strides, padding)


def min_pool(inputs: np.ndarray, window_shape: Sequence[int], strides: Sequence[int] | None = None,
             padding: Pads = "VALID") -> np.ndarray:
    """The minima of windows over the spatial axes, for arrays (batch, *space, features).

    >>> min_pool(np.arange(4.0).reshape(1, 4, 1), (2,))[0, :, 0].tolist()
    [0.0, 1.0, 2.0]
    """
    return _pool(inputs, highest_of(inputs.dtype), np.minimum, window_shape, strides, padding)


def avg_pool(inputs: np.ndarray, window_shape: Sequence[int], strides: Sequence[int] | None = None,
             padding: Pads = "VALID", count_include_pad: bool = True) -> np.ndarray:
    """Means of windows over the spatial axes, for arrays (batch, *space, features).

    Padding counts as zeros, or is not counted with count_include_pad=False.

    >>> avg_pool(np.arange(4.0).reshape(1, 4, 1), (2,), (2,))[0, :, 0].tolist()
    [0.5, 2.5]
    """
    sums = _pool(inputs, 0, np.add, window_shape, strides, padding)
    if count_include_pad:
        return sums / math.prod(window_shape)
    ones = np.ones((1, *inputs.shape[1:-1], 1), inputs.dtype)
    return sums / _pool(ones, 0, np.add, window_shape, strides, padding)


def _pool(x: np.ndarray, init: Any, computation: Callable, window_shape: Sequence[int],
          strides: Sequence[int] | None, padding: Pads) -> np.ndarray:
    """Windows over all axes but the first and the last."""
    if len(window_shape) != x.ndim - 2:
        raise ValueError(f"a window of {len(window_shape)} lengths for {x.ndim - 2} axes of space")
    steps = None if strides is None else (1, *strides, 1)
    pads = padding if isinstance(padding, str) else ((0, 0), *padding, (0, 0))
    return reduce_window(x, init, computation, (1, *window_shape, 1), steps, pads)


def _surrounded(x: np.ndarray, padding: Sequence[tuple[int, int]], value: Any) -> np.ndarray:
    """x padded with a value; negative padding crops."""
    if len(padding) != x.ndim:
        raise ValueError(f"padding has {len(padding)} pairs for {x.ndim} axes")
    if any(lo < 0 or hi < 0 for lo, hi in padding):
        x = cropped(x, padding)
    if any(lo > 0 or hi > 0 for lo, hi in padding):
        x = np.pad(x, [(max(lo, 0), max(hi, 0)) for lo, hi in padding], constant_values=value)
    return x
