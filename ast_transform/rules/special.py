# SPDX-License-Identifier: Apache-2.0
"""Elementwise rules for scipy.special, loaded if the program has imported it.

A derivative without a closed form is refused.  Derivatives are accurate at both ends of the domain: they use a product
of two tails, not one minus a number near one, and a neighbour in the family, not a quotient that may be 0 / 0.
"""
import math

import numpy as np
from scipy import special

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, elementwise, static
from gradscribe.ast_transform.rules import bessel, special_axes  # noqa: F401  (the rest of the table)
from gradscribe.ast_transform.rules import special_samples as samples
from gradscribe.ast_transform.rules.elementwise import is_complex, is_number, log_of
from gradscribe.ast_transform.rules.special_refusals import no_derivative, only_real
from gradscribe.ast_transform.source.diagnose import KNOWN
from gradscribe.runtime.parameters import gammainc_in_a, zeta_in_x

ROOT_PI, ROOT_2 = math.sqrt(math.pi), math.sqrt(2)


# --- helpers that run while transforming -----------------------------------------------------------------------------

@static
def whole(d):
    """A number of terms, which must be known when transforming."""
    if isinstance(d, bool) or not isinstance(d, int):
        raise ValueError("scipy.special.multigammaln needs a dimension that is known when transforming", KNOWN)
    return d


@static
def beta_of(a, b):
    return float(special.beta(a, b))


# --- helpers that are spliced in -------------------------------------------------------------------------------------

def inside(y, n):
    """n + 1, or 1 where the result is 0 because n is outside the domain, since digamma has poles there."""
    return np.where(y == 0, 0, n) + 1


def factor(x, z):
    """z, or 1 where z and x are 0: x / z is 0 there, and has the derivative 1 / z where only x is 0."""
    return np.where((x == 0) & (z == 0), 1, z)


def logarithm(x):
    if is_number(x):                # np.log(2.0) would be a float64 and make float32 one
        if x > 0:
            return log_of(x)
    return np.log(x)


def logarithm1p(x):
    if is_number(x):
        if x > -1:
            return log_of(1 + x)
    return np.log1p(x)


# --- the error function and related functions ------------------------------------------------------------------------

@elementwise(special.erf, samples=samples.analytic, special=[(1e3, 0.0)])
class erf:
    def partial_x(x):
        return 2 / ROOT_PI * np.exp(-x * x)


@elementwise(special.erfc, samples=samples.analytic, special=[(1e3, 0.0)])
class erfc:
    def partial_x(x):
        return -2 / ROOT_PI * np.exp(-x * x)


@elementwise(special.erfcx, samples=samples.around_zero, special=[
    (1e8, -1e-16 / ROOT_PI), (50.5, -0.00022109913330662804), (51.0, -0.00021678759208511816)])
class erfcx:
    def partial_x(y, x):            # far out the difference loses its digits; the next term of the series is 1e-14
        if is_complex(x):
            return 2 * x * y - 2 / ROOT_PI
        far = x > 50
        t = 1 / np.where(far, x * x, 1)
        series = t * (-1 + t * (1.5 + t * (-3.75 + t * (13.125 - t * 59.0625)))) / ROOT_PI
        return np.where(far, series, 2 * x * y - 2 / ROOT_PI)


@elementwise(special.erfinv, samples=samples.unit, special=[(1.0, np.inf), (-1.0, np.inf)])
class erfinv:
    def partial_x(y):
        return ROOT_PI / 2 * np.exp(y * y)


@elementwise(special.erfcinv, samples=samples.up_to_two, special=[(0.0, -np.inf)])
class erfcinv:
    def partial_x(y):
        return -ROOT_PI / 2 * np.exp(y * y)


@elementwise(special.dawsn, samples=samples.analytic)
class dawsn:
    def partial_x(y, x):
        return 1 - 2 * x * y


@elementwise(special.wofz, samples=samples.complex_numbers)
class wofz:
    def partial_x(y, x):
        return 2j / ROOT_PI - 2 * x * y


@elementwise(special.ndtr, samples=samples.analytic, special=[(1e3, 0.0), (0.0, 1 / math.sqrt(2 * math.pi))])
class ndtr:
    def partial_x(x):
        return 1 / (ROOT_2 * ROOT_PI) * np.exp(-x * x / 2)


@elementwise(special.log_ndtr, samples=samples.around_zero, special=[(1e3, 0.0), (-1e8, 1e8)])
class log_ndtr:
    def partial_x(x):               # the density over the distribution function; both underflow on the left
        return ROOT_2 / ROOT_PI / special.erfcx(x / -ROOT_2)


@elementwise(special.ndtri, samples=samples.probabilities, special=[(0.0, np.inf), (1.0, np.inf)])
class ndtri:
    def partial_x(y):
        return ROOT_2 * ROOT_PI * np.exp(y * y / 2)


