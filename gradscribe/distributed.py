# SPDX-License-Identifier: Apache-2.0
"""gs.distributed: joins the processes of an MPI run.

    mpiexec -n 4 python -m gradscribe.run train.py

joins them before the script begins; a script that mpiexec starts directly calls gs.distributed.initialize().
"""
import atexit
import os
import sys
from typing import Any

from gradscribe.frames import public
from gradscribe.machine import RUN
from gradscribe.mpi import World
from gradscribe.saving import restore, save

__all__ = ["initialize", "is_initialized", "restore", "save", "shutdown"]


@public
def initialize(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
    local_device_ids: Any = None, cluster_detection_method: str | None = None,
    initialization_timeout: float | None = None, coordinator_bind_address: str | None = None, *,
    deadline: float | None = None,
) -> None:
    """Join the processes that mpiexec has started; each becomes one device of gs.pmap.

    deadline: seconds that a process waits for the others before it ends the run with a message; 0 for no limit.  The
    default is GRADSCRIBE_DEADLINE, or 300.  A second call changes the deadline.
    The other arguments are accepted for compatibility with JAX.  MPI locates the processes, so most have no effect;
    num_processes and process_id must match MPI's.

    Raises ValueError if num_processes or process_id does not match MPI's, TypeError if coordinator_address is not a
    string, ImportError if mpi4py is missing: pip install "gradscribe[mpi]".

    >>> import gradscribe as gs                      # doctest: +SKIP
    >>> gs.distributed.initialize(deadline=60)       # doctest: +SKIP
    """
    if not isinstance(coordinator_address, (str, type(None))):
        raise TypeError(f"coordinator_address must be a text, as \"host:1234\", not {coordinator_address!r}; seconds "
                        "to wait are initialize(deadline=...)")
    seconds = float(os.environ.get("GRADSCRIBE_DEADLINE", "300")) if deadline is None else float(deadline)
    world = RUN.get("world")
    try:
        joined = world or World(seconds or None)
    except ImportError as error:
        raise ImportError('gs.distributed needs mpi4py and an MPI: pip install "gradscribe[mpi]"') from error
    for name, said, found in (("num_processes", num_processes, joined.size), ("process_id", process_id, joined.rank)):
        if said is not None and said != found:
            raise ValueError(f"{name} is {said}, and MPI says {found}: start the program by mpiexec -n N, and leave "
                             f"{name} out")
    joined.deadline = seconds or None
    if world is not None:
        return
    RUN["world"] = joined
    sys.excepthook = _told(sys.excepthook)
    atexit.register(shutdown)


def is_initialized() -> bool:
    """Whether this process has joined a run."""
    return "world" in RUN


def shutdown() -> None:
    """Leave the run once all processes have finished; a process that has lost another ends at once."""
    world = RUN.pop("world", None)
    if world is None:
        return
    atexit.unregister(shutdown)
    try:
        world.finish()
    except Exception as error:
        print(f"[rank {world.rank} of {world.size}] {type(error).__name__}: {error}", file=sys.stderr)
    if world.broken is not None:
        leave(1)


def tell(error: BaseException) -> None:
    """Tell the other processes which error ended this one."""
    world = RUN.get("world")
    if world is not None:
        world.tell(f"{type(error).__name__}: {error}")


def leave(code: int) -> None:
    """End this process without waiting for the others."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _told(hook: Any) -> Any:
    def told(kind, error, traceback):
        world = RUN.get("world")
        if world is not None:
            print(f"[rank {world.rank} of {world.size}]", file=sys.stderr)
        hook(kind, error, traceback)
        if world is not None and world.size > 1:
            tell(error)
            leave(1)
    return told
