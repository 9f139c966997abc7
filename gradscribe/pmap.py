# SPDX-License-Identifier: Apache-2.0
"""gs.pmap: one program on many devices (SPMD), each with its own part of the arguments."""
import contextlib
import functools
import hashlib
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from gradscribe import machine
from gradscribe.api import _base, _dummy, _plain
from gradscribe.ast_transform.mapping import on_devices, vmap
from gradscribe.ast_transform.reader.values import Derived
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.entry import OTHER, entry_for
from gradscribe.frames import public
from gradscribe.in_kind import holds_objects, refusal
from gradscribe.jit import CHOSEN, ENTRIES, Jitted, OnDevice, standing_for
from gradscribe.named import bound, found_on, reduced, take_name
from gradscribe.runtime import groups, teams
from gradscribe.steps import step_of
from gradscribe.threads import one_thread_each
from gradscribe.transformed import Transformed, Version
from gradscribe.tree_util import tree_broadcast, tree_flatten, tree_leaves, tree_unflatten

NAMELESS = "devices"                    # the axis of a pmap without axis_name


def deadline() -> float | None:
    """Seconds that a device waits for the others: GRADSCRIBE_DEADLINE, or 300; None, for 0, is no limit."""
    return float(os.environ.get("GRADSCRIBE_DEADLINE", "300")) or None


def gpus() -> Any:
    """The module gpus, imported at first use, since it imports SciPy and Numba."""
    return importlib.import_module("gradscribe.gpus")


@public
def pmap(
    fun: Callable, axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (), devices: Sequence[Any] | None = None,
    backend: str | None = None, axis_size: int | None = None, compress: bool = False,
) -> "Pmapped":
    """The function, compiled, on one device for each entry of the mapped axes; each device gets its own entry.

    axis_name: the name of the mapped axis for the collectives of gs.lax (psum, pmean, all_gather, ppermute, axis_index,
    ...).  in_axes, out_axes: as for gs.vmap; with out_axes None the result is the first device's.
    static_broadcasted_argnums: positions of arguments that are compile-time constants, the same for all devices.
    devices: the devices to use, from gs.devices() or gs.devices("gpu").  backend: "threads" for the cores of this
    process, "mpi" for the processes of a run that gs.distributed has joined (the default in such a run), "gpu" or
    "cuda" for GPUs.  axis_size: the number of devices, where no argument is mapped.
    compress: sums and means of float64 and complex128 arrays over the devices are taken in single precision.

    Under MPI each process is one device.  If the mapped axes are as long as there are processes, the arguments must be
    the same in all; each takes its own entry and gets all results.  If they have length 1, they are the process's own
    part, as in JAX.  A sum over processes starts as soon as its operand is computed, and overlaps with the computation
    that follows; `lowered` shows where.

    On GPUs the program is compiled for CUDA, as by gs.jit(target="cuda"), and run by one thread for each GPU, or by one
    process for each under MPI.  GPUs are used if `devices` are GPUs or an argument is a device array.  Results are
    device arrays, stacked on the first GPU; under MPI on the process's own.

    Sums over devices are taken in the order of their numbers, so that results are reproducible bit for bit.  On GPUs
    NCCL chooses the order, which is the same for the same GPUs and sizes.  If one device fails, all end with its error.
    Inside a function that is transformed, pmap is vmap: the values are the same.

    Raises KindError for axes that do not fit the arguments or the devices, and for missing GPUs or NCCL; groups.Lost, a
    RuntimeError, if the devices call different collectives, or if one is later than GRADSCRIBE_DEADLINE seconds (300).

    >>> import numpy as np, gradscribe as gs
    >>> f = gs.pmap(lambda x: x / gs.lax.psum(x, "i"), axis_name="i")
    >>> f(np.array([5.0])).tolist()
    [1.0]
    """
    return Pmapped(fun, axis_name, in_axes, out_axes, static_broadcasted_argnums, devices, backend, axis_size, compress)


