# SPDX-License-Identifier: Apache-2.0
"""The segment reductions of jax.ops: row i belongs to segment segment_ids[i]."""
from typing import Any

import numpy as np

from gradscribe.bounds import highest_of, lowest_of


def segment_sum(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: str | None = None) -> np.ndarray:
    """Sums of the rows of each segment; rows with ids out of bounds are left out, empty segments are zero.

    `num_segments` is by default one more than the largest id.  mode "clip" puts rows with ids out of bounds into the
    first or the last segment.  indices_are_sorted, unique_indices and bucket_size have no effect: rows are added in
    order.

    >>> segment_sum(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 0])).tolist()
    [4.0, 0.0, 2.0]
    """
    count = _count(segment_ids, num_segments)
    if mode == "clip":
        segment_ids = np.clip(segment_ids, 0, count - 1)
    inside = np.nonzero((segment_ids >= 0) & (segment_ids < count))[0]
    out = np.zeros((count, *data.shape[1:]), data.dtype)
    np.add.at(out, segment_ids[inside], data[inside])
    return out


def segment_prod(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                 mode: str | None = None) -> np.ndarray:
    """Products of the rows of each segment; empty segments are one.  Options are those of segment_sum.

    >>> segment_prod(np.array([2.0, 4.0, 3.0]), np.array([0, 2, 0])).tolist()
    [6.0, 1.0, 4.0]
    """
    count = _count(segment_ids, num_segments)
    if mode == "clip":
        segment_ids = np.clip(segment_ids, 0, count - 1)
    out = np.full((count, *data.shape[1:]), 1, data.dtype)
    for i in range(data.shape[0]):
        if 0 <= segment_ids[i] < count:
            out[segment_ids[i]] *= data[i]
    return out


def segment_max(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: str | None = None) -> np.ndarray:
    """The maximum of the rows of each segment; the lowest number of the dtype for empty segments.

    Options are those of segment_sum.

    >>> segment_max(np.array([2.0, 4.0, 3.0]), np.array([0, 1, 0])).tolist()
    [3.0, 4.0]
    """
    count = _count(segment_ids, num_segments)
    if mode == "clip":
        segment_ids = np.clip(segment_ids, 0, count - 1)
    out = np.full((count, *data.shape[1:]), lowest_of(data.dtype), data.dtype)
    for i in range(data.shape[0]):
        if 0 <= segment_ids[i] < count:
            out[segment_ids[i]] = np.maximum(out[segment_ids[i]], data[i])
    return out


def segment_min(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: str | None = None) -> np.ndarray:
    """The minimum of the rows of each segment; the highest number of the dtype for empty segments.

    Options are those of segment_sum.

    >>> segment_min(np.array([2.0, 4.0, 3.0]), np.array([0, 1, 0])).tolist()
    [2.0, 4.0]
    """
    count = _count(segment_ids, num_segments)
    if mode == "clip":
        segment_ids = np.clip(segment_ids, 0, count - 1)
    out = np.full((count, *data.shape[1:]), highest_of(data.dtype), data.dtype)
    for i in range(data.shape[0]):
        if 0 <= segment_ids[i] < count:
            out[segment_ids[i]] = np.minimum(out[segment_ids[i]], data[i])
    return out


def _count(segment_ids: np.ndarray, num_segments: int | None) -> Any:
    """The number of segments."""
    if num_segments is None:
        return np.max(segment_ids) + 1
    return num_segments
