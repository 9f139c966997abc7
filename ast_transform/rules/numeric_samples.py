# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of statistics, calculus and polynomials; see array_samples.py."""
import numpy as np


def _call(*args, **kwargs):
    return args, kwargs


def _complex(rng, shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def _gaps(rng, shape):
    """Some entries are NaN, never all along an axis."""
    x = rng.standard_normal(shape)
    if x.size > 3:
        x.flat[1] = x.flat[-2] = np.nan
    return x


# --- statistics -------------------------------------------------------------------------------------------------------

def with_gaps_and_entries(rng):
    return [_call(_gaps(rng, 5)), _call(_gaps(rng, 1)), _call(_gaps(rng, (3, 4))), _call(_gaps(rng, (3, 4)), 0),
            _call(_gaps(rng, (3, 4)), axis=-1), _call(_gaps(rng, (3, 4)), axis=1, keepdims=True),
            _call(_gaps(rng, (2, 3, 4)), axis=(0, 2)), _call(_gaps(rng, (3, 4)), keepdims=True)]


def with_gaps(rng):
    z = _complex(rng, (2, 3))
    z[0, 1] = np.nan
    return [*with_gaps_and_entries(rng), _call(z, axis=1), _call(_gaps(rng, (0, 4)), axis=1)]


def scans_with_gaps(rng):
    return [_call(_gaps(rng, 5)), _call(_gaps(rng, 0)), _call(_gaps(rng, (3, 4))), _call(_gaps(rng, (3, 4)), 0),
            _call(_gaps(rng, (3, 4)), axis=-1), _call(_gaps(rng, (2, 3, 4)), axis=1)]


def variances_with_gaps(rng):
    return [*with_gaps_and_entries(rng), _call(_gaps(rng, 5), ddof=1), _call(_gaps(rng, (3, 4)), axis=1, ddof=1),
            _call(_gaps(rng, (3, 6)), axis=1, ddof=2)]


def _quantiles(rng, draw, scale):
    vector = scale * np.array([0.15, 0.48, 0.93])
    return [_call(draw(rng, 6), 0.3 * scale), _call(draw(rng, 7), vector), _call(draw(rng, (4, 5)), 0.61 * scale),
            _call(draw(rng, (4, 5)), 0.2 * scale, 0), _call(draw(rng, (4, 5)), 0.2 * scale, axis=-1, keepdims=True),
            _call(draw(rng, (4, 5)), vector, axis=0), _call(draw(rng, (4, 5)), vector, axis=1, keepdims=True),
            _call(draw(rng, (3, 4, 5)), vector, axis=(0, 2)), _call(draw(rng, (3, 4, 5)), 0.37 * scale, axis=(1, 2)),
            _call(draw(rng, (4, 5)), vector), _call(draw(rng, (4, 5)), vector, keepdims=True),
            _call(draw(rng, 1), 0.3 * scale), _call(draw(rng, (4, 5)), vector, axis=(0, 1))]


def _whole(rng, shape):
    return rng.standard_normal(shape)


METHODS = ("lower", "higher", "midpoint", "nearest")


def quantiles(rng):
    return [*_quantiles(rng, _whole, 1), *(_call(_whole(rng, 7), 0.37, method=m) for m in METHODS)]


def quantiles_with_gaps(rng):
    return [*_quantiles(rng, _gaps, 1), *(_call(_gaps(rng, 7), 0.37, method=m) for m in METHODS)]


def percentiles(rng):
    return [*_quantiles(rng, _whole, 100), *(_call(_whole(rng, 7), 37.0, method=m) for m in METHODS)]


def percentiles_with_gaps(rng):
    return [*_quantiles(rng, _gaps, 100), *(_call(_gaps(rng, 7), 37.0, method=m) for m in METHODS)]


def covariances(rng):
    x = rng.standard_normal
    counts, heavy = np.array([1, 2, 1, 3, 1]), 1 + rng.random(5)
    return [_call(x(5)), _call(x((3, 5))), _call(x((3, 5)), bias=True), _call(x((3, 5)), ddof=0),
            _call(x((5, 3)), rowvar=False), _call(x(5), x(5)), _call(x((2, 5)), x(5)), _call(x((3, 5)), ddof=2),
            _call(x((3, 5)), fweights=counts), _call(x((3, 5)), aweights=heavy),
            _call(x((3, 5)), fweights=counts, aweights=heavy), _call(x((3, 5)), aweights=heavy, ddof=0),
            _call(_complex(rng, (3, 5))), _call(x((1, 5)))]


def correlations(rng):
    x = rng.standard_normal
    return [_call(x((3, 5))), _call(x(5), x(5)), _call(x((5, 3)), rowvar=False), _call(x(5)), _call(x((2, 5)), x(5)),
            _call(_complex(rng, (3, 5)))]


def bins(rng):
    x = rng.standard_normal
    return [_call(x(9)), _call(x(9), 4), _call(x((3, 3)), 3), _call(x(9), 4, (-1.0, 1.0)),
            _call(x(9), np.array([-2.0, 0.0, 1.5])), _call(np.ones(3), 2)]


def histograms(rng):
    x, edges = rng.standard_normal, np.array([-1.0, 0.0, 0.5, 2.0])
    return [*bins(rng), _call(x(9), 4, density=True), _call(x(9), edges, weights=rng.random(9)),
            _call(x((3, 4)), edges, weights=rng.random((3, 4)), density=True), _call(x(9), 5, weights=x(9))]


def planes_of_bins(rng):
    x, edges = rng.standard_normal, np.array([-1.0, 0.0, 0.5, 2.0])
    return [_call(x(9), x(9)), _call(x(9), x(9), 3), _call(x(9), x(9), [2, 4]), _call(x(9), x(9), [edges, edges]),
            _call(x(9), x(9), 3, weights=rng.random(9)), _call(x(9), x(9), 3, density=True),
            _call(x(9), x(9), [-1.0, 0.0, 0.5, 2.0])]


def spaces_of_bins(rng):
    x, edges = rng.standard_normal, np.array([-1.0, 0.0, 0.5, 2.0])
    return [_call([x(9), x(9)]), _call([x(9), x(9), x(9)], 2), _call([x(9)], 3), _call([x(9), x(9)], [3, edges]),
            _call([x(9), x(9)], 3, weights=rng.random(9)), _call([x(9), x(9)], 3, density=True),
            _call([x(9), x(9)], 2, [(-1.0, 1.0), (-2.0, 2.0)])]


# --- calculus ---------------------------------------------------------------------------------------------------------

def _nodes(rng, n):
    return np.cumsum(0.3 + rng.random(n))


def interpolations(rng):
    x, xp = rng.uniform(0.2, 4, (2, 5)), _nodes(rng, 6)
    return [_call(x[0], xp, rng.standard_normal(6)), _call(x, xp, rng.standard_normal(6)),
            _call(np.float64(1.7), xp, rng.standard_normal(6)), _call(10 * x, xp, rng.standard_normal(6)),
            _call(10 * x[0] - 5, xp, rng.standard_normal(6), np.float64(-1.0), np.float64(2.0)),
            _call(10 * x[0] - 5, xp, rng.standard_normal(6), right=np.float64(2.0)),
            _call(np.array([-3.0, 1.1, -9.0, 40.0]), xp, rng.standard_normal(6), np.float64(-1.0), np.float64(2.0)),
            _call(np.float64(-3.0), xp, rng.standard_normal(6), np.float64(-1.0)),
            _call(np.array([-3.0, 1.1, 40.0]), xp, rng.standard_normal(6), np.float64(-1.0)),
            _call(0.5 * (xp[1:] + xp[:-1]), xp, rng.standard_normal(6), np.float64(-1.0), np.float64(2.0)),
            _call(np.array([-9.0, 40.0, 0.5 * (xp[-1] + xp[-2])]), xp, rng.standard_normal(6), right=np.float64(2.0)),
            _call(x[0], _nodes(rng, 2), rng.standard_normal(2)), _call(x[0], xp, _complex(rng, 6)),
            _call(np.zeros(0), xp, rng.standard_normal(6)),
            _call(x[0], np.array([1.5]), rng.standard_normal(1)), _call(np.float64(0.5), np.array([1.5]), x[0, :1])]


def gradients(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(5), 0.5), _call(x(2)), _call(x((3, 4)), axis=0), _call(x((3, 4)), 2.0, axis=-1),
            _call(x((3, 4))), _call(x((3, 4)), 0.5, _nodes(rng, 4)), _call(x(5), _nodes(rng, 5)),
            _call(x(5), _nodes(rng, 5), edge_order=2), _call(x((3, 4)), axis=1, edge_order=2),
            _call(x((3, 4, 5)), axis=(0, 2)), _call(x((3, 4)), _nodes(rng, 3), axis=0, edge_order=2),
            _call(_complex(rng, 4))]


