# SPDX-License-Identifier: Apache-2.0
"""The processes behind a live page, and the watch over the files that they have read.

The server imports nothing of the user's.  A process of its own does, and is replaced when a file changes: what the page
shows is then what a fresh import gives, and code that hangs or crashes ends that process only.  A second process has
imported Gradscribe and waits to take its place.
"""
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

LIMIT, POLL = 120.0, 0.15               # the longest a request may take, and the time between two looks, in seconds
PROGRAM = "import json, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); " \
          "sys.path[:] = json.loads(sys.argv[1]); from gradscribe.live_worker import main; main()"      # Ctrl-C is ours

Signature = list[int]


def signature(file: str) -> Signature | None:
    """What tells the states of a file apart: the time of its change, its size, its number; None if it is not there."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return [state.st_mtime_ns, state.st_size, state.st_ino]


class Ended(Exception):
    """A process ended before it answered; str() says why."""


class Worker:
    """One process, which answers requests of plain data in order."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(sys.path)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.replaced = self.late = False

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """The reply to a request; Ended if the process ends, as it does after `limit` seconds."""
        timer = threading.Timer(limit, self._too_late)
        timer.daemon = True
        timer.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (OSError, ValueError):           # it has ended, or its pipes were closed
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise Ended("a file has changed meanwhile" if self.replaced else
                        f"it took longer than {limit:g} seconds" if self.late else
                        f"the process that runs the function ended with status {self.process.wait()}")
        return json.loads(line)

    def _too_late(self):
        self.late = True
        self.process.kill()

    def end(self) -> None:
        """Stop the process."""
        self.replaced = True
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Workers:
    """The process that answers now, and the one that waits to take its place."""

    def __init__(self, limit: float = LIMIT):
        self.limit, self.turn, self.guard = limit, threading.Lock(), threading.Lock()
        self.current: Worker = Worker()
        self.spare: Worker | None = None
        self.closed = False

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply of the process that answers now; if it ends, another takes its place and Ended is raised."""
        with self.turn:
            worker = self.current
            try:
                reply = worker.ask(request, self.limit)
            except Ended:
                if worker is self.current:
                    self.renew()
                raise
        with self.guard:
            if self.spare is None and not self.closed:
                self.spare = Worker()
        return reply

    def renew(self) -> None:
        """Replace the process that answers; a request that it is at ends with Ended."""
        with self.guard:
            if self.closed:
                return
            old, self.current = self.current, self.spare or Worker()
            self.spare = None
        old.end()

    def close(self) -> None:
        """Stop all processes."""
        with self.guard:
            self.closed = True
        for worker in (self.current, self.spare):
            if worker is not None:
                worker.end()


class Watch:
    """Looks at files and counts their changes; `changed` is called at each, before the count goes up."""

    def __init__(self, changed: Callable[[], None]):
        self.changed, self.count = changed, 0
        self.files: dict[str, Signature] = {}
        self.told, self.closed = threading.Condition(), False
        self.thread = threading.Thread(target=self._look, name="gradscribe live", daemon=True)
        self.thread.start()

    def see(self, files: dict[str, Signature]) -> None:
        """Look at these files too; they were read in these states."""
        with self.told:
            self.files.update(files)

    def wait(self, known: int, limit: float) -> int:
        """The count of changes, when it is not the one that is known or after `limit` seconds."""
        with self.told:
            self.told.wait_for(lambda: self.count != known or self.closed, limit)
            return self.count

    def close(self) -> None:
        """Stop looking, and end all waits."""
        with self.told:
            self.closed = True
            self.told.notify_all()

    def _now(self):
        """{file: its state} of files in another state than the known one; one that is missing is being written."""
        return {file: now for file, known in list(self.files.items()) if (now := signature(file)) not in (None, known)}

    def _look(self):
        while not self.closed:
            time.sleep(POLL)
            found = self._now()
            while found and not self.closed:            # until who writes has finished
                time.sleep(POLL / 3)
                again = self._now()
                if again == found:
                    break
                found = again
            if found and not self.closed:
                self.changed()
                with self.told:
                    self.files.update(found)
                    self.count += 1
                    self.told.notify_all()
