# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of scipy.stats, away from the ends of the support and from kinks."""
import numpy as np

from gradscribe.ast_transform.rules.samples import between, normal

SHAPES = ((3,), (2, 3), (0,), (1,), (), None)


def _located(first, *parameters):
    """Calls without, with, and with a broadcast location and scale; `first` and `parameters` draw a given shape."""
    def draw(rng):
        calls = [((first(rng, s), *(p(rng, s) for p in parameters)), {}) for s in SHAPES]
        scale = between(rng, (2, 1), 1, 2)
        calls.append(((first(rng, (3,)) * scale - 0.5, *(p(rng, (2, 1)) for p in parameters), -0.5, scale), {}))
        calls.append(((first(rng, (3,)) * 2 + 0.25, *(p(rng, ()) for p in parameters)), {"loc": 0.25, "scale": 2.0}))
        return calls
    return draw


def _from(low, high):
    return lambda rng, shape: between(rng, shape, low, high)


def _count(low, high):
    """Integers, which have no derivative."""
    return lambda rng, shape: rng.integers(low, high, shape)


on_the_line = _located(normal)
on_the_line_by_one = _located(normal, _from(1.5, 6))
on_the_line_by_whole = _located(normal, _count(1, 6))
positive = _located(_from(0.2, 3))
positive_by_one = _located(_from(0.2, 3), _from(0.6, 4))
unit_by_two = _located(_from(0.1, 0.9), _from(0.6, 4), _from(0.6, 3))
unit_by_whole = _located(_from(0.1, 0.9), _count(1, 4), _count(1, 4))


def shares(rng):
    """Probabilities, with and without a location and scale."""
    share = _from(0.05, 0.95)
    return [((share(rng, s),), {}) for s in SHAPES] + [
        ((share(rng, (3,)), -0.5, between(rng, (2, 1), 1, 2)), {}), ((share(rng, (3,)),), {"loc": 0.25, "scale": 2.0})]


def counts_by_rates(rng):
    return [((_count(0, 5)(rng, s), between(rng, s, 0.5, 4)), {}) for s in SHAPES] + [
        ((np.array([-1, 0, 3]), between(rng, (2, 1), 0.5, 4), 1), {}),
        ((np.array([-1.0, 0.0, 1.5, 3.0]), 2.5), {"loc": 1.0})]


def counts_by_trials(rng):
    return [((_count(0, 5)(rng, s), _count(4, 8)(rng, s), between(rng, s, 0.2, 0.8)), {}) for s in SHAPES] + [
        ((np.array([-1, 0, 3, 6, 9]), np.array([[5], [6]]), 0.4, 1), {}),
        ((np.array([-1.0, 0.0, 1.5, 3.0]), 5.0, np.array([[0.3], [0.6]])), {"loc": 1.0})]


def covariances(rng):
    m = normal(rng, (3, 3))
    return [((normal(rng, (3,)), m @ m.T + np.eye(3)), {}), ((None, m @ m.T + np.eye(3)), {}),
            ((normal(rng, (3,)), 1.5), {}), ((normal(rng, (3,)), between(rng, (3,), 0.5, 2)), {}), ((None, 1.7), {})]


def vectors_by_covariances(rng):
    m = normal(rng, (3, 3))
    cov = m @ m.T + np.eye(3)
    return [((normal(rng, (3,)), normal(rng, (3,)), cov), {}), ((normal(rng, (2, 3)), normal(rng, (3,)), cov), {}),
            ((normal(rng, (1, 3)), None, cov), {}), ((normal(rng, (2, 3)), normal(rng, (3,)), 1.5), {}),
            ((normal(rng, (2, 3)), normal(rng, (3,)), between(rng, (3,), 0.5, 2)), {}),
            ((normal(rng, (4,)), 0.3, 1.7), {}), ((normal(rng, (4,)),), {}),
            ((normal(rng, (2, 1)), np.array([0.2]), np.array([[1.5]])), {})]
