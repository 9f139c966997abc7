"""Peak memory and time of the gradient of a long loop: 10,000 steps over a state of 1,000 floats.

    python benchmarks/memory.py                 the table
    python benchmarks/memory.py --steps 4000    other sizes: --steps, --state
    python benchmarks/memory.py --problems all  compiled gradients of the benchmark problems, or of those named

Each line is a process of its own, so that its peak is its own: the largest resident set after the call less that
before it (what is imported, compiled and warmed up by a call of ten steps counts as before).  Time is the median of
three calls.  One thread.  JAX: lax.scan, plain and with jax.checkpoint around the step and in √n nested scans;
autograd stores everything.  What is not installed is left out.

--problems: what a call of the compiled value and gradient needs beyond its arguments, results included; beside it JAX,
and the adjoint by hand where there is one (problems/by_hand.py).
"""
import argparse
import gc
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1",
                  XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", JAX_ENABLE_X64="1")

LINES = {
    "stored, every intermediate (autograd)": "autograd",
    "gradscribe": "plain",
    "gradscribe, checkpoint": "checkpoint",
    "gradscribe, jit": "jit",
    "gradscribe, jit, checkpoint": "jit_checkpoint",
    "jax, scan": "scan",
    "jax, scan of checkpoint(step)": "scan_checkpoint",
    "jax, nested scan, checkpoint(segment)": "scan_nested",
}
NEEDS = {"autograd": "autograd", "scan": "jax", "scan_checkpoint": "jax", "scan_nested": "jax"}


def gradient(kind, steps):
    """A function of (x, w, n) that gives the gradient with respect to x."""
    if kind in ("plain", "checkpoint", "jit", "jit_checkpoint"):
        import numpy as np

        import gradscribe as gs

        def loss(x, w, n):
            for _ in range(n):
                x = x + 0.01 * np.sin(w * x) - 0.01 * x * x * x
            return np.sum(x * x)

        f = gs.grad(gs.checkpoint(loss) if "checkpoint" in kind else loss)
        return gs.jit(f) if "jit" in kind else f
    if kind == "autograd":
        import autograd
        import autograd.numpy as anp

        def stored(x, w, n):
            for _ in range(n):
                x = x + 0.01 * anp.sin(w * x) - 0.01 * x * x * x
            return anp.sum(x * x)

        return autograd.grad(stored)
    import functools

    import jax
    import jax.numpy as jnp
    import numpy as np

    def step(x, w):
        return x + 0.01 * jnp.sin(w * x) - 0.01 * x * x * x

    inner = jax.checkpoint(step) if kind == "scan_checkpoint" else step

    def scanned(x, w, n):
        if kind == "scan_nested" and n > 10:
            size = int(n ** 0.5)

            @jax.checkpoint
            def segment(x, _):
                return jax.lax.scan(lambda x, _: (step(x, w), None), x, None, length=size)[0], None
            x = jax.lax.scan(segment, x, None, length=n // size)[0]
            n = n - n // size * size
        return jnp.sum(jax.lax.scan(lambda x, _: (inner(x, w), None), x, None, length=n)[0] ** 2)

    compiled = functools.partial(jax.jit, static_argnums=2)(jax.grad(scanned))
    if steps > 10:
        compiled.lower(np.zeros(8), np.zeros(8), steps).compile()
    return lambda x, w, n: np.asarray(compiled(x, w, n))


def measure(kind, steps, state):
    import numpy as np
    f = gradient(kind, steps)
    x, w = np.linspace(0.1, 1.0, state), np.linspace(1.0, 2.0, state)
    f(x, w, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(3):
        start = time.perf_counter()
        g = f(x, w, steps)
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"peak": peak / 1024, "time": statistics.median(times), "norm": float(np.sum(g * g))}


# --- the benchmark problems -------------------------------------------------------------------------------------------

def needed(f):
    """MiB that a call needs at its worst, beyond what the process held before it."""
    f()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")           # the peak is counted from here
    held = in_status("VmRSS")
    result = f()
    peak = in_status("VmHWM") - held
    del result
    return peak / 1024


def in_status(field):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines()
                if line.startswith(field + ":"))


def of_problem(name, size, kind):
    import suite
    module = suite.problem(name)
    if kind == "jax":
        case = suite.Case(name, size, False)
        given, f = case.inputs(0)[1], case.of_jax(module.objective_jax)
        return needed(lambda: case.jax.block_until_ready(f(*given)))
    args = module.make_inputs(size, seed=0)
    if kind == "by hand":
        from problems.by_hand import VALUE_AND_GRAD
        return needed(lambda: VALUE_AND_GRAD[name](*args))
    import gradscribe as gs
    f = gs.jit(gs.value_and_grad(module.variants[kind], argnums=module.argnums), static_argnums=module.static_argnums)
    return needed(lambda: f(*args))


def problems(names, size):
    import suite
    # large arrays are handed back to the system at once, so that a peak is of arrays that live together
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    print(f"MiB, size {size}\n{'':16}{'variant':10}{'ours':>9}{'by hand':>9}{'JAX':>9}")
    for name in suite.PROBLEMS if names == "all" else names.split(","):
        found = {}
        for kind in [*suite.problem(name).variants, "by hand", "jax"]:
            done = subprocess.run([sys.executable, __file__, "--problems", name, "--size", size, "--only", kind],
                                  capture_output=True, text=True, env=env)
            found[kind] = f"{float(done.stdout):9.2f}" if done.returncode == 0 else f"{'':9}"
        for kind in suite.problem(name).variants:
            print(f"{name:16}{kind:10}{found[kind]}{found['by hand']}{found['jax']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--state", type=int, default=1_000)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--problems", help="all, or names with commas")
    parser.add_argument("--size", default="L")
    options = parser.parse_args()
    if options.problems and options.only:
        print(of_problem(options.problems, options.size, options.only))
        return
    if options.problems:
        problems(options.problems, options.size)
        return
    if options.only:
        print(json.dumps(measure(options.only, options.steps, options.state)))
        return
    unit = options.state * 8 / 2**20
    print(f"{options.steps:,} steps, {options.state:,} floats ({options.steps * unit:.0f} MiB for all states)\n")
    print(f"{'':40} {'peak MiB':>9} {'states':>8} {'time s':>8}")
    norms = []
    for label, kind in LINES.items():
        if kind in NEEDS and importlib.util.find_spec(NEEDS[kind]) is None:
            continue
        command = [sys.executable, __file__, "--only", kind, "--steps", str(options.steps), "--state",
                   str(options.state)]
        out = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        norms.append(out["norm"])
        print(f"{label:40} {out['peak']:9.1f} {out['peak'] / unit:8.0f} {out['time']:8.3f}", flush=True)
    spread = max(norms) / min(norms) - 1
    print(f"\nthe gradients agree to {spread:.1e} in their norms")


if __name__ == "__main__":
    main()
