"""Truncated Newton-CG, the whole solver compiled: Gradscribe against jax.jit of the same algorithm, and plain Python.

    python benchmarks/newton_cg.py [--core 1] [--rounds 9] [quadratic hmm logreg]

All three run in turns in one process, on one core and thread; times are medians, in milliseconds.  Python is the same
solver without gs.jit: Python's loops around NumPy's functions.  The three objectives are those of R. Frostig,
M. Johnson and C. Leary, Compiling machine learning programs via high-level tracing (2018), table 1; sizes are ours.
"""
import argparse
import os
import statistics
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                  XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402
from gradscribe.optim import newton_cg  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUTER, PRODUCTS, TRIALS, GTOL = 30, 100, 30, 1e-6


def quadratic_data(n=500):
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a = (q * np.logspace(0, 3, n)) @ q.T
    return np.zeros(n), (0.5 * (a + a.T), rng.normal(size=n))


def quadratic(x, a, b):
    return 0.5 * np.dot(x, np.dot(a, x)) - np.dot(b, x)


def quadratic_jax(x, a, b):
    return 0.5 * x @ (a @ x) - b @ x


def hmm_data(states=5, symbols=10, length=200):
    """A chain that is drawn, and the start of the search for its parameters."""
    rng = np.random.default_rng(1)
    moves, emits = rng.dirichlet(np.full(states, 0.5), size=states), rng.dirichlet(np.full(symbols, 0.5), size=states)
    state, seen = 0, np.zeros(length, dtype=np.int64)
    for t in range(length):
        seen[t] = rng.choice(symbols, p=emits[state])
        state = rng.choice(states, p=moves[state])
    return 0.1 * rng.normal(size=states * (1 + states + symbols)), (seen, np.zeros((states, symbols)))


def softmax(z):
    e = np.exp(z)
    return e / np.sum(e, axis=-1, keepdims=True)


def hmm(x, seen, shape):
    k, v = shape.shape
    start, moves = softmax(x[:k]), softmax(x[k:k + k * k].reshape(k, k))
    likely = softmax(x[k + k * k:].reshape(k, v)).T[seen]
    alpha = start * likely[0]
    c = np.sum(alpha)
    alpha = alpha / c
    total = np.log(c)
    for t in range(1, seen.shape[0]):
        alpha = np.dot(alpha, moves) * likely[t]
        c = np.sum(alpha)
        alpha = alpha / c
        total = total + np.log(c)
    return -total / seen.shape[0] + 0.005 * np.dot(x, x)


def hmm_jax(x, seen, shape):
    k, v = shape.shape
    start, moves = jax.nn.softmax(x[:k]), jax.nn.softmax(x[k:k + k * k].reshape(k, k), axis=1)
    likely = jax.nn.softmax(x[k + k * k:].reshape(k, v), axis=1).T[seen]

    def step(alpha, like):
        alpha = (alpha @ moves) * like
        c = alpha.sum()
        return alpha / c, c
    first = start * likely[0]
    _, cs = jax.lax.scan(step, first / first.sum(), likely[1:])
    return -(jnp.log(first.sum()) + jnp.log(cs).sum()) / seen.shape[0] + 0.005 * x @ x


def logreg_data(n=2000, d=50):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, d))
    return np.zeros(d), (x, np.where(x @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0))


def logreg(w, x, y):
    return np.mean(np.logaddexp(0.0, -y * np.dot(x, w))) + 5e-4 * np.dot(w, w)


def logreg_jax(w, x, y):
    return jnp.mean(jax.nn.softplus(-y * (x @ w))) + 5e-4 * w @ w


PROBLEMS = {"quadratic": (quadratic_data, quadratic, quadratic_jax), "hmm": (hmm_data, hmm, hmm_jax),
            "logreg": (logreg_data, logreg, logreg_jax)}


def solve_jax(fun, x, args):
    """newton_cg with lax.while_loop; the Hessian is linearised once for each outer iteration."""
    def f(x):
        return fun(x, *args)

    def newton(s):
        x, fx, g, norm, nit, nhev = s
        enough = jnp.minimum(0.5, jnp.sqrt(norm)) * norm
        _, product = jax.linearize(jax.grad(f), x)

        def conjugate(c):
            p, r, d, rr, k, _ = c
            curved = product(d)
            curvature = d @ curved
            flat = curvature <= 0.0
            alpha = rr / jnp.where(flat, 1.0, curvature)
            p = jnp.where(flat, jnp.where(k == 0, r, p), p + alpha * d)
            r = r - alpha * curved
            rr_next = r @ r
            return p, r, r + rr_next / rr * d, rr_next, k + 1, flat | (jnp.sqrt(rr_next) <= enough)
        p, _, _, _, k, _ = jax.lax.while_loop(lambda c: (c[4] < PRODUCTS) & ~c[5], conjugate,
                                              (jnp.zeros_like(x), -g, -g, norm * norm, 0, False))
        slope = g @ p

        def shorter(c):
            t, i, _ = c
            found = f(x + t * p) <= fx + 1e-4 * t * slope
            return jnp.where(found, t, 0.5 * t), i + 1, found
        t, _, _ = jax.lax.while_loop(lambda c: (c[1] < TRIALS) & ~c[2], shorter, (jnp.asarray(1.0), 0, False))
        x = x + t * p
        fx, g = jax.value_and_grad(f)(x)
        return x, fx, g, jnp.sqrt(g @ g), nit + 1, nhev + k
    fx, g = jax.value_and_grad(f)(x)
    return jax.lax.while_loop(lambda s: (s[3] > GTOL) & (s[4] < OUTER), newton, (x, fx, g, jnp.sqrt(g @ g), 0, 0))


def timed(f, args):
    start = time.perf_counter()
    f(*args)
    return 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("problems", nargs="*", default=[])
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    print(f"{'':10}{'unknowns':>9}{'outer':>7}{'products':>10}{'ours':>9}{'JAX':>9}{'Python':>10}{'JAX/ours':>10}"
          f"{'Python/ours':>13}{'difference':>12}")
    for name in options.problems or PROBLEMS:
        make, f, f_jax = PROBLEMS[name]
        x0, args = make()

        def solve(x0, *args, f=f):
            return newton_cg(f, x0, args, maxiter=OUTER, gtol=GTOL, maxcg=PRODUCTS)
        compiled = gs.jit(solve)
        traced = jax.jit(lambda x, *args, f=f_jax: solve_jax(f, x, args))
        here, there = (x0, *args), [jnp.asarray(a) for a in (x0, *args)]
        runs = [(compiled, here), (lambda *args, f=traced: jax.block_until_ready(f(*args)), there), (solve, here)]
        ours, theirs, _ = [run(*given) for run, given in runs]
        times = [[], [], []]
        for _ in range(options.rounds):
            for (run, given), kept in zip(runs, times):
                kept.append(timed(run, given))
        a, b, c = [statistics.median(kept) for kept in times]
        print(f"{name:10}{x0.size:9}{ours.nit:4}/{int(theirs[4]):<2}{ours.nhev:6}/{int(theirs[5]):<3}{a:9.2f}{b:9.2f}"
              f"{c:10.1f}{b / a:10.2f}{c / a:13.1f}{np.abs(ours.x - np.asarray(theirs[0])).max():12.1e}", flush=True)


if __name__ == "__main__":
    main()
