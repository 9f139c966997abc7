"""Arrays whose axes are exchanged so that loops run along the last: the same numbers, nothing but entries changed."""
import ast
import itertools
import random

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.layout import lay_out
from gradscribe.codegen.loops.trees import from_tree, to_tree

ARRAYS = {"A": ("float64", 2), "B": ("float64", 2), "n": ("int64", 0), "m": ("int64", 0)}


def text_of(seed):
    """Loops that fill and read S and T in any order of their indices, whole or in triangles."""
    r = random.Random(seed)
    lines = ["S = np.empty((n, m), np.float64)", "T = np.zeros((m, n, 3), np.float64)", "total = 0.0"]

    def nest(body, count):
        axes = r.sample(["i", "j", "k"][:count], count)
        lengths = {"i": "n", "j": "m", "k": "3"}
        for depth, index in enumerate(axes):
            lines.append("    " * depth + f"for {index} in range({lengths[index]}):")
        lines.append("    " * count + body)
    nest("S[i, j] = A[i, j] + 0.5", 2)
    for _ in range(r.randint(2, 6)):
        body = r.choice([
            "S[i, j] += B[j, i]", "S[i, j] = S[i, j] * A[i, j]", "T[j, i, k] = S[i, j] + k", "T[j, i, k] += A[i, j]",
            "total += T[j, i, k] * B[j, i]", "total += S[i, j] * B[j, i]", "total += S[-1, j] * T[0, i, 2]",
            "S[i, 0] += T[j, i, 1]"])
        nest(body, 3 if "k]" in body else 2)
    ending = r.choice(["return (total,)", "return (total, S)", "return (total, T.shape[0])"])
    return "def f(A, B, n, m):\n" + "".join(f"    {line}\n" for line in [*lines, ending])


def run(text):
    space = {"np": np}
    exec(text, space)
    rng = np.random.default_rng(0)
    return space["f"](rng.normal(size=(4, 5)), rng.normal(size=(5, 4)), 4, 5)


def test_random_loops():
    changed = 0
    for seed in range(300):
        text = text_of(seed)
        function = from_tree(ast.parse(text).body[0], ARRAYS)
        lay_out(function)
        made = ast.unparse(to_tree(function))
        changed += "S = np.empty((m, n)" in made or "T = np.zeros((m, n, 3)" not in made
        for got, want in itertools.zip_longest(run(made), run(text)):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        if "return (total, S)" in text:
            assert "S = np.empty((n, m)" in made          # others see it
    assert changed > 100


def orthogonal(A):
    m, n = A.shape
    Q, R = np.zeros((m, n)), np.zeros((n, n))
    A = A.copy()
    for k in range(n):
        R[k, k] = np.sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = Q[:, k] @ A[:, j]
            A[:, j] -= Q[:, k] * R[k, j]
    return np.sum(Q ** 3) + np.sum(R ** 2)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (5, 4), (20, 17)])
def test_orthogonalisation(shape):
    A = np.random.default_rng(1).normal(size=shape)
    df = gs.jit(gs.grad(orthogonal))
    np.testing.assert_allclose(df(A), gs.grad(orthogonal)(A), rtol=1e-9, atol=1e-10)
    if shape == (20, 17):
        assert "Q[k, l]" in df.lowered and "Q[l, k]" not in df.lowered
