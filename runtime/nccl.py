# SPDX-License-Identifier: Apache-2.0
"""GPUs as the devices of an axis: NVIDIA's collective library NCCL, by CuPy.

A GPU's host thread, or process, first agrees with the others that all call the same operation, as in teams.py or over
MPI; then each enqueues its NCCL call on the current stream and continues.  So a device that has failed or is late is
noticed before NCCL waits for it.  If a device fails later, the communicators are aborted, which ends all waits.

Data that are only moved are sent as bytes, whatever the dtype.  Sums are NCCL's if it has the dtype, with complex
numbers as pairs; its order depends on the number of devices and their connections, and is the same in every run on
those.  Sums of other dtypes, and extremes of floats, for which NCCL ignores NaN, are computed in the order of ranks
after a gather.

Source: NCCL user guide, https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html; CuPy's reference of
cupy.cuda.nccl.
"""
import importlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradscribe.runtime.groups import Lost
from gradscribe.runtime.teams import PATIENCE

SUMMED = {"b": "INT8", "B": "UINT8", "i": "INT32", "I": "UINT32", "l": "INT64", "L": "UINT64", "q": "INT64",
          "Q": "UINT64", "e": "FLOAT16", "E": "BFLOAT16", "f": "FLOAT32", "d": "FLOAT64", "F": "FLOAT32",
          "D": "FLOAT64"}
OPERATORS = {"sum": "add", "max": "maximum", "min": "minimum"}
SPIN, PAUSE = 200e-6, 50e-6             # seconds of polling a stream without a pause, and of each pause after that
_cliques: dict[tuple, "Clique"] = {}
_finding = threading.Lock()


def library() -> Any:
    """CuPy's NCCL module; None if it is not installed."""
    try:
        found = importlib.import_module("cupy.cuda.nccl")
    except ImportError:
        return None
    return found if found.available else None


def counted_as(dtype: np.dtype, operation: str) -> tuple[str, int] | None:
    """(name of NCCL's dtype for a reduction, number of these in an entry); None if NCCL has none.

    >>> counted_as(np.dtype(complex), "sum"), counted_as(np.dtype(bool), "max"), counted_as(np.dtype(float), "max")
    (('FLOAT64', 2), ('UINT8', 1), None)
    """
    if dtype.kind in "fcV" and operation != "sum":
        return None
    letter = "E" if dtype.name == "bfloat16" else "B" if dtype.kind == "b" and operation != "sum" else dtype.char
    return (SUMMED[letter], 1 + (dtype.kind == "c")) if letter in SUMMED else None


