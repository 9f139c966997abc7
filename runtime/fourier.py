# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms for compiled code: lines of any length, by factors of the length.

Each stage takes one factor r: it makes r sums of r entries that lie apart, and writes them where the next stage wants
them, so that no entries are put in order at the end.  A length with a large prime factor goes by a convolution.

Sources: C. Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), 1.7 (Stockham's stages) and 2.1
(factors); L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform (1970).
"""
import math

import numpy as np

from gradscribe.runtime.compiled import whole

LARGEST_FACTOR = 13         # a stage of a larger one takes longer than the convolution


@whole
def roots_of_unity(n, sign):
    """exp(sign 2 pi i k / n) for each k: about sqrt(n) by sines and cosines, the rest as products of two of them."""
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


@whole
def staged_lines(x, sign):
    """Transforms of the lines, a stage for each factor of their length."""
    lines, n = x.shape
    out, root = np.empty((lines, n), np.complex128), roots_of_unity(n, sign)
    here, there = np.empty(n, np.complex128), np.empty(n, np.complex128)
    for line in range(lines):
        for i in range(n):
            here[i] = x[line, i]
        left, s = n, 1                  # what is left to transform, and how many such transforms lie side by side
        while left > 1:
            r = 4 if left % 4 == 0 else 2
            while left % r:
                r += 1
            m = left // r
            if r == 4:
                for p in range(m):
                    w1, w2, w3 = root[p * s], root[2 * p * s], root[3 * p * s]
                    for q in range(s):
                        at, to = q + s * p, q + 4 * s * p
                        a, b, c, d = here[at], here[at + s * m], here[at + 2 * s * m], here[at + 3 * s * m]
                        even, odd, both, turned = a + c, a - c, b + d, b - d
                        turned = complex(-sign * turned.imag, sign * turned.real)
                        there[to], there[to + s] = even + both, (odd + turned) * w1
                        there[to + 2 * s], there[to + 3 * s] = (even - both) * w2, (odd - turned) * w3
            elif r == 2:
                for p in range(m):
                    w = root[p * s]
                    for q in range(s):
                        a, b = here[q + s * p], here[q + s * (p + m)]
                        there[q + 2 * s * p], there[q + 2 * s * p + s] = a + b, (a - b) * w
            else:
                for p in range(m):
                    for k in range(r):
                        to, w = s * (r * p + k), root[p * k * s]
                        for q in range(s):
                            there[to + q] = here[s * p + q]
                        for j in range(1, r):
                            z, at = root[j * k % r * (n // r)], s * (p + j * m)
                            for q in range(s):
                                there[to + q] += here[at + q] * z
                        for q in range(s):
                            there[to + q] *= w
            here, there = there, here
            left, s = m, s * r
        for i in range(n):
            out[line, i] = here[i]
    return out


@whole
def transform_lines(x, sign):
    """Discrete Fourier transforms of lines of complex numbers; sign: -1, or 1 for the inverse without its factor."""
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
    """Transforms of lines of real numbers, without the half that is the conjugate of the other.

    A line of even length is one of half as many complex numbers: entries at even and at odd places are its real and
    imaginary parts, and their transforms are told apart by their symmetry.
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