class Pmapped:
    """A function on many devices; `source` is the text that each one runs."""

    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, base, axis_name, in_axes, out_axes, static, devices, backend, axis_size, compress=False):
        if backend not in (None, "threads", "mpi", "cpu", "gpu", "cuda"):
            raise KindError(f"backend must be 'threads', 'mpi' or 'gpu', not {backend!r}")
        if not isinstance(compress, (bool, np.bool_)):
            raise KindError(f"compress must be True or False, not {compress!r}", None,
                            "True takes sums of double precision in single precision.")
        self.static = (static,) if isinstance(static, int) else tuple(static)
        self.name = NAMELESS if axis_name is None else axis_name
        mapping = vmap(in_axes, out_axes, axis_name, axis_size, static=self.static)
        self.as_vmap = Transformed(base, mapping, made_by="pmap")
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes, self.axis_size, self.backend = out_axes, axis_size, backend
        self.devices = None if devices is None else list(devices)
        self.compress = bool(compress)
        take_name(self, base, f"pmap_{getattr(base, '__name__', 'f')}")
        self.as_vmap.__name__ = self.__name__
        self.__setstate__({})

    def __getstate__(self):
        return {k: v for k, v in vars(self).items() if k not in ("programs", "last", "_steps", "_seen", "_launchers")}

    def __setstate__(self, state):
        vars(self).update(state, programs={}, last=None, _steps=[], _seen=set(), _launchers={})

    def __getattr__(self, name: str) -> Any:
        return found_on(self, "as_vmap", name)

    def __repr__(self):
        return repr(self.as_vmap)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on all devices, each with its part of the arguments."""
        for step in self._steps:
            out = step(args, kwargs)
            if out is not OTHER:
                return out
        leaves, structure, places, size = self.mapped(args, kwargs)
        by_gpus = self.takes_gpus(leaves)
        if by_gpus and machine.RUN or self.backend == "mpi" or self.backend is None and machine.RUN:
            return self.on_ranks(leaves, structure, places, size, by_gpus)
        parts = [tree_unflatten(structure, part_of(leaves, places, rank)) for rank in range(size)]
        if by_gpus:
            return self.on_gpus(parts, gpus().numbers_of(self.devices, size))
        program = self.program(size)
        results = self.on_threads(program, parts, size)
        if len(self._steps) < ENTRIES:
            self.shorten(program, args, kwargs, structure, places, size)
        return self.collected(results)

    @property
    def source(self):
        """The text that each device ran last; that of vmap before the first call."""
        return source_of(self.last) if self.last is not None else self.as_vmap.source

    @property
    def lowered(self):
        """The text that was compiled for each device."""
        return self.last.lowered if self.last is not None else "# not called yet"

    def program(self, size, overlap=False):
        """The compiled function that each of `size` devices runs."""
        return self.compiled_by(Jitted, (size, overlap), size, overlap)

    def for_gpus(self, size):
        """The compiled function that each of `size` GPUs runs; sums over GPUs overlap with computation."""
        return self.compiled_by(functools.partial(OnDevice, options=CHOSEN), (size, "gpus"), size, size > 1)

    def compiled_by(self, compiler, key, size, overlap):
        """The function for a number of devices, which `compiler` compiles once for each key."""
        if key not in self.programs:
            transform = on_devices({self.name: size}, overlap, self.compress)
            self.programs[key] = compiler(Transformed(self.base, transform), self.static)
        self.last = self.programs[key]
        return self.last

    # arguments

    def mapped(self, args, kwargs):
        """(leaves, structure, the mapped axis of each leaf or None, number of devices)."""
        axes = self.in_axes
        if isinstance(axes, tuple) and len(axes) != len(args):
            raise KindError(f"in_axes has {len(axes)} entries, and {len(args)} positional arguments are given", None,
                            "Give one for each; those given by keyword are mapped along axis 0.")
        axes = [None if k in self.static else axes[k] if isinstance(axes, tuple) else axes for k in range(len(args))]
        leaves, structure = tree_flatten((args, kwargs))
        if any(map(holds_objects, leaves)):
            raise refusal("pmap")
        places = []
        for k, (value, axis) in enumerate([*zip(args, axes), (kwargs, 0)]):
            places += axes_of(value, axis, f"in_axes of argument {k}")
        size = self.axis_size
        for n, (leaf, axis) in enumerate(zip(leaves, places)):
            if axis is None:
                continue
            leaf = leaves[n] = gpus().as_array(leaf) if machine.is_on_gpu(leaf) else np.asarray(leaf)
            if not -leaf.ndim <= axis < leaf.ndim:
                raise KindError(f"in_axes maps axis {axis} of an array of shape {leaf.shape}", None,
                                "Give an axis that it has, or None for what is the same on all devices.")
            places[n] = axis % leaf.ndim
            if size is None:
                size = leaf.shape[axis]
            if leaf.shape[axis] != size:
                raise KindError(f"the mapped axes have different lengths: {size} and {leaf.shape[axis]}", None,
                                "Map axes of one length.")
        if size is None:
            raise KindError("pmap maps no argument: every entry of in_axes is None", None,
                            "Map one, or give axis_size.")
        there = self.device_count(self.takes_gpus(leaves))
        if size > there or size < 1:
            raise KindError(f"the mapped axes have length {size}, and there are {there} devices", None,
                            "Map at most as many; GRADSCRIBE_DEVICES says how many this process has.")
        return leaves, structure, places, size

    def takes_gpus(self, leaves):
        """Whether to use GPUs: by `backend`, by `devices` or for arguments on a GPU."""
        if self.backend is None:
            return machine.are_gpus(self.devices) or any(map(machine.is_on_gpu, leaves))
        return self.backend in ("gpu", "cuda")

    def device_count(self, by_gpus=False):
        """The number of devices, all of them by default."""
        if by_gpus:
            gpus().check()
        return machine.device_count("gpu" if by_gpus else "cpu") if self.devices is None else len(self.devices)

    # running

    def on_threads(self, program, parts, size):
        """The results of all members, each run by a thread."""
        args, kwargs = parts[0]
        grid = teams.Grid([self.name], [size], deadline())
        version = shown(program, args, kwargs)  # compiled once, before all begin

        def piece(rank):
            args, kwargs = parts[rank]

            def run():
                with groups.axes_bound(grid.members(rank)), groups.own_errors():
                    return program(*args, **kwargs)
            return run
        with one_thread_each(), version.compiled.apart():
            return teams.side_by_side([piece(rank) for rank in range(size)], grid, deadline())

    def on_gpus(self, parts, numbers):
        """Run on one thread for each GPU; the results are stacked on the first."""
        program = self.for_gpus(len(numbers))
        with gpus().device.cp.cuda.Device(numbers[0]):
            shown(program, *parts[0])   # compiled once, before all begin
        results = gpus().side_by_side(self.name, program, parts, numbers, deadline())
        return self.collected(results, gpus().stack(numbers[0]))

    def shorten(self, program, args, kwargs, structure, places, size):
        """Make a fast path for arguments like these, at the second call of a version."""
        version = program._last
        if version not in self._seen:
            self._seen.add(version)
            return
        if version.leaves is None or version.convert or program._least or program._tied or \
                not version.compiled.can_be_launched:
            return

        def in_python(rank, given):
            """The result of the plain function on one device, for an exception that compiled code cannot word."""
            leaves, structure, places, _ = self.mapped(given[:len(args)], dict(zip(kwargs, given[len(args):])))
            own, words = tree_unflatten(structure, part_of(leaves, places, rank))
            return program.base(*own, **words)
        key = version, size
        if key not in self._launchers:
            self._launchers[key] = version.compiled.launcher(self.name, size, in_python)
        positional, named = tree_unflatten(structure, [-1 if axis is None else axis for axis in places])
        step = step_of(version, [*positional, *named.values()], size, self._launchers[key], self.collected,
                       lambda tree: axes_of(tree, self.out_axes, "out_axes"), deadline)
        if step is None:
            return

        def call(*given):
            self.last, program.made._last = program, version
            with one_thread_each():
                return step(*given)

        def there():
            return self.device_count() >= size and (self.backend is not None or not machine.RUN)
        entry = entry_for(args, kwargs, call, (*version.guards, there), program._static)
        if entry is not None:
            self._steps.append(entry)

    def on_ranks(self, leaves, structure, places, size, by_gpus=False):
        """Run this process's part: its own entry of the arguments, or all of them if they are its own part."""
        if not machine.RUN:
            raise KindError('backend="mpi" needs processes that are joined', None,
                            "Call gs.distributed.initialize(), or start with mpiexec -n 4 python -m gradscribe.run ...")
        world = machine.RUN["world"]
        if size not in (1, world.size):
            raise KindError(f"the mapped axes have length {size}, and there are {world.size} processes", None,
                            "Map an axis as long as there are processes, or this process's own part, of length 1.")
        line, own = world.group(self.name), size == 1 < world.size
        rank = 0 if own else world.rank
        args, kwargs = tree_unflatten(structure, part_of(leaves, places, rank))
        program = self.for_gpus(world.size) if by_gpus else self.program(world.size, overlap=world.size > 1)
        try:
            with gpus().of_process(world, line) if by_gpus else contextlib.nullcontext(line) as group:
                if by_gpus:
                    args, kwargs = gpus().moved((args, kwargs), group.device)
                version = shown(program, args, kwargs)
                world.agree(line, f"{self.__name__}({spelled(args)}), text {hashed(version.text)}")
                with groups.axes_bound({self.name: group}), groups.own_errors():
                    result = program(*args, **kwargs)
                if by_gpus:
                    world.wait(line, gpus().Stream(group), f"the end of {self.__name__}")
                world.agree(line, f"the end of {self.__name__}")
        except BaseException as error:
            if not isinstance(error, groups.Lost):
                world.tell(f"{type(error).__name__}: {error}")
                error.add_note(f"raised on rank {world.rank} of {world.size} of the axis {self.name!r}")
            raise
        if own:
            return self.collected([result], gpus().stack(group.device) if by_gpus else np.stack)
        first, structure = tree_flatten(result)
        found, xp = zip(first, axes_of(result, self.out_axes, "out_axes")), gpus().device.cp if by_gpus else np
        return tree_unflatten(structure, [
            leaf if axis is None else xp.moveaxis(group.gather(xp.asarray(leaf), "the results"), 0, axis)
            for leaf, axis in found])

    def collected(self, results, stack=np.stack):
        """The results of all devices, stacked along out_axes."""
        first, structure = tree_flatten(results[0])
        places = axes_of(results[0], self.out_axes, "out_axes")
        others = [tree_leaves(r) for r in results[1:]]
        made = []
        for k, (leaf, axis) in enumerate(zip(first, places)):
            made.append(leaf if axis is None else stack([leaf, *(o[k] for o in others)], axis))
        return tree_unflatten(structure, made)


