# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of scipy.spatial.distance: no two coordinates are equal."""
import numpy as np

from gradscribe.ast_transform.rules.samples import between, normal

METRICS: tuple[dict, ...] = (
    {}, {"metric": "sqeuclidean"}, {"metric": "cityblock"}, {"metric": "chebyshev"}, {"metric": "cosine"},
    {"metric": "minkowski", "p": 3}, {"metric": "minkowski", "p": 1.5})


def two_sets(rng):
    calls = [((normal(rng, (3, 2)), 3 + normal(rng, (4, 2))), words) for words in METRICS]
    return [*calls, ((normal(rng, (3, 2)), 3 + normal(rng, (1, 2))), {"w": between(rng, (2,), 0.5, 2)}),
            ((normal(rng, (0, 2)), normal(rng, (3, 2))), {})]


def one_set(rng):
    return [((normal(rng, (4, 3)),), words) for words in METRICS] + [((normal(rng, (1, 3)),), {})]


def two_points(rng):
    return [((normal(rng, (3,)), 3 + normal(rng, (3,))), {}), ((normal(rng, (1,)), 3 + normal(rng, (1,))), {})]


def condensed(rng):
    m = normal(rng, (4, 4))
    return [((normal(rng, (6,)),), {}), ((normal(rng, (1,)),), {}), ((m + m.T - np.diag(2 * np.diag(m)),), {})]
