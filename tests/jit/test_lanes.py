"""Loops whose passes take their own number of steps, side by side: the same numbers as one after the other."""
import ast
import random

import numpy as np
import pytest
from fuzz_lowered import plain

import gradscribe as gs
from gradscribe.codegen.loops.simd_while import in_lanes as taken_in_lanes
from gradscribe.codegen.loops.trees import from_tree, to_tree

SIZES = [0, 1, 15, 16, 17, 64, 65, 200]


def newton(a):
    x = a
    while abs(x * x - a) > 1e-9:
        x = 0.5 * (x + a / x)
    return x


def counted(a):
    """A whole number is the result, and the test has two parts."""
    n, x = 0, a
    while n < 40 and x > 0.05:
        x *= 0.7
        n += 1
    return n


def branches(a):
    x, low, high = a, 0, 0
    while x < 30.0:
        if x < 1.0:
            x = x * 2.0 + 0.1
            low += 1
        elif x < 5.0 or high > 3:
            x = x + 1.5
        else:
            x = x * 1.3
            high += 1
            if high > 2:
                x += 0.25
    return x + 10.0 * low + 100.0 * high


def left_by_break(a):
    x, steps = a, 0
    while True:
        x = np.cos(x) + 0.3 * x
        if x > 1.1:
            break
        steps += 1
        if steps > 20:
            break
    return x + steps


def returned_within(a):
    x = a
    for k in range(30):
        x = x + np.sin(x)
        if x > 3.0:
            return x * k
    return -x


def own_count(a):
    x = 0.0
    for k in range(int(10 * a)):
        x = 0.5 * x + a * k
    return x


def same_count(a):
    x = a
    for _ in range(12):
        x = 2.6 * x * (1.0 - 0.3 * x)
    return x


def flag(a):
    x, found = a, False
    while not found:
        x = x * 1.5
        found = x > 4.0
    return x if found else -1.0


def powers(a):
    x, t = a, 0.0
    while t < 3.0:
        h = min(0.7, max(0.1, x ** 2 + (1.0 + x) ** -0.5))
        t = t + h
        x = np.exp(-h) * x + np.sqrt(h) * np.tanh(x)
    return x


def untouched(a):
    """No step for the smaller half."""
    x = a
    while x > 0.9:
        x = x - 0.25
    return x


def choice(a):
    x, n = a, 0
    while n < 5:
        x = x * 0.5 if x > 1.0 and n < 3 else x + (0.7 if n > 1 else 0.1)
        n = n + 1
    return x


FUNCTIONS = [newton, counted, branches, left_by_break, returned_within, own_count, same_count, flag, powers, untouched,
             choice]


def in_lanes(text):
    return "lanes" in text


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_lanes_run_as_plain_python(function, monkeypatch):
    monkeypatch.setattr("gradscribe.codegen.jit_cpu.compiled_text", plain)
    batch = gs.jit(gs.vmap(function, strategy="loop"))
    for n in SIZES:
        a = np.random.default_rng(n).uniform(0.05, 2.0, n)
        np.testing.assert_allclose(batch(a), [function(v) for v in a], rtol=1e-13, err_msg=str(n))
    assert in_lanes(batch.lowered)


@pytest.mark.parametrize("function", [newton, pytest.param(branches, marks=pytest.mark.slow), left_by_break,
                                      *(pytest.param(f, marks=pytest.mark.slow) for f in FUNCTIONS[4:])],
                         ids=lambda f: f.__name__)
def test_lanes_compiled(function):
    batch = gs.jit(gs.vmap(function, strategy="loop"))
    for n in SIZES:
        a = np.random.default_rng(n).uniform(0.05, 2.0, n)
        np.testing.assert_allclose(batch(a), [function(v) for v in a], rtol=1e-12, err_msg=str(n))
    assert in_lanes(batch.lowered)


def test_a_loop_of_the_users():
    """No batch is needed for it."""
    def escape(x, height, limit):
        counts = np.zeros(x.shape[0], dtype=np.int64)
        for i in range(x.shape[0]):
            u, v, n = 0.0, 0.0, 0
            while n < limit and u * u + v * v <= 4.0:
                u, v = u * u - v * v + x[i], 2.0 * u * v + height
                n += 1
            counts[i] = n
        return counts
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 0.6, 300)
    compiled = gs.jit(escape)
    np.testing.assert_array_equal(compiled(x, 0.3, 60), escape(x, 0.3, 60))
    assert in_lanes(compiled.lowered)


def total(a):
    """The passes are summed: one after the other."""
    s = 0.0
    for i in range(a.shape[0]):
        x = a[i]
        while x > 0.1:
            x = x * 0.5
        s += x
    return s


def carried_on(a):
    """A pass starts where the one before ended."""
    out, x = np.zeros(a.shape[0]), 1.0
    for i in range(a.shape[0]):
        while x < a[i]:
            x = x * 1.5
        out[i] = x
    return out


def looked_up(a):
    """An entry that is read where the test allows it only."""
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        k, x = 0, 0.0
        while k < a.shape[0] - i:
            x = x + a[i + k] * 0.5
            k += 1
        out[i] = x
    return out


