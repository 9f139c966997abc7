"""Joined loops: random rows of loops run as plain Python before and after, and what must not be joined."""
import ast
import importlib
import random

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.llvm_inline import VMATH
from gradscribe.codegen.loops.pipeline import optimised
from gradscribe.codegen.loops.trees import from_tree


class Writer:
    """A function of a few arrays: a row of loops as lowering writes them, with allocations, sums, views and aliases."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.rank = {"x": 1, "y": 1, "A": 2, "B": 2}
        self.numbers, self.lines, self.k = ["s"], [], 0

    def text(self):
        head = ["def f(x, y, A, B, s):", "    n = x.shape[0]", "    m = A.shape[1]"]
        for _ in range(self.r.randint(3, 12)):
            getattr(self, self.r.choice(["each"] * 6 + ["total", "steps"] * 2 + [
                "columns", "rows", "again", "other", "number", "shift", "view", "poke", "poke", "branch", "entry"]))()
        made = [n for n in self.rank if n not in "xyAB"]
        shown = self.r.sample(made, min(len(made), self.r.randint(1, 3))) if made else []
        tail = f"    return ({', '.join([*shown, *self.numbers[-2:]])},)"
        return "\n".join([*head, *("    " + line for line in self.lines), tail]) + "\n"

    def name(self, hint="z"):
        self.k += 1
        return f"{hint}_{self.k}"

    def operand(self, rank):
        """An entry at (i,) or (i, j), or a number."""
        known = [n for n, k in self.rank.items() if k <= rank]
        if not known or self.r.random() < 0.2:
            return self.r.choice([*self.numbers, "0.5", "2.0"])
        n = self.r.choice(known)
        if self.rank[n] == 2:
            return f"{n}[i, j]"
        return f"{n}[i]" if rank == 1 or n in ("x", "y") or self.r.random() < 0.7 else f"{n}[i]"

    def value(self, rank):
        a, b = self.operand(rank), self.operand(rank)
        return self.r.choice([f"{a} + {b}", f"{a} * {b}", f"{a} - 0.3 * {b}", f"tanh({a})", f"exp(-abs({a})) * {b}"])

    def loops(self, rank, lines, count=("n", "m")):
        out = [f"for {v} in range({c}):" for v, c in zip("ij", count[:rank])]
        return [*("    " * k + line for k, line in enumerate(out)), *("    " * rank + line for line in lines)]

    def made(self, name, rank, how=None):
        how = how or "empty"
        self.lines.append(f"{name} = np.{how}(({'n,' if rank == 1 else 'n, m'}), np.float64)")

    def each(self):
        rank = self.r.choice([1, 2])
        name = self.name()
        value = self.value(rank)
        self.made(name, rank)
        self.lines += self.loops(rank, [f"{name}[{'i' if rank == 1 else 'i, j'}] = {value}"])
        self.rank[name] = rank

    def again(self):
        """An array under a name that was used before."""
        names = [n for n in self.rank if n not in "xyAB"]
        if names:
            name = self.r.choice(names)
            rank, value = self.rank[name], self.value(self.rank[name])
            fresh = self.name("t")
            self.made(fresh, rank)
            self.lines += self.loops(rank, [f"{fresh}[{'i' if rank == 1 else 'i, j'}] = {value}"])
            self.lines.append(f"{name} = {fresh}")

    def other(self):
        """Another name for an array, which is then written."""
        names = [n for n in self.rank if n not in "xyAB" and self.rank[n] == 1]
        if names:
            name, old = self.name("v"), self.r.choice(names)
            self.lines.append(f"{name} = {old}")
            self.rank[name] = 1
            self.lines += self.loops(1, [f"{name}[i] = {self.value(1)}"])

    def view(self):
        names = [n for n in self.rank if self.rank[n] == 1 and n not in "xy"]
        if names:
            name, old = self.name("w"), self.r.choice(names)
            self.lines.append(f"{name} = {old}[::-1]")
            self.rank[name] = 1

    def poke(self):
        """Entries written, by whatever name."""
        names = [n for n in self.rank if self.rank[n] == 1 and n not in "xy"]
        if names:
            self.lines += self.loops(1, [f"{self.r.choice(names)}[i] = {self.value(1)}"])

    def total(self):
        rank, name = self.r.choice([1, 2]), self.name("sum")
        self.lines += [f"{name} = 0.0", *self.loops(rank, [f"{name} += {self.value(rank)}"])]
        self.numbers.append(name)

    def columns(self):
        name = self.name("c")
        self.lines += [f"{name} = np.zeros((m,), np.float64)", *self.loops(2, [f"{name}[j] += {self.value(2)}"])]
        self.numbers.append(f"{name}[0]")

    def rows(self):
        name, t = self.name("r"), self.name("t")
        self.made(name, 1)
        self.lines += ["for i in range(n):", f"    {t} = 0.0", "    for j in range(m):",
                       f"        {t} += {self.value(2)}",
                       f"    {name}[i] = {t}"]
        self.rank[name] = 1

    def number(self):
        name = self.name("t")
        self.lines.append(f"{name} = {self.r.choice(self.numbers)} * 0.5 + {self.r.choice(self.numbers)}")
        self.numbers.append(name)

    def shift(self):
        names = [n for n in self.rank if self.rank[n] == 1]
        name, source = self.name(), self.r.choice(names)
        self.made(name, 1)
        self.lines += self.loops(1, [f"{name}[i] = {source}[n - 1 - i] + {self.operand(1)}"])
        self.rank[name] = 1

    def branch(self):
        names = [n for n in self.rank if self.rank[n] == 1 and n not in "xy"]
        if names:
            name = self.r.choice(names)
            self.lines += [f"if {self.r.choice(self.numbers)} > 0.2:",
                           *("    " + line for line in self.loops(1, [f"{name}[i] = {self.value(1)}"]))]

    def steps(self):
        """A loop that carries an array, keeps each state in a row and makes a sum; then one that goes back."""
        u, t, kept, row, total = (self.name(h) for h in ("u", "t", "kept", "view", "sum"))
        self.made(u, 1)
        self.lines += self.loops(1, [f"{u}[i] = {self.value(1)}"])
        self.lines += [f"{kept} = np.zeros((3, n), np.float64)", f"{total} = 0.0"]
        body = [f"{row} = {kept}[k]", *self.loops(1, [f"{row}[i] = {u}[i]"], (f"{row}.shape[0]",)),
                f"{t} = np.empty((n,), np.float64)", *self.loops(1, [f"{t}[i] = tanh({u}[i] * {self.operand(1)})"])]
        if self.r.random() < 0.5:
            body += [f"{u}_2 = np.empty((n,), np.float64)", *self.loops(1, [f"{u}_2[i] = {t}[i] + {u}[i]"]),
                     *self.loops(1, [f"{total} += {u}_2[i] * {row}[i]"])]
        if self.r.random() < 0.3:
            body += [f"if {total} > {self.r.choice(['0.1', '9.0'])}:", f"    {self.r.choice(['break', 'continue'])}"]
        body.append(self.r.choice([f"{u} = {t}"] * 3 + [f"{u} = {t}[::-1]"]))
        if self.r.random() < 0.4:       # the same name again, for another array
            body += [f"{t} = np.empty((n,), np.float64)", *self.loops(1, [f"{t}[i] = {u}[i] - 0.5"])]
            body += self.r.choice([[], [f"{u} = {t}"], self.loops(1, [f"{total} -= {t}[i]"])])
        body += self.loops(1, [f"{total} += {u}[i]"])
        if self.r.random() < 0.3:
            body += self.loops(1, [f"{self.r.choice([u, t])}[i] = 0.25 * {total}"])
            body += [f"{total}_2 = 0.0", *self.loops(1, [f"{total}_2 += {u}[n - 1 - i] * {t}[i]"]),
                     f"{total} += {total}_2"]
        self.lines += ["for k in range(3):", *("    " + line for line in body)]
        self.rank[u] = 1
        self.numbers += [total, f"{kept}[1, 0]"]
        if self.r.random() < 0.7:
            back = self.name("back")
            self.made(back, 1, "zeros")
            self.lines += ["for k in range(3 - 1, -1, -1):", f"    {row}_2 = {kept}[k]",
                           *("    " + line for line in self.loops(1, [f"{back}[i] += {row}_2[i] * {self.operand(1)}"]))]
            self.rank[back] = 1

    def entry(self):
        names = [n for n in self.rank if self.rank[n] == 1]
        name = self.name("t")
        self.lines.append(f"{name} = {self.r.choice(names)}[0]")
        self.numbers.append(name)


def run(text, args):
    space = {"np": np, **{n: f for module in VMATH for n, f in vars(module).items()}}
    exec(text, space)
    return space["f"](*[np.array(a) if isinstance(a, np.ndarray) else a for a in args])


ARRAYS = {"x": ("float64", 1), "y": ("float64", 1), "A": ("float64", 2), "B": ("float64", 2)}


@pytest.mark.parametrize("start", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(100, 400, 100))])
def test_random_rows_of_loops(start):
    rng = np.random.default_rng(start)
    joined = 0
    for seed in range(start, start + 100):
        text = Writer(seed).text()
        after, origins = optimised(from_tree(ast.parse(text).body[0], ARRAYS))
        assert after.count("\n") == len(origins)
        joined += after.count("for ") < text.count("for ")
        for n, m in ((3, 4), (1, 1), (2, 3)):
            args = [rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, m)),
                    rng.standard_normal((n, m)), 0.3]
            for a, b in zip(run(text, args), run(after, args)):
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12, err_msg=f"{seed}\n{text}\n{after}")
    assert joined > 60


def test_a_loop_that_reads_backwards_stays():
    text = """def f(x):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    for i in range(n):
        z[i] = exp(x[i])
    w = np.empty((n,), np.float64)
    for i in range(n):
        w[i] = z[n - 1 - i]
    return (w,)
