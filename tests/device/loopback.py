"""A device that is not there: CuPy, the driver and cuBLAS as far as a call goes through them, in the host's memory.

Kernels get their arguments as the driver would: out of a buffer, by addresses, lengths and steps; their work is done by
plain twins, or by the PTX that Numba makes of them (ptx.py).  What is recorded into a graph is done when the graph is
launched, and not before.  cuBLAS takes flags, addresses and steps by columns, as its library does.
"""
import contextlib
import ctypes
import functools
import importlib.machinery
import struct
import sys
import threading
import types

import ml_dtypes
import numpy as np
import numpy.ctypeslib
from device import ptx

from gradscribe.runtime import assembled, blas, device, launched, twin
from gradscribe.runtime.device_functions import KERNEL, PLAIN

CAPABILITY = "90"


def array_at(address, shape, steps, dtype):
    """An array of memory that is there; steps in bytes."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    before = -sum(min((n - 1) * s, 0) for n, s in zip(shape, steps))
    size = sum(abs((n - 1) * s) for n, s in zip(shape, steps)) + np.dtype(dtype).itemsize
    data = (ctypes.c_byte * size).from_address(address - before)
    return np.ndarray(shape, dtype, data, before, steps)


class Device:
    """One of the devices; inside `with`, what this thread does is done there."""

    compute_capability = CAPABILITY

    def __init__(self, number=None):
        self.id, self.before = CUPY.current if number is None else number, []
        assert 0 <= self.id < CUPY.count

    def __enter__(self):
        self.before.append(CUPY.current)
        self.use()

    def __exit__(self, *_):
        CUPY.here.device = self.before.pop()

    def use(self):
        CUPY.here.device = self.id

    def synchronize(self):
        pass


class Array(np.ndarray):
    """An array of a device; `number`: which."""

    def __array_finalize__(self, obj):
        self.number = obj.number if isinstance(obj, Array) else CUPY.current

    @property
    def device(self):
        return Device(self.number)

    @property
    def data(self):
        assert self.number == CUPY.current, "an array of another device"
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])

    @property
    def __cuda_array_interface__(self):
        return {**self.__array_interface__, "strides": self.strides}

    def __array_wrap__(self, made, context=None, return_scalar=False):
        return made.view(Array)

    def __getitem__(self, index):       # CuPy has no numbers: an entry is an array without axes
        made = self.view(np.ndarray)[index if isinstance(index, tuple) else (index,)]
        return made if isinstance(made, Array) else np.asarray(made).view(Array) if not isinstance(
            made, np.generic) else self.entry(index)

    def entry(self, index):
        at = self.view(np.ndarray)[(*(index if isinstance(index, tuple) else (index,)), ...)]
        return at.view(Array)

    def get(self):
        return np.array(self)

    def item(self, *index):
        if CUPY.recorded is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        return super().item(*index)

    def astype(self, dtype, copy=True, **words):
        return self if not copy and self.dtype == dtype else CUPY.done(np.ndarray.astype, self, dtype)

    def copy(self, order="C"):
        return CUPY.done(np.ndarray.copy, self, order)


class Stream:
    """`waiting`: what it has been given by NCCL, which is done when another stream waits for it."""

    def __init__(self, non_blocking=False):
        self.ptr, self.waiting = id(self), []
        STREAMS[self.ptr] = self

    @property
    def done(self):
        return CUPY.current not in CUPY.busy

    def record(self):
        return types.SimpleNamespace(stream=self, until=len(self.waiting))

    def wait_event(self, event):
        steps, event.stream.waiting = event.stream.waiting, []
        for step in steps:
            step()

    def __enter__(self):
        CUPY.streams.append(self)

    def __exit__(self, *_):
        CUPY.streams.pop()

    def synchronize(self):
        assert CUPY.recorded is None

    def begin_capture(self):
        CUPY.recorded, CUPY.pool = [], []

    def end_capture(self):
        recorded, CUPY.recorded, pool = CUPY.recorded, None, CUPY.pool
        return types.SimpleNamespace(launch=lambda: [f() for f in recorded], recorded=recorded, pool=pool)


STREAMS: dict = {}


class Legacy(Stream):
    """The stream of a device that has no other."""

    def __init__(self):
        super().__init__()
        self.ptr = 0


class Module:
    def load(self, binary):
        self.name = binary

    def get_function(self, name):
        assert LOADED[self.name][0].__name__ == name
        return types.SimpleNamespace(ptr=self.name_of(), module=self)

    def name_of(self):
        return int(self.name)


LOADED: dict = {}


def machine_code(function, kinds, architecture, backend, apart):
    assert architecture == f"sm_{CAPABILITY}"
    size = struct.calcsize("@" + "".join("q" * launched.WORDS[backend](rank) if rank else launched.letters(dtype)
                                         for dtype, rank, _ in kinds))
    name = str(len(LOADED)).encode()
    LOADED[name] = function, kinds, backend, ""
    return assembled.Machine("", function.__name__, size, 0, 0, name)


def compiled(code, function, kinds, architecture, backend, apart):
    """What Numba makes of a kernel, whose PTX is run."""
    made, name = code(function, kinds, architecture, backend, apart), str(len(LOADED)).encode()
    LOADED[name] = function, kinds, backend, made.ptx
    return made._replace(binary=name, entry=function.__name__)


def launch_kernel(address, x, y, z, across, down, deep, shared, stream, parameters, extra):
    """cuLaunchKernel, its arguments being a buffer."""
    assert stream == CUPY.cuda.get_current_stream().ptr and not parameters
    assert 0 < x < 2 ** 31 and 0 < y < 65536 and 0 < z < 65536 and 0 < across * down * deep <= 1024 and deep <= 64
    of_buffer, buffer, of_size, size, end = (ctypes.c_void_p * 5).from_address(extra)
    assert (of_buffer, of_size, end) == (1, 2, None)
    function, kinds, backend, text = LOADED[str(address).encode()]
    form = "@" + "".join("q" * launched.WORDS[backend](rank) if rank else launched.letters(dtype)
                         for dtype, rank, _ in kinds)
    words = list(struct.unpack(form, ctypes.string_at(buffer, ctypes.c_size_t.from_address(size).value)))
    args = []
    for dtype, rank, contiguous in kinds:
        take = functools.partial(lambda n: [words.pop(0) for _ in range(n)])
        if not rank:
            args.append(dtype.type(complex(*take(2)) if dtype.kind == "c" else take(1)[0]))
            continue
        if backend == "cuda":
            _, _, count, itemsize, start = take(5)
            shape, steps = take(rank), take(rank)
            assert (count, itemsize) == (np.prod(shape), dtype.itemsize)
        else:
            _, start, offset = take(3)
            shape, steps = take(rank), [s * dtype.itemsize for s in take(rank)]
            assert offset == 0
        args.append(array_at(start, shape, steps, dtype))
        assert not contiguous or args[-1].flags.c_contiguous
    assert not words
    CUPY.launches += 1
    if text:
        data = ctypes.string_at(buffer, ctypes.c_size_t.from_address(size).value)
        spans = [assembled.span_of(a.__array_interface__["data"][0], a) for a in args if getattr(a, "ndim", 0)]
        CUPY.do(lambda: ptx.launched(text, (x, y, z), (across, down, deep), data, spans))
        return
    kernel = twin.Kernel(FunctionOf(function), False)
    CUPY.do(lambda: kernel[(x, y, z), (across, down, deep)](*args))


def FunctionOf(function):
    """A kernel's function whose `cuda` is the twins'."""
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__,
                              function.__closure__)
    made.__module__ = function.__module__
    return made


def flat(values):
    """Values and those of lists among them."""
    for value in values:
        yield from flat(value) if isinstance(value, (list, tuple)) else [value]


class Cupy(types.ModuleType):
    """CuPy's functions are NumPy's, of arrays of the device."""

    def __init__(self):
        super().__init__("cupy")
        self.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
        self.ndarray, self.recorded, self.launches, self.here = Array, None, 0, threading.local()
        self.count, self.busy, legacy = 1, set(), Legacy()
        self.cuda = types.SimpleNamespace(
            runtime=types.SimpleNamespace(getDevice=lambda: self.current, getDeviceCount=lambda: self.count),
            Device=Device, get_current_stream=lambda: self.streams[-1] if self.streams else legacy,
            driver=types.SimpleNamespace(launchKernel=launch_kernel), Stream=Stream,
            function=types.SimpleNamespace(Module=Module), alloc=self.alloc,
            MemoryPool=lambda: types.SimpleNamespace(malloc=None),
            using_allocator=lambda malloc: contextlib.nullcontext())

    @property
    def current(self):
        """The device on which this thread works."""
        return getattr(self.here, "device", 0)

    @property
    def streams(self):
        """Those that this thread has entered."""
        return vars(self.here).setdefault("streams", [])

    def alloc(self, size):
        made = np.zeros(size, np.uint8)
        return types.SimpleNamespace(ptr=made.ctypes.data, memory=made)

    def do(self, step):
        """A step of the device's: now, or when the graph that is being recorded is launched."""
        if self.recorded is None:
            step()
        else:
            self.recorded.append(step)

    def kept(self, made):
        """Memory of a graph lives as long as it."""
        if self.recorded is not None:
            self.pool.append(made)
        return made

    def done(self, function, *args, **words):
        """A function's result, whose entries are there when the device has done it."""
        assert all(a.number == self.current for a in flat(args) if isinstance(a, Array)), "arrays of another device"
        args = [np.asarray(a) if isinstance(a, Array) else a for a in args]
        made = self.kept(np.asarray(function(*args, **words)).view(Array))
        if self.recorded is not None:
            self.recorded.append(lambda: made.view(np.ndarray).__setitem__(..., function(*args, **words)))
            if made.dtype.kind in "fc" and made.size:
                made.view(np.ndarray)[...] = np.nan
        return made

    def empty(self, shape, dtype=float):
        made = self.kept(np.empty(shape, dtype).view(Array))
        made.view(np.ndarray)[...] = 77
        return made

    def asarray(self, value, dtype=None, order="K"):
        if isinstance(value, Array) and dtype in (None, value.dtype) and value.number == self.current and (
                order == "K" or value.flags.c_contiguous):
            return value
        assert not isinstance(value, Array) or value.number == self.current or value.flags.c_contiguous or \
            value.flags.f_contiguous, "CuPy cannot copy non-contiguous array between devices."
        if isinstance(value, Array) and value.number == self.current:
            return self.done(np.array, value, dtype, order=order)
        return np.array(value, dtype, order=order).view(Array)

    def ascontiguousarray(self, value):
        made = value if value.flags.c_contiguous else self.done(np.ascontiguousarray, value)
        return made.reshape(1) if not made.ndim else made

    def copyto(self, to, value):
        self.do(lambda: np.copyto(to, value))

    def argsort(self, value, axis=-1):
        """CuPy's sorts are stable."""
        return self.done(np.argsort, value, axis=axis, kind="stable")

    def asnumpy(self, value):
        return np.array(value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name)
        if isinstance(found, types.ModuleType):
            space = types.SimpleNamespace()
            for n in dir(found):
                if callable(getattr(found, n)) and not n.startswith("_"):
                    setattr(space, n, functools.partial(self.several, getattr(found, n)))
            return space
        return functools.partial(self.done, found) if callable(found) and not isinstance(found, type) else found

    def several(self, function, *args, **words):
        made = function(*[np.asarray(a) if isinstance(a, Array) else a for a in args], **words)
        out = [np.asarray(m).view(Array) for m in (made if isinstance(made, tuple) else (made,))]
        return tuple(out) if isinstance(made, tuple) else out[0]


