# SPDX-License-Identifier: Apache-2.0
"""The processes behind a live page, and the watch over the files that they have read.

The server imports nothing of the user's.  Processes of their own do, and are replaced when a file changes: what the
page shows is then what a fresh import gives, and code that hangs or crashes ends that process only.  A spare one has
imported Gradscribe and waits to take a place: after a change, and for a request that comes while another is slow.
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
MOST = 3                                # processes that answer at a time
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
    """The processes that answer: a slow request keeps one of them, and the next request is given to another.

    free: those that wait for a request; spare: one that has not imported anything of the user's and takes a place;
    busy: how many are at a request.
    """

    def __init__(self, limit: float = LIMIT):
        self.limit, self.changed = limit, threading.Condition()
        self.all: set[Worker] = set()
        self.free: list[Worker] = []
        self.spare: Worker | None = None
        self.closed = False
        self.free.append(self._new())

    def _new(self):
        worker = Worker()
        self.all.add(worker)
        return worker

    def _taken(self):
        """A process for a request; waits where MOST are busy."""
        with self.changed:
            self.changed.wait_for(lambda: self.free or self.closed or len(self.all) - (self.spare is not None) < MOST)
            if self.closed:
                raise Ended("the page was closed")
            if self.free:
                return self.free.pop()
            worker, self.spare = self.spare or self._new(), None
            return worker

    def _back(self, worker, ended):
        """Enter that a process has answered, or has ended; there is always a spare one."""
        with self.changed:
            if ended or worker.replaced or self.closed:
                self.all.discard(worker)
            else:
                self.free.append(worker)
            if self.spare is None and not self.closed:
                self.spare = self._new()
            self.changed.notify_all()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply of a process; Ended if it ends before."""
        worker, ended = self._taken(), True
        try:
            reply = worker.ask(request, self.limit)
            ended = False
        finally:
            self._back(worker, ended)
        return reply

    def renew(self) -> None:
        """Replace the processes that have imported something; the requests that they are at end with Ended."""
        with self.changed:
            if self.closed:
                return
            old = self.all - {self.spare}
            self.all, self.free = self.all - old, []
            if self.spare is not None:
                self.free, self.spare = [self.spare], None
            for worker in old:
                worker.replaced = True
            self.changed.notify_all()
        for worker in old:
            worker.end()

    def close(self) -> None:
        """Stop all processes."""
        with self.changed:
            self.closed = True
            old = list(self.all)
            self.changed.notify_all()
        for worker in old:
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
