# SPDX-License-Identifier: Apache-2.0
"""Rules for scipy.stats, loaded if the program has imported it: densities and distribution functions.

A distribution is defined once, in standard form: valid parameters, support, and its functions on the support.  Its
methods, with location and scale, are built from these and inlined in place of their calls.  Results are float64, and
NaN where a parameter is invalid, as in SciPy.  The formulas are those of N. L. Johnson, S. Kotz and N. Balakrishnan,
Continuous Univariate Distributions (1994) and, with A. W. Kemp, Univariate Discrete Distributions (2005).
"""
import functools
import inspect
import math

import numpy as np
from scipy import special, stats

from gradscribe.ast_transform.core.kinds import Array, Length
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import distributions_samples as samples
from gradscribe.ast_transform.rules.elementwise import is_complex, is_number, log_of

LOG_2, LOG_PI = math.log(2), math.log(math.pi)
SHARES = samples.shares                 # of probability, for quantiles
NO_VARIANCE = 1e6 * float(np.finfo(float).eps)           # of the largest one: scipy.stats's bound


# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def is_short(x):
    dtype = np.dtype(getattr(x, "dtype", type(x)))
    return dtype.kind == "f" and dtype.itemsize < 8


@static
def is_known(test):
    return isinstance(test, (bool, np.bool_))


@static
def is_count(k):
    return np.dtype(getattr(k, "dtype", type(k))).kind in "iub"


@static
def of_real_numbers(z):
    if is_complex(z):
        raise ValueError("distributions of complex numbers have no derivative rule",
                         "Take np.real, np.imag or np.abs first.")


# --- helpers that are spliced in --------------------------------------------------------------------------------------

def double(x):
    """x in double precision, as in SciPy."""
    of_real_numbers(x)
    return x.astype(np.float64) if is_short(x) else numpys(x)


def numpys(x):
    """A Python number as a NumPy scalar, which has a dtype and raises no ZeroDivisionError."""
    return np.float64(x) if type(x) is float or type(x) is int else x


def less(x, loc):
    if is_number(loc):
        if loc == 0:
            return x
    return x - loc


def standard(x, loc, scale):
    z = numpys(less(x, loc))
    if is_number(scale):
        if scale == 1 and not is_count(z):
            return double(z)
    return double(z / scale)


def less_log(value, scale):
    """value - log(scale)"""
    if is_number(scale):
        if scale == 1:
            return value
        if scale > 0:
            return value - log_of(scale)
    return value - np.log(scale)


def chosen(test, value, other):
    """value where the test is true, else other; without axes a number, not an array."""
    if is_known(test) and test:
        return value
    result = np.where(test, value, other)
    return +result if result.ndim == 0 else result


def unless(test, other, value):
    result = np.where(test, other, value)
    return +result if result.ndim == 0 else result


def both(p, q):
    if is_known(p) and p:
        return q
    if is_known(q) and q:
        return p
    return p & q


def within(value, z, low, high, under, over):
    """The value of a distribution function, which is constant outside the support."""
    if high is not None:
        value = unless(z >= high, over, value)
    if low is not None:
        value = unless(z <= low, under, value)
    return value


def located(z, loc, scale):
    """The inverse of `standard`."""
    if is_number(scale):
        if scale == 1:
            return z if is_number(loc) and loc == 0 else z + loc
    return z * scale + loc


def of_probability(q, value):
    """A quantile; NaN where q is no probability."""
    if is_number(q):
        if 0 <= q <= 1:
            return value
    return unless((q < 0) | (q > 1), np.nan, value)


def log_of_one(p, q):
    """The logarithm of a probability p with the complement q, computed from the smaller one."""
    return chosen(p < 0.5, np.log(p), np.log1p(-q))


# --- methods of all distributions -------------------------------------------------------------------------------------

