"""The benchmark problems, small, by kernels run as plain Python, against the gradient that is not compiled."""
import importlib

import numpy as np
import pytest
from device.programs import leaves
from suite import PROBLEMS

import gradscribe as gs
from gradscribe.runtime import device

VARIANTS = [(name, variant) for name in PROBLEMS for variant in importlib.import_module(f"problems.{name}").variants]


CANCELS = {"lse": 1.0}                  # what is subtracted there for the largest entry's derivative is near 1


def cast(value, dtype):
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(cast(v, dtype) for v in value)
    return value


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_value_and_gradient(name, variant, dtype):
    module = importlib.import_module(f"problems.{name}")
    args = cast(module.make_inputs("S"), dtype)
    f = gs.value_and_grad(module.variants[variant], module.argnums)
    expected = leaves(f(*args))
    with device.using("plain"):
        found = leaves(gs.jit(f, target="cuda")(*args))
    assert len(found) == len(expected)
    for a, b in zip(map(np.asarray, found), map(np.asarray, expected)):
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = CANCELS.get(name, np.max(np.abs(b), initial=1e-300))
        assert np.max(np.abs(a - b), initial=0) <= scale * (1e-11 if dtype is np.float64 else 2e-5)
