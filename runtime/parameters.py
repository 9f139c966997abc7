# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions of scipy.special in parameters, without a closed form, for arrays."""
import numpy as np


def gammainc_in_a(a, x):
    """The derivative of scipy.special.gammainc(a, x) in a, by its series or the continued fraction of gammaincc."""
    from scipy import special

    y = special.gammainc(a, x)
    a, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(x, float))
    with np.errstate(all="ignore"):
        left = x <= a + 1
        s = np.where(left, x, a)                # x where the series is used, elsewhere any value
        term = np.exp(a * np.log(s) - s - special.gammaln(a + 1))
        slope, total, n = np.log(s) - special.digamma(a + 1), np.zeros_like(s), 1
        while n < 100000 and np.any(np.abs(term * slope) > 1e-17 * np.abs(total)):
            total = total + term * slope
            slope, term, n = slope - 1 / (a + n), term * s / (a + n), n + 1
        s = np.where(left, a + 2, x)            # convergents p / q with their derivatives, q held at 1
        b = s + 1 - a
        p, q, dp, dq, before = 1 / b, 1.0, 0.0, -1 / b, (0.0, 1 / b, 0.0, 0.0)
        f, df, n, going = p, dp - p * dq, 1, True
        while n < 100000 and np.any(going):
            b, c = b + 2, -n * (n - a)
            np_, nq = b * p + c * before[0], b * q + c * before[1]
            ndp = b * dp - p + c * before[2] + n * before[0]
            ndq = b * dq - q + c * before[3] + n * before[1]
            before = p / nq, q / nq, dp / nq, dq / nq
            p, q, dp, dq = np_ / nq, 1.0, ndp / nq, ndq / nq
            last, f, df, n = (f, df), p, dp - p * dq, n + 1
            going = going & ((np.abs(f - last[0]) > 1e-15 * np.abs(f)) | (np.abs(df - last[1]) > 1e-15 * np.abs(df)))
        scale = np.exp(a * np.log(s) - s - special.gammaln(a))
        tail = -scale * (df + f * (np.log(s) - special.digamma(a)))
        out = np.where((x == 0) | (x == np.inf), 0, np.where(left, total, tail))
        return np.where((a > 0) & (x >= 0), out, np.nan).astype(y.dtype)[()]


def zeta_in_x(x, q):
    """The derivative of scipy.special.zeta(x, q) in x, by the Euler-Maclaurin formula."""
    from scipy import special

    dtype = special.zeta(x, q).dtype
    x, q = np.broadcast_arrays(np.asarray(x, float), np.asarray(q, float))
    with np.errstate(all="ignore"):
        w, total = q + 16, np.zeros(x.shape)
        for k in range(16):
            total = total - np.log(q + k) * (q + k) ** -x
        log, power = np.log(w), w ** -x
        total = total - w * power * (log / (x - 1) + 1 / (x - 1) ** 2) - log * power / 2
        rising, slope, scale = x, np.ones_like(x), power / w
        for k, number in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
                                    1 / 74724249600, -3617 / 10670622842880000)):
            total = total + number * scale * (slope - rising * log)
            for i in (2 * k + 1, 2 * k + 2):
                rising, slope = rising * (x + i), slope * (x + i) + rising
            scale = scale / (w * w)
        return np.where(x > -1, total, np.nan).astype(dtype)[()]        # the formula is inaccurate for smaller x
