# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of scipy.special: inside each function's domain, away from its kinks."""
import numpy as np

from gradscribe.ast_transform.rules import samples
from gradscribe.ast_transform.rules.samples import (  # noqa: F401
    above_minus_one,
    analytic,
    analytic_positives,
    between,
    complex_numbers,
    complexes,
    normal,
    positives,
    reals,
    unit,
)

PAIRS = ((None, None), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((3,), None), (None, (2, 3)), ((0,), (1,)))


def _pairs(low, high, lowest, highest):
    def draw(rng):
        return [((between(rng, a, low, high), between(rng, b, lowest, highest)), {}) for a, b in PAIRS]
    return draw


pairs = samples.real_pairs
positive_pairs = _pairs(0.4, 4, 0.3, 3)


def degrees_and_reals(rng):
    return [((rng.integers(1, 6, a), normal(rng, b)), {}) for a, b in PAIRS]


def power_transforms(rng):
    return [*_pairs(0.3, 4, -2, 2)(rng), ((between(rng, (3,), 0.3, 4), 0.0), {}),
            ((between(rng, (2, 3), 0.3, 4), np.array([0.0, 1e-9, -1e-3])), {})]


def analytic_rates(rng):
    """Arguments of x * log(y): any x, including 0, and y in the domain of the logarithm."""
    zero = np.array([0.0, 1.0, -2.0])
    return [*_pairs(-2, 2, 0.3, 3)(rng), ((zero, between(rng, (2, 3), 0.3, 3)), {}),
            ((complexes(rng, (3,)), complexes(rng, (2, 3))), {})]


def around_zero(rng):
    """Numbers that include the function's tails."""
    far = np.array([-6.0, -2.0, 0.0, 3.0, 12.0])
    return [*reals(rng), ((far,), {}), ((complexes(rng, (3,)),), {})]


def probabilities(rng):
    return [((between(rng, s, 0.05, 0.95),), {}) for s in samples.SHAPES]


def up_to_two(rng):
    return [((between(rng, s, 0.1, 1.9),), {}) for s in samples.SHAPES]


def arguments(rng):
    """Arguments of the gamma function, between its poles."""
    return [*positives(rng), ((np.array([-0.5, -1.4, -2.7]),), {})]


def numbers_between_poles(rng):
    """Python floats only, for the functions of `math`."""
    return [((x,), {}) for x in (0.3, 1.0, 2.6, -0.5, -2.7)]


def analytic_arguments(rng):
    return [*arguments(rng), *complex_numbers(rng)]


def analytic_numbers(rng):
    return [*reals(rng), *complex_numbers(rng)]


def orders_and_positives(rng):
    return [((0, between(rng, None, 0.5, 3)), {}), ((1, between(rng, (3,), 0.5, 3)), {}),
            ((2, between(rng, (2, 3), 0.5, 3)), {}), ((np.array([0, 1, 3]), between(rng, (2, 3), 0.5, 3)), {}),
            ((1, np.zeros(0)), {})]


def dimensions(rng):
    return [((between(rng, s, 3, 6), d), {}) for s, d in ((None, 1), ((3,), 2), ((2, 3), 4), ((1,), 3), ((0,), 2))]


def factorials(rng):
    return [((between(rng, s, 0.2, 4),), {}) for s in (None, (3,), (2, 3), (1,), (0,))] + [
        ((np.array([-1.5, -0.3, 2.5]),), {}), ((between(rng, (3,), 0.2, 4),), {"extend": "zero"})]


def choices(rng):
    out = _pairs(3, 6, 0.3, 2.5)(rng)
    return [*out, ((np.array([1.5, 4.0, -1.0]), 2.5), {}), ((between(rng, (3,), 3, 6), 2), {}),
            ((between(rng, (3,), 3, 6), between(rng, (2, 3), 0.3, 2.5)), {"repetition": True})]


def beta_quantiles(rng):
    """Integer parameters, which have no derivative."""
    return [((a, b, between(rng, s, 0.1, 0.9)), {}) for a, b, s in
            ((1, 2, None), (2, 3, (3,)), (np.array([1, 2, 5]), 3, (2, 3)), (2, 2, (1,)), (1, 1, (0,)))]


def zetas(rng):
    return [*_pairs(1.5, 5, 0.4, 3)(rng), ((between(rng, None, 1.5, 4),), {}), ((between(rng, (3,), 1.5, 4),), {})]


def exponents(rng):
    return [((n, between(rng, s, 0.3, 3)), {}) for n, s in
            ((0, (3,)), (1, None), (2, (3,)), (5, (2, 3)), (np.array([0, 1, 2]), (2, 3)), (3, (0,)))]


def whole_orders(rng):
    return [((n, between(rng, s, 0.5, 6)), {}) for n, s in
            ((0, None), (1, (3,)), (2, (2, 3)), (np.array([0, 1, 4]), (2, 3)), (np.array([0, 2], np.uint64), (2,)),
             (3, (0,)))]


def orders(rng):
    return [*whole_orders(rng), ((np.array([2, 0]), between(rng, (3, 2), 0.5, 6)), {})]


def analytic_orders(rng):
    return [*orders(rng), ((1, complexes(rng, (3,))), {})]


def confluent(rng):
    return [((a, b, normal(rng, s)), {}) for a, b, s in
            ((1, 2, None), (2, 3, (3,)), (np.array([1, 2, 3]), 4, (2, 3)), (-2, 3, (3,)), (1, 2, (0,)))] + [
        ((1, 3, complexes(rng, (3,))), {})]


def hypergeometric(rng):
    return [((a, b, c, between(rng, s, -0.8, 0.8)), {}) for a, b, c, s in
            ((1, 2, 3, None), (2, 1, 4, (3,)), (np.array([1, 2, 3]), 2, 4, (2, 3)), (-2, 1, 3, (3,)), (1, 1, 2, (0,)))]


def harmonics(rng):
    def angles(shape):
        return between(rng, shape, 0.2, 3), between(rng, shape, -3, 3)
    return [((n, m, *angles(s)), {}) for n, m, s in
            ((0, 0, None), (1, 0, (3,)), (2, -1, (2, 3)), (3, 3, (3,)), (4, -4, (1,)),
             (np.array([1, 2, 3]), np.array([1, -1, 2]), (2, 3)), (2, 1, (0,)))]
