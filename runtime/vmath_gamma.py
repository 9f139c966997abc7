# SPDX-License-Identifier: Apache-2.0
"""log gamma, its derivative and the normal distribution, in the manner of vmath.py.

Sources: fdlibm, Sun Microsystems, 1993 (lgamma: its intervals and polynomials); J. Maddock and others, Boost.Math (the
rational approximation of digamma between 1 and 2); M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 1964,
6.1.17, 6.3.5, 6.3.7 and 6.3.18 (reflection, recurrence, the series for large arguments).

The error is at most 4 units in the last place for x > 0.  For x < 0 both gamma functions are a difference of two
numbers, with an error of a few units of the larger one, so that they are less accurate near their roots there, as
SciPy's C functions are.
"""
import numpy as np

from gradscribe.runtime.vmath import cos, erfc, log, sin

MINIMUM, LEAST, LEAST_REST = 1.46163214496836224576e+00, -1.21486290535849611461e-01, -3.63867699703950536541e-18


def near_two(y):
    """lgamma(2 - y) + y / 2."""
    z = y * y
    p = 2.52144565451257326939e-05 * z + 2.20862790713908385557e-04
    p = p * z + 1.19270763183362067845e-03
    p = p * z + 7.38555086081402883957e-03
    p = p * z + 6.73523010531292681824e-02
    p = p * z + 7.72156649015328655494e-02
    q = 4.48640949618915160150e-05 * z + 1.08011567247583939954e-04
    q = q * z + 5.10069792153511336608e-04
    q = q * z + 2.89051383673415629091e-03
    q = q * z + 2.05808084325167332806e-02
    q = q * z + 3.22467033424113591611e-01
    return y * p + z * q


def near_minimum(y):
    """lgamma(MINIMUM + y)."""
    z = y * y
    w = z * y
    p = 3.15632070903625950361e-04 * w - 1.40346469989232843813e-03
    p = p * w + 6.10053870246291332635e-03
    p = p * w - 3.27885410759859649565e-02
    p = p * w + 4.83836122723810047042e-01
    q = -3.12754168375120860518e-04 * w + 8.81081882437654011382e-04
    q = q * w - 3.68452016781138256760e-03
    q = q * w + 1.79706750811820387126e-02
    q = q * w - 1.47587722994593911752e-01
    r = 3.35529192635519073543e-04 * w - 5.38595305356740546715e-04
    r = r * w + 2.25964780900612472250e-03
    r = r * w - 1.03142241298341437450e-02
    r = r * w + 6.46249402391333854778e-02
    return LEAST + (z * p - (LEAST_REST - w * (q + y * r)))


def near_one(y):
    """lgamma(1 + y)."""
    p = 1.33810918536787660377e-02 * y + 2.28963728064692451092e-01
    p = p * y + 9.77717527963372745603e-01
    p = p * y + 1.45492250137234768737e+00
    p = p * y + 6.32827064025093366517e-01
    p = p * y - 7.72156649015328655494e-02
    q = 3.21709242282423911810e-03 * y + 1.04222645593369134254e-01
    q = q * y + 7.69285150456672783825e-01
    q = q * y + 2.12848976379893395361e+00
    q = q * y + 2.45597793713041134822e+00
    return y * p / (q * y + 1.0) - 0.5 * y


def beyond_two(y):
    """lgamma(2 + y), for y from 0 to 1."""
    p = 3.19475326584100867617e-05 * y + 1.84028451407337715652e-03
    p = p * y + 2.66422703033638609560e-02
    p = p * y + 1.46350472652464452805e-01
    p = p * y + 3.25778796408930981787e-01
    p = p * y + 2.14982415960608852501e-01
    p = p * y - 7.72156649015328655494e-02
    q = 7.32668430744625636189e-06 * y + 7.77942496381893596434e-04
    q = q * y + 1.86459191715652901344e-02
    q = q * y + 1.71933865632803078993e-01
    q = q * y + 7.21935547567138069525e-01
    q = q * y + 1.39200533467621045958e+00
    return 0.5 * y + y * p / (q * y + 1.0)


def far_out(x, logarithm):
    """lgamma(x) for x >= 8, by Stirling's series."""
    z = 1.0 / x
    y = z * z
    w = -1.63092934096575273989e-03 * y + 8.36339918996282139126e-04
    w = w * y - 5.95187557450339963135e-04
    w = w * y + 7.93650558643019558500e-04
    w = w * y - 2.77777777728775536470e-03
    w = w * y + 8.33333333333329678849e-02
    w = w * z + 4.18938533204672725052e-01
    series = (x - 0.5) * (logarithm - 1.0) + w
    return x * (logarithm - 1.0) if x > 2.0 ** 58 else series


