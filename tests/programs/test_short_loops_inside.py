"""Loops of a few passes, another number in each pass of the loop around: one store has room for all of them."""
import numpy as np
import pytest

import gradscribe as gs

X = np.linspace(0.3, 1.4, 7)


def de_boor(x):
    d, loss = np.zeros(4), 0.0
    for i in range(len(x)):
        for j in range(4):
            d[j] = np.sin(x[i] + j)
        for r in range(1, 4):
            for j in range(3, r - 1, -1):
                a = x[i] / (1.0 + j + r)
                d[j] = (1.0 - a) * d[j - 1] + a * d[j]
        loss += d[3] ** 2
    return loss


def none_of_them(x):
    """The innermost loop has no pass at first."""
    s = 1.0
    for i in range(len(x)):
        for r in range(3):
            for j in range(r):
                s = np.sin(s * x[i] + j)
    return s


def in_an_arm(x):
    s = 1.0
    for i in range(len(x)):
        if x[i] > 0.6:
            for r in range(2):
                for j in range(r, 3):
                    s = np.sin(s * x[i] + j) + r
        else:
            s = s * x[i]
    return s


def rows(x):
    v, total = np.ones(3), 0.0
    for i in range(len(x)):
        for r in range(3):
            for j in range(r, 3):
                v = np.sin(v * x[i]) + v[j]
        total += v @ v
    return total


def until(x):
    """A while loop around: its passes are not known, those inside are few."""
    s, k = 1.0, 0
    while k < len(x):
        for j in range(k % 3):
            s = np.sin(s + x[k] * j)
        k += 1
    return s


def by_an_argument(x, n=4):
    s = 1.0
    for i in range(len(x)):
        for r in range(n):
            for j in range(r, n):
                s = np.sin(s * x[i] + j)
    return s


def four_deep(x):
    s = 1.0
    for i in range(len(x) - 1):
        for p in range(2):
            for q in range(p, 2):
                for r in range(q, 3):
                    s = np.cos(s * x[i]) + r * p * x[i + 1]
    return s


PROGRAMS = [de_boor, none_of_them, in_an_arm, rows, until, by_an_argument, four_deep]


def differences(f, x, h=1e-6):
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(x.size)])


@pytest.mark.parametrize("f", PROGRAMS)
def test_values(f):
    want = differences(f, X)
    np.testing.assert_allclose(gs.grad(f)(X), want, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.grad(f)(X[:0]), [])
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(np.stack([X, X]))[1], want, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.grad(gs.checkpoint(f))(X), want, rtol=1e-7, atol=1e-8)
    assert gs.grad(f)(X.astype(np.float32)).dtype == np.float32
    v = np.cos(np.arange(7.0))
    bent = (gs.grad(f)(X + 1e-6 * v) - gs.grad(f)(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(gs.jvp(gs.grad(f), (X,), (v,))[1], bent, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gs.grad(lambda x: gs.grad(f)(x) @ v)(X), bent, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), gs.grad(f)(X), rtol=1e-12)


@pytest.mark.parametrize("f", [de_boor, none_of_them, rows, four_deep])
def test_one_store_and_no_list(f):
    source = gs.grad(f).source_for(X)
    assert ".append(" not in source and "_saved = np.empty((" in source


def differences_of_neighbours(x):
    """What is saved is one shorter, or two, than the argument."""
    s = 0.0
    for _ in range(3):
        d = x[1:] - x[:-1]
        bend = np.exp(-d[1:] * d[:-1])
        length = np.sqrt(np.cumsum(d * d) + 1.0)
        s = s + np.sum(length * np.sin(s * length)) + np.sum(bend ** 2)
        x = x * 0.9 + s * 0.01
    return s


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_what_is_shorter_than_an_argument_has_a_store(n):
    x = X[:1].repeat(n) + np.linspace(0.0, 0.5, n) ** 2
    want = differences(differences_of_neighbours, x)
    df = gs.grad(differences_of_neighbours)
    np.testing.assert_allclose(df(x), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gs.jit(df)(x), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gs.vmap(df)(np.stack([x, x]))[1], want, rtol=1e-6, atol=1e-8)
    assert ".append(" not in df.source_for(x)
