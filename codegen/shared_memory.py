# SPDX-License-Identifier: Apache-2.0
# The functions here are stubs: only compiled code calls them.
# mypy: disable-error-code="empty-body"
"""Memory that threads share, for functions that Numba compiles: atomic operations on 64-bit words at given addresses,
and locks on which threads sleep without holding the GIL.

The functions in the first part are stubs without bodies.  meeting.py is written with them, and compiled with the
intrinsics that `intrinsics` has for them.  Machine code names Python's C functions by symbol and holds no address.
"""
import ctypes
import functools
import platform
from typing import Any

import numpy as np

from gradscribe.runtime.groups import SUMMED

LINE = 128                              # bytes: two cache lines, which processors fetch together
WORDS = LINE // 8
SYMBOLS = ("PyThread_tss_get", "PyThread_tss_set", "PyThread_acquire_lock_timed", "PyThread_release_lock")
KEY = "gradscribe.member"               # of the thread-local word
PAUSES = {**dict.fromkeys(("x86_64", "AMD64"), ("llvm.x86.sse2.pause",)),
          **dict.fromkeys(("aarch64", "arm64"), ("llvm.aarch64.hint", 1))}      # LLVM's intrinsics


def word(address, k) -> int:
    """The k-th word after an address."""


def put(address, k, value):
    """Sets the k-th word after an address."""


def seen(address) -> int:
    """The word at an address, by an atomic load: all that was written before the word was is visible too."""


def swap(address, value) -> int:
    """Sets a word by an atomic exchange; returns its old value."""


def add(address, value) -> int:
    """Adds to a word by an atomic fetch-and-add; returns its old value."""


def exchanged(address, old, new) -> int:
    """Sets a word to `new` if it is `old`, by compare-and-exchange; returns whether it was."""


def pause():
    """Tells the processor that this thread spins."""


def member() -> int:
    """The thread-local word: the address of the member that this thread runs, or 0."""


def become(value):
    """Sets the thread-local word."""


def sleep(lock, most) -> int:
    """Acquires a lock of Python's, waiting at most that many microseconds (-1: no limit); returns whether it did."""


def wake(lock):
    """Releases a lock."""


def run(task, data) -> int:
    """Calls the function at the address `task` with a word; returns its result."""


def form_of(operation, kind) -> int:
    """How arrays of a dtype, by NumPy's type number, are reduced: see forms_of_sums; 0 if that is not done here."""


def combine(which, x, out, count, size):
    """Combines `count` numbers at the address x into those at `out` by an entry of COMBINED; nothing for 0."""


def copy(source, goal, count):
    """Copies `count` bytes."""


# --- LLVM instructions of the stubs -----------------------------------------------------------------------------------

WRITERS: dict[Any, Any] = {}            # {stub: function of a builder and 64-bit words that writes its instructions}


@functools.cache
def intrinsics() -> dict[str, Any]:
    """The Numba intrinsics of the stubs above, by name."""
    return {stub.__name__: _intrinsic(stub, write) for stub, write in WRITERS.items()}


def _intrinsic(stub, write):
    """The intrinsic of 64-bit integers for a stub; its result is one too if the stub is annotated with a type."""
    from numba import types
    from numba.extending import intrinsic
    i64 = types.int64
    names = stub.__code__.co_varnames[:stub.__code__.co_argcount]
    result = i64 if stub.__annotations__ else types.none

    def typed(*given):
        def emit(context, builder, signature, values):
            out = write(builder, *values)
            return out if result is i64 else context.get_dummy_value()
        return result(*[i64] * len(names)), emit
    return intrinsic(eval(f"lambda {', '.join(('context', *names))}: typed({', '.join(names)})", {"typed": typed}))


def _writes(stub):
    def record(write):
        WRITERS[stub] = write
        return write
    return record


def _types():
    """LLVM's types of a word, of a C int and of an address."""
    from llvmlite import ir
    return ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


def _at(builder, address):
    number, _, _ = _types()
    return builder.inttoptr(address, number.as_pointer())


def _place(builder, a, k):
    number, _, _ = _types()
    return _at(builder, builder.add(a, builder.mul(k, number(8))))


@_writes(word)
def _load(builder, a, k):
    return builder.load(_place(builder, a, k))


@_writes(put)
def _store(builder, a, k, v):
    builder.store(v, _place(builder, a, k))


@_writes(seen)
def _load_atomic(builder, a):
    return builder.load_atomic(_at(builder, a), "seq_cst", 8)