def methods_of(law, names):
    """The methods of a continuous distribution; `law` is its standard form, `names` are its parameters."""
    low, high = getattr(law, "low", None), getattr(law, "high", None)
    own_logcdf, own_logsf = getattr(law, "logcdf", None), getattr(law, "logsf", None)

    def parameters(args, words):
        given = {"loc": 0, "scale": 1, **dict(zip((*names, "loc", "scale"), args)), **words}
        return [given[name] for name in names], given["loc"], given["scale"]

    def logpdf(x, *args, **words):
        given, loc, scale = parameters(args, words)
        z = standard(x, loc, scale)
        value = law.logpdf(z, *given)
        if high is not None:
            value = unless(z > high, -np.inf, value)
        if low is not None:
            value = unless(z < low, -np.inf, value)
        return chosen(law.valid(*given), less_log(value, scale), np.nan)    # of a scale that is not positive: NaN

    def pdf(x, *args, **words):
        return np.exp(logpdf(x, *args, **words))

    def cdf(x, *args, **words):
        given, loc, scale = parameters(args, words)
        z = standard(x, loc, scale)
        return chosen(both(law.valid(*given), scale > 0), within(law.cdf(z, *given), z, low, high, 0.0, 1.0), np.nan)

    def sf(x, *args, **words):
        given, loc, scale = parameters(args, words)
        z = standard(x, loc, scale)
        return chosen(both(law.valid(*given), scale > 0), within(law.sf(z, *given), z, low, high, 1.0, 0.0), np.nan)

    def logcdf(x, *args, **words):
        given, loc, scale = parameters(args, words)
        z = standard(x, loc, scale)
        value = log_of_one(law.cdf(z, *given), law.sf(z, *given)) if own_logcdf is None else own_logcdf(z, *given)
        return chosen(both(law.valid(*given), scale > 0), within(value, z, low, high, -np.inf, 0.0), np.nan)

    def logsf(x, *args, **words):
        given, loc, scale = parameters(args, words)
        z = standard(x, loc, scale)
        value = log_of_one(law.sf(z, *given), law.cdf(z, *given)) if own_logsf is None else own_logsf(z, *given)
        return chosen(both(law.valid(*given), scale > 0), within(value, z, low, high, 0.0, -np.inf), np.nan)

    def ppf(q, *args, **words):
        given, loc, scale = parameters(args, words)
        value = of_probability(q, located(law.ppf(double(q), *given), loc, scale))
        return chosen(both(law.valid(*given), scale > 0), value, np.nan)

    def isf(q, *args, **words):
        given, loc, scale = parameters(args, words)
        value = of_probability(q, located(law.isf(double(q), *given), loc, scale))
        return chosen(both(law.valid(*given), scale > 0), value, np.nan)

    return logpdf, pdf, cdf, sf, logcdf, logsf, *((ppf, isf) if hasattr(law, "ppf") else ())


def counting_methods_of(law, names):
    """The same for a distribution on 0, 1, 2, ...: between integers the mass is 0, the other functions constant."""
    own_high = getattr(law, "high", None)

    def parameters(k, args, words):
        given = {"loc": 0, **dict(zip((*names, "loc"), args)), **words}
        return double(less(k, given["loc"])), [given[name] for name in names]

    def logpmf(k, *args, **words):
        k, given = parameters(k, args, words)
        whole = k if is_count(k) else np.floor(k)
        outside = k < 0
        if own_high is not None:
            outside = outside | (k > own_high(*given))
        if not is_count(k):
            outside = outside | (whole < k)
        return chosen(law.valid(*given), unless(outside, -np.inf, double(law.logpmf(whole, *given))), np.nan)

    def pmf(k, *args, **words):
        return np.exp(logpmf(k, *args, **words))

    def below(value, k, given, under, over):
        if own_high is not None:
            value = unless(k >= own_high(*given), over, value)
        return chosen(law.valid(*given), unless(k < 0, under, double(value)), np.nan)

    def cdf(k, *args, **words):
        k, given = parameters(k, args, words)
        whole = k if is_count(k) else np.floor(k)
        return below(law.cdf(whole, *given), k, given, 0.0, 1.0)

    def sf(k, *args, **words):
        k, given = parameters(k, args, words)
        whole = k if is_count(k) else np.floor(k)
        return below(law.sf(whole, *given), k, given, 1.0, 0.0)

    def logcdf(k, *args, **words):
        k, given = parameters(k, args, words)
        whole = k if is_count(k) else np.floor(k)
        return below(log_of_one(law.cdf(whole, *given), law.sf(whole, *given)), k, given, -np.inf, 0.0)

    def logsf(k, *args, **words):
        k, given = parameters(k, args, words)
        whole = k if is_count(k) else np.floor(k)
        return below(log_of_one(law.sf(whole, *given), law.cdf(whole, *given)), k, given, 0.0, -np.inf)

    return logpmf, pmf, cdf, sf, logcdf, logsf


