# SPDX-License-Identifier: Apache-2.0
"""Progress of long steps: a function is transformed, Numba compiles it, or it is mapped over examples.

After two seconds, one line on a terminal shows the step, the number of statements or examples, and the time, updated
in place (by tqdm if installed, so that it does not disturb the program's own bars).  Elsewhere nothing is written.  The
logger "gradscribe" gets a message at level INFO after two seconds and at the end.  GRADSCRIBE_PROGRESS=off turns the
line off.

>>> from gradscribe import progress
>>> with progress.telling("transforming", "loss", lambda: 12):
...     pass                            # it was quick
"""
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AFTER = 2.0                         # seconds before the line appears
EVERY = 0.25                        # seconds between updates

log = logging.getLogger("gradscribe")
_told = threading.local()


@contextmanager
def telling(doing: str, name: str, count: Callable[[], object], of: str = "statements") -> Iterator[None]:
    """Report the progress of a `with` block; of nested ones, the outermost reports.

    count: how many so far; of: of what.
    """
    line = on_a_terminal()
    if getattr(_told, "now", False) or not (line or log.isEnabledFor(logging.INFO)):
        yield
        return
    start, done, _told.now = time.perf_counter(), threading.Event(), True

    def words():
        return f"{doing} {name}: {count()} {of}, {time.perf_counter() - start:.0f} s"
    watcher = threading.Thread(target=_watch, args=(words, done, line), name="gradscribe progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        _told.now = False
        done.set()
        watcher.join()
        if time.perf_counter() - start >= AFTER:
            log.info("%s, ended", words())


def on_a_terminal() -> bool:
    """Whether there is a terminal for a line of progress, and GRADSCRIBE_PROGRESS is not off."""
    if os.environ.get("GRADSCRIBE_PROGRESS", "").lower() in ("off", "0", "no"):
        return False
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):            # no stream, or a closed one
        return False


def _watch(words, done, line):
    if done.wait(AFTER):
        return
    log.info("%s so far", words())
    if not line:
        return
    show, close = _line()
    while True:
        show(f"gradscribe: {words()}")
        if done.wait(EVERY):
            break
    show(f"gradscribe: {words()}")
    close()


def _line():
    """(function that writes a line over the one before, function that ends it)"""
    try:
        from tqdm import tqdm
    except ImportError:
        return lambda text: print(f"\r{text}", end="", file=sys.stderr, flush=True), lambda: print(file=sys.stderr)
    size = shutil.get_terminal_size()               # some terminals report no size
    bar = tqdm(bar_format="{desc}", file=sys.stderr, ncols=size.columns, nrows=size.lines)
    return bar.set_description_str, bar.close
