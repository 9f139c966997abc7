# SPDX-License-Identifier: Apache-2.0
"""Programs on a GPU: what they cost at least, what their kernels are, and, where there is a GPU, what they take.

    python benchmarks/on_device.py [--only rows,network] [--rounds 9] [--quick] [--times] [--together]

Without a GPU every kernel is compiled and assembled for sm_90 and run as plain Python on little data.  Printed for each
program: the bytes that a call reads and writes at least (arguments once, results once), its floating-point operations
by a formula where it is products of matrices, the floor that follows from both, the launches of a call, the bytes that
it moves as its kernels' PTX is run, over the least possible; and for each kernel registers, spilled bytes, and the
instructions of the machine's own; where JAX is installed, how far its results are from ours.  With a GPU,
milliseconds of ours and of JAX's beside them, by the host's clock until the device is done, in turns, the median of the
rounds; nothing is claimed without.  `--together` prepares each program in a process of its
own, side by side, and measures one after another once all are ready: for a GPU that is there for minutes.

Figures of the device: NVIDIA H200 data sheet (SXM): 4.8 TB/s, 67 TFLOP/s in float32, 34 in float64, 989 in products of
float16 (half of what is said for sparse matrices); one instruction a
cycle of each of 4 schedulers of 132 multiprocessors, for 32 lanes, at 1.83 GHz: 31e12 lane instructions a second.
"""
import argparse
import contextlib
import functools
import importlib.util
import io
import multiprocessing
import os
import queue
import re
import statistics
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gradscribe as gs
from gradscribe import nn
from gradscribe.runtime import assembled, device, twin

BANDWIDTH, SINGLE, PRODUCTS_IN_HALF, ISSUED = 4.8e12, 67e12, 989e12, 31e12
F = np.float32
TESTS = Path(__file__).parent.parent / "tests"          # which run PTX
LONGEST = 12                            # steps of `with_weights`, at most
PREPARED = 100                          # seconds that programs are waited for, at most


class Program(NamedTuple):
    """function: of arguments; make: (random numbers, size) -> arguments; sizes: little, whole; operations: those of
    floating-point numbers in a call, by its arguments, where they are what takes the time; least: the bytes that a call
    moves at least, by its arguments, where that is more than arguments and results.
    """
    function: object
    make: object
    sizes: tuple
    operations: object = None
    least: object = None


# --- programs ---------------------------------------------------------------------------------------------------------

def energy(x):
    return np.sum(np.tanh(x) * np.exp(-x * x))


def rows(x):
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + F(1e-5))


def network(params, x, y):
    for w, b in params[:-1]:
        x = np.tanh(x @ w + b)
    w, b = params[-1]
    d = x @ w + b - y
    return np.mean(d * d)


def trained(params, x, y):
    """A step of gradient descent."""
    value, gradient = gs.value_and_grad(network)(params, x, y)
    return value, [(w - F(0.1) * dw, b - F(0.1) * db) for (w, b), (dw, db) in zip(params, gradient)]


def network_args(rng, batch, width=512):
    sizes = (784, width, width, 10) if batch > 40 else (30, 26, 25, 20)
    params = [(rng.standard_normal((m, n)).astype(F) / F(m ** 0.5), np.zeros(n, F)) for m, n in zip(sizes, sizes[1:])]
    return params, rng.standard_normal((batch, sizes[0])).astype(F), rng.standard_normal((batch, sizes[-1])).astype(F)


def network_operations(params, x, y):
    return 6 * x.shape[0] * sum(w.size for w, _ in params) - 2 * x.shape[0] * params[0][0].size


def network_bytes(params, x, y):
    """What a step of training moves: each product reads its factors and writes its result; between them an activation
    is made of a product, and kept; the way back reads it beside the adjoint; weights are read, and written anew.
    """
    batch, sizes = x.shape[0], [x.shape[1], *(w.shape[1] for w, _ in params)]
    pairs = list(zip(sizes, sizes[1:]))
    products = sum(batch * m + m * n + batch * n for m, n in pairs) * 3 - batch * pairs[0][0] - pairs[0][0] * pairs[
        0][1] - batch * pairs[0][1]             # x has no adjoint
    activations = sum(5 * batch * n for _, n in pairs[:-1]) + 3 * batch * sizes[-1]
    updates = 3 * sum(w.size + b.size for w, b in params)
    return x.itemsize * (products + activations + updates)


