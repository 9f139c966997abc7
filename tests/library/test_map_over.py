"""gs.map_over on threads and on a pool of processes; tests/parallel/test_engines.py has Dask, Ray and joblib."""
import concurrent.futures
import inspect
import io
import operator
import os
import pickle
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from sweeps import W, X, killer, loss, poison

import gradscribe as gs
from gradscribe import progress, worker
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.map_over import Partial

pytestmark = pytest.mark.compiled

@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2) as pool:
        yield pool


def square(x):
    return x * x


def fails_at(x):
    if x == 7:
        raise ValueError("seven is too large")
    return x * x


# results in kind, in order

@pytest.mark.parametrize("f", [gs.grad(loss), gs.jit(gs.grad(loss)), lambda w, x: gs.grad(loss)(w, x)])
def test_as_vmap(processes, f):
    out = gs.map_over(processes, f, W, X, in_axes=(None, 0))
    np.testing.assert_allclose(out, gs.vmap(gs.grad(loss), in_axes=(None, 0))(W, X), rtol=1e-12)


def test_order(threads):
    def late(k):
        time.sleep(0.02 if k % 3 == 0 else 0.0)
        return k
    assert gs.map_over(threads, late, range(30), chunk=1) == list(range(30))


def test_several_arguments(threads):
    assert gs.map_over(threads, operator.add, [1, 2, 3], (10, 20, 30)) == [11, 22, 33]
    assert gs.map_over(threads, lambda a, b, c: (a, b, c), [1, 2], "k", (k for k in "ab"), in_axes=(0, None, 0)) == [
        (1, "k", "a"), (2, "k", "b")]
    out = gs.map_over(threads, operator.add, X, list(X))
    assert isinstance(out, list) and np.array_equal(out, 2 * X)


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


def test_containers(threads):
    out = gs.map_over(threads, lambda p: {"s": p.a + p.b, "n": (1, [p.b > 0])}, Pair(X, X[:, 0]))
    assert np.array_equal(out["s"], X + X[:, :1]) and out["n"][0].tolist() == [1] * 20
    assert out["n"][1][0].dtype == bool
    out = gs.map_over(threads, lambda d: Pair(d["x"], d["y"][0]), {"x": X, "y": [X[:, 1]]})
    assert type(out) is Pair and np.array_equal(out.a, X) and np.array_equal(out.b, X[:, 1])


def test_dtypes_and_lengths(threads):
    for x in (X.astype(np.float32), X + 1j, (X * 10).astype(np.int32), X > 1, X[:1], X[:, :1], X[:, :0]):
        out = gs.map_over(threads, lambda v: v, x)
        assert out.dtype == x.dtype and np.array_equal(out, x)
    assert gs.map_over(threads, square, []) == []
    ragged = gs.map_over(threads, gs.jit(gs.grad(lambda x: np.sum(x ** 3))), [np.ones(n) for n in (0, 1, 5, 17, 40, 5)])
    assert [len(r) for r in ragged] == [0, 1, 5, 17, 40, 5] and all((r == 3).all() for r in ragged)


def test_static_values(threads):
    def power(x, n):
        for _ in range(n):
            x = x * x
        return x
    out = gs.map_over(threads, gs.jit(gs.grad(power), static_argnums=1), [1.0] * 4, [0, 1, 2, 1])
    assert np.allclose(out, [1, 2, 4, 2])


@pytest.mark.parametrize("chunk", [1, 3, 7, 100, None])
def test_chunks(threads, chunk):
    told = []
    out = gs.map_over(threads, square, list(range(20)), chunk=chunk, progress=lambda done, of: told.append((done, of)))
    assert out == [k * k for k in range(20)]
    assert told[-1] == (20, 20) and told == sorted(told)


def test_chunks_grow(processes):
    sizes = [0]
    out = gs.map_over(processes, square, np.arange(3000.0), progress=lambda done, of: sizes.append(done))
    assert np.array_equal(out, np.arange(3000.0) ** 2)
    assert len(sizes) < 60 and max(np.diff(sizes)) > 100


def test_shared_arrays_are_sent_once(processes):
    large = np.arange(400_000.0)
    assert gs.map_over(processes, lambda a, k: a[k], large, list(range(0, 400_000, 20_000)), in_axes=(None, 0)) == list(
        range(0, 400_000, 20_000))


