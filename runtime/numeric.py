# SPDX-License-Identifier: Apache-2.0
"""Functions for compiled code: statistics, calculus, polynomials and numbers; plain loops, as in compiled.py."""
import math

import numpy as np

from gradscribe.runtime.compiled import Unsaid, search_sorted, sort_lines, whole

# --- statistics -------------------------------------------------------------------------------------------------------

@whole
def quantile_lines(x, q, method, skip):
    """The quantiles of each line at each q; skip: ignore NaN.  Methods: linear, lower, higher, midpoint, nearest."""
    if x.shape[1] == 0 and not skip:
        raise IndexError("there is no quantile of no numbers")
    ordered, out = sort_lines(x), np.empty((q.shape[0], x.shape[0]), x.dtype)
    for line in range(x.shape[0]):
        held = x.shape[1]
        while skip and held > 0 and ordered[line, held - 1] != ordered[line, held - 1]:
            held -= 1
        for k in range(q.shape[0]):
            if not 0 <= q[k] <= 1:
                raise ValueError("Quantiles must be in the range [0, 1]")
            if held == 0 or ordered[line, held - 1] != ordered[line, held - 1]:
                out[k, line] = np.nan
                continue
            at = q[k] * (held - 1)
            low = int(math.ceil(at)) if method == 2 else int(np.rint(at)) if method == 4 else int(math.floor(at))
            value = ordered[line, low]
            if method in (1, 2, 4):
                out[k, line] = value
                continue
            part = at - low if method == 0 else 0.5 if at != low else 0.0
            after = ordered[line, min(low + 1, held - 1)]
            step = after - value        # interpolates from the nearer end, as NumPy does
            out[k, line] = value + step * part if part < 0.5 else after - step * (1 - part)
    return out


@whole
def nan_variance_lines(x, ddof):
    out = np.empty(x.shape[0], x.dtype)
    for line in range(x.shape[0]):
        held, total, squares = 0, 0.0, 0.0
        for v in x[line]:
            if v == v:
                held, total = held + 1, total + v
        for v in x[line]:
            if v == v:
                squares += (v - total / held) ** 2
        out[line] = squares / (held - ddof) if held > ddof else np.nan
    return out


# --- calculus ---------------------------------------------------------------------------------------------------------

def interpolate(x, xp, fp, left, right):
    if x != x:
        return fp[0] * np.nan if xp.shape[0] > 1 else fp[0]
    if x < xp[0]:
        return left
    last = xp.shape[0] - 1
    if x > xp[last]:
        return right
    k = min(search_sorted(xp, x, True), last) - 1
    if k < 0:
        return fp[0]
    if x == xp[k] or fp[k] == fp[k + 1]:
        return fp[k]
    return fp[k] + (x - xp[k]) * ((fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k]))


@whole
def unwrap_lines(x, discont, period):
    out = np.empty_like(x)
    for line in range(x.shape[0]):
        whole = 0.0
        for i in range(x.shape[1]):
            if i > 0:
                step = x[line, i] - x[line, i - 1]
                rest = (step + period / 2) % period - period / 2
                if rest == -period / 2 and step > 0:
                    rest = period / 2
                if abs(step) >= discont:
                    whole += rest - step
            out[line, i] = x[line, i] + whole
    return out


def evenly(i, start, stop, parts, closed):
    """An entry of np.linspace."""
    return stop if closed and i > 0 and i == parts else i * ((stop - start) / parts) + start


def in_proportion(i, start, stop, parts, closed):
    """An entry of np.geomspace."""
    if i == 0 or closed and i == parts:
        return start if i == 0 else stop
    return start * (stop / start) ** (i / parts)


def bessel_zero(x):
    """np.i0, as an integral over an angle; with 64 angles it is exact up to overflow."""
    total = 0.0
    for k in range(64):
        total += math.cosh(x * math.cos((k + 0.5) * (math.pi / 128)))
    return total / 64


def window(kind, i, n, beta):
    """An entry of a window of length n: bartlett, blackman, hamming, hanning, kaiser."""
    if n == 1:
        return 1.0
    place = (2 * i + 1 - n) / (n - 1)
    angle = math.pi * place
    if kind == 0:
        return 1 - abs(place)
    if kind == 1:
        return 0.42 + 0.5 * math.cos(angle) + 0.08 * math.cos(2 * angle)
    if kind == 2:
        return 0.54 + 0.46 * math.cos(angle)
    if kind == 3:
        return 0.5 + 0.5 * math.cos(angle)
    return bessel_zero(beta * math.sqrt(1 - place * place)) / bessel_zero(beta)


