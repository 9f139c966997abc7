# SPDX-License-Identifier: Apache-2.0
"""The back end of emitted modules for a device, and its choice.

`from gradscribe.runtime.device import cp, cuda, ...` imports CuPy and Numba's CUDA, or their replacements without a
device.  GRADSCRIBE_CUDA or `use` chooses:

- `cuda`: numba-cuda and CuPy;
- `mlir`: numba-cuda-mlir and CuPy;
- `simulator`: Numba's simulator of CUDA in Python, and NumPy;
- `twin`: each kernel compiled for the processor, with blocks of one thread that run last to first, and NumPy;
- `plain`: the same as plain Python;
- `ptx`: the same, with each kernel also compiled and assembled for sm_90 (assembled.py).
"""
import contextlib
import functools
import importlib
import logging
import math
import os

import numpy as np

from gradscribe.runtime import assembled, launched, libraries, on_device, twin
from gradscribe.runtime.backends import BACKENDS, TWINS
from gradscribe.runtime.device_functions import HOST, KERNEL, PLAIN, as_one, type_of_bfloat16

THREADS = 256                           # threads of a block
SIMULATED = on_device.SIMULATED         # threads of a block in Numba's simulator
DEEPEST = 64                            # the most threads of a block along z
MOST = 2048                             # the most blocks of a grid
_chosen: list[str] = []
_found: dict = {}
_on_processor: list = [PLAIN.get]
_told: set[str] = set()
_log = logging.getLogger("gradscribe")


def use(name: str) -> None:
    """Choose one of BACKENDS for emitted modules that are built from now on.

    >>> use("plain")
    >>> chosen()
    'plain'
    """
    if name not in BACKENDS:
        raise ValueError(f"unknown back end {name!r}: one of {', '.join(BACKENDS)}")
    _chosen[:] = [name]


def chosen() -> str:
    """The name of the back end: that of `use` or GRADSCRIBE_CUDA, else `cuda` if there is a device, else `twin`."""
    if not _chosen:
        use(os.environ.get("GRADSCRIBE_CUDA") or ("cuda" if has_device() else "twin"))
    return _chosen[0]


@contextlib.contextmanager
def using(name: str):
    """A context with another back end.

    >>> with using("plain"):
    ...     chosen()
    'plain'
    """
    before = chosen()
    use(name)
    try:
        yield
    finally:
        use(before)


def device_count() -> int:
    """The number of devices that CuPy finds."""
    try:
        return importlib.import_module("cupy").cuda.runtime.getDeviceCount()
    except Exception:
        return 0


def has_device() -> bool:
    """Whether there is a device."""
    return device_count() > 0


def on_host() -> bool:
    """Whether device arrays are NumPy arrays."""
    return chosen() in ("simulator", *TWINS)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    bound = _found.get((chosen(), name))
    if bound is None:
        bound = _found[chosen(), name] = _bound(chosen(), name)
    return bound


def _bound(backend, name):
    if name == "np":
        return np
    if name == "bfloat16":
        return type_of_bfloat16()
    if name == "cp":
        return np if on_host() else importlib.import_module("cupy")
    if name == "cuda":
        if backend == "ptx":
            return assembled.reporting()
        if backend in TWINS:
            return twin.Cuda(compiled=backend == "twin")
        return numbas(backend) if backend == "simulator" else launched.Cuda(backend, numbas(backend))
    if name in GRIDS:
        return getattr(twin, name) if backend in TWINS else functools.partial(GRIDS[name], of_block=SIMULATED) \
            if backend == "simulator" else GRIDS[name]
    if name == "one":
        return functools.partial(as_one, __getattr__("cp"))
    if name in HOST:
        return HOST[name]
    if name == "host":
        return Host()
    if name not in PLAIN and name not in KERNEL:
        raise AttributeError(f"emitted modules have no {name}")
    if backend in TWINS:
        return twin.function(name, PLAIN, backend == "twin")
    return launched.bound(name, twin.InKernel() if backend == "simulator" else numbas(backend), backend)


def numbas(backend):
    """Numba's CUDA module for a back end other than the twins."""
    return importlib.import_module("numba_cuda_mlir.cuda" if backend == "mlir" else "numba.cuda")


