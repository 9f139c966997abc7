"""Runs of a script as several processes under MPI."""
import os
import subprocess
import sys
from pathlib import Path

import gradscribe

DEADLINE = 3
LONGEST = 300                           # seconds for a whole run, on a machine that has other work
SOURCE = Path(gradscribe.__file__).resolve().parents[1]


def mpiexec(count, script, *arguments):
    """(exit code, all that was said) of a script as so many processes; nothing of it is left."""
    beside = Path(sys.executable).parent / "mpiexec"
    command = [str(beside) if beside.exists() else "mpiexec", "-n", str(count), sys.executable, "-m", "gradscribe.run",
               str(script), *map(str, arguments)]
    folders = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "GRADSCRIBE_DEADLINE": str(DEADLINE), "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LONGEST, env=environment)
    return done.returncode, done.stdout + done.stderr


def left(script):
    """The processes that still run a script."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if str(script).encode() in (folder / "cmdline").read_bytes() and state != "Z":
                found.append(folder.name)
        except OSError:
            pass
    return found
