# SPDX-License-Identifier: Apache-2.0
"""Sparse derivatives at about 10,000 unknowns: gs.sparse against our dense derivative and JAX's, on one thread.

    python benchmarks/sparse.py [--quick]

A row for each problem: entries, colours, seconds to find the pattern, milliseconds of a call, and the time of dense
derivatives as a multiple of it.  --quick: 1,000 unknowns.  Calls alternate; the least times of five are compared.

Where the dense matrix does not fit in a minute or in memory, the dense derivative is taken by the first SLICE unknowns
alone: of the same function, by the same call, with the others fixed.  Its time, times the number of such slices, is
printed with ≥: writing the whole matrix, which does not fit in a cache, comes on top.  The entries of the slice are
compared with those of the sparse matrix.

    python benchmarks/sparse.py --orders

The colours of each order of the greedy methods, for these problems and for standard patterns.
"""
import argparse
import functools
import os
import sys
import time
from typing import Any, NamedTuple

from suite import ONE_THREAD

if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in ONE_THREAD.items()):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})                             # XLA counts the cores
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})    # before NumPy is imported

import jax  # noqa: E402  the threads are set before
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

import gradscribe as gs  # noqa: E402

jax.config.update("jax_enable_x64", True)
SLICE = 64                  # unknowns of a slice of a dense derivative


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


class Problem(NamedTuple):
    """A function for NumPy and for JAX, the kinds of its sparse and dense derivatives, and arguments.

    fixed: places of arguments that JAX takes as constants; whole: the dense matrix is computed, not slices of it.
    """
    name: str
    fun: Any
    jax_fun: Any
    sparse: Any
    dense: str
    args: tuple
    fixed: tuple = ()
    whole: bool = True


