# SPDX-License-Identifier: Apache-2.0
"""The threads of this process as the devices of an axis.

A *team* is the shared state of its threads, which synchronise at each collective: each thread deposits its value; for
small arrays the last one to arrive computes the result, for large arrays each computes a part.  Sums are taken in the
order of ranks, so that results are reproducible bit for bit.  If a thread fails or calls another collective than the
others, all get an error.
"""
import math
import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from gradscribe.runtime.groups import LOCAL, Lost

LARGE = 1 << 17                         # bytes from which on the threads share the work of a sum
PATIENCE = 2.0                          # seconds for the others to end after one has failed
OPERATORS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Team:
    """The threads of one axis; `deadline`: the seconds that one waits for the others, or None for no limit."""

    def __init__(self, name, size, deadline=None):
        self.name, self.size, self.deadline = name, size, deadline
        self.guard, self.gates = threading.Lock(), [threading.Lock() for _ in range(size)]
        for gate in self.gates:
            gate.acquire()
        self.given, self.agreed, self.waiting = [None] * size, [], {}
        self.ended, self.failure, self.look = set(), None, None

    def member(self, rank):
        return Member(self, rank)

    def meet(self, rank, what, value, act=None):
        """Wait for the values of all threads, and return them; the last thread to arrive compares the operations and
        runs act(values).
        """
        with self.guard:
            if self.look is not None:
                self.ended.update(self.look())
            if self.failure is not None:
                raise self.news()
            self.given[rank] = value
            self.waiting[rank] = what
            last = len(self.waiting) == self.size
            if not last and self.ended:
                gone = min(self.ended)
                self.stop(Lost(f"rank {gone} has ended, and rank {rank} waits in {what[0]}", gone))
                raise self.news()
        if last:
            try:
                self.compare()
                if act is not None:
                    act(self.given)
            except BaseException as error:
                with self.guard:
                    self.stop(error if isinstance(error, Lost) else Lost(f"rank {rank}: {error}", rank))
                raise
            found = self.agreed = list(self.given)
            self.waiting = {}
            for k, gate in enumerate(self.gates):
                if k != rank:
                    gate.release()
            return found
        came = self.gates[rank].acquire(timeout=-1 if self.deadline is None else self.deadline)
        if self.failure is not None:
            raise self.news()
        if not came:
            missing = [k for k in range(self.size) if k not in self.waiting]
            if not missing and self.gates[rank].acquire(timeout=self.deadline):     # all arrived at the deadline
                if self.failure is not None:
                    raise self.news()
                return self.agreed
            with self.guard:
                self.stop(Lost(f"rank {', '.join(map(str, missing))} of {self.size} has not come to {what[0]} within "
                               f"{self.deadline:g} s", missing[0] if missing else None))
            raise self.news()
        return self.agreed              # it does not change before this thread arrives again

    def compare(self):
        """Check that all threads call the same operation with arrays of the same shape and dtype."""
        first = self.waiting[0]
        for rank in range(1, self.size):
            if self.waiting[rank] != first:
                raise Lost(f"rank 0 is in {described(first)}, rank {rank} in {described(self.waiting[rank])}", rank)

    def stop(self, error):
        """Raise an error in all threads that wait or arrive later."""
        if self.failure is None:
            self.failure = error
            for gate in self.gates:
                if gate.locked():
                    gate.release()

    def leave(self, rank):
        """Report that a thread has reached the end of its program."""
        with self.guard:
            self.ended.add(rank)
            if self.waiting and self.failure is None:
                other = min(self.waiting)
                self.stop(Lost(f"rank {rank} has ended, and rank {other} waits in {self.waiting[other][0]}", rank))

    def news(self):
        return Lost(str(self.failure), getattr(self.failure, "rank", None))


def described(what):
    name, shape, dtype = what
    return f"{name} with {dtype}[{', '.join(map(str, shape))}]"


