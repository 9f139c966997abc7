"""Neighbours around an axis: the passes at the ends of a loop stand alone, and give what the loop gives."""
import ast
import random

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.pipeline import optimised
from gradscribe.codegen.loops.trees import from_tree
from gradscribe.runtime import compiled

ARRAYS = {"x": ("float64", 1), "A": ("float64", 2)}
SPACE = {"np": np, **{n: f for n, f in vars(compiled).items() if not n.startswith("_")}}


def text_of(seed):
    """A function that reads and adds to neighbours, in loops up or down."""
    r = random.Random(seed)

    def around(i, n):
        c = r.choice([-2, -1, -1, 0, 1, 1, 2, 3])
        shifted = f"{i} + {c}" if c >= 0 else f"{i} - {-c}"
        return f"place(({shifted}) % {n}, {n})" if r.random() < 0.7 else f"({shifted}) % {n}"

    def value():
        return r.choice([lambda: f"x[{around('i', 'n')}]", lambda: f"A[{around('i', 'n')}, {around('j', 'm')}]",
                         lambda: f"A[i, {around('j', 'm')}]", lambda: "x[i] * A[i, j]", lambda: "rate"])()
    lines = ["def f(x, A):", "    n = A.shape[0]", "    m = A.shape[1]", "    if x.shape[0] != n:",
             "        raise ValueError('lengths')", "    B = np.zeros((n, m), np.float64)",
             "    total = 0.0", "    rate = 1.0"]
    for _ in range(r.randint(1, 2)):
        up = [r.random() < 0.7 for _ in range(2)]
        lines.append(f"    for i in range({'n' if up[0] else 'n - 1, -1, -1'}):")
        lines.append(f"        for j in range({'m' if up[1] else 'm - 1, -1, -1'}):")
        lines.append(f"            t = {value()} + 0.5 * {value()}")
        lines.append(r.choice([f"            B[i, {around('j', 'm')}] += t", "            B[i, j] += t * t",
                               f"            B[{around('i', 'n')}, {around('j', 'm')}] -= t"]))
        if r.random() < 0.3:
            lines.append(f"            total = total * 0.9 + {value()}")
        if r.random() < 0.3:
            lines += [f"            if t > {value()}:", f"                rate = rate + 0.1 * {value()}"]
    return "\n".join([*lines, "    return (B, total, rate)"]) + "\n"


def run(text, args):
    space = dict(SPACE)
    exec(text, space)
    return space["f"](*[a.copy() for a in args])


def test_as_the_loop():
    split = 0
    for seed in range(300):
        text = text_of(seed)
        lowered, _ = optimised(from_tree(ast.parse(text).body[0], ARRAYS))
        split += lowered.count("% m") < text.count("% m") or "if m >=" in lowered
        rng = np.random.default_rng(seed)
        for n, m in [(1, 1), (1, 2), (2, 1), (3, 2), (2, 3), (4, 5), (7, 6)]:
            args = rng.normal(size=n), rng.normal(size=(n, m))
            for a, b in zip(run(lowered, args), run(text, args)):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13, err_msg=f"{seed}\n{text}\n{lowered}")
    assert split > 150, split


def wave(u, c, steps):
    n = u.shape[0]
    a, b = u.copy(), u.copy()
    for _t in range(steps):
        w = np.zeros(n)
        for i in range(n):
            w[i] = 2 * a[i] - b[i] + 0.1 * c[i] * (a[i - 1] + a[(i + 1) % n] - 2 * a[i])
        b = a
        a = w
    return np.sum(a * a)


def field(h, steps):
    n, k = h.shape
    m = np.zeros((n, k))
    for _t in range(steps):
        g = np.zeros((n, k))
        for i in range(n):
            for j in range(k):
                near = m[(i + 1) % n, j] + m[(i - 1) % n, j] + m[i, (j + 1) % k] + m[i, (j - 1) % k]
                far = m[i, (j + 2) % k] - m[i, (j - 2) % k]
                g[i, j] = np.tanh(0.3 * near + 0.1 * far + h[i, j])
        m = g
    return np.sum(m * h)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 12])
def test_gradients(n):
    rng = np.random.default_rng(n)
    u, c, h = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, n))
    for f, args, numbers in [(wave, (u, c, 4), (0, 1)), (field, (h, 3), (0,))]:
        assert gs.jit(f)(*args) == pytest.approx(f(*args), rel=1e-12)
        for a, b in zip(gs.jit(gs.grad(f, numbers))(*args), gs.grad(f, numbers)(*args)):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_no_pass_of_the_middle_divides():
    h = np.ones((20, 21))
    compiled = gs.jit(field)
    compiled(h, 3)
    inner = compiled.lowered.split("for j in range(n_2 - 4):")[1].split("for ")[0]
    assert "% n_2" not in inner.split("g[i, j + 2]")[0], compiled.lowered
