"""Sums of blocks by shuffles, in Numba's simulator: threads exchange by shared memory what those of a warp would."""
import os
import subprocess
import sys

CODE = """
import numpy as np
from numba import cuda
from gradscribe.runtime import on_device

on_device.SHUFFLED.add("simulator")
on_device.SIMULATED = 64                # two warps
of = {n: on_device.function(n, cuda, "simulator") for n in (
    "block_sum", "block_max", "sum_of", "max_of", "prod_of", "row_sum_float64", "row_max_int64", "row_min_float32")}
rng = np.random.default_rng(0)


def blocks(parts, x):
    of["block_sum"](parts, x[cuda.grid(1)])


def largest(parts, x):
    of["block_max"](parts, x[cuda.grid(1)])


def whole(out, parts):
    total = of["sum_of"](parts)
    best, product = of["max_of"](parts), of["prod_of"](parts)
    if cuda.threadIdx.x == 0:
        out[0], out[1], out[2] = total, best, product


def rows(out, x, k):
    i, j = cuda.blockIdx.x, cuda.threadIdx.x
    for _ in range(2):
        out[i, j, 0] = of["row_sum_float64"](x[i, j])
        out[i, j, 1] = of["row_max_int64"](k[i, j])
        out[i, j, 2] = of["row_min_float32"](np.float32(x[i, j]))


for dtype in (np.float64, np.float32, np.int64, np.complex128):
    x = (10 * rng.standard_normal((3, 64))).astype(dtype)
    parts = np.zeros(3, dtype)
    cuda.jit(blocks)[3, 64](parts, x.ravel())
    np.testing.assert_allclose(parts, x.sum(axis=1), rtol=1e-6 if dtype == np.float32 else 1e-13,
                               atol=1e-5 if dtype == np.float32 else 0)
    if dtype != np.complex128:
        cuda.jit(largest)[3, 64](parts, x.ravel())
        np.testing.assert_array_equal(parts, x.max(axis=1))
for n in (1, 2, 31, 32, 33, 63, 64, 65, 200):
    x, out = 1 + 0.1 * rng.standard_normal(n), np.zeros(3)
    cuda.jit(whole)[1, 64](out, x)
    np.testing.assert_allclose(out, (x.sum(), x.max(), x.prod()), rtol=1e-13)
for n in (32, 64):
    x, k, out = rng.standard_normal((2, n)), rng.integers(-2 ** 62, 2 ** 62, (2, n)), np.zeros((2, n, 3), object)
    cuda.jit(rows)[2, n](out, x, k)
    for j in range(n):
        np.testing.assert_allclose(out[:, j, 0].astype(float), x.sum(axis=1), rtol=1e-13)
        np.testing.assert_array_equal(out[:, j, 1].astype(int), k.max(axis=1))
        np.testing.assert_array_equal(out[:, j, 2].astype(np.float32), x.astype(np.float32).min(axis=1))
"""


def test_sums_by_shuffles():
    """Of full blocks and of fewer parts than threads, in the order of halves, for each thread of a row."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", CODE], capture_output=True, text=True, env=environment,
                         timeout=250)
    assert run.returncode == 0, run.stderr[-3000:]
