# SPDX-License-Identifier: Apache-2.0
"""Rows of an array that is as long as a view: the view's lengths are named when it goes, the rows' are these names."""
import ast

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.trees import from_tree, to_tree
from gradscribe.codegen.loops.verify import verify
from gradscribe.codegen.loops.view_elimination import eliminate_views

TEXT = """def f(x, out):
    for i in range(2):
        stop = i + 3
        win = x[:, i:stop]
        z = np.empty((4, win.shape[1]), np.float64)
        for b in range(4):
            for j in range(win.shape[1]):
                z[b, j] = win[b, j]
        for b in range(4):
            row = z[b]
            for j in range(row.shape[0]):
                out[b] += row[j]
    return (out,)"""


def test_the_pass():
    types = {"x": ("float64", 2), "out": ("float64", 1)}
    function = from_tree(ast.parse(TEXT).body[0], types)
    eliminate_views(function)
    verify(function, "eliminate_views")
    space = {"np": np}
    x = np.arange(20.0).reshape(4, 5)
    for text in (TEXT, ast.unparse(to_tree(function))):
        exec(text, space)
        np.testing.assert_array_equal(space["f"](x, np.zeros(4))[0], x[:, :3].sum(1) + x[:, 1:4].sum(1))


def windows(x):
    """Nothing says when compiling that a window is as large as `total`."""
    padded, total = np.pad(x, 1, mode="edge"), np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            total += (i + 1) * padded[i:i + x.shape[0], j:j + x.shape[1]] ** 2
    return np.sum(np.sin(total))


@pytest.mark.parametrize("axis", [0, -1])
def test_gradients_of_a_batch(axis):
    x, h = np.random.default_rng(0).normal(size=(4, 3, 2)), 1e-5
    batch = np.stack([x[..., 0], x[..., 1]], axis=axis)
    made = gs.jit(gs.vmap(gs.grad(windows), in_axes=axis))(batch)
    for k in range(2):
        np.testing.assert_allclose(made[k], gs.grad(windows)(x[..., k]), rtol=1e-12)
        d = np.random.default_rng(k).normal(size=(4, 3))
        slope = (windows(x[..., k] + h * d) - windows(x[..., k] - h * d)) / (2 * h)
        np.testing.assert_allclose(np.sum(made[k] * d), slope, rtol=1e-7)