@whole
def reduceat_lines(x, indices):
    """np.add.reduceat for each line."""
    out = np.empty((x.shape[0], indices.shape[0]), x.dtype)
    for k in range(indices.shape[0]):
        start = indices[k]
        if not 0 <= start < x.shape[1]:
            raise IndexError("index is out of bounds in add.reduceat")
        stop = indices[k + 1] if k + 1 < indices.shape[0] else x.shape[1]
        for line in range(x.shape[0]):
            total = x[line, start]
            for i in range(start + 1, stop):
                total += x[line, i]
            out[line, k] = total
    return out


# --- polynomials ------------------------------------------------------------------------------------------------------

def horner(p, x):
    y = x * 0
    for c in p:
        y = y * x + c
    return y


def add_at_the_end(a, b):
    """The sum of two polynomials, whose last coefficients are aligned."""
    n, m = a.shape[0], b.shape[0]
    out = np.zeros(max(n, m), a.dtype)
    for i in range(n):
        out[out.shape[0] - n + i] += a[i]
    for i in range(m):
        out[out.shape[0] - m + i] += b[i]
    return out


def with_roots(z):
    """The coefficients of the polynomial that has these roots."""
    out = np.zeros(z.shape[0] + 1, z.dtype)
    out[0] = 1
    for k in range(z.shape[0]):
        for i in range(k + 1, 0, -1):
            out[i] -= z[k] * out[i - 1]
    return out


# --- numbers ----------------------------------------------------------------------------------------------------------

@whole
def exact_sum(x):
    """math.fsum: keeps exact partial sums (Shewchuk, 1997)."""
    parts, count, endless = np.empty(x.shape[0] + 1), 0, 0.0
    for v in x:
        if not abs(v) < np.inf:
            endless += v
            continue
        kept, high = 0, float(v)
        for k in range(count):
            low = parts[k]
            if abs(high) < abs(low):
                high, low = low, high
            total = high + low
            rest = low - (total - high)
            if rest != 0:
                parts[kept] = rest
                kept += 1
            high = total
        parts[kept] = high
        count = kept + 1
    if endless != 0.0:
        return endless
    total = 0.0
    for k in range(count - 1, -1, -1):
        total += parts[k]
    return total


def exponent_of(x):
    """The exponent of math.frexp."""
    if x == 0 or x != x or abs(x) == np.inf:
        return 0
    return math.frexp(x)[1]


def mantissa_of(x):
    if x == 0 or x != x or abs(x) == np.inf:
        return x
    return math.frexp(x)[0]


def fraction_of(x):
    return math.copysign(0.0 if abs(x) == np.inf else x - np.trunc(x), x)


def next_after(x, y):
    if x != x or y != y:
        return x + y
    if x == y:
        return y
    if x == 0:
        return math.copysign(5e-324, y)
    if abs(x) == np.inf:
        return math.copysign(1.7976931348623157e308, x)
    mantissa, exponent = math.frexp(x)
    away = (y > x) == (x > 0)
    step = math.ldexp(1.0, max(exponent - 53, -1074))
    if not away and abs(mantissa) == 0.5 and exponent - 54 >= -1074:
        step = step / 2
    return math.copysign(x + step if y > x else x - step, x)


def next_after32(x, y):
    """np.nextafter in single precision, computed in double precision, where the step is exact."""
    x, y = np.float64(x), np.float64(y)
    if x != x or y != y:
        return np.float32(x + y)
    if x == y:
        return np.float32(y)
    if x == 0:
        return np.float32(math.copysign(2.0 ** -149, y))
    if abs(x) == np.inf:
        return np.float32(math.copysign(3.4028234663852886e38, x))
    mantissa, exponent = math.frexp(x)
    away = (y > x) == (x > 0)
    step = math.ldexp(1.0, max(exponent - 24, -149))
    if not away and abs(mantissa) == 0.5 and exponent - 25 >= -149:
        step = step / 2
    return np.float32(math.copysign(x + step if y > x else x - step, x))


def spacing32(x):
    """np.spacing in single precision: the distance to the next number away from 0, with the sign of x."""
    if x != x or abs(x) == np.inf:
        return np.float32(np.nan)
    if x == 0:
        return np.float32(2.0 ** -149)
    return np.float32(np.float64(next_after32(x, math.copysign(np.inf, x))) - np.float64(x))


def spacing(x):
    """np.spacing: the distance to the next number away from 0, with the sign of x."""
    if x != x or abs(x) == np.inf:
        return np.nan
    if x == 0:
        return 5e-324
    return next_after(x, math.copysign(np.inf, x)) - x


