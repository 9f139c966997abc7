"""gs.jit(f, parallel=True): the same numbers, by several threads where there is enough to do."""
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(0)


def prices(x, y):
    return np.sum(np.exp(-x * y) * np.log(1.0 + x * x))


def rows(x):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        z = x[i] - np.mean(x[i])
        out[i] = z / np.sqrt(np.mean(z * z))
    return out


def escapes(c, limit):
    """A while loop for each entry."""
    out = np.zeros(c.shape[0])
    for k in range(c.shape[0]):
        z, count = 0.0, 0.0
        while abs(z) < 2.0 and count < limit:
            z = z * z + c[k]
            count += 1.0
        out[k] = count
    return out


def recurrence(x):
    for i in range(1, x.shape[0]):
        x[i] += 0.5 * x[i - 1]
    return x


def gathered(x, where):
    out = np.zeros(where.shape[0])
    for i in range(where.shape[0]):
        out[i] = x[where[i]]
    return out


CASES = {
    "prices": (prices, lambda n: (rng.random(n), rng.random(n)), True),
    "gradient": (gs.value_and_grad(prices, (0, 1)), lambda n: (rng.random(n), rng.random(n)), True),
    "rows": (rows, lambda n: (rng.normal(size=(n // 100 + 1, 100)),), True),
    "escapes": (escapes, lambda n: (rng.uniform(-2, 1, n), 50.0), True),
    "recurrence": (recurrence, lambda n: (rng.random(n),), False),
    "gathered": (gathered, lambda n: (rng.random(n), rng.integers(0, n, n)), False),
}


def leaves(tree):
    return [x for t in tree for x in leaves(t)] if isinstance(tree, tuple) else [np.asarray(tree)]


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_values(name):
    f, given, spreads = CASES[name]
    fast = gs.jit(f, parallel=True)
    for n in (100, 100_000):
        args = given(n)
        want = f(*[np.copy(a) for a in args])
        for a, b in zip(leaves(fast(*[np.copy(a) for a in args])), leaves(want)):
            np.testing.assert_allclose(a, b, rtol=1e-9)
    assert ("prange(" in fast.lowered) == spreads


@pytest.mark.slow
def test_what_is_raised_is_not_lost():
    fast = gs.jit(gathered, parallel=True)
    with pytest.raises(IndexError):
        fast(np.ones(3), np.full(100_000, 7))


@pytest.mark.slow
def test_sums_stay_on_one_core_without_fast_mathematics():
    f = gs.jit(gs.value_and_grad(prices, (0, 1)), parallel=True, fastmath=False)
    x, y = rng.random((2, 50_000))
    first = f(x, y)
    assert all(f(x, y)[0] == first[0] for _ in range(5))
    total = f.lowered.index("+=")
    assert "prange(" not in f.lowered[:total].rsplit("for", 1)[-1]
