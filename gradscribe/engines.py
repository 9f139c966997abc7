# SPDX-License-Identifier: Apache-2.0
"""The engines of gs.map_over: Dask, Ray, joblib and the executors of concurrent.futures, behind one interface.

An engine runs `worker.run_chunk` on bytes.  `stream` takes tasks from an iterator as workers become free, and gives
each with its outcome: the bytes that came back, or why there are none.

>>> from concurrent.futures import ThreadPoolExecutor
>>> with ThreadPoolExecutor(2) as pool:
...     engine_of(pool).workers
2
"""
import asyncio
import concurrent.futures
import copy
import importlib
import importlib.util
import os
import pickle
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.worker import run_chunk

AHEAD = 2                               # tasks that an engine has for each worker
LOOK = 0.5                              # seconds between checks that an engine is there
LARGE = 1 << 20                         # bytes of a job that are not sent with each chunk
KINDS = ("Give a dask.distributed.Client or the address of its scheduler, ray, a joblib.Parallel or \"joblib\", or an\n"
         "executor of concurrent.futures.")


class Task(NamedTuple):
    """A chunk to be computed: numbers of its examples, number of its job, the pickled chunk."""
    examples: list[int]
    job: int
    chunk: bytes


class Lost(NamedTuple):
    """The outcome of a task whose worker was lost; often: whether the engine has tried it several times itself."""
    why: str
    often: bool = False


class Failed(NamedTuple):
    """The outcome of a task that no worker can run."""
    error: BaseException


class EngineGone(Exception):
    """Raised by `stream` if the engine does not answer any more."""


class Engine(Protocol):
    """What map_over needs of an engine; pickler: the name of the module that pickles for its processes."""
    pickler: str

    @property
    def workers(self) -> int:
        """How many examples are computed at a time."""

    def begin(self, jobs: list[bytes]) -> None:
        """Make the jobs known, before the first task."""

    def stream(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, bytes | Lost | Failed]]:
        """Each task with its outcome, in the order in which they end; closing it cancels what has not begun."""

    def close(self) -> None:
        """Release what `begin` and `stream` have made."""


def engine_of(given: Any) -> Engine:
    """The engine for what a user gives; KindError if there is none."""
    if isinstance(given, str):
        if "://" in given:
            return Dask(needed("distributed", "dask[distributed]").Client(given), own=True)
        if given not in ("ray", "joblib"):
            raise KindError(f"{given!r} is no engine", None, KINDS)
        given = needed(given, given)
    if isinstance(given, concurrent.futures.Executor):
        return Executor(given)
    module = given.__name__ if isinstance(given, types.ModuleType) else ""
    if module == "ray":
        return Ray(given)
    if module == "joblib":
        return Joblib(given.Parallel(n_jobs=-1) if no_choice(given) else given.Parallel())
    if isa(given, "distributed", "Client"):
        return Dask(given)
    if isa(given, "joblib", "Parallel"):
        return Joblib(given)
    raise KindError(f"{type(given).__name__} is no engine", None, KINDS)


def needed(module: str, package: str) -> Any:
    """A module that is imported when it is needed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise KindError(f"{module} cannot be imported: {error}", None,
                        f'Install it: pip install "{package}"') from error


def isa(value: Any, module: str, name: str) -> bool:
    """Whether a value is an instance of a class of a module, which is not imported for this."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def no_choice(joblib: Any) -> bool:
    """Whether joblib.parallel_config chooses no number of processes."""
    return joblib.Parallel().n_jobs in (None, 1)


def deadline() -> float:
    """The seconds without any worker after which an engine counts as gone."""
    return float(os.environ.get("GRADSCRIBE_DEADLINE", "300")) or float("inf")


# --- futures ----------------------------------------------------------------------------------------------------------

