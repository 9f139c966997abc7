# SPDX-License-Identifier: Apache-2.0
"""Threads that run compiled programs side by side without the GIL: how they wait, begin, meet and end.

They share 64-bit words in cache lines.  `runtime/teams.py` defines a meeting, in which the members of a team reduce
their arrays, and implements it in Python.  This module is the short way: it declines whatever is out of the ordinary.
A waiting thread spins for about the time that a wake-up takes, if there is a core for each thread and the last wait was
not longer, and then sleeps on a lock of the system.

A *gate* counts the members that have come to a meeting.  A member that has waited too long closes a gate that is not
full.  Then all take the long way, through Python, which finds out who is missing and who asks for something else.
"""
import functools
import hashlib
import inspect
import sys
import time
from types import FunctionType
from typing import Any

from gradscribe.codegen import cache, shared_memory
from gradscribe.codegen.helpers import addressed
from gradscribe.codegen.shared_memory import (
    LINE,
    add,
    become,
    combine,
    copy,
    exchanged,
    form_of,
    intrinsics,
    member,
    pause,
    put,
    run,
    seen,
    sleep,
    swap,
    wake,
    with_symbols,
    word,
)

# a team: its first line, the gates of even and odd meetings, those of their ends, the line of the thread that launches
SIZE, SPINS, LONG_WAY = 0, 1, 2
GATES, ENDS, CALLER, MEMBERS = 1, 3, 5, 6       # lines; one for each member from MEMBERS on
# a member's line; like a thread's line it begins with the two words that wake its thread
ASLEEP, LOCK, RANK, TEAM, TURN, WHAT, TABLE, PATIENCE, STATE, TASK, DATA, MAIL = range(12)
RUNS, ENDED, DONE = range(3)            # STATE: DONE when its thread is free again
# a thread's line
GO, OWN, SPARE = 2, 3, 4                # its command, its member's line, how often it looks for work before it sleeps
REST, RUN, RETURN = range(3)            # GO
CLOSED = 1 << 32                        # of a gate
FULL = CLOSED - 1
LONG = 20_000                           # microseconds that a thread sleeps in a meeting before it takes the long way
SPINNING = 100e-6                       # seconds that a thread spins: about the time of a wake-up
CHUNK = 512                            # entries that are summed at a time, which stay in the cache
TAKEN = 5                               # words for each array in the table that collectives.py writes
MEET = "gradscribe.meet"


def spin(most):
    """Spins `most` times, to be timed."""
    for _ in range(most):
        pause()
    return most


def rouse(line):
    """Wakes the thread that sleeps on this line."""
    if swap(line + 8 * ASLEEP, 0) == 1:
        wake(word(line, LOCK))


def doze(line, place, enough, most):
    """Sleeps on a line while the word at `place` is below `enough`, until it is roused or `most` microseconds are over
    (-1: no limit); returns whether it was roused or the word is large enough.
    """
    swap(line + 8 * ASLEEP, 1)
    if seen(place) < enough and sleep(word(line, LOCK), most) == 1:
        return True
    if swap(line + 8 * ASLEEP, 0) == 0:         # another thread is waking it just now
        sleep(word(line, LOCK), -1)
        return True
    return seen(place) >= enough


def serve(mail):
    """Waits for programs and runs them; returns 1 when one needs Python, 0 when the thread is recalled."""
    while True:
        spins = word(mail, SPARE)
        go = seen(mail + 8 * GO)
        while go == REST and spins > 0:
            pause()
            spins -= 1
            go = seen(mail + 8 * GO)
        while go == REST:
            doze(mail, mail + 8 * GO, RUN, -1)
            go = seen(mail + 8 * GO)
        own = word(mail, OWN)
        swap(mail + 8 * GO, REST)
        if go == RETURN:
            return 0
        become(own)
        code = run(word(own, TASK), word(own, DATA))
        become(0)
        if code != 0:
            long_way(word(own, TEAM))
            return 1
        swap(own + 8 * STATE, ENDED)
        if seen(word(own, TEAM) + 8 * LONG_WAY) != 0:
            return 1
        finish(own)


