# SPDX-License-Identifier: Apache-2.0
"""Floating-point numbers as integers in the same order, whose maximum needs no branches.

Source: IEEE 754, interchange formats; the bits of a negative number are inverted.
"""
import numpy as np


def ranked(x):
    """An integer that increases with x, largest for NaN.

    >>> bool(ranked(1.0) < ranked(2.0)), bool(ranked(-1.0) < ranked(-0.5)), float(unranked(ranked(-1.5)))
    (True, True, -1.5)
    """
    bits = np.float64(x).view(np.int64)
    return np.int64(9223372036854775807) if x != x else bits ^ ((bits >> 63) & 9223372036854775807)


def ranked_low(x):
    """The same, but smallest for NaN."""
    bits = np.float64(x).view(np.int64)
    return np.int64(-9223372036854775808) if x != x else bits ^ ((bits >> 63) & 9223372036854775807)


def unranked(k):
    """The inverse of ranked and ranked_low."""
    return np.int64(k ^ ((k >> 63) & 9223372036854775807)).view(np.float64)


def ranked32(x):
    """The same in single precision.

    >>> bool(ranked32(1.0) < ranked32(2.0)), bool(ranked32(-1.0) < ranked32(-0.5)), float(unranked32(ranked32(-1.5)))
    (True, True, -1.5)
    """
    bits = np.float32(x).view(np.int32)
    return np.int32(2147483647) if x != x else np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2147483647)))


def ranked_low32(x):
    bits = np.float32(x).view(np.int32)
    return np.int32(-2147483648) if x != x else np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2147483647)))


def unranked32(k):
    return np.int32(k ^ ((k >> np.int32(31)) & np.int32(2147483647))).view(np.float32)
