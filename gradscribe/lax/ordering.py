# SPDX-License-Identifier: Apache-2.0
"""The sorts, extremes and cumulative reductions of jax.lax."""
from typing import Any

import numpy as np


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """An array sorted along an axis, or several arrays, in the order of the first `num_keys` of them.

    NaN comes last. The sort is always stable, whatever `is_stable` says.

    >>> sort(np.array([3, 1, 2])).tolist()
    [1, 2, 3]
    >>> [a.tolist() for a in sort((np.array([1, 0, 1]), np.array([5, 6, 4])), num_keys=2)]
    [[0, 1, 1], [6, 4, 5]]
    """
    if not isinstance(operand, (tuple, list)):
        return np.sort(operand, axis=dimension, kind="stable")
    if not 1 <= num_keys <= len(operand):
        raise ValueError(f"num_keys must be between 1 and {len(operand)}, not {num_keys}")
    if num_keys == 1:
        order = np.argsort(operand[0], axis=dimension, kind="stable")
    else:
        order = np.lexsort(tuple(reversed(operand[:num_keys])), axis=dimension)
    return tuple([np.take_along_axis(array, order, dimension) for array in operand])


def sort_key_val(keys: np.ndarray, values: np.ndarray, dimension: int = -1,
                 is_stable: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Keys sorted, and values in the order of their keys.

    >>> [a.tolist() for a in sort_key_val(np.array([2, 1]), np.array([7.0, 8.0]))]
    [[1, 2], [8.0, 7.0]]
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: np.ndarray, k: int, *, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The k largest entries along an axis, in descending order, and their indices; the first of equal ones comes first.

    NaN counts as the largest. Raises ValueError if k is more than the length of the axis.

    >>> [a.tolist() for a in top_k(np.array([1.0, 5.0, 5.0, 2.0]), 2)]
    [[5.0, 5.0], [1, 2]]
    """
    if k < 0 or k > operand.shape[axis]:
        raise ValueError(f"top_k of {k} where there are {operand.shape[axis]}")
    rising = operand.shape[axis] - 1 - np.argsort(np.flip(operand, axis), axis=axis, kind="stable")
    order = _first(np.flip(rising, axis), k, axis)
    return np.take_along_axis(operand, order, axis), order


def approx_max_k(operand: np.ndarray, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The k largest entries and their indices; exact, so that the recall is 1 whatever `recall_target` says.

    >>> approx_max_k(np.array([1.0, 5.0, 2.0]), 1)[0].tolist()
    [5.0]
    """
    if not aggregate_to_topk:
        raise ValueError("aggregate_to_topk=False gives parts of an approximate search; the search here is exact")
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(operand: np.ndarray, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest entries and their indices; exact, as approx_max_k.

    >>> approx_min_k(np.array([1.0, 5.0, 2.0]), 2)[1].tolist()
    [0, 2]
    """
    if not aggregate_to_topk:
        raise ValueError("aggregate_to_topk=False gives parts of an approximate search; the search here is exact")
    order = _first(np.argsort(operand, axis=reduction_dimension, kind="stable"), k, reduction_dimension)
    return np.take_along_axis(operand, order, reduction_dimension), order


def _first(x: np.ndarray, k: int, axis: int) -> np.ndarray:
    """The first k along an axis."""
    box = (slice(None),) * (axis % x.ndim) + (slice(0, k),)
    return x[box]


def argmax(operand: np.ndarray, axis: int, index_dtype: Any) -> np.ndarray:
    """The index of the maximum along an axis, in a dtype; the first of equal ones, and of NaN before all.

    >>> argmax(np.array([1.0, 5.0]), 0, np.int32)
    np.int32(1)
    """
    return np.argmax(operand, axis=axis).astype(index_dtype)


def argmin(operand: np.ndarray, axis: int, index_dtype: Any) -> np.ndarray:
    """The index of the minimum along an axis, in a dtype; the first of equal ones, and of NaN before all.

    >>> argmin(np.array([1.0, 5.0]), 0, np.int32)
    np.int32(0)
    """
    return np.argmin(operand, axis=axis).astype(index_dtype)


def cumsum(operand: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
    """Cumulative sums along an axis, with reverse from the end, in the operand's dtype.

    >>> cumsum(np.array([1, 2, 3]), reverse=True).tolist()
    [6, 5, 3]
    """
    if reverse:
        return np.flip(np.cumsum(np.flip(operand, axis), axis=axis, dtype=operand.dtype), axis)
    return np.cumsum(operand, axis=axis, dtype=operand.dtype)


def cumprod(operand: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
    """Cumulative products along an axis, with reverse from the end, in the operand's dtype.

    >>> cumprod(np.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    if reverse:
        return np.flip(np.cumprod(np.flip(operand, axis), axis=axis, dtype=operand.dtype), axis)
    return np.cumprod(operand, axis=axis, dtype=operand.dtype)


def cummax(operand: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
    """Cumulative maxima along an axis, with reverse from the end.

    >>> cummax(np.array([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    if reverse:
        return np.flip(np.maximum.accumulate(np.flip(operand, axis), axis=axis), axis)
    return np.maximum.accumulate(operand, axis=axis)


def cummin(operand: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
    """Cumulative minima along an axis, with reverse from the end.

    >>> cummin(np.array([2, 3, 1])).tolist()
    [2, 2, 1]
    """
    if reverse:
        return np.flip(np.minimum.accumulate(np.flip(operand, axis), axis=axis), axis)
    return np.minimum.accumulate(operand, axis=axis)


def cumlogsumexp(operand: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
    """Cumulative log(sum(exp(...))) along an axis, with reverse from the end; each step is one np.logaddexp.

    >>> np.round(np.exp(cumlogsumexp(np.log([1.0, 2.0, 3.0]))), 12).tolist()
    [1.0, 3.0, 6.0]
    """
    x = np.moveaxis(operand, axis, 0)
    out = np.empty(x.shape, x.dtype)
    so_far = np.full(x.shape[1:], -np.inf, x.dtype)
    for step in range(x.shape[0]):
        at = x.shape[0] - 1 - step if reverse else step
        so_far = np.logaddexp(so_far, x[at])
        out[at] = so_far
    return np.moveaxis(out, 0, axis)
