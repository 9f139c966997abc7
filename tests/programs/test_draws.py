"""Random numbers in differentiated functions: derivatives at the numbers drawn, and the stream where it should be."""
import copy

import numpy as np
import pytest

import gradscribe as gs

CASES = []
X = np.array([0.3, 0.8, -0.4, 1.1])
S = np.array([0.7, 1.3, 2.9])
M = np.arange(12.0).reshape(4, 3) / 10 + 0.1
SHARED = np.random.default_rng(11)
BASE = np.random.RandomState(12)
MIX = np.array([[1.0, 0.2, 0.1], [0.2, 1.5, 0.3], [0.1, 0.3, 2.0]])


def case(*args):
    def add(f):
        CASES.append((f, args))
        return f
    return add


def state(rng):
    return repr(rng.get_state(legacy=False) if isinstance(rng, np.random.RandomState) else rng.bit_generator.state)


def streams(args):
    return [a for a in args if isinstance(a, np.random.Generator | np.random.RandomState)]


def everything(args):
    """The states of all generators that a case may use."""
    return [state(r) for r in [*streams(args), SHARED, BASE, np.random.mtrand._rand]]


def seeded():
    SHARED.bit_generator.state = np.random.default_rng(11).bit_generator.state
    BASE.seed(12)
    np.random.seed(13)


def called(f, args):
    seeded()
    args = copy.deepcopy(args)
    value = f(*args)
    return value, everything(args)


def differences(f, args, k=0, h=1e-6):
    x = np.asarray(args[k], float)
    out = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        sides = []
        for step in (h, -h):
            moved = x.copy()
            moved[i] += step
            moved = moved if x.shape else float(moved)
            sides.append(float(called(f, (*args[:k], moved, *args[k + 1:]))[0]))
        out[i] = (sides[0] - sides[1]) / (2 * h)
    return out


def N():
    return np.random.default_rng(5)


def R():
    return np.random.RandomState(5)


# a generator that is an argument

@case(X, N())
def argument(x, rng):
    return np.sum(x * rng.standard_normal(4))


@case(X, N())
def sizes(x, rng):
    n = len(x)
    a = rng.standard_normal()
    b = rng.random(n)
    c = rng.uniform(-1.0, 1.0, (n,))
    d = rng.normal(size=x.shape)
    e = rng.normal(0.0, 2.0, size=(2, n))
    g = rng.normal(size=())
    h = rng.laplace(size=x.size)
    return np.sum(x * a * b + np.sin(x) * c * d) + np.sum(e @ x) * g + np.sum(h * x)


@case(X, N())
def many_families(x, rng):
    t = rng.exponential(2.0) + rng.gamma(2.0, 1.5, 4) + rng.beta(2.0, 3.0, size=4) + rng.poisson(3.0, 4)
    t = t + rng.binomial(10, 0.3, 4) + rng.lognormal(0.0, 0.3, 4) + rng.logistic(size=4) + rng.gumbel(size=4)
    t = t + rng.standard_t(4.0, 4) + rng.chisquare(3.0, 4) + rng.geometric(0.3, 4) + rng.triangular(0.0, 1.0, 2.0, 4)
    t = t + rng.weibull(2.0, 4) + rng.vonmises(0.0, 1.0, 4) + rng.pareto(3.0, 4) + rng.wald(1.0, 2.0, 4)
    t = t + rng.standard_gamma(2.0, 4) + rng.standard_exponential(4) + rng.rayleigh(1.0, 4) + rng.power(2.0, 4)
    t = t + rng.hypergeometric(5, 6, 7, 4) + rng.negative_binomial(5, 0.4, 4) + rng.zipf(3.0, 4)
    return np.sum(x ** 2 * t)


@case(X, N())
def rows(x, rng):
    a = rng.multivariate_normal(np.zeros(3), MIX)
    b = rng.multivariate_normal(np.zeros(3), MIX, size=4)
    c = rng.dirichlet([1.0, 2.0, 3.0])
    d = rng.multinomial(5, [0.2, 0.3, 0.5], size=2)
    return np.sum(x[:3] * a * c) + np.sum(x @ b) + np.sum(d @ x[1:])


