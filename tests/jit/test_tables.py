"""What passes of an outer loop compute again is computed once; what changes, or may not be there, is not."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(0)


def over_time(u, k, steps):
    v = u.copy()
    n = v.shape[0]
    for t in range(steps):
        for i in range(1, n - 1):
            v[i] = v[i] + 0.1 * np.exp(0.1 * k[i]) * (u[i - 1] + u[i + 1] - 2 * v[i]) + 0.01 * t
    return np.sum(v * v)


def changing(u, k, steps):
    """The coefficient changes in time, and so does an array that is written by another name."""
    v, c = u.copy(), k.copy()
    d = c
    for _t in range(steps):
        for i in range(v.shape[0]):
            v[i] += np.exp(0.1 * c[i])
        d[0] = d[0] * 0.5
    return np.sum(v * v)


def mixture(x, m, s):
    n, d, c = x.shape[0], x.shape[1], m.shape[0]
    total = 0.0
    for i in range(n):
        for k in range(c):
            q = 0.0
            for j in range(d):
                rate = -s[k, j]
                z = (x[i, j] - m[k, j]) * np.exp(rate)
                q += z * z
            total += np.exp(-0.5 * q)
    return total


def beyond_the_end(u, k, steps):
    """With no step, nothing is read, and k may be shorter."""
    v = u.copy()
    for _t in range(steps):
        for i in range(v.shape[0]):
            v[i] += np.log(k[i + 1])
    return np.sum(v * v)


def sometimes(u, k, steps):
    v = u.copy()
    for t in range(steps):
        for i in range(v.shape[0]):
            if k[i] > 0.5 + 0.01 * t:
                v[i] += np.log(k[i])
    return np.sum(v * v)


def two_names(u, k, steps):
    """A number that has another value in another loop."""
    v = u.copy()
    for i in range(v.shape[0]):
        c = 0.5 * k[i]
        v[i] += c
    for _t in range(steps):
        for i in range(v.shape[0]):
            c = 0.1 * k[i]
            v[i] += np.sin(c)
            c = 2.0 * c
            v[i] += np.sin(c)
    return np.sum(v * v)


@pytest.mark.parametrize("f", [over_time, changing, sometimes, two_names])
@pytest.mark.parametrize("n, steps", [(12, 5), (1, 3), (0, 2), (9, 0), (30, 17)])
def test_programs(f, n, steps):
    if f is changing and n == 0:
        return
    u, k = RNG.normal(size=n), RNG.uniform(0.1, 1.0, n)
    assert gs.jit(f)(u, k, steps) == pytest.approx(f(u, k, steps), rel=1e-12)
    for a, b in zip(gs.jit(gs.grad(f, (0, 1)))(u, k, steps), gs.grad(f, (0, 1))(u, k, steps)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n, c, d", [(20, 4, 3), (12, 9, 10), (0, 2, 2), (3, 1, 1)])
def test_tables_of_two_axes(n, c, d):
    args = RNG.normal(size=(n, d)), RNG.normal(size=(c, d)), RNG.normal(size=(c, d))
    assert gs.jit(mixture)(*args) == pytest.approx(mixture(*args), rel=1e-12)
    for a, b in zip(gs.jit(gs.grad(mixture, (0, 1, 2)))(*args), gs.grad(mixture, (0, 1, 2))(*args)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_entries_that_are_not_there():
    u, k = RNG.normal(size=10), RNG.uniform(0.1, 1.0, 11)
    compiled = gs.jit(beyond_the_end)
    for steps in (3, 0):
        assert compiled(u, k, steps) == pytest.approx(beyond_the_end(u, k, steps), rel=1e-12)
    assert compiled(u, k[:4], 0) == pytest.approx(np.sum(u * u), rel=1e-12)
    with pytest.raises(IndexError):
        compiled(u, k[:4], 2)


def test_once_for_all():
    compiled = gs.jit(over_time)
    compiled(RNG.normal(size=20), RNG.uniform(0.1, 1.0, 20), 7)
    before, after = compiled.lowered.split("for t in range(", 1)
    assert "exp(" in before and "exp(" not in after, compiled.lowered