def gammaln(x):
    """log(abs(gamma(x)))."""
    a = abs(x)
    # up to 2: lgamma(a) = lgamma(a + 1) - log(a) below 0.9
    low = a < 0.9
    t = a + 1.0 if low else a
    near = near_two(2.0 - t) - 0.5 * (2.0 - t)
    one = near_one(a if low else a - 1.0)
    least = near_minimum(a - (MINIMUM - 1.0) if low else a - MINIMUM)
    first = one if t < 1.23164 else least if t < 1.73164 else near
    # from 2 to 8: the product of the recurrence
    c = min(max(a, 2.0), 8.0)
    y = c - np.floor(c)
    z = (y + 6.0) if c >= 7.0 else 1.0
    z = z * ((y + 5.0) if c >= 6.0 else 1.0)
    z = z * ((y + 4.0) if c >= 5.0 else 1.0)
    z = z * ((y + 3.0) if c >= 4.0 else 1.0)
    z = z * ((y + 2.0) if c >= 3.0 else 1.0)
    logarithm = log(a if a < 2.0 or a >= 8.0 else z)
    value = first - (logarithm if low else 0.0) if a < 2.0 else \
        beyond_two(y) + logarithm if a < 8.0 else far_out(a, logarithm)
    value = -logarithm if a < 2.0 ** -70 else value
    # below 0: the reflection
    part = a - np.floor(a)
    part = 1.0 - part if part > 0.5 else part
    mirrored = log(3.14159265358979323846 / (a * sin(3.14159265358979323846 * part))) - value
    mirrored = np.inf if part == 0.0 else mirrored
    mirrored = value if a < 2.0 ** -70 else mirrored
    value = mirrored if x < 0.0 else value
    return value + 0.0 if a < np.inf else x             # makes a zero positive


def gamma_ratio(t):
    """digamma(1 + t) for t from 0 to 1, from its root."""
    p = -0.0020713321167745952 * t - 0.045251321448739056
    p = p * t - 0.28919126444774784
    p = p * t - 0.65031853770896507
    p = p * t - 0.32555031186804491
    p = p * t + 0.25479851061131551
    q = -0.55789841321675513e-6 * t + 0.0021284987017821144
    q = q * t + 0.054151797245674225
    q = q * t + 0.43593529692665969
    q = q * t + 1.4606242909763515
    q = q * t + 2.0767117023730469
    g = ((t - 0.4616321446374059) - 3.309564688275257e-10) - 9.016312093258695918615e-20
    return g * 0.99558162689208984 + g * (p / (q * t + 1.0))


def psi(x):
    """The derivative of log(gamma(x))."""
    whole = np.floor(x)
    a = 1.0 - x if x < 0.0 else x
    # from 2 to 10 and below 1: the recurrence
    c = min(a, 10.0)
    y = c - np.floor(c)
    s = 1.0 / (y + 8.0) if c >= 9.0 else 0.0
    s = s + (1.0 / (y + 7.0) if c >= 8.0 else 0.0)
    s = s + (1.0 / (y + 6.0) if c >= 7.0 else 0.0)
    s = s + (1.0 / (y + 5.0) if c >= 6.0 else 0.0)
    s = s + (1.0 / (y + 4.0) if c >= 5.0 else 0.0)
    s = s + (1.0 / (y + 3.0) if c >= 4.0 else 0.0)
    s = s + (1.0 / (y + 2.0) if c >= 3.0 else 0.0)
    s = s + (1.0 / (y + 1.0) if c >= 2.0 else 0.0)
    s = s - (1.0 / c if c < 1.0 else 0.0)
    near = gamma_ratio(y) + s
    # above 10: the series
    d = max(a, 10.0)
    z = 1.0 / (d * d)
    p = 8.33333333333333333333e-02 * z - 2.10927960927960927961e-02
    p = p * z + 7.57575757575757575758e-03
    p = p * z - 4.16666666666666666667e-03
    p = p * z + 3.96825396825396825397e-03
    p = p * z - 8.33333333333333333333e-03
    p = p * z + 8.33333333333333333333e-02
    far = (log(d) - 0.5 / d) - p * z
    value = near if a < 10.0 else far
    # below 0: the reflection
    angle = 3.14159265358979323846 * (x - np.floor(x + 0.5))
    mirrored = value - 3.14159265358979323846 * cos(angle) / sin(angle)
    value = mirrored if x < 0.0 else value
    value = np.nan if x < 0.0 and whole == x else value
    return -1.0 / x if x == 0.0 else value if x == x else x


def ndtr(x):
    """The cumulative normal distribution.

    The error is at most 4 units in the last place for x >= -1; below, rounding x / sqrt(2) costs x * x units, as in
    SciPy.
    """
    return 0.5 * erfc(-0.7071067811865476 * x)
