"""Compiled gradients against JAX, and autograd, PyTorch and adjoints by hand where there are any.

    python benchmarks/suite.py [--which problems|workloads|fields|gmm,lstm] [--sizes S,M,L] [--f32] [--rounds 9]
                               [--quick] [--others] [--out results]

Each problem and size runs in a process of its own, on one core and one thread, nothing kept on disk.  There the fastest
of JAX's versions is found by a short trial; value and gradient of ours are compared with it on two sets of inputs; then
both are timed in turns, in rounds of about 30 ms.  Times are the least of the rounds.

Printed: JAX's time, ours, JAX/ours (above 1: we are faster), the gradient's time over the objective's (ours, JAX's),
the seconds of the first call (ours, JAX's).  --out writes results.csv and results.svg, the ratios as bars.
"""
import argparse
import csv
import functools
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROBLEMS = ["gmm", "ba", "lstm", "hand", "logreg", "hmm", "mlp", "spectral_mlp", "heat2d", "nbody", "black_scholes",
            "ode", "llsq", "lse"]
FIELDS = ["lens", "queueing", "filters", "spline", "phylogeny", "ising", "cloth", "beam", "lattice", "pharmacokinetics",
          "spectrogram", "conjugate"]
QUICK = [("lse", "M"), ("logreg", "M"), ("mlp", "M"), ("nbody", "M"), ("ode", "M"), ("heat2d", "M"), ("ba", "S"),
         ("black_scholes", "M"), ("llsq", "M"), ("hmm", "S")]
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu",
    "GRADSCRIBE_CACHE": "off",
    # freed pages are kept, for all: else large results are mapped anew in every call
    "MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "67108864"}
SLOW_BLAS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")       # they halve NumPy's products and leave XLA alone


def problem(name):
    """A module of problems/ or fields/, or a workload, which has the same contents."""
    sys.path.insert(0, str(HERE))
    workloads = importlib.import_module("workloads").ALL
    if name in workloads:
        return workloads[name]
    return importlib.import_module(f"{'fields' if name in FIELDS else 'problems'}.{name}")


# --- one problem, one size, in a process of its own -------------------------------------------------------------------

def leaves(tree):
    if isinstance(tree, dict):
        return [x for k in sorted(tree) for x in leaves(tree[k])]
    if isinstance(tree, (tuple, list)):
        return [x for v in tree for x in leaves(v)]
    return [tree]


