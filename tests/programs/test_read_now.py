"""What is known when a function is read: limits of dtypes, tables of the module, stars in indices."""
import numpy as np
import pytest
from programs import checks

import gradscribe as gs

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
X = np.array([[1.0, 2.0], [4.0, 3.0]])
NAMES = {"double": 2.0, "pair": (3.0, 4.0), "half": lambda v: 0.5 * v}
PLACES = {(0, 1): 5.0, None: 7.0, 1.5: 11.0}
KINDS = {np.float32: 2.0, np.float64: 3.0}
DTYPES = {np.dtype("float32"): 2.0, np.dtype("float64"): 3.0}
CHANGED = {"k": 2.0, "in": [1.0, 2.0]}
LISTED = [2.0]


def starred(x):
    at = (0,)
    return np.sum(x[(slice(None), *at)] ** 2) + x[(*[1, 0],)] * x[(..., *at)][0]


def starred_with_an_array(x):
    at = ([0, 1], np.array([1, 1]))
    return np.sum(x[(*at,)] ** 3)


def limits(x):
    return np.sum(x) * np.iinfo(np.int16).max + np.finfo(x.dtype).eps * np.sum(x * x) + np.iinfo(np.uint8).bits


def items(x):
    return np.sum(x) * np.dtype(x.dtype).itemsize + np.sum(x * x) * x.dtype.itemsize


def clipped(x):
    return np.sum(np.clip(x, np.finfo(np.float32).tiny, np.finfo(x.dtype).max) ** 2)


def tables(x):
    x = NAMES.get("half")(x) * NAMES.get("double") + NAMES.get("pair")[1] * NAMES.get("none", 1.0)
    x = x * PLACES.get((0, 1)) + PLACES[1.5] + PLACES.get(None) + sum(v for v in PLACES.values())
    return np.sum(x * KINDS.get(x.dtype.type) + KINDS.get(int, 1.0) + DTYPES.get(x.dtype) * x * x)


def no_axis(x):
    y = x * x
    return np.sum(np.prod(y, axis=()) + np.sum(y, axis=()) + np.mean(y, axis=()) * np.max(y, axis=(), keepdims=True))


def no_spread(x):
    return np.sum((np.var(x, axis=()) + 1.0) * np.multiply.reduce(x, axis=()))


@pytest.mark.parametrize("f", [starred, starred_with_an_array, limits, items, clipped, tables, no_axis, no_spread],
                         ids=lambda f: f.__name__)
@WRAPS
def test_values_and_derivatives(f, wrap):
    want = checks.differences(lambda v: f(v.reshape(2, 2)), X.ravel()).reshape(2, 2)
    np.testing.assert_allclose(wrap(f)(X), f(X), rtol=1e-14)
    np.testing.assert_allclose(wrap(gs.grad(f))(X), want, rtol=1e-5)
    np.testing.assert_allclose(gs.jvp(f, (X,), (X,))[1], np.sum(want * X), rtol=1e-5)
    rows = np.stack([X, 2.0 * X])
    np.testing.assert_allclose(wrap(gs.vmap(f))(rows), [f(v) for v in rows], rtol=1e-14)


def test_limits_make_no_new_versions():
    d = gs.grad(limits)
    for dtype in (np.float64, np.float32, np.float64):
        x = X.astype(dtype)
        want = np.float64(32767.0) + 2.0 * x * np.finfo(dtype).eps
        np.testing.assert_allclose(d(x), want, rtol=1e-6)
    assert len(d._versions) == 2


@WRAPS
def test_tables_that_change_in_place(wrap):
    """Each is read again; before, what the first call had read stayed."""
    d = wrap(gs.grad(lambda x: x * CHANGED["k"] + x * CHANGED["in"][1] + x * LISTED[0]))
    try:
        assert d(1.0) == 6.0
        CHANGED["k"] = 10.0
        assert d(1.0) == 14.0
        CHANGED["in"][1] = 20.0
        assert d(1.0) == 32.0
        LISTED[0] = 30.0
        assert d(1.0) == 60.0
        LISTED.append(1.0)
        assert d(1.0) == 60.0
    finally:
        CHANGED.update({"k": 2.0, "in": [1.0, 2.0]})
        LISTED[:] = [2.0]


def test_zeros_of_either_sign_are_two_values():
    f = gs.jit(lambda x, p: np.copysign(x, p), static_argnums=1)
    assert [f(1.0, p) for p in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]
    g = gs.jit(lambda x, p: x * p, static_argnums=1)
    for _ in range(3):
        assert g(2.0, float("1.5")) == 3.0
    assert len(g._versions) == 1


def test_the_axis_is_written_where_older_numpy_has_no_default():
    def picked(x, i):
        return np.take_along_axis(x, i, axis=-1) ** 2
    lines = gs.vmap(lambda x, i: 2.0 * picked(x, i)).source_for(X, np.zeros((2, 1), int)).splitlines()
    lines += gs.grad(lambda x: np.sum(np.sort(x) * x)).source_for(X).splitlines()
    calls = [line for line in lines if "take_along_axis(" in line and "#" not in line]
    assert len(calls) == 2 and all("axis=" in line.partition("take_along_axis(")[2] for line in calls)
