# SPDX-License-Identifier: Apache-2.0
"""The devices of gs.pmap: the cores of this process, the processes of an MPI run, or GPUs."""
import functools
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public

PLATFORMS = {None: "cpu", "cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}       # JAX's names
RUN: dict[str, Any] = {}                # "world": the World of all processes, once gs.distributed has joined them


@dataclass(frozen=True)
class Device:
    """A core of a process, a process of an MPI run, or a GPU."""

    id: int
    process_index: int
    platform: str = "cpu"

    def __repr__(self):
        return f"{'Cuda' if self.platform == 'gpu' else 'Cpu'}Device(id={self.id})"


def platform_of(backend: str | None) -> str:
    """The platform of a backend: "cpu" or "gpu"."""
    if backend not in PLATFORMS:
        raise KindError(f"backend must be 'cpu', 'gpu' or 'cuda', not {backend!r}")
    return PLATFORMS[backend]


@functools.cache
def cores() -> int:
    """The number of cores to use: GRADSCRIBE_DEVICES, or all that this process may use."""
    given = os.environ.get("GRADSCRIBE_DEVICES")
    if given is not None:
        return max(1, int(given))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_count() -> int:
    """The number of processes of the run; 1 unless gs.distributed has joined several.

    >>> import gradscribe as gs
    >>> gs.process_count()
    1
    """
    return RUN["world"].size if RUN else 1


def process_index() -> int:
    """The rank of this process, from 0."""
    return RUN["world"].rank if RUN else 0


@public
def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process: its cores, or GRADSCRIBE_DEVICES; with "gpu" or "cuda" its GPUs.  In an
    MPI run, each process has one device.
    """
    if platform_of(backend) == "cpu" or RUN:
        return 1 if RUN else cores()
    return importlib.import_module("gradscribe.runtime.device").device_count()      # a slow import: SciPy and Numba


@public
def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes, as jax.device_count.

    >>> import gradscribe as gs
    >>> gs.device_count() == len(gs.devices())
    True
    """
    return process_count() if RUN else local_device_count(backend)


@public
def devices(backend: str | None = None) -> list[Device]:
    """The devices of all processes, in the order of their numbers, as jax.devices.

    backend: "cpu" (the default), or "gpu" or "cuda" for GPUs.  In an MPI run, each process has one device.
    """
    platform = platform_of(backend)
    return [Device(k, k if RUN else 0, platform) for k in range(device_count(backend))]


def are_gpus(devices: Sequence[Any] | None) -> bool:
    """Whether the `devices` of pmap are GPUs: those of devices("gpu"), or CuPy's."""
    return bool(devices) and all(getattr(d, "platform", None) == "gpu" or type(d).__module__.startswith("cupy")
                                 for d in cast(Sequence, devices))


def is_on_gpu(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an array on a GPU."""
    return hasattr(leaf, "__cuda_array_interface__")
