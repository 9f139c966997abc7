# SPDX-License-Identifier: Apache-2.0
"""What a worker of an engine runs for gs.map_over: it makes a function of a program once, and calls it on examples.

Engines see bytes only, so that what is sent is pickled in one way, and a result that cannot be sent is its example's
error and not the engine's.
"""
import collections
import hashlib
import importlib
import os
import pickle
import random
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradscribe.shipping import KEPT, function_of
from gradscribe.tree_util import tree_map
from gradscribe.version import __version__

GAVE, RAISED = "gave", "raised"
_made: collections.OrderedDict[str, tuple] = collections.OrderedDict()      # functions and shared arguments, by hash
_lock = threading.Lock()
_seeded: list[int] = []


class Job(NamedTuple):
    """What all chunks of one function share.

    program: see shipping.py; shared: {position: argument} that all examples have; arity: the number of arguments;
    pickler: the name of the module that pickles results; home: the process that called map_over.
    """
    program: Any
    shared: dict[int, Any]
    arity: int
    pickler: str
    home: int
    version: str = __version__


class Chunk(NamedTuple):
    """Examples: {position: (whether it is a block along an axis, block or list)}, and how many there are."""
    columns: dict[int, tuple[bool, Any]]
    size: int
    stop: bool                          # whether to stop after an error


class Answer(NamedTuple):
    """(GAVE, result) or (RAISED, exception) of each example, up to the first error if that stops; seconds: of calls."""
    outcomes: list[tuple[str, Any]]
    seconds: float


def run_chunk(job: Any, chunk: bytes) -> bytes:
    """The pickled Answer for a pickled Chunk; job: a pickled Job (bytes or an array), or the path of a file with it."""
    function, job_ = job_of(job)
    columns, size, stop = pickle.loads(chunk)
    outcomes: list[tuple[str, Any]] = []
    start = time.perf_counter()
    for k in range(size):
        args = [job_.shared[p] if p in job_.shared else entry(columns[p], k) for p in range(job_.arity)]
        try:
            outcomes.append((GAVE, function(*args)))
        except (Exception, SystemExit) as error:
            outcomes.append((RAISED, sendable(error, job_.program)))
            if stop:
                break
    seconds = time.perf_counter() - start
    dumps = importlib.import_module(job_.pickler).dumps
    try:
        return dumps(Answer(outcomes, seconds))
    except Exception:
        return dumps(Answer([one_sendable(outcome, dumps) for outcome in outcomes], seconds))


def entry(column, k):
    """Example k of a column."""
    along_axis, values = column
    return tree_map(lambda leaf: leaf[k], values) if along_axis else values[k]


def job_of(content: Any) -> tuple[Callable[..., Any], Job]:
    """(function, Job) of a pickled Job or a path, made once in a process."""
    key = content if isinstance(content, str) else hashlib.sha256(content).hexdigest()
    with _lock:                         # threads of one process wait for the first that makes it
        if key in _made:
            _made.move_to_end(key)
            return _made[key]
        job = pickle.loads(Path(content).read_bytes() if isinstance(content, str) else content)
        if job.version != __version__:
            raise RuntimeError(f"the worker has Gradscribe {__version__}, and the caller {job.version}")
        if os.getpid() != job.home and os.getpid() not in _seeded:
            np.random.seed()            # a forked process has its parent's state, and would draw what others draw
            random.seed()
            _seeded[:] = [os.getpid()]
        if job.program.machine is None:
            keep(job.shared)
        _made[key] = function_of(job.program), job
        while len(_made) > KEPT:
            _made.popitem(last=False)
        return _made[key]


def keep(value: Any) -> None:
    """Makes the arrays that all examples share read-only: what one example wrote, the next one would read."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            keep(part)


def as_users(found: traceback.TracebackException | None, program: Any) -> None:
    """Gives the lines of a program's text in a traceback the places that they have in the user's files."""
    if found is None:
        return
    for k, frame in enumerate(found.stack):
        place = (program.places or {}).get(frame.lineno)
        if place is not None and f"{frame.filename[:-1]} ".startswith(f"<gradscribe {program.label} "):
            file, line, name, text = place
            found.stack[k] = traceback.FrameSummary(file, line, name, line=text)
    as_users(found.__cause__, program)
    as_users(found.__context__, program)


def sendable(error: BaseException, program: Any) -> BaseException:
    """An exception that can be pickled, with the worker's traceback as a note."""
    found = traceback.TracebackException.from_exception(error)
    del found.stack[0]                  # of this file
    as_users(found, program)
    told = "".join(found.format()).rstrip()
    try:
        sent = pickle.loads(pickle.dumps(error))
        if type(sent) is type(error):
            sent.add_note(f"in the worker:\n{told}")
            return sent
    except Exception:                   # whatever a class of the user's does
        pass
    sent = RuntimeError(f"{type(error).__name__}: {error}")
    sent.add_note(f"in the worker:\n{told}")
    return sent


def one_sendable(outcome, dumps):
    """An outcome whose result can be pickled, or the error that says why not."""
    try:
        dumps(outcome)
        return outcome
    except Exception as error:
        what = type(outcome[1]).__name__
        return RAISED, TypeError(f"its result, a {what}, cannot be sent to the caller: {error}")
