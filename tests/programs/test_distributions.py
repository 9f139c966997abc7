"""scipy.stats in programs: values are SciPy's, derivatives those of differences and of formulas."""
import math

import numpy as np
import pytest
from jit import support
from rule_calls import call_of
from scipy import special, stats

import gradscribe as gs

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
PLACES = np.array([-1000.0, -40, -3, -1, -0.5, 0, 0.3, 0.5, 1, 1.5, 2, 5, 40, 1000, np.inf, -np.inf, np.nan])
CONTINUOUS = {
    "norm": ((),), "expon": ((),), "laplace": ((),), "t": ((2.5, np.inf, -1.0),),
    "gamma": ((2.5, 1.0, 0.5, -0.5, 0.0),), "chi2": ((3.0, 2.0, 1.0, -1.0),),
    "beta": ((2.0, 0.5, 1.0, -1.0), (3.0, 0.5, 1.0, 2.0))}
DISCRETE = {"poisson": ((2.5, 0.0, -1.0),), "binom": ((5, 5, 5, 5, 0, -1), (0.3, 0.0, 1.0, 1.2, 0.4, 0.4))}
FUNCTIONS = ("cdf", "sf", "logcdf", "logsf")
METHODS = [(d, m) for d in CONTINUOUS for m in ("logpdf", "pdf", *FUNCTIONS)] + [
    (d, m) for d in DISCRETE for m in ("logpmf", "pmf", *FUNCTIONS)]


def method(name, which):
    distribution = getattr(stats, name)
    if which == "logpdf":               # each written out, as a program has it
        return lambda *args: distribution.logpdf(*args)
    found = getattr(distribution, which)
    return lambda *args: found(*args)


def parameters(name):
    given = {**CONTINUOUS, **DISCRETE}[name]
    return [np.array(g).reshape(-1, 1) for g in given if g]


def as_read(function, *args):
    """What the function gives where it is read, not run."""
    return gs.vmap(function, (None,) * len(args), None, axis_size=1)(*args)


