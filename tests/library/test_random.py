# SPDX-License-Identifier: Apache-2.0
"""gs.random by itself: published blocks, recorded numbers, distributions, derivatives, maps and compiled functions."""
import math

import numpy as np
import pytest
from scipy import special, stats

import gradscribe as gs
import gradscribe.random as gr
from gradscribe.random.inverse import erfinv
from gradscribe.random.threefry import looped, threefry2x32

KEY = gr.key(3)
MANY = (20000,)

# Random123's known answers for threefry2x32 with 20 rounds: counter, key, block
ANSWERS = [((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
           ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
           ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0))]


@pytest.mark.parametrize("counter, key, block", ANSWERS)
def test_known_answers(counter, key, block):
    words = np.array([*key, *counter], np.uint32).reshape(4, 1)
    assert tuple(int(w[0]) for w in threefry2x32(*words)) == block


def test_both_spellings_of_the_block_function():
    keys = gr.split(KEY, 50).T
    blocks = looped(keys, np.arange(4, dtype=np.uint32))
    for i in range(4):
        one = threefry2x32(keys[0], keys[1], np.uint32(0), np.full(50, i, np.uint32))
        assert np.array_equal(blocks[:, i], one)


def test_recorded_numbers():
    """Written down once, when they were equal to those of jax.random."""
    assert gr.split(gr.key(0)).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    assert gr.bits(gr.key(0), (2,), np.uint32).tolist() == [4070199207, 4202968722]
    assert gr.randint(gr.key(0), (4,), 0, 10).tolist() == [5, 1, 5, 7]
    assert gr.permutation(gr.key(0), 5).tolist() == [0, 1, 4, 3, 2]


def test_keys_are_plain_arrays():
    assert KEY.dtype == np.uint32 and KEY.tolist() == [0, 3]
    assert gr.key(-1).tolist() == [2**32 - 1] * 2 and gr.key(np.int32(-1)).tolist() == [0, 2**32 - 1]
    keys = gr.split(KEY, (2, 3))
    assert gr.key_data(keys) is keys and gr.wrap_key_data(keys) is keys
    assert len({tuple(k) for k in keys.reshape(-1, 2).tolist()}) == 6


def test_erfinv():
    x = np.concatenate([np.linspace(-0.999, 0.999, 1001), 1 - np.logspace(-12, -3, 50)])
    assert np.max(np.abs(special.erf(erfinv(x)) - x)) < 4e-16
    single = np.linspace(-0.999, 0.999, 1001, dtype=np.float32)
    assert np.max(np.abs(erfinv(single) - special.erfinv(single))) < 2e-6


