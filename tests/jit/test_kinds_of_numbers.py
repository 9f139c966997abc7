"""Short whole numbers, single precision, complex numbers, arrays without axes: compiled code gives what NumPy gives."""
import math

import numpy as np
import pytest

import gradscribe as gs

SCALARS = [np.float64(1.25), np.array(1.25), np.float32(-1.25), np.int32(3), np.bool_(True), np.complex64(1 + 2j)]
MAKERS = {
    "zeros": lambda x: np.zeros(x.shape, x.dtype), "ones": lambda x: np.ones(x.shape, x.dtype),
    "empty": lambda x: np.empty(x.shape, np.float32) * 0, "none": lambda x: np.zeros(()) + x,
    "full": lambda x: np.full(x.shape, 3.0), "full of it": lambda x: np.full((), x),
    "zeros_like": lambda x: np.zeros_like(x), "full_like": lambda x: np.full_like(x, 2),
    "broadcast": lambda x: np.broadcast_to(x, ()), "broadcast longer": lambda x: np.broadcast_to(x, (3,)),
    "reshape": lambda x: np.reshape(np.reshape(x, (1,)), ()), "itself": lambda x: x,
    "shape and more": lambda x: np.zeros((*x.shape, 2)) + x,
}


def alike(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", MAKERS)
def test_no_axes(name):
    for x in SCALARS:
        alike(gs.jit(MAKERS[name])(x), MAKERS[name](x))


def added(a, b):
    a = a.copy()
    a += b
    return a


def divided(a, b):
    a = a.copy()
    a //= b
    return a


def left(a, b):
    a = a.copy()
    a %= b
    return a


def power(a, b):
    a = a.copy()
    a **= b
    return a


SHORT = np.array([3, 127, -127], np.int8), np.array([1, 2, 300], np.int32)


@pytest.mark.parametrize("f", [added, divided, left, power])
def test_updates_keep_the_dtype(f):
    a, b = SHORT
    alike(gs.jit(f)(a, b), f(a, b))
    alike(gs.vmap(f)(a[None], b[None])[0], f(a, b))
    a, b = np.array([1.5, 2.0], np.float32), np.array([0.7, 3.0])
    alike(gs.jit(f)(a, b), f(a, b))


def test_updates_that_numpy_refuses():
    def over(a, b):
        a = a.copy()
        a /= b
        return a
    a, b = SHORT
    for f, x, y in ((over, a, b), (added, a.astype(np.uint8), b)):
        with pytest.raises(TypeError):
            f(x, y)
        with pytest.raises(gs.TransformError, match="in place"):
            gs.jit(f)(x, y)


def test_gradient_of_an_update_in_single_precision():
    x, y = np.array([0.5, -1.5], np.float32), np.array([2.0, 0.25])
    found = gs.grad(lambda x, y: np.sum(added(x, y)**2), (0, 1))(x, y)
    for g, kind in zip(found, (np.float32, np.float64)):
        assert g.dtype == kind
        np.testing.assert_allclose(g, 2 * (x + y), rtol=1e-6)


WHOLE = {
    "a product undone": lambda a, b: (a * b) // b, "a product's rest": lambda a, b: (a * b) % b,
    "one more": lambda a, b: b + 1 > b, "doubled and halved": lambda a, b: (b * 2) >> 1,
    "difference": lambda a, b: a - b < a, "fmod": lambda a, b: np.fmod(a, b),
    "fmod by zero": lambda a, b: np.fmod(b, a * 0),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whole_numbers_wrap(name):
    a = np.array([2, -3, 7, -7])
    b = np.array([2**63 - 2, 2**63 - 1, -3, 3])
    alike(gs.jit(WHOLE[name])(a, b), WHOLE[name](a, b))
    alike(gs.jit(WHOLE[name])(a.astype(np.int32), np.array([2**31 - 2, 2**31 - 1, -3, 3], np.int32)),
          WHOLE[name](a.astype(np.int32), np.array([2**31 - 2, 2**31 - 1, -3, 3], np.int32)))


def test_common_divisors_of_mixed_kinds():
    a, b = np.array([2, 6], np.uint32), np.array([-2**31, -4], np.int32)
    alike(gs.jit(lambda a, b: np.gcd(a, b))(a, b), np.gcd(a, b))


SUMS = [
    lambda a: np.sum(a, dtype=np.int16), lambda a: np.prod(a, dtype=np.int8), lambda a: np.cumsum(a, dtype=np.int16),
    lambda a: np.cumprod(a, dtype=np.uint8), lambda a: np.sum(a, dtype=np.float32), lambda a: sum(a)]


@pytest.mark.parametrize("f", SUMS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_have_the_dtype_that_is_asked_for(f):
    for a in (np.array([3, 200, 255, 9], np.uint8), np.array([2**30, 2**30, 7], np.int32)):
        alike(gs.jit(f)(a), f(a))
        alike(gs.vmap(f)(a[None])[0], f(a))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_complex_quotients():
    parts = np.array([0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    z = (parts[:, None] + 1j * parts).ravel()
    a, b = map(np.ravel, np.meshgrid(z, z))
    alike(gs.jit(lambda a, b: a / b)(a, b), a / b)
    alike(gs.jit(lambda b: 1 / b)(z), 1 / z)
    some = z[np.isfinite(z) & (z != 0)]
    np.testing.assert_allclose(gs.jit(lambda b: np.reciprocal(b))(some), np.reciprocal(some), rtol=1e-15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_finite():
    x = np.array([0.0, 1.0, np.inf, np.nan, -2.5])
    for f in (lambda x: np.isfinite(0.7 / x + 0.0 * x), lambda x: np.isfinite(x / x - 0.1),
              lambda x: np.isfinite(x * 1j), lambda x: np.isfinite(x > 0)):
        alike(gs.jit(f)(x), f(x))


def test_quotients_of_pythons_complex_numbers_are_double():
    z = 0.39151670328235216 + 0.6701043548284794j
    for f in (lambda a, b: a / b, lambda a, b: b / a):
        alike(gs.jit(f)(z, 2.0), f(z, 2.0))
        alike(gs.jit(f)(np.complex64(z), 2.0), f(np.complex64(z), 2.0))


def test_whole_numbers_beyond_64_bits_of_the_math_module():
    """Compiled code hands them to the plain function."""
    def f(x):
        n = int(10 * x)
        return x * math.factorial(n) / math.comb(70, n) * math.perm(25, n)

    for x in (0.5, 2.5):
        assert math.isclose(gs.jit(f)(x), f(x), rel_tol=1e-12)
        assert math.isclose(gs.jit(gs.grad(f))(x), f(x) / x, rel_tol=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_least_whole_number_by_minus_one(dtype):
    least = np.iinfo(dtype).min
    a = np.array([least, least, 7, -7, least + 1, 0], dtype)
    b = np.array([-1, 2, -1, 2, -1, -1], dtype)
    with np.errstate(all="ignore"):
        for f in (lambda a, b: a // b, lambda a, b: np.floor_divide(a, b), lambda a, b: a // -1):
            got, want = gs.jit(f)(a, b), f(a, b)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