def mapped(f, tree):
    if isinstance(tree, dict):
        return {k: mapped(f, v) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(mapped(f, v) for v in tree)
    return f(tree)


def difference(got, want):
    """The largest error of a leaf by its largest entry; the value, which comes first, by itself or by 1."""
    import numpy as np
    worst, got, want = 0.0, leaves(got), leaves(want)
    for k, (a, b) in enumerate(zip(got, want)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or len(got) != len(want):
            return math.inf
        scale = max(float(np.max(np.abs(b), initial=0)), 1.0 if k == 0 and len(got) > 1 else 1e-12)
        worst = max(worst, float(np.max(np.abs(a - b), initial=0)) / scale)
    return worst


def calls_in(f, seconds):
    """How many calls take that long."""
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            f()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds or n >= 10_000:
            return n
        n = min(10_000, max(2 * n, int(n * seconds / max(elapsed, 1e-9))))


def sample(f, n):
    start = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - start) / n


def in_turns(functions, rounds):
    """The least time of each function over rounds in which each has its turn."""
    counts, best = [calls_in(f, 0.03) for f in functions], [math.inf] * len(functions)
    for k in range(rounds):
        order = range(len(functions)) if k % 2 else reversed(range(len(functions)))
        for i in order:
            best[i] = min(best[i], sample(functions[i], counts[i]))
    return best


class Case:
    """A problem at a size: inputs in one dtype, and what is raced."""

    def __init__(self, name, size, narrow):
        import jax
        import numpy as np
        self.jax, self.np, self.name, self.size, self.narrow = jax, np, name, size, narrow
        self.module = problem(name)
        self.plain = getattr(self.module, "plain", False)
        self.static, self.argnums = self.module.static_argnums, self.module.argnums

    def inputs(self, seed):
        """The arguments, and JAX's."""
        np = self.np
        real, dual = (np.float32, np.complex64) if self.narrow else (np.float64, np.complex128)

        def cast(v):
            if isinstance(v, np.ndarray) and v.dtype.kind in "fc":
                return np.ascontiguousarray(v.astype(real if v.dtype.kind == "f" else dual))
            return real(v) if isinstance(v, float) and self.narrow else v
        args = tuple(mapped(cast, v) for v in self.module.make_inputs(self.size, seed=seed))
        theirs = self.module.jax_args(args) if hasattr(self.module, "jax_args") else args
        return args, [v if k in self.static else self.jax.tree.map(self.jax.numpy.asarray, v)
                      for k, v in enumerate(theirs)]

    def of_jax(self, f, gradient=True):
        made = f if self.plain or not gradient else self.jax.value_and_grad(f, argnums=self.argnums)
        return self.jax.jit(lambda *args: made(*args), static_argnums=self.static)

    def fastest_of_jax(self, args):
        """(name, compiled function, seconds of its first call) of the version that is fastest and not wrong."""
        found, first = {}, None
        for name in [n for n in dir(self.module) if n.startswith("objective_jax")]:
            f = self.of_jax(getattr(self.module, name))
            start = time.perf_counter()
            out = self.jax.block_until_ready(f(*args))
            elapsed = time.perf_counter() - start
            first = out if name == "objective_jax" else first
            if name == "objective_jax" or difference(out, first) < (1e-3 if self.narrow else 1e-7):
                def call(f=f):
                    return self.jax.block_until_ready(f(*args))
                found[name] = min(sample(call, calls_in(call, 0.01)) for _ in range(3)), f, elapsed
        name = min(found, key=lambda n: found[n][0])
        return name, *found[name][1:]


def other_tools(case, args):
    """{tool: a call} of value and gradient with what is installed."""
    module, found = case.module, {}
    if case.plain:
        return found
    try:
        from problems.by_hand import VALUE_AND_GRAD
        if case.name in VALUE_AND_GRAD:
            found["by hand"] = lambda: VALUE_AND_GRAD[case.name](*args)
    except ImportError:
        pass
    if hasattr(module, "objective_autograd"):
        try:
            import autograd
            f = autograd.value_and_grad(module.objective_autograd, case.argnums)
            found["autograd"] = lambda: f(*args)
        except ImportError:
            pass
    if hasattr(module, "objective_torch"):
        try:
            import torch
            torch.set_num_threads(1)

            def tensor(a, wanted):
                plain = not isinstance(a, case.np.ndarray) or a.dtype.kind != "f"
                return a if plain else torch.tensor(a, requires_grad=wanted)

            def call():
                given = [mapped(functools.partial(tensor, wanted=k in case.argnums), v) for k, v in enumerate(args)]
                module.objective_torch(*given).backward()
            found["torch"] = call
        except ImportError:
            pass
    return found


def race(options):
    """Rows of one problem and size, as JSON lines."""
    name, size = options.child.split("/")
    if options.core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    warnings.filterwarnings("ignore")
    import jax
    import numpy as np
    jax.config.update("jax_enable_x64", not options.f32)

    import gradscribe as gs
    jax.block_until_ready(jax.jit(jax.grad(lambda x: jax.numpy.sum(jax.numpy.sin(x) @ x)))(jax.numpy.ones((8, 8))))
    gs.jit(gs.grad(lambda x: np.sum(np.sin(x) @ x)))(np.ones((8, 8)))           # both compilers are warm
    case = Case(name, size, options.f32)
    (args, theirs), (args_2, theirs_2) = case.inputs(0), case.inputs(1)
    version, compiled, first = case.fastest_of_jax(theirs)
    want, want_2 = compiled(*theirs), compiled(*theirs_2)
    objective = case.of_jax(getattr(case.module, version), gradient=False)
    objective(*theirs)
    hand = getattr(case.module, "by_hand", None)
    hand = hand[size] if isinstance(hand, dict) else hand
    for variant, f in case.module.variants.items():
        row = {"problem": name, "size": size, "variant": variant, "dtype": "f32" if options.f32 else "f64",
               "jax_version": version, "jax_first": first}
        if hand:
            row["hand"] = hand[options.f32]
        try:
            before = [np.array(x) for x in leaves(list(args))]
            start = time.perf_counter()
            made = gs.jit(f if case.plain else gs.value_and_grad(f, case.argnums))
            out = made(*args)
            row["first"] = time.perf_counter() - start
            row["error"] = max(difference(out, want), difference(made(*args_2), want_2), difference(made(*args), want))
            row["right"] = row["error"] <= (2e-3 if options.f32 else 1e-6) and all(
                np.array_equal(a, b) for a, b in zip(before, leaves(list(args))))
            value = made if case.plain else gs.jit(f)
            value(*args)
            calls = {"jax": lambda: jax.block_until_ready(compiled(*theirs)), "ours": functools.partial(made, *args),
                     "jax_objective": lambda: jax.block_until_ready(objective(*theirs)),
                     "objective": functools.partial(value, *args)}
            if options.others:
                calls.update(other_tools(case, args))
            row["seconds"] = dict(zip(calls, in_turns(list(calls.values()), options.rounds)))
        except Exception as error:
            row.update(right=False, failed=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}")
        print("@@" + json.dumps(row), flush=True)


# --- all of them ------------------------------------------------------------------------------------------------------

def rows_of(name, size, options):
    command = [sys.executable, __file__, "--child", f"{name}/{size}", "--rounds", str(options.rounds), "--core",
               str(options.core), *(["--f32"] if options.f32 else []), *(["--others"] if options.others else [])]
    environment = {k: v for k, v in os.environ.items() if k not in SLOW_BLAS} | ONE_THREAD
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env=environment)
        found = [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("@@")]
        trouble = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
    except subprocess.TimeoutExpired:
        found, trouble = [], f"longer than {options.timeout} s"
    return found or [{"problem": name, "size": size, "variant": "-", "right": False, "failed": trouble}]


