# SPDX-License-Identifier: Apache-2.0
"""Rules for scipy.spatial.distance, loaded if the program has imported it.

Each distance is defined once, for two arrays along their last axis, and inlined in place of its call.  Results are
float64, as in SciPy.  The derivative of a distance is 0 where the distance is 0, as for np.abs.
"""
import math

import numpy as np
from scipy.spatial import distance

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import distances_samples as samples
from gradscribe.ast_transform.rules.distributions import double, is_count
from gradscribe.ast_transform.rules.elementwise import is_number

WEIGHTED = ("euclidean", "sqeuclidean", "cityblock", "minkowski")


# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def metric_of(metric, w, name):
    """The main name of a metric, from any of SciPy's names for it."""
    short = {"euclid": "euclidean", "eu": "euclidean", "e": "euclidean", "cheby": "chebyshev", "cheb": "chebyshev",
             "ch": "chebyshev", "cblock": "cityblock", "cb": "cityblock", "c": "cityblock", "cos": "cosine",
             "sqe": "sqeuclidean", "sqeuclid": "sqeuclidean", "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski"}
    metric = metric.lower() if isinstance(metric, str) else getattr(metric, "__name__", "")
    metric = short.get(metric, metric)
    if metric not in (*WEIGHTED, "chebyshev", "cosine"):
        raise ValueError(f"scipy.spatial.distance.{name} with the metric {metric!r} has no derivative rule",
                         f"Metrics with a rule are {', '.join(WEIGHTED)}, chebyshev and cosine.")
    if w is not None and metric not in WEIGHTED:
        raise ValueError(f"scipy.spatial.distance.{name} with the metric {metric!r} and weights has no derivative rule",
                         "Leave w= out.")
    return metric


@static
def is_two(p):
    return is_number(p) and p == 2


@static
def of_rank(rank, name, *arrays):
    if any(a.ndim != rank for a in arrays):
        raise ValueError(f"scipy.spatial.distance.{name} needs arrays with {rank} axes",
                         "Give points as the rows of a matrix." if rank == 2 else "Give one point each.")


@static
def known_form(x, force):
    if x.ndim not in (1, 2) or force not in ("no", "tovector", "tomatrix"):
        raise ValueError("scipy.spatial.distance.squareform needs a vector or a matrix",
                         "Take one matrix at a time.")


# --- helpers that are spliced in --------------------------------------------------------------------------------------

def real(x):
    return double(floating(x))


def floating(x):
    return x * 1.0 if is_count(x) else x


def weighted(x, w):
    return x if w is None else x * w


def root(total, power):
    """A power below one of a non-negative sum; where the sum is 0, the derivative is 0."""
    zero = total == 0
    positive = np.where(zero, 1.0, total)
    return np.where(zero, 0.0, np.sqrt(positive) if power == 0.5 else positive**power)


def number(x):
    return +x if x.ndim == 0 else x


def between(u, v, metric, p, w):
    """The distances of two arrays of points along the last axis."""
    if metric == "cosine":
        lengths = np.sqrt(np.sum(u * u, axis=-1)) * np.sqrt(np.sum(v * v, axis=-1))
        return 1 - np.sum(u * v, axis=-1) / lengths
    if metric == "sqeuclidean":
        return np.sum(weighted((u - v) ** 2, w), axis=-1)
    if metric == "euclidean":
        return number(root(np.sum(weighted((u - v) ** 2, w), axis=-1), 0.5))
    if metric == "cityblock":
        return np.sum(weighted(np.abs(u - v), w), axis=-1)
    if metric == "chebyshev":
        return np.max(np.abs(u - v), axis=-1)
    if is_number(p):
        if p == 1:
            return between(u, v, "cityblock", p, w)
        if p == 2:
            return between(u, v, "euclidean", p, w)
        if p == math.inf and w is None:
            return between(u, v, "chebyshev", p, w)
    return number(root(np.sum(weighted(np.abs(u - v) ** p, w), axis=-1), 1 / p))


# --- the table --------------------------------------------------------------------------------------------------------

@general(distance.cdist, samples=samples.two_sets, rewrite=True, arrays=("XA", "XB", "w"), memory=FRESH)
class cdist:
    def primal(XA, XB, metric="euclidean", *, p=2, w=None):
        of_rank(2, "cdist", XA, XB)
        return between(real(XA)[:, None, :], real(XB)[None, :, :], metric_of(metric, w, "cdist"), p, w)


@general(distance.pdist, samples=samples.one_set, rewrite=True, arrays=("X", "w"), memory=FRESH)
class pdist:
    """The distance of each pair once: the entries above the diagonal of the full matrix, row by row."""
    def primal(X, metric="euclidean", *, p=2, w=None):
        of_rank(2, "pdist", X)
        rows, columns = np.triu_indices(X.shape[0], 1)
        X = real(X)
        return between(X[rows], X[columns], metric_of(metric, w, "pdist"), p, w)


def _of_two_points(function, metric):
    @general(function, samples=samples.two_points, rewrite=True, arrays=("u", "v", "w"), memory=FRESH)
    class points:
        def primal(u, v, w=None):
            of_rank(1, metric, u, v)
            return between(u, v, metric_of(metric, w, metric), 2, w)


for _name in ("cityblock", "chebyshev"):
    _of_two_points(getattr(distance, _name), _name)


def _of_two_points_in_floats(function, metric):
    @general(function, samples=samples.two_points, rewrite=True, arrays=("u", "v", "w"), memory=FRESH)
    class points:
        def primal(u, v, w=None):
            of_rank(1, metric, u, v)
            return between(floating(u), floating(v), metric_of(metric, w, metric), 2, w)


for _name in ("sqeuclidean", "cosine"):
    _of_two_points_in_floats(getattr(distance, _name), _name)


@general(distance.euclidean, samples=samples.two_points, rewrite=True, arrays=("u", "v", "w"), memory=FRESH)
class euclidean:
    def primal(u, v, w=None):
        of_rank(1, "euclidean", u, v)
        y = between(floating(u), floating(v), "euclidean", 2, w)
        return y if is_count(u) and is_count(v) and w is None else float(y)


@general(distance.minkowski, samples=samples.two_points, rewrite=True, arrays=("u", "v", "w"), memory=FRESH)
class minkowski:
    def primal(u, v, p=2, w=None):
        of_rank(1, "minkowski", u, v)
        y = between(floating(u), floating(v), "minkowski", p, w)
        return float(y) if is_two(p) and not (is_count(u) and is_count(v) and w is None) else y


@general(distance.squareform, samples=samples.condensed, rewrite=True, arrays=("X",), memory=FRESH)
class squareform:
    """A matrix is assumed to be symmetric; only its entries above the diagonal are read."""
    def primal(X, force="no", checks=True):
        known_form(X, force)
        if X.ndim == 2:
            rows, columns = np.triu_indices(X.shape[0], 1)
            return X[rows, columns]
        size = (1 + math.isqrt(1 + 8 * X.shape[0])) // 2
        place = np.zeros((size, size), dtype=int)           # of each pair; on the diagonal that of a zero at the end
        place[np.triu_indices(size, 1)] = np.arange(X.shape[0])
        place = np.where(np.eye(size, dtype=bool), X.shape[0], place + place.T)
        return np.append(X, np.zeros(1, dtype=X.dtype))[place]