@elementwise(special.owens_t, samples=samples.pairs)
class owens_t:
    def partial_h(h, a):
        return -1 / (2 * ROOT_2 * ROOT_PI) * np.exp(-h * h / 2) * special.erf(a * h / ROOT_2)

    def partial_a(h, a):
        return np.exp(-h * h * (1 + a * a) / 2) / (2 * np.pi * (1 + a * a))


# --- logistic functions and entropies --------------------------------------------------------------------------------

@elementwise(special.expit, samples=samples.reals, special=[(-1e3, 0.0), (40.0, math.exp(-40)), (1e3, 0.0)])
class expit:
    def partial_x(y, x):
        return y * special.expit(-x)


@elementwise(special.log_expit, samples=samples.reals, special=[(-1e3, 1.0), (1e3, 0.0)])
class log_expit:
    def partial_x(x):
        return special.expit(-x)


@elementwise(special.logit, samples=samples.probabilities, special=[(0.0, np.inf), (1.0, np.inf)])
class logit:
    def partial_x(x):
        return 1 / (x * (1 - x))


@elementwise(special.entr, samples=samples.positives, special=[(0.0, np.inf)])
class entr:
    def partial_x(x):
        return -1 - np.log(x)


@elementwise(special.xlogy, samples=samples.analytic_rates)
class xlogy:
    def partial_x(t):
        return np.log(t)

    def partial_t(x, t):
        return x / factor(x, t)


@elementwise(special.xlog1py, samples=samples.analytic_rates)
class xlog1py:
    def partial_x(t):
        return np.log1p(t)

    def partial_t(x, t):
        return x / factor(x, 1 + t)


@elementwise(special.rel_entr, samples=samples.positive_pairs)
class rel_entr:
    def partial_x(x, t):
        return np.log(x / t) + 1

    def partial_t(x, t):
        return -x / factor(x, t)


@elementwise(special.kl_div, samples=samples.positive_pairs)
class kl_div:
    def partial_x(x, t):
        return np.log(x / t)

    def partial_t(x, t):
        return 1 - x / factor(x, t)


@elementwise(special.boxcox, samples=samples.power_transforms)
class boxcox:
    def partial_x(x, lmbda):
        return x ** (lmbda - 1)

    def partial_lmbda(x, lmbda):    # hyp1f1(2, 3, t) / 2 is the derivative of (exp(t) - 1) / t, at 0 too
        return logarithm(x) ** 2 * special.hyp1f1(2, 3, lmbda * logarithm(x)) / 2


@elementwise(special.boxcox1p, samples=samples.power_transforms)
class boxcox1p:
    def partial_x(x, lmbda):
        return (1 + x) ** (lmbda - 1)

    def partial_lmbda(x, lmbda):
        return logarithm1p(x) ** 2 * special.hyp1f1(2, 3, lmbda * logarithm1p(x)) / 2


# --- the gamma function and related functions ------------------------------------------------------------------------

@elementwise(special.gamma, samples=samples.analytic_arguments)
class gamma:
    def partial_x(y, x):
        return y * special.digamma(x)


@elementwise(special.gammaln, samples=samples.arguments)
class gammaln:
    def partial_x(x):
        return special.digamma(x)


@elementwise(math.gamma, samples=samples.numbers_between_poles, memory=FRESH, numba=True)
class math_gamma:
    def partial_x(y, x):
        return y * special.digamma(x)


@elementwise(math.lgamma, samples=samples.numbers_between_poles, memory=FRESH, numba=True)
class math_lgamma:
    def partial_x(x):
        return special.digamma(x)


@elementwise(special.loggamma, samples=samples.analytic_positives)
class loggamma:
    def partial_x(x):
        return special.digamma(x)


@elementwise(special.rgamma, samples=samples.analytic_arguments, special=[(0.0, 1.0), (-1.0, -1.0), (-3.0, -6.0)])
class rgamma:
    def partial_x(y, x):            # below 1/2 by the reflection formula, which knows no poles (DLMF 5.5.3)
        if is_complex(x):
            return -y * special.digamma(x)
        low = x < 0.5
        z = np.where(low, 1 - x, x)
        turned = np.pi * np.where(low, x, 0)
        below = special.gamma(np.where(low, z, 1)) * (np.cos(turned) - special.digamma(z) * np.sin(turned) / np.pi)
        return np.where(low, below, -y * special.digamma(z))


constant(special.gammasgn, "x", samples=samples.arguments, elementwise=True)(type("gammasgn", (), {}))


@elementwise(special.digamma, samples=samples.arguments)
class digamma:
    def partial_x(x):               # polygamma(1, x), which makes float64 of float32
        only_real(x, "digamma")
        return special.zeta(2, x)


@elementwise(special.polygamma, "n", "x", samples=samples.orders_and_positives, memory=FRESH, cell=True)
class polygamma:
    def partial_n():
        return no_derivative("polygamma", "the order n")

    def partial_x(n, x):
        return special.polygamma(n + 1, x)