def by_futures(tasks: Iterator[Task], room: Callable[[], int], submit: Callable[[Task], Any],
               wait: Callable[[list], list], outcome: Callable[[Any], bytes | Lost | Failed],
               cancel: Callable[[Any], Any]) -> Iterator[tuple[Task, bytes | Lost | Failed]]:
    """`stream` by futures: room() tasks are with the engine at a time; wait: for the first to end, gives those that
    have; submit: gives a future, or an outcome.
    """
    running: dict[Any, Task] = {}
    ended = False
    try:
        while True:
            while not ended and len(running) < room():
                task = next(tasks, None)
                if task is None:
                    ended = True
                    break
                future = submit(task)
                if isinstance(future, (Lost, Failed)):
                    yield task, future
                    break
                running[future] = task
            if running:
                done = set(wait(list(running)))
                for future in [f for f in running if f in done]:    # the first ones first: an error stops the rest
                    yield running.pop(future), outcome(future)
            elif ended:
                return
    finally:
        for future in running:
            with suppress(Exception):   # the engine may be gone
                cancel(future)


class Executor:
    """An executor of concurrent.futures.  A process pool that lost a worker is broken for good: another of its kind
    takes over for the rest of the call.
    """

    def __init__(self, executor: concurrent.futures.Executor):
        self.executor, self.pickler = executor, "pickle"
        self.workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self.own, self.broken = None, False
        self.jobs: list = []
        self.folder: tempfile.TemporaryDirectory | None = None

    def begin(self, jobs: list[bytes]) -> None:
        """Keep the jobs; a large one goes to a file, which the processes of a pool read once, if there is room."""
        for k, job in enumerate(jobs):
            self.jobs.append(job)
            if len(job) > LARGE and type(self.executor) is ProcessPoolExecutor:
                with suppress(OSError):
                    self.folder = self.folder or tempfile.TemporaryDirectory(prefix="gradscribe_")
                    path = Path(self.folder.name, f"job_{k}")
                    path.write_bytes(job)
                    self.jobs[k] = str(path)

    def stream(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, bytes | Lost | Failed]]:
        """The outcomes of tasks; see Engine."""
        return by_futures(tasks, lambda: AHEAD * self.workers, self.submit, self.ended, self.outcome,
                          lambda future: future.cancel())

    def submit(self, task):
        """The future of a task; Lost if the pool turns out to be broken."""
        if self.broken:
            self.renew()
        try:
            return self.executor.submit(run_chunk, self.jobs[task.job], task.chunk)
        except concurrent.futures.BrokenExecutor as error:
            self.broken = True
            return Lost(str(error))
        except RuntimeError as error:       # it was shut down
            raise EngineGone(str(error)) from error

    def ended(self, futures):
        """The futures that have ended, at least one."""
        done, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED)
        return done

    def outcome(self, future):
        """The bytes, or why there are none."""
        if future.cancelled():
            raise EngineGone("the executor has cancelled what was to be computed")
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, concurrent.futures.BrokenExecutor):
            self.broken = True
            return Lost(str(error))
        return Failed(error)

    def renew(self):
        """Another pool of the same kind."""
        if type(self.executor) is not ProcessPoolExecutor:
            raise EngineGone(f"a worker of the {type(self.executor).__name__} was lost, which ends all others")
        pool: Any = self.executor
        try:
            new = ProcessPoolExecutor(pool._max_workers, pool._mp_context, pool._initializer, pool._initargs,
                                      max_tasks_per_child=pool._max_tasks_per_child)
        except AttributeError as error:     # another Python's
            raise EngineGone("a worker of the pool was lost, which breaks it") from error
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)
        else:
            warnings.warn("a worker was lost, which breaks a ProcessPoolExecutor: the rest of this call runs in a pool "
                          "of its own, and later calls need a new one", RuntimeWarning, stacklevel=2)
        self.executor, self.own, self.broken = new, new, False

    def close(self) -> None:
        """End the pool that took over, and delete the jobs."""
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)
        if self.folder is not None:
            self.folder.cleanup()


# --- Dask -------------------------------------------------------------------------------------------------------------

def held(job: bytes) -> bytes:
    """A job as a task, so that Dask makes it again if the worker that has it is lost."""
    return job


