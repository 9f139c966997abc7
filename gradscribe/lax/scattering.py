# SPDX-License-Identifier: Apache-2.0
"""Gather and scatter of whole blocks at given positions, with XLA's dimension numbers.

Both are one indexed read or write: each axis of the operand gets an array of indices, of the shape (places, *block),
which is where the blocks start along that axis plus 0, 1, 2 ... along the block's own.
See https://openxla.org/xla/operation_semantics#gather.
"""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradscribe.bounds import filling_of, mode_of


class GatherDimensionNumbers(NamedTuple):
    """offset_dims: block axes of the result; collapsed_slice_dims: operand axes that it lacks; start_index_map."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """update_window_dims: block axes of the updates; inserted_window_dims: operand axes that they lack; and starts."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def gather(operand: np.ndarray, start_indices: np.ndarray, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: tuple[int, ...], *, unique_indices: bool = False, indices_are_sorted: bool = False,
           mode: str | None = None, fill_value: Any = None) -> np.ndarray:
    """Blocks of the operand that start at the indices in the last axis of `start_indices`.

    A block that is out of bounds is moved inside with mode 'clip' and with 'promise_in_bounds', the default; with
    'fill' it is `fill_value`, by default NaN, the lowest signed or the highest unsigned number. `unique_indices` and
    `indices_are_sorted` have no effect.

    >>> numbers = GatherDimensionNumbers((1,), (0,), (0,))
    >>> gather(np.arange(6.0).reshape(3, 2), np.array([[2], [0], [3]]), numbers, (1, 2), mode="fill").tolist()
    [[4.0, 5.0], [0.0, 1.0], [nan, nan]]
    """
    if len(slice_sizes) != operand.ndim:
        raise ValueError(f"slice_sizes has {len(slice_sizes)} numbers for {operand.ndim} axes")
    d = dimension_numbers
    starts = _starts(operand, start_indices, d.start_index_map, d.operand_batching_dims, d.start_indices_batching_dims)
    limits = [length - size for length, size in zip(operand.shape, slice_sizes)]
    moved = [start if start is None else np.clip(start, 0, limit) for start, limit in zip(starts, limits)]
    blocks = operand[tuple(_indices(moved, slice_sizes))]
    if mode is not None and mode_of(mode) == "fill":
        fits = _fits(starts, limits).reshape((-1, *[1] * operand.ndim))
        blocks = np.where(fits, blocks, filling_of(operand.dtype) if fill_value is None else fill_value)
    gone = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    kept = [size for axis, size in enumerate(slice_sizes) if axis not in gone]
    places = start_indices.shape[:-1]
    out = blocks.reshape((*places, *kept))
    return np.moveaxis(out, tuple(range(len(places), out.ndim)), d.offset_dims)


def scatter(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray,
            dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: str | None = None) -> np.ndarray:
    """A copy of the operand with blocks written at the indices in the last axis of `scatter_indices`; the last wins.

    A block that is out of bounds is moved inside with mode 'clip', and left out with 'fill' (or 'drop'), the default;
    'promise_in_bounds' promises that there is none.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(np.zeros(4), np.array([[1], [9]]), np.array([5.0, 6.0]), numbers).tolist()
    [0.0, 5.0, 0.0, 0.0]
    """
    place, blocks = _written(operand, scatter_indices, updates, dimension_numbers, mode)
    out = operand.copy()
    out[place] = blocks
    return out


def scatter_add(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | None = None) -> np.ndarray:
    """A copy of the operand with blocks added, as in scatter; all of them count where they overlap.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(np.zeros(3), np.array([[1], [1]]), np.array([5.0, 6.0]), numbers).tolist()
    [0.0, 11.0, 0.0]
    """
    place, blocks = _written(operand, scatter_indices, updates, dimension_numbers, mode)
    out = operand.copy()
    np.add.at(out, place, blocks)
    return out


def scatter_sub(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | None = None) -> np.ndarray:
    """A copy of the operand with blocks subtracted, as in scatter_add.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(np.zeros(3), np.array([[1], [1]]), np.array([5.0, 6.0]), numbers).tolist()
    [0.0, -11.0, 0.0]
    """
    place, blocks = _written(operand, scatter_indices, updates, dimension_numbers, mode)
    out = operand.copy()
    np.subtract.at(out, place, blocks)
    return out


