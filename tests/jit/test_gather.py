"""Sums into shifted places that become one loop: the same numbers, bit for bit, and nothing outside of an array."""
import ast
import random

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.pipeline import optimised
from gradscribe.codegen.loops.trees import from_tree


def text_of(seed):
    """A function that adds what it computes into shifted places of an array, in one to three axes."""
    r = random.Random(seed)
    rank = r.choice([1, 1, 2, 2, 3])
    letters, most = "ijk"[:rank], r.choice([1, 2, 5])
    lengths = [f"n{k}" for k in range(rank)]
    dtype = r.choice(["float64", "float64", "float32"])
    shape = ", ".join([*lengths, ""])
    wide = ", ".join([f"n{k} + {most}" for k in range(rank)] + [""])
    at = ", ".join(letters)
    sources = ["s", "u"][:r.choice([1, 1, 2])]

    def nest(line):
        heads = ["    " * (k + 1) + f"for {v} in range({n}):" for k, (v, n) in enumerate(zip(letters, lengths))]
        return [*heads, "    " * (rank + 1) + line]
    lines = ["def f(x, t0):", *(f"    n{k} = x.shape[{k}]" for k in range(rank))]
    lines += [f"    t = np.empty(({wide}), np.{dtype})"]
    heads = ["    " * (k + 1) + f"for {v} in range(n{k} + {most}):" for k, v in enumerate(letters)]
    lines += [*heads, "    " * (rank + 1) + f"t[{at}] = t0[{at}]"]
    for k, s in enumerate(sources):
        lines += [f"    {s} = np.empty(({shape}), np.{dtype})", *nest(f"{s}[{at}] = np.{dtype}({k + 2}.0) * x[{at}]")]
    for _ in range(r.randint(3, 6)):
        shifts = [r.randint(0, most) for _ in letters]
        place = ", ".join(f"{v} + {a}" if a else v for v, a in zip(letters, shifts))
        factor = r.choice(["", "", "-", "0.5 * "]) if dtype == "float64" else r.choice(["", "-"])
        lines += nest(f"t[{place}] {r.choice(['+=', '+=', '-='])} {factor}{r.choice(sources)}[{at}]")
    if r.random() < 0.3:
        lines += ["    total = 0.0", *nest(f"total += {sources[0]}[{at}]"), "    return (t, total)"]
    else:
        lines += ["    return (t,)"]
    return "\n".join(lines) + "\n", rank, most, dtype


def run(text, args):
    space = {"np": np}
    exec(text, space)
    return space["f"](*args)


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_random_sums(start):
    gathered = 0
    for seed in range(start, start + 40):
        text, rank, most, dtype = text_of(seed)
        given = {"x": (dtype, rank), "t0": (dtype, rank)}
        after, _ = optimised(from_tree(ast.parse(text).body[0], given))
        gathered += "_and_" in after
        for n in (0, 1, 2, 4):
            lengths = [n, 3, 2][:rank] if n != 2 else [4, 0, 3][:rank]
            rng = np.random.default_rng(seed)
            x = rng.normal(size=lengths).astype(dtype)
            t = rng.normal(size=[k + most for k in lengths]).astype(dtype)
            for a, b in zip(run(text, (x, t)), run(after, (x, t)), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{seed}\n{text}\n{after}")
    assert gathered > 15


def stencil(u):
    v = u.copy()
    for _ in range(3):
        v[1:-1, 1:-1] = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
    return np.sum(v * v)


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (3, 3), (5, 2), (7, 6), (0, 4)])
def test_a_stencil(shape):
    u = np.random.default_rng(0).normal(size=shape)
    compiled = gs.jit(gs.grad(stencil))
    np.testing.assert_allclose(compiled(u), gs.grad(stencil)(u), rtol=1e-13, atol=1e-14)
    assert min(shape) < 4 or compiled.lowered.count("+=") == 0, compiled.lowered


def test_what_is_not_finite_stays_where_it_is():
    """A border of zeros times what is infinite would be NaN."""
    def f(x, c):
        s = x * c
        y = np.zeros(len(x) + 2)
        y[:-2] += s
        y[1:-1] += s
        y[2:] += s
        return y
    x = np.array([1.0, np.inf, 2.0, np.nan, 1.0])
    for c in (2.0, np.inf):
        np.testing.assert_array_equal(gs.jit(f)(x, c), f(x, c))


def test_a_source_that_is_written_again_has_its_border_still():
    def f(x):
        y, total = np.zeros(len(x) + 2), 0.0
        for k in range(3):
            s = x * (k + 1.0)
            y[:-2] += s
            y[1:-1] -= s
            y[2:] += s
            total = total + np.sum(s * y[1:-1])
        return y, total
    x = np.linspace(-1.0, 2.0, 6)
    got, want = gs.jit(f)(x), f(x)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-14)