def trapezoids(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(5), x(5)), _call(x(5), dx=0.5), _call(x((3, 4))), _call(x((3, 4)), axis=0),
            _call(x((3, 4)), _nodes(rng, 3), axis=0), _call(x((3, 4)), x((3, 4))), _call(x(1)), _call(x(0)),
            _call(x((3, 4)), _nodes(rng, 4))]


def running(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(5), include_initial=True), _call(x((3, 4)), axis=0),
            _call(x((3, 4)), axis=-1, include_initial=True), _call(x(0), include_initial=True),
            _call(x((2, 3, 4)), axis=1, include_initial=True), _call(_complex(rng, 3))]


def phases(rng):
    x = rng.uniform(-9, 9, (4, 6))
    return [_call(x[0]), _call(x), _call(x, axis=0), _call(x[0], period=3.0), _call(x[0], 4.0), _call(x[0][:1])]


def bessel(rng):
    x = rng.standard_normal
    return [_call(x(3)), _call(x((2, 3))), _call(40 * x(4)), _call(x(0)), _call(x(()))]


def kaisers(rng):
    return [_call(n, np.float64(b)) for n, b in ((5, 2.0), (6, 8.6), (1, 3.0), (12, 0.5), (2, 1.0), (0, 1.0))]


def window_lengths(rng):
    return [_call(n) for n in (0, 1, 2, 5, 8)]


