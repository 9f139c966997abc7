"""gs.map_over on real clusters of this machine (Dask's processes, Ray, joblib's loky), where workers are killed."""
import os
import sys
import time
import warnings

import numpy as np
import pytest
from sweeps import W, X, killer, loss, poison

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError

pytestmark = [pytest.mark.compiled, pytest.mark.slow, pytest.mark.timeout(900)]

class Engines:
    """Engines by name, each made when it is first needed, and made again after `end`."""

    def __init__(self):
        self.made, self.cluster = {}, None

    def __getitem__(self, name):
        if name not in self.made:
            self.made[name] = getattr(self, name)()
        return self.made[name]

    def joblib(self):
        return pytest.importorskip("joblib").Parallel(n_jobs=2)

    def dask(self):
        distributed = pytest.importorskip("distributed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                                    dashboard_address=None, silence_logs=50)
        return distributed.Client(self.cluster)

    def ray(self):
        ray = pytest.importorskip("ray")
        with pytest.raises(KindError, match="Ray has not been initialised"):
            gs.map_over(ray, loss, [1])
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False,
                 runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}})
        return ray

    def end(self, name):
        engine = self.made.pop(name, None)
        if name == "dask" and engine is not None:
            engine.close(timeout=60)
            self.cluster.close(timeout=60)
        if name == "ray" and engine is not None:
            engine.shutdown()


@pytest.fixture(scope="module")
def engines():
    made = Engines()
    yield made
    for name in list(made.made):
        made.end(name)


NAMES = ["joblib", "dask", "ray"]


def fails(x):
    if x == 7:
        raise ValueError("seven")
    return {"y": [x * x]}


@pytest.mark.parametrize("name", NAMES)
def test_what_vmap_gives(engines, name):
    wanted = gs.vmap(gs.grad(loss), in_axes=(None, 0))(W, X)
    local = np.array([2.0, 3.0, 5.0])
    for f in (gs.grad(loss), gs.jit(gs.grad(loss)), lambda w, x: gs.grad(loss)(w, x) + local - local):
        np.testing.assert_allclose(gs.map_over(engines[name], f, W, X, in_axes=(None, 0)), wanted, rtol=1e-12)
    large = np.arange(400_000.0)        # goes its own way
    assert gs.map_over(engines[name], lambda a, k: a[k] + large[0], large, [0, 7, 9], in_axes=(None, 0)) == [0, 7, 9]


@pytest.mark.parametrize("name", NAMES)
def test_order_containers_and_errors(engines, name):
    told = []
    out = gs.map_over(engines[name], fails, [k for k in range(40) if k != 7], chunk=3,
                      progress=lambda *numbers: told.append(numbers))
    assert out == [{"y": [k * k]} for k in range(40) if k != 7] and told[-1] == (39, 39)
    out = gs.map_over(engines[name], fails, list(range(10)), errors="keep")
    assert [type(v) for v in out] == [dict] * 7 + [ValueError] + [dict] * 2
    with pytest.raises(gs.MapError, match="example 7 of 10 failed: ValueError: seven") as caught:
        gs.map_over(engines[name], fails, list(range(10)))
    assert all(v == {"y": [k * k]} for k, v in caught.value.results.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_worker_is_killed(engines, name, tmp_path):
    assert gs.map_over(engines[name], killer, str(tmp_path), list(range(40)), in_axes=(None, 0)) == [
        k * k for k in range(40)]
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_that_kills_its_worker(engines, name):
    """It is found, and all others are computed."""
    out = gs.map_over(engines[name], poison, list(range(12)), retries=1, chunk=1, errors="keep")
    assert [k for k, v in enumerate(out) if isinstance(v, gs.WorkerLost)] == [7]
    assert all(v == k * k for k, v in enumerate(out) if k != 7)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_an_engine_that_is_gone(engines, name):
    """The error has what was done, and another engine goes on from there."""
    def told(done, of):
        if done == 5:
            if name == "ray":
                engines[name].shutdown()
            else:
                engines.cluster.close(timeout=60)

    def slow(x):
        time.sleep(0.05)
        return x * x
    engines[name]
    with pytest.raises(gs.MapError, match="the engine is gone") as caught:
        gs.map_over(engines[name], slow, list(range(60)), chunk=1, progress=told)
    assert len(caught.value.results) >= 5 and all(v == k * k for k, v in caught.value.results.items())
    engines.made.pop(name)
    joblib = pytest.importorskip("joblib")
    assert gs.map_over(joblib.Parallel(n_jobs=2), slow, list(range(60)), resume=caught.value) == [
        k * k for k in range(60)]


def test_names_and_addresses(engines):
    engines["joblib"]
    assert gs.map_over("joblib", lambda x: x + 1, [1, 2]) == [2, 3]
    client = engines["dask"]
    assert gs.map_over(client.scheduler.address, lambda x: x + 1, [1, 2]) == [2, 3]
    with pytest.raises(KindError, match="is no engine"):
        gs.map_over("daks", lambda x: x, [1])


def test_threads_of_joblib():
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert gs.map_over("joblib", lambda x: x + 1, list(range(20)), chunk=2) == list(range(1, 21))
    assert gs.map_over(joblib.Parallel(n_jobs=2, backend="threading"), lambda x: x + 1, [1]) == [2]


def test_a_parallel_that_is_in_use():
    joblib = pytest.importorskip("joblib")
    with joblib.Parallel(n_jobs=2) as parallel:
        for _ in range(2):
            assert parallel(joblib.delayed(abs)(k) for k in range(3)) == [0, 1, 2]
            assert gs.map_over(parallel, lambda x: x + 1, [1, 2, 3]) == [2, 3, 4]


@pytest.mark.parametrize("backend", ["multiprocessing", "sequential"])
def test_a_backend_of_joblib_that_gives_all_at_once(backend):
    joblib = pytest.importorskip("joblib")
    with pytest.raises(KindError, match="gives no result before all are computed"):
        gs.map_over(joblib.Parallel(n_jobs=2, backend=backend), lambda x: x + 1, [1])
