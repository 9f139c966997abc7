# SPDX-License-Identifier: Apache-2.0
"""The Threefry-2x32 block function, which makes two random 32-bit words from a key and a counter.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC'11, doi:10.1145/2063384.2063405.
"""
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["lengths", "looped", "pairs", "set_threefry_partitionable", "split_each", "threefry2x32",
           "threefry_partitionable", "words"]

PARITY = np.uint32(0x1BD11BDA)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))             # table 2 of the paper: N = 2, W = 32
TURNS = np.array(ROTATIONS * 3, np.uint32)                  # one row for each of five groups of rounds
MOST = 2**32
PARTITIONABLE = True                                        # which of JAX's two layouts of counters


def set_threefry_partitionable(value: bool) -> None:
    """Choose whether keys give the numbers of JAX's default (True), or of its default before version 0.5 (False).

    It applies to the whole process; compiled functions are compiled again. It is JAX's setting
    `jax_threefry_partitionable`.

    >>> set_threefry_partitionable(True)
    """
    global PARTITIONABLE
    PARTITIONABLE = bool(value)


class threefry_partitionable:
    """A context manager that sets set_threefry_partitionable(value) for its block.

    >>> with threefry_partitionable(False):
    ...     pairs(np.zeros(2, np.uint32), 2)[0]
    array([4146024105,  967050713], dtype=uint32)
    """

    def __init__(self, value: bool):
        self.value = value

    def __enter__(self):
        self.before = PARTITIONABLE
        set_threefry_partitionable(self.value)

    def __exit__(self, *_):
        set_threefry_partitionable(self.before)


def threefry2x32(k0: np.uint32 | NDArray[np.uint32], k1: np.uint32 | NDArray[np.uint32],
                 x0: np.uint32 | NDArray[np.uint32],
                 x1: NDArray[np.uint32]) -> tuple[Any, NDArray[np.uint32]]:
    """Twenty rounds of Threefry-2x32: the words (x0, x1) under the key (k0, k1), all uint32, broadcast together.

    x1 must be an array: NumPy warns of scalars that overflow.

    >>> zero = np.zeros(1, np.uint32)
    >>> [hex(word[0]) for word in threefry2x32(np.uint32(0), np.uint32(0), zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    keys = (k0, k1, k0 ^ k1 ^ PARITY)
    x0 = x0 + keys[0]
    x1 = x1 + keys[1]
    for group in range(5):
        for left in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ (x1 << np.uint32(left) | x1 >> np.uint32(32 - left))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def looped(keys, counters, upper=None):
    """The blocks for keys (2, n) and counters (m,), whose upper halves are zero by default: an array (2, m, n).

    The same as `threefry2x32`, but in loops that are not unrolled, for short text in functions with many calls.

    >>> [hex(word) for word in looped(np.zeros((2, 1), np.uint32), np.zeros(1, np.uint32))[:, 0, 0]]
    ['0x6b200159', '0x99ba4efe']
    """
    schedule = np.stack((keys[0], keys[1], keys[0] ^ keys[1] ^ PARITY))
    blocks = np.zeros((2, counters.size, keys.shape[1]), np.uint32)
    blocks[0] += schedule[0]
    if upper is not None:
        blocks[0] += upper[:, np.newaxis]
    blocks[1] += counters[:, np.newaxis] + schedule[1]
    for group in range(5):
        for turn in range(4):
            left = TURNS[group, turn]
            blocks[0] += blocks[1]
            blocks[1] = blocks[0] ^ (blocks[1] << left | blocks[1] >> (np.uint32(32) - left))
        blocks[0] += schedule[(group + 1) % 3]
        blocks[1] += schedule[(group + 2) % 3] + np.uint32(group + 1)
    return blocks


def words(key: NDArray[np.uint32], n: int, wide: bool) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Two uint32 arrays of length n: the blocks of a key for the counters 0, 1, ..., n - 1.

    Only the lower 32 bits of a counter are used: ValueError if n exceeds them, or if key is not a single key. In the
    older layout, words that are not wide are in the first array, and the second is zero.
    """
    check(key, n)
    if PARTITIONABLE:
        return threefry2x32(key[0], key[1], np.uint32(0), np.arange(n, dtype=np.uint32))
    if wide:
        both = halves(key, 2 * n)
        return both[:n], both[n:]
    return halves(key, n), np.zeros(n, np.uint32)


def check(key, n):
    """Raise ValueError unless there is a single key, and n fits the counter."""
    if key.ndim != 1:
        raise ValueError("this takes one key, of shape (2,): gs.vmap maps over many")
    if n > MOST:
        raise ValueError("more than 2**32 random numbers of one key: split the key")


def halves(key, n):
    """n words of the older layout: the first and second half of the numbers 0, 1, ..., n - 1 form the counters.

    For odd n the last lower half is 0.
    """
    half = (n + 1) // 2
    lower = np.arange(half, 2 * half)
    lower = np.where(lower < n, lower, 0).astype(np.uint32)
    return np.concatenate(threefry2x32(key[0], key[1], np.arange(half, dtype=np.uint32), lower))[:n]


def pairs(key: NDArray[np.uint32], n: int) -> NDArray[np.uint32]:
    """n keys from one: an array (n, 2).

    >>> pairs(np.zeros(2, np.uint32), 2)[0]
    array([1797259609, 2579123966], dtype=uint32)
    """
    if PARTITIONABLE:
        return np.stack(words(key, n, True), axis=-1)
    check(key, 2 * n)
    return halves(key, 2 * n).reshape((n, 2))


def split_each(keys: NDArray[np.uint32], count: int) -> NDArray[np.uint32]:
    """The keys from splitting each of keys (2, n): (2, count, n)."""
    steps = np.arange(count, dtype=np.uint32)
    if PARTITIONABLE:
        return looped(keys, steps)
    blocks = looped(keys, np.arange(count, 2 * count, dtype=np.uint32), steps)
    return blocks.reshape((count, 2, keys.shape[1])).transpose((1, 0, 2))


def first_words(keys: NDArray[np.uint32], wide: bool) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Two words for each of keys (2, n): the first ones of `words` for a key, as arrays (n,) and (n,)."""
    zero = np.zeros(1, np.uint32)
    if PARTITIONABLE:
        blocks = looped(keys, zero)
        return blocks[0, 0], blocks[1, 0]
    blocks = looped(keys, np.ones(1, np.uint32) if wide else zero)
    return blocks[0, 0], blocks[1, 0] if wide else np.zeros(keys.shape[1], np.uint32)


def lengths(shape: int | tuple[int, ...] | list[int]) -> tuple[tuple[int, ...], int]:
    """A shape, given as a number or a sequence, as a tuple; and its number of entries.

    >>> lengths((2, 3)), lengths(4), lengths([])
    (((2, 3), 6), ((4,), 4), ((), 1))
    """
    if isinstance(shape, (tuple, list)):
        return tuple(shape), math.prod(shape)
    return (shape,), shape
