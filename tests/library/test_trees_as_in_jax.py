# SPDX-License-Identifier: Apache-2.0
"""Structures of trees: how they are spelled, gone through and transposed, and what is no part of them."""
import collections
import dataclasses
import functools

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import tree_util

Point = collections.namedtuple("Point", "x y")


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right


tree_util.register_pytree_node(Pair, lambda p: ([p.left, p.right], "kept"), lambda kept, parts: Pair(*parts))


def test_static_fields():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: float
        name: str = gs.tree.static(default="first", metadata={"unit": 1})
    assert gs.tree.leaves(Layer(2.0)) == [2.0]
    assert dict(dataclasses.fields(Layer)[1].metadata) == {"static": True, "unit": 1}
    assert gs.grad(lambda layer: layer.w ** 2 if layer.name == "first" else 0.0)(Layer(3.0)).w == 6.0


def test_structures_are_spelled_as_jax_does():
    assert repr(gs.tree.structure(Pair(1, [2]))) == "PyTreeDef(CustomNode(Pair[kept], [*, [*]]))"
    assert repr(gs.tree.structure(Point(1, ()))) == "PyTreeDef(CustomNode(namedtuple[Point], [*, ()]))"


def test_one_level():
    assert tree_util.flatten_one_level(Pair(1, 2)) == ([1, 2], "kept")
    assert tree_util.flatten_one_level(Point(1, (2,))) == ([1, (2,)], Point)


def test_walk():
    seen = []
    treedef = gs.tree.structure({"b": 2, "a": (1, None)})
    total = treedef.walk(lambda parts, data: seen.append(data) or sum(p or 0 for p in parts), lambda leaf: 10 * leaf,
                         [1, 2])
    assert total == 30 and seen == [None, None, ["a", "b"]]


def test_transpose_counts_leaves():
    outer, inner = gs.tree.structure(Pair(0, 0)), gs.tree.structure([0, 0, 0])
    rows = tree_util.tree_transpose(outer, inner, Pair([1, 2, 3], [4, 5, 6]))
    assert [(pair.left, pair.right) for pair in rows] == [(1, 4), (2, 5), (3, 6)]
    assert gs.tree.transpose(gs.tree.structure([0, 0]), None, [(1, 2), (3, 4)]) == ([1, 3], [2, 4])
    with pytest.raises(TypeError, match="is expected"):
        tree_util.tree_transpose(gs.tree.structure((0, 0)), inner, ([1, 2], [3, 4]))

    def swapped(x):
        (a, b), _ = gs.tree.transpose(gs.tree.structure([0, 0]), gs.tree.structure((0, 0)), [(x, 2.0), (3 * x, x)])
        return a * b
    assert gs.grad(swapped)(5.0) == 30.0


def test_a_partial_keeps_its_own_arguments_only():
    inner = functools.partial(np.add, 2.0)
    outer = tree_util.Partial(inner, 3.0)
    assert outer.args == (3.0,) and outer() == 5.0
    assert outer.func == inner and hash(outer.func) == hash(tree_util.Partial(inner).func)
    assert gs.tree.leaves(outer) == [3.0]


def test_what_a_registered_class_must_give():
    class Number:
        pass
    tree_util.register_pytree_node(Number, lambda n: (7, None), lambda kept, parts: Number())
    with pytest.raises(ValueError, match="flatten function of Number must return"):
        gs.tree.leaves(Number())

    @dataclasses.dataclass
    class Twice:
        x: float
    with pytest.raises(ValueError, match="both name x"):
        tree_util.register_dataclass(Twice, ["x"], ["x"])


def test_options_of_segments():
    data, ids = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 5, 0, -1])
    assert gs.lax.segment_sum(data, ids, 2, bucket_size=2, indices_are_sorted=False).tolist() == [4.0, 0.0]
    assert gs.lax.segment_sum(data, ids, 2, mode="clip").tolist() == [8.0, 2.0]
    assert gs.lax.segment_max(data, ids, 2, mode="clip").tolist() == [4.0, 2.0]
    slope = gs.grad(lambda x: np.sum(gs.lax.segment_sum(x, ids, 2, mode="clip") ** 2))(data)
    assert slope.tolist() == [16.0, 4.0, 16.0, 16.0]


def test_apply_at_an_entry_that_is_named_twice():
    x, places = np.arange(1.0, 5.0), np.array([0, 2, 0])
    assert gs.at(x)[places].apply(lambda v: 2 * v).tolist() == [4.0, 2.0, 6.0, 4.0]
    assert gs.at(x)[places].apply(lambda v: 2 * v, unique_indices=True).tolist() == [2.0, 2.0, 6.0, 4.0]
    assert gs.at(np.ones((2, 2)))[:, [1, 1]].apply(lambda v: v + 1).tolist() == [[1.0, 3.0], [1.0, 3.0]]
    f = gs.grad(lambda x: np.sum(gs.at(x)[places].apply(lambda v: v * v)))
    assert f(x).tolist() == [4.0, 1.0, 6.0, 1.0] and gs.jit(f)(x).tolist() == [4.0, 1.0, 6.0, 1.0]


def test_the_dtype_of_a_vector_that_goes_back_to_a_tree():
    x = np.arange(4, dtype=np.float32)
    flat, back = tree_util.ravel_pytree({"a": x, "b": x[:2]})
    assert {leaf.dtype for leaf in back(flat < 2.0).values()} == {np.dtype(bool)}
    flat, back = tree_util.ravel_pytree((x, x.astype(np.int32)))
    assert flat.dtype == np.float64 and [leaf.dtype for leaf in back(flat)] == [np.float32, np.int32]
    with pytest.raises(TypeError, match="a vector of dtype float64"):
        back(flat < 2.0)

    def f(tree):
        flat, back = tree_util.ravel_pytree(tree)
        again = back(2.0 * flat)
        return np.sum(again["a"] ** 2) + np.sum(again["b"])

    tree = {"a": np.arange(3.0), "b": np.ones(2, np.float32)}
    for df in (gs.grad(f), gs.jit(gs.grad(f))):
        d = df(tree)
        np.testing.assert_allclose(d["a"], 8.0 * tree["a"])
        assert d["b"].tolist() == [2.0, 2.0] and d["b"].dtype == np.float32