class Frozen:
    """A frozen distribution, the result of calling a distribution with its parameters."""
    def __init__(self, distribution, methods, given):
        for name in methods:
            setattr(self, name, functools.partial(getattr(distribution, name), **given))


def record(distribution, methods, parameters, law, samples):
    """Add the records of a distribution's methods, and of the call that freezes its parameters."""
    kind, names = inspect.Parameter.POSITIONAL_OR_KEYWORD, tuple(m.__name__ for m in methods)
    for method in methods:
        first, *_ = inspect.signature(method).parameters
        own = (first, *tuple(parameters)[1:])
        signature = inspect.Signature([inspect.Parameter(n, kind, default=d) for n, d in zip(own, parameters.values())])
        method.__signature__ = signature
        kinds = {"pdf": samples[0], "pmf": samples[0], "ppf": SHARES, "isf": SHARES}
        sample = kinds.get(method.__name__[-3:], samples[1])
        general(getattr(distribution, method.__name__), samples=sample, rewrite=True, memory=FRESH,
                arrays=own)(type(f"{law.__name__}_{method.__name__}", (), {"primal": method}))

    def frozen(*args, **words):
        return Frozen(distribution, names, {**dict(zip(tuple(parameters)[1:], args)), **words})
    frozen.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    general(distribution, rewrite=True, memory=FRESH)(type(f"{law.__name__}_frozen", (), {"primal": frozen}))


REQUIRED = inspect.Parameter.empty


def continuous(distribution, *names, samples, of_functions=None):
    """A decorator that records a continuous distribution; `of_functions`: samples for all functions but densities."""
    def declare(law):
        record(distribution, methods_of(law, names), {"x": REQUIRED, **dict.fromkeys(names, REQUIRED), "loc": 0,
                                                      "scale": 1}, law, (samples, of_functions or samples))
        return law
    return declare


def discrete(distribution, *names, samples):
    """A decorator that records a distribution on 0, 1, 2, ..."""
    def declare(law):
        record(distribution, counting_methods_of(law, names),
               {"k": REQUIRED, **dict.fromkeys(names, REQUIRED), "loc": 0}, law, (samples, samples))
        return law
    return declare


# --- continuous distributions -----------------------------------------------------------------------------------------

@continuous(stats.norm, samples=samples.on_the_line)
class norm:
    def valid():
        return True

    def logpdf(z):
        return -z * z / 2 - (LOG_2 + LOG_PI) / 2

    def cdf(z):
        return special.ndtr(z)

    def sf(z):
        return special.ndtr(-z)

    def logcdf(z):
        return special.log_ndtr(z)

    def logsf(z):
        return special.log_ndtr(-z)

    def ppf(q):
        return special.ndtri(q)

    def isf(q):
        return -special.ndtri(q)


def log_density_of_t(z, df):
    return np.log(special.poch(df / 2, 0.5)) - (np.log(df) + LOG_PI) / 2 - (df + 1) / 2 * np.log1p(z * z / df)


@continuous(stats.t, "df", samples=samples.on_the_line_by_one, of_functions=samples.on_the_line_by_whole)
class t:
    """With infinitely many degrees of freedom it is the normal distribution."""
    def valid(df):
        return df > 0

    def logpdf(z, df):
        if is_number(df):
            if df < np.inf:
                return log_density_of_t(z, df)
        return unless(df == np.inf, norm.logpdf(z), log_density_of_t(z, df))

    def cdf(z, df):
        return special.stdtr(df, z)

    def sf(z, df):
        return special.stdtr(df, -z)


