# SPDX-License-Identifier: Apache-2.0
"""Random programs on target="cuda", their kernels run by twins, against all checks of fuzz.py.

    python benchmarks/fuzz_device.py --count 5000 [--start 0] [--jobs 2] [--backend plain]

Kernels are run as plain Python (`plain`), compiled for the processor (`twin`) or by the simulator.  Exit 1 if a program
is wrong.
"""
import argparse
import collections
import concurrent.futures
import functools
import sys
import time

import fuzz

import gradscribe as gs
from gradscribe.runtime import device

on_cpu = gs.jit


def outcome_of(seed, backend="plain"):
    """(seed, kind, detail) of one program."""
    device.use(backend)
    gs.jit = functools.partial(on_cpu, target="cuda")
    found = fuzz.check(fuzz.make(seed, "mixed"), jit=True)
    return seed, found.kind, str(found.detail)[:600]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="at least 2: one alone can wait for itself")
    parser.add_argument("--backend", default="plain", choices=device.BACKENDS)
    options = parser.parse_args(argv)
    kinds, begin = collections.Counter(), time.perf_counter()
    seeds = range(options.start, options.start + options.count)
    with concurrent.futures.ProcessPoolExecutor(options.jobs, max_tasks_per_child=40) as pool:
        outcomes = pool.map(functools.partial(outcome_of, backend=options.backend), seeds, chunksize=4)
        for done, (seed, kind, detail) in enumerate(outcomes, 1):
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
