"""Elementary functions that stand beside loops get a loop of their own, where they go in vectors."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(8)


def kernels(x, y):
    t = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (x[i, k] - x[j, k]) ** 2
            t += y[i] * y[j] * np.exp(-0.1 * s)
    return t


def between_loops(x, y):
    """What comes after the function is a loop again, which needs what it gave and what was before."""
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        big = y[i] * 2.0
        for k in range(x.shape[1]):
            s += x[i, k] * big
        c = np.tanh(s) + big
        for k in range(x.shape[1]):
            out[i, k] = c * x[i, k] + big
    return np.sum(out * out)


def changed_afterwards(x, y):
    """The number is set again after the function has read it."""
    t = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s += x[i, k]
        t += np.sin(s)
        s = s * 0.5
        for k in range(x.shape[1]):
            t += s * x[i, k]
    return t * y[0]


def carried(x, y):
    """Each pass needs the function of the pass before."""
    t = 0.3
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s += x[i, k] * t
        t = np.cos(s) + y[i]
    return t


def in_place(x, y):
    """The loop reads what the function has written in the pass before."""
    z = y.copy()
    for i in range(1, x.shape[0]):
        s = 0.0
        for k in range(i):
            s += z[k]
        z[i] = np.sin(s) + x[i, 0]
    return np.sum(z * z)


def of_the_next(x, y):
    """Numbers that go with the loop: i + 1."""
    n = x.shape[0]
    t = 0.0
    for i in range(n - 1):
        after = i + 1
        s = y[after]
        for k in range(x.shape[1]):
            s += x[i, k] * x[after, k]
        t += np.log1p(s * s) * y[after]
    return t


ALL = [kernels, between_loops, changed_afterwards, carried, in_place, of_the_next]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", ALL)
def test_values(f, dtype):
    compiled, gradient = gs.jit(f), gs.jit(gs.grad(f, (0, 1)))
    for n, m in ((7, 12), (1, 3), (4, 1), (5, 0)):
        x, y = RNG.normal(size=(n, m)).astype(dtype), RNG.normal(size=n).astype(dtype)
        if f is in_place and m == 0:
            continue                    # it reads a column
        rtol = 300 * np.finfo(dtype).eps
        np.testing.assert_allclose(compiled(x, y), f(x, y), rtol=rtol)
        for found, expected in zip(gradient(x, y), gs.grad(f, (0, 1))(x, y), strict=True):
            atol = rtol * np.max(np.abs(expected), initial=1)
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize(("f", "apart"), [(kernels, True), (of_the_next, True), (carried, False), (in_place, False),
                                          (changed_afterwards, False)])
def test_where_they_are(f, apart):
    compiled = gs.jit(f)
    compiled(RNG.normal(size=(40, 12)), RNG.normal(size=40))
    assert ("_each" in compiled.lowered) == apart
