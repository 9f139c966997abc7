"""Bytes that a call moves on a device: what its kernels read and write, counted by running their PTX.

Of each launch the bytes that are read count once, and those that are written: a cache keeps what threads of one launch
read again.  A library's call reads what it is given and writes what it gives.
"""
import contextlib
from typing import NamedTuple

import numpy as np
from device import loopback, ptx


class Moved(NamedTuple):
    """bytes: that kernels and libraries read and write; kernels, libraries: (name, bytes) of each launch and call."""
    bytes: int
    kernels: list
    libraries: list


def moved(function, args) -> Moved:
    """What a call of function(*args) moves, args being of the host; it has run before, so nothing is compiled in it."""
    with loopback.looped("cuda", machine=True) as (cp, cublas):
        there = on_device(cp, args)
        function(*there)
        with counted(cp, cublas) as (kernels, libraries):
            function(*there)
        return Moved(sum(b for _, b in (*kernels, *libraries)), kernels, libraries)


def on_device(cp, value):
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(cp, v) for v in value)
    return cp.asarray(value) if isinstance(value, np.ndarray) else value


@contextlib.contextmanager
def counted(cp, cublas):
    """([(kernel, bytes)], [(call, bytes)]) of the launches, and of the libraries' calls, inside."""
    kernels, libraries = [], []
    run, reach, done = ptx.Launch.run, ptx.Launch.reach, type(cp).done
    gemm, gemv = cublas.cublasGemmStridedBatchedEx_64, cublas.gemv

    def running(launch):
        launch.touched = {"r": [], "w": []}
        run(launch)
        kernels.append((launch.program.entry, sum(
            len(np.unique(np.concatenate(found))) for found in launch.touched.values() if found)))

    def reaching(launch, address, dtype, who, way):
        inside = np.zeros(len(address), bool)
        for a, b in launch.given:
            inside |= (address >= a) & (address < b)
        places = (address[inside][:, None] + np.arange(dtype.itemsize)).ravel()
        for kind in {"r": "r", "w": "w", "a": "rw"}[way]:
            launch.touched[kind].append(places)
        return reach(launch, address, dtype, who, way)

    def doing(cupy, called, *given, **words):
        made = done(cupy, called, *given, **words)
        libraries.append((called.__name__, made.nbytes + sum(a.nbytes for a in given if isinstance(a, np.ndarray))))
        return made

    def of_matrices(handle, of_a, of_b, m, n, k, alpha, a, kind, *rest):
        m, n, k, count = map(loopback.number, (m, n, k, rest[-3]))
        letter = {v: k for k, v in loopback.blas.KINDS.items()}[kind]
        size = 2 if letter == "E" else np.dtype(letter).itemsize
        libraries.append(("gemm", size * count * (m * k + k * n + m * n)))
        return gemm(handle, of_a, of_b, m, n, k, alpha, a, kind, *rest)

    def of_a_vector(dtype, handle, flag, m, n, *rest):
        a, b = map(loopback.number, (m, n))
        libraries.append(("gemv", dtype.itemsize * (a * b + a + b)))
        return gemv(dtype, handle, flag, m, n, *rest)
    ptx.Launch.run, ptx.Launch.reach, type(cp).done = running, reaching, doing
    cublas.cublasGemmStridedBatchedEx_64, cublas.gemv = of_matrices, of_a_vector
    try:
        yield kernels, libraries
    finally:
        ptx.Launch.run, ptx.Launch.reach, type(cp).done = run, reach, done
        del cublas.cublasGemmStridedBatchedEx_64, cublas.gemv
