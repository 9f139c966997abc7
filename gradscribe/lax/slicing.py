# SPDX-License-Identifier: Apache-2.0
"""The slices and updates of jax.lax at computed positions, clamped to fit, and its functions that rearrange entries."""
import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np


def dynamic_slice(operand: np.ndarray, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> np.ndarray:
    """The block of the given sizes that starts at `start_indices`; negative ones count from the end.

    A block that is out of bounds is moved inside. Raises ValueError if it is larger than the array.

    >>> dynamic_slice(np.arange(6), (4,), (3,)).tolist()
    [3, 4, 5]
    """
    if len(slice_sizes) != operand.ndim or len(start_indices) != operand.ndim:
        raise ValueError(f"an array of rank {operand.ndim} needs as many start indices and sizes")
    starts = [_fitting(start_indices[axis], operand.shape[axis], slice_sizes[axis]) for axis in range(operand.ndim)]
    box = [builtins.slice(start, start + size) for start, size in zip(starts, slice_sizes)]
    return operand[tuple(box)].reshape(tuple(slice_sizes))


def dynamic_slice_in_dim(operand: np.ndarray, start_index: Any, slice_size: int, axis: int = 0) -> np.ndarray:
    """`slice_size` entries along one axis from `start_index` on, moved inside if out of bounds.

    >>> dynamic_slice_in_dim(np.arange(6), -1, 2).tolist()
    [4, 5]
    """
    axis = axis % operand.ndim
    start = _fitting(start_index, operand.shape[axis], slice_size)
    box = (builtins.slice(None),) * axis + (builtins.slice(start, start + slice_size),)
    return operand[box].reshape((*operand.shape[:axis], slice_size, *operand.shape[axis + 1:]))


def dynamic_index_in_dim(operand: np.ndarray, index: Any, axis: int = 0, keepdims: bool = True) -> np.ndarray:
    """One entry along an axis; an index out of bounds is clamped. With `keepdims` the axis stays, with length one.

    >>> dynamic_index_in_dim(np.arange(6), 9, keepdims=False).tolist()
    5
    """
    axis = axis % operand.ndim
    start = _fitting(index, operand.shape[axis], 1)
    if keepdims:
        box = (builtins.slice(None),) * axis + (builtins.slice(start, start + 1),)
        return operand[box].reshape((*operand.shape[:axis], 1, *operand.shape[axis + 1:]))
    place = (builtins.slice(None),) * axis + (start,)
    return operand[place]


def dynamic_update_slice(operand: np.ndarray, update: np.ndarray, start_indices: Sequence[Any]) -> np.ndarray:
    """A copy of `operand` with `update` written at `start_indices`, moved inside if out of bounds.

    >>> dynamic_update_slice(np.zeros(5), np.ones(2), (9,)).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    if update.ndim != operand.ndim or len(start_indices) != operand.ndim:
        raise ValueError(f"an array of rank {operand.ndim} needs an update of that rank and as many start indices")
    starts = [_fitting(start_indices[axis], operand.shape[axis], update.shape[axis]) for axis in range(operand.ndim)]
    box = [builtins.slice(start, start + size) for start, size in zip(starts, update.shape)]
    out = operand.copy()
    out[tuple(box)] = update
    return out


def dynamic_update_slice_in_dim(operand: np.ndarray, update: np.ndarray, start_index: Any, axis: int) -> np.ndarray:
    """A copy of `operand` with `update` written along one axis, from `start_index` on.

    >>> dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    axis = axis % operand.ndim
    starts = [0] * operand.ndim
    starts[axis] = start_index
    return dynamic_update_slice(operand, update, starts)


def dynamic_update_index_in_dim(operand: np.ndarray, update: np.ndarray, index: Any, axis: int) -> np.ndarray:
    """A copy of `operand` with one entry along an axis replaced; `update` may be without that axis.

    >>> dynamic_update_index_in_dim(np.zeros((2, 2)), np.ones(2), 1, 0).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    axis = axis % operand.ndim
    if np.ndim(update) != operand.ndim:
        update = np.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis)


def _fitting(start: Any, length: int, size: int) -> Any:
    """The start of a block of a size: negative ones count from the end, then it is clamped to fit."""
    if start < 0:
        start = start + length
    return max(min(start, length - size), 0)


def slice_(operand: np.ndarray, start_indices: Sequence[int], limit_indices: Sequence[int],
           strides: Sequence[int] | None = None) -> np.ndarray:
    """The block between two corners, with strides: gs.lax.slice. Raises ValueError for corners out of bounds.

    >>> slice_(np.arange(6), (1,), (5,), (2,)).tolist()
    [1, 3]
    """
    if len(start_indices) != operand.ndim or len(limit_indices) != operand.ndim:
        raise ValueError(f"an array of rank {operand.ndim} needs as many start and limit indices")
    steps = (1,) * operand.ndim if strides is None else tuple(strides)
    if any(start < 0 or limit < start or step < 1 for start, limit, step in zip(start_indices, limit_indices, steps)):
        raise ValueError("starts must not be negative, limits not below them, strides at least one")
    box = [builtins.slice(*corner) for corner in zip(start_indices, limit_indices, steps)]
    return operand[tuple(box)]


def slice_in_dim(operand: np.ndarray, start_index: int | None, limit_index: int | None, stride: int = 1,
                 axis: int = 0) -> np.ndarray:
    """A slice of one axis, with the semantics of Python's slices.

    >>> slice_in_dim(np.arange(6), 1, -1, 2).tolist()
    [1, 3]
    """
    axis = axis % operand.ndim
    box = (builtins.slice(None),) * axis + (builtins.slice(start_index, limit_index, stride),)
    return operand[box]


def index_in_dim(operand: np.ndarray, index: int, axis: int = 0, keepdims: bool = True) -> np.ndarray:
    """One entry along an axis; IndexError out of bounds. With `keepdims` the axis stays, with length one.

    >>> index_in_dim(np.arange(6), -1).tolist()
    [5]
    """
    axis = axis % operand.ndim
    place = (builtins.slice(None),) * axis + (index,)
    if keepdims:
        return np.expand_dims(operand[place], axis)
    return operand[place]


def index_take(src: np.ndarray, idxs: Sequence[np.ndarray], axes: Sequence[int]) -> np.ndarray:
    """Entries at vectors of indices along some axes; the vectors' axis comes first, then the other axes.

    >>> index_take(np.arange(6).reshape(2, 3), (np.array([0, 1]), np.array([2, 0])), (0, 1)).tolist()
    [2, 3]
    """
    front = np.moveaxis(src, tuple(axes), tuple(range(len(axes))))
    return front[tuple(idxs)]


def rev(operand: np.ndarray, dimensions: Sequence[int]) -> np.ndarray:
    """The array reversed along some axes.

    >>> rev(np.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    return np.flip(operand, tuple(dimensions))


def pad(operand: np.ndarray, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Padding before, after and between entries: (low, high, interior) for each axis; negative padding crops.

    >>> pad(np.array([1, 2, 3]), 0, [(1, -1, 1)]).tolist()
    [0, 1, 0, 2, 0]
    """
    if len(padding_config) != operand.ndim:
        raise ValueError(f"padding_config has {len(padding_config)} triples for {operand.ndim} axes")
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError("interior padding must not be negative")
    grown = [max(length + (length - 1) * interior, 0)
             for length, (_, _, interior) in zip(operand.shape, padding_config)]
    shape = [max(low, 0) + length + max(high, 0) for length, (low, high, _) in zip(grown, padding_config)]
    out = np.full(tuple(shape), padding_value, operand.dtype)
    inside = [builtins.slice(max(low, 0), max(low, 0) + length, interior + 1)
              for length, (low, _, interior) in zip(grown, padding_config)]
    out[tuple(inside)] = operand
    if any(low < 0 or high < 0 for low, high, _ in padding_config):
        kept = [builtins.slice(max(-low, 0), length - max(-high, 0))
                for length, (low, high, _) in zip(shape, padding_config)]
        return out[tuple(kept)]
    return out


def broadcast(operand: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The array broadcast along new leading axes.

    >>> broadcast(np.arange(2), (3,)).shape
    (3, 2)
    """
    return np.broadcast_to(operand, (*sizes, *np.shape(operand)))


def broadcast_in_dim(operand: np.ndarray, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> np.ndarray:
    """The array broadcast to a shape; `broadcast_dimensions` are the result's axes for those of the operand.

    >>> broadcast_in_dim(np.arange(2), (2, 3), (0,)).tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    if len(broadcast_dimensions) != np.ndim(operand):
        raise ValueError(f"{len(broadcast_dimensions)} broadcast_dimensions for rank {np.ndim(operand)}")
    if any(later <= axis for axis, later in zip(broadcast_dimensions, broadcast_dimensions[1:])):
        raise ValueError("broadcast_dimensions must increase")
    new = [axis for axis in range(len(shape)) if axis not in broadcast_dimensions]
    return np.broadcast_to(np.expand_dims(operand, tuple(new)), tuple(shape))


def collapse(operand: np.ndarray, start_dimension: int, stop_dimension: int | None = None) -> np.ndarray:
    """Adjacent axes merged into one.

    >>> collapse(np.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """
    start = start_dimension % operand.ndim
    stop = operand.ndim if stop_dimension is None else stop_dimension
    if stop < 0:
        stop += operand.ndim
    if not start < stop <= operand.ndim:
        raise ValueError(f"no axes between {start_dimension} and {stop_dimension} of {operand.ndim}")
    return operand.reshape((*operand.shape[:start], -1, *operand.shape[stop:]))


def expand_dims(array: np.ndarray, dimensions: Sequence[int]) -> np.ndarray:
    """The array with new axes of length one, at these positions of the result.

    >>> expand_dims(np.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    return np.expand_dims(array, tuple(dimensions))


def squeeze(array: np.ndarray, dimensions: Sequence[int]) -> np.ndarray:
    """The array without some axes of length one.

    >>> squeeze(np.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    return np.squeeze(array, tuple(dimensions))


def concatenate(operands: Sequence[np.ndarray], dimension: int) -> np.ndarray:
    """Arrays joined along an axis.

    >>> concatenate([np.zeros(2), np.ones(1)], 0).tolist()
    [0.0, 0.0, 1.0]
    """
    return np.concatenate(operands, axis=dimension)


def split(operand: np.ndarray, sizes: Sequence[int], axis: int = 0) -> list[np.ndarray]:
    """The array split along an axis into parts of the given sizes, which must sum to its length.

    >>> [part.tolist() for part in split(np.arange(3), (1, 2))]
    [[0], [1, 2]]
    """
    axis = axis % operand.ndim
    if sum(sizes) != operand.shape[axis]:
        raise ValueError(f"sizes {tuple(sizes)} are not the length {operand.shape[axis]}")
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    before = (builtins.slice(None),) * axis
    boxes = [before + (builtins.slice(end - size, end),) for end, size in zip(ends, sizes)]
    return [operand[box] for box in boxes]


def transpose(operand: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
    """The array with its axes in another order.

    >>> transpose(np.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return np.transpose(operand, tuple(permutation))


def reshape(operand: np.ndarray, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> np.ndarray:
    """The array with another shape; `dimensions` permutes its axes first.

    >>> reshape(np.arange(4).reshape(2, 2), (4,), (1, 0)).tolist()
    [0, 2, 1, 3]
    """
    if dimensions is not None:
        operand = np.transpose(operand, tuple(dimensions))
    return np.reshape(operand, tuple(new_sizes))


def iota(dtype: Any, size: int) -> np.ndarray:
    """0, 1, 2 ... in a dtype.

    >>> iota(np.float32, 3)
    array([0., 1., 2.], dtype=float32)
    """
    return np.arange(size, dtype=dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> np.ndarray:
    """An array of a shape with the index along one axis as entries.

    >>> broadcasted_iota(int, (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    return broadcast_in_dim(np.arange(shape[dimension], dtype=dtype), shape, (dimension % len(shape),))


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> np.ndarray:
    """An array filled with one value, in its dtype or another.

    >>> full((2,), 1.5).tolist()
    [1.5, 1.5]
    """
    return np.full(shape, fill_value, dtype)


def full_like(x: np.ndarray, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None) -> np.ndarray:
    """An array filled with one value, by default in the dtype and shape of x.

    >>> full_like(np.zeros(2, np.float32), 3)
    array([3., 3.], dtype=float32)
    """
    shape = np.shape(x) if shape is None else tuple(shape)
    return np.full(shape, fill_value, x.dtype if dtype is None else dtype)
