"""What is added to zeros is set, where nothing has been added before; values are compared with central differences."""
import numpy as np
import pytest

import gradscribe as gs

X = np.linspace(0.3, 1.4, 6)


def each(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) * s + x[i]
    return s


def each_twice(x):
    s = 0.0
    for _ in range(2):
        for i in range(len(x)):
            s += np.sin(x[i]) * s + x[i]
    return s


def neighbours(x):
    s = 0.0
    for i in range(1, len(x)):
        s += x[i] * x[i - 1]
    return s


def ends(x):
    """The first and the last entry, which may be one."""
    return np.sin(x[0]) * x[-1]


def halves(x):
    return np.sin(x[:3]) @ x[3:6]


def crossing(x):
    return np.sin(x[:4]) @ x[2:6]


def by_a_rest(x):
    s = 1.0
    for i in range(9):
        s = s * 0.5 + x[i % 6] ** 2
    return s


def in_one_arm(x):
    s = 1.0
    for i in range(len(x)):
        if x[i] > 0.8:
            s *= x[i]
    return s + x[1]


def in_both_arms(x):
    s = 1.0
    for i in range(len(x)):
        if x[i] > 0.8:
            s *= x[i]
        else:
            s += x[i] ** 3
    return s


def every_other(x):
    s = 0.0
    for i in range(0, len(x) - 1, 2):
        s += x[i] * np.exp(x[i + 1])
    return s


def until(x):
    s, k = 0.0, 0
    while s < 2.0:
        s += x[k] ** 2
        k += 1
    return s


def from_the_end(x):
    s = 0.0
    for i in range(len(x)):
        s += x[-i] * np.cos(s)
    return s


def filled_by_index(x):
    k = np.array([1, 3, 3, 0])
    return np.sum(np.sin(x[k]))


def filled_by_mask(x):
    return np.sum(np.sin(x[x > 0.6]))


def called(x):
    return each(x[1:]) * each(x[:2])


# (program, how many sums into the argument's adjoint are left as sums)
PROGRAMS = [(each, 0), (each_twice, 1), (neighbours, 1), (ends, 1), (halves, 0), (crossing, 1), (by_a_rest, 1),
            (in_one_arm, 1), (in_both_arms, 0), (every_other, 0), (until, 0), (from_the_end, 1),
            (filled_by_index, None), (filled_by_mask, None), (called, None)]


def differences(f, x, h=1e-6):
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(x.size)])


@pytest.mark.parametrize("f, sums", PROGRAMS)
def test_values(f, sums):
    want = differences(f, X)
    np.testing.assert_allclose(gs.grad(f)(X), want, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(np.stack([X, X]))[1], want, rtol=1e-7, atol=1e-9)
    assert gs.grad(f)(X.astype(np.float32)).dtype == np.float32
    v = np.cos(np.arange(6.0))
    bent = (gs.grad(f)(X + 1e-6 * v) - gs.grad(f)(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(gs.grad(lambda x: gs.grad(f)(x) @ v)(X), bent, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gs.jvp(gs.grad(f), (X,), (v,))[1], bent, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f, sums", [p for p in PROGRAMS if p[1] is not None])
def test_text(f, sums):
    lines = gs.grad(f).source_for(X).splitlines()
    assert sum(line.strip().startswith("dx[") and (" += " in line or " -= " in line) for line in lines) == sums


@pytest.mark.slow
@pytest.mark.parametrize("f, sums", PROGRAMS)
def test_compiled(f, sums):
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), gs.grad(f)(X), rtol=1e-12)


def test_negative_zeros_and_infinities():
    def f(x):
        return np.sum(x[1:3] * np.array([-0.0, np.inf])) + x[0] * 0.0

    got = gs.grad(f)(np.ones(4))
    np.testing.assert_array_equal(got, [0.0, 0.0, np.inf, 0.0])


def test_the_users_own_sums_stay():
    def f(x):
        y = np.zeros(3)
        for i in range(3):
            y[i] += x[i] ** 2
        return y

    assert "y[i] += x[i] ** 2" in gs.grad(lambda x: np.sum(np.sin(f(x)))).source_for(X)
