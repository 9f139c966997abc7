# SPDX-License-Identifier: Apache-2.0
"""Adjoints and tangents have the dtype of their values, whatever they are multiplied by."""
import warnings

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.form import ADJOINT, Apply, Const, Function, Let, Param, Var
from gradscribe.ast_transform.core.kinds import UNIT, Array
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.check import Broken, check, check_results

X = np.array([0.3, -0.5, 0.7, 1.1])
Z = X + 1j * np.array([-0.2, 0.9, 0.4, -0.6])
H = np.array([0.2, -0.3, 0.5, 0.7])
WHOLE = np.array([1, 2, 3, 4])
BYTES = np.array([100, 2, 3, 120], np.int8)
UNSIGNED = np.array([200, 3, 255, 4], np.uint8)
MASK = np.array([True, False, True, True])


@pytest.fixture(autouse=True)
def no_imaginary_part_is_dropped():
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        yield


def slope(f, x, h=1e-6):
    """The gradient by central differences, for complex x in the convention of the project: d/da - i d/db."""
    out = np.zeros_like(x)
    for i in range(x.size):
        e = h * np.eye(x.size)[i]
        out[i] = (f(x + e) - f(x - e)) / (2 * h)
        if x.dtype.kind == "c":
            out[i] -= 1j * (f(x + 1j * e) - f(x - 1j * e)) / (2 * h)
    return out


# --- whole numbers and truth values beside floats ---------------------------------------------------------------------

def written_then_weighed(x):
    a = x * 1.0
    a[0] = 0.5 * a[1]
    return 3 * np.sum(a * WHOLE)


def written_in_a_loop(x):
    a = x * 1.0
    for i in range(3):
        a[i] = 0.3 * a[i + 1]
    return np.sum(a * np.arange(4)) + np.sum(x)


def slices(x):
    a = x * 1.0
    a[1:] += 0.3 * a[:-1]
    return np.sum(a * WHOLE) - np.sum(x)


def while_loop(x):
    a, n = x * 1.0, 0
    while n < 3:
        a[n] = 0.3 * a[n + 1]
        n += 1
    return 3 * np.sum(a * WHOLE)


def mask_as_factor(x):
    a = x.copy()
    a[1] = 2 * a[0]
    return 5 * np.sum(a * MASK)


def unit_matrix(x):
    a = np.outer(x, WHOLE)
    a[0, 0] = 0.5 * a[1, 1]
    return 3 * np.sum(a * np.eye(4, dtype=int)) + 2 * np.sum(np.eye(4, dtype=int) @ x)


def dot_with_whole_numbers(x):
    a = x.copy()
    a[0] = a[2] * a[1]
    return 7 * (WHOLE @ a)


def chosen(x):
    a = np.where(MASK, 3 * x, WHOLE) * 1
    a[0] = a[2] * 0.3
    return 2 * np.sum(np.where(MASK, a, -5 * a) * UNSIGNED)


def bytes_that_would_overflow(x):
    return 3 * np.sum(x * BYTES) + 3 * np.sum(x * UNSIGNED * BYTES)


def whole_number_that_becomes_an_array(x):
    b = np.zeros(4, int)
    b = b + x
    b[0] = b[1] * 0.5
    return 3 * np.sum(b * WHOLE)


def sum_from_a_whole_number(x):
    s = 0
    for i in range(4):
        s = s + i * x[i]
    return 3 * s * WHOLE[2]


def list_of_products(x):
    items = []
    for i in range(4):
        items.append(i * x[i])
    return 3 * np.sum(np.array(items) * WHOLE)


def container(x):
    pair = (3 * x[0], x[1:] * 1.0)
    b = pair[1]
    b[0] = 0.4 * b[1]
    return 3 * np.sum(b * np.array([1, 2, 3])) + 2 * pair[0]


def called(x):
    def weighed(u):
        return 3 * np.sum(u * WHOLE)
    a = x * 1.0
    a[0] = 0.5 * a[1]
    return weighed(a) + weighed(x)


