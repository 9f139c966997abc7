"""gs.pmap on four threads against jax.pmap on four simulated devices: the programs of pmap_programs.py.

JAX is told how many devices it has before it is imported: a process of its own computes all its values.
"""
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import machine

pytest.importorskip("jax")

HERE = Path(__file__).parent
sys.path.append(str(HERE))

import pmap_programs  # noqa: E402  beside this file, where JAX's process finds it too
from pmap_programs import CASES, PROGRAMS, WAYS  # noqa: E402  as the line above

pytestmark = pytest.mark.compiled

COUNTS = ("numbers_of_devices", "truth_values")     # int32 in JAX; NumPy's own integers here, as what np.sum counts
SINGLE = [name for name in PROGRAMS if name.startswith("single")]


@pytest.fixture(autouse=True)
def devices(monkeypatch):
    """Four, whatever the machine has."""
    monkeypatch.setattr(machine, "cores", lambda: 4)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """What JAX gives, by program and way; computed once for all workers of a run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = tmp_path_factory.getbasetemp().parent if run else tmp_path_factory.mktemp("jax")
    found, begun = folder / "pmap.pickle", folder / "pmap.begun"
    try:
        begun.touch(exist_ok=False)
    except FileExistsError:
        limit = time.monotonic() + 1200
        while not found.exists() and time.monotonic() < limit:
            time.sleep(0.2)
    else:
        beside = folder / "pmap.beside"
        done = subprocess.run([sys.executable, str(HERE / "pmap_jax.py"), str(beside)], capture_output=True, text=True,
                              timeout=1200)
        if done.returncode:             # told to all workers
            beside.write_bytes(pickle.dumps(done.stderr))
        beside.rename(found)
    values = pickle.loads(found.read_bytes())
    assert isinstance(values, dict), values
    return values


def same(got, want, tolerance):
    """Values, shape and dtype of all leaves, and the containers."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and set(got) == set(want)
        for key in want:
            same(got[key], want[key], tolerance)
    elif isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, tolerance)
    else:
        assert np.shape(got) == np.shape(want)
        assert np.asarray(got).dtype == want.dtype
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_how_many():
    assert len(PROGRAMS) >= 70
    assert pmap_programs.side is gs


@pytest.mark.timeout(1500)              # the first waits for JAX
@pytest.mark.parametrize("name, way", CASES, ids=[f"{name}-{way}" for name, way in CASES])
def test_as_jax(name, way, theirs):
    want = theirs[name, way]
    if name in COUNTS:
        want = tuple(w.astype(np.int64) if w.dtype == np.int32 else w for w in want)
    same(WAYS[way](PROGRAMS[name]), want, 3e-6 if name in SINGLE else 1e-12)


@pytest.mark.parametrize("count", [2, 4])
def test_a_replicated_loss_counts_once_for_each_device(count):
    """The gradient inside of a sum over all devices is, as in JAX, as many times the gradient of the sum."""
    x = np.arange(1.0, 1.0 + 3 * count).reshape(count, 3)
    replicated = gs.pmap(gs.grad(lambda x: gs.lax.psum(np.sum(x ** 3), "i")), axis_name="i")
    np.testing.assert_array_equal(replicated(x), count * 3 * x ** 2)
    mean = gs.pmap(gs.grad(lambda x: gs.lax.pmean(np.sum(x ** 3), "i")), axis_name="i")
    np.testing.assert_allclose(mean(x), 3 * x ** 2, rtol=1e-15)
    np.testing.assert_array_equal(gs.pmap(gs.grad(lambda x: np.sum(x ** 3)), axis_name="i")(x), 3 * x ** 2)