@continuous(stats.gamma, "a", samples=samples.positive_by_one)
class gamma:
    low = 0

    def valid(a):
        return a > 0

    def logpdf(z, a):
        return special.xlogy(a - 1, z) - z - special.gammaln(a)

    def cdf(z, a):
        return special.gammainc(a, z)

    def sf(z, a):
        return special.gammaincc(a, z)


@continuous(stats.beta, "a", "b", samples=samples.unit_by_two, of_functions=samples.unit_by_whole)
class beta:
    low, high = 0, 1

    def valid(a, b):
        return (a > 0) & (b > 0)

    def logpdf(z, a, b):
        return special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)

    def cdf(z, a, b):
        return special.betainc(a, b, z)

    def sf(z, a, b):
        return special.betaincc(a, b, z)


@continuous(stats.chi2, "df", samples=samples.positive_by_one)
class chi2:
    low = 0

    def valid(df):
        return df > 0

    def logpdf(z, df):
        return special.xlogy(df / 2 - 1, z) - z / 2 - special.gammaln(df / 2) - df * LOG_2 / 2

    def cdf(z, df):
        return special.gammainc(df / 2, z / 2)

    def sf(z, df):
        return special.gammaincc(df / 2, z / 2)


@continuous(stats.expon, samples=samples.positive)
class expon:
    low = 0

    def valid():
        return True

    def logpdf(z):
        return -z

    def cdf(z):
        return -np.expm1(-z)

    def sf(z):
        return np.exp(-z)

    def logsf(z):
        return -z

    def ppf(q):
        return -np.log1p(-q)

    def isf(q):
        return -np.log(q)


def tail_of_laplace(right, z):
    """exp(-|z|) / 2 for z on the given side, which is differentiable at 0."""
    return np.exp(unless(right, -z, z)) / 2


@continuous(stats.laplace, samples=samples.on_the_line)
class laplace:
    def valid():
        return True

    def logpdf(z):
        return -np.abs(z) - LOG_2

    def cdf(z):
        right = z > 0
        tail = tail_of_laplace(right, z)
        return unless(right, 1 - tail, tail)

    def sf(z):
        left = z < 0
        tail = tail_of_laplace(left, -z)
        return unless(left, 1 - tail, tail)

    def logcdf(z):
        right = z > 0
        return unless(right, np.log1p(-tail_of_laplace(right, z)), z - LOG_2)

    def logsf(z):
        left = z < 0
        return unless(left, np.log1p(-tail_of_laplace(left, -z)), -z - LOG_2)

    def ppf(q):
        low = q < 0.5
        return unless(low, np.log(2 * unless(low, q, 0.5)), -np.log(2 * unless(low, 0.5, 1 - q)))

    def isf(q):
        low = q < 0.5
        return unless(low, -np.log(2 * unless(low, q, 0.5)), np.log(2 * unless(low, 0.5, 1 - q)))


# --- discrete distributions -------------------------------------------------------------------------------------------

@discrete(stats.poisson, "mu", samples=samples.counts_by_rates)
class poisson:
    def valid(mu):
        return mu >= 0

    def logpmf(k, mu):
        return special.xlogy(k, mu) - special.gammaln(k + 1) - mu

    def cdf(k, mu):
        return special.gammaincc(k + 1, mu)

    def sf(k, mu):
        return special.gammainc(k + 1, mu)


def whole_part(n):
    return n if is_count(n) else np.floor(n)


@discrete(stats.binom, "n", "p", samples=samples.counts_by_trials)
class binom:
    def high(n, p):
        return n

    def valid(n, p):
        possible = (p >= 0) & (p <= 1)
        return both(possible, (n >= 0) if is_count(n) else (n >= 0) & (n == np.floor(n)))

    def logpmf(k, n, p):
        n = whole_part(n)
        choices = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        return choices + special.xlogy(k, p) + special.xlog1py(n - k, -p)

    def cdf(k, n, p):
        n = whole_part(n)
        return special.betaincc(k + 1, n - k, p)

    def sf(k, n, p):
        n = whole_part(n)
        return special.betainc(k + 1, n - k, p)


