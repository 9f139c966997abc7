# SPDX-License-Identifier: Apache-2.0
"""What gs.pmap runs on: the cores of this process, and the processes of a run under MPI."""
import functools
import os
from dataclasses import dataclass
from typing import Any

RUN: dict[str, Any] = {}                # "world": all processes, once gs.distributed has joined them


@dataclass(frozen=True)
class Device:
    """One core of a process, or one process of several."""

    id: int
    process_index: int
    platform: str = "cpu"

    def __repr__(self):
        return f"CpuDevice(id={self.id})"


@functools.cache
def cores() -> int:
    """GRADSCRIBE_DEVICES, or the cores that this process may use."""
    given = os.environ.get("GRADSCRIBE_DEVICES")
    if given is not None:
        return max(1, int(given))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_count() -> int:
    """How many processes the run has: 1 but for runs that gs.distributed has joined.

    >>> import gradscribe as gs
    >>> gs.process_count()
    1
    """
    return RUN["world"].size if RUN else 1


def process_index() -> int:
    """The number of this process, from 0."""
    return RUN["world"].rank if RUN else 0


def local_device_count() -> int:
    """How many devices this process has: its cores, or GRADSCRIBE_DEVICES; one where there are several processes."""
    return 1 if RUN else cores()


def device_count() -> int:
    """How many devices there are in all processes; as jax.device_count.

    >>> import gradscribe as gs
    >>> gs.device_count() == len(gs.devices())
    True
    """
    return process_count() if RUN else cores()


def devices() -> list[Device]:
    """The devices of all processes, in the order of their numbers; as jax.devices."""
    return [Device(k, k if RUN else 0) for k in range(device_count())]