@case(X, N())
def float32_draws(x, rng):
    a = rng.standard_normal(4, dtype=np.float32)
    b = rng.random(dtype=np.float32)
    c = rng.standard_exponential(size=4, dtype="float32")
    return np.sum(x * a * b) + np.sum(np.sin(x) * c)


@case(X, N())
def unused(x, rng):
    rng.random()
    rng.normal(size=x.shape)
    waste = rng.integers(10, size=3)        # noqa: F841
    rng.shuffle(np.arange(5))
    return np.sum(x) * rng.random()


@case(X, N())
def equal_draws(x, rng):
    return np.sum(x * rng.random() - x ** 2 * rng.random()) + rng.random(4) @ x - rng.random(4) @ x


@case(X, N())
def operand_order(x, rng):
    a = rng.random() - x[rng.integers(4)] * rng.random()
    b = [rng.random(), x[0] * rng.random()]
    return a * b[0] - b[1] + (rng.random() if rng.random() < 0.5 else rng.normal() * x[1])


@case(X, N())
def short_circuit(x, rng):
    total = 0.0
    for v in x:
        if v > 0.5 and rng.random() < 0.5 or rng.random() < 0.3:
            total = total + v ** 2 * rng.random()
    return total


# loops and branches

@case(X, N())
def in_a_loop(x, rng):
    for _ in range(100):
        x = np.tanh(x * rng.normal(1.0, 0.1, size=x.shape)) + 0.1 * rng.random()
    return np.sum(x)


@case(X, 5, N())
def in_a_counted_loop(x, n, rng):
    total = 0.0
    for i in range(n):
        noise = rng.standard_normal(x.shape)
        total += np.sum(np.sin(x * noise)) * i
    return total


@case(X, N())
def in_a_while(x, rng):
    n = 0
    while rng.random() < 0.9 and n < 50:
        x = x * (1 + 0.1 * rng.normal(size=4)) ** 2
        n += 1
    return np.sum(x) * n


@case(X, N())
def in_a_branch(x, rng):
    for _ in range(100):
        if rng.random() < 0.5:
            x = np.sin(x) * rng.uniform(0.5, 1.5)
        elif rng.random() < 0.5:
            x = np.cos(x) + 0.1 * rng.normal(size=x.shape)
    return np.sum(x)


@case(X, N())
def left_early(x, rng):
    for _ in range(100):
        u = rng.random()
        if u < 0.05:
            break
        if u < 0.3:
            continue
        x = x * u + np.sin(x) * rng.random()
        if u > 0.97:
            return np.sum(x ** 2)
    else:
        x = x * 2
    return np.sum(x)


@case(X, N())
def nested_loops(x, rng):
    total = 0.0
    for _ in range(70):
        k = rng.integers(1, 4)
        for _ in range(k):
            total = total + np.sum(x * x * rng.random(4))
    return total


@case(X, N())
def two_loops_one_stream(x, rng):
    a = np.array([rng.random() for _ in range(4)])
    total = sum(rng.random() * v for v in x)
    for row in rng.normal(size=(3, 4)):
        total = total + np.sum(row * x * a)
    return total


@case(X, N())
def same_test_twice(x, rng):
    up = rng.random() < 0.5
    if up:
        x = x * rng.random()
    y = rng.normal(size=4)
    if up:
        x = x + rng.random() * x ** 2
    return np.sum(x * y)


def helper(x, rng, scale=1.0):
    return x * scale + rng.normal(size=x.shape) * np.sin(x)


def global_helper(x):
    return np.sin(x) * np.random.rand()


@case(X, N())
def in_helpers(x, rng):
    def inner(v):
        return v * rng.random()
    return np.sum(helper(helper(inner(x), rng), rng=rng, scale=0.5))


@case(X)
def global_in_helpers(x):
    return np.sum(global_helper(global_helper(x)) - global_helper(x))


