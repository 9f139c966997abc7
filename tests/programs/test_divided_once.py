"""The two adjoints of a division share one quotient: shapes, dtypes, and what stands between the two."""
import numpy as np
import pytest
from programs.checks import differences_by_entry as differences

import gradscribe as gs

SHAPES = [((), ()), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((0, 3), (3,)),
          ((1, 3), (2, 3))]


def quotient(a, b):
    return np.sum(np.sin(a / b))


def in_place(a, b):
    y = a * 1.0
    y /= b
    y *= y
    return np.sum(y)


def twice(a, b):
    return np.sum(a / b + np.cos(b / a) / b)


def in_a_loop(a, b):
    y = a
    for _ in range(3):
        y = 0.5 * (y + b / y)
    return np.sum(y)


def entries(a, b):
    x = np.zeros_like(a)
    for i in range(len(a)):
        x[i] = (a[i] - b[i, :i] @ x[:i]) / b[i, i]
    return np.sum(x * x)


def checked(f, a, b):
    want = differences(lambda x: f(x, b), a), differences(lambda x: f(a, x), b)
    for made in (gs.grad(f, (0, 1)), gs.jit(gs.grad(f, (0, 1)))):
        for got, expected in zip(made(a.copy(), b.copy()), want):
            assert np.shape(got) == expected.shape
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    for k in (0, 1):                    # one adjoint alone
        np.testing.assert_allclose(gs.grad(f, k)(a.copy(), b.copy()), want[k], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("f", [quotient, twice])
def test_shapes(f, shapes):
    rng = np.random.default_rng(3)
    checked(f, *(np.asarray(rng.uniform(1, 2, s)) for s in shapes))


@pytest.mark.parametrize("f", [in_place, in_a_loop])
def test_programs(f):
    rng = np.random.default_rng(4)
    checked(f, rng.uniform(1, 2, (2, 3)), rng.uniform(1, 2, (2, 3)))


def test_entries():
    rng = np.random.default_rng(5)
    checked(entries, rng.uniform(1, 2, 4), rng.uniform(1, 2, (4, 4)))


def test_dtypes():
    a, b = np.float32([1.5, 2.0]), np.float32([0.5, 4.0])
    for got in gs.grad(quotient, (0, 1))(a, b):
        assert got.dtype == np.float32
    da, db = gs.grad(quotient, (0, 1))(a, b.astype(float))
    assert (da.dtype, db.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(db, -np.cos(a / b) * a / b ** 2, rtol=1e-6)
    db = gs.grad(quotient, 1)(np.array([3, 5]), b.astype(float))
    np.testing.assert_allclose(db, -np.cos(np.array([3, 5]) / b) * np.array([3, 5]) / b ** 2, rtol=1e-6)


def test_complex_numbers():
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(3) + 1j * rng.standard_normal(3) for _ in range(2))
    da, db = gs.grad(lambda a, b: np.sum(np.abs(a / b) ** 2), (0, 1))(a, b)
    r = (np.abs(a) / np.abs(b)) ** 2
    np.testing.assert_allclose(da * a, 2 * r, rtol=1e-12)
    np.testing.assert_allclose(db * b, -2 * r, rtol=1e-12)


def test_infinite_and_zero_denominators_are_as_before():
    a, b = np.array([1.0, 0.0, 1.0]), np.array([np.inf, 2.0, -np.inf])
    da, db = gs.grad(lambda a, b: np.sum(a / b), (0, 1))(a, b)
    np.testing.assert_array_equal(da, 1 / b)
    np.testing.assert_array_equal(db, [0.0, 0.0, 0.0])


def test_the_source():
    text = gs.grad(quotient, (0, 1)).source_for(np.ones(3), np.ones(3))
    assert "da = np.cos(ratio_a) / b\n    db = -da * ratio_a" in text
