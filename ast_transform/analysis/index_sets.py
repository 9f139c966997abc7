# SPDX-License-Identifier: Apache-2.0
"""A graph of unions of index sets: what it costs to make a union does not depend on the sizes of the sets.

Node 0 is the empty set, node k of the first n the set {k - 1}; every other node is the union of two earlier ones.
"""
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np


class Unions:
    """The graph; `left` and `right` are the two parts of each node."""

    def __init__(self, n: int):
        self.n = n
        self.left, self.right = np.zeros(max(64, 2 * n + 2), np.int64), np.zeros(max(64, 2 * n + 2), np.int64)
        self.size = n + 1
        self.known: dict = {}           # {(left, right): node}, of single unions

    def leaves(self, shape: tuple) -> Any:
        """The sets of an argument's entries."""
        return np.arange(1, self.n + 1).reshape(shape)

    def join(self, a: Any, b: Any) -> Any:
        """The unions of sets, entry by entry; arrays broadcast."""
        if (type(a) is int or np.ndim(a) == 0) and (type(b) is int or np.ndim(b) == 0):
            return self.one(int(a), int(b))
        a, b = np.broadcast_arrays(a, b)
        out = np.where(a == 0, b, a)
        new = (a != b) & (a != 0) & (b != 0)
        if new.any():
            low, high = np.minimum(a[new], b[new]), np.maximum(a[new], b[new])
            pairs, place = np.unique(low * self.size + high, return_inverse=True)
            out[new] = self.added(pairs // self.size, pairs % self.size)[place.reshape(-1)]
        return out

    def one(self, a, b):
        if a == b or b == 0:
            return a
        if a == 0:
            return b
        key = (a, b) if a < b else (b, a)
        found = self.known.get(key)
        if found is None:
            if self.size == self.left.size:
                self.grow(self.size + 1)
            self.left[self.size], self.right[self.size] = key
            found = self.known[key] = self.size
            self.size += 1
        return found

    def grow(self, least):
        room = np.zeros(max(least, 2 * self.left.size) - self.left.size, np.int64)
        self.left, self.right = np.concatenate([self.left, room]), np.concatenate([self.right, room])

    def added(self, left, right):
        end = self.size + left.size
        if end > self.left.size:
            self.grow(end)
        self.left[self.size:end], self.right[self.size:end] = left, right
        made = np.arange(self.size, end)
        self.size = end
        return made

    def reduce(self, sets: np.ndarray, axes: tuple, keepdims: bool = False) -> Any:
        """The unions along axes."""
        for axis in sorted(axes, reverse=True):
            moved = np.moveaxis(sets, axis, 0)
            while len(moved) > 1:
                half = len(moved) // 2
                moved = np.concatenate([self.join(moved[:half], moved[half:2 * half]), moved[2 * half:]])
            out = moved[0] if len(moved) else np.zeros(moved.shape[1:], np.int64)
            sets = np.expand_dims(out, axis) if keepdims else out
        return sets

    def all_of(self, sets: Iterable) -> int:
        """The union of several sets."""
        different = np.unique(np.asarray(list(sets), np.int64))
        return int(self.reduce(different, (0,))) if different.size else 0

    def rows(self, sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(indptr, indices): the elements of the sets, in order."""
        return compiled()(self.left[:self.size], self.right[:self.size], self.n, np.ascontiguousarray(sets, np.int64))

    def evaluated(self, sets: np.ndarray) -> tuple:
        """The sets as one comparable value."""
        indptr, indices = self.rows(np.ravel(sets))
        return indptr.tobytes(), indices.tobytes()


@functools.cache
def compiled():
    import numba
    return numba.njit(cache=True)(sets_of)


def sets_of(left: np.ndarray, right: np.ndarray, n: int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(indptr, indices): the elements of the wanted nodes' sets.

    The set of a node is kept only if several nodes have it as a part, or if it is wanted: a chain of unions, as of a
    sum over a loop, is walked through once.
    """
    size = left.size
    parents = np.zeros(size, np.int64)
    for w in wanted:
        parents[w] += 2
    for k in range(size - 1, n, -1):
        if parents[k] > 0:
            parents[left[k]] += 1
            parents[right[k]] += 1
    start, length = np.zeros(size, np.int64), np.zeros(size, np.int64)
    pool = np.zeros(max(1024, 4 * n), np.int64)
    filled, mark, stack = 0, np.full(n, -1, np.int64), np.zeros(64, np.int64)
    for k in range(1, size):
        if parents[k] < 2 and k > n or parents[k] == 0:
            continue
        start[k] = filled
        stack[0] = k
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if node != k and length[node] > 0 or node <= n:
                first, count = (start[node], length[node]) if node > n else (0, 1)
                if filled + count > pool.size:
                    pool = np.concatenate((pool, np.zeros(pool.size + count, np.int64)))
                for j in range(count):
                    e = pool[first + j] if node > n else node - 1
                    if mark[e] != k:
                        mark[e] = k
                        pool[filled] = e
                        filled += 1
                continue
            if depth + 2 > stack.size:
                stack = np.concatenate((stack, np.zeros(stack.size, np.int64)))
            stack[depth] = left[node]
            stack[depth + 1] = right[node]
            depth += 2
        length[k] = filled - start[k]
    indptr = np.zeros(wanted.size + 1, np.int64)
    for k in range(wanted.size):
        indptr[k + 1] = indptr[k] + (length[wanted[k]] if wanted[k] > 0 else 0)
    indices = np.zeros(indptr[-1], np.int64)
    for k in range(wanted.size):
        w = wanted[k]
        if w > 0:
            indices[indptr[k]:indptr[k + 1]] = np.sort(pool[start[w]:start[w] + length[w]])
    return indptr, indices
