# SPDX-License-Identifier: Apache-2.0
"""Matrix products on a device by cuBLAS, without copies.

CuPy's products copy the transposed matrices of a stack, widen half precision to single, and cannot be recorded into a
graph.  Here cuBLAS is called directly: row-major and column-major matrices with any leading dimension, and vectors of
any stride, are used as they are; a stack is one call; sums of half precision are in single precision.  A row-major
product C = A B is the column-major product C' = B' A' of the same memory.

Each thread has a handle for each device, with a workspace; without one, a recorded call would allocate its own.

Source: cuBLAS Library, cublasGemmStridedBatchedEx, cublas<t>gemv, cublasSetWorkspace (which cublasSetStream undoes).
"""
import ctypes
import importlib
import logging
import threading

import numpy as np

KINDS = {"e": 2, "E": 14, "f": 0, "d": 1, "F": 4, "D": 5}    # cudaDataType
SUMS = {"e": 68, "E": 68, "f": 68, "d": 70, "F": 68, "D": 70}    # cublasComputeType
TF32 = 77                                                   # cublasComputeType: single precision from 10-bit factors
FACTORS = {"e": "f", "E": "f", "f": "f", "d": "d", "F": "F", "D": "D"}
PLAIN, TRANSPOSED = 0, 1                                    # cublasOperation
LETTERS = {"f": "S", "d": "D", "F": "C", "D": "Z"}
WORKSPACE = 32 << 20                                        # bytes, as cuBLAS recommends for Hopper
STREAMS = 8                                                 # the most streams whose workspaces a handle keeps
_own = threading.local()
_library: list = []
_log = logging.getLogger("gradscribe")


class CublasError(RuntimeError):
    """An error that cuBLAS reports."""


def library():
    """The cuBLAS library, which CuPy's package locates; None if it is not installed."""
    if not _library:
        try:
            found = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cublas")
            _library.append(ctypes.CDLL(found.abs_path))
        except (ImportError, OSError, RuntimeError) as error:       # pathfinder raises the last
            _log.warning("products are CuPy's, which copies transposes and has no graphs: %s", error)
            _library.append(None)
    return _library[0]


def checked(status, what):
    if status:
        raise CublasError(f"{what} gave status {status}")


class Handle:
    """A thread's handle for a device, with a workspace for each stream, since concurrent calls must not share one."""

    def __init__(self, cublas):
        self.cublas, self.address, self.stream, self.memory = cublas, ctypes.c_void_p(), None, {}
        checked(cublas.cublasCreate_v2(ctypes.byref(self.address)), "cublasCreate")

    def on(self, cp):
        """The handle, set to CuPy's current stream."""
        stream = cp.cuda.get_current_stream().ptr
        if stream != self.stream or stream not in self.memory:
            memory = self.memory.pop(stream, None) or cp.cuda.alloc(WORKSPACE)
            self.memory[stream] = memory
            if len(self.memory) > STREAMS:
                del self.memory[next(iter(self.memory))]
            checked(self.cublas.cublasSetStream_v2(self.address, ctypes.c_void_p(stream)), "cublasSetStream")
            checked(self.cublas.cublasSetWorkspace_v2(self.address, ctypes.c_void_p(memory.ptr),
                                                      ctypes.c_size_t(WORKSPACE)), "cublasSetWorkspace")
            self.stream = stream
        return self.address


def handle(cp, cublas):
    """This thread's handle for the current device, set to CuPy's current stream."""
    handles, device = vars(_own).setdefault("handles", {}), cp.cuda.runtime.getDevice()
    if device not in handles:
        handles[device] = Handle(cublas)
    return handles[device].on(cp)


def taken(stream):
    """Hand over the workspace of a stream to the caller; None if there is none."""
    found = [h.memory.pop(stream, None) for h in vars(_own).get("handles", {}).values()]
    return next((m for m in found if m is not None), None)


def product(cp, a, b, out=None, tf32=False):
    """a @ b of device arrays with one to three axes, with stacks of equal length or of length one.

    tf32: single-precision factors are rounded to 10 bits for the tensor cores.
    """
    dtype = np.result_type(a.dtype, b.dtype)
    cublas = library() if dtype.char in KINDS and (a.ndim > 1 or b.ndim > 1) else None
    if cublas is None or 0 in (*a.shape, *b.shape) or out is not None and not (
            out.flags.c_contiguous and out.dtype == dtype):
        a, b = of_wide(a, b)
        made = (cp.matmul(a, b) if max(a.ndim, b.ndim) > 2 else cp.dot(a, b)).astype(dtype, copy=False)
        if out is None:
            return made
        out[...] = made
        return out
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} != {b.shape[max(b.ndim - 2, 0)]}")
    if out is None:
        out = cp.empty(shape_of(a, b), dtype)
    if max(a.ndim, b.ndim) == 2 and 1 in (a.ndim, b.ndim) and dtype.char in LETTERS:
        of_vector(cp, cublas, a, b, out)
    else:
        of_stacks(cp, cublas, a, b, out, tf32)
    return out