def logarithmic(rng):
    return [_call(0.5, 2.0), _call(0.5, 2.0, 7), _call(1.5, 0.5, num=4, endpoint=False), _call(0.5, 2.0, 5, base=2.0),
            _call(rng.random(3), 2.0, 4), _call(rng.random(3), rng.random((2, 3)), 4, axis=-1), _call(0.5, 2.0, 1),
            _call(0.5, 2.0, 2, base=np.array([2.0, 10.0])),
            _call(rng.random((3, 1)), 2.0, 4, base=np.array([2.0, 3.0]), axis=1)]


def geometric(rng):
    ends = 0.5 + rng.random((2, 3))
    return [_call(np.float64(0.5), np.float64(8.0), 7), _call(np.float64(8.0), np.float64(0.5), 4, endpoint=False),
            _call(np.float64(-8.0), np.float64(-0.5), 4), _call(ends[0], np.float64(9.0), 4),
            _call(ends[0], ends[1], 5),
            _call(ends[0], ends, 4, axis=-1), _call(ends, ends[0] + 1, 4, axis=1)]


# --- methods of ufuncs ------------------------------------------------------------------------------------------------

def first_axes(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x((3, 4))), _call(x((3, 4)), 1), _call(x((3, 4)), axis=-1, keepdims=True),
            _call(x((2, 3, 4)), axis=(0, 2)), _call(x((3, 4)), axis=None), _call(x(1))]


def vectors(rng):
    return [_call(1 + rng.random(n)) for n in (5, 1, 2, 3, 7)]


def whole_numbers(rng):
    n = rng.integers(0, 9, (3, 4))
    return [_call(n[0]), _call(n), _call(n, 1), _call(n, axis=-1, keepdims=True), _call(n[:1])]


def running_first(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x((3, 4))), _call(x((3, 4)), 1), _call(x((2, 3, 4)), axis=1), _call(x(1)), _call(x(0))]


def stretches(rng):
    x = rng.standard_normal
    return [_call(x(6), np.array([0, 2, 5])), _call(x(6), np.array([1, 1, 4])), _call(x(6), np.array([3, 0, 2])),
            _call(x((4, 3)), np.array([0, 2])), _call(x((3, 4)), np.array([0, 2]), axis=1)]


# --- polynomials ------------------------------------------------------------------------------------------------------

def polynomials_at(rng):
    x = rng.standard_normal
    return [_call(x(4), np.float64(0.7)), _call(x(4), x(3)), _call(x(4), x((2, 3))), _call(x(1), x(3)),
            _call(x(2), x(3)),
            _call(_complex(rng, 3), _complex(rng, 2)), _call(x(3), x(0))]


