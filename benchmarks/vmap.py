"""vmap, compiled, against jax.jit(jax.vmap(...)): control flow of each example's own, and whole-batch arithmetic.

    python benchmarks/vmap.py [--rounds N] [names]

Both run in this process on one thread, in float64, turn and turn about, and give the same numbers.  A ratio is the
median, over the rounds, of JAX's time divided by ours: above 1 means that Gradscribe is faster.
"""
import argparse
import os
import statistics
import sys
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax  # noqa: E402  the threads are set before
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import gradscribe as gs  # noqa: E402

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


# --- escape times of the Mandelbrot set: each point leaves when it leaves ---

def escape_time(c, limit):
    z, n = 0j, 0
    while n < limit and abs(z) <= 2.0:
        z = z * z + c
        n += 1
    return n


def escape_time_jax(c, limit):
    def going(state):
        z, n = state
        return (n < limit) & (jnp.abs(z) <= 2.0)

    def step(state):
        z, n = state
        return z * z + c, n + 1
    return lax.while_loop(going, step, (0j, 0))[1]


def plane():
    re, im = np.meshgrid(np.linspace(-2, 0.6, 400), np.linspace(-1.2, 1.2, 250))
    return (re + 1j * im).ravel(), 200


# --- Newton's method with as many steps as each equation needs ---

def kepler(m, e):
    """The eccentric anomaly: x - e sin x = m."""
    x = m
    while abs(x - e * np.sin(x) - m) > 1e-12:
        x = x - (x - e * np.sin(x) - m) / (1.0 - e * np.cos(x))
    return x


def kepler_jax(m, e):
    def going(x):
        return jnp.abs(x - e * jnp.sin(x) - m) > 1e-12

    def step(x):
        return x - (x - e * jnp.sin(x) - m) / (1.0 - e * jnp.cos(x))
    return lax.while_loop(going, step, m)


def orbits():
    return rng.uniform(0.1, 3.0, 100_000), rng.uniform(0.0, 0.95, 100_000)


# --- an oscillator with steps as long as its stiffness lets them be (Bogacki and Shampine, 1989) ---

def van_der_pol(mu, x, v, end):
    t, h = 0.0, 0.01
    while t < end:
        h = min(h, end - t)
        k1x, k1v = v, mu * (1.0 - x * x) * v - x
        x2, v2 = x + 0.5 * h * k1x, v + 0.5 * h * k1v
        k2x, k2v = v2, mu * (1.0 - x2 * x2) * v2 - x2
        x3, v3 = x + 0.75 * h * k2x, v + 0.75 * h * k2v
        k3x, k3v = v3, mu * (1.0 - x3 * x3) * v3 - x3
        xn = x + h * (2.0 * k1x + 3.0 * k2x + 4.0 * k3x) / 9.0
        vn = v + h * (2.0 * k1v + 3.0 * k2v + 4.0 * k3v) / 9.0
        k4x, k4v = vn, mu * (1.0 - xn * xn) * vn - xn
        ex = h * (-5.0 * k1x / 72.0 + k2x / 12.0 + k3x / 9.0 - k4x / 8.0)
        ev = h * (-5.0 * k1v / 72.0 + k2v / 12.0 + k3v / 9.0 - k4v / 8.0)
        error = np.sqrt(ex * ex + ev * ev) / 1e-6
        if error <= 1.0:
            t, x, v = t + h, xn, vn
        h = h * min(5.0, max(0.2, 0.9 * (error + 1e-12) ** (-1.0 / 3.0)))
    return x


def van_der_pol_jax(mu, x, v, end):
    def slope(x, v):
        return v, mu * (1.0 - x * x) * v - x

    def step(state):
        t, h, x, v = state
        h = jnp.minimum(h, end - t)
        k1x, k1v = slope(x, v)
        k2x, k2v = slope(x + 0.5 * h * k1x, v + 0.5 * h * k1v)
        k3x, k3v = slope(x + 0.75 * h * k2x, v + 0.75 * h * k2v)
        xn = x + h * (2.0 * k1x + 3.0 * k2x + 4.0 * k3x) / 9.0
        vn = v + h * (2.0 * k1v + 3.0 * k2v + 4.0 * k3v) / 9.0
        k4x, k4v = slope(xn, vn)
        ex = h * (-5.0 * k1x / 72.0 + k2x / 12.0 + k3x / 9.0 - k4x / 8.0)
        ev = h * (-5.0 * k1v / 72.0 + k2v / 12.0 + k3v / 9.0 - k4v / 8.0)
        error = jnp.sqrt(ex * ex + ev * ev) / 1e-6
        good = error <= 1.0
        factor = jnp.minimum(5.0, jnp.maximum(0.2, 0.9 * (error + 1e-12) ** (-1.0 / 3.0)))
        return jnp.where(good, t + h, t), h * factor, jnp.where(good, xn, x), jnp.where(good, vn, v)
    return lax.while_loop(lambda s: s[0] < end, step, (0.0, 0.01, x, v))[2]


