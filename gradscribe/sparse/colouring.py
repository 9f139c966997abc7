# SPDX-License-Identifier: Apache-2.0
"""Colourings of sparsity patterns: columns, rows, or both of a symmetric matrix, in as few groups as a greedy method
finds.

Columns of one colour have no row in common, so one product with their sum gives the entries of all of them.

Sources: A. H. Gebremedhin, F. Manne and A. Pothen, What color is your Jacobian?, SIAM Review 47 (2005), for colourings
and direct recovery; A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, New acyclic and star coloring algorithms
with application to computing Hessians, SIAM J. Sci. Comput. 29 (2007), for star and acyclic colourings.
"""
from typing import Any, NamedTuple

import numba
import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public

compiled = numba.njit(cache=True)
PARTITIONS = ("column", "row", "star", "acyclic")


class Coloring(NamedTuple):
    """Colours 0, 1, ... of the columns (rows for "row"), and the kind of colouring."""
    colors: np.ndarray
    partition: str

    @property
    def count(self) -> int:         # type: ignore[override]  # a tuple's method, which nobody calls of this one
        """How many colours there are."""
        return int(self.colors.max(initial=-1)) + 1


@public
def coloring(pattern: Any, partition: str = "column") -> Coloring:
    """A colouring of a sparsity pattern, by the better of two greedy orders: natural, and by falling degree.

    pattern: a scipy.sparse array or matrix, or a dense one, of shape (m, n); its non-zero entries are the pattern.
    partition: "column" or "row" for Jacobians; "star" or "acyclic" for symmetric matrices, whose entries then come
    directly from a product, or by substitution from fewer products.  Returns a Coloring.

    Raises KindError for another partition, and for a pattern that is not symmetric where it has to be.

    >>> import numpy as np, gradscribe as gs
    >>> three = np.eye(6) + np.eye(6, k=1) + np.eye(6, k=-1)
    >>> [gs.sparse.coloring(three, p).count for p in ("column", "row", "star", "acyclic")]
    [3, 3, 3, 2]
    """
    if partition not in PARTITIONS:
        raise KindError(f"partition must be one of {', '.join(map(repr, PARTITIONS))}, not {partition!r}")
    rows = as_rows(pattern)
    if partition in ("star", "acyclic"):
        check_symmetric(rows)
        method = star if partition == "star" else acyclic
        found = [method(rows.indptr, rows.indices, order) for order in orders(rows)]
    else:
        rows = rows.T.tocsr() if partition == "row" else rows
        columns = rows.tocsc()
        found = [distance_two(rows.indptr, rows.indices, columns.indptr, columns.indices, order)
                 for order in orders(columns)]
    best = min(found, key=lambda c: c.max(initial=-1))
    return Coloring(best, partition)


def as_rows(pattern: Any) -> Any:
    """A pattern as a boolean array in compressed rows, sorted."""
    from scipy import sparse
    try:
        made = sparse.csr_array(pattern, dtype=bool)
    except (TypeError, ValueError):
        raise KindError(f"a sparsity pattern is a matrix, not {type(pattern).__name__}",
                        advice="Give a scipy.sparse array, or a dense matrix of zeros and ones.") from None
    made.sum_duplicates()
    made.eliminate_zeros()
    made.sort_indices()
    return made


def check_symmetric(rows: Any, advice: str = 'Take partition="column".') -> None:
    """Raises KindError unless a pattern is symmetric."""
    if rows.shape[0] != rows.shape[1] or (rows != rows.T).nnz:
        raise KindError("the pattern is not symmetric", advice=advice)


def orders(lines):
    """The natural order, and the one by falling number of entries; lines: the pattern by what is coloured."""
    count = np.diff(lines.indptr)
    return np.arange(count.size), np.argsort(-count, kind="stable")


# The functions below are compiled.  indptr, indices: a matrix in compressed rows.

@compiled
def distance_two(indptr, indices, start, rows, order):
    """Colours of columns: the smallest that no column with a common row has.  start, rows: the compressed columns."""
    n = start.size - 1
    color = np.full(n, -1, np.int64)
    taken = np.full(n + 1, -1, np.int64)
    for v in order:
        for r in rows[start[v]:start[v + 1]]:
            for w in indices[indptr[r]:indptr[r + 1]]:
                if color[w] >= 0:
                    taken[color[w]] = v
        color[v] = first_free(taken, v)
    return color


