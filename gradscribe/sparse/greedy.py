# SPDX-License-Identifier: Apache-2.0
"""Greedy colourings: each vertex, in a given order, gets the smallest colour that a condition allows.

indptr, indices: a matrix in compressed rows; of a symmetric one, the graph whose edges are its entries.

Sources: A. H. Gebremedhin, F. Manne and A. Pothen, What color is your Jacobian?, SIAM Review 47 (2005), for the
colourings of columns and of both sides; A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, New acyclic and star
coloring algorithms with application to computing Hessians, SIAM J. Sci. Comput. 29 (2007), for the others.
"""
import numba
import numpy as np

compiled = numba.njit(cache=True)
Ints = np.ndarray                       # of whole numbers


@compiled
def distance_two(indptr: Ints, indices: Ints, start: Ints, rows: Ints, order: Ints) -> Ints:
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
def star(indptr: Ints, indices: Ints, order: Ints, two_sides: bool, neutral: np.ndarray) -> Ints:
    """Colours of a graph's vertices such that every path of four vertices has three colours.

    The edges of two colours make stars; `hub` is the vertex in the middle of each that has two edges or more.  A vertex
    v may not have the colour of a hub two edges away if its neighbour is a leaf of that star, nor, where two of its
    neighbours have one colour, a colour of their neighbours.  (Gebremedhin, Tarafdar, Manne and Pothen 2007, algorithm
    4.1.)  Nor may it have a colour two edges away if the vertex between has no colour yet and fewer neighbours than v:
    if not, that vertex would be a hub, and all neighbours of v would have to differ from it.

    two_sides: the graph is bipartite, and the colours of its two sides are counted apart.  neutral: vertices that stay
    without a colour (-1), so that their neighbours have different ones.
    """
    n = indptr.size - 1
    color, taken = np.full(n, -1, np.int64), np.full(n + 1, -1, np.int64)
    first, seen = np.zeros(n + 1, np.int64), np.full((2, n + 1), -1, np.int64)
    edge, of, hub = edges(indptr, indices), np.arange(indices.size), np.full(indices.size, -1, np.int64)
    around, last = np.zeros((2, indices.size), np.int64), np.full(n, -1, np.int64)
    filled = 0                      # the hubs around each vertex are lists: the last one, and the one before each
    keys, ends, size = np.full(room(indices.size), -1, np.int64), np.zeros((2, room(indices.size)), np.int64), n + 1
    for v in order:
        if neutral[v]:
            continue
        take_for_star(indptr, indices, color, taken, v, two_sides, neutral, first, seen, around, last)
        color[v] = first_free(taken, v)
        for k in range(indptr[v], indptr[v + 1]):
            w = indices[k]
            if w == v:
                continue
            at = slot(keys, w * size + color[v])            # of the first neighbour of w that has this colour
            new = keys[at] < 0
            if new:
                keys[at], ends[0, at], ends[1, at] = w * size + color[v], v, k
            if color[w] < 0 or new and first[color[w]] == k:
                continue
            if new:
                one, j, two, middle = indices[first[color[w]]], first[color[w]], w, v
            else:
                one, j, two, middle = ends[0, at], ends[1, at], v, w
            s = of[edge[j]]
            of[edge[k]] = s
            if hub[s] < 0:
                filled = noted(around, last, filled, one, middle)
            filled = noted(around, last, filled, two, middle)
            hub[s] = middle
    return color


@compiled
def room(count):
    """The length of a hash table of so many keys: a power of two, at most half filled."""
    size = 2
    while size < 2 * count:
        size *= 2
    return size


@compiled
def slot(keys, key):
    """The place of a key in a hash table, or that of -1, where it belongs."""
    at = (key * 0x2545F4914F6CDD1D >> 31) & (keys.size - 1)         # its upper bits depend on all bits of the key
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & (keys.size - 1)
    return at


@compiled
def take_for_star(indptr, indices, color, taken, v, two_sides, neutral, first, seen, around, last):
    """Takes the colours that v may not have; first: the place of v's first neighbour of each colour."""
    degree = indptr[v + 1] - indptr[v]
    for k in range(indptr[v], indptr[v + 1]):
        w = indices[k]
        c = color[w]
        if w == v:
            continue
        if c < 0:
            if neutral[w] or indptr[w + 1] - indptr[w] < degree:
                take_around(indptr, indices, color, taken, v, w)
            continue
        if not two_sides:
            taken[c] = v
        if seen[0, c] == v:                                 # v would be a hub of w and of that neighbour
            take_around(indptr, indices, color, taken, v, w)
            if seen[1, c] != v:
                seen[1, c] = v
                take_around(indptr, indices, color, taken, v, indices[first[c]])
            continue
        seen[0, c], first[c] = v, k
        at = last[w]
        while at >= 0:
            taken[color[around[0, at]]] = v
            at = around[1, at]


@compiled
def take_around(indptr, indices, color, taken, v, w):
    """Takes the colours of a vertex's neighbours for v."""
    for x in indices[indptr[w]:indptr[w + 1]]:
        if x != v and color[x] >= 0:
            taken[color[x]] = v


@compiled
def noted(around, last, filled, leaf, middle):
    """Adds the hub of a star to the list of its leaf; returns how many places of the lists are filled."""
    around[0, filled], around[1, filled], last[leaf] = middle, last[leaf], filled
    return filled + 1


@compiled
def acyclic(indptr: Ints, indices: Ints, order: Ints) -> Ints:
    """Colours of a graph's vertices such that neighbours differ and every cycle has three colours.

    Each edge belongs to a tree of its two colours; the trees are kept by union and find (edges).
    """
    n = indptr.size - 1
    color = np.full(n, -1, np.int64)
    taken = np.full(n + 1, -1, np.int64)
    edge, parent = edges(indptr, indices), np.arange(indices.size)
    met = np.full(n, -1, np.int64)
    seen_by, seen_from = np.full(indices.size, -1, np.int64), np.full(indices.size, -1, np.int64)
    for v in order:
        own = [k for k in range(indptr[v], indptr[v + 1]) if indices[k] != v and color[indices[k]] >= 0]
        take_twice_met(indptr, indices, color, taken, v, met)
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
def cover(indptr: Ints, indices: Ints, order: Ints) -> np.ndarray:
    """Whether each vertex is among some that touch every edge: in this order, if an edge of its is not touched."""
    out = np.zeros(indptr.size - 1, np.bool_)
    for v in order:
        for w in indices[indptr[v]:indptr[v + 1]]:
            if not out[w]:
                out[v] = True
                break
    return out


@compiled
def take_twice_met(indptr, indices, color, taken, v, met):
    """Takes colours two edges away from v, by two ways or more over vertices without a colour.

    If v had such a colour, these vertices would have to differ, and in a matrix with two dense columns all the others.
    So only those count that have at most half of the neighbours of v.
    """
    for w in indices[indptr[v]:indptr[v + 1]]:
        if color[w] < 0 and 2 * (indptr[w + 1] - indptr[w]) <= indptr[v + 1] - indptr[v]:
            for x in indices[indptr[w]:indptr[w + 1]]:
                if x != v and color[x] >= 0 and met[x] == v:
                    taken[color[x]] = v
                met[x] = v


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
