# SPDX-License-Identifier: Apache-2.0
"""Taylor mode: higher derivatives against nested forward mode and JAX's jet, and an orbit against DOP853.

    python benchmarks/taylor.py [--jax] [--orders 1 2 4 8]

The function is tanh(x sin x) exp(-x**2 / 2) / (1 + x**2) on 1,000 numbers.  A time is processor time, the median of 15
blocks of calls, which take turns in one process with one thread.  `lines` is the length of the emitted source.  The
orbit is Kepler's with eccentricity 0.5, ten periods; the error is that of the last position.
"""
import argparse
import os
import statistics
import time

os.environ.update(OMP_NUM_THREADS="1", XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402
from gradscribe.experimental import ode  # noqa: E402

SIZE, BLOCKS = 1000, 15


def f(x, np=np):
    return np.tanh(x * np.sin(x)) * np.exp(-x * x / 2) / (1 + x * x)


def nested(order):
    """The derivatives of the orders 0 to K, each by forward mode nested as often."""
    def derivative(g):
        return lambda t: gs.jvp(g, (t,), (np.ones(SIZE),))[1]
    parts = [f]
    for _ in range(order):
        parts.append(derivative(parts[-1]))
    last = parts[-1]
    return gs.jit(lambda t: last(t))


def nested_in_jax(jax, g, order):
    """The derivative of an order, by nested forward mode."""
    return g if order == 0 else nested_in_jax(jax, lambda t: jax.jvp(g, (t,), (jax.numpy.ones(SIZE),))[1], order - 1)


def by_turns(calls):
    """Median microseconds of each call."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(BLOCKS):
        for name, call in calls.items():
            start, n = time.process_time(), 0
            while time.process_time() - start < 0.02:
                call()
                n += 1
            times[name].append((time.process_time() - start) / n * 1e6)
    return {name: statistics.median(t) for name, t in times.items()}


def derivatives(order, with_jax):
    x, series = np.linspace(-1, 1, SIZE), (np.ones(SIZE),) + (order - 1) * (np.zeros(SIZE),)
    made = gs.jet_of(f, order)
    fast = gs.jit(made)
    calls = {"jet": lambda: made(x, series), "jet, jit": lambda: fast(x, series)}
    if order <= 4:
        deep = nested(order)
        calls["jvp nested, jit"] = lambda: deep(x)
        assert np.allclose(deep(x), made(x, series)[1][-1], rtol=1e-8)
    if with_jax:
        import jax
        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp
        from jax.experimental.jet import jet
        a, b = jnp.asarray(x), [jnp.asarray(s) for s in series]
        theirs = jax.jit(lambda a, b: jet(lambda x: f(x, jnp), (a,), (b,)))
        calls["jax jet, jit"] = lambda: jax.block_until_ready(theirs(a, b))
        assert np.allclose(theirs(a, b)[1][-1], made(x, series)[1][-1], rtol=1e-7, atol=1e-7)
        if order <= 4:
            theirs_nested = jax.jit(nested_in_jax(jax, lambda x: f(x, jnp), order))
            calls["jax jvp nested, jit"] = lambda: jax.block_until_ready(theirs_nested(a))
    found = by_turns(calls)
    print(f"order {order}, {len(made.source_for(x, series).splitlines())} lines: " + ", ".join(
        f"{name} {t:.0f} us" for name, t in found.items()), flush=True)


def kepler(u, t):
    r2 = u[0] * u[0] + u[1] * u[1]
    r3 = r2 * np.sqrt(r2)
    return np.array([u[2], u[3], -u[0] / r3, -u[1] / r3])


def orbit():
    from scipy.integrate import solve_ivp
    u0, times = np.array([0.5, 0.0, 0.0, np.sqrt(3.0)]), np.array([0.0, 20 * np.pi])
    start = time.perf_counter()
    fast = gs.jit(lambda u0, times: ode.taylor(kepler, u0, times, order=16, tol=1e-14))
    fast(u0, times)
    print(f"orbit: compiled in {time.perf_counter() - start:.1f} s", flush=True)
    right = gs.jit(kepler)
    right(u0, 0.0)

    def dop():
        return solve_ivp(lambda t, u: right(u, t), times, u0, method="DOP853", rtol=3e-14, atol=1e-14).y[:, -1]
    found = by_turns({"taylor, jit": lambda: fast(u0, times), "DOP853": dop})
    print("orbit: " + ", ".join(f"{name} {t:.0f} us" for name, t in found.items()) +
          f"; errors {np.max(np.abs(fast(u0, times)[-1] - u0)):.1e}, {np.max(np.abs(dop() - u0)):.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--jax", action="store_true")
    parser.add_argument("--orders", type=int, nargs="*", default=(1, 2, 4, 8))
    given = parser.parse_args()
    for k in given.orders:
        derivatives(k, given.jax)
    orbit()
