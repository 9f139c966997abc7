"""What threads have for themselves: functions compute what they did before, with copies for other names."""
import ast
import random

import numpy as np
import pytest

from gradscribe.codegen.loops.privatize import privatize
from gradscribe.codegen.loops.trees import from_tree, to_tree

GIVEN = {"x": ("float64", 2), "y": ("float64", 2), "n": ("int64", 0)}
NUMBERS = {"s": ("float64", 0), "p": ("float64", 1)}


def run(function):
    """What the function of the loop form computes, as Python runs it."""
    space = {"np": np}
    exec(compile(ast.fix_missing_locations(ast.Module([to_tree(function)], [])), "<f>", "exec"), space)
    x = np.arange(10.0).reshape(5, 2)
    y = np.zeros((5, 2))
    space["f"](x, y, 5)
    return np.concatenate([x, y])


def with_own_memory(body):
    """A loop's function with memory of its own, whether that has changed it; its results are as before."""
    lines = ["def f(x, y, n):", "    for b in range(n):", *("        " + line for line in body.splitlines() if line)]
    text = "\n".join(lines)
    before, after = (from_tree(ast.parse(text).body[0], GIVEN | NUMBERS) for _ in range(2))
    private = privatize(after)
    np.testing.assert_array_equal(run(before), run(after))
    return after, bool(private.made) or "_kept" in ast.unparse(to_tree(after))


START = """
v = np.zeros((2,), np.float64)
v[0] = x[b, 0]
"""
END = """
for j in range(2):
    y[b, j] += v[j]
"""


@pytest.mark.parametrize("body, own", [
    ("w = v\nv[1] = 2.0", True),                            # nothing reads w afterwards
    ("w = v\nv[1] = 2.0\ny[b, 0] += w[1]", False),
    ("w = v\ny[b, 0] += w[1]\nv[1] = 2.0", True),
    ("w = v\nw[1] = 2.0", False),
    ("w = v\nu = v\nw[1] = 3.0\ny[b, 0] += u[1]\nv = u", False),
    ("w = v\nv = np.zeros((2,), np.float64)\nw[1] = 2.0\ny[b, 0] += w[1]", True),
    ("w = v\nfor k in range(3):\n    y[b, 0] += w[0]\n    v[0] = 2.0", False),
    ("w = v\nfor k in range(3):\n    v = np.zeros((2,), np.float64)\n    v[0] = 2.0 + w[0]", True),
    ("r = x[b]\ny[b, 0] = r[1]", True),
    ("r = x[b]\nx[b, 1] = 7.0\ny[b, 0] = r[1]", True),
    ("r = x[b]\nw = np.zeros((2,), np.float64)\nw = r\nx[b, 1] = 7.0\ny[b, 0] = w[1]", False),
    ("r = x[b]\nw = np.zeros((2,), np.float64)\nw = r\nr[1] = 7.0\ny[b, 0] = w[1]", False),
    ("r = x[b]\nw = np.zeros((2,), np.float64)\nw = r\ny[b, 0] = w[1]", True),
    ("r = x[b]\nw = r\ny[b, 0] = w[1]", False),            # how long w is nobody says
    ("kept = []\nkept.append(v)\np = kept.pop()\ny[b, 0] = p[0]", True),
    ("kept = []\nkept.append(v)\nv[0] = 9.0\np = kept.pop()\ny[b, 0] = p[0]", False),
    ("kept = []\ns = x[b, 0]\nkept.append(s)\ny[b, 0] = kept.pop() if b > 1 else 0.5", False),
    ("kept = []\ns = x[b, 0]\nkept.append(s)\nkept.append(s)\ny[b, 0] = kept.pop() - 2.0 * kept.pop()", False),
    ("kept = []\ns = y[b, 0]\nkept.append(s)\ny[b, 0] = 2.0\ny[b, 1] = kept.pop()", False),
    ("kept = []\nfor k in range(b):\n    s = x[b, 0] + float(k)\n    kept.append(s)\n"
     "while len(kept) > 0:\n    y[b, 0] = 2.0 * y[b, 0] + kept.pop()", True),
])
def test_other_names(body, own):
    assert with_own_memory(START + body + END)[1] == own


def drawn(rng, depth=0):
    """Statements that make arrays, give them names, set their entries and put them into a list."""
    lines = []
    for _ in range(rng.randint(2, 6)):
        a, b, c = (rng.choice("uvw") for _ in range(3))
        kind = rng.choice(["new", "name", "set", "set", "add", "row", "if", "loop", "append"])
        if kind == "new":
            lines += [f"{a} = np.empty((2,), np.float64)", f"{a}[0] = {b}[1]" if a != b else f"{a}[0] = 1.0",
                      f"{a}[1] = float(b)"]
        elif kind == "name":
            lines.append(f"{a} = {b}")
        elif kind == "set":
            lines.append(f"{a}[{rng.randint(0, 1)}] = {b}[{rng.randint(0, 1)}] + {rng.randint(1, 5)}.0")
        elif kind == "add":
            lines.append(f"y[b, {rng.randint(0, 1)}] += {c}[{rng.randint(0, 1)}]")
        elif kind == "row":
            lines.append(f"{a} = r")
        elif kind == "append":
            lines.append(f"kept.append({a})")
        elif depth < 2:
            head = f"if {a}[0] < {rng.randint(0, 4)}.0:" if kind == "if" else "for k%d in range(2):" % depth
            lines += [head, *("    " + line for line in drawn(rng, depth + 1)), "    pass"]
            if kind == "loop" and rng.random() < 0.5:
                lines += [f"    if {b}[1] > 2.0:", f"        {rng.choice(['break', 'continue'])}",
                          f"    {a} = np.zeros((2,), np.float64)"]
    return lines


def test_random_names():
    """Of programs that are drawn, many have copies."""
    changed = 0
    for seed in range(300):
        rng = random.Random(seed)
        lines = ["kept = []", "r = x[b]", *(f"{a} = np.zeros((2,), np.float64)" for a in "uvw"), *drawn(rng)]
        if rng.random() < 0.5:
            lines = [line for line in lines if "kept" not in line]
        else:
            lines += ["while len(kept) > 0:", "    p = kept.pop()", "    y[b, 0] = 2.0 * y[b, 0] + p[0]"]
        changed += with_own_memory("\n".join(lines) + END)[1]
    assert changed > 60
