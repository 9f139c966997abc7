# SPDX-License-Identifier: Apache-2.0
"""Arrays shorter than a slice of them, batches of calls that no rule describes, entries read by their own update."""
import numpy as np
import pytest

import gradscribe as gs


def first(v):
    return v[:2]


@gs.rule.linear(first, "v")
class first_rule:
    def vjp_v(dy, v):
        return np.concatenate((dy, np.zeros_like(v[2:])))


@gs.custom_vjp
def later(v):
    return v[1:]


later.defvjp(lambda v: (v[1:], None), lambda kept, dy: (np.concatenate([np.zeros(1), dy]),))


@gs.custom_jvp
def tripled(v):
    return 3 * v


tripled.defjvp(lambda v, v_dot: (3 * v[0], 3 * v_dot[0]))


def count_of_slices(x, t):
    return t * len(x[:1]) + 2 * t * len(x[-1:])


def count_of_parts(x, t):
    left, right = np.split(x, [2])
    return t * len(left) + 3 * t * len(right)


def count_by_rule(x, t):
    return t * len(first(x)) + np.sum(first(x) ** 2)


@pytest.mark.parametrize("f", [count_of_slices, count_of_parts, count_by_rule])
@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_a_count_of_what_a_short_array_leaves(f, wrap):
    """d/dt of t times a number is the number, for the version at hand and for a new one."""
    used = wrap(gs.grad(f, 1))
    for n in (5, 0, 2, 3, 1):
        x = np.linspace(0.5, 1.5, n)
        want = f(x, 2.0) - f(x, 1.0)
        assert used(x, 2.0) == pytest.approx(want)
        assert wrap(gs.grad(f, 1))(x, 2.0) == pytest.approx(want)


def by_rule(x):
    return first(x) * 2.0


def in_nested_loops(x):
    for _ in x:
        j = 0
        while j < 3:
            d = later(x)
            j += 1
    return d


def handed_on(x):
    for _ in x:
        b = tripled(x[1:])
        c = b
    return c


@pytest.mark.parametrize("f, sizes", [(by_rule, (3, 0, 1)), (in_nested_loops, (3, 2, 1)), (handed_on, (3, 2, 1))])
def test_a_batch_of_what_is_called_for_each_example(f, sizes):
    for n in sizes:
        batch = np.stack([np.linspace(0.5, 1.5, n), np.linspace(-1.0, 2.0, n)])
        got = gs.vmap(f)(batch)
        want = np.stack([f(row) for row in batch])
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def added_to_all(x):
    d = x * 1.0
    d[:] += d[1]
    return d


def added_at(x):
    d = np.stack([x, 2 * x])
    np.add.at(d, 0, d[0, 1])
    return d


def added_at_places(x):
    d = x * 1.0
    np.add.at(d, [0, 1, 1], d[1])
    return d


def each_in_turn(x):
    d = x * 1.0
    for i in range(len(d)):
        d[:] -= d[i]
        d[1:] *= d[i] + 2.0
        d[:2] += d[0]
    return d


def read_from_a_view(x):
    d = x * 1.0
    e = d[::-1]
    e[:2] *= d[2]
    d[:] -= e[1]
    return d + e


def read_from_another(x):
    d, y = np.zeros((2, 3)), np.tanh(x)
    d[0] = y[1]
    d[:, 1:] += y[0]
    return d


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("f", [added_to_all, added_at, added_at_places, each_in_turn, read_from_a_view,
                               read_from_another])
def test_an_update_reads_its_operand_before_it_writes(f, n):
    x = np.linspace(0.5, 1.0, n) / n
    np.testing.assert_allclose(gs.jit(f)(x), f(x), rtol=1e-12, atol=1e-12)
    weights = np.cos(np.arange(f(x).size)).reshape(f(x).shape)

    def total(x):
        return np.sum(f(x) * weights)
    want = [(total(x + e) - total(x - e)) / 2e-6 for e in 1e-6 * np.eye(n)]
    scale = 1 + np.max(np.abs(want))
    np.testing.assert_allclose(gs.jit(gs.grad(total))(x) / scale, np.array(want) / scale, atol=1e-7)


def shifted(x, t):
    b, c = x[1:] * t, x[1:-1]
    return np.sum(b) + t * len(b) + 2 * t * len(c) + np.sum(np.zeros_like(c) + t)


def cut_in_a_loop(x, t):
    for _ in range(2):
        b = x[2:]
    return np.sum(b * t) + t * len(b)


@pytest.mark.parametrize("f", [shifted, cut_in_a_loop])
@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_a_slice_that_begins_behind_the_end(f, wrap):
    used = wrap(gs.grad(f, 1))
    for n in (5, 0, 1, 2, 3):
        x = np.linspace(0.5, 1.5, n)
        want = f(x, 2.0) - f(x, 1.0)
        assert used(x, 2.0) == pytest.approx(want)
        assert wrap(gs.grad(f, 1))(x, 2.0) == pytest.approx(want)