@compiled
def star(indptr, indices, order):
    """Colours of a graph's vertices such that every path of four vertices has three colours."""
    n = indptr.size - 1
    color = np.full(n, -1, np.int64)
    taken = np.full(n + 1, -1, np.int64)
    for v in order:
        for w in indices[indptr[v]:indptr[v + 1]]:
            if w == v:
                continue
            if color[w] >= 0:
                taken[color[w]] = v
            for x in indices[indptr[w]:indptr[w + 1]]:
                if x == v or x == w or color[x] < 0:
                    continue
                if color[w] < 0:
                    taken[color[x]] = v
                    continue
                for y in indices[indptr[x]:indptr[x + 1]]:
                    if y != w and y != x and color[y] == color[w]:
                        taken[color[x]] = v
                        break
        color[v] = first_free(taken, v)
    return color


@compiled
def acyclic(indptr, indices, order):
    """Colours of a graph's vertices such that neighbours differ and every cycle has three colours.

    Each edge belongs to a tree of its two colours; the trees are kept by union and find (edges).
    """
    n = indptr.size - 1
    color = np.full(n, -1, np.int64)
    taken = np.full(n + 1, -1, np.int64)
    edge, parent = edges(indptr, indices), np.arange(indices.size)
    seen_by, seen_from = np.full(indices.size, -1, np.int64), np.full(indices.size, -1, np.int64)
    for v in order:
        own = [k for k in range(indptr[v], indptr[v + 1]) if indices[k] != v and color[indices[k]] >= 0]
        for k in own:
            taken[color[indices[k]]] = v
        for k in own:
            w = indices[k]
            for j in range(indptr[w], indptr[w + 1]):
                x = indices[j]
                if x == v or x == w or color[x] < 0 or taken[color[x]] == v:
                    continue
                tree = find(parent, edge[j])
                if seen_by[tree] == v and seen_from[tree] != w:
                    taken[color[x]] = v
                seen_by[tree], seen_from[tree] = v, w
        color[v] = first_free(taken, v)
        for k in own:
            w, tree = indices[k], find(parent, edge[k])
            for j in range(indptr[w], indptr[w + 1]):       # the other edges of w to vertices of v's colour
                if indices[j] != w and color[indices[j]] == color[v]:
                    parent[find(parent, edge[j])] = tree
            for j in own:                                   # the other edges of v to vertices of w's colour
                if color[indices[j]] == color[w]:
                    parent[find(parent, edge[j])] = tree
    return color


@compiled
def edges(indptr, indices):
    """The number of the edge at each place of a symmetric matrix: the first of its two places."""
    out = np.arange(indices.size)
    filled = indptr[:-1].copy()
    for v in range(indptr.size - 1):
        for k in range(indptr[v], indptr[v + 1]):
            w = indices[k]
            out[filled[w]] = min(k, filled[w])              # rows are sorted: the places of a column come in order
            filled[w] += 1
    return out


@compiled
def find(parent, node):
    """The root of a node, with paths halved."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@compiled
def first_free(taken, v):
    """The smallest colour that is not taken for a vertex."""
    c = 0
    while taken[c] == v:
        c += 1
    return c


@compiled
def direct_places(indptr: np.ndarray, indices: np.ndarray, color: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of a symmetric matrix are in its products with the colours' sums: (row, colour) of each."""
    row, group = np.zeros(indices.size, np.int64), np.zeros(indices.size, np.int64)
    times = np.zeros(color.size + 1, np.int64)
    by = np.full(color.size + 1, -1, np.int64)
    alone = np.zeros(indices.size, np.bool_)
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            c = color[indices[k]]
            if by[c] != i:
                by[c], times[c] = i, 0
            times[c] += 1
        for k in range(indptr[i], indptr[i + 1]):
            alone[k] = times[color[indices[k]]] == 1
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if alone[k]:
                row[k], group[k] = i, color[j]
            else:
                row[k], group[k] = j, color[i]
    return row, group


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
