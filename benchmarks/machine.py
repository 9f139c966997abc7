# SPDX-License-Identifier: Apache-2.0
"""What operations take on this machine, beside what the cost model says (codegen/loops/analysis/costs.py).

    python benchmarks/machine.py [--length 2500] [--rounds 60]

Each function is compiled for one thread and called on arrays of two lengths in float64; the difference is free of what
a call costs.  From it goes what the same loop takes that adds a number, so that what is printed is the operation alone.
Where the vectors are shorter than 512 bits, the figures are two or four times as large, and so are those of `Machine`.
"""
import argparse
import os
import time

os.environ["GRADSCRIBE_CACHE"] = "off"

import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402
from gradscribe.codegen.loops.analysis.costs import MACHINE, of_function  # noqa: E402

SHORTER = 500
PLAIN = lambda x, y: x + 0.5                                                               # noqa: E731
CHAIN = lambda x, y: (((((((x * y - x) * y + x) * y - x) * y + x) * y - x) * y + x) * y - x) * y         # noqa: E731
OPERATIONS = {
    "another array": (lambda x, y: x + y, MACHINE.load),
    "a product and a sum": (CHAIN, 8 * MACHINE.operation + MACHINE.load),
    "division": (lambda x, y: 0.5 / x, MACHINE.division),
    "root": (lambda x, y: np.sqrt(x), MACHINE.root),
    "exp": (lambda x, y: np.exp(x), of_function("exp")),
    "expm1": (lambda x, y: np.expm1(x), of_function("expm1")),
    "log": (lambda x, y: np.log(x), of_function("log")),
    "log1p": (lambda x, y: np.log1p(x), of_function("log1p")),
    "tanh": (lambda x, y: np.tanh(x), of_function("tanh")),
    "sin": (lambda x, y: np.sin(x), of_function("sin")),
    "arctan": (lambda x, y: np.arctan(x), of_function("arctan")),
    "power": (lambda x, y: x ** y, of_function("power") + MACHINE.load),
}


def per_entry(function, length, rounds):
    """Nanoseconds of an entry, the least of the rounds."""
    compiled, times = gs.jit(function), []
    for n in (SHORTER, length):
        x, y = (low + np.random.default_rng(0).random(n) for low in (0.5, 0.6))
        compiled(x, y)
        best = float("inf")
        for _ in range(rounds):
            begin = time.perf_counter()
            for _ in range(100):
                compiled(x, y)
            best = min(best, (time.perf_counter() - begin) / 100)
        times.append(best)
    return 1e9 * (times[1] - times[0]) / (length - SHORTER)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2500)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    plain = per_entry(PLAIN, options.length, options.rounds)
    print(f"{'ns of an entry':24}{'measured':>10}{'model':>8}")
    print(f"{'read, and written':24}{plain:10.3f}{MACHINE.load + MACHINE.store:8.3f}")
    for name, (function, expected) in OPERATIONS.items():
        found = per_entry(function, options.length, options.rounds) - plain
        print(f"{name:24}{found:10.3f}{expected:8.3f}", flush=True)


if __name__ == "__main__":
    main()
