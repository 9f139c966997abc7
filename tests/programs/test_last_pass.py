# SPDX-License-Identifier: Apache-2.0
"""What is set in each pass of a loop, with lengths of its own, and read after the last one."""
import numpy as np
import pytest

import gradscribe as gs

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def network(params, x):
    for W, b in params:
        out = np.dot(x, W) + b
        x = np.tanh(out)
    return out


def side_by_side(params, x):
    for W, b in params:
        out = np.dot(x, W) + b
    return out


def layers(widths, chain):
    rng = np.random.default_rng(len(widths))
    sizes = zip(widths, widths[1:]) if chain else ((3, n) for n in widths)
    return [(rng.standard_normal(size), rng.standard_normal(size[1])) for size in sizes]


@WRAPS
@pytest.mark.parametrize("batch", [(), (6,)])
@pytest.mark.parametrize("f, widths", [
    *((network, (3, *rest)) for rest in [(5, 4, 2), (5, 4, 1), (1, 4, 2), (1, 1), (3, 3, 3), (4,)]),
    *((side_by_side, widths) for widths in [(2, 3, 4), (4, 1), (1, 4), (2, 2)])])
def test_layers(f, widths, batch, wrap):
    """A pass's adjoint of what only the end reads is zero, in the shape of that pass."""
    params, x = layers(widths, f is network), np.random.default_rng(1).standard_normal((*batch, 3))
    grads = wrap(gs.grad(lambda params: np.sum(f(params, x) ** 2)))(params)
    d, hidden = 2 * f(params, x), [x]
    for W, b in params[:-1]:
        hidden.append(np.tanh(hidden[-1] @ W + b) if f is network else x)
    for k in reversed(range(len(params))):
        h = np.atleast_2d(hidden[k])
        expected = (h.T @ np.atleast_2d(d), np.sum(np.atleast_2d(d), axis=0))
        for found, wanted in zip(grads[k], expected):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
        if f is network:
            d = d @ params[k][0].T * (1 - hidden[k] ** 2)
        else:
            d = np.zeros_like(x @ params[k - 1][0])


def front(x, n):
    for k in range(1, n):
        y = x[:k] * x[k]
    return np.sum(y ** 2)


def back(x, n):
    for k in range(1, n):
        y = np.sin(x[k:])
        z = np.exp(y * x[0])
    return np.sum(y ** 2) + np.sum(z * z)


def twice(x, n):
    for k in range(n):
        y = np.concatenate((x * k, x))
        s = y @ y
    return np.sum(y ** 3) * s


def picked(x, n):
    for k in range(1, n):
        chosen = x[x > 0.1 * k]
        pair = (chosen * k, len(chosen))
    return np.sum(pair[0] ** 2) * pair[1]


@WRAPS
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("f", [front, back, twice, picked], ids=lambda f: f.__name__)
def test_parts_of_an_array(f, n, wrap):
    x = np.array([0.31, 0.42, -0.53, 0.84, 0.15])
    h = 1e-6
    expected = [(f(x + h * e, n) - f(x - h * e, n)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(wrap(gs.grad(f))(x, n), expected, rtol=1e-7, atol=1e-8)
    tangent = wrap(lambda x, dx: gs.jvp(lambda x: f(x, n), (x,), (dx,))[1])(x, np.arange(5.0))
    assert tangent == pytest.approx(np.arange(5.0) @ expected, rel=1e-7)