def finish(own):
    """Marks the thread of a member as free again."""
    swap(own + 8 * STATE, DONE)
    rouse(word(own, TEAM) + LINE * CALLER)


def recall(mail):
    """Has a waiting thread return to Python."""
    swap(mail + 8 * GO, RETURN)
    rouse(mail)


def as_member(own):
    """Makes this thread a member of a team, or of none (0); returns the member that it was."""
    before = member()
    become(own)
    return before


def long_way(team):
    """Has all members that end from now on return to Python."""
    swap(team + 8 * LONG_WAY, 1)


def launch(team, spare, most):
    """Runs all members, the first in this thread; returns 0 if all have ended, 1 if Python must settle the rest."""
    size = word(team, SIZE)
    for k in range(GATES, CALLER):
        put(team + LINE * k, 0, 0)
    put(team, LONG_WAY, 0)
    for rank in range(size):
        line = team + LINE * (MEMBERS + rank)
        put(line, TURN, 0)
        put(line, STATE, RUNS)
        put(line, PATIENCE, word(team, SPINS))
    for rank in range(1, size):
        line = team + LINE * (MEMBERS + rank)
        mail = word(line, MAIL)
        put(mail, OWN, line)
        put(mail, SPARE, spare)
        swap(mail + 8 * GO, RUN)
        rouse(mail)
    first = team + LINE * MEMBERS
    before = as_member(first)
    code = run(word(first, TASK), word(first, DATA))
    become(before)
    if code != 0:
        return 1
    swap(first + 8 * STATE, DONE)
    if seen(team + 8 * LONG_WAY) != 0:
        return 1
    for rank in range(1, size):
        if not await_member(team, rank, word(team, SPINS), most):
            return 1
    return seen(team + 8 * LONG_WAY)


def await_member(team, rank, spins, most):
    """Waits at most that many microseconds for a member's thread; returns whether it is free."""
    state = team + LINE * (MEMBERS + rank) + 8 * STATE
    while seen(state) != DONE:
        if spins > 0:
            pause()
            spins -= 1
        elif not doze(team + LINE * CALLER, state, DONE, most):
            return seen(state) == DONE
    return True


def meet(site, count, table):
    """Reduces the arrays of a table over the axis; returns 0 if that is done, 1 if it must go the long way."""
    own, operation = member(), site & 7
    if own == 0 or operation == 0:
        return 1
    what = site
    for k in range(count):
        kind, rank, shape = word(table, TAKEN * k), word(table, TAKEN * k + 1), word(table, TAKEN * k + 2)
        if form_of(operation, kind) == 0:
            return 1
        what = mixed(mixed(what, kind), rank)
        for d in range(rank):
            what = mixed(what, word(shape, d))
    team, turn = word(own, TEAM), word(own, TURN) + 1
    size, side = word(team, SIZE), LINE * (turn & 1)
    put(own, TURN, turn)
    put(own, WHAT, what)
    put(own, TABLE, table)
    gate, end = team + LINE * GATES + side, team + LINE * ENDS + side
    last = come(team, own, gate, size)
    if last:                            # all members have left the meeting before this one
        swap(team + LINE * (GATES + 1) - side, 0)
        swap(team + LINE * (ENDS + 1) - side, 0)
    if not passed(team, own, gate, size, True):
        return 1
    for rank in range(size):
        if word(team + LINE * (MEMBERS + rank), WHAT) != what:
            long_way(team)
            return 1
    for k in range(count):
        share(form_of(operation, word(table, TAKEN * k)), team, own, size, k)
    come(team, own, end, size)
    passed(team, own, end, size, False)
    return 0


def mixed(what, more):
    return (what ^ more) * 1099511628211 + (what >> 29)


def come(team, own, gate, size):
    """Counts this member in; returns whether it is the last."""
    last = (add(gate, 1) & FULL) + 1 == size
    if last:
        rouse_all(team, own, size)
    return last