def last_one(a):
    """What the last pass leaves is read."""
    out, x = np.zeros(a.shape[0]), 0.0
    for i in range(a.shape[0]):
        x = a[i]
        while x > 0.1:
            x = x * 0.5
        out[i] = x
    return out, x


def whole_numbers(a):
    """A remainder may divide by zero where nothing is divided."""
    out = np.zeros(a.shape[0], dtype=np.int64)
    for i in range(a.shape[0]):
        n, k = int(100 * a[i]), 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        out[i] = k
    return out


def dear_branch(a):
    """What is rarely done, and costs much, is not done always."""
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        x = a[i]
        while x < 40.0:
            x = x + 0.5
            if x > 39.0:
                x = x + np.sin(x) ** 2 + np.cos(x) ** 2 + np.exp(-x) + np.tanh(x) + np.arctan(x) + np.log(x)
                x = x + np.arctan(x) ** 2 + np.cosh(x)
        out[i] = x
    return out


@pytest.mark.parametrize("function", [total, carried_on, looked_up, last_one, whole_numbers, dear_branch],
                         ids=lambda f: f.__name__)
def test_one_after_the_other(function, monkeypatch):
    monkeypatch.setattr("gradscribe.codegen.jit_cpu.compiled_text", plain)
    compiled = gs.jit(function)
    a = np.random.default_rng(3).uniform(0.05, 2.0, 70)
    for got, want in zip(np.atleast_1d(*[compiled(a)]) if function is not last_one else compiled(a),
                         np.atleast_1d(*[function(a)]) if function is not last_one else function(a), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    assert not in_lanes(compiled.lowered)


class Writer:
    """A random loop with a random loop in it, as lowering writes it."""

    def __init__(self, seed):
        self.r, self.masks = random.Random(seed), 0

    def text(self):
        lines = ["def f(a, c):", "    n = a.shape[0]", "    out = np.empty((n,), np.float64)", "    for b in range(n):",
                 "        x = a[b]", f"        y = {self.number('xc')}", "        k = 0", "        q = False",
                 "        while True:"]
        if self.r.random() < 0.4:
            lines += [f"            h = {self.number('xyk')}"]
            names = "xyhk"
        else:
            names = "xyk"
        lines += [f"            if not (k < {self.r.randint(1, 9)} and {self.test(names)}):", "                break"]
        lines += self.block(names, 3, 2)
        lines += ["            k = k + 1", f"        out[b] = {self.number(names)} + (1.0 if q else 0.0)",
                  "    return (out,)"]
        return "\n".join(lines) + "\n"

    def number(self, names):
        r = self.r
        a, b = (r.choice([*names, "0.5", "1.25"]) for _ in range(2))
        return r.choice([f"np.sin({a} + {b})", f"0.5 * {a} - 0.3 * {b}", f"np.tanh({a}) * {b}",
                         f"abs({a}) / (1.5 + {b} * {b})", f"min({a}, 0.3) + {b} * 0.25",
                         f"({a} if {b} > 0.4 else 0.75)"])

    def test(self, names):
        r = self.r
        a, b = r.choice(names), r.choice([*names, "0.4"])
        return r.choice([f"{a} < {b} + 0.2", f"not {a} > 0.9", f"-0.5 < {a} < 2.5", f"({a} > 0.1 or {b} < 0.3)",
                         "not q"])

    def block(self, names, level, depth):
        out, pad = [], "    " * level
        for _ in range(self.r.randint(1, 3)):
            kind = self.r.random()
            if kind < 0.3 and depth:
                out += [f"{pad}if {self.test(names)}:", *self.block(names, level + 1, depth - 1)]
                if self.r.random() < 0.5:
                    out += [f"{pad}else:", *self.block(names, level + 1, depth - 1)]
            elif kind < 0.45:
                out.append(f"{pad}q = {self.test(names)}")
            elif kind < 0.6:
                out.append(f"{pad}{self.r.choice('xy')} += {self.number(names)}")
            else:
                out.append(f"{pad}{self.r.choice('xy')} = {self.number(names)}")
        return out


@pytest.mark.parametrize("start", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (200, 400))])
def test_random_loops(start):
    done = 0
    for seed in range(start, start + 200):
        text = Writer(seed).text()
        made = from_tree(ast.parse(text).body[0], {"a": ("float64", 1), "c": ("float64", 0)})
        taken_in_lanes(made)
        after = ast.unparse(to_tree(made))
        done += in_lanes(after)
        for n in (0, 3, 70):
            a = np.random.default_rng(seed + n).uniform(-1.0, 2.0, n)
            np.testing.assert_allclose(run(after, a), run(text, a), rtol=1e-12, atol=1e-14,
                                       err_msg=f"{seed}\n{text}\n{after}")
    assert done > 150


def run(text, a):
    from gradscribe.runtime import vmath
    space = {"np": np, **vars(vmath)}
    exec(text, space)
    with np.errstate(all="ignore"):
        return space["f"](a, 0.3)[0]
