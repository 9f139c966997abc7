# SPDX-License-Identifier: Apache-2.0
"""Loops over lists of arrays, tuples, dicts and records: several at once, in part, and beside other reads of them."""
import copy
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 0.3, 0.9])


@dataclass
class Layer:
    w: object
    b: object


def arrays(n):
    return [X * (k + 1) - 0.2 * k * k for k in range(n)]


def pairs(n):
    return list(zip(arrays(n), reversed(arrays(n + 1)[1:])))


def the_later_part_first(ws):
    s = np.ones(3)
    for a, b in zip(ws[1:], ws[:-1]):
        s = np.sin(s * a) + b
    return np.sum(s) + np.sum(ws[-1])


def parts_and_later_uses(ws):
    s = np.ones(3)
    for a, b in zip(ws[2:4], ws[:2]):
        s = np.sin(s * a) + b
    return np.sum(s) + np.sum(ws[2] * ws[3]) + np.sum(ws[4] ** 2)


def neighbours(ws):
    s = np.ones(3)
    for a, b in zip(ws, ws[1:]):
        s = np.sin(s * a) + b
    return np.sum(s)


def three_neighbours(ws):
    s = np.ones(3)
    for a, b, c in zip(ws, ws[1:], ws[2:]):
        s = np.sin(s * a) + b * c
    return np.sum(s) + np.sum(ws[2] ** 2)


def from_the_end(ws):
    s = np.ones(3)
    for a, _ in zip(reversed(ws), ws[1:]):
        s = s + a * a * s[0]
    return np.sum(s)


def the_first_two(ws):
    s = np.ones(3)
    for a, k in zip(ws[1:], range(2)):
        s = np.sin(s * a) * (k + 1)
    return np.sum(s)


def of_a_copy(ws):
    s, ws = np.ones(3), ws[:]
    for a, _ in zip(ws[:2], ws[::2]):
        s = s + a * s
    return np.sum(s)


def inside_another(ws):
    s = np.ones(3)
    for w in ws[:2]:
        for u, v in itertools.pairwise(ws):
            s = np.sin(s * w) * u + v
    return np.sum(s) + np.sum(ws[2] ** 2)


def layers_in_pairs(p):
    h = X
    for (w, b), (v, c) in zip(p[1:], p[:-1]):
        h = np.tanh(w * h + b) + v * c
    return np.sum(h) + sum(np.sum(w ** 2) + np.sum(b ** 3) for w, b in p)


def by_key(layers):
    h = X
    for layer in layers:
        h = np.tanh(layer["w"] * h + layer["b"])
    return np.sum(h) + 0.1 * sum(np.sum(layer["w"] ** 2) for layer in layers)


def by_whole_number(layers):
    h = X
    for layer in layers[:2]:
        h = np.tanh(layer[1] * h + layer[0])
    return np.sum(h) + np.sum(layers[0][1] ** 2)


def by_attribute(layers):
    h = X
    for layer in layers:
        h = np.tanh(layer.w * h + layer.b)
    return np.sum(h) + np.sum(layers[0].w ** 2)


CASES = [(f, arrays(n)) for f in (the_later_part_first, neighbours, three_neighbours, from_the_end, the_first_two,
                                  of_a_copy, inside_another) for n in (3, 5)]
CASES += [(parts_and_later_uses, arrays(5)), (layers_in_pairs, pairs(3)),
          (by_key, [dict(w=w, b=b) for w, b in pairs(3)]), (by_whole_number, [{1: w, 0: b} for w, b in pairs(3)]),
          (by_attribute, [Layer(w, b) for w, b in pairs(2)])]


def leaves(value):
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves(v)]
    if isinstance(value, list | tuple):
        return [leaf for v in value for leaf in leaves(v)]
    return [value.w, value.b] if isinstance(value, Layer) else [value]


@pytest.mark.parametrize("f, given", CASES, ids=lambda v: getattr(v, "__name__", None))
def test_gradients(f, given):
    wanted = []
    for k, leaf in enumerate(leaves(given)):
        wanted.append(np.zeros_like(leaf))
        for i in range(len(leaf)):
            ends = []
            for h in (1e-6, -1e-6):
                moved = copy.deepcopy(given)
                leaves(moved)[k][i] += h
                ends.append(f(moved))
            wanted[-1][i] = (ends[0] - ends[1]) / 2e-6
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        found = leaves(g(copy.deepcopy(given)))
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_a_list_beside_a_shorter_one():
    def f(ws, us):
        s = np.ones(3)
        for w, u in zip(ws, us):
            s = np.sin(s * w) + u
        return np.sum(s)
    found = gs.grad(f)(arrays(4), arrays(2))
    for a, b in zip(found, [*gs.grad(f)(arrays(2), arrays(2)), np.zeros(3), np.zeros(3)], strict=True):
        np.testing.assert_array_equal(a, b)


def counted(ws, n):
    s = 0.0
    for w, k in zip(ws, range(n)):
        s = s + np.sum(w * w) * (k + 1)
    return s


def counted_by_an_array(ws, n):
    s = 0.0
    for k, w in zip(np.arange(n), ws):
        s = s + np.sum(w * w) * (k + 1)
    return s


@pytest.mark.parametrize("f", [counted, counted_by_an_array])
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["plain", "compiled"])
def test_a_list_beside_as_many_as_an_argument_says(f, wrap):
    """One function called with other numbers: none of them holds for the next call."""
    g, ws = wrap(gs.grad(f)), arrays(3)
    for n in (2, 0, 1, 5, 3, 2):
        for k, (found, w) in enumerate(zip(g(ws, n), ws, strict=True)):
            np.testing.assert_allclose(found, 2 * w * (k + 1) * (k < n), rtol=1e-12)


# what is read back, or made of itself

ROWS, JUMP = np.array([[0, 0, 1], [1, 2, 2]]), np.array([1, 2, 1, 1])


def read_back_where_an_index_repeats(x):
    b, s = np.zeros(3), 0.0
    for i in range(2):
        v = np.exp(np.sin(x * np.arange(1, 4) + i))
        b[ROWS[i]] = v
        s += np.sum(v * v)
    return s + np.sum(b)


def steps_looked_up(x):
    k, s = 0, 0.0
    while k < 3:
        s += x[k] ** 2
        k = k + JUMP[k]
    return s


def places_put_at_themselves(x):
    b, order, s = x * 1.0, np.zeros(4, int), 0.0
    for _ in range(3):
        v = np.argmax(b)
        order[v] = v
        b[v] = b[v] * np.cos(b[order[0]]) * 0.3
        s += b[order[1]] ** 2
    return s + np.sum(b ** 2)


@pytest.mark.parametrize("f", [read_back_where_an_index_repeats, steps_looked_up, places_put_at_themselves])
def test_what_a_loop_puts_and_reads(f):
    x = X + 0.01
    wanted = [(f(x + d) - f(x - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(g(x), wanted, rtol=1e-6, atol=1e-8)


def test_an_array_that_is_written_over_keeps_the_dtype_of_its_path():
    def f(x):
        b = x.astype(np.float32) if x[0] > 0.4 else x * 1.0
        b = b * 2
        b[0] = x[1] / 3
        b[1:] = x[:-1] / 3
        return np.sum(b ** 2), b
    for x in (X, X - 0.2):
        (value, b), _ = gs.value_and_grad(f, has_aux=True)(x)
        want, array = f(x)
        assert value == want and value.dtype == want.dtype and b.dtype == array.dtype