def image_bytes(params, images, labels):
    """Each layer reads images and a window, and writes images; on the way back twice as many do."""
    total, shape = 0, images.shape
    for k, (w, b) in enumerate(p for p in params if len(p)):
        side = shape[1] // 2 if k in (2, 5) else shape[1]
        made = (shape[0], side, side, w.shape[-1])
        total += 3 * (np.prod(shape) + w.size + b.size + np.prod(made)) - np.prod(shape) * (k == 0)
        shape = made
    return images.itemsize * int(total) + labels.nbytes


def convolution(channels, window=3, stride=1):
    return nn.Conv(channels, (window, window), (stride, stride), padding="SAME", W_init=nn.initializers.he_normal())


def layers(width):
    """The all-convolutional network for images of 32 x 32, as in Springenberg et al. (2015), All-CNN-C."""
    found = []
    for channels, window, stride in [(width, 3, 1), (width, 3, 1), (width, 3, 2), (2 * width, 3, 1), (2 * width, 3, 1),
                                     (2 * width, 3, 2), (2 * width, 3, 1), (2 * width, 1, 1), (10, 1, 1)]:
        found += [convolution(channels, window, stride), nn.Relu]
    return nn.serial(*found[:-1])


init_images, of_images = layers(96)
init_little, _ = layers(2)


def image_loss(params, images, labels):
    scores = np.mean(of_images(params, images), axis=(1, 2))          # the kernels say how many channels there are
    return np.mean(nn.softmax_cross_entropy_with_integer_labels(scores, labels))


def image_args(rng, batch):
    init, side = (init_images, 32) if batch > 8 else (init_little, 8)
    _, params = init(gs.random.key(0), (batch, side, side, 3))
    return (gs.tree.map(lambda p: np.asarray(p, F), params), rng.standard_normal((batch, side, side, 3)).astype(F),
            rng.integers(0, 10, batch))


def normal(x):
    return F(0.5) * (F(1) + np.tanh(F(0.7978845608) * (x + F(0.044715) * x * x * x)))


def option_prices(spot, strike, years, rate, volatility):
    root = volatility * np.sqrt(years)
    d = (np.log(spot / strike) + (rate + F(0.5) * volatility * volatility) * years) / root
    return np.sum(spot * normal(d) - strike * np.exp(-rate * years) * normal(d - root))


def option_args(rng, n):
    return tuple((low + (high - low) * rng.random(n, dtype=F)).astype(F) for low, high in (
        (50, 150), (50, 150), (0.1, 2), (0, 0.1), (0.1, 0.6)))


def escape(c):
    z = c * F(0)
    n = 0
    while n < 256 and z.real * z.real + z.imag * z.imag < 4:
        z = z * z + c
        n += 1
    return n


def plane(rng, n):
    x = np.linspace(-2, 1, n, dtype=F)
    return ((x[None, :] + 1j * np.linspace(-1.5, 1.5, n, dtype=F)[:, None]).astype(np.complex64).ravel(),)


def oscillator(damping, end):
    """Van der Pol's equation by Heun's method with steps as long as the error allows (Bogacki and Shampine, 1989)."""
    x, v, t, h = F(2), F(0), F(0), F(0.01)
    while t < end:
        h = min(h, end - t)
        ax = v
        av = damping * (F(1) - x * x) * v - x
        bx = v + h * av
        bv = damping * (F(1) - (x + h * ax) ** 2) * bx - (x + h * ax)
        error = F(0.5) * h * (abs(bx - ax) + abs(bv - av))
        if error < F(1e-3):
            x = x + F(0.5) * h * (ax + bx)
            v = v + F(0.5) * h * (av + bv)
            t = t + h
        h = h * min(F(2), max(F(0.2), F(0.9) * np.sqrt(F(1e-3) / (error + F(1e-12)))))
    return x


def with_weights(x, w, b):
    """Steps of an equation whose right side is a layer, as long as its size allows."""
    h, t, dt = np.tanh(x), F(0), F(0.3)
    while t < F(1.5):
        k = np.tanh(w @ h + b)
        if np.sum(k * k) > F(0.5):
            dt = dt * F(0.9)
        h = h + dt * k
        t = t + dt
    return np.sum(h * h)


def weights_args(rng, n):
    return tuple(F(0.4) * rng.standard_normal(s).astype(F) for s in ((n, 4), (4, 4), (4,)))