def gathered(x):
    a = x[[0, 0, 1]] * 1
    a[0] = 0.5 * a[1]
    return 3 * np.sum(a * np.array([1, 2, 3]))


def whole_powers(x):
    a = x ** 2
    a[0] = 0.5 * a[1]
    return 3 * np.sum(a ** WHOLE)


# --- real numbers in complex ones -------------------------------------------------------------------------------------

def transform(x):
    z = np.fft.fft(x)
    z[0] = z[1] * 1j
    return np.sum(z.real ** 2)


def shifted(x):
    z = x + 0j
    z[1:] = z[:-1] * 2j
    return np.sum(z.imag) + np.sum(z.real * WHOLE)


def complex_in_a_loop(x):
    z = x + 0j
    for i in range(3):
        z[i] = z[i + 1] * 2j
    return np.sum(z.real)


def complex_in_a_branch(x):
    z = x + 0j
    if x[0] > 0:
        z = z * 1j
        z[0] = z[1] * 1j
    return np.sum(z.real * WHOLE)


def complex_number_in_a_loop(x):
    z = 0.0
    for i in range(4):
        z = z * 1j + x[i]
    return z.real


def complex_list(x):
    items = []
    for i in range(4):
        items.append((i + 1j) * x[i] * 1j)
    return np.sum(np.real(np.array(items)))


def of_two_parts(x):
    return abs(complex(x[0], 2.0)) + complex(x[1], x[2]).imag * complex(imag=x[3]).imag


REAL = [
    written_then_weighed, written_in_a_loop, slices, while_loop, mask_as_factor, unit_matrix, dot_with_whole_numbers,
    chosen, bytes_that_would_overflow, whole_number_that_becomes_an_array, sum_from_a_whole_number, list_of_products,
    container, called, gathered, whole_powers, transform, shifted, complex_in_a_loop, complex_in_a_branch,
    complex_number_in_a_loop, complex_list, of_two_parts]
COMPILED = [written_then_weighed, chosen, shifted, complex_in_a_loop, complex_number_in_a_loop, of_two_parts]


