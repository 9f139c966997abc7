"""Random programs of nothing but control flow: ways out of loops, branches and blocks, nested at random.

    python benchmarks/fuzz_exits.py --count 2000

Every other statement is one step `x = a * x + b`, so that a path taken wrongly changes the value and the derivative.
"""
import argparse
import collections
import random
import sys
import warnings

import numpy as np
from fuzz_programs import register


class Number:
    """A value and its derivative."""

    def __init__(self, value, dot=0.0):
        self.value, self.dot = value, dot

    def __mul__(self, by):
        return Number(self.value * by, self.dot * by)

    def __add__(self, by):
        return Number(self.value + by, self.dot)

    def __gt__(self, other):
        return self.value > other

    def __lt__(self, other):
        return self.value < other


class Writer:
    def __init__(self, seed):
        self.rng, self.count = random.Random(seed), 0
        self.loops = []                 # the counter of each loop around

    def program(self):
        lines = self.block(0, False)
        return "def f(x, k):\n" + "\n".join(["    " + line for line in lines]) + f"\n    return {self.step()}\n"

    def step(self):
        self.count += 1
        return f"x * {round(self.rng.uniform(0.5, 1.5), 3)} + {round(self.rng.uniform(-1, 1), 3)}"

    def fresh(self, name):
        self.count += 1
        return f"{name}_{self.count}"

    def test(self):
        choices = [f"k > {self.rng.randint(-1, 3)}", f"x > {round(self.rng.uniform(-1, 4), 2)}",
                   f"k % {self.rng.randint(2, 3)} == 1"]
        if self.loops:
            choices += [f"{self.rng.choice(self.loops)} == {self.rng.randint(0, 2)}"] * 2
        return self.rng.choice(choices)

    def block(self, depth, in_loop):
        out = []
        for _ in range(self.rng.choice((1, 2, 2) if depth < 2 else (1, 1, 2))):
            out += self.statement(depth, in_loop)
        return out

    def inner(self, depth, in_loop):
        return ["    " + line for line in self.block(depth + 1, in_loop)]

    def statement(self, depth, in_loop):
        kinds = ["step"] * 3 + (["leave"] if depth else [])
        if depth < 3 and self.count < 25:
            kinds += ["branch"] * 3 + ["counted"] * 3 + ["asked", "named", "match", "with"]
            kinds += ["tried"] * (self.rng.random() < 0.1)
        return getattr(self, f"write_{self.rng.choice(kinds)}")(depth, in_loop)

    def write_leave(self, depth, in_loop):
        kinds = ["return"] + ["break", "continue"] * 2 * in_loop
        kind = self.rng.choice(kinds)
        kind = f"return {self.step()}" if kind == "return" else kind
        return [kind] if self.rng.random() < 0.15 else [f"if {self.test()}:", f"    {kind}"]

    def write_branch(self, depth, in_loop):
        out = [f"if {self.test()}:", *self.inner(depth, in_loop)]
        if self.rng.random() < 0.3:
            out += [f"elif {self.test()}:", *self.inner(depth, in_loop)]
        if self.rng.random() < 0.5:
            out += ["else:", *self.inner(depth, in_loop)]
        return out

    def ended(self, out, depth, in_loop):
        return out + (["else:", *self.inner(depth, in_loop)] if self.rng.random() < 0.4 else [])

    def write_counted(self, depth, in_loop):
        i = self.fresh("i")
        self.loops.append(i)
        out = [f"for {i} in range({self.rng.choice(['3', '2', '1', '0', 'k', 'k + 1'])}):", *self.inner(depth, True)]
        self.loops.pop()
        return self.ended(out, depth, in_loop)

    def write_asked(self, depth, in_loop):
        n = self.fresh("n")
        self.loops.append(n)
        out = [f"{n} = {self.rng.choice(['3', '2', '0', 'k'])}", f"while {n} > 0:", f"    {n} -= 1",
               *self.inner(depth, True)]
        self.loops.pop()
        return self.ended(out, depth, in_loop)

    def write_named(self, depth, in_loop):
        n = self.fresh("n")
        self.loops.append(n)
        out = [f"{n} = {self.rng.choice(['3', '2', '0', 'k'])}", f"while ({n} := {n} - 1) >= 0:",
               *self.inner(depth, True)]
        self.loops.pop()
        return self.ended(out, depth, in_loop)

    def write_match(self, depth, in_loop):
        out = ["match k:"]
        for pattern in self.rng.sample(["0", "1", "2", "1 | 3", "n if n > 2"], self.rng.randint(1, 3)):
            out += [f"    case {pattern}:", *("    " + line for line in self.inner(depth, in_loop))]
        if self.rng.random() < 0.5:
            out += ["    case _:", *("    " + line for line in self.inner(depth, in_loop))]
        return out

    def write_step(self, depth, in_loop):
        return [f"x = {self.step()}"]

    def write_with(self, depth, in_loop):
        return ["with np.errstate(all='ignore'):", *self.inner(depth, in_loop)]

    def write_tried(self, depth, in_loop):
        out = ["try:", *self.inner(depth, in_loop)]
        kind = self.rng.choice(["except", "else", "finally"])
        if kind != "finally":
            out += ["except ValueError:", *(self.inner(depth, in_loop) if self.rng.random() < 0.5 else ["    raise"])]
        if kind == "else":
            out += ["else:", *self.inner(depth, in_loop)]
        return out + (["finally:", f"    x = {self.step()}"] if kind == "finally" else [])


def check(gs, seed):
    """(kind, detail): the values and derivatives of a program for several paths through it."""
    source, space = Writer(seed).program(), {"np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(register(source, f"<exits {seed}>"), space)
    f = space["f"]
    both = gs.value_and_grad(f)
    for k in (-1, 0, 1, 2, 3, 5):
        for x in (0.37, 1.53):
            end = f(Number(x, 1.0), k)
            want = end.value, end.dot
            try:
                got = {"gradient": both(x, k), "tangent": gs.jvp(f, (x, k), (1.0, 0))}
            except gs.TransformError as error:
                return "refused", str(error).splitlines()[0]
            for what, pair in got.items():
                if not np.allclose(pair, want, rtol=1e-9, atol=1e-9):
                    return "wrong", f"{what} at x = {x}, k = {k}: {pair}, expected {want}"
    return "right", ""


def main():
    import gradscribe as gs
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("-v", action="store_true", help="show the programs")
    options = parser.parse_args()
    tally, reasons = collections.Counter(), collections.Counter()
    for seed in range(options.start, options.start + options.count):
        if options.v:
            print(Writer(seed).program())
        try:
            kind, detail = check(gs, seed)
        except Exception as error:
            kind, detail = "failed", f"{type(error).__name__}: {error}"
        tally[kind] += 1
        if kind in ("wrong", "failed"):
            print(f"{kind.upper()} seed {seed}: {detail}")
        elif kind == "refused":
            reasons[detail] += 1
    for reason, count in reasons.most_common():
        print(f"  {count:5} refused: {reason}")
    print(dict(tally))
    return bool(tally["wrong"] + tally["failed"])


if __name__ == "__main__":
    sys.exit(main())
