"""Running sums, places of extremes and loops that count down, by all threads: no kernel is one thread's."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.runtime import device


@pytest.fixture(autouse=True)
def plain():
    with device.using("plain"):
        yield


def library(x):
    return np.cumsum(x), np.cumprod(x), np.cumsum(x[::-1])


def squares(x):
    s = 0.0
    y = np.zeros(len(x))
    for i in range(len(x)):
        s += x[i] * x[i]
        y[i] = s
    return y


def both_ways(x):
    s = 1.0
    p = 2.0
    y = np.zeros(len(x))
    z = np.zeros(len(x))
    for i in range(len(x)):
        v = x[i] * 0.01
        s -= v
        y[i] = s * v
    for i in range(len(x) - 1, -1, -1):
        z[i] = p * x[i]
        p = p * (1 + x[i] * 0.01)
    return y, z, s, p


def summed(x):
    s = 0.0
    t = 0.0
    for i in range(len(x)):
        s = s + x[i]
        t += s * s
    return t


def backwards(x):
    z = np.zeros(len(x))
    for i in range(len(x) - 1, -1, -1):
        z[i] = np.sin(x[i]) * 2
    return z


def every_second(x):
    z = np.zeros(len(x))
    for i in range(1, len(x), 2):
        z[i] = x[i] ** 2
    return z


def places(x):
    return np.argmax(x), np.argmin(x), np.argmax(np.abs(x))


FUNCTIONS = [library, squares, both_ways, summed, backwards, every_second]


def as_given(value):
    return value if isinstance(value, tuple) else (value,)


def check(function, x, serial=False):
    compiled = gs.jit(function, target="cuda")
    single = x.dtype == np.float32
    for a, b in zip(as_given(compiled(x)), as_given(function(x)), strict=True):
        b = np.asarray(b)
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4 if single else 1e-11, atol=(1e-4 if single else 1e-12) * np.max(
            np.abs(b), initial=1e-300))
    if not serial and x.size > 2:
        loops = [line for line in compiled.lowered.splitlines() if line.strip().startswith("for ")]
        assert not loops, loops
    return compiled.lowered


@pytest.mark.parametrize("n", [0, 1, 2, 40, 1000])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values(function, n):
    x = np.random.default_rng(n).standard_normal(n)
    serial = function is both_ways      # has a product
    check(function, x, serial)
    if n:                               # Python's 0.0 is what is left of an empty loop
        check(function, x.astype(np.float32), serial)
    if function is not backwards:
        check(function, (3 * x).astype(int), serial)


@pytest.mark.parametrize("n", [0, 1, 2, 40, 1000])
@pytest.mark.parametrize("function", FUNCTIONS[1:])
def test_gradients(function, n):
    def loss(x):
        y = function(x)
        return np.sum((y[0] * y[1] if isinstance(y, tuple) else y) ** 2)
    check(gs.grad(loss), np.random.default_rng(n).standard_normal(n), serial=function is both_ways)


@pytest.mark.parametrize("n", [1, 2, 40, 1000])
def test_places(n):
    """The first of equals, the first NaN; zeros are equal whatever their sign."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    zeros = np.where(np.arange(n) < n // 2, 0.0, -0.0)
    with np.errstate(invalid="ignore"):
        for y in (x, np.round(x), zeros, -zeros, np.where(rng.random(n) < 0.3, np.nan, x), np.full(n, -np.inf)):
            for dtype in (np.float64, np.float32):
                check(places, y.astype(dtype), serial=n < 3)
        check(places, np.round(3 * x).astype(np.int32))
        check(places, np.round(3 * x).astype(np.int64))


def test_products_keep_their_order():
    """0.5 ** 2000 is 0, and stays so."""
    def shrunk(x):
        p = 1.0
        y = np.zeros(len(x))
        for i in range(len(x)):
            p = p * x[i]
            y[i] = p
        return y
    x = np.r_[np.full(2000, 0.5), np.full(2000, 2.0)]
    np.testing.assert_array_equal(gs.jit(shrunk, target="cuda")(x), shrunk(x))


def order_matters(x):
    """What a pass reads is another pass's, or sums are two: no loop of these may be taken apart."""
    s, t = 0.0, 0.0
    y = x.copy()
    z = np.zeros(len(x))
    for i in range(1, len(x)):
        s += y[i - 1] * 0.1
        y[i] = y[i] + s
    for i in range(len(x)):
        s = s + t * 0.1
        t = t + x[i] + s * 0.1
        z[i] = s
    return y, z, s, t


def early(x):
    """Sums without their last term, and entries that are set above and read below."""
    s = 0.5
    y = np.zeros(len(x))
    z = x.copy()
    for i in range(len(x)):
        y[i] = s
        z[i] = z[i] + 1
        s += z[i] * x[i]
        z[i] = z[i] * s
    return y, z, s


def entwined(x):
    """What is set with the sum before a pass's term is part of the term."""
    s = 0.5
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = s * 0.1
        s += y[i] * x[i]
    return y, s


@pytest.mark.parametrize("n", [0, 1, 2, 40])
@pytest.mark.parametrize("function", [order_matters, early, entwined])
def test_what_is_not_taken_apart(function, n):
    check(function, np.random.default_rng(n).standard_normal(n), serial=True)
    check(gs.grad(lambda x: np.sum(function(x)[0] ** 2)), np.random.default_rng(n).standard_normal(n), serial=True)