@pytest.mark.parametrize("f", REAL, ids=lambda f: f.__name__)
def test_of_real_arrays(f):
    want = slope(f, X)
    found = gs.grad(f)(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gs.jvp(f, (X,), (H,))[1], want @ H, rtol=1e-6, atol=1e-6)
    batch = gs.vmap(gs.grad(f))(np.stack([X, 0.5 * X]))
    assert batch.dtype == np.float64
    np.testing.assert_allclose(batch, [want, slope(f, 0.5 * X)], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", REAL, ids=lambda f: f.__name__)
def test_single_precision_stays(f):
    found = gs.grad(f)(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slope(f, X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_compiled(f):
    for x in (X, X.astype(np.float32)):
        found, want = gs.jit(gs.grad(f))(x), gs.grad(f)(x)
        assert found.dtype == want.dtype == x.dtype
        np.testing.assert_allclose(found, want, rtol=1e-5)


def test_second_derivatives():
    def f(x):
        a = x ** 3
        a[0] = a[1] * x[2]
        return 3 * np.sum(a * BYTES)
    want = np.array([slope(lambda x, k=k: gs.grad(f)(x)[k], X) for k in range(4)])
    found = gs.hessian(f)(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


# --- complex arguments ------------------------------------------------------------------------------------------------

def real_parts(z):
    return np.sum(np.real(z) ** 2) + 3 * np.real(z)[0]


def complex_write(z):
    w = z * 1
    w[0] = w[1] * 2j
    return 3 * np.sum(np.real(w) * WHOLE)


def complex_sum(z):
    s = 0
    for i in range(4):
        s = s * 1j + z[i] * i
    return np.imag(s)


def real_of_complex(z):
    w = z.real.copy()
    w[0] = w[1] * 0.3
    return 3 * np.sum(w * WHOLE) + z.imag[0]


@pytest.mark.parametrize("f", [real_parts, complex_write, complex_sum, real_of_complex], ids=lambda f: f.__name__)
def test_of_complex_arrays(f):
    want = slope(f, Z)
    found = gs.grad(f)(Z)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)
    assert gs.grad(f)(Z.astype(np.complex64)).dtype == np.complex64
    value, tangent = gs.jvp(f, (Z,), (H * (1 + 2j),))
    assert np.asarray(tangent).dtype == np.asarray(value).dtype
    np.testing.assert_allclose(tangent, np.real(np.sum(want * H * (1 + 2j))), rtol=1e-6)


@pytest.mark.parametrize("z", [1 + 2j, np.complex128(1 + 2j), np.complex64(1 + 2j)], ids=lambda z: type(z).__name__)
def test_of_complex_numbers(z):
    def both_parts(z):
        return np.real(z) + 2 * np.imag(z)
    for f, want in ((both_parts, 1 - 2j), (np.real, 1), (lambda z: 1.0, 0)):
        found = gs.grad(f)(z)
        assert found == want
        assert np.asarray(found).dtype == np.asarray(z).dtype


def swirl(z):
    a = z * 1.0
    a[0] = 0.5j * a[1]
    return a * 2


def test_real_tangents_and_seeds_of_complex_values():
    want = np.array([1j * X[1], *(2 * X[1:])])
    for derivative in (gs.jvp(swirl, (Z,), (X,))[1], gs.linearize(swirl, Z)[1](X)):
        assert derivative.dtype == np.complex128
        np.testing.assert_allclose(derivative, want)
    (found,) = np.atleast_2d(gs.vjp(swirl, Z)[1](X))
    np.testing.assert_allclose(found, np.atleast_2d(gs.vjp(swirl, Z)[1](X + 0j))[0])
    np.testing.assert_allclose(found, [0, 2 * X[1] + 1j * X[0], *(2 * X[2:])])


def test_complex_of_two_numbers():
    def f(a):
        return (complex(a, a) * complex(a, 2)).imag * abs(complex(real=1, imag=a))
    want = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    assert gs.value_and_grad(f)(0.7) == pytest.approx((f(0.7), want))
    assert gs.jit(gs.value_and_grad(f))(0.7) == pytest.approx((f(0.7), want))
    assert gs.jvp(f, (0.7,), (2.0,))[1] == pytest.approx(2 * want)
    np.testing.assert_allclose(gs.vmap(f)(np.array([0.7, 0.3])), [f(0.7), f(0.3)])
    assert gs.jit(lambda a, b: complex(a, b))(1.0, np.inf) == complex(1.0, np.inf)
    with pytest.raises(gs.TransformError, match="complex itself"):
        gs.jvp(lambda a: complex(a, a * 1j), (1.0,), (1.0,))


def test_whole_numbers_in_another_base():
    assert gs.grad(lambda a: int("12", 16) * a)(1.0) == 18.0


# --- rules that compute with whole numbers ----------------------------------------------------------------------------

@pytest.mark.parametrize("k", [UNSIGNED, BYTES, np.array([2 ** 62, 3, 4, 5])], ids=lambda k: k.dtype.name)
def test_no_whole_number_overflows_in_a_derivative(k):
    def angle(x, k):
        return np.sum(np.arctan2(k, x)) + np.sum(np.arctan2(x, k))

    def powers(x, k):
        return np.sum(np.power(k % 101 + 1, x))
    y = np.abs(X)
    for f in (angle, powers):
        want = gs.grad(f)(y, k.astype(float))
        np.testing.assert_allclose(gs.grad(f)(y, k), want, rtol=1e-12)
        np.testing.assert_allclose(gs.jvp(lambda x, f=f: f(x, k), (y,), (H,))[1], want @ H, rtol=1e-12)


def test_the_quantile_of_bytes_moves_with_q():
    def f(q, k):
        return np.quantile(k, q)
    for k in (UNSIGNED, BYTES):
        assert gs.jvp(lambda q, k=k: f(q, k), (0.4,), (1.0,))[1] == pytest.approx(gs.grad(f)(0.4, k.astype(float)))


# --- what a program writes itself -------------------------------------------------------------------------------------

def floats_into_whole_numbers(x):
    b = np.zeros(4, int)
    for i in range(4):
        b[i] = x[i] * 11
    return 3 * np.sum(b * x)


def test_no_derivative_passes_what_is_cut_off():
    want = 3 * np.array([3, -5, 7, 12])
    for grad in (gs.grad(floats_into_whole_numbers), gs.jit(gs.grad(floats_into_whole_numbers))):
        np.testing.assert_array_equal(grad(X), want)
    assert gs.jvp(floats_into_whole_numbers, (X,), (H,)) == pytest.approx((floats_into_whole_numbers(X), want @ H))


def added_in_place(x):
    b = np.zeros(4, np.float32)
    for _ in range(3):
        b += x
    return b


def bytes_in_place(x):
    b = np.array([100, 2, 3, 4], np.int8)
    b *= WHOLE + 1
    return b * x


@pytest.mark.parametrize("f", [added_in_place, bytes_in_place], ids=lambda f: f.__name__)
def test_in_place_the_dtype_stays(f):
    want = f(X)
    for found in (gs.jvp(f, (X,), (H,))[0], gs.jit(f)(X), gs.vmap(f)(X[None])[0]):
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)
    np.testing.assert_allclose(gs.jacrev(f)(X), np.diag(f(np.ones(4))))


def test_in_place_what_numpy_refuses_is_refused():
    def halved(x):
        b = np.array([1, 2, 3, 4])
        b /= 2
        return np.sum(b * x)
    with pytest.raises(TypeError):
        halved(X)
    with pytest.raises(gs.TransformError, match="in place"):
        gs.grad(halved)(X)


# --- what is emitted, and the check -----------------------------------------------------------------------------------

def test_no_conversion_where_none_is_needed():
    def weighed(x):
        return 3 * np.sum(x * x * WHOLE) + np.sum(np.fft.fft(x).real ** 2)
    derivative = gs.grad(weighed)
    derivative(X)
    assert "astype" not in derivative.source and "1.0" not in derivative.source
    derivative = gs.grad(written_then_weighed)
    derivative(X)
    assert "3.0 * WHOLE" in derivative.source and "astype" not in derivative.source


def test_the_check_finds_what_would_be_cut_off():
    narrow, value = Var("dz", Array(np.dtype(float), (UNIT,)), ADJOINT), Var("v", Array(complex))
    target = narrow.like()
    body = [Let((target,), Apply(put, (narrow, Const(0), value)))]
    f = Function("f", [Param("dz", narrow), Param("v", value)], body, target)
    with pytest.raises(Broken, match="after a pass: dz"):
        check(f, "a pass")
    value.fact = Array(float)
    assert check(f, "a pass") is f
    with pytest.raises(Broken, match="the derivative of"):
        check_results([narrow], [Var("z", Array(np.dtype(complex), (UNIT,)))], "a pass")


def test_a_whole_number_is_joined_to_an_array():
    def f(x, c=3):
        return np.sum(np.append(-x, c) ** 2)
    x, v = np.array([1.0, 2.0]), np.array([0.5, 0.25])
    value, dot = gs.jvp(f, (x,), (v,))
    assert value == 14.0 and dot == 2.0
    np.testing.assert_array_equal(gs.grad(f)(x), 2 * x)


def test_a_conversion_that_may_be_none_shares_memory():
    def counted(c, b):
        out = 0
        for _ in range(3):
            out += 0.5                  # a float from the second pass on
        return c * 1.0 + 0 * out

    def f(c, b):
        g = counted(c, b)
        g.astype(float, copy=False)[0] += b
        k = np.asarray(g, dtype=float)
        k[1] = b * k[0]
        return np.sum(g * g)
    c, b = np.array([0.5, 0.6, 0.7]), 0.3
    try:
        found = gs.grad(f, (0, 1))(c, b)
    except gs.TransformError as error:      # right or refused
        assert "may have changed" in str(error)
    else:
        np.testing.assert_allclose(found[0], [2 * 0.8 * (1 + 0.09), 0, 1.4], rtol=1e-14)
        np.testing.assert_allclose(found[1], 2 * 0.8 * 1.09 + 2 * 0.24 * 0.8, rtol=1e-14)


def test_targets_of_one_assignment_are_written_one_after_the_other():
    def f(x):
        b = x * 1.0
        b[[1, 1, -2]] = b = b
        a = c = b[0]
        c[0] = a[1] = 3.0 * x[2, 2]
        return np.sum(b * np.arange(3)) + np.sum(a)
    x = np.arange(9.0).reshape(3, 3)
    want = np.reshape([(f(x + e.reshape(3, 3)) - f(x - e.reshape(3, 3))) / 2e-6 for e in 1e-6 * np.eye(9)], (3, 3))
    np.testing.assert_allclose(gs.grad(f)(x), want, atol=1e-7)


def test_the_adjoint_of_an_unused_number_in_a_container():
    """A zero of the number's own type: a complex number has a complex adjoint."""
    def second(pair):
        return pair[1] * 2.0
    for z in (1j, 1.0, np.float32(1), np.complex64(1j), np.complex128(2j)):
        (dz, dw), = gs.vjp(second, (z, 2j))[1](1 + 0j)
        assert type(dz) is type(z) and dz == 0 and type(dw) is complex and dw == 2
    assert repr(gs.vjp(lambda d: d["w"] * 2.0, {"z": 1j, "w": 2.0})[1](1.0)) == "({'z': 0j, 'w': 2.0},)"


def test_a_tangent_that_is_a_number_of_pythons_has_the_precision_of_its_primal():
    narrow = np.ones(2, np.float32)
    for f in (lambda a: a * narrow, lambda a: np.sum(a * narrow) * a, lambda a: (a * narrow)[0] * a):
        y, tangent = gs.jvp(f, (np.float64(0.7),), (0.3,))
        _, want = gs.jvp(f, (np.float64(0.7),), (np.float64(0.3),))
        assert tangent.dtype == y.dtype == np.float64 and np.array_equal(tangent, want)
    assert gs.jvp(lambda a: a * narrow, (0.7,), (0.3,))[1].dtype == np.float32


def adds_ints_in_a_loop(x):
    s = np.sum(x)
    for _ in range(3):
        s = s + np.sum(1)
    return s


def adds_ints_on_one_path(x):
    s = np.sum(x)
    if x[0] > -9:
        s = s + np.sum(1)
    return s


@pytest.mark.parametrize("f", [adds_ints_in_a_loop, adds_ints_on_one_path])
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_tangents_of_numbers_whose_precision_a_loop_widens(f, wrap):
    x = np.arange(3, dtype=np.float32)
    value, tangent = wrap(lambda x, v: gs.jvp(f, (x,), (v,)))(x, x)
    assert value.dtype == f(x).dtype == tangent.dtype == np.float64
    assert tangent == 3


def test_the_array_of_a_list_that_has_been_emptied():
    """NumPy makes an array of doubles of no elements: the adjoints of what the list held stay in single precision."""
    def f(a, b):
        items = [np.tanh(a) * v for v in b]
        s = 0.0 * a
        while len(items) > 0:
            s = s + np.sin(items.pop())
        rest = np.array(items)
        return np.sum(rest * rest) + s

    a, b = np.float32(0.3), np.array([0.5, 1.5], np.float32)
    da, db = gs.grad(f, (0, 1))(a, b)
    assert da.dtype == db.dtype == np.float32
    slope = np.cos(np.tanh(a) * b)
    np.testing.assert_allclose(da, np.sum(slope * b) * (1 - np.tanh(a) ** 2), rtol=1e-6)
    np.testing.assert_allclose(db, slope * np.tanh(a), rtol=1e-6)