@_writes(swap)
def _exchange(builder, a, v):
    return builder.atomic_rmw("xchg", _at(builder, a), v, "seq_cst")


@_writes(add)
def _fetch_and_add(builder, a, v):
    return builder.atomic_rmw("add", _at(builder, a), v, "seq_cst")


@_writes(exchanged)
def _compare_and_exchange(builder, a, old, new):
    number, _, _ = _types()
    return builder.zext(builder.extract_value(
        builder.cmpxchg(_at(builder, a), old, new, "seq_cst", "seq_cst"), 1), number)


@_writes(pause)
def _pause(builder):
    from llvmlite import ir
    from numba.core import cgutils
    _, small, _ = _types()
    name, *hint = PAUSES.get(platform.machine(), (None,))
    if name is not None:
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [small] * len(hint)), name)
        builder.call(function, [small(k) for k in hint])


def _external(builder, name, result, *kinds):
    """A C function of Python's by its symbol."""
    from llvmlite import ir
    from numba.core import cgutils
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), f"gradscribe.{name}")


def _thread_key(builder):
    """The address of the key of thread-local storage."""
    from llvmlite import ir
    _, _, pointer = _types()
    found = builder.module.globals.get(KEY)
    if found is None:
        found = ir.GlobalVariable(builder.module, ir.IntType(8), KEY)
        found.linkage = "external"
    return builder.bitcast(found, pointer)


@_writes(member)
def _thread_get(builder):
    number, _, pointer = _types()
    function = _external(builder, SYMBOLS[0], pointer, pointer)
    return builder.ptrtoint(builder.call(function, [_thread_key(builder)]), number)


@_writes(become)
def _thread_set(builder, a):
    _, small, pointer = _types()
    function = _external(builder, SYMBOLS[1], small, pointer, pointer)
    builder.call(function, [_thread_key(builder), builder.inttoptr(a, pointer)])


@_writes(sleep)
def _acquire(builder, lock, most):
    number, small, pointer = _types()
    function = _external(builder, SYMBOLS[2], small, pointer, number, small)
    return builder.sext(builder.call(function, [builder.inttoptr(lock, pointer), most, small(0)]), number)


@_writes(wake)
def _release(builder, lock):
    from llvmlite import ir
    _, _, pointer = _types()
    builder.call(_external(builder, SYMBOLS[3], ir.VoidType(), pointer), [builder.inttoptr(lock, pointer)])


@_writes(run)
def _call(builder, task, data):
    from llvmlite import ir
    number, _, _ = _types()
    return builder.call(builder.inttoptr(task, ir.FunctionType(number, [number]).as_pointer()), [data])


@_writes(form_of)
def _look_up(builder, operation, kind):
    from numba.core import cgutils
    number, _, _ = _types()
    after = builder.append_basic_block("known")
    found = cgutils.alloca_once_value(builder, number(0))
    choice = builder.switch(builder.add(builder.mul(operation, number(64)), kind), after)
    for (code, dtype), form in forms_of_sums().items():
        with builder.goto_block(builder.append_basic_block("form")):
            choice.add_case(number(64 * code + dtype), builder.block)
            builder.store(number(form), found)
            builder.branch(after)
    builder.position_at_end(after)
    return builder.load(found)


@_writes(combine)
def _combine_by_case(builder, which, x, out, count, size):
    number, _, _ = _types()
    after = builder.append_basic_block("combined")
    choice = builder.switch(which, after)
    for k, (kind, form) in enumerate(COMBINED, 1):
        with builder.goto_block(builder.append_basic_block(f"combine_{k}")):
            choice.add_case(number(k), builder.block)
            builder.call(combining(builder.module, kind, form), [x, out, count, size])
            builder.branch(after)
    builder.position_at_end(after)


@_writes(copy)
def _copy_bytes(builder, source, goal, count):
    from numba.core import cgutils
    _, _, pointer = _types()
    cgutils.raw_memcpy(builder, builder.inttoptr(goal, pointer), builder.inttoptr(source, pointer), count, 1)


