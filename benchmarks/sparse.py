# SPDX-License-Identifier: Apache-2.0
"""Sparse derivatives at about 10,000 unknowns: gs.sparse against our dense derivative and JAX's, on one thread.

    python benchmarks/sparse.py [--quick]

A row for each problem: entries, colours, seconds to find the pattern, milliseconds of a call, and the time of dense
derivatives as a multiple of it.  --quick: 1,000 unknowns.  Calls alternate; the medians of five are compared.
"""
import argparse
import os
import statistics
import sys
import time

from suite import ONE_THREAD

if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in ONE_THREAD.items()):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})                             # XLA counts the cores
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})    # before NumPy is imported

import jax  # noqa: E402  the threads are set before
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402

jax.config.update("jax_enable_x64", True)


def heat(u):
    out = np.zeros(u.shape)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j] + u[i, j] ** 2
    return out


def heat_jax(u):
    inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1] + u[1:-1, 1:-1] ** 2
    return jnp.zeros(u.shape).at[1:-1, 1:-1].set(inner)


def laplacian(w, xp=np):
    return xp.roll(w, 1, 0) + xp.roll(w, -1, 0) + xp.roll(w, 1, 1) + xp.roll(w, -1, 1) - 4 * w


def brusselator(u):
    x, y = u[0], u[1]
    return np.stack([1.0 + x * x * y - 4.4 * x + 10.0 * laplacian(x), 3.4 * x - x * x * y + 10.0 * laplacian(y)])


def brusselator_jax(u):
    x, y = u[0], u[1]
    return jnp.stack([1.0 + x * x * y - 4.4 * x + 10.0 * laplacian(x, jnp),
                      3.4 * x - x * x * y + 10.0 * laplacian(y, jnp)])


def project(cameras, points, xp=np):
    """Points in pictures, as in Bundle Adjustment in the Large: rotation, translation, focal length, distortion."""
    angle = xp.sqrt(xp.sum(cameras[:, :3] ** 2, axis=1, keepdims=True) + 1e-12)
    axis = cameras[:, :3] / angle
    along = xp.sum(axis * points, axis=1, keepdims=True)
    seen = points * xp.cos(angle) + xp.cross(axis, points) * xp.sin(angle) + axis * along * (1 - xp.cos(angle))
    seen = seen + cameras[:, 3:6]
    flat = -seen[:, :2] / seen[:, 2:3]
    radius = xp.sum(flat ** 2, axis=1)
    return flat * (cameras[:, 6] * (1 + radius * (cameras[:, 7] + cameras[:, 8] * radius)))[:, None]


def bundle(x, camera, point, cameras):
    return project(x[:9 * cameras].reshape(cameras, 9)[camera], x[9 * cameras:].reshape(-1, 3)[point]).ravel()


def bundle_jax(x, camera, point, cameras):
    return project(x[:9 * cameras].reshape(cameras, 9)[camera], x[9 * cameras:].reshape(-1, 3)[point], jnp).ravel()


def power(v, conductance, susceptance, first, second, xp=np):
    """Squares of the flows in a network's lines, as in the objective and penalties of an optimal power flow."""
    angle, size = v[:v.shape[0] // 2], v[v.shape[0] // 2:]
    across, both = angle[first] - angle[second], size[first] * size[second]
    active = both * (conductance * xp.cos(across) + susceptance * xp.sin(across))
    reactive = both * (conductance * xp.sin(across) - susceptance * xp.cos(across))
    return xp.sum(active ** 2) + xp.sum(reactive ** 2) + xp.sum(size ** 2)


def power_jax(*args):
    return power(*args, jnp)


def problems(n):
    """(name, function of gs.sparse, dense function, JAX's, arguments)"""
    rng = np.random.default_rng(0)
    side = int(round(n ** 0.5))
    u = rng.uniform(size=(side, side))
    yield "heat, loops", gs.sparse.jacfwd(heat), gs.jit(gs.jacfwd(heat)), jax.jit(jax.jacfwd(heat_jax)), (u,)
    u = rng.uniform(size=(2, int((n / 2) ** 0.5), int((n / 2) ** 0.5)))
    yield ("Brusselator", gs.sparse.jacfwd(brusselator), gs.jit(gs.jacfwd(brusselator)),
           jax.jit(jax.jacfwd(brusselator_jax)), (u,))
    cameras, points = max(2, n // 200), n * 3 // 10
    x = rng.normal(size=9 * cameras + 3 * points)
    args = x, rng.integers(0, cameras, n), rng.integers(0, points, n), cameras
    yield ("bundle adjustment", gs.sparse.jacfwd(bundle), gs.jit(gs.jacfwd(bundle), static_argnums=3),
           jax.jit(jax.jacfwd(bundle_jax), static_argnums=3), args)
    buses = n // 2
    first = np.concatenate([np.arange(buses), rng.integers(0, buses, buses // 2)])
    second = np.concatenate([(np.arange(buses) + 1) % buses, rng.integers(0, buses, buses // 2)])
    v = np.concatenate([0.1 * rng.normal(size=buses), 1 + 0.1 * rng.normal(size=buses)])
    args = v, *rng.normal(size=(2, first.size)), first, second
    for partition in ("star", "acyclic"):
        yield (f"power flow, {partition}", gs.sparse.hessian(power, partition=partition), gs.jit(gs.hessian(power)),
               jax.jit(jax.hessian(power_jax)), args)


def seconds(f, args):
    start = time.perf_counter()
    out = f(*args)
    getattr(out, "block_until_ready", lambda: None)()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 unknowns")
    n = 1000 if parser.parse_args().quick else 10_000
    print("| problem | shape | entries | colours | pattern, s | call, ms | dense | JAX, dense |\n" + "|---" * 8 + "|")
    for name, ours, dense, jax_dense, args in problems(n):
        pattern_time = seconds(ours.pattern, args)
        made = ours(*args)
        reference = np.asarray(jax_dense(*args)).reshape(made.shape)
        error = abs(made - reference).max() / max(1.0, np.abs(reference).max())
        assert error < 1e-12, (name, error)
        del reference
        dense(*args)
        times: dict = {"sparse": [], "dense": [], "jax": []}
        for _ in range(5):
            times["sparse"].append(min(seconds(ours, args) for _ in range(5)))
            times["dense"].append(seconds(dense, args))
            times["jax"].append(seconds(jax_dense, args))
        call, ours_dense, theirs = (statistics.median(t) for t in times.values())
        print(f"| {name} | {made.shape[0]} × {made.shape[1]} | {made.nnz:,} | {ours.coloring(*args).count} | "
              f"{pattern_time:.2f} | {call * 1e3:.2f} | {ours_dense / call:,.0f} × | {theirs / call:,.0f} × |")


if __name__ == "__main__":
    main()