def in_half(make):
    """Arguments of a program, in half precision."""
    def changed(value):
        return type(value)(map(changed, value)) if isinstance(value, (list, tuple)) else value.astype(np.float16)
    return lambda rng, size: changed(make(rng, size))


def vectors(rng, n):
    return (rng.standard_normal(n).astype(F),)


def image_operations(params, images, labels):
    """Three products a layer, forward and for both its operands."""
    total, side = 0, images.shape[1]
    for k, layer in enumerate(p for p in params if len(p)):
        w = layer[0]
        side = side // 2 if k in (2, 5) else side
        total += 6 * images.shape[0] * side * side * w.size
    return total


PROGRAMS = {
    "elementwise, gradient": Program(gs.value_and_grad(energy), vectors, (500, 1 << 27)),
    "rows": Program(rows, lambda rng, n: (rng.standard_normal((n, 1024 if n > 8 else 40)).astype(F),), (6, 1 << 17)),
    "rows, gradient": Program(gs.grad(lambda x: np.sum(rows(x) ** 3)), lambda rng, n: (rng.standard_normal(
        (n, 1024 if n > 8 else 40)).astype(F),), (6, 1 << 17)),
    "network, batch 128": Program(trained, network_args, (40, 128), network_operations, network_bytes),
    "network, batch 1024": Program(trained, network_args, (40, 1024), network_operations, network_bytes),
    "images, batch 128": Program(gs.value_and_grad(image_loss), image_args, (2, 128), image_operations,
                                 image_bytes),
    "images, batch 1024": Program(gs.value_and_grad(image_loss), image_args, (2, 1024), image_operations,
                                  image_bytes),
    "option prices, greeks": Program(gs.value_and_grad(option_prices, (0, 1, 2, 3, 4)), option_args, (300, 10 ** 8)),
    "mandelbrot": Program(gs.vmap(escape), plane, (6, 4096)),
    "adaptive steps": Program(gs.vmap(oscillator, (0, None)), lambda rng, n: (rng.random(n, dtype=F) * 5, F(3)),
                              (20, 1 << 20)),
    "elementwise, half": Program(gs.value_and_grad(energy), in_half(vectors), (500, 1 << 27)),
    "network, half": Program(trained, in_half(network_args), (40, 1024), network_operations,
                             network_bytes),
    "shared weights, gradient": Program(gs.value_and_grad(lambda x, w, b: np.sum(gs.vmap(with_weights, (
        0, None, None))(x, w, b)), (0, 1, 2)), weights_args, (20, 1 << 20)),
    "adaptive steps, gradient": Program(gs.vmap(gs.grad(oscillator), (0, None)), lambda rng, n: (
        rng.random(n, dtype=F) * 5, F(3)), (20, 1 << 20)),
}


# --- without a device -------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def launches():
    """A list that gets the name of each kernel that is launched."""
    found, run = [], twin.Kernel.run

    def counted(self, *args):
        found.append(self.__name__)
        return run(self, *args)
    twin.Kernel.run = counted
    try:
        yield found
    finally:
        twin.Kernel.run = run


def say_bytes(name, program, compiled, args, result):
    """The line about the bytes that a call with little data moves, by its kernels' PTX, where that can be made."""
    if importlib.util.find_spec("numba_cuda") is None or not TESTS.exists():
        return
    sys.path[:0] = [] if str(TESTS) in sys.path else [str(TESTS)]
    moved = importlib.import_module("device.traffic").moved(compiled, args)
    least = program.least(*args) if program.least else size_of(args) + size_of(result)
    print(f"    moves {moved.bytes} bytes, {moved.bytes / least:.2f} of the least; {len(moved.kernels)} kernels and "
          f"{len(moved.libraries)} calls of libraries")


def size_of(value):
    return sum(size_of(v) for v in value) if isinstance(value, (list, tuple)) else getattr(value, "nbytes", 0)


def arrays_of(value):
    return [a for v in value for a in arrays_of(v)] if isinstance(value, (list, tuple)) else [value]


