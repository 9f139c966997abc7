"""A branch of which a derivative keeps nothing but comments is no branch: it was printed as an `else` without a body."""
import numpy as np

import gradscribe as gs

X = np.array([[0.52519426, 0.2246068], [0.4553653, -1.06610232], [-0.88005335, 0.11551063]])
Y = np.array([0.32715783, -0.10852937])
V = np.array([[0.3, -0.7], [0.2, 0.9], [-0.4, 0.5]])


def f(x, y):
    g = x[0]
    h = g
    w = np.ones(2)
    h, w, g = x[0], y * 0.5, x[1] * y
    box = {"k": x[1:, 0], "l": h}
    s = 0.0
    if box["k"][0] > 0.05:
        for _, w in enumerate([y, x[0]]):
            h = x[1].copy()
            box["l"] *= g * 0.5
            box["k"] *= box["k"].copy()
        if s < 2:
            g, w = w, g
    else:
        h = w * 0.5
        if np.sum(y) < 0.9:
            s = s * 0.9 + x[-1][0]
        else:
            box["k"] = np.sin(w)
            y = x[1].copy()
    if np.sum(y) < 0.9:
        for i1, w in enumerate((g, h)):
            x[i1] += x[:, 0][:2]
            x[i1][0] = 0.3
    box["l"] *= box["l"][::-1]
    return s + np.sum(y) + np.sum(g * 1.3) + np.sum(h * 0.7) + np.sum(w * 0.4) + np.sum(box["k"] * 0.9) + np.sum(
        box["l"] * 0.9)


def along(x):
    return np.sum(gs.grad(f)(x.copy(), Y.copy()) * V)


def test_second_derivatives():
    found, step = gs.grad(along)(X.copy()), 1e-5
    expected = np.zeros_like(X)
    for k in np.ndindex(X.shape):
        ends = []
        for sign in (1, -1):
            moved = X.copy()
            moved[k] += sign * step
            ends.append(along(moved))
        expected[k] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
