"""Random programs whose compiled text is run as plain Python, against all checks of fuzz.py.

    python benchmarks/fuzz_lowered.py --count 5000 [--start 0] [--jobs 2]

An entry beyond the end of an array is an error here, where machine code finds any number; and nothing is compiled, so
that thousands of programs take minutes.  Exit 1 if a program is wrong.
"""
import argparse
import collections
import concurrent.futures
import functools
import math
import re
import sys
import time
import types

import fuzz
import numpy as np
from scipy import special

from gradscribe.codegen import foreign, helpers, jit_cpu
from gradscribe.runtime.compiled import Unsaid
from gradscribe.runtime.modules import RUNTIME

MATH = types.SimpleNamespace(**vars(math))
MATH.ldexp = lambda x, k: math.ldexp(x, int(k))             # Numba's takes NumPy's whole numbers, too


@functools.cache
def words_of_texts():
    """What texts for Numba may name, as plain Python: one namespace for all of them."""
    space = {"np": np, "Unsaid": Unsaid}
    for module in RUNTIME:
        space.update({k: v for k, v in vars(module).items() if not k.startswith("__")})
    space["math"] = MATH
    for name, function in helpers.HELPERS.items():
        space[name] = types.FunctionType(function.__code__, space, name, function.__defaults__)
    space.update({n: getattr(special, n.removeprefix(foreign.PREFIX)) for n in foreign.NAMES
                  if hasattr(special, n.removeprefix(foreign.PREFIX))})
    return space


def plain(text, label, kinds, flags, function=None):
    """The function of a text that is meant for Numba; stands in for jit_cpu.compiled_text."""
    known = words_of_texts()
    space = {n: known[n] for n in set(re.findall(r"\b[A-Za-z_]\w*\b", text)) if n in known}
    exec(compile(text, "<lowered>", "exec"), space)

    def call(*args):
        with np.errstate(all="ignore"):
            return space[label](*args)
    return call


def outcome_of(seed):
    """(seed, kind, detail) of one program."""
    jit_cpu.compiled_text = plain
    found = fuzz.check(fuzz.make(seed, "mixed"), jit=True)
    return seed, found.kind, str(found.detail)[:400]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    kinds, begin = collections.Counter(), time.perf_counter()
    seeds = range(options.start, options.start + options.count)
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for done, (seed, kind, detail) in enumerate(pool.map(outcome_of, seeds, chunksize=4), 1):
            kinds[kind] += 1
            if kind in ("wrong", "failed"):
                print(f"\rseed {seed}: {kind}: {detail}", flush=True)
            if done % 100 == 0 or done == options.count:
                print(f"\r{done} of {options.count}, {time.perf_counter() - begin:.0f} s: "
                      f"{', '.join(f'{n} {k}' for k, n in sorted(kinds.items()))}", end="", file=sys.stderr, flush=True)
    print(f"\n{options.count} programs: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))
    return 1 if kinds["wrong"] or kinds["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