"""
    assert optimised(from_tree(ast.parse(text).body[0], {"x": ("float64", 1)}))[0] == text


def test_one_sweep_for_a_gradient():
    """A row standardised, its loss and its gradients: one loop over rows, nothing of the size of the argument kept."""
    def loss(x, g):
        mean = x.mean(axis=1, keepdims=True)
        return np.sum(((x - mean) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * g) ** 3)
    both = gs.jit(gs.value_and_grad(loss, (0, 1)))
    x, g = np.random.default_rng(0).standard_normal((40, 50)), np.linspace(0.5, 1.5, 50)
    value, (dx, dg) = both(x, g)
    plain, (dx_1, dg_1) = gs.value_and_grad(loss, (0, 1))(x, g)
    np.testing.assert_allclose(value, plain, rtol=1e-13)
    np.testing.assert_allclose(dx, dx_1, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dg, dg_1, rtol=1e-12)
    assert both.lowered.count("for i in") == 1 and both.lowered.count("np.empty((n_1, n_2)") == 1, both.lowered


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, np.complex128])
def test_dtypes_stay(dtype):
    def f(x):
        y = x * x
        z = np.where(y != 0, y, x)
        return z + y, np.sum(z)
    x = np.array([1, 0, 1, 1]).astype(dtype)
    a, b = gs.jit(f)(x)
    want = f(x)
    assert a.dtype == want[0].dtype and np.asarray(b).dtype == want[1].dtype
    np.testing.assert_array_equal(a, want[0])
    assert b == want[1]


@pytest.mark.slow
def test_arguments_that_are_one_array():
    def f(x, y):
        y[1:] = x[:-1] * 2
        z = x + 1
        return np.sum(z * y), z
    def same(x):
        return f(x, x)
    x = np.arange(5.0)
    want = same(x.copy())
    got = gs.jit(same)(x.copy())
    np.testing.assert_array_equal(got[1], want[1])
    assert got[0] == want[0]


def chain(length):
    lines = ["def long(x, y):", "    v0 = x * 2.0", "    v1 = y + x"]
    forms = ["np.tanh(v{a}) * v{b}", "v{a} + 0.5 * v{b}", "v{a} / (2.0 + v{b} * v{b})"]
    lines += [f"    v{k} = " + forms[k % 3].format(a=k - 1, b=k - 2) for k in range(2, length)]
    return "import numpy as np\n\n\n" + "\n".join([*lines, f"    return np.sum(v{length - 1})", ""])


def test_more_values_than_arrays_are_told_apart(tmp_path, monkeypatch):
    """What a gradient keeps of forty statements is read in the same loop: no array is made for it."""
    (tmp_path / "chain_of_40.py").write_text(chain(40))
    monkeypatch.syspath_prepend(tmp_path)
    f = importlib.import_module("chain_of_40").long
    x, y = np.linspace(0.1, 1.0, 7), np.linspace(1.0, 0.3, 7)
    compiled = gs.jit(gs.grad(f, (0, 1)))
    for a, b in zip(compiled(x, y), gs.grad(f, (0, 1))(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert compiled.lowered.count("for i in range") == 1
    assert compiled.lowered.count("np.empty") == 2


def test_loops_that_would_hold_too_many_arrays_stay_apart():
    """Thirty arrays that are read afterwards as well: joined by sixteen."""
    def text(count):
        lines = ["def f(x):", "    n = x.shape[0]"]
        for k in range(count):
            lines += [f"    z{k} = np.empty((n,), np.float64)", "    for i in range(n):",
                      f"        z{k}[i] = x[i] * {float(k)}"]
        return "\n".join([*lines, f"    return ({', '.join(f'z{k}' for k in range(count))})"]) + "\n"
    given = text(30)
    after, _ = optimised(from_tree(ast.parse(given).body[0], {"x": ("float64", 1)}))
    assert after.count("for i") == 2
    for a, b in zip(run(given, [np.arange(3.0)]), run(after, [np.arange(3.0)]), strict=True):
        np.testing.assert_array_equal(a, b)
