"""What is done to the text before it is compiled: names apart, memory handed on, fills that are used at once."""
import ast

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.analysis.liveness import Liveness, set_first
from gradscribe.codegen.loops.buffer_reuse import fills_used_at_once, reuse_buffers
from gradscribe.codegen.loops.trees import block_of, from_tree, to_statements, to_tree
from gradscribe.codegen.loops.webs import webs_apart


def names_apart(text):
    function = from_tree(ast.parse(text).body[0], {})
    webs_apart(function)
    return ast.unparse(to_tree(function))


@pytest.mark.parametrize("text, arguments", [
    ("def f(x, n):\n    t = 1\n    while True:\n        t = t + x\n        if t > n:\n            break\n"
     "        t = t * 2\n    s = t\n    t = 5\n    return s + t", [(1, 10), (3, 2)]),
    ("def f(x, n):\n    for i in range(n):\n        if i > 1:\n            t = i\n        else:\n            t = x\n"
     "        x = x + t\n    t = 2\n    return x * t", [(1, 0), (1, 4)]),
    ("def f(x, n):\n    i = 7\n    s = i\n    for i in range(n):\n        s = s + i\n    return s + i",
     [(1, 0), (1, 3)]),
    ("def f(x, n):\n    t = x\n    for i in range(n):\n        s = t\n        t = s + i\n        if t > 5:\n"
     "            continue\n        t = t + 1\n    s = t\n    t = 1\n    return s + t", [(0, 0), (0, 9)]),
    ("def f(x, n):\n    (a, b) = (x, n)\n    (a, b) = (b, a)\n    a += 1\n    return a * 10 + b", [(2, 3)]),
], ids=["while", "branches", "a loop's name", "continue", "tuples"])
def test_webs_compute_the_same(text, arguments):
    before, after = {}, {}
    exec(text, before)
    exec(names_apart(text), after)
    for args in arguments:
        assert before["f"](*args) == after["f"](*args)


def test_fills():
    def filled(text):
        block = block_of(text)[0].block
        fills_used_at_once(block)
        return [ast.unparse(s) for s in to_statements(block)]

    assert filled("for i in range(r):\n    a[i] = 0.0\n    t = i\n    a[i] -= t") == ["t = i", "a[i] = 0.0 - t"]
    for between in ("t = a[i]", "i = 2", "if t:\n        continue", "a[0] += 1", "if t:\n        a[i] += 2"):
        text = f"for i in range(r):\n    a[i] = 0.0\n    {between}\n    a[i] += 1"
        assert filled(text) == [ast.unparse(s) for s in to_statements(block_of(text)[0].block)]
    assert set_first(block_of("x = 1\ny = z\nif c:\n    w = 1\nz = 2")) == {"x", "y"}


def test_what_the_next_pass_reads_is_live_where_a_pass_ends_early():
    (loop,) = block_of("for i in range(3):\n    y = v\n    v = u\n    if y[i] > 0:\n        continue\n    v = w")
    first, second, branch, _ = loop.block
    found = Liveness([loop])
    assert "v" in found.after[branch.block[0]] | found.after[second] and second not in found.unread
    assert "v" not in found.after[first]


HEIR = """def f(x, n):
    a = np.empty((n,), np.float64)
    for i in range(n):
        a[i] = x[i]
    b = np.empty((n,), np.float64)
    {loop}
    return (b,)"""


@pytest.mark.parametrize("loop, handed_on", [
    ("for i in range(n):\n        b[i] = a[i] * 2", True),
    ("for i in range(n):\n        b[i] = a[n - 1 - i]", False),                 # another entry
    ("for t in range(3):\n        for i in range(n):\n            b[i] = a[i] + t", False),     # read again
    ("for i in range(n):\n        b[i] = x[i]\n        b[i] += a[i]", False),  # set before it is read
    ("for i in range(n):\n        b[i] = a[i]\n    s = a[0]", False),
    ("for i in range(n):\n        a[i] = 2.0\n        b[i] = a[i]", False),
    ("n = n - 1\n    for i in range(n):\n        b[i] = a[i]", False),
])
def test_heirs(loop, handed_on):
    function = from_tree(ast.parse(HEIR.format(loop=loop)).body[0], {"x": ("float64", 1)})
    reuse_buffers(function)
    assert ("b = a" in ast.unparse(to_tree(function))) == handed_on


def loops(x, w):
    s = 0.0
    for i in range(len(x)):
        t = np.sin(x[i] * w)
        if t > 0.2:
            s += t * t
        else:
            s -= t
    m = x[0]
    for i in range(1, len(x)):
        if x[i] > m:
            m = x[i]
    for i in range(len(x)):
        s += np.exp(x[i] - m)
    return np.log(s + 10.0) + m


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_gradients_of_loops(n):
    x = np.random.default_rng(n).normal(size=n)
    for made in (gs.grad(loops, argnums=(0, 1)), gs.value_and_grad(loops)):
        for got, want in zip(gs.jit(made)(x, 0.7), made(x, 0.7)):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
