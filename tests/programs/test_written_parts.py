"""Writes into the real and imaginary parts of arrays, and through x.flat as an attribute.

Each is checked against differences: gradient, jvp, value, examples, compiled.
"""
import numpy as np
import pytest
from programs import checks

import gradscribe as gs

W = np.arange(1.0, 13.0).reshape(3, 4)


def real_part_of_a_slice(x):
    z = x * (1 + 2j)
    z.real[1:3] = x[:2] ** 2
    z[::2].imag[0] = x[3] * x[1]
    return np.sum(np.abs(z * z) ** 2)


def a_name_of_the_part(x):
    z = x * np.exp(1j * x)
    re = z.real
    re[::2] = x[1]
    re *= x
    z[3] = x[0] * 1j
    return np.sum(np.real(z * z * (1 - 2j))) + np.sum(re * x)


def parts_as_attributes(x):
    z = np.zeros((3, 4), dtype=complex)
    z.real = x
    z.imag += W * x[0]
    z.T.imag[1] = 2 * x[1]
    z.imag[2] -= x * x
    y = z.copy()
    y.real = 3
    return np.sum(np.real(z * np.conj(z))) + np.sum(np.imag(y ** 2))


def the_real_part_of_what_is_real(x):
    y = x * 2
    y.real[1:] = x[0] * x[1:]
    y.real *= x
    np.real(y)[0] = x[3] ** 2
    return np.sum(y * y)


def parts_in_a_loop(x):
    z = x + 0j
    for k in range(3):
        z.imag[k] = np.real(z[k + 1]) * x[k]
        z.real[k + 1] *= z.imag[k]
    return np.sum(np.abs(z) ** 2)


def parts_swapped(x):
    z = x * (2 - 1j)
    u, v = z.real, z.imag
    u[0], v[1] = v[1], u[0]
    u[-1], u[0] = u[0], u[-1]
    return np.sum(np.real(z) ** 3) + np.sum(np.imag(z) ** 2 * x)


def all_entries_as_an_attribute(x):
    A, B, C, y = W * x, W * x, W * x, x * x
    A.flat = x[1] * x[2]
    row = B[1]
    B.flat = x ** 2
    C.T.flat = np.sin(x[:3])
    y.flat = x[::-1] * 3
    return np.sum(A * W) + np.sum(row * B * W) + np.sum(C * C * W) + np.sum(y * x)


FOUND = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__]


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_derivatives(f):
    for x in checks.POINTS:
        checks.derivatives(f, x)


@pytest.mark.parametrize("f", FOUND[::2], ids=lambda f: f.__name__)
def test_float32(f):
    checks.float32(f)


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_examples(f):
    checks.examples(f)


@pytest.mark.parametrize("f", checks.some_fast(FOUND, 4), ids=lambda f: f.__name__)
def test_compiled(f):
    checks.compiled(f)


def test_an_argument_whose_part_is_written():
    def f(x, z):
        z.real[0] = x[1] ** 2
        z.imag = x
        return np.sum(np.abs(z) ** 2)

    x, z = np.array([1.0, 2.0]), np.array([3 + 1j, 4 - 2j])
    want = checks.differences(lambda x: f(x, z.copy()), x)
    np.testing.assert_allclose(gs.grad(f)(x, z), want, rtol=1e-6)


def test_short_numbers():
    def f(z, x):
        z = z * 2
        z.imag[1:] = x[0] * x[1:]
        return np.sum(np.abs(z) ** 2)

    z, x = np.array([1 + 2j, 3 - 1j], dtype=np.complex64), np.array([0.5, 2.0], dtype=np.float32)
    dz, dx = gs.grad(f, (0, 1))(z, x)
    assert (dz.dtype, dx.dtype) == (np.complex64, np.float32)
    np.testing.assert_allclose(dx, [2 * 0.5 * 4, 2 * 2 * 0.25], rtol=1e-6)
    assert gs.vmap(f)(z[None], x[None]).dtype == np.float32