@case(X, {"rng": N(), "w": 2.0})
def in_a_container(x, config):
    return np.sum(x * config["rng"].random(4)) * config["rng"].random() * config["w"]


# generators from elsewhere

@case(X)
def made_inside(x):
    rng = np.random.default_rng(3)
    other = np.random.default_rng(3)
    third = np.random.Generator(np.random.PCG64(0))
    fourth = np.random.Generator(np.random.MT19937(seed=4))
    return np.sum(x * rng.random(4) - x ** 2 * other.random(4)) + third.normal() * fourth.random() * np.sum(x)


@case(X)
def made_in_a_loop(x):
    for k in range(100):
        rng = np.random.default_rng(k)
        x = x * (1 + 0.01 * rng.random(4)) + 0.01 * rng.normal()
    return np.sum(x ** 2)


@case(X)
def chosen_generator(x):
    if x[0] > 0:
        rng = np.random.default_rng(1)
    else:
        rng = np.random.default_rng(2)
    return np.sum(x * rng.random(4))


@case(X)
def optional_generator(x, rng=6):
    rng = np.random.default_rng(rng)
    if not isinstance(rng, np.random.Generator):
        raise TypeError
    return np.sum(x * rng.random(4))


@case(X, N())
def given_generator(x, rng=None):
    if rng is None:
        rng = np.random.default_rng(0)
    rng = np.random.default_rng(rng)
    return np.sum(x * rng.random(4))


@case(X)
def from_outside(x):
    return np.sum(x * SHARED.random(4)) * BASE.rand() + SHARED.normal() * x[1] ** 2


@case(X)
def legacy_state(x):
    rs = np.random.RandomState(3)
    a = rs.randn(4) + rs.rand(2, 4) + rs.randint(0, 5, size=4) + rs.random_sample(4) + rs.uniform(1.0, 2.0, 4)
    a = a + rs.normal(0.0, 1.0, 4) + rs.standard_normal(4) + rs.exponential(size=4) + rs.gamma(2.0, size=4)
    k = rs.randint(4)
    return np.sum(x * a) + x[k] ** 2 * rs.randn() + rs.choice(5) * x[0] + np.sum(x[rs.permutation(4)] * np.arange(4))


@case(X, R())
def legacy_argument(x, rs):
    rs.seed(7)
    return np.sum(x * rs.randn(4)) * rs.rand()


@case(X)
def legacy_global(x):
    np.random.rand()
    np.random.seed(0)
    a = np.random.rand(4) * np.random.randn() + np.random.normal(size=4) + np.random.random(4) + np.random.ranf()
    for _ in range(3):
        x = x + 0.1 * np.random.randn(4) * a * np.random.uniform(0, 1, x.shape) + np.random.randint(3) * x
    np.random.shuffle(a)
    return np.sum(x ** 2 * a) * np.random.choice([1.0, 2.0]) + np.random.standard_normal()


# indices

@case(X, N())
def gathers(x, rng):
    order = rng.permutation(len(x))
    few = rng.choice(len(x), size=2, replace=False)
    k = rng.integers(0, 4)
    mask = rng.random(4) < 0.5
    return np.sum(x[order] * np.arange(4)) + np.prod(x[few]) + x[k] ** 2 + np.sum(np.where(mask, x ** 3, 0.0)) + \
        np.sum(x[rng.integers(0, 4, size=(2, 3))] ** 2) + rng.choice([2.0, 3.0], p=[0.5, 0.5]) * x[0]


@case(X, N())
def shuffles(x, rng):
    order = np.arange(4)
    rng.shuffle(order)
    y = x * 2
    rng.shuffle(y)
    z = np.outer(y, np.arange(3.0))
    rng.shuffle(z)
    rng.shuffle(z, axis=1)
    return np.sum(x[order] * np.arange(4)) + np.sum(y * np.arange(4)) + np.sum(z * np.arange(12.0).reshape(4, 3))