def shown(row):
    head = f"{row['problem']:20} {row['size']:3} {row['variant']:7} {'right' if row['right'] else 'WRONG'}"
    if "seconds" not in row:
        return f"{head} {row.get('failed', '')}"
    s = row["seconds"]
    text = (f"{head} {row['error']:8.0e} {s['jax'] * 1e3:10.4f} {s['ours'] * 1e3:10.4f} {s['jax'] / s['ours']:8.2f} "
            f"{s['ours'] / s['objective']:6.2f} {s['jax'] / s['jax_objective']:6.2f} {row['first']:7.2f} "
            f"{row['jax_first']:6.2f}")
    if "hand" in row:
        text += f"   by hand {row['hand']:5.2f}, {s['jax'] / s['ours'] / row['hand']:4.2f} of it"
    return text + "".join(f"   {n} {s[n] / s['ours']:.1f}" for n in ("by hand", "autograd", "torch") if n in s)


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def summary(rows):
    good = [r for r in rows if r["right"] and "seconds" in r]
    best = {}
    for r in good:
        key, ratio = (r["problem"], r["size"]), r["seconds"]["jax"] / r["seconds"]["ours"]
        if key not in best or ratio > best[key][0]:
            best[key] = ratio, r
    if not best:
        return "nothing to compare"
    ratios = [ratio for ratio, _ in best.values()]
    cost = [r["seconds"]["ours"] / r["seconds"]["objective"] for _, r in best.values()]
    first = [r["first"] for _, r in best.values()]
    late = sum(r["first"] > 3 * r["jax_first"] for _, r in best.values())
    hand = [ratio / r["hand"] for ratio, r in best.values() if "hand" in r]
    text = (f"{len(good)} of {len(rows)} rows right; of each of {len(best)} cells the best way to write it: JAX/ours "
            f"{mean(ratios):.2f} (geometric mean), at least 1 in {sum(x >= 1 for x in ratios)}; gradient/objective "
            f"{statistics.median(cost):.2f} (median), {max(cost):.2f} (largest); first call "
            f"{statistics.median(first):.2f} s (median), {late} cells above 3 times JAX's")
    if hand:
        text += f"; {sum(x >= 0.85 for x in hand)} of {len(hand)} at least 0.85 of what was reached by hand"
    return text


