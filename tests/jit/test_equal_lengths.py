# SPDX-License-Identifier: Apache-2.0
"""Lengths that were equal in the example are one; arguments for which they are not have a version of their own."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(3)


def rows_below(c, a, b):
    """What PolyBench's syr2k does: slices that end at the row, of arrays whose lengths nothing compares."""
    c = c.copy()
    for i in range(a.shape[0]):
        c[i, :i + 1] += a[:i + 1, 0] * b[i, 0] + b[:i + 1, 1] * a[i, 1]
    return np.sum(c * c)


def rows_of(n, m, rows):
    return RNG.normal(size=(n, m)), RNG.normal(size=(rows, 2)), RNG.normal(size=(rows, 2))


def outcome(f, *args):
    try:
        return f(*args)
    except (ValueError, IndexError) as error:
        return type(error)


@pytest.mark.parametrize("first", [(20, 20, 20), (24, 30, 24), (20, 30, 18)])
def test_every_length_has_its_value_whatever_came_first(first):
    fast, gradient = gs.jit(rows_below), gs.jit(gs.grad(rows_below, (0, 1, 2)))
    plain = gs.grad(rows_below, (0, 1, 2))
    others = [(25, 25, 25), (30, 40, 30), (40, 30, 40), (40, 30, 20), (18, 19, 20), (3, 3, 3), (1, 1, 1)]
    for lengths in [first, *others, first]:
        args = rows_of(*lengths)
        want = outcome(rows_below, *args)
        if isinstance(want, type):
            assert outcome(fast, *args) is want
            continue
        np.testing.assert_allclose(fast(*args), want, rtol=1e-13)
        for got, expected in zip(gradient(*args), plain(*args), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def test_two_versions_serve_all_long_lengths():
    fast = gs.jit(rows_below)
    for n in (20, 25, 31, 20):
        fast(*rows_of(n, n, n))
    assert len(fast.versions) == 1 and "min(" not in fast.lowered and "fits(" not in fast.lowered
    for n, m in ((30, 40), (31, 45), (40, 52), (20, 20)):
        fast(*rows_of(n, m, n))
    assert len(fast.versions) == 2


def test_a_length_that_nothing_compares_is_any():
    fast = gs.jit(lambda w, x: np.sum(np.tanh(x @ w)))
    for batch in (20, 40, 20, 33):
        fast(np.eye(20), RNG.normal(size=(batch, 20)))
    assert len(fast.versions) == 1


def test_lengths_in_containers():
    def f(p):
        c = p["c"].copy()
        for i in range(p["a"].shape[0]):
            c[i, :i + 1] *= p["a"][:i + 1]
        return np.sum(c)
    fast = gs.jit(f)
    for n, m in ((20, 20), (20, 25), (22, 22)):
        p = {"a": RNG.normal(size=n), "c": RNG.normal(size=(n, m))}
        np.testing.assert_allclose(fast(p), f(p), rtol=1e-13)
    assert len(fast.versions) == 2
