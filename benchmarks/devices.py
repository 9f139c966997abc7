# SPDX-License-Identifier: Apache-2.0
"""Steps of training on one device and on two: threads of gs.pmap, processes of an MPI run, and jax.pmap beside them.

    python benchmarks/devices.py [--rounds 15]                           threads, and jax.pmap on two simulated devices
    mpiexec -n 2 python -m gradscribe.run benchmarks/devices.py          processes, and MPI's own cost of a sum

A step is the value and gradient of a network's loss, the mean of both over the devices, and the update; or the
greeks of an option by simulated paths.  One device has the whole batch, two have a half each.  Times are medians in
milliseconds, taken in turns by one and two devices, each of which first makes a step that is not counted: steps of a
training follow each other.  BLAS has one thread.

The overhead of a step is what gs.pmap takes for a program of a few additions and one sum over two devices, less what
gs.jit takes for the same on one: the median of a thousand steps that follow each other, and of as many with pauses of a
millisecond, after which the threads sleep; of five such medians the smallest, as other processes take cores.
"""
# ruff: noqa: B023  the functions are called in the pass that makes them
import argparse
import os
import statistics
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", JAX_ENABLE_X64="1",
                  XLA_FLAGS="--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false "
                            "intra_op_parallelism_threads=1")

import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402
from gradscribe import lax, machine  # noqa: E402

NETWORKS = [(16, 32), (48, 64), (64, 256), (128, 512), (256, 1024), (512, 1024)]        # width, batch
PATHS = [2_000, 20_000, 200_000, 1_500_000, 4_000_000]


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def medians(rounds, *runs):
    """The median milliseconds of each, taken in turns."""
    for run in runs:
        run()
    found = [[(run(), seconds(run))[1] for run in runs] for _ in range(rounds)]
    return [1e3 * statistics.median(times) for times in zip(*found)]


def overhead(pause=0.0, steps=1000):
    """The microseconds of a step of two devices over one."""
    one, two = gs.jit(few), gs.pmap(few_together, "i")
    x = np.ones((2, 4))
    for _ in range(4):
        one(x[0]), two(x)

    def median(run):
        times = []
        for _ in range(steps):
            time.sleep(pause) if pause else None
            times.append(seconds(run))
        return 1e6 * statistics.median(times)
    return min(median(lambda: two(x)) - median(lambda: one(x[0])) for _ in range(5))


def few(x):
    return x * 2.0 + np.sum(x)


def few_together(x):
    return x * 2.0 + lax.psum(np.sum(x), "i")


def network(width, batch):
    rng = np.random.default_rng(0)
    sizes = (width, width, width, 10)
    params = [(rng.standard_normal((m, n)) / np.sqrt(m), np.zeros(n)) for m, n in zip(sizes, sizes[1:])]
    return params, rng.standard_normal((batch, width)), rng.standard_normal((batch, 10))


def program(np, lax, grad):
    """The step, in NumPy or in JAX: on one device, and on each of several."""
    def loss(params, x, y):
        for W, b in params[:-1]:
            x = np.tanh(x @ W + b)
        W, b = params[-1]
        return np.mean((x @ W + b - y) ** 2)

    def alone(params, x, y):
        value, gradient = grad(loss)(params, x, y)
        return value, [(W - 0.1 * dW, b - 0.1 * db) for (W, b), (dW, db) in zip(params, gradient)]

    def together(params, x, y):
        value, gradient = lax.pmean(grad(loss)(params, x, y), "batch")
        return value, [(W - 0.1 * dW, b - 0.1 * db) for (W, b), (dW, db) in zip(params, gradient)]
    return alone, together


def payoff(market, z):
    """The discounted value of a call with the maximum of a path's two halves (its derivatives are the greeks)."""
    spot, volatility, rate = market
    drift, width = (rate - 0.5 * volatility ** 2) * 0.5, volatility * np.sqrt(0.5)
    half = spot * np.exp(drift + width * z[:, 0])
    end = half * np.exp(drift + width * z[:, 1])
    return np.mean(np.exp(-rate) * np.maximum(np.maximum(half, end) - 100.0, 0.0))


def greeks(market, z):
    return gs.value_and_grad(payoff)(market, z)


def greeks_together(market, z):
    return lax.pmean(gs.value_and_grad(payoff)(market, z), "batch")


MARKET = (101.0, 0.2, 0.03)


