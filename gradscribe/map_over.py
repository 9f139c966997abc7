# SPDX-License-Identifier: Apache-2.0
"""gs.map_over: a function over many examples, on the processes of Dask, Ray, joblib or an executor."""
import collections
import math
import operator
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError, TransformError
from gradscribe.engines import Engine, EngineGone, Failed, Lost, Task, engine_of, pickled
from gradscribe.frames import public
from gradscribe.given import as_numpy, is_foreign
from gradscribe.progress import telling
from gradscribe.runtime.compiled import Unsaid
from gradscribe.shipping import digest, of_plain, of_version, refuse_streams, version_of
from gradscribe.transformed import is_transformed
from gradscribe.tree_nodes import apart
from gradscribe.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten
from gradscribe.worker import GAVE, Answer, Chunk, Job

ENOUGH = 0.25                           # seconds that a chunk is to take
MOST = 10_000                           # examples in a chunk


class Partial(NamedTuple):
    """What a call of map_over has done.

    results: {number of an example: its result}; errors: {number: exception}; total: the number of examples; key: a hash
    of the function, of what it reads and of the examples.
    """
    results: dict[int, Any]
    errors: dict[int, Exception]
    total: int
    key: str


class MapError(RuntimeError):
    """An example failed, its worker was lost too often, or the engine is gone; `partial` is what was done before.

    `gs.map_over(..., resume=error)` goes on from there.
    """

    def __init__(self, message: str, partial: Partial):
        super().__init__(message, partial)
        self.partial = partial

    def __str__(self):
        return self.args[0]

    @property
    def results(self) -> dict[int, Any]:
        """{number of an example: its result}"""
        return self.partial.results

    @property
    def errors(self) -> dict[int, Exception]:
        """{number of an example: its exception}"""
        return self.partial.errors


class WorkerLost(RuntimeError):
    """The worker of an example was lost in each attempt."""


for _class in (MapError, WorkerLost):
    _class.__module__ = "gradscribe"


@public
def map_over(engine: Any, f: Callable, *xs: Any, in_axes: int | None | Sequence[int | None] = 0, retries: int = 2,
             chunk: int | None = None, progress: bool | Callable[[int, int], Any] | None = None, errors: str = "raise",
             resume: BaseException | Partial | None = None) -> Any:
    """f(x) for each example x, computed by the workers of an engine, in the order of the examples.

    engine: a dask.distributed.Client or the address of a scheduler ("tcp://host:8786"), ray (the module or its name; it
    must be initialised), a joblib.Parallel or "joblib", or any executor of concurrent.futures.
    f: a function, or a transformed one such as gs.grad(f) or gs.jit(gs.grad(f)).  What is sent is its emitted or
    compiled text, with the values that it reads from outside as they are now.  Machine code is read from the cache of
    the worker's machine or compiled once there.  Gradscribe must be installed for the workers, in the same version.
    xs: the arguments of f, mapped side by side as by `map`.  Of an array, examples are the entries along the first
    axis, and of a dict, a named tuple or a registered container those of its arrays; of a list, a plain tuple, a range
    or another iterable they are the items.
    in_axes: 0 or None for all arguments, or a tuple with one for each; an argument with None is given to each call
    whole, and is sent once.
    retries: how often an example is computed again if its worker is lost.  The last attempt runs alone, so that an
    example that kills its worker is found.  Errors that f raises are not retried.
    chunk: how many examples are sent together; by default as many as take a quarter of a second.
    progress: False for no line on the terminal, or a function that is called with the numbers of examples that are done
    and of all.
    errors: "raise" raises MapError at the first example that fails; "keep" gives a list with an exception in the place
    of each result that failed.
    resume: the error of an earlier call for the same f and examples, whose results are taken over.

    Returns a list; if all mapped arguments are arrays or containers of arrays, the results stacked: each leaf of f's
    result with a first axis for the examples, as gs.vmap returns it.

    Raises MapError if an example fails, if its worker is lost retries + 1 times, or if the engine is gone; its
    `partial` has what was done.  KeyboardInterrupt has it too.  Raises KindError for an unknown engine, for examples of
    different numbers, and for a function that cannot be sent: one without text, with a random generator, with values
    that cannot be pickled, or that changes arguments or objects from outside; TransformError as f itself does.

    >>> import numpy as np, gradscribe as gs
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def loss(w, x):
    ...     return np.sum(np.tanh(x @ w) ** 2)
    >>> w, x = np.ones(3), np.arange(12.0).reshape(4, 3) / 10
    >>> with ThreadPoolExecutor(2) as pool:
    ...     g = gs.map_over(pool, gs.grad(loss), w, x, in_axes=(None, 0))
    >>> np.allclose(g, gs.vmap(gs.grad(loss), in_axes=(None, 0))(w, x))
    True
    """
    retries, chunk = checked(retries, 0, "retries"), None if chunk is None else checked(chunk, 1, "chunk")
    if errors not in ("raise", "keep"):
        raise KindError(f"errors must be 'raise' or 'keep', not {errors!r}")
    examples = Examples(f, xs, in_axes)
    run = Run(examples, retries, chunk, errors == "raise", progress if callable(progress) else None)
    if resume is not None:
        run.take_over(resume)
    if run.left():
        there = engine_of(engine)
        try:
            run.work(there, progress is not False and not callable(progress))
        finally:
            there.close()
    return run.all_results(errors == "raise" and examples.stacks)


