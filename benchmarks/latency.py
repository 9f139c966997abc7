"""How long a user waits: import, first gradient, transformation of a long function, a second call.

    python benchmarks/latency.py

Each number is the median of several, the bars are in the last column; exit status 1 when one is missed.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  the threads are set before NumPy is imported

import gradscribe as gs  # noqa: E402

IMPORT = """
import time
start = time.perf_counter()
import gradscribe
elapsed = time.perf_counter() - start
import sys
heavy = [m for m in ("numba", "scipy", "llvmlite") if m in sys.modules]
print(elapsed, *heavy)
"""

TEN_LINES = """
import sys, time
sys.path.insert(0, {folder!r})
import numpy as np
import gradscribe as gs
from ten_lines import f
x = np.linspace(0.1, 1.0, 12)
start = time.perf_counter()
gs.grad(f)(x)
print(time.perf_counter() - start)
"""

TEN_LINES_SOURCE = """
import numpy as np


def f(x):
    a = np.sin(x) * x
    b = np.exp(-a)
    c = a + 2.0 * b
    d = np.tanh(c)
    e = d * d - b
    g = np.sqrt(1.0 + e * e)
    h = np.where(g > 1.0, g, a)
    k = np.sum(h, axis=0)
    m = np.log(1.0 + k * k)
    return m + np.mean(x)
"""


def fresh(code, times):
    """What another process prints, several times: the median of its first word, and the other words."""
    seconds, words = [], set()
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        first, *rest = done.stdout.split()
        seconds.append(float(first))
        words.update(rest)
    return statistics.median(seconds), sorted(words)


def import_time(folder):
    seconds, heavy = fresh(IMPORT, 7)
    if heavy:
        raise RuntimeError(f"import gradscribe imports {', '.join(heavy)}")
    return seconds


def first_gradient(folder):
    (folder / "ten_lines.py").write_text(TEN_LINES_SOURCE)
    return fresh(TEN_LINES.format(folder=str(folder)), 7)[0]


def long_function(folder):
    """Transform 300 statements, one of them another way in each round so that nothing is remembered."""
    operations = ["np.sin({a}) * {b}", "{a} + 0.5 * {b}", "np.tanh({a} - {b})", "{a} * {b} + 1.0",
                  "{a} / (2.0 + {b} * {b})"]
    seconds = []
    for turn in range(3):
        lines = ["import numpy as np", "", "", "def f(x, y):", f"    v0 = x * {turn + 2}.0", "    v1 = y + x"]
        for i in range(2, 299):
            lines.append(f"    v{i} = " + operations[i % 5].format(a=f"v{i - 1}", b=f"v{i - 2}"))
        lines += ["    return np.sum(v298)", ""]
        name = f"long_{turn}"
        (folder / f"{name}.py").write_text("\n".join(lines))
        f = __import__(name).f
        x = np.linspace(0.1, 1.0, 5)
        start = time.perf_counter()
        gs.grad(f, (0, 1)).source_for(x, x)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def two_arrays(x, y):
    return np.sum(x * y)


def three_layers(params):
    total = 0.0
    for W, b in params:
        total = total + np.sum(W) + np.sum(b)
    return total


def overhead(f, args, rounds=41, calls=2000):
    """The transformed callable against the emitted function that it calls, turn and turn about."""
    g = gs.grad(f)
    g(*args)
    bare = g.emitted_for(*args)
    apart = []
    for _ in range(rounds):
        times = []
        for function in (g, bare):
            start = time.perf_counter()
            for _ in range(calls):
                function(*args)
            times.append((time.perf_counter() - start) / calls)
        apart.append(times[0] - times[1])
    return statistics.median(apart)


def overhead_two_arrays(folder):
    return overhead(two_arrays, (np.ones(3), np.ones(3)))


def overhead_layers(folder):
    return overhead(three_layers, ([(np.ones((3, 3)), np.ones(3)) for _ in range(3)],))


MEASURES = [
    ("import gradscribe, fresh process", import_time, 0.35, 1.0, "s"),
    ("first grad(f)(x), ten lines, after import", first_gradient, 0.060, 1e3, "ms"),
    ("transform 300 statements", long_function, 2.0, 1.0, "s"),
    ("call, two arrays, over the bare function", overhead_two_arrays, 5e-6, 1e6, "µs"),
    ("call, list of three (W, b), over the bare function", overhead_layers, 15e-6, 1e6, "µs"),
]


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        print(f"{'what':52} {'median':>10}     {'bar':>8}")
        for name, measure, bar, scale, unit in MEASURES:
            try:
                seconds = measure(Path(folder))
            except Exception as error:      # the other rows are worth seeing
                print(f"{name:52} FAILED: {error}")
                missed += 1
                continue
            missed += seconds > bar
            print(f"{name:52} {seconds * scale:10.3f} {unit:2}  {bar * scale:6g} {unit:2}"
                  + ("   MISSED" if seconds > bar else ""), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
