# SPDX-License-Identifier: Apache-2.0
"""The first call of long functions: straight lines of elementwise statements, Gradscribe against JAX.

    python benchmarks/long_functions.py [--statements 10,30,100,300] [--core 1]

Each statement takes the one before and an earlier one: products, quotients, roots, sines, exponentials and hyperbolic
tangents in turn.  Printed: seconds of the first call and microseconds of a later one, per statement, of the function
and of its gradient, on arrays of 1,000 numbers; nothing is kept on disk.
"""
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", GRADSCRIBE_CACHE="off",
                  XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402

STATEMENTS = ["np.sin({a}) * {b}", "np.exp(-{a} * {a}) + {b}", "{a} * {b} - 0.5", "np.tanh({a} + {b})",
              "{a} / (1.0 + {b} * {b})", "np.sqrt({a} * {a} + {b} * {b})"]


def text_of(count):
    lines = ["import numpy as np", "", "", "def f(x):", "    v0 = x", "    v1 = 0.5 * x"]
    for k in range(2, count + 2):
        lines.append(f"    v{k} = " + STATEMENTS[k % 6].format(a=f"v{k - 1}", b=f"v{max(0, k - 2 - 7 * k % 5)}"))
    return "\n".join([*lines, f"    return np.sum(v{count + 1})", ""])


def timed(f, x):
    start = time.perf_counter()
    np.asarray(f(x))
    first, later = time.perf_counter() - start, []
    for _ in range(50):
        start = time.perf_counter()
        np.asarray(f(x))
        later.append(time.perf_counter() - start)
    return first, min(later)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", default="10,30,100,300")
    parser.add_argument("--core", type=int, default=-1)
    given = parser.parse_args()
    if given.core >= 0:
        os.sched_setaffinity(0, {given.core})
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    x = np.linspace(0.1, 1.0, 1000)
    for wrap in (lambda f: gs.jit(gs.grad(f)), lambda f: jax.jit(jax.grad(f))):         # what is imported at first
        np.asarray(wrap(lambda x: (x * x).sum())(x))
    print(f"{'statements':>10} {'':8} {'first, s':>9} {'JAX':>6} {'later, us/statement':>20} {'JAX':>6}")
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for count in map(int, given.statements.split(",")):
            (Path(folder) / f"long_{count}.py").write_text(text_of(count))
            module = __import__(f"long_{count}")
            ours = timed(gs.jit(module.f), x), timed(gs.jit(gs.grad(module.f)), x)
            module.np = jnp
            theirs = timed(jax.jit(module.f), x), timed(jax.jit(jax.grad(module.f)), x)
            for what, (first, later), (its_first, its_later) in zip(("function", "gradient"), ours, theirs):
                print(f"{count:>10} {what:8} {first:>9.2f} {its_first:>6.2f} {1e6 * later / count:>20.2f} "
                      f"{1e6 * its_later / count:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