def same(found, wanted, **tolerance):
    """Equal; where SciPy's logarithm is of a probability that has underflowed, ours may go on."""
    if np.any(far := np.isneginf(wanted) & (np.asarray(found) < -700)):
        found, wanted = np.where(far, 0.0, found), np.where(far, 0.0, wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype and type(found) is type(wanted)
    np.testing.assert_allclose(found, wanted, **{"rtol": 3e-12, "atol": 1e-30, **tolerance})


@pytest.mark.parametrize("name, which", METHODS)
def test_values(name, which):
    function, given = method(name, which), parameters(name)
    if name in DISCRETE and which == "logcdf":      # SciPy's is 0 at the upper end if a parameter is not valid
        given = [g[:1] for g in given]
    moved = (1,) if name in DISCRETE else (0.5, np.array([1.0, 2.0, 0.0, -1.0]).reshape(-1, 1, 1))
    for places in (PLACES, PLACES[:14].astype(int), PLACES[:0], PLACES[6:7]):
        same(as_read(function, places, *given), function(places, *given))
        same(as_read(function, places, *given, *moved), function(places, *given, *moved))
    first = [g[0, 0] for g in given]
    for place in (0.3, 2, np.float64(2.0), np.float32(0.5), np.int64(3)):
        same(as_read(function, place, *first), function(place, *first), rtol=1e-6)
    single = [g.astype(np.float32) if g.dtype == float else g for g in given]
    same(as_read(function, PLACES.astype(np.float32), *single), function(PLACES.astype(np.float32), *single), rtol=2e-5)


POINTS = {
    "norm": (), "expon": (), "laplace": (), "t": (2.5,), "gamma": (1.7,), "chi2": (2.6,), "beta": (1.4, 2.3),
    "poisson": (1.8,), "binom": (5, 0.4)}
FIXED = {("t", f): (1,) for f in FUNCTIONS} | {("beta", f): (1, 2) for f in FUNCTIONS} | {("binom", f): (1,) for f in (
    "logpmf", "pmf", *FUNCTIONS)}     # arguments without a derivative


def arguments(name):
    if name in DISCRETE:
        return [np.array([0, 1, 3]), *POINTS[name]]
    return [np.array([0.3, 0.8, 1.3]) if name == "beta" else np.array([0.3, 0.9, 2.4]), *POINTS[name], -0.2, 1.7]


@pytest.mark.parametrize("name, which", METHODS)
def test_derivatives(name, which):
    function, args = method(name, which), arguments(name)
    moving = [k for k in range(len(args)) if k not in FIXED.get((name, which), ()) and not (
        k == 0 and name in DISCRETE)]
    tangent, adjoint = gs.jacfwd(function, argnums=tuple(moving)), gs.jacrev(function, argnums=tuple(moving))
    for k, forward, backward in zip(moving, tangent(*args), adjoint(*args)):
        def at(h, k=k):
            return function(*[a + h if j == k else a for j, a in enumerate(args)])
        wanted = (8 * (at(1e-3) - at(-1e-3)) - at(2e-3) + at(-2e-3)) / 12e-3
        for found in (forward, backward):
            found = np.diag(found) if k == 0 else found
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name, which", METHODS)
def test_batches(name, which):
    function, args = method(name, which), arguments(name)
    rows = [np.stack([a, a, a]) if np.ndim(a) else np.array([a, 1, 2]) if k < len(args) - 1 or name in DISCRETE else
            np.array([a, 1.5, 2.0]) for k, a in enumerate(args)]
    if name == "binom":
        rows[2] = np.array([0.1, 0.4, 0.9])
    wanted = [function(*[r[k] for r in rows]) for k in range(3)]
    np.testing.assert_allclose(gs.vmap(function, strategy="rewrite")(*rows), wanted, rtol=1e-12)


@pytest.mark.parametrize("name, which", [("norm", "logpdf"), ("t", "logpdf"), ("gamma", "cdf"), ("laplace", "logcdf"),
                                         ("binom", "logpmf"), ("poisson", "sf")])
def test_compiled(name, which):
    args = arguments(name)
    function, given = call_of(getattr(getattr(stats, name), which), args, {})
    made = support.compiled(function, *given)
    assert not support.same(support.run(made, *given), function(*given))
    slope = gs.vjp_of(function)
    made = support.transformed(slope, np.ones(3), *given)
    assert not support.same(support.run(made, np.ones(3), *given), slope(np.ones(3), *given))


def test_formulas():
    x, m, s = np.array([0.5, -1.0, 2.0]), 0.3, 1.5
    dx, dm, ds = gs.grad(lambda x, m, s: np.sum(stats.norm.logpdf(x, m, s)), argnums=(0, 1, 2))(x, m, s)
    z = (x - m) / s
    np.testing.assert_allclose(dx, -z / s, rtol=1e-14)
    np.testing.assert_allclose([dm, ds], [np.sum(z) / s, np.sum(z * z - 1) / s], rtol=1e-14)
    a = gs.grad(lambda a: stats.gamma.logpdf(2.0, a))(3.0)
    assert math.isclose(a, math.log(2) - special.digamma(3.0), rel_tol=1e-14)
    mu = gs.grad(lambda mu: np.sum(stats.poisson.logpmf(np.array([0, 3, 1]), mu)))(2.0)
    assert math.isclose(mu, 4 / 2.0 - 3, rel_tol=1e-14)
    p = gs.grad(lambda p: stats.binom.logpmf(3, 5, p))(0.4)
    assert math.isclose(p, 3 / 0.4 - 2 / 0.6, rel_tol=1e-14)
    b = gs.grad(lambda b: np.sum(stats.expon.logpdf(np.array([1.0, 2.0]), scale=b)))(2.0)
    assert math.isclose(b, -2 / 2.0 + 3 / 4.0, rel_tol=1e-14)


def test_on_the_edge():
    """Laplace's distribution function has a derivative where its density has a kink."""
    assert gs.grad(lambda x: stats.laplace.cdf(x))(0.0) == 0.5 and gs.grad(lambda x: stats.laplace.sf(x))(0.0) == -0.5
    assert gs.grad(lambda x: stats.laplace.logcdf(x))(0.0) == 1.0
    assert gs.grad(lambda x: stats.laplace.logsf(x))(0.0) == -1.0
    assert gs.grad(lambda x: stats.laplace.logpdf(x))(0.0) == 0.0
    assert math.isclose(gs.grad(lambda x: stats.t.cdf(x, 3.0))(0.0), 2 / (math.pi * math.sqrt(3)), rel_tol=1e-14)
    assert gs.grad(lambda x: stats.expon.logpdf(x))(0.0) == -1.0 and gs.grad(lambda x: stats.expon.logpdf(x))(-1.0) == 0
    assert gs.grad(lambda k: stats.poisson.logpmf(k, 2.0))(3.0) == 0.0


def test_single_precision():
    """The density is float64, as SciPy's is; the derivative in a float32 has its dtype."""
    x = np.array([0.5, 1.5], np.float32)
    value, slope = gs.value_and_grad(lambda x: np.sum(stats.norm.logpdf(x)))(x)
    assert value.dtype == np.float64 and slope.dtype == np.float32
    np.testing.assert_allclose(slope, [-0.5, -1.5], rtol=1e-6)


def test_frozen():
    """A distribution that is given its parameters first."""
    def loss(m, s):
        law = stats.norm(m, scale=s)
        return law.logpdf(0.5) + law.cdf(1.0) + stats.poisson(s).logpmf(2)

    def plain(m, s):
        return stats.norm.logpdf(0.5, m, s) + stats.norm.cdf(1.0, m, s) + stats.poisson.logpmf(2, s)
    assert gs.grad(loss, argnums=(0, 1))(0.2, 1.5) == gs.grad(plain, argnums=(0, 1))(0.2, 1.5)
    assert math.isclose(as_read(loss, 0.2, 1.5), loss(0.2, 1.5), rel_tol=1e-14)


def test_second_derivatives():
    """Of the log-density of a normal: -1 / s**2, and Fisher's information of a Poisson distribution by its sum."""
    assert math.isclose(gs.grad(gs.grad(lambda x: stats.norm.logpdf(x, 0.3, 2.0)))(1.0), -0.25, rel_tol=1e-14)
    k = np.arange(60)
    information = np.sum(stats.poisson.pmf(k, 3.0) * [
        -gs.grad(gs.grad(lambda mu, k=k: stats.poisson.logpmf(k, mu)))(3.0) for k in range(60)])
    assert math.isclose(information, 1 / 3.0, rel_tol=1e-12)


# --- vectors ----------------------------------------------------------------------------------------------------------

ROOT = np.array([[1.2, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.4, 0.2, 1.1]])
COV, MEAN, POINT = ROOT @ ROOT.T, np.array([0.2, -0.1, 0.4]), np.array([0.5, -1.0, 2.0])
NORMALS = {
    "point": (POINT, MEAN, COV), "points": (np.stack([POINT, -POINT]), MEAN, COV), "row": (POINT[None], MEAN, COV),
    "no mean": (POINT, None, COV), "one variance": (POINT, MEAN, 1.5),
    "variances": (POINT, MEAN, np.array([1.0, 2.0, 0.5])),
    "numbers": (POINT, 0.3, 1.5), "standard": (POINT,), "number": (0.5, 0.3, 1.5),
    "column": (POINT[:, None], [0.3], [[1.5]]),
    "one of one": (POINT, 0.3, np.array([[1.5]])), "single": (POINT.astype(np.float32), MEAN, COV),
    "whole": (np.array([1, 0, 2]), np.array([0, 1, 0]), np.diag([1, 2, 1]))}


@pytest.mark.parametrize("which", ["logpdf", "pdf"])
@pytest.mark.parametrize("case", NORMALS)
def test_normal_vectors(case, which):
    found, args = getattr(stats.multivariate_normal, which), NORMALS[case]
    function, given = call_of(found, args, {})
    same(as_read(function, *given), function(*given))
    for k, v in enumerate(given):
        if np.asarray(v).dtype != float or not np.size(v):
            continue
        slope = gs.grad(lambda *a: np.sum(function(*a)), argnums=k)(*given)
        step = np.random.default_rng(k).normal(size=np.shape(v)) * 1e-4

        def at(h, k=k, step=step):
            return np.sum(function(*[a + h * step if j == k else a for j, a in enumerate(given)]))
        wanted = (8 * (at(1) - at(-1)) - at(2) + at(-2)) / 12
        np.testing.assert_allclose(np.sum(slope * step), wanted, rtol=1e-6, atol=1e-12)


def test_slopes_of_a_normal_vector():
    """In the mean: the inverse covariance times the deviation; the covariance's lower triangle is read."""
    dm, dc = gs.grad(lambda m, c: stats.multivariate_normal.logpdf(POINT, m, c), argnums=(0, 1))(MEAN, COV)
    inverse = np.linalg.inv(COV)
    z = inverse @ (POINT - MEAN)
    np.testing.assert_allclose(dm, z, rtol=1e-12)
    whole = (np.outer(z, z) - inverse) / 2
    np.testing.assert_allclose(dc, np.tril(whole) + np.tril(whole, -1), rtol=1e-11, atol=1e-12)


def test_normal_vectors_of_a_singular_covariance():
    """The derivative along the support, for covariances whose rank stays; beside the support the density is zero."""
    half, at = np.array([[1.0, 0.2], [0.5, 1.5], [1.5, 1.7]]), np.array([0.7, -0.4])

    def density(at, mean, half):
        return stats.multivariate_normal.logpdf(mean + half @ at, mean, half @ half.T, allow_singular=True)

    def plain(at, mean, half):          # in the coordinates of the support
        return -(np.log(np.linalg.det(half.T @ half)) + 2 * np.log(2 * np.pi) + at @ at) / 2
    for made in (gs.grad(density, argnums=(0, 1, 2)), gs.jit(gs.grad(density, argnums=(0, 1, 2)))):
        for found, wanted in zip(made(at, MEAN, half), gs.grad(plain, argnums=(0, 1, 2))(at, MEAN, half)):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    assert abs(gs.jit(density)(at, MEAN, half) - density(at, MEAN, half)) < 1e-9
    points, cov = np.stack([MEAN + half @ at, MEAN + [0.0, 0.0, 1.0]]), half @ half.T
    for which in ("logpdf", "pdf"):
        found = getattr(stats.multivariate_normal, which)
        same(as_read(lambda p, found=found: found(p, MEAN, cov, allow_singular=True), points),
             found(points, MEAN, cov, allow_singular=True))
    regular, wanted = (gs.grad(lambda c, s=s: stats.multivariate_normal.logpdf(POINT, MEAN, c, allow_singular=s))(COV)
                       for s in (True, False))
    np.testing.assert_allclose(regular, wanted, rtol=1e-9)


def test_entropy_of_a_normal_vector():
    slope = gs.grad(lambda c: stats.multivariate_normal.entropy(MEAN, c))(COV)
    inverse = np.linalg.inv(COV) / 2
    np.testing.assert_allclose(slope, np.tril(inverse) + np.tril(inverse, -1), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        gs.grad(lambda c: stats.multivariate_normal.entropy(MEAN, c))(np.zeros((3, 3)))


def test_weights():
    x, alpha = np.array([0.25, 0.5, 0.25]), np.array([0.7, 2.0, 1.3])
    for which in ("logpdf", "pdf"):
        found = getattr(stats.dirichlet, which)
        for points in (x, np.stack([x, x[::-1]], axis=1), x[:, None]):
            same(as_read(lambda p, a, found=found: found(p, a), points, alpha), found(points, alpha))
    slope = gs.grad(lambda a: stats.dirichlet.logpdf(x, a))(alpha)
    np.testing.assert_allclose(slope, np.log(x) + special.digamma(alpha.sum()) - special.digamma(alpha), rtol=1e-13)
    np.testing.assert_allclose(gs.grad(lambda x: stats.dirichlet.logpdf(x, alpha))(x), (alpha - 1) / x, rtol=1e-13)
    assert np.isnan(as_read(lambda x, a: stats.dirichlet.logpdf(x, a), x * 1.1, alpha))
    assert gs.grad(lambda a: stats.dirichlet(a).logpdf(x))(alpha).tolist() == slope.tolist()


def test_vectors_in_batches_and_compiled():
    points, means = np.stack([POINT, -POINT]), np.stack([MEAN, 2 * MEAN])
    covs = np.stack([COV, 2 * COV])
    wanted = [stats.multivariate_normal.logpdf(*row) for row in zip(points, means, covs)]
    found = gs.vmap(lambda x, m, c: stats.multivariate_normal.logpdf(x, m, c), strategy="rewrite")(points, means, covs)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    function, given = call_of(stats.multivariate_normal.logpdf, (points, MEAN, COV), {})
    made = support.compiled(function, *given)
    assert not support.same(support.run(made, *given), function(*given))