class Gpus:
    """One GPU's view of the GPUs of an axis: a group (groups.py).

    agree(label, shape, dtype) returns when all GPUs have come to that operation; news(): a Lost if another has failed,
    else None.
    """

    def __init__(self, communicator: Any, rank: int, size: int, name: Any, agree: Callable, news: Callable):
        self.communicator, self.rank, self.size, self.name = communicator, rank, size, name
        self.agree, self.news, self.nccl = agree, news, library()
        self.cp = importlib.import_module("cupy")
        self.device = communicator.device_id()
        self.way: Any = None            # the stream for non-blocking sums
        self.travelling: dict[int, tuple] = {}

    @contextmanager
    def asked(self):
        """A context that replaces NCCL's errors after another device has failed by that failure."""
        try:
            yield self.cp.cuda.get_current_stream().ptr
        except RuntimeError as error:
            lost = None if isinstance(error, Lost) else self.news()
            if lost is None:
                raise
            raise lost from error

    def by_rows(self, x):
        """A row-major array; ascontiguousarray would give a scalar an axis."""
        return self.cp.asarray(x, order="C")

    @contextmanager
    def at_once(self):
        """A context that groups NCCL calls into one."""
        self.nccl.groupStart()
        try:
            yield
        finally:
            self.nccl.groupEnd()

    def reduce(self, x, operation, label, out=None):
        """The sum, maximum or minimum of all x, entry by entry."""
        self.agree(label, x.shape, x.dtype)
        out = self.cp.empty_like(x, order="C") if out is None else out
        with self.asked() as stream:
            self.put_together(x, operation, out, stream)
        return out

    def reduce_all(self, arrays, outs, operation, label):
        """Several sums in one agreement and one NCCL group; `outs` may be the arrays themselves."""
        self.agree(label, tuple(x.shape for x in arrays), tuple(x.dtype for x in arrays))
        at_once = [counted_as(x.dtype, operation) is not None for x in arrays]
        with self.asked() as stream:
            given = [self.by_rows(x) for x in arrays]      # copies are made before the grouped call
            with self.at_once():
                for x, out, how in zip(given, outs, at_once):
                    if how:
                        self.put_together(x, operation, out, stream)
            for x, out, how in zip(given, outs, at_once):
                if not how:
                    self.put_together(x, operation, out, stream)

    def put_together(self, x, operation, out, stream):
        """One reduction into a row-major array."""
        kind = counted_as(x.dtype, operation)
        if not x.size:
            return
        if kind is None:
            found, apply = self.gathered(x, stream), getattr(self.cp, OPERATORS[operation])
            self.cp.copyto(out, found[0])
            for other in found[1:]:
                apply(out, other, out=out)
            return
        name, many = kind
        x = self.by_rows(x)
        self.communicator.allReduce(x.data.ptr, out.data.ptr, x.size * many, getattr(self.nccl, f"NCCL_{name}"),
                                    getattr(self.nccl, f"NCCL_{operation.upper()}"), stream)

    def start(self, x, label, out):
        """Start a sum into `out`, on a separate stream."""
        self.agree(label, x.shape, x.dtype)
        cuda = self.cp.cuda
        if self.way is None:
            self.way = cuda.Stream(non_blocking=True)
        self.cp.copyto(out, x)
        self.way.wait_event(cuda.get_current_stream().record())
        with self.asked(), self.way:
            self.put_together(out, "sum", out, self.way.ptr)
            self.travelling[out.data.ptr] = self.way.record(), out

    def done(self, out, label):
        """Make the current stream wait for the sum that was started into `out`."""
        self.cp.cuda.get_current_stream().wait_event(self.travelling.pop(out.data.ptr)[0])

    def gather(self, x, label):
        """The x of all devices, stacked along a new first axis."""
        self.agree(label, x.shape, x.dtype)
        with self.asked() as stream:
            return self.gathered(x, stream)

    def gathered(self, x, stream):
        x = self.by_rows(x)
        out = self.cp.empty((self.size, *x.shape), x.dtype)
        if x.size:
            self.communicator.allGather(x.data.ptr, out.data.ptr, x.nbytes, self.nccl.NCCL_UINT8, stream)
        return out

    def scatter(self, parts, label):
        """The sum over all devices of their parts[rank]: a reduce-scatter."""
        self.agree(label, parts.shape, parts.dtype)
        kind = counted_as(parts.dtype, "sum")
        with self.asked() as stream:
            parts = self.by_rows(parts)
            if kind is None:
                found = self.exchanged(parts, stream)
                out = found[0]
                for other in found[1:]:
                    out = out + other
                return out
            out = self.cp.empty(parts.shape[1:], parts.dtype)
            if out.size:
                self.communicator.reduceScatter(parts.data.ptr, out.data.ptr, out.size * kind[1], getattr(
                    self.nccl, f"NCCL_{kind[0]}"), self.nccl.NCCL_SUM, stream)
            return out

    def exchange(self, parts, label):
        """The parts of all devices for this one, along the first axis: an all-to-all."""
        self.agree(label, parts.shape, parts.dtype)
        with self.asked() as stream:
            return self.exchanged(self.by_rows(parts), stream)

    def exchanged(self, parts, stream):
        out = self.cp.empty(parts.shape, parts.dtype)
        share = parts.nbytes // self.size
        if share:
            with self.at_once():
                for other in range(self.size):
                    self.send(parts.data.ptr + other * share, share, other, stream)
                    self.receive(out.data.ptr + other * share, share, other, stream)
        return out

    def permute(self, x, pairs, label):
        """The x of the device that sends to this one; zeros if none does."""
        self.agree(f"{label} with {pairs}", x.shape, x.dtype)
        with self.asked() as stream:
            x = self.by_rows(x)
            out = self.cp.zeros(x.shape, x.dtype)
            if x.size:
                with self.at_once():
                    for source, goal in pairs:
                        if source == self.rank:
                            self.send(x.data.ptr, x.nbytes, goal, stream)
                        if goal == self.rank:
                            self.receive(out.data.ptr, x.nbytes, source, stream)
            return out

    def send(self, address, size, goal, stream):
        self.communicator.send(address, size, self.nccl.NCCL_UINT8, goal, stream)

    def receive(self, address, size, source, stream):
        self.communicator.recv(address, size, self.nccl.NCCL_UINT8, source, stream)

    @property
    def idle(self):
        """Whether the device has finished its work; raises errors that NCCL has reported."""
        with self.asked() as _:
            self.communicator.check_async_error()
            return self.cp.cuda.get_current_stream().done


