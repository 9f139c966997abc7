"""Pictures of small functions: their values and adjoints, against the function and its gradient."""
import xml.etree.ElementTree as ET
from collections import namedtuple

import numpy as np
import pytest

import gradscribe as gs


def helper(a):
    return np.sin(a) * a


def loop(w, x, y):
    h = np.tanh(w * x)
    if h > 0.1:
        h = h * h
    for _ in range(2):
        h = 0.5 * (h + y / h)
    return helper(h) + w


def network(W, b, x):
    return np.sum(np.tanh(W @ x + b) ** 2)


def root(a):
    x = a
    while abs(x * x - a) > 1e-3:
        x = 0.5 * (x + a / x)
    return x


def written(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * (i + 1.0)
    return np.prod(y)


def walked(params, x):
    for w, b in params:
        x = np.tanh(w * x + b)
    return x


R = np.random.default_rng(0)
CASES = {
    "loop": (loop, (0.7, 0.9, 0.4)), "network": (network, (R.normal(size=(2, 3)), R.normal(size=2), R.normal(size=3))),
    "root": (root, (2.0,)), "written": (written, (np.array([0.5, 1.5, -0.7]),)),
}


@pytest.mark.parametrize("name", CASES)
def test_adjoints_of_arguments_are_the_gradient(name):
    f, args = CASES[name]
    nodes = gs.draw(f, *args).nodes
    for node, d in zip(nodes, gs.grad(f, tuple(range(len(args))))(*args)):
        np.testing.assert_allclose(node.adjoint, d, rtol=1e-6, atol=1e-9)
    assert nodes[-1].value == f(*args) and nodes[-1].adjoint == pytest.approx(1.0)


def test_loops_are_drawn_pass_by_pass():
    labels = [n.label for n in gs.draw(loop, *CASES["loop"][1]).nodes]
    assert labels.count("/") == 2 and labels[:3] == ["w", "x", "y"] and "np.sin" in labels


def test_containers():
    params = [(0.5, 0.1), (0.9, -0.2)]
    nodes = gs.draw(walked, params, 0.3).nodes
    (dw, _), (_, db) = gs.grad(walked)(params, 0.3)
    assert any(np.isclose(n.adjoint, dw, rtol=1e-7) for n in nodes if n.value == 0.5)
    assert any(np.isclose(n.adjoint, db, rtol=1e-7) for n in nodes if n.value == -0.2)
    assert nodes[-1].value == walked([(0.5, 0.1), (0.9, -0.2)], 0.3)


Pair = namedtuple("Pair", "a b")


def checked(p):
    assert p.a > 0, f"{p.a} is not positive"
    q = Pair(p.b * p.a, p.a)
    return q.a * q.b


def test_records_and_assertions():
    nodes = gs.draw(checked, Pair(0.5, 2.0)).nodes
    assert nodes[-1].value == checked(Pair(0.5, 2.0)) and [n.label for n in nodes if n.label == "*"]


def test_what_does_not_flow_is_left_out():
    nodes = gs.draw(lambda x, n, unused: x * n + np.floor(n), 2.0, 3, 5.0).nodes
    assert [n.label for n in nodes if not n.inputs] == ["x"]


def test_the_picture(tmp_path):
    picture = gs.draw(loop, *CASES["loop"][1])
    tree = ET.parse(picture.save(tmp_path / "loop.svg"))
    space = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f".//{space}rect")) == 1 + len(picture.nodes)
    texts = ["".join(t.itertext()) for t in tree.findall(f".//{space}text")]
    assert any("0.7" in t for t in texts) and picture._repr_svg_().startswith("<svg")