def looked_at(name, program):
    """The lines about a program and its kernels, from a call with little data."""
    little, _ = program.sizes
    args = program.make(np.random.default_rng(0), little)
    compiled = gs.jit(program.function, target="cuda")
    assembled.reports.clear()
    result = compiled(*args)
    with launches() as found:
        compiled(*args)
    products = len(re.findall(r"host\.(?:dot|product)\(", compiled.lowered))
    print(f"\n{name}: {len(found)} launches of {len(set(found))} kernels a call, {products} products in its text")
    for r in assembled.reports:
        kinds = ", ".join(f"{n} {k}" for k, n in r.machine.items() if n and k != "all")
        print(f"    {r.name:32} {r.registers:3} registers, {r.spills} bytes spilled; {r.machine.get('all', '?')} "
              f"instructions: {kinds}")
    say_bytes(name, program, compiled, args, result)
    apart = differences(name, args, result)
    if apart is not None:
        print(f"    JAX's results: within {apart:.1e} of the largest entry")
    return args, result


def differences(name, args, result):
    """How far JAX's results are from ours; None without JAX, and where it has no such program."""
    if importlib.util.find_spec("jax") is None:
        return None
    return importlib.import_module("on_device_jax").differences(name, args, result)


def floor_of(program, args, result):
    """(bytes, operations, milliseconds) of a call at full size, by those of one with little data or by its formula."""
    little, whole = program.sizes
    if program.operations is not None:
        shapes = program.make(np.random.default_rng(0), whole)
        moved = 2 * size_of(shapes[0]) + size_of(shapes[1:])
        operations = program.operations(*shapes)
    else:
        scale = whole / little if np.ndim(args[0]) < 2 and program.make is not plane else whole * (
            1024 / 40 if args[0].ndim == 2 else whole / little) / little
        moved, operations = scale * (size_of(args) + size_of(result)), 0
    half = any(a.dtype == np.float16 for a in arrays_of(args))
    return moved, operations, 1e3 * max(moved / BANDWIDTH, operations / (PRODUCTS_IN_HALF if half else SINGLE))


# --- with one ---------------------------------------------------------------------------------------------------------

def on_gpu(name, program):
    """Calls at full size: ours, by a graph, with factors of 10 bits as JAX has them by itself, JAX's; each has run."""
    import cupy as cp
    _, whole = program.sizes
    args = program.make(np.random.default_rng(0), whole)
    there = moved_by(cp.asarray, args)
    runs = {n: functools.partial(gs.jit(program.function, target="cuda", graph=n != "ours", tf32=n == "tf32"), *there)
            for n in ("ours", "graph", *["tf32"] * (program.operations is not None))}
    theirs = jax_run(name, args)
    if theirs is not None:
        runs["JAX"] = theirs
    for kind, run in runs.items():
        for _ in range(3):
            run()
        cp.cuda.Device().synchronize()
        said(f"{name}: {kind} has run")
    return runs


def in_turns(runs, rounds, calls=1):
    """Milliseconds of a call of each, the median of the rounds."""
    import cupy as cp
    times = {n: [] for n in runs}
    for _ in range(rounds):
        for n, run in runs.items():
            cp.cuda.Device().synchronize()
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            cp.cuda.Device().synchronize()          # all streams of the device, JAX's too
            times[n].append(1e3 * (time.perf_counter() - begin) / calls)
    return {n: statistics.median(t) for n, t in times.items()}


def chain(x):
    """A sum and what hangs on it, ten times: each is three launches."""
    for _ in range(10):
        x = x - np.mean(x * x)
    return x


def of_launches(rounds):
    """Microseconds of a call of `chain` on a short array: ours, by a graph, JAX's."""
    import cupy as cp
    x = np.ones(1000, F)
    runs = {n: functools.partial(gs.jit(chain, target="cuda", graph=n == "graph"), cp.asarray(x))
            for n in ("ours", "graph")}
    try:
        import jax
        if jax.default_backend() == "gpu":
            from on_device_jax import of
            runs["JAX"] = functools.partial(jax.jit(of(chain)), jax.numpy.asarray(x))
    except ImportError:
        pass
    for run in runs.values():
        for _ in range(3):
            run()
    return {n: 1e3 * t for n, t in in_turns(runs, rounds, 100).items()}


def jax_run(name, args):
    """A call of JAX's on the same device, None where there is none."""
    try:
        import jax
        if jax.default_backend() != "gpu":
            return None
    except ImportError:
        return None
    function = importlib.import_module("on_device_jax").versions().get(name)
    return function and functools.partial(function, *jax.tree.map(jax.numpy.asarray, args))


def moved_by(put, value):
    if isinstance(value, (list, tuple)):
        return type(value)(moved_by(put, v) for v in value)
    return put(value) if isinstance(value, np.ndarray) else value


