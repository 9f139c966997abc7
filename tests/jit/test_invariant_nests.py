"""Arrays that every pass of a loop makes alike are made before it; those that change, or may not be there, are not."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(5)
K = RNG.standard_normal((4, 4))
V = RNG.standard_normal(4)


def balanced(k, v, steps):
    """A table that the user makes in every step."""
    for _ in range(steps):
        a = np.zeros((4, 4))
        for i in range(4):
            for j in range(4):
                a[i, j] = np.exp(-k[i, j] * k[i, j])
        v = a @ v / np.sum(v)
    return np.sum(v * v)


def deeper(k, v, steps):
    """Out of two loops."""
    s = 0.0
    for t in range(steps):
        for u in range(3):
            a = np.zeros(4)
            for i in range(4):
                a[i] = np.sin(k[i, 0]) * 2.0
            s += np.sum((a @ k) * v) * (t + u)
    return s


def changing(k, v, steps):
    """The table is of what the loop writes, by another name."""
    k = k.copy()
    m = k
    for _ in range(steps):
        a = np.zeros((4, 4))
        for i in range(4):
            for j in range(4):
                a[i, j] = np.exp(-k[i, j] * k[i, j])
        v = a @ v / np.sum(v)
        m[0, 1] += 0.25
    return np.sum(v * v)


def written_twice(k, v, steps):
    """What the nest has filled is changed afterwards."""
    s = 0.0
    for t in range(steps):
        a = np.zeros(4)
        for i in range(4):
            a[i] = np.cos(k[i, 0])
        s += np.sum((a @ k) * v)
        a[t % 4] = 7.0
        s += np.sum((a @ k) * v)
    return s


def carried(k, v, steps):
    """The array of the pass before, by another name."""
    old = np.ones(4)
    s = 0.0
    for t in range(steps):
        a = np.zeros(4)
        for i in range(4):
            a[i] = np.cos(k[i, 0])
        s += np.sum((old @ k) * v) * (t + 1) + np.sum(a @ k)
        old = a
    return s


def left(k, v, steps):
    """A loop that may end before the nest."""
    s = 0.0
    t = 0
    while t < 5:
        t += 1
        if t > steps:
            break
        a = np.zeros(4)
        for i in range(4):
            a[i] = np.exp(k[i, 0])
        s += np.sum((a @ k) * v) * t
    return s


def number_of_the_loop(k, v, steps):
    s = 0.0
    for t in range(steps):
        a = np.zeros(4)
        for i in range(4):
            a[i] = np.exp(0.1 * t * k[i, 0])
        s += np.sum((a @ k) * v)
    return s


def beyond(k, v, steps):
    """The nest reads what is there only if the loop has a pass."""
    s = 0.0
    for _ in range(steps - 9):
        a = np.zeros(4)
        for i in range(4):
            a[i] = k[i + steps, 0]
        s += np.sum((a @ k) * v)
    return s


def of_a_length(k, v, steps):
    """No pass, and no array of such a length."""
    s = 0.0
    for _ in range(steps - 1):
        a = np.zeros(steps - 2)
        for i in range(steps - 2):
            a[i] = np.exp(v[i])
        s += np.sum(a * 2.0) + np.sum(a @ a)
    return s


def read_before(k, v, steps):
    """What the array was made with is read before the nest fills it."""
    s = 0.0
    for t in range(steps):
        a = np.zeros(4)
        s += a[0] * 5 + a[1] + 1.0
        for i in range(4):
            a[i] = np.exp(k[i, 0])
        s += np.sum((a @ k) * v) * (t + 1)
    return s


def in_fixed_passes(k, v, steps):
    """The same in a loop that surely has passes."""
    return read_before(k, v, 3) * steps


ALL = [read_before, in_fixed_passes, balanced,
       deeper, changing, written_twice, carried, left, number_of_the_loop, beyond, of_a_length]


@pytest.mark.parametrize("f", ALL)
def test_values(f):
    compiled, gradient = gs.jit(f), gs.jit(gs.grad(f, (0, 1)))
    for steps in (3, 1, 0) if f is not of_a_length else (4, 3, 2):
        assert compiled(K, V, steps) == pytest.approx(f(K, V, steps), rel=1e-12)
        for found, expected in zip(gradient(K, V, steps), gs.grad(f, (0, 1))(K, V, steps), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_no_array_of_a_length_that_is_none():
    for steps in (1, 0):
        assert gs.jit(of_a_length)(K, V, steps) == of_a_length(K, V, steps) == 0.0


@pytest.mark.parametrize(("f", "before"), [(balanced, True), (deeper, True), (carried, True), (
    changing, False), (written_twice, False), (number_of_the_loop, False)])
def test_where_it_is(f, before):
    compiled = gs.jit(f)
    compiled(K, V, 3)
    lines = compiled.lowered.splitlines()
    word = {deeper: "sin(", changing: "exp(", balanced: "exp(", number_of_the_loop: "exp("}.get(f, "cos(")
    nest = next(k for k, line in enumerate(lines) if word in line)
    loop = next(k for k, line in enumerate(lines) if "range(steps)" in line or "while" in line)
    assert (nest < loop) == before