def forms_of_sums():
    """How the common dtypes are reduced, {(the reduction's number, the dtype's): code}.  The code's bytes are: which of
    COMBINED, counted from 1, takes in another entry; which one is applied at the end, or 0; how many numbers an entry
    has; the bytes of each number.
    """
    made, which = {}, {(kind, form): k for k, (kind, form) in enumerate(COMBINED, 1)}
    for letter in "ilqILQfdFD":
        dtype = np.dtype(letter)
        parts = 2 if dtype.kind == "c" else 1
        width = dtype.itemsize // parts
        name = f"{'int' if dtype.kind in 'iu' else 'float'}{8 * width}"
        own = {"psum": (total, None), "pmean": (total, shared_pair if parts == 2 else shared), "pmax": (largest, None),
               "pmin": (smallest, None)}
        for function, (first, last) in own.items():
            if (name, first) in which and (last is None or (name, last) in which) and (
                    parts == 1 or first is total):
                made[SUMMED[function], dtype.num] = (
                    which[name, first] | which.get((name, last), 0) << 8 | parts << 16 | width << 24)
    return made


def combining(module, kind, form):
    """The module's function that combines entries one by one, with results equal to NumPy's to the last bit."""
    from llvmlite import ir
    from numba.core import cgutils
    name, number = f"combine_{kind}_{form.__name__}", ir.IntType(64)
    entry = {"float64": ir.DoubleType(), "float32": ir.FloatType()}.get(kind) or ir.IntType(int(kind.lstrip("int")))
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [number] * 4), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    x, out = (builder.inttoptr(a, entry.as_pointer()) for a in function.args[:2])
    many = builder.sitofp(function.args[3], entry) if kind.startswith("f") else None
    step = 2 if form is shared_pair else 1
    with cgutils.for_range_slice(builder, number(0), function.args[2], number(step)) as (i, _):
        places = [builder.gep(out, [builder.add(i, number(j))]) for j in range(step)]
        mine = [builder.load(place) for place in places]
        for place, value in zip(places, form(builder, many, builder.load(builder.gep(x, [i])), *mine)):
            builder.store(value, place)
    builder.ret_void()
    return function


def total(builder, many, x, mine):
    return [builder.add(mine, x) if many is None else builder.fadd(mine, x)]


def largest(builder, many, x, mine):
    return [chosen(builder, ">=", x, mine)]


def smallest(builder, many, x, mine):
    return [chosen(builder, "<=", x, mine)]


def chosen(builder, order, x, mine):
    """The larger or smaller of two numbers as np.maximum and np.minimum choose it: NaN propagates."""
    stays = builder.or_(builder.fcmp_ordered(order, mine, x), builder.fcmp_unordered("uno", mine, mine))
    return builder.select(stays, mine, x)


def shared(builder, many, x, mine):
    return [builder.fdiv(mine, many)]


def shared_pair(builder, many, x, real, imaginary):
    """Divides a complex number by a real one as NumPy does, by Smith's method with 0 as imaginary part."""
    scale, zero = builder.fdiv(many.type(1.0), many), many.type(0.0)
    return [builder.fmul(builder.fadd(real, builder.fmul(imaginary, zero)), scale),
            builder.fmul(builder.fsub(imaginary, builder.fmul(real, zero)), scale)]


COMBINED = [("float64", total), ("float32", total), ("int64", total), ("int32", total), ("float64", largest),
            ("float32", largest), ("float64", smallest), ("float32", smallest), ("float64", shared),
            ("float32", shared), ("float64", shared_pair), ("float32", shared_pair)]


# --- in this process ------------------------------------------------------------------------------------------------

@functools.cache
def with_symbols() -> None:
    """Registers the addresses of Python's C functions, and the key of the thread-local word, with LLVM."""
    from llvmlite import binding
    for name in SYMBOLS:
        binding.add_symbol(f"gradscribe.{name}", ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    allocate = ctypes.pythonapi.PyThread_tss_alloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, []
    key = allocate()
    if ctypes.pythonapi.PyThread_tss_create(ctypes.c_void_p(key)) != 0:
        raise MemoryError("the system has no room for a word of each thread")
    binding.add_symbol(KEY, key)


def lock() -> int:
    """The address of a new lock of Python's, already acquired, that is used without the GIL."""
    allocate, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    allocate.restype, allocate.argtypes = ctypes.c_void_p, []
    acquire.argtypes = [ctypes.c_void_p, ctypes.c_int]
    made = allocate()
    if not made:
        raise MemoryError("the system has no more locks")
    acquire(made, 1)
    return made


def lines(count: int) -> np.ndarray:
    """An aligned array of that many cache lines, all words 0."""
    whole = np.zeros((count + 1) * WORDS, np.int64)
    skip = -whole.ctypes.data % LINE // 8
    return whole[skip:skip + count * WORDS]
