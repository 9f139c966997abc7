# SPDX-License-Identifier: Apache-2.0
"""Random keys: made from a seed, split, and combined with a number."""
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradscribe.random.threefry import lengths, pairs, threefry2x32

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data"]

LOWER = 0xFFFFFFFF


def PRNGKey(seed: int, *, impl: str | None = None) -> NDArray[np.uint32]:
    """The key for an integer seed: an array of two uint32, the halves of its 64 bits.

    Raises TypeError if seed is not an integer, ValueError for an impl other than "threefry2x32".

    >>> PRNGKey(2**32 + 7)
    array([1, 7], dtype=uint32)
    """
    known(impl)
    if np.ndim(seed) != 0:
        raise TypeError("a seed is a single integer: gs.vmap maps over many")
    value = np.asarray(seed)
    if not np.issubdtype(value.dtype, np.integer):
        raise TypeError("a seed is an integer")
    if value.itemsize < 8:
        return np.array([0, value.astype(np.int64) & LOWER], dtype=np.uint32)
    value = value.astype(np.int64)
    return np.array([(value >> 32) & LOWER, value & LOWER], dtype=np.uint32)


def key(seed: int, *, impl: str | None = None) -> NDArray[np.uint32]:
    """The same as `PRNGKey`: a key is a plain array of shape (2,), and an array of keys has leading axes.

    >>> key(7)
    array([0, 7], dtype=uint32)
    """
    return PRNGKey(seed, impl=impl)


def known(impl):
    """Raise ValueError for other generators."""
    if impl is not None and impl != "threefry2x32":
        raise ValueError("the generator is threefry2x32; there is no other")


def key_data(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The array of keys, unchanged. Raises ValueError unless the last axis has two entries.

    >>> key_data(key(7))
    array([0, 7], dtype=uint32)
    """
    if np.ndim(keys) == 0 or np.shape(keys)[-1] != 2:
        raise ValueError("keys are an array of shape (..., 2)")
    return keys


def wrap_key_data(key_bits_array: NDArray[np.uint32], *, impl: str | None = None) -> NDArray[np.uint32]:
    """Keys from an array, unchanged. Raises ValueError as `key_data`, and for another impl.

    >>> wrap_key_data(np.array([0, 7], np.uint32))
    array([0, 7], dtype=uint32)
    """
    known(impl)
    return key_data(key_bits_array)


def key_impl(keys: NDArray[np.uint32]) -> str:
    """The name of the generator, of which there is one. Raises ValueError as `key_data`.

    >>> key_impl(PRNGKey(7))
    'threefry2x32'
    """
    key_data(keys)
    return "threefry2x32"


def clone(key: ArrayLike) -> NDArray[np.uint32]:
    """A copy of a key.

    >>> clone(PRNGKey(7))
    array([0, 7], dtype=uint32)
    """
    return np.array(key)


def split(key: NDArray, num: int | tuple[int, ...] = 2) -> NDArray[np.uint32]:
    """New keys from one: an array of shape (num, 2), or (*num, 2) if num is a shape.

    Raises ValueError if key is not a single key.

    >>> split(PRNGKey(0)).shape, split(PRNGKey(0), (3, 4)).shape
    ((2, 2), (3, 4, 2))
    """
    shape, n = lengths(num)
    return pairs(key, n).reshape((*shape, 2))


def fold_in(key: NDArray, data: int) -> NDArray[np.uint32]:
    """A new key from a key and the lower 32 bits of an integer.

    Raises ValueError if key is not a single key, TypeError if data is not a single number.

    >>> fold_in(PRNGKey(0), 3).shape
    (2,)
    """
    if np.ndim(key) != 1:
        raise ValueError("this takes one key, of shape (2,): gs.vmap maps over many")
    if np.ndim(data) != 0:
        raise TypeError("fold_in takes one number: gs.vmap maps over many")
    number = np.atleast_1d(np.asarray(data).astype(np.uint32))
    return np.concatenate(threefry2x32(key[0], key[1], np.uint32(0), number))
