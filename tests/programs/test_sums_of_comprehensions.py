# SPDX-License-Identifier: Apache-2.0
"""np.sum of a comprehension adds all entries; Python's sum adds the elements."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 0.2, 0.05])


def arrays(x):
    return np.sum([x * k for k in range(3)]) ** 2


def arrays_of_an_unknown_number(x):
    return np.sum([x * k for k in range(len(x))]) ** 2


def lists(x):
    return np.sum([[np.sin(1.5), j] for j in range(3)]) * x[0]


def lists_of_what_is_active(x):
    return np.cos(np.sum([[x[j], 2 * j] for j in range(3)])) * x[0]


def numbers(x):
    return np.sum([v * v for v in x]) ** 2


def some_numbers(x):
    return np.sum([v * v for v in x if v > 0.1]) ** 2


def truth_values(x):
    return np.sum([v > 0.1 for v in x]) * x[0]


def rows(x):
    return np.sum([np.outer(x, x)[k] for k in range(2)]) ** 2


def lists_of_an_unknown_number(x):
    return np.sum([[v, v * v] for v in x]) ** 2


def matrices(x):
    return np.sum([np.outer(x, x) * v for v in x]) ** 2


def python(x):
    return np.sum(sum([x * k for k in range(3)]) ** 2) + np.sum(sum(x * v for v in x) ** 3)


def a_store(x):
    c = x.copy()
    c[c > 0.1] = np.cos(np.sum([[x[0], j] for j in range(3)]))
    return np.sum(c * x)


@pytest.mark.parametrize("f", [arrays, arrays_of_an_unknown_number, lists, lists_of_what_is_active, numbers,
                               some_numbers, truth_values, rows, lists_of_an_unknown_number, matrices, python, a_store])
def test_derivatives(f):
    value, found = gs.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(found, [(f(X + e) - f(X - e)) / 2e-6 for e in np.eye(3) * 1e-6], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), found, rtol=1e-12)
    np.testing.assert_allclose(gs.jacfwd(f)(X), found, rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)], rtol=1e-13)
    assert gs.function(f)(X).shape == ()
