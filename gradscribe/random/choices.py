# SPDX-License-Identifier: Apache-2.0
"""Discrete choices: categories, permutations, samples."""
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradscribe.random.continuous import gumbel
from gradscribe.random.keys import split
from gradscribe.random.threefry import lengths
from gradscribe.random.uniforms import flat_bits, randint, uniform
from gradscribe.runtime.derivatives import stop_gradient

__all__ = ["categorical", "choice", "permutation"]


def categorical(key: NDArray, logits: ArrayLike, axis: int = -1, shape: int | tuple[int, ...] | None = None,
                replace: bool = True, mode: str = "low") -> NDArray[np.int64]:
    """Indices along an axis with probability proportional to exp(logits), by the Gumbel-max trick.

    shape: by default that of logits without the axis; leading axes hold further samples, which are distinct if replace
    is False: the largest Gumbel sums in order (W. Kool, H. van Hoof, M. Welling: Stochastic beams and where to find
    them, ICML 2019). mode: as in `gumbel`. Raises ValueError for shapes that do not fit, and for more distinct samples
    than categories.

    >>> categorical(np.zeros(2, np.uint32), np.log(np.array([0.1, 0.2, 0.7])), shape=(5,))
    array([2, 2, 2, 1, 1])
    """
    logits = np.asarray(stop_gradient(logits))
    if not np.issubdtype(logits.dtype, np.floating):
        logits = logits.astype(np.float64)
    axis = axis % logits.ndim
    batch = logits.shape[:axis] + logits.shape[axis + 1:]
    shape, _ = lengths(batch if shape is None else shape)
    front = shape[:len(shape) - len(batch)]
    if replace:
        inner = shape[len(front):]
        whole = (*front, *inner[:axis], logits.shape[axis], *inner[axis:])
        return np.argmax(gumbel(key, whole, logits.dtype, mode) + logits, axis=axis - logits.ndim).reshape(shape)
    many = math.prod(front)
    if many > logits.shape[axis]:
        raise ValueError("more samples without replacement than there are categories")
    sums = np.moveaxis(logits + gumbel(key, logits.shape, logits.dtype, mode), axis, -1)
    best = np.argsort(-sums, axis=-1, kind="stable")[..., :many]
    return np.moveaxis(best, -1, 0).reshape(shape)


def permutation(key: NDArray, x: int | ArrayLike, axis: int = 0, independent: bool = False) -> NDArray:
    """An array shuffled along an axis, or np.arange(x) shuffled for an integer x.

    independent: shuffle each line along the axis separately. Raises TypeError for a scalar x that is not an integer.

    >>> permutation(np.zeros(2, np.uint32), 5)
    array([0, 1, 4, 3, 2])
    """
    if np.ndim(x) == 0:
        if not np.issubdtype(np.asarray(x).dtype, np.integer):
            raise TypeError("permutation takes an integer or an array of at least one axis")
        if axis not in (0, -1):
            raise ValueError("np.arange(x) has one axis")
        return ranked(key, x)
    x = np.asarray(x)
    if not independent or x.ndim == 1:
        return np.take(x, ranked(key, x.shape[axis]), axis=axis)
    for subkey in rounds(key, x.size):
        order = np.argsort(flat_bits(subkey, x.size, np.uint32).reshape(x.shape), axis=axis, kind="stable")
        x = np.take_along_axis(x, order, axis=axis)
    return x


def ranked(key, n):
    """The numbers 0, 1, ..., n - 1 in random order."""
    order = np.arange(n)
    for subkey in rounds(key, n):
        order = order[np.argsort(flat_bits(subkey, n, np.uint32), kind="stable")]
    return order


def rounds(key, n):
    """A key for each of several sorts of n entries by random 32-bit numbers, some of which may be equal.

    The number of sorts makes the probability that two entries have equal numbers in all of them at most n ** -3.
    """
    times = math.ceil(3 * math.log(max(1, n)) / math.log(2**32 - 1))
    keys = np.zeros((times, 2), np.uint32)
    for i in range(times):
        pair = split(key)
        key = pair[0]
        keys[i] = pair[1]
    return keys


def choice(key: NDArray, a: int | Any, shape: int | tuple[int, ...] = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str = "low") -> NDArray:
    """Samples of the entries of a along an axis, or of np.arange(a) for an integer a.

    shape replaces the axis. replace: whether an entry may be drawn twice. p: the probabilities, by default all equal.
    mode: as in `gumbel`, for probabilities without replacement. Raises ValueError for too few entries, and for a wrong
    number of probabilities.

    >>> choice(np.zeros(2, np.uint32), np.array([2.0, 3.0, 5.0]), (4,))
    array([2., 5., 5., 5.])
    """
    shape, many = lengths(shape)
    entries = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
    axis = axis % entries.ndim
    n = entries.shape[axis]
    if n == 0 and many > 0:
        raise ValueError("there is nothing to choose from")
    if not replace and many > n:
        raise ValueError("more samples without replacement than there are entries")
    if p is None and not replace:
        picked = np.take(permutation(key, entries, axis), np.arange(many), axis=axis)
    elif p is None:
        picked = np.take(entries, randint(key, many, 0, n), axis=axis)
    else:
        picked = np.take(entries, weighted(key, n, many, replace, np.asarray(stop_gradient(p)), mode), axis=axis)
    return picked.reshape((*entries.shape[:axis], *shape, *entries.shape[axis + 1:]))


def weighted(key, n, many, replace, p, mode):
    """Indices with given probabilities."""
    if p.shape != (n,):
        raise ValueError("there is one probability for each entry")
    if not replace:
        sums = gumbel(key, n, p.dtype, mode) + np.log(p)
        return np.argsort(-sums, kind="stable")[:many]
    total = np.cumsum(p)
    return np.searchsorted(total, total[-1] * (1 - uniform(key, many, p.dtype)))
