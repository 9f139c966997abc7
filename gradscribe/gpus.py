# SPDX-License-Identifier: Apache-2.0
"""gs.pmap on GPUs: one thread of this process for each GPU, or one process of an MPI run for each."""
import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.runtime import device, groups, nccl, teams
from gradscribe.threads import one_thread_each
from gradscribe.tree_util import tree_flatten, tree_leaves, tree_unflatten

WAY_OUT = 'Leave backend out, or give "cpu": threads of this process take the parts.'
_communicators: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()     # of the process's GPU, by its run


def as_array(leaf: Any) -> Any:
    """A device array as a CuPy array."""
    cp = device.cp
    return leaf if isinstance(leaf, cp.ndarray) else cp.asarray(leaf)


def check() -> None:
    """Raise KindError if there is no GPU, or no NCCL for GPUs to communicate by."""
    if not device.has_device():
        raise KindError("there is no GPU, or no CuPy that finds one", None, WAY_OUT)
    if device.on_host():
        raise KindError(f"GPUs are asked for, and GRADSCRIBE_CUDA or device.use says {device.chosen()!r}, which is "
                        "none", None, "Leave that out.")
    if nccl.library() is None:
        raise KindError("GPUs communicate by NCCL, which CuPy does not find", None,
                        'Install it: pip install "gradscribe[nccl]". ' + WAY_OUT)


def numbers_of(devices: Sequence[Any] | None, size: int) -> list[int]:
    """The numbers of the first `size` of the GPUs to use."""
    check()
    there = device.device_count()
    found = list(range(there)) if devices is None else [d if isinstance(d, int) else d.id for d in devices]
    if not all(0 <= k < there for k in found):
        wrong = next(k for k in found if not 0 <= k < there)
        raise KindError(f"devices has GPU {wrong}, and there are {there}", None, 'gs.devices("gpu") lists them.')
    if len(set(found)) < len(found):
        raise KindError(f"devices names a GPU twice: {found}", None, "Each takes one part.")
    return found[:size]


def side_by_side(name: Any, program: Callable, parts: Sequence[tuple], numbers: Sequence[int],
                 deadline: float | None) -> list:
    """Run a program on each GPU with its part of the arguments, to completion; name: that of the axis."""
    cp, grid = device.cp, teams.Grid([name], [len(numbers)], deadline)
    ready([leaf for part in parts for leaf in tree_leaves(part)])
    parts = [moved(part, k) for part, k in zip(parts, numbers)]
    clique = nccl.clique_of(numbers)
    with clique.call:
        members = [clique.member(grid.members(rank)[name]) for rank in range(len(numbers))]

        def piece(rank):
            args, kwargs = parts[rank]

            def run():
                with cp.cuda.Device(numbers[rank]), groups.axes_bound({name: members[rank]}):
                    return nccl.run_by(lambda: program(*args, **kwargs), members[rank], clique, grid, deadline)
            return run
        with one_thread_each():
            return teams.side_by_side([piece(rank) for rank in range(len(numbers))], grid, deadline)


def ready(leaves: Sequence[Any]) -> None:
    """Wait until arrays are computed, since other streams may still be writing them."""
    cp = device.cp
    for number in sorted({leaf.device.id for leaf in leaves if isinstance(leaf, cp.ndarray)}):
        cp.cuda.Device(number).synchronize()


def moved(part: tuple, number: int) -> tuple:
    """A GPU's arguments, copied to it."""
    leaves, structure = tree_flatten(part)
    return tree_unflatten(structure, [brought(x, number) if isinstance(x, device.cp.ndarray) else x for x in leaves])


def brought(leaf: Any, number: int) -> Any:
    """An array copied to a GPU; between GPUs it is copied in row-major order."""
    cp = device.cp
    if not isinstance(leaf, cp.ndarray):
        with cp.cuda.Device(number):
            return cp.asarray(leaf)
    if leaf.device.id == number:
        return leaf
    with leaf.device:
        rows = cp.asarray(leaf, order="C")
        cp.cuda.get_current_stream().synchronize()
    with cp.cuda.Device(number):
        made = cp.asarray(rows)
        cp.cuda.get_current_stream().synchronize()      # the GPU's thread has another stream; `rows` lives until then
    return made


def stack(number: int) -> Callable:
    """np.stack of arrays on several GPUs, with the result on one of them."""
    def stacked(leaves, axis):
        made = [brought(leaf, number) for leaf in leaves]
        with device.cp.cuda.Device(number):
            return device.cp.stack(made, axis)
    return stacked


# --- one process for each GPU -----------------------------------------------------------------------------------------

@contextlib.contextmanager
def of_process(world: Any, line: Any) -> Iterator[nccl.Gpus]:
    """This process's GPU, by its number on its host, as a device of the axis of all processes."""
    check()
    number = local_rank(world.processes, world.rank)
    if number >= device.device_count():
        raise KindError(f"rank {world.rank} is process {number} of its host, which has {device.device_count()} GPUs",
                        None, "Start one process for each GPU: mpiexec -n N, and as many a host as it has.")
    device.cp.cuda.Device(number).use()             # it stays this thread's device, since results are on it
    if world not in _communicators:
        library = nccl.library()
        world.agree(line, "the start of NCCL")
        name = world.comm.bcast(library.get_unique_id() if world.rank == 0 else None, root=0)
        _communicators[world] = library.NcclCommunicator(world.size, name, world.rank)

    def agree(label, shape, dtype):
        world.agree(line, f"{label} with {dtype}{list(shape)}")

    def news():
        return groups.Lost(*world.broken) if world.broken is not None else None
    try:
        yield nccl.Gpus(_communicators[world], world.rank, world.size, line.name, agree, news)
    except BaseException:
        _communicators.pop(world).abort()
        raise


def local_rank(processes: Sequence[tuple], rank: int) -> int:
    """The number of a process among those of its host.

    >>> local_rank([("a", 11), ("b", 12), ("a", 13)], 2)
    1
    """
    return [host for host, _ in processes[:rank]].count(processes[rank][0])


class Stream:
    """The work of a GPU, to be waited for like an MPI request."""

    def __init__(self, group: nccl.Gpus):
        self.group = group

    def Test(self) -> bool:
        """Whether all of the GPU's work is done, as MPI.Request.Test says of a message."""
        return self.group.idle
