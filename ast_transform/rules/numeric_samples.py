"""Arguments to try the rules of statistics, calculus and polynomials on, as in array_samples."""
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
            _call(_gaps(rng, (3, 4)), axis=0, ddof=2)]


def _quantiles(rng, draw, scale):
    vector = scale * np.array([0.15, 0.5, 0.93])
    return [_call(draw(rng, 6), 0.3 * scale), _call(draw(rng, 7), vector), _call(draw(rng, (4, 5)), 0.61 * scale),
            _call(draw(rng, (4, 5)), 0.2 * scale, 0), _call(draw(rng, (4, 5)), 0.2 * scale, axis=-1, keepdims=True),
            _call(draw(rng, (4, 5)), vector, axis=0), _call(draw(rng, (4, 5)), vector, axis=1, keepdims=True),
            _call(draw(rng, (3, 4, 5)), vector, axis=(0, 2)), _call(draw(rng, (3, 4, 5)), 0.37 * scale, axis=(1, 2)),
            _call(draw(rng, (4, 5)), vector), _call(draw(rng, (4, 5)), vector, keepdims=True),
            _call(draw(rng, 1), 0.3 * scale), _call(draw(rng, (4, 5)), vector, axis=(0, 1))]


def _whole(rng, shape):
    return rng.standard_normal(shape)


def quantiles(rng):
    return _quantiles(rng, _whole, 1)


def quantiles_with_gaps(rng):
    return _quantiles(rng, _gaps, 1)


def percentiles(rng):
    methods = ("lower", "higher", "midpoint", "nearest")
    return [*_quantiles(rng, _whole, 100), *(_call(_whole(rng, 7), 37.0, method=m) for m in methods)]


def percentiles_with_gaps(rng):
    methods = ("lower", "higher", "midpoint", "nearest")
    return [*_quantiles(rng, _gaps, 100), *(_call(_gaps(rng, 7), 37.0, method=m) for m in methods)]


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
            _call(x(9), x(9), 3, weights=rng.random(9)), _call(x(9), x(9), 3, density=True)]


def spaces_of_bins(rng):
    x, edges = rng.standard_normal, np.array([-1.0, 0.0, 0.5, 2.0])
    return [_call([x(9), x(9)]), _call([x(9), x(9), x(9)], 2), _call([x(9)], 3), _call([x(9), x(9)], [2, edges]),
            _call([x(9), x(9)], 3, weights=rng.random(9)), _call([x(9), x(9)], 3, density=True),
            _call([x(9), x(9)], 2, [(-1.0, 1.0), (-2.0, 2.0)])]
