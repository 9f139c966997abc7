"""Functions that are written in terms of others, through the compiler: both modes against differences."""
import inspect

import numpy as np
import pytest
from rule_calls import call_of, leaves

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.rules import arranging_samples

TABLE = [r for r in dict.fromkeys(RULES.values()) if inspect.getmodule(r.samples) is arranging_samples]
CASES = [pytest.param(r, k, id=f"{r.label}-{k}") for r in TABLE if r.kind != "constant"
         for k in range(len(r.samples(np.random.default_rng(3))))]


def flat(value):
    return [np.asarray(v) for v in leaves(value)]


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
    call, given = call_of(rule.function, args, kwargs)
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


# --- arguments and methods, on functions of one vector or matrix ------------------------------------------------------

X = np.array([0.3, 1.7, -0.4, 2.2, 0.9, -1.1])
A = np.array([[0.5, -1.5, 2.0], [1.25, 0.75, -0.5]])
MASK = np.array([[True, False, True], [True, True, False]])
COUNTS = np.array([2, 0, 1])
OUTSIDE = np.array([-4, 1, 9])

half = np.vectorize(lambda v: np.sin(v) if v > 0.6 else v * v)
product = np.vectorize(lambda v, w: v * w)


def with_float32(x):
    return half(x.astype(np.float32))


def masked_scale(x):
    y = np.piecewise(x, [x < 0, x > 1], [lambda v: -v * v, np.sin, 3.0])
    return y * x


def piece_of_a_number(x):
    return np.piecewise(x[0], [x[0] < 0, x[0] >= 0], [lambda v: -v, lambda v: v * v])


def partitioned(x):
    y = x.copy()
    y.partition(2)
    return y[:2] * y[2]


def sorted_in_place(x):
    y = x.copy()
    y.sort(kind="stable")
    return y * np.arange(y.size)


def split_up(a):
    first, second = np.unstack(a)
    return first * second


def asked(a):
    """Answers that are known when transforming choose the branch."""
    good = np.result_type(a, np.float32) == np.float64 and np.can_cast(np.float32, a.dtype) and \
        np.issubdtype(a.dtype, np.floating) and np.isdtype(a.dtype, "real floating") and \
        np.promote_types(a.dtype, "f4") == np.float64 and np.iterable(a) and not np.isscalar(a) and np.isscalar(a.size)
    return a * a if good else a


PROGRAMS = [
    (lambda a: np.sum(a, axis=1, where=MASK), A), (lambda a: np.sum(a, initial=2.0), A),
    (lambda a: np.sum(a, 0, np.float32), A), (lambda a: np.prod(a, axis=0, where=MASK, initial=2.0), A),
    (lambda a: np.mean(a, axis=1, where=MASK), A), (lambda a: np.var(a, axis=1, where=MASK), A),
    (lambda a: np.std(a, where=MASK, ddof=1), A), (lambda a: np.max(a, axis=1, where=MASK, initial=-np.inf), A),
    (lambda a: np.min(a, initial=0.6, axis=1), A), (lambda a: np.var(a, correction=1), A),
    (lambda a: np.cumsum(a, axis=0, dtype=np.float64) * a, A), (lambda a: a * np.any(a > 0, axis=0, where=MASK), A),
    (lambda a: np.take(a, OUTSIDE, mode="clip"), A), (lambda a: np.take(a, OUTSIDE, axis=1, mode="wrap"), A),
    (lambda a: np.repeat(a, COUNTS, axis=1), A), (lambda a: np.repeat(a[0], [1, 0, 2]), A),
    (lambda a: np.pad(a, ((1, 2), (0, 1)), mode="edge"), A), (lambda a: np.pad(a, 1, mode="reflect"), A),
    (lambda a: np.pad(a, (2, 1), mode="symmetric"), A), (lambda a: np.pad(a, 2, "wrap"), A),
    (lambda a: np.pad(a, 2, "linear_ramp", end_values=(1.5, 0.5)), A), (lambda a: np.pad(a, 1, "mean"), A),
    (lambda a: np.pad(a, 1, "maximum", stat_length=2), A), (lambda a: np.pad(a, ((1, 0), (0, 2)), "median"), A),
    (lambda a: np.pad(a[0], 2, constant_values=a[1, 0]), A), (lambda a: np.sort(a, axis=None, kind="stable"), A),
    (lambda a: np.array(a, ndmin=4), A), (lambda a: np.asarray(a, copy=True, dtype=float) * a, A),
    (lambda a: a.astype(np.float64, copy=False) * np.astype(a, np.float64), A),
    (lambda a: a.item(2) * a.item(1, 1) * a.item((0, 1)), A), (lambda a: a.compress([True, False, True], axis=1), A),
    (lambda a: np.argmax(a) * a.view() + a.mT.T * a.itemsize * a.nbytes, A),
    (lambda a: np.broadcast_to(a[:1], np.broadcast_shapes(a.shape, (1, 1), (1,))) * a, A),
    (lambda a: np.fromiter((v * v for v in a[0]), float), A), (lambda a: a.copy(order="F") * a, A),
    (lambda a: np.array([0, 1, 0]).choose([a[0], a[1]]), A), (lambda a: half(a), A), (lambda a: product(a, a[0]), A),
    (lambda a: product(a, 2.0), A), (lambda a: np.vectorize(lambda v: v**3, otypes=[float])(a), A), (with_float32, X),
    (masked_scale, X), (piece_of_a_number, X), (partitioned, X), (sorted_in_place, X), (split_up, A), (asked, A),
    (lambda x: np.partition(x, 3), X), (lambda x: np.partition(np.stack((x, x * x)), (1, 3), axis=-1), X),
    (lambda x: np.array(np.divmod(x, 0.7)), X), (lambda x: np.delete(x, slice(None, None, 2)), X),
    (lambda x: np.insert(x, 2, x[:2]), X), (lambda x: np.bincount([0, 2, 2, 1, 0, 2], x)[1:], X),
    (lambda x: np.meshgrid(x)[0], X), (lambda x: np.broadcast_arrays(x)[0] * x, X),
]


