# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms for compiled code: lines of any length, by the factors of the length.

Each stage handles one factor r: it computes r sums of r strided entries and writes them in the order that the next
stage reads, so that no final permutation is needed.  A length with a large prime factor uses a convolution.

Sources: C. Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), 1.7 (Stockham's stages) and 2.1
(factors); L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform (1970).
"""
import math

import numpy as np

from gradscribe.runtime.compiled import apart, whole

LARGEST_FACTOR = 13         # for a larger factor, the convolution is faster than a stage
LANES = 8                   # lines that are interleaved: one vector of eight, or two of four


@whole
def roots_of_unity(n, sign):
    """exp(sign 2 pi i k / n) for each k: about sqrt(n) of them by sines and cosines, the rest as products of two."""
    out = np.empty(n, np.complex128)
    row = int(math.sqrt(n)) + 1
    for k in range(min(row, n)):
        angle = sign * 2 * math.pi * k / n
        out[k] = complex(math.cos(angle), math.sin(angle))
    for start in range(row, n, row):
        angle = sign * 2 * math.pi * start / n
        first = complex(math.cos(angle), math.sin(angle))
        for k in range(min(row, n - start)):
            out[start + k] = first * out[k]
    return out


STAGE = {"re": ("float64", 3), "im": ("float64", 3), "re_2": ("float64", 3), "im_2": ("float64", 3),
         "root": ("complex128", 2)}


@apart(**STAGE, sign=("float64", 0))
def stage_of_four(re, im, re_2, im_2, root, sign):
    """A radix-4 stage from (4, m, s) to (m, 4, s), with s interleaved transforms."""
    for p in range(re.shape[1]):
        w1 = root[p, 0]
        w2 = root[2 * p, 0]
        w3 = root[3 * p, 0]
        u1 = w1.real
        u2 = w2.real
        u3 = w3.real
        v1 = w1.imag
        v2 = w2.imag
        v3 = w3.imag
        for t in range(re.shape[2]):
            even = re[0, p, t] + re[2, p, t]
            even_i = im[0, p, t] + im[2, p, t]
            odd = re[0, p, t] - re[2, p, t]
            odd_i = im[0, p, t] - im[2, p, t]
            both = re[1, p, t] + re[3, p, t]
            both_i = im[1, p, t] + im[3, p, t]
            turned = sign * (im[3, p, t] - im[1, p, t])
            turned_i = sign * (re[1, p, t] - re[3, p, t])
            re_2[p, 0, t] = even + both
            im_2[p, 0, t] = even_i + both_i
            x = odd + turned
            y = odd_i + turned_i
            re_2[p, 1, t] = x * u1 - y * v1
            im_2[p, 1, t] = x * v1 + y * u1
            x = even - both
            y = even_i - both_i
            re_2[p, 2, t] = x * u2 - y * v2
            im_2[p, 2, t] = x * v2 + y * u2
            x = odd - turned
            y = odd_i - turned_i
            re_2[p, 3, t] = x * u3 - y * v3
            im_2[p, 3, t] = x * v3 + y * u3


@apart(**STAGE)
def stage_of_two(re, im, re_2, im_2, root):
    for p in range(re.shape[1]):
        u = root[p, 0].real
        v = root[p, 0].imag
        for t in range(re.shape[2]):
            re_2[p, 0, t] = re[0, p, t] + re[1, p, t]
            im_2[p, 0, t] = im[0, p, t] + im[1, p, t]
            x = re[0, p, t] - re[1, p, t]
            y = im[0, p, t] - im[1, p, t]
            re_2[p, 1, t] = x * u - y * v
            im_2[p, 1, t] = x * v + y * u


@apart(**STAGE, unit=("complex128", 1))
def stage_of_any(re, im, re_2, im_2, root, unit):
    """A stage for any factor r; unit: its roots of unity, indexed as unit[j * k % r]."""
    for p in range(re.shape[1]):
        for k in range(re.shape[0]):
            u = root[p * k, 0].real
            v = root[p * k, 0].imag
            for t in range(re.shape[2]):
                re_2[p, k, t] = re[0, p, t]
                im_2[p, k, t] = im[0, p, t]
            for j in range(1, re.shape[0]):
                a = unit[j * k % re.shape[0]].real
                b = unit[j * k % re.shape[0]].imag
                for t in range(re.shape[2]):
                    re_2[p, k, t] += re[j, p, t] * a - im[j, p, t] * b
                    im_2[p, k, t] += re[j, p, t] * b + im[j, p, t] * a
            for t in range(re.shape[2]):
                x = re_2[p, k, t]
                y = im_2[p, k, t]
                re_2[p, k, t] = x * u - y * v
                im_2[p, k, t] = x * v + y * u


@whole
def staged_lines(x, sign):
    """Transforms of the lines, one stage for each factor of their length; LANES lines are interleaved, so that inner
    loops run over contiguous entries.
    """
    lines, n = x.shape
    out, root = np.empty((lines, n), np.complex128), roots_of_unity(n, sign)
    width = max(min(lines, LANES), 1)
    re, im, re_2, im_2 = np.empty(n * width), np.empty(n * width), np.empty(n * width), np.empty(n * width)
    for first in range(0, lines, width):
        w = min(width, lines - first)
        for k in range(w):
            for i in range(n):
                re[i * w + k], im[i * w + k] = x[first + k, i].real, x[first + k, i].imag
        left, s = n, w                  # the remaining length, and the number of interleaved transforms
        size = n * w
        while left > 1:
            r = 4 if left % 4 == 0 else 2
            while left % r:
                r += 1
            m = left // r
            here, there = (re[:size].reshape((r, m, s)), im[:size].reshape((r, m, s))), (
                re_2[:size].reshape((m, r, s)), im_2[:size].reshape((m, r, s)))
            step = root.reshape((left, n // left))
            if r == 4:
                stage_of_four(here[0], here[1], there[0], there[1], step, float(sign))
            elif r == 2:
                stage_of_two(here[0], here[1], there[0], there[1], step)
            else:
                stage_of_any(here[0], here[1], there[0], there[1], step, roots_of_unity(r, sign))
            re, re_2, im, im_2 = re_2, re, im_2, im
            left, s = m, s * r
        for k in range(w):
            for i in range(n):
                out[first + k, i] = complex(re[i * w + k], im[i * w + k])
    return out


@whole
def transform_lines(x, sign):
    """Discrete Fourier transforms of complex lines; sign: -1, or 1 for the unscaled inverse."""
    lines, n = x.shape
    if n == 0:
        raise ValueError("a Fourier transform of no numbers")
    left, r = n, 2
    while r <= LARGEST_FACTOR and left > 1:
        if left % r == 0:
            left //= r
        else:
            r += 1
    if left <= 1:
        return staged_lines(x, sign)
    size = 1
    while size < 2 * n - 1:
        size *= 2
    chirp, kernel = np.empty(n, np.complex128), np.zeros((1, size), np.complex128)
    long = np.zeros((lines, size), np.complex128)
    for k in range(n):
        angle = math.pi * ((k * k) % (2 * n)) / n
        chirp[k] = complex(math.cos(angle), sign * math.sin(angle))
        kernel[0, k] = chirp[k].conjugate()
        kernel[0, (size - k) % size] = kernel[0, k]
    kernel = staged_lines(kernel, -1)
    for line in range(lines):
        for k in range(n):
            long[line, k] = x[line, k] * chirp[k]
    long = staged_lines(long, -1)
    for line in range(lines):
        for k in range(size):
            long[line, k] *= kernel[0, k]
    long, out = staged_lines(long, 1), np.empty((lines, n), np.complex128)
    for line in range(lines):
        for k in range(n):
            out[line, k] = long[line, k] / size * chirp[k]
    return out


@whole
def half_transform_lines(x):
    """Transforms of real lines, without the half that is the conjugate of the other.

    A line of even length is transformed as half as many complex numbers, with entries at even and odd indices as real
    and imaginary parts; their transforms are separated by symmetry.
    """
    lines, n = x.shape
    if n == 0:
        raise ValueError("a Fourier transform of no numbers")
    half = n // 2
    out = np.empty((lines, half + 1), np.complex128)
    if n % 2:
        full = np.empty((lines, n), np.complex128)
        for line in range(lines):
            for k in range(n):
                full[line, k] = complex(x[line, k], 0.0)
        full = transform_lines(full, -1)
        for line in range(lines):
            for k in range(half + 1):
                out[line, k] = full[line, k]
        return out
    pairs, root = np.empty((lines, half), np.complex128), roots_of_unity(n, -1)
    for line in range(lines):
        for k in range(half):
            pairs[line, k] = complex(x[line, 2 * k], x[line, 2 * k + 1])
    pairs = transform_lines(pairs, -1)
    for line in range(lines):
        first = pairs[line, 0]
        out[line, 0], out[line, half] = complex(first.real + first.imag, 0.0), complex(first.real - first.imag, 0.0)
        for k in range(1, half):
            a, b = pairs[line, k], pairs[line, half - k].conjugate()
            odd = a - b
            out[line, k] = 0.5 * (a + b + root[k] * complex(odd.imag, -odd.real))
    return out
