"""NCCL that is not there: what CuPy's module of it is for devices in the host's memory (loopback.py).

Calls take addresses, counts, numbers of dtypes and operations, and a stream.  What is given on a stream other than the
usual one is done when that one is waited for.  Sums are taken from the last rank to the first, and extremes pass over
NaN, as NCCL's do.  Ranks are threads that meet, or processes that MPI has meet.
"""
import itertools
import threading
import types

import ml_dtypes
import numpy as np
from device.loopback import CUPY, STREAMS, array_at

DTYPES = {"INT8": np.int8, "UINT8": np.uint8, "INT32": np.int32, "UINT32": np.uint32, "INT64": np.int64,
          "UINT64": np.uint64, "FLOAT16": np.float16, "FLOAT32": np.float32, "FLOAT64": np.float64,
          "BFLOAT16": ml_dtypes.bfloat16}
OPERATIONS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.fmax, "MIN": np.fmin}
PATIENCE = 20.0                         # seconds until a rank that waits for ever is an error of the test


class NcclError(RuntimeError):
    pass


class Threads:
    """How threads meet."""

    def __init__(self, size):
        self.size, self.condition, self.aborted = size, threading.Condition(), False
        self.given, self.found, self.turn, self.sent = {}, None, 0, {}

    def until(self, there):
        if not self.condition.wait_for(lambda: self.aborted or there(), PATIENCE):
            raise AssertionError("a rank waits for ever")
        if self.aborted:
            raise NcclError("NCCL_ERROR_INTERNAL_ERROR: aborted")

    def all(self, rank, value):
        """The values of all."""
        with self.condition:
            turn = self.turn
            self.given[rank] = value
            if len(self.given) == self.size:
                self.found, self.given = [self.given[k] for k in range(self.size)], {}
                self.turn += 1
                self.condition.notify_all()
            self.until(lambda: self.turn != turn)
            return self.found

    def send(self, source, goal, data):
        with self.condition:
            self.sent.setdefault((source, goal), []).append(data)
            self.condition.notify_all()

    def receive(self, source, goal):
        with self.condition:
            self.until(lambda: self.sent.get((source, goal)))
            return self.sent[source, goal].pop(0)

    def abort(self):
        with self.condition:
            self.aborted = True
            self.condition.notify_all()


class Processes:
    """How processes meet, by MPI."""

    def __init__(self, comm):
        self.comm, self.aborted, self.waits = comm, False, []

    def all(self, rank, value):
        return self.comm.allgather(value)

    def send(self, source, goal, data):
        self.waits.append(self.comm.isend(data, goal))

    def receive(self, source, goal):
        return self.comm.recv(source=source)

    def abort(self):
        self.aborted = True


class NcclCommunicator:
    def __init__(self, size, name, rank):
        assert isinstance(name, bytes) and 0 <= rank < size
        with _made:
            meeting = NAMED.setdefault(name, None) or MEETINGS[-1](size)
            NAMED[name] = meeting
        self.begin(size, rank, CUPY.current, meeting)
        meeting.all(rank, None)

    def begin(self, size, rank, device, meeting):
        self.ranks, self.rank, self.device, self.meeting, self.ended = size, rank, device, meeting, False
        LIVE.add(self)

    @staticmethod
    def initAll(devices):
        if len(set(devices)) < len(devices):
            raise NcclError("NCCL_ERROR_INVALID_USAGE: invalid usage")
        made, meeting = [], Threads(len(devices))
        for rank, number in enumerate(devices):
            made.append(NcclCommunicator.__new__(NcclCommunicator))
            made[-1].begin(len(devices), rank, number, meeting)
        return made

    def size(self):
        return self.ranks

    def rank_id(self):
        return self.rank

    def device_id(self):
        return self.device

    def check_async_error(self):
        self.usable()

    def abort(self):
        self.ended = True
        LIVE.discard(self)
        self.meeting.abort()

    destroy = abort

    def usable(self):
        if self.ended:
            raise NcclError("NCCL_ERROR_INVALID_ARGUMENT: invalid argument")

    def do(self, stream, name, step):
        """Now, at the end of a group, or when a stream is waited for."""
        self.usable()
        assert CUPY.current == self.device
        CALLS.append((self.rank, name))
        if stream != 0:
            STREAMS[stream].waiting.append(step)
        elif getattr(_local, "group", None) is not None:
            _local.group.append((name, step))
        else:
            step()

    def allReduce(self, given, out, count, dtype, operation, stream):
        def step():
            x, y = at(given, count, dtype), at(out, count, dtype)
            y[...] = reduced(self.meeting.all(self.rank, x.copy()), operation)
        self.do(stream, "allReduce", step)

    def allGather(self, given, out, count, dtype, stream):
        def step():
            found = self.meeting.all(self.rank, at(given, count, dtype).copy())
            at(out, count * self.ranks, dtype)[...] = np.concatenate(found)
        self.do(stream, "allGather", step)

    def reduceScatter(self, given, out, count, dtype, operation, stream):
        def step():
            found = self.meeting.all(self.rank, at(given, count * self.ranks, dtype).copy())
            mine = slice(count * self.rank, count * (self.rank + 1))
            at(out, count, dtype)[...] = reduced([x[mine] for x in found], operation)
        self.do(stream, "reduceScatter", step)

    def send(self, given, count, dtype, peer, stream):
        assert 0 <= peer < self.ranks
        self.do(stream, "send", lambda: self.meeting.send(self.rank, peer, at(given, count, dtype).copy()))

    def recv(self, out, count, dtype, peer, stream):
        def step():
            at(out, count, dtype)[...] = self.meeting.receive(peer, self.rank)
        self.do(stream, "recv", step)


def at(address, count, dtype):
    kind = np.dtype(list(DTYPES.values())[dtype])
    return array_at(address, (count,), (kind.itemsize,), kind)


def reduced(found, operation):
    apply, total = list(OPERATIONS.values())[operation], found[-1].copy()
    for x in found[-2::-1]:
        total = apply(total, x)
    return total


def group_start():
    assert getattr(_local, "group", None) is None
    _local.group = []


def group_end():
    """What is sent leaves before anything is waited for."""
    steps, _local.group = _local.group, None
    for _, step in sorted(steps, key=lambda s: s[0] == "recv"):
        step()


_local, _made, _numbers = threading.local(), threading.Lock(), itertools.count()
NAMED: dict = {}                        # meetings by unique id
MEETINGS: list = [Threads]              # the last makes them
CALLS: list = []                        # (rank, name)
LIVE: set = set()                       # communicators
NCCL = types.ModuleType("cupy.cuda.nccl")
vars(NCCL).update({f"NCCL_{name}": k for names in (DTYPES, OPERATIONS) for k, name in enumerate(names)}, available=True,
                  NcclCommunicator=NcclCommunicator, NcclError=NcclError, groupStart=group_start, groupEnd=group_end,
                  get_unique_id=lambda: f"{next(_numbers):0128}".encode())
