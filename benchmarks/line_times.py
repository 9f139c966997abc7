# SPDX-License-Identifier: Apache-2.0
"""What timing each line costs: calls of emitted gradients without a clock, with ours, and under line_profiler.

    python benchmarks/line_times.py         line_profiler's column needs `pip install line_profiler`

The three are interleaved in one process; processor times, medians of 15 rounds.  A round is several calls, ten
milliseconds or more.
"""
import os
import statistics
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  the threads are set before NumPy is imported

import gradscribe as gs  # noqa: E402  (this imports NumPy)
from gradscribe.line_times import Clocks, with_clock  # noqa: E402  (so does this)

try:
    from line_profiler import LineProfiler
except ImportError:
    LineProfiler = None


def heat(u, k, steps):
    for _ in range(steps):
        flow = k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
    return np.sum(u**2)


def power(x, n):
    y = 1.0
    for _ in range(n):
        y = y * x
    return y


def network(w, v, x):
    return np.sum(np.tanh(np.tanh(x @ w) @ v) ** 2)


def timed(call, args, times):
    start = time.process_time()
    for _ in range(times):
        call(*args)
    return (time.process_time() - start) / times


def row(name, function, args):
    fn = gs.grad(function)
    version = fn.version_for(args, {})
    clocks = Clocks(600.0, len(version.text.splitlines()))
    clocks.begin()
    calls = {"plain": version.function, "clock": with_clock(version, clocks)}
    if LineProfiler:
        calls["line_profiler"] = LineProfiler()(gs.grad(function).emitted_for(*args))
    several = max(1, round(0.01 / timed(version.function, args, 5)))
    times = {call: [] for call in calls}
    for _ in range(16):
        for call, run in calls.items():
            times[call].append(timed(run, args, several))
    found = {call: statistics.median(t[1:]) for call, t in times.items()}
    print(f"{name:28} {found['plain'] * 1e6:10.1f} us" + "".join(
        f" {found[call] / found['plain']:10.2f}" for call in list(calls)[1:]))


def main():
    print(f"{'gradient of':28} {'plain':>13} {'clock':>10} {'line_prof.':>10}")
    rng = np.random.default_rng(0)
    row("power, 1000 passes", power, (1.001, 1000))
    row("heat, 8 cells, 100 steps", heat, (np.linspace(0, 1, 8), np.full(7, 0.1), 100))
    row("heat, 10,000 cells, 100", heat, (np.linspace(0, 1, 10_000), np.full(9_999, 0.1), 100))
    row("network of 100 x 300", network, (rng.normal(size=(300, 300)), rng.normal(size=(300, 10)),
                                          rng.normal(size=(100, 300))))


if __name__ == "__main__":
    main()
