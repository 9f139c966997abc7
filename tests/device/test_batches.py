"""The way back of a batch is one thread an example, as the way there is."""
import ast
import re

import numpy as np
import pytest
from device.batches import BATCHES

import gradscribe as gs
from gradscribe.codegen.loops.accumulate import accumulate
from gradscribe.codegen.loops.flat_lists import flatten_lists
from gradscribe.codegen.loops.form import Function
from gradscribe.codegen.loops.lists import handed_on
from gradscribe.codegen.loops.trees import block_of, from_tree, printed, to_statements, with_types
from gradscribe.codegen.targets.cuda.module import module_of
from gradscribe.runtime import device as backends


def form_of(text):
    """The function of x, n and other names that has a text."""
    return with_types(Function("f", ["x", "n"], {}, block_of(text)), {"x": ("float64", 1), "n": ("int64", 0)})


def text_of(function):
    lines = []
    printed(to_statements(function.block), 0, lines)
    return "\n".join(line for line, _ in lines)


@pytest.mark.parametrize("name", BATCHES)
def test_no_loops_of_the_host(name):
    function, args = BATCHES[name]
    with backends.using("plain"):
        compiled = gs.jit(function, target="cuda")
        compiled(*args)
    host = compiled.lowered.split("\ndef ")[-1]
    assert not re.findall(r"^\s+(?:for|while) .*", host, re.M)


@pytest.mark.golden
def test_text(golden):
    function, args = BATCHES["batch of newtons"]
    with backends.using("plain"):
        compiled = gs.jit(function, target="cuda")
        compiled(*args)
    golden("batch_of_newtons.py", compiled.lowered)


TEXT = """
kept = []
for b in range(n):
    saved = []
    saved.append(a[b])
    kept.append(saved)
for b in range(n - 1, -1, -1):
    mine = kept.pop()
    while len(mine) > 0:
        a[b] += mine.pop()
"""


@pytest.mark.parametrize("change", [
    ("for b in range(n):", "for b in range(m):"),                  # of another length
    ("range(n - 1, -1, -1)", "range(n)"),                           # the last list is the first pass's
    ("    kept.append(saved)", "    if b: kept.append(saved)"),     # not in each pass
    ("    saved = []", "    saved = other"),
    ("kept = []\n", "kept = list(given)\n"),
    ("    mine = kept.pop()", "    if b: mine = kept.pop()"),
    ("mine.pop()", "mine.pop(0)\n        again = mine"),            # has another name
    ("    while len", "    print(len(kept))\n    while len"),
    ("mine.pop()", "mine.pop() * mine.pop()"),                      # which of two is taken first
    ("mine.pop()", "mine.pop() if b else 0.0"),                     # one or none
    (TEXT, TEXT + "x = kept\n")])
def test_other_uses_stay(change):
    def handed(text):
        function = form_of(text)
        return handed_on(function.block[1], function.block, function, set())
    assert change[0] in TEXT and len(handed(TEXT)) == 1 and not handed(TEXT.replace(*change))


def test_numbers_of_a_batch():
    """Against the gradient of each example by itself."""
    function, args = BATCHES["batch of orbits"]
    with backends.using("plain"):
        dx = gs.jit(function, target="cuda")(*args)
    for k in range(0, 60, 7):
        np.testing.assert_allclose(dx[k], function(args[0][k:k + 1], 2.0)[0], rtol=1e-12)


def test_adjoints_of_weights_are_the_same_again():
    """Short ones are summed by a thread, and the threads' in one order; wide ones are one array for all threads."""
    with backends.using("plain"):
        texts = {}
        for name in ("shared weights", "shared weights, wide"):
            function, args = BATCHES[name]
            compiled = gs.jit(function, target="cuda")
            compiled(*args)
            texts[name] = compiled.lowered
    assert "atomic" not in texts["shared weights"] and "column_sum" in texts["shared weights"]
    assert "cuda.atomic.add(dw" in texts["shared weights, wide"]


NESTED = """
kept = []
for b in range(n):
    outer = []
    for k in range(5):
        inner = []
        inner.append(x[b])
        outer.append(inner)
    kept.append(outer)
for b in range(n - 1, -1, -1):
    mine = kept.pop()
    for k in range(5):
        last = mine.pop()
        x[b] += last.pop()
"""


