"""Random programs over lists of layers: arrays, tuples, dicts and records of them, which loops go over in several ways.

    python benchmarks/fuzz_layers.py --count 1000           eager gradients against differences
    python benchmarks/fuzz_layers.py --jit 10               ten per cent of them compiled, too
    python benchmarks/fuzz_layers.py --seed-only 19 -v      one program, with its text

A list has two to five layers.  A loop goes over it whole, in part, from its end, beside itself or another list (the
shortest ends it), counted, or by index, and may be inside another.  The gradient of all arrays is compared along a
random direction with the central difference of the plain function.
"""
import argparse
import collections
import copy
import random
import sys
import types

import numpy as np
from fuzz_programs import register

import gradscribe as gs

HEAD = """\
import itertools
from dataclasses import dataclass

import numpy as np


@dataclass
class Layer:
    w: object
    b: object


"""
PARTS = {"array": ("{}", "{}"), "tuple": ("{}[0]", "{}[1]"), "list": ("{}[0]", "{}[1]"),
         "dict": ("{}['w']", "{}['b']"), "record": ("{}.w", "{}.b")}


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.kind, self.n = self.r.choice(list(PARTS)), self.r.randint(2, 5)
        self.lines = ["def f(p, h, q):", "    s = 0.0"]
        for _ in range(self.r.randint(1, 3)):
            self.statement()
        self.lines.append("    return s + np.sum(h)")
        self.source = HEAD + "\n".join(self.lines) + "\n"

    def w(self, v):
        return PARTS[self.kind][0].format(v)

    def b(self, v):
        return PARTS[self.kind][1].format(v)

    def put(self, pad, *lines):
        self.lines += ["    " * pad + line for line in lines]

    def part(self, name="p"):
        r = self.r
        return r.choice([name, name, f"{name}[{r.randint(0, 1)}:]", f"{name}[:{r.randint(-1, self.n)}]",
                         f"{name}[::-1]", f"reversed({name})", f"{name}[::2]",
                         f"{name}[{r.randint(0, 1)}:{r.randint(1, self.n)}]"])

    def statement(self):
        r, which = self.r, self.r.random()
        if which < 0.7:
            self.loop(1)
        elif which < 0.85:
            self.put(1, f"s = s + sum(np.sum({self.w('l')} ** 2) for l in {self.part()})")
        else:
            self.put(1, f"s = s + np.sum({self.w(f'p[{r.randint(-2, 1)}]')} * {self.b('p[0]')})")
        if r.random() < 0.2:
            self.put(1, "p = " + r.choice(["p[1:] + p[:1]", "list(reversed(p))", "p + [p[0]]", "[*p]", "p[:]"]))

    def loop(self, pad):
        r, d = self.r, pad
        a, b, c, i = f"a{d}", f"b{d}", f"c{d}", f"i{d}"
        counted, other = f"h = h * (1 + 0.1 * {i})", f"h = h + {b}"
        head, held, first = r.choice([
            (f"for {a} in {self.part()}:", [a], []),
            (f"for {a}, {b} in zip({self.part()}, {self.part()}):", [a, b], []),
            (f"for {a}, {b} in zip(p, p[1:]):", [a, b], []),
            (f"for {i}, {a} in enumerate({self.part()}):", [a], [counted]),
            (f"for {a}, {b} in zip({self.part()}, {self.part('q')}):", [a], [other]),
            (f"for {i} in range(len(p)):", [a], [f"{a} = p[{i}]"]),
            (f"for {a}, {b}, {c} in zip({self.part()}, {self.part()}, {self.part()}):", [a, b, c], []),
            (f"for {a}, {i} in zip({self.part()}, range({r.randint(1, 4)})):", [a], [counted]),
            (f"for {a}, {b} in itertools.pairwise({self.part()}):", [a, b], []),
        ])
        self.put(pad, head)
        self.put(pad + 1, *first)
        if self.kind in ("tuple", "list") and held == [a] and r.random() < 0.2:
            self.put(pad + 1, f"w{d}, v{d} = {a}", f"h = h * w{d} + v{d}")
        for _ in range(r.randint(1, 2)):
            v, u = r.choice(held), r.choice(held)
            self.put(pad + 1, r.choice([
                f"h = np.sin(h * {self.w(v)}) + {self.b(u)}", f"s = s + np.sum(h * {self.b(v)})",
                f"h = h * {self.w(v)}", f"s = s + np.sum({self.w(v)} * {self.b(u)} * h[0])",
                f"h = np.tanh(h) + {self.w(u)} * {self.w(v)}"]))
        if r.random() < 0.25:
            self.put(pad + 1, f"s = s + np.sum({self.w(f'p[{r.randint(-1, 0)}]')} * h)")
        if r.random() < 0.15:
            self.put(pad + 1, f"if s > {r.uniform(-1, 3):.2f}:", f"    h = h * {self.w(r.choice(held))}")
        if r.random() < 0.1:
            self.put(pad + 1, f"if s > {r.uniform(2, 9):.2f}:", f"    {r.choice(['break', 'continue'])}")
        if pad < 2 and r.random() < 0.3:
            self.loop(pad + 1)


