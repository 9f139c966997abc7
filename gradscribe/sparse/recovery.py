# SPDX-License-Identifier: Apache-2.0
"""Which entries of compressed products are the entries of a matrix.

An entry (i, j) comes from the product with the columns of j's colour if j is the only one of them in row i, and from
the product with the rows of i's colour if i is the only one of them in column j.
"""
from typing import Any

import numpy as np

from gradscribe.sparse.greedy import compiled, cover
from gradscribe.sparse.orders import adjacency, dynamic_largest_first


def choices(rows: Any, columns: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each entry, the colour of its column and the colour of its row; -1 where it does not come from that product.

    rows: a pattern in compressed rows; columns, across: the colours of its columns and rows, -1 for none.
    """
    from scipy import sparse
    by_column = np.where(alone(rows.indptr, rows.indices, columns), columns[rows.indices], -1)
    turned = sparse.csr_array((np.arange(rows.nnz), rows.indices, rows.indptr), rows.shape).tocsc()
    by_row = np.empty(rows.nnz, np.int64)
    by_row[turned.data] = np.where(alone(turned.indptr, turned.indices, across), across[turned.indices], -1)
    if np.any((by_column < 0) & (by_row < 0)):
        raise AssertionError("a colouring does not determine every entry")
    return by_column, by_row


def needed(by_column: np.ndarray, by_row: np.ndarray) -> np.ndarray:
    """A few of the colours that determine every entry: those without a choice, and a greedy cover of the rest."""
    from scipy import sparse
    used = np.zeros(max(by_column.max(initial=-1), by_row.max(initial=-1)) + 1, bool)
    single = (by_column < 0) | (by_row < 0) | (by_column == by_row)
    used[np.maximum(by_column, by_row)[single]] = True
    left = np.flatnonzero(~single)
    left = left[~(used[by_column[left]] | used[by_row[left]])]
    ends = np.stack([by_column[left], by_row[left]])
    pairs = sparse.csr_array((np.ones(2 * left.size, bool), np.concatenate([ends, ends[::-1]], axis=1)),
                             (used.size, used.size))
    return np.flatnonzero(used | cover(pairs.indptr, pairs.indices, dynamic_largest_first(adjacency(pairs))))


def renumbered(colors: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Colours by their places among those that are kept; -1 for the others."""
    place = np.full(max(colors.max(initial=-1), kept.max(initial=-1)) + 2, -1, np.int64)
    place[kept] = np.arange(kept.size)
    return place[colors]


def places(pattern: Any, coloring: Any) -> np.ndarray:
    """Where each entry of a pattern is among the products of a colouring: those of columns, then those of rows.

    A product of columns has an entry for each row, one of rows for each column.
    """
    m, n = pattern.shape
    columns, across = coloring.sides
    i, j = lines(pattern), pattern.indices.astype(np.int64)
    if coloring.partition == "star":
        by_column, by_row = choices(pattern, columns, columns)
        return np.where(by_column >= 0, by_column * m + i, by_row * m + j)
    columns = np.full(n, -1) if columns is None else columns
    first = columns.max(initial=-1) + 1
    by_column, by_row = choices(pattern, columns, np.full(m, -1) if across is None else across)
    return np.where(by_column >= 0, by_column * m + i, first * m + (by_row - first) * n + j)


def lines(pattern: Any) -> np.ndarray:
    """The row of each entry of a pattern in compressed rows."""
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))


@compiled
def alone(indptr: np.ndarray, indices: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Whether each entry of a row is the only one there whose column has its colour."""
    times = np.zeros(color.max() + 1 if color.size else 0, np.int64)
    out = np.zeros(indices.size, np.bool_)
    for i in range(indptr.size - 1):
        line = indices[indptr[i]:indptr[i + 1]]
        for j in line:
            if color[j] >= 0:
                times[color[j]] += 1
        for k in range(indptr[i], indptr[i + 1]):
            out[k] = color[indices[k]] >= 0 and times[color[indices[k]]] == 1
        for j in line:
            if color[j] >= 0:
                times[color[j]] = 0
    return out


@compiled
def substituted(indptr: np.ndarray, indices: np.ndarray, color: np.ndarray, products: np.ndarray) -> np.ndarray:
    """The entries of a symmetric matrix from its products with the sums of an acyclic colouring.

    In the tree of two colours, an edge at a leaf is an entry of the product; then it is taken off, with its entry.
    """
    n = indptr.size - 1
    out = np.zeros(indices.size, products.dtype)
    left = np.zeros((n, products.shape[1]), np.int64)       # edges of a vertex to each colour that are not known
    done = np.zeros(indices.size, np.bool_)
    stack = np.zeros(indices.size + n + 1, np.int64)
    depth = 0
    rest = products.copy()
    row = np.zeros(indices.size, np.int64)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            row[k] = i
            left[i, color[indices[k]]] += 1
    for k in range(indices.size):
        if left[row[k], color[indices[k]]] == 1:
            stack[depth] = k
            depth += 1
    while depth > 0:
        depth -= 1
        k = stack[depth]
        if done[k]:
            continue
        i, j = row[k], indices[k]
        value = rest[i, color[j]]
        out[k], done[k] = value, True
        left[i, color[j]] -= 1
        if i == j:
            continue
        m = np.searchsorted(indices[indptr[j]:indptr[j + 1]], i) + indptr[j]
        if done[m]:
            continue
        out[m], done[m] = value, True
        rest[j, color[i]] -= value
        left[j, color[i]] -= 1
        if left[j, color[i]] == 1:
            for q in range(indptr[j], indptr[j + 1]):
                if not done[q] and color[indices[q]] == color[i]:
                    stack[depth] = q
                    depth += 1
    return out
