# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of float32: `f_32` corresponds to `f` of vmath.py, vmath_gamma.py or vmath_roots.py.

Each has an error of at most 2 units in the last place, powers too.  Where float32 is not accurate enough, a few steps
are in double precision: the reduction of angles, the logarithm of a power, the product of the two factors of erfc and
ndtr.  Every constant is written with its dtype, since a product of two dtypes has the wider one.

Sources: as in vmath.py; S. Moshier, Cephes, logf, log2f and log10f (the polynomial of the logarithm, constants in two
parts), acoshf and tanhf (their intervals); N. Juffa, erff (one minus 2 to a polynomial).  Polynomials without a source
are minimax fits for these intervals, rounded from the lowest coefficient on.
"""
import math

import numpy as np

from gradscribe.runtime.vmath import A_PIECE, B_PIECE, C_PIECE, D_PIECE, SHIFT

SHIFT32 = np.float32(12582912.0)            # 1.5 * 2**23
HALF_ROOT32 = 0x3F3504F3                    # the bits of sqrt(1/2)
LN2_HI32, LN2_LO32, LN2_32 = np.float32(0.693359375), np.float32(-2.12194440e-4), np.float32(0.6931471805599453)
LOG2E32 = np.float32(1.4426950408889634)
ONE32, HALF32, TWO32 = np.float32(1.0), np.float32(0.5), np.float32(2.0)
ZERO32, QUARTER32, INF32, NAN32 = np.float32(0.0), np.float32(0.25), np.float32(np.inf), np.float32(np.nan)
TINY32 = np.float32(1e-8)
LARGEST_ANGLE32 = np.float32(2.0 ** 47)
WHOLE_SHIFT = SHIFT * 8388608.0             # rounds to a multiple of 2**23
LAST_PIECE = C_PIECE + D_PIECE              # the rest of pi / 2 after A_PIECE and B_PIECE
PIO2_HI32, PIO2_LO32 = np.float32(1.57079637), np.float32(-4.37113883e-8)


def upper_32(x):
    """A number truncated to the upper half of its digits."""
    return np.int32(np.float32(x).view(np.int32) & np.int32(-4096)).view(np.float32)


def power_of_two_32(shifted):
    return np.int32((np.float32(shifted).view(np.int32) << np.int32(23)) + np.int32(127 << 23)).view(np.float32)


# --- exponentials -----------------------------------------------------------------------------------------------------

def exp_rest_32(r):
    """exp(r) - 1 - r for |r| <= ln(2) / 2."""
    p = np.float32(1.39418675e-3)
    p = p * r + np.float32(8.36867932e-3)
    p = p * r + np.float32(4.16663885e-2)
    p = p * r + np.float32(1.66665211e-1)
    p = p * r + HALF32
    return p * (r * r)


def exp_core_32(r):
    return exp_rest_32(r) + r


def exp2_core_32(r):
    """2**r - 1 for |r| <= 1/2."""
    p = np.float32(1.54628826e-4)
    p = p * r + np.float32(1.33909844e-3)
    p = p * r + np.float32(9.61806253e-3)
    p = p * r + np.float32(5.55035956e-2)
    p = p * r + np.float32(2.40226507e-1)
    p = p * r + np.float32(6.93147182e-1)
    return p * r


def scaled_32(y, k):
    half = k * HALF32 + SHIFT32
    return y * power_of_two_32(half) * power_of_two_32(k - (half - SHIFT32) + SHIFT32)


def exp_32(x):
    c = min(max(x, np.float32(-104.0)), np.float32(89.0))
    t = c * LOG2E32 + SHIFT32
    k = t - SHIFT32
    y = scaled_32(exp_core_32((c - k * LN2_HI32) - k * LN2_LO32) + ONE32, k)
    return y if x == x else x


def exp_parts_32(x, rest):
    """e and k of exp(x + rest) = 2**k * (1 + e), for -104 <= x <= 0 and a small rest, without rounding the sum."""
    k = ((x + rest) * LOG2E32 + SHIFT32) - SHIFT32
    first, second = x - k * LN2_HI32, rest - k * LN2_LO32
    return first + (exp_rest_32(first + second) + second), k


def exp2_32(x):
    c = min(max(x, np.float32(-151.0)), np.float32(129.0))
    k = (c + SHIFT32) - SHIFT32
    y = scaled_32(exp2_core_32(c - k) + ONE32, k)
    return y if x == x else x


def expm1_32(x):
    c = min(max(x, np.float32(-20.0)), np.float32(89.0))
    t = c * LOG2E32 + SHIFT32
    k = t - SHIFT32
    half = power_of_two_32(t - ONE32)
    y = (exp_core_32((c - k * LN2_HI32) - k * LN2_LO32) * half + (half - HALF32)) * TWO32
    return x if abs(x) < TINY32 or x != x else y


def half_exp_32(x):
    """exp(x) / 2 for x >= 0."""
    c = min(x, np.float32(90.0))
    k = (c * LOG2E32 + SHIFT32) - SHIFT32
    return scaled_32(exp_core_32((c - k * LN2_HI32) - k * LN2_LO32) + ONE32, k - ONE32)


def sinh_32(x):
    a = abs(x)
    c = min(a, ONE32)
    z = c * c
    p = np.float32(2.03766336e-4)
    p = p * z + np.float32(8.33022315e-3)
    p = p * z + np.float32(1.66667178e-1)
    half = half_exp_32(a)
    y = c + c * (z * p) if a < ONE32 else half - QUARTER32 / half
    return np.float32(math.copysign(y, x)) if x == x else x


def cosh_32(x):
    half = half_exp_32(abs(x))
    return half + QUARTER32 / half if x == x else x


def tanh_32(x):
    a = abs(x)
    c = min(a, np.float32(0.625))
    z = c * c
    p = np.float32(-5.71549917e-3)
    p = p * z + np.float32(2.06491034e-2)
    p = p * z + np.float32(-5.37430048e-2)
    p = p * z + np.float32(1.33314848e-1)
    p = p * z + np.float32(-3.33332837e-1)
    far = ONE32 - TWO32 / (exp_32(TWO32 * min(a, np.float32(10.0))) + ONE32)
    y = c + c * (z * p) if a < np.float32(0.625) else far
    return np.float32(math.copysign(y, x)) if x == x else x


def logistic_32(x):
    """1 / (1 + exp(-x)); the quotient is corrected by the rounding error of 1 + e."""
    e = exp_32(-abs(x))
    whole = ONE32 + e
    y = (ONE32 if x >= ZERO32 else e) / whole
    return y - y * ((e - (whole - ONE32)) * (y if x >= ZERO32 else ONE32 - y))


# --- logarithms -------------------------------------------------------------------------------------------------------

def taken_apart_32(x):
    """k and f of x = 2**k * (1 + f), with 1 + f from sqrt(1/2) to sqrt(2)."""
    small = x < np.float32(1.17549435e-38)
    bits = np.float32(x * np.float32(16777216.0) if small else x).view(np.int32)
    e = np.int32(np.int32(bits - np.int32(HALF_ROOT32)) >> np.int32(23))
    f = np.int32(bits - np.int32(e << np.int32(23))).view(np.float32) - ONE32
    return np.float32(e) - (np.float32(24.0) if small else ZERO32), f


def log_rest_32(f):
    """log(1 + f) - f."""
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
    return f * z * p - HALF32 * z


def log_ends_32(x, y):
    """The logarithm y of x, corrected where x is not positive and finite."""
    y = y if x < INF32 else x
    return y if x > ZERO32 else (-INF32 if x == ZERO32 else NAN32)


def log_32(x):
    k, f = taken_apart_32(x)
    y = f + (log_rest_32(f) + k * LN2_LO32) + k * LN2_HI32
    return log_ends_32(x, y)


def log2_32(x):
    k, f = taken_apart_32(x)
    rest = log_rest_32(f)
    y = f + ((f + rest) * np.float32(0.44269504088896341) + rest) + k
    return log_ends_32(x, y)


def log10_32(x):
    k, f = taken_apart_32(x)
    rest = log_rest_32(f)
    y = (f + rest) * np.float32(7.00731903251827651129e-4) + k * np.float32(2.48745663981195213739e-4)
    y = y + rest * np.float32(4.3359375e-1) + f * np.float32(4.3359375e-1) + k * np.float32(3.0078125e-1)
    return log_ends_32(x, y)


def log1p_32(x):
    u = ONE32 + x
    lost = (ONE32 - (u - x)) if u >= TWO32 else x - (u - ONE32)
    y = log_32(u) + (lost / u if ZERO32 < u and u < INF32 else ZERO32)
    return x if abs(x) < TINY32 else y


def log1p_of_sum_32(a, b):
    """log(1 + a + b) for a >= b >= 0."""
    s = a + b
    u = ONE32 + s
    lost = ((ONE32 - (u - s)) if u >= TWO32 else s - (u - ONE32)) + (b - (s - a))
    return log_32(u) + lost / u


def logaddexp_32(a, b):
    d = a - b
    return a + LN2_32 if a == b else max(a, b) + log1p_32(exp_32(-abs(d))) if d == d else d


# --- angles -----------------------------------------------------------------------------------------------------------

def turned_32(x):
    """x - k pi / 2 in double precision, and k modulo 4.

    k is in two parts and pi / 2 in three: the products with the first two are exact.
    """
    d = np.float64(x)
    t = d * 0.6366197723675814 + SHIFT
    k = t - SHIFT
    high = (k + WHOLE_SHIFT) - WHOLE_SHIFT
    low = k - high
    r = ((d - high * A_PIECE) - low * A_PIECE) - high * B_PIECE
    return (r - low * B_PIECE) - k * LAST_PIECE, np.int32(np.float64(t).view(np.int64) & 3)


def sin_rest_32(r):
    """sin(r) - r for |r| <= pi / 4."""
    z = r * r
    p = np.float32(-1.95187895e-4)
    p = p * z + np.float32(8.33219197e-3)
    p = p * z + np.float32(-1.66666552e-1)
    return r * (z * p)


def cos_rest_32(r):
    """1 - cos(r)."""
    z = r * r
    p = np.float32(2.44306684e-5)
    p = p * z + np.float32(-1.38873013e-3)
    p = p * z + np.float32(4.16666456e-2)
    return HALF32 * z - z * z * p


def sin_32(x):
    wide, turn = turned_32(x)
    r = np.float32(wide)
    y = ONE32 - cos_rest_32(r) if turn & 1 else r + sin_rest_32(r)
    y = -y if turn & 2 else y
    y = x if abs(x) < np.float32(1e-4) else y
    return y if abs(x) <= LARGEST_ANGLE32 else NAN32


def cos_32(x):
    wide, turn = turned_32(x)
    r = np.float32(wide)
    y = r + sin_rest_32(r) if turn & 1 else ONE32 - cos_rest_32(r)
    y = -y if (turn + 1) & 2 else y
    return y if abs(x) <= LARGEST_ANGLE32 else NAN32


def tan_32(x):
    """tan(x), from r in two parts; the slope is 1 + tan(r)**2."""
    wide, turn = turned_32(x)
    r = np.float32(wide)
    rest = np.float32(wide - np.float64(r))
    z = r * r
    p = np.float32(4.43372549e-3)
    p = p * z + np.float32(-3.22143169e-5)
    p = p * z + np.float32(1.09365648e-2)
    p = p * z + np.float32(2.12412458e-2)
    p = p * z + np.float32(5.40683083e-2)
    p = p * z + np.float32(1.33325845e-1)
    p = p * z + np.float32(3.33333522e-1)
    more = r * (z * p)
    t = r + more
    more = more + rest * (ONE32 + t * t)
    t = r + more
    y = -ONE32 / t
    y = y + y * (y * (more - (t - r))) if turn & 1 else t
    y = x if abs(x) < np.float32(1e-4) else y
    return y if abs(x) <= LARGEST_ANGLE32 else NAN32


def arctan_core_32(t):
    """arctan(t) for 0 <= t <= 1."""
    z = t * t
    p = np.float32(-1.82311598e-3)
    p = p * z + np.float32(1.1046255e-2)
    p = p * z + np.float32(-3.14221419e-2)
    p = p * z + np.float32(5.82012571e-2)
    p = p * z + np.float32(-8.41754302e-2)
    p = p * z + np.float32(1.09569333e-1)
    p = p * z + np.float32(-1.4265126e-1)
    p = p * z + np.float32(1.99986279e-1)
    p = p * z + np.float32(-3.33333015e-1)
    return t + t * (z * p)


def arctan_32(x):
    a = abs(x)
    far = a > ONE32
    y = arctan_core_32(ONE32 / a if far else a)
    y = PIO2_HI32 - (y - PIO2_LO32) if far else y
    return np.float32(math.copysign(y, x)) if x == x else x


def arctan2_32(y, x):
    a, b = abs(x), abs(y)
    steep = b > a
    low, high = (a if steep else b), (b if steep else a)
    angle = arctan_core_32(ONE32 if low == INF32 else ZERO32 if low == ZERO32 else low / high)
    angle = PIO2_HI32 - (angle - PIO2_LO32) if steep else angle
    angle = TWO32 * PIO2_HI32 - (angle - TWO32 * PIO2_LO32) if math.copysign(ONE32, x) < ZERO32 else angle
    return np.float32(math.copysign(angle, y)) if x == x and y == y else NAN32


def arcsin_core_32(z):
    """(arcsin(x) - x) / x by z = x * x <= 1/4."""
    p = np.float32(4.22117971e-2)
    p = p * z + np.float32(2.41520926e-2)
    p = p * z + np.float32(4.54760417e-2)
    p = p * z + np.float32(7.49525204e-2)
    p = p * z + np.float32(1.66667536e-1)
    return z * p


def arcsin_32(x):
    a = abs(x)
    outer = a >= HALF32
    z = HALF32 * (ONE32 - a) if outer else a * a
    s = np.sqrt(z) if outer else a
    rest = s * arcsin_core_32(z)
    first = PIO2_HI32 - TWO32 * s
    lost = (PIO2_HI32 - first) - TWO32 * s
    y = first - (TWO32 * rest - (PIO2_LO32 + lost)) if outer else s + rest
    return np.float32(math.copysign(y, x)) if a <= ONE32 else NAN32


def arccos_32(x):
    a = abs(x)
    outer = a > HALF32
    z = HALF32 * (ONE32 - a) if outer else a * a
    s = np.sqrt(z) if outer else x
    y = s + s * arcsin_core_32(z)
    far = TWO32 * (PIO2_HI32 - (y - PIO2_LO32))
    y = (TWO32 * y if x > ZERO32 else far) if outer else PIO2_HI32 - (y - PIO2_LO32)
    return y if a <= ONE32 else NAN32


# --- powers and roots -------------------------------------------------------------------------------------------------

def power_32(x, y):
    """x ** y, as 2 to the power of y times the logarithm to base 2, which are in double precision."""
    a = abs(x)
    k, f = taken_apart_32(a)
    f = np.float64(f)
    s = f / (2.0 + f)
    z = s * s
    p = 0.34074038683957253
    p = p * z + 0.41167221587680913
    p = p * z + 0.57708359157987676
    p = p * z + 0.96179667333194396
    p = p * z + 2.8853900817899767
    w = min(max((s * p + np.float64(k)) * np.float64(y), -200.0), 200.0)
    whole = (w + SHIFT) - SHIFT
    value = scaled_32(exp2_core_32(np.float32(w - whole)) + ONE32, np.float32(whole))
    # zeros, infinities, negative numbers
    even = y * HALF32
    odd = abs(y) < np.float32(16777216.0) and np.floor(y) == y and np.floor(even) != even
    value = (INF32 if y < ZERO32 else ZERO32) if a == ZERO32 else value
    value = (ZERO32 if y < ZERO32 else INF32) if a == INF32 else value
    value = (ONE32 if a == ONE32 else INF32 if (a > ONE32) == (y > ZERO32) else ZERO32) if abs(y) == INF32 else value
    signed = math.copysign(ONE32, x) < ZERO32
    value = -value if signed and odd else value
    value = NAN32 if signed and a > ZERO32 and a < INF32 and np.floor(y) != y else value
    value = x + y if x != x or y != y else value
    return ONE32 if y == ZERO32 or x == ONE32 else value


def cbrt_32(x):
    """x ** (1/3): a Halley step, which triples the number of digits, and a Newton step with a small correction."""
    a = abs(x)
    k, f = taken_apart_32(a)
    q = (k * np.float32(1.0 / 3.0) + SHIFT32) - SHIFT32
    m = (ONE32 + f) * power_of_two_32((k - np.float32(3.0) * q) + SHIFT32)
    y = ((np.float32(0.03064435) * m - np.float32(0.21226468)) * m + np.float32(0.6806759)) * m + np.float32(0.50098746)
    cube = y * y * y
    y = y * (cube + TWO32 * m) / (TWO32 * cube + m)
    y = y - (y - m / (y * y)) * np.float32(1.0 / 3.0)
    y = y * power_of_two_32(q + SHIFT32)
    return x if a == ZERO32 or a == INF32 or x != x else np.float32(math.copysign(y, x))


def hypot_32(x, y):
    """sqrt(x * x + y * y), scaled so that no square overflows."""
    a, b = abs(x), abs(y)
    high = max(a, b)
    large, small = high > np.float32(2.0 ** 60), high < np.float32(2.0 ** -50)
    scale = np.float32(2.0 ** -70) if large else np.float32(2.0 ** 90) if small else ONE32
    back = np.float32(2.0 ** 70) if large else np.float32(2.0 ** -90) if small else ONE32
    u, v = a * scale, b * scale
    h = np.sqrt(u * u + v * v) * back
    return INF32 if a == INF32 or b == INF32 else h


def arcsinh_32(x):
    a = abs(x)
    c = min(a, np.float32(8192.0))
    square = c * c
    near = log1p_of_sum_32(c, square / (ONE32 + np.sqrt(square + ONE32)))
    y = log_32(a) + LN2_32 if a > np.float32(8192.0) else near
    return x if a < TINY32 or x != x else np.float32(math.copysign(y, x))


def arccosh_32(x):
    t = min(x, np.float32(8192.0)) - ONE32
    p = np.float32(-4.13358415e-4)
    p = p * t + np.float32(1.76018255e-3)
    p = p * t + np.float32(-5.54790022e-3)
    p = p * t + np.float32(1.87466033e-2)
    p = p * t + np.float32(-8.33332166e-2)
    root = np.sqrt(t + t)
    near = root + root * (t * p)
    y = near if t < HALF32 else log1p_of_sum_32(np.sqrt(t * (t + TWO32)), t)
    y = log_32(x) + LN2_32 if x > np.float32(8192.0) else y
    return y if x >= ONE32 else NAN32


def arctanh_32(x):
    a = abs(x)
    c = min(a, np.float32(0.99999994))
    t = c + c
    outer = c >= HALF32
    y = HALF32 * log1p_of_sum_32(t / (ONE32 - c) if outer else t, ZERO32 if outer else t * c / (ONE32 - c))
    y = INF32 if a == ONE32 else y
    return (x if a < TINY32 else np.float32(math.copysign(y, x))) if a <= ONE32 else NAN32


# --- the error function and the normal distribution -------------------------------------------------------------------

def erf_32(x):
    a = abs(x)
    c = min(a, ONE32)
    z = c * c
    p = np.float32(8.41540386e-5)
    p = p * z + np.float32(-8.15161096e-4)
    p = p * z + np.float32(5.20152505e-3)
    p = p * z + np.float32(-2.68593729e-2)
    p = p * z + np.float32(1.12836868e-1)
    p = p * z + np.float32(-3.76126319e-1)
    p = p * z + np.float32(1.28379166e-1)
    near = x + x * p
    # 1 - 2**t, where t is a polynomial
    c = min(a, np.float32(4.0))
    t = np.float32(2.81257177e-4)
    t = t * c + np.float32(-4.37674625e-3)
    t = t * c + np.float32(3.20132077e-2)
    t = t * c + np.float32(-1.49833217e-1)
    t = t * c + np.float32(-9.19380069e-1)
    t = t * c + np.float32(-1.62682247)
    t = t * c + np.float32(-2.98650149e-4)
    whole = t + SHIFT32
    power = power_of_two_32(whole)
    far = (ONE32 - power) - exp2_core_32(t - (whole - SHIFT32)) * power
    return near if a < np.float32(0.92) else np.float32(math.copysign(far, x)) if x == x else x


def erfc_32(x):
    """1 - erf(x) if that is more than a half; else exp(-a * a) times a polynomial in a, or in 1 / a**2 divided by a."""
    c = min(abs(x), HALF32)
    z = c * c
    p = np.float32(4.754405e-3)
    p = p * z + np.float32(-2.67727077e-2)
    p = p * z + np.float32(1.12830266e-1)
    p = p * z + np.float32(-3.7612617e-1)
    p = p * z + np.float32(1.28379166e-1)
    near = ONE32 - (x + x * p)
    a = min(max(abs(x), QUARTER32), np.float32(10.1))
    far = a > TWO32
    u = ONE32 / (a * a) if far else a - np.float32(0.96875)
    p = ZERO32 if far else np.float32(-0.000201871488)
    p = p * u + (np.float32(30.7513847) if far else np.float32(0.00107236777))
    p = p * u + (np.float32(-41.4921303) if far else np.float32(-0.00313561945))
    p = p * u + (np.float32(25.732645) if far else np.float32(0.00768213952))
    p = p * u + (np.float32(-10.243969) if far else np.float32(-0.0180220846))
    p = p * u + (np.float32(3.25260925) if far else np.float32(0.040266484))
    p = p * u + (np.float32(-1.03743422) if far else np.float32(-0.0840899497))
    p = p * u + (np.float32(0.422606975) if far else np.float32(0.162025288))
    p = p * u + (np.float32(-0.282087952) if far else np.float32(-0.283097029))
    first = np.float32(0.564189553) if far else np.float32(0.436274648)
    wide = np.float64(first) + np.float64(p) * np.float64(u)
    head = upper_32(a)
    e, k = exp_parts_32(-head * head, (head - a) * (head + a))
    y = scaled_32(np.float32(wide + wide * np.float64(e)) / (a if far else ONE32), k)
    y = near if abs(x) < np.float32(0.47) else y if x >= ZERO32 else TWO32 - y
    return y if x == x else x


def ndtr_32(x):
    """The cumulative normal distribution, as erfc_32."""
    c = min(abs(x), np.float32(0.67))
    z = c * c
    p = np.float32(1.39990734e-4)
    p = p * z + np.float32(-1.21480646e-3)
    p = p * z + np.float32(9.98184085e-3)
    p = p * z + np.float32(-6.64911568e-2)
    p = p * z + np.float32(3.98942292e-1)
    near = HALF32 + x * p
    a = min(max(abs(x), QUARTER32), np.float32(14.3))
    far = a > np.float32(2.75)
    u = ONE32 / (a * a) if far else a - np.float32(1.375)
    p = ZERO32 if far else np.float32(-4.84783413e-6)
    p = p * u + (np.float32(4033.56812) if far else np.float32(3.44235814e-5))
    p = p * u + (np.float32(-2966.08667) if far else np.float32(-0.00013780054))
    p = p * u + (np.float32(997.573547) if far else np.float32(0.000474465836))
    p = p * u + (np.float32(-213.084091) if far else np.float32(-0.0015779566))
    p = p * u + (np.float32(35.6035614) if far else np.float32(0.00499395654))
    p = p * u + (np.float32(-5.82497883) if far else np.float32(-0.0147654265))
    p = p * u + (np.float32(1.19445014) if far else np.float32(0.0402849615))
    p = p * u + (np.float32(-0.39892447) if far else np.float32(-0.0996875241))
    first = np.float32(0.398942232) if far else np.float32(0.217639819)
    wide = np.float64(first) + np.float64(p) * np.float64(u)
    head = upper_32(a)
    e, k = exp_parts_32(-HALF32 * head * head, HALF32 * ((head - a) * (head + a)))
    y = scaled_32(np.float32(wide + wide * np.float64(e)) / (a if far else ONE32), k)
    y = near if abs(x) < np.float32(0.67) else ONE32 - y if x > ZERO32 else y
    return y if x == x else x