def leaves(value):
    """The arrays of a tree, in one order whatever the order of its keys."""
    if isinstance(value, dict):
        return [leaf for k in sorted(value) for leaf in leaves(value[k])]
    if isinstance(value, list | tuple):
        return [leaf for v in value for leaf in leaves(v)]
    return [value] if isinstance(value, np.ndarray) else [*leaves(value.w), *leaves(value.b)]


def check(seed, jit=0.0):
    """-> (kind, detail): right, refused, invalid, near a kink, wrong or failed."""
    program = Program(seed)
    module = sys.modules.setdefault("layers", types.ModuleType("layers")).__dict__      # where a dataclass is made
    module["__name__"] = "layers"
    exec(register(program.source, f"<layers {seed}>"), module)
    f, rng = module["f"], np.random.default_rng(seed)

    def array():
        return 0.5 * rng.standard_normal(3)

    def layer():
        w, b = array(), array()
        return {"array": w, "tuple": (w, b), "list": [w, b], "dict": {"w": w, "b": b}}.get(
            program.kind) if program.kind != "record" else module["Layer"](w, b)
    args = [layer() for _ in range(program.n)], array(), [array() for _ in range(rng.integers(1, 5))]
    direction = [rng.standard_normal(a.shape) for a in leaves(args)]
    try:
        f(*copy.deepcopy(args))
    except (IndexError, ValueError, NameError) as error:
        return "invalid", str(error)

    def moved(h):
        there = copy.deepcopy(args)
        for a, d in zip(leaves(there), direction):
            a += h * d
        return f(*there)
    g = gs.grad(f, (0, 1, 2))
    compiled = rng.random() * 100 < jit
    try:
        found = leaves(g(*copy.deepcopy(args)))
        fast = leaves(gs.jit(g)(*copy.deepcopy(args))) if compiled else found
    except gs.TransformError as error:
        return "refused", str(error).splitlines()[0]
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    if [a.shape for a in found] != [d.shape for d in direction] or len(fast) != len(found):
        return "wrong", f"{len(found)} arrays, compiled {len(fast)}; {len(direction)} are given"
    slopes = [(moved(h) - moved(-h)) / (2 * h) for h in (1e-6, 3e-6)]
    scale = 1 + abs(slopes[0])
    if abs(slopes[0] - slopes[1]) > 1e-5 * scale:
        return "near a kink", ""
    slope = sum(np.sum(a * d) for a, d in zip(found, direction))
    if abs(slope - slopes[0]) > 1e-5 * scale:
        return "wrong", f"{slope}, by differences {slopes[0]}"
    if any(np.max(np.abs(a - b)) > 1e-9 * (1 + np.max(np.abs(b))) for a, b in zip(fast, found)):
        return "wrong", "compiled, another gradient"
    return "right", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed-only", type=int)
    parser.add_argument("--jit", type=float, default=0, help="per cent of the programs that are compiled, too")
    parser.add_argument("-v", action="store_true", help="show the program")
    options = parser.parse_args()
    seeds = range(options.start, options.start + options.count) if options.seed_only is None else [options.seed_only]
    total, reasons = collections.Counter(), collections.Counter()
    for seed in seeds:
        kind, detail = check(seed, options.jit)
        total[kind] += 1
        reasons[detail] += kind == "refused"
        if kind in ("wrong", "failed") or options.v:
            print(f"{kind.upper()} seed {seed}: {detail}")
        if options.v:
            print(Program(seed).source)
        if sys.stderr.isatty():
            print(f"\r{seed}", end="", file=sys.stderr, flush=True)
    for why, n in reasons.most_common():
        if n:
            print(f"{n:6} refused: {why}")
    print(", ".join(f"{n} {kind}" for kind, n in total.most_common()))
    return bool(total["wrong"] or total["failed"])


if __name__ == "__main__":
    sys.exit(main())
