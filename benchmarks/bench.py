"""Gradients compiled by Gradscribe against JAX and autograd, where they are installed.

    python benchmarks/bench.py [--rounds N]

All run in this process on one thread, in float64, turn and turn about.  A number is the median, over the rounds, of
the time of the other divided by the time of `gs.jit(gs.grad(f))`: above 1 means that Gradscribe is faster.
"""
import argparse
import os
import statistics
import sys
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np  # noqa: E402  the threads are set before NumPy is imported

import gradscribe as gs  # noqa: E402

try:
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None
try:
    import autograd
    import autograd.numpy as anp
except ImportError:
    autograd = None


# --- the functions, with the NumPy to use as a global, `np` ---------------------

def mlp_loss(W1, b1, W2, b2, x, y):
    h = np.tanh(x @ W1 + b1)
    p = h @ W2 + b2
    return np.sum((p - y) ** 2)


def logistic_regression(w, b, x, y):
    z = x @ w + b
    return np.mean(np.logaddexp(0.0, z) - y * z)


def rollout(x, w, n):
    for _ in range(n):
        x = x * np.tanh(w)
    return x


def newton_sqrt(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def rollout_jax(x, w, n):
    return jax.lax.scan(lambda x, _: (x * jnp.tanh(w), None), x, None, length=n)[0]


def problems():
    """(name, function, arguments, argnums, the function for JAX or True for the same text, static argnums)."""
    rng = np.random.default_rng(0)
    for n, d, h, k in [(32, 16, 32, 4), (512, 64, 128, 10)]:
        W1, b1, W2, b2 = (rng.standard_normal(s) / 4 for s in [(d, h), h, (h, k), k])
        args = W1, b1, W2, b2, rng.standard_normal((n, d)), rng.standard_normal((n, k))
        yield f"mlp_loss, {n} rows", mlp_loss, args, (0, 1, 2, 3), True, ()
    for n, d in [(200, 10), (20_000, 10)]:
        args = rng.standard_normal(d), 0.1, rng.standard_normal((n, d)), (rng.random(n) > 0.5) * 1.0
        yield f"logistic regression, {n} rows", logistic_regression, args, (0, 1), True, ()
    yield "rollout, 1000 steps", rollout, (0.9, 4.0, 1000), (0, 1), rollout_jax, (2,)
    yield "newton_sqrt", newton_sqrt, (2.0,), (0,), None, ()      # JAX has no reverse mode of a while loop


def with_numpy(f, module):
    """f with another module under the name np."""
    return type(f)(f.__code__, {**f.__globals__, "np": module}, f.__name__, f.__defaults__, f.__closure__)


def contenders(f, args, argnums, for_jax, static):
    yield "gradscribe jit", gs.jit(gs.grad(f, argnums)), args
    yield "gradscribe", gs.grad(f, argnums), args
    if jax and for_jax:
        text = with_numpy(f, jnp) if for_jax is True else for_jax
        compiled = jax.jit(jax.grad(text, argnums), static_argnums=static)
        there = tuple(jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args)
        yield "jax jit", lambda *a: jax.block_until_ready(compiled(*a)), there
    if autograd:
        yield "autograd", autograd.grad(with_numpy(f, anp), argnums), args


def seconds_of(function, args, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function(*args)
    return (time.perf_counter() - start) / calls


def run(entries, rounds):
    """Times of each contender in each round, in turns; the number of calls fills about 5 ms."""
    calls = []
    for _, function, args in entries:
        function(*args)
        calls.append(max(1, min(2000, int(0.005 / max(seconds_of(function, args, 3), 1e-7)))))
    return [[seconds_of(function, args, n) for (_, function, args), n in zip(entries, calls)] for _ in range(rounds)]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=21)
    given = options.parse_args()
    missing = [n for n, m in (("jax", jax), ("autograd", autograd)) if m is None]
    if missing:
        print("not installed: " + ", ".join(missing))
    others = ["gradscribe", "jax jit", "autograd"]
    print(f"{'':30} {'gradscribe jit':>15}" + "".join(f"{n:>13}" for n in others) + "    (times of the first)")
    for name, f, args, argnums, for_jax, static in problems():
        try:
            entries = list(contenders(f, args, argnums, for_jax, static))
            times = run(entries, given.rounds)
        except Exception as error:      # the other rows are worth seeing
            print(f"{name:30} FAILED: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
            continue
        names = [n for n, _, _ in entries]
        ratio = {n: statistics.median(t[i] / t[0] for t in times) for i, n in enumerate(names)}
        first = statistics.median(t[0] for t in times)
        print(f"{name:30} {first * 1e6:12.1f} µs"
              + "".join(f"{ratio[n]:13.2f}" if n in ratio else f"{'-':>13}" for n in others), flush=True)


if __name__ == "__main__":
    sys.exit(main())
