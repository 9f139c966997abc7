# SPDX-License-Identifier: Apache-2.0
"""Compiled programs on threads: one Python thread writes each program's arguments, starts all, and reads the results.

The arguments lie in memory in the layout that machine code expects; `put` and `take`, which are compiled for the types
of arguments and results, write and read it.  In between the threads run without the GIL (meeting.py).  Anything out of
the ordinary, such as an error, returns to Python in the thread where it happened, and `runtime/teams.py` handles it.
"""
import functools
import hashlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gradscribe.codegen import cache
from gradscribe.codegen.collectives import MEETING
from gradscribe.codegen.helpers import CALL_PYTHON, addressed
from gradscribe.codegen.meeting import (
    CALLER,
    DATA,
    DONE,
    LOCK,
    LONG,
    LONG_WAY,
    MAIL,
    MEMBERS,
    OWN,
    RANK,
    RUNS,
    SIZE,
    SPINNING,
    SPINS,
    STATE,
    TASK,
    TEAM,
    compiled,
    own_text,
    pointer_of,
    spins,
)
from gradscribe.codegen.shared_memory import LINE, WORDS, lines, lock
from gradscribe.runtime import groups, teams
from gradscribe.runtime.compiled import Unsaid

if TYPE_CHECKING:
    from gradscribe.codegen.jit_cpu import Compiled

# the memory of a member's program
FUNCTION, CODE, EXCEPTION, HEAD = 0, 1, 2, 4        # words; arguments and results follow
ALIGNED = 16                            # bytes
MOST = 64                               # arguments that can be passed this way


def can_launch(made: "Compiled") -> bool:
    """Whether a compiled function can run on threads: it calls Python only for collectives and reports."""
    dtypes = [dtype for dtype, _ in made.kinds]
    return not any(name in made.source for name in CALL_PYTHON) and len(dtypes) <= MOST and "generator" not in dtypes


class Launcher:
    """A compiled function for an axis of `size` members."""

    def __init__(self, made, name, size: int, plain: Callable):
        """made: a jit_cpu.Compiled; plain(rank, given) runs a member in plain Python, for its exception's message."""
        (found,) = made.function.overloads.values()
        self.made, self.name, self.size, self.plain = made, name, size, plain
        self.put, self.take, self.room = forms(tuple(found.signature.args), found.signature.return_type)
        self.function = pointer_of(made.function)
        self.idle: list = []
        self.cores, self.launch = cores(), compiled("launch")
        self.looks = spins() if size <= self.cores else 0
        MEETING.value = pointer_of(compiled("meet"))
        for function in ("serve", "recall", "finish", "await_member", "long_way"):
            compiled(function)          # now, rather than while other threads wait

    def run(self, parts: Sequence[tuple], given: tuple, deadline: float | None) -> tuple | list:
        """The results of all members for their leaves, as a tuple of tuples; if a member ran in plain Python, a list of
        (leaves, None) or (None, value).  given: the arguments of the call, for `plain`.
        """
        lane = self.idle.pop() if self.idle else Lane(self)
        return lane.run(parts, given, deadline)


