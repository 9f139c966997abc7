"""Entries that the loops of a row compute again: what they give, and where an array stays one."""
import ast

import numpy as np
import pytest

from gradscribe.codegen.loops.analysis.costs import Machine
from gradscribe.codegen.loops.form import Alloc, statements
from gradscribe.codegen.loops.row_values import compute_in_each_loop
from gradscribe.codegen.loops.trees import from_tree, to_tree

GIVEN = {"x": ("float64", 2), "w": ("float64", 1)}
MEMORY = Machine(load=1.0, store=1.0)   # which is what this machine waits for
ROWS = """def f(x, w):
    n = x.shape[0]
    m = x.shape[1]
    y = np.empty((n, m), np.float64)
    c = np.empty((n, m), np.float64)
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += x[i, j]
        q = 0.0
        for j in range(m):
            c[i, j] = x[i, j] - s
            q += c[i, j] * c[i, j]
        for k in range(m):
            y[i, k] = c[i, k] / q
    return (y,)"""


def arrays(function):
    return {s.name for s in statements(function.block) if isinstance(s, Alloc)}


def run(tree, *args):
    space = {"np": np}
    exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), "<f>", "exec"), space)
    return space["f"](*args)


def changed(text, machine=MEMORY):
    """The arrays that are left; the results are what they were, on several shapes."""
    before, after = (from_tree(ast.parse(text).body[0], GIVEN) for _ in range(2))
    compute_in_each_loop(after, machine)
    rng = np.random.default_rng(0)
    for n, m in ((3, 4), (1, 1), (2, 0), (0, 3)):
        args = rng.standard_normal((n, m)), rng.standard_normal(m)
        with np.errstate(all="ignore"):
            for a, b in zip(run(to_tree(before), *map(np.copy, args)), run(to_tree(after), *map(np.copy, args)),
                            strict=True):
                np.testing.assert_array_equal(a, b)
    return arrays(after)


def test_a_row_is_not_written():
    assert changed(ROWS) == {"y"}
    assert changed(ROWS, Machine(load=0.001, store=0.001)) == {"y", "c"}         # of a machine that waits for nothing


def test_what_it_is_made_of_is_taken_along():
    """d is read in the last loop, z in its own alone: both are computed again, or neither."""
    text = ROWS.replace("""        for k in range(m):
            y[i, k] = c[i, k] / q
""", """        t = 0.0
        for j in range(m):
            z[i, j] = c[i, j] / q
            d[i, j] = 3.0 * z[i, j] * z[i, j]
            t += d[i, j] * z[i, j]
        for j in range(m):
            y[i, j] = d[i, j] - t
""").replace("    c = np", "    z = np.empty((n, m), np.float64)\n    d = np.empty((n, m), np.float64)\n    c = np")
    assert changed(text) == {"y"}
    assert "z" in arrays(from_tree(ast.parse(text).body[0], GIVEN))


LAST, FIRST = "            y[i, k] = c[i, k] / q", "            c[i, j] = x[i, j] - s"


@pytest.mark.parametrize("old, new", [
    (LAST, f"{LAST}\n            x[i, k] = 0.0"),                                # y may be before it in memory
    ("        for k in range(m):", "        s = 2.0\n        for k in range(m):"),             # what it is made of
    (LAST, "            y[i, k] = c[i, 0] / q"),                                # another entry
    (LAST, "            y[i, k] = max(c[i, k], q)"),                            # a choice, which is exact
    (LAST, "            c[i, k] = c[i, k] / q\n            y[i, k] = c[i, k]"),
    (FIRST, "            c[i, j] = sin(x[i, j] - s)"),                          # dear
    (FIRST, f"            q += c[i, j]\n{FIRST}"),
    ("    return (y,)", "    return (y, c)"),
    ("    return (y,)", "    return (y, c[0:1])"),
    ("np.empty((n, m), np.float64)\n    for", "np.zeros((n, m), np.float64)\n    for"),
], ids=["stored", "set", "elsewhere", "choice", "twice", "dear", "before", "result", "view", "zeros"])
def test_where_it_stays_an_array(old, new):
    text = ROWS.replace(old, new)
    assert text != ROWS
    function = from_tree(ast.parse(text).body[0], GIVEN)
    compute_in_each_loop(function, MEMORY)
    assert "c" in arrays(function)


def test_a_branch_around_a_read():
    assert changed(ROWS.replace("            y[i, k] = c[i, k] / q", """            if w[k] > 0.0:
                y[i, k] = c[i, k] / q
            else:
                y[i, k] = 1.0""")) == {"y"}


def test_three_axes():
    text = """def f(x, w):
    n = x.shape[0]
    m = x.shape[1]
    y = np.empty((n, 2, m), np.float64)
    c = np.empty((n, 2, m), np.float64)
    for i in range(n):
        for l in range(2):
            q = 1.0
            for j in range(m):
                c[i, l, j] = x[i, j] * float(l)
                q += c[i, l, j]
            for j in range(m):
                y[i, l, j] = c[i, l, j] / q
    return (y,)"""
    assert changed(text) == {"y"}