class Dask:
    """A dask.distributed.Client.  The scheduler moves the tasks of a lost worker to others, three times by default."""

    def __init__(self, client: Any, own: bool = False):
        self.client, self.own, self.pickler = client, own, "cloudpickle"
        self.distributed = needed("distributed", "dask[distributed]")
        if client.asynchronous:
            raise KindError("the Dask client is asynchronous", None, "Give one that is not: Client(address).")
        self.jobs: list = []
        self.seen, self.count = time.monotonic(), 0         # when workers were seen last; how many threads they have
        self.looked = 0.0

    @property
    def workers(self) -> int:
        """The threads of all workers; EngineGone if the scheduler does not answer, or has long had no worker."""
        now = time.monotonic()
        if now - self.looked > LOOK or not self.count:
            if self.client.status != "running":
                raise EngineGone(f"the client of the Dask scheduler is {self.client.status}")
            try:
                self.count = sum(self.client.nthreads().values())
            except Exception as error:      # of the network, and of Dask's own kinds
                raise EngineGone(f"the Dask scheduler does not answer: {error}") from error
            self.looked = now
            if self.count:
                self.seen = now
            elif now - self.seen > deadline():
                raise EngineGone(f"the Dask scheduler has had no worker for {deadline():g} s")
        return max(self.count, 1)

    def begin(self, jobs: list[bytes]) -> None:
        """Give the jobs to the scheduler."""
        self.jobs = [self.sent(held, job) for job in jobs]

    def sent(self, *call):
        """The future of a call."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)    # that arguments are large
                return self.client.submit(*call, pure=False)
        except Exception as error:
            raise EngineGone(f"the Dask client: {error}") from error

    def stream(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, bytes | Lost | Failed]]:
        """The outcomes of tasks; see Engine."""
        return by_futures(tasks, lambda: AHEAD * self.workers, self.submit, self.ended, self.outcome,
                          lambda future: future.cancel())

    def submit(self, task):
        """The future of a task."""
        return self.sent(run_chunk, self.jobs[task.job], task.chunk)

    def ended(self, futures):
        """The futures that have ended, at least one."""
        done: Any
        while True:
            try:
                done, _ = self.distributed.wait(futures, LOOK, "FIRST_COMPLETED")
            except TimeoutError:
                done = ()
            except asyncio.CancelledError:          # of one of them; no Exception
                done = [future for future in futures if future.done()]
            if done:
                return done
            self.looked = 0.0
            self.workers  # noqa: B018  (raises EngineGone)

    def outcome(self, future):
        """The bytes, or why there are none."""
        if future.status == "finished":
            try:
                return future.result(timeout=60)
            except (Exception, asyncio.CancelledError) as lost:
                return Lost(f"its result was lost: {lost}")
        if future.status in ("cancelled", "lost"):
            self.looked = 0.0
            self.workers  # noqa: B018  (raises EngineGone)
            return Lost("Dask has cancelled it")
        failure = future.exception(timeout=60)
        if isinstance(failure, self.distributed.KilledWorker):
            return Lost(f"{failure.allowed_failures + 1} workers ended while they computed it", True)
        return Failed(failure)

    def close(self) -> None:
        """Close the client if it was made here."""
        self.jobs = []
        if self.own:
            self.client.close()


# --- Ray --------------------------------------------------------------------------------------------------------------

class Ray:
    """Ray, which has been initialised."""

    def __init__(self, ray: Any):
        self.ray, self.pickler = ray, "ray.cloudpickle"
        if not ray.is_initialized():
            raise KindError("Ray has not been initialised", None, "Call ray.init(), or ray.init(address=...), before.")
        self.workers = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        self.remote = ray.remote(max_retries=0)(run_chunk)
        errors = ray.exceptions
        self.lost = (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError,
                     errors.LocalRayletDiedError, errors.TaskCancelledError)
        self.jobs: list = []

    def begin(self, jobs: list[bytes]) -> None:
        """Put the jobs into Ray's store of objects."""
        self.jobs = [self.ray.put(job) for job in jobs]

    def stream(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, bytes | Lost | Failed]]:
        """The outcomes of tasks; see Engine."""
        return by_futures(tasks, lambda: AHEAD * self.workers, self.submit, self.ended, self.outcome, self.ray.cancel)

    def there(self):
        """Raise EngineGone if Ray was shut down."""
        if not self.ray.is_initialized():
            raise EngineGone("Ray was shut down")

    def submit(self, task):
        """The reference to a task's result."""
        self.there()
        try:
            return self.remote.remote(self.jobs[task.job], task.chunk)
        except Exception as error:
            raise EngineGone(f"Ray: {error}") from error

    def ended(self, references):
        """The references whose tasks have ended, at least one."""
        while True:
            self.there()
            try:
                done, _ = self.ray.wait(references, num_returns=1, timeout=LOOK)
            except Exception as error:
                raise EngineGone(f"Ray: {error}") from error
            if done:
                return done

    def outcome(self, reference):
        """The bytes, or why there are none."""
        try:
            return self.ray.get(reference)
        except self.lost as error:
            return Lost(str(error).strip().splitlines()[0])
        except self.ray.exceptions.RayTaskError as error:
            return Failed(error)
        except Exception as error:
            self.there()
            raise EngineGone(f"Ray: {error}") from error

    def close(self) -> None:
        """Forget the jobs."""
        self.jobs = []


