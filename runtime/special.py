# SPDX-License-Identifier: Apache-2.0
"""Scalar functions of scipy.special for compiled code, where SciPy exports none or a short formula suffices.

Each is also plain Python.  Values of other functions that it needs are arguments.
"""
import math

# --- logistic functions and entropies ---------------------------------------------------------------------------------

def expit(x):
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def log_expit(x):
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def logit(x):
    if x != x or x < 0 or x > 1:
        return math.nan
    if x == 0:
        return -math.inf
    if x == 1:
        return math.inf
    t = 2 * (x - 0.5)               # near 1/2 the quotient is inaccurate
    return math.log1p(t) - math.log1p(-t) if 0.3 < x < 0.65 else math.log(x / (1 - x))


def entr(x):
    return x if x != x else -math.inf if x < 0 else 0.0 if x == 0 else -x * math.log(x)


def rel_entr(x, t):
    if x != x or t != t:
        return math.nan
    if x == 0 and t >= 0:
        return 0.0
    return x * math.log(x / t) if x > 0 and t > 0 else math.inf


def kl_div(x, t):
    if x != x or t != t:
        return math.nan
    if x == 0 and t >= 0:
        return t
    return x * math.log(x / t) - x + t if x > 0 and t > 0 else math.inf


# --- functions related to the gamma function --------------------------------------------------------------------------

def hurwitz(s, q) -> float:
    """The Hurwitz zeta function, by the Euler-Maclaurin formula."""
    if s != s or q != q or s < 1:
        return math.nan
    if s == 1 or q <= 0 and q == math.floor(q):
        return math.inf
    if q <= 0 and s != math.floor(s):
        return math.nan
    total, steps = 0.0, 16
    if q < 0:
        steps += int(-q) + 1
    if q > 1e8:
        return (1 / (s - 1) + 1 / (2 * q)) * q ** (1 - s)
    for k in range(steps):
        total += (q + k) ** -s
    w = q + steps
    total += w ** (1 - s) / (s - 1) + 0.5 * w ** -s
    rising, scale = s, w ** (-s - 1)
    for k, number in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
                                1 / 74724249600, -3617 / 10670622842880000)):
        total += number * rising * scale
        rising *= (s + 2 * k + 1) * (s + 2 * k + 2)
        scale /= w * w
    return total


def zeta_slope(s, q) -> float:
    """The derivative of hurwitz(s, q) in s."""
    if s <= -1:
        return math.nan
    total, w = 0.0, q + 16
    for k in range(16):
        total -= math.log(q + k) * (q + k) ** -s
    log, power = math.log(w), w ** -s
    total -= w * power * (log / (s - 1) + 1 / (s - 1) ** 2) + 0.5 * log * power
    rising, slope, scale = s, 1.0, power / w
    for k, number in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
                                1 / 74724249600, -3617 / 10670622842880000)):
        total += number * scale * (slope - rising * log)
        slope = slope * (s + 2 * k + 1) + rising
        rising *= s + 2 * k + 1
        slope = slope * (s + 2 * k + 2) + rising
        rising *= s + 2 * k + 2
        scale /= w * w
    return total


def polygamma(n, x, psi):
    """psi: digamma of x."""
    if n == 0:
        return psi
    size = math.gamma(n + 1.0) * hurwitz(n + 1.0, x)
    return size if n % 2 == 1 else -size


def multigammaln(a, d):
    if a <= 0.5 * (d - 1):
        raise ValueError("condition a > 0.5 * (d-1) not met")
    total = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        total += math.lgamma(a - 0.5 * j)
    return total


def factorial(n, gamma):
    """gamma: of n + 1."""
    return gamma if n >= 0 or n != n else 0.0


def comb(n, k, binomial):
    return binomial if k <= n and n >= 0 and k >= 0 else 0.0


def gammainc_slope(a, x, psi):
    """The derivative of the regularised incomplete gamma function in a, by its series or the continued fraction of its
    complement.  psi: digamma of a.
    """
    if not (a > 0 and x >= 0):
        return math.nan
    if x == 0 or x == math.inf:
        return 0.0
    log, n = math.log(x), 1
    if x <= a + 1:
        term, slope, total = math.exp(a * log - x - math.lgamma(a + 1)), log - psi - 1 / a, 0.0
        while n < 100000 and abs(term * slope) > 1e-17 * abs(total):
            total += term * slope
            slope -= 1 / (a + n)
            term *= x / (a + n)
            n += 1
        return total
    b = x + 1 - a                   # convergents p / q with their derivatives, q held at 1
    p, dp, dq = 1 / b, 0.0, -1 / b
    p_1, q_1, dp_1, dq_1 = 0.0, 1 / b, 0.0, 0.0
    f, df, going = p, dp - p * dq, True
    while n < 100000 and going:
        b += 2
        c = -n * (n - a)
        p_2, q_2 = b * p + c * p_1, b + c * q_1
        dp_2, dq_2 = b * dp - p + c * dp_1 + n * p_1, b * dq - 1 + c * dq_1 + n * q_1
        p_1, q_1, dp_1, dq_1 = p / q_2, 1 / q_2, dp / q_2, dq / q_2
        p, dp, dq = p_2 / q_2, dp_2 / q_2, dq_2 / q_2
        last, slope = f, df
        f, df, n = p, dp - p * dq, n + 1
        going = abs(f - last) > 1e-15 * abs(f) or abs(df - slope) > 1e-15 * abs(df)
    return -math.exp(a * log - x - math.lgamma(a)) * (df + f * (log - psi))


# --- spherical harmonics ----------------------------------------------------------------------------------------------

def spherical_harmonic(n, m, theta, phi):
    """The spherical harmonic, by the recurrence of normalised Legendre functions upwards in the degree."""
    k = abs(m)
    if n < 0 or k > n:
        return complex(0.0, 0.0)
    value = math.sqrt(1 / (4 * math.pi))
    for j in range(k):
        value *= -math.sqrt((2 * j + 3) / (2 * j + 2)) * math.sin(theta)
    below, cosine = 0.0, math.cos(theta)
    for j in range(k, n):
        up = math.sqrt((2 * j + 1) * (2 * j + 3) / ((j + 1 - k) * (j + 1 + k)))
        down = math.sqrt((2 * j + 3) * (j - k) * (j + k) / ((2 * j - 1) * (j + 1 - k) * (j + 1 + k))) if j > k else 0.0
        below, value = value, up * cosine * value - down * below
    if m < 0 and k % 2 == 1:
        value = -value
    return complex(value * math.cos(m * phi), value * math.sin(m * phi))