CUPY = Cupy()


def number(value):
    return getattr(value, "value", value)


class Cublas:
    """cuBLAS, of memory that is there; `calls`: (function, flags, count) of each."""

    def __init__(self):
        self.calls, self.stream, self.workspace = [], None, None

    def cublasCreate_v2(self, handle):
        handle._obj.value = 1
        return 0

    def cublasSetStream_v2(self, handle, stream):
        self.stream, self.workspace = number(stream) or 0, None         # the workspace is the default again
        return 0

    def cublasSetWorkspace_v2(self, handle, memory, size):
        self.workspace = number(memory), number(size)
        return 0

    def ready(self):
        assert self.stream == CUPY.cuda.get_current_stream().ptr and self.workspace is not None

    def cublasGemmStridedBatchedEx_64(self, handle, of_a, of_b, m, n, k, alpha, a, kind_a, step_a, next_a, b, kind_b,
                                      step_b, next_b, beta, c, kind_c, step_c, next_c, count, sums, algorithm):
        self.ready()
        m, n, k, step_a, step_b, step_c, next_a, next_b, next_c, count = map(number, (
            m, n, k, step_a, step_b, step_c, next_a, next_b, next_c, count))
        letter = {v: k for k, v in blas.KINDS.items()}[kind_a]
        dtype = np.dtype(ml_dtypes.bfloat16 if letter == "E" else letter)
        assert kind_a == kind_b == kind_c and (sums == blas.SUMS[dtype.char] or sums == blas.TF32)
        single = np.dtype(blas.FACTORS[dtype.char])
        assert array_at(number(alpha), (), (), single) == 1 and array_at(number(beta), (), (), single) == 0
        assert step_a >= (k if of_a else m) and step_b >= (n if of_b else k) and step_c >= m
        self.calls.append(("gemm", of_a, of_b, count))

        def matrix(start, rows, columns, step, between, flag):
            shape = (count, columns, rows) if not flag else (count, rows, columns)
            size = dtype.itemsize
            made = array_at(number(start), shape, (between * size, step * size, size), dtype)
            return made if flag else made.transpose(0, 2, 1)

        left, right = matrix(a, m, k, step_a, next_a, of_a), matrix(b, k, n, step_b, next_b, of_b)
        out = matrix(c, m, n, step_c, next_c, 0)
        wide = np.float32 if dtype.itemsize == 2 else dtype
        CUPY.do(lambda: np.copyto(out, left.astype(wide) @ right.astype(wide), casting="unsafe"))
        return 0

    def __getattr__(self, name):
        kind = {v: k for k, v in blas.LETTERS.items()}[name.removeprefix("cublas")[0]]
        assert name == f"cublas{blas.LETTERS[kind]}gemv_v2_64"
        return functools.partial(self.gemv, np.dtype(kind))

    def gemv(self, dtype, handle, flag, m, n, alpha, a, step, x, step_x, beta, y, step_y):
        self.ready()
        m, n, step, step_x, step_y = map(number, (m, n, step, step_x, step_y))
        assert step >= m and step_x > 0
        self.calls.append(("gemv", flag))
        size = dtype.itemsize
        matrix = array_at(number(a), (n, m), (step * size, size), dtype).T
        vector = array_at(number(x), (m if flag else n,), (step_x * size,), dtype)
        out = array_at(number(y), (n if flag else m,), (step_y * size,), dtype)
        CUPY.do(lambda: np.copyto(out, (matrix.T if flag else matrix) @ vector))
        return 0


