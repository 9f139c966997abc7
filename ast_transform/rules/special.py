"""scipy.special, entry by entry, for programs that have imported it.  What has no closed form in a parameter says so.

The derivatives are written so that they are right to the last digits at both ends: a product of two tails, not one
minus a number near one; a neighbour in the family, not a quotient that is 0 / 0 somewhere.
"""
import math

import numpy as np
from scipy import special

from gradscribe.ast_transform.core.rule import constant, elementwise, static
from gradscribe.ast_transform.rules import special_axes  # noqa: F401  (the rest of the table)
from gradscribe.ast_transform.rules import special_samples as samples
from gradscribe.ast_transform.rules.elementwise import is_complex, is_number, log_of
from gradscribe.runtime.parameters import gammainc_in_a, zeta_in_x

ROOT_PI, ROOT_2 = math.sqrt(math.pi), math.sqrt(2)


# --- helpers that run while transforming -----------------------------------------------------------------------------

@static
def no_derivative(function, argument):
    raise ValueError(f"scipy.special.{function} has no derivative rule in {argument}, which has no closed form",
                     "Hold it fixed: gs.stop_gradient of it, or a number.")


@static
def refuse_complex(x, function):
    if is_complex(x):
        raise ValueError(f"scipy.special.{function} of complex numbers has no derivative rule",
                         "Take np.real, np.imag or np.abs first.")


@static
def refuse_exact(exact, function):
    if exact:
        raise ValueError(f"scipy.special.{function} with exact=True counts with whole numbers and has no derivative",
                         "Leave exact=True out.")


@static
def refuse_extension(extend):
    if extend != "zero":
        raise ValueError("scipy.special.factorial with extend='complex' has no derivative rule",
                         "Write scipy.special.gamma(n + 1).")


@static
def whole(d):
    """A number of terms, which must be known now."""
    if isinstance(d, bool) or not isinstance(d, int):
        raise ValueError("scipy.special.multigammaln needs a dimension that is known when transforming",
                         "Pass a literal, or an argument that is a plain number.")
    return d


@static
def is_unsigned(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind == "u"


@static
def log_beta_of(a, b):
    return float(special.betaln(a, b))


@static
def root(number):
    return math.sqrt(number)


# --- helpers that are spliced in -------------------------------------------------------------------------------------

def below(v):
    """The order before v."""
    if is_unsigned(v):              # 0 - 1 would be the largest of them
        return v - 1.0
    return v - 1


def inside(y, n):
    """n + 1, or 1 where the result is 0 since n is out of the domain: digamma has poles there."""
    return np.where(y == 0, 0, n) + 1


def factor(x, z):
    """z, or 1 where x is 0 and takes the quotient by z to 0."""
    return np.where(x == 0, 1, z)


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


# --- the error function and its kin ----------------------------------------------------------------------------------

@elementwise(special.erf, samples=samples.analytic, special=[(1e3, 0.0)])
class erf:
    def partial_x(x):
        return 2 / ROOT_PI * np.exp(-x * x)


@elementwise(special.erfc, samples=samples.analytic, special=[(1e3, 0.0)])
class erfc:
    def partial_x(x):
        return -2 / ROOT_PI * np.exp(-x * x)


@elementwise(special.erfcx, samples=samples.around_zero, special=[(1e8, -1e-16 / ROOT_PI)])
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


# --- the gamma function and its kin ----------------------------------------------------------------------------------

@elementwise(special.gamma, samples=samples.analytic_arguments)
class gamma:
    def partial_x(y, x):
        return y * special.digamma(x)


@elementwise(special.gammaln, samples=samples.arguments)
class gammaln:
    def partial_x(x):
        return special.digamma(x)


@elementwise(special.loggamma, samples=samples.analytic_positives)
class loggamma:
    def partial_x(x):
        return special.digamma(x)


constant(special.gammasgn, "x", samples=samples.arguments, elementwise=True)(type("gammasgn", (), {}))


@elementwise(special.digamma, samples=samples.arguments)
class digamma:
    def partial_x(x):               # polygamma(1, x), which makes float64 of float32
        refuse_complex(x, "digamma")
        return special.zeta(2, x)


@elementwise(special.polygamma, "n", "x", samples=samples.orders_and_positives)
class polygamma:
    def partial_n():
        return no_derivative("polygamma", "the order n")

    def partial_x(n, x):
        return special.polygamma(n + 1, x)


@elementwise(special.multigammaln, "a", samples=samples.dimensions, typical=1e3)
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


@elementwise(special.factorial, "n", samples=samples.factorials)
class factorial:
    def primal(n, exact=False, extend="zero"):
        return special.factorial(n, exact=exact, extend=extend)

    def partial_n(y, n, exact=False, extend="zero"):
        refuse_exact(exact, "factorial")
        refuse_extension(extend)
        return y * special.digamma(inside(y, n))


@elementwise(special.comb, "N", "k", samples=samples.choices)
class comb:
    def primal(N, k, *, exact=False, repetition=False):
        return special.comb(N, k, exact=exact, repetition=repetition)

    def partial_N(y, N, k, exact=False, repetition=False):
        refuse_exact(exact, "comb")
        if repetition:
            return y * (special.digamma(inside(y, N + k - 1)) - special.digamma(inside(y, N - 1)))
        return y * (special.digamma(inside(y, N)) - special.digamma(inside(y, N - k)))

    def partial_k(y, N, k, exact=False, repetition=False):
        refuse_exact(exact, "comb")
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


@elementwise(gammainc_in_a)
class gammainc_in_a_:
    def partial_a():
        return no_derivative("gammainc", "the parameter a twice")

    def partial_x(a, x):
        return density_of_gamma(a, x) * (np.log(x) - special.digamma(a))


def density_of_beta(a, b, x):
    return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - log_beta(a, b))