@elementwise(special.multigammaln, "a", samples=samples.dimensions, typical=1000, memory=FRESH, raises=True)
class multigammaln:
    def primal(a, d):
        return special.multigammaln(a, d)

    def partial_a(a, d):
        return digammas(a, whole(d))


def digammas(a, d):
    if d == 1:
        return special.digamma(a)
    return digammas(a, d - 1) + special.digamma(a - (d - 1) / 2)


@elementwise(special.beta, samples=samples.positive_pairs)
class beta:
    def partial_a(y, a, b):
        return y * (special.digamma(a) - special.digamma(a + b))

    def partial_b(y, a, b):
        return y * (special.digamma(b) - special.digamma(a + b))


@elementwise(special.betaln, samples=samples.positive_pairs)
class betaln:
    def partial_a(a, b):
        return special.digamma(a) - special.digamma(a + b)

    def partial_b(a, b):
        return special.digamma(b) - special.digamma(a + b)


@elementwise(special.poch, samples=samples.positive_pairs)
class poch:
    def partial_z(y, z, m):
        return y * (special.digamma(z + m) - special.digamma(z))

    def partial_m(y, z, m):
        return y * special.digamma(z + m)


@elementwise(special.factorial, "n", samples=samples.factorials, memory=FRESH, cell=True)
class factorial:
    def primal(n, exact=False, extend="zero"):
        return special.factorial(n, exact=exact, extend=extend)

    def partial_n(y, n):
        return y * special.digamma(inside(y, n))


@elementwise(special.comb, "N", "k", samples=samples.choices, memory=FRESH)
class comb:
    def primal(N, k, *, exact=False, repetition=False):
        return special.comb(N, k, exact=exact, repetition=repetition)

    def partial_N(y, N, k, repetition=False):
        if repetition:
            return y * (special.digamma(inside(y, N + k - 1)) - special.digamma(inside(y, N - 1)))
        return y * (special.digamma(inside(y, N)) - special.digamma(inside(y, N - k)))

    def partial_k(y, N, k, repetition=False):
        if repetition:
            return y * (special.digamma(inside(y, N + k - 1)) - special.digamma(inside(y, k)))
        return y * (special.digamma(inside(y, N - k)) - special.digamma(inside(y, k)))


def density_of_gamma(a, x):
    return np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))


@elementwise(special.gammainc, samples=samples.positive_pairs)
class gammainc:
    def partial_a(a, x):
        return gammainc_in_a(a, x)

    def partial_x(a, x):
        return density_of_gamma(a, x)


@elementwise(special.gammaincc, samples=samples.positive_pairs)
class gammaincc:
    def partial_a(a, x):
        return -gammainc_in_a(a, x)

    def partial_x(a, x):
        return -density_of_gamma(a, x)


@elementwise(gammainc_in_a, memory=FRESH)
class gammainc_in_a_:
    def partial_a():
        return no_derivative("gammainc", "the parameter a twice")

    def partial_x(a, x):
        return density_of_gamma(a, x) * (np.log(x) - special.digamma(a))


def density_of_beta(a, b, x):
    if is_number(a) and is_number(b):       # scipy.special.xlogy of a number and a float32 is a float64
        if beta_of(a, b) > 1e-290:
            return x ** (a - 1) * (1 - x) ** (b - 1) / beta_of(a, b)
    return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))


@elementwise(special.betainc, samples=samples.beta_quantiles)
class betainc:
    def partial_a():
        return no_derivative("betainc", "the parameter a")

    def partial_b():
        return no_derivative("betainc", "the parameter b")

    def partial_x(a, b, x):
        return density_of_beta(a, b, x)


@elementwise(special.betaincc, samples=samples.beta_quantiles)
class betaincc:
    def partial_a():
        return no_derivative("betaincc", "the parameter a")

    def partial_b():
        return no_derivative("betaincc", "the parameter b")

    def partial_x(a, b, x):
        return -density_of_beta(a, b, x)


@elementwise(special.stdtr, samples=samples.degrees_and_reals)
class stdtr:
    def partial_df():
        return no_derivative("stdtr", "the degrees of freedom df")

    def partial_t(df, t):
        return special.poch(df / 2, 0.5) / np.sqrt(df * np.pi) * (1 + t * t / df) ** (-(df + 1) / 2)


@elementwise(special.zeta, "x", "q", samples=samples.zetas, memory=FRESH)
class zeta:
    def primal(x, q=None):
        return special.zeta(x, q)

    def partial_x(x, q=None):
        only_real(x, "zeta")
        if q is None:
            return zeta_in_x(x, 1)
        return zeta_in_x(x, q)

    def partial_q(x, q):
        return -x * special.zeta(x + 1, q)


@elementwise(zeta_in_x, memory=FRESH)
class zeta_in_x_:
    def partial_x():
        return no_derivative("zeta", "the exponent x twice")

    def partial_q(x, q):
        return -special.zeta(x + 1, q) - x * zeta_in_x(x + 1, q)