@case(X, N())
def of_the_argument(x, rng):
    w = np.arange(1.0, 5.0)
    m = np.outer(x, x[:3])
    u = np.arange(12.0).reshape(4, 3)
    a = rng.choice(x, 3) @ w[:3] + rng.choice(x) ** 2 + rng.choice(x, size=(2, 2), p=[0.1, 0.2, 0.3, 0.4]).sum()
    b = np.sum(rng.permutation(x) * w) + np.sum(rng.permutation(m) * u) + np.sum(rng.permutation(m, axis=1) * u)
    c = np.sum(rng.permuted(x) * w) + np.sum(rng.permuted(m) * u) + np.sum(rng.permuted(m, axis=0) * u)
    d = np.sum(rng.permuted(m, axis=1) * u) + np.sum(rng.choice(m, 2, axis=1, replace=False) ** 2)
    return a + b + c + d + rng.choice([x[0], x[1] ** 2, 3.0])


@case(X)
def legacy_of_the_argument(x):
    w = np.arange(1.0, 5.0)
    return np.sum(np.random.permutation(x) * w) + np.random.choice(x) ** 2 + np.sum(np.random.choice(x, 3) * w[:3])


# parameters that are differentiated

@case(S, N())
def located(s, rng):
    a = rng.normal(s, 2.0) + rng.normal(1.0, s) + rng.normal(s, s) + rng.normal(s) + rng.normal(scale=s)
    a = a + rng.laplace(s, s) + rng.logistic(s, s) + rng.gumbel(s, s) + rng.rayleigh(s) + rng.exponential(s)
    a = a + rng.uniform(0.0, s) + rng.uniform(s, 2 * s + 1) + rng.uniform(high=s) + rng.lognormal(s / 3, s / 5)
    a = a + rng.gamma(2.0, s) + rng.gamma([1.0, 2.0, 3.0], s) + rng.normal([1.0, 2.0, 3.0], s)
    b = rng.normal(s, 1.0, size=(2, 3)) * rng.uniform(s[:, None], 4.0, size=(3, 3)).sum()
    return np.sum(np.sin(a)) + np.sum(b) + np.sum(rng.normal(s[:, None], s[:2] ** 2) ** 2)


@case(0.7, N())
def located_numbers(s, rng):
    a = rng.normal(s, 2 * s) * rng.uniform(s, 3.0) + rng.exponential(s) * rng.lognormal(s, s) + rng.gamma(2.0, s)
    return a + rng.laplace(s) + np.sum(rng.normal(s, size=3) * rng.normal(size=3)) + rng.normal(np.sin(s), s ** 2)


@case(S)
def legacy_located(s):
    rs = np.random.RandomState(4)
    a = rs.normal(s, s) + rs.uniform(0.0, s) + rs.exponential(s) + rs.lognormal(s / 3, s / 5) + rs.rayleigh(s)
    a = a + np.random.normal(s, s) + np.random.uniform(0.0, s) + np.random.exponential(s) + np.random.gumbel(s, s)
    return np.sum(np.sin(a)) + np.random.normal(s[0], s[1]) + rs.gamma(2.0, s[2])


@case(S, N())
def mean_of_many(s, rng):
    return np.sum(rng.multivariate_normal(s ** 2, MIX) ** 2) + np.sum(rng.multivariate_normal(s, MIX, size=2) ** 2)


@case(S, N())
def located_in_a_loop(s, rng):
    z = np.zeros(3)
    for _ in range(100):
        if rng.random() < 0.5:
            z = 0.9 * z + rng.normal(s, 0.1)
        else:
            z = np.sin(z) * rng.uniform(0.0, s)
    return np.sum(z)


@case(X, N())
def second_of_something(x, rng):
    y = gs.grad(lambda v: np.sum(v ** 3 * rng.random(4)) * rng.random())(x)
    return np.sum(y * rng.random(4))


@case(X, N())
def stopped(x, rng):
    k = rng.poisson(gs.stop_gradient(x) ** 2 + 1.0)
    return np.sum(x * k)