def scatter_mul(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | None = None) -> np.ndarray:
    """A copy of the operand multiplied by blocks, as in scatter_add.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(np.ones(3), np.array([[1], [1]]), np.array([5.0, 6.0]), numbers).tolist()
    [1.0, 30.0, 1.0]
    """
    place, blocks = _written(operand, scatter_indices, updates, dimension_numbers, mode)
    return _one_by_one(operand, place, blocks, np.multiply)


def scatter_min(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | None = None) -> np.ndarray:
    """A copy of the operand with the minimum of itself and the blocks, as in scatter_add.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(np.zeros(3), np.array([[1], [2]]), np.array([-5.0, 6.0]), numbers).tolist()
    [0.0, -5.0, 0.0]
    """
    place, blocks = _written(operand, scatter_indices, updates, dimension_numbers, mode)
    return _one_by_one(operand, place, blocks, np.minimum)


def scatter_max(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | None = None) -> np.ndarray:
    """A copy of the operand with the maximum of itself and the blocks, as in scatter_add.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(np.zeros(3), np.array([[1], [2]]), np.array([-5.0, 6.0]), numbers).tolist()
    [0.0, 0.0, 6.0]
    """
    place, blocks = _written(operand, scatter_indices, updates, dimension_numbers, mode)
    return _one_by_one(operand, place, blocks, np.maximum)


def _one_by_one(operand: np.ndarray, place: Sequence[np.ndarray], blocks: np.ndarray,
                computation: Callable) -> np.ndarray:
    """A copy of the operand to which blocks are applied one after another, since they may overlap."""
    out = operand.copy()
    rows = blocks.shape[0]
    place = [np.broadcast_to(index, (rows, *index.shape[1:])) for index in place]
    for row in range(rows):
        at = tuple([index[row] for index in place])
        out[at] = computation(out[at], blocks[row])
    return out


def _written(operand: np.ndarray, scatter_indices: np.ndarray, updates: np.ndarray, d: ScatterDimensionNumbers,
             mode: str | None) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The index of the operand that a scatter writes, and the values."""
    missing = (*d.inserted_window_dims, *d.operand_batching_dims)
    window = [updates.shape[axis] for axis in d.update_window_dims]
    sizes = [1] * operand.ndim
    for axis, size in zip([axis for axis in range(operand.ndim) if axis not in missing], window):
        sizes[axis] = size
    places = [axis for axis in range(updates.ndim) if axis not in d.update_window_dims]
    blocks = updates.transpose((*places, *d.update_window_dims)).reshape((-1, *sizes))
    starts = _starts(operand, scatter_indices, d.scatter_dims_to_operand_dims, d.operand_batching_dims,
                     d.scatter_indices_batching_dims)
    limits = [length - size for length, size in zip(operand.shape, sizes)]
    if mode_of(mode) == "fill":
        rows = np.nonzero(_fits(starts, limits))[0]
        starts = [start if start is None else start[rows] for start in starts]
        blocks = blocks[rows]
    elif mode_of(mode) == "clip":
        starts = [start if start is None else np.clip(start, 0, limit) for start, limit in zip(starts, limits)]
    return tuple(_indices(starts, sizes)), blocks


def _starts(operand, indices, index_map, operand_batch, indices_batch):
    """The starts of the blocks along each axis of the operand; None is the beginning of the axis for all."""
    places = indices.shape[:-1]
    starts = [None] * operand.ndim
    for number, axis in enumerate(index_map):
        starts[axis] = indices[..., number].reshape(-1)
    for axis, batch in zip(operand_batch, indices_batch):
        steps = np.arange(indices.shape[batch]).reshape([-1 if i == batch else 1 for i in range(len(places))])
        starts[axis] = np.broadcast_to(steps, places).reshape(-1)
    return starts


def _indices(starts: Sequence[Any], sizes: Sequence[int]) -> list[np.ndarray]:
    """For each axis the indices of all entries of all blocks, in a shape that broadcasts to (positions, *sizes)."""
    rank = len(sizes)
    indices = []
    for axis in range(rank):
        steps = np.arange(sizes[axis]).reshape([-1 if i == axis + 1 else 1 for i in range(rank + 1)])
        if starts[axis] is not None:
            steps = steps + starts[axis].reshape((-1, *[1] * rank))
        indices.append(steps)
    return indices


def _fits(starts: list[np.ndarray | None], limits: list[int]) -> np.ndarray:
    """Whether each block is inside along all axes."""
    inside = [(start >= 0) & (start <= limit) for start, limit in zip(starts, limits) if start is not None]
    fits = inside[0]
    for other in inside[1:]:
        fits = fits & other
    return fits
