# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of float32, as vmath.py has them of float64.

Every number is written with its dtype: a product of two dtypes would be of the wider one.

Sources: as in vmath.py; the polynomial of log32 is that of S. Moshier, Cephes, logf.
"""
import numpy as np

SHIFT32 = np.float32(12582912.0)            # 1.5 * 2**23
LN2_HI32, LN2_LO32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
ONE32, HALF32, TWO32 = np.float32(1.0), np.float32(0.5), np.float32(2.0)
TINY32 = np.float32(1e-8)


def power_of_two32(shifted):
    return np.int32((np.float32(shifted).view(np.int32) << np.int32(23)) + np.int32(127 << 23)).view(np.float32)


def exp_core32(r):
    p = np.float32(1.0 / 5040.0)
    p = p * r + np.float32(1.0 / 720.0)
    p = p * r + np.float32(1.0 / 120.0)
    p = p * r + np.float32(1.0 / 24.0)
    p = p * r + np.float32(1.0 / 6.0)
    p = p * r + HALF32
    return p * (r * r) + r


def scaled32(y, k):
    half = k * HALF32 + SHIFT32
    return y * power_of_two32(half) * power_of_two32(k - (half - SHIFT32) + SHIFT32)


def exp32(x):
    c = min(max(x, np.float32(-104.0)), np.float32(89.0))
    t = c * np.float32(1.4426950408889634) + SHIFT32
    k = t - SHIFT32
    y = scaled32(exp_core32((c - k * LN2_HI32) - k * LN2_LO32) + ONE32, k)
    return y if x == x else x


def expm1_32(x):
    c = min(max(x, np.float32(-20.0)), np.float32(89.0))
    t = c * np.float32(1.4426950408889634) + SHIFT32
    k = t - SHIFT32
    half = power_of_two32(t - ONE32)
    y = (exp_core32((c - k * LN2_HI32) - k * LN2_LO32) * half + (half - HALF32)) * TWO32
    return x if abs(x) < TINY32 or x != x else y


def tanh32(x):
    e = expm1_32(TWO32 * min(abs(x), np.float32(10.0)))
    y = e / (e + TWO32)
    return (-y if x < np.float32(0.0) else y) if abs(x) > TINY32 else x


def logistic32(x):
    e = exp32(-abs(x))
    return (ONE32 if x >= np.float32(0.0) else e) / (ONE32 + e)


def log32(x):
    small = x < np.float32(1.17549435e-38)
    bits = np.float32(x * np.float32(16777216.0) if small else x).view(np.int32)
    e = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))
    f = np.int32(bits - np.int32(e << np.int32(23))).view(np.float32) - ONE32
    k = np.float32(e) - (np.float32(24.0) if small else np.float32(0.0))
    z = f * f
    p = np.float32(7.0376836292e-2)
    p = p * f + np.float32(-1.1514610310e-1)
    p = p * f + np.float32(1.1676998740e-1)
    p = p * f + np.float32(-1.2420140846e-1)
    p = p * f + np.float32(1.4249322787e-1)
    p = p * f + np.float32(-1.6668057665e-1)
    p = p * f + np.float32(2.0000714765e-1)
    p = p * f + np.float32(-2.4999993993e-1)
    p = p * f + np.float32(3.3333331174e-1)
    y = f * z * p + k * LN2_LO32 - HALF32 * z
    y = f + y + k * LN2_HI32
    y = y if x < np.float32(np.inf) else x
    return y if x > np.float32(0.0) else (np.float32(-np.inf) if x == np.float32(0.0) else np.float32(np.nan))


def log1p_32(x):
    u = ONE32 + x
    lost = (ONE32 - (u - x)) if u >= TWO32 else x - (u - ONE32)
    y = log32(u) + (lost / u if np.float32(0.0) < u and u < np.float32(np.inf) else np.float32(0.0))
    return x if abs(x) < TINY32 else y
