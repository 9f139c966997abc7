"""How times grow: compiled gradients with the size of their data, transformation and compilation with their length.

    python benchmarks/scaling.py [--out scaling]

Five functions at four sizes, a hundredfold, against jax.jit, in turns on one thread; and functions of 100 to 3,000
statements.  Prints tables with the slope of the logarithms (1 is linear); --out writes a plot, scaling.svg.
"""
import argparse
import importlib
import math
import os
import sys
import tempfile
import time
from pathlib import Path

from suite import ONE_THREAD, difference, in_turns

if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in ONE_THREAD.items()):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})                             # XLA counts the cores
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})    # before NumPy is imported

import jax  # noqa: E402  the threads are set before
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402

jax.config.update("jax_enable_x64", True)
LENGTHS = [100, 300, 1000, 3000]
COMPILED = 300                          # statements; a thousand take Numba and LLVM minutes
OPERATIONS = ["np.sin({a}) * {b}", "{a} + 0.5 * {b}", "np.tanh({a} - {b})", "{a} * {b} + 1.0",
              "{a} / (2.0 + {b} * {b})"]


def largest_smoothed(x):
    a = np.max(x)
    return a + np.log(np.sum(np.exp(x - a)))


def largest_smoothed_jax(x):
    return jax.scipy.special.logsumexp(x)


def logistic(w, X, y):
    return np.mean(np.logaddexp(0.0, -y * (X @ w)))


def logistic_jax(w, X, y):
    return jnp.mean(jnp.logaddexp(0.0, -y * (X @ w)))


def heat(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def heat_jax(u, steps):
    def step(u, _):
        return u.at[1:-1].add(0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])), None
    return jnp.sum(jax.lax.scan(step, u, None, length=steps)[0] ** 2)


def recurrence(x, n):
    for _ in range(n):
        x = 2.6 * x * (1 - x)
    return x


def recurrence_jax(x, n):
    return jax.lax.scan(lambda x, _: (2.6 * x * (1 - x), None), x, None, length=n)[0]


