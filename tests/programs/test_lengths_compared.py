# SPDX-License-Identifier: Apache-2.0
"""Branches on lengths, one of whose arms has no meaning for the lengths of a call."""
import numpy as np
import pytest

import gradscribe as gs


def skip(W, X):
    z = X @ W
    if X.shape == z.shape:
        z = z + X
    return np.mean(z ** 2)


def both_ways(W, X):
    z = X @ W
    z = z + X if X.shape == z.shape else z * 2
    if X.shape[1] != z.shape[1]:
        y = z[:, 0]
    else:
        y = np.sum(z * X, axis=1)
    return np.mean(z ** 2) + y @ y


def of_two_tests(W, X):
    z = X @ W
    if not (len(W) != z.shape[1] or X.shape[0] < 2):
        return np.sum(z * X)
    elif z.shape[1] == 2:
        return np.sum(z[:, :2] * np.array([1.0, 2.0]))
    return np.sum(z ** 3)


def in_a_list(W, X):
    acts = [X]
    for A in (np.ones((4, 4)), W):
        z = acts[-1] @ A
        if len(acts) > 1 and acts[-1].shape == z.shape:
            z = z * acts[-1]
        acts.append(z)
    return np.mean(acts[-1] ** 2)


@pytest.mark.parametrize("f", [skip, both_ways, of_two_tests, in_a_list])
@pytest.mark.parametrize("form", [lambda g: g, gs.jit], ids=["plain", "jit"])
def test_lengths_that_come_and_go(f, form):
    """One transformed function: the lengths of each call choose the arm, also after calls that chose the other."""
    rng, g = np.random.default_rng(0), form(gs.value_and_grad(f))
    X = rng.normal(size=(3, 4))
    for width in (4, 3, 4, 2, 5, 4):
        W = rng.normal(size=(4, width))
        value, dW = g(W, X)
        np.testing.assert_allclose(value, f(W, X), rtol=1e-13)
        d, h = rng.normal(size=W.shape), 1e-30
        np.testing.assert_allclose(np.sum(dW * d), np.imag(f(W + 1j * h * d, X)) / h, rtol=1e-11)


def test_batches_and_second_derivatives():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3, 4))
    for width in (3, 4):
        W = rng.normal(size=(2, 4, width))
        g = gs.grad(skip)
        np.testing.assert_allclose(gs.vmap(g, (0, None))(W, X), [g(w, X) for w in W], rtol=1e-13)
        H = gs.hessian(skip)(W[0], X).reshape(4 * width, 4 * width)     # of a quadratic
        want = [np.ravel(g(W[0] + e.reshape(4, width), X) - g(W[0], X)) for e in np.eye(4 * width)]
        np.testing.assert_allclose(H, want, atol=1e-13)