def test_processes_draw_different_numbers(processes):
    def draw(k):
        time.sleep(0.05)
        return os.getpid(), np.random.random()
    drawn = gs.map_over(processes, draw, list(range(8)), chunk=1)
    assert len({v for _, v in drawn}) == 8 and len({p for p, _ in drawn}) == 2
    streams = gs.map_over(processes, lambda rng: rng.normal(), np.random.default_rng(0).spawn(4))
    assert streams == [rng.normal() for rng in np.random.default_rng(0).spawn(4)]


# errors

def test_an_example_that_fails(processes):
    with pytest.raises(gs.MapError, match="example 7 of 20 failed: ValueError: seven is too large") as caught:
        gs.map_over(processes, fails_at, list(range(20)), chunk=1)
    error = caught.value
    assert isinstance(error.__cause__, ValueError) and "fails_at" in error.__cause__.__notes__[0]
    assert error.errors.keys() == {7} and all(v == k * k for k, v in error.results.items())
    assert set(range(5)) <= error.results.keys()
    assert pickle.loads(pickle.dumps(error)).partial.results == error.results


def test_errors_are_kept(threads):
    out = gs.map_over(threads, fails_at, list(range(10)), errors="keep")
    assert [k for k, v in enumerate(out) if isinstance(v, ValueError)] == [7]
    assert isinstance(gs.map_over(threads, square, X, errors="keep"), list)


def test_errors_of_compiled_code(threads):
    def f(x):
        if x[0] > 1.0:
            raise ValueError(f"{x[0]} is too large")
        return np.sum(x ** 2)
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        with pytest.raises(gs.MapError, match=r"example \d+ of 20 failed: ValueError: \d\.\d is too large"):
            gs.map_over(threads, g, X, chunk=1)


class Strange(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.lock = threading.Lock()


def test_what_cannot_come_back(processes):
    def strange(x):
        raise Strange(1, 2)
    with pytest.raises(gs.MapError, match="RuntimeError: Strange: 1"):
        gs.map_over(processes, strange, [1])
    with pytest.raises(gs.MapError, match="its result, a lock, cannot be sent"):
        gs.map_over(processes, lambda x: threading.Lock() if x == 3 else x, list(range(5)), chunk=5)
    with pytest.raises(gs.MapError, match="SystemExit"):
        gs.map_over(processes, lambda x: exit(3), [1])


def test_resume(threads):
    calls = []

    def f(x):
        if x == 7 and not os.path.exists(flag):
            raise ValueError("no")
        return x * x
    flag = "/nowhere/else"
    with pytest.raises(gs.MapError) as caught:
        gs.map_over(threads, f, list(range(12)), chunk=1)
    kept = pickle.loads(pickle.dumps(caught.value.partial))
    with pytest.raises(gs.MapError) as again:
        gs.map_over(threads, f, list(range(12)), resume=kept, progress=lambda done, of: calls.append(done))
    assert kept.results.items() <= again.value.results.items()
    whole = Partial({k: k * k for k in range(11)}, {}, 12, kept.key)
    assert gs.map_over(threads, f, list(range(12)), resume=whole) == [k * k for k in range(12)]
    done = Partial({k: -k for k in range(12)}, {}, 12, kept.key)
    assert gs.map_over("no engine is asked", f, list(range(12)), resume=done) == [-k for k in range(12)]
    for other in ([*range(11)], [*range(11), 11.0], [*range(1, 13)]):
        with pytest.raises(KindError, match="another function, or of other examples"):
            gs.map_over(threads, f, other, resume=kept)
    with pytest.raises(KindError, match="another function, or of other examples"):
        gs.map_over(threads, lambda x: x * x, list(range(12)), resume=kept)
    flag = "/"                          # a value that the function reads
    with pytest.raises(KindError, match="another function, or of other examples"):
        gs.map_over(threads, f, list(range(12)), resume=kept)
    with pytest.raises(KindError, match="has no results"):
        gs.map_over(threads, f, list(range(12)), resume=ValueError())


def test_results_that_do_not_stack(threads):
    def f(x):
        return x[: int(x[0] * 10) % 3 + 1]
    with pytest.raises(gs.MapError, match="different shapes") as caught:
        gs.map_over(threads, f, X[:3] + np.array([[0.0], [0.1], [0.2]]))
    assert len(caught.value.results) == 3
    out = gs.map_over("not asked", f, list(X[:3] + np.array([[0.0], [0.1], [0.2]])), resume=caught.value)
    assert [len(v) for v in out] == [1, 2, 3] or len({len(v) for v in out}) > 1


def test_ctrl_c(threads):
    def told(done, of):
        if done == 5:
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt) as caught:
        gs.map_over(threads, square, list(range(20)), chunk=1, progress=told)
    assert len(caught.value.partial.results) == 5
    assert gs.map_over(threads, square, list(range(20)), resume=caught.value) == [k * k for k in range(20)]