# --- multivariate distributions ---------------------------------------------------------------------------------------

def squeezed(x):
    """x without axes of length one; a number if none are left."""
    few = np.squeeze(x)
    if few.ndim == x.ndim:
        return x
    return few if few.ndim else +few


@static
def few_axes(x, mean, cov, allow_singular):
    if allow_singular and (getattr(cov, "ndim", 0) < 2 or getattr(mean, "ndim", 0) == 0):
        raise ValueError("scipy.stats.multivariate_normal with allow_singular=True has a derivative rule for a vector "
                         "and a matrix of covariances", "Give both: np.zeros(d), np.diag(variances).")
    ranks = [getattr(a, "ndim", 0) for a in (x, mean, cov)]
    if ranks[0] > 2 or ranks[1] > 1 or ranks[2] > 2 or ranks[0] == 0 and max(ranks[1:]) > 0:
        raise ValueError("scipy.stats.multivariate_normal of more axes than one point a row has no derivative rule",
                         "Give points as the rows of a matrix: x.reshape(-1, d).")


def as_double(x):
    return numpys(x * 1.0 if is_count(x) else double(x))


def log_density_of_normal(x, mean=None, cov=1, allow_singular=False):
    """The log density by the Cholesky factor of the covariance; of one component if neither parameter has an axis."""
    few_axes(x, mean, cov, allow_singular)
    if mean is None:
        dev = as_double(x)
    else:
        dev = as_double(x) - as_double(mean)
    if cov is None:
        cov = 1
    cov = as_double(cov)
    if cov.ndim < 2 and mean is None or mean is not None and np.ndim(mean) == 0:
        if cov.ndim:
            cov = cov[0] if cov.ndim == 1 else cov[0, 0]
        return squeezed(norm.logpdf(dev / np.sqrt(cov)) - np.log(cov) / 2)
    if cov.ndim == 0:
        size, log_det = np.sum(dev * dev, axis=-1) / cov, dev.shape[-1] * np.log(cov)
    elif cov.ndim == 1:
        size, log_det = np.sum(dev * dev / cov, axis=-1), np.sum(np.log(cov))
    elif allow_singular:
        return squeezed(log_density_on_support(dev, cov))
    else:
        factor = np.linalg.cholesky(cov)
        white = np.linalg.solve(factor, dev if dev.ndim < 2 else dev.T)
        size, log_det = np.sum(white * white, axis=0), 2 * np.sum(np.log(np.diag(factor)))
    return squeezed(-(dev.shape[-1] * (LOG_2 + LOG_PI) + log_det + size) / 2)


def log_density_on_support(dev, cov):
    """The log density on the image of the covariance, whose rank is assumed to be constant; -inf elsewhere."""
    read = np.tril(cov) + np.tril(cov, -1).T
    values = np.linalg.eigvalsh(read)
    bound = NO_VARIANCE * np.max(np.abs(values))
    inverse, count = np.linalg.pinv(read, rcond=NO_VARIANCE), np.sum(values > bound)
    log_det = np.sum(np.log(np.where(values > bound, values, 1.0)))
    beside = np.linalg.norm(dev - dev @ inverse @ read, axis=-1)
    density = -(count * (LOG_2 + LOG_PI) + log_det + np.sum(dev @ inverse * dev, axis=-1)) / 2
    return np.where((count < len(cov)) & (beside >= 1e3 * bound), -np.inf, density)


def _of_vectors(x, mean=None, cov=1, allow_singular=False):
    """Points have as many components as the mean, and the covariance is square."""
    sizes = list(cov.dims) if isinstance(cov, Array) else []
    if isinstance(mean, Array) and mean.rank or len(sizes) == 2 and mean is None:
        sizes += [a.dims[-1] for a in (x, mean) if isinstance(a, Array) and a.rank]
    else:
        sizes.append(Length(None, 1))                   # one component
    yield from ((sizes[0], other) for other in sizes[1:])