# --- joblib -----------------------------------------------------------------------------------------------------------

class Joblib:
    """A joblib.Parallel: its backend, number of processes and other settings, with results as they come."""

    def __init__(self, parallel: Any):
        self.joblib = needed("joblib", "joblib")
        self.parallel = parallel
        self.pickler = "cloudpickle" if importlib.util.find_spec("cloudpickle") else "joblib.externals.cloudpickle"
        self.workers = max(parallel._effective_n_jobs(), 1)
        if not getattr(parallel._backend, "supports_return_generator", False):
            raise KindError(f"joblib's {type(parallel._backend).__name__} gives no result before all are computed: "
                            "none could be kept after an error", None,
                            'Use backend="loky" or "threading", or give the Dask client or ray itself.')
        self.jobs: list = []

    def begin(self, jobs: list[bytes]) -> None:
        """Keep the jobs; joblib maps a large array into the memory of its processes."""
        self.jobs = [np.frombuffer(job, np.uint8) if len(job) > LARGE else job for job in jobs]

    def stream(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, bytes | Lost | Failed]]:
        """The outcomes of tasks; see Engine.  If a process is lost, joblib ends all that it has begun."""
        begun: dict[int, Task] = {}

        def calls():
            for number, task in enumerate(tasks):
                begun[number] = task
                yield self.joblib.delayed(numbered)(number, self.jobs[task.job], task.chunk)
        try:
            found = self.streaming()(calls())
        except (ValueError, TypeError) as refusal:
            raise EngineGone(f"joblib: {refusal}") from refusal
        try:
            while True:
                try:
                    number, out = next(found)
                except StopIteration:
                    return
                except BrokenProcessPool as broken:
                    for task in list(begun.values()):
                        yield task, Lost(str(broken).strip().splitlines()[0])
                    return
                except Exception as other:
                    for task in list(begun.values()):
                        yield task, Failed(other)
                    return
                yield begun.pop(number), out
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")             # that results are not fetched
                found.close()

    def streaming(self):
        """A Parallel with the user's settings, and a backend of its own, since the user's may be in use."""
        known, given = vars(self.parallel), {}
        for name in ("n_jobs", "timeout", "pre_dispatch", "verbose"):
            if name in known:
                given[name] = known[name]
        words = known.get("_backend_kwargs", {})
        given |= {n: words[n] for n in ("temp_folder", "max_nbytes", "mmap_mode") if n in words}
        return self.joblib.Parallel(**given, backend=copy.copy(known["_backend"]), batch_size=1,
                                    return_as="generator_unordered")

    def close(self) -> None:
        """Forget the jobs."""
        self.jobs = []


def numbered(number: int, job: Any, chunk: bytes) -> tuple[int, bytes]:
    """A chunk's answer with its number, since joblib gives results in any order."""
    return number, run_chunk(job, chunk)


def pickled(value: Any, pickler: str) -> bytes:
    """The pickle of a value by the module `pickler`, or by cloudpickle where the standard module refuses."""
    module = importlib.import_module(pickler)
    if pickler != "pickle":
        return module.dumps(value)
    try:
        return pickle.dumps(value)
    except Exception:
        try:
            return importlib.import_module("cloudpickle").dumps(value)
        except ImportError:
            pass
        raise