# --- the GPUs of one process ------------------------------------------------------------------------------------------

class Clique:
    """The communicators of some GPUs of this process, in the order of ranks.

    Only one call at a time uses them: two calls whose sums are interleaved differently on each device would deadlock.
    """

    def __init__(self, devices: Sequence[int]):
        self.devices, self.call = tuple(devices), threading.Lock()
        self.guard, self.live = threading.Lock(), dict(enumerate(library().NcclCommunicator.initAll(list(devices))))

    def member(self, member: Any) -> Gpus:
        """A GPU's group, from a thread's group (teams.Member)."""
        team, rank = member.team, member.rank

        def agree(label, shape, dtype):
            team.meet(rank, (label, shape, dtype), None)

        def news():
            return team.news() if team.failure is not None else None
        return Gpus(self.live[rank], rank, team.size, team.name, agree, news)

    def abort(self, rank: int) -> None:
        """Abort a GPU's communication, and whatever waits for it."""
        with self.guard:
            communicator = self.live.pop(rank, None)
        forget(self)
        if communicator is not None:
            communicator.abort()


def clique_of(devices: Sequence[int]) -> Clique:
    """The communicators of these GPUs, made at the first call."""
    key = tuple(devices)
    with _finding:
        if key not in _cliques:
            _cliques[key] = Clique(key)
        return _cliques[key]


def forget(clique: Clique) -> None:
    """Have the next call make new communicators."""
    with _finding:
        if _cliques.get(clique.devices) is clique:
            del _cliques[clique.devices]


def run_by(program: Callable, group: Gpus, clique: Clique, grid: Any, deadline: float | None) -> Any:
    """One thread's work: run program() and wait for its GPU; a failure is reported to the others."""
    try:
        result = program()
        settle(group, grid, deadline)
        return result
    except BaseException as error:
        grid.failed(group.rank, error)
        clique.abort(group.rank)
        limit = time.monotonic() + PATIENCE         # the others learn of it at their next collective
        while not clique.live.keys() <= grid.teams[0].ended and time.monotonic() < limit:
            time.sleep(PAUSE)
        for rank in list(clique.live):              # or they wait in their streams, which this ends
            clique.abort(rank)
        raise


def settle(group: Gpus, grid: Any, deadline: float | None) -> None:
    """Wait until a GPU has finished; raises Lost if another has failed, or ended longer ago than the deadline."""
    start, limit = time.monotonic(), None
    while not group.idle:
        lost, now = group.news(), time.monotonic()
        if lost is not None:
            raise lost
        if deadline is not None and grid.ended:
            limit = limit or now + deadline
            if now > limit:
                raise Lost(f"rank {group.rank} of {group.size} has not ended within {deadline:g} s of the others",
                           group.rank)
        time.sleep(0 if now - start < SPIN else PAUSE)
