# SPDX-License-Identifier: Apache-2.0
"""Indices that are out of bounds, under JAX's modes: "fill", "drop", "clip" and "promise_in_bounds"."""
from typing import Any

import numpy as np


def mode_of(mode: Any) -> str:
    """A mode as "fill", "clip" or "promise"; None is the default of scatters, "fill".

    Raises ValueError for a mode that JAX does not have.

    >>> [mode_of(mode) for mode in ("drop", "fill", "clip", "promise_in_bounds", None)]
    ['fill', 'fill', 'clip', 'promise', 'fill']
    """
    if mode in (None, "fill", "drop"):
        return "fill"
    if mode == "clip":
        return "clip"
    if mode == "promise_in_bounds":
        return "promise"
    raise ValueError(f"mode must be 'fill', 'drop', 'clip' or 'promise_in_bounds', not {mode!r}")


def filling_of(dtype: np.dtype) -> Any:
    """JAX's fill value for an index out of bounds: NaN, the lowest signed or the highest unsigned number, True.

    >>> [filling_of(np.dtype(dtype)) for dtype in (float, np.int8, np.uint8)]
    [nan, -128, 255]
    """
    if dtype.kind in "fc":
        return np.nan
    return lowest_of(dtype) if dtype.kind == "i" else highest_of(dtype)


def lowest_of(dtype: np.dtype) -> Any:
    """The lowest number of a dtype.

    >>> lowest_of(np.dtype(np.int8))
    -128
    """
    if dtype.kind in "bu":
        return 0
    return -(2 ** (8 * dtype.itemsize - 1)) if dtype.kind == "i" else -np.inf


def highest_of(dtype: np.dtype) -> Any:
    """The highest number of a dtype.

    >>> highest_of(np.dtype(np.float64))
    inf
    """
    if dtype.kind == "b":
        return 1
    if dtype.kind in "iu":
        return 2 ** (8 * dtype.itemsize - (dtype.kind == "i")) - 1
    return np.inf


def inside(shape: tuple[int, ...], index: Any, mode: str, wrap: bool = True) -> tuple[Any, list[tuple[int, int]]]:
    """An index with no integer out of bounds, and the padding of each axis that it needs.

    Mode "clip" moves integers to the nearest end.  With "fill" they become the length of the axis, which the caller
    pads by one entry, to read fill values or to drop writes.  Slices, masks and new axes stay as they are.

    >>> inside((3, 2), (np.array([-1, 7]), slice(1)), "fill")
    ((array([2, 3]), slice(None, 1, None)), [(0, 1), (0, 0)])
    >>> inside((3, 2), (-9, np.array([5])), "clip")
    ((0, array([1])), [(0, 0), (0, 0)])
    """
    parts = index if isinstance(index, tuple) else (index,)
    left = len(shape)
    for part in parts:
        left = left - _axes(part)
    out, axis, more = [], 0, [(0, 0)] * len(shape)
    for part in parts:
        if part is Ellipsis:
            axis = axis + left
            out.append(part)
        elif part is None or isinstance(part, slice) or _is_mask(part):
            axis = axis + _axes(part)
            out.append(part)
        else:
            n = shape[axis]
            out.append(_number(part, n, mode, wrap) if np.ndim(part) == 0 else
                       _numbers(np.asarray(part).astype(np.int64), n, mode, wrap))
            if mode == "fill":
                more[axis] = (0, 1)
            axis = axis + 1
    return tuple(out) if isinstance(index, tuple) else out[0], more


def _axes(part):
    """The number of axes that a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    return np.ndim(part) if _is_mask(part) else 1


def _is_mask(part):
    return not isinstance(part, slice) and part is not None and part is not Ellipsis and np.asarray(part).dtype == bool


def _number(k, n, mode, wrap):
    if wrap and k < 0:
        k = k + n
    if mode == "clip":
        return min(max(k, 0), n - 1)
    return k if 0 <= k < n else n


def _numbers(k, n, mode, wrap):
    if wrap:
        k = np.where(k < 0, k + n, k)
    if mode == "clip":
        return np.clip(k, 0, n - 1)
    return np.where((k >= 0) & (k < n), k, n)