@general(stats.multivariate_normal.logpdf, samples=samples.vectors_by_covariances, rewrite=True, memory=FRESH,
         raises=True, arrays=("x", "mean", "cov"), lengths=_of_vectors)
class multivariate_normal_logpdf:
    def primal(x, mean=None, cov=1, allow_singular=False):
        return log_density_of_normal(x, mean, cov, allow_singular)


@general(stats.multivariate_normal.pdf, samples=samples.vectors_by_covariances, rewrite=True, memory=FRESH,
         raises=True, arrays=("x", "mean", "cov"), lengths=_of_vectors)
class multivariate_normal_pdf:
    def primal(x, mean=None, cov=1, allow_singular=False):
        return np.exp(log_density_of_normal(x, mean, cov, allow_singular))


def _of_one_vector(mean=None, cov=1):
    return _of_vectors(None, mean, cov)


@general(stats.multivariate_normal.entropy, samples=samples.covariances, rewrite=True, memory=FRESH, raises=True,
         arrays=("mean", "cov"), lengths=_of_one_vector)
class multivariate_normal_entropy:
    """For a regular covariance; the Cholesky factorisation raises for a singular one."""
    def primal(mean=None, cov=1):
        cov = as_double(cov)
        if cov.ndim < 2:
            many = cov.shape[0] if cov.ndim else 1 if mean is None or np.ndim(mean) == 0 else len(mean)
            log_det = np.sum(np.log(cov)) if cov.ndim else many * np.log(cov)
        else:
            many, log_det = cov.shape[0], 2 * np.sum(np.log(np.diag(np.linalg.cholesky(cov))))
        return (many * (LOG_2 + LOG_PI + 1) + log_det) / 2


@general(stats.multivariate_normal, rewrite=True, memory=FRESH)
class multivariate_normal_frozen:
    def primal(mean=None, cov=1, allow_singular=False):
        return Frozen(stats.multivariate_normal, ("logpdf", "pdf"),
                      {"mean": mean, "cov": cov, "allow_singular": allow_singular})


def log_density_of_dirichlet(x, alpha):
    """The log density; NaN where SciPy raises an error: off the simplex, or for weights that are not positive."""
    if x.ndim == 2:
        terms = special.xlogy((alpha - 1)[:, None], x)
    else:
        terms = special.xlogy(alpha - 1, x)
    value = np.sum(terms, axis=0) + (special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha)))
    inside = (np.abs(np.sum(x, axis=0) - 1) < 1e-9) & np.all(x >= 0, axis=0) & np.all(alpha > 0)
    return chosen(inside, double(value), np.nan)


def _of_weights(x, alpha):
    if isinstance(x, Array) and isinstance(alpha, Array) and x.rank and alpha.rank:
        yield x.dims[0], alpha.dims[0], "all components are needed, one for each weight", \
            "Give the last one too: np.append(x, 1 - np.sum(x))."


@static
def points_of_simplex(x, alpha):
    if x.ndim not in (1, 2) or alpha.ndim != 1:
        raise ValueError("scipy.stats.dirichlet of more axes than one point a column has no derivative rule",
                         "Give points as the columns of a matrix, and a vector of weights.")


@general(stats.dirichlet.logpdf, rewrite=True, memory=FRESH, raises=True,
         arrays=("x", "alpha"), lengths=_of_weights)
class dirichlet_logpdf:
    def primal(x, alpha):
        points_of_simplex(x, alpha)
        return squeezed(log_density_of_dirichlet(x, alpha))


@general(stats.dirichlet.pdf, rewrite=True, memory=FRESH, raises=True,
         arrays=("x", "alpha"), lengths=_of_weights)
class dirichlet_pdf:
    def primal(x, alpha):
        points_of_simplex(x, alpha)
        return np.exp(squeezed(log_density_of_dirichlet(x, alpha)))


@general(stats.dirichlet, rewrite=True, memory=FRESH)
class dirichlet_frozen:
    def primal(alpha):
        return Frozen(stats.dirichlet, ("logpdf", "pdf"), {"alpha": alpha})