def problems(n):
    """The problems at about n unknowns."""
    rng = np.random.default_rng(0)
    side = int(round(n ** 0.5))
    u = rng.uniform(size=(side, side))
    yield Problem("heat, loops", heat, heat_jax, gs.sparse.jacfwd, "jacfwd", (u,))
    u = rng.uniform(size=(2, int((n / 2) ** 0.5), int((n / 2) ** 0.5)))
    yield Problem("Brusselator", brusselator, brusselator_jax, gs.sparse.jacfwd, "jacfwd", (u,))
    small = n <= 1000
    cameras, points = max(2, n // 200), n * 3 // 10
    x = rng.normal(size=9 * cameras + 3 * points)
    args = x, rng.integers(0, cameras, n), rng.integers(0, points, n), cameras
    yield Problem("bundle adjustment", bundle, bundle_jax, gs.sparse.jacfwd, "jacfwd", args, (3,), small)
    x = rng.normal(size=n)
    yield Problem("bordered, columns and rows", bordered, bordered_jax, gs.sparse.jacobian, "jacfwd", (x,), (), small)
    buses = n // 2
    first = np.concatenate([np.arange(buses), rng.integers(0, buses, buses // 2)])
    second = np.concatenate([(np.arange(buses) + 1) % buses, rng.integers(0, buses, buses // 2)])
    v = np.concatenate([0.1 * rng.normal(size=buses), 1 + 0.1 * rng.normal(size=buses)])
    args = v, *rng.normal(size=(2, first.size)), first, second
    for partition in ("star", "acyclic"):
        made = functools.partial(gs.sparse.hessian, partition=partition)
        yield Problem(f"power flow, {partition}", power, power_jax, made, "hessian", args, (), small)


def bordered(x, xp=np):
    """Residuals of a chain with two global parameters and two global constraints: two dense columns, two dense rows."""
    a, b, u = x[0], x[1], x[2:]
    inner = u[1:-1] - a * (u[:-2] + u[2:]) + xp.sin(b * u[1:-1])
    return xp.concatenate([xp.stack([xp.sum(u ** 2) - a, xp.sum(u) - b, u[0], u[-1]]), inner])


def bordered_jax(x):
    return bordered(x, jnp)


def rest_fixed(fun, xp, dense):
    """The dense derivative by the first SLICE unknowns: of all results; of a Hessian, these rows of all columns."""
    if dense == "hessian":
        grad = gs.grad(fun) if xp is np else jax.grad(fun)
        return lambda part, x, *rest: grad(xp.concatenate([part, x[SLICE:]]), *rest)
    return lambda part, x, *rest: fun(xp.concatenate([part, x[SLICE:]]), *rest)


def dense_calls(p):
    """(our dense derivative, JAX's, arguments, how many such calls make the matrix)"""
    if p.whole:
        ours = gs.jit(getattr(gs, p.dense)(p.fun), static_argnums=p.fixed or None)
        theirs = jax.jit(getattr(jax, p.dense)(p.jax_fun), static_argnums=p.fixed)
        return ours, theirs, p.args, 1
    fixed = tuple(k + 1 for k in p.fixed)
    ours = gs.jit(gs.jacfwd(rest_fixed(p.fun, np, p.dense)), static_argnums=fixed or None)
    theirs = jax.jit(jax.jacfwd(rest_fixed(p.jax_fun, jnp, p.dense)), static_argnums=fixed)
    return ours, theirs, (p.args[0][:SLICE], *p.args), p.args[0].size / SLICE


def seconds(f, args):
    start = time.perf_counter()
    out = f(*args)
    getattr(out, "block_until_ready", lambda: None)()
    return time.perf_counter() - start


def standard_patterns():
    """{name: pattern} with about 10,000 lines."""
    def band(n, *offsets):
        return sparse.diags_array([np.ones(n - abs(k)) for k in offsets], offsets=offsets).tocsr()
    rng = np.random.default_rng(0)
    one, unit = band(100, -1, 0, 1), sparse.eye_array(100)
    five = sparse.kron(one, unit) + sparse.kron(unit, one)
    blocks = sparse.kron(sparse.eye_array(2000), np.ones((5, 5)))
    yield "five-point stencil", five
    yield "nine-point stencil", sparse.kron(one, one)
    yield "band of 3", band(10_000, -1, 0, 1)
    yield "band of 11", band(10_000, *range(-5, 6))
    arrow = sparse.eye_array(10_000).tolil()
    arrow[:3], arrow[:, :3] = 1.0, 1.0
    yield "arrowhead, 3 wide", arrow
    border = np.ones((10_000, 4))
    yield "blocks of 5, border of 4", sparse.block_array([[blocks, border], [border.T, np.ones((4, 4))]])
    for count in (5, 10):
        at = rng.integers(0, 10_000, (2, count * 10_000))
        yield f"random, {count} in a row", sparse.csr_array((np.ones(at.shape[1]), tuple(at)), (10_000, 10_000))
    skewed = (10_000 * rng.uniform(size=(2, 40_000)) ** 3).astype(int)
    scale_free = sparse.csr_array((np.ones(40_000), tuple(skewed)), (10_000, 10_000))
    yield "random, a few dense lines", scale_free + sparse.eye_array(10_000)


def colours_by_order():
    """Prints the colours of each order, and of the default; dense columns and rows are left out of "column"."""
    from gradscribe.sparse.orders import ORDERS
    found = {p.name: p.sparse(p.fun).pattern(*p.args) for p in problems(10_000) if p.name != "power flow, acyclic"}
    found.update(standard_patterns())
    print("| pattern | partition | " + " | ".join(o.replace("_", " ") for o in ORDERS) + " | default |")
    print("|---" * (len(ORDERS) + 3) + "|")
    for partition in ("column", "both", "star", "acyclic"):
        for name, pattern in found.items():
            pattern = abs(sparse.csr_array(pattern, dtype=float))
            if partition in ("star", "acyclic"):
                if pattern.shape[0] != pattern.shape[1]:
                    continue
                pattern = pattern + pattern.T + sparse.eye_array(pattern.shape[0])
            elif pattern.sum(axis=1).max() > 1000 and partition == "column":
                continue
            counts = [gs.sparse.coloring(pattern, partition, order).count for order in ORDERS]
            default = gs.sparse.coloring(pattern, partition).count
            print(f"| {name} | {partition} | " + " | ".join(map(str, (*counts, default))) + " |", flush=True)


def compared(p):
    """Prints the row of a problem."""
    ours = p.sparse(p.fun)
    dense, jax_dense, args, times_more = dense_calls(p)
    pattern_time = seconds(ours.pattern, p.args)
    made = ours(*p.args)
    width = made.shape[1] if p.whole else SLICE
    for call in (dense, jax_dense):
        reference = np.asarray(call(*args)).reshape(-1, width)
        error = abs(made[:, :width] - reference).max() / max(1.0, np.abs(reference).max())
        assert error < 1e-10, (p.name, error)       # a point close to the plane of a camera loses digits
    del reference
    times: dict = {"sparse": [], "dense": [], "jax": []}
    for _ in range(5):
        times["sparse"].append(seconds(ours, p.args))
        times["dense"].append(seconds(dense, args) * times_more)
        times["jax"].append(seconds(jax_dense, args) * times_more)
    call, ours_dense, theirs = map(min, times.values())
    ratios = " | ".join(f"{'' if p.whole else '≥ '}{dense / call:,.0f} ×" for dense in (ours_dense, theirs))
    print(f"| {p.name} | {made.shape[0]} × {made.shape[1]} | {made.nnz:,} | {ours.coloring(*p.args).count} | "
          f"{pattern_time:.2f} | {call * 1e3:.2f} | {ratios} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 unknowns")
    parser.add_argument("--orders", action="store_true", help="the colours of each order")
    given = parser.parse_args()
    if given.orders:
        colours_by_order()
        return
    print("| problem | shape | entries | colours | pattern, s | call, ms | dense | JAX, dense |\n" + "|---" * 8 + "|")
    for problem in problems(1000 if given.quick else 10_000):
        compared(problem)


if __name__ == "__main__":
    main()