def log_beta(a, b):
    if is_number(a) and is_number(b):
        return log_beta_of(a, b)
    return special.betaln(a, b)


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


@elementwise(special.zeta, "x", "q", samples=samples.zetas)
class zeta:
    def primal(x, q=None):
        return special.zeta(x, q)

    def partial_x(x, q=None):
        refuse_complex(x, "zeta")
        if q is None:
            return zeta_in_x(x, 1)
        return zeta_in_x(x, q)

    def partial_q(x, q):
        return -x * special.zeta(x + 1, q)


@elementwise(zeta_in_x)
class zeta_in_x_:
    def partial_x():
        return no_derivative("zeta", "the exponent x twice")

    def partial_q(x, q):
        return -special.zeta(x + 1, q) - x * zeta_in_x(x + 1, q)


# --- integrals of exponentials ---------------------------------------------------------------------------------------

@elementwise(special.exp1, samples=samples.analytic_positives, special=[(0.0, -np.inf)])
class exp1:
    def partial_x(x):
        return -np.exp(-x) / x


@elementwise(special.expi, samples=samples.analytic_numbers)
class expi:
    def partial_x(x):
        return np.exp(x) / x


@elementwise(special.expn, "n", "x", samples=samples.exponents)
class expn:
    def partial_n():
        return no_derivative("expn", "the order n")

    def partial_x(y, n, x):
        if is_number(n):
            if n >= 1:
                return -special.expn(n - 1, x)
            return -(np.exp(-x) + y) / x
        return -np.where(n == 0, (np.exp(-x) + y) / x, special.expn(np.maximum(n, 1) - 1, x))


@elementwise(special.spence, samples=samples.analytic_positives, special=[(1.0, -1.0), (0.0, -np.inf)])
class spence:
    def partial_x(x):               # log(x) / (1 - x), at 1 too
        near = np.abs(x - 1) < 0.01
        t = np.where(near, 1 - x, 0)
        series = -1 - t * (1 / 2 + t * (1 / 3 + t * (1 / 4 + t * (1 / 5 + t * (1 / 6 + t * (1 / 7 + t / 8))))))
        return np.where(near, series, np.log(x) / np.where(near, 1, 1 - x))


# --- Bessel functions: neighbours, which have no quotient at 0 --------------------------------------------------------

@elementwise(special.j0, samples=samples.reals)
class j0:
    def partial_x(x):
        return -special.j1(x)


@elementwise(special.j1, samples=samples.reals, special=[(0.0, 0.5)])
class j1:
    def partial_x(x):
        return (special.j0(x) - special.jv(2, x)) / 2


@elementwise(special.jv, samples=samples.analytic_orders)
class jv:
    def partial_v():
        return no_derivative("jv", "the order v")

    def partial_x(v, x):
        return (special.jv(below(v), x) - special.jv(v + 1, x)) / 2


