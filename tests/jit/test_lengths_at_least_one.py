"""Versions for arrays of which no axis is empty: indices that are never negative then, and what empty ones get."""
import numpy as np
import pytest

import gradscribe as gs


def filtered(x, h):
    """With no taps, the first pass is of y[-1], as Python has it."""
    y = np.zeros(x.shape[0])
    for k in range(h.shape[0]):
        for i in range(h.shape[0] - 1, x.shape[0]):
            y[i] += h[k] * x[i - k]
    for i in range(h.shape[0] - 1, x.shape[0]):
        y[i] += 1.0
    return y


def weighted(items):
    """A container of arrays: their last entries."""
    total = 0.0
    for i in range(items["x"].shape[0] - 1, items["x"].shape[0]):
        total += items["x"][i] * np.sum(items["pair"][1])
    return total


LONG = np.linspace(-1.0, 2.0, 40)


@pytest.mark.parametrize("first", [0, 1, 17])
def test_a_filter_without_taps(first):
    f = gs.jit(filtered)
    df = gs.jit(gs.grad(lambda x, h: np.sum(filtered(x, h) ** 2), (0, 1)))
    for taps in (first, 17, 0, 5, 0, 18):
        h = np.linspace(0.5, 1.0, taps)
        np.testing.assert_allclose(f(LONG, h), filtered(LONG, h), rtol=1e-14)
        want = gs.grad(lambda x, h: np.sum(filtered(x, h) ** 2), (0, 1))(LONG, h)
        for got, wanted in zip(df(LONG, h), want):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


def test_indices_are_checked_no_more():
    f = gs.jit(filtered)
    f(LONG, LONG[:20])
    assert "place(" not in f.lowered
    f(LONG, LONG[:0])
    assert "place(" in f.lowered


def test_versions_are_told_apart():
    """No more than two, whichever comes first; containers as well."""
    f = gs.jit(lambda x, h: np.sum(filtered(x, h)))
    for n in (30, 0, 31, 0, 32):
        f(LONG, np.ones(n))
    assert len(f._versions) <= 3            # a short axis of length 0 is one of its own
    g = gs.jit(weighted)
    for n, m in ((20, 30), (0, 30), (20, 0), (21, 31)):
        items = {"x": np.arange(float(n)), "pair": (1.0, np.ones(m))}
        if n:
            assert g(items) == weighted(items)
        else:
            for call in (g, weighted):
                with pytest.raises(IndexError):
                    call(items)


def test_batches_and_inner_functions():
    f = gs.jit(gs.vmap(filtered, in_axes=(0, None)))
    inner = gs.jit(filtered)
    g = gs.jit(lambda x, h: inner(x[1:], h[1:]))
    for taps in (20, 1, 0, 3):
        h = np.linspace(0.5, 1.0, taps)
        np.testing.assert_allclose(f(np.stack([LONG, LONG + 1]), h), [filtered(LONG, h), filtered(LONG + 1, h)],
                                   rtol=1e-13)
        np.testing.assert_allclose(g(LONG, h), filtered(LONG[1:], h[1:]), rtol=1e-13)
