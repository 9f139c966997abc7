"""Statements about numbers that are one call for Numba, among others that are not: compiled and plain agree."""
import random

import numpy as np
import pytest

import gradscribe as gs

A = np.array([[0.1, 0.2, 0.7, 0.0], [0.3, 0.1, 0.1, 0.1], [0.4, 0.2, 0.0, 0.3], [0.3, 0.2, 0.1, 0.2]])
X = np.array([0.3, 1.2, 0.7, 0.4])


def carried(x, n):
    """lack is read and set in one row only, and kept from pass to pass."""
    lack, y = 0.0, x
    for i in range(n):
        lack = lack + (y[0] - lack) / (i + 11.0)
        y = np.dot(A, y * (3.0 * lack * lack + 1.0))
    return y


def sometimes(x, n):
    """best is set in some passes, and only read where it is."""
    best, y = 10.0, x
    for _ in range(n):
        if y[0] < best:
            best = y[0] * y[1] + 0.1
        else:
            best = best * 1.5 - 0.2
        scale = 1.0 / (1.0 + best * best)
        y = np.dot(A, y) * scale
    return y


@pytest.mark.parametrize("f", [carried, sometimes])
def test_numbers_of_the_pass_before(f):
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(gs.jit(f)(X, n), f(X, n), rtol=1e-14)


def test_the_least_number_of_64_bits():
    """Written out it is a constant, not the negative of one that int64 does not hold."""
    def f(x, n):
        least = np.maximum(n, -9223372036854775808)
        most = np.minimum(least, 9223372036854775807)
        span = np.uint64(1) if most < 0 else np.uint64(most)
        y = np.dot(A, x) * -0.0
        return span % np.uint64(7), y + 1.0 / (x[0] ** -2)
    for n in (10, 0, -3, 2**62):
        for got, want in zip(gs.jit(f)(X, n), f(X, n), strict=True):
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
            np.testing.assert_allclose(got, want, rtol=1e-15)


class Writer:
    """A random program: numbers a to d, vectors y and z, products between them, loops and branches."""

    def __init__(self, seed):
        self.random, self.lines, self.depth = random.Random(seed), [], 0

    def number(self, deep=2):
        r = self.random
        if deep == 0 or r.random() < 0.3:
            return r.choice(["a", "b", "c", "d", f"y[{r.randrange(4)}]", f"z[{r.randrange(-4, 4)}]", "0.5", "1.25"])
        left, right = self.number(deep - 1), self.number(deep - 1)
        return r.choice([f"({left} + {right})", f"({left} - {right})", f"{left} * {right}", f"np.tanh({left})",
                         f"np.maximum({left}, {right})", f"({left} if {right} > 0.3 else {right})",
                         f"{left} / (2.0 + {right} * {right})"])

    def statement(self):
        r, pad = self.random, "    " * (self.depth + 1)
        kind = r.random()
        if kind < 0.5:
            self.lines.append(f"{pad}{r.choice('abcd')} = np.tanh({self.number()})")
        elif kind < 0.62:
            self.lines.append(f"{pad}{r.choice('ab')} {r.choice(['+', '-', '*'])}= 0.5 * np.tanh({self.number()})")
        elif kind < 0.72:
            self.lines.append(f"{pad}{r.choice('yz')} = np.dot(A, {r.choice('yz')}) * np.tanh({self.number(1)})")
        elif kind < 0.8:
            self.lines.append(f"{pad}w[{r.randrange(4)}] = {self.number(1)}")
        elif self.depth < 3:
            loops = r.random() < 0.6
            head = f"for i{self.depth} in range({r.choice([0, 1, 3])})" if loops else f"if {self.number(1)} < 0.4"
            self.lines.append(f"{pad}{head}:")
            self.block(2)
            if not loops and r.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.block(2)
        else:
            self.lines.append(f"{pad}c = d * {self.number(1)}")

    def block(self, least):
        self.depth += 1
        for _ in range(self.random.randrange(least, least + 3)):
            self.statement()
        self.depth -= 1

    def text(self):
        self.lines = ["def f(x):", "    a, b, c, d = 0.1, x[0], 1.0, x[1] * x[2]",
                      "    y, z, w = x, 1.0 - x, np.zeros(4)", "    for k in range(4):"]
        self.block(4)
        self.statement()
        return "\n".join([*self.lines, "    return a, b, c, d, y, z, w", ""])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed, tmp_path):
    text = Writer(seed).text()
    path = tmp_path / "program.py"
    path.write_text(text)
    space = {"np": np, "A": A}
    exec(compile(text, str(path), "exec"), space)
    f = space["f"]
    for x in (X, -X):
        for got, wanted in zip(gs.jit(f)(x), f(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13, err_msg=text)


def relaxed(x, y, n):
    """x and y may be one array; what the function makes is no part of either."""
    u, v = np.zeros(len(x)), np.ones(len(x))
    for _ in range(n):
        u[1:-1] = 0.5 * (v[:-2] + v[2:]) + x[1:-1] * y[:-2]
        v[1:-1] = 0.25 * (u[:-2] - u[2:]) + y[1:-1]
        v = v + 0.1 * u
    return u, v


@pytest.mark.parametrize("same", [True, False, "overlapping"])
def test_arrays_that_are_apart_and_those_that_may_be_one(same):
    """LLVM is told of arrays that the function makes, and of nothing else."""
    def arguments():
        whole = np.linspace(-1.0, 1.0, 40)
        x = whole[:33]
        return x, x if same is True else whole[4:37] if same else np.linspace(2.0, 3.0, 33), 5
    compiled = gs.jit(relaxed)
    for got, want in zip(compiled(*arguments()), relaxed(*arguments()), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)


def test_llvm_is_told_of_arrays_that_are_apart():
    from gradscribe.codegen.loops.analysis.arrays import apart
    from gradscribe.codegen.loops.form import Function
    from gradscribe.codegen.loops.trees import block_of
    block = block_of("""a = np.empty((n,), np.float64)
b = np.empty((n,), np.float64)
c = np.empty((n,), np.float64)
for i in range(n):
    a[i] = x[i]
    b[i] = a[i]
    c[i] = b[i]
d = b
e = c[1:]
return (a, d, e)""")
    assert apart(Function("f", ["x", "n"], {}, block)) == {"a": "a", "b": "b", "d": "b"}
