# SPDX-License-Identifier: Apache-2.0
"""gs.map_over beside what engines do themselves with the same function.

    python benchmarks/map_over.py [pool] [joblib] [dask] [ray] [--rounds 7]

The function is g = gs.jit(gs.grad(f)) of a module, on two worker processes that have one thread each.  "Plain" gives g
to `executor.map` in 16 chunks, to `joblib.Parallel()(delayed(g)(x) ...)`, to `client.map` or to a remote function of
Ray; "wrapped" gives them a function of the module that calls g, so that each process keeps g's versions.  An example:
the median of rounds, in turns, divided by the number of examples, after a round that is not counted.  Over: without the
function's own time, halved for two workers.  First: of new workers, until there are two results, with machine code on
the disk.
"""
import argparse
import importlib
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import gradscribe as gs

os.environ["OMP_NUM_THREADS"] = "1"
MODULE = """
import time
import numpy as np
import gradscribe as gs

def loss(w):
    for _ in range({passes}):
        w = w + 0.1 * np.sin(w)
    return np.sum(w ** 2)

g = gs.jit(gs.grad(loss))

def wrapped(w):
    return g(w)
"""
CASES = {"small": (2, 2000), "large": (400, 200)}       # passes of the loop, examples
FEW = 200                               # examples of the plain way, which may transform the function for each of them


class Pool:
    def __init__(self):
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        self.engine = ProcessPoolExecutor(2, get_context("spawn"))
        list(self.engine.map(abs, range(2)))

    def plain(self, g, xs):
        return list(self.engine.map(g, xs, chunksize=max(len(xs) // 16, 1)))

    def end(self):
        self.engine.shutdown()


class Joblib:
    def __init__(self):
        import joblib
        self.delayed, self.engine = joblib.delayed, joblib.Parallel(n_jobs=2)
        self.engine(joblib.delayed(abs)(k) for k in range(2))

    def plain(self, g, xs):
        return self.engine(self.delayed(g)(x) for x in xs)

    def end(self):
        from joblib.externals import loky
        loky.get_reusable_executor().shutdown(kill_workers=True)


class Dask:
    def __init__(self):
        from distributed import Client, LocalCluster
        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        self.engine = Client(self.cluster)

    def plain(self, g, xs):
        return self.engine.gather(self.engine.map(g, xs, pure=False))

    def end(self):
        self.engine.close()
        self.cluster.close()


class Ray:
    def __init__(self):
        import ray
        paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False, runtime_env=paths)
        self.engine = ray

    def plain(self, g, xs):
        remote = self.engine.remote(lambda x: g(x))
        return self.engine.get([remote.remote(x) for x in xs])

    def end(self):
        self.engine.shutdown()


ENGINES = {"pool": Pool, "joblib": Joblib, "dask": Dask, "ray": Ray}


def timed(call, *args):
    start = time.perf_counter()
    out = call(*args)
    return time.perf_counter() - start, out


def ways(make, module):
    """{way: (call of an engine and examples)}"""
    return {"gs.map_over": lambda there, xs: gs.map_over(there.engine, module.g, xs, progress=False),
            "plain": lambda there, xs: there.plain(module.g, xs[:FEW]),
            "wrapped": lambda there, xs: there.plain(module.wrapped, xs)}


def first(make, way, xs):
    """Seconds of the first results of new workers."""
    there = make()
    try:
        return timed(way, there, xs)[0]
    finally:
        there.end()


def measure(name, make, modules, rounds):
    rng = np.random.default_rng(0)
    two = list(rng.normal(size=(2, 20)))
    firsts = {way: first(make, call, two) for way, call in ways(make, modules["small"]).items()}
    there = make()
    for case, (_, count) in CASES.items():
        g, xs = modules[case].g, list(rng.normal(size=(count, 20)))
        own = statistics.median(timed(list, map(g, xs))[0] for _ in range(3)) / count
        times: dict = {way: [] for way in ways(make, modules[case])}
        for k in range(rounds + 1):
            for way, call in ways(make, modules[case]).items():
                seconds, out = timed(call, there, xs)
                assert np.array_equal(out[-1], g(xs[len(out) - 1]))
                if k:
                    times[way].append(seconds / len(out))
        for way, found in times.items():
            per = statistics.median(found)
            print(f"{name:7} {case:6} {way:12} {1e6 * per:8.0f} µs an example, {1e6 * own:6.0f} µs in the function, "
                  f"{1e6 * (per - own / 2):8.0f} µs over, first {firsts[way]:.2f} s", flush=True)
    there.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        modules = {}
        for case, (passes, _) in CASES.items():
            Path(folder, f"mapped_{case}.py").write_text(MODULE.format(passes=passes))
            modules[case] = importlib.import_module(f"mapped_{case}")
            modules[case].g(np.ones(20))
        for name in options.engines or ENGINES:
            measure(name, ENGINES[name], modules, options.rounds)


if __name__ == "__main__":
    main()
