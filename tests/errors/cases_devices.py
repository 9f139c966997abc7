"""gs.pmap and gs.shard_map: arguments, axes and devices that do not fit."""
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from errors.cases import refused

import gradscribe as gs
from gradscribe import machine
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError
from gradscribe.runtime.collectives import psum_start

X = np.ones((2, 3))
MESH = gs.Mesh((1, 2), ("data", "model"))


def double(x):
    return 2 * x


@contextmanager
def cores(count):
    before, machine.cores = machine.cores, lambda: count
    try:
        yield
    finally:
        machine.cores = before


def sharded(*in_specs):
    return gs.shard_map(double, mesh=MESH, in_specs=in_specs, out_specs=gs.P())


@refused(KindError)
def backend_of_another_name():
    gs.pmap(double, backend="tpu")


@refused(KindError)
def compressed_to_another_dtype():
    gs.pmap(double, compress=np.float16)


@refused(KindError)
def axes_for_other_arguments():
    gs.pmap(double, in_axes=(0, 0))(X)


@refused(KindError)
def axis_that_is_not_there():
    gs.pmap(double, in_axes=2)(X)


@refused(KindError)
def devices_without_a_mapped_axis():
    gs.pmap(double, in_axes=None)(X)


@refused(KindError)
def mapped_axes_of_two_lengths():
    gs.pmap(lambda x, y: x + y)(X, np.ones(3))


@refused(KindError)
def more_than_there_are_devices():
    with cores(2):
        gs.pmap(double)(np.ones(3))


@refused(KindError)
def axes_of_another_structure():
    gs.pmap(double, in_axes=([0, 0],))(X)


@refused(KindError)
def processes_that_are_not_joined():
    gs.pmap(double, backend="mpi")(X)


@refused(KindError)
def more_than_there_are_processes():
    machine.RUN["world"] = SimpleNamespace(size=4, rank=0)
    try:
        gs.pmap(double)(X)
    finally:
        del machine.RUN["world"]


@refused(KindError)
def mesh_with_one_name_twice():
    gs.Mesh((2, 2), ("data", "data"))


@refused(KindError)
def mesh_of_more_than_there_are_devices():
    with cores(1):
        sharded(gs.P("model"))(X)


@refused(KindError)
def parts_that_are_not_equal():
    with cores(2):
        sharded(gs.P(None, "model"))(X)


@refused(KindError)
def processes_for_a_mesh():
    gs.shard_map(double, mesh=MESH, in_specs=(gs.P(),), out_specs=gs.P(), backend="mpi")(X)


@refused(KindError)
def shard_map_inside():
    mapped = sharded(gs.P("model"))
    gs.grad(lambda x: np.sum(mapped(x))).source_for(X)


@refused(KindError)
def spec_that_is_none():
    sharded("model")(X)


@refused(KindError)
def spec_with_an_axis_that_the_mesh_has_not():
    sharded(gs.P("pipeline"))(X)


@refused(KindError)
def specs_of_another_structure():
    sharded([gs.P(), gs.P()])(X)


@refused(KindError)
def spec_for_more_axes():
    sharded(gs.P(None, None, "model"))(X)


@refused(LanguageError)
def half_of_a_sum():
    gs.pmap(lambda x: psum_start(x, "i"), "i")(X[:1])
