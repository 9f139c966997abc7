# SPDX-License-Identifier: Apache-2.0
"""Functions that move entries along two named axes at once: as along one, of which the first is the slower part."""
import itertools

import numpy as np
import pytest

import gradscribe as gs

X = np.arange(6.0 * 6 * 6 * 12).reshape(6, 6, 6, 12)


def along_two(f, x):
    return gs.vmap(gs.vmap(f, axis_name="j"), axis_name="i")(x.reshape(2, 3, *x.shape[1:]))


def along_one(f, x):
    return gs.vmap(f, axis_name="k")(x)


def compare(call, x=X):
    want = along_one(lambda x: call(x, "k"), x)
    np.testing.assert_array_equal(along_two(lambda x: call(x, ("i", "j")), x).reshape(want.shape), want)


@pytest.mark.parametrize("split, concat, tiled", [
    *itertools.product((0, 1, -3), (0, 1, 2), (False, True)), (2, 0, True), (-1, 1, True)])
def test_all_to_all(split, concat, tiled):
    compare(lambda x, axes: gs.lax.all_to_all(x, axes, split, concat, tiled=tiled))


@pytest.mark.parametrize("axis, tiled", [(0, False), (-1, False), (0, True), (2, True)])
def test_all_gather(axis, tiled):
    compare(lambda x, axes: gs.lax.all_gather(x, axes, axis=axis, tiled=tiled))


@pytest.mark.parametrize("axis, tiled", [(0, False), (1, False), (1, True), (-1, True)])
def test_psum_scatter(axis, tiled):
    compare(lambda x, axes: gs.lax.psum_scatter(x, axes, scatter_dimension=axis, tiled=tiled))


def test_derivative():
    weights = np.arange(12.0)

    def loss(x):
        return np.sum(along_two(lambda x: gs.lax.all_to_all(x, ("i", "j"), 0, 1), x) ** 3 * weights)

    def same(x):
        return np.sum(along_one(lambda x: gs.lax.all_to_all(x, "k", 0, 1), x) ** 3 * weights)
    np.testing.assert_allclose(gs.grad(loss)(X / 1e3), gs.grad(same)(X / 1e3), rtol=1e-13)
