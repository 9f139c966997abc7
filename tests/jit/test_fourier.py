"""Fourier transforms in compiled code: lengths of every kind of factors, real and complex, against NumPy's."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.runtime import fourier

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, fourier.LARGEST_FACTOR, 12, 15, 16, 17, 19, 26, 34, 60, 64, 97, 100, 101, 128,
           169, 243, 512, 1000, 1009, 2018]
TRANSFORMS = {"fft": np.fft.fft, "ifft": np.fft.ifft, "rfft": np.fft.rfft, "irfft": np.fft.irfft,
              "ortho": lambda x: np.fft.fft(x, norm="ortho"), "longer": lambda x: np.fft.rfft(x, n=40),
              "shorter": lambda x: np.fft.rfft(x, n=1), "forward": lambda x: np.fft.rfft(x, norm="forward")}


def by_a_convolution(n):
    """Whether a length has a factor that no stage takes: three transforms of a longer line, and their errors."""
    return any(n % k == 0 for k in range(fourier.LARGEST_FACTOR + 1, n + 1) if all(k % m for m in range(2, k)))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_values(name):
    f = TRANSFORMS[name]
    real = f(np.ones(4)).shape[0] != 4 or name == "rfft"
    compiled = gs.jit(lambda x: f(x))
    for n in LENGTHS:
        for lines in (1, 3, 11):
            rng = np.random.default_rng(n)
            x = rng.normal(size=(lines, n)) + (0j if real and name != "irfft" else 1j * rng.normal(size=(lines, n)))
            x = x.real.copy() if real and name != "irfft" else x
            if name == "irfft" and n == 1:
                continue                # of no entries
            want = f(x)
            bound = 4e-16 * np.log2(n + 2) * np.max(np.abs(want)) * (4 if by_a_convolution(n) else 1)
            np.testing.assert_allclose(compiled(x), want, rtol=0, atol=bound)


def test_gradients_and_other_axes():
    x = np.random.default_rng(0).normal(size=(3, 20, 2))

    def f(x):
        back = np.fft.irfft(np.fft.rfft(x, axis=0), n=3, axis=0)
        return np.sum(np.abs(np.fft.rfft(x, axis=1)) ** 2) + np.sum(back ** 3)

    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), gs.grad(f)(x), rtol=1e-11, atol=1e-12)
    assert gs.jit(lambda x: np.fft.rfft(x))(x.astype(np.float32)).dtype == np.fft.rfft(x.astype(np.float32)).dtype
    assert gs.jit(lambda x: np.fft.rfft(x))(x[:0]).shape == np.fft.rfft(x[:0]).shape
