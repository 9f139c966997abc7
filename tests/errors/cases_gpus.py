"""gs.pmap on GPUs that are not there, or cannot be had in this way."""
from types import SimpleNamespace
from unittest import mock

import numpy as np
from device.loopback import looped
from device.loopback_nccl import NCCL
from errors.cases import refused

import gradscribe as gs
from gradscribe import machine
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.runtime import device

X = np.ones((2, 3))


def double(x):
    return 2 * x


@refused(KindError)
def devices_of_another_backend():
    gs.devices("tpu")


@refused(KindError)
def gpus_where_there_is_none():
    with mock.patch.object(device, "device_count", lambda: 0):
        gs.pmap(double, backend="gpu")(X)


@refused(KindError)
def gpus_and_a_twin():
    with mock.patch.object(device, "device_count", lambda: 2), device.using("twin"):
        gs.pmap(double, backend="gpu")(X)


@refused(KindError)
def gpus_that_cannot_talk():
    with looped(count=2):
        gs.pmap(double, backend="gpu")(X)


@refused(KindError)
def a_gpu_that_is_not_there():
    with looped(count=2, nccl=NCCL):
        gs.pmap(double, backend="cuda", devices=[0, 2])(X)


@refused(KindError)
def a_gpu_twice():
    with looped(count=2, nccl=NCCL):
        gs.pmap(double, backend="cuda", devices=[1, 1])(X)


@refused(KindError)
def more_processes_than_gpus():
    world = SimpleNamespace(size=3, rank=2, processes=[("host", k) for k in range(3)], group=lambda name: None,
                            tell=lambda reason: None)
    with looped(count=2, nccl=NCCL), mock.patch.dict(machine.RUN, world=world):
        gs.pmap(double, backend="gpu")(np.ones((3, 3)))


@refused(KindError)
def a_mesh_of_gpus():
    gs.shard_map(double, mesh=gs.Mesh((1, 2), ("data", "model")), in_specs=(gs.P(),), out_specs=gs.P(), backend="gpu")
