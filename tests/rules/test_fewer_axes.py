"""Operands with more axes than the result: lengths of one are no axes that were repeated."""
import numpy as np
import pytest
from scipy.special import logsumexp

import gradscribe as gs

A, B = np.array([0.3, -0.2, 1.1, 0.4]), 1.0 + np.arange(12.0).reshape(3, 4) / 7


@pytest.mark.parametrize("a", (A, A[:1], A[0]), ids=("four", "one", "number"))
@pytest.mark.parametrize("b", (B, B[:1], B[:, :1], B[:1, :1]), ids=("3x4", "1x4", "3x1", "1x1"))
@pytest.mark.parametrize("axis", (0, 1, None))
def test_factors_of_exponentials(a, b, axis):
    def f(a, b):
        return np.sum(logsumexp(a, axis=axis, b=b) ** 2)

    da, db = gs.grad(f, argnums=(0, 1))(a, b)
    t = b * np.exp(a)
    y = np.log(np.sum(t, axis=axis, keepdims=True))
    whole = 2 * y * np.exp(a) / np.sum(t, axis=axis, keepdims=True) + np.zeros(t.shape)
    assert db.shape == b.shape
    np.testing.assert_allclose(db, whole if b.shape == t.shape else _summed(whole, b.shape), rtol=1e-12)
    np.testing.assert_allclose(da, _summed(whole * b, np.shape(a)), rtol=1e-12)


@pytest.mark.parametrize("f, expected", [
    (lambda x: np.einsum("i->", x), np.ones(4)), (lambda x: 2 * np.einsum("ij->", x[:, None] * x), 4 * np.full(4, 1.6)),
    (lambda x: np.einsum("i->", x) * x[0], [1.9, 0.3, 0.3, 0.3]),
])
def test_the_sum_of_all_entries(f, expected):
    np.testing.assert_allclose(gs.grad(f)(A), expected, rtol=1e-14)


def _summed(x, shape):
    x = np.sum(x, axis=tuple(range(x.ndim - len(shape))))
    return np.sum(x, axis=tuple(k for k, n in enumerate(shape) if n != x.shape[k]), keepdims=True)
