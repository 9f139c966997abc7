"""What JAX gives for the programs on four simulated devices, from a process of its own: pmap_jax.py values.pickle"""
import os
import pickle
import sys

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
os.environ["PMAP_SIDE"] = "jax"

import jax  # noqa: E402  which reads the environment when it is imported
import numpy as np  # noqa: E402  after the environment, as the rest

jax.config.update("jax_enable_x64", True)

import pmap_programs  # noqa: E402  beside this file

all_to_all = jax.lax.all_to_all


def in_place(x, axis_name, split_axis, concat_axis, *, tiled=False):
    """all_to_all of the first axis: JAX's own transpose has the wrong shape where split_axis is not concat_axis."""
    if tiled:
        return all_to_all(x, axis_name, split_axis, concat_axis, tiled=True)
    return jax.numpy.moveaxis(all_to_all(jax.numpy.moveaxis(x, split_axis, 0), axis_name, 0, 0), 0, concat_axis)


def value(name, way):
    """The tree with NumPy's arrays."""
    if name.startswith("exchanged"):
        jax.lax.all_to_all = in_place if way in ("inside", "outside") else all_to_all
        jax.clear_caches()              # what was read with the other one
    return jax.tree_util.tree_map(np.asarray, pmap_programs.WAYS[way](pmap_programs.PROGRAMS[name]))


if __name__ == "__main__":
    assert jax.device_count() == 4
    found = {case: value(*case) for case in pmap_programs.CASES}
    with open(sys.argv[1], "wb") as file:
        pickle.dump(found, file)
