# SPDX-License-Identifier: Apache-2.0
"""Colourings of sparsity patterns: of columns, of rows, of both at once, and of symmetric matrices, in as few groups as
greedy methods find.

Columns of one colour have no row in common, so one product with their sum gives the entries of all of them.  With both
at once, an entry comes from a product with columns or from one with rows; recovery.py says from which.

Sources: A. R. Curtis, M. J. D. Powell and J. K. Reid, On the estimation of sparse Jacobian matrices (1974), for
columns; T. F. Coleman and A. Verma, The efficient computation of sparse Jacobian matrices using automatic
differentiation, SIAM J. Sci. Comput. 19 (1998), for both; greedy.py has those of the methods.
"""
import functools
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.sparse.greedy import acyclic, distance_two, star
from gradscribe.sparse.orders import ORDERS, Graph, adjacency, columns_with_a_common_row
from gradscribe.sparse.recovery import choices, lines, needed, renumbered

DEFAULT = ("largest_first", "smallest_last")      # docs/howto/sparse.md has the colours of each order


class Coloring(NamedTuple):
    """Colours 0, 1, ... of the columns (of the rows for "row"), and the kind of colouring.

    For "both", `row_colors` are those of the rows, which go on counting.  A line whose colour is -1 needs no product.
    """
    colors: np.ndarray
    partition: str
    row_colors: np.ndarray | None = None

    @property
    def sides(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The colours of the columns and of the rows; of a symmetric matrix, these are the same."""
        if self.partition == "both":
            return self.colors, self.row_colors
        return (None if self.partition == "row" else self.colors), (self.colors if self.partition == "row" else None)

    @property
    def count(self) -> int:         # type: ignore[override]  # a tuple's method, which nobody calls of this one
        """How many colours there are."""
        more = () if self.row_colors is None else self.row_colors
        return int(max(self.colors.max(initial=-1), np.max(more, initial=-1))) + 1


@public
def coloring(pattern: Any, partition: str = "column", order: Any = DEFAULT) -> Coloring:
    """A colouring of a sparsity pattern by a greedy method.

    pattern: a scipy.sparse array or matrix, or a dense one, of shape (m, n); its non-zero entries are the pattern.
    partition: "column", "row" or "both" for Jacobians; "star" or "acyclic" for symmetric matrices, whose entries then
    come directly from a product, or by substitution from fewer products.  order: in which order the method takes the
    lines: "natural", "random", "largest_first", "smallest_last", "incidence_degree" or "dynamic_largest_first"; several
    of them, of whose colourings the one with the fewest colours is taken; or a permutation of the lines (for "both", of
    the n columns and then the m rows).  Returns a Coloring.

    Raises KindError for another partition or order, and for a pattern that is not symmetric where it has to be.

    >>> import numpy as np, gradscribe as gs
    >>> three = np.eye(6) + np.eye(6, k=1) + np.eye(6, k=-1)
    >>> [gs.sparse.coloring(three, p).count for p in ("column", "row", "star", "acyclic")]
    [3, 3, 3, 2]
    >>> arrow = np.eye(6)
    >>> arrow[0] = arrow[:, 0] = 1.0
    >>> [gs.sparse.coloring(arrow, p).count for p in ("column", "row", "both")]
    [6, 6, 3]
    """
    if partition not in METHODS:
        raise KindError(f"partition must be one of {', '.join(map(repr, METHODS))}, not {partition!r}")
    rows = as_rows(pattern)
    found = [METHODS[partition](rows, by) for by in each(order)]
    return min(found, key=lambda c: c.count)


def each(order: Any) -> list:
    """The orders that an argument names."""
    if isinstance(order, str):
        order = (order,)
    if isinstance(order, (tuple, list)) and order and all(isinstance(o, str) and o in ORDERS for o in order):
        return [ORDERS[o] for o in order]
    if isinstance(order, np.ndarray) and order.ndim == 1 and order.dtype.kind in "iu" and \
            np.array_equal(np.sort(order), np.arange(order.size)):
        return [order.astype(np.int64)]
    raise KindError(f"order must be a permutation, or one or more of {', '.join(map(repr, ORDERS))}, not {order!r}")


def ordered(order: Any, graph: Graph) -> np.ndarray:
    """The vertices of a graph in an order."""
    if callable(order):
        return order(graph)
    if order.size != graph.size:
        raise KindError(f"the order is a permutation of {order.size} lines; {graph.size} are coloured")
    return order


def as_rows(pattern: Any) -> Any:
    """A pattern as a boolean array in compressed rows, sorted."""
    from scipy import sparse
    try:
        made = sparse.csr_array(pattern)
        if made.ndim != 2 or made.dtype.kind not in "biufc":
            raise TypeError
        made = made.astype(bool)
    except (TypeError, ValueError):
        raise KindError(f"a sparsity pattern is a matrix, not {type(pattern).__name__}",
                        advice="Give a scipy.sparse array, or a dense matrix of zeros and ones.") from None
    made.sum_duplicates()
    made.eliminate_zeros()
    made.sort_indices()
    if made.nnz < 1 << 31:          # one kind of places, so that there is one compiled version of each method
        made.indptr, made.indices = made.indptr.astype(np.int32), made.indices.astype(np.int32)
    return made


def check_symmetric(rows: Any, advice: str = 'Take partition="column".') -> None:
    """Raises KindError unless a pattern is symmetric."""
    if rows.shape[0] != rows.shape[1] or (rows != rows.T).nnz:
        raise KindError("the pattern is not symmetric", advice=advice)


# a function for each kind of colouring

def by_columns(rows: Any, order: Any) -> Coloring:
    """Columns with a common row have different colours."""
    graph = columns_with_a_common_row(rows)
    return Coloring(distance_two(rows.indptr, rows.indices, graph.start, graph.lines, ordered(order, graph)), "column")


def by_rows(rows: Any, order: Any) -> Coloring:
    """Rows with a common column have different colours."""
    return by_columns(rows.T.tocsr(), order)._replace(partition="row")


def by_stars(rows: Any, order: Any) -> Coloring:
    """A symmetric pattern: entries come directly from products."""
    check_symmetric(rows)
    graph = adjacency(rows)
    colors = star(rows.indptr, rows.indices, ordered(order, graph), False, np.zeros(graph.size, bool))
    return Coloring(renumbered(colors, needed(*choices(rows, colors, colors))), "star")


def by_trees(rows: Any, order: Any) -> Coloring:
    """A symmetric pattern: entries come from products by substitution."""
    check_symmetric(rows)
    return Coloring(acyclic(rows.indptr, rows.indices, ordered(order, adjacency(rows))), "acyclic")


def by_both(rows: Any, order: Any) -> Coloring:
    """The fewest colours of several: those of the columns, those of the rows, and star bicolourings, for which lines
    that need no colour are chosen in different ways (`covers`).
    """
    n = rows.shape[1]
    best: Any = None
    for bound, make in sorted(candidates(rows, order), key=lambda c: c[0]):
        if best is not None and bound >= best.count:
            break
        columns, across = make()
        kept = needed(*choices(rows, columns, np.where(across >= 0, across + n, -1)))
        if best is None or kept.size < best.count:
            first = np.searchsorted(kept, n)
            across = renumbered(across, kept[first:] - n)
            best = Coloring(renumbered(columns, kept[:first]), "both", np.where(across >= 0, across + first, -1))
    return best


def candidates(rows, order):
    """Ways to colour columns and rows: (how many colours it takes at least, function that gives the colours of both)"""
    from scipy import sparse
    m, n = rows.shape
    turned = rows.T.tocsr()
    empty = [sparse.csr_array((k, k), dtype=bool) for k in (n, m)]
    both = as_rows(sparse.block_array([[empty[0], turned], [rows, empty[1]]]))
    degree = np.diff(both.indptr)
    of_columns, of_rows = (order, order) if callable(order) else (order[order < n], order[order >= n] - n)
    yield degree[n:].max(initial=0), lambda: (by_columns(rows, of_columns).colors, np.full(m, -1))
    yield degree[:n].max(initial=0), lambda: (np.full(n, -1), by_columns(turned, of_rows).colors)
    vertices = ordered(order, adjacency(both))
    for neutral in covers(rows, degree):
        colors = functools.partial(star, both.indptr, both.indices, vertices, True, neutral)
        around, some = np.where(neutral, degree, 0), ~neutral & (degree > 0)
        bound = max(around[n:].max(initial=0), some[:n].any()) + max(around[:n].max(initial=0), some[n:].any())
        yield bound, lambda colors=colors: np.split(colors(), [n])


def covers(rows, degree):
    """Which lines may stay without a colour, in several ways; of every entry, one line has one.

    Lines with many entries have a colour; so have the columns, or the rows, of the entries that are left.
    """
    i, j = lines(rows) + rows.shape[1], rows.indices
    many, seen = degree.max(initial=0), set()
    while many > 0:
        heavy = degree > many
        light = ~(heavy[i] | heavy[j])
        for side in (j, i):
            neutral = ~heavy
            neutral[side[light]] = False
            if neutral.tobytes() not in seen and np.any(neutral & (degree > 0)):
                seen.add(neutral.tobytes())
                yield neutral
        many //= 2


METHODS = {"column": by_columns, "row": by_rows, "both": by_both, "star": by_stars, "acyclic": by_trees}
