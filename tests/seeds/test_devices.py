# SPDX-License-Identifier: Apache-2.0
"""The rows of the checklist that need several devices: threads here, and processes of an MPI run."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax, machine

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

import spectral  # noqa: E402  beside the others, in examples

pytestmark = pytest.mark.compiled

EXAMPLE = Path(spectral.__file__)


@pytest.fixture(params=[1, 2, 4])
def devices(request, monkeypatch):
    """So many devices, whatever the machine has."""
    monkeypatch.setattr(machine, "cores", lambda: request.param)
    return request.param


def mpiexec(count, *arguments, folder, **environment):
    """What a script prints as so many processes."""
    pytest.importorskip("mpi4py")
    beside = Path(sys.executable).parent / "mpiexec"
    command = [str(beside) if beside.exists() else "mpiexec", "-n", str(count), sys.executable, "-m", "gradscribe.run"]
    done = subprocess.run([*command, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "GRADSCRIBE_DEADLINE": "120", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


def test_s19_one_batch_on_many_devices(devices):
    """Each device has a part of the batch; the mean of the gradients is the gradient of the batch."""
    assert gs.device_count() == gs.local_device_count() == len(gs.devices()) == devices
    rng = np.random.default_rng(0)
    w, x, y = rng.standard_normal(5), rng.standard_normal((8, 5)), rng.standard_normal(8)

    def part(w, x, y):
        return lax.pmean(gs.value_and_grad(loss)(w, x, y), "batch")
    value, gradient = gs.pmap(part, "batch", in_axes=(None, 0, 0), out_axes=None)(
        w, x.reshape(devices, -1, 5), y.reshape(devices, -1))
    assert value == pytest.approx(loss(w, x, y), rel=1e-14)
    np.testing.assert_allclose(gradient, gs.grad(loss)(w, x, y), rtol=1e-13)


def test_s34_pmap_is_vmap_side_by_side(devices):
    x = np.linspace(0.0, 1.0, 3 * devices).reshape(devices, 3)

    def f(scale, x):
        return scale * x / lax.pmean(x, "i"), lax.psum(x, "i")
    found = gs.pmap(f, "i", in_axes=(None, 0), out_axes=(0, None))(2.0, x + 1)
    expected = gs.vmap(f, in_axes=(None, 0), out_axes=(0, None), axis_name="i")(2.0, x + 1)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_s34_nested_names(devices):
    x = np.linspace(0.0, 1.0, 6 * devices).reshape(devices, 3, 2)

    def of_one(x):
        return x / lax.psum(x, "inner") + lax.psum(x, ("inner", "outer"))
    found = gs.pmap(gs.pmap(of_one, "inner"), "outer")(x + 1)
    np.testing.assert_allclose(found, (x + 1) / (x + 1).sum(1, keepdims=True) + (x + 1).sum((0, 1)), rtol=1e-14)


def test_s34_the_document_s_training_on_threads(devices):
    """The program trains to the same losses on one, two and four devices."""
    losses, params = spectral.train(steps=40, say=lambda text: None)
    whole, expected = TRAINED.setdefault("one", (losses, params))
    np.testing.assert_allclose(losses, whole, rtol=1e-11)
    for a, b in zip(gs.tree_util.tree_leaves(params), gs.tree_util.tree_leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert losses[0] > 1.2 and np.mean(losses[-5:]) < 0.6 * losses[0]


TRAINED: dict = {}


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_s34_the_document_s_training_on_processes(count, tmp_path):
    losses, params = TRAINED.get("one") or spectral.train(steps=40, say=lambda text: None)
    out = mpiexec(count, EXAMPLE, "--steps", 40, "--every", 10, "--folder", "states", "--save", "end.npz",
                  folder=tmp_path)
    assert f"training on {count} processes" in out
    end = np.load(tmp_path / "end.npz")
    np.testing.assert_allclose(end["losses"], losses, rtol=1e-11)
    for k, leaf in enumerate(gs.tree_util.tree_leaves(params)):
        np.testing.assert_allclose(end[f"arr_{k}"], leaf, rtol=1e-9, atol=1e-12)
    assert sorted(p.name for p in (tmp_path / "states").iterdir()) == ["step_000000030.npz", "step_000000040.npz"]


START = """
import gradscribe as gs
import numpy as np
assert gs.distributed.is_initialized()
gs.distributed.initialize(deadline=30)
assert (gs.process_count(), gs.device_count(), gs.local_device_count()) == (2, 2, 1)
x = np.arange(6.0).reshape(2, 3)
total = gs.pmap(lambda x: gs.lax.psum(x, "i"), "i")(x)
assert total.tolist() == [[3.0, 5.0, 7.0]] * 2
own = gs.pmap(lambda x: gs.lax.psum(x, "i"), "i")(x[gs.process_index():][:1])
assert own.tolist() == [[3.0, 5.0, 7.0]]
DERIVATIVES
open(f"process_{gs.process_index()}", "w").close()
"""
DERIVATIVES = """
f = lambda x: gs.lax.psum(x ** 2, "i") * gs.lax.ppermute(x, "i", [(0, 1), (1, 0)])
by_ranks = gs.pmap(lambda x, dx: gs.jvp(f, (x,), (dx,))[1], "i")(x, x + 1)
by_examples = gs.vmap(lambda x, dx: gs.jvp(f, (x,), (dx,))[1], axis_name="i")(x, x + 1)
np.testing.assert_allclose(by_ranks, by_examples, rtol=1e-15)
g = gs.grad(lambda x: np.sum(f(x)))
np.testing.assert_allclose(gs.pmap(g, "i")(x), gs.vmap(g, axis_name="i")(x), rtol=1e-15)
"""


@pytest.mark.slow
def test_s36_start_of_a_run(tmp_path):
    """Processes are joined, know their number, and add up what they have."""
    (tmp_path / "start.py").write_text(START.replace("DERIVATIVES", ""))
    mpiexec(2, "start.py", folder=tmp_path)
    assert sorted(p.name for p in tmp_path.glob("process_*")) == ["process_0", "process_1"]


@pytest.mark.slow
def test_s39_derivatives_through_messages(tmp_path):
    """Between processes, in both modes."""
    (tmp_path / "start.py").write_text(START.replace("DERIVATIVES", DERIVATIVES))
    mpiexec(2, "start.py", folder=tmp_path)
    assert (tmp_path / "process_1").exists()


@pytest.mark.parametrize("f", [
    lambda x: lax.psum(np.sin(x), "i") * x, lambda x: lax.pmean(x * x, "i") - x,
    lambda x: np.sum(lax.all_gather(x, "i"), 0) * x,
    lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]) * np.exp(x),
    lambda x: lax.psum_scatter(np.outer(np.arange(2.0), x), "i") * x,
    lambda x: lax.all_to_all(np.outer(np.arange(1.0, 3.0), x), "i", 0, 0)[0] ** 2],
    ids=["psum", "pmean", "all_gather", "ppermute", "psum_scatter", "all_to_all"])
def test_s39_derivatives_between_threads(f, monkeypatch):
    """The sum over devices of what they give: its gradient, by differences, and its tangents."""
    monkeypatch.setattr(machine, "cores", lambda: 2)
    x, direction = np.array([[0.3, 0.7, 1.1], [0.2, 0.5, 0.9]]), np.array([[1.0, -2.0, 0.5], [0.3, 0.2, 0.1]])
    mapped = gs.pmap(f, "i")

    def total(x):
        return np.sum(mapped(x))
    h = 1e-6
    expected = np.array([(total(x + h * e.reshape(2, 3)) - total(x - h * e.reshape(2, 3))) / (2 * h)
                         for e in np.eye(6)]).reshape(2, 3)
    inside = gs.pmap(gs.grad(lambda x: np.sum(f(x))), "i")(x)
    np.testing.assert_allclose(inside, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.grad(total)(x), expected, rtol=1e-7, atol=1e-8)
    tangents = gs.pmap(lambda x, dx: gs.jvp(f, (x,), (dx,))[1], "i")(x, direction)
    assert np.sum(tangents) == pytest.approx(np.sum(expected * direction), rel=1e-7)
