"""Conjugate gradients on a grid of resistors that is given as a list of edges: the power that the currents lose."""
import numpy as np

SOURCE = "M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems (1952)"
argnums = (0, 1)
static_argnums = (4,)
sizes = {"S": dict(n=12, iterations=15), "M": dict(n=70, iterations=60)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(157 + seed)
    n = s["n"]
    place = np.arange(n * n).reshape(n, n)
    tail = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    head = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    return 0.5 + rng.random(len(tail)), rng.normal(size=n * n), tail, head, s["iterations"]


def flow(conductance, tail, head, v):
    """What flows out of each node, with a small leak to the ground."""
    out = 0.1 * v
    for e in range(len(tail)):
        current = conductance[e] * (v[tail[e]] - v[head[e]])
        out[tail[e]] += current
        out[head[e]] -= current
    return out


def objective_numpy(conductance, source, tail, head, iterations):
    x = np.zeros_like(source)
    r = source.copy()
    p = r.copy()
    rr = r @ r
    for _ in range(iterations):
        q = flow(conductance, tail, head, p)
        alpha = rr / (p @ q)
        x += alpha * p
        r -= alpha * q
        before, rr = rr, r @ r
        p = r + rr / before * p
    return source @ x


def objective_vec(conductance, source, tail, head, iterations):
    x = np.zeros_like(source)
    r = source.copy()
    p = r.copy()
    rr = r @ r
    for _ in range(iterations):
        current = conductance * (p[tail] - p[head])
        q = 0.1 * p
        np.add.at(q, tail, current)
        np.subtract.at(q, head, current)
        alpha = rr / (p @ q)
        x += alpha * p
        r -= alpha * q
        before, rr = rr, r @ r
        p = r + rr / before * p
    return source @ x


variants = {"numpy": objective_numpy, "vec": objective_vec}


def _solve(conductance, source, tail, head, iterations, remat):
    import jax
    import jax.numpy as jnp

    def step(state, _):
        x, r, p, rr = state
        current = conductance * (p[tail] - p[head])
        q = (0.1 * p).at[tail].add(current).at[head].add(-current)
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        before, rr = rr, r @ r
        return (x, r, r + rr / before * p, rr), None

    start = jnp.zeros_like(source), source, source, source @ source
    (x, *_), _ = jax.lax.scan(jax.checkpoint(step) if remat else step, start, None, length=iterations)
    return source @ x


def objective_jax(conductance, source, tail, head, iterations):
    return _solve(conductance, source, tail, head, iterations, False)


def objective_jax_remat(conductance, source, tail, head, iterations):
    return _solve(conductance, source, tail, head, iterations, True)
