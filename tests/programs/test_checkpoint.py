"""Checkpoints: the same gradients to the bit, from fewer stored states."""
import re

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.9, 0.5, 0.7])
ROWS = np.linspace(-1, 1, 33).reshape(11, 3)


def decay(x, n):
    for _ in range(n):
        x = x - 0.01 * np.sin(x) * x
    return np.sum(x * x)


def over_rows(x, rows):
    h = x
    for i, row in enumerate(rows):
        h = np.tanh(h * row + 0.1 * i)
    return np.sum(h)


def over_a_range(x, n):
    t = 0.0
    for k in range(1, n, 2):
        t = t + np.sum(np.sin(x * k)) ** 2
    return t


def until_small(x):
    n = 0
    while np.sum(x) > 0.5 and n < 50:
        x = x * 0.97 - 0.01 * x * x
        n += 1
    return np.sum(x) * n


def left_early(x, n):
    t = 0.0
    for k in range(n):
        if t > 3:
            break
        t = t + np.sum(np.sin(x * k)) ** 2
    return t


def written(x, n):
    y = x * 1.0
    for k in range(n):
        y[k % 3] = y[k % 3] * np.sin(y[(k + 1) % 3])
    return np.sum(y)


def nested(x, n):
    for _ in range(n):
        for j in range(n):
            x = x - 0.01 * np.cos(x * j)
    return np.sum(x * x)


def with_branches(x, n):
    t = 0.0
    for k in range(n):
        if np.sum(x) > 1.5:
            x = x * 0.9
            last = x[0]
        else:
            x = x * 1.1 + 0.01 * k
            last = x[1] * t
        t = t + last
    return t


def drawn(x, n):
    rng = np.random.default_rng(3)
    for _ in range(n):
        x = x * rng.random()
    return np.sum(x)


def widened(x, n):
    for _ in range(n):                  # float32 in the first pass, float64 after it
        z = np.cumsum(np.cumsum(np.cumsum(x)))
        x = np.tanh(z * z * np.linspace(1.0, 2.0, 3))
    return np.sum(x * x)


def widened_inside(x, n):
    while n > 0:
        for _ in range(6):
            x = np.exp(-np.sin(x) * x) * np.float64(0.9)
        n -= 1
    return np.sum(x * x)


def one_or_the_other(x, n):
    wide, h = np.cos(x) * np.linspace(1.0, 2.0, 3), x
    for k in range(n):
        h = np.sin(h) * (x if k % 3 else wide)
    return np.sum(h)


CASES = [(decay, (X, n)) for n in (0, 1, 4, 5, 37, 100)] + [
    (over_rows, (X, ROWS)), (over_rows, (X, ROWS[:0])), (over_a_range, (X, 30)), (until_small, (X,)),
    (until_small, (X * 0.0,)), (left_early, (X, 30)), (written, (X, 17)), (nested, (X, 7)), (with_branches, (X, 23)),
    (drawn, (X, 9)), (decay, (X.astype(np.float32), 20))] + [
    (f, (X.astype(np.float32), n)) for f in (widened, widened_inside, one_or_the_other) for n in (0, 1, 5, 11)]
NAMES = [f"{f.__name__}-{k}" for k, (f, _) in enumerate(CASES)]


@pytest.mark.parametrize("policy", ["all", "loops"])
@pytest.mark.parametrize("f, args", CASES, ids=NAMES)
def test_same_to_the_bit(f, args, policy):
    got, want = gs.grad(gs.checkpoint(f, policy=policy))(*args), gs.grad(f)(*args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.slow
@pytest.mark.parametrize("f, args", [c for c in CASES if c[0] is not drawn], ids=[
    n for n in NAMES if not n.startswith("drawn")])
def test_compiled(f, args):
    np.testing.assert_allclose(gs.jit(gs.grad(gs.checkpoint(f)))(*args), gs.grad(f)(*args), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("f, args", [(decay, (X, 37)), (until_small, (X,)), (with_branches, (X, 12))])
def test_second_derivatives(f, args):
    v = np.array([0.3, -0.7, 0.2])

    def dotted(g):
        return lambda x: np.sum(g(x, *args[1:]) * v)

    want = gs.grad(dotted(gs.grad(f)))(X)
    np.testing.assert_allclose(gs.grad(dotted(gs.grad(gs.checkpoint(f))))(X), want, rtol=1e-12)
    c = gs.checkpoint(f)
    np.testing.assert_allclose(gs.hvp(lambda x: c(x, *args[1:]), (X,), (v,)), want, rtol=1e-9)


def test_a_step_is_computed_again_from_what_it_is_given():
    @gs.checkpoint
    def step(h, w):
        z = np.cumsum(np.cumsum(np.cumsum(h)))
        return np.tanh(z * z * w)

    def run(h, w, n):
        for _ in range(n):
            h = step(h, w)
        return np.sum(h)

    def plain(h, w, n):
        for _ in range(n):
            z = np.cumsum(np.cumsum(np.cumsum(h)))
            h = np.tanh(z * z * w)
        return np.sum(h)

    def stores(f):
        return re.findall(r"^ +(\w+_saved) = np.empty", gs.grad(f, 1).source_for(X, X, 9), re.MULTILINE)

    np.testing.assert_array_equal(gs.grad(run, 1)(X, X, 9), gs.grad(plain, 1)(X, X, 9))
    assert stores(run) == ["h_saved"]
    assert stores(plain) == ["z_saved"]         # three operations in a row cost more than a store


def test_what_is_stored():
    source = gs.grad(gs.checkpoint(decay)).source_for(X, 100)
    assert re.findall(r"(\w+) = np.empty\((.*)\)", source) == [
        ("x_saved", "(segments, x.shape[0])"), ("x_saved_1", "(size, x.shape[0])")]


def test_inside_a_function_that_is_read():
    def f(x):
        return np.sum(gs.checkpoint(lambda y: decay(y, 11), policy="loops")(x) * x)

    def plain(x):
        return np.sum(decay(x, 11) * x)

    np.testing.assert_array_equal(gs.grad(f)(X), gs.grad(plain)(X))


def test_calls_and_methods():
    assert gs.checkpoint(decay)(X, 3) == decay(X, 3)
    assert gs.checkpoint(policy="loops")(decay)(X, 3) == decay(X, 3)
    assert gs.checkpoint(decay).__name__ == "decay"
    with pytest.raises(gs.KindError, match="policy must be one of"):
        gs.checkpoint(decay, policy="some")


def test_printing_is_done_once(capsys):
    @gs.checkpoint
    def told(x):
        for k in range(6):
            print("pass", k)
            x = x * x
        return np.sum(x)

    gs.grad(told)(X)
    assert capsys.readouterr().out.count("pass") == 6


def test_a_list_that_a_loop_further_in_writes():
    def sorted_by_insertion(x):
        y = list(x)
        for i in range(1, len(y)):
            key = y[i]
            j = i - 1
            while j >= 0 and y[j] > key:
                y[j + 1] = y[j]
                j -= 1
            y[j + 1] = key
        return sum(i * v * v for i, v in enumerate(y))

    x = np.array([0.5, 0.1, 0.9, 0.3])
    np.testing.assert_array_equal(gs.grad(gs.checkpoint(sorted_by_insertion))(x), gs.grad(sorted_by_insertion)(x))
