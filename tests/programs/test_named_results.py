# SPDX-License-Identifier: Apache-2.0
"""Results of NumPy's functions by their names."""
import numpy as np
import pytest

import gradscribe as gs

A = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 3.0]])


def eigenvalues(a):
    return np.linalg.eigh(a).eigenvalues[0]


def both(a):
    found = np.linalg.eigh(a)
    return np.sum(found.eigenvectors[:, 0] ** 3 * found.eigenvalues)


def logabsdet(a):
    return np.linalg.slogdet(a).logabsdet


def singular_values(a):
    return np.sum(np.linalg.svd(a).S ** 3)


def triangular(a):
    q, r = np.linalg.qr(a)
    return np.linalg.qr(a).R[0, 1] * r[1, 1]


@pytest.mark.parametrize("f", [eigenvalues, both, logabsdet, singular_values, triangular])
def test_derivatives(f):
    value, found = gs.value_and_grad(f)(A)
    assert value == f(A)
    rng = np.random.default_rng(0)
    d = rng.normal(size=(3, 3))
    d = d + d.T
    np.testing.assert_allclose(np.sum(found * d), (f(A + 1e-6 * d) - f(A - 1e-6 * d)) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(gs.jvp(f, (A,), (d,))[1], np.sum(found * d), rtol=1e-9)
    np.testing.assert_allclose(gs.jit(f)(A), value, rtol=1e-12)


def test_a_name_that_is_none_of_them():
    with pytest.raises(gs.TransformError):
        gs.grad(lambda a: np.linalg.eigh(a).values[0])(A)