class Member:
    """One thread's view of a team: a group (groups.py)."""

    def __init__(self, team, rank):
        self.team, self.rank, self.size, self.name = team, rank, team.size, team.name

    def reduce(self, x, operation, label, out=None):
        """The sum, maximum or minimum of all x, entry by entry, in the order of ranks."""
        out = np.empty_like(x) if out is None else out
        what, apply = (label, x.shape, x.dtype), OPERATORS[operation]
        if x.nbytes < LARGE or self.size == 1:
            self.team.meet(self.rank, what, (x, out), lambda given: _reduced(given, apply))
            return out
        flat = np.ascontiguousarray(x).reshape(-1)
        whole = out if out.flags.c_contiguous else np.empty_like(flat)
        given = self.team.meet(self.rank, what, (flat, whole.reshape(-1)))
        self.part(given, apply)
        self.team.meet(self.rank, (f"the end of {label}", x.shape, x.dtype), None)
        if whole is not out:
            out[...] = whole.reshape(x.shape)
        return out

    def reduce_all(self, arrays, outs, operation, label):
        """Several sums in one synchronisation; `outs` may be the arrays themselves."""
        what = label, tuple(x.shape for x in arrays), tuple(x.dtype for x in arrays)
        apply, large = OPERATORS[operation], sum(x.nbytes for x in arrays) >= LARGE and self.size > 1
        if not large:
            self.team.meet(self.rank, what, (arrays, outs), lambda given: _all_reduced(given, apply))
            return
        if any(x is out for x, out in zip(arrays, outs)):
            arrays = [x.copy() for x in arrays]
        given = self.team.meet(self.rank, what, (arrays, outs))
        for k in range(len(arrays)):
            each = [(np.ascontiguousarray(xs[k]).reshape(-1), ys[k].reshape(-1)) for xs, ys in given]
            self.part(each, apply)
        self.team.meet(self.rank, (f"the end of {label}", (), None), None)

    def part(self, given, apply):
        """Compute this thread's part of the entries of a sum."""
        count = len(given[0][0])
        lo, hi = (count * k // self.size for k in (self.rank, self.rank + 1))
        mine = given[self.rank][1][lo:hi]
        apply(given[0][0][lo:hi], given[1][0][lo:hi], out=mine)
        for other, _ in given[2:]:
            apply(mine, other[lo:hi], out=mine)
        for k, (_, there) in enumerate(given):
            if k != self.rank:
                there[lo:hi] = mine

    def start(self, x, label, out):
        """Start a sum.  Threads send nothing here, and synchronise in `done`."""
        np.copyto(out, x)

    def done(self, out, label):
        """Wait for the sum that was started into `out`."""
        self.reduce(out.copy(), "sum", label, out)

    def gather(self, x, label):
        """The x of all threads, stacked along a new first axis."""
        found = self.shared(x, label)
        out = np.stack(found)
        self.leave(label)
        return out

    def scatter(self, parts, label):
        """The sum over all threads of their parts[rank]: a reduce-scatter."""
        found = self.shared(parts, label)
        out = found[0][self.rank].copy()
        for other in found[1:]:
            out += other[self.rank]
        self.leave(label)
        return out

    def exchange(self, parts, label):
        """The parts of all threads for this one, along the first axis: an all-to-all."""
        out = np.stack([other[self.rank] for other in self.shared(parts, label)])
        self.leave(label)
        return out

    def permute(self, x, pairs, label):
        """The x of the rank that sends to this one; zeros if none does."""
        found = self.shared(x, f"{label} with {pairs}")
        sources = [a for a, b in pairs if b == self.rank]
        out = found[sources[0]].copy() if sources else np.zeros_like(x)
        self.leave(label)
        return out

    def shared(self, x, label):
        """The values of all threads; no thread continues after `leave` before all have called it."""
        return self.team.meet(self.rank, (label, x.shape, x.dtype), x)

    def leave(self, label):
        self.team.meet(self.rank, (f"the end of {label}", (), None), None)


def _reduced(given, apply):
    total = given[0][1]
    np.copyto(total, given[0][0])
    for x, _ in given[1:]:
        apply(total, x, out=total)
    for _, out in given[1:]:
        np.copyto(out, total)


def _all_reduced(given, apply):
    for k in range(len(given[0][0])):
        _reduced([(xs[k], ys[k]) for xs, ys in given], apply)


class Grid:
    """The teams of threads on a mesh of one or several axes, in row-major order."""

    def __init__(self, names, shape, deadline=None):
        self.names, self.shape, self.size = tuple(names), tuple(shape), int(np.prod(shape))
        self.own, self.teams = [{} for _ in range(self.size)], []
        places = np.arange(self.size).reshape(self.shape)
        for k, name in enumerate(self.names):
            for line in np.moveaxis(places, k, -1).reshape(-1, self.shape[k]).tolist():
                team = Team(name, len(line), deadline)
                self.teams.append(team)
                for index, rank in enumerate(line):
                    self.own[rank][name] = team.member(index)

    @property
    def name(self):
        return self.names[0] if len(self.names) == 1 else self.names

    def members(self, rank):
        """The groups of one thread, by axis name."""
        return self.own[rank]

    def look_in(self, look: Callable[[], Sequence[int]]) -> None:
        """Set how to find threads that end without calling `leave`: look() returns their ranks, which then leave."""
        (self.teams[0].look,) = [look] * len(self.teams)

    def failed(self, rank, error):
        """Report that a thread has ended with an exception, to all threads on any axis."""
        for team in self.teams:
            with team.guard:
                team.stop(error if isinstance(error, Lost) else Lost(
                    f"rank {rank} of {self.size}: {type(error).__name__}: {error}", rank))

    def leave(self, rank):
        """Report that a thread has reached the end of its program."""
        for member in self.own[rank].values():
            member.team.leave(member.rank)

    @property
    def troubled(self):
        return any(team.failure is not None for team in self.teams)

    @property
    def ended(self):
        return any(team.ended for team in self.teams)


# --- the threads ------------------------------------------------------------------------------------------------------

class Worker(threading.Thread):
    """A thread that waits for work; `done` is set when it has finished a piece.

    It waits on a Python lock, or in codegen/launching.py: then it also runs compiled programs, as the member of the
    groups that it `serves`, with settle() for programs that end in Python.
    """

    def __init__(self, number):
        super().__init__(name=f"gradscribe device {number}", daemon=True)
        self.go, self.done, self.work = threading.Lock(), threading.Lock(), None
        self.go.acquire()
        self.done.acquire()
        self.rest = self.mail = None
        self.wake, self.bound = self.go.release, {}
        self.serves = self.settle = None
        self.start()

    def run(self):
        LOCAL.axes = self.bound
        while True:
            if self.rest is None:
                self.go.acquire()
            else:
                self.rest()
            work, self.work = self.work, None
            if work is not None:
                work()
                del work
                self.done.release()

    def begin(self, work):
        self.serve({}, None)
        self.work = work
        self.wake()

    def waits_in(self, mail, rest: Callable[[], None], wake: Callable[[], None]) -> None:
        """Have it wait in rest(), which wake() ends; mail: memory that these use."""
        before, self.mail, self.rest, self.wake = self.wake, mail, rest, wake
        before()

    def serve(self, members, settle):
        """Set its groups, and the function that ends programs, for programs that it runs while it waits."""
        self.serves, self.settle = members, settle
        self.bound.clear()
        self.bound.update(members)


_idle: list[Worker] = []
_lock = threading.Lock()
_numbers = iter(range(1 << 30))
_running = [0]                          # the number of threads of calls in progress


def _after_fork():
    """Forget the threads in a forked child, which has only one."""
    global _lock
    _lock, _running[0] = threading.Lock(), 0
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def borrowed(count: int) -> list[Worker]:
    """Waiting threads for a call with one member more than `count`."""
    with _lock:
        _running[0] += count + 1
        return [_idle.pop() if _idle else Worker(next(_numbers)) for _ in range(count)]


def given_back(workers: list[Worker], count: int) -> None:
    """Return the threads at the end of a call that borrowed `count`; those that hang are not returned."""
    with _lock:
        _running[0] -= count + 1
        _idle.extend(reversed(workers))


def running() -> int:
    """The number of threads of calls in progress."""
    return _running[0]


def side_by_side(programs, grid, deadline=None):
    """The results of programs[rank]() for each rank, the first in this thread and the others in pooled threads.

    The first error that is not a consequence of another one is raised, with the rank as a note.  A thread that does not
    end soon after another has failed, or within the deadline after another has ended, is abandoned.
    """
    size = len(programs)
    results, errors = [None] * size, [None] * size

    def piece(rank):
        def work():
            try:
                results[rank] = programs[rank]()
                grid.leave(rank)
            except BaseException as error:
                errors[rank] = error
                grid.failed(rank, error)
        return work

    workers, lost = borrowed(size - 1), range(1, size)
    try:
        for rank, worker in enumerate(workers, 1):
            worker.begin(piece(rank))
        piece(0)()
        lost = waited([lambda seconds, w=w: w.done.acquire(timeout=seconds) for w in workers], grid, deadline)
    finally:
        given_back([w for rank, w in enumerate(workers, 1) if rank not in lost], size - 1)
    return concluded(results, errors, lost, grid, deadline)


def waited(waits: Sequence[Callable[[float], bool]], grid: Grid, deadline: float | None) -> list[int]:
    """The ranks, from 1 on, that do not end in time; waits: functions that wait some seconds for the end of each."""
    lost, limit = [], None
    for rank, wait in enumerate(waits, 1):
        while not wait(0.05 if grid.troubled else 0.2):
            if grid.troubled:           # threads that still run reach a collective or their end, or hang
                limit = min(limit or math.inf, time.monotonic() + min(PATIENCE, deadline or PATIENCE))
            elif deadline is not None and grid.ended:
                limit = limit or time.monotonic() + deadline
            if limit is not None and time.monotonic() > limit:
                lost.append(rank)
                break
    return lost


def concluded(results: list, errors: list, lost: Sequence[int], grid: Grid, deadline: float | None) -> list:
    """The results of all, or the error that is not a consequence of another one."""
    size = len(results)
    if lost and not any(errors):
        raise Lost(f"rank {lost[0]} of {size} has not ended within {deadline:g} s of the others", lost[0])
    first = next((k for k, e in enumerate(errors) if e is not None and not isinstance(e, Lost)), None)
    if first is not None:
        errors[first].add_note(f"raised on rank {first} of {size} of the axis {grid.name!r}")
        raise errors[first]
    for error in errors:
        if error is not None:
            raise error
    return results