def pairs(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            total += 1.0 / (1.0 + (x[i] - x[j]) ** 2)
    return total


def pairs_jax(x):
    d = x[:, None] - x[None, :]
    return 0.5 * (jnp.sum(1.0 / (1.0 + d * d)) - x.shape[0])


def cases():
    """(name, ours, JAX's, static arguments, size -> arguments, sizes)."""
    rng = np.random.default_rng(0)
    yield ("largest, smoothed", largest_smoothed, largest_smoothed_jax, (), lambda n: (rng.normal(size=n),),
           [10_000, 50_000, 200_000, 1_000_000])
    yield ("logistic, 50 wide", logistic, logistic_jax, (),
           lambda n: (rng.normal(size=50) / 9, rng.normal(size=(n, 50)), np.sign(rng.normal(size=n))),
           [200, 1000, 4000, 20_000])
    yield "heat, 100 steps", heat, heat_jax, (1,), lambda n: (rng.normal(size=n), 100), [200, 1000, 4000, 20_000]
    yield "recurrence, steps", recurrence, recurrence_jax, (1,), lambda n: (0.3, n), [200, 1000, 4000, 20_000]
    yield "pairs, by loops", pairs, pairs_jax, (), lambda n: (rng.normal(size=n),), [30, 100, 300, 1000]


def slope(xs, ys):
    """Of the logarithms, by least squares."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def by_size():
    found = []
    print(f"{'gradient':20} {'size':>9} {'JAX ms':>10} {'ours ms':>10} {'JAX/ours':>9}")
    for name, f, theirs, static, given, sizes in cases():
        times = []
        ours = gs.jit(gs.grad(f), static_argnums=static)
        for n in sizes:
            args = given(n)
            compiled = jax.jit(jax.grad(theirs), static_argnums=static)
            there = [a if k in static else jnp.asarray(a) for k, a in enumerate(args)]
            assert difference(ours(*args), compiled(*there)) < 1e-6, name
            times.append(in_turns([lambda: jax.block_until_ready(compiled(*there)),     # noqa: B023  (called here)
                                   lambda: ours(*args)], 7))                            # noqa: B023
            print(f"{name:20} {n:9,} {times[-1][0] * 1e3:10.4f} {times[-1][1] * 1e3:10.4f} "
                  f"{times[-1][0] / times[-1][1]:9.2f}", flush=True)
        jax_times, our_times = zip(*times)
        found.append((name, sizes, our_times, jax_times))
        print(f"{'':20} {'slope':>9} {slope(sizes, jax_times):10.2f} {slope(sizes, our_times):10.2f}")
        print(f"{'':20} {'of 2 last':>9} {slope(sizes[-2:], jax_times[-2:]):10.2f} "
              f"{slope(sizes[-2:], our_times[-2:]):10.2f}")
    return found


def by_length(folder):
    """Seconds for a gradient's source, and for its first compiled call, of functions of so many statements."""
    sys.path.insert(0, str(folder))
    rows = []
    print(f"\n{'statements':>10} {'source s':>9} {'compiled s':>11}")
    for n in LENGTHS:
        lines = ["import numpy as np", "", "", "def f(x, y):", "    v0 = x * 2.0", "    v1 = y + x"]
        lines += [f"    v{i} = " + OPERATIONS[i % 5].format(a=f"v{i - 1}", b=f"v{i - 2}") for i in range(2, n - 1)]
        (folder / f"long_{n}.py").write_text("\n".join([*lines, f"    return np.sum(v{n - 2})", ""]))
        f, x = importlib.import_module(f"long_{n}").f, np.linspace(0.1, 1.0, 50)
        start = time.perf_counter()
        gs.grad(f, (0, 1)).source_for(x, x)
        source = time.perf_counter() - start
        start = time.perf_counter()
        if n <= COMPILED:
            gs.jit(gs.grad(f, (0, 1)))(x, x)
        rows.append((n, source, time.perf_counter() - start if n <= COMPILED else math.nan))
        print(f"{n:10,} {rows[-1][1]:9.2f} {rows[-1][2]:11.2f}", flush=True)
    ns, sources, compiled = zip(*rows)
    short = [k for k, n in enumerate(ns) if n <= COMPILED]
    print(f"{'slope':>10} {slope(ns, sources):9.2f} "
          f"{slope([ns[k] for k in short], [compiled[k] for k in short]):11.2f}")
    return rows


def plot(found, rows, path):
    """Curves on logarithmic axes, as SVG: ours solid, JAX's dashed."""
    wide, high, gap, parts = 220, 180, 56, []
    panels = [(name, [(sizes, ours, ""), (sizes, theirs, "5 4")]) for name, sizes, ours, theirs in found]
    ns, sources, _ = zip(*rows)
    panels.append(("statements: source, compiled", [(ns, sources, ""), (*zip(*[(n, c) for n, _, c in rows
                                                                              if c == c]), "5 4")]))
    for k, (name, curves) in enumerate(panels):
        left, top = 50 + (k % 3) * (wide + gap), 30 + (k // 3) * (high + gap)
        xs, ys = [x for c in curves for x in c[0]], [y for c in curves for y in c[1]]

        def place(x, y, left=left, top=top, xs=xs, ys=ys):
            across = math.log(x / min(xs)) / math.log(max(xs) / min(xs))
            up = math.log(y / min(ys)) / math.log(max(ys) / min(ys))
            return f"{left + across * wide:.1f},{top + (1 - up) * high:.1f}"
        parts.append(f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="#999"/>'
                     f'<text x="{left}" y="{top - 6}">{name}</text>'
                     f'<text x="{left}" y="{top + high + 14}">{min(xs):,}</text>'
                     f'<text x="{left + wide}" y="{top + high + 14}" text-anchor="end">{max(xs):,}</text>'
                     f'<text x="{left - 4}" y="{top + high}" text-anchor="end">{min(ys):.0e} s</text>'
                     f'<text x="{left - 4}" y="{top + 9}" text-anchor="end">{max(ys):.0e} s</text>')
        parts += [f'<polyline points="{" ".join(map(place, c, t))}" fill="none" stroke="#1f5f99" stroke-width="1.6" '
                  f'stroke-dasharray="{dash}"/>' for c, t, dash in curves]
    size = f'width="{60 + 3 * (wide + gap)}" height="{60 + 2 * (high + gap)}"'
    Path(path).write_text("\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" '
                                     'font-size="11"><rect width="100%" height="100%" fill="white"/>', *parts,
                                     "</svg>\n"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    found = by_size()
    with tempfile.TemporaryDirectory() as folder:
        rows = by_length(Path(folder))
    if options.out:
        plot(found, rows, f"{options.out}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
