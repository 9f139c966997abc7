"""What compiled code decides is what NumPy decides: arithmetic that a comparison or a rounding reads is exact.

The numbers are multiples of a tenth, a seventh and the like, for which the two sides of a comparison are equal, or
differ in the last bit, again and again.  Decisions are compared to the last one, not within a tolerance.
"""
import linecache
import random

import numpy as np
import pytest

import gradscribe as gs


def grids(seed, n=400):
    """Two arrays, a number and a whole number, of which sums and products hit ties."""
    r = np.random.default_rng(seed)
    kinds = [r.integers(-30, 30, n) / 10, r.integers(1, 30, n) * 0.1, r.integers(1, 20, n) / 7,
             r.integers(-9, 9, n) * 0.3, r.integers(1, 12, n) / r.integers(1, 12, n)]
    x, y = (kinds[k] for k in r.integers(len(kinds), size=2))
    return x, np.where(y == 0, 0.1, y), float(r.choice([0.1, 0.3, 1.1, 0.7, 1 / 3])), int(r.integers(2, 9))


DECISIONS = {
    "product and sum": lambda x, y, s, n: x * y + s < y * s + x,
    "quotient": lambda x, y, s, n: x < y * n / 3.0,
    "quotient by a number": lambda x, y, s, n: x / s <= y / n,
    "negated": lambda x, y, s, n: np.floor(-(x * n / n) * 10),
    "product of quotients": lambda x, y, s, n: x / n * n == x,
    "product back": lambda x, y, s, n: (x / s) * s == x,
    "difference": lambda x, y, s, n: np.sign(x * y - y * x * s / s),
    "floor": lambda x, y, s, n: np.floor(x / s),
    "ceil": lambda x, y, s, n: np.ceil(x * n / 3.0),
    "trunc": lambda x, y, s, n: np.trunc((x + y) / s),
    "round": lambda x, y, s, n: np.round(x * y * 5.0),
    "floor division": lambda x, y, s, n: (x * y) // s,
    "long quotients": lambda x, y, s, n: y // (x * 1e-17 + 1e-19),
    "remainder": lambda x, y, s, n: (x + s) % y < s,
    "whole": lambda x, y, s, n: (x * n / s).astype(np.int64),
    "largest": lambda x, y, s, n: np.argmax(x * y + s),
    "smallest": lambda x, y, s, n: np.argmin(x / s - y / s),
    "order": lambda x, y, s, n: np.argsort(x * s + y, kind="stable"),
    "equal to the largest": lambda x, y, s, n: np.nonzero(x / s + y == np.max(x / s + y))[0],
    "where": lambda x, y, s, n: np.where(np.where(x > s, x * y + s, y / s) > x * y + s, 1, 0),
    "clip": lambda x, y, s, n: np.clip(x * y + s, y / s, 3.0) == y / s,
    "places": lambda x, y, s, n: np.searchsorted(np.sort(x * s), y * s),
    "squares": lambda x, y, s, n: x**2 * s + y < abs(x) * x * s + y,
    "square root": lambda x, y, s, n: np.sqrt(x * x + y * y) <= abs(x) + s / n,
    "finite": lambda x, y, s, n: np.isfinite((x - x) / (y - y) - s),
    "a mask of parts": lambda x, y, s, n: np.array([np.sum(x < np.max(x) * (i + 1) / n) for i in range(2)]),
}


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays(name):
    compiled = gs.jit(DECISIONS[name])
    for seed in range(30):
        given = grids(seed)
        np.testing.assert_array_equal(compiled(*given), DECISIONS[name](*given))


def in_steps(x, y, s, n):
    passes = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        t, k = 0.0, 0
        while t < abs(x[i]) + s:
            t = t + 0.1
            k += 1
        passes[i] = k
    return passes


def to_a_root(x, y, s, n):
    passes = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        a = x[i] * x[i] + s
        r, k = a, 0
        while abs(r * r - a) > 1e-15 and k < 50:
            r = 0.5 * (r + a / r)
            k += 1
        passes[i] = k
    return passes


def by_halves(x, y, s, n):
    passes = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        low, high, k = 0.0, abs(x[i]) + 1.0, 0
        while high - low > s * 1e-3:
            mid = 0.5 * (low + high)
            if mid * mid / n < y[i]:
                low = mid
            else:
                high = mid
            k += 1
        passes[i] = k + low
    return passes


def with_a_list(x, y, s, n):
    seen = []
    for i in range(x.shape[0]):
        seen.append(x[i] * s + y[i])
    count = 0
    for i in range(x.shape[0]):
        if seen[i] <= y[i] / n * n + x[i] / 10.0:
            count += 1
    return np.array(count)


def through_a_view(x, y, s, n):
    a = np.zeros((2, x.shape[0]))
    b = a[1]
    b[:] = x * s + y
    return a[1] < y + x / 10.0


@pytest.mark.parametrize("f", [in_steps, to_a_root, by_halves, with_a_list, through_a_view])
def test_loops(f):
    compiled = gs.jit(f)
    for seed in range(20):
        given = grids(seed, 60)
        np.testing.assert_array_equal(compiled(*given), f(*given))


def parts(x, r, n):
    m, total = r.max(), np.zeros(n)
    for i in range(n):
        total[i] = np.sum(x[r < m * (i + 1) / n])
    return total[n - 1]


def test_gradients():
    g, h = gs.grad(parts), gs.jit(gs.grad(parts))
    for seed in range(20):
        r = np.random.default_rng(seed).integers(1, 30, 40) * 0.1
        for n in (3, 5, 7):
            np.testing.assert_array_equal(h(np.ones(40), r, n), g(np.ones(40), r, n))


def expression(rng, depth, names):
    if not depth or rng.random() < 0.15:
        return rng.choice([*names, "0.1", "3.0", "0.7"])
    a, b = expression(rng, depth - 1, names), expression(rng, depth - 1, names)
    made = f"({a} {rng.choice('+-*/*/')} {b})"
    return rng.choice([made] * 12 + [f"abs({made})", f"-{made}", f"np.sqrt(abs({made}))", f"np.maximum({made}, x)",
                                     f"np.where({a} > {b}, {made}, y)", f"{made}**2"])


def program(seed, count=10):
    """Masks of random expressions, the values of two of which others share."""
    rng = random.Random(seed)
    names, lines = ["x", "y", "s", "n", "z", "w"], ["def f(x, y, s, n):", "    z = x * y - s", "    w = x / y"]
    for k in range(count):
        a, b = (f"{expression(rng, rng.choice([1, 2, 3]), names)} + 0.0 * x" for _ in range(2))
        test = rng.choice(["{a} < {b}", "{a} <= {b}", "({a}) // ({b})", "np.floor({a})", "{a} == {b}",
                           "np.argsort({a}, kind='stable')", "np.sign({a} - ({b}))"])
        lines.append(f"    c{k} = {test.format(a=a, b=b)}")
    text = "\n".join([*lines, f"    return {', '.join(f'c{k}' for k in range(count))}"]) + "\n"
    file, space = f"<decisions {seed}>", {"np": np}
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow if k > 1 else ()) for k in range(20)])
def test_random_programs(seed):
    f = program(seed)
    compiled = gs.jit(f)
    with np.errstate(all="ignore"):
        for k in range(10):
            given = grids(k)
            for found, wanted in zip(compiled(*given), f(*given)):
                np.testing.assert_array_equal(found, wanted)
