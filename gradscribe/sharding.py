# SPDX-License-Identifier: Apache-2.0
"""gs.shard_map: one program on a mesh of devices (SPMD), each with its own block of the arguments."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe import machine
from gradscribe.ast_transform.mapping import on_devices
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.in_kind import holds_objects, refusal
from gradscribe.jit import Jitted
from gradscribe.pmap import deadline, hashed, shown, source_of, spelled
from gradscribe.runtime import groups, teams
from gradscribe.threads import one_thread_each
from gradscribe.transformed import Transformed
from gradscribe.tree_util import tree_broadcast, tree_flatten, tree_leaves, tree_unflatten

__all__ = ["Mesh", "P", "PartitionSpec", "shard_map"]


class PartitionSpec(tuple):
    """How an array is sharded: for each of its axes a mesh axis, a tuple of mesh axes, or None for an axis that is not.

    Missing entries at the end mean None.

    >>> PartitionSpec("data", None)
    PartitionSpec('data', None)
    """

    def __new__(cls, *names: Any) -> "PartitionSpec":
        """A specification with one entry for each array axis."""
        return super().__new__(cls, names)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def cut(self) -> list[tuple]:
        """The mesh axes of each array axis, as tuples."""
        return [() if n is None else n if isinstance(n, tuple) else (n,) for n in self]


P = PartitionSpec


class Mesh:
    """A grid of devices with named axes: Mesh((2, 2), ("data", "model")), or Mesh(array of gs.devices(), names)."""

    @public
    def __init__(self, devices: Any, axis_names: Sequence[Any]):
        shape = tuple(devices) if isinstance(devices, tuple) else np.shape(devices)
        if len(shape) != len(axis_names) or len(set(axis_names)) != len(axis_names):
            raise KindError(f"a mesh of shape {shape} needs {len(shape)} different names, not {tuple(axis_names)}")
        self.shape_tuple, self.axis_names = tuple(int(n) for n in shape), tuple(axis_names)
        self.size = int(np.prod(self.shape_tuple))

    @property
    def shape(self) -> dict[Any, int]:
        """The number of devices along each axis, by name."""
        return dict(zip(self.axis_names, self.shape_tuple))

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{n!r}: {k}' for n, k in self.shape.items())})"


@public
def shard_map(f: Callable, *, mesh: Mesh, in_specs: Any, out_specs: Any, backend: str | None = None) -> "Sharded":
    """The function, compiled, on a mesh of devices, each with its own block of the arguments, as jax.shard_map.

    in_specs: a PartitionSpec for each argument, or a tree of them; out_specs: the same for the result.  An array axis
    that is sharded along a mesh axis is split into equal parts, one for each device along it.  Other axes are the same
    on all devices; for results, the first device's is returned.  Inside f, the collectives of gs.lax refer to the mesh
    axes by name.  backend: "threads" or "mpi", as for gs.pmap; under MPI, each process passes all of the arguments and
    gets all of the results.

    Gradients are those of gs.pmap: a loss that is summed over an axis counts once for each of its devices.  shard_map
    must be the outermost transformation: f may be a gradient, but the result of shard_map cannot be transformed.

    Raises KindError for specs that do not fit the arguments, the mesh or the devices.

    >>> import numpy as np, gradscribe as gs
    >>> mesh = gs.Mesh((1, 1), ("data", "model"))
    >>> product = gs.shard_map(lambda x, W: gs.lax.psum(x @ W, "model"), mesh=mesh,
    ...                        in_specs=(gs.P("data", "model"), gs.P("model", None)), out_specs=gs.P("data", None))
    >>> product(np.ones((2, 3)), np.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    return Sharded(f, mesh, in_specs, out_specs, backend)


class Sharded:
    """A function on a mesh of devices; `source` is the text that each one runs."""

    def __init__(self, base, mesh, in_specs, out_specs, backend):
        if backend in ("gpu", "cuda"):
            raise KindError("gs.shard_map does not run on GPUs", None, 'gs.pmap(f, "i", backend="gpu") does.')
        self.base, self.mesh, self.backend = base, mesh, backend
        self.in_specs, self.out_specs = in_specs, out_specs
        self.program = self.for_devices(overlap=False)
        self.__name__ = f"shard_map_{getattr(base, '__name__', 'f')}"

    def for_devices(self, overlap):
        return Jitted(Transformed(self.base, on_devices(self.mesh.shape, overlap)))

    @property
    def source(self):
        return source_of(self.program)

    @property
    def lowered(self):
        """The text that was compiled for each device."""
        return self.program.lowered

    def specs(self, value, specs, what):
        """The PartitionSpec of each leaf of a tree."""
        try:
            found = tree_leaves(tree_broadcast(specs, value, is_leaf=_is_spec), is_leaf=_is_spec)
        except (TypeError, ValueError) as error:
            raise KindError(f"{what}: {error}", None, "Give a PartitionSpec, or a tree of them.") from None
        for leaf, spec in zip(tree_leaves(value), found):
            if not isinstance(spec, PartitionSpec):
                raise KindError(f"{what} has {spec!r}, which is not a PartitionSpec", None, 'Give gs.P("data", None).')
            unknown = [n for names in spec.cut() for n in names if n not in self.mesh.axis_names]
            if unknown:
                raise KindError(f"{what}: the mesh has no axis {unknown[0]!r}", None,
                                f"It has {', '.join(map(repr, self.mesh.axis_names))}.")
            if len(spec) > np.ndim(leaf):
                raise KindError(f"{what}: {spec} is for more axes than an array of shape {np.shape(leaf)} has")
        return found

    def block(self, leaf, spec, place):
        """One device's block of an array."""
        index = []
        for axis, names in enumerate(spec.cut()):
            k, many = 0, 1
            for n in names:
                k, many = k * self.mesh.shape[n] + place[n], many * self.mesh.shape[n]
            if leaf.shape[axis] % many:
                raise KindError(f"an axis of length {leaf.shape[axis]} is cut into {many} parts", None,
                                "Give a length that is a multiple.")
            share = leaf.shape[axis] // many
            index.append(slice(k * share, (k + 1) * share))
        return leaf[tuple(index)] if any(spec.cut()) else leaf

    @public
    def __call__(self, *args):
        leaves, structure = tree_flatten(args)
        if any(map(holds_objects, leaves)):
            raise refusal("shard_map")
        specs = self.specs(args, self.in_specs, "in_specs")
        leaves = [np.asarray(leaf) if any(spec.cut()) else leaf for leaf, spec in zip(leaves, specs)]
        places = [dict(zip(self.mesh.axis_names, place)) for place in np.ndindex(*self.mesh.shape_tuple)]
        parts = [tree_unflatten(structure, [self.block(x, s, place) for x, s in zip(leaves, specs)])
                 for place in places]
        if self.backend == "mpi" or self.backend is None and machine.RUN:
            return self.on_ranks(parts)
        if self.mesh.size > machine.cores():
            raise KindError(f"{self.mesh} has {self.mesh.size} devices, and there are {machine.cores()}", None,
                            "GRADSCRIBE_DEVICES says how many this process has.")
        shown(self.program, parts[0], {})
        grid = teams.Grid(self.mesh.axis_names, self.mesh.shape_tuple, deadline())

        def piece(rank):
            def run():
                with groups.axes_bound(grid.members(rank)), groups.own_errors():
                    return self.program(*parts[rank])
            return run
        with one_thread_each():
            results = teams.side_by_side([piece(rank) for rank in range(grid.size)], grid, deadline())
        return self.joined(results)

    def on_ranks(self, parts):
        if not machine.RUN:
            raise KindError('backend="mpi" needs processes that are joined', None,
                            "Call gs.distributed.initialize(), or start with mpiexec -n 4 python -m gradscribe.run ...")
        world = machine.RUN["world"]
        if world.size > 1 and not self.program.base.transform.settings.overlap:
            self.program = self.for_devices(overlap=True)
        own, axes = parts[world.rank], world.mesh(self.mesh.axis_names, self.mesh.shape_tuple)
        try:
            version = shown(self.program, own, {})
            world.agree(world.whole, f"{self.__name__}({spelled(own)}), text {hashed(version.text)}")
            with groups.axes_bound(axes), groups.own_errors():
                result = self.program(*own)
            world.agree(world.whole, f"the end of {self.__name__}")
        except BaseException as error:
            if not isinstance(error, groups.Lost):
                world.tell(f"{type(error).__name__}: {error}")
                error.add_note(f"raised on rank {world.rank} of {world.size}")
            raise
        leaves, structure = tree_flatten(result)
        found = [world.whole.gather(np.asarray(leaf), "the results") for leaf in leaves]
        return self.joined([tree_unflatten(structure, [f[rank] for f in found]) for rank in range(world.size)])

    def joined(self, results):
        """The results of all devices, assembled by out_specs."""
        _, structure = tree_flatten(results[0])
        specs, made = self.specs(results[0], self.out_specs, "out_specs"), []
        for k, parts in enumerate(zip(*(tree_leaves(r) for r in results))):
            blocks = np.empty(self.mesh.shape_tuple, object)
            blocks.reshape(-1)[:] = list(map(_Block, parts))
            made.append(_put_together(blocks, specs[k].cut(), self.mesh))
        return tree_unflatten(structure, made)

    def normal_form_(self, reader, args, words, node):
        """Raise KindError: inside another function there are no devices."""
        raise KindError("gs.shard_map inside a function that is transformed is not read", reader.build.origin,
                        "Transform the function that it maps: gs.shard_map(gs.grad(f), ...).")


class _Block:
    """A block as one element of an object array."""

    def __init__(self, value):
        self.value = value


def _is_spec(value):
    return isinstance(value, PartitionSpec)


def _put_together(blocks, cut, mesh):
    """An array from the blocks of all devices."""
    named = [n for names in cut for n in names]
    first = tuple(slice(None) if n in named else 0 for n in mesh.axis_names)
    blocks = blocks[first]
    if not named:
        return blocks.value if isinstance(blocks, _Block) else blocks.item().value
    order = [n for n in mesh.axis_names if n in named]
    blocks = np.transpose(blocks, [order.index(n) for n in named])

    def along(blocks, axes):
        if not axes:
            return blocks.item().value if isinstance(blocks, np.ndarray) else blocks.value
        return np.concatenate([along(b, axes[1:]) for b in blocks], axes[0])
    return along(blocks, [axis for axis, names in enumerate(cut) for _ in names])