DISTRIBUTIONS = {
    "uniform": ((), stats.uniform()), "normal": ((), stats.norm()), "exponential": ((), stats.expon()),
    "gumbel": ((), stats.gumbel_r()), "laplace": ((), stats.laplace()), "logistic": ((), stats.logistic()),
    "cauchy": ((), stats.cauchy()), "maxwell": ((), stats.maxwell()), "lognormal": ((0.5,), stats.lognorm(0.5)),
    "truncated_normal": ((-1.0, 2.0), stats.truncnorm(-1, 2)), "pareto": ((2.0,), stats.pareto(2.0)),
    "weibull_min": ((2.0, 1.5), stats.weibull_min(1.5, scale=2)), "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "triangular": ((0.0, 0.3, 1.0), stats.triang(0.3)), "gamma": ((0.3,), stats.gamma(0.3)),
    "beta": ((0.5, 2.0), stats.beta(0.5, 2.0)), "chisquare": ((3.0,), stats.chi2(3)), "t": ((3.0,), stats.t(3)),
    "f": ((3.0, 5.0), stats.f(3, 5)), "generalized_normal": ((3.0,), stats.gennorm(3)),
    "wald": ((2.0,), stats.invgauss(2.0)), "loggamma": ((2.5,), stats.loggamma(2.5)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name):
    """Kolmogorov and Smirnov's test, which a right sampler fails once in 10,000 keys; this key is fixed."""
    parameters, expected = DISTRIBUTIONS[name]
    for dtype in (np.float32, np.float64):
        sample = getattr(gr, name)(KEY, *parameters, shape=MANY, dtype=dtype)
        assert sample.dtype == dtype and sample.shape == MANY
        assert stats.kstest(sample, expected.cdf).pvalue > 1e-4


COUNTS = {"poisson": [((3.0,), stats.poisson(3)), ((40.0,), stats.poisson(40))],
          "binomial": [((10, 0.3), stats.binom(10, 0.3)), ((30, 0.45), stats.binom(30, 0.45)),
                       ((100, 0.8), stats.binom(100, 0.8))],
          "geometric": [((0.2,), stats.geom(0.2))]}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    """Pearson's test over the counts that are expected at least ten times."""
    for parameters, expected in COUNTS[name]:
        sample = getattr(gr, name)(KEY, *parameters, shape=MANY).astype(int)
        values = np.arange(0, sample.max() + 1)
        hoped = expected.pmf(values) * sample.size
        seen, often = np.bincount(sample, minlength=values.size), hoped >= 10
        rest = np.array([sample.size - hoped[often].sum()]), np.array([sample.size - seen[often].sum()])
        hoped, seen = np.append(hoped[often], rest[0]), np.append(seen[often], rest[1])
        assert stats.chi2.sf(np.sum((seen - hoped) ** 2 / hoped), seen.size - 1) > 1e-4


def test_moments_of_vectors():
    cov, mean = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    for method in ("cholesky", "eigh", "svd"):
        sample = gr.multivariate_normal(KEY, mean, cov, MANY, None, method)
        assert np.allclose(sample.mean(0), mean, atol=0.04) and np.allclose(np.cov(sample.T), cov, atol=0.06)
    q = gr.orthogonal(KEY, 4, (5,))
    assert np.allclose(q @ np.swapaxes(q, -1, -2), np.eye(4))
    assert np.allclose(gr.dirichlet(KEY, np.array([1.0, 2.0, 3.0]), MANY).mean(0), np.array([1, 2, 3]) / 6, atol=0.01)
    inside = np.sum(np.abs(gr.ball(KEY, 3, 1.5, MANY)) ** 1.5, -1)
    assert inside.max() <= 1 and stats.kstest(inside ** 2, "uniform").pvalue > 1e-4     # r ** 3 is uniform
    counts = gr.multinomial(KEY, np.full(MANY, 20.0), np.array([0.2, 0.3, 0.5]), shape=(*MANY, 3))
    assert np.all(counts.sum(-1) == 20) and np.allclose(counts.mean(0), [4, 6, 10], atol=0.1)


def test_choices():
    p = np.array([0.1, 0.2, 0.7])
    often = np.bincount(gr.categorical(KEY, np.log(p), shape=MANY)) / MANY[0]
    assert np.allclose(often, p, atol=0.01)
    assert np.allclose(np.bincount(gr.choice(KEY, 3, MANY, True, p)) / MANY[0], p, atol=0.01)
    assert sorted(gr.permutation(KEY, 100).tolist()) == list(range(100))
    assert len(set(gr.choice(KEY, 100, (50,), False).tolist())) == 50
    x = np.arange(12).reshape(3, 4)
    assert np.array_equal(np.sort(gr.permutation(KEY, x, 1, True), 1), x)
    assert np.array_equal(gr.permutation(KEY, x, 1).sum(0).cumsum()[-1:], [66])
    assert set(gr.rademacher(KEY, (100,)).tolist()) == {-1, 1}
    assert abs(gr.bernoulli(KEY, 0.3, MANY).mean() - 0.3) < 0.01


@pytest.mark.parametrize("call, error", [
    (lambda: gr.key(1.5), TypeError), (lambda: gr.key(np.zeros(2, int)), TypeError),
    (lambda: gr.key(0, impl="rbg"), ValueError), (lambda: gr.split(gr.split(KEY)), ValueError),
    (lambda: gr.fold_in(gr.split(KEY), 0), ValueError), (lambda: gr.fold_in(KEY, np.arange(2)), TypeError),
    (lambda: gr.key_data(np.zeros(3, np.uint32)), ValueError), (lambda: gr.bits(KEY, (), np.int32), ValueError),
    (lambda: gr.uniform(KEY, (), np.int32), ValueError), (lambda: gr.normal(KEY, (), np.float16), ValueError),
    (lambda: gr.uniform(KEY, (2,), minval=np.zeros(3)), ValueError),
    (lambda: gr.randint(KEY, (), 0, 3, float), TypeError),
    (lambda: gr.bernoulli(KEY, 1), TypeError), (lambda: gr.bernoulli(KEY, 0.5, (), "most"), ValueError),
    (lambda: gr.gumbel(KEY, mode="most"), ValueError), (lambda: gr.permutation(KEY, 1.5), TypeError),
    (lambda: gr.choice(KEY, 3, (4,), False), ValueError),
    (lambda: gr.choice(KEY, 3, (), True, np.ones(2)), ValueError),
    (lambda: gr.categorical(KEY, np.zeros(3), shape=(4,), replace=False), ValueError),
    (lambda: gr.poisson(KEY, 1.0, (), float), ValueError), (lambda: gr.dirichlet(KEY, 1.0), ValueError),
    (lambda: gr.multivariate_normal(KEY, np.zeros(2), np.eye(2), method="lu"), ValueError),
    (lambda: gr.gamma(KEY, np.ones(3), (2,)), ValueError),
])
def test_refused(call, error):
    with pytest.raises(error):
        call()


def test_gradients_of_reparametrised_numbers():
    def loss(mean, scale, key):
        return np.sum((mean + scale * gr.normal(key, (5,))) ** 2)

    z = gr.normal(KEY, (5,))
    expected = np.sum(2 * (0.3 + 2 * z)), np.sum(2 * (0.3 + 2 * z) * z)
    assert np.allclose(gs.grad(loss, argnums=(0, 1))(0.3, 2.0, KEY), expected, rtol=1e-14)
    assert np.allclose(gs.jit(gs.grad(loss, argnums=(0, 1)))(0.3, 2.0, KEY), expected, rtol=1e-14)


PATHS = {
    "uniform": lambda p: np.sum(gr.uniform(gr.key(0), (9,), minval=p, maxval=3.0) ** 2),
    "truncated_normal": lambda p: np.sum(gr.truncated_normal(gr.key(0), -p, 2 * p, (9,)) ** 2),
    "multivariate_normal": lambda p: np.sum(gr.multivariate_normal(gr.key(0), np.ones(2), p * np.eye(2), (9,)) ** 2),
    "gamma": lambda p: np.sum(gr.gamma(gr.key(0), p, (9,)) ** 2),
    "exponential": lambda p: np.sum(gr.exponential(gr.key(0), (9,)) / p),
    "wald": lambda p: np.sum(gr.wald(KEY, p, (9,))),
}


@pytest.mark.parametrize("name", PATHS)
def test_gradients_by_keys_made_inside(name):
    f, h = PATHS[name], 1e-6
    if name == "gamma":                     # the sampler jumps; the number with the same probability below it does not
        x = gr.gamma(gr.key(0), 0.7, (9,))
        below = special.gammainc(0.7, x)
        moved = [special.gammaincinv(0.7 + s, below) for s in (h, -h)]
        expected = np.sum(2 * x * (moved[0] - moved[1]) / (2 * h))
    else:
        expected = (f(0.7 + h) - f(0.7 - h)) / (2 * h)
    assert abs(gs.grad(f)(0.7) - expected) < 1e-7 * abs(expected)
    assert abs(gs.jvp(f, (0.7,), (1.0,))[1] - expected) < 1e-7 * abs(expected)


def test_second_derivatives():
    second = gs.grad(gs.grad(PATHS["truncated_normal"]))(0.7)
    h = 1e-5
    first = gs.grad(PATHS["truncated_normal"])
    assert abs(second - (first(0.7 + h) - first(0.7 - h)) / (2 * h)) < 1e-7 * abs(second)
    with pytest.raises(gs.TransformError, match="twice"):
        gs.grad(gs.grad(PATHS["gamma"]))(0.7)


def test_no_derivative_through_integers():
    def loss(logits, p):
        return np.sum(p * gr.categorical(KEY, logits * p, shape=(4,))) + p * gr.binomial(KEY, 20, p) + p ** 2

    sample = np.sum(gr.categorical(KEY, 0.7 * np.arange(3.0), shape=(4,))) + gr.binomial(KEY, 20, 0.7)
    assert np.allclose(gs.grad(loss, argnums=1)(np.arange(3.0), 0.7), sample + 1.4)


MAPPED = {
    "normal": lambda k: gr.normal(k, (3,)), "split": lambda k: gr.split(k),
    "randint": lambda k: gr.randint(k, (3,), 0, 7),
    "gamma": lambda k: gr.gamma(k, 0.5, (3,)), "poisson": lambda k: gr.poisson(k, 20.0, (3,)),
    "permutation": lambda k: gr.permutation(k, 6),
    "categorical": lambda k: gr.categorical(k, np.arange(4.0), shape=(3,)),
    "dropout": lambda k: np.where(gr.bernoulli(k, 0.4, (6,)), 1.0, 0.0),
}


@pytest.mark.parametrize("name", MAPPED)
def test_maps_over_keys(name):
    keys = gr.split(KEY, 10)
    assert np.array_equal(gs.vmap(MAPPED[name])(keys), np.stack([MAPPED[name](k) for k in keys]))


EXACT = {
    "bits": lambda k: gr.bits(k, (3, 40)), "split": lambda k: gr.split(k, 5), "fold_in": lambda k: gr.fold_in(k, 3),
    "uniform": lambda k: gr.uniform(k, (3, 40)), "single": lambda k: gr.uniform(k, (3, 40), np.float32),
    "bernoulli": lambda k: gr.bernoulli(k, 0.3, (50,)), "permutation": lambda k: gr.permutation(k, 50),
    "randint": lambda k: gr.randint(k, (50,), -3, 9, np.int32),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", EXACT)
def test_compiled_the_same_bits(name):
    f = EXACT[name]
    ours, plain = gs.jit(f)(KEY), f(KEY)
    assert ours.dtype == plain.dtype and np.array_equal(ours, plain)


def test_compiled_to_rounding():
    f = gs.jit(lambda k, m: m + gr.normal(k, (500,)))
    assert np.allclose(f(KEY, 1.0), 1.0 + gr.normal(KEY, (500,)), rtol=1e-13)


def test_compiled_walk():
    """A loop that splits its key: a random walk, and its derivative in the step."""
    def walk(step, key):
        x = 0.0
        for _ in range(20):
            keys = gr.split(key)
            key = keys[0]
            x = x + step * gr.normal(keys[1])
        return x ** 2

    expected = gs.grad(walk)(0.5, KEY)
    assert math.isclose(gs.jit(gs.grad(walk))(0.5, KEY), expected, rel_tol=1e-12)
    assert math.isclose(2 * walk(0.5, KEY) / 0.5, expected, rel_tol=1e-12)


def test_the_older_layout():
    """Numbers of JAX 0.10 with jax_threefry_partitionable=False."""
    key = gs.random.key(0)
    with gs.random.threefry_partitionable(False):
        assert gs.random.split(key, 3).tolist() == [[2467461003, 428148500], [3186719485, 3840466878],
                                                    [2562233961, 1946702221]]
        assert gs.random.fold_in(key, 5).tolist() == [1524306142, 1887795613]
        assert gs.random.bits(key, (3,), np.uint32).tolist() == [4146024105, 1351547692, 2718843009]
        assert gs.random.bits(key, (2,)).tolist() == [17807037942121513089, 4153451187181432367]
        assert gs.random.bits(key, (5,), np.uint8).tolist() == [143, 35, 95, 55, 29]
        assert gs.random.uniform(key, (3,)).tolist() == [0.5745005337275046, 0.0996860909733377, 0.7419659489424089]
        expected = [0.1878440128937887, -1.283342292129158, 0.6494182018294374]
        np.testing.assert_allclose(gs.random.normal(key, (3,)), expected, rtol=1e-14)
        np.testing.assert_allclose(gs.jit(lambda k: gs.random.normal(k, (3,)))(key), expected, rtol=1e-14)
    assert gs.random.split(key, 3).tolist() == [[1797259609, 2579123966], [928981903, 3453687069],
                                                [4146024105, 2718843009]]


def test_a_compiled_function_follows_the_switch():
    draw = gs.jit(lambda k: gs.random.gamma(k, 2.0, (2,)))
    key, found = gs.random.key(0), []
    for value in (True, False, True):
        gs.random.set_threefry_partitionable(value)
        try:
            found.append(draw(key))
            np.testing.assert_allclose(found[-1], gs.random.gamma(key, 2.0, (2,)), rtol=1e-13)
        finally:
            gs.random.set_threefry_partitionable(True)
    assert found[0].tolist() == found[2].tolist() != found[1].tolist()