def oscillators():
    return rng.uniform(0.1, 8.0, 500), rng.uniform(-2, 2, 500), rng.uniform(-1, 1, 500), 5.0


# --- the gradient of each example alone ---

def loss(params, x, y):
    (w1, b1), (w2, b2) = params
    h = np.tanh(x @ w1 + b1)
    p = h @ w2 + b2
    return np.sum((p - y) ** 2)


def loss_jax(params, x, y):
    (w1, b1), (w2, b2) = params
    h = jnp.tanh(x @ w1 + b1)
    p = h @ w2 + b2
    return jnp.sum((p - y) ** 2)


def network():
    params = [(rng.standard_normal((64, 128)) / 8, np.zeros(128)), (rng.standard_normal((128, 10)) / 11, np.zeros(10))]
    return params, rng.standard_normal((128, 64)), rng.standard_normal((128, 10))


# --- one number from each of many small matrices ---

def spectral_radius(a):
    return np.max(np.abs(np.linalg.eigvals(a)))


def spectral_radius_jax(a):
    return jnp.max(jnp.abs(jnp.linalg.eigvals(a)))


def matrices():
    return (rng.standard_normal((128, 3, 3)),)


# --- filters that see other measurements ---

def kalman(f, q, h, r, measured):
    """The logarithm of the likelihood of the measurements."""
    x, p, total = np.zeros(f.shape[0]), np.eye(f.shape[0]), 0.0
    for z in measured:
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        off = z - h @ x
        gain = p @ h.T @ np.linalg.inv(s)
        total -= 0.5 * (off @ np.linalg.solve(s, off) + np.log(np.linalg.det(s)))
        x = x + gain @ off
        p = p - gain @ h @ p
    return total


def kalman_jax(f, q, h, r, measured):
    def step(state, z):
        x, p, total = state
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        off = z - h @ x
        gain = p @ h.T @ jnp.linalg.inv(s)
        total -= 0.5 * (off @ jnp.linalg.solve(s, off) + jnp.log(jnp.linalg.det(s)))
        return (x + gain @ off, p - gain @ h @ p, total), None
    return lax.scan(step, (jnp.zeros(f.shape[0]), jnp.eye(f.shape[0]), 0.0), measured)[0][2]


def tracks():
    f = np.eye(4) + 0.1 * np.eye(4, k=2)
    return f, 0.01 * np.eye(4), np.eye(2, 4), 0.1 * np.eye(2), rng.standard_normal((200, 50, 2)).cumsum(1) * 0.1


PROBLEMS = {
    "escape time": (gs.vmap(escape_time, (0, None)), jax.vmap(escape_time_jax, (0, None)), plane, True),
    "Kepler by Newton": (gs.vmap(kepler), jax.vmap(kepler_jax), orbits, True),
    "adaptive steps": (gs.vmap(van_der_pol, (0, 0, 0, None)), jax.vmap(van_der_pol_jax, (0, 0, 0, None)), oscillators,
                       True),
    "per-example gradients": (gs.vmap(gs.grad(loss), (None, 0, 0)), jax.vmap(jax.grad(loss_jax), (None, 0, 0)), network,
                              False),
    "spectral radii": (gs.vmap(spectral_radius), jax.vmap(spectral_radius_jax), matrices, False),
    "Kalman filters": (gs.vmap(kalman, (None,) * 4 + (0,)), jax.vmap(kalman_jax, (None,) * 4 + (0,)), tracks, False),
}


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(name, rounds):
    """-> (ratio of the times, our time, JAX's, whether the numbers agree)."""
    ours, theirs, arguments, _ = PROBLEMS[name]
    given = arguments()
    there = jax.tree.map(jnp.asarray, given)
    f, g = gs.jit(ours), jax.jit(theirs)

    def run_theirs():
        return jax.block_until_ready(g(*there))

    got, want = f(*given), run_theirs()
    same = all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want)))
    pairs = [(seconds(lambda: f(*given)), seconds(run_theirs)) for _ in range(rounds)]
    return (statistics.median(b / a for a, b in pairs), *(statistics.median(t) for t in zip(*pairs)), same)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    good = True
    print(f"{'':24}{'ours':>10}{'JAX':>10}{'ratio':>8}   goal")
    for name, (*_, control) in PROBLEMS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        ratio, ours, theirs, same = measure(name, options.rounds)
        good &= same
        print(f"{name:24}{ours * 1e3:8.2f}ms{theirs * 1e3:8.2f}ms{ratio:8.2f}   {3 if control else 1}"
              f"{'' if same else '   OTHER NUMBERS'}", flush=True)
    return not good


if __name__ == "__main__":
    sys.exit(main())