@elementwise(special.y0, samples=samples.positives)
class y0:
    def partial_x(x):
        return -special.y1(x)


@elementwise(special.y1, samples=samples.positives)
class y1:
    def partial_x(x):
        return (special.y0(x) - special.yv(2, x)) / 2


@elementwise(special.yn, samples=samples.whole_orders)
class yn:
    def partial_n():
        return no_derivative("yn", "the order n")

    def partial_x(n, x):
        return (special.yn(below(n), x) - special.yn(n + 1, x)) / 2


@elementwise(special.yv, samples=samples.analytic_orders)
class yv:
    def partial_v():
        return no_derivative("yv", "the order v")

    def partial_x(v, x):
        return (special.yv(below(v), x) - special.yv(v + 1, x)) / 2


@elementwise(special.i0, samples=samples.reals)
class i0:
    def partial_x(x):
        return special.i1(x)


@elementwise(special.i0e, samples=samples.reals, special=[(0.0, 0.0)])
class i0e:
    def partial_x(y, x):
        return special.i1e(x) - np.sign(x) * y


@elementwise(special.i1, samples=samples.reals, special=[(0.0, 0.5)])
class i1:
    def partial_x(x):
        return (special.i0(x) + special.iv(2, x)) / 2


@elementwise(special.i1e, samples=samples.reals, special=[(0.0, 0.5)])
class i1e:
    def partial_x(y, x):
        return (special.i0e(x) + special.ive(2, x)) / 2 - np.sign(x) * y


@elementwise(special.iv, samples=samples.analytic_orders)
class iv:
    def partial_v():
        return no_derivative("iv", "the order v")

    def partial_x(v, x):
        return (special.iv(below(v), x) + special.iv(v + 1, x)) / 2


@elementwise(special.ive, samples=samples.orders)
class ive:
    def partial_v():
        return no_derivative("ive", "the order v")

    def partial_x(y, v, x):
        refuse_complex(x, "ive")
        return (special.ive(below(v), x) + special.ive(v + 1, x)) / 2 - np.sign(x) * y


@elementwise(special.k0, samples=samples.positives)
class k0:
    def partial_x(x):
        return -special.k1(x)


@elementwise(special.k1, samples=samples.positives)
class k1:
    def partial_x(x):
        return -(special.k0(x) + special.kv(2, x)) / 2


@elementwise(special.kv, samples=samples.analytic_orders)
class kv:
    def partial_v():
        return no_derivative("kv", "the order v")

    def partial_x(v, x):
        return -(special.kv(below(v), x) + special.kv(v + 1, x)) / 2


# --- hypergeometric functions, spherical harmonics ---------------------------------------------------------------------

@elementwise(special.hyp1f1, samples=samples.confluent)
class hyp1f1:
    def partial_a():
        return no_derivative("hyp1f1", "the parameter a")

    def partial_b():
        return no_derivative("hyp1f1", "the parameter b")

    def partial_x(a, b, x):
        return a / b * special.hyp1f1(a + 1, b + 1, x)


@elementwise(special.hyp2f1, samples=samples.hypergeometric)
class hyp2f1:
    def partial_a():
        return no_derivative("hyp2f1", "the parameter a")

    def partial_b():
        return no_derivative("hyp2f1", "the parameter b")

    def partial_c():
        return no_derivative("hyp2f1", "the parameter c")

    def partial_x(a, b, c, x):
        return a * b / c * special.hyp2f1(a + 1, b + 1, c + 1, x)


@elementwise(special.sph_harm_y, "theta", "phi", samples=samples.harmonics)
class sph_harm_y:
    def primal(n, m, theta, phi):
        return special.sph_harm_y(n, m, theta, phi)

    def partial_theta(n, m, theta, phi):    # by the ladder operators, which have no pole where the axis is
        up = ladder(n, m) * np.exp(-1j * phi) * special.sph_harm_y(n, m + 1, theta, phi)
        down = ladder(n, -m) * np.exp(1j * phi) * special.sph_harm_y(n, m - 1, theta, phi)
        return (up - down) / 2

    def partial_phi(y, m):
        return 1j * m * y


def ladder(n, m):
    if is_number(n) and is_number(m):
        return root((n - m) * (n + m + 1))
    return np.sqrt((n - m) * (n + m + 1))
