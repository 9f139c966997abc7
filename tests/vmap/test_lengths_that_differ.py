"""Lengths that only an example knows: entries that a mask picks, lists that tests make longer, np.arange(n).

They were taken to be the same for all examples: results beside the arrays had the last example's.
"""
import numpy as np
import pytest

import gradscribe as gs

X = np.random.default_rng(1).standard_normal((4, 3))
K = np.array([1, 3, 0, 2])


def picked(x, n):
    p = x[x > 0]
    return p.sum(), p.size


def list_made_longer(x, n):
    items = []
    while len(items) < n:
        items.append(x[len(items)])
    return len(items) * 2, sum(items)


def made_of_a_number(x, n):
    return np.arange(n).size, len(range(n)), len(np.zeros(n))


def places(x, n):
    i = np.where(x > 0)[0]
    return (i[0] if len(i) else -1), len(i)


def in_a_dict(x, n):
    items = [v for v in x if v > 0]
    return {"n": len(items), "sum": sum(items)}


def decided_by_a_length(x, n):
    items = [v for v in x if v > 0]
    return (1.0 if len(items) > 1 else 0.0), x * 2


def counted(x, n):
    p, w = x[x > 0], 0.0
    for _ in range(p.size):
        w += 1.0
    return np.zeros(2) + len(p), w


def the_same_for_all(x, n):
    items = []
    for v in x:
        items.append(v * 2)
    return len(items), np.array(items), (x * np.ones((2, 1))).size


def parts(value):
    return list(value.values()) if isinstance(value, dict) else list(value)


@pytest.mark.parametrize("f", [picked, list_made_longer, made_of_a_number, places, in_a_dict, decided_by_a_length,
                               counted, the_same_for_all])
def test_lengths(f):
    found, wanted = parts(gs.vmap(f)(X, K)), [parts(f(x, n)) for x, n in zip(X, K)]
    for k, values in enumerate(found):
        np.testing.assert_allclose(values, [w[k] for w in wanted], rtol=1e-14)


def test_lists_that_all_examples_make_alike_stay_one():
    assert "np.moveaxis" in gs.vmap(the_same_for_all).source_for(X, K)


@pytest.mark.slow
@pytest.mark.parametrize("f", [picked, decided_by_a_length])
def test_compiled(f):
    for one, other in zip(gs.jit(gs.vmap(f))(X, K), gs.vmap(f)(X, K)):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_no_examples():
    total, size = gs.vmap(lambda x: (x[x > 0].sum(), x[x > 0].size))(X[:0])
    assert total.shape == size.shape == (0,)


def test_beside_a_derivative_and_over_the_axis():
    def f(x):
        return (x ** 3).sum(), len(x[x > 0])

    aux = gs.vmap(gs.value_and_grad(f, has_aux=True))(X)[0][1]
    assert aux.tolist() == (X > 0).sum(axis=1).tolist()
    total = gs.vmap(lambda x: gs.lax.psum(x[x > 0].size, "i"), axis_name="i")(X)
    assert total.tolist() == [(X > 0).sum()] * 4


# -- whole numbers of the examples ---------------------------------------------------------------------------

LENGTHS = np.array([2, 4, 1, 3])


@pytest.mark.parametrize("f", [
    lambda x, n: np.linspace(x[0], 2, n).sum(), lambda x, n: np.repeat(x, n).sum(),
    lambda x, n: np.ones((n, 2)).sum() * x[0], lambda x, n: np.tile(x, (2, n)).sum(),
    lambda x, n: np.identity(n).sum() + x[0], lambda x, n: x[n % 3] * 2, lambda x, n: np.roll(x, n)[0],
], ids=["linspace", "repeat", "ones", "tile", "identity", "index", "roll"])
def test_a_number_that_is_a_length(f):
    np.testing.assert_allclose(gs.vmap(f)(X, LENGTHS), [f(x, n) for x, n in zip(X, LENGTHS)], rtol=1e-13)


def test_a_range_beside_an_array():
    def f(x, n):
        s = 0.0
        for _, a in zip(range(n), x):
            s += a * a
        return s

    def turned(x, n):
        s = 0.0
        for a, b in zip(x, range(n)):
            s += a * b
        return s

    def triangle(m):
        s = 0.0
        for i in range(len(m)):
            for _, a in zip(range(i), m[i]):
                s += a * a
        return s

    for g in (f, turned):
        np.testing.assert_allclose(gs.vmap(g)(X, K), [g(x, n) for x, n in zip(X, K)], rtol=1e-14)
    x = np.arange(1.0, 6.0)
    value, dot = gs.jvp(f, (x, 3), (x, 0))
    assert value == 14.0 and dot == 28.0
    assert gs.jvp(triangle, (X,), (X,))[0] == triangle(X)
    np.testing.assert_allclose(gs.vmap(triangle)(np.stack([X, 2 * X])), [triangle(X), triangle(2 * X)], rtol=1e-14)


def test_a_negative_zero_that_meets_the_batch():
    def f(x):
        s = -0.0
        for v in x:
            s = s * v
        return np.copysign(1.0, s)

    assert gs.vmap(f)(np.abs(X)).tolist() == [f(x) for x in np.abs(X)]