def write_csv(rows, path):
    tools = ["jax", "ours", "jax_objective", "objective", "by hand", "autograd", "torch"]
    fields = ["problem", "size", "variant", "dtype", "right", "error", "first", "jax_first", "jax_version", "hand"]
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*fields, *(f"{t} (s)" for t in tools)])
        for r in rows:
            out.writerow([*(r.get(f, "") for f in fields), *(r.get("seconds", {}).get(t, "") for t in tools)])


def write_plot(rows, path):
    """Ratios as bars on a logarithmic axis, as SVG; no package is needed to draw it."""
    good = [(f"{r['problem']} {r['size']} {r['variant']}", r["seconds"]["jax"] / r["seconds"]["ours"])
            for r in rows if "seconds" in r]
    left, wide, high = 220, 480, 16
    reach = max(1.0, *(abs(math.log2(x)) for _, x in good))
    middle, unit = left + wide / 2, wide / 2 / reach
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 60}" height="{high * len(good) + 50}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{left}" y="14">JAX\'s time over ours, one thread: to the right we are faster</text>']
    for k in range(-int(reach), int(reach) + 1):
        x = middle + k * unit
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="22" y2="{high * len(good) + 26}" stroke="#ccc"/>'
                     f'<text x="{x:.1f}" y="{high * len(good) + 42}" text-anchor="middle">{2.0 ** k:g}</text>')
    for k, (name, ratio) in enumerate(good):
        y, end = 26 + high * k, middle + math.log2(ratio) * unit
        parts.append(f'<rect x="{min(middle, end):.1f}" y="{y}" width="{abs(end - middle):.1f}" height="{high - 4}" '
                     f'fill="{"#2b7a3d" if ratio >= 1 else "#b5482c"}"/><text x="{left - 6}" y="{y + 10}" '
                     f'text-anchor="end">{name}</text><text x="{left + wide + 8}" y="{y + 10}">{ratio:.2f}</text>')
    Path(path).write_text("\n".join([*parts, "</svg>\n"]))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--which", default="problems")
    parser.add_argument("--sizes", default="S,M,L")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--core", type=int, default=0, help="the core to run on; -1: any")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--out", default="")
    parser.add_argument("--f32", action="store_true")
    parser.add_argument("--quick", action="store_true", help="ten problems, about two minutes")
    parser.add_argument("--others", action="store_true", help="autograd, PyTorch and adjoints by hand as well")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        return race(options)
    try:
        import jax  # noqa: F401  (what we compare with)
    except ImportError:
        sys.exit("JAX is not installed: pip install 'gradscribe[bench]'")
    sets = {"problems": PROBLEMS, "fields": FIELDS}
    if options.which == "workloads":
        problem("lse")                  # puts the folder of the workloads among those that modules come from
        sets["workloads"] = list(importlib.import_module("workloads").ALL)
    names = sets.get(options.which) or options.which.split(",")
    cells = [(n, s) for n in names for s in problem(n).sizes if s in options.sizes.split(",")]
    if options.quick:
        cells, options.rounds = QUICK, 5
    set_aside = [f"{v}={os.environ[v]}" for v in SLOW_BLAS if v in os.environ]
    print(f"one thread, core {options.core}, {'float32' if options.f32 else 'float64'}"
          + (f"; not passed on: {', '.join(set_aside)}" if set_aside else ""))
    print(f"{'problem':20} {'size':3}{'variant':>7} {'':6} {'error':>7} {'JAX ms':>10} {'ours ms':>10} {'JAX/ours':>8} "
          f"{'g/f':>6} {'JAX':>6} {'first s':>7} {'JAX':>6}")
    rows = []
    for name, size in cells:
        for row in rows_of(name, size, options):
            rows.append(row)
            print(shown(row), flush=True)
        if options.out:
            write_csv(rows, f"{options.out}.csv")
            write_plot(rows, f"{options.out}.svg")
    print(summary(rows))
    return 0 if all(r["right"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
