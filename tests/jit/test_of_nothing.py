"""Compiled code refuses what NumPy refuses of no numbers, and places that are no places, by errors of one class."""
import numpy as np
import pytest

import gradscribe as gs

FFT = np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft
PLACES = [((0,), 0), ((0, 3), 0), ((0, 3), 1), ((3, 0), 0), ((3, 0), 1), ((0, 0), 0)]       # shapes and axes


def outcome(f, *args):
    try:
        return f(*args)
    except (ValueError, IndexError) as error:
        return type(error)


def alike(f, *args):
    want, got = outcome(f, *args), outcome(gs.jit(f), *args)
    if isinstance(want, type):
        assert got is want
    else:
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape, axis", PLACES)
@pytest.mark.parametrize("transform", FFT, ids=lambda f: f.__name__)
def test_transforms(transform, shape, axis):
    alike(lambda x: transform(x, axis=axis), np.zeros(shape))


@pytest.mark.parametrize("shape, axis", PLACES)
def test_quantiles(shape, axis):
    alike(lambda x: np.quantile(x, 0.3, axis=axis), np.zeros(shape))
    alike(lambda x: np.nanquantile(x, 0.3, axis=axis), np.zeros(shape))
    alike(lambda x, q: np.percentile(x, q, axis=axis), np.zeros(shape), np.array([20.0, 30.0]))


@pytest.mark.parametrize("places", [[0, -2], [-1], [-6, 2], [6], [3, 1, 4], [0], []], ids=repr)
def test_sums_of_stretches(places):
    x, places = np.arange(1.0, 7.0), np.array(places, int)
    alike(lambda x: np.add.reduceat(x, places), x)
    alike(np.add.reduceat, x, places)
    alike(gs.grad(lambda x: np.sum(np.add.reduceat(x, places) ** 2)), x)
    alike(gs.grad(lambda x: np.sum(np.add.reduceat(x, places))), x)