def copied_per_second(rounds):
    """Bytes a second that a copy of a large array reads and writes."""
    import cupy as cp
    a = cp.zeros(1 << 28, cp.float32)
    b = cp.empty_like(a)
    times = []
    for _ in range(rounds + 2):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        cp.copyto(b, a)
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end) / 1e3)
    return 2 * a.nbytes / statistics.median(times[2:])


class Row(NamedTuple):
    """A program's line of the table: bytes and operations of a call, its floor in ms, ms by what runs it (or None)."""
    name: str
    moved: float
    operations: float
    floor: float
    times: dict | None


def prepared(name, measured, reports):
    """(bytes, operations, milliseconds) of a call at least; the calls at full size, None without a device."""
    program = PROGRAMS[name]
    with device.using("ptx" if reports else "plain"):
        args, result = looked_at(name, program)
    said(f"{name} is looked at")
    return floor_of(program, args, result), on_gpu(name, program) if measured else None


def row_of(name, floor, runs, rounds):
    return Row(name, *floor, runs and in_turns(runs, rounds))


def said(text):
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def in_process(name, options, measured, ready, one, rows):
    """Puts (name, text, row) into a queue; the text ends with what went wrong where the row is None.  Measures when
    all are `ready`, and no `one` else does.
    """
    text, row, made = io.StringIO(), None, None
    with contextlib.redirect_stdout(text):
        try:
            made = prepared(name, measured, not options.times)
            said(f"{name} is ready")
        except Exception:
            traceback.print_exc(file=text)
        with contextlib.suppress(threading.BrokenBarrierError):
            ready.wait(PREPARED)
        try:
            with one:
                row = made and row_of(name, *made, options.rounds)
        except Exception:
            traceback.print_exc(file=text)
    rows.put((name, text.getvalue(), row))


def together(chosen, options, measured):
    """Rows of programs that are prepared side by side, in the order of `chosen`."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")      # the device's memory is shared
    context = multiprocessing.get_context("spawn")
    ready, one, rows = context.Barrier(len(chosen)), context.Lock(), context.Queue()
    processes = {n: context.Process(target=in_process, args=(n, options, measured, ready, one, rows)) for n in chosen}
    for process in processes.values():
        process.start()
    found = {}
    while processes:
        with contextlib.suppress(queue.Empty):
            name, text, found[name] = rows.get(timeout=5)
            print(text, flush=True)
            said(found[name])
            processes.pop(name).join(5)
            continue
        for name in [n for n, p in processes.items() if p.exitcode]:
            said(f"{name} has ended with {processes.pop(name).exitcode}")
            ready.abort()
    return [found[n] for n in chosen if found.get(n) is not None]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, or beginnings of them, with commas between")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="what is on the processor alone")
    parser.add_argument("--times", action="store_true", help="times alone, nothing of registers and instructions")
    parser.add_argument("--together", action="store_true", help="prepare all programs side by side")
    options = parser.parse_args(argv)
    chosen = [n for n in PROGRAMS if not options.only or n.startswith(tuple(options.only.split(",")))]
    measured, begin = device.has_device() and not options.quick, time.perf_counter()
    if options.together:
        rows = together(chosen, options, measured)
    else:
        rows = [row_of(n, *prepared(n, measured, not options.times), options.rounds) for n in chosen]
    heads = ["ours ms", "by a graph ms", "tf32 ms", "JAX ms"]
    print(f"\n{'program':28}{'GB moved':>10}{'Gop':>10}{'floor ms':>10}" + "".join(f"{h:>18}" for h in heads))
    for name, moved, operations, floor, times in rows:
        shown = [f"{times[n]:.3f}" if n in times else "-" for n in ("ours", "graph", "tf32", "JAX")] if times else [
            "not yet measured"] * 4
        print(f"{name:28}{moved / 1e9:10.3f}{operations / 1e9:10.1f}{floor:10.3f}" + "".join(f"{s:>18}" for s in shown))
    if measured:
        copied = copied_per_second(options.rounds)
        print(f"a copy moves {copied / 1e12:.2f} TB/s")
        for name, moved, operations, _, times in rows:
            if not operations:
                print(f"{name:28} moves {moved / min(times['ours'], times['graph']) / 1e-3 / copied:6.1%} of that")
        print("ten sums, one after another: " + ", ".join(
            f"{n} {t:.0f} us a call" for n, t in of_launches(options.rounds).items()))
    print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr)
    return len(rows) < len(chosen)


if __name__ == "__main__":
    sys.exit(main())