class Lane:
    """Memory and groups for one call at a time; concurrent calls use different lanes."""

    def __init__(self, launcher):
        self.launcher, size = launcher, launcher.size
        self.words = team_of(size)
        self.team = self.words.ctypes.data
        self.members = [self.team + LINE * (MEMBERS + rank) for rank in range(size)]
        room = -(-launcher.room // LINE)
        self.data = lines(room * size).reshape(size, room * WORDS)
        self.data[:, FUNCTION] = launcher.function
        self.states = self.words.reshape(-1, WORDS)[MEMBERS:, STATE]
        for rank, line in enumerate(self.words.reshape(-1, WORDS)[MEMBERS:]):
            line[DATA] = self.data[rank].ctypes.data
        self.states[:] = DONE
        self.ended, self.grid, self.workers = 0.0, None, [None] * size

    def renew(self, deadline):
        """New groups, in which no member has met another."""
        self.grid = teams.Grid([self.launcher.name], [self.launcher.size], deadline)
        self.deadline = deadline
        self.grid.look_in(self.look)

    def look(self):
        """The ranks that have ended; members that end from now on return to Python."""
        compiled("long_way")(self.team)
        return [k for k, code in enumerate(self.data[:, CODE].tolist()) if self.states[k] != RUNS and not code]

    def run(self, parts, given, deadline):
        launcher, words, size = self.launcher, self.words, self.launcher.size
        if self.grid is None or deadline != self.deadline:
            self.renew(deadline)
        self.given, self.found, self.errors = given, [None] * size, [None] * size
        for line, leaves in zip(self.members, parts):
            try:
                launcher.put(line, *leaves)
            except TypeError:
                launcher.put(line, *launcher.made.taken(leaves))
        workers, whole = teams.borrowed(size - 1), False
        try:
            for rank, worker in enumerate(workers, 1):
                if worker is not self.workers[rank] or worker.serves is not self.grid.members(rank):
                    self.engage(worker, rank)
            words[SPINS] = looks = launcher.looks if teams.running() <= launcher.cores else 0
            soon = time.perf_counter() - self.ended < SPINNING      # then this is one of many steps
            with groups.axes_bound(self.grid.members(0)):
                whole = not launcher.launch(self.team, looks if soon else 0, LONG)
                return tuple([launcher.take(line) for line in self.members]) if whole else self.concluded()
        finally:
            if not whole:
                workers = [w for rank, w in enumerate(workers, 1) if self.states[rank] == DONE]
            teams.given_back(workers, size - 1)
            if len(workers) == size - 1:        # else a thread that hangs still uses this lane
                self.given = self.found = self.errors = None
                if words[LONG_WAY]:
                    self.grid = None    # the next call makes new groups
                launcher.idle.append(self)
            self.ended = time.perf_counter()

    def engage(self, worker, rank):
        """Assigns a thread to a member."""
        if worker.rest is None:
            mail = lines(1)
            mail[LOCK] = lock()
            worker.waits_in(mail, functools.partial(rest, worker, mail.ctypes.data),
                            functools.partial(compiled("recall"), mail.ctypes.data))
        self.workers[rank] = worker
        worker.serve(self.grid.members(rank), functools.partial(self.settle, rank))
        self.words[(MEMBERS + rank) * WORDS + MAIL] = worker.mail.ctypes.data

    # the long way, through Python

    def settle(self, rank):
        """Ends a member's program, in its thread, if it has failed or if others wait in Python."""
        if not self.data[rank, CODE]:
            self.grid.leave(rank)
            return
        try:
            try:
                self.launcher.take(self.members[rank])
            except Unsaid:
                self.found[rank] = None, self.launcher.plain(rank, self.given)
                self.grid.leave(rank)
                return
            except RuntimeError:
                failure = groups.failure()
                if failure is None:
                    raise
                raise failure from None
        except BaseException as error:
            self.errors[rank] = error
            self.grid.failed(rank, error)

    def concluded(self):
        """The results, or the error, if not all members ended without Python."""
        self.words[LONG_WAY] = 1
        self.settle(0)
        self.states[0] = DONE
        await_member = compiled("await_member")
        waits = [functools.partial(lambda rank, seconds: await_member(self.team, rank, 0, int(1e6 * seconds)), rank)
                 for rank in range(1, self.launcher.size)]
        lost = teams.waited(waits, self.grid, self.deadline)
        for rank, line in enumerate(self.members):
            if rank not in lost and self.errors[rank] is None and self.found[rank] is None:
                self.found[rank] = self.launcher.take(line), None
        found = teams.concluded(self.found, self.errors, lost, self.grid, self.deadline)
        return tuple([leaves for leaves, _ in found]) if all(leaves is not None for leaves, _ in found) else found


@contextmanager
def apart() -> Iterator[None]:
    """Inside, this thread belongs to no team: a report of its program may run other programs."""
    if not MEETING.value:
        yield
        return
    before = compiled("as_member")(0)
    try:
        yield
    finally:
        compiled("as_member")(before)


def rest(worker, mail):
    """Has a worker thread run programs; settles those that return to Python."""
    serve, finish = compiled("serve"), compiled("finish")
    while serve(mail):
        worker.settle()
        finish(int(worker.mail[OWN]))


def team_of(size):
    """New memory that the members of a team share."""
    words = lines(MEMBERS + size)
    rows, place = words.reshape(-1, WORDS), words.ctypes.data
    words[SIZE], rows[CALLER, LOCK] = size, lock()
    for rank, row in enumerate(rows[MEMBERS:]):
        row[RANK], row[TEAM], row[LOCK], row[STATE] = rank, place, lock(), DONE
    return words


def cores():
    """The number of threads of this process that can run at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- arguments and results in memory ----------------------------------------------------------------------------------

@functools.cache
def forms(kinds, result):
    """(put, take, bytes) for Numba's types: put(member, *arguments) writes the arguments of a member's program, and
    take(member) returns its result or raises its exception.
    """
    import numba
    from numba.core.registry import cpu_target
    context = cpu_target.target_context
    names = "".join(f", a{k}" for k in range(len(kinds)))
    made = []
    given = context.get_abi_sizeof(struct_of(context, kinds)) if kinds else 0
    after = 8 * HEAD + -(-given // ALIGNED) * ALIGNED
    layout = kinds, result, after
    store, load = storing(layout), loading(layout)
    for name, text, signature in (
            ("put", f"def put(member{names}):\n    store(member, ({names[2:]}{',' if kinds else ''}))\n",
             (numba.int64, *kinds)),
            ("take", "def take(member):\n    return load(member)\n", (numba.int64,))):
        texts = own_text(), inspect.getsource(sys.modules[__name__])
        what = [cache.stamp(), *texts, name, *map(str, kinds), str(result)]
        key = hashlib.sha256("\0".join(what).encode()).hexdigest()[:40]
        module = cache.module_for(key)
        module.__dict__.update(store=store, load=load)
        exec(compile(text, module.__file__, "exec"), module.__dict__)
        dispatcher = numba.njit(no_cfunc_wrapper=True)(module.__dict__[name])
        if not cache.load(key, dispatcher, addressed):
            dispatcher.compile(signature)
            cache.save(key, dispatcher, signature, [])
        dispatcher.disable_compile()
        made.append(dispatcher)
    return (*made, after + context.get_abi_sizeof(context.get_value_type(result)))


def struct_of(context, kinds):
    from llvmlite import ir
    return ir.LiteralStructType(list(context.get_arg_packer(kinds).argument_types))


class Memory:
    """The arguments and the result of a member's program, at an address."""

    def __init__(self, context, builder, data, layout):
        """layout: (Numba's types of the arguments, that of the result, the offset of the result)."""
        self.context, self.builder, self.data = context, builder, data
        self.kinds, self.kind_of_result, self.after = layout
        self.packer = context.get_arg_packer(self.kinds)

    def at(self, offset, kind):
        return self.builder.inttoptr(self.builder.add(self.data, word_type()(offset)), kind.as_pointer())

    def word(self, k, kind=None):
        return self.at(8 * k, kind or word_type())

    def fields(self):
        from numba.core import cgutils
        whole = self.at(8 * HEAD, struct_of(self.context, self.kinds))
        return [cgutils.gep_inbounds(self.builder, whole, 0, k) for k in range(len(self.packer.argument_types))]

    def arguments(self):
        return self.packer.from_arguments(self.builder, list(map(self.builder.load, self.fields())))

    def result(self):
        return self.at(self.after, self.context.get_value_type(self.kind_of_result))


def word_type():
    from llvmlite import ir
    return ir.IntType(64)


def word_of_member(builder, member, k):
    number = word_type()
    return builder.inttoptr(builder.add(member, number(8 * k)), number.as_pointer())


def memory_of(context, builder, member, layout):
    return Memory(context, builder, builder.load(word_of_member(builder, member, DATA)), layout)


def task(context, module, layout):
    """The module's function that runs a program on the memory at an address."""
    from llvmlite import ir
    from numba.core.callconv import excinfo_ptr_t
    number, (kinds, result, _) = word_type(), layout
    function = ir.Function(module, ir.FunctionType(number, [number]), "run_on_memory")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    memory, convention = Memory(context, builder, function.args[0], layout), context.call_conv
    callee = builder.load(memory.word(FUNCTION, convention.get_function_type(result, kinds).as_pointer()))
    status, out = convention.call_function(builder, callee, result, kinds, memory.arguments())
    code = builder.select(status.is_ok, number(0), builder.sext(status.code, number))
    builder.store(code, memory.word(CODE))
    builder.store(status.excinfoptr, memory.word(EXCEPTION, excinfo_ptr_t))
    builder.store(out, memory.result())
    builder.ret(code)
    return function


def storing(layout):
    """The intrinsic store(member, arguments), which also sets the function that runs the program on them."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def store(context, member, given):
        def emit(context, builder, signature, values):
            memory = memory_of(context, builder, values[0], layout)
            leaves = cgutils.unpack_tuple(builder, values[1])
            for kind, value in zip(memory.kinds, leaves):
                context.nrt.incref(builder, kind, value)
            for field, value in zip(memory.fields(), memory.packer.as_arguments(builder, leaves)):
                builder.store(value, field)
            word = word_of_member(builder, values[0], TASK)
            builder.store(builder.ptrtoint(task(context, builder.module, layout), word_type()), word)
            return context.get_dummy_value()
        return types.none(types.int64, given), emit
    return intrinsic(store)


def loading(layout):
    """The intrinsic load(member): the program's result, or its exception."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.callconv import excinfo_ptr_t
    from numba.extending import intrinsic
    _, result, _ = layout

    def load(context, member):
        def emit(context, builder, signature, values):
            memory = memory_of(context, builder, values[0], layout)
            for kind, value in zip(memory.kinds, memory.arguments()):
                context.nrt.decref(builder, kind, value)
            code = builder.trunc(builder.load(memory.word(CODE)), ir.IntType(32))
            status = context.call_conv._get_return_status(
                builder, code, builder.load(memory.word(EXCEPTION, excinfo_ptr_t)))
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return builder.load(memory.result())
        return result(types.int64), emit
    return intrinsic(load)
