# SPDX-License-Identifier: Apache-2.0
"""Orders in which a greedy colouring takes the vertices of a graph.  An order is a function of the graph.

Sources: D. J. A. Welsh and M. B. Powell, An upper bound for the chromatic number of a graph (1967), for largest first;
D. W. Matula, G. Marble and J. D. Isaacson, Graph coloring algorithms (1972), for smallest last; T. F. Coleman and
J. J. Moré, Estimation of sparse Jacobian matrices and graph coloring problems (1983), for incidence degree;
A. H. Gebremedhin, D. Nguyen, M. M. A. Patwary and A. Pothen, ColPack (2013), for dynamic largest first.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

compiled = numba.njit(cache=True)


class Graph(NamedTuple):
    """Vertices v and w are neighbours if w is in a line of v: lines[start[v]:start[v + 1]] are the lines of v,
    indices[indptr[l]:indptr[l + 1]] the vertices of line l.
    """
    start: np.ndarray
    lines: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray

    @property
    def size(self) -> int:
        """How many vertices there are."""
        return self.start.size - 1


def columns_with_a_common_row(rows: Any) -> Graph:
    """The graph of a matrix's columns, of which two are neighbours if they have a row in common."""
    columns = rows.tocsc()
    return Graph(columns.indptr, columns.indices, rows.indptr, rows.indices)


def adjacency(rows: Any) -> Graph:
    """The graph of a symmetric matrix: vertices v and w are neighbours if entry (v, w) is not zero."""
    every = np.arange(rows.shape[0] + 1, dtype=rows.indptr.dtype)
    return Graph(every, every[:-1], rows.indptr, rows.indices)


def natural(graph: Graph) -> np.ndarray:
    """0, 1, 2, ..."""
    return np.arange(graph.size)


def random(graph: Graph) -> np.ndarray:
    """By chance, the same one for each graph of a size."""
    return np.random.default_rng(0).permutation(graph.size)


def largest_first(graph: Graph) -> np.ndarray:
    """By falling degree."""
    return np.argsort(-degrees(*graph), kind="stable")


def smallest_last(graph: Graph) -> np.ndarray:
    """Backwards: each time one of those left that have the fewest neighbours among them."""
    return one_by_one(*graph, degrees(*graph), -1, -1)[::-1].copy()


def incidence_degree(graph: Graph) -> np.ndarray:
    """Each time one that has the most neighbours among those before it."""
    return one_by_one(*graph, np.zeros(graph.size, np.int64), 1, 1)


def dynamic_largest_first(graph: Graph) -> np.ndarray:
    """Each time one of those left that have the most neighbours among them."""
    return one_by_one(*graph, degrees(*graph), 1, -1)


ORDERS: dict[str, Callable[[Graph], np.ndarray]] = {order.__name__: order for order in (
    natural, random, largest_first, smallest_last, incidence_degree, dynamic_largest_first)}


@compiled
def degrees(start, lines, indptr, indices):
    """How many neighbours each vertex of a graph has."""
    n = start.size - 1
    out, seen = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    for v in range(n):
        seen[v] = v
        for r in lines[start[v]:start[v + 1]]:
            for w in indices[indptr[r]:indptr[r + 1]]:
                if seen[w] != v:
                    seen[w] = v
                    out[v] += 1
    return out


@compiled
def one_by_one(start, lines, indptr, indices, key, best, change):
    """Takes all vertices: each time one with the largest key (best = 1) or the smallest (best = -1).

    The keys of its neighbours that are left change by `change`.  Vertices with the same key are in a list; those that
    came last are taken first.
    """
    n = start.size - 1
    most = degrees(start, lines, indptr, indices).max() if n else 0
    head = np.full(most + 1, -1, np.int64)
    after, before = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for v in range(n - 1, -1, -1):
        insert(head, after, before, key, v)
    order, left, seen = np.zeros(n, np.int64), np.ones(n, np.bool_), np.full(n, -1, np.int64)
    at = most if best > 0 else 0
    for k in range(n):
        while head[at] < 0:
            at -= best
        v = head[at]
        remove(head, after, before, key, v)
        order[k], left[v] = v, False
        for r in lines[start[v]:start[v + 1]]:
            for w in indices[indptr[r]:indptr[r + 1]]:
                if left[w] and seen[w] != v:
                    seen[w] = v
                    remove(head, after, before, key, w)
                    key[w] += change
                    insert(head, after, before, key, w)
                    if (key[w] - at) * best > 0:
                        at = key[w]
    return order


@compiled
def insert(head, after, before, key, v):
    """Puts a vertex at the head of the list of its key."""
    first = head[key[v]]
    after[v], before[v] = first, -1
    if first >= 0:
        before[first] = v
    head[key[v]] = v


@compiled
def remove(head, after, before, key, v):
    """Takes a vertex out of the list of its key."""
    if before[v] >= 0:
        after[before[v]] = after[v]
    else:
        head[key[v]] = after[v]
    if after[v] >= 0:
        before[after[v]] = before[v]
