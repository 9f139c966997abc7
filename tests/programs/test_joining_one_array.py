# SPDX-License-Identifier: Apache-2.0
"""np.concatenate, np.stack and their kin of one array, which NumPy takes for the list of its rows."""
import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(0)
JOINS = {
    "concatenate": np.concatenate,
    "concatenate last": lambda a: np.concatenate(a, axis=-1),
    "concatenate flat": lambda a: np.concatenate(a, axis=None),
    "stack": np.stack,
    "stack last": lambda a: np.stack(a, axis=-1),
    "stack 1": lambda a: np.stack(a, axis=1),
    "hstack": np.hstack,
    "vstack": np.vstack,
    "column_stack": np.column_stack,
    "dstack": np.dstack,
    "block": np.block,
}
SHAPES = [(3,), (3, 2), (2, 3, 4), (2, 1, 3, 2)]


def cases():
    for name in JOINS:
        for shape in SHAPES:
            if not (len(shape) == 1 and (name.startswith("concatenate") or name == "stack 1")):
                yield pytest.param(JOINS[name], shape, id=f"{name}-{len(shape)}")


@pytest.mark.parametrize("join, shape", list(cases()))
def test_values_and_both_modes(join, shape):
    x, v = RNG.standard_normal((2, *shape))
    y = join(x)
    w = RNG.standard_normal(y.shape)
    assert np.array_equal(gs.vmap(join)(np.stack([x, v])), np.stack([y, join(v)]))
    value, dx = gs.value_and_grad(lambda x: np.sum(w * join(x) ** 2))(x)
    assert value == np.sum(w * y ** 2) and dx.shape == shape
    moved, change = gs.jvp(join, (x,), (v,))
    assert np.array_equal(moved, y) and np.array_equal(change, join(v))
    np.testing.assert_allclose(np.sum(dx * v), np.sum(2 * w * y * join(v)), rtol=1e-13)


@pytest.mark.parametrize("join", [np.concatenate, np.stack, np.hstack, np.vstack, np.column_stack, np.dstack, np.block])
def test_what_is_joined_is_a_copy(join):
    def f(x):
        y = join(x)
        y[0] = 0.0
        return np.sum(y ** 2) + np.sum(x ** 3)
    x = RNG.standard_normal((3, 2))
    kept = x.copy()
    dy = 2 * x
    first = join(np.arange(6).reshape(3, 2))
    first[0] = -1
    dy[~np.isin(np.arange(6).reshape(3, 2), first)] = 0.0
    np.testing.assert_allclose(gs.grad(f)(x), dy + 3 * x ** 2, rtol=1e-14)
    assert np.array_equal(x, kept)


def test_compiled():
    def f(x):
        return np.sum(np.concatenate(x) * np.hstack(x) ** 2) + np.sum(np.column_stack(x) @ np.vstack(x))
    x = RNG.standard_normal((3, 2))
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), gs.grad(f)(x), rtol=1e-13)


def test_vectors_have_no_rows_to_concatenate():
    with pytest.raises(gs.TransformError, match="2 axes"):
        gs.grad(lambda x: np.sum(np.concatenate(x)))(np.ones(3))


def _rows(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v * np.ones(2))
    return out


def transposed_list(x):
    return np.sum(np.array(_rows(x)).T * np.arange(2.0)[:, None])


def moved_list(x):
    return np.sum(np.moveaxis(np.array(_rows(x)), 0, 1) * np.arange(2.0)[:, None])


@pytest.mark.parametrize("f", (transposed_list, moved_list))
def test_an_adjoint_that_is_constant_along_a_list_has_its_length(f):
    assert np.array_equal(gs.grad(f)(np.array([1.0, -2.0, 3.0, 0.5])), [1, 0, 1, 1])
