"""Functions that are written in terms of others, through the compiler: both modes against differences, sample by sample."""
import inspect

import numpy as np
import pytest
from jit import support

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.rules import arranging_samples

TABLE = [r for r in dict.fromkeys(RULES.values()) if inspect.getmodule(r.samples) is arranging_samples]
CASES = [pytest.param(r, k, id=f"{r.label}-{k}") for r in TABLE if r.kind != "constant"
         for k in range(len(r.samples(np.random.default_rng(3))))]


def flat(value):
    return [np.asarray(v) for v in support.leaves(value)]


def pairing(first, second):
    return sum(float(np.sum(np.real(a * b))) for a, b in zip(first, second, strict=True) if a.dtype.kind in "fc")


def like(value, rng):
    """Random numbers of the same shape; none where an entry is zero, which may mean that it is left out."""
    value = np.asarray(value)
    found = rng.normal(size=value.shape) + (1j * rng.normal(size=value.shape) if value.dtype.kind == "c" else 0)
    return np.where(value == 0, 0, found).astype(value.dtype)[()]


def moved(given, dots, step):
    return [g + step * d if np.asarray(g).dtype.kind in "fc" else g for g, d in zip(given, dots)]


@pytest.mark.parametrize("rule, k", CASES)
def test_both_modes(rule, k):
    args, kwargs = rule.samples(np.random.default_rng(3))[k]
    call, given = support.call_of(rule.function, args, kwargs)
    rng = np.random.default_rng(5)
    active = [j for j, g in enumerate(given) if np.asarray(g).dtype.kind in "fc"]
    if not active:
        return
    dots = [like(g, rng) for g in given]
    ahead, y, behind = (flat(call(*moved(given, dots, s))) for s in (1e-6, 0.0, -1e-6))
    expected = [(a - b) / 2e-6 for a, b in zip(ahead, behind, strict=True)]
    primal, tangent = gs.jvp(call, given, dots)
    assert [p.dtype for p in flat(primal)] == [p.dtype for p in y]
    for got, want in zip(flat(primal), y, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want, p in zip(flat(tangent), expected, y, strict=True):
        if p.dtype.kind in "fc":
            assert got.shape == p.shape
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    whole = call(*given)
    dy = [like(np.where(v == 0, 1, v), rng) for v in y]
    weights = (dy if isinstance(whole, list) else tuple(dy) if type(whole) is tuple else type(whole)(*dy)) \
        if isinstance(whole, (tuple, list)) else dy[0]
    found = gs.vjp_of(call)(float(weights) if type(whole) is float else weights, *given)
    found = [f for f in found if f is not None]
    found = found if len(found) == len(active) else [found[j] for j in active]
    for j, f in zip(active, found, strict=True):
        assert np.shape(f) == np.shape(given[j]) and np.asarray(f).dtype == np.asarray(given[j]).dtype
    np.testing.assert_allclose(pairing([np.asarray(f) for f in found], [dots[j] for j in active]),
                               pairing(flat(expected), dy), rtol=1e-6, atol=1e-7)
