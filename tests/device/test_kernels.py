"""Adjoints of users' kernels against differences: (J u) w is u (J* w)."""
import math
import subprocess
import sys

import numpy as np
import pytest
from device.kernels import MORE, SHAPES, arguments, made

import gradscribe as gs
from gradscribe.runtime import device as backends

KERNELS = {}


@pytest.fixture
def kernels():
    def of(backend):
        if backend not in KERNELS:
            with backends.using(backend):
                KERNELS[backend] = made(backends.cuda)
        return KERNELS[backend]
    return of


def floats(args):
    return [k for k, a in enumerate(args) if np.asarray(a).dtype.kind == "f"]


def moved(args, direction, step):
    out = list(args)
    for k, u in direction.items():
        out[k] = args[k] + step * u if np.ndim(args[k]) else float(args[k] + step * u)
    return [a.copy() if isinstance(a, np.ndarray) else a for a in out]


def disagreement(kernel, adjoint, args, blocks, threads, seed=1):
    """How far the adjoint is from differences, by what is compared."""
    rng = np.random.default_rng(seed)
    places = floats(args)
    u = {k: rng.standard_normal(np.shape(args[k])) for k in places}
    ends = []
    for step in (1e-6, -1e-6):
        given = moved(args, u, step)
        kernel[blocks, threads](*given)
        ends.append(given)
    arrays = [k for k in places if np.ndim(args[k])]
    weights = {k: rng.standard_normal(np.shape(args[k])) for k in arrays}
    forward = sum(np.sum(weights[k] * (ends[0][k] - ends[1][k])) / 2e-6 for k in arrays)
    bars = [weights[k].copy() if k in weights else np.zeros(1) for k in places]
    before = [np.copy(a) for a in args]
    adjoint[blocks, threads](*args, *bars)
    assert all(np.array_equal(a, b) for a, b in zip(before, args)), "the adjoint writes into the kernel's arguments"
    backward = sum(np.sum(u[k] * b.reshape(np.shape(args[k]))) for k, b in zip(places, bars))
    return abs(forward - backward) / max(1.0, abs(forward))


@pytest.mark.parametrize("name", [*SHAPES, *MORE])
@pytest.mark.parametrize("backend", ["plain", pytest.param("twin", marks=pytest.mark.slow)])
def test_against_differences(name, backend, kernels):
    kernel = kernels(backend)[name]
    args, blocks, threads = arguments(name)
    assert disagreement(kernel, gs.grad(kernel), args, blocks, threads) < 2e-8


@pytest.mark.parametrize("name", [*SHAPES, *MORE])
def test_in_single_precision(name, kernels):
    """Against double precision; the text has no number in double."""
    found = []
    for dtype in (np.float64, np.float32):
        args, blocks, threads = arguments(name, dtype)
        bars = [np.linspace(0.1, 1, np.size(args[k]), dtype=dtype).reshape(np.shape(args[k]) or 1)
                for k in floats(args)]
        adjoint = gs.grad(kernels("plain")[name])
        adjoint[blocks, threads](*args, *bars)
        found.append(bars)
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=3e-5, atol=3e-6 * np.max(np.abs(a)))
    own = name in ("norms", "while_of_vectors", "exchanged", "filled")      # the arrays in their memory are of doubles
    assert "float64" not in adjoint.source or own


@pytest.mark.slow
def test_in_the_simulator():
    code = ("import numpy as np\nfrom numba import cuda\nimport gradscribe as gs\n"
            "from device.kernels import SHAPES, made\nfrom device.test_kernels import arguments, disagreement\n"
            "for name, kernel in made(cuda).items():\n"
            "    args, blocks, threads = arguments(name)\n"
            "    assert disagreement(kernel, gs.grad(kernel), args, blocks, threads) < 2e-8, name\n")
    environment = {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": "tests:benchmarks", "PATH": "", "GRADSCRIBE_CACHE": "off"}
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=280,
                         env=environment)
    assert run.returncode == 0, run.stderr[-3000:]


def test_assembled(kernels):
    """For sm_90: nothing spilled; where all is in single precision, doubles only where libdevice reduces angles."""
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cuda.bindings.nvjitlink")
    from gradscribe.runtime.assembled import reports
    reports.clear()
    for name in SHAPES:
        kernel = kernels("ptx")[name]
        for dtype in (np.float64, np.float32):
            args, blocks, threads = arguments(name, dtype)
            bars = [np.zeros(np.shape(args[k]) or 1, dtype) for k in floats(args)]
            gs.grad(kernel)[blocks, threads](*args, *bars)
    assert len(reports) == 2 * (len(SHAPES) + sum(n.startswith("while_") for n in SHAPES))
    assert not [r for r in reports if r.spills]
    allowed = {"sums_of_sines", "iterated", "nested", "norms", "while_large", "while_that_breaks", "while_of_vectors"}
    double = {r.name.removesuffix("_sizes").removesuffix("_adjoint") for r in reports if r.single and r.doubles}
    assert double <= allowed
    assert {r.name for r in reports if not r.atomics} == {f"{n}_adjoint" for n in (
        "histogram", "strides_by_names", "norms", "iterated", "nested", "branches", "counts", "long_memory",
        "ends_early", "while_large", "while_in_strides", "while_in_whiles", "while_that_breaks",
        "entries_in_order")} | {
        f"{n}_adjoint_sizes" for n in SHAPES if n.startswith("while_")}


def test_argnums(kernels):
    """Adjoints of what was asked for, and of what the kernel writes."""
    kernel, (args, blocks, threads) = kernels("plain")["axpy"], arguments("axpy")
    bars = [np.zeros(7), np.ones(7)]
    gs.grad(kernel, 2)[blocks, threads](*args, *bars)
    assert np.array_equal(bars[0], np.ones(7))
    adjoint = gs.grad(kernel, argnums=(0, -1))
    bars = [np.zeros(1), np.ones(7)]
    adjoint[blocks, threads](*args, *bars)
    np.testing.assert_allclose(bars[0], [np.sum(args[1])], rtol=1e-15)
    assert "dx" not in adjoint.source


@pytest.mark.golden
@pytest.mark.parametrize("name", ["axpy", "strides", "product", "histogram", "norms", "iterated", "pairs"])
def test_text(name, golden, kernels):
    adjoint = gs.grad(kernels("plain")[name])
    args, blocks, threads = arguments(name)
    adjoint[blocks, threads](*args, *[np.zeros(np.shape(args[k]) or 1) for k in floats(args)])
    golden(f"adjoint_of_{name}.py", adjoint.source)


def test_names_of_functions():
    """Names of the user's that are those of functions a kernel calls."""
    with backends.using("plain"):
        global cuda
        cuda = backends.cuda

        @cuda.jit
        def kernel(exp, cos, out):
            sin = cuda.grid(1)
            sqrt = math.sqrt(exp[sin])
            out[sin] = math.exp(sqrt) * math.sin(exp[sin]) * cos

        x, bars = np.linspace(1, 2, 4), [np.zeros(4), np.zeros(1), np.ones(4)]
        gs.grad(kernel)[1, 4](x, 1.5, np.zeros(4), *bars)
    root = np.sqrt(x)
    np.testing.assert_allclose(bars[0], 1.5 * np.exp(root) * (np.cos(x) + np.sin(x) / (2 * root)), rtol=1e-13)
    np.testing.assert_allclose(bars[1], np.sum(np.exp(root) * np.sin(x)), rtol=1e-13)