@pytest.mark.parametrize("function, x", PROGRAMS)
def test_programs(function, x):
    rng = np.random.default_rng(1)
    y, dot = function(x), rng.normal(size=x.shape)
    single = function is with_float32
    step = 1e-2 if np.asarray(y).dtype == np.float32 or single else 1e-6
    expected = (np.asarray(function(x + step * dot), float) - function(x - step * dot)) / (2 * step)
    close = dict(rtol=2e-3, atol=2e-3) if step > 1e-3 else dict(rtol=1e-6, atol=1e-8)
    primal, tangent = gs.jvp(function, (x,), (dot,))
    assert np.asarray(primal).dtype == np.asarray(y).dtype
    np.testing.assert_allclose(primal, y, rtol=1e-6 if step > 1e-3 else 1e-12)
    np.testing.assert_allclose(tangent, expected, **close)
    weights = rng.normal(size=np.shape(y)).astype(np.asarray(y).dtype)
    found = gs.grad(lambda v: np.sum(weights * function(v)))(x)
    np.testing.assert_allclose(np.sum(found * dot), np.sum(weights * expected), **close)


def test_equal_entries():
    """Of equal entries the one that stands first has the derivative, as in JAX."""
    x = np.array([2.0, 1.0, 2.0, 3.0, 1.0])
    assert np.array_equal(gs.grad(lambda v: np.sum(np.unique(v) * np.arange(1.0, 4.0)))(x), [2, 1, 0, 3, 0])
    assert np.array_equal(gs.grad(lambda v: np.sum(np.intersect1d(v, v[1:])))(x), [1, 1, 0, 1, 0])
    assert np.array_equal(gs.grad(lambda v: np.sum(np.union1d(v, v)))(x), [1, 1, 0, 1, 0])


def test_results_with_names():
    def f(x):
        found = np.unique_all(x)
        return np.sum(found.values * found.counts) + np.unique_counts(x).values[0] + np.unique_inverse(x).values[-1]
    assert np.array_equal(gs.grad(f)(np.array([2.0, 1.0, 2.0])), [3.0, 2.0, 0.0])


def test_piecewise_looks_only_at_its_pieces():
    """What a function is not given has no derivative there: no NaN comes from the other side."""
    def f(x):
        return np.sum(np.piecewise(x, [x > 0], [np.sqrt, lambda v: -v]))
    assert np.array_equal(gs.grad(f)(np.array([4.0, 0.0, -1.0])), [0.25, -1.0, -1.0])