def rouse_all(team, own, size):
    for rank in range(size):
        line = team + LINE * (MEMBERS + rank)
        if line != own:
            rouse(line)


def passed(team, own, gate, size, closes):
    """Waits until all have come; returns False if this member or another one closed the gate."""
    spins = word(own, PATIENCE)
    while True:
        now = seen(gate)
        if now >= size:
            break
        if spins > 0:
            pause()
            spins -= 1
        elif not doze(own, gate, size, LONG) and closes:
            now = seen(gate)
            if now < size and exchanged(gate, now, now | CLOSED):
                rouse_all(team, own, size)
    # after a long wait, spin less the next time
    put(own, PATIENCE, word(team, SPINS) if spins > 0 else word(team, SPINS) >> 3)
    return seen(gate) == size


def share(form, team, own, size, k):
    """Reduces this member's share of the entries of the k-th array for all members, in the order of ranks."""
    rank, table = word(own, RANK), word(own, TABLE)
    which, last, parts, width = form & 255, form >> 8 & 255, form >> 16 & 255, form >> 24
    count = 1
    for d in range(word(table, TAKEN * k + 1)):
        count *= word(word(table, TAKEN * k + 2), d)
    begin, stop = count * rank // size * parts, count * (rank + 1) // size * parts
    while begin < stop:
        many = min(CHUNK, stop - begin)
        out = word(table, TAKEN * k + 4) + begin * width
        for other in range(size):
            x = word(word(team + LINE * (MEMBERS + other), TABLE), TAKEN * k + 3) + begin * width
            if other == 0:
                copy(x, out, many * width)
            else:
                combine(which, x, out, many, size)
        combine(last, out, out, many, size)
        for other in range(size):
            if other != rank:
                copy(out, word(word(team + LINE * (MEMBERS + other), TABLE), TAKEN * k + 4) + begin * width,
                     many * width)
        begin += many


# --- compiled ---------------------------------------------------------------------------------------------------------

INSIDE = (rouse, doze, long_way, as_member, finish, mixed, rouse_all, come, passed, await_member, share)
OUTSIDE = {function.__name__: function for function in (
    spin, serve, finish, recall, launch, long_way, as_member, await_member, meet)}


@functools.cache
def compiled(name: str) -> Any:
    """The machine code of one of OUTSIDE, for 64-bit integers."""
    import numba
    with_symbols()
    function = OUTSIDE[name]
    types = (numba.int64,) * function.__code__.co_argcount
    key = hashlib.sha256("\0".join([cache.stamp(), own_text(), name]).encode()).hexdigest()[:40]
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**options)(FunctionType(function.__code__, space(), name))
    if not cache.load(key, dispatcher, addressed):
        dispatcher.compile(types)
        cache.save(key, dispatcher, types, [])
    dispatcher.disable_compile()
    return dispatcher


@functools.cache
def own_text() -> str:
    return inspect.getsource(sys.modules[__name__]) + inspect.getsource(shared_memory)


@functools.cache
def space():
    """The globals of the compiled functions."""
    import numba
    made = {**globals(), **intrinsics()}
    for function in INSIDE:
        made[function.__name__] = numba.njit(error_model="numpy", nogil=True, no_cpython_wrapper=True,
                                             no_cfunc_wrapper=True)(FunctionType(function.__code__, made))
    return made


def pointer_of(dispatcher: Any) -> int:
    """The address of a dispatcher's machine code, in Numba's calling convention."""
    (found,) = dispatcher.overloads.values()
    return found.library.get_pointer_to_function(found.fndesc.llvm_func_name)


@functools.cache
def spins() -> int:
    """The number of spins that take SPINNING seconds."""
    run, many, best = compiled("spin"), 2000, float("inf")
    for _ in range(5):
        start = time.perf_counter()
        run(many)
        best = min(best, time.perf_counter() - start)
    return max(1, int(many * SPINNING / best))