def checked(value: Any, least: int, name: str) -> int:
    """A number of a call, as an int."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise KindError(f"{name} must be an integer of at least {least}, not {value!r}")
    return number


# --- examples ---------------------------------------------------------------------------------------------------------

class Examples:
    """The arguments of each call, and the program that computes it.

    columns: {position: (whether it is a container of arrays with examples along their first axis, the values)}; shared:
    {position: argument}; programs and of: the programs, and the number of that of each example.
    """

    def __init__(self, f: Any, xs: tuple, in_axes: Any):
        self.f, self.arity = f, len(xs)
        axes = axes_of(in_axes, len(xs))
        self.shared = {p: as_numpy(x) for p, (x, axis) in enumerate(zip(xs, axes)) if axis is None}
        self.columns = {p: column(x, p) for p, (x, axis) in enumerate(zip(xs, axes)) if axis is not None}
        for p, value in self.shared.items():
            refuse_streams(value, f"argument {p}")
        self.count = one_length(self.columns)
        self.stacks = all(along_axis for along_axis, _ in self.columns.values())
        if self.stacks and not self.count:
            raise KindError("there are no examples, whose results would say what to return", None,
                            "Give list(x): for a list without items, the result is an empty list.")
        self.programs, self.of = self.programs_of()

    def args(self, k: int) -> tuple:
        """The arguments of call k."""
        return tuple([self.shared[p] if p in self.shared else item(self.columns[p], k) for p in range(self.arity)])

    def programs_of(self):
        """(programs, number of the program of each example)"""
        if not is_transformed(self.f):
            return [of_plain(self.f)], [0] * self.count
        made, programs, of = {}, [], []
        for k in range(self.count):
            try:
                version = version_of(self.f, self.args(k))
            except TransformError as error:
                error.add_note(f"for example {k} of {self.count}")
                raise
            if id(version) not in made:
                made[id(version)] = len(programs), version
                programs.append(of_version(self.f, version))
            of.append(made[id(version)][0])
        return programs, of

    def chunk(self, numbers: list[int], stop: bool) -> Chunk:
        """The arguments of some calls, to be sent."""
        in_a_row = numbers[-1] - numbers[0] + 1 == len(numbers)
        columns = {}
        for p, (along_axis, values) in self.columns.items():
            if along_axis:
                place = slice(numbers[0], numbers[-1] + 1) if in_a_row else numbers
                columns[p] = True, tree_map(lambda leaf, place=place: leaf[place], values)
            else:
                columns[p] = False, [values[k] for k in numbers]
        return Chunk(columns, len(numbers), stop)

    def jobs(self, pickler: str) -> list[bytes]:
        """A pickled Job for each program; KindError that names what cannot be pickled."""
        out = []
        for program in self.programs:
            job = Job(program, self.shared, self.arity, pickler, os.getpid())
            try:
                out.append(pickled(job, pickler))
            except Exception as error:
                held = {**program.data, **{f"argument {p}": v for p, v in self.shared.items()}}
                raise KindError(unsendable(held, pickler, error), None,
                                "Make locks, connections and open files inside the function.") from error
        return out

    def key(self) -> str:
        """A hash of the function, of what it reads and of the examples."""
        parts = [(p.label, p.text, p.data, p.machine and (p.machine.made[0], p.machine.extra)) for p in self.programs]
        return digest([digest([str(part) if k < 2 else part for k, part in enumerate(one)]) for one in parts] +
                      [digest(self.args(k)) for k in range(self.count)])


def unsendable(held: dict[str, Any], pickler: str, error: Exception) -> str:
    """What cannot be sent, in words."""
    for name, value in held.items():
        try:
            pickled(value, pickler)
        except Exception as own:
            return f"{name}, which the function reads, is a {type(value).__name__} that cannot be sent: {own}"
    return f"the function cannot be sent: {error}"


def axes_of(in_axes: Any, count: int) -> tuple:
    """One axis for each argument."""
    axes = (in_axes,) * count if in_axes is None or not isinstance(in_axes, (tuple, list)) else tuple(in_axes)
    if not count:
        raise KindError("there are no arguments to map over", None, "Give the examples after f.")
    if len(axes) != count:
        raise KindError(f"in_axes has {len(axes)} entries, and f has {count} argument{'s' * (count > 1)}", None,
                        "Give 0 or None for each argument.")
    if not all(axis is None or axis == 0 and type(axis) is int for axis in axes):
        raise KindError(f"in_axes must be 0 or None for each argument, not {in_axes!r}", None,
                        "Move the axis of examples to the front: np.moveaxis(x, k, 0).")
    if all(axis is None for axis in axes):
        raise KindError("no argument has examples: in_axes is None for all", None, "Give 0 for those with examples.")
    return axes


def column(x: Any, place: int) -> tuple[bool, Any]:
    """(whether examples are along the first axis of its arrays, values) of an argument."""
    if isinstance(x, (str, bytes, set, frozenset)):
        raise KindError(f"argument {place} is a {type(x).__name__}, which is no sequence of examples", None,
                        "Give a list.")
    taken = apart(x)
    if type(x) in (list, tuple) or taken is None and not is_array(x):
        if not isinstance(x, Iterable):
            raise KindError(f"argument {place} is a {type(x).__name__}, which has no examples", None,
                            "Give a list or an array, or in_axes=(..., None) for what all examples share.")
        return False, [as_numpy(v) if is_foreign(v) else v for v in x]
    for leaf in tree_leaves(x):
        if isinstance(leaf, (np.ma.MaskedArray, np.matrix)):
            raise KindError(f"argument {place} has a {type(leaf).__name__}, whose entries would become plain arrays",
                            None,
                            "Give np.asarray(x), with the mask as an array beside it, or list(x).")
    values = tree_map(lambda leaf: np.asarray(as_numpy(leaf)), x)
    if not tree_leaves(values) or any(not leaf.ndim for leaf in tree_leaves(values)):
        raise KindError(f"argument {place} has a part without a first axis", None,
                        "Give arrays with one entry for each example.")
    return True, values


def is_array(x: Any) -> bool:
    """Whether a value is an array, of NumPy or of another package."""
    return isinstance(x, (np.ndarray, np.generic)) or is_foreign(x)


def one_length(columns: dict[int, tuple[bool, Any]]) -> int:
    """The number of examples; KindError if arguments have different numbers."""
    found: dict[int, int] = {}
    for p, (along_axis, values) in columns.items():
        for part in tree_leaves(values) if along_axis else [values]:
            found.setdefault(len(part), p)
    if len(found) > 1:
        (n, p), (m, q) = list(found.items())[:2]
        raise KindError(f"argument {p} has {n} examples, and argument {q} has {m}", None,
                        "Give as many of each; in_axes has None for an argument that all examples share.")
    return next(iter(found))


def item(column: tuple[bool, Any], k: int) -> Any:
    """Example k of a column."""
    along_axis, values = column
    return tree_map(lambda leaf: leaf[k], values) if along_axis else values[k]


# --- the run ----------------------------------------------------------------------------------------------------------

class Run:
    """One call of map_over: what is done, and what is to be done.

    waiting: {number of a program: its examples}; last: examples with one attempt left; lost: {example: lost attempts}.
    """

    def __init__(self, examples: Examples, retries: int, chunk: int | None, stop: bool, told: Callable | None):
        self.examples, self.retries, self.chunk, self.stop, self.told = examples, retries, chunk, stop, told
        self.results: dict[int, Any] = {}
        self.errors: dict[int, Exception] = {}
        self.waiting: dict[int, collections.deque[int]] = {}
        self.last: collections.deque[int] = collections.deque()
        self.lost: collections.Counter[int] = collections.Counter()
        self.seconds, self.calls = 0.0, 0       # of all calls so far
        for k, program in enumerate(examples.of):
            self.waiting.setdefault(program, collections.deque()).append(k)

    def left(self) -> bool:
        """Whether examples are to be computed."""
        return bool(self.last) or any(self.waiting.values())

    def take_over(self, earlier: Any) -> None:
        """Take the results of an earlier call."""
        partial = getattr(earlier, "partial", earlier)
        if not isinstance(partial, Partial):
            raise KindError(f"resume is a {type(earlier).__name__}, which has no results", None,
                            "Give the MapError or the KeyboardInterrupt of an earlier call, or its `partial`.")
        if partial.total != self.examples.count or partial.key != self.examples.key():
            raise KindError("resume has the results of another function, or of other examples", None,
                            "Give the same f, with the same values from outside, and the same examples.")
        self.results.update(partial.results)
        for queue in self.waiting.values():
            rest = [k for k in queue if k not in self.results]
            queue.clear()
            queue.extend(rest)

    def partial(self) -> Partial:
        """What is done."""
        return Partial(dict(self.results), dict(self.errors), self.examples.count, self.examples.key())

    def work(self, engine: Engine, line: bool) -> None:
        """Compute what is left."""
        name = getattr(self.examples.f, "__name__", "a function")
        telling_ = telling("mapping", name, lambda: f"{self.done()} of {self.examples.count}", "examples")
        try:
            engine.begin(self.examples.jobs(engine.pickler))
            with telling_ if line else nullcontext():
                while self.left():
                    alone = not any(self.waiting.values())
                    tasks = iter([self.task([self.last.popleft()])]) if alone else self.tasks(engine.workers)
                    with closing(engine.stream(tasks)) as stream:       # type: ignore[type-var]
                        for task, outcome in stream:
                            self.take(task, outcome)
        except EngineGone as error:
            raise MapError(f"the engine is gone: {error}; {self.so_far()}", self.partial()) from error
        except KeyboardInterrupt as interrupt:
            interrupt.partial = self.partial()          # type: ignore[attr-defined]
            interrupt.add_note(self.so_far())
            raise

    def done(self) -> int:
        """The number of examples that are done."""
        return len(self.results) + len(self.errors)

    def so_far(self) -> str:
        """What is done, in words."""
        return f"{len(self.results)} of {self.examples.count} examples are done, resume= goes on from there"

    # tasks

    def tasks(self, workers: int) -> Iterator[Task]:
        """Tasks for what is waiting, until nothing is; a chunk is made when the engine asks for it."""
        while True:
            queue = next(filter(None, self.waiting.values()), None)
            if queue is None:
                return
            yield self.task([queue.popleft() for _ in range(min(self.size(workers), len(queue)))])

    def size(self, workers: int) -> int:
        """How many examples the next chunk has: as many as take ENOUGH seconds, and less towards the end."""
        if self.chunk is not None:
            return self.chunk
        if not self.calls:
            return 1
        left = sum(map(len, self.waiting.values()))
        wanted = ENOUGH * self.calls / max(self.seconds, 1e-9)
        return max(1, int(min(wanted, MOST, math.ceil(left / (2 * workers)))))

    def task(self, numbers: list[int]) -> Task:
        """A task for some examples of one program."""
        chunk = self.examples.chunk(numbers, self.stop)
        try:
            content = pickle.dumps(chunk)
        except Exception as error:
            try:
                content = pickled(chunk, "cloudpickle")
            except Exception:
                which = f"examples {numbers[0]} to {numbers[-1]}" if numbers[1:] else f"example {numbers[0]}"
                raise KindError(f"{which} cannot be sent: {error}", None,
                                "Give arrays and numbers, and make other objects inside the function.") from error
        return Task(numbers, self.examples.of[numbers[0]], content)

    # outcomes

    def take(self, task: Task, outcome: bytes | Lost | Failed) -> None:
        """Enter what has become of a task."""
        if isinstance(outcome, Failed):
            why = f"{type(outcome.error).__name__}: {outcome.error}"
            raise MapError(f"the workers cannot run it: {why}; {self.so_far()}", self.partial()) from outcome.error
        if isinstance(outcome, Lost):
            for k in task.examples:
                self.again(k, outcome)
            return
        answer: Answer = pickle.loads(outcome)
        self.seconds, self.calls = self.seconds + answer.seconds, self.calls + len(answer.outcomes)
        for k, (what, value) in zip(task.examples, answer.outcomes):
            if what == GAVE:
                self.results[k] = value
        for k, (what, value) in zip(task.examples, answer.outcomes):
            if what != GAVE:
                self.failed(k, value)
        self.waiting[task.job].extendleft(reversed(task.examples[len(answer.outcomes):]))
        if self.told is not None:
            self.told(self.done(), self.examples.count)

    def again(self, k: int, lost: Lost) -> None:
        """Enter a lost attempt of an example; where the engine has tried several times, one more is left, alone."""
        self.lost[k] = max(self.lost[k] + 1, self.retries) if lost.often else self.lost[k] + 1
        if self.lost[k] > self.retries:
            self.fail(k, WorkerLost(f"its worker was lost in {self.lost[k]} attempts, the last time so: {lost.why}"))
        elif self.lost[k] == self.retries:
            self.last.append(k)
        else:
            self.waiting[self.examples.of[k]].append(k)

    def failed(self, k: int, error: Exception) -> None:
        """Enter the error of an example, as a call here would raise it."""
        f, args = self.examples.f, self.examples.args(k)
        if isinstance(error, Unsaid):   # compiled code has no words for it
            try:
                self.results[k] = f(*args)
                return
            except Exception as own:
                error = own
        self.fail(k, error)

    def fail(self, k: int, error: Exception) -> None:
        """Enter the error of an example, and raise it where errors stop."""
        self.errors[k] = error
        if self.stop:
            raise MapError(f"example {k} of {self.examples.count} failed: {type(error).__name__}: {error}; "
                           f"{self.so_far()}", self.partial()) from error

    # results

    def all_results(self, stacks: bool) -> Any:
        """The results in order: a list, or each leaf stacked."""
        found = [self.results[k] if k in self.results else self.errors[k] for k in range(self.examples.count)]
        if not stacks:
            return found
        taken = [tree_flatten(value) for value in found]
        kinds = [([(np.shape(leaf), np.asarray(leaf).dtype.kind in "biufcSU") for leaf in leaves], structure)
                 for leaves, structure in taken]
        other = next((k for k, kind in enumerate(kinds) if kind != kinds[0]), None)
        if other is not None or not all(numbers for _, numbers in kinds[0][0]):
            which = "are no arrays" if other is None else f"of examples 0 and {other} have different shapes"
            raise MapError(f"results {which}, and cannot be stacked; for a list of them, give list(x) with resume=",
                           self.partial())
        leaves = [np.stack([np.asarray(leaf) for leaf in parts]) for parts in zip(*(leaves for leaves, _ in taken))]
        return tree_unflatten(taken[0][1], leaves)