def test_a_line_on_a_terminal(threads, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.delenv("GRADSCRIBE_PROGRESS", raising=False)
    for said, silent in ((None, False), (True, False), (False, True), (lambda done, of: None, True)):
        monkeypatch.setattr(sys, "stderr", Terminal())
        gs.map_over(threads, square, list(range(20)), progress=said)
        assert ("gradscribe: mapping square: 20 of 20 examples, " in sys.stderr.getvalue()) is not silent


def test_another_version_on_the_workers(threads, monkeypatch):
    monkeypatch.setattr(worker, "__version__", "99.0")
    with pytest.raises(gs.MapError, match="the workers cannot run it: RuntimeError: the worker has Gradscribe 99.0"):
        gs.map_over(threads, lambda x: x - 99, [1])


def test_an_example_that_cannot_be_transformed(threads):
    with pytest.raises(gs.TransformError) as caught:
        gs.map_over(threads, gs.grad(loss), W, [W, "a"], in_axes=(None, 0))
    assert caught.value.__notes__ == ["for example 1 of 2"]


# workers and engines that are lost

@pytest.mark.parametrize("chunk", [1, 5, None])
def test_a_worker_is_killed(tmp_path, chunk):
    with ProcessPoolExecutor(2) as pool, pytest.warns(RuntimeWarning, match="a worker was lost"):
        out = gs.map_over(pool, killer, str(tmp_path), list(range(20)), in_axes=(None, 0), chunk=chunk)
    assert out == [k * k for k in range(20)] and (tmp_path / "killed").exists()


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_an_example_that_kills_its_worker(retries):
    """With retries, the one that kills is found, and all others are computed."""
    with ProcessPoolExecutor(2) as pool, pytest.warns(RuntimeWarning, match="a worker was lost"):
        out = gs.map_over(pool, poison, list(range(20)), retries=retries, chunk=1, errors="keep")
        with pytest.raises(RuntimeError):
            pool.submit(square, 1).result()
    bad = [k for k, v in enumerate(out) if isinstance(v, gs.WorkerLost)]
    assert 7 in bad and (bad == [7] or not retries)
    assert all(v == k * k for k, v in enumerate(out) if k not in bad)


def test_an_engine_that_is_gone():
    pool = ThreadPoolExecutor(1)
    done = []

    def told(count, of):
        done.append(count)
        if count == 3:
            pool.shutdown(wait=False)
    with pytest.raises(gs.MapError, match="the engine is gone: cannot schedule new futures after shutdown") as caught:
        gs.map_over(pool, square, list(range(20)), chunk=1, progress=told)
    assert len(caught.value.results) >= 3
    with ThreadPoolExecutor(1) as other:
        assert gs.map_over(other, square, list(range(20)), resume=caught.value) == [k * k for k in range(20)]


class Once(concurrent.futures.Executor):
    """An executor that breaks."""
    def __init__(self):
        self.count = 0

    def submit(self, f, *args):
        future: concurrent.futures.Future = concurrent.futures.Future()
        self.count += 1
        if self.count > 4:
            future.set_exception(concurrent.futures.BrokenExecutor("it broke"))
        else:
            future.set_result(f(*args))
        return future


def test_another_executor_that_breaks():
    with pytest.raises(gs.MapError, match="engine is gone: a worker of the Once was lost") as caught:
        gs.map_over(Once(), square, list(range(20)), chunk=1)
    assert caught.value.results == {0: 0, 1: 1, 2: 4, 3: 9}


# wrong arguments

WRONG = [
    (lambda e: gs.map_over("slurm", square, [1]), "'slurm' is no engine"),
    (lambda e: gs.map_over(3, square, [1]), "int is no engine"),
    (lambda e: gs.map_over(e, 3, [1]), "int is not a function"),
    (lambda e: gs.map_over(e, square), "there are no arguments to map over"),
    (lambda e: gs.map_over(e, square, [1, 2], [1]), "argument 0 has 2 examples, and argument 1 has 1"),
    (lambda e: gs.map_over(e, square, {"a": np.ones(2), "b": np.ones(3)}), "2 examples, and argument 0 has 3"),
    (lambda e: gs.map_over(e, square, {"a": 1.0}), "part without a first axis"),
    (lambda e: gs.map_over(e, square, np.float64(1.0)), "part without a first axis"),
    (lambda e: gs.map_over(e, square, np.ones((0, 2))), "there are no examples"),
    (lambda e: gs.map_over(e, square, "abc"), "is a str"),
    (lambda e: gs.map_over(e, square, {1, 2}), "is a set"),
    (lambda e: gs.map_over(e, square, 1.0), "is a float, which has no examples"),
    (lambda e: gs.map_over(e, square, [1], in_axes=None), "None for all"),
    (lambda e: gs.map_over(e, square, [1], in_axes=1), "0 or None"),
    (lambda e: gs.map_over(e, square, [1], in_axes=(0, 0)), "in_axes has 2 entries"),
    (lambda e: gs.map_over(e, square, [1], retries=-1), "retries must be"),
    (lambda e: gs.map_over(e, square, [1], retries=1.5), "retries must be"),
    (lambda e: gs.map_over(e, square, [1], chunk=0), "chunk must be"),
    (lambda e: gs.map_over(e, square, [1], errors="ignore"), "errors must be"),
    (lambda e: gs.map_over(e, lambda r, x: x, np.random.default_rng(0), [1], in_axes=(None, 0)), "random generator"),
    (lambda e: gs.map_over(e, lambda lock, x: x, threading.Lock(), [1], in_axes=(None, 0)), "argument 0.*lock"),
    (lambda e: gs.map_over(e, square, [threading.Lock()]), "example 0 cannot be sent"),
    (lambda e: gs.map_over(e, gs.grad(loss), W, [1, "a"], in_axes=(None, 0)), ""),
]


@pytest.mark.parametrize("call, words", WRONG, ids=range(len(WRONG)))
def test_wrong_arguments(threads, call, words):
    with pytest.raises(gs.TransformError, match=words or None):
        call(threads)


def inner(x):
    z = [x,
         x]
    raise ValueError(
        f"{len(z)} is wrong")


def outer(x):
    """Fails below two lines."""
    y = (x *
         2)
    try:
        return inner(y)
    except ValueError as error:
        raise KeyError("outer") from error


def test_an_error_has_the_places_of_the_users_file(processes):
    """The text that a worker runs has other lines than the file that it is from."""
    first = inspect.getsourcelines(inner)[1]
    for f, name in ((outer, "outer"), (lambda x: inner(x), "<lambda>")):
        with pytest.raises(gs.MapError) as caught:
            gs.map_over(processes, f, [1.0])
        note = caught.value.__cause__.__notes__[0]
        assert f'{__file__}", line {first + 3}, in inner' in note
        assert f"in {name}\n" in note and "raise ValueError(" in note and "worker.py" not in note


def test_shared_arrays_are_read_only(processes, threads):
    """What one example wrote, the next one of the same worker would read."""
    def write(w, x):
        w["a"][0][0] += x
        return w["a"][0][0]
    for pool in (processes, threads):
        with pytest.raises(gs.MapError, match="read-only"):
            gs.map_over(pool, write, {"a": [np.zeros(2)]}, [1.0, 1.0], in_axes=(None, 0), chunk=2)
    compiled = gs.jit(lambda w, x: w * x)
    out = gs.map_over(threads, compiled, W, np.arange(3.0), in_axes=(None, 0))
    assert np.array_equal(out, np.outer(np.arange(3.0), W))


def test_masks_are_not_lost(threads):
    x = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(KindError, match="MaskedArray"):
        gs.map_over(threads, square, x)
    assert gs.map_over(threads, lambda v: v is np.ma.masked, list(x)) == [False, True]


def test_no_folder_for_temporary_files(processes, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    large = np.arange(400_000.0)
    assert gs.map_over(processes, lambda a, k: a[k], large, [0, 7, 9], in_axes=(None, 0)) == [0, 7, 9]
