# SPDX-License-Identifier: Apache-2.0
"""The rows of the checklist from the document on JAX as an accelerated NumPy."""
import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import nn, optim, tree_util

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def melu(x):
    return np.sum(np.exp(x))


def test_s20_melu():
    t = np.array([1., 2., 3.])
    g_melu = gs.grad(melu)
    np.testing.assert_allclose(g_melu(t), np.exp(t), rtol=1e-15)
    np.testing.assert_allclose(gs.jit(g_melu)(t), np.exp(t), rtol=1e-15)
    assert "return np.exp(x)" in g_melu.source


def even(y):
    return y[y % 2 == 0]


def first(y, n):
    return y[:n]


def different(y):
    return np.unique(y)


def absolute(x):
    if x > 0:
        return x
    return -x


def evens_of_distinct(y, n):
    """Lengths that depend on values, one after the other."""
    u = np.unique(y)[:n]
    return np.sum(u[u % 2 == 0] ** 2)


@WRAPS
def test_s21_shapes_that_depend_on_values(wrap):
    y = np.array([4, 1, 2, 4, 2, 7, 8])
    f, g, u = wrap(even), wrap(first), wrap(different)
    assert f(y).tolist() == [4, 2, 4, 2, 8] and f(y[:2]).tolist() == [4] and f(y[1:2]).tolist() == []
    assert [len(g(y, n)) for n in (0, 3, 7, 9)] == [0, 3, 7, 7]
    assert u(y).tolist() == [1, 2, 4, 7, 8]
    assert (wrap(absolute)(2.5), wrap(absolute)(-2.5)) == (2.5, 2.5)
    assert wrap(evens_of_distinct)(y, 3) == 4 + 16
    np.testing.assert_array_equal(wrap(gs.grad(evens_of_distinct))(y.astype(float), 3), [8, 0, 4, 0, 0, 0, 0])
    assert wrap(gs.grad(absolute))(-2.5) == -1.0


def distinct(y):
    return np.unique(y)


def test_s21_name_of_a_helper():
    assert gs.jit(distinct)(np.array([4, 1, 4])).tolist() == [1, 4]


@WRAPS
def test_s21_out_of_bounds_raises(wrap):
    x = np.arange(3.0)
    assert wrap(lambda x, i: x[i])(x, 2) == 2.0
    for i in (3, -4, 100):
        with pytest.raises(IndexError):
            wrap(lambda x, i: x[i])(x, i)
        with pytest.raises(IndexError):
            wrap(gs.grad(lambda x, i: x[i] ** 2))(x, i)

    def write(x, i):
        y = np.zeros(3)
        y[i] = x
        return y
    with pytest.raises(IndexError):
        wrap(write)(1.0, 3)


def network():
    """stax's way: parameters apart from the function that applies them."""
    return nn.serial(nn.Dense(16), nn.Relu, nn.Dense(16), nn.Tanh, nn.Dense(1))


def test_s22_network_and_adam():
    init_fun, apply_fun = network()
    output_shape, params = init_fun(gs.random.PRNGKey(2), (-1, 2))
    assert output_shape == (-1, 1) and [len(p) for p in params] == [2, 0, 2, 0, 2]
    x = gs.random.uniform(gs.random.PRNGKey(3), (40, 2), minval=-1.0, maxval=1.0)
    y = np.abs(x[:, :1]) - x[:, 1:] ** 2
    by_hand = np.tanh(np.maximum(x @ params[0][0] + params[0][1], 0) @ params[2][0] + params[2][1])
    np.testing.assert_allclose(apply_fun(params, x), by_hand @ params[4][0] + params[4][1], rtol=1e-13)
    opt = optim.adam(1e-2)

    def loss(params, x, y):
        return np.mean((apply_fun(params, x) - y) ** 2)

    @gs.jit
    def update(params, state, x, y):
        value, grads = gs.value_and_grad(loss)(params, x, y)
        updates, state = opt.update(grads, state)
        return optim.apply_updates(params, updates), state, value
    state, values = opt.init(params), []
    first_step = update(params, state, x, y)[0]
    moved = tree_util.tree_map(lambda new, old: np.abs(new - old), first_step, params)
    assert max(np.max(m) for m in tree_util.tree_leaves(moved)) == pytest.approx(1e-2, rel=1e-4)   # Adam's first step
    for _ in range(200):
        params, state, value = update(params, state, x, y)
        values.append(value)
    assert values[-1] < 0.05 * values[0]


