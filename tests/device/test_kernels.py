"""Adjoints of users' kernels against differences: (J u) w is u (J* w)."""
import numpy as np
import pytest
from device.kernels import SHAPES, arguments, made

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


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("backend", ["plain", pytest.param("twin", marks=pytest.mark.slow)])
def test_against_differences(name, backend, kernels):
    kernel = kernels(backend)[name]
    args, blocks, threads = arguments(name)
    assert disagreement(kernel, gs.grad(kernel), args, blocks, threads) < 2e-8