def vanders(rng):
    x = rng.standard_normal
    return [_call(x(4)), _call(x(4), 3), _call(x(4), 2, True), _call(x(3), 5), _call(x(1)), _call(x(3), 1)]


def pairs_of_polynomials(rng):
    return [_call(rng.standard_normal(n), rng.standard_normal(m)) for n, m in
            ((3, 3), (4, 2), (2, 4), (1, 3), (3, 1))]


def derived_polynomials(rng):
    x = rng.standard_normal
    return [_call(x(4)), _call(x(4), 2), _call(x(4), 0), _call(x(1)), _call(x(5), m=3)]


def integrated_polynomials(rng):
    x = rng.standard_normal
    return [_call(x(4)), _call(x(4), 2), _call(x(4), 0), _call(x(3), 1, [0.5]), _call(x(3), 2, [0.5, -1.0])]


def sets_of_roots(rng):
    x = rng.standard_normal
    return [_call(x(3)), _call(x(1)), _call(x(5)), _call(np.array([0.0, 1.0, 1.0])), _call(x(2))]


def with_roots(rng):
    pairs = ([1.0, -2.0 + 1j, -2.0 - 1j], [0.5 + 1j, 0.5 - 1j], [2.0 + 1j, 2.0 - 1j, 3.5, -1.0], [1j, -1j],
             [-3.0 + 2j, -3.0 - 2j, 1.0])
    return [_call(np.poly(r).real) for r in pairs]


def fits(rng):
    x = rng.standard_normal
    return [_call(x(6), x(6), 2), _call(x(6), x(6), 0), _call(x(6), x((6, 2)), 1), _call(x(4), x(4), 3),
            _call(x(6), x(6), 2, w=1 + rng.random(6)), _call(x(6), x((6, 2)), 1, w=1 + rng.random(6))]


# --- numbers and vectors ----------------------------------------------------------------------------------------------

def vectors_in_pairs(rng):
    x = rng.standard_normal
    return [_call(x(3), x(3)), _call(x((2, 3)), x((2, 3))), _call(x((2, 3)), x(3)), _call(x((3, 2)), x((3, 2)), axis=0),
            _call(_complex(rng, (2, 3)), _complex(rng, (2, 3))), _call(_complex(rng, 3), _complex(rng, 3)),
            _call(x(0), x(0))]


def matrices_and_vectors(rng):
    x = rng.standard_normal
    return [_call(x((2, 3)), x(3)), _call(x((5, 2, 3)), x((5, 3))), _call(x((5, 2, 3)), x(3)),
            _call(x((2, 3)), x((5, 3))),
            _call(_complex(rng, (2, 3)), _complex(rng, (4, 3)))]


def vectors_and_matrices(rng):
    x = rng.standard_normal
    return [_call(x(2), x((2, 3))), _call(x((5, 2)), x((5, 2, 3))), _call(x(2), x((5, 2, 3))),
            _call(x((5, 2)), x((2, 3))),
            _call(_complex(rng, (4, 2)), _complex(rng, (2, 3)))]


def any_reals(rng):
    x = rng.standard_normal
    return [_call(3 * x(4)), _call(3 * x((2, 3))), _call(np.float64(2.7)), _call(x(0)), _call(-3 * x(1))]


def pairs_of_reals(rng):
    x = rng.standard_normal
    return [_call(x(3), x(3)), _call(x((2, 3)), x(3)), _call(1.5, 2.5), _call(x(3), 0.0), _call(x(0), x(1))]


def numbers(rng):
    return [_call(v) for v in (2.7, -3.2, 0.4, 100.3, -0.02)]


def pairs_of_numbers(rng):
    return [_call(a, b) for a, b in ((7.3, 2.0), (-7.3, 2.0), (5.1, -1.5), (0.3, 2.0), (10.2, 3.1))]


def counting_numbers(rng):
    return [_call(n) for n in (0, 1, 5, 9, 12)]


def pairs_of_counting_numbers(rng):
    return [_call(n, k) for n, k in ((5, 2), (5, 0), (3, 3), (9, 4), (4, 1))]


def sequences(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(1)), _call(x(0)), _call(x(3)), _call(x(8))]


def pairs_of_sequences(rng):
    x = rng.standard_normal
    return [_call(x(n), x(n)) for n in (1, 2, 3, 5, 4)]


def sides(rng):
    return [_call(*rng.uniform(0.3, 3, n).tolist()) for n in (2, 3, 4, 2, 5)]