class Pair(NamedTuple):
    left: float
    right: float


@tree_util.register_dataclass
@dataclasses.dataclass
class Body:
    place: np.ndarray
    mass: float


@tree_util.register_pytree_node_class
class Scaled:
    """A class of one's own: an array that is differentiated, and a name that is not."""

    def __init__(self, values, name):
        self.values, self.name = values, name

    def tree_flatten(self):
        return (self.values,), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(children[0], name)


def tree():
    return {"b": [np.array([1.0, 2.0]), (3.0, None)], "a": Pair(4.0, np.array([[5.0]])), "c": Body(np.ones(2), 2.0)}


def test_s23_trees():
    leaves, treedef = tree_util.tree_flatten(tree())
    assert [np.size(leaf) for leaf in leaves] == [1, 1, 2, 1, 2, 1] and treedef.num_leaves == 6
    again = tree_util.tree_unflatten(treedef, leaves)
    assert tree_util.tree_structure(again) == treedef and again["b"][1] == (3.0, None)
    grads = {"z": np.array([1 + 2j]), "w": (3 - 1j, [np.array(4j)])}
    conjugated = tree_util.tree_map(np.conj, grads)
    assert conjugated["w"] == (3 + 1j, [np.array(-4j)]) and conjugated["z"].tolist() == [1 - 2j]
    scaled = Scaled(np.arange(3.0), "x")
    (values,), treedef = tree_util.tree_flatten(scaled)
    assert values is scaled.values
    doubled = tree_util.tree_map(lambda v: 2 * v, scaled)
    assert isinstance(doubled, Scaled) and doubled.name == "x" and doubled.values.tolist() == [0, 2, 4]


def energy(t):
    held = t["a"].left * np.sum(t["a"].right) + t["c"].mass * np.sum(t["c"].place)
    return np.sum(t["b"][0] ** 2) * t["b"][1][0] + held


@WRAPS
def test_s23_gradients_are_trees(wrap):
    d = wrap(gs.grad(energy))(tree())
    assert isinstance(d["a"], Pair) and isinstance(d["c"], Body) and d["b"][1] == (5.0, None)
    np.testing.assert_array_equal(d["b"][0], [6.0, 12.0])
    assert d["a"].left == 5.0 and d["a"].right.tolist() == [[4.0]]
    assert d["c"].place.tolist() == [2.0, 2.0] and d["c"].mass == 2.0


@WRAPS
def test_s23_maps_inside_of_functions(wrap):
    """tree_map in the function that is differentiated and compiled."""
    def norm(t):
        squares = tree_util.tree_map(lambda v: np.sum(v ** 2), t)
        return tree_util.tree_reduce(lambda a, b: a + b, squares)
    t = {"x": np.array([1.0, 2.0]), "y": [3.0, (np.array([[4.0]]),)]}
    assert wrap(norm)(t) == 30.0
    d = wrap(gs.grad(norm))(t)
    assert d["x"].tolist() == [2.0, 4.0] and d["y"][0] == 6.0 and d["y"][1][0].tolist() == [[8.0]]


def cubes(s):
    return np.sum(s.values ** 3)


@WRAPS
def test_s23_gradients_of_registered_classes(wrap):
    d = wrap(gs.grad(cubes))(Scaled(np.array([1.0, 2.0]), "x"))
    assert isinstance(d, Scaled) and d.name == "x" and d.values.tolist() == [3.0, 12.0]


def test_s23_tangents_of_registered_classes():
    s = Scaled(np.array([1.0, 2.0]), "x")
    assert gs.jvp(cubes, (s,), (s,)) == (9.0, 27.0)