@pytest.mark.parametrize("old, new", [
    ("        outer.append(inner)", "        if k:\n            outer.append(inner)"),
    ("inner = []", "inner = other"),
    ("outer.append(inner)", "outer.append(inner)\n        z = inner"),
    ("kept.append(outer)", "kept.append(outer)\n    z = outer"),
    ("last = mine.pop()", "last = mine.pop()\n        z = last"),
    ("last = mine.pop()", "last = mine.pop(0)"),
    ("mine = kept.pop()", "mine = kept[0]"),
    ("mine = kept.pop()", "mine = kept.pop()\n    mine = other"),
    ("for b in range(n - 1", "more.append(kept)\nfor b in range(n - 1")])
def test_other_lists_stay_nested(old, new):
    def changed(text):
        function = form_of(text)
        before = text_of(function)
        flatten_lists(function)
        return text_of(function) != before
    assert old in NESTED and changed(NESTED) and not changed(NESTED.replace(old, new))


SUMS = """
dw_1 = np.zeros((2,), np.float64)
dw = dw_1
for b in range(n):
    while x[b] > 1.0:
        t = np.empty((2,), np.float64)
        for i in range(2):
            t[i] = x[b] + dw[i]
        dw = t
return (dw,)
"""


def accumulated(text):
    function = form_of(text)
    accumulate(function)
    return text_of(function)



@pytest.mark.parametrize("old, new", [
    ("x[b] + dw[i]", "x[b] - dw[i]"),
    ("x[b] + dw[i]", "dw[1] + dw[i]"),
    ("x[b] + dw[i]", "x[b] + dw[1 - i]"),
    ("t[i] =", "t[0] ="),
    ("        dw = t", "        dw = t\n        u = t"),
    ("        dw = t", "        u = dw\n        dw = t"),
    ("        for i", "        y = dw\n        for i"),
    ("return (dw,)", "return (dw, dw_1)"),
    ("dw = dw_1", "dw = x"),
    ("        for i in range(2):", "        if b:"),
    ("np.zeros((2,), np.float64)", "np.zeros((2,), np.float32)"),
    ("np.zeros((2,)", "np.zeros((3,)"),                             # the last entry would be lost
    ("range(2)", "range(1)"),
    ("dw = dw_1", "dw = dw_1\nu = dw"),                              # u is what dw was at first
    ("dw = dw_1", "u = dw_1[1:]\ndw = dw_1")])
def test_other_sums_stay(old, new):
    assert "dw_own" in accumulated(SUMS)
    text = SUMS.replace(old, new)
    assert text != SUMS and accumulated(text) == text_of(form_of(text))


@pytest.mark.parametrize("old, new", [
    ("    while", "    if x[b] == 0: continue\n    while"),
    ("    while", "    n = n - 1\n    while")])
def test_passes_that_may_be_left_out_add_to_one_array(old, new):
    text = accumulated(SUMS.replace(old, new))
    assert "dw[i] += x[b]" in text and "own" not in text


def test_short_arrays_of_loops_that_the_host_goes_through():
    """Passes in an order, with a kernel in each: a thread cannot have what is made in them."""
    def f(x, n):
        y = np.zeros(4000)
        for t in range(n):
            v = np.zeros(20)
            v[0] = y[t] + x[t]
            for j in range(1, 20):
                v[j] = v[j - 1] * 0.5 + x[j] + y[j]
            for k in range(4000):
                y[k] += v[k % 20]
        return y
    with backends.using("plain"):
        compiled = gs.jit(f, target="cuda")
        x = np.linspace(0.1, 1.0, 40)
        np.testing.assert_allclose(compiled(x, 3), f(x, 3), rtol=1e-12)
    assert "v = cp.zeros((20,), np.float64)" in compiled.lowered and "cuda.local.array" not in compiled.lowered


def test_an_array_of_a_thread_by_the_name_of_what_its_module_calls():
    tree = ast.parse("""def f(x, n):
    y = np.empty((n,), np.float64)
    for b in range(n):
        grid = np.zeros((3,), np.float64)
        k = 0
        while x[b] * k < 10.0:
            grid[k % 3] += x[b] + k
            k += 1
        y[b] = grid[0] * grid[1] + grid[2]
    return (y,)
""")
    text = module_of(from_tree(tree.body[0], {"x": ("float64", 1), "n": ("int64", 0)})).text
    assert "grid_ = cuda.local.array((3,), np.float64)" in text
    assert "y[b] = grid_[0] * grid_[1] + grid_[2]" in text and "f_1[grid(n)](n, x, y)" in text
