# SPDX-License-Identifier: Apache-2.0
"""The processes of an MPI run as the devices of an axis, by mpi4py.

Before each collective, all processes of the axis agree, by a small non-blocking reduction, that they call the same
operation with arrays of the same shape and dtype.  In it a process learns that another has failed, has ended, was
killed or is late: a process that fails takes part and says so.  The collective itself then blocks, at MPI's own speed.
"""
import hashlib
import os
import socket
import time

import numpy as np

from gradscribe.runtime.groups import Lost

FAILED = -1                             # sent instead of a hash by a process that has failed
SPIN, YIELD = 100e-6, 5e-3              # seconds of polling without a pause, then with sched_yield; sleep after that
BUCKET = 1 << 20                        # sums share a message up to this number of bytes
LOOK = 0.2                              # seconds between checks that the other processes are alive


class World:
    """All processes of a run; `deadline`: the seconds that one waits for the others, or None for no limit."""

    def __init__(self, deadline=None):
        import mpi4py
        mpi4py.rc.finalize = False      # it would wait for a lost process at the end
        from mpi4py import MPI
        self.mpi, self.deadline, self.broken = MPI, deadline, None
        self.comm, self.roll = MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        self.processes = self.comm.allgather((socket.gethostname(), os.getpid()))
        self.axes = {}                  # groups of processes by axis, for each mesh
        self.whole = Ranks(self, Line(self, self.comm), "world", list(range(self.size)))

    def group(self, name):
        """All processes as the axis of this name."""
        return Ranks(self, self.whole.line, name, self.whole.members)

    def mesh(self, names, shape):
        """Groups by axis name, and by tuples of names in the order of the mesh."""
        key = tuple(names), tuple(shape)
        if key not in self.axes:
            if int(np.prod(shape)) != self.size:
                raise ValueError(f"a mesh of {' by '.join(map(str, shape))} needs {int(np.prod(shape))} processes, "
                                 f"and there are {self.size}")
            grid = self.comm.Create_cart(shape, reorder=False)
            places, made = np.arange(self.size).reshape(shape), {}
            own = grid.Get_coords(self.rank)
            for k, name in enumerate(names):
                members = places[tuple(slice(None) if j == k else own[j] for j in range(len(shape)))]
                line = Line(self, grid.Sub([j == k for j in range(len(shape))]))
                made[name] = Ranks(self, line, name, members.tolist())
            self.axes[key] = made
        return self.axes[key]

    # agreement with the other processes

    def agree(self, group, what):
        """Wait until all processes of the group have come to the same operation; raise Lost if they do not."""
        if self.broken is not None:
            raise Lost(self.broken[0], self.broken[1])
        group.line.settle(group)
        request, found = self.asked(group, what)
        self.settled(group, what, request, found)

    def asked(self, group, what):
        """Start an agreement."""
        number = _number(what)
        given, found = np.array([number, -number], np.int64), np.empty(2, np.int64)
        return group.comm.Iallreduce(given, found, self.mpi.MAX), found

    def settled(self, group, what, request, found):
        """Wait for the result of an agreement."""
        self.wait(group, request, what)
        if found[0] != -found[1]:
            self.differ(group, what)

    def differ(self, group, what, failed=False):
        """Raise Lost with the operations that the processes came to, gathered from all."""
        text = f"!{what}" if failed else what
        lengths, own = np.empty(group.size, np.int64), np.array([len(text.encode())], np.int64)
        self.wait(group, group.comm.Iallgather(own, lengths), "a failure")
        width = int(lengths.max())
        line = np.frombuffer(text.encode().ljust(width), np.uint8).copy()
        lines = np.empty((group.size, width), np.uint8)
        self.wait(group, group.comm.Iallgather(line, lines), "a failure")
        found = [bytes(one).decode(errors="replace")[:int(n)] for one, n in zip(lines, lengths)]
        for place, said in enumerate(found):
            if said.startswith("!"):
                rank = group.members[place]
                self.end(f"rank {rank} of {self.size}: {said[1:]}" if said != "!" else f"rank {rank} has ended", rank)
        other = next(k for k, said in enumerate(found) if said != found[0])
        self.end(f"rank {group.members[0]} is in {found[0]}, rank {group.members[other]} in {found[other]}",
                 group.members[other])

    def end(self, message, rank):
        """Raise Lost, now and at every later operation."""
        if self.broken is None:
            self.broken = message, rank
        raise Lost(message, rank)

    def found(self, message, rank):
        """Raise Lost for a failure that only this process may know of, after telling the others."""
        sent = [self.roll.isend((message, rank), k) for k in range(self.size) if k not in (rank, self.rank)]
        limit = time.monotonic() + LOOK / 2
        while not all([request.Test() for request in sent]) and time.monotonic() < limit:
            time.sleep(1e-3)
        self.end(message, rank)

    def wait(self, group, request, what):
        """Wait for a non-blocking request, and check meanwhile that the other processes are alive."""
        if request.Test():
            return
        start = time.monotonic()
        look = start + LOOK
        while not request.Test():
            now = time.monotonic()
            if now - start > YIELD:
                time.sleep(100e-6)
            elif now - start > SPIN:
                os.sched_yield()
            if now > look:
                look = now + LOOK
                self.look(group, what)
            if self.deadline is not None and now - start > self.deadline:
                missing = self.call_the_roll(group)
                self.found(f"rank {', '.join(map(str, missing))} of {self.size} has not come to {what} within "
                           f"{self.deadline:g} s", missing[0] if missing else None)

    def look(self, group, what):
        """Answer roll calls, and raise Lost if another process of this host is gone."""
        self.answer()
        host = self.processes[self.rank][0]
        for rank in group.members:
            there, process = self.processes[rank]
            if there == host and rank != self.rank and not alive(process):
                limit = time.monotonic() + LOOK / 2     # its own message, which has the cause, may be on its way
                while time.monotonic() < limit:
                    self.answer()
                    time.sleep(1e-3)
                self.found(f"rank {rank} of {self.size} (process {process}) is gone; rank {self.rank} was in {what}",
                           rank)

    def answer(self):
        """Answer messages of other processes, and return the ranks that were heard."""
        heard = set()
        while self.roll.Iprobe():
            status = self.mpi.Status()
            asks = self.roll.recv(status=status)
            heard.add(status.source)
            if isinstance(asks, tuple):         # a failure that it has found
                self.end(*asks)
            if asks:
                self.roll.isend(False, status.source)
        return heard

    def call_the_roll(self, group):
        """The processes of the group that do not answer."""
        others = set(group.members) - {self.rank}
        for rank in others:
            self.roll.isend(True, rank)
        limit = time.monotonic() + 5 * LOOK
        while others and time.monotonic() < limit:
            others -= self.answer()
            time.sleep(1e-3)
        return sorted(others)

    def tell(self, reason):
        """Tell the processes that wait, now or later, why this one has ended."""
        if self.broken is not None:
            return
        self.broken = reason or "this process has ended", self.rank
        given = np.array([FAILED, 2**62], np.int64)
        waits = []
        for group in [self.whole, *(g for made in self.axes.values() for g in made.values())]:
            group.line.close(group)
            found = np.empty(2, np.int64)
            waits.append((group, group.comm.Iallreduce(given, found, self.mpi.MAX), found))
        limit = time.monotonic() + min(5.0, self.deadline or 5.0)
        while waits and time.monotonic() < limit:
            for item in list(waits):
                group, request, _ = item
                if request.Test():
                    waits.remove(item)
                    try:
                        self.differ(group, reason, failed=True)
                    except Lost:
                        pass
            time.sleep(1e-3)

    def finish(self):
        """End a run without errors: no process leaves while others wait."""
        if self.broken is None and self.size > 1:
            self.agree(self.whole, "the end of the program")
        if self.broken is None:
            self.mpi.Finalize()