def ieee_remainder(a, b):
    if b == 0 or abs(a) == np.inf:
        raise ValueError("math domain error")
    if abs(b) == np.inf:
        return a
    rest = math.copysign(np.fmod(abs(a), 2 * abs(b)), 1.0)     # exact; it is nearest to 0, 1 or 2 times b
    b = abs(b)
    if 2 * rest > b:
        rest -= b
        if 2 * rest >= b:
            rest -= b
    return math.copysign(1.0, a) * rest


def whole_factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 20:
        raise Unsaid                # beyond 64 bits
    total = 1
    for k in range(2, n + 1):
        total *= k
    return total


def whole_isqrt(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = min(int(math.sqrt(n)), 3037000499)       # the largest integer whose square is below 2**63
    while root * root > n:
        root -= 1
    while root < 3037000499 and (root + 1) * (root + 1) <= n:
        root += 1
    return root


def whole_comb(n, k):
    if n < 0 or k < 0:
        raise ValueError("comb() takes numbers from 0 on")
    if n > 60:
        raise Unsaid
    total = 1 if k <= n else 0
    for i in range(1, k + 1):
        total = total * (n - k + i) // i
    return total


def whole_perm(n, k):
    if n < 0 or k < 0:
        raise ValueError("perm() takes numbers from 0 on")
    if n > 20:
        raise Unsaid
    total = 1
    for i in range(k):
        total *= n - i
    return total


def round_decimal(x, digits):
    """Python's round(x, digits) of a float: the nearest decimal number to the exact x, ties to even.

    x * 10**digits is computed exactly as a sum of two numbers.  Source: T. J. Dekker, A floating-point technique for
    extending the available precision, Numerische Mathematik 18 (1971), section 5 (the product of two numbers).
    """
    if not abs(x) < np.inf:
        return x
    if abs(digits) > 22 or digits < 0 and abs(x) >= 9007199254740992.0:     # 2**53: sums are not exact from there on
        raise Unsaid                # 10**23 is not exact
    if digits < 0:
        unit = 10.0 ** -digits
        rest = np.fmod(x, unit)
        whole_part = (x - rest) / unit
        more = whole_part % 2.0 if 2 * abs(rest) == unit else 2 * abs(rest) > unit
        return math.copysign((abs(whole_part) + more) * unit, x)
    unit = 10.0 ** digits
    high = x * unit
    if not abs(high) < 9007199254740992.0:          # 2**53: no decimals are left
        return x
    a, b = 134217729.0 * x, 134217729.0 * unit      # 2**27 + 1
    x_high, unit_high = a - (a - x), b - (b - unit)
    x_low, unit_low = x - x_high, unit - unit_high
    low = ((x_high * unit_high - high) + x_high * unit_low + x_low * unit_high) + x_low * unit_low
    whole_part = np.rint(high)                      # a tie to the even one
    part = high - whole_part
    if abs(part) == 0.5 and low != 0.0:             # not a tie: the exact number is on one side
        whole_part = high + math.copysign(0.5, low)
    elif part == 0.0 and abs(low) == 0.5:
        whole_part = high + math.copysign(high % 2.0, low)
    return math.copysign(whole_part / unit, x)


def whole_reciprocal(x):
    """1 / x truncated, as NumPy's np.reciprocal of integers."""
    return x if x == 1 or x == -1 else x - x


def shifted_left(x, by, bits):
    """x << by as in NumPy: a shift by all bits of a number, or more, gives 0."""
    return x - x if by >= bits or by < 0 else x << by          # x * 0 of uint64 is a float


def shifted_right(x, by, bits):
    """x >> by as in NumPy: a shift by all bits of a negative number, or more, gives -1."""
    if by >= bits or by < 0:
        return ~(x - x) if x < 0 else x - x
    return x >> by


def order_of(a, b):
    """-1, 0 or 1: how an unsigned integer compares with a signed one."""
    if b < 0:
        return 1
    c = np.uint64(b)
    return 1 if a > c else -1 if a < c else 0


def whole_round(x, digits):
    """Python's round of an integer to tens, hundreds, ..., ties to the even multiple."""
    if digits >= 0:
        return x
    if digits < -18:
        raise Unsaid
    unit = 1
    for _ in range(-digits):
        unit *= 10
    low = x // unit
    rest = x - low * unit
    return (low + (2 * rest > unit or 2 * rest == unit and low % 2 == 1)) * unit
