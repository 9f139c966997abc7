# SPDX-License-Identifier: Apache-2.0
"""Threads of this process as the devices of an axis.

A *team* is what its threads share.  They meet at each function over the axis: each lays down what it gives; the last to
come does small work for all, large arrays are done by all together, each a part.  Sums are taken in the order of ranks,
whoever comes first, so that results repeat bit for bit.  Where one fails or goes another way, all are told.
"""
import math
import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from gradscribe.runtime.groups import LOCAL, Lost

LARGE = 1 << 17                         # bytes from which the threads share the work of a sum
PATIENCE = 2.0                          # seconds that the others have to end after one has failed
OPERATORS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Team:
    """The threads of one axis; `deadline`: the seconds that one waits for the others, or None."""

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
        """The values of all, once they are there; the last to come compares what is asked and runs act(values)."""
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
            if not missing and self.gates[rank].acquire(timeout=self.deadline):     # they came while the time ran out
                if self.failure is not None:
                    raise self.news()
                return self.agreed
            with self.guard:
                self.stop(Lost(f"rank {', '.join(map(str, missing))} of {self.size} has not come to {what[0]} within "
                               f"{self.deadline:g} s", missing[0] if missing else None))
            raise self.news()
        return self.agreed              # the next ones do not agree before this thread has come again

    def compare(self):
        """All ask for one thing, of arrays of one shape and dtype."""
        first = self.waiting[0]
        for rank in range(1, self.size):
            if self.waiting[rank] != first:
                raise Lost(f"rank 0 is in {described(first)}, rank {rank} in {described(self.waiting[rank])}", rank)

    def stop(self, error):
        """Everybody who waits, or comes later, gets this."""
        if self.failure is None:
            self.failure = error
            for gate in self.gates:
                if gate.locked():
                    gate.release()

    def leave(self, rank):
        """A thread has come to the end of its program."""
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
    """A team as one of its threads sees it."""

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
        """Several sums in one meeting; `outs` may be the arrays themselves."""
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
        """This thread's share of the entries of a sum, for all."""
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
        """The first half of a sum.  Threads have nothing to send: they meet in the second."""
        np.copyto(out, x)

    def done(self, out, label):
        """The sum that began in `out` is there."""
        self.reduce(out.copy(), "sum", label, out)

    def gather(self, x, label):
        """The x of all, along a new first axis."""
        found = self.shared(x, label)
        out = np.stack(found)
        self.leave(label)
        return out

    def scatter(self, parts, label):
        """The sum of what all have for this thread: parts[rank]."""
        found = self.shared(parts, label)
        out = found[0][self.rank].copy()
        for other in found[1:]:
            out += other[self.rank]
        self.leave(label)
        return out

    def exchange(self, parts, label):
        """What the others have for this thread, along the first axis."""
        out = np.stack([other[self.rank] for other in self.shared(parts, label)])
        self.leave(label)
        return out

    def permute(self, x, pairs, label):
        """The x of the rank that sends to this one; zeros where none does."""
        found = self.shared(x, f"{label} with {pairs}")
        sources = [a for a, b in pairs if b == self.rank]
        out = found[sources[0]].copy() if sources else np.zeros_like(x)
        self.leave(label)
        return out

    def shared(self, x, label):
        """What all have given; nobody goes on before all have called `leave`."""
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
    """The teams of threads that are laid out along one axis or several: the last axis is the fastest."""

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
        """The groups of one thread, by the names of their axes."""
        return self.own[rank]

    def look_in(self, look: Callable[[], Sequence[int]]) -> None:
        """Threads of one axis may come to their ends without a word: look() gives the ranks of those who have, and
        others `leave` from then on.
        """
        (self.teams[0].look,) = [look] * len(self.teams)

    def failed(self, rank, error):
        """A thread has ended with an exception: all are told, whichever axis they wait on."""
        for team in self.teams:
            with team.guard:
                team.stop(error if isinstance(error, Lost) else Lost(
                    f"rank {rank} of {self.size}: {type(error).__name__}: {error}", rank))

    def leave(self, rank):
        """A thread has come to the end of its program."""
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

    It waits on a lock of Python's, or where codegen/launching.py has it wait: then it runs compiled programs as well,
    as the member of the groups that it `serves`, with settle() for those that end in Python.
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
        """From now on it waits in rest(), which wake() ends; mail: memory that these use."""
        before, self.mail, self.rest, self.wake = self.wake, mail, rest, wake
        before()

    def serve(self, members, settle):
        """The groups that it is in, and the end of the programs that it runs, while it waits."""
        self.serves, self.settle = members, settle
        self.bound.clear()
        self.bound.update(members)


_idle: list[Worker] = []
_lock = threading.Lock()
_numbers = iter(range(1 << 30))
_running = [0]                          # the threads of calls that have not ended


def _after_fork():
    """A child has no threads but the one that it began with."""
    global _lock
    _lock, _running[0] = threading.Lock(), 0
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def borrowed(count: int) -> list[Worker]:
    """Threads that wait, for a call of one more than so many members."""
    with _lock:
        _running[0] += count + 1
        return [_idle.pop() if _idle else Worker(next(_numbers)) for _ in range(count)]


def given_back(workers: list[Worker], count: int) -> None:
    """The end of a call for which so many were borrowed; those that hang do not come back."""
    with _lock:
        _running[0] -= count + 1
        _idle.extend(reversed(workers))


def running() -> int:
    """How many threads the calls that have not ended have."""
    return _running[0]


def side_by_side(programs, grid, deadline=None):
    """The results of programs[rank]() for each rank, the first in this thread and the others in threads that are kept.

    The first error that is nobody's consequence is raised, with the rank as a note.  A thread that does not end soon
    after another has failed, or within the deadline after another has ended, is left to itself.
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
    """The ranks, from 1 on, that do not end soon enough; waits: whether each has ended within so many seconds."""
    lost, limit = [], None
    for rank, wait in enumerate(waits, 1):
        while not wait(0.05 if grid.troubled else 0.2):
            if grid.troubled:           # who runs comes to a meeting, or to the end, or hangs
                limit = min(limit or math.inf, time.monotonic() + min(PATIENCE, deadline or PATIENCE))
            elif deadline is not None and grid.ended:
                limit = limit or time.monotonic() + deadline
            if limit is not None and time.monotonic() > limit:
                lost.append(rank)
                break
    return lost


def concluded(results: list, errors: list, lost: Sequence[int], grid: Grid, deadline: float | None) -> list:
    """The results of all, or the error that is nobody's consequence."""
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
