# SPDX-License-Identifier: Apache-2.0
"""A training run that is killed again and again, and goes on each time: its parameters at the end, bit for bit.

    python benchmarks/kills.py [--kills 50] [--ranks 1] [--steps 400]

A run of examples/spectral.py saves its state every few steps.  It is started, killed by SIGKILL at some moment (while
it starts, computes or writes), and started again, until it was killed so often; then it runs to its end.  The final
parameters are compared with those of a run that nobody has killed.  With --ranks it runs under mpiexec, and one process
of it is killed.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def command(ranks, *arguments):
    script = str(ROOT / "examples" / "spectral.py")
    if ranks == 1:
        return [sys.executable, script, *arguments]
    mpiexec = Path(sys.executable).parent / "mpiexec"
    return [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(ranks), sys.executable, "-m", "gradscribe.run",
            script, *arguments]


def processes_of(pid):
    """A process and what it has started, the youngest last."""
    found, queue = [], [pid]
    while queue:
        pid = queue.pop(0)
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children") if Path(f"/proc/{pid}/task").is_dir() else ():
            try:
                queue += map(int, task.read_text().split())
            except OSError:
                pass
    return found


def killed_after(seconds, arguments, environment):
    """Start a run and kill a process of it; whether it had ended by itself."""
    run = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           start_new_session=True)
    try:
        run.wait(seconds)
        return run.returncode == 0
    except subprocess.TimeoutExpired:
        pass
    try:
        os.kill(processes_of(run.pid)[-1], signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        run.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        raise SystemExit("a run went on for 30 seconds after one of its processes was killed") from None
    return False


def run(kills, ranks, steps, say=print, seed=0, longest=None):
    """Whether the parameters are the same; prints how far the runs came."""
    rng, environment = random.Random(seed), {**os.environ, "GRADSCRIBE_DEADLINE": "60"}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        whole = ["--steps", str(steps), "--every", "5", "--save"]
        start = time.monotonic()
        subprocess.run(command(ranks, *whole, str(folder / "whole.npz")), check=True, env=environment,
                       stdout=subprocess.DEVNULL)
        longest = longest or time.monotonic() - start
        parts = command(ranks, *whole, str(folder / "parts.npz"), "--folder", str(folder / "states"))
        k = 0
        while k < kills:
            moment = rng.uniform(0.3, 1.0) * longest
            if killed_after(moment, parts, environment):
                say("the run had ended before it was killed: another one begins")
                for path in (folder / "states").glob("step_*"):
                    path.unlink()
                continue
            k += 1
            states = sorted(p.name for p in (folder / "states").glob("step_*"))
            say(f"kill {k:3d} after {moment:5.2f} s; the newest state is {states[-1] if states else 'none'}")
        subprocess.run(parts, check=True, env=environment, stdout=subprocess.DEVNULL)
        with np.load(folder / "whole.npz") as a, np.load(folder / "parts.npz") as b:
            names = [n for n in a.files if n != "losses"]
            return all(np.array_equal(a[n], b[n]) for n in names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    same = run(options.kills, options.ranks, options.steps)
    print("the same parameters, bit for bit" if same else "OTHER PARAMETERS")
    sys.exit(not same)


if __name__ == "__main__":
    main()