@pytest.mark.parametrize("f, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_gradient(f, args):
    plain, after = called(f, args)
    (value, gradient), then = called(gs.value_and_grad(f), args)
    np.testing.assert_allclose(value, plain, rtol=1e-12)
    assert then == after
    np.testing.assert_allclose(gradient, differences(f, args), rtol=2e-5, atol=2e-6)
    alone, then = called(gs.grad(f), args)
    np.testing.assert_allclose(alone, gradient, rtol=1e-14)         # the two sum up in another order
    assert then == after


@pytest.mark.slow
@pytest.mark.parametrize("f, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_forward(f, args):
    plain, after = called(f, args)
    x = args[0]
    direction = np.cos(np.arange(np.size(x)) + 1.0).reshape(np.shape(x))[()]
    direction = direction if np.shape(x) else float(direction)
    seeded()
    given = copy.deepcopy(args)
    rest = [0.0 if isinstance(a, int | float) else a for a in given[1:]]
    rest = [{**a, "w": 0.0} if isinstance(a, dict) else a for a in rest]
    value, tangent = gs.jvp(f, given, (direction, *rest))
    assert everything(given) == after
    np.testing.assert_allclose(value, plain, rtol=1e-12)
    np.testing.assert_allclose(tangent, np.sum(differences(f, args) * direction), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("f, args", [(f, a) for f, a in CASES if f.__name__ in (
    "argument", "in_a_loop", "in_a_while", "in_a_branch", "located", "located_in_a_loop", "made_inside", "gathers",
    "of_the_argument", "legacy_global", "in_helpers", "short_circuit")], ids=lambda v: getattr(v, "__name__", ""))
def test_second_derivative(f, args):
    def slope(x, *rest):
        return np.sum(gs.grad(f)(x, *rest) * np.cos(x))

    def plain(x, *rest):
        return float(np.sum(gs.grad(f)(x, *rest) * np.cos(x)))
    _, after = called(f, args)
    gradient, then = called(gs.grad(slope), args)
    assert then == after
    np.testing.assert_allclose(gradient, differences(plain, args), rtol=2e-5, atol=2e-6)


def test_pullback_draws_the_same_numbers_at_each_call():
    def f(x, rng):
        return x ** 2 * rng.normal(size=3)
    rng, same = N(), N()
    y, pull = gs.vjp(f, S, rng)
    np.testing.assert_array_equal(y, f(S, same))
    assert state(rng) == state(same)
    for _ in range(2):
        np.testing.assert_allclose(pull(np.ones(3))[0], 2 * y / S)
    assert state(rng) == state(same)
    y, push = gs.linearize(f, S, N())
    for _ in range(2):
        np.testing.assert_allclose(push(np.ones(3), N()), 2 * y / S)


def test_one_version_serves_all_generators():
    df = gs.grad(argument)
    first, second = df(X, np.random.default_rng(1)), df(X, np.random.default_rng(2))
    np.testing.assert_array_equal(first, np.random.default_rng(1).standard_normal(4))
    np.testing.assert_array_equal(second, np.random.default_rng(2).standard_normal(4))
    assert len(df._versions) == 1
    np.testing.assert_array_equal(df(X, R()), R().standard_normal(4))


def test_the_text_is_plain_numpy():
    def f(x, rng):
        noise = rng.standard_normal(4)
        return np.sum(x * noise)
    assert "    noise = rng.standard_normal(4)\n" in gs.grad(f).source_for(X, N())
    assert "import numpy as np\n" in gs.grad(f).source_for(X, N())
    assert gs.grad(f).source_for(X, N()).count("import") == 1


def test_tangent_of_a_generator_is_not_read():
    value, tangent = gs.jvp(argument, (X, N()), (np.ones(4), None))
    np.testing.assert_allclose(tangent, np.sum(N().standard_normal(4)))
    np.testing.assert_allclose(value, np.sum(X * N().standard_normal(4)))


def test_a_pullback_that_would_draw_other_numbers_is_refused():
    for f in (from_outside, legacy_global, legacy_of_the_argument):
        with pytest.raises(gs.TransformError, match="would not give the numbers"):
            gs.vjp(f, X)
    _, pull = gs.vjp(made_inside, X)
    np.testing.assert_array_equal(pull(1.0)[0], gs.grad(made_inside)(X))


# compiled

def compiled_draws(x, rng):
    n = len(x)
    a = rng.standard_normal() + rng.random() * rng.integers(5) + rng.integers(2, 9)
    b = rng.normal(0.5, 2.0, size=x.shape) * rng.random((n,)) + rng.uniform(-1, 1, n)
    c = rng.poisson(3.0, n) + rng.binomial(5, 0.3, size=(3, n)).sum(axis=0) + rng.geometric(0.3, n)
    rng.exponential(size=7)
    order = rng.permutation(n)
    d = rng.weibull(2.0, n) + rng.power(2.0, n) + rng.logistic(0.0, 2.0, n) + rng.triangular(0.0, 1.0, 3.0, n)
    d = d + rng.standard_cauchy(n) + rng.negative_binomial(5, 0.4, n) + rng.zipf(2.5, n) + rng.logseries(0.5, n)
    e = rng.random(4, dtype=np.float32) @ x + rng.standard_exponential() + rng.rayleigh(2.0) * rng.pareto(3.0)
    return np.sum(np.sin(x * a) * b * c + x[order] * np.arange(4) * d) + e


def compiled_loop(x, rng):
    order = np.arange(4)
    rng.shuffle(order)
    for _ in range(100):
        if rng.random() < 0.5:
            x = np.tanh(x) * rng.normal(1.0, 0.1, size=4)
        else:
            x = x + rng.random() * 0.1
    while rng.random() < 0.9:
        x = x * (1 + 0.1 * rng.laplace(size=4)) ** 2
    return np.sum(x[order] * np.arange(4))


@pytest.mark.parametrize("f", [compiled_draws, compiled_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937], ids=lambda b: b.__name__)
def test_compiled(f, bits):
    for plain in (f, gs.value_and_grad(f)):
        made = gs.jit(plain)
        for seed in range(5):
            mine, theirs = (np.random.Generator(bits(seed)) for _ in range(2))
            for a, b in zip(np.atleast_1d(plain(X, theirs)), np.atleast_1d(made(X, mine)), strict=True) \
                    if plain is f else zip(plain(X, theirs), made(X, mine), strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12)
            assert state(mine) == state(theirs)


def seeded_by_an_argument(x, k):
    bits = np.random.PCG64DXSM(k)
    k = k + 1
    rng = np.random.Generator(bits)
    for j in range(3):
        other = np.random.default_rng(k + j)
        x = x * rng.random(4) + other.normal()
    return np.sum(x ** 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f, more", [(made_inside, ()), (made_in_a_loop, ()),
                                     (optional_generator, ()), (seeded_by_an_argument, (4,))],
                         ids=lambda f: getattr(f, "__name__", ""))
def test_compiled_generators_that_the_function_makes(f, more):
    mapped = gs.vmap(f, in_axes=(0, *[None for _ in more]))
    for plain, x in [(f, X), (gs.grad(f), X), (mapped, np.stack([X, X[::-1]]))]:
        made = gs.jit(plain)
        for _ in range(3):
            np.testing.assert_allclose(made(x, *more), plain(x, *more), rtol=1e-12)


def test_compiled_gradient_of_parameters():
    def f(x, rng):
        y = x ** 2 + 0.1
        return np.sum(rng.normal(x, 2 * y) ** 2) + rng.exponential(y[0]) * rng.uniform(0.0, y[1]) + \
            np.sum(rng.permutation(x) * np.arange(4)) + np.sum(rng.lognormal(x, y))
    mine, theirs = N(), N()
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X, mine), gs.grad(f)(X, theirs), rtol=1e-12)
    assert state(mine) == state(theirs)


def test_compiled_with_a_generator_from_outside():
    def f(x):
        return np.sum(x * SHARED.random(4))
    seeded()
    made = gs.jit(gs.grad(f))
    first, second = made(X), made(X)
    seeded()
    np.testing.assert_array_equal([first, second], [SHARED.random(4), SHARED.random(4)])