def part_of(leaves, places, rank):
    """The leaves for one device."""
    return [leaf if axis is None else leaf[(slice(None),) * axis + (rank,)] for leaf, axis in zip(leaves, places)]


def shown(program: Any, args: Sequence, kwargs: dict[str, Any]) -> Version:
    """The version of a program for these arguments, which become the program's example if it is new."""
    before = program._last
    version = program.compiled_for(args, kwargs)
    if version is not before:
        leaves, structure = tree_flatten((args, kwargs))
        like = [np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, np.ndarray) else x
                for x in map(standing_for, leaves)]
        program.example = tree_unflatten(structure, like)
    return version


def source_of(program: Any) -> str:
    """The text of what one device runs, before compilation."""
    if getattr(program, "example", None) is None:
        return program.source
    args, kwargs = program.example
    return program.base.source_for(*args, **kwargs)


def spelled(args: Any) -> str:
    """The dtypes and shapes of arguments, for messages."""
    arrays = [np.asarray(standing_for(leaf)) for leaf in tree_leaves(args)]
    return ", ".join([f"{a.dtype}[{', '.join(map(str, a.shape))}]" for a in arrays[:6]] + ["..."] * (len(arrays) > 6))


@functools.lru_cache(1024)
def hashed(text: str) -> str:
    """A short hash of a text, which the processes compare."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def axes_of(value, axis, what):
    """The axis of each leaf of a tree, from one axis for all or a tree of axes."""
    if axis is None or type(axis) is int:
        return [axis] * len(tree_leaves(value))
    try:
        spread = tree_broadcast(axis, value, is_leaf=lambda a: a is None)
    except (TypeError, ValueError) as error:
        raise KindError(f"{what} is {axis!r}: {error}", None,
                        "Give an int, None, or a container of the same structure.") from None
    return tree_leaves(spread, is_leaf=lambda a: a is None)


def _read_pmap(reader, args, words, node):
    given = {**dict(zip(("fun", "axis_name"), args)), **words}
    base = given.pop("fun")
    options = {k: _plain(reader, v, f"{k} of pmap", node) for k, v in given.items() if k not in ("devices", "backend")}
    return Derived(pmap(_dummy, **options).transform, _base(base))


cast(Any, pmap).normal_form_ = _read_pmap
