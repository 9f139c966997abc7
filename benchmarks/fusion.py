"""What joining loops is worth: the four kinds that XLA names, each with and without, at a million numbers.

    python benchmarks/fusion.py [--show]

Sweeps: how often an array is read or written from one end to the other, counted in the text that is compiled.  --show
prints the texts.  The kinds, after XLA's passes: an instruction goes into the one that reads it; two loops are merged
by computing again what the second reads; siblings read the same arrays; a producer whose value is still needed is
written in its consumer's loop.
"""
import argparse
import ast
import contextlib
import os
import sys
from unittest import mock

from suite import ONE_THREAD, in_turns

if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in ONE_THREAD.items()):
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})    # before NumPy is imported

import numpy as np  # noqa: E402  the threads are set before

import gradscribe as gs  # noqa: E402
from gradscribe.codegen.loops import pipeline  # noqa: E402
from gradscribe.codegen.loops.fusion import Fusion  # noqa: E402

N = 1_000_000


def instruction(x, y):
    """Each value is read once, by the next: one loop, and no array but the result."""
    product = x * y
    shifted = product + 1.0
    halved = 0.5 * shifted
    return np.sqrt(halved)


def merger(x, y):
    """The sum needs all of `scaled`, and so do the quotients: computed twice, it is never stored."""
    scaled = x * y
    total = np.sum(scaled)
    return scaled / total


def sibling(x, y):
    """Three sums over the same numbers: one sweep."""
    products = np.sum(x * y)
    squares = np.sum(x * x)
    others = np.sum(y * y)
    return products / np.sqrt(squares * others)


def producer_consumer(x, y):
    """`residual` is a result and is read by the loss: written and summed in one sweep."""
    residual = x - y
    loss = np.sum(residual * residual)
    return residual, loss


KINDS = {"instruction": instruction, "merger": merger, "sibling": sibling, "producer-consumer": producer_consumer}


@contextlib.contextmanager
def unfused():
    """Each statement keeps a loop and an array of its own."""
    with mock.patch.object(Fusion, "joined", lambda *_: False), mock.patch.object(
            pipeline, "contract", lambda _: None), mock.patch.object(pipeline, "rematerialise", lambda _: set()):
        yield


def sweeps(text):
    """How many arrays a text's loops read and how many they write, each loop for itself."""
    reads = writes = 0
    for loop in ast.walk(ast.parse(text)):
        if isinstance(loop, ast.For):
            found = {(n.value.id, type(n.ctx)) for n in ast.walk(loop) if isinstance(n, ast.Subscript)}
            made = {name for name, kind in found if kind is ast.Store}
            writes += len(made)
            reads += sum(kind is ast.Load and name not in made for name, kind in found)
    return reads, writes


def compiled(function, args):
    """(with its loops joined, without)."""
    joined = gs.jit(function)
    joined(*args)
    apart = gs.jit(function)
    with unfused():
        apart(*args)
    return joined, apart


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    args = rng.uniform(0.5, 1.5, N), rng.uniform(0.5, 1.5, N)
    print(f"{'kind':20} {'sweeps':>14} {'megabytes':>16} {'ms':>14} {'times':>6}")
    for kind, function in KINDS.items():
        joined, apart = compiled(function, args)
        if options.show:
            print(apart.lowered, joined.lowered, sep="\n")
        counts = [sum(sweeps(f.lowered)) for f in (apart, joined)]
        before, after = in_turns([lambda: apart(*args), lambda: joined(*args)], 15)     # noqa: B023  (called here)
        print(f"{kind:20} {counts[0]:6} -> {counts[1]:4} {counts[0] * N * 8e-6:7.0f} -> {counts[1] * N * 8e-6:5.0f} "
              f"{before * 1e3:6.2f} -> {after * 1e3:4.2f} {before / after:6.2f}", flush=True)


if __name__ == "__main__":
    main()