@functools.lru_cache(maxsize=1024)
def grid_of(*lengths: int, across: int = THREADS, of_block: int = THREADS) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The blocks and threads for loops of these lengths, the outermost first; the innermost is along x.

    A block has its full number of threads whatever the lengths, at most as many along z as CUDA allows; across: the
    most along x.

    >>> grid_of(1000)
    ((4,), (256,))
    >>> grid_of(1000, 10), grid_of(5000, 1, 1)
    (((1, 63), (16, 16)), ((1, 1, 79), (4, 1, 64)))
    """
    threads, counts, left = [], [], of_block
    for k, n in enumerate(reversed(lengths)):
        along = left if k == len(lengths) - 1 else min(left, across if k == 0 else left,
                                                          1 << max(int(n) - 1, 0).bit_length())
        threads.append(along)
        left //= along
    if len(threads) == 3 and threads[2] > DEEPEST:
        threads[0] *= threads[2] // DEEPEST
        threads[2] = DEEPEST
    most = MOST
    for n, along in zip(reversed(lengths), threads):
        counts.append(min(-(-max(int(n), 1) // along), most))
        most = max(most // counts[-1], 1)
    return tuple(counts), tuple(threads)


@functools.lru_cache(maxsize=1024)
def tile_grid_of(*lengths: int, of_block: int = THREADS) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """As grid_of, for passes with locality along two axes: a warp has 32 of the innermost, a block 8 warps.

    >>> tile_grid_of(1000, 5000), tile_grid_of(1000, 10)
    (((157, 13), (32, 8)), ((1, 63), (16, 16)))
    """
    return grid_of(*lengths, across=32, of_block=of_block)


@functools.lru_cache(maxsize=1024)
def row_grid_of(count: int, length: int, of_block: int = THREADS) -> tuple[tuple[int], tuple[int]]:
    """The blocks for a number of rows, and the threads of a block: each has at least half a warp of work.

    >>> row_grid_of(1000, 50), row_grid_of(10, 5000)
    (((1000,), (64,)), ((10,), (256,)))
    """
    threads = min(of_block, max(32, 1 << (max(int(length), 1) - 1).bit_length()))
    return (max(1, min(int(count), MOST * THREADS // threads)),), (threads,)


def blocks_of(*lengths: int, of_block: int = THREADS) -> int:
    """The number of blocks of grid_of."""
    return math.prod(grid_of(*lengths, of_block=of_block)[0])


@functools.lru_cache(maxsize=1024)
def column_grid_of(count: int, length: int, of_block: int = THREADS) -> tuple[tuple[int, int], tuple[int, int]]:
    """The blocks and threads for `count` columns of a length: columns along x; at least 8 rows for each thread.

    >>> column_grid_of(10, 100000), column_grid_of(5000, 100)
    (((1, 128), (16, 16)), ((157, 2), (32, 8)))
    """
    across = min(32, 1 << max(int(count) - 1, 0).bit_length())
    down, wide = of_block // across, max(-(-int(count) // across), 1)
    deep = min(-(-int(length) // (8 * down)), 128, -(-MOST // (2 * wide)))
    return (wide, max(deep, 1)), (across, down)


def column_blocks_of(count: int, length: int, of_block: int = THREADS) -> int:
    """The number of partial sums of a column."""
    return column_grid_of(count, length, of_block)[0][1]


def one_block_of(threads: int, of_block: int = THREADS) -> tuple[int, int]:
    """One block of this many threads, or of the maximum."""
    return 1, min(threads, of_block)


def row_blocks_of(count: int, length: int, of_block: int = THREADS) -> int:
    """The number of blocks of row_grid_of."""
    return row_grid_of(count, length, of_block)[0][0]


GRIDS = {"one_block": one_block_of, "grid": grid_of, "tile_grid": tile_grid_of, "blocks": blocks_of,
         "row_grid": row_grid_of, "row_blocks": row_blocks_of, "column_grid": column_grid_of,
         "column_blocks": column_blocks_of}


class Host:
    """Functions of the host: those of lengths and other numbers directly, those of arrays by the device's libraries.

    What these lack is computed on the processor, with copies of the arrays there and back; the log says so.
    """

    def __getattr__(self, name):
        if name in libraries.FUNCTIONS:
            made = functools.partial(libraries.call, name, __getattr__("cp"))
        elif hasattr(PLAIN[name], "whole"):
            made = functools.partial(by_processor, name)
        else:
            made = PLAIN[name]
        setattr(self, name, made)
        return made


def by_processor(name, *args):
    """A function of arrays, computed on the processor."""
    cp = __getattr__("cp")
    if name not in _told and cp is not np:
        _told.add(name)
        _log.warning("%s is done on the processor: CuPy has nothing for it", name)
    out = _on_processor[0](name)(*[cp.asnumpy(a) if isinstance(a, cp.ndarray) else a for a in args]) if cp is not np \
        else _on_processor[0](name)(*args)
    there = [cp.asarray(o) if isinstance(o, np.ndarray) else o for o in (out if isinstance(out, tuple) else (out,))]
    return tuple(there) if isinstance(out, tuple) else there[0]


def ready(space: dict) -> None:
    """Prepare a module's functions for calls: kernels of the simulator must accept views."""
    if chosen() == "simulator":
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
        from numba.cuda.simulator.kernel import FakeCUDAKernel
        for name, value in space.items():
            if isinstance(value, FakeCUDAKernel) and not value._device:
                space[name] = twin.Simulated(value, FakeCUDAArray)


def provide(compiled, borrowed, keep) -> None:
    """Register where the runtime's compiled functions and SciPy's functions for compiled code come from, by name, and
    the cache of machine code.
    """
    _on_processor[:], twin.BORROWED[:], assembled.KEPT[:] = [compiled], [borrowed], [keep]
