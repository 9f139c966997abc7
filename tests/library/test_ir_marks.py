# SPDX-License-Identifier: Apache-2.0
"""gs.make_ir says which statements belong to functions that jit or pmap has made."""
import numpy as np

import gradscribe as gs
from gradscribe import lax


def loss(w, x):
    return np.sum((x @ w) ** 2)


step = gs.jit(gs.grad(loss))
spread = gs.pmap(lambda w, x: lax.psum(gs.grad(loss)(w, x), "i"), axis_name="i", in_axes=(None, 0))


def train(w, x):
    for _ in range(3):
        w = w - 0.1 * step(w, x)
    return w


def lines(f, *args):
    return [line.strip() for line in str(gs.make_ir(f)(*args)).splitlines()]


def test_jit_inside_a_loop():
    found = lines(train, np.ones(2), np.ones((3, 2)))
    assert found[0].startswith("train(w: float64[")
    first, last = found.index("# jit of grad_loss", found.index("for i in range(3):")), found.index(
        "z_1: float64[w.shape[0]] = 0.1 * dw")
    inside = [line.split(" = ")[1] for line in found[first + 1:last - 1]]
    assert inside == ["x @ w_1", "2 * z", "transpose_x @ dz"] and found[last - 1] == "# end of jit of grad_loss"
    assert found.count("# jit of grad_loss") == found.count("# end of jit of grad_loss")


def test_pmap():
    found = lines(lambda w, x: spread(w, x) + 1, np.ones(2), np.ones((2, 3, 2)))
    first, last = found.index("# pmap of <lambda>"), found.index("# end of pmap of <lambda>")
    assert any("np.sum(dw, axis=0)" in line for line in found[first:last])
    assert not any(line.endswith("+ 1") for line in found[first:last]) and any(line.endswith("+ 1") for line in found)


def test_what_calls_a_derivative_keeps_its_name():
    assert "def train(w, x)" in gs.jit(train).source_for(np.ones(2), np.ones((3, 2)))