def alive(process):
    """Whether a process of this machine runs."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True
    except OSError:
        return True


_numbers: dict[str, int] = {}


def _number(what):
    number = _numbers.get(what)
    if number is None:
        number = _numbers[what] = int.from_bytes(hashlib.sha256(what.encode()).digest()[:7], "big")
    return number


class Line:
    """A communicator, and the non-blocking sums in flight.

    Agreements use one communicator and sums its duplicate, each in the same order on all processes.  Successive sums
    share a message of up to a mebibyte.  A message is sent once all have agreed on it, and the agreement on the next
    one starts then.
    """

    def __init__(self, world, comm):
        self.world, self.comm, self.data = world, comm, comm.Dup()
        self.open, self.asked, self.sent = [], None, {}

    def start(self, group, x, label, out):
        """Start a sum over the group; small ones wait to share a message."""
        np.copyto(out, x)
        if out.size:
            self.open.append(out)
            if sum(x.nbytes for x in self.open) >= BUCKET:
                self.post(group, label)
        for request in {id(r): r for r, _, _ in self.sent.values()}.values():
            request.Test()              # MPI progresses messages during its calls

    def post(self, group, label):
        """Start the agreement on the sums that wait, after the pending agreement."""
        bucket, self.open = self.open, []
        self.settle(group)
        what = f"{label} with {', '.join(f'{x.dtype}{list(x.shape)}' for x in bucket)}"
        self.asked = what, *self.world.asked(group, what), bucket

    def settle(self, group):
        """Finish the pending agreement, and send its message."""
        if self.asked is not None:
            (what, request, found, bucket), self.asked = self.asked, None
            self.world.settled(group, what, request, found)
            self.leave(bucket)

    def leave(self, bucket):
        """Send the sums of a bucket, one message for each dtype."""
        alike: dict = {}
        for out in bucket:
            alike.setdefault(out.dtype, []).append(out.reshape(-1))
        for flats in alike.values():
            whole = flats[0] if len(flats) == 1 else np.concatenate(flats)
            request, start = self.data.Iallreduce(self.world.mpi.IN_PLACE, _flat(whole), self.world.mpi.SUM), 0
            for flat in flats:
                self.sent[flat.ctypes.data] = request, flat, whole[start:start + flat.size]
                start += flat.size

    def done(self, group, out, label):
        """Wait for a sum, and put its result into `out`."""
        if not out.size:
            return
        if any(x.ctypes.data == out.ctypes.data for x in self.open):
            self.post(group, label)
        self.settle(group)
        request, flat, found = self.sent.pop(out.ctypes.data)
        self.world.wait(group, request, label)
        if flat.ctypes.data != found.ctypes.data:
            flat[...] = found

    def close(self, group):
        """Send the message that all have agreed on, before this process reports a failure."""
        limit = time.monotonic() + LOOK
        while self.asked is not None and time.monotonic() < limit:
            _, request, found, bucket = self.asked
            if request.Test():
                self.asked = None
                if found[0] == -found[1]:
                    self.leave(bucket)
            else:
                time.sleep(1e-3)


class Ranks:
    """The collectives of one process over an axis; the interface is that of teams.Member."""

    def __init__(self, world, line, name, members):
        self.world, self.line, self.comm, self.name, self.members = world, line, line.comm, name, members
        self.rank, self.size = line.comm.rank, line.comm.size

    def ready(self, x, label):
        """Wait until the processes of the group agree on an operation."""
        self.world.agree(self, f"{label} with {x.dtype}[{', '.join(map(str, x.shape))}]")

    def reduce(self, x, operation, label, out=None):
        """The sum, maximum or minimum of all x, entry by entry."""
        self.ready(x, label)
        given = np.asarray(x, order="C")        # ascontiguousarray would give a scalar an axis
        whole = out if out is not None and out.flags.c_contiguous else np.empty_like(given)
        mpi = self.world.mpi
        self.comm.Allreduce(_flat(given), _flat(whole), {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN}[operation])
        if out is not None and whole is not out:
            out[...] = whole
        return whole if out is None else out

    def reduce_all(self, arrays, outs, operation, label):
        """Several sums in one agreement; arrays below a mebibyte share one message for each dtype."""
        world, mpi = self.world, self.world.mpi
        world.agree(self, f"{label} with {', '.join(f'{x.dtype}{list(x.shape)}' for x in arrays)}")
        how = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN}[operation]
        small = {}
        for x, out in zip(arrays, outs):
            if x.nbytes < BUCKET:
                small.setdefault(x.dtype, []).append((x, out))
            else:
                self.comm.Allreduce(mpi.IN_PLACE if x is out else _flat(np.ascontiguousarray(x)), _flat(out), how)
        for pairs in small.values():
            bucket = np.concatenate([x.reshape(-1) for x, _ in pairs])
            self.comm.Allreduce(mpi.IN_PLACE, _flat(bucket), how)
            start = 0
            for _, out in pairs:
                out.reshape(-1)[...] = bucket[start:start + out.size]
                start += out.size

    def start(self, x, label, out):
        """Start a non-blocking sum into `out`."""
        self.line.start(self, x, label, out)

    def done(self, out, label):
        """Wait for the sum that was started into `out`."""
        self.line.done(self, out, label)

    def gather(self, x, label):
        """The x of all processes, stacked along a new first axis."""
        self.ready(x, label)
        out = np.empty((self.size, *x.shape), x.dtype)
        self.comm.Allgather(_flat(np.ascontiguousarray(x)), _flat(out))
        return out

    def scatter(self, parts, label):
        """The sum over all processes of their parts[rank]: a reduce-scatter."""
        self.ready(parts, label)
        out = np.empty(parts.shape[1:], parts.dtype)
        self.comm.Reduce_scatter_block(_flat(np.ascontiguousarray(parts)), _flat(out), self.world.mpi.SUM)
        return out

    def exchange(self, parts, label):
        """The parts of all processes for this one, along the first axis: an all-to-all."""
        self.ready(parts, label)
        out = np.empty_like(parts, order="C")
        self.comm.Alltoall(_flat(np.ascontiguousarray(parts)), _flat(out))
        return out

    def permute(self, x, pairs, label):
        """The x of the process that sends to this one; zeros if none does."""
        self.ready(x, f"{label} with {pairs}")
        x, out = np.ascontiguousarray(x), np.zeros_like(x, order="C")
        waits = [self.comm.Irecv(_flat(out), source) for source, goal in pairs if goal == self.rank]
        waits += [self.comm.Isend(_flat(x), goal) for source, goal in pairs if source == self.rank]
        self.world.mpi.Request.Waitall(waits)
        return out


def _flat(array):
    flat = array.reshape(-1)
    return flat.view(np.uint8) if flat.dtype == bool else flat