def of_wide(a, b):
    """Factors for NumPy and CuPy: bfloat16 in single precision."""
    return tuple(x.astype(np.float32) if x.dtype.char == "E" else x for x in (a, b))


def shape_of(a, b):
    """The shape of a product.

    >>> shape_of(np.ones((1, 2, 3)), np.ones((5, 3, 4))), shape_of(np.ones(3), np.ones((3, 4)))
    ((5, 2, 4), (4,))
    """
    stack = (max(a.shape[0] if a.ndim > 2 else 1, b.shape[0] if b.ndim > 2 else 1),) * (max(a.ndim, b.ndim) > 2)
    return (*stack, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))


def laid(cp, x):
    """(matrices, TRANSPOSED if they are column-major, leading dimension, stride between matrices).

    A matrix that is neither row-major nor column-major is copied.
    """
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, along = (s // size for s in x.strides[-2:])
    between = x.strides[0] // size if x.ndim > 2 and x.shape[0] > 1 else 0
    whole = not any(n > 1 and (s % size or s < 0) for n, s in zip(x.shape, x.strides))
    if whole and (columns == 1 or along == 1) and (rows == 1 or down >= columns):
        return x, PLAIN, down if rows > 1 else columns, between
    if whole and (rows == 1 or down == 1) and (columns == 1 or along >= rows):
        return x, TRANSPOSED, along if columns > 1 else rows, between
    return laid(cp, cp.ascontiguousarray(x))


def of_stacks(cp, cublas, a, b, out, tf32):
    """out = a @ b, with vectors as matrices of one row or one column."""
    a, b = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    (a, of_a, step_a, next_a), (b, of_b, step_b, next_b) = laid(cp, a), laid(cp, b)
    rows, columns, depth = a.shape[-2], b.shape[-1], a.shape[-1]
    count = out.shape[0] if max(a.ndim, b.ndim) > 2 else 1
    kind = out.dtype.char
    one, zero = (np.array(v, FACTORS[kind]) for v in (1, 0))
    whole, address = ctypes.c_int64, ctypes.c_void_p
    checked(cublas.cublasGemmStridedBatchedEx_64(
        handle(cp, cublas), of_b, of_a, whole(columns), whole(rows), whole(depth), address(one.ctypes.data),
        address(b.data.ptr), KINDS[kind], whole(step_b), whole(next_b),
        address(a.data.ptr), KINDS[kind], whole(step_a), whole(next_a), address(zero.ctypes.data),
        address(out.data.ptr), KINDS[kind], whole(columns), whole(rows * columns), whole(count),
        TF32 if tf32 and kind in "fF" else SUMS[kind], -1), "cublasGemmStridedBatchedEx")


def of_vector(cp, cublas, a, b, out):
    """out = a @ b for a matrix and a vector, in either order."""
    matrix, vector = (a, b) if a.ndim == 2 else (b, a)
    matrix, by_columns, step, _ = laid(cp, matrix)
    apart, left = divmod(vector.strides[0], vector.itemsize) if vector.size > 1 else (1, 0)
    if left or apart <= 0:
        vector, apart = cp.ascontiguousarray(vector), 1
    rows, columns = matrix.shape if by_columns else matrix.shape[::-1]      # the column-major shape
    plain = (a.ndim == 2) == bool(by_columns)
    kind = out.dtype.char
    one, zero = (np.array(v, kind) for v in (1, 0))
    whole, address = ctypes.c_int64, ctypes.c_void_p
    checked(getattr(cublas, f"cublas{LETTERS[kind]}gemv_v2_64")(
        handle(cp, cublas), PLAIN if plain else TRANSPOSED, whole(rows), whole(columns), address(one.ctypes.data),
        address(matrix.data.ptr), whole(step), address(vector.data.ptr), whole(apart),
        address(zero.ctypes.data), address(out.data.ptr), whole(1)), f"cublas{LETTERS[kind]}gemv")