@contextlib.contextmanager
def looped(backend="cuda", machine=False, count=1, nccl=None):
    """Emitted modules are bound to this device; gives the CuPy and the cuBLAS that stand for it.

    machine: kernels are what Numba compiles for the device, run thread by thread; otherwise plain twins.  count: so
    many devices; nccl: what stands for CuPy's module of that name.
    """
    cublas, bound = Cublas(), device._bound
    if machine:
        assembled.without_device(f"sm_{CAPABILITY}", backend)

    def here(chosen, name):
        if machine:
            return bound(chosen, name)
        if name == "cuda":
            return launched.Cuda(chosen, twin.Cuda(False))
        if name in device.GRIDS:
            return getattr(twin, name)
        if name in PLAIN and not name.startswith("__") or name in KERNEL:
            return twin.function(name, PLAIN, False)
        return bound(chosen, name)

    kept = {n: sys.modules.get(n) for n in ("cupy", "cupyx", "cupy.cuda.nccl")}
    found, library, code, own = dict(device._found), list(blas._library), assembled.machine_code, dict(vars(blas._own))
    device._found.clear()
    vars(blas._own).clear()
    sys.modules |= {"cupy": CUPY, "cupyx": types.SimpleNamespace(errstate=lambda **_: contextlib.nullcontext()),
                    "cupy.cuda.nccl": nccl or types.SimpleNamespace(available=False)}
    CUPY.count, CUPY.here.device = count, 0
    blas._library[:], device._bound, on_disk = [cublas], here, assembled.kept_code
    assembled.kept_code = lambda *args: assembled.machine_code(*args)       # nothing of this goes to the disk
    assembled.machine_code = functools.partial(compiled, code) if machine else machine_code
    try:
        with device.using(backend):
            yield CUPY, cublas
    finally:
        CUPY.count, CUPY.here.device = 1, 0
        CUPY.busy.clear()
        device._bound, assembled.machine_code, blas._library[:] = bound, code, library
        assembled.kept_code = on_disk
        device._found.clear()
        device._found.update(found)
        vars(blas._own).clear()
        vars(blas._own).update(own)
        for n, module in kept.items():
            if module is None:
                del sys.modules[n]
            else:
                sys.modules[n] = module
