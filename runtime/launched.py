# SPDX-License-Identifier: Apache-2.0
"""Kernels on a device: compiled by one of Numba's compilers, loaded and launched by CuPy on its current stream.

Launches dominate the time of a short call.  Numba's launch converts each array by an interface for foreign arrays, may
wait for the array's stream, which ends the recording of a graph, and warns of small grids.  Here the arguments are
packed into one buffer with the memory layout of the kernel's parameters, which is all that the driver needs.

Sources: CUDA Driver API, cuLaunchKernel (CU_LAUNCH_PARAM_BUFFER_POINTER) and PTX ISA, kernel parameters; Numba's arrays
in parameters (numba-cuda: reference count, number of entries, item size, address, lengths, strides in bytes;
numba-cuda-mlir: MLIR's memref descriptor, with strides in entries).
"""
import ctypes
import functools
import importlib
import struct
import threading
from types import CellType, FunctionType
from typing import NamedTuple

import numpy as np

from gradscribe.runtime import assembled, on_device

BUFFER, SIZE, END = 1, 2, 0             # CU_LAUNCH_PARAM_...
_loading = threading.Lock()             # Numba compiles for one thread at a time; the others use its cache on disk


def laid_by_references(address, a):
    """The parameters of an array in numba-cuda's layout."""
    return (0, 0, a.size, a.itemsize, address, *a.shape, *a.strides)


def laid_by_descriptor(address, a):
    """The parameters of an array as MLIR's memref descriptor."""
    size = a.itemsize
    return (address, address, 0, *a.shape, *(s // size for s in a.strides))


LAID = {"cuda": laid_by_references, "mlir": laid_by_descriptor}
WORDS = {"cuda": lambda rank: 5 + 2 * rank, "mlir": lambda rank: 3 + 2 * rank}


class Cuda:
    """The object `cuda` for emitted modules on a device, and for users' kernels that use it."""

    def __init__(self, backend, numbas):
        self.backend, self.numbas = backend, numbas

    def jit(self, function=None, **options):
        if function is None:
            return functools.partial(self.jit, **options)
        if options.get("device"):
            return self.numbas.jit(**options)(seen_by(function, self.numbas))
        return Kernel(function, self.backend, self.numbas)

    @staticmethod
    def device_array(shape, dtype):
        """An uninitialised device array."""
        return importlib.import_module("cupy").empty(shape, dtype)

    def __getattr__(self, name):
        return getattr(self.numbas, name)


class Loaded(NamedTuple):
    """A kernel's code on a device; form: the struct format of its parameters; module: must live as long as it."""
    address: int
    form: struct.Struct
    size: ctypes.c_size_t
    module: object


class Kernel:
    """A kernel, compiled for each kind of arguments at its first launch.

    NumPy arrays are copied to the device and back, as in Numba.
    """

    def __init__(self, function, backend, numbas):
        self.function, self.backend, self.numbas, self.loaded = function, backend, numbas, {}
        self.laid, self.cp = LAID[backend], importlib.import_module("cupy")
        functools.update_wrapper(self, function)

    def __getitem__(self, config):
        return functools.partial(self.launch, config)

    def __call__(self, *args):
        raise TypeError("a kernel has to be told how many blocks and threads there are: kernel[blocks, threads](...)")

    def launch(self, config, *args):
        """config: blocks, threads, and optionally a stream and bytes of shared memory."""
        cp, laid, back, spans = self.cp, self.laid, [], []
        values, key = [], [cp.cuda.runtime.getDevice()]
        for a in args:
            if not isinstance(a, cp.ndarray) and getattr(a, "ndim", 0):
                a = self.there(a, back)
            if isinstance(a, cp.ndarray):
                address, contiguous = a.data.ptr, a.flags.c_contiguous
                spans.append((address, address + a.nbytes) if contiguous else assembled.span_of(address, a))
                key.append((a.dtype, a.ndim, contiguous))
                values += laid(address, a)
            else:
                key.append(type(a))
                values += (a.real, a.imag) if isinstance(a, complex | np.complexfloating) else (
                    bool(a) if isinstance(a, np.bool_) else a,)
        key = (assembled.are_apart(spans), *key)
        code = self.loaded.get(key)
        if code is None:
            with _loading:
                code = self.loaded[key] = self.load(args, key)
        data = ctypes.create_string_buffer(code.form.pack(*values), code.size.value)
        extra = (ctypes.c_void_p * 5)(BUFFER, ctypes.addressof(data), SIZE, ctypes.addressof(code.size), END)
        blocks, threads = (axes(n) for n in config[:2])
        stream = stream_of(config[2]) if len(config) > 2 and config[2] else cp.cuda.get_current_stream().ptr
        shared = config[3] if len(config) > 3 else 0
        cp.cuda.driver.launchKernel(code.address, *blocks, *threads, shared, stream, 0, ctypes.addressof(extra))
        for host, there in back:
            host[...] = there.get()

    def there(self, value, back):
        """An array as a CuPy array: device arrays without a copy, NumPy arrays by a copy that is copied back."""
        made = self.cp.asarray(value)
        if isinstance(value, np.ndarray):
            back.append((value, made))
        return made

    def load(self, args, key):
        kinds = [(a.dtype, a.ndim, k[2]) if isinstance(k, tuple) else (np.dtype(type(a)), 0, True)
                 for a, k in zip(args, key[2:])]
        capability = self.cp.cuda.Device().compute_capability
        code = assembled.kept_code(seen_by(self.function, self.numbas), kinds, f"sm_{capability}", self.backend, key[0])
        form = struct.Struct("@" + "".join("q" * WORDS[self.backend](rank) if rank else letters(dtype)
                                           for dtype, rank, _ in kinds))
        if form.size != code.size:
            raise RuntimeError(f"the kernel {self.function.__name__} has {code.size} bytes of parameters, and not "
                               f"{form.size}: this version of Numba's compiler passes arrays in another way")
        module = self.cp.cuda.function.Module()
        module.load(code.binary)
        found = module.get_function(code.entry)
        return Loaded(found.ptr, form, ctypes.c_size_t(form.size), found)


def letters(dtype):
    """The struct format of a scalar.

    >>> letters(np.dtype("f4")), letters(np.dtype("c16"))
    ('f', 'dd')
    """
    return {"F": "ff", "D": "dd"}.get(dtype.char, dtype.char)


@functools.lru_cache(maxsize=1024)
def axes(lengths):
    """Numbers of blocks or threads for three axes.

    >>> axes(7), axes((2, 3))
    ((7, 1, 1), (2, 3, 1))
    """
    return (*(lengths if isinstance(lengths, tuple) else (int(lengths),)), 1, 1)[:3]


def stream_of(stream):
    """The address of a stream, given by CuPy, by Numba or as a number."""
    if hasattr(stream, "ptr"):
        return stream.ptr
    handle = getattr(stream, "handle", stream)
    return int(getattr(handle, "value", handle) or 0)


def seen_by(function, numbas):
    """A device function with `cuda` bound to Numba's, whatever its module has."""
    def meant(value):
        return numbas if isinstance(value, Cuda) else value
    space = {n: meant(v) for n, v in function.__globals__.items()}
    cells = tuple(CellType(meant(c.cell_contents)) for c in function.__closure__ or ())
    return FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)


def bound(name, numbas, backend):
    """The function that an emitted module's kernels call by a name."""
    return on_device.function(name, numbas, backend)
