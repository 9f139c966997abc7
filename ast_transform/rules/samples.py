# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of rules, inside each function's domain and away from its kinks.

Each function takes a generator and returns pairs: positional arguments, keyword arguments.
"""
import numpy as np

SHAPES = (None, (3,), (2, 3), (2, 1), (1,), (0,), (2, 0))           # None is a Python float
PAIRS = ((None, None), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((3,), None), (None, (2, 3)), ((1,), (3,)),
         ((), (2,)), ((0,), (1,)), ((2, 0), (0,)))
RANKS = ((), (3,), (2, 3), (2, 1, 3), (1,), (0,), (2, 0))


# --- one array -------------------------------------------------------------------------------------------------------

def normal(rng, shape):
    """Numbers away from 0, where functions have kinks and poles."""
    x = rng.normal(size=shape or ())
    x = np.where(abs(x) < 0.1, x + 0.3, x)
    return float(x) if shape is None else x


def between(rng, shape, low, high):
    x = np.asarray(rng.uniform(low, high, size=shape or ()))
    return float(x) if shape is None else x


def complexes(rng, shape):
    z = normal(rng, shape or ()) + 1j * normal(rng, shape or ())
    return complex(z) if shape is None else z


def _alone(draw, shapes=SHAPES):
    return [((draw(shape),), {}) for shape in shapes]


def reals(rng):
    return _alone(lambda shape: normal(rng, shape))


def scalars(rng):
    """Python floats only, for the functions of `math`."""
    return _alone(lambda shape: normal(rng, shape), (None, None))


def positives(rng):
    return _alone(lambda shape: between(rng, shape, 0.2, 3))


def unit(rng):
    """Inside (-1, 1)."""
    return _alone(lambda shape: between(rng, shape, -0.9, 0.9))


def above_one(rng):
    return _alone(lambda shape: between(rng, shape, 1.2, 4))


def above_minus_one(rng):
    return _alone(lambda shape: between(rng, shape, -0.8, 3))


def complex_numbers(rng):
    return _alone(lambda shape: complexes(rng, shape), (None, (3,), (2, 3), (0,)))


def analytic(rng):
    """Real and complex numbers, for entire functions."""
    return reals(rng) + complex_numbers(rng)


def analytic_positives(rng):
    return positives(rng) + complex_numbers(rng)


def analytic_unit(rng):
    return unit(rng) + complex_numbers(rng)


def analytic_above_one(rng):
    return above_one(rng) + complex_numbers(rng)


def real_arrays(rng):
    """Arrays of every rank, without Python scalars."""
    return _alone(lambda shape: normal(rng, shape), RANKS)


def reductions(rng):
    """An array and the axes to reduce."""
    out = [((normal(rng, s),), {}) for s in ((3,), (2, 3), (2, 1, 3), (0,), (2, 0))]
    for axis in (0, 1, -1, (0, 1), None):
        for keepdims in (False, True):
            out.append(((normal(rng, (2, 3)),), {"axis": axis, "keepdims": keepdims}))
    out.append(((normal(rng, (2, 4, 3)),), {"axis": 1}))
    out.append(((normal(rng, (2, 4, 3)),), {"axis": (0, 2)}))
    return out


def positions(rng):
    """The same as reductions, without reductions over empty axes."""
    return [((normal(rng, (3,)),), {}), ((normal(rng, (2, 3)),), {}), ((normal(rng, (2, 3)), 0), {}),
            ((normal(rng, (2, 3)),), {"axis": -1, "keepdims": True})]


def near_zero(rng):
    """Numbers on both sides of the point where a rule switches to a series."""
    small = np.array([0.0, 1e-9, -1e-4, 0.003, -0.02, 0.05])
    return reals(rng) + [((small,), {})]


def with_infinities(rng):
    return reals(rng) + [((normal(rng, (3,)),), {"nan": 1.5, "posinf": 2.0, "neginf": -2.0})]


def angles(rng):
    return reals(rng) + complex_numbers(rng) + [((complexes(rng, (3,)),), {"deg": True})]


# --- two arrays ------------------------------------------------------------------------------------------------------

def _together(draw_a, draw_b, pairs=PAIRS):
    return [((draw_a(a), draw_b(b)), {}) for a, b in pairs]


def real_pairs(rng):
    return _together(lambda s: normal(rng, s), lambda s: normal(rng, s))


def analytic_pairs(rng):
    mixed = [((complexes(rng, (3,)), complexes(rng, (2, 3))), {}), ((normal(rng, (3,)), complexes(rng, (3,))), {}),
             ((complexes(rng, (2, 1)), normal(rng, (3,))), {}), ((complexes(rng, None), 2.0), {})]
    return real_pairs(rng) + mixed


def distinct_pairs(rng):
    """Pairs of arrays in which no two entries are close."""
    return _together(lambda s: np.round(normal(rng, s)), lambda s: np.round(normal(rng, s)) + between(rng, s, 0.2, 0.8))


def quotients(rng):
    """Pairs whose quotient is not close to an integer."""
    def pair(a, b):
        divisor = between(rng, b, 0.5, 2)
        whole = np.round(between(rng, a, -4, 4))
        part = between(rng, np.broadcast_shapes(a or (), b or ()), 0.2, 0.8)
        return (whole + part) * divisor, divisor
    negated = [(x, -d) for x, d in (pair((3,), (3,)), pair(None, None))]
    return [(p, {}) for p in [pair(None, None), pair((2, 3), (3,)), pair((3,), None), pair((0,), (1,)), *negated]]


def powers(rng):
    """Positive bases with any exponent; any base with integer exponents; both kinds of literal."""
    out = _together(lambda s: between(rng, s, 0.3, 2), lambda s: normal(rng, s))
    for shape in (None, (3,), (2, 3), (0,)):
        out += [((normal(rng, shape), b), {}) for b in (0, 1, 2, 3, -1, -2, 2.0, 3.0)]
        out += [((between(rng, shape, 0.3, 2), b), {}) for b in (0.5, -0.5, 1.5)]
        out += [((a, normal(rng, shape)), {}) for a in (2, 0.5, 10.0)]
    whole = np.array([0, 1, 3])
    out += [((normal(rng, (2, 3)), whole), {}), ((np.array([0.0, 0.0, 0.0]), whole), {}),
            ((complexes(rng, (3,)), 3), {}), ((complexes(rng, (3,)), complexes(rng, None)), {})]
    return out


def float_powers(rng):
    return _together(lambda s: between(rng, s, 0.3, 2), lambda s: normal(rng, s))


def scaled_by_powers_of_two(rng):
    return [((normal(rng, None), 3), {}), ((normal(rng, (2, 3)), np.array([1, -2, 0])), {}),
            ((normal(rng, (0,)), 2), {})]


def steps(rng):
    """The argument of a step function, and its value at zero."""
    return [((np.array([-1.0, 0.0, 2.0]), normal(rng, (2, 3))), {}), ((0.0, 0.5), {}), ((1.0, 0.5), {})]


def logarithms(rng):
    return [((between(rng, None, 0.5, 3),), {}), ((between(rng, None, 0.5, 3), between(rng, None, 2, 3)), {})]


# --- more than two ---------------------------------------------------------------------------------------------------

def choices(rng):
    mask = np.array([True, False, True])
    out = [((mask, normal(rng, a), normal(rng, b)), {}) for a, b in
           (((3,), (3,)), ((2, 3), None), (None, (2, 1)), (None, None), ((1,), (2, 3)))]
    return out + [((True, 1.5, 2.5), {}), ((np.zeros(0, bool), normal(rng, (0,)), 1.0), {}),
                  ((mask, normal(rng, (3,)), complexes(rng, (3,))), {})]


def bounded(rng):
    """Entries inside, below and above the bounds, never on them."""
    x = np.array([[-2.3, -0.4, 0.1], [0.7, 1.8, 2.6]])
    out = [((x, -1.0, 2), {}), ((x, -1.0, None), {}), ((x, None, 1.0), {}), ((x,), {"min": -1.0, "max": 1.0}),
           ((x,), {"a_min": 0.3, "a_max": None}), ((x,), {"max": 0.3}), ((0.3, 0.0, 1.0), {}), ((1.3, 0.0, 1.0), {}),
           ((x, np.array([-1.0, 0.0, 0.5]), np.array([[1.0], [2.0]])), {}), ((x, 1.2, -0.5), {}),
           ((np.zeros((2, 0)), -1.0, 1.0), {}), ((x, None, None), {})]
    low, high = np.array([-1.0, 2.5, 0.5]), np.array([0.9, 1.0, 2.0])           # the middle bounds are inverted
    return out + [((x, low, high), {})]


# --- makers of arrays ------------------------------------------------------------------------------------------------

def shapes(rng):
    return [((3,), {}), (((2, 3),), {}), (((2, 0),), {"dtype": np.float32})]


def lengths(rng):
    return [((n,), {}) for n in (0, 1, 3)]


def fills(rng):
    return [((3, 1.5), {}), (((2, 3), normal(rng, ())), {}), (((2, 0), 0.5), {}), (((), 2.0), {}),
            (((2, 3), normal(rng, (3,))), {}), (((2, 3), normal(rng, (2, 1))), {})]


def fills_like(rng):
    return [((normal(rng, s), normal(rng, v)), {}) for s, v in (
        ((3,), None), ((2, 3), ()), ((0,), None), ((2, 3), (3,)), ((2, 3), (2, 1)))]


def evenly_spaced(rng):
    return [((0.5, 2.0), {}), ((0.5, 2.0, 7), {}), ((1.5, 0.5), {"num": 4, "endpoint": False}), ((0.5, 2.0, 1), {}),
            ((0.5, 2.0, 0), {}), ((normal(rng, (3,)), 2.0, 4), {}), ((normal(rng, (3,)), normal(rng, (2, 3)), 4), {}),
            ((normal(rng, (2, 3)), normal(rng, (3,)), 4), {"axis": -1}), ((normal(rng, (2, 1)), 2.0, 4), {"axis": 1})]


def ranges(rng):
    return [((0.5, 4.2), {}), ((0.5, 4.2, 0.3), {}), ((4.2, 0.5, -0.5), {}), ((3.5,), {}), ((1.0, 0.0), {})]


def counts(rng):
    """The bin of each weight."""
    return [((np.array([0, 2, 2, 1]), normal(rng, (4,))), {}),
            ((np.array([3, 0]), normal(rng, (2,))), {"minlength": 6})]
