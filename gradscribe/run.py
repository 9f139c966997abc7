# SPDX-License-Identifier: Apache-2.0
"""Runs a script as one process of an MPI run: mpiexec -n 4 python -m gradscribe.run train.py [arguments]

The process that mpiexec starts runs the script in a child process and reports how it ended, since a child that is
killed cannot do so itself.  The other processes then end with a message before mpiexec ends them all.
"""
import os
import runpy
import signal
import subprocess
import sys
import time

from gradscribe import distributed
from gradscribe.machine import RUN

INSIDE = "--inside"
PATIENCE = 3.0                          # seconds for the other processes to print their messages


def watch(arguments: list[str]) -> int:
    """Run the script in a child process; returns the exit code."""
    rank = os.environ.get("PMI_RANK") or os.environ.get("PMIX_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
    child = subprocess.Popen([sys.executable, "-m", "gradscribe.run", INSIDE, *arguments], close_fds=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda n, _: child.send_signal(n))
    code = child.wait()
    if code < 0:
        print(f"gradscribe: rank {rank} was ended by {signal.Signals(-code).name}", file=sys.stderr, flush=True)
        code = 128 - code
    elif code:
        print(f"gradscribe: rank {rank} ended with code {code}", file=sys.stderr, flush=True)
    if code:
        time.sleep(PATIENCE)
        end_run(code)
    return code


def end_run(code: int) -> None:
    """Ask mpiexec to end all processes.

    MPICH's does not always notice that a process has ended with an error (one run in twenty never ended), but it obeys
    the message "abort" on a process's PMI connection (simple protocol, version 1).  Other launchers use exit codes.
    """
    line = os.environ.get("PMI_FD", "")
    if line.isdigit():
        try:
            os.write(int(line), b"cmd=abort exitcode=%d\n" % code)
        except OSError:
            return                      # mpiexec has ended already
        time.sleep(PATIENCE)


def inside(arguments: list[str]) -> None:
    """Join the run, then run the script."""
    distributed.initialize()
    world = RUN["world"]
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            distributed.tell(error)
            print(f"[rank {world.rank} of {world.size}] exit {error.code}", file=sys.stderr)
            distributed.leave(error.code if isinstance(error.code, int) else 1)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        distributed.leave(1)
    distributed.shutdown()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == INSIDE:
        inside(sys.argv[2:])
    else:
        sys.exit(watch(sys.argv[1:]))
