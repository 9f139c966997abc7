# SPDX-License-Identifier: Apache-2.0
"""Rules for scipy.signal, loaded if the program has imported it: convolutions and correlations.

Vectors are convolved by np.convolve; arrays with more axes, and fftconvolve, use the convolution theorem: the transform
of a convolution is the product of the transforms, if both are zero-padded to the length of the full result.
"""
import numpy as np
import scipy.signal

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import scipy_signal_samples as samples

# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def settled(name, in1, in2, mode, method="auto", axes=None):
    if in1.ndim != in2.ndim:
        raise ValueError(f"scipy.signal.{name} of arrays with {in1.ndim} and {in2.ndim} axes",
                         "Give both the same number of axes, by None in an index.")
    if mode not in ("full", "valid", "same") or method not in ("auto", "direct", "fft"):
        raise ValueError(f"scipy.signal.{name} with mode {mode!r} and method {method!r} is not understood",
                         'Modes are "full", "valid" and "same", methods are "auto", "direct" and "fft".')
    if axes is not None:
        raise ValueError(f"scipy.signal.{name} along some axes has no derivative rule",
                         "Use gs.vmap of a call without axes=, over the other axes.")
    whole = [x.dtype.kind in "iub" for x in (in1, in2)]
    if all(whole) and (in1.ndim > 1 or method == "fft"):
        raise ValueError(f"scipy.signal.{name} of whole numbers by transforms has no rule",
                         "Make one of the arrays a float array: x.astype(float).")


@static
def is_complex_any(a, b):
    return "c" in (a.dtype.kind, b.dtype.kind)


# --- helpers that are spliced in --------------------------------------------------------------------------------------

def lengthened(x, shape):
    """x zero-padded at the end of each axis by one less than these lengths."""
    for k in range(x.ndim):
        zeros = np.zeros((*x.shape[:k], shape[k] - 1, *x.shape[k + 1:]), dtype=x.dtype)
        x = np.concatenate((x, zeros), axis=k)
    return x


def by_transforms(a, b):
    """The full convolution, by the convolution theorem."""
    result = np.fft.ifftn(np.fft.fftn(lengthened(a, b.shape)) * np.fft.fftn(lengthened(b, a.shape)))
    return result if is_complex_any(a, b) else np.real(result)


def cut(whole, a, b, mode):
    """The part of the full result that a mode returns: its centre, as large as the first array, or the valid part."""
    if mode == "full":
        return whole
    if mode == "same":
        places = tuple([slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in zip(a.shape, b.shape)])
        return np.reshape(whole[places if a.ndim > 1 else places[0]], a.shape)
    places = tuple([slice(min(n, m) - 1, max(n, m)) for n, m in zip(a.shape, b.shape)])
    return whole[places if a.ndim > 1 else places[0]]


def convolved(a, b, mode, method):
    if a.ndim == 0:
        return a * b
    if a.ndim > 1 or method == "fft":
        return cut(by_transforms(a, b), a, b, mode)
    if mode == "same":
        return cut(np.convolve(a, b), a, b, mode)
    return np.convolve(a, b, mode)


def turned(x):
    """x reversed and conjugated."""
    if x.ndim == 0:
        return np.conj(x) if x.dtype.kind == "c" else x
    return np.conj(np.flip(x)) if x.dtype.kind == "c" else np.flip(x)


# --- the table --------------------------------------------------------------------------------------------------------

@general(scipy.signal.convolve, samples=samples.convolutions, rewrite=True, arrays=("in1", "in2"), memory=FRESH)
class convolve:
    def primal(in1, in2, mode="full", method="auto"):
        settled("convolve", in1, in2, mode, method)
        return convolved(in1, in2, mode, method)


@general(scipy.signal.fftconvolve, alias=(scipy.signal.oaconvolve,), samples=samples.transforms, rewrite=True,
         arrays=("in1", "in2"), memory=FRESH)
class fftconvolve:
    def primal(in1, in2, mode="full", axes=None):
        settled("fftconvolve", in1, in2, mode, "fft", axes)
        return convolved(in1, in2, mode, "fft")


@general(scipy.signal.correlate, samples=samples.convolutions, rewrite=True, arrays=("in1", "in2"), memory=FRESH)
class correlate:
    def primal(in1, in2, mode="full", method="auto"):
        settled("correlate", in1, in2, mode, method)
        return convolved(in1, turned(in2), mode, method)