def on_threads(rounds):
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        jax = None
    alone, together = program(np, lax, gs.value_and_grad)
    one, two = gs.jit(alone), gs.pmap(together, "batch", in_axes=(None, 0, 0), out_axes=None)
    if jax is not None:
        theirs, theirs_together = program(jnp, jax.lax, jax.value_and_grad)
        their_one = jax.jit(theirs)
        their_two = jax.pmap(theirs_together, "batch", in_axes=(None, 0, 0), out_axes=None)
    print(f"overhead of a step on two threads: {overhead():.0f} us; after a pause: {overhead(1e-3, 200):.0f} us")
    print(f"{'network':>16} {'one':>9} {'two':>9} {'ratio':>6}    {'JAX one':>9} {'JAX two':>9} {'ratio':>6}")
    for width, batch in NETWORKS:
        params, x, y = network(width, batch)
        halves = x.reshape(2, -1, width), y.reshape(2, -1, 10)
        a, b = medians(rounds, lambda: one(params, x, y), lambda: two(params, *halves))
        c = d = float("nan")
        if jax is not None:
            c, d = medians(rounds, lambda: jax.block_until_ready(their_one(params, x, y)),
                           lambda: jax.block_until_ready(their_two(params, *halves)))
            time.sleep(0.2)             # JAX's threads wait for work at full speed for a while
        what = f"{width} x {batch}"
        print(f"{what:>16} {a:9.3f} {b:9.3f} {a / b:6.2f}    {c:9.3f} {d:9.3f} {c / d:6.2f}", flush=True)
    one, two = gs.jit(greeks), gs.pmap(greeks_together, "batch", in_axes=(None, 0), out_axes=None)
    for count in PATHS:
        z = np.random.default_rng(1).standard_normal((count, 2))
        a, b = medians(rounds, lambda: one(MARKET, z), lambda: two(MARKET, z.reshape(2, -1, 2)))
        print(f"{f'greeks {count}':>16} {a:9.3f} {b:9.3f} {a / b:6.2f}", flush=True)


def on_processes(rounds):
    world = machine.RUN["world"]
    first = world.rank == 0
    alone, together = program(np, lax, gs.value_and_grad)
    one, two = gs.jit(alone), gs.pmap(together, "batch", in_axes=(None, 0, 0), out_axes=None)

    def in_turns(whole, part):
        """The first process alone while the others wait, then all."""
        times = [[], []]
        for _ in range(rounds + 1):
            world.comm.Barrier()
            if first:
                times[0].append(seconds(whole))
            world.comm.Barrier()
            times[1].append(seconds(part))
        return [1e3 * statistics.median(t[1:] or [0.0]) for t in times]

    def say(what, a, b):
        if first:
            print(f"{what:>16} {a:9.3f} {b:9.3f} {a / b:6.2f}", flush=True)
    if first:
        print(f"{'network':>16} {'one':>9} {world.size:>9} {'ratio':>6}")
    for width, batch in NETWORKS:
        params, x, y = network(width, batch)
        parts = x.reshape(world.size, -1, width), y.reshape(world.size, -1, 10)
        say(f"{width} x {batch}", *in_turns(lambda: one(params, x, y), lambda: two(params, *parts)))
    one, two = gs.jit(greeks), gs.pmap(greeks_together, "batch", in_axes=(None, 0), out_axes=None)
    for count in PATHS:
        z = np.random.default_rng(1).standard_normal((count, 2))
        parts = z.reshape(world.size, -1, 2)
        say(f"greeks {count}", *in_turns(lambda: one(MARKET, z), lambda: two(MARKET, parts)))
    if first:
        print(f"{'sum of':>16} {'mpi4py':>9} {'ours':>9} {'ratio':>6}")
    group = world.group("batch")
    for size in (8, 1 << 10, 1 << 16, 1 << 20, 1 << 23, 1 << 25):
        x, bare, own = np.ones(size // 8), np.empty(size // 8), np.empty(size // 8)
        times = [[], []]
        for _ in range(10 * rounds):
            world.comm.Barrier()
            times[0].append(seconds(lambda: world.comm.Allreduce(x, bare)))
            world.comm.Barrier()
            times[1].append(seconds(lambda: group.reduce(x, "sum", "a sum", own)))
        say(f"{size} bytes", *(1e3 * statistics.median(t) for t in times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if gs.process_count() > 1:
        return on_processes(options.rounds)
    if gs.device_count() < 2:
        sys.exit("two devices are needed: GRADSCRIBE_DEVICES=2")
    return on_threads(options.rounds)


if __name__ == "__main__":
    main()
