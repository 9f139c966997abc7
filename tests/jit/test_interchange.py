"""Loops whose order changes so that entries are read as they lie: the same numbers as in the order of the text."""
import ast
import random

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.pipeline import optimised
from gradscribe.codegen.loops.trees import from_tree

ARRAYS = {"A": ("float64", 2), "B": ("float64", 2), "C": ("float64", 2), "x": ("float64", 1)}


class Writer:
    """A function with a loop over columns, in each pass of which loops go down them."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.known, self.k = [], ["0.5"], 0

    def text(self):
        r = self.r
        head = ["def f(A, B, C, x):", "    n = A.shape[0]", "    m = A.shape[1]",
                "    D = np.empty((n, m), np.float64)", "    for i in range(n):", "        for j in range(m):",
                "            D[i, j] = C[i, j]", "    e = np.zeros((n,), np.float64)", "    total = 0.0",
                "    last = 0.0"]
        down = r.random() < 0.4
        head += [f"    for p in range({'m - 1, -1, -1' if down else 'm'}):"]
        for _ in range(r.randint(2, 6)):
            getattr(self, r.choice(["number", "sum", "sum", "column", "column", "row", "scattered", "total"]))()
        if r.random() < 0.2:
            self.lines.append(f"last = last * 0.5 + {r.choice(self.known)}")
        return "\n".join([*head, *("        " + line for line in self.lines), "    return (D, e, total, last)"]) + "\n"

    def number(self):
        self.k += 1
        name = f"t_{self.k}"
        self.lines.append(f"{name} = {self.value('p')} * {self.r.choice(self.known)}")
        self.known.append(name)

    def value(self, column, row="0"):
        return self.r.choice([f"A[{row}, {column}]", f"B[{row}, {column}]", f"D[{row}, {column}]", "0.3"])

    def sum(self):
        self.k += 1
        name, start = f"s_{self.k}", self.r.choice(["0.0", *self.known])
        self.lines += [f"{name} = {start}", "for i in range(n):",
                       f"    {name} {self.r.choice(['+=', '-='])} {self.value('p', 'i')} * {self.r.choice(self.known)}"]
        self.known.append(name)

    def column(self):
        self.lines += ["for i in range(n):",
                       f"    D[i, p] {self.r.choice(['+=', '='])} {self.value('p', 'i')} * {self.r.choice(self.known)}"]

    def row(self):
        self.lines += [f"D[0, p] = {self.r.choice(self.known)} + {self.value('p')}"]

    def scattered(self):
        self.lines += ["for i in range(n):", f"    e[i] += {self.value('p', 'i')} * {self.r.choice(self.known)}"]

    def total(self):
        self.lines += [f"total += {self.r.choice(self.known)} * {self.value('p')}"]


def run(text, args):
    space = {"np": np}
    exec(text, space)
    return space["f"](*[a.copy() for a in args])


@pytest.mark.parametrize("start", range(0, 160, 40))
def test_random_columns(start):
    changed = 0
    for seed in range(start, start + 40):
        text = Writer(seed).text()
        after, _ = optimised(from_tree(ast.parse(text).body[0], ARRAYS))
        changed += "_each" in after
        for n, m in ((3, 4), (1, 5), (4, 1), (2, 0)):
            rng = np.random.default_rng(seed)
            args = [rng.normal(size=(n, m)) for _ in range(3)] + [rng.normal(size=n)]
            for a, b in zip(run(text, args), run(after, args), strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-11, err_msg=f"{seed}\n{text}\n{after}")
    assert changed > 3


def handed_on(x, n):
    """Each pass reads the array that the pass before has made."""
    y, out = x * 1.0, np.zeros(len(x))
    for k in range(n):
        z = np.empty(len(x))
        for i in range(len(x)):
            z[i] = 0.5 * y[i] + x[i] * k
        for i in range(len(x)):
            out[i] += z[i] * k
        y = z
    return out


def summed(x, w, n):
    """A sum of arrays over two loops, from an array that was there before; as convolutions are written."""
    out = np.zeros((x.shape[0], w.shape[1]))
    for i in range(n):
        for j in range(2):
            out = out + x[:, j:j + w.shape[0]] @ w * (i + 1.0)
    return out


def summed_and_kept(x, w, n):
    """The same, where the first array is read later and a pass may be left."""
    first = np.ones((x.shape[0], w.shape[1]))
    out = first
    for _ in range(n):
        for j in range(2):
            if w[0, 0] > 5.0:
                continue
            out = out + x[:, j:j + w.shape[0]] @ w
    return out + 10.0 * first


@pytest.mark.parametrize("f", [summed, summed_and_kept])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_sums_of_arrays_over_two_loops(f, n):
    x, w = np.random.default_rng(0).normal(size=(20, 19)), np.random.default_rng(1).normal(size=(18, 17))
    made = gs.jit(f)
    np.testing.assert_allclose(made(x, w, n), f(x, w, n), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(made(x, w + 6.0, n), f(x, w + 6.0, n), rtol=1e-12, atol=1e-12)
    df = gs.grad(lambda x, w: np.sum(f(x, w, n) ** 2), (0, 1))
    for got, want in zip(gs.jit(df)(x, w), df(x, w)):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    assert f is summed_and_kept or "out = " not in made.lowered.partition("for j")[2]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_an_array_that_a_pass_hands_on(n):
    x = np.linspace(-1.0, 2.0, 7)
    np.testing.assert_allclose(gs.jit(handed_on)(x, n), handed_on(x, n), rtol=1e-14)

    def loss(x):
        return np.sum(handed_on(x, n) ** 2)
    np.testing.assert_allclose(gs.jit(gs.grad(loss))(x), gs.grad(loss)(x), rtol=1e-12)


def triangular(alpha, A, B):
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            B[i, j] += A[i + 1:, i] @ B[i + 1:, j]
            B[i, j] *= alpha
    return B


@pytest.mark.parametrize("m, n", [(5, 4), (1, 3), (4, 1), (0, 2)])
def test_slices_that_begin_at_a_number(m, n):
    rng = np.random.default_rng(0)
    A, B, w = rng.normal(size=(m, m)), rng.normal(size=(m, n)), rng.normal(size=(m, n))

    def loss(alpha, A, B):
        return np.sum(w * triangular(alpha, A, B.copy()))
    for got, want in zip(gs.jit(gs.grad(loss, (0, 1, 2)))(0.7, A, B), gs.grad(loss, (0, 1, 2))(0.7, A, B), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_lengths_that_do_not_match_are_refused():
    A, B = np.ones((3, 5)), np.ones((5, 2))
    with pytest.raises(ValueError):
        gs.jit(triangular)(0.5, A, B)


def lower(C, A, s):
    for i in range(A.shape[0]):
        C[i, :i + 1] *= s
        for k in range(A.shape[1]):
            C[i, :i + 1] += A[i, k] * A[:i + 1, k]
    return C


@pytest.mark.parametrize("columns", [4, 5, 9, 1])
def test_slices_that_end_at_a_number(columns):
    """What is added may be longer than what it is added to: NumPy refuses it, and so does compiled code."""
    rng = np.random.default_rng(1)
    C, A = rng.normal(size=(4, columns)), rng.normal(size=(4, 3))
    try:
        want = lower(C.copy(), A, 0.5)
    except ValueError:
        with pytest.raises(ValueError):
            gs.jit(lower)(C.copy(), A, 0.5)
        return
    np.testing.assert_allclose(gs.jit(lower)(C.copy(), A, 0.5), want, rtol=1e-13)
