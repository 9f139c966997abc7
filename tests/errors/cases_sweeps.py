# SPDX-License-Identifier: Apache-2.0
"""gs.map_over: engines, examples and functions that do not fit.  Nothing here is given to a worker."""
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from unittest import mock

import numpy as np
from errors.cases import refused

import gradscribe as gs
from gradscribe import KindError
from gradscribe.map_over import Partial

POOL = ThreadPoolExecutor(1)            # its thread would start with the first task
X = np.array([[0.5, 1.5], [2.5, 3.5]])
LOCK, RNG = threading.Lock(), np.random.default_rng(0)


class Track:
    """Heights, registered as a container."""

    def __init__(self, heights):
        self.heights = heights


gs.tree_util.register_pytree_node(Track, lambda t: ((t.heights,), None), lambda _, heights: Track(*heights))


class Parallel:
    """A joblib.Parallel with a backend that gives all results at once."""

    class MultiprocessingBackend:
        supports_return_generator = False

    def __init__(self):
        self._backend = self.MultiprocessingBackend()

    def _effective_n_jobs(self):
        return 2


class Client:
    """A dask.distributed.Client for coroutines."""
    asynchronous = True


def package(name, **contents):
    """A package that this test makes up, as long as it is imported in `with`."""
    module = ModuleType(name)
    vars(module).update(contents)
    return mock.patch.dict(sys.modules, {name: module})


def square(x):
    return x * x


# engines

@refused(KindError)
def engine_by_an_unknown_name():
    gs.map_over("slurm", square, X)


@refused(KindError)
def engine_that_is_a_number():
    gs.map_over(4, square, X)


@refused(KindError)
def engine_that_is_not_installed():
    with mock.patch.dict(sys.modules, ray=None):
        gs.map_over("ray", square, X)


@refused(KindError)
def ray_before_it_is_initialised():
    with package("ray", is_initialized=lambda: False):
        gs.map_over("ray", square, X)


@refused(KindError)
def dask_client_for_coroutines():
    with package("distributed", Client=Client):
        gs.map_over(Client(), square, X)


@refused(KindError)
def joblib_backend_with_all_results_at_once():
    with package("joblib", Parallel=Parallel):
        gs.map_over(Parallel(), square, X)


# examples

@refused(KindError)
def map_over_with_other_errors():
    gs.map_over(POOL, square, X, errors="ignore")


@refused(KindError)
def map_over_with_a_negative_number_of_retries():
    gs.map_over(POOL, square, X, retries=-1)


@refused(KindError)
def map_over_no_arguments():
    gs.map_over(POOL, square)


@refused(KindError)
def map_over_with_axes_for_other_arguments():
    gs.map_over(POOL, square, X, in_axes=(0, None))


@refused(KindError)
def map_over_the_second_axis():
    gs.map_over(POOL, square, X, in_axes=1)


@refused(KindError)
def map_over_shared_arguments_alone():
    gs.map_over(POOL, square, X, in_axes=None)


@refused(KindError)
def map_over_a_masked_array():
    gs.map_over(POOL, np.sin, np.ma.masked_array(X, mask=X > 2))


@refused(KindError)
def map_over_a_text():
    gs.map_over(POOL, square, "abc")


@refused(KindError)
def map_over_a_number():
    gs.map_over(POOL, np.add, X, 2.0)


@refused(KindError)
def map_over_a_part_without_axes():
    gs.map_over(POOL, lambda p: p["x"] * p["scale"], {"x": X, "scale": 2.0})


@refused(KindError)
def map_over_an_empty_array():
    gs.map_over(POOL, square, X[:0])


@refused(KindError)
def map_over_different_numbers_of_examples():
    gs.map_over(POOL, np.add, X, [1.0, 2.0, 3.0])


@refused(KindError)
def map_over_locks():
    gs.map_over(POOL, lambda lock: lock.locked(), [LOCK])


@refused(KindError)
def map_over_with_a_shared_lock():
    def f(x):
        with LOCK:
            return x * x
    gs.map_over(POOL, f, X)


@refused(KindError)
def resumed_from_another_error():
    gs.map_over(POOL, square, X, resume=ValueError())


@refused(KindError)
def resumed_with_other_examples():
    gs.map_over(POOL, square, X, resume=Partial({0: 1.0}, {}, 3, "the key of another call"))


# functions

@refused(KindError)
def map_over_by_a_number():
    gs.map_over(POOL, 3.0, X)


@refused(KindError)
def mapped_function_that_draws():
    def f(x):
        return x + RNG.normal()
    gs.map_over(POOL, f, X)


@refused(KindError)
def mapped_function_with_a_running_total():
    total = 0.0

    def f(x):
        nonlocal total
        total += x.sum()
        return total
    gs.map_over(POOL, f, X)


@refused(KindError)
def mapped_function_without_text():
    f = eval("lambda x: x * x")
    gs.map_over(POOL, f, X)


@refused(KindError)
def mapped_function_that_reads_an_unknown_name():
    def f(x):
        return x * not_defined          # noqa: F821
    gs.map_over(POOL, f, X)


@refused(KindError)
def mapped_function_without_its_defaults():
    def f(x, scale=2.0):
        return x * scale
    f.__defaults__ = None
    gs.map_over(POOL, f, X, X)


@refused(KindError)
def mapped_function_over_devices():
    def f(x):
        return x * x
    gs.map_over(POOL, gs.pmap(f), [X])


@refused(KindError)
def mapped_function_that_writes_into_its_argument():
    def f(x):
        x[0] = 1.0
        return np.sum(x)
    gs.map_over(POOL, gs.jit(f), X)


@refused(KindError)
def mapped_function_that_gives_an_object():
    def f(t):
        return np.sum(t.heights ** 2)
    gs.map_over(POOL, gs.grad(f), [Track(X)])


@refused(KindError)
def mapped_function_that_prints():
    def f(x):
        print("x is", x)
        return np.sum(x)
    gs.map_over(POOL, gs.jit(f), X)
